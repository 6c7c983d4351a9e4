// SPDX-License-Identifier: MIT
#pragma once

#include "ax/state/state_machine.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace ax {

/// The state of a task. The numbers are stored and never change their meaning.
enum class task_state : std::uint8_t {
    created = 0,         ///< stored, not yet eligible: held, or its parents are unfinished
    ready = 1,           ///< will run at its `run_at`
    dispatched = 2,      ///< claimed by a node, not started
    running = 3,         ///< the handler is at work
    succeeded = 4,       ///< done (terminal)
    failed = 5,          ///< the last attempt failed; tried again at `run_at`
    dead = 6,            ///< retries or deadline exhausted, given up, poison (terminal)
    cancelled = 7,       ///< by the caller (terminal; counts as failed in trigger rules)
    skipped = 8,         ///< its trigger rule chose so, or its handler did (terminal)
    upstream_failed = 9, ///< its trigger rule can no longer hold because a parent failed (terminal)
};

/// The name of a state as it is written here; "unknown" for a number that is none.
constexpr std::string_view to_string(task_state s) noexcept {
    switch (s) {
    case task_state::created: return "created";
    case task_state::ready: return "ready";
    case task_state::dispatched: return "dispatched";
    case task_state::running: return "running";
    case task_state::succeeded: return "succeeded";
    case task_state::failed: return "failed";
    case task_state::dead: return "dead";
    case task_state::cancelled: return "cancelled";
    case task_state::skipped: return "skipped";
    case task_state::upstream_failed: return "upstream_failed";
    }
    return "unknown";
}

namespace detail {

struct lifecycle_table {
    using s = task_state;
    static constexpr transition<task_state> transitions[] = {
        {s::created, s::ready},
        {s::created, s::dead, "deadline"},
        {s::created, s::cancelled},
        {s::created, s::skipped, "trigger rule"},
        {s::created, s::upstream_failed, "a parent failed"},

        {s::ready, s::dispatched, "claimed"},
        {s::ready, s::dead, "deadline"},
        {s::ready, s::cancelled},

        {s::dispatched, s::running},
        {s::dispatched, s::ready, "given back, reclaimed"},
        {s::dispatched, s::dead, "deadline, poison"},
        {s::dispatched, s::cancelled},

        {s::running, s::succeeded},
        {s::running, s::failed, "will be tried again"},
        {s::running, s::dead, "no more retries, given up, deadline, poison"},
        {s::running, s::cancelled},
        {s::running, s::skipped, "threw skip"},
        {s::running, s::ready, "interrupted, snoozed"},

        {s::failed, s::dispatched, "claimed"},
        {s::failed, s::dead, "deadline"},
        {s::failed, s::cancelled},

        {s::dead, s::ready, "retried by hand"},
        {s::dead, s::succeeded, "marked by hand"},

        {s::cancelled, s::ready, "by hand"},

        {s::skipped, s::created, "a parent is retried or marked"},
        {s::upstream_failed, s::created, "a parent is retried or marked"},
    };
    static constexpr task_state initial[] = {s::created, s::ready};
    static constexpr task_state terminal[] = {s::succeeded, s::dead, s::cancelled, s::skipped, s::upstream_failed};
};

} // namespace detail

/// The life of a task: every edge that any part of `ax` may take, and no other.
///
///     lifecycle.allowed(task_state::failed, task_state::dispatched)             // true
///     lifecycle.go<task_state::succeeded, task_state::ready>()                  // does not compile
inline constexpr state_machine<detail::lifecycle_table> lifecycle{};

/// The state of that name, exactly as to_string() writes it. Nothing for any other text.
constexpr std::optional<task_state> parse_task_state(std::string_view name) noexcept {
    for (auto s : lifecycle.states())
        if (to_string(s) == name) return s;
    return std::nullopt;
}

/// The state with that number, as a store keeps it. Nothing for a number that is none.
constexpr std::optional<task_state> task_state_of(std::int64_t code) noexcept {
    if (code < 0 || code > 255 || !lifecycle.contains(static_cast<task_state>(code))) return std::nullopt;
    return static_cast<task_state>(code);
}

/// True for the five states that count as an end: nothing happens to the task any more unless somebody steps in.
constexpr bool is_terminal(task_state s) noexcept { return lifecycle.is_terminal(s); }

/// True where a node owns the task: dispatched or running.
constexpr bool is_active(task_state s) noexcept { return s == task_state::dispatched || s == task_state::running; }

/// True where a node may claim the task once it is due: ready or failed.
constexpr bool is_claimable(task_state s) noexcept { return s == task_state::ready || s == task_state::failed; }

} // namespace ax

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/ids.hpp"
#include "ax/task/conflict_policy.hpp"
#include "ax/task/lifecycle.hpp"
#include "ax/task/limit.hpp"
#include "ax/time/time_point.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ax {

/// How urgent a task is. Classes share the claims by weight (options::weights); none starves and none blocks.
enum class priority_class : std::uint8_t { critical = 0, high = 1, normal = 2, low = 3 };

constexpr char const* to_string(priority_class urgency) noexcept {
    switch (urgency) {
    case priority_class::critical: return "critical";
    case priority_class::high: return "high";
    case priority_class::normal: return "normal";
    case priority_class::low: return "low";
    }
    return "?";
}
inline constexpr std::size_t priority_classes = 4;

/// The values of priority_class, as a caller writes them: `.priority = ax::priority::high`.
namespace priority {
using enum priority_class;
}

/// What a task in backoff does to those behind it with the same route key.
enum class route_ordering : std::uint8_t {
    strict = 0, ///< it keeps its place, and they wait until it is terminal
    relaxed = 1 ///< they pass; it goes behind those that are due before its retry
};

/// The values of route_ordering, as a caller writes them: `.route_order = ax::route_order::relaxed`.
namespace route_order {
using enum route_ordering;
}

/// The number of a task type in one store, given at its first use and kept for ever.
enum class type_number : std::uint32_t {};

/// One priority class of one task type: the unit by which due tasks are read and claimed, so that a paused or unknown
/// type and a flood in a lower class never stand in the way of others.
enum class lane_id : std::uint32_t {};

constexpr lane_id make_lane(type_number type, priority_class urgency) noexcept {
    return lane_id{static_cast<std::uint32_t>(type) * static_cast<std::uint32_t>(priority_classes) +
                   static_cast<std::uint32_t>(urgency)};
}
constexpr type_number type_of(lane_id lane) noexcept {
    return type_number{static_cast<std::uint32_t>(lane) / static_cast<std::uint32_t>(priority_classes)};
}
constexpr priority_class class_of(lane_id lane) noexcept {
    return static_cast<priority_class>(static_cast<std::uint32_t>(lane) % priority_classes);
}

struct workflow_plan;

/// A task about to be stored. Everything has been checked by who made it; storages keep what they are given.
struct new_task {
    type_number type{};
    std::string payload;
    std::string key; ///< empty: none
    key_scoping key_scope = key_scoping::kept;
    conflict_policy on_conflict;
    std::optional<time_point> run_at; ///< none: at once
    duration delay{};                 ///< added to the storage's own present where there is no run_at
    priority_class priority = priority_class::normal;
    std::string route_key; ///< empty: none
    route_ordering route_order = route_ordering::strict;
    std::optional<time_point> deadline;
    std::string retry;                      ///< a policy's text form; empty: the handler's
    std::string schedule;                   ///< the schedule whose occurrence it is; empty: none
    std::optional<time_point> scheduled_at; ///< the nominal instant of that occurrence
    std::vector<std::string> tags;          ///< sorted, each once
    bool after_past = false; ///< an occurrence: it waits until the one before it has succeeded, or was skipped
    bool set_aside = false;  ///< an occurrence: it waits until it is released
    std::shared_ptr<workflow_plan const> workflow; ///< it is a workflow, of these tasks; null: it is none
};

/// A task as it is stored, and as a caller sees it.
struct task_record {
    task_id id{};
    std::string type;
    std::string key;
    task_state state = task_state::created;
    std::string payload;           ///< JSON text, empty for a task type without payload
    time_point run_at{};           ///< when it is due; after a failure, when it is tried again
    std::size_t attempts = 0;      ///< started so far, the running one included
    std::size_t failures = 0;      ///< attempts that failed: what the retry policy counts
    std::size_t interruptions = 0; ///< attempts cut off by a stop, a crash or a lost lease
    std::size_t snoozes = 0;
    std::string last_error;
    time_point created{};
    std::optional<time_point> started;  ///< start of the latest attempt
    std::optional<time_point> finished; ///< when it became terminal
    node_id node{};                     ///< who claimed it last

    priority_class priority = priority_class::normal;
    std::string route_key;
    route_ordering route_order = route_ordering::strict;
    time_point order_at{}; ///< its place among those with the same route key: this, then id
    bool blocked = false;  ///< another task with its route key goes first
    bool held = false;     ///< waits for a person (retry() lets it go)
    std::optional<time_point> deadline;
    std::string retry;
    std::string result; ///< JSON text; empty: none
    std::string schedule;
    std::optional<time_point> scheduled_at;
    std::uint64_t version = 0;               ///< raised by every change
    fence_token fence{};                     ///< the version that the latest claim wrote
    time_point changed{};                    ///< when it came into its present state
    std::optional<time_point> first_started; ///< start of the first attempt: what a policy's total time counts from
    bool hold_on_interrupt = false;          ///< as its latest claim said
    bool stop_asked = false;                 ///< in flight, and somebody beside its owner wants it to stop
    bool lonely = false;                     ///< its latest claim was that of a suspect, which runs one at a time
    std::size_t unclean_ends = 0;            ///< how often in a row its owner died while it was in flight
    std::size_t lonely_deaths = 0;           ///< how many of those in a lonely run
    key_scoping key_scope = key_scoping::kept;
    bool key_released = false;     ///< it had its key, and holds it no more
    std::vector<std::string> tags; ///< sorted, each once
    limit_number waits_for{};      ///< the full limit that it waits for; 0: none
    bool in_workflow = false;      ///< a task of a workflow, or one itself
    bool paused = false;           ///< its workflow is paused
    bool set_aside = false;        ///< an occurrence that is held until it is released; others of its route pass it
};

/// What a caller sees of a task: the record, and what only the process that runs it knows.
struct task_view : task_record {
    bool over_expected = false; ///< it runs for longer than its handler was expected to
    double progress = 0;        ///< as its handler says, from 0 to 1
    std::string progress_note;
};

/// How an attempt ended. Each has one next state.
enum class attempt_outcome : std::uint8_t {
    succeeded = 0,   ///< -> succeeded
    failed = 1,      ///< -> failed, tried again at `retry_at`
    exhausted = 2,   ///< failed, and no retry is left or the handler gave up -> dead
    snoozed = 3,     ///< the handler asked for later -> ready at `retry_at`
    interrupted = 4, ///< stopped before it was done -> ready at once
    held = 5,        ///< like interrupted, for a handler that must not run twice -> ready, but waits for a person
    cancelled = 6,   ///< -> cancelled
    skipped = 7,     ///< -> skipped
    expired = 8,     ///< its deadline passed while it ran -> dead
    released = 9,    ///< never started, given back -> ready; leaves no trace in the history
    crashed = 10     ///< the process ended while it was in flight; written by reclaim() alone
};

constexpr char const* to_string(attempt_outcome outcome) noexcept {
    switch (outcome) {
    case attempt_outcome::succeeded: return "succeeded";
    case attempt_outcome::failed: return "failed";
    case attempt_outcome::exhausted: return "exhausted";
    case attempt_outcome::snoozed: return "snoozed";
    case attempt_outcome::interrupted: return "interrupted";
    case attempt_outcome::held: return "held";
    case attempt_outcome::cancelled: return "cancelled";
    case attempt_outcome::skipped: return "skipped";
    case attempt_outcome::expired: return "expired";
    case attempt_outcome::released: return "released";
    case attempt_outcome::crashed: return "crashed";
    }
    return "?";
}

/// One attempt, as history() tells it.
struct attempt_view {
    std::size_t number = 0; ///< 1 for the first
    fence_token id{};       ///< unique within the task
    node_id node{};
    std::optional<time_point> start;        ///< none: claimed and never known to have started
    std::optional<time_point> end;          ///< none: still running
    std::optional<attempt_outcome> outcome; ///< none: still running
    std::string error;
    std::string log;
};

/// Where tasks of one state are looked for; see list().
struct task_filter {
    std::optional<task_state> state = {};
    std::string type = {};                   ///< empty: all
    std::optional<time_span> stuck_for = {}; ///< only those in their present state for longer than this
    bool over_expected = false;              ///< only running ones that have exceeded their handler's expected run
                                             ///< time; storages know no handlers and leave this to the scheduler
    task_id after = {};                      ///< continue behind this one, the last of the previous page
    std::size_t limit = 100;
};

} // namespace ax

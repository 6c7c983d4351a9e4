// SPDX-License-Identifier: MIT
// What becomes of a submit whose key is taken: the rules, for every storage the same.
#pragma once

#include "ax/task/record.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace ax::detail {

enum class key_move : std::uint8_t {
    keep,     ///< nothing happens
    reject,   ///< nothing happens, and the answer says so
    replace,  ///< the holder becomes what was submitted
    debounce, ///< the holder is put off
    pass      ///< the holder loses its key to a new task
};

/// Whether `age` counts as less than `period`. A task from the future was made before the clock was set back; where
/// that is more than a period, nobody can tell, and holding the key until the clock has caught up would be worse.
constexpr bool is_within(duration age, duration period) noexcept { return age < period && age > -period; }

/// A workflow that goes on is no task that waits: its tasks are at work.
constexpr task_state state_for_conflict(task_state state, bool is_workflow) noexcept {
    return is_workflow && state == task_state::created ? task_state::running : state;
}

/// @param same_type  Of holder and submit: a payload of one type makes no sense to the handler of another, so that a
///                   task never changes its type.
/// @param age        Of the holder.
constexpr key_move decide_conflict(conflict_policy policy, task_state holder, bool same_type, duration age) noexcept {
    auto const changed_to = [&](key_move change) {
        if (is_active(holder)) return key_move::pass;
        if (is_terminal(holder)) return key_move::keep;
        return same_type ? change : key_move::reject;
    };
    switch (policy.action()) {
    case conflict_action::keep: return key_move::keep;
    case conflict_action::reject: return key_move::reject;
    case conflict_action::replace: return changed_to(key_move::replace);
    case conflict_action::debounce: return changed_to(key_move::debounce);
    case conflict_action::throttle: return is_within(age, policy.period()) ? key_move::keep : key_move::pass;
    }
    return key_move::keep;
}

/// The deadline of a task that is put off by one with another deadline: none is the latest.
constexpr std::optional<time_point> later_deadline(std::optional<time_point> a, std::optional<time_point> b) noexcept {
    if (!a || !b) return std::nullopt;
    return (std::max)(*a, *b);
}

} // namespace ax::detail

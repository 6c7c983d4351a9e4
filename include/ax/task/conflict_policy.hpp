// SPDX-License-Identifier: MIT
// What the key of a task means: for how long it is taken, and what a submit does that finds it taken.
#pragma once

#include "ax/time/time_point.hpp"

#include <cstdint>

namespace ax {

/// How long a task holds its key.
enum class key_scoping : std::uint8_t {
    kept = 0,  ///< while it is kept in the store, also when it has ended
    active = 1 ///< until it ends
};

/// The values of key_scoping, as a caller writes them: `.key_scope = ax::key_scope::active`.
namespace key_scope {
using enum key_scoping;
}

enum class conflict_action : std::uint8_t { keep, reject, replace, debounce, throttle };

constexpr char const* to_string(conflict_action what) noexcept {
    switch (what) {
    case conflict_action::keep: return "keep";
    case conflict_action::reject: return "reject";
    case conflict_action::replace: return "replace";
    case conflict_action::debounce: return "debounce";
    case conflict_action::throttle: return "throttle";
    }
    return "?";
}

/// What becomes of a submit whose key is taken. A value of the namespace on_conflict.
class conflict_policy {
  public:
    constexpr conflict_policy() noexcept = default;
    constexpr explicit conflict_policy(conflict_action what, time_span period = {}) noexcept
        : action_(what), period_(period) {}

    constexpr conflict_action action() const noexcept { return action_; }
    constexpr duration period() const noexcept { return period_; } ///< of throttle

    friend constexpr bool operator==(conflict_policy, conflict_policy) noexcept = default;

  private:
    conflict_action action_ = conflict_action::keep;
    duration period_{};
};

/// The policies, as a caller writes them: `.on_conflict = ax::on_conflict::throttle(1min)`. A holder that runs is one
/// that a node has claimed; one that waits has not been claimed, or waits to be tried again.
namespace on_conflict {

/// The task that holds the key stays as it is; the answer names it, as `kept`.
inline constexpr conflict_policy keep{conflict_action::keep};

/// The same, and the answer is `rejected`: for callers to whom a second submit is an error.
inline constexpr conflict_policy reject{conflict_action::reject};

/// The latest submit counts. A holder that waits becomes what was submitted, and keeps its id. One that runs goes on,
/// and the key passes to a new task. One that has ended and still holds its key is kept.
inline constexpr conflict_policy replace{conflict_action::replace};

/// Runs once calls have ceased: like replace, but a holder that waits takes the payload alone, and its `run_at` moves
/// to the later of the two. Needs a delay or a run_at.
inline constexpr conflict_policy debounce{conflict_action::debounce};

/// At most one task per period, counted from one's submit to the next one's: earlier, the task is kept; later, the key
/// passes to a new one, whatever became of it.
constexpr conflict_policy throttle(time_span period) noexcept {
    return conflict_policy{conflict_action::throttle, period};
}

} // namespace on_conflict

} // namespace ax

// SPDX-License-Identifier: MIT
// What is said and answered where a person steps into the periods of a schedule: a past range is made up for, a period
// is set aside until its data has come, and released.
#pragma once

#include "ax/task/record.hpp"

#include <cstddef>
#include <cstdint>

namespace ax {

/// Said with one backfill.
struct backfill_options {
    priority_class priority = priority_class::low; ///< of its tasks
    std::size_t at_once = 16; ///< how many of its tasks may be unfinished: its pace; from 1 to 1,000
};

/// What a backfill has come to so far.
struct backfill_report {
    std::uint64_t number = 0;    ///< see backfills() and stop_backfill()
    std::uint64_t planned = 0;   ///< occurrences in the range
    std::uint64_t created = 0;   ///< of those, made now
    std::uint64_t existed = 0;   ///< of those, there already
    std::uint64_t remaining = 0; ///< of those, to come, as others end
};

/// What came of a change of one period.
enum class period_outcome : std::uint8_t {
    done,
    running,         ///< its task is at work, or about to be: too late
    too_late,        ///< its task has ended
    not_set_aside,   ///< release(): nobody has set it aside
    unknown_period,  ///< the schedule has no occurrence at that instant
    unknown_schedule ///< there is no such schedule
};

constexpr char const* to_string(period_outcome outcome) noexcept {
    switch (outcome) {
    case period_outcome::done: return "done";
    case period_outcome::running: return "running";
    case period_outcome::too_late: return "too late";
    case period_outcome::not_set_aside: return "not set aside";
    case period_outcome::unknown_period: return "unknown period";
    case period_outcome::unknown_schedule: return "unknown schedule";
    }
    return "?";
}

namespace detail {

/// Tags of the tasks that a schedule has beside those of its rhythm.
inline constexpr char const* run_now_tag = "run_now";
inline constexpr char const* backfill_tag = "backfill";

inline constexpr std::size_t most_at_once = 1'000;

} // namespace detail

} // namespace ax

// SPDX-License-Identifier: MIT
// Occurrences of schedules that are waited for and are not there: how they are found, and which come no more.
#pragma once

#include "ax/storage/concept.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ax::detail {

/// A text for an occurrence by which those of one schedule stand together, in the order of their instants: an `s`, the
/// name, a blank and 20 digits, which count milliseconds from the earliest instant there is.
template <class Text>
Text awaited_occurrence(std::string_view schedule, time_point instant) {
    auto const digits =
        std::to_string(static_cast<std::uint64_t>(instant.time_since_epoch().count()) ^ (std::uint64_t{1} << 63));
    Text target = "s";
    target.append(schedule).append(1, ' ').append(20 - digits.size(), '0').append(digits);
    return target;
}
inline std::string_view awaited_schedule(std::string_view target) {
    return target.size() < 22 ? std::string_view{} : target.substr(1, target.size() - 22);
}
inline time_point awaited_instant(std::string_view target) {
    std::uint64_t count = 0;
    if (target.size() >= 22) std::from_chars(target.data() + target.size() - 20, target.data() + target.size(), count);
    return time_point{duration{static_cast<std::int64_t>(count ^ (std::uint64_t{1} << 63))}};
}

/// What is kept as such a text, or as `k` and a key, or `w` and the id of a workflow.
inline open_await open_await_of(std::string_view target, std::string_view name) {
    open_await what;
    what.name = name;
    auto const rest = target.substr((std::min)(target.size(), std::size_t{1}));
    if (target.starts_with('k')) {
        what.key = rest;
    } else if (target.starts_with('w')) {
        std::uint64_t id = 0;
        std::from_chars(rest.data(), rest.data() + rest.size(), id);
        what.workflow = task_id{id};
    } else {
        what.schedule = awaited_schedule(target);
        what.scheduled_at = awaited_instant(target);
    }
    return what;
}

/// What has not come before this instant does not come by its schedule any more.
/// @param record  None: there is no such schedule.
/// @param over    Where it has no next instant, it never has one again.
inline time_point passed_until(schedule_record const* record, bool over) {
    if (record == nullptr) return (time_point::max)();
    if (record->next) return *record->next;
    if (over) return (time_point::max)();
    return record->last_nominal ? *record->last_nominal + duration{1} : (time_point::min)();
}

/// Whether a backfill may yet make the occurrence.
inline bool is_to_make(backfill_record const& by, std::string_view schedule, time_point instant) {
    return by.next && *by.next <= instant && instant < by.to && by.schedule == schedule;
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/scheduler/detail/timetable.hpp"
#include "ax/scheduler/policies.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"

#include <cstddef>
#include <vector>

namespace ax::detail {

/// What a stored schedule will create if nothing changes; missed ones that are still to be made up for come first.
/// @param since  See misfire_grace().
template <class Recurrence>
std::vector<dependent<firing, Recurrence>> next_firings(dependent<schedule_record, Recurrence> const& record,
                                                        time_point now, time_point since, std::size_t most) {
    std::vector<dependent<firing, Recurrence>> next;
    if (record.paused || !record.next || most == 0) return next;
    schedule_meaning<Recurrence> const means{record};
    auto const plan = means.plan(*record.next, now, since, most);
    for (auto const nominal : plan.create) next.push_back({nominal, saturating_add(nominal, means.offset)});
    for (auto at = plan.next; at && next.size() < most; at = means.how.following(*at))
        next.push_back({*at, saturating_add(*at, means.offset)});
    return next;
}

} // namespace ax::detail

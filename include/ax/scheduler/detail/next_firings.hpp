// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/scheduler/detail/timetable.hpp"
#include "ax/scheduler/policies.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ax::detail {

/// What a stored schedule will create if nothing changes; missed ones that are still to be made up for come first.
/// @param since  See misfire_grace().
template <class Recurrence>
std::vector<dependent<firing, Recurrence>> next_firings(dependent<schedule_record, Recurrence> const& record,
                                                        time_point now, time_point since, std::size_t most) {
    using text = dependent<std::string, Recurrence>;
    std::vector<dependent<firing, Recurrence>> next;
    if (record.paused || most == 0) return next;
    schedule_meaning<Recurrence> const means{record};
    auto cursor = means.nearer(record, now); // where a wrong clock has carried it away, as it will be set back
    if (!cursor) cursor = record.next;
    if (!cursor) return next;
    auto const planned = means.how.in_words();
    auto const plan = means.plan(*cursor, now, since, most);
    text left_out; // said of the first one
    if (plan.skipped != 0) left_out = "; " + std::to_string(plan.skipped) + " before it left out (" + plan.reason + ")";
    auto const& misfire = means.terms.misfire;
    auto const made_up =
        "; missed, made up for by misfire " +
        (misfire.late_by() == duration{0} ? to_text(misfire) : "within " + length_text(misfire.late_by()));
    text rest;
    if (means.offset != duration{0}) rest += "; " + length_text(means.offset) + " later by its spread";
    if (means.terms.depends_on_past) rest += "; once the one before has succeeded";
    auto const add = [&](time_point nominal, text const& special) {
        next.push_back({nominal, saturating_add(nominal, means.offset), planned + special + left_out + rest});
        left_out.clear();
    };
    for (auto const nominal : plan.create) {
        auto const late = now - saturating_add(nominal, means.offset);
        bool const latest = nominal == plan.create.back() && !(plan.next && *plan.next <= now - means.offset);
        bool const on_time = late <= punctual || (latest && late <= misfire_grace(now, since));
        add(nominal, on_time ? "; due now" : made_up);
    }
    for (auto at = plan.next; at && next.size() < most; at = means.how.following(*at)) add(*at, "");
    return next;
}

/// Why there are no more than next_firings() gives, where it gives fewer than was asked for.
template <class Recurrence>
dependent<std::string, Recurrence> why_no_more(dependent<schedule_record, Recurrence> const& record) {
    if (record.paused) return "it is paused, and creates none until it is resumed";
    auto const how = Recurrence::parse(record.spec);
    if (how.waits_for_end())
        return record.next
                   ? "the one behind it is counted from the end of its run"
                   : "it waits for the end of its latest run, task " + std::to_string(to_number(record.last_task));
    return how.zone() ? "its calendar ends" : "it occurs once";
}

} // namespace ax::detail

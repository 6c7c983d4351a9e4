// SPDX-License-Identifier: MIT
// From wall times to instants. An interval ("every 15 minutes") happens at every instant whose wall time is in the set;
// fixed times ("at 02:30") happen once for every wall time of the set: at its first pass where the clocks show it
// twice, at the first instant after the gap where they skip it, and not at all where they skip its whole date.
//
// Both searches walk stretches of one offset, in which wall time and instants run alike; they leave the stretch that
// they begin in only when the next wall time lies beyond it.
#pragma once

#include "ax/cron/detail/calendar.hpp"
#include "ax/time/time_zone.hpp"

#include <cstdint>

namespace ax::detail {

inline constexpr std::int64_t no_instant = INT64_MIN;
inline constexpr std::int64_t two_days = 2 * std::int64_t{seconds_a_day}; // more than any two offsets differ

/// Whether `wall`, which the clocks skip at `gap`, lies on a date that they skip as a whole.
// Apia, 2011-12-30: the clocks went from the end of the 29th to the begin of the 31st
inline bool skips_whole_date(time_zone const& zone, std::int64_t gap, std::int64_t wall) {
    auto const p = zone.period(gap);
    auto const midnight = wall - wall % seconds_a_day;
    return midnight >= gap + p.before && midnight + seconds_a_day <= gap + p.offset;
}

inline std::int64_t next_interval(cron_fields const& f, time_zone const& zone, std::int64_t from) {
    for (;;) {
        auto const p = zone.period(from);
        auto const wall = next_wall_time(f, from + p.offset);
        if (wall != no_wall_time && wall - p.offset < p.end) return wall - p.offset;
        // What is not found from here on by this offset can still be found by another: soon after, if the clocks go
        // back, else not until close to where it would have been.
        bool const soon = p.end - from < two_days;
        if (wall == no_wall_time && !soon) return no_instant;
        from = p.end;
        if (!soon && wall - p.offset - two_days > from) from = wall - p.offset - two_days;
    }
}

inline std::int64_t prev_interval(cron_fields const& f, time_zone const& zone, std::int64_t to) {
    for (;;) {
        auto const p = zone.period(to);
        auto const wall = prev_wall_time(f, to + p.offset);
        if (wall != no_wall_time && wall - p.offset >= p.begin) return wall - p.offset;
        bool const soon = to - p.begin < two_days;
        if (wall == no_wall_time && !soon) return no_instant;
        to = p.begin - 1;
        if (!soon && wall - p.offset + two_days < to) to = wall - p.offset + two_days;
    }
}

inline std::int64_t next_fixed(cron_fields const& f, time_zone const& zone, std::int64_t from) {
    // All wall times up to the one shown at `from - 1` have happened; in a second pass, all up to the end of the first.
    auto const p = zone.period(from - 1);
    auto wall = from + p.offset;
    if (p.before > p.offset && wall < p.begin + p.before) wall = p.begin + p.before;
    for (;;) {
        wall = next_wall_time(f, wall);
        if (wall == no_wall_time) return no_instant;
        if (wall - p.offset < p.end) return wall - p.offset;
        auto const shown = zone.resolve(wall);
        if (shown.kind != local_kind::skipped || !skips_whole_date(zone, shown.first, wall)) return shown.first;
        wall += seconds_a_day - wall % seconds_a_day;
    }
}

inline std::int64_t prev_fixed(cron_fields const& f, time_zone const& zone, std::int64_t to) {
    auto const p = zone.period(to);
    auto wall = to + p.offset;
    auto first_pass_end = p.begin + p.offset; // wall times below this one belong to an earlier stretch
    if (p.before > p.offset) {
        first_pass_end = p.begin + p.before;
        if (wall < first_pass_end) wall = first_pass_end - 1;
    }
    for (;;) {
        wall = prev_wall_time(f, wall);
        if (wall == no_wall_time) return no_instant;
        if (wall >= first_pass_end) return wall - p.offset;
        auto const shown = zone.resolve(wall);
        if (shown.kind != local_kind::skipped || !skips_whole_date(zone, shown.first, wall)) return shown.first;
        wall -= wall % seconds_a_day + 1;
    }
}

/// The first occurrence that is not before `from`, and the last that is not after `to`; no_instant where there is none.
inline std::int64_t next_occurrence(cron_fields const& f, time_zone const& zone, std::int64_t from) {
    return f.interval ? next_interval(f, zone, from) : next_fixed(f, zone, from);
}

inline std::int64_t prev_occurrence(cron_fields const& f, time_zone const& zone, std::int64_t to) {
    return f.interval ? prev_interval(f, zone, to) : prev_fixed(f, zone, to);
}

inline bool occurs_at(cron_fields const& f, time_zone const& zone, std::int64_t t) {
    if (f.interval) return contains(f, t + zone.period(t).offset);
    return next_fixed(f, zone, t) == t;
}

} // namespace ax::detail

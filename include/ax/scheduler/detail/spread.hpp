// SPDX-License-Identifier: MIT
// Spread: schedules of one instant run a little apart, each by an offset of its own that never changes.
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/random.hpp"
#include "ax/time/time_point.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ax::detail {

/// The offset of a schedule within [0, window): the same for ever, on every machine, for its name. 0 where there is no
/// window.
///
/// Source: FNV-1a (Fowler, Noll, Vo) over the bytes of the name; its upper bits hardly differ for names that end alike,
/// so SplitMix64 mixes them.
constexpr duration spread_offset(std::string_view schedule_name, duration window) noexcept {
    if (window <= duration{0}) return duration{0};
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (char const c : schedule_name) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001B3U;
    }
    return duration{static_cast<std::int64_t>(splitmix64{hash}() % static_cast<std::uint64_t>(window.count()))};
}

/// How many occurrences shortest_distance() looks at: more than a year of days, so that a daily schedule is seen at
/// every change of its zone's clocks.
inline constexpr std::size_t distances_looked_at = 400;

/// The shortest distance between two occurrences of a schedule that is declared at `now`. Exact for a rate and for a
/// fixed delay (its pause); for a calendar the shortest among the next `distances_looked_at`, so that one which comes
/// only later is not seen. Nothing where there is at most one occurrence.
template <class Recurrence>
std::optional<duration> shortest_distance(Recurrence const& how, time_point now) {
    if (how.waits_for_end()) return how.after_end(earliest_time) - earliest_time;
    std::optional<duration> shortest;
    auto at = how.first(now);
    for (std::size_t i = 0; at && i != distances_looked_at; ++i) {
        auto const next = how.following(*at);
        if (!next) break;
        if (auto const distance = *next - *at; !shortest || distance < *shortest) shortest = distance;
        at = next;
    }
    return shortest;
}

/// Refuses a window in which a schedule could meet its own next occurrence.
/// @throws ax::error invalid_argument, naming the schedule and both lengths, where `window` is as long as
///         shortest_distance() or longer.
template <class Recurrence>
void check_spread(std::string_view schedule_name, Recurrence const& how, duration window, time_point now) {
    if (window <= duration{0}) return;
    auto const distance = shortest_distance(how, now);
    if (distance && window >= *distance)
        throw error(errc::invalid_argument, "spread of schedule \"" + std::string(schedule_name) + "\", " +
                                                std::to_string(window.count()) +
                                                " ms, is not shorter than the distance between two occurrences, " +
                                                std::to_string(distance->count()) + " ms");
}

} // namespace ax::detail

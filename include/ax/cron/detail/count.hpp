// SPDX-License-Identifier: MIT
// Counts occurrences without visiting them: the sets of an expression are bit masks, so the times of a day are a
// product of three numbers of bits and the days of a month a number of bits in one word.
#pragma once

#include "ax/cron/detail/calendar.hpp"
#include "ax/cron/detail/zone_search.hpp"
#include "ax/time/time_zone.hpp"

#include <bit>
#include <cstdint>

namespace ax::detail {

template <class Word>
constexpr std::uint32_t bits_below(Word word, unsigned high) noexcept {
    return static_cast<std::uint32_t>(std::popcount(static_cast<Word>(word & ~bits_from(word, high))));
}

/// How many times of day of the set are below `time`, which is at most a day.
inline std::uint32_t times_below(cron_fields const& f, std::uint32_t time) noexcept {
    auto const hour = time / 3600, minute = time / 60 % 60;
    auto const a_minute = static_cast<std::uint32_t>(std::popcount(f.seconds));
    auto count = bits_below(f.hours, hour) * static_cast<std::uint32_t>(std::popcount(f.minutes)) * a_minute;
    if ((f.hours >> hour & 1) == 0) return count;
    count += bits_below(f.minutes, minute) * a_minute;
    return (f.minutes >> minute & 1) == 0 ? count : count + bits_below(f.seconds, time % 60);
}

inline bool has_day(cron_fields const& f, std::uint32_t day) noexcept {
    auto const date = civil_from_days(day);
    return (f.months >> date.month & 1) != 0 && has_year(f, date.year) &&
           (month_at(f, date.year, date.month).word >> (date.day - 1) & 1) != 0;
}

/// How many days of the set are in [first, last), days since 1970.
inline std::uint32_t count_days(cron_fields const& f, std::uint32_t first, std::uint32_t last) noexcept {
    std::uint32_t count = 0;
    if (first >= last) return 0;
    auto date = civil_from_days(first);
    for (auto begin = first - (date.day - 1); begin < last;) {
        auto const length = days_in_month(date.year, date.month);
        if ((f.months >> date.month & 1) != 0 && has_year(f, date.year)) {
            auto word = days_of_month(f, (begin + 4) % 7, length);
            if (begin < first) word = bits_from(word, first - begin);
            count += bits_below(word, last - begin);
        }
        begin += length;
        if (++date.month == 13) date = {date.year + 1, 1, 1};
    }
    return count;
}

/// How many wall times of the set are in [from, until).
inline std::uint64_t count_wall_times(cron_fields const& f, std::int64_t from, std::int64_t until) noexcept {
    if (from < 0) from = 0;
    if (until > cron_end) until = cron_end;
    if (from >= until) return 0;
    auto const first = static_cast<std::uint32_t>(from / seconds_a_day),
               last = static_cast<std::uint32_t>(until / seconds_a_day);
    auto const before = times_below(f, static_cast<std::uint32_t>(from % seconds_a_day)),
               within = times_below(f, static_cast<std::uint32_t>(until % seconds_a_day));
    if (first == last) return has_day(f, first) ? within - before : 0;
    auto const all = times_below(f, seconds_a_day);
    auto count = std::uint64_t{all} * count_days(f, first + 1, last);
    if (has_day(f, first)) count += all - before;
    if (within != 0 && has_day(f, last)) count += within;
    return count;
}

/// Whether fixed times that the clocks skip at the begin of `p` run there, where none that is shown then does.
inline bool runs_after_gap(cron_fields const& f, time_zone const& zone, time_zone::raw_period const& p) {
    auto const end = p.begin + p.offset;
    if (contains(f, end)) return false;
    for (auto wall = next_wall_time(f, p.begin + p.before); wall != no_wall_time && wall < end;) {
        if (!skips_whole_date(zone, p.begin, wall)) return true;
        wall = next_wall_time(f, wall + seconds_a_day - wall % seconds_a_day);
    }
    return false;
}

/// How many occurrences are in [from, until).
/// Complexity: O(months and changes of the offset between them).
inline std::uint64_t count_occurrences(cron_fields const& f, time_zone const& zone, std::int64_t from,
                                       std::int64_t until) {
    if (from < -two_days) from = -two_days;
    if (until > cron_end + two_days) until = cron_end + two_days;
    std::uint64_t count = 0;
    while (from < until) {
        auto const p = zone.period(from);
        auto const end = p.end < until ? p.end : until;
        auto wall = from + p.offset;
        if (!f.interval) {
            if (p.before > p.offset && wall < p.begin + p.before) wall = p.begin + p.before; // a second pass
            if (p.before < p.offset && from == p.begin && runs_after_gap(f, zone, p)) ++count;
        }
        count += count_wall_times(f, wall, end + p.offset);
        from = end;
    }
    return count;
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// The engine of cron expressions, which knows no text and no zone: sets of values as bit masks, and the search for the
// next or previous wall time that is in all of them. Of a month it makes one word with a bit a day, in which the day of
// the month, the weekday and the rules with letters meet; then a search is "first bit at or above", field by field, and
// dates are computed, never stepped through. Instants are whole seconds since 1970 on the wall.
//
// Days to dates and back: Neri & Schneider, "Euclidean affine functions and their application to calendar algorithms",
// Software: Practice and Experience 53 (2023), for the years 1970 to 2199 only, so in 32 bits and without sign.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ax::detail {

inline constexpr unsigned first_cron_year = 1970;
inline constexpr unsigned last_cron_year = 2199;
inline constexpr unsigned cron_years = last_cron_year - first_cron_year + 1;
inline constexpr std::uint32_t seconds_a_day = 86'400;

struct civil_day {
    unsigned year, month, day; // 1970..., 1-12, 1-31
};

constexpr bool is_leap(unsigned year) noexcept { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

constexpr unsigned days_in_month(unsigned year, unsigned month) noexcept {
    return month == 2 ? (is_leap(year) ? 29U : 28U) : 30U + ((month ^ (month >> 3)) & 1U);
}

/// Days since 1970-01-01, of a date from then on.
constexpr std::uint32_t days_from_civil(unsigned year, unsigned month, unsigned day) noexcept {
    // March is the first month of a computed year, so that the leap day is the last one.
    unsigned const early = month <= 2;
    unsigned const y = year - early;
    unsigned const m = month + 12 * early;
    unsigned const century = y / 100;
    return 1461 * y / 4 - century + century / 4 + (979 * m - 2919) / 32 + day - 719'469;
}

constexpr civil_day civil_from_days(std::uint32_t days) noexcept {
    std::uint32_t const n1 = 4 * (days + 719'468) + 3;
    std::uint32_t const century = n1 / 146'097;
    std::uint32_t const n2 = n1 % 146'097 | 3;
    std::uint64_t const p2 = std::uint64_t{2'939'745} * n2;
    auto const year_of_century = static_cast<std::uint32_t>(p2 >> 32);
    std::uint32_t const day_of_year = static_cast<std::uint32_t>(p2) / 2'939'745 / 4;
    std::uint32_t const n3 = 2141 * day_of_year + 197'913;
    unsigned const month = n3 >> 16;
    unsigned const day = (n3 & 0xffffU) / 2141 + 1;
    unsigned const late = day_of_year >= 306;
    return {100 * century + year_of_century + late, month - 12 * late, day};
}

inline constexpr std::uint32_t cron_days = days_from_civil(last_cron_year + 1, 1, 1);
inline constexpr std::int64_t cron_end = std::int64_t{cron_days} * seconds_a_day; // 2200-01-01 00:00 on the wall
inline constexpr std::int64_t no_wall_time = INT64_MIN;

/// The seven days of the week as a set, seen from the first of a month: bit 0 is day 1.
constexpr std::uint32_t weekdays_of_month(std::uint32_t weekdays, unsigned weekday_of_first) noexcept {
    auto const weeks = std::uint64_t{weekdays} * 0x810204081ULL; // six copies, seven bits apart
    return static_cast<std::uint32_t>(weeks >> weekday_of_first);
}

/// What an expression means.
struct cron_fields {
    static constexpr std::uint64_t all_seconds = (std::uint64_t{1} << 60) - 1;
    static constexpr std::uint32_t all_hours = (1U << 24) - 1;
    static constexpr std::uint32_t all_days = 0x7fff'ffffU;
    static constexpr std::uint16_t all_months = 0x1ffe;
    static constexpr std::uint8_t all_weekdays = 0x7f;

    std::uint64_t seconds = 0;            ///< bit s
    std::uint64_t minutes = 0;            ///< bit m
    std::uint64_t nth_weekdays = 0;       ///< bit 7 (k - 1) + w: the k-th weekday w; bit 35 + w: the last
    std::array<std::uint64_t, 4> years{}; ///< bit y - 1970
    std::uint32_t hours = 0;              ///< bit h
    std::uint32_t days = 0;               ///< bit d - 1
    std::uint32_t days_from_end = 0;      ///< bit n: n days before the last
    std::uint32_t working_days = 0;       ///< bit d - 1: the Monday to Friday nearest to d
    std::uint32_t working_days_from_end = 0;
    std::uint16_t months = 0;  ///< bit m
    std::uint8_t weekdays = 0; ///< bit w, Sunday 0
    bool either_day = false;   ///< day of month or weekday; else both
    bool interval = false;     ///< follows the wall clock through a change; else a set of fixed times

    friend bool operator==(cron_fields const&, cron_fields const&) noexcept = default;

    bool only_days_of_month() const noexcept {
        return !either_day && weekdays == all_weekdays && (days_from_end | working_days | working_days_from_end) == 0;
    }
};

template <class Word>
constexpr unsigned lowest_bit(Word word) noexcept {
    return static_cast<unsigned>(std::countr_zero(word));
}

template <class Word>
constexpr unsigned highest_bit(Word word) noexcept {
    return static_cast<unsigned>(std::bit_width(word)) - 1;
}

/// The bits of `word` from `low` up, or up to `high`.
template <class Word>
constexpr Word bits_from(Word word, unsigned low) noexcept {
    return static_cast<Word>(low >= sizeof(Word) * 8 ? Word{0} : (word >> low) << low);
}

template <class Word>
constexpr Word bits_to(Word word, unsigned high) noexcept {
    return high + 1 >= sizeof(Word) * 8 ? word : static_cast<Word>(word & ((Word{1} << (high + 1)) - 1));
}

/// The working day nearest to day `d` of a month, never outside of it; both from 0.
// Saturday the 1st -> Monday the 3rd; Sunday the last -> the Friday before
constexpr unsigned nearest_working_day(unsigned d, unsigned weekday_of_first, unsigned length) noexcept {
    unsigned const weekday = (weekday_of_first + d) % 7;
    if (weekday == 6) return d > 0 ? d - 1 : d + 2;
    if (weekday == 0) return d + 1 < length ? d + 1 : d - 2;
    return d;
}

/// The rules of the day fields that need to know the month.
inline std::uint32_t special_days_of_month(cron_fields const& f, unsigned weekday_of_first, unsigned length) noexcept {
    std::uint32_t word = 0;
    for (auto rest = f.days_from_end; rest != 0; rest &= rest - 1)
        if (auto const n = lowest_bit(rest); n < length) word |= 1U << (length - 1 - n);
    for (auto rest = f.working_days; rest != 0; rest &= rest - 1)
        if (auto const d = lowest_bit(rest); d < length) word |= 1U << nearest_working_day(d, weekday_of_first, length);
    for (auto rest = f.working_days_from_end; rest != 0; rest &= rest - 1)
        if (auto const n = lowest_bit(rest); n < length)
            word |= 1U << nearest_working_day(length - 1 - n, weekday_of_first, length);
    return word;
}

inline std::uint32_t nth_weekdays_of_month(cron_fields const& f, unsigned weekday_of_first, unsigned length) noexcept {
    std::uint32_t word = 0;
    for (auto rest = f.nth_weekdays; rest != 0; rest &= rest - 1) {
        auto const bit = lowest_bit(rest);
        auto const first = (bit % 7 + 7 - weekday_of_first) % 7;
        auto const day = bit < 35 ? first + bit / 7 * 7 : first + (length - 1 - first) / 7 * 7;
        if (day < length) word |= 1U << day;
    }
    return word;
}

/// The days of a month that are in both day fields, or in either: bit 0 is day 1.
inline std::uint32_t days_of_month(cron_fields const& f, unsigned weekday_of_first, unsigned length) noexcept {
    auto by_date = f.days;
    if ((f.days_from_end | f.working_days | f.working_days_from_end) != 0)
        by_date |= special_days_of_month(f, weekday_of_first, length);
    auto by_weekday = weekdays_of_month(f.weekdays, weekday_of_first);
    if (f.nth_weekdays != 0) by_weekday |= nth_weekdays_of_month(f, weekday_of_first, length);
    auto const word = f.either_day ? by_date | by_weekday : by_date & by_weekday;
    return word & ((1U << length) - 1);
}

/// A year and the set of its days in one month, found from the days of that month.
struct month_days {
    std::uint32_t first_day; ///< days since 1970 of the first
    std::uint32_t word;
};

inline month_days month_at(cron_fields const& f, unsigned year, unsigned month) noexcept {
    auto const first = days_from_civil(year, month, 1);
    return {first, days_of_month(f, (first + 4) % 7, days_in_month(year, month))};
}

inline bool has_year(cron_fields const& f, unsigned year) noexcept {
    auto const i = year - first_cron_year;
    return i < cron_years && (f.years[i >> 6] >> (i & 63) & 1) != 0;
}

/// The first year of the set from `year` on; 0 where there is none.
inline unsigned year_from(cron_fields const& f, unsigned year) noexcept {
    auto const start = year - first_cron_year;
    for (auto i = start; i < cron_years; i = (i | 63) + 1)
        if (auto const word = f.years[i >> 6] >> (i & 63); word != 0) return first_cron_year + i + lowest_bit(word);
    return 0;
}

/// The last year of the set up to `year`; 0 where there is none.
inline unsigned year_to(cron_fields const& f, unsigned year) noexcept {
    if (year < first_cron_year) return 0;
    auto const i = year - first_cron_year;
    for (auto word = i >> 6;; --word) {
        auto const bits = word == i >> 6 ? bits_to(f.years[word], i & 63) : f.years[word];
        if (bits != 0) return first_cron_year + word * 64 + highest_bit(bits);
        if (word == 0) return 0;
    }
}

/// Seconds since midnight. Every field of an expression has at least one value.
inline std::uint32_t first_time_of_day(cron_fields const& f) noexcept {
    return lowest_bit(f.hours) * 3600 + lowest_bit(f.minutes) * 60 + lowest_bit(f.seconds);
}

inline std::uint32_t last_time_of_day(cron_fields const& f) noexcept {
    return highest_bit(f.hours) * 3600 + highest_bit(f.minutes) * 60 + highest_bit(f.seconds);
}

inline constexpr std::uint32_t no_time = UINT32_MAX;

inline std::uint32_t time_from(cron_fields const& f, std::uint32_t time) noexcept {
    auto const hour = time / 3600;
    auto const minute = time / 60 % 60;
    auto const second = time % 60;
    if ((f.hours >> hour & 1) != 0) {
        if ((f.minutes >> minute & 1) != 0)
            if (auto const s = bits_from(f.seconds, second); s != 0) return time - second + lowest_bit(s);
        if (auto const m = bits_from(f.minutes, minute + 1); m != 0)
            return hour * 3600 + lowest_bit(m) * 60 + lowest_bit(f.seconds);
    }
    if (auto const h = bits_from(f.hours, hour + 1); h != 0)
        return lowest_bit(h) * 3600 + lowest_bit(f.minutes) * 60 + lowest_bit(f.seconds);
    return no_time;
}

inline std::uint32_t time_to(cron_fields const& f, std::uint32_t time) noexcept {
    auto const hour = time / 3600;
    auto const minute = time / 60 % 60;
    auto const second = time % 60;
    if ((f.hours >> hour & 1) != 0) {
        if ((f.minutes >> minute & 1) != 0)
            if (auto const s = bits_to(f.seconds, second); s != 0) return time - second + highest_bit(s);
        if (minute > 0)
            if (auto const m = bits_to(f.minutes, minute - 1); m != 0)
                return hour * 3600 + highest_bit(m) * 60 + highest_bit(f.seconds);
    }
    if (hour > 0)
        if (auto const h = bits_to(f.hours, hour - 1); h != 0)
            return highest_bit(h) * 3600 + highest_bit(f.minutes) * 60 + highest_bit(f.seconds);
    return no_time;
}

inline bool contains(cron_fields const& f, std::int64_t wall) noexcept {
    if (wall < 0 || wall >= cron_end) return false;
    auto const days = static_cast<std::uint32_t>(wall / seconds_a_day);
    auto const time = static_cast<std::uint32_t>(wall % seconds_a_day);
    if ((f.seconds >> time % 60 & f.minutes >> time / 60 % 60 & f.hours >> time / 3600 & 1) == 0) return false;
    auto const date = civil_from_days(days);
    return (f.months >> date.month & 1) != 0 && has_year(f, date.year) &&
           (month_at(f, date.year, date.month).word >> (date.day - 1) & 1) != 0;
}

/// The first wall time of the set that is not before `from`; no_wall_time where there is none up to the end of 2199.
/// At most 230 years of 12 months are looked at: "never" takes microseconds.
inline std::int64_t next_wall_time(cron_fields const& f, std::int64_t from) noexcept {
    if (from < 0) from = 0;
    if (from >= cron_end) return no_wall_time;
    auto const today = static_cast<std::uint32_t>(from / seconds_a_day);
    auto const date = civil_from_days(today);
    auto const found = [&](std::uint32_t day, std::uint32_t time) { return std::int64_t{day} * seconds_a_day + time; };

    auto year = date.year;
    auto months = f.months;
    if (has_year(f, year)) {
        if ((months >> date.month & 1) != 0) {
            auto const first = today - (date.day - 1);
            auto const word = days_of_month(f, (first + 4) % 7, days_in_month(year, date.month));
            if ((word >> (date.day - 1) & 1) != 0) {
                auto const time = time_from(f, static_cast<std::uint32_t>(from % seconds_a_day));
                if (time != no_time) return found(today, time);
            }
            if (auto const later = bits_from(word, date.day); later != 0)
                return found(first + lowest_bit(later), first_time_of_day(f));
        }
        months = bits_from(months, date.month + 1);
    } else {
        year = year_from(f, year);
        if (year == 0) return no_wall_time;
    }
    bool const plain = f.only_days_of_month();
    for (;; months = f.months) {
        for (; months != 0; months = static_cast<std::uint16_t>(months & (months - 1))) {
            auto const month = lowest_bit(months);
            if (plain && lowest_bit(f.days) >= days_in_month(year, month)) continue;
            auto const set = month_at(f, year, month);
            if (set.word != 0) return found(set.first_day + lowest_bit(set.word), first_time_of_day(f));
        }
        year = year_from(f, year + 1);
        if (year == 0) return no_wall_time;
    }
}

/// The last wall time of the set that is not after `to`; no_wall_time where there is none since 1970.
inline std::int64_t prev_wall_time(cron_fields const& f, std::int64_t to) noexcept {
    if (to >= cron_end) to = cron_end - 1;
    if (to < 0) return no_wall_time;
    auto const today = static_cast<std::uint32_t>(to / seconds_a_day);
    auto const date = civil_from_days(today);
    auto const found = [&](std::uint32_t day, std::uint32_t time) { return std::int64_t{day} * seconds_a_day + time; };

    auto year = date.year;
    auto months = f.months;
    if (has_year(f, year)) {
        if ((months >> date.month & 1) != 0) {
            auto const first = today - (date.day - 1);
            auto const word = days_of_month(f, (first + 4) % 7, days_in_month(year, date.month));
            if ((word >> (date.day - 1) & 1) != 0) {
                auto const time = time_to(f, static_cast<std::uint32_t>(to % seconds_a_day));
                if (time != no_time) return found(today, time);
            }
            if (auto const earlier = word & ((1U << (date.day - 1)) - 1); earlier != 0)
                return found(first + highest_bit(earlier), last_time_of_day(f));
        }
        months = bits_to(months, date.month - 1);
    } else {
        year = year_to(f, year);
        if (year == 0) return no_wall_time;
    }
    for (;; months = f.months) {
        for (; months != 0; months = bits_to(months, highest_bit(months) - 1)) {
            auto const set = month_at(f, year, highest_bit(months));
            if (set.word != 0) return found(set.first_day + highest_bit(set.word), last_time_of_day(f));
        }
        year = year_to(f, year - 1);
        if (year == 0) return no_wall_time;
    }
}

} // namespace ax::detail

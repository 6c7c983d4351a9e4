// SPDX-License-Identifier: MIT
// Writes the masks of an expression as text that reads back as the same masks, in the dialect's own spelling. Two texts
// that mean the same are written alike.
#pragma once

#include "ax/cron/detail/calendar.hpp"
#include "ax/cron/detail/reader.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

namespace ax::detail {

class cron_writer {
  public:
    cron_writer(cron_fields const& fields, cron_dialect which) noexcept : f_(fields), grammar_(grammar_of(which)) {}

    std::string write() const {
        std::string text;
        bool const all_years = year_count() == cron_years;
        if (grammar_.fewest_fields == 6 || (grammar_.most_fields > 5 && (f_.seconds != 1 || !all_years)))
            text += clock_field(f_.seconds, 60, false) + " ";
        auto hours = clock_field(f_.hours, 24, false);
        auto minutes = clock_field(f_.minutes, 60, false);
        // `*/90 3 * * *` holds one minute and is an interval all the same: something must say so.
        if (f_.interval && (text + minutes + hours).find_first_of("*/") == std::string::npos)
            minutes = clock_field(f_.minutes, 60, true);
        text += minutes + " " + hours + " " + day_field() + " ";
        text += f_.months == cron_fields::all_months ? "*" : list(f_.months, 1, 12, true);
        text += " " + weekday_field();
        if (!all_years && grammar_.most_fields == 7) text += " " + year_field();
        return text;
    }

  private:
    static void append_element(std::string& text, unsigned first, unsigned last) {
        if (!text.empty()) text += ",";
        text += std::to_string(first);
        if (last > first) text += (last == first + 1 ? "," : "-") + std::to_string(last);
    }

    /// The step s > 1 by which `mask` runs from `lowest` to the last value not above `highest`; 0 where it does not.
    static unsigned step_of(std::uint64_t mask, unsigned lowest, unsigned highest) {
        if ((mask >> lowest & 1) == 0) return 0;
        auto const rest = bits_from(mask, lowest + 1);
        if (rest == 0) return 0;
        auto const step = lowest_bit(rest) - lowest;
        if (step < 2) return 0;
        std::uint64_t expected = 0;
        for (auto v = lowest; v <= highest; v += step) expected |= std::uint64_t{1} << v;
        return expected == mask ? step : 0;
    }

    static std::string list(std::uint64_t mask, unsigned lowest, unsigned highest, bool steps) {
        if (steps)
            if (auto const step = step_of(mask, lowest, highest); step != 0) return "*/" + std::to_string(step);
        std::string text;
        while (mask != 0) {
            auto const first = lowest_bit(mask);
            auto const length = static_cast<unsigned>(std::countr_one(mask >> first));
            append_element(text, first, first + length - 1);
            mask = bits_from(mask, first + length);
        }
        return text;
    }

    std::string clock_field(std::uint64_t mask, unsigned size, bool needs_slash) const {
        if (mask == (std::uint64_t{1} << size) - 1 && f_.interval) return "*";
        auto text = list(mask, 0, size - 1, f_.interval);
        if (!needs_slash) return text;
        auto end = text.find_first_of(",-");
        if (end == std::string::npos || text[end] == ',')
            return text.insert((std::min)(end, text.size()), "-" + text.substr(0, end) + "/1");
        end = (std::min)(text.find(','), text.size());
        return text.insert(end, "/1");
    }

    bool every_day() const noexcept { return f_.days == cron_fields::all_days; }
    bool every_weekday() const noexcept { return f_.weekdays == cron_fields::all_weekdays; }

    /// In classic cron both fields must match where one begins with a star, so one has to.
    bool star_marks_day() const noexcept {
        return grammar_.day_fields == both_days::star_joins && !f_.either_day && !every_day() && !every_weekday() &&
               (f_.days & 1) != 0;
    }

    bool star_marks_weekday() const noexcept {
        return grammar_.day_fields == both_days::star_joins && !f_.either_day && !every_day() && !every_weekday() &&
               (f_.days & 1) == 0;
    }

    /// Whether a step may be written as */2 in a day field: in classic cron it would join the fields.
    bool steps_in_days() const noexcept { return grammar_.day_fields != both_days::star_joins || !f_.either_day; }

    std::string day_field() const {
        if (every_day()) return grammar_.day_fields == both_days::exclusive && !every_weekday() ? "?" : "*";
        auto const mask = std::uint64_t{f_.days} << 1;
        auto text = list(mask, 1, 31, steps_in_days());
        if (star_marks_day() && text.front() != '*') text.insert(0, "*/31,");
        append_special(text, f_.days_from_end, [](unsigned n) { return n == 0 ? "L" : "L-" + std::to_string(n); });
        append_special(text, f_.working_days, [](unsigned n) { return std::to_string(n + 1) + "W"; });
        append_special(text, f_.working_days_from_end,
                       [](unsigned n) { return n == 0 ? "LW" : "L-" + std::to_string(n) + "W"; });
        return text;
    }

    std::string weekday_field() const {
        bool const exclusive = grammar_.day_fields == both_days::exclusive;
        if (every_weekday()) return exclusive ? "?" : "*";
        unsigned const base = grammar_.weekdays_from_one ? 1 : 0;
        auto text = list(std::uint64_t{f_.weekdays} << base, base, base + 6, steps_in_days());
        if (star_marks_weekday() && text.front() != '*') text.insert(0, "*/7,");
        append_special(text, f_.nth_weekdays, [base](unsigned bit) {
            auto const weekday = std::to_string(bit % 7 + base);
            return bit < 35 ? weekday + "#" + std::to_string(bit / 7 + 1) : weekday + "L";
        });
        if (grammar_.day_fields == both_days::either && !f_.either_day && !every_day()) text.insert(0, "+");
        return text;
    }

    template <class Mask, class Write>
    static void append_special(std::string& text, Mask mask, Write write) {
        for (; mask != 0; mask &= mask - 1) {
            if (!text.empty()) text += ",";
            text += write(lowest_bit(mask));
        }
    }

    unsigned year_count() const noexcept {
        unsigned count = 0;
        for (auto const word : f_.years) count += static_cast<unsigned>(std::popcount(word));
        return count;
    }

    std::string year_field() const {
        std::string text;
        for (unsigned year = year_from(f_, first_cron_year); year != 0;) {
            auto last = year;
            while (has_year(f_, last + 1)) ++last;
            append_element(text, year, last);
            year = year_from(f_, last + 1);
        }
        return text;
    }

    cron_fields const& f_;
    cron_grammar const& grammar_;
};

} // namespace ax::detail

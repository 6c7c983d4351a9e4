// SPDX-License-Identifier: MIT
#pragma once

#include "ax/cron/detail/calendar.hpp"
#include "ax/cron/detail/reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax {

/// Something valid in an expression that its author may not have meant.
struct cron_warning {
    std::optional<cron_field> field; ///< empty: the expression as a whole
    std::string text;                ///< one sentence, without a full stop
};

namespace detail {

// Templates over the one type that they are used with: who does not ask for words does not compile them.

constexpr char const* month_name(unsigned month) noexcept {
    constexpr char const* names[] = {"",     "January", "February",  "March",   "April",    "May",     "June",
                                     "July", "August",  "September", "October", "November", "December"};
    return names[month];
}

constexpr char const* weekday_name(unsigned weekday) noexcept {
    constexpr char const* names[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
    return names[weekday];
}

template <class Fields>
class cron_describer {
  public:
    explicit cron_describer(Fields const& fields) noexcept : f_(fields) {}

    std::string describe() const {
        auto text = time_of_day();
        auto const days = day_part();
        if (!days.empty()) {
            text += ", " + days;
        } else if (fixed_list()) {
            text += " every day";
        }
        if (f_.months != Fields::all_months)
            text += ", in " + list(f_.months, [](unsigned m) { return std::string(month_name(m)); });
        if (auto const years = year_part(); !years.empty()) text += ", in " + years;
        if (next_wall_time(f_, 0) == no_wall_time) text += " (never)";
        return text;
    }

    /// "1, 3 and 5 to 7".
    template <class Name>
    static std::string list(std::uint64_t mask, Name name) {
        std::vector<std::string> parts;
        while (mask != 0) {
            auto const first = lowest_bit(mask);
            auto const length = static_cast<unsigned>(std::countr_one(mask >> first));
            if (length > 2) {
                parts.push_back(name(first) + " to " + name(first + length - 1));
            } else {
                for (auto v = first; v < first + length; ++v) parts.push_back(name(v));
            }
            mask = bits_from(mask, first + length);
        }
        return join(parts, "and");
    }

    static std::string join(std::vector<std::string> const& parts, std::string_view last_word) {
        std::string text;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (i > 0) text += i + 1 == parts.size() ? " " + std::string(last_word) + " " : ", ";
            text += parts[i];
        }
        return text;
    }

  private:
    static constexpr std::size_t longest_list = 6;

    static std::string number(unsigned v) { return std::to_string(v); }
    static bool single(std::uint64_t mask) noexcept { return (mask & (mask - 1)) == 0; }

    /// The step s with which `mask` fills 0 to size - 1 evenly; 0 where it does not.
    static unsigned even_step(std::uint64_t mask, unsigned size) noexcept {
        if ((mask & 1) == 0 || single(mask)) return 0;
        auto const step = lowest_bit(mask & ~std::uint64_t{1});
        if (size % step != 0) return 0;
        std::uint64_t expected = 0;
        for (unsigned v = 0; v < size; v += step) expected |= std::uint64_t{1} << v;
        return expected == mask ? step : 0;
    }

    static std::string two_digits(unsigned v) { return (v < 10 ? "0" : "") + std::to_string(v); }

    static std::string every(unsigned step, std::string const& unit) {
        return step == 1 ? "every " + unit : "every " + std::to_string(step) + " " + unit + "s";
    }

    /// Whether the times of day are few enough to be told one by one.
    bool fixed_list() const noexcept {
        return single(f_.seconds) && static_cast<std::size_t>(std::popcount(f_.minutes)) *
                                             static_cast<std::size_t>(std::popcount(f_.hours)) <=
                                         longest_list;
    }

    std::string time_of_day() const {
        bool const on_the_minute = f_.seconds == 1;
        if (fixed_list()) {
            std::vector<std::string> times;
            for (auto hours = f_.hours; hours != 0; hours &= hours - 1)
                for (auto minutes = f_.minutes; minutes != 0; minutes &= minutes - 1)
                    times.push_back(two_digits(lowest_bit(hours)) + ":" + two_digits(lowest_bit(minutes)) +
                                    (on_the_minute ? "" : ":" + two_digits(lowest_bit(f_.seconds))));
            return "at " + join(times, "and");
        }
        auto const second_step = even_step(f_.seconds, 60), minute_step = even_step(f_.minutes, 60),
                   hour_step = even_step(f_.hours, 24);
        std::vector<std::string> parts;
        if (!on_the_minute) {
            if (second_step != 0) {
                parts.push_back(every(second_step, "second"));
            } else {
                parts.push_back((single(f_.seconds) ? "at second " : "at seconds ") + list(f_.seconds, number));
            }
        }
        bool const hours_told = on_the_minute && f_.minutes == 1 && hour_step != 0; // "every 2 hours" says it all
        if (hours_told) {
            parts.push_back(every(hour_step, "hour"));
        } else if (minute_step != 0) {
            if (minute_step != 1 || second_step == 0) parts.push_back(every(minute_step, "minute"));
        } else {
            parts.push_back((single(f_.minutes) ? "at minute " : "at minutes ") + list(f_.minutes, number));
        }
        if (!hours_told && f_.hours != Fields::all_hours) {
            if (hour_step != 0) {
                parts.push_back("every " + number(hour_step) + " hours");
            } else {
                parts.push_back((single(f_.hours) ? "hour " : "hours ") + list(f_.hours, number));
            }
        } else if (!hours_told && minute_step == 0) {
            parts.back() += " of every hour";
        }
        std::string text;
        for (auto const& part : parts) text += (text.empty() ? "" : ", ") + part;
        return text;
    }

    static std::string nth(unsigned k) {
        constexpr char const* names[] = {"", "first", "second", "third", "fourth", "fifth"};
        return names[k];
    }

    static std::string days_before_last(unsigned n) {
        return n == 0 ? "the last day" : "day " + std::to_string(n) + " before the last";
    }

    std::string dates() const {
        std::vector<std::string> parts;
        if (f_.days != 0)
            parts.push_back((single(f_.days) ? "day " : "days ") + list(std::uint64_t{f_.days} << 1, number));
        for (auto rest = f_.days_from_end; rest != 0; rest &= rest - 1)
            parts.push_back(days_before_last(lowest_bit(rest)));
        for (auto rest = f_.working_days; rest != 0; rest &= rest - 1)
            parts.push_back("the working day nearest to day " + number(lowest_bit(rest) + 1));
        for (auto rest = f_.working_days_from_end; rest != 0; rest &= rest - 1) {
            auto const n = lowest_bit(rest);
            parts.push_back(n == 0 ? "the last working day" : "the working day nearest to " + days_before_last(n));
        }
        return "on " + join(parts, "and") + " of the month";
    }

    std::string weekdays() const {
        std::vector<std::string> parts;
        auto const name = [](unsigned w) { return std::string(weekday_name(w)); };
        if (f_.weekdays != 0) {
            // A week that begins on Monday reads better: "Saturday and Sunday".
            auto const from_monday = static_cast<unsigned>(f_.weekdays >> 1 | (f_.weekdays & 1) << 6);
            parts.push_back(list(from_monday, [&](unsigned d) { return name((d + 1) % 7); }));
        }
        for (auto rest = f_.nth_weekdays; rest != 0; rest &= rest - 1) {
            auto const bit = lowest_bit(rest);
            parts.push_back("the " + (bit < 35 ? nth(bit / 7 + 1) : "last") + " " + name(bit % 7) + " of the month");
        }
        return "on " + join(parts, "and");
    }

    std::string day_part() const {
        bool const every_day = f_.days == Fields::all_days, every_weekday = f_.weekdays == Fields::all_weekdays;
        if (every_day && every_weekday) return {};
        if (every_weekday) return dates();
        if (every_day) return weekdays();
        return dates() + (f_.either_day ? " or " : " if it is also ") +
               (f_.either_day ? weekdays() : weekdays().substr(3));
    }

    std::string year_part() const {
        std::vector<std::string> parts;
        for (unsigned year = year_from(f_, first_cron_year); year != 0;) {
            auto last = year;
            while (has_year(f_, last + 1)) ++last;
            if (year == first_cron_year && last == last_cron_year) return {};
            parts.push_back(std::to_string(year) + (last > year ? " to " + std::to_string(last) : ""));
            year = year_from(f_, last + 1);
        }
        return join(parts, "and");
    }

    Fields const& f_;
};

template <class Fields>
class cron_linter {
  public:
    cron_linter(Fields const& fields, cron_notes const& notes, cron_grammar const& grammar) noexcept
        : f_(fields), notes_(notes), grammar_(grammar) {}

    std::vector<cron_warning> lint() {
        warn_of_steps();
        warn_of_every();
        warn_of_days();
        if (next_wall_time(f_, 0) == no_wall_time) warn({}, "never happens: no year has such a date");
        return std::move(warnings_);
    }

  private:
    void warn(std::optional<cron_field> field, std::string text) { warnings_.push_back({field, std::move(text)}); }

    void warn_of_steps() {
        for (unsigned i = 0; i < 7; ++i) {
            auto const field = static_cast<cron_field>(i);
            if ((notes_.far_steps >> i & 1) != 0)
                warn(field, "the step is longer than its range and leaves only the first value");
            if ((notes_.uneven_steps >> i & 1) != 0)
                warn(field, "the step does not divide the field, so the last stretch is shorter");
        }
    }

    /// `* 3 * * *` runs 60 times, when once was meant.
    void warn_of_every() {
        bool const days_restricted =
            f_.days != Fields::all_days || f_.weekdays != Fields::all_weekdays || f_.months != Fields::all_months;
        bool const every_minute = f_.minutes == Fields::all_seconds;
        if (f_.seconds == Fields::all_seconds && (!every_minute || f_.hours != Fields::all_hours || days_restricted)) {
            warn(cron_field::second, "runs every second of what the other fields choose");
        } else if (every_minute && (f_.hours != Fields::all_hours || days_restricted)) {
            warn(cron_field::minute, "runs every minute of what the other fields choose");
        }
    }

    void warn_of_days() {
        if (notes_.both_days_restricted && grammar_.day_fields != both_days::both) {
            if (f_.days == Fields::all_days && f_.weekdays == Fields::all_weekdays) {
                warn({}, "the two day fields together choose every day");
            } else if (f_.either_day) {
                warn({}, "a day that either day field chooses is enough");
            } else if (grammar_.day_fields == both_days::star_joins && f_.days != Fields::all_days &&
                       f_.weekdays != Fields::all_weekdays) {
                warn({}, "both day fields must choose the day, since one begins with a star");
            }
        }
        // Days that some chosen month lacks, where there is no other day in that month.
        if (!f_.only_days_of_month() || f_.days == 0) return;
        auto const first = lowest_bit(f_.days) + 1;
        std::uint64_t lacking = 0;
        for (unsigned month = 1; month <= 12; ++month)
            if ((f_.months >> month & 1) != 0 && first > days_in_month(2024, month))
                lacking |= std::uint64_t{1} << month;
        if (lacking != 0 && lacking != f_.months)
            warn(cron_field::day, "does not happen in " + cron_describer<Fields>::list(lacking, [](unsigned m) {
                                      return std::string(month_name(m));
                                  }));
        if (first == 29 && (f_.months & 4) != 0) warn(cron_field::day, "happens in February of leap years only");
    }

    Fields const& f_;
    cron_notes const& notes_;
    cron_grammar const& grammar_;
    std::vector<cron_warning> warnings_;
};

} // namespace detail

} // namespace ax

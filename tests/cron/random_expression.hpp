// SPDX-License-Identifier: MIT
// Random expressions of every dialect, each with a second reading of the rules: sets of values found by counting, dates
// looked at one by one. Slow and obvious, and shares nothing with what it is compared with.
#pragma once

#include "ax/cron/expression.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cron_test {

using date_rule = std::function<bool(std::chrono::year_month_day)>;

inline unsigned length_of_month(std::chrono::year_month_day date) {
    return static_cast<unsigned>((date.year() / date.month() / std::chrono::last).day());
}

inline unsigned weekday_of(std::chrono::year_month_day date) {
    return std::chrono::weekday{std::chrono::sys_days{date}}.c_encoding();
}

inline bool works_on(std::chrono::year_month_day date, unsigned day) {
    auto const weekday = weekday_of(date.year() / date.month() / std::chrono::day{day});
    return weekday != 0 && weekday != 6;
}

/// The Monday to Friday nearest to `day` inside of its month: one day off before two.
inline bool is_nearest_working_day(std::chrono::year_month_day date, unsigned day) {
    auto const last = length_of_month(date);
    if (day < 1 || day > last) return false;
    for (unsigned away = 0; away < 3; ++away)
        for (auto const candidate : {day - away, day + away})
            if (candidate >= 1 && candidate <= last && works_on(date, candidate))
                return static_cast<unsigned>(date.day()) == candidate;
    return false;
}

struct random_expression {
    std::string text;
    ax::cron_dialect dialect = ax::cron_dialect::ax;
    std::set<unsigned> seconds{0}, minutes, hours, months, years; // no years: all
    std::vector<date_rule> by_day, by_weekday;
    bool day_free = false, weekday_free = false; // the text is exactly * or ?
    bool day_star = false, weekday_star = false; // it begins with *
    bool plus = false;
    bool interval = false;

    bool on_date(std::chrono::year_month_day date) const {
        if (!months.contains(static_cast<unsigned>(date.month()))) return false;
        auto const year = static_cast<int>(date.year());
        if (year < 1970 || year > 2199) return false;
        if (!years.empty() && !years.contains(static_cast<unsigned>(year))) return false;
        auto const any = [&](std::vector<date_rule> const& rules) {
            return std::any_of(rules.begin(), rules.end(), [&](auto const& rule) { return rule(date); });
        };
        bool const day = any(by_day), weekday = any(by_weekday);
        switch (dialect) {
        case ax::cron_dialect::ax: return day_free || weekday_free || plus ? day && weekday : day || weekday;
        case ax::cron_dialect::crontab: return day_star || weekday_star ? day && weekday : day || weekday;
        default: return day && weekday;
        }
    }
};

class expression_maker {
  public:
    explicit expression_maker(unsigned seed) : random_(seed) {}

    unsigned below(unsigned n) { return static_cast<unsigned>(random_()) % n; }

    /// @param often  Whether it should happen on most days and several times around midnight to four.
    random_expression make(ax::cron_dialect dialect, bool often) {
        e_ = {};
        e_.dialect = dialect;
        often_ = often;
        unsigned fields = 5;
        if (dialect == ax::cron_dialect::ax) fields = 5 + below(3);
        if (dialect == ax::cron_dialect::quartz) fields = 6 + below(2);
        if (dialect == ax::cron_dialect::spring) fields = 6;
        if (fields > 5) {
            e_.seconds.clear(); // not the second 0 of shorter texts
            e_.text = clock_field(e_.seconds, 59, 4) + blank();
        }
        e_.text += clock_field(e_.minutes, 59, 3) + blank();
        e_.text += clock_field(e_.hours, 23, 2) + blank();
        auto const free_day = below(2) == 0; // of the two day fields, in the dialect that wants one free
        e_.text += day_field(free_day) + blank();
        e_.text += month_field() + blank();
        e_.text += weekday_field(!free_day);
        if (fields == 7) e_.text += blank() + year_field();
        return e_;
    }

  private:
    bool is(ax::cron_dialect d) const { return e_.dialect == d; }
    bool wraps() const { return is(ax::cron_dialect::ax) || is(ax::cron_dialect::quartz); }

    std::string blank() { return below(20) == 0 ? " \t " : " "; }

    std::string number(unsigned v) { return (below(12) == 0 ? "0" : "") + std::to_string(v); }

    static void insert(std::set<unsigned>& into, unsigned first, unsigned last, unsigned step, unsigned lowest,
                       unsigned highest) {
        // Counts from `first` to `last`, round the end where the latter is the smaller one.
        auto const size = highest - lowest + 1;
        for (unsigned v = first; v <= (last < first ? last + size : last); v += step)
            into.insert(v > highest ? v - size : v);
    }

    /// One element of a plain field; what it means goes into `into`.
    std::string element(std::set<unsigned>& into, unsigned lowest, unsigned highest, char const* const* names) {
        auto const value = [&](unsigned v) {
            if (names == nullptr || below(3) != 0) return number(v);
            std::string name = names[v - lowest];
            for (char& c : name)
                if (below(2) == 0) c = static_cast<char>(c | 0x20);
            return name;
        };
        auto const some = [&] { return lowest + below(highest - lowest + 1); };
        auto const step = [&] { return 1 + below(is(ax::cron_dialect::quartz) ? highest : highest + 3); };
        switch (below(6)) {
        case 0: {
            auto const s = step();
            insert(into, lowest, highest, s, lowest, highest);
            return "*/" + number(s);
        }
        case 1:
            if (!is(ax::cron_dialect::crontab)) {
                auto const a = some(), s = step();
                insert(into, a, highest, s, lowest, highest);
                return value(a) + "/" + number(s);
            }
            [[fallthrough]];
        case 2:
        case 3: {
            auto a = some(), b = some();
            if (a > b && (!wraps() || highest > 2000)) std::swap(a, b); // years do not go round
            auto const s = below(2) == 0 ? step() : 1;
            insert(into, a, b, s, lowest, highest);
            auto const text = value(a) + "-" + value(b);
            return s == 1 && below(2) == 0 ? text : text + "/" + number(s);
        }
        default: {
            auto const a = some();
            into.insert(a);
            return value(a);
        }
        }
    }

    std::string clock_field(std::set<unsigned>& into, unsigned highest, unsigned stars) {
        std::string text;
        if (below(stars) == 0) {
            for (unsigned v = 0; v <= highest; ++v) into.insert(v);
            text = "*";
        } else if (highest == 23 && often_ && below(2) == 0) {
            for (unsigned v : {0U, 1U, 2U, 3U}) into.insert(v);
            text = "0-3";
        } else {
            do text += (text.empty() ? "" : ",") + element(into, 0, highest, nullptr);
            while (below(3) == 0);
        }
        if (text.find_first_of("*/") != text.npos) e_.interval = true;
        return text;
    }

    std::string month_field() {
        static constexpr char const* names[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
        std::string text;
        if (below(often_ ? 8 : 2) != 0) {
            for (unsigned v = 1; v <= 12; ++v) e_.months.insert(v);
            return "*";
        }
        do text += (text.empty() ? "" : ",") + element(e_.months, 1, 12, names);
        while (below(3) == 0);
        return text;
    }

    std::string year_field() {
        if (often_ || below(2) == 0) return "*";
        std::string text;
        do text += (text.empty() ? "" : ",") + element(e_.years, 1970, 2199, nullptr);
        while (below(3) != 0);
        return text;
    }

    static date_rule always() {
        return [](std::chrono::year_month_day) { return true; };
    }

    std::string day_field(bool free) {
        using date = std::chrono::year_month_day;
        if (is(ax::cron_dialect::quartz) ? free : below(often_ ? 2 : 4) == 0) {
            e_.by_day.push_back(always());
            e_.day_free = true;
            if (is(ax::cron_dialect::quartz)) return "?";
            if (!is(ax::cron_dialect::crontab) && below(3) == 0) return "?";
            e_.day_star = true;
            return "*";
        }
        bool const alone = is(ax::cron_dialect::spring); // letters stand alone
        std::string text;
        do {
            if (!text.empty()) text += ",";
            auto const kind = is(ax::cron_dialect::crontab) || (alone && !text.empty()) ? 9 : below(10);
            auto const n = below(31);
            auto const l = below(2) == 0 ? "L" : "l";
            if (kind == 0) {
                e_.by_day.push_back([n](date d) { return static_cast<unsigned>(d.day()) + n == length_of_month(d); });
                text += n == 0 ? l : l + ("-" + number(n));
            } else if (kind == 1) {
                e_.by_day.push_back([](date d) {
                    auto last = length_of_month(d);
                    while (!works_on(d, last)) --last;
                    return static_cast<unsigned>(d.day()) == last;
                });
                text += std::string(l) + "W";
            } else if (kind == 2) {
                e_.by_day.push_back([n](date d) { return is_nearest_working_day(d, n + 1); });
                text += number(n + 1) + (below(2) == 0 ? "W" : "w");
            } else if (kind == 3 && !alone) {
                e_.by_day.push_back([n](date d) {
                    auto const last = length_of_month(d);
                    return n < last && is_nearest_working_day(d, last - n);
                });
                text += l + ("-" + number(n)) + "W";
            } else {
                std::set<unsigned> days;
                auto const part = element(days, 1, 31, nullptr);
                if (text.empty() && part[0] == '*') e_.day_star = true;
                text += part;
                e_.by_day.push_back([days](date d) { return days.contains(static_cast<unsigned>(d.day())); });
                if (kind > 3) continue;
            }
            if (alone) break;
        } while (below(2) == 0);
        return text;
    }

    std::string weekday_field(bool free) {
        using date = std::chrono::year_month_day;
        static constexpr char const* names[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"};
        if (is(ax::cron_dialect::quartz) ? free : below(2) == 0) {
            e_.by_weekday.push_back(always());
            e_.weekday_free = true;
            if (is(ax::cron_dialect::quartz)) return "?";
            if (!is(ax::cron_dialect::crontab) && below(3) == 0) return "?";
            e_.weekday_star = true;
            return "*";
        }
        unsigned const base = is(ax::cron_dialect::quartz) ? 1 : 0; // what Sunday is
        bool const alone = is(ax::cron_dialect::spring);
        auto const value = [&](unsigned v) { // Sunday 0, or 7 where it has two numbers
            if (below(3) == 0) return std::string(names[v]);
            return std::to_string(v + base);
        };
        std::string text;
        do {
            if (!text.empty()) text += ",";
            auto const kind = is(ax::cron_dialect::crontab) || (alone && !text.empty()) ? 9 : below(9);
            auto const w = below(base == 1 ? 7 : 8);
            auto const weekday = w % 7;
            if (kind == 0) {
                auto const k = 1 + below(5);
                e_.by_weekday.push_back([=](date d) {
                    return weekday_of(d) == weekday && (static_cast<unsigned>(d.day()) - 1) / 7 + 1 == k;
                });
                text += value(w) + "#" + std::to_string(k);
                if (alone) break;
                continue;
            }
            if (kind == 1) {
                e_.by_weekday.push_back([=](date d) {
                    return weekday_of(d) == weekday && static_cast<unsigned>(d.day()) + 7 > length_of_month(d);
                });
                text += value(w) + (below(2) == 0 ? "L" : "#L");
                if (alone) break;
                continue;
            }
            std::set<unsigned> days; // 0 to 6
            auto const add = [&](unsigned first, unsigned last, unsigned step) {
                for (auto v = first; v <= last; v += step) days.insert(v % 7);
            };
            auto const s = 1 + below(is(ax::cron_dialect::quartz) ? 7 : 9);
            std::string part;
            if (kind == 2 || (kind == 9 && below(4) == 0)) {
                add(0, 6, s);
                part = "*/" + std::to_string(s);
            } else if (kind == 3) {
                // To Saturday; in the dialect without ranges that go round, to the Sunday behind it.
                auto const text_of_first = value(w);
                auto const first = is(ax::cron_dialect::ax) || text_of_first == "SUN" ? w % 7 : w;
                add(first, is(ax::cron_dialect::spring) ? 7 : 6, s);
                part = text_of_first + "/" + std::to_string(s);
            } else if (kind == 4 || kind == 9) {
                auto const b = below(base == 1 ? 7 : 8);
                auto first = w, last = b;
                auto a_text = value(first), b_text = value(last);
                // A name is 0 for Sunday, never 7.
                if (a_text == "SUN") first = 0;
                if (b_text == "SUN") last = 0;
                if (first == 7 && last != 7 && wraps()) first = 0;
                if (first > last) {
                    if (last == 0 && base == 0) last = 7;
                    if (first > last && !wraps()) {
                        first = last = b % 7;
                        a_text = b_text = std::to_string(b % 7);
                    } else if (first > last) {
                        last += 7;
                    }
                }
                auto const step = below(2) == 0 ? 1 : s;
                add(first, last, step);
                part = a_text + "-" + b_text + (step == 1 ? "" : "/" + std::to_string(step));
            } else {
                days.insert(weekday);
                part = value(w);
            }
            if (text.empty() && part[0] == '*') e_.weekday_star = true;
            text += part;
            e_.by_weekday.push_back([days](date d) { return days.contains(weekday_of(d)); });
            if (alone && kind < 2) break;
        } while (below(2) == 0);
        if (is(ax::cron_dialect::ax) && below(4) == 0) {
            e_.plus = true;
            text.insert(0, "+");
        }
        return text;
    }

    std::mt19937 random_;
    random_expression e_;
    bool often_ = false;
};

} // namespace cron_test

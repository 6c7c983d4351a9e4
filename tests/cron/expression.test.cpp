// SPDX-License-Identifier: MIT
#include "ax/cron/expression.hpp"

#include "cron/support.hpp"
#include "support/catch.hpp"

#include <cctz/time_zone.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using cron_test::seconds_of;
using cron_test::utc;
using namespace std::chrono_literals;
using dialect = ax::cron_dialect;
using std::chrono::sys_days;
using std::chrono::year;

namespace {

ax::cron_expression crontab(std::string_view text) { return ax::cron_expression::parse(text, dialect::crontab); }

/// One field of a crontab expression as plainly as can be: which values it holds.
std::set<int> values_of(std::string const& text, int lowest, int highest) {
    std::set<int> result;
    std::size_t at = 0;
    while (at <= text.size()) {
        auto const end = (std::min)(text.find(',', at), text.size());
        auto element = text.substr(at, end - at);
        at = end + 1;
        int step = 1, first = lowest, last = highest;
        if (auto const slash = element.find('/'); slash != element.npos) {
            step = std::stoi(element.substr(slash + 1));
            element = element.substr(0, slash);
        }
        if (element != "*") {
            auto const dash = element.find('-');
            first = std::stoi(element.substr(0, dash));
            last = dash == element.npos ? first : std::stoi(element.substr(dash + 1));
        }
        for (int v = first; v <= last; v += step) result.insert(v);
    }
    return result;
}

/// A crontab expression that looks at every minute of real time and keeps the rules of clock changes by memory.
struct minute_by_minute {
    std::set<int> minutes, hours, days, months, weekdays;
    bool both = false, interval = false;

    explicit minute_by_minute(std::array<std::string, 5> const& fields)
        : minutes(values_of(fields[0], 0, 59)), hours(values_of(fields[1], 0, 23)), days(values_of(fields[2], 1, 31)),
          months(values_of(fields[3], 1, 12)), weekdays(values_of(fields[4], 0, 7)) {
        both = fields[2][0] == '*' || fields[4][0] == '*';
        interval = (fields[0] + fields[1]).find_first_of("*/") != std::string::npos;
    }

    bool wall_matches(cctz::civil_minute m) const {
        cctz::civil_day const day(m);
        auto const weekday = static_cast<int>(cctz::get_weekday(day)); // Monday 0
        bool const by_weekday = weekdays.contains((weekday + 1) % 7) || (weekday == 6 && weekdays.contains(7));
        bool const by_day = days.contains(day.day());
        return minutes.contains(m.minute()) && hours.contains(m.hour()) && months.contains(day.month()) &&
               (both ? by_day && by_weekday : by_day || by_weekday);
    }

    /// All occurrences in [from, to): real minutes one by one, and before each, the wall minutes that were skipped.
    std::vector<std::int64_t> occurrences(cctz::time_zone const& zone, std::int64_t from, std::int64_t to) const {
        std::vector<std::int64_t> result;
        std::set<cctz::civil_minute> shown; // of the last days, so that a second pass is known
        auto const lead = from - 2 * 86'400;
        auto const wall_at = [&](std::int64_t t) {
            return cctz::civil_minute(cctz::convert(cctz::time_point<cctz::seconds>{cctz::seconds{t}}, zone));
        };
        auto previous = wall_at(lead);
        for (auto t = lead + 60; t < to; t += 60) {
            auto const wall = wall_at(t);
            bool runs = false;
            if (interval) {
                runs = wall_matches(wall);
            } else {
                for (auto skipped = previous + 1; skipped < wall; ++skipped) {
                    bool const date_exists = cctz::civil_day(skipped) == cctz::civil_day(previous) ||
                                             cctz::civil_day(skipped) == cctz::civil_day(wall);
                    if (date_exists && !shown.contains(skipped)) runs = runs || wall_matches(skipped);
                }
                runs = runs || (wall_matches(wall) && !shown.contains(wall));
                shown.insert(wall);
                if (shown.size() > 3'000) shown.erase(shown.begin());
            }
            if (runs && t >= from) result.push_back(t);
            previous = wall;
        }
        return result;
    }
};

class field_maker {
  public:
    explicit field_maker(unsigned seed) : random_(seed) {}

    unsigned below(unsigned n) { return static_cast<unsigned>(random_()) % n; }

    std::string value(int lowest, int highest) {
        return std::to_string(lowest + static_cast<int>(below(static_cast<unsigned>(highest - lowest + 1))));
    }

    std::string element(int lowest, int highest) {
        switch (below(6)) {
        case 0: return "*/" + std::to_string(1 + below(static_cast<unsigned>(highest) + 3));
        case 1:
        case 2: {
            auto a = std::stoi(value(lowest, highest)), b = std::stoi(value(lowest, highest));
            if (a > b) std::swap(a, b);
            return std::to_string(a) + "-" + std::to_string(b) +
                   (below(2) == 0 ? "" : "/" + std::to_string(1 + below(9)));
        }
        default: return value(lowest, highest);
        }
    }

    /// One in `stars` fields is `*`.
    std::string field(int lowest, int highest, unsigned stars) {
        if (below(stars) == 0) return "*";
        auto text = element(lowest, highest);
        while (below(3) == 0) text += "," + element(lowest, highest);
        return text;
    }

    std::array<std::string, 5> fields() {
        // Small hours, where clocks change, and few restrictions on days, so that there are occurrences to compare.
        auto hour = below(2) == 0 ? field(0, 4, 4) : field(0, 23, 3);
        if (below(8) == 0) hour = "23";
        return {field(0, 59, 5), hour, field(1, 31, 2), below(3) == 0 ? field(1, 12, 2) : "*", field(0, 7, 2)};
    }

  private:
    std::mt19937 random_;
};

} // namespace

TEST_CASE("crontab expressions agree with a search minute by minute around clock changes", "[cron]") {
    struct place {
        char const* zone;
        int year;
    };
    auto const where = GENERATE(values<place>({
        {"UTC", 2024},
        {"Europe/Berlin", 2026},
        {"America/New_York", 2027},
        {"Australia/Lord_Howe", 2026},
        {"Africa/Cairo", 2024},
        {"America/Havana", 2025},
        {"America/Sao_Paulo", 2018},
        {"Pacific/Apia", 2011},
        {"Africa/Casablanca", 2025},
        {"Europe/Dublin", 2026},
        {"Asia/Kathmandu", 1986},
        {"Pacific/Chatham", 2026},
        {"America/Nuuk", 2025},
        {"America/St_Johns", 2006},
        {"Antarctica/Troll", 2026},
        {"Pacific/Kwajalein", 1993},
        {"Asia/Pyongyang", 2015},
        {"America/Caracas", 2016},
        {"Asia/Tehran", 2021},
    }));
    ax::time_zone const zone{where.zone};
    cctz::time_zone reference;
    REQUIRE(cctz::load_time_zone(where.zone, &reference));
    field_maker make(static_cast<unsigned>(where.year) * 31U + static_cast<unsigned>(std::string(where.zone).size()));
    auto const year_begin = utc(where.year, 1, 1), year_end = utc(where.year + 1, 1, 10);

    // Five days around each change of the year, and five without one.
    std::vector<ax::time_point> windows{utc(where.year, 6, 13)};
    for (auto change = zone.next_transition(year_begin); change && change->at < year_end;
         change = zone.next_transition(change->at))
        windows.push_back(std::chrono::floor<std::chrono::days>(change->at) - 48h);

    std::size_t compared = 0;
    for (auto const window : windows) {
        for (int i = 0; i < 25; ++i) {
            auto fields = make.fields();
            if (i == 0) fields = {"30", "2", "*", "*", "*"};
            if (i == 1) fields = {"*/15", "*", "*", "*", "*"};
            if (i == 2) fields = {"0,30", "0-3,22,23", "*", "*", "*"};
            auto const text = fields[0] + " " + fields[1] + " " + fields[2] + " " + fields[3] + " " + fields[4];
            auto const from = seconds_of(window), to = from + 5 * 86'400;
            CAPTURE(where.zone, text, from);
            auto const e = crontab(text);
            auto const expected = minute_by_minute(fields).occurrences(reference, from, to);
            std::vector<std::int64_t> forward, backward;
            for (auto t = e.next(window - 1s, zone); t && seconds_of(*t) < to; t = e.next(*t, zone))
                forward.push_back(seconds_of(*t));
            for (auto t = e.prev(window + 120h, zone); t && seconds_of(*t) >= from; t = e.prev(*t, zone))
                backward.insert(backward.begin(), seconds_of(*t));
            CHECK(forward == expected);
            CHECK(backward == expected);
            std::set<std::int64_t> const all(expected.begin(), expected.end());
            bool matches = true;
            for (auto t = from; t < to; t += 60)
                matches = matches && e.matches(ax::time_point{std::chrono::seconds{t}}, zone) == all.contains(t);
            CHECK(matches);
            // From in between as well: from the second pass of a fold, from the instant after a gap.
            for (auto t = from; t < to && !expected.empty(); t += 600 + 7) {
                auto const at = ax::time_point{std::chrono::seconds{t}};
                auto const after = std::upper_bound(expected.begin(), expected.end(), t);
                auto const before = std::lower_bound(expected.begin(), expected.end(), t);
                if (after != expected.end()) matches = matches && seconds_of(*e.next(at, zone)) == *after;
                if (before != expected.begin())
                    matches = matches && seconds_of(*e.prev(at, zone)) == *std::prev(before);
            }
            CHECK(matches);
            compared += expected.size();
        }
    }
    CHECK(compared > 100);
}

TEST_CASE("prev undoes next, and both are strict, from any instant", "[cron]") {
    field_maker make(7);
    char const* const zones[] = {"UTC",          "Europe/Berlin",  "Africa/Casablanca",
                                 "Pacific/Apia", "America/Havana", "Asia/Gaza"};
    for (int i = 0; i < 3'000; ++i) {
        auto const fields = make.fields();
        auto const text = fields[0] + " " + fields[1] + " " + fields[2] + " " + fields[3] + " " + fields[4];
        ax::time_zone const zone{zones[make.below(6)]};
        auto const e = crontab(text);
        ax::time_point const from{
            std::chrono::milliseconds{std::int64_t{make.below(2'000'000'000)} * 3'000 + make.below(3'000)}};
        auto const next = e.next(from, zone);
        if (!next) continue;
        bool const ok = *next > from && e.matches(*next, zone) && e.prev(*next, zone) == e.prev(from + 1ms, zone) &&
                        e.next(*next - 1ms, zone) == next && e.prev(*next + 1ms, zone) == next;
        if (!ok) FAIL(text << " in " << zone.name() << " from " << from.time_since_epoch().count());
        auto const prev = e.prev(from, zone);
        if (prev && !(*prev < from && e.next(*prev, zone) >= from)) FAIL(text << " back in " << zone.name());
    }
    SUCCEED();
}

TEST_CASE("next and prev take instants between seconds, in any precision", "[cron]") {
    auto const e = crontab("* * * * *");
    using fine = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
    CHECK(e.next(fine{59'999'999'999ns}) == ax::time_point{60s});
    CHECK(e.next(fine{60s}) == ax::time_point{120s});
    CHECK(e.prev(fine{60s + 1ns}) == ax::time_point{60s});
    CHECK(e.prev(fine{60s}) == ax::time_point{0s});
    CHECK(e.next(sys_days{year{2026} / 1 / 1}) == utc(2026, 1, 1, 60s));
    CHECK(e.matches(fine{60s}));
    CHECK_FALSE(e.matches(fine{60s + 1ns}));
    CHECK_FALSE(e.matches(ax::time_point{60s + 1ms}));
}

TEST_CASE("a day that is restricted twice follows the rule of classic cron", "[cron]") {
    auto const days = [](char const* text) {
        std::vector<unsigned> result;
        auto const e = crontab(text);
        for (auto t = e.next(utc(2026, 5, 31, 86'399s)); t && *t < utc(2026, 7, 1); t = e.next(*t))
            result.push_back(
                static_cast<unsigned>(std::chrono::year_month_day{std::chrono::floor<std::chrono::days>(*t)}.day()));
        return result;
    };
    using list = std::vector<unsigned>;
    CHECK(days("0 0 1,15 * 5") == list{1, 5, 12, 15, 19, 26}); // either
    CHECK(days("0 0 */10 * 1") == list{1});                    // both: 1, 11, 21, 31 and a Monday
    CHECK(days("0 0 1-7 * */6") == list{6, 7});                // both: the first week, Saturday or Sunday
    CHECK(days("0 0 */100,1-7 * MON") == list{1});
    CHECK(days("0 0 1-31 * 1").size() == 30); // a full range is no star: either
    CHECK(days("0 0 * * 1") == list{1, 8, 15, 22, 29});
    CHECK(days("0 0 13 * *") == list{13});
}

TEST_CASE("what never happens is found out", "[cron]") {
    for (auto const* text : {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 31 2 *"}) {
        auto const e = crontab(text);
        CHECK(e.never());
        CHECK_FALSE(e.next(utc(2026, 1, 1)));
        CHECK_FALSE(e.prev(utc(2026, 1, 1)));
        CHECK_FALSE(e.next(utc(2026, 1, 1), ax::time_zone{"Europe/Berlin"}));
        CHECK_FALSE(e.prev(utc(2026, 1, 1), ax::time_zone{"Africa/Casablanca"}));
        CHECK_FALSE(e.matches(utc(2026, 1, 1)));
    }
    CHECK_FALSE(crontab("0 0 29 2 *").never());
    CHECK_FALSE(crontab("0 0 31 2 1").never()); // Mondays in February
    CHECK(ax::cron_expression::parse("0 0 0 29 2 ? 2097-2103").never());
}

TEST_CASE("occurrences lie in the local years 1970 to 2199", "[cron]") {
    auto const e = crontab("0 0 1 1 *");
    CHECK(e.next(utc(-2000, 1, 1)) == utc(1970, 1, 1));
    CHECK_FALSE(e.prev(utc(1970, 1, 1)));
    CHECK(e.prev(utc(1970, 1, 1, 1s)) == utc(1970, 1, 1));
    CHECK(e.next(utc(2198, 1, 1)) == utc(2199, 1, 1));
    CHECK_FALSE(e.next(utc(2199, 1, 1)));
    CHECK(e.prev(utc(30'000, 1, 1)) == utc(2199, 1, 1));
    CHECK_FALSE(e.next(utc(30'000, 1, 1)));
    ax::time_zone const kiritimati{"Pacific/Kiritimati"}, berlin{"Europe/Berlin"};
    CHECK(e.next(utc(1960, 1, 1), berlin) == utc(1970, 1, 1) - 1h);
    CHECK(e.next(utc(2198, 12, 31), kiritimati) == utc(2199, 1, 1) - 14h);
    CHECK(crontab("59 23 31 12 *").prev(utc(2300, 1, 1), berlin) == utc(2199, 12, 31, 22h + 59min));
    CHECK(crontab("* * * * *").prev(utc(2300, 1, 1), berlin) == utc(2199, 12, 31, 22h + 59min));
    CHECK(crontab("* * * * *").next(utc(1960, 1, 1), berlin) == utc(1970, 1, 1) - 1h);
    for (auto const far : {(ax::time_point::min)() + 1h, (ax::time_point::max)() - 1h}) {
        CHECK(e.next(far, berlin).has_value() == (far < utc(1970, 1, 1)));
        CHECK(e.prev(far, berlin).has_value() == (far > utc(1970, 1, 1)));
        CHECK_FALSE(e.matches(far, berlin));
    }
}

TEST_CASE("equal expressions are written alike, in the spelling of their dialect", "[cron]") {
    struct form {
        char const* text;
        dialect which;
        char const* written;
    };
    auto const f = GENERATE(values<form>({
        {"*/5 * * * *", dialect::crontab, "*/5 * * * *"},
        {"00 03 * * sun", dialect::crontab, "0 3 * * 0"},
        {"0 0 1,2,3 jan *", dialect::crontab, "0 0 1-3 1 *"},
        {"0,15,30,45 * * * *", dialect::crontab, "*/15 * * * *"},
        {"0,15,30,45 3 * * *", dialect::crontab, "0,15,30,45 3 * * *"}, // fixed times stay fixed times
        {"*/90 * * * *", dialect::crontab, "0 * * * *"},
        {"*/90 3 * * *", dialect::crontab, "0-0/1 3 * * *"}, // and an interval an interval
        {"10-20/1 3 * * *", dialect::crontab, "10-20/1 3 * * *"},
        {"0-59 0-23 * * *", dialect::crontab, "0-59 0-23 * * *"},
        {"0 0 * * 5-7", dialect::crontab, "0 0 * * 0,5,6"},
        {"0 0 1-31 * 1", dialect::crontab, "0 0 * * *"},
        {"0 0 */2 * 1", dialect::crontab, "0 0 */2 * 1"},
        {"0 0 */100,1-7 * MON", dialect::crontab, "0 0 */31,1-7 * 1"},
        {"0 0 2 * */6", dialect::crontab, "0 0 2 * */6"},
        {"0 0 1-31/2 * 1", dialect::crontab, "0 0 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * 1"},
        {"@weekly", dialect::crontab, "0 0 * * 0"},
        {"0 0 2 * * ?", dialect::ax, "0 2 * * *"},
        {"30 0 2 13 * +FRI", dialect::ax, "30 0 2 13 * +5"},
        {"0 0 0 LW,15W,L-3 * mon#1,5L 2027-2029,2040", dialect::ax, "0 0 0 L-3,15W,LW * 1#1,5L 2027-2029,2040"},
        {"0 0 12 ? * MON-FRI", dialect::quartz, "0 0 12 ? * 2-6"},
        {"0 0 12 1/5 * ?", dialect::quartz, "0 0 12 */5 * ?"},
        {"0 0 8 1-7 * SAT", dialect::spring, "0 0 8 1-7 * 6"},
    }));
    CAPTURE(f.text);
    auto const e = ax::cron_expression::parse(f.text, f.which);
    CHECK(e.to_string() == f.written);
    CHECK(ax::cron_expression::parse(f.written, f.which) == e);
    CHECK(e.dialect() == f.which);
}

TEST_CASE("expressions of different dialects are equal where they mean the same", "[cron]") {
    CHECK(ax::cron_expression::parse("0 0 12 ? * 2-6", dialect::quartz) ==
          ax::cron_expression::parse("0 12 * * MON-FRI"));
    CHECK(ax::cron_expression::parse("0 0 12 13 * 5", dialect::spring) == ax::cron_expression::parse("0 12 13 * +5"));
    CHECK_FALSE(crontab("0 0 13 * 5") == ax::cron_expression::parse("0 0 13 * +5"));
    CHECK_FALSE(crontab("0,30 2 * * *") == crontab("*/30 2 * * *"));
    CHECK(crontab("*/30 2 * * *").is_interval());
    CHECK_FALSE(crontab("0,30 2 * * *").is_interval());
    CHECK(crontab("@hourly").is_interval());
    CHECK_FALSE(crontab("@daily").is_interval());
}

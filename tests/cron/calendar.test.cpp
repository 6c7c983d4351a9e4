// SPDX-License-Identifier: MIT
#include "ax/cron/calendar.hpp"

#include "cron/support.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <vector>

using cron_test::utc;
using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::year;

namespace {

ax::calendar of(char const* text, char const* zone = "UTC") { return ax::cron{text, zone}; }

std::vector<ax::time_point> listed(ax::calendar const& c, ax::time_point after, ax::time_point before) {
    std::vector<ax::time_point> result;
    for (auto const t : c.occurrences(after, before)) result.push_back(t);
    return result;
}

std::vector<ax::time_point> listed_backwards(ax::calendar const& c, ax::time_point after, ax::time_point before) {
    std::vector<ax::time_point> result;
    for (auto t = c.prev(before); t && *t > after; t = c.prev(*t)) result.insert(result.begin(), *t);
    return result;
}

using list = std::vector<ax::time_point>;

} // namespace

TEST_CASE("a calendar stands where a cron stands", "[cron]") {
    ax::cron const nightly{"30 2 * * *", "Europe/Berlin"};
    ax::calendar const c = nightly;
    auto const noon = utc(2026, 3, 28, 12h);
    CHECK(c.next(noon) == nightly.next(noon));
    CHECK(c.prev(noon) == nightly.prev(noon));
    CHECK(c.matches(utc(2026, 3, 29, 1h)));
    CHECK_FALSE(c.matches(utc(2026, 3, 29, 1h) + 1ms));
    CHECK(c.count(noon, noon + 48h) == 2);
    CHECK(c.zone() == nightly.zone());
    REQUIRE(c.single() != nullptr);
    CHECK(*c.single() == nightly);
    CHECK(c.also(nightly).single() == nullptr);
    CHECK_FALSE(c.never());
    static_assert(std::ranges::forward_range<decltype(c.occurrences(noon, noon))>);
}

TEST_CASE("a union has the occurrences of all its parts, each once", "[cron]") {
    auto const c = of("0 9 * * MON-FRI").also(of("0 10 * * SAT")).also(of("0 9 * * FRI"));
    auto const thursday = utc(2026, 5, 14), monday = utc(2026, 5, 18, 12h);
    list const expected{utc(2026, 5, 14, 9h), utc(2026, 5, 15, 9h), utc(2026, 5, 16, 10h), utc(2026, 5, 18, 9h)};
    CHECK(listed(c, thursday, monday) == expected);
    CHECK(listed_backwards(c, thursday, monday) == expected);
    CHECK(c.count(thursday, monday) == 4);
    CHECK(c.matches(utc(2026, 5, 15, 9h)));
    CHECK_FALSE(c.matches(utc(2026, 5, 16, 9h)));
}

TEST_CASE("dates are left out as the clocks of the calendar's zone show them", "[cron]") {
    auto const c = of("0 0,12 * * *", "Asia/Shanghai")
                       .except_dates({year{2026} / 5 / 2, {year{2026} / 5 / 4, year{2026} / 5 / 5}});
    // 2026-05-02 in Shanghai lasts from 16:00Z of the 1st to 16:00Z of the 2nd.
    list const expected{utc(2026, 5, 1, 4h), utc(2026, 5, 2, 16h), utc(2026, 5, 3, 4h), utc(2026, 5, 5, 16h)};
    CHECK(listed(c, utc(2026, 5, 1), utc(2026, 5, 5, 20h)) == expected);
    CHECK(listed_backwards(c, utc(2026, 5, 1), utc(2026, 5, 5, 20h)) == expected);
    auto const by_utc = of("0 0,12 * * *", "Asia/Shanghai").except_dates({year{2026} / 5 / 2}, "UTC");
    CHECK(by_utc.matches(utc(2026, 5, 1, 16h)));
    CHECK_FALSE(by_utc.matches(utc(2026, 5, 2, 4h)));
}

TEST_CASE("dates may come in any order, meet and overlap", "[cron]") {
    auto const c = of("0 0 * * *")
                       .except_dates({{year{2026} / 5 / 10, year{2026} / 5 / 20},
                                      year{2026} / 5 / 5,
                                      {year{2026} / 5 / 6, year{2026} / 5 / 9},
                                      {year{2026} / 5 / 12, year{2026} / 5 / 13}});
    CHECK(c.next(utc(2026, 5, 4)) == utc(2026, 5, 21));
    CHECK(c.prev(utc(2026, 5, 21)) == utc(2026, 5, 4));
    CHECK(c == of("0 0 * * *").except_dates({{year{2026} / 5 / 5, year{2026} / 5 / 20}}));
    CHECK_THROWS_AS(of("@daily").except_dates({year{2026} / 2 / 30}), ax::error);
    CHECK_THROWS_AS(of("@daily").except_dates({{year{2026} / 2 / 3, year{2026} / 2 / 2}}), ax::error);
    CHECK(of("@daily").except_dates({}).next(utc(2026, 5, 4)) == utc(2026, 5, 5));
    auto const far = of("@daily").except_dates({{year{-9} / 1 / 1, year{1970} / 1 / 1}, year{30'000} / 1 / 1});
    CHECK(far.next(utc(1900, 1, 1)) == utc(1970, 1, 2));
    CHECK(ax::calendar::parse(far.to_string()) == far);
}

TEST_CASE("what another expression says is left out, whatever its zone", "[cron]") {
    auto const working = of("0 9 * * MON-FRI").except(of("* * * * * 5L")); // not on the last Friday
    CHECK(of("0 9 * * MON-FRI").except(of("* * * * 5L")).next(utc(2026, 5, 28, 9h)) == utc(2026, 6, 1, 9h));
    CHECK(working.prev(utc(2026, 6, 1, 9h)) == utc(2026, 5, 28, 9h));
    auto const hourly = of("0 * * * *").except(of("0 9-17 * * *", "Asia/Tokyo")); // 0h to 8h UTC
    CHECK(hourly.next(utc(2026, 5, 1, 23h) - 1s) == utc(2026, 5, 1, 23h));
    CHECK(hourly.next(utc(2026, 5, 1, 23h)) == utc(2026, 5, 2, 9h));
    CHECK(hourly.count(utc(2026, 5, 1), utc(2026, 5, 3) + 1s) == 15 * 2);
    // 2:30 is put off to 3:00 on the day of the change: the instant counts, not the text.
    auto const berlin = of("0 3 * * *", "Europe/Berlin").except(of("30 2 29 3 *", "Europe/Berlin"));
    CHECK(berlin.next(utc(2026, 3, 28, 2h)) == utc(2026, 3, 30, 1h));
}

TEST_CASE("a calendar can begin, end, and happen a number of times", "[cron]") {
    auto const c = of("0 12 * * *").not_before(utc(2026, 5, 10, 12h)).not_after(utc(2026, 5, 12, 12h));
    list const expected{utc(2026, 5, 10, 12h), utc(2026, 5, 11, 12h), utc(2026, 5, 12, 12h)}; // both ends included
    CHECK(listed(c, utc(1970, 1, 1), utc(2199, 1, 1)) == expected);
    CHECK(listed_backwards(c, utc(1970, 1, 1), utc(2199, 1, 1)) == expected);
    CHECK(c.count(utc(1970, 1, 1), utc(2199, 1, 1)) == 3);
    CHECK_FALSE(c.next(utc(2026, 5, 12, 12h)));
    CHECK_FALSE(c.prev(utc(2026, 5, 10, 12h)));
    CHECK(of("0 12 * * *").not_before(utc(2026, 5, 10, 12h) + 1ms).next(utc(2000, 1, 1)) == utc(2026, 5, 11, 12h));
    CHECK(of("0 12 * * *").not_after(utc(2026, 5, 10, 12h) - 1ms).prev(utc(2100, 1, 1)) == utc(2026, 5, 9, 12h));
    CHECK(of("0 12 * * *").not_after(utc(2026, 5, 12)).not_before(utc(2026, 5, 13)).never());

    auto const three = of("0 12 * * *").except_dates({year{2026} / 5 / 11}).not_before(utc(2026, 5, 10)).at_most(3);
    list const first_three{utc(2026, 5, 10, 12h), utc(2026, 5, 12, 12h), utc(2026, 5, 13, 12h)};
    CHECK(listed(three, utc(1970, 1, 1), utc(2199, 1, 1)) == first_three);
    CHECK(three.except_dates({year{2026} / 5 / 12}).count(utc(1970, 1, 1), utc(2199, 1, 1)) == 2); // counted before
    CHECK(three.count(utc(2026, 5, 10, 12h), utc(2199, 1, 1)) == 2);
    CHECK(of("0 0 29 2 *").not_before(utc(2190, 1, 1)).at_most(10).count(utc(1970, 1, 1), utc(2300, 1, 1)) == 2);
    CHECK(of("0 0 29 2 *").not_before(utc(2026, 1, 1)).at_most(1).next(utc(2026, 1, 1)) == utc(2028, 2, 29));
    // Counted, not visited: the last of a billion seconds, all but those on the hour.
    auto const billion = of("* * * * * *").except(of("0 * * * *")).not_before(utc(1971, 1, 1)).at_most(1'000'000'000);
    CHECK(billion.prev(utc(2100, 1, 1)) == utc(1971, 1, 1) + std::chrono::seconds{1'000'000'000 + 277'854});
    CHECK(billion.count(utc(1970, 1, 1), utc(2100, 1, 1)) == 1'000'000'000);
    CHECK_THROWS_AS(of("@daily").at_most(3), ax::error); // from when?
    CHECK_THROWS_AS(of("@daily").not_after(utc(2026, 1, 1)).at_most(3), ax::error);
    CHECK_THROWS_AS(of("@daily").not_before(utc(2026, 1, 1)).also(of("@daily")).at_most(3), ax::error);
    CHECK_THROWS_AS(of("@daily").not_before(utc(2026, 1, 1)).at_most(0), ax::error);
    CHECK_THROWS_AS(of("@daily").not_before(utc(2026, 1, 1)).at_most(1'000'000'001), ax::error);
}

TEST_CASE("a calendar from which all is taken is never, and that is found out", "[cron]") {
    auto const* const zone = GENERATE("UTC", "Europe/Berlin", "Africa/Monrovia");
    for (auto const* taken : {"* * * * * *", "*/2,1/2 * * * * *", "* * * * * * 1970-2199"}) {
        auto const c = of("* * * * * *", zone).except(of(taken, zone));
        CAPTURE(zone, taken);
        CHECK(c.never());
        CHECK_FALSE(c.next(utc(2026, 1, 1)));
        CHECK_FALSE(c.prev(utc(2026, 1, 1)));
        CHECK(c.count(utc(1960, 1, 1), utc(2300, 1, 1)) == 0);
    }
    CHECK(of("30 2 * * *", zone).except(of("30 2 * * *", zone)).never());
    CHECK(of("30 2 * * *", zone).except_dates({{year{1969} / 1 / 1, year{2200} / 12 / 31}}).never());
    CHECK(of("@daily").except(of("@hourly")).never());
}

TEST_CASE("what lies behind a long stretch that is taken away is found", "[cron]") {
    // Every other second, except for 130 years of them.
    auto const c = of("*/2 * * * * *").except(of("*/2 * * * * * 1970-2100"));
    CHECK(c.next(utc(1980, 1, 1)) == utc(2101, 1, 1));
    CHECK_FALSE(c.prev(utc(2101, 1, 1)));
    CHECK(c.prev(utc(2101, 1, 1, 1s)) == utc(2101, 1, 1));
    auto const seconds = of("* * * * * *");
    CHECK(seconds.except(of("* * * * * * 2000-2050")).next(utc(2020, 1, 1)) == utc(2051, 1, 1));
    CHECK(seconds.except(of("* * * * * * 2000-2050")).prev(utc(2020, 1, 1)) == utc(2000, 1, 1) - 1s);
    CHECK(seconds.except_dates({{year{2000} / 1 / 1, year{2050} / 12 / 31}}, "Asia/Kathmandu").next(utc(2020, 1, 1)) ==
          utc(2050, 12, 31, 18h + 15min));
    // One second that is left, in the last year.
    auto const one =
        seconds.except(of("0-57,59 * * * * *")).except(of("58 0-58 * * * *")).except(of("58 59 * * * * 1970-2198"));
    CHECK(one.next(utc(1970, 1, 1)) == utc(2199, 1, 1, 59min + 58s));
    CHECK(one.count(utc(1970, 1, 1), utc(2200, 1, 1)) == 24 * 365);
}

TEST_CASE("calendars count without visiting each occurrence", "[cron]") {
    auto const seconds = of("* * * * * *");
    auto const all = seconds.count(utc(1960, 1, 1), utc(2300, 1, 1));
    CHECK(all == 7'258'118'400);
    CHECK(seconds.also(of("* * * * *")).count(utc(1960, 1, 1), utc(2300, 1, 1)) == all);
    CHECK(seconds.except(of("* * * * *")).count(utc(1960, 1, 1), utc(2300, 1, 1)) == all / 60 * 59);
    CHECK(seconds.except_dates({year{2026} / 5 / 5}).count(utc(2026, 1, 1), utc(2026, 12, 31)) ==
          364 * 86'400 - 1 - 86'400);
}

TEST_CASE("random calendars are the sets that they are made of, around clock changes too", "[cron]") {
    // Membership of an instant from the crons alone, which have tests of their own.
    struct plain {
        std::vector<ax::cron> any, none;
        std::optional<ax::time_point> first, last;
        std::optional<std::pair<ax::time_zone, ax::local_time>> date;

        bool holds(ax::time_point t) const {
            auto const is_one = [t](ax::cron const& c) { return c.matches(t); };
            if (std::none_of(any.begin(), any.end(), is_one) || std::any_of(none.begin(), none.end(), is_one))
                return false;
            if (date && std::chrono::floor<std::chrono::days>(date->first.to_local(t)) == date->second) return false;
            return (!first || t >= *first) && (!last || t <= *last);
        }
    };
    std::mt19937 random(11);
    auto const below = [&](unsigned n) { return static_cast<unsigned>(random()) % n; };
    auto const* const name = GENERATE("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/Nuuk",
                                      "Africa/Monrovia", "Africa/Casablanca");
    ax::time_zone const zone{name};
    auto const start = std::string(name) == "Pacific/Apia"      ? utc(2011, 1, 1)
                       : std::string(name) == "Africa/Monrovia" ? utc(1971, 6, 1)
                                                                : utc(2026, 1, 1);
    char const* const seconds[] = {"0", "*/7", "*", "30-59", "1,2,59"};
    char const* const minutes[] = {"0", "*/10", "*", "30", "15-45/5"};
    char const* const hours[] = {"*", "0-4", "2", "0,1,2,3,22,23", "*/3"};
    char const* const days[] = {"* * *", "* * 0-3", "L * *", "10-20 * *", "*/2 * 1"};
    for (int i = 0; i < 40; ++i) {
        auto const make = [&] {
            return ax::cron{std::string(seconds[below(5)]) + " " + minutes[below(5)] + " " + hours[below(5)] + " " +
                                days[below(5)],
                            below(4) == 0 ? ax::time_zone{"Asia/Kathmandu"} : zone};
        };
        plain reference;
        reference.any = {make(), make()};
        auto c = ax::calendar{reference.any[0]}.also(reference.any[1]);
        for (auto n = below(3); n > 0; --n) {
            reference.none.push_back(make());
            c = c.except(reference.none.back());
        }
        auto window = start + 24h * below(300);
        if (auto const change = zone.next_transition(window); change && i % 4 != 0) window = change->at - 5h;
        auto const until = window + 11h;
        if (below(3) == 0) {
            reference.date.emplace(zone, std::chrono::floor<std::chrono::days>(zone.to_local(window + 5h)));
            auto const day =
                std::chrono::sys_days{std::chrono::floor<std::chrono::days>(reference.date->second.time_since_epoch())};
            c = c.except_dates({std::chrono::year_month_day{day}}, zone);
        }
        if (below(4) == 0) c = c.not_before(*(reference.first = window + 2h));
        if (below(4) == 0) c = c.not_after(*(reference.last = until - 3h - 1ms));
        CAPTURE(name, c.to_string(), window.time_since_epoch().count());
        list expected;
        for (auto t = window + 1s; t < until; t += 1s)
            if (reference.holds(t)) expected.push_back(t);
        REQUIRE(listed(c, window, until) == expected);
        REQUIRE(c.count(window, until) == expected.size());
        REQUIRE(ax::calendar::parse(c.to_string()) == c);
        bool same = true;
        for (std::size_t k = 1; k < expected.size(); ++k) same = same && c.prev(expected[k]) == expected[k - 1];
        for (auto t = window + 1s; t < until; t += 61s) same = same && c.matches(t) == reference.holds(t);
        REQUIRE(same);
    }
}

TEST_CASE("days that are read as a whole hold what their seconds hold", "[cron]") {
    // Straight from the reader, so that no candidate that happens to be right hides it.
    auto const c =
        of("* * * * * *", "Africa/Monrovia").except(of("*/3 * * * * *", "Europe/Berlin")).except(of("10 0 * * * *"));
    auto const tree = ax::detail::calendar_reader<ax::cron>(c.to_string()).read();
    for (auto const day : {utc(1972, 1, 6), utc(1972, 1, 7), utc(1971, 5, 5), utc(2026, 3, 29), utc(2026, 10, 25)}) {
        auto const begin = std::chrono::floor<std::chrono::seconds>(day).time_since_epoch().count();
        std::uint64_t expected = 0;
        for (auto t = begin; t < begin + 86'400; ++t) expected += ax::detail::holds(*tree, t);
        ax::detail::day_reader<ax::cron> reader(*tree);
        CHECK(reader.count(begin, begin + 86'400) == expected);
        CHECK(reader.count(begin, begin + 86'400) == expected); // known by now
        for (auto t = begin; t < begin + 86'400; t += 577) {
            auto next = t, prev = t;
            while (!ax::detail::holds(*tree, next)) ++next;
            while (!ax::detail::holds(*tree, prev)) --prev;
            REQUIRE(reader.next(t) == next);
            REQUIRE(reader.prev(t) == prev);
        }
    }
}

TEST_CASE("a calendar is written as text that reads back", "[cron]") {
    auto const c = of("0 9 * * MON-FRI", "Europe/Berlin")
                       .also(ax::cron{"0 0 12 ? * SAT", "Asia/Tokyo", ax::cron_dialect::quartz})
                       .also(ax::cron{"H H * * *", "UTC", ax::cron_dialect::ax, "the \"nightly\" \\ job"})
                       .except_dates({year{2026} / 12 / 24, {year{2026} / 12 / 28, year{2026} / 12 / 31}})
                       .except(of("* * * * 5L").not_after(utc(2027, 1, 1)))
                       .not_before(utc(2026, 1, 1))
                       .at_most(500);
    CHECK(c.to_string() ==
          "(at-most (not-before (except (except (also (cron ax Europe/Berlin \"0 9 * * MON-FRI\") (cron quartz "
          "Asia/Tokyo \"0 0 12 ? * SAT\") (cron ax UTC \"H H * * *\" \"the \\\"nightly\\\" \\\\ job\")) (dates "
          "Europe/Berlin 2026-12-24 2026-12-28/2026-12-31)) (not-after (cron ax UTC \"* * * * 5L\") "
          "2027-01-01T00:00:00Z)) 2026-01-01T00:00:00Z) 500)");
    auto const again = ax::calendar::parse(c.to_string());
    CHECK(again == c);
    CHECK(again.to_string() == c.to_string());
    CHECK(ax::calendar::parse(" ( cron\tax UTC\n\"@daily\" ) ") == of("@daily"));
    CHECK_FALSE(c == c.not_after(utc(2030, 1, 1)));
    CHECK_FALSE(of("@daily") == of("@hourly"));
    CHECK(of("@daily").not_before(utc(1900, 1, 1)) ==
          ax::calendar::parse(of("@daily").not_before(utc(1900, 1, 1)).to_string()));
    CHECK(of("@daily").not_after(utc(9000, 1, 1)) ==
          ax::calendar::parse(of("@daily").not_after(utc(9000, 1, 1)).to_string()));
}

TEST_CASE("a text that is no calendar is refused", "[cron]") {
    std::string const daily = "(cron ax UTC \"@daily\")";
    auto const text = GENERATE_COPY(
        as<std::string>{}, "", "@daily", "(", ")", "()", "(cron)", "(cron ax)", "(cron ax UTC)", "(cron ax UTC @daily)",
        "(cron ax UTC \"@daily\"", "(cron ax UTC \"@daily)", "(cron ax UTC \"@daily\\", "(cron ax Mars \"@daily\")",
        "(cron latin UTC \"@daily\")", "(cron ax UTC \"61 * * * *\")", "(dates UTC 2026-01-01)", "(also)",
        "(except " + daily + ")", "(except (dates UTC 2026-01-01) " + daily + ")", "(also (dates UTC 2026-01-01))",
        "(except " + daily + " (dates UTC 2026-02-30))", "(except " + daily + " (dates UTC 2026-01-02/2026-01-01))",
        "(except " + daily + " (dates Mars 2026-01-01))", "(except " + daily + " (dates UTC 2026-01-01x))",
        "(not-before " + daily + ")", "(not-before " + daily + " 2026-01-01)",
        "(not-before " + daily + " 2026-01-01T24:00:00Z)", "(not-before " + daily + " 2026-01-01T00:00:00)",
        "(at-most " + daily + " 5)", "(at-most " + daily + ")",
        "(at-most (not-before " + daily + " 2026-01-01T00:00:00Z) 0)",
        "(at-most (not-before " + daily + " 2026-01-01T00:00:00Z) 99999999999999999999999)", daily + daily,
        daily + " x", std::string(100'000, '('));
    CAPTURE(text.substr(0, 100));
    try {
        auto const c = ax::calendar::parse(text);
        FAIL("was taken as " << c.to_string());
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        CHECK(std::string(e.what()).size() < 400);
    }
}

TEST_CASE("calendars are bounded in size", "[cron]") {
    auto c = of("0 0 1 1 *");
    for (int i = 1; i < 64; ++i) c = c.also(of("0 0 2 1 *"));
    CHECK(c.next(utc(2026, 1, 1)) == utc(2026, 1, 2));
    CHECK_THROWS_AS(c.also(of("@daily")), ax::error);
    auto deep = of("0 0 1 1 *");
    for (int i = 1; i < 64; ++i) deep = deep.not_after(utc(2100, 1, 1));
    CHECK(ax::calendar::parse(deep.to_string()) == deep);
    CHECK_THROWS_AS(deep.not_after(utc(2100, 1, 1)), ax::error);
    std::vector<ax::date_range> dates(10'001, year{2026} / 1 / 1);
    CHECK_THROWS_AS(c.except_dates(dates), ax::error);
}

TEST_CASE("a calendar draws the values of H again when it is given a name", "[cron]") {
    auto const c = of("H H * * *").except_dates({year{2026} / 5 / 5}).not_before(utc(2026, 1, 1)).at_most(9);
    CHECK_FALSE(c.named("a") == c);
    CHECK(c.named("a") == c.named("b").named("a"));
    CHECK(ax::calendar::parse(c.named("a").to_string()) == c.named("a"));
    CHECK(c.named("a").next(utc(2026, 1, 1)) == ax::cron("H H * * *").named("a").next(utc(2026, 1, 1)));
}

TEST_CASE("a calendar is told in a sentence", "[cron]") {
    CHECK(of("0 9 * * MON-FRI", "Europe/Berlin").describe() == "at 09:00, on Monday to Friday (Europe/Berlin)");
    CHECK(of("0 9 * * 1")
              .also(of("0 10 * * 6"))
              .except_dates({year{2026} / 12 / 24, {year{2026} / 12 / 28, year{2026} / 12 / 31}})
              .not_before(utc(2026, 1, 1))
              .not_after(utc(2027, 1, 1))
              .at_most(10)
              .describe() == "((at 09:00, on Monday; and at 10:00, on Saturday); except on 2026-12-24 and 2026-12-28 "
                             "to 2026-12-31); not before "
                             "2026-01-01T00:00:00Z; not after 2027-01-01T00:00:00Z; at most 10 times");
}

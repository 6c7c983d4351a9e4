// SPDX-License-Identifier: MIT
#include "ax/scheduler/schedule.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

using namespace std::chrono_literals;
using ax::detail::recurrence;
using test::t0;

namespace {
std::chrono::year_month_day day_of(int year, unsigned month, unsigned day) {
    return std::chrono::year{year} / static_cast<int>(month) / static_cast<int>(day);
}
} // namespace

TEST_CASE("a recurrence goes through its text and back", "[scheduler]") {
    for (auto const& how : {recurrence{ax::every{90s}}, recurrence{ax::after_each{5min}}, recurrence{ax::once{t0}},
                            recurrence{ax::cron{"0 3 * * *", "Asia/Shanghai"}},
                            recurrence{ax::cron{"30 2 * * 1-5", "Europe/Berlin", ax::cron_dialect::crontab}},
                            recurrence{ax::cron{"H H * * *", "UTC", ax::cron_dialect::ax, "a \"name\""}},
                            recurrence{ax::calendar{ax::cron{"0 9 * * 1-5", "Europe/Berlin"}}
                                           .also(ax::cron{"0 0 10 ? * SAT", "UTC", ax::cron_dialect::quartz})
                                           .except_dates({day_of(2026, 1, 2)})
                                           .not_before(t0)
                                           .at_most(3)}}) {
        CAPTURE(how.spec());
        auto const back = recurrence::parse(how.spec());
        CHECK(back.spec() == how.spec());
        CHECK(back.first(t0) == how.first(t0));
        CHECK(back.waits_for_end() == how.waits_for_end());
    }
}

TEST_CASE("a text that is no recurrence is corrupt", "[scheduler]") {
    for (std::string const text :
         {"", "every", "every x", "every 5 6", "cron", "cron klingon UTC * * * * *", "once 1e3", "calendar",
          "calendar (cron ax UTC \"0 3 * * *\"", "calendar 0 3 * * *"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(recurrence::parse(text), ax::error);
    }
}

TEST_CASE("a fixed rate counts what was missed", "[scheduler]") {
    recurrence const rate{ax::every{10s}};
    auto const due = rate.latest(t0, t0 + 35s);
    CHECK(due.nominal == t0 + 30s);
    CHECK(due.missed == 3);
    CHECK(rate.following(due.nominal) == t0 + 40s);
    CHECK(rate.latest(t0, t0).nominal == t0);
    CHECK(rate.latest(t0, t0).missed == 0);
}

TEST_CASE("a calendar counts what was missed", "[scheduler]") {
    recurrence const daily{ax::cron{"0 3 * * *"}};
    auto const first = daily.first(t0);
    REQUIRE(first == t0 + 3h);
    auto const due = daily.latest(*first, t0 + 50h);
    CHECK(due.nominal == t0 + 27h);
    CHECK(due.missed == 1);
}

TEST_CASE("the text form of a cron is short, and a calendar says its steps", "[scheduler]") {
    CHECK(recurrence{ax::cron{"0 3 * * *", "Asia/Shanghai"}}.spec() == "cron ax Asia/Shanghai 0 3 * * *");
    CHECK(recurrence{ax::calendar{ax::cron{"0 3 * * *"}}}.spec() == "cron ax UTC 0 3 * * *");
    CHECK(recurrence{ax::cron{"0 3 * * *", {}, ax::cron_dialect::ax, "name"}}.spec() == "cron ax UTC 0 3 * * *");
    ax::calendar const twice = ax::calendar{ax::cron{"0 3 * * *"}}.also(ax::cron{"0 5 * * *", "Asia/Shanghai"});
    CHECK(recurrence{twice}.spec() == "calendar " + twice.to_string());
    CHECK(recurrence{ax::cron{"H 3 * * *"}}.of_schedule("nightly").spec() ==
          "calendar (cron ax UTC \"H 3 * * *\" \"nightly\")");
}

TEST_CASE("H draws from the schedule's name, where it has none of its own", "[scheduler]") {
    auto const at = [](recurrence const& how) { return how.first(t0); };
    ax::cron const open{"0 H H * * *"};
    CHECK(at(recurrence{open}.of_schedule("a")) == open.named("a").next(t0));
    CHECK(at(recurrence{open}.of_schedule("b")) == open.named("b").next(t0));
    CHECK(at(recurrence{open}.of_schedule("a")) != at(recurrence{open}.of_schedule("b")));
    CHECK(at(recurrence{open.named("mine")}.of_schedule("a")) == open.named("mine").next(t0));
    auto const both = ax::calendar{open}.also(open.named("mine"));
    auto const named = ax::calendar{open.named("a")}.also(open.named("mine"));
    CHECK(recurrence{both}.of_schedule("a").spec() == "calendar " + named.to_string());
    // Of three days one is no day of February: what counts is the value that is drawn.
    ax::cron const late{"0 0 H(29-31) 2 *"};
    std::size_t refused = 0, taken = 0;
    for (char name = 'a'; name != 'q'; ++name) try {
            recurrence{late}.of_schedule(std::string(1, name));
            ++taken;
        } catch (ax::error const&) {
            ++refused;
        }
    CHECK(taken > 0);
    CHECK(refused > 0);
}

TEST_CASE("a calendar that ends has nothing behind its last instant", "[scheduler]") {
    recurrence const thrice{ax::calendar{ax::cron{"0 3 * * *"}}.not_before(t0).at_most(3)};
    CHECK(thrice.first(t0) == t0 + 3h);
    CHECK(thrice.following(t0 + 27h) == t0 + 51h);
    CHECK_FALSE(thrice.following(t0 + 51h).has_value());
    CHECK_FALSE(thrice.first(t0 + 51h).has_value());
    auto const due = thrice.latest(t0 + 3h, t0 + 1000h);
    CHECK(due.nominal == t0 + 51h);
    CHECK(due.missed == 2);
    CHECK(thrice.nearer(std::nullopt, t0 + 4h) == t0 + 27h); // a wrong clock had carried it behind its end
    CHECK_FALSE(thrice.nearer(std::nullopt, t0 + 51h).has_value());
    CHECK_FALSE(recurrence{ax::once{t0}}.nearer(std::nullopt, t0 - 1h).has_value());
    CHECK_FALSE(recurrence{ax::every{1s}}.nearer(std::nullopt, t0).has_value());
}

TEST_CASE("what a cron or calendar has missed is counted as one by one", "[scheduler]") {
    ax::cron const often{"*/7 1-4 * * MON,TUE", "Europe/Berlin"};
    for (auto const& moments : {ax::calendar{often}, ax::calendar{often}.except(ax::cron{"0,14 2 * * *"}).also(often)})
        for (auto const passed : {0min, 1min, 100min, 3000min, 30'000min}) {
            CAPTURE(moments.to_string(), passed.count());
            auto const next = *moments.next(t0);
            auto const now = next + passed;
            auto const due = recurrence{moments}.latest(next, now);
            std::uint64_t missed = 0;
            auto nominal = next;
            for (auto t = moments.next(next); t && *t <= now; t = moments.next(*t), ++missed) nominal = *t;
            CHECK(due.nominal == nominal);
            CHECK(due.missed == missed);
        }
}

TEST_CASE("what would never or always be due is refused", "[scheduler]") {
    CHECK_THROWS_AS(recurrence{ax::every{0s}}, ax::error);
    CHECK_THROWS_AS(recurrence{ax::every{-5s}}, ax::error);
    CHECK_THROWS_AS(recurrence{ax::after_each{0s}}, ax::error);
    CHECK_THROWS_WITH(recurrence{ax::cron{"0 0 30 2 *"}}.of_schedule("s"), Catch::Matchers::Contains("0 0 30 2 *"));
    ax::calendar const daily = ax::cron{"0 3 * * *"};
    CHECK_THROWS_WITH(recurrence{daily.except(daily)}.of_schedule("s"),
                      Catch::Matchers::Contains("(except (cron ax UTC \"0 3 * * *\") (cron"));
    CHECK_THROWS_AS(recurrence{ax::once{ax::time_point{-1ms}}}, ax::error);
}

TEST_CASE("a calendar that was missed for long is made up for once, and the search is short", "[scheduler]") {
    recurrence const each_second{ax::cron{"* * * * * *"}};
    auto const month = t0 + 30 * 24h;
    auto const due = each_second.latest(t0, month);
    CHECK(due.nominal == month);
    CHECK(due.missed == recurrence::most_counted); // at least that many
    CHECK(each_second.following(due.nominal) == month + 1s);
    CHECK(each_second.latest(t0, t0 + 9s).missed == 9);
}

TEST_CASE("occurrences are counted and gone back over", "[scheduler]") {
    recurrence const rate{ax::every{10s}};
    CHECK(rate.preceding(t0) == t0 - 10s);
    CHECK(rate.count(t0, t0 + 29s) == 2);
    CHECK(rate.count(t0, t0 + 30s) == 3);
    CHECK(rate.count(t0, t0) == 0);
    CHECK(rate.count(t0, t0 - 1h) == 0);
    recurrence const daily{ax::cron{"0 3 * * *", "Europe/Berlin"}};
    CHECK(daily.preceding(t0 + 2h) == t0 - 22h);
    CHECK(daily.count(t0 + 2h, t0 + 26h - 1ms) == 0);
    CHECK(daily.count(t0 + 2h, t0 + 26h) == 1);
    CHECK_FALSE(recurrence{ax::cron{"0 0 0 1 1 * 2026"}}.preceding(t0));
    for (auto const& how : {recurrence{ax::after_each{1min}}, recurrence{ax::once{t0}}}) {
        CHECK_FALSE(how.preceding(t0));
        CHECK(how.count(t0, t0 + 24h) == 0);
    }
}

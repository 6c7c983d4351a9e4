// SPDX-License-Identifier: MIT
#include "ax/scheduler/schedule.hpp"

#include "support/catch.hpp"

#include <string>

using namespace std::chrono_literals;
using ax::detail::recurrence;

namespace {
constexpr ax::time_point start{1'767'225'600'000ms}; // 2026-01-01 00:00 UTC
} // namespace

TEST_CASE("a recurrence goes through its text and back", "[scheduler]") {
    for (auto const& how : {recurrence{ax::every{90s}}, recurrence{ax::after_each{5min}}, recurrence{ax::once{start}},
                            recurrence{ax::cron{"0 3 * * *", "Asia/Shanghai"}},
                            recurrence{ax::cron{"30 2 * * 1-5", "Europe/Berlin", ax::cron_dialect::crontab}}}) {
        CAPTURE(how.spec());
        auto const back = recurrence::parse(how.spec());
        CHECK(back.spec() == how.spec());
        CHECK(back.first(start) == how.first(start));
        CHECK(back.waits_for_end() == how.waits_for_end());
    }
}

TEST_CASE("a text that is no recurrence is corrupt", "[scheduler]") {
    for (std::string const text :
         {"", "every", "every x", "every 5 6", "cron", "cron klingon UTC * * * * *", "once 1e3"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(recurrence::parse(text), ax::error);
    }
}

TEST_CASE("a fixed rate counts what was missed", "[scheduler]") {
    recurrence const rate{ax::every{10s}};
    auto const due = rate.latest(start, start + 35s);
    CHECK(due.nominal == start + 30s);
    CHECK(due.missed == 3);
    CHECK(rate.following(due.nominal) == start + 40s);
    CHECK(rate.latest(start, start).nominal == start);
    CHECK(rate.latest(start, start).missed == 0);
}

TEST_CASE("a calendar counts what was missed", "[scheduler]") {
    recurrence const daily{ax::cron{"0 3 * * *"}};
    auto const first = daily.first(start);
    REQUIRE(first == start + 3h);
    auto const due = daily.latest(*first, start + 50h);
    CHECK(due.nominal == start + 27h);
    CHECK(due.missed == 1);
}

TEST_CASE("what would never or always be due is refused", "[scheduler]") {
    CHECK_THROWS_AS(recurrence{ax::every{0s}}, ax::error);
    CHECK_THROWS_AS(recurrence{ax::every{-5s}}, ax::error);
    CHECK_THROWS_AS(recurrence{ax::after_each{0s}}, ax::error);
    CHECK_THROWS_WITH(recurrence{ax::cron{"0 0 30 2 *"}}, Catch::Matchers::Contains("0 0 30 2 *"));
    CHECK_THROWS_AS(recurrence{ax::once{ax::time_point{-1ms}}}, ax::error);
}

TEST_CASE("a calendar that was missed for long is made up for once, and the search is short", "[scheduler]") {
    recurrence const each_second{ax::cron{"* * * * * *"}};
    auto const month = start + 30 * 24h;
    auto const due = each_second.latest(start, month);
    CHECK(due.nominal == month);
    CHECK(due.missed == recurrence::most_counted); // at least that many
    CHECK(each_second.following(due.nominal) == month + 1s);
    CHECK(each_second.latest(start, start + 9s).missed == 9);
}

// SPDX-License-Identifier: MIT
#include "ax/cron/occurrences.hpp"

#include "ax/cron/cron.hpp"

#include "cron/support.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <ranges>
#include <string>
#include <vector>

using cron_test::utc;
using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::year;

namespace {

std::vector<ax::time_point> listed(ax::cron_expression const& e, ax::time_point after, ax::time_point before,
                                   ax::time_zone zone = {}) {
    std::vector<ax::time_point> result;
    for (auto const t : e.occurrences(after, before, zone)) result.push_back(t);
    return result;
}

} // namespace

TEST_CASE("occurrences lie strictly between both ends", "[cron]") {
    auto const e = ax::cron_expression::parse("0 * * * *");
    auto const noon = utc(2026, 5, 17, 12h);
    using list = std::vector<ax::time_point>;
    CHECK(listed(e, noon, noon + 3h) == list{noon + 1h, noon + 2h});
    CHECK(listed(e, noon - 1ms, noon + 3h + 1ms) == list{noon, noon + 1h, noon + 2h, noon + 3h});
    CHECK(listed(e, noon, noon + 1h).empty());
    CHECK(listed(e, noon + 1h, noon).empty());
    CHECK(e.occurrences(noon, noon).empty());
    CHECK(e.count(noon, noon + 3h) == 2);
    CHECK(e.count(noon - 1ms, noon + 3h + 1ms) == 4);
    CHECK(e.count(noon - 1ns, noon + 3h + 1ns) == 4);
    CHECK(e.count(noon, noon + 1h) == 0);
    CHECK(e.count(noon + 5h, noon) == 0);
}

TEST_CASE("occurrences are a forward range that finds each when it is asked for", "[cron]") {
    ax::cron const hourly{"0 * * * *", "Asia/Kolkata"};
    auto const range = hourly.occurrences(utc(1970, 1, 1), utc(2199, 1, 1)); // two million, never listed
    static_assert(std::ranges::forward_range<decltype(range)>);
    auto const first = range.begin();
    auto second = first;
    CHECK(*second++ == utc(1970, 1, 1, 30min));
    CHECK(*second == utc(1970, 1, 1, 90min));
    CHECK(*first == utc(1970, 1, 1, 30min));
    CHECK(first != second);
    CHECK(std::next(first) == second);
    CHECK(second != range.end());
}

TEST_CASE("count answers at once, however many there are", "[cron]") {
    auto const every_second = ax::cron_expression::parse("* * * * * *");
    auto const before_all = (ax::time_point::min)(), after_all = (ax::time_point::max)();
    CHECK(every_second.count(before_all, after_all) == 7'258'118'400);
    CHECK(every_second.count(before_all, after_all, "Europe/Berlin") == 7'258'118'400);
    CHECK(ax::cron_expression::parse("0 0 30 2 *").count(before_all, after_all) == 0);
    CHECK(ax::cron_expression::parse("0 0 29 2 *").count(before_all, after_all) == 56);
    CHECK(ax::cron_expression::parse("30 2 * * *").count(before_all, after_all, "Europe/Berlin") == 84'006);
    CHECK(ax::cron_expression::parse("30 2 * * *").count(before_all, after_all, "Pacific/Apia") == 84'005); // one less
}

TEST_CASE("count is the number of occurrences that a loop meets, in zones with odd changes", "[cron]") {
    auto const* const name =
        GENERATE("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana", "Pacific/Apia",
                 "Africa/Casablanca", "America/Nuuk", "Africa/Monrovia", "Asia/Pyongyang", "Pacific/Kwajalein",
                 "Antarctica/Troll", "America/Caracas", "Antarctica/Casey", "Asia/Gaza");
    ax::time_zone const zone{name};
    char const* const texts[] = {
        "30 2 * * *",         "*/15 * * * *",          "0 0 * * *",      "15,45 0-4,22,23 * * *", "30 23 * * *",
        "0 0-23 * * *",       "7 */3 1-15 * +1-5",     "0 0 LW * *",     "30 0 0 * * 5L",         "*/20 30 1 * * *",
        "0 12 29,30,31 12 *", "0 0 0 1 1 ? 1970-2010", "59 59 23 L * ?",
    };
    std::mt19937_64 random(5);
    for (auto const* text : texts) {
        auto const e = ax::cron_expression::parse(text);
        for (int i = 0; i < 12; ++i) {
            // Half of them begin or end in the neighbourhood of a change.
            ax::time_point from{std::chrono::seconds{static_cast<std::int64_t>(random() % 2'000'000'000)}};
            if (auto const change = zone.next_transition(from); change && i % 2 == 0)
                from = change->at - 2h + std::chrono::seconds{random() % 14'400};
            auto const to = from + std::chrono::seconds{random() % 40'000'000};
            std::uint64_t expected = 0;
            for (auto t = e.next(from, zone); t && *t < to; t = e.next(*t, zone)) ++expected;
            CAPTURE(name, text, from.time_since_epoch().count(), to.time_since_epoch().count());
            REQUIRE(e.count(from, to, zone) == expected);
        }
    }
}

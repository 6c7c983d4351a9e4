// SPDX-License-Identifier: MIT
#include "ax/scheduler/detail/spread.hpp"

#include "ax/scheduler/schedule.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <array>
#include <string>

using namespace std::chrono_literals;
using ax::detail::recurrence;
using ax::detail::shortest_distance;
using ax::detail::spread_offset;
using test::t0;

TEST_CASE("a spread offset is the same for ever", "[scheduler]") {
    // Stores rely on these: an offset that changed with a release would run everything at another time.
    CHECK(spread_offset("", 30s) == 19'008ms);
    CHECK(spread_offset("nightly", 30s) == 392ms);
    CHECK(spread_offset("nightly", 30min) == 330'392ms);
    CHECK(spread_offset("nightly-2", 30min) == 106'925ms);
    CHECK(spread_offset("\xC3\xA4", 24h) == 83'062'666ms); // bytes above 127 count as they are, whatever char is
}

TEST_CASE("a spread offset lies within its window", "[scheduler]") {
    for (auto const window : {1ms, 2ms, 1'000ms, 86'400'000ms}) {
        for (int i = 0; i != 1'000; ++i) {
            auto const offset = spread_offset("schedule-" + std::to_string(i), window);
            CHECK(offset >= 0ms);
            CHECK(offset < window);
        }
    }
    CHECK(spread_offset("nightly", 0ms) == 0ms);
    CHECK(spread_offset("nightly", -5ms) == 0ms);
    CHECK(spread_offset("nightly", ax::duration::max()) >= 0ms);
}

TEST_CASE("spread offsets of names that differ little lie apart", "[scheduler]") {
    std::array<int, 10> tenths{};
    for (int i = 0; i != 10'000; ++i)
        ++tenths[static_cast<std::size_t>(spread_offset("tenant-" + std::to_string(i), 10s) / 1s)];
    for (auto const n : tenths) {
        CHECK(n > 900); // even would be 1,000
        CHECK(n < 1'100);
    }
}

TEST_CASE("the shortest distance between occurrences", "[scheduler]") {
    CHECK(shortest_distance(recurrence{ax::every{90s}}, t0) == 90s);
    CHECK(shortest_distance(recurrence{ax::after_each{5min}}, t0) == 5min);
    CHECK_FALSE(shortest_distance(recurrence{ax::once{t0 + 1h}}, t0));
    CHECK(shortest_distance(recurrence{ax::cron{"0 3 * * *"}}, t0) == 24h);
    CHECK(shortest_distance(recurrence{ax::cron{"*/7 * * * *"}}, t0) == 4min); // 56 to 60
    CHECK(shortest_distance(recurrence{ax::cron{"0 0 1 * *"}}, t0) == 28 * 24h);
    CHECK(shortest_distance(recurrence{ax::cron{"0 0 29 2 *"}}, t0) == 1461 * 24h);
    CHECK_FALSE(shortest_distance(recurrence{ax::cron{"0 0 0 1 6 * 2030"}}, t0)); // one occurrence
    // The day on which the clocks go forward has 23 hours, three months later than a look at 64 days would see.
    CHECK(shortest_distance(recurrence{ax::cron{"0 12 * * *", "Europe/Berlin"}}, t0 - 260 * 24h) == 23h);
}

TEST_CASE("a spread as long as the period is refused", "[scheduler]") {
    auto const check = [](recurrence const& how, ax::duration window) {
        ax::detail::check_spread("nightly", how, window, t0);
    };
    recurrence const rate{ax::every{30s}};
    CHECK_NOTHROW(check(rate, 0ms));
    CHECK_NOTHROW(check(rate, 29'999ms));
    CHECK_THROWS_WITH(check(rate, 30s), Catch::Matchers::Contains("nightly") && Catch::Matchers::Contains("30000 ms"));
    CHECK_THROWS_AS(check(recurrence{ax::cron{"0 3 * * *"}}, 24h), ax::error);
    CHECK_NOTHROW(check(recurrence{ax::cron{"0 3 * * *"}}, 24h - 1ms));
    CHECK_THROWS_AS(check(recurrence{ax::after_each{1min}}, 1min), ax::error);
    CHECK_NOTHROW(check(recurrence{ax::once{t0}}, 24h));
}

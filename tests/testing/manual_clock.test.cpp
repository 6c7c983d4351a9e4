// SPDX-License-Identifier: MIT
#include "ax/testing/manual_clock.hpp"

#include "support/catch.hpp"

using namespace std::chrono_literals;

TEST_CASE("manual_clock stands still until it is moved", "[testing]") {
    ax::testing::manual_clock clock{ax::time_point{5s}};
    CHECK(clock.now() == ax::time_point{5s});
    CHECK(clock.steady() == 0ms);
    clock.advance(1500us);
    CHECK(clock.now() == ax::time_point{5002ms});
    CHECK(clock.steady() == 2ms);
}

TEST_CASE("manual_clock steps its wall time without its steady time", "[testing]") {
    ax::testing::manual_clock clock;
    clock.advance(10s);
    clock.set(ax::time_point{1s});
    CHECK(clock.now() == ax::time_point{1s});
    CHECK(clock.steady() == 10s);
}

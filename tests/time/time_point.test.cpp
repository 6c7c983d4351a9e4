// SPDX-License-Identifier: MIT
#include "ax/time/time_point.hpp"

#include "support/catch.hpp"

#include <limits>

using namespace std::chrono_literals;

TEST_CASE("time_span takes any duration and rounds up to milliseconds", "[time]") {
    CHECK(ax::time_span{15min}.value() == 900'000ms);
    CHECK(ax::time_span{1us}.value() == 1ms);
    CHECK(ax::time_span{1000us}.value() == 1ms);
    CHECK(ax::time_span{1001us}.value() == 2ms);
    CHECK(ax::time_span{-1us}.value() == 0ms);
    CHECK(ax::time_span{std::chrono::duration<double>{0.0005}}.value() == 1ms);
    CHECK(ax::time_span{std::chrono::duration<double>{1.5}}.value() == 1500ms);
}

TEST_CASE("time_span stops at the ends of its range", "[time]") {
    CHECK(ax::time_span{std::chrono::hours::max()}.value() == ax::duration::max());
    CHECK(ax::time_span{std::chrono::hours::min()}.value() == ax::duration::min());
    CHECK(ax::time_span{std::chrono::duration<double>{1e300}}.value() == ax::duration::max());
    CHECK(ax::time_span{std::chrono::duration<double>{-1e300}}.value() == ax::duration::min());
}

TEST_CASE("time_span refuses what is not a number", "[time]") {
    using seconds = std::chrono::duration<double>;
    CHECK_THROWS_AS(ax::time_span{seconds{std::numeric_limits<double>::quiet_NaN()}}, ax::error);
}

TEST_CASE("instant rounds a finer time point up", "[time]") {
    std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds> const fine{1'000'001us};
    CHECK(ax::instant{fine}.value() == ax::time_point{1001ms});
}

TEST_CASE("saturating_add stops at the ends", "[time]") {
    using ax::detail::saturating_add;
    CHECK(saturating_add(ax::time_point::max(), 1ms) == ax::time_point::max());
    CHECK(saturating_add(ax::time_point::min(), -1ms) == ax::time_point::min());
    CHECK(saturating_add(ax::time_point{5ms}, -2ms) == ax::time_point{3ms});
}

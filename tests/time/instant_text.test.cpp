// SPDX-License-Identifier: MIT
#include "ax/time/instant_text.hpp"

#include "support/catch.hpp"

TEST_CASE("an instant is written as ISO 8601 in UTC, with milliseconds where it has some", "[time]") {
    CHECK(ax::to_text(ax::time_point{ax::duration{0}}) == "1970-01-01T00:00:00Z");
    CHECK(ax::to_text(ax::time_point{ax::duration{1'774'747'800'000}}) == "2026-03-29T01:30:00Z");
    CHECK(ax::to_text(ax::time_point{ax::duration{1'774'747'800'007}}) == "2026-03-29T01:30:00.007Z");
    CHECK(ax::to_text(ax::time_point{ax::duration{253'402'300'799'999}}) == "9999-12-31T23:59:59.999Z");
    CHECK(ax::to_text(ax::time_point{ax::duration{951'782'400'000}}) == "2000-02-29T00:00:00Z");
}

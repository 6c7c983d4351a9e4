// SPDX-License-Identifier: MIT
#include "ax/retry/verdict.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <exception>
#include <string>
#include <type_traits>

using namespace std::chrono_literals;

TEST_CASE("the verdicts carry their delay in milliseconds, rounded up", "[retry]") {
    CHECK(ax::retry_after{30s}.delay() == 30'000ms);
    CHECK(ax::retry_after{1us}.delay() == 1ms);
    CHECK(ax::snooze{5min}.delay() == 300'000ms);
    CHECK(ax::snooze{1001us}.delay() == 2ms);
}

TEST_CASE("a verdict for an instant that has passed means now", "[retry]") {
    CHECK(ax::retry_after{-1s}.delay() == 0ms);
    CHECK(ax::snooze{-1s}.delay() == 0ms);
}

TEST_CASE("the verdicts carry their reason and are caught as exceptions", "[retry]") {
    auto const reason = [](auto const& thrown) -> std::string {
        try {
            throw thrown;
        } catch (std::exception const& e) {
            return e.what();
        }
    };
    CHECK(reason(ax::give_up{"no such order"}) == "no such order");
    CHECK(reason(ax::skip{"nothing to do"}) == "nothing to do");
    CHECK(reason(ax::retry_after{1s, "429"}) == "429");
    CHECK(reason(ax::snooze{1s, "shop closed"}) == "shop closed");
    CHECK_FALSE(reason(ax::retry_after{1s}).empty());
    CHECK_FALSE(reason(ax::snooze{1s}).empty());
}

TEST_CASE("copying a verdict cannot throw", "[retry]") { // the runtime copies it while it is in flight
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<ax::retry_after>);
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<ax::snooze>);
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<ax::give_up>);
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<ax::skip>);
    STATIC_REQUIRE(std::is_base_of_v<ax::verdict, ax::skip>);
}

// SPDX-License-Identifier: MIT
#include "ax/time/clock.hpp"

#include "support/catch.hpp"

namespace {

struct coarse_clock { // whole seconds, and every member const: it may be used from any thread
    std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds> now() const { return {}; }
    ax::duration steady() const { return {}; }
};

struct clock_without_steady {
    ax::time_point now() const { return {}; }
};

struct clock_that_changes {
    ax::time_point now() { return {}; }
    ax::duration steady() { return {}; }
};

} // namespace

TEST_CASE("a clock tells wall time in any precision, and steady time in milliseconds, without being changed",
          "[time]") {
    static_assert(ax::clock<ax::system_clock>);
    static_assert(ax::clock<coarse_clock>);
    static_assert(!ax::clock<clock_without_steady>);
    static_assert(!ax::clock<clock_that_changes>);
    static_assert(!ax::clock<std::chrono::steady_clock>);
    SUCCEED();
}

TEST_CASE("the machine's clock is the system's, and its steady time never goes back", "[time]") {
    ax::system_clock const clock;
    auto const apart = clock.now() - std::chrono::system_clock::now();
    CHECK((apart < std::chrono::hours{1} && apart > -std::chrono::hours{1}));
    auto last = clock.steady();
    CHECK(last.count() > 0);
    for (int i = 0; i < 1'000; ++i) {
        auto const next = clock.steady();
        REQUIRE(next >= last);
        last = next;
    }
}

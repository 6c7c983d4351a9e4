// SPDX-License-Identifier: MIT
#include "ax/time/clock.hpp"

#include "support/catch.hpp"

TEST_CASE("system_clock shows the machine's wall time, and a steady time that never goes back", "[time]") {
    ax::system_clock const clock;
    auto const before = std::chrono::system_clock::now();
    auto const shown = clock.now();
    CHECK(shown >= before);
    CHECK(shown <= std::chrono::system_clock::now());
    auto last = clock.steady();
    for (int i = 0; i != 1'000; ++i) {
        auto const next = clock.steady();
        REQUIRE(next >= last);
        last = next;
    }
}

// SPDX-License-Identifier: MIT
#include "ax/core/random.hpp"

#include "support/catch.hpp"

#include <set>

TEST_CASE("splitmix64 gives the published sequence", "[core]") {
    ax::splitmix64 from_zero{0}; // the reference values of SplitMix64 for the seed 0
    CHECK(from_zero() == 0xE220A8397B1DCDAFU);
    CHECK(from_zero() == 0x6E789E6AA1B965F4U);
    CHECK(from_zero() == 0x06C45D188009454FU);
}

TEST_CASE("system_random never repeats and is never zero", "[core]") {
    std::set<std::uint64_t> seen;
    for (int i = 0; i != 1'000; ++i) seen.insert(ax::system_random());
    CHECK(seen.size() == 1'000);
    CHECK_FALSE(seen.contains(0));
}

// SPDX-License-Identifier: MIT
#include "ax/core/random.hpp"

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

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

TEST_CASE("a forked process draws other numbers than its parent", "[core]") {
    ax::system_random(); // were there a state, it would be copied now
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    constexpr std::size_t count = 100;
    auto const child = ::fork();
    REQUIRE(child >= 0);
    std::array<std::uint64_t, count> drawn{};
    for (auto& number : drawn) number = ax::system_random();
    if (child == 0) ::_exit(::write(ends[1], drawn.data(), sizeof drawn) == sizeof drawn ? 0 : 1);
    std::array<std::uint64_t, count> of_child{};
    CHECK(::read(ends[0], of_child.data(), sizeof of_child) == sizeof of_child);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    std::set<std::uint64_t> all(drawn.begin(), drawn.end());
    all.insert(of_child.begin(), of_child.end());
    CHECK(all.size() == 2 * count);
}

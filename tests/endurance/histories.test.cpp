// SPDX-License-Identifier: MIT
// Many short random histories of one to three nodes. A failure prints its seed and how many nodes there were, which
// AX_SEED=17 AX_HISTORIES=1 repeats exactly; AX_HISTORIES says how many there are in all four parts together.
#include "testing/random_life.hpp"

#include "endurance/support.hpp"
#include "support/catch.hpp"
#include "testing/seeds.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace {

/// Every fourth of them, so that four cores have something to do.
void every_fourth_history(std::uint64_t part) {
    auto const all = seeds::chosen(endurance::sanitized ? 2'000 : 100'000);
    std::size_t histories = 0;
    std::size_t starts = 0;
    std::size_t takeovers = 0;
    for (auto seed = all.first + part; seed < all.end(); seed += 4) {
        random_life::simulation sim{random_life::bad_world(seed, 1 + seed % 3)};
        random_life::live(sim, std::chrono::minutes{1});
        sim.run_for(std::chrono::minutes{10});
        random_life::end(sim, std::chrono::hours{1});
        if (!sim.sound() || !sim.store().check_invariants().empty()) {
            INFO(sim.report());
            INFO(sim.store().check_invariants());
            FAIL("AX_SEED=" << seed << " AX_HISTORIES=1 repeats it");
        }
        ++histories;
        starts += sim.starts();
        takeovers += sim.takeovers();
    }
    CAPTURE(histories, starts, takeovers);
    CHECK(starts >= histories);
    if (histories < 100) return;
    CHECK(starts > histories * 3); // 2 nodes each on average, and they come back
    CHECK(takeovers > histories / 4);
}

} // namespace

TEST_CASE("100,000 random histories break no promise, part 1 of 4", "[endurance][simulation]") {
    every_fourth_history(0);
}
TEST_CASE("100,000 random histories break no promise, part 2 of 4", "[endurance][simulation]") {
    every_fourth_history(1);
}
TEST_CASE("100,000 random histories break no promise, part 3 of 4", "[endurance][simulation]") {
    every_fourth_history(2);
}
TEST_CASE("100,000 random histories break no promise, part 4 of 4", "[endurance][simulation]") {
    every_fourth_history(3);
}

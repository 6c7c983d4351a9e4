// SPDX-License-Identifier: MIT
// Random histories on SQLite: what the simulation finds no fault in, memory_storage alone has not made so.
#include "ax/testing/simulation.hpp"
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"
#include "testing/seeds.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr ax::task_type<> after{"after"};
constexpr ax::task_type<> narrow{"narrow"};

} // namespace

TEST_CASE("random histories on SQLite break no promise", "[testing][simulation][sqlite]") {
    using sqlite_simulation = ax::testing::simulation<ax::sqlite_storage>;
    auto const all = seeds::chosen(10);
    std::size_t starts = 0;
    for (auto seed = all.first; seed != all.end(); ++seed) {
        sqlite_fixture fixture;
        ax::testing::world bad{.seed = seed, .crash = 0.01, .clock_jump = 0.01};
        bad.settings.durability = ax::durability::process_crash; // nobody pulls the plug
        sqlite_simulation sim{bad, fixture.open()};
        sim.judge().limit_type("narrow", 2);
        sim.at_start([&](auto& tasks) {
            auto const busy = [&sim](ax::context& ctx) {
                ctx.submit(after, {}, {.key = "after-" + std::to_string(to_number(ctx.task().id))});
                if (sim.draw(2) == 0) sim.work(ax::duration{static_cast<std::int64_t>(sim.draw(20'000))});
                if (sim.draw(6) == 0) throw std::runtime_error("it failed");
            };
            tasks.on(after, [] {});
            tasks.on(narrow, busy, {.retry = ax::retry::fixed(20s).attempts(4), .concurrency = 2});
            tasks.schedule("minutes", ax::every{5min}, narrow);
        });
        sim.each(4min, [&sim](auto& tasks) {
            if (sim.draw(2) == 0)
                tasks.submit_all(narrow, std::vector<ax::no_payload>(3));
            else
                tasks.submit(narrow, {}, {.route_key = "one"});
        });
        sim.run_for(30min);
        if (sim.sound()) sim.settle_all(24h);
        starts += sim.starts();
        INFO(sim.report());
        REQUIRE(sim.sound());
        CHECK(sim.store().verify().empty());
    }
    CHECK(starts > all.count);
}

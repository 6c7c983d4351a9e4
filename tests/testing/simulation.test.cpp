// SPDX-License-Identifier: MIT
// Random histories of the scheduler of production, judged. AX_HISTORIES says how many; AX_SEED which is the first.
#include "ax/testing/simulation.hpp"

#include "support/catch.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using ax::testing::fault;
using ax::testing::world;
using simulation = ax::testing::simulation<>;
using tasks_type = simulation::scheduler_type;

namespace {

constexpr ax::task_type<> plain{"plain"};
constexpr ax::task_type<> routed{"routed"};
constexpr ax::task_type<> limited{"limited"};
constexpr ax::task_type<> periodic{"periodic"};
constexpr ax::task_type<> member{"member"};

std::uint64_t number_from(char const* name, std::uint64_t otherwise) {
    char const* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// A short life of all that a scheduler has.
void live(simulation& sim) {
    sim.judge().limit_type("limited", 2);
    sim.judge().limit_tag("tenant", 3);
    auto const busy = [&sim](ax::context&) {
        if (sim.draw(3) == 0) sim.work(ax::duration{static_cast<std::int64_t>(sim.draw(20'000))});
        switch (sim.draw(12)) {
        case 0: throw std::runtime_error("it failed");
        case 1: throw ax::snooze{30s};
        case 2: throw ax::give_up{"it gave up"};
        default: return;
        }
    };
    sim.at_start([&sim, busy](tasks_type& tasks) {
        ax::handler_options const how{.retry = ax::retry::fixed(20s).attempts(4)};
        tasks.limit_tag("tenant", {.concurrency = 3});
        tasks.on(plain, busy, how);
        tasks.on(routed, busy, how);
        tasks.on(limited, busy, {.retry = ax::retry::fixed(20s).attempts(3), .concurrency = 2});
        tasks.on(periodic, busy, how);
        tasks.on(member, busy, how);
        tasks.schedule("minutes", ax::every{5min}, periodic);
        tasks.schedule("pauses", ax::after_each{7min}, periodic);
        tasks.schedule("hours", ax::cron{"0 * * * *"}, periodic, {}, {.misfire = ax::misfire::run_all(3)});
    });
    sim.each(4min, [&sim](tasks_type& tasks) {
        switch (sim.draw(6)) {
        case 0: tasks.submit(plain, {}, {.delay = ax::duration{static_cast<std::int64_t>(sim.draw(600'000))}}); break;
        case 1:
            for (int i = 0; i != 3; ++i)
                tasks.submit(routed, {}, {.route_key = sim.draw(2) == 0 ? "left" : "right"});
            break;
        case 2:
            for (int i = 0; i != 4; ++i) tasks.submit(limited, {}, {.tags = {"tenant"}});
            break;
        case 3: {
            auto const id = tasks.submit(plain, {}, {.key = "only", .delay = 3min, .tags = {"tenant"}}).id;
            if (sim.draw(2) == 0) tasks.cancel(id);
            break;
        }
        case 4: {
            ax::workflow whole{"whole"};
            auto const begin = whole.add(member);
            auto const left = whole.add(member, {}, {.after = {begin}});
            auto const right = whole.add(plain, {}, {.after = {begin}});
            whole.add(member, {}, {.after = {left, right}});
            tasks.submit(whole);
            break;
        }
        default:
            if (sim.draw(2) == 0)
                tasks.pause(plain);
            else
                tasks.resume(plain);
        }
    });
}

} // namespace

TEST_CASE("random histories break no promise", "[testing][simulation]") {
    auto const first = number_from("AX_SEED", 1);
    auto const count = number_from("AX_HISTORIES", 60);
    std::size_t starts = 0;
    std::size_t events = 0;
    for (auto seed = first; seed != first + count; ++seed) {
        simulation sim{{.seed = seed, .crash = 0.01, .clock_jump = 0.01}};
        live(sim);
        sim.run_for(1h);
        if (sim.sound()) {
            sim.plan().on(false);
            sim.live().resume(plain);
            sim.settle_all(24h);
        }
        starts += sim.starts();
        events += sim.judge().events();
        INFO(sim.report());
        REQUIRE(sim.sound());
        CHECK(sim.store().check_invariants().empty());
    }
    CHECK(starts > count); // it is no calm world
    CHECK(events > 20 * count);
}

// SPDX-License-Identifier: MIT
// Random histories of the scheduler of production, judged. AX_HISTORIES says how many; AX_SEED which is the first.
#include "ax/testing/simulation.hpp"

#include "support/catch.hpp"
#include "testing/seeds.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

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
    sim.at_start([busy](tasks_type& tasks) {
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
            for (int i = 0; i != 3; ++i) tasks.submit(routed, {}, {.route_key = sim.draw(2) == 0 ? "left" : "right"});
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
    auto const nodes = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3});
    auto const all = seeds::chosen(nodes == 1 ? 50 : 25);
    std::size_t starts = 0;
    std::size_t events = 0;
    std::size_t takeovers = 0;
    for (auto seed = all.first; seed != all.end(); ++seed) {
        simulation sim{{.seed = seed, .nodes = nodes, .crash = 0.01, .freeze = 0.01, .clock_jump = 0.01}};
        live(sim);
        sim.run_for(1h);
        if (sim.sound()) {
            sim.plan().on(false);
            sim.live().resume(plain);
            sim.settle_all(24h);
        }
        starts += sim.starts();
        events += sim.judge().events();
        takeovers += sim.takeovers();
        CAPTURE(nodes);
        INFO(sim.report());
        REQUIRE(sim.sound());
        CHECK(sim.store().check_invariants().empty());
    }
    CHECK(starts > nodes * all.count); // it is no calm world
    CHECK(events > 20 * all.count);
    if (nodes == 1) CHECK(takeovers == 0);
    if (nodes != 1) CHECK(takeovers > all.count / 2);
}

TEST_CASE("a seed replays exactly", "[testing][simulation]") {
    auto const course = [](std::uint64_t seed) {
        simulation sim{{.seed = seed, .crash = 0.01, .clock_jump = 0.01}};
        live(sim);
        std::string all;
        sim.on_event([&](ax::event const& e) {
            all += std::to_string(e.at.time_since_epoch().count()) + ' ' + to_string(e.kind) + ' ' +
                   std::to_string(to_number(e.id)) + '\n';
        });
        sim.run_for(2h);
        return all + sim.report();
    };
    auto const once = course(5);
    CHECK(once.size() > 1'000);
    CHECK(course(5) == once);
    CHECK(course(6) != once);
}

TEST_CASE("a promise that is broken ends the run, and the report begins with the seed", "[testing][simulation]") {
    simulation sim{world::calm(11)};
    sim.judge().limit_type("limited", 2);
    sim.at_start([&sim](tasks_type& tasks) {
        tasks.on(limited, [&sim] { sim.work(1s); }); // whoever wrote this has forgotten the limit
    });
    sim.each(1min, [](tasks_type& tasks) { tasks.submit_all(limited, std::vector<ax::no_payload>(5)); });
    sim.run_for(24h);
    CHECK_FALSE(sim.sound());
    CHECK(sim.report().rfind("seed 11, step ", 0) == 0);
    CHECK(sim.report().find("tasks are in flight of type \"limited\", and 2 may be") != std::string::npos);
    CHECK(sim.clock().now() < ax::time_point{ax::duration{1'767'225'600'000}} + 1h);
}

TEST_CASE("a task that nobody can run is found at the end", "[testing][simulation]") {
    simulation sim{world::calm()};
    sim.at_start([](tasks_type&) {});
    sim.live().submit(plain);
    sim.settle(1h);
    CHECK(sim.judge().faults() == std::vector<std::string>{"task 1 is due and has not run"});
}

TEST_CASE("in a calm world nothing happens but what was asked for", "[testing][simulation]") {
    simulation sim{world::calm()};
    int runs = 0;
    sim.at_start([&](tasks_type& tasks) {
        tasks.on(periodic, [&] { ++runs; });
        tasks.schedule("hours", ax::every{1h}, periodic);
    });
    sim.run_for(24h * 10 + 1min);
    CHECK(runs == 240);
    CHECK(sim.starts() == 1);
    sim.settle(1h);
    INFO(sim.report());
    CHECK(sim.sound());
}

TEST_CASE("a crash that is written down comes at its commit", "[testing][simulation]") {
    auto const what = GENERATE(fault::crash_before, fault::crash_after, fault::lost_reply, fault::busy);
    CAPTURE(to_string(what));
    simulation sim{world::calm()};
    int runs = 0;
    sim.at_start([&](tasks_type& tasks) { tasks.on(plain, [&] { ++runs; }); });
    auto const id = sim.live().submit(plain).id;
    sim.plan().at("settle", 1, what);
    sim.settle_all(1h);
    INFO(sim.report());
    CHECK(sim.sound());
    CHECK(sim.store().find(id)->state == ax::task_state::succeeded);
    CHECK(runs == (what == fault::crash_before ? 2 : 1));
    CHECK(sim.starts() == (what == fault::crash_before || what == fault::crash_after ? 2 : 1));
    CHECK(sim.plan().happened(what) == 1);
}

// SPDX-License-Identifier: MIT
// Random histories of the scheduler of production, judged. AX_HISTORIES says how many; AX_SEED which is the first.
#include "ax/testing/simulation.hpp"

#include "support/catch.hpp"
#include "testing/random_life.hpp"
#include "testing/seeds.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ax::testing::fault;
using ax::testing::world;
using random_life::bad_world;
using random_life::limited;
using random_life::live;
using random_life::periodic;
using random_life::plain;
using random_life::simulation;
using random_life::tasks_type;

TEST_CASE("random histories break no promise", "[testing][simulation]") {
    auto const nodes = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3});
    auto const all = seeds::chosen(nodes == 1 ? 50 : 25);
    std::size_t starts = 0;
    std::size_t events = 0;
    std::size_t takeovers = 0;
    for (auto seed = all.first; seed != all.end(); ++seed) {
        simulation sim{bad_world(seed, nodes)};
        live(sim);
        sim.run_for(1h);
        random_life::end(sim);
        starts += sim.starts();
        events += sim.judge().events();
        takeovers += sim.takeovers();
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
    auto const nodes = GENERATE(std::size_t{1}, std::size_t{3});
    auto const course = [nodes](std::uint64_t seed) {
        simulation sim{bad_world(seed, nodes)};
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

TEST_CASE("a node that stands still for longer than its lease loses its task, and what it reports is refused",
          "[testing][simulation]") {
    auto calm = world::calm();
    calm.nodes = 2;
    simulation sim{calm};
    int runs = 0;
    std::vector<std::string> events;
    std::vector<std::size_t> nodes;
    bool const in_time = GENERATE(false, true);
    auto const pause = in_time ? calm.lease.value() - 1ms : ax::duration{30min};
    sim.on_event([&](ax::event const& e) {
        if (events.empty()) sim.freeze(sim.node(), pause); // it has claimed the task, and not begun
        events.emplace_back(to_string(e.kind));
        nodes.push_back(sim.node());
    });
    sim.at_start([&](tasks_type& tasks) { tasks.on(plain, [&] { ++runs; }); });
    auto const id = sim.live().submit(plain).id;
    sim.run_for(1h);
    CHECK(sim.takeovers() == (in_time ? 0 : 1));
    if (in_time) {
        CHECK(events == std::vector<std::string>{"picked up", "dispatched", "reported"});
        CHECK(runs == 1);
    } else {
        CHECK(events ==
              std::vector<std::string>{"picked up", "picked up", "dispatched", "reported", "dispatched", "refused"});
        CHECK(nodes == std::vector{nodes[0], 1 - nodes[0], 1 - nodes[0], 1 - nodes[0], nodes[0], nodes[0]});
        CHECK(runs == 2);
        REQUIRE(sim.store().history(id).size() == 2);
        CHECK(sim.store().history(id)[0].outcome == ax::attempt_outcome::crashed);
        CHECK(sim.store().history(id)[1].outcome == ax::attempt_outcome::succeeded);
    }
    CHECK(sim.starts() == 2);
    sim.settle_all(1h);
    INFO(sim.report());
    CHECK(sim.sound());
}

TEST_CASE("a node that comes up leaves to the others what they run, and takes what its former self had",
          "[testing][simulation]") {
    auto calm = world::calm();
    calm.nodes = 2;
    calm.lease = 24h; // nobody waits for that
    simulation sim{calm};
    int runs = 0;
    sim.at_start([&](tasks_type& tasks) {
        tasks.on(plain, [&] {
            ++runs;
            sim.crash(1 - sim.node()); // and it comes up while this one works
            sim.work(1h);
        });
        tasks.on(random_life::member, [&] {});
    });
    SECTION("of the others") {
        auto const id = sim.live().submit(plain).id;
        sim.run_for(2h);
        CHECK(runs == 1);
        CHECK(sim.store().find(id)->attempts == 1);
        CHECK(sim.starts() == 3);
    }
    SECTION("of its own") {
        auto const id = sim.live().submit(random_life::member).id;
        sim.plan().at("claim", 1, fault::crash_after);
        sim.run_for(2min);
        CHECK(sim.store().find(id)->attempts == 2);
        CHECK(sim.store().find(id)->state == ax::task_state::succeeded);
        CHECK(sim.starts() == 3);
    }
    CHECK(sim.takeovers() == 0);
    sim.settle_all(1h);
    INFO(sim.report());
    CHECK(sim.sound());
}

TEST_CASE("what another node meets while a handler works passes out of the run, and not into the handler",
          "[testing][simulation]") {
    auto calm = world::calm();
    calm.nodes = 2;
    simulation sim{calm};
    bool passed = false;
    sim.at_start([&](tasks_type& tasks) {
        if (sim.starts() == 3) throw std::runtime_error("the test is wrong");
        tasks.on(plain, [&] {
            sim.crash(1 - sim.node());
            sim.work(1h);
            passed = true;
        });
    });
    auto const id = sim.live().submit(plain).id;
    CHECK_THROWS_AS(sim.run_for(1h), std::runtime_error);
    CHECK(passed);
    sim.settle_all(1h);
    CHECK(sim.store().find(id)->attempts == 1);
    CHECK(sim.sound());
}

TEST_CASE("a world that cannot be is refused", "[testing][simulation]") {
    CHECK_THROWS_AS(simulation{{.nodes = 0}}, ax::error);
    CHECK_THROWS_AS(simulation{{.lease = 0s}}, ax::error);
    simulation sim;
    CHECK_THROWS_AS(sim.live(1), std::out_of_range);
}

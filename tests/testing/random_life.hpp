// SPDX-License-Identifier: MIT
// A random history of all that a scheduler has, from one seed.
#pragma once

#include "ax/testing/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace random_life {

using namespace std::chrono_literals;
using simulation = ax::testing::simulation<>;
using tasks_type = simulation::scheduler_type;

inline constexpr ax::task_type<> plain{"plain"};
inline constexpr ax::task_type<> routed{"routed"};
inline constexpr ax::task_type<> limited{"limited"};
inline constexpr ax::task_type<> periodic{"periodic"};
inline constexpr ax::task_type<> member{"member"};

/// A short life of all that a scheduler has.
/// @param mean  How often somebody asks for something.
inline void live(simulation& sim, ax::time_span mean = 4min) {
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
    sim.each(mean, [&sim](tasks_type& tasks) {
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

/// A very bad world.
inline ax::testing::world bad_world(std::uint64_t seed, std::size_t nodes) {
    return {.seed = seed, .nodes = nodes, .crash = 0.01, .freeze = 0.01, .clock_jump = 0.01};
}

/// What a schedule says of itself is what is there.
inline void count_occurrences(simulation& sim) {
    ax::task_filter all;
    all.limit = 1'000'000;
    auto const tasks = sim.store().list(all, sim.clock().now());
    for (auto const& one : sim.store().schedules()) {
        auto const made = std::ranges::count(tasks, one.name, &ax::task_record::schedule);
        if (one.fired != static_cast<std::uint64_t>(made))
            sim.judge().fault("schedule \"" + one.name + "\" counts " + std::to_string(one.fired) + " occurrences of " +
                              std::to_string(made));
    }
}

/// What is left is done, and judged.
inline void end(simulation& sim, ax::time_span span = 3h) {
    count_occurrences(sim);
    if (!sim.sound()) return;
    sim.plan().on(false);
    sim.live().resume(plain);
    sim.settle_all(span);
}

} // namespace random_life

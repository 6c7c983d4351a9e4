// SPDX-License-Identifier: MIT
// A wall clock that is stepped: nothing is early, nothing is lost.
#include "scheduler/support.hpp"

#include <map>

using namespace test;

TEST_CASE("a clock set back an hour: pending tasks keep their instants", "[scheduler][clock]") {
    bench b;
    std::map<int, ax::time_point> runs;
    b->on(shipping, [&](parcel const& p) { runs[p.number] = b.now(); });
    auto const start = b.now();
    std::map<int, ax::time_point> due;
    for (int i = 0; i != 200; ++i) {
        due[i] = start + i * 30s;
        b->submit(shipping, {i, ""}, {.run_at = due[i]});
    }
    b.run_for(10min + 5s);
    auto const done = runs.size();
    CHECK(done == 21);
    b.clock.set(b.now() - 1h);
    b.run_for(1h - 10s);
    CHECK(runs.size() == done);
    b.run_for(3h);
    REQUIRE(runs.size() == 200);
    for (auto const& [i, at] : runs) {
        CAPTURE(i);
        CHECK(at == due[i]);
    }
}

TEST_CASE("a clock set back in small steps counts like one step", "[scheduler][clock]") {
    bench b;
    std::optional<ax::time_point> ran;
    b->on(probe, [&] { ran = b.now(); });
    auto const due = b.now() + 60s;
    b->submit(probe, {}, {.run_at = due});
    b.run_for(59s);
    for (int i = 0; i != 100; ++i) {
        b.clock.set(b.now() - 90ms);
        b.poll();
        CHECK_FALSE(ran.has_value());
    }
    // At 50 s now; the wheel had been at 59 s.
    b->submit(probe, {}, {.run_at = b.now() + 1s});
    auto const second = b.now() + 1s;
    b.run_for(1s);
    CHECK(ran == second);
    b.run_for(10s);
    CHECK(ran == due);
}

TEST_CASE("a clock set forward a year: what was pending runs at once, each task once", "[scheduler][clock]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    for (int i = 0; i != 100; ++i) b->submit(probe, {}, {.delay = i * 24h});
    b.poll();
    CHECK(runs == 1);
    b.clock.set(b.now() + 24h * 365);
    b.poll();
    CHECK(runs == 100);
    CHECK(b.poll() == 0);
    b.clock.set(b.now() - 24h * 365);
    b.run_for(24h * 100);
    CHECK(runs == 100);
}

TEST_CASE("what was claimed ahead is given back when the clock goes back, and uses up nothing", "[scheduler][clock]") {
    hosted_bench b{{.workers = 1}};
    std::vector<ax::time_point> runs;
    b.tasks.on(probe, [&] { runs.push_back(b.clock.now()); });
    auto const start = b.clock.now();
    auto const ahead = b.tasks.submit(probe, {}, {.delay = 40ms}).id;
    b.poll();
    REQUIRE(b.state(ahead) == task_state::dispatched);
    b.clock.set(start - 1h);
    b.poll();
    CHECK(b.state(ahead) == task_state::ready);
    CHECK(b.tasks.find(ahead)->attempts == 0);
    b.clock.advance(1h + 39ms);
    b.settle();
    CHECK(runs.empty());
    b.clock.advance(1ms);
    b.settle();
    CHECK(runs == std::vector{start + 40ms});
}

TEST_CASE("what waits for a worker waits for its instant again when the clock goes back", "[scheduler][clock]") {
    hosted_bench b{{.workers = 1}};
    std::vector<ax::time_point> runs;
    b.tasks.on(probe, [&] { runs.push_back(b.clock.now()); });
    b.tasks.on(other, [] {});
    auto const start = b.clock.now();
    auto const back = GENERATE(130ms, 10s);
    CAPTURE(back);
    b.tasks.submit(other); // holds the worker
    auto const id = b.tasks.submit(probe, {}, {.delay = 100ms}).id;
    b.poll();
    b.clock.advance(100ms);
    b.poll();
    REQUIRE(b.state(id) == task_state::dispatched);
    b.clock.set(b.clock.now() - back);
    b.poll();
    b.loop.drain();
    b.settle();
    CHECK(runs.empty());
    b.clock.advance(back - 1ms);
    b.settle();
    CHECK(runs.empty());
    b.clock.advance(1ms);
    b.settle();
    CHECK(runs == std::vector{start + 100ms});
}

TEST_CASE("a schedule is not forgotten when the clock goes back while a handler runs",
          "[scheduler][clock][schedules]") {
    hosted_bench b;
    int occurrences = 0;
    b.tasks.on(probe, [] {});
    b.tasks.on(other, [&] { ++occurrences; });
    b.tasks.submit(probe, {}, {.delay = 30ms}); // claimed ahead, so it has had an alarm by wall time
    b.poll();
    b.clock.advance(30ms);
    b.poll();
    REQUIRE(b.loop.size() == 1);
    b.tasks.schedule("s", ax::every{1h}, other);
    b.clock.set(b.clock.now() - 10min);
    b.poll();
    b.loop.drain();
    b.settle();
    b.clock.advance(1h + 10min);
    b.settle();
    CHECK(occurrences == 1);
}

TEST_CASE("a deadline follows the wall clock, also for a running handler", "[scheduler][clock][limits]") {
    hosted_bench b;
    bool stopped = false;
    bool early = true;
    b.tasks.on(probe, [&](ax::context& ctx) {
        auto const token = ctx.stop_token();
        b.clock.set(b.clock.now() - 1h);
        b.poll();
        b.pass(1min);
        early = token.stop_requested();
        b.clock.set(b.clock.now() + 1h);
        b.poll();
        stopped = token.stop_requested();
    });
    auto const id = b.tasks.submit(probe, {}, {.deadline = b.clock.now() + 30s}).id;
    b.settle();
    CHECK_FALSE(early);
    CHECK(stopped);
    CHECK(b.state(id) == task_state::dead);
}

// SPDX-License-Identifier: MIT
#include "ax/scheduler/scheduler.hpp"

#include "scheduler/support.hpp"

template class ax::detail::engine<test::store_type, ax::testing::manual_clock>;
template class ax::scheduler<test::store_type, ax::testing::manual_clock>;
template class ax::scheduler<test::store_type, ax::testing::manual_clock, test::queue_executor>;

using namespace test;

TEST_CASE("scheduler runs a task at its instant and not a millisecond earlier", "[scheduler]") {
    bench b;
    std::vector<ax::time_point> runs;
    b->on(probe, [&] { runs.push_back(b.now()); });
    auto const delay = GENERATE(0ms, 1ms, 49ms, 50ms, 51ms, 300'000ms, 300'001ms, 31'536'000'000ms);
    CAPTURE(delay);
    auto const due = b.now() + delay;
    auto const answer = b->submit(probe, {}, {.delay = delay});
    CHECK(answer.outcome == submit_outcome::inserted);
    CHECK(answer.state == task_state::ready);

    if (delay > 0ms) {
        b.poll();
        b.clock.advance(delay - 1ms);
        b.poll();
        CHECK(runs.empty());
        b.clock.advance(1ms);
    }
    CHECK(b.poll() == 1);
    CHECK(runs == std::vector{due});
    CHECK(b.state(answer.id) == task_state::succeeded);
    CHECK(b.poll() == 0);
}

TEST_CASE("scheduler refuses options that cannot work, and names the member", "[scheduler]") {
    ax::testing::manual_clock clock;
    auto const refused = [&](ax::options wrong) {
        std::string message;
        CHECK(failure_of([&] { simulated{store_type{}, wrong, clock}; }, &message) == invalid);
        return message;
    };
    CHECK(contains(refused({.workers = 0}), "workers"));
    CHECK(contains(refused({.node_name = std::string(300, 'n')}), "node name"));
    CHECK(contains(refused({.window = 999ms}), "window"));
    CHECK(contains(refused({.window = 10s, .read_ahead = 6s}), "read_ahead"));
    CHECK(contains(refused({.read_ahead = -1ms}), "read_ahead"));
    CHECK(contains(refused({.poison_after = 0}), "poison_after"));
    CHECK(contains(refused({.weights = {1, 1, 0, 1}}), "weight"));
    CHECK(contains(refused({.claimed_ahead = 0}), "claimed_ahead"));
    CHECK(contains(refused({.window_tasks = 0}), "window_tasks"));
    CHECK(contains(refused({.submit_queue = 0}), "submit_queue"));
}

TEST_CASE("scheduler with threads of its own runs what is due and ends with what it holds", "[scheduler][threads]") {
    tally runs;
    {
        ax::scheduler tasks{ax::memory_storage{}, ax::options{.workers = 2}};
        tasks.on(probe, [&] { ++runs; });
        tasks.start();
        for (int i = 0; i != 100; ++i) tasks.submit(probe);
        CHECK(runs.reaches(100));
        CHECK(failure_of([&] { tasks.start(); }) == invalid);
        CHECK(failure_of([&] { tasks.poll(ax::now()); }) == invalid);
    }
    CHECK(runs.value() == 100);
}

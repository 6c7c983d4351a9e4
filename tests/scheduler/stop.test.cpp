// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include <latch>
#include <semaphore>
#include <thread>

using namespace test;

namespace {

/// Waits until the token is set.
void wait_for_stop(std::stop_token const& token) {
    std::binary_semaphore stopped{0};
    std::stop_callback const wake{token, [&] { stopped.release(); }};
    stopped.acquire();
}

} // namespace

TEST_CASE("stop gives back what has not started, and that uses up nothing", "[scheduler][stop]") {
    hosted_bench b{{.workers = 2}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    std::vector<task_id> ids;
    for (int i = 0; i != 5; ++i) ids.push_back(b.tasks.submit(probe).id);
    ids.push_back(b.tasks.submit(probe, {}, {.delay = 30ms}).id);
    b.poll();
    auto const report = b.tasks.stop();
    CHECK(report.released == 6);
    CHECK(report.finished == 0);
    CHECK(report.still_running == 0);
    for (auto const id : ids) {
        CHECK(b.state(id) == task_state::ready);
        CHECK(b.tasks.find(id)->attempts == 0);
        CHECK(b.tasks.find(id)->interruptions == 0);
        CHECK(b.tasks.history(id).empty());
    }
    b.clock.advance(1h);
    b.loop.drain(); // the host's loop still holds the calls
    b.poll();
    CHECK(runs == 0);
    auto const again = b.tasks.stop();
    CHECK(again.released == 0);
    CHECK(again.finished == 0);
}

TEST_CASE("the loop of a host may outlive the scheduler whose calls it holds", "[scheduler][stop]") {
    ax::testing::manual_clock clock;
    queue_executor loop;
    int runs = 0;
    {
        hosted tasks{store_type{}, {}, clock, loop};
        tasks.on(probe, [&] { ++runs; });
        tasks.submit(probe);
        tasks.poll(clock.now());
        REQUIRE(loop.size() == 1);
    }
    loop.drain();
    CHECK(runs == 0);
}

TEST_CASE("stop has two stages, and an interrupted attempt has not failed", "[scheduler][stop][threads]") {
    store_type store;
    bool const hold = GENERATE(false, true);
    CAPTURE(hold);
    task_id id{};
    task_id waiting{};
    std::binary_semaphore begun{0};
    {
        ax::scheduler tasks{store, ax::options{.workers = 1, .stop_grace = 60s}};
        tasks.on(probe,
                 [&](ax::context& ctx) {
                     auto const token = ctx.stop_token();
                     begun.release();
                     wait_for_stop(token);
                 },
                 {.on_interrupt = hold ? ax::on_interrupt::hold : ax::on_interrupt::rerun});
        tasks.start();
        id = tasks.submit(probe).id;
        begun.acquire();
        waiting = tasks.submit(probe).id;
        auto const report = tasks.stop(1ms);
        CHECK(report.finished == 1);
        CHECK(report.still_running == 0);
        CHECK(tasks.find(id)->state == task_state::ready);
        CHECK(failure_of([&] { tasks.start(); }) == ax::errc::stopped);
    }
    auto const task = store.find(id);
    CHECK(task->held == hold);
    CHECK(task->failures == 0);
    CHECK(task->interruptions == 1);
    CHECK(contains(task->last_error, "interrupted"));
    CHECK(store.history(id).at(0).outcome == (hold ? attempt_outcome::held : attempt_outcome::interrupted));
    CHECK(store.find(waiting)->state == task_state::ready);
    CHECK(store.find(waiting)->attempts == 0);
}

TEST_CASE("a handler that needs no more than the first stage finishes as if nothing were",
          "[scheduler][stop][threads]") {
    store_type store;
    ax::scheduler tasks{store, ax::options{.workers = 1}};
    std::binary_semaphore begun{0};
    std::binary_semaphore go{0};
    bool asked = true;
    tasks.on(probe, [&](ax::context& ctx) {
        auto const token = ctx.stop_token();
        begun.release();
        go.acquire();
        asked = token.stop_requested();
    });
    tasks.start();
    auto const id = tasks.submit(probe).id;
    begun.acquire();
    std::jthread const later{[&] { go.release(); }};
    auto const report = tasks.stop(60s);
    CHECK_FALSE(asked);
    CHECK(report.still_running == 0);
    CHECK(store.find(id)->state == task_state::succeeded);
}

TEST_CASE("a handler that outlives stop is reported, keeps its task, and is waited for by the destructor",
          "[scheduler][stop][threads]") {
    store_type store;
    std::binary_semaphore begun{0};
    std::binary_semaphore go{0};
    std::atomic<bool> returned{false};
    task_id id{};
    std::jthread later;
    {
        ax::scheduler tasks{store, ax::options{.workers = 1, .stop_grace = 1ms}};
        tasks.on(probe, [&] {
            begun.release();
            go.acquire();
            returned = true;
        });
        tasks.start();
        id = tasks.submit(probe).id;
        begun.acquire();
        auto const report = tasks.stop(1ms);
        CHECK(report.still_running == 1);
        CHECK(report.finished == 0);
        CHECK(ax::is_active(store.find(id)->state));
        later = std::jthread{[&] { go.release(); }};
    }
    CHECK(returned);
    CHECK(store.find(id)->state == task_state::succeeded); // it never took its token
}

TEST_CASE("a destructor without stop ends cleanly, and nothing that was accepted is lost",
          "[scheduler][stop][threads]") {
    store_type store;
    std::size_t accepted = 0;
    std::atomic<std::size_t> runs{0};
    for (int round = 0; round != 30; ++round) {
        ax::scheduler tasks{store, ax::options{.workers = 2}};
        tasks.on(probe, [&] { ++runs; });
        tasks.start();
        for (int i = 0; i != 20; ++i, ++accepted) tasks.submit(probe);
    }
    bench b;
    b.store = store;
    b.clock.set(ax::now() + 1s);
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); });
    b.poll();
    CHECK(runs == accepted);
    std::size_t succeeded = 0;
    for (auto const& task : b->list({.limit = 10'000})) succeeded += task.state == task_state::succeeded;
    CHECK(succeeded == accepted);
}

TEST_CASE("stop from inside a handler does not wait for that handler", "[scheduler][stop][threads]") {
    SECTION("polled") {
        bench b;
        int runs = 0;
        std::optional<ax::stop_report> report;
        b->on(probe, [&] {
            ++runs;
            report = b->stop(60s);
        });
        auto const first = b->submit(probe).id;
        auto const second = b->submit(probe).id;
        b.poll();
        REQUIRE(report.has_value());
        CHECK(runs == 1);
        CHECK(report->released == 1);
        CHECK(report->still_running == 1);
        CHECK(b.state(first) == task_state::succeeded);
        CHECK(b.state(second) == task_state::ready);
    }
    SECTION("with threads") {
        tally done;
        std::optional<ax::stop_report> report;
        ax::scheduler tasks{store_type{}, ax::options{.workers = 2}};
        tasks.on(probe, [&] {
            report = tasks.stop(60s);
            ++done;
        });
        tasks.start();
        tasks.submit(probe);
        REQUIRE(done.reaches(1));
        CHECK(report->still_running == 1);
    }
    SECTION("of another scheduler: that one is waited for") {
        tally done;
        std::binary_semaphore begun{0};
        std::binary_semaphore go{0};
        std::optional<ax::stop_report> report;
        ax::scheduler inner{store_type{}, ax::options{.workers = 1}};
        ax::scheduler outer{store_type{}, ax::options{.workers = 1}};
        inner.on(probe, [&] {
            begun.release();
            go.acquire();
        });
        outer.on(probe, [&] {
            begun.acquire();
            std::jthread const later{[&] { go.release(); }};
            report = inner.stop(60s);
            ++done;
        });
        inner.start();
        outer.start();
        inner.submit(probe);
        outer.submit(probe);
        REQUIRE(done.reaches(1));
        CHECK(report->still_running == 0);
    }
}

TEST_CASE("stop at once finds handlers that are just beginning", "[scheduler][stop][threads]") {
    for (int round = 0; round != 200; ++round) {
        ax::scheduler tasks{store_type{}, ax::options{.workers = 2, .stop_grace = 60s}};
        tasks.on(probe, [](ax::context& ctx) { wait_for_stop(ctx.stop_token()); });
        tasks.start();
        for (int i = 0; i != 4; ++i) tasks.submit(probe);
        CHECK(tasks.stop(0ms).still_running == 0);
    }
}

TEST_CASE("after stop no schedule creates anything", "[scheduler][stop][schedules]") {
    bench b;
    b->on(probe, [] {});
    b->schedule("s", ax::every{1s}, probe);
    b.poll();
    b->stop();
    b.clock.advance(1min);
    b.poll();
    CHECK(b->list().empty());
    CHECK(b->schedules().at(0).fired == 0);
}

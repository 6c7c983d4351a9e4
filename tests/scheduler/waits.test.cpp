// SPDX-License-Identifier: MIT
// Waits for handlers, of any length that a caller can write.
#include "scheduler/support.hpp"

#include <atomic>
#include <semaphore>
#include <thread>

using namespace test;

namespace {

constexpr ax::duration for_ever = (ax::duration::max)();

/// Blocks until its handler is asked to stop.
void until_asked(ax::context& ctx) {
    auto const token = ctx.stop_token();
    std::binary_semaphore stopped{0};
    std::stop_callback const wake{token, [&] { stopped.release(); }};
    stopped.acquire();
}

} // namespace

TEST_CASE("cancel_and_wait waits for hours, years and for ever if need be", "[scheduler][cancel][threads]") {
    ax::duration const limit = GENERATE(ax::duration{5h}, ax::duration{24h * 365 * 300}, for_ever);
    CAPTURE(limit.count());
    ax::scheduler tasks{store_type{}, ax::options{.workers = 1}};
    std::binary_semaphore begun{0};
    tasks.on(probe, [&](ax::context& ctx) {
        begun.release();
        until_asked(ctx);
    });
    tasks.start();
    auto const id = tasks.submit(probe).id;
    begun.acquire();
    CHECK(tasks.cancel_and_wait(id, limit) == cancel_outcome::cancelled);
    CHECK(tasks.find(id)->state == task_state::cancelled);
}

TEST_CASE("cancel_and_wait of a polled scheduler stores what nobody else would", "[scheduler][cancel][threads]") {
    ax::duration const limit = GENERATE(ax::duration{5h}, for_ever);
    CAPTURE(limit.count());
    hosted_bench b;
    std::binary_semaphore begun{0};
    b.tasks.on(probe, [&](ax::context& ctx) {
        begun.release();
        until_asked(ctx);
    });
    auto const id = b.tasks.submit(probe).id;
    b.poll();
    std::jthread const worker{[&] { b.loop.step(); }};
    begun.acquire();
    CHECK(b.tasks.cancel_and_wait(id, limit) == cancel_outcome::cancelled);
    CHECK(b.state(id) == task_state::cancelled);
}

TEST_CASE("cancel_and_wait of a workflow reaches a task that the host's loop is about to start",
          "[scheduler][cancel][workflow][threads]") {
    hosted_bench b;
    std::atomic<bool> in_vain{false};
    b.tasks.on(probe, [&](ax::context& ctx) {
        std::binary_semaphore stopped{0};
        std::stop_callback const wake{ctx.stop_token(), [&] { stopped.release(); }};
        if (!stopped.try_acquire_for(10s)) in_vain = true; // the clock stands still: no sweep asks again
    });
    ax::workflow w{"w"};
    w.add(probe);
    for (int i = 0; i != 600 && !in_vain; ++i) {
        auto const id = b.tasks.submit(w).id;
        b.poll();
        std::atomic<bool> go{false};
        std::jthread const worker{[&] {
            while (!go) {
            }
            b.loop.drain();
        }};
        go = true;
        for (int spin = i % 64; spin != 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        if (i % 2 == 1) std::this_thread::yield();
        CHECK(b.tasks.cancel_and_wait(id, for_ever) == cancel_outcome::cancelled);
    }
    CHECK_FALSE(in_vain);
}

TEST_CASE("cancel_and_wait ends with its limit, which the steady clock measures", "[scheduler][cancel][threads]") {
    hosted_bench b;
    std::binary_semaphore begun{0};
    std::binary_semaphore asked{0};
    std::binary_semaphore let_go{0};
    b.tasks.on(probe, [&](ax::context& ctx) {
        begun.release();
        until_asked(ctx);
        asked.release();
        let_go.acquire();
    });
    auto const id = b.tasks.submit(probe).id;
    b.poll();
    std::jthread const worker{[&] { b.loop.step(); }};
    begun.acquire();
    b.clock.set(b.clock.now() + 24h); // the wall clock does not count
    std::optional<cancel_outcome> answer;
    ax::duration took{};
    std::atomic<bool> answered{false};
    {
        std::jthread const waits{[&] {
            auto const from = b.clock.steady();
            answer = b.tasks.cancel_and_wait(id, 3h);
            took = b.clock.steady() - from;
            answered = true;
        }};
        asked.acquire();
        b.clock.set(b.clock.now() + 24h);
        while (!answered) {
            b.clock.advance(1min);
            std::this_thread::yield();
        }
    }
    CHECK(answer == cancel_outcome::stop_requested);
    CHECK(took >= 3h);
    let_go.release();
}

TEST_CASE("stop waits for as long as it is told before it asks handlers to stop", "[scheduler][stop][threads]") {
    ax::duration const limit = GENERATE(ax::duration{5h}, ax::duration{24h * 365 * 300}, for_ever);
    CAPTURE(limit.count());
    std::binary_semaphore begun{0};
    std::binary_semaphore asked{0};
    std::binary_semaphore let_go{0};
    std::optional<ax::stop_report> report;
    bool too_early = false;
    ax::scheduler tasks{store_type{}, ax::options{.workers = 1, .stop_grace = 60s}};
    tasks.on(probe, [&](ax::context& ctx) {
        std::stop_callback const tell{ctx.stop_token(), [&] { asked.release(); }};
        begun.release();
        let_go.acquire();
    });
    tasks.start();
    auto const id = tasks.submit(probe).id;
    begun.acquire();
    {
        std::jthread const stops{[&] { report = tasks.stop(limit); }};
        too_early = asked.try_acquire_for(50ms); // what a wait that ends at once would do
        let_go.release();
    }
    CHECK_FALSE(too_early);
    REQUIRE(report.has_value());
    CHECK(report->still_running == 0);
    CHECK(tasks.find(id)->state == task_state::succeeded);
}

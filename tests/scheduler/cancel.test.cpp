// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include <latch>
#include <semaphore>
#include <thread>

using namespace test;

TEST_CASE("cancel ends a task that waits, wherever it waits", "[scheduler][cancel]") {
    hosted_bench b{{.workers = 1}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    task_id id{};
    SECTION("before it is due, on disk only") { id = b.tasks.submit(probe, {}, {.delay = 10h}).id; }
    SECTION("within the window") {
        b.poll();
        id = b.tasks.submit(probe, {}, {.delay = 1min}).id;
        b.poll();
    }
    SECTION("claimed ahead of its instant") {
        id = b.tasks.submit(probe, {}, {.delay = 30ms}).id;
        b.poll();
        REQUIRE(b.tasks.find(id)->state == task_state::dispatched);
    }
    SECTION("queued behind a busy worker") {
        b.tasks.submit(probe);
        id = b.tasks.submit(probe).id;
        b.poll();
        REQUIRE(b.loop.size() == 1);
        REQUIRE(b.tasks.find(id)->state == task_state::dispatched);
        --runs;
    }
    SECTION("handed to the loop, which has not come to it") {
        id = b.tasks.submit(probe).id;
        b.poll();
        REQUIRE(b.loop.size() == 1);
    }
    SECTION("in backoff") {
        bool first = true;
        b.tasks.on(other, [&] {
            if (std::exchange(first, false)) throw std::runtime_error("no");
            ++runs;
        });
        id = b.tasks.submit(other).id;
        b.settle();
        REQUIRE(b.state(id) == task_state::failed);
    }
    SECTION("blocked by another of its route key") {
        b.tasks.submit(probe, {}, {.delay = 10h, .route_key = "r"});
        id = b.tasks.submit(probe, {}, {.delay = 10h, .route_key = "r"}).id;
        b.poll();
    }
    CHECK(b.tasks.cancel(id) == cancel_outcome::cancelled);
    CHECK(b.state(id) == task_state::cancelled);
    CHECK(b.tasks.cancel(id) == cancel_outcome::too_late);
    for (int i = 0; i != 3; ++i) {
        b.clock.advance(9h);
        b.settle();
    }
    CHECK(runs <= 0 + (b.tasks.list({.state = task_state::succeeded}).size() != 0 ? 1 : 0));
    CHECK(b.state(id) == task_state::cancelled);
    CHECK(b.tasks.find(id)->finished.has_value());
}

TEST_CASE("cancel of a claimed task frees its place for the next", "[scheduler][cancel]") {
    hosted_bench b{{.workers = 1, .claimed_ahead = 1}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    auto const first = b.tasks.submit(probe).id;
    auto const second = b.tasks.submit(probe).id;
    auto const third = b.tasks.submit(probe).id;
    b.poll();
    int woken = 0;
    b.tasks.on_wakeup([&] { ++woken; });
    b.tasks.next_wakeup();
    CHECK(b.tasks.cancel(first) == cancel_outcome::cancelled); // posted
    CHECK(woken > 0);
    CHECK(b.tasks.next_wakeup() == b.clock.now());
    CHECK(b.tasks.cancel(second) == cancel_outcome::cancelled); // queued
    b.settle();
    CHECK(runs == 1);
    CHECK(b.state(third) == task_state::succeeded);
}

TEST_CASE("cancel of a running task asks it to stop, and one final state follows", "[scheduler][cancel]") {
    hosted_bench b;
    bool takes_token = GENERATE(true, false);
    CAPTURE(takes_token);
    int reported = 0;
    std::optional<attempt_outcome> outcome;
    hosted* tasks = &b.tasks;
    b.tasks.observe([&](ax::event const& e) {
        if (e.kind != ax::event_kind::reported) return;
        ++reported;
        outcome = e.outcome;
    });
    b.tasks.on(probe, [&](ax::context& ctx) {
        std::optional<std::stop_token> token;
        if (takes_token) token = ctx.stop_token();
        CHECK(tasks->cancel(ctx.task().id) == cancel_outcome::stop_requested);
        CHECK(tasks->cancel(ctx.task().id) == cancel_outcome::stop_requested);
        if (token) CHECK(token->stop_requested());
        return 1;
    });
    auto const id = b.tasks.submit(probe).id;
    b.settle();
    auto const end = takes_token ? task_state::cancelled : task_state::succeeded;
    CHECK(b.state(id) == end);
    CHECK(b.tasks.cancel(id) == cancel_outcome::too_late);
    CHECK(b.state(id) == end);
    CHECK(reported == 1);
    CHECK(outcome == (takes_token ? attempt_outcome::cancelled : attempt_outcome::succeeded));
    CHECK(b.tasks.history(id).size() == 1);
}

TEST_CASE("cancel of what has ended or never was changes nothing and says so", "[scheduler][cancel]") {
    bench b;
    b->on(probe, [] {});
    auto const id = b->submit(probe).id;
    b.poll();
    auto const before = b.get(id);
    CHECK(b->cancel(id) == cancel_outcome::too_late);
    CHECK(b.get(id).version == before.version);
    CHECK(b->cancel(task_id{12345}) == cancel_outcome::unknown);
    CHECK(b->cancel(task_id{0}) == cancel_outcome::unknown);
    CHECK(b->retry(task_id{12345}) == change_outcome::unknown);
    CHECK(b->reschedule(task_id{12345}, b.now()) == change_outcome::unknown);
    CHECK(b->cancel_and_wait(task_id{12345}, 1h) == cancel_outcome::unknown);
    CHECK(b->history(task_id{12345}).empty());
}

TEST_CASE("retry by hand makes dead and cancelled tasks ready, and touches no others", "[scheduler][cancel]") {
    bench b;
    int runs = 0;
    b->on(probe,
          [&] {
              if (++runs == 1) throw std::runtime_error("no");
          },
          {.retry = ax::retry::none()});
    auto const dead = b->submit(probe, {}, {.deadline = b.now() + 1h}).id;
    auto const cancelled = b->submit(probe, {}, {.delay = 1h}).id;
    auto const waiting = b->submit(probe, {}, {.delay = 24h}).id;
    b->cancel(cancelled);
    b.poll();
    REQUIRE(b.state(dead) == task_state::dead);
    CHECK(b->retry(waiting) == change_outcome::wrong_state);
    b.clock.advance(2h);
    CHECK(b->retry(dead) == change_outcome::done);
    CHECK(b.get(dead).failures == 0);
    CHECK(b->retry(cancelled) == change_outcome::done);
    CHECK(b.poll() == 2);
    CHECK(b.state(dead) == task_state::succeeded);
    CHECK(b.state(cancelled) == task_state::succeeded);
    CHECK(b->retry(dead) == change_outcome::wrong_state); // what has succeeded never runs again
    CHECK(b.poll() == 0);
    CHECK(runs == 3);
    CHECK(b.outcomes(dead) == std::vector{attempt_outcome::exhausted, attempt_outcome::succeeded});
}

TEST_CASE("reschedule moves what waits, earlier and later", "[scheduler][cancel]") {
    hosted_bench b{{.workers = 1}};
    std::vector<ax::time_point> runs;
    b.tasks.on(probe, [&] { runs.push_back(b.clock.now()); });
    auto const start = b.clock.now();
    b.poll();

    SECTION("earlier, from beyond the window to within, and to the past") {
        auto const id = b.tasks.submit(probe, {}, {.delay = 10h}).id;
        auto const now = b.tasks.submit(probe, {}, {.delay = 10h}).id;
        CHECK(b.tasks.reschedule(id, start + 1min) == change_outcome::done);
        CHECK(b.tasks.next_wakeup() == start + 1min);
        CHECK(b.tasks.reschedule(now, start - 1h) == change_outcome::done);
        CHECK(b.tasks.next_wakeup() == start);
        b.settle();
        CHECK(runs == std::vector{start});
        b.clock.advance(1min);
        b.settle();
        CHECK(runs == std::vector{start, start + 1min});
    }
    SECTION("later: the old instant passes") {
        auto const id = b.tasks.submit(probe, {}, {.delay = 1min}).id;
        b.poll();
        CHECK(b.tasks.reschedule(id, start + 2min) == change_outcome::done);
        b.clock.advance(1min);
        b.settle();
        CHECK(runs.empty());
        b.clock.advance(1min);
        b.settle();
        CHECK(runs == std::vector{start + 2min});
    }
    SECTION("claimed ahead: it is given back, uses up nothing, and comes at its new instant") {
        auto const id = b.tasks.submit(probe, {}, {.delay = 30ms}).id;
        b.poll();
        REQUIRE(b.state(id) == task_state::dispatched);
        CHECK(b.tasks.reschedule(id, start + 1h) == change_outcome::done);
        CHECK(b.state(id) == task_state::ready);
        CHECK(b.tasks.find(id)->attempts == 0);
        b.clock.advance(59min);
        b.settle();
        CHECK(runs.empty());
        b.clock.advance(1min);
        b.settle();
        CHECK(runs == std::vector{start + 1h});
        CHECK(b.tasks.find(id)->attempts == 1);
        CHECK(b.tasks.history(id).size() == 1);
    }
    SECTION("running or ended: wrong state; a bad instant: invalid") {
        change_outcome seen{};
        b.tasks.on(other, [&](ax::context& ctx) { seen = b.tasks.reschedule(ctx.task().id, start + 1h); });
        auto const id = b.tasks.submit(other).id;
        b.settle();
        CHECK(seen == change_outcome::wrong_state);
        CHECK(b.tasks.reschedule(id, start) == change_outcome::wrong_state);
        CHECK(failure_of([&] { b.tasks.reschedule(id, ax::latest_time + 1ms); }) == invalid);
    }
}

TEST_CASE("cancel_and_wait answers with what the task came to", "[scheduler][cancel][threads]") {
    ax::scheduler tasks{store_type{}, ax::options{.workers = 2}};
    std::binary_semaphore begun{0};
    tasks.on(probe, [&](ax::context& ctx) {
        auto const token = ctx.stop_token();
        std::binary_semaphore stopped{0};
        std::stop_callback const wake{token, [&] { stopped.release(); }};
        begun.release();
        stopped.acquire();
    });
    std::binary_semaphore let_go{0};
    tasks.on(other, [&] {
        begun.release();
        let_go.acquire();
    });
    tasks.start();

    SECTION("a handler that heeds its token: cancelled") {
        auto const id = tasks.submit(probe).id;
        begun.acquire();
        CHECK(tasks.cancel_and_wait(id, 60s) == cancel_outcome::cancelled);
        CHECK(tasks.find(id)->state == task_state::cancelled);
    }
    SECTION("a handler that does not: the limit passes, and it ends as it ends") {
        auto const id = tasks.submit(other).id;
        begun.acquire();
        CHECK(tasks.cancel_and_wait(id, 1ms) == cancel_outcome::stop_requested);
        let_go.release();
        CHECK(tasks.cancel_and_wait(id, 60s) == cancel_outcome::too_late);
        CHECK(tasks.find(id)->state == task_state::succeeded);
    }
    SECTION("a handler that asks for its own end does not wait for itself") {
        std::optional<cancel_outcome> seen;
        tally done;
        tasks.on(shipping, [&](ax::context& ctx) {
            seen = tasks.cancel_and_wait(ctx.task().id, 60s);
            ++done;
        });
        tasks.submit(shipping, {});
        REQUIRE(done.reaches(1));
        CHECK(seen == cancel_outcome::stop_requested);
    }
}

TEST_CASE("cancel racing with the start: one truth for each task", "[scheduler][cancel][threads]") {
    constexpr std::size_t rounds = 10'000;
    store_type store;
    ax::scheduler tasks{store, ax::options{.workers = 3}};
    std::vector<std::atomic<int>> runs(rounds);
    tally ended;
    tasks.on(shipping, [&](parcel const& p) { ++runs[static_cast<std::size_t>(p.number)]; });
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) ++ended;
    });
    tasks.start();
    ax::splitmix64 random{20'260'101};
    std::size_t cancelled = 0;
    std::size_t other_answers = 0;
    std::vector<std::pair<task_id, cancel_outcome>> answers(rounds);
    constexpr std::size_t batch = 50;
    for (std::size_t at = 0; at != rounds; at += batch) {
        std::vector<parcel> parcels;
        for (std::size_t i = at; i != at + batch; ++i) parcels.push_back({static_cast<int>(i), ""});
        auto const now = ax::now();
        auto const made = tasks.submit_all(shipping, parcels, [&](parcel const&) {
            return ax::submit_options{.run_at = now + ax::duration{static_cast<std::int64_t>(random() % 8)}};
        });
        for (std::size_t i = 0; i != batch; ++i) {
            answers[at + i] = {made[i].id, tasks.cancel(made[i].id)};
            if (answers[at + i].second == cancel_outcome::cancelled)
                ++cancelled;
            else
                ++other_answers;
        }
    }
    CHECK(cancelled + other_answers == rounds);
    REQUIRE(ended.reaches(other_answers));
    bool truthful = true;
    for (std::size_t i = 0; i != rounds; ++i) {
        auto const [id, answer] = answers[i];
        auto const task = tasks.find(id);
        bool const ok = answer == cancel_outcome::cancelled
                            ? task->state == task_state::cancelled && runs[i] == 0 && task->finished.has_value()
                            : task->state == task_state::succeeded && runs[i] == 1;
        if (!ok) {
            CAPTURE(i, answer, task->state, runs[i].load(), task->attempts);
            CHECK(ok);
        }
        truthful = truthful && ok;
    }
    CHECK(truthful);
    CHECK(store.memory().check_invariants().empty());
}

TEST_CASE("a claim that is cancelled was no attempt", "[scheduler][cancel]") {
    bench b;
    queue_executor loop;
    hosted tasks{b.store, b.settings, b.clock, loop};
    tasks.on(probe, [] {});
    auto const id = tasks.submit(probe).id;
    tasks.poll(b.now());
    REQUIRE(tasks.find(id)->state == task_state::dispatched);
    CHECK(tasks.cancel(id) == cancel_outcome::cancelled);
    CHECK(tasks.find(id)->state == task_state::cancelled);
    CHECK(tasks.find(id)->attempts == 0);
    CHECK(tasks.history(id).empty());
}

TEST_CASE("a stop that another process asks for reaches the handler within a second", "[scheduler][cancel]") {
    hosted_bench b{{.workers = 1}};
    auto const ask_beside = [&](task_id id) {
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) { CHECK(w.ask_to_stop(id)); });
    };
    bool asked = false;
    b.tasks.on(probe, [&](ax::context& ctx) {
        auto const token = ctx.stop_token();
        ask_beside(ctx.task().id);
        b.pass(999ms);
        CHECK_FALSE(token.stop_requested());
        b.pass(1ms);
        asked = token.stop_requested();
    });
    auto const running = b.tasks.submit(probe).id;
    b.poll();
    b.loop.step();
    b.settle();
    CHECK(asked);
    CHECK(b.state(running) == task_state::cancelled);

    int runs = 0;
    b.tasks.on(other, [&] { ++runs; });
    b.tasks.submit(other);
    auto const waiting = b.tasks.submit(other).id; // claimed, and behind the first
    b.poll();
    REQUIRE(b.state(waiting) == task_state::dispatched);
    ask_beside(waiting);
    b.pass(1s);
    b.settle();
    CHECK(runs == 1);
    CHECK(b.state(waiting) == task_state::cancelled);
}

TEST_CASE("cancelling a claimed head of a route lets the next one start at once", "[scheduler][cancel]") {
    hosted_bench b{{.workers = 1}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    b.tasks.submit(probe); // keeps the worker busy
    auto const head = b.tasks.submit(probe, {}, {.route_key = "r"}).id;
    auto const next = b.tasks.submit(probe, {}, {.route_key = "r"}).id;
    b.poll();
    REQUIRE(b.state(head) == task_state::dispatched);
    CHECK(b.tasks.cancel(head) == cancel_outcome::cancelled);
    b.settle(); // no time passes, so no sweep finds it
    CHECK(runs == 2);
    CHECK(b.state(next) == task_state::succeeded);
    CHECK(b.state(head) == task_state::cancelled);
}

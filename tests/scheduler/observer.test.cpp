// SPDX-License-Identifier: MIT
// An observer asks the scheduler about tasks that are just on their way. It gets an answer or an error, never a wait
// that only its own return could end.
#include "scheduler/support.hpp"

#include <atomic>
#include <semaphore>
#include <thread>

using namespace test;

TEST_CASE("an observer sees and steers the task that it is told of, at each step", "[scheduler][events]") {
    bench b;
    std::vector<std::pair<ax::event_kind, task_state>> seen;
    std::vector<cancel_outcome> answers;
    auto const cancel_at = GENERATE(ax::event_kind::picked_up, ax::event_kind::dispatched, ax::event_kind::reported);
    CAPTURE(static_cast<int>(cancel_at));
    int runs = 0;
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const& e) {
            seen.emplace_back(e.kind, tasks.find(e.id)->state);
            if (e.kind == cancel_at) answers.push_back(tasks.cancel(e.id));
        });
        tasks.on(probe, [&](ax::context& ctx) {
            ++runs;
            (void)ctx.stop_token();
        });
    });
    auto const id = b->submit(probe).id;
    b.poll();
    using k = ax::event_kind;
    REQUIRE_FALSE(seen.empty());
    CHECK(seen[0] == std::pair{k::picked_up, task_state::dispatched});
    REQUIRE(answers.size() == 1);
    if (cancel_at == k::picked_up) {
        CHECK(answers[0] == cancel_outcome::cancelled);
        CHECK(runs == 0);
        CHECK(seen.size() == 1);
        CHECK(b.state(id) == task_state::cancelled);
    } else if (cancel_at == k::dispatched) {
        CHECK(answers[0] == cancel_outcome::stop_requested);
        CHECK(seen[1] == std::pair{k::dispatched, task_state::running});
        CHECK(runs == 1);
        CHECK(b.state(id) == task_state::cancelled);
    } else {
        CHECK(answers[0] == cancel_outcome::too_late);
        CHECK(seen[2] == std::pair{k::reported, task_state::succeeded});
        CHECK(b.state(id) == task_state::succeeded);
    }
}

TEST_CASE("an observer that asks about a task whose outcome waits to be stored has it stored first",
          "[scheduler][events]") {
    bench b;
    std::vector<task_id> begun;
    std::optional<cancel_outcome> answer;
    std::optional<task_state> found;
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const& e) {
            if (e.kind != ax::event_kind::dispatched) return;
            begun.push_back(e.id);
            if (begun.size() != 2) return;
            answer = tasks.cancel(begun[0]); // its handler has returned, and nobody but this thread could store that
            found = tasks.find(begun[0])->state;
        });
        tasks.on(probe, [] {});
    });
    b->submit(probe);
    b->submit(probe);
    b.poll();
    CHECK(answer == cancel_outcome::too_late);
    CHECK(found == task_state::succeeded);
    CHECK(b->list({.state = task_state::succeeded}).size() == 2);
}

TEST_CASE("an observer that asks about a task which another thread is just settling is told to ask again",
          "[scheduler][events][threads]") {
    hosted_bench b{{.workers = 1}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    b.tasks.submit(probe); // holds the worker
    auto const id = b.tasks.submit(probe).id;
    b.poll();
    REQUIRE(b.state(id) == task_state::dispatched);

    std::binary_semaphore settling{0};
    std::binary_semaphore go_on{0};
    std::atomic<std::thread::id> canceller{};
    b.store.hooks().before_transact = [&] {
        if (std::this_thread::get_id() != canceller.load()) return;
        settling.release();
        (void)go_on.try_acquire_for(10s); // so that a wait for ever is a failure, and no hang
    };
    std::optional<cancel_outcome> outcome;
    std::optional<ax::errc> refused;
    std::optional<task_state> found;
    b.tasks.observe([&](ax::event const& e) {
        if (e.kind != ax::event_kind::picked_up || refused) return;
        found = b.tasks.find(id)->state; // a look is answered with what is stored
        refused = failure_of([&] { b.tasks.cancel(id); });
        go_on.release();
    });
    {
        std::jthread const cancels{[&] {
            canceller = std::this_thread::get_id();
            outcome = b.tasks.cancel(id);
        }};
        settling.acquire();
        b.tasks.submit(probe);
        b.poll();
    }
    CHECK(refused == ax::errc::unavailable);
    CHECK(found == task_state::dispatched);
    CHECK(outcome == cancel_outcome::cancelled);
    b.settle();
    CHECK(runs == 2);
    CHECK(b.state(id) == task_state::cancelled);
}

TEST_CASE("an observer may ask for whatever it likes while threads work, and always gets an answer",
          "[scheduler][events][threads]") {
    constexpr std::size_t count = 2'000;
    std::atomic<std::uint64_t> highest{1};
    std::atomic<std::size_t> told_to_ask_again{0};
    std::vector<std::atomic<bool>> ended(count + 1);
    tally done;
    store_type store;
    ax::scheduler tasks{store, ax::options{.workers = 3}};
    auto const end_of = [&](task_id id) {
        if (!ended.at(ax::to_number(id)).exchange(true)) ++done;
    };
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) end_of(e.id);
        auto const about = task_id{1 + ax::to_number(e.id) * 7 % highest.load()}; // any that there is
        try {
            if (!tasks.find(about).has_value()) return;
            if (tasks.cancel(about) == cancel_outcome::cancelled) end_of(about);
        } catch (ax::error const& error) {
            if (error.kind() == ax::errc::unavailable) ++told_to_ask_again;
        }
    });
    tasks.on(probe, [] {});
    tasks.start();
    for (std::size_t i = 0; i != count; ++i) highest = ax::to_number(tasks.submit(probe).id);
    REQUIRE(done.reaches(count));
    tasks.stop(60s);
    CHECK(store.memory().check_invariants().empty());
    auto const stored = tasks.list({.limit = 2 * count});
    REQUIRE(stored.size() == count);
    for (auto const& task : stored)
        if (!ax::is_terminal(task.state)) FAIL("a task that was said to have ended is " << task.state);
}

// SPDX-License-Identifier: MIT
// What a submit or an outcome makes due is claimed in the same commit. Between that commit and the moment at which
// memory knows of it, somebody else may ask for such a task: these tests hold the committing thread there.
#include "scheduler/support.hpp"

#include <atomic>
#include <semaphore>
#include <thread>

using namespace test;

namespace {

std::size_t in_flight(store_type& store) {
    return store.memory().list({.state = task_state::dispatched, .limit = 100}, test::t0).size();
}

/// Once armed, holds the first thread whose commit leaves a claimed task in the store, until `go` or for 100 ms:
/// whoever waits for it, as it should, makes that pass. Made before the scheduler, and gone after it.
struct held_commit {
    explicit held_commit(store_type& store) {
        store.hooks().after_transact = [this, &store] {
            if (!armed || in_flight(store) == 0 || !armed.exchange(false)) return;
            reached.release();
            (void)go.try_acquire_for(100ms);
        };
    }

    std::atomic<bool> armed{false};
    std::binary_semaphore reached{0};
    std::binary_semaphore go{0};
};

template <class Tasks>
void count_ends(Tasks& tasks, tally& ends) {
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) ++ends;
    });
}

} // namespace

TEST_CASE("a task that is submitted where there is room is claimed in the commit that stores it",
          "[scheduler][offers][threads]") {
    store_type store;
    std::atomic<int> claims{0};
    store.hooks().before_claim = [&](std::span<ax::claim_request const> asked) {
        claims += static_cast<int>(asked.size());
    };
    tally ends;
    ax::scheduler tasks{store, ax::options{.workers = 2}};
    count_ends(tasks, ends);
    tasks.on(probe, [] {});
    tasks.start();
    tasks.submit(probe); // what lies in the store has not been read yet, and would go first
    REQUIRE(ends.reaches(1));
    auto const before = claims.load();
    for (std::size_t i = 0; i != 20; ++i) {
        auto const id = tasks.submit(probe).id;
        REQUIRE(ends.reaches(i + 2));
        CHECK(tasks.history(id).size() == 1);
    }
    CHECK(claims == before);
}

TEST_CASE("a child is claimed in the commit that ends its last parent", "[scheduler][offers][threads]") {
    store_type store;
    std::atomic<int> claims{0};
    store.hooks().before_claim = [&](std::span<ax::claim_request const> asked) {
        claims += static_cast<int>(asked.size());
    };
    tally runs;
    ax::scheduler tasks{store, ax::options{.workers = 2}};
    tasks.on(probe, [&] { ++runs; });
    tasks.start();
    ax::workflow flow{"chain"};
    auto last = flow.add(probe);
    for (int i = 0; i != 9; ++i) last = flow.add(probe, {}, {.after = {last}});
    tasks.submit(flow);
    REQUIRE(runs.reaches(10));
    CHECK(claims == 1); // of the first: by then all is read that lies in the store
}

TEST_CASE("a cancel while the claim of the task is being committed is not too late", "[scheduler][offers][threads]") {
    store_type store;
    held_commit held{store};
    ax::scheduler tasks{store, ax::options{.workers = 1}};
    tasks.on(probe, [&] { held.armed = true; }); // the commit that records its end claims the second
    tasks.on(other, [&](ax::context& ctx) {
        while (!ctx.stop_token().stop_requested()) std::this_thread::yield();
    });
    tasks.start();
    ax::workflow flow{"two"};
    auto const a = flow.add(probe);
    flow.add(other, {}, {.name = "b", .after = {a}});
    auto const made = tasks.submit(flow);
    task_id second{};
    for (auto const& each : tasks.workflow_tasks(made.id))
        if (each.name == "b") second = each.id;
    held.reached.acquire();
    auto const answer = tasks.cancel(second);
    held.go.release();
    CHECK(answer != cancel_outcome::too_late);
    CHECK(answer != cancel_outcome::unknown);
}

TEST_CASE("a claim whose commit had no answer is found and given back, and the task runs once",
          "[scheduler][offers][threads]") {
    store_type store;
    std::atomic<std::thread::id> caller{};
    store.hooks().after_transact = [&] {
        auto mine = std::this_thread::get_id();
        if (caller.compare_exchange_strong(mine, std::thread::id{}))
            throw ax::error(ax::errc::outcome_unknown, "the reply was lost");
    };
    tally ends;
    std::atomic<int> runs{0};
    ax::scheduler tasks{store, ax::options{.workers = 2}};
    count_ends(tasks, ends);
    tasks.on(probe, [&] { ++runs; });
    tasks.start();
    tasks.submit(probe);
    REQUIRE(ends.reaches(1));
    caller = std::this_thread::get_id();
    CHECK(failure_of([&] { tasks.submit(probe); }) == ax::errc::outcome_unknown);
    REQUIRE(ends.reaches(2));
    CHECK(tasks.verify().empty());
    CHECK(runs == 2);
}

TEST_CASE("what a submit claims while the scheduler stops is given back", "[scheduler][offers][threads]") {
    store_type store;
    held_commit held{store};
    {
        tally ends;
        ax::scheduler tasks{store, ax::options{.workers = 1}};
        count_ends(tasks, ends);
        tasks.on(probe, [] {});
        tasks.start();
        tasks.submit(probe);
        REQUIRE(ends.reaches(1));
        held.armed = true;
        std::jthread const caller{[&] { tasks.submit(probe); }};
        held.reached.acquire();
        tasks.stop();
        CHECK(in_flight(store) == 0);
        held.go.release();
    }
    CHECK(in_flight(store) == 0);
}

TEST_CASE("a pause holds for what is being claimed", "[scheduler][offers][pause][threads]") {
    store_type store;
    held_commit held{store};
    tally runs;
    tally ends;
    ax::scheduler tasks{store, ax::options{.workers = 1}};
    count_ends(tasks, ends);
    tasks.on(probe, [&] { ++runs; });
    tasks.on(other, [] {});
    tasks.start();
    tasks.submit(other);
    REQUIRE(ends.reaches(1));
    held.armed = true;
    std::jthread caller{[&] { tasks.submit(probe); }};
    held.reached.acquire();
    tasks.pause(probe);
    held.go.release();
    caller.join();
    tasks.submit(other); // there is one worker: it would come behind what was claimed before
    REQUIRE(ends.reaches(2));
    CHECK(runs.value() == 0);
    tasks.resume(probe);
    CHECK(runs.reaches(1));
}

TEST_CASE("a pause of a workflow holds for a task that is being claimed", "[scheduler][offers][threads]") {
    store_type store;
    held_commit held{store};
    tally seconds;
    tally ends;
    ax::scheduler tasks{store, ax::options{.workers = 1}};
    count_ends(tasks, ends);
    tasks.on(probe, [&] { held.armed = true; });
    tasks.on(other, [&] { ++seconds; });
    tasks.on(shipping, [] {});
    tasks.start();
    ax::workflow flow{"two"};
    auto const a = flow.add(probe);
    flow.add(other, {}, {.after = {a}});
    auto const made = tasks.submit(flow);
    held.reached.acquire();
    tasks.pause_workflow(made.id);
    held.go.release();
    REQUIRE(ends.reaches(1));
    tasks.submit(shipping, {}); // there is one worker: it would come behind what was claimed before
    REQUIRE(ends.reaches(2));
    CHECK(seconds.value() == 0);
    tasks.resume_workflow(made.id);
    CHECK(seconds.reaches(1));
}

TEST_CASE("an observer is not called inside of a submit, and may submit", "[scheduler][offers][threads]") {
    store_type store;
    tally ends;
    tally audits;
    std::atomic<std::thread::id> submitter{};
    std::atomic<bool> inside{false};
    ax::scheduler tasks{store, ax::options{.workers = 1, .submit_queue = 1}};
    tasks.observe([&](ax::event const& e) {
        if (std::this_thread::get_id() == submitter.load()) inside = true;
        if (e.kind == ax::event_kind::picked_up && e.type == "probe") tasks.submit(other);
        if (e.kind == ax::event_kind::reported) ++ends;
    });
    tasks.on(probe, [] {});
    tasks.on(other, [&] { ++audits; });
    tasks.start();
    submitter = std::this_thread::get_id();
    for (std::size_t i = 0; i != 10; ++i) {
        tasks.submit(probe);
        REQUIRE(ends.reaches(2 * (i + 1)));
    }
    CHECK(audits.value() == 10);
    CHECK_FALSE(inside);
}

TEST_CASE("from many threads, each task runs once and under its first claim", "[scheduler][offers][threads]") {
    store_type store;
    tally ends;
    std::atomic<std::size_t> runs{0};
    ax::scheduler tasks{store, ax::options{.workers = 2}};
    count_ends(tasks, ends);
    tasks.on(probe, [&] { ++runs; });
    tasks.start();
    constexpr std::size_t each = 200;
    {
        std::vector<std::jthread> callers;
        for (int t = 0; t != 4; ++t)
            callers.emplace_back([&] {
                for (std::size_t i = 0; i != each; ++i) tasks.submit(probe);
            });
    }
    REQUIRE(ends.reaches(4 * each));
    CHECK(runs == 4 * each);
    auto const all = tasks.list({.limit = 5 * each});
    REQUIRE(all.size() == 4 * each);
    for (auto const& task : all) {
        CHECK(task.state == task_state::succeeded);
        CHECK(task.attempts == 1);
    }
}

// SPDX-License-Identifier: MIT
// What a new scheduler makes of a store whose owner vanished.
#include "scheduler/support.hpp"

#include <set>

using namespace test;

namespace {

/// A process that dies: the scheduler claims what it wants, and its handler never returns. Here the claims alone are
/// made, by a node that is never heard of again.
std::vector<task_id> die_with(bench& b, std::vector<task_id> const& ids, std::uint64_t node) {
    std::vector<ax::claim_request> requests;
    for (auto const id : ids) requests.push_back({id, false});
    ax::claim_answer answer;
    b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
        w.reclaim({ax::node_id{node}, b.settings.poison_after, b.now()});
        answer = w.claim(requests, {ax::node_id{node}, b.now(), b.now(), 1}); // one suspect, as a scheduler does
    });
    std::vector<task_id> taken;
    for (auto const& one : answer.claimed) taken.push_back(one.id);
    return taken;
}

} // namespace

TEST_CASE("what was in flight at an unclean end runs again at once", "[scheduler][recovery]") {
    bench b;
    int runs = 0;
    auto const prepare = [&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); };
    auto const dispatched = b->submit(probe).id;
    auto const running = b->submit(probe).id;
    auto const waiting = b->submit(probe, {}, {.delay = 1h}).id;
    claim_elsewhere(b.store, dispatched, b.now());
    auto const claimed = claim_elsewhere(b.store, running, b.now());
    ax::start_mark const mark{claimed.id, claimed.fence, b.now()};
    b.store.transact(ax::commit::durable, [&](store_type::writer& w) { w.start(std::span(&mark, 1), b.now()); });
    b.restart(prepare);
    CHECK(b.poll() == 2);
    CHECK(runs == 2);
    CHECK(b->health().recovered == 2);
    CHECK(b->health().poisoned == 0);
    for (auto const id : {dispatched, running}) {
        auto const task = b.get(id);
        CHECK(task.state == task_state::succeeded);
        CHECK(task.attempts == 2);
        CHECK(task.interruptions == 1);
        CHECK(task.failures == 0);
        CHECK(b.outcomes(id) == std::vector{attempt_outcome::crashed, attempt_outcome::succeeded});
    }
    CHECK(b.state(waiting) == task_state::ready);
    CHECK(b.get(waiting).attempts == 0);
}

TEST_CASE("a death of the process uses up no attempt of the retry policy", "[scheduler][recovery][retry]") {
    bench b;
    b->on(probe, [] { throw std::runtime_error("no"); }, {.retry = ax::retry::fixed(1s).attempts(2)});
    auto const id = b->submit(probe).id;
    claim_elsewhere(b.store, id, b.now());
    b.restart([](simulated& tasks) {
        tasks.on(probe, [] { throw std::runtime_error("no"); }, {.retry = ax::retry::fixed(1s).attempts(2)});
    });
    b.run_for(1min);
    CHECK(b.outcomes(id) == std::vector{attempt_outcome::crashed, attempt_outcome::failed, attempt_outcome::exhausted});
}

TEST_CASE("a task whose handler must not run twice waits for a person", "[scheduler][recovery]") {
    bench b;
    int runs = 0;
    auto const prepare = [&](simulated& tasks) {
        tasks.on(probe, [&] { ++runs; }, {.on_interrupt = ax::on_interrupt::hold});
    };
    auto const id = b->submit(probe).id;
    start_elsewhere(b.store, claim_elsewhere(b.store, id, b.now(), true), b.now());
    b.restart(prepare);
    b.run_for(24h);
    CHECK(runs == 0);
    CHECK(b.state(id) == task_state::ready);
    CHECK(b.get(id).held);
    CHECK(b->health().recovered == 1);
    CHECK(b->retry(id) == change_outcome::done);
    CHECK(b.poll() == 1);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("a task whose handler must not run twice, and had not started, runs", "[scheduler][recovery]") {
    bench b;
    int runs = 0;
    auto const id = b->submit(probe).id;
    claim_elsewhere(b.store, id, b.now(), true);
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }, {.on_interrupt = ax::on_interrupt::hold}); });
    b.run_for(1min);
    CHECK(runs == 1);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("the store knows that a handler which must not run twice has started, before it is called",
          "[scheduler][recovery]") {
    bench b;
    std::optional<task_state> stored;
    b->on(probe, [&](ax::context& ctx) { stored = b.store.find(ctx.task().id)->state; },
          {.on_interrupt = ax::on_interrupt::hold});
    b->submit(probe);
    b.poll();
    CHECK(stored == task_state::running);
}

TEST_CASE("the claims of a scheduler say which handlers must not run twice", "[scheduler][recovery]") {
    bench b;
    queue_executor loop;
    auto const id = [&] {
        auto gone = std::make_unique<hosted>(b.store, b.settings, b.clock, loop);
        gone->on(probe, [] {}, {.on_interrupt = ax::on_interrupt::hold});
        auto const made = gone->submit(probe).id;
        gone->poll(b.now());
        REQUIRE(gone->find(made)->state == task_state::dispatched);
        CHECK(gone->find(made)->hold_on_interrupt);
        return made;
    }();
    CHECK(b.state(id) == task_state::ready); // a clean end gives it back, for it never started
    CHECK_FALSE(b.get(id).held);
}

TEST_CASE("a cancel of what a vanished process held does not call it ended", "[scheduler][recovery][cancel]") {
    bench b;
    int runs = 0;
    auto const id = b->submit(probe).id;
    claim_elsewhere(b.store, id, b.now());
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); });
    CHECK(b->cancel(id) == cancel_outcome::cancelled);
    b.run_for(1min);
    CHECK(runs == 0);
    CHECK(b.state(id) == task_state::cancelled);
}

TEST_CASE("suspects run one at a time, and all of them run", "[scheduler][recovery]") {
    bench b;
    std::vector<task_id> ids;
    for (int i = 0; i != 6; ++i) ids.push_back(b->submit(probe).id);
    CHECK(die_with(b, ids, 101).size() == 6);
    CHECK(die_with(b, ids, 102).size() == 6);
    b.settings.workers = 4;
    // A scheduler with a loop of the host's on the same store, so that its attempts can be watched.
    queue_executor loop;
    hosted tasks{b.store, b.settings, b.clock, loop};
    int inside = 0;
    std::set<task_id> ran;
    std::set<task_id> lonely;
    tasks.on(probe, [&](ax::context& ctx) {
        ++inside;
        tasks.poll(b.now());
        ran.insert(ctx.task().id);
        if (ctx.task().lonely) lonely.insert(ctx.task().id);
        CHECK(tasks.health().running == 1);
        --inside;
    });
    tasks.poll(b.now());
    CHECK(loop.size() == 0); // deaths soon after the start are held against nobody
    CHECK(tasks.next_wakeup() == b.now() + 1s);
    b.clock.advance(1s);
    for (int i = 0; i != 20; ++i) {
        tasks.poll(b.now());
        CHECK(loop.size() <= 1);
        loop.drain();
    }
    tasks.poll(b.now());
    CHECK(ran.size() == 6);
    CHECK(lonely == ran);
}

TEST_CASE("a suspect that is cancelled or paused meanwhile does not stand in the way of the others",
          "[scheduler][recovery]") {
    bench b;
    std::vector<task_id> ids;
    for (int i = 0; i != 4; ++i) ids.push_back(b->submit(probe).id);
    ids.push_back(b->submit(other).id);
    die_with(b, ids, 101);
    die_with(b, ids, 102);
    queue_executor loop;
    hosted tasks{b.store, b.settings, b.clock, loop};
    std::size_t runs = 0;
    tasks.on(probe, [&] { ++runs; });
    tasks.on(other, [&] { ++runs; });
    tasks.poll(b.now());
    b.clock.advance(1s); // from here on lonely runs may begin
    tasks.poll(b.now());
    CHECK(tasks.cancel(ids[1]) == cancel_outcome::cancelled);
    CHECK(tasks.cancel(ids[2]) == cancel_outcome::cancelled);
    for (int i = 0; i != 10; ++i) {
        tasks.poll(b.now());
        loop.drain();
    }
    CHECK(runs == 3);
}

TEST_CASE("only deaths in lonely runs make a task dead, and its neighbours live", "[scheduler][recovery]") {
    bench b{{.poison_after = 3}};
    std::vector<task_id> ids;
    for (int i = 0; i != 3; ++i) ids.push_back(b->submit(probe).id);
    auto const bad = ids[1];
    CHECK(die_with(b, ids, 100) == ids);
    CHECK(die_with(b, ids, 101) == ids); // now they are suspects, and run one at a time
    for (std::uint64_t n = 0; n != 3; ++n) {
        CHECK(b.state(bad) != task_state::dead);
        CHECK(die_with(b, {bad}, 102 + n) == std::vector{bad});
    }
    int runs = 0;
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); });
    b.run_for(1min);
    CHECK(runs == 2);
    CHECK(b.state(bad) == task_state::dead);
    CHECK(contains(b.get(bad).last_error, "poison"));
    CHECK(b->health().poisoned == 1);
    CHECK(b.state(ids[0]) == task_state::succeeded);
    CHECK(b.state(ids[2]) == task_state::succeeded);
}

TEST_CASE("many unclean ends kill nobody who was not alone", "[scheduler][recovery]") {
    bench b;
    std::vector<task_id> ids;
    for (int i = 0; i != 10; ++i) ids.push_back(b->submit(probe).id);
    for (std::uint64_t n = 0; n != 2; ++n) die_with(b, ids, 100 + n);
    int runs = 0;
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); });
    b.run_for(1min);
    CHECK(runs == 10);
    for (auto const id : ids) {
        CHECK(b.state(id) == task_state::succeeded);
        CHECK(b.get(id).unclean_ends == 0);
    }
}

// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

using namespace test;

TEST_CASE("pause holds a type back until resume, and no other type", "[scheduler][pause]") {
    bench b;
    int probes = 0;
    int others = 0;
    b->on(probe, [&] { ++probes; });
    b->on(other, [&] { ++others; });
    b->submit(probe);
    b->pause(probe);
    b->submit(probe);
    b->submit(probe, {}, {.delay = 10s});
    b->submit(other);
    b.run_for(1h);
    CHECK(probes == 0);
    CHECK(others == 1);
    CHECK(b->list({.state = task_state::ready}).size() == 3);
    b->resume(probe);
    CHECK(b->next_wakeup() == b.now());
    CHECK(b.poll() == 3);
    CHECK(probes == 3);
    b->resume(probe); // once more is nothing
    CHECK(b.poll() == 0);
}

TEST_CASE("pause gives back what was claimed ahead or queued, and that uses up nothing", "[scheduler][pause]") {
    hosted_bench b{{.workers = 1}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    auto const posted = b.tasks.submit(probe).id;
    auto const queued = b.tasks.submit(probe).id;
    auto const ahead = b.tasks.submit(probe, {}, {.delay = 30ms}).id;
    b.poll();
    for (auto const id : {posted, queued, ahead}) REQUIRE(b.state(id) == task_state::dispatched);
    b.tasks.pause(probe);
    for (auto const id : {posted, queued, ahead}) {
        CHECK(b.state(id) == task_state::ready);
        CHECK(b.tasks.find(id)->attempts == 0);
        CHECK(b.tasks.find(id)->interruptions == 0);
        CHECK(b.tasks.history(id).empty());
    }
    b.loop.drain();
    b.clock.advance(1s);
    b.settle();
    CHECK(runs == 0);
    b.tasks.resume(probe);
    b.settle();
    CHECK(runs == 3);
    for (auto const id : {posted, queued, ahead}) CHECK(b.tasks.find(id)->attempts == 1);
}

TEST_CASE("pause lets a running handler finish", "[scheduler][pause]") {
    bench b;
    b->on(probe, [&] { b->pause(probe); });
    auto const id = b->submit(probe).id;
    auto const next = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.state(next) == task_state::ready);
    CHECK(b.get(next).attempts == 0);
}

TEST_CASE("pause is kept in the store, with or without a handler", "[scheduler][pause]") {
    bench b;
    int runs = 0;
    auto const prepare = [&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); };
    b->pause(probe); // no handler here
    b->submit(probe);
    b.restart(prepare);
    b.run_for(1min);
    CHECK(runs == 0);
    b.restart(prepare);
    b->resume(probe);
    b.restart(prepare);
    b.run_for(1min);
    CHECK(runs == 1);
}

TEST_CASE("pause that cannot be stored is no pause, and says so", "[scheduler][pause][storage]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->submit(probe);
    bool away = true;
    b.store.hooks().before_transact = [&] {
        if (away) throw ax::error(ax::errc::unavailable, "away");
    };
    CHECK(failure_of([&] { b->pause(probe); }) == ax::errc::unavailable);
    away = false;
    b.run_for(1min);
    CHECK(runs == 1);

    b->pause(probe);
    b->submit(probe);
    away = true;
    CHECK(failure_of([&] { b->resume(probe); }) == ax::errc::unavailable);
    away = false;
    b.run_for(1min);
    CHECK(runs == 1);
}

TEST_CASE("a type without a handler is left in place, and runs when a handler comes", "[scheduler][pause]") {
    bench b;
    int runs = 0;
    int others = 0;
    b->on(other, [&] { ++others; });
    auto const id = b->submit(probe).id;
    b->submit(other);
    b.run_for(1h);
    CHECK(others == 1);
    CHECK(b.state(id) == task_state::ready);
    CHECK(b.get(id).attempts == 0);
    b->on(probe, [&] { ++runs; });
    CHECK(b->next_wakeup() == b.now());
    CHECK(b.poll() == 1);
    CHECK(runs == 1);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.get(id).attempts == 1);
}

TEST_CASE("a store may know types that no longer have a handler", "[scheduler][pause]") {
    bench b;
    b->on(probe, [] {});
    auto const id = b->submit(probe, {}, {.route_key = "r"}).id;
    auto const behind = b->submit(other, {}, {.route_key = "r"}).id;
    b.restart([](simulated& tasks) { tasks.on(other, [] {}); });
    b.run_for(1h);
    CHECK(b.state(id) == task_state::ready);
    CHECK(b.state(behind) == task_state::ready); // its turn comes behind the one that waits for its handler
    b->on(probe, [] {});
    b.run_for(1s);
    CHECK(b.state(behind) == task_state::succeeded);
}

TEST_CASE("a pause or a resume that another process has stored is noticed within a second", "[scheduler][pause]") {
    hosted_bench b{{.workers = 1}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    auto const pause_beside = [&](bool yes) {
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) { w.pause(w.type("probe"), yes); });
    };
    auto const posted = b.tasks.submit(probe).id;
    auto const queued = b.tasks.submit(probe).id;
    b.poll();
    REQUIRE(b.state(queued) == task_state::dispatched);
    pause_beside(true);
    b.pass(1s);
    b.settle();
    CHECK(runs == 0);
    CHECK(b.state(posted) == task_state::ready); // given back, and that uses up nothing
    CHECK(b.tasks.find(queued)->attempts == 0);
    pause_beside(false);
    b.pass(1s);
    b.settle();
    CHECK(runs == 2);
}

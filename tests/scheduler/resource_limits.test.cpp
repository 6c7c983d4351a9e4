// SPDX-License-Identifier: MIT
// Concurrency, rates and resources: what starts when, what waits, and what a restart finds.
#include "scheduler/support.hpp"

#include <algorithm>
#include <map>

using namespace test;

namespace {

/// The offsets from `start` at which handlers were called, in milliseconds.
using instants = std::vector<std::int64_t>;

struct start_log {
    bench& b;
    ax::time_point start = b.now();
    instants at = {};
    void operator()() { at.push_back((b.now() - start).count()); }
};

ax::submit_options tagged(std::vector<std::string> tags, ax::time_span delay = {}) {
    ax::submit_options how;
    how.tags = std::move(tags);
    if (delay.value() > ax::duration{0}) how.delay = delay;
    return how;
}

} // namespace

TEST_CASE("of a type no more run at once than its concurrency", "[scheduler][limits]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.on(probe, [] {}, {.concurrency = 2});
    b.tasks.on(other, [] {});
    std::vector<task_id> all;
    for (int i = 0; i != 5; ++i) all.push_back(b.tasks.submit(probe).id);
    for (int i = 0; i != 3; ++i) b.tasks.submit(other);
    b.poll();
    CHECK(b.loop.size() == 5); // two of the one, three of the other
    CHECK(b.state(all[1]) == task_state::dispatched);
    CHECK(b.state(all[2]) == task_state::ready);
    b.loop.drain();
    b.poll();
    CHECK(b.loop.size() == 2);
    CHECK(b.state(all[2]) == task_state::dispatched);
    b.settle();
    for (auto const id : all) CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("tasks of several types share the limit of their tag", "[scheduler][limits]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.on(probe, [] {});
    b.tasks.on(other, [] {});
    b.tasks.limit_tag("tenant-7", {.concurrency = 1});
    b.tasks.submit(probe, {}, tagged({"tenant-7"}));
    b.tasks.submit(other, {}, tagged({"tenant-7", "bulk"}));
    b.tasks.submit(probe, {}, tagged({"tenant-8"}));
    b.poll();
    CHECK(b.loop.size() == 2);
    b.loop.drain();
    b.poll();
    CHECK(b.loop.size() == 1);
    b.tasks.limit_tag("tenant-7", {}); // no limit any more
    b.tasks.submit(probe, {}, tagged({"tenant-7"}));
    b.poll();
    CHECK(b.loop.size() == 2);
    b.settle();
    CHECK(b.tasks.store().limits().empty());
}

TEST_CASE("a rate starts each at the instant of its token, and not a millisecond earlier", "[scheduler][limits]") {
    bench b;
    start_log log{b};
    SECTION("one by one") {
        b->on(probe, [&] { log(); }, {.rate = ax::rate{3, 1s, 1}});
        for (int i = 0; i != 5; ++i) b->submit(probe);
        b.run_for(1min);
        CHECK(log.at == instants{0, 334, 668, 1'002, 1'336}); // a third of a second, rounded up; the rest is lost
    }
    SECTION("a burst first, and again after a rest") {
        b->on(probe, [&] { log(); }, {.rate = ax::rate{2, 10s, 3}});
        for (int i = 0; i != 6; ++i) b->submit(probe);
        b.run_for(1min);
        CHECK(log.at == instants{0, 0, 0, 5'000, 10'000, 15'000});
        for (int i = 0; i != 4; ++i) b->submit(probe);
        b.run_for(1min);
        CHECK(log.at == instants{0, 0, 0, 5'000, 10'000, 15'000, 60'000, 60'000, 60'000, 65'000});
    }
    SECTION("by tag") {
        b->on(probe, [&] { log(); });
        b->limit_tag("x", {.rate = ax::rate{1, 1s}});
        for (int i = 0; i != 3; ++i) b->submit(probe, {}, tagged({"x"}, 100ms));
        b.run_for(1min);
        CHECK(log.at == instants{100, 1'100, 2'100});
    }
    SECTION("without being asked in between") {
        b->on(probe, [&] { log(); }, {.rate = ax::rate{1, 1h}});
        for (int i = 0; i != 10; ++i) b->submit(probe);
        CHECK(b.run_for(9h + 1min) < 60); // each claim that is not made costs a poll at most
        CHECK(log.at.size() == 10);
    }
    SECTION("a retry takes a token of its own") {
        auto const fail_once = [&](ax::context& ctx) {
            log();
            if (ctx.attempt() == 1) throw std::runtime_error("once");
        };
        b->on(probe, fail_once, {.retry = ax::retry::fixed(1s).attempts(3), .rate = ax::rate{1, 10s}});
        b->submit(probe);
        b.run_for(1min);
        CHECK(log.at == instants{0, 10'000});
    }
    SECTION("one that is given back gives its token back") {
        hosted_bench h{{.workers = 1}};
        h.tasks.on(other, [] {});
        h.tasks.on(probe, [] {}, {.rate = ax::rate{1, 1h}});
        h.tasks.submit(other); // takes the worker
        auto const id = h.tasks.submit(probe).id;
        h.poll();
        REQUIRE(h.state(id) == task_state::dispatched);
        h.tasks.pause(probe);
        REQUIRE(h.state(id) == task_state::ready);
        h.tasks.resume(probe);
        h.settle();
        CHECK(h.state(id) == task_state::succeeded);
    }
}

TEST_CASE("resources are held by amounts", "[scheduler][limits]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.set_resource("gpu", 4);
    b.tasks.on(probe, [] {}, {.resources = {{"gpu", 1}}});
    b.tasks.on(other, [] {}, {.resources = {{"gpu", 3}}});
    b.poll();
    auto const large = b.tasks.submit(other).id;
    for (int i = 0; i != 3; ++i) b.tasks.submit(probe);
    b.poll();
    CHECK(b.loop.size() == 2);
    b.tasks.set_resource("gpu", 5); // at once
    b.poll();
    CHECK(b.loop.size() == 3);
    b.loop.step();
    b.poll();
    CHECK(b.state(large) == task_state::succeeded);
    CHECK(b.loop.size() == 3);
    b.settle();
}

TEST_CASE("those that wait start as soon as the holder ends, in order, with nobody asking", "[scheduler][limits][threads]") {
    // The clock stands still, so no sweep is ever due: each next one is started by the end of the one before.
    ax::testing::manual_clock const clock;
    store_type store;
    simulated tasks{store, {.workers = 4}, clock};
    std::mutex mutex;
    std::vector<int> order;
    tally done;
    tasks.on(shipping,
             [&](parcel const& p) {
                 {
                     std::lock_guard const guard{mutex};
                     order.push_back(p.number);
                 }
                 ++done;
             },
             {.concurrency = 1});
    std::vector<parcel> all;
    std::vector<int> expected;
    for (int i = 0; i != 100; ++i) {
        all.push_back({i, ""});
        expected.push_back(i);
    }
    tasks.submit_all(shipping, all);
    tasks.start();
    CHECK(done.reaches(100));
    tasks.stop(60s);
    CHECK(order == expected);
}

TEST_CASE("a type that is paused or has no handler keeps no other from the tag they share", "[scheduler][limits]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.on(probe, [] {});
    b.tasks.on(shipping, [](parcel const&) {});
    b.tasks.limit_tag("x", {.concurrency = 1});
    auto const holder = b.tasks.submit(probe, {}, tagged({"x"})).id;
    b.poll();
    auto const paused = b.tasks.submit(shipping, {}, tagged({"x"})).id;
    auto const stranger = b.tasks.submit(other, {}, tagged({"x"})).id;
    auto const next = b.tasks.submit(probe, {}, tagged({"x"})).id;
    b.poll();
    REQUIRE(b.tasks.find(paused)->waits_for != ax::limit_number{});
    REQUIRE(b.tasks.find(next)->waits_for != ax::limit_number{});
    b.tasks.pause(shipping);
    REQUIRE(b.loop.size() == 1);
    b.settle();
    CHECK(b.state(holder) == task_state::succeeded);
    CHECK(b.state(next) == task_state::succeeded);
    CHECK(b.state(paused) == task_state::ready);
    b.tasks.resume(shipping); // it had been waiting for the limit all the time
    b.settle();
    CHECK(b.state(paused) == task_state::succeeded);
    CHECK(b.state(stranger) == task_state::ready);
    b.tasks.on(other, [] {});
    b.settle();
    CHECK(b.state(stranger) == task_state::succeeded);
}

TEST_CASE("a task with two limits waits for both and keeps nobody from the one it does not have",
          "[scheduler][limits]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.on(probe, [] {});
    b.tasks.on(other, [] {});
    b.tasks.limit_tag("x", {.concurrency = 1});
    b.tasks.limit_tag("y", {.concurrency = 1});
    auto const y = b.tasks.submit(other, {}, tagged({"y"})).id;
    b.poll();
    auto const both = b.tasks.submit(probe, {}, tagged({"y", "x"})).id;
    auto const x = b.tasks.submit(probe, {}, tagged({"x"})).id;
    b.poll();
    CHECK(b.state(both) == task_state::ready);
    CHECK(b.state(x) == task_state::dispatched); // although `both` was first
    b.loop.step();                               // y has ended
    b.poll();
    CHECK(b.state(y) == task_state::succeeded);
    CHECK(b.state(both) == task_state::ready); // now x is missing
    b.settle();
    CHECK(b.state(both) == task_state::succeeded);
    CHECK(b.state(x) == task_state::succeeded);
}

TEST_CASE("limits, what is held of them and the state of a rate outlive a restart", "[scheduler][limits]") {
    bench b;
    start_log log{b};
    auto const prepare = [&](simulated& tasks) {
        tasks.on(probe, [&] { log(); }, {.rate = ax::rate{1, 10s, 2}});
        tasks.on(other, [&] { log(); });
    };
    b.restart(prepare);
    b->limit_tag("x", {.concurrency = 1});
    for (int i = 0; i != 4; ++i) b->submit(probe);
    b.run_for(1s);
    CHECK(log.at == instants{0, 0});
    b.restart(prepare); // a second after its two tokens were taken
    b.run_for(1min);
    CHECK(log.at == instants{0, 0, 10'000, 20'000});

    // What another process held when it died is given back when its task is taken over.
    auto const lost = b->submit(other, {}, tagged({"x"})).id;
    auto const next = b->submit(other, {}, tagged({"x"})).id;
    claim_elsewhere(b.store, lost, b.now());
    b.poll();
    CHECK(b.state(next) == task_state::ready);
    b.restart(prepare);
    b.run_for(1min);
    CHECK(b.state(lost) == task_state::succeeded);
    CHECK(b.state(next) == task_state::succeeded);
}

TEST_CASE("a handler that comes back without a limit has none", "[scheduler][limits]") {
    bench b;
    b->on(probe, [] {}, {.concurrency = 3, .rate = ax::rate{1, 1h}});
    for (int i = 0; i != 5; ++i) b->submit(probe);
    b.run_for(1s);
    b.restart([](simulated& tasks) { tasks.on(probe, [] {}); });
    b.run_for(1s);
    ax::task_filter filter;
    filter.state = task_state::succeeded;
    CHECK(b->list(filter).size() == 5);
    CHECK(b->store().limits().empty());
}

TEST_CASE("a clock that is set back does not stop those that wait for a token", "[scheduler][limits]") {
    bench b;
    start_log log{b};
    b->on(probe, [&] { log(); }, {.rate = ax::rate{1, 10s}});
    for (int i = 0; i != 4; ++i) b->submit(probe, {}, {.run_at = b.now() - 48h});
    b.run_for(10s);
    CHECK(log.at == instants{0, 10'000});
    b.clock.set(b.now() - 24h);
    log.start = b.now();
    log.at.clear();
    b.run_for(1min);
    CHECK(log.at.size() == 2);
    CHECK(log.at == instants{10'000, 20'000});
}

TEST_CASE("a sweep finds those that wait and of whom nobody told", "[scheduler][limits]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->limit_tag("x", {.rate = ax::rate{1, 24h}});
    for (int i = 0; i != 3; ++i) b->submit(probe, {}, tagged({"x"}));
    b.run_for(1s);
    CHECK(runs == 1);
    b.store.transact(ax::commit::durable, [&](store_type::writer& w) { w.limit_tag("x", {}, b.now()); });
    CHECK(b.poll() == 0);
    CHECK(b.poll_after(1s) == 2);
    CHECK(runs == 3);
}

TEST_CASE("a task that waits for a limit can be cancelled, moved and explained", "[scheduler][limits]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.on(probe, [] {}, {.concurrency = 1});
    auto const holder = b.tasks.submit(probe).id;
    b.poll();
    auto const a = b.tasks.submit(probe).id;
    auto const c = b.tasks.submit(probe).id;
    auto const d = b.tasks.submit(probe).id;
    b.poll();
    auto const why = b.tasks.explain(d);
    REQUIRE(why.size() == 1);
    CHECK(why[0].cause == ax::wait_cause::limit);
    CHECK(contains(why[0].text, "task type \"probe\""));
    CHECK(why[0].holder == "task " + std::to_string(to_number(holder)));
    CHECK(b.tasks.cancel(a) == cancel_outcome::cancelled);
    CHECK(b.tasks.reschedule(c, b.clock.now() + 1h) == change_outcome::done);
    b.settle();
    CHECK(b.state(a) == task_state::cancelled);
    CHECK(b.state(c) == task_state::ready);
    CHECK(b.state(d) == task_state::succeeded);
    b.clock.advance(1h);
    b.settle();
    CHECK(b.state(c) == task_state::succeeded);
}

TEST_CASE("a limit that makes no sense is refused by name", "[scheduler][limits]") {
    bench b;
    std::string said;
    auto const refused = [&](ax::handler_options how, std::string_view word) {
        said.clear();
        return failure_of(
                   [&] {
                       b->on(
                           probe, [] {}, std::move(how));
                   },
                   &said) == invalid &&
               contains(said, word) && contains(said, "\"probe\"");
    };
    b->set_resource("gpu", 2);
    CHECK(refused({.concurrency = 0}, "concurrency"));
    CHECK(refused({.concurrency = static_cast<std::size_t>(-1)}, "negative"));
    CHECK(refused({.rate = ax::rate{0, 1s}}, "count"));
    CHECK(refused({.rate = ax::rate{1, 0s}}, "period"));
    CHECK(refused({.rate = ax::rate{1, -1s}}, "period"));
    CHECK(refused({.rate = ax::rate{1, std::chrono::hours{24 * 367}}}, "366 days"));
    CHECK(refused({.rate = ax::rate{1, std::chrono::hours{24 * 366}, 1'000'000}}, "burst"));
    CHECK(refused({.resources = {{"tpu", 1}}}, "\"tpu\""));
    CHECK(refused({.resources = {{"gpu", 0}}}, "amount"));
    CHECK(refused({.resources = {{"gpu", 3}}}, "capacity"));
    CHECK(refused({.resources = {{"", 1}}}, "resource") == false); // no name to show
    CHECK(contains(said, "resource is empty"));
    CHECK(refused({.resources = {{"gpu", 1}, {"gpu", 1}}}, "twice"));
    CHECK(b->store().limits().size() == 1);

    b->on(probe, [] {}, {.resources = {{"gpu", 2}}});
    CHECK(failure_of([&] { b->set_resource("gpu", 1); }, &said) == invalid);
    CHECK(contains(said, "\"gpu\""));
    CHECK(contains(said, "\"probe\""));
    CHECK(failure_of([&] { b->set_resource("gpu", 0); }) == invalid);
    CHECK(failure_of([&] { b->set_resource("", 1); }) == invalid);
    b->set_resource("gpu", 5);

    CHECK(failure_of([&] { b->limit_tag("x", {.concurrency = 0}); }, &said) == invalid);
    CHECK(contains(said, "tag \"x\""));
    CHECK(failure_of([&] { b->limit_tag("x", {.rate = ax::rate{1, 0s}}); }) == invalid);
    CHECK(failure_of([&] { b->limit_tag("", {.concurrency = 1}); }) == invalid);
    CHECK(failure_of([&] { b->limit_tag(std::string(256, 'x'), {.concurrency = 1}); }) == invalid);
    CHECK(b->store().limits().size() == 1);

    // A second handler changes nothing of the first one's limits.
    CHECK(failure_of([&] { b->on(probe, [] {}, {.concurrency = 9}); }) == invalid);
    CHECK(b->store().limits().size() == 1);
}

TEST_CASE("tags are checked, put in order, and stored once each", "[scheduler][limits]") {
    bench b;
    auto const id = b->submit(probe, {}, tagged({"b", "a", "b"})).id;
    CHECK(b.get(id).tags == std::vector<std::string>{"a", "b"});
    std::vector<std::string> many(20, "same");
    CHECK(b.get(b->submit(probe, {}, tagged(many)).id).tags.size() == 1);
    for (int i = 0; i != 20; ++i) many[static_cast<std::size_t>(i)] = std::to_string(i);
    std::string said;
    CHECK(failure_of([&] { b->submit(probe, {}, tagged(many)); }, &said) == invalid);
    CHECK(contains(said, "20 tags"));
    CHECK(failure_of([&] { b->submit(probe, {}, tagged({""})); }) == invalid);
    CHECK(failure_of([&] { b->submit(probe, {}, tagged({"bad\xFF"})); }) == invalid);
    CHECK(failure_of([&] { b->submit(probe, {}, tagged({std::string(256, 'x')})); }) == invalid);
    many.resize(16);
    CHECK(b.get(b->submit(probe, {}, tagged(many)).id).tags.size() == 16);
}

TEST_CASE("a follow-up carries its tags and obeys their limits", "[scheduler][limits]") {
    hosted_bench b{{.workers = 8}};
    b.tasks.on(other, [] {});
    b.tasks.on(probe, [](ax::context& ctx) {
        for (int i = 0; i != 3; ++i) ctx.submit(other, {}, tagged({"x"}));
    });
    b.tasks.limit_tag("x", {.concurrency = 1});
    b.tasks.submit(probe);
    b.poll();
    b.loop.drain();
    b.poll();
    b.poll();
    CHECK(b.loop.size() == 1);
    b.settle();
    ax::task_filter filter;
    filter.state = task_state::succeeded;
    CHECK(b.tasks.list(filter).size() == 4);
}

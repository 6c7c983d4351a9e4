// SPDX-License-Identifier: MIT
// A storage that fails now and then: nothing is lost, nothing spins, and it recovers by itself.
#include "scheduler/support.hpp"

#include <set>

using namespace test;

namespace {

[[noreturn]] void unavailable() { throw ax::error(ax::errc::unavailable, "away for a while"); }

} // namespace

TEST_CASE("whichever commit or read fails, every task runs and is recorded", "[scheduler][storage]") {
    auto const failing = GENERATE(range(0, 16));
    bool const reads = GENERATE(false, true);
    auto const kind = GENERATE(ax::errc::unavailable, ax::errc::disk_full, ax::errc::corrupt);
    CAPTURE(failing, reads, kind);
    bench b;
    std::size_t runs = 0;
    std::size_t reported = 0;
    bool fails = true;
    b.restart([&](simulated& tasks) {
        tasks.observe([&](ax::event const& e) { reported += e.kind == ax::event_kind::reported; });
        tasks.on(probe,
                 [&] {
                     ++runs;
                     if (std::exchange(fails, false)) throw std::runtime_error("no");
                 },
                 {.retry = ax::retry::fixed(5s)});
        tasks.on(other, [&](ax::context& ctx) { ctx.submit(probe, {}); });
    });
    b->schedule("s", ax::every{20s}, probe);
    b->submit(other, {}, {.delay = 1s});
    b->submit(probe, {}, {.delay = 2s, .route_key = "r"});
    b->submit(probe, {}, {.delay = 2s, .route_key = "r"});
    int count = 0;
    auto const fail = [&] {
        if (count++ == failing) throw ax::error(kind, "away for a while");
    };
    if (!reads) b.poll(); // the first poll takes over, and may say that it cannot
    (reads ? b.store.hooks().before_upcoming : b.store.hooks().before_transact) = fail;
    b.run_for(30s);
    b.store.hooks() = {};
    b.run_for(5s); // where the very last poll met the failure
    CHECK((reads || count > failing || count > 10));
    CHECK(runs == 5); // two, the follow-up, the occurrence, and one that is tried again
    CHECK(reported == 6);
    CHECK(b->health().storage_ok);
    CHECK(b->health().unsettled == 0);
    for (auto const& task : b->list()) CHECK(task.state == task_state::succeeded);
    CHECK(b.store.memory().check_invariants().empty());
}

TEST_CASE("a storage that is away is asked again after a pause that grows, and health says so",
          "[scheduler][storage]") {
    bench b;
    std::vector<ax::event_kind> events;
    b.restart([&](simulated& tasks) {
        tasks.on(probe, [] {});
        tasks.observe([&](ax::event const& e) { events.push_back(e.kind); });
    });
    auto const id = b->submit(probe, {}, {.delay = 1s}).id;
    b.poll();
    bool away = true;
    b.store.hooks().before_transact = [&] {
        if (away) unavailable();
    };
    b.clock.advance(1s);
    auto const before = b.store.transacts();
    auto const polls = b.run_for(60s);
    auto const health = b->health();
    CHECK_FALSE(health.storage_ok);
    CHECK(contains(health.storage_error, "away for a while"));
    CHECK(health.consecutive_failures > 5);
    CHECK(b.store.transacts() - before == health.consecutive_failures);
    CHECK(b.store.transacts() - before < 60); // 20 ms, doubled up to 5 s
    CHECK(polls < 200);
    CHECK(b.state(id) == task_state::ready);
    away = false;
    b.run_for(6s);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b->health().storage_ok);
    CHECK(b->health().storage_error.empty());
    CHECK(b->health().consecutive_failures == 0);
    using e = ax::event_kind;
    CHECK(events == std::vector{e::storage_down, e::picked_up, e::storage_up, e::dispatched, e::reported});
}

TEST_CASE("an outcome waits in memory until the storage takes it, and the handler does not run again",
          "[scheduler][storage]") {
    bench b;
    int runs = 0;
    bool away = false;
    b.store.hooks().before_transact = [&] {
        if (away) unavailable();
    };
    b->on(probe, [&] {
        ++runs;
        away = true;
    });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(runs == 1);
    CHECK(b->health().unsettled == 1);
    b.run_for(1min);
    CHECK(b->health().unsettled == 1);
    SECTION("a cancel meanwhile says that it cannot know") {
        CHECK(failure_of([&] { b->cancel(id); }) == ax::errc::unavailable);
        CHECK(failure_of([&] { b->reschedule(id, b.now()); }) == ax::errc::unavailable);
    }
    away = false;
    b.run_for(10s);
    CHECK(runs == 1);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("calls of the host say that the storage is away, and nothing is half done", "[scheduler][storage]") {
    bench b;
    b->on(probe, [] {});
    auto const id = b->submit(probe, {}, {.delay = 1h}).id;
    b.poll();
    bool away = true;
    b.store.hooks().before_transact = [&] {
        if (away) unavailable();
    };
    using ax::errc;
    CHECK(failure_of([&] { b->submit(probe); }) == errc::unavailable);
    CHECK(failure_of([&] { b->cancel(id); }) == errc::unavailable);
    CHECK(failure_of([&] { b->retry(id); }) == errc::unavailable);
    CHECK(failure_of([&] { b->reschedule(id, b.now()); }) == errc::unavailable);
    CHECK(failure_of([&] { b->schedule("s", ax::every{1s}, probe); }) == errc::unavailable);
    CHECK(failure_of([&] { b->unschedule("s"); }) == errc::unavailable);
    CHECK(failure_of([&] { b->on(other, [] {}); }) == errc::unavailable);
    away = false;
    b.run_for(2h);
    CHECK(b->list().size() == 1);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b->schedules().empty());
    b->on(other, [] {});
}

TEST_CASE("a claimed task whose cancel cannot be stored goes on as if nothing were", "[scheduler][storage][cancel]") {
    hosted_bench b;
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    auto const id = b.tasks.submit(probe, {}, {.delay = 30ms}).id;
    b.poll();
    REQUIRE(b.state(id) == task_state::dispatched);
    bool away = true;
    b.store.hooks().before_transact = [&] {
        if (away) unavailable();
    };
    CHECK(failure_of([&] { b.tasks.cancel(id); }) == ax::errc::unavailable);
    away = false;
    b.clock.advance(10s);
    b.settle();
    CHECK(runs == 1);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("a start that cannot take over says so, and may be tried again", "[scheduler][storage][recovery]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->submit(probe);
    bool away = true;
    b.store.hooks().before_transact = [&] {
        if (away) unavailable();
    };
    CHECK(failure_of([&] { b.poll(); }) == ax::errc::unavailable);
    away = false;
    CHECK(b.poll() == 1);
}

TEST_CASE("an outcome whose follow-up is refused does not stand in the way of others", "[scheduler][storage]") {
    bench b;
    b.store.hooks().before_insert = [](std::span<ax::new_task const> tasks) {
        for (auto const& task : tasks)
            if (task.key == "refused") throw ax::error(ax::errc::invalid_argument, "no such thing");
    };
    int runs = 0;
    b->on(probe, [&](ax::context& ctx) {
        ++runs;
        ctx.submit(other, {}, {.key = "refused"});
    });
    b->on(other, [] {});
    b->on(shipping, [](parcel const&) {});
    auto const bad = b->submit(probe).id;
    std::vector<task_id> good;
    for (int i = 0; i != 20; ++i) good.push_back(b->submit(shipping, {i, ""}).id);
    b.run_for(1min);
    for (auto const id : good) CHECK(b.state(id) == task_state::succeeded);
    CHECK(runs == 1);
    CHECK(b.state(bad) == task_state::dead);
    CHECK(contains(b.get(bad).last_error, "no such thing"));
    CHECK(b->health().storage_ok);
}

TEST_CASE("a commit that was made though the storage cannot say so loses nothing", "[scheduler][storage]") {
    auto const failing = GENERATE(range(0, 8));
    CAPTURE(failing);
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->schedule("s", ax::every{10s}, probe);
    for (int i = 0; i != 3; ++i) b->submit(probe, {}, {.delay = i * 1s});
    b.poll();
    int count = 0;
    b.store.hooks().after_transact = [&] {
        if (count++ == failing) throw ax::error(ax::errc::outcome_unknown, "connection lost");
    };
    b.run_for(15s);
    b.store.hooks() = {};
    b.run_for(4s); // where the very last poll met the failure
    CHECK(b->health().storage_ok);
    for (auto const& task : b->list()) CHECK(task.state == task_state::succeeded);
    CHECK(runs == 4); // three, and one occurrence
}

TEST_CASE("a fixed delay goes on when the storage fails as it is armed", "[scheduler][storage][schedules]") {
    auto const failing = GENERATE(range(0, 8));
    bool const reads = GENERATE(false, true);
    CAPTURE(failing, reads);
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->schedule("s", ax::after_each{10s}, probe);
    b.poll();
    int count = 0;
    auto const fail = [&] {
        if (count++ == failing) unavailable();
    };
    (reads ? b.store.hooks().before_read : b.store.hooks().before_transact) = fail;
    b.run_for(35s);
    b.store.hooks() = {};
    CHECK(runs == 3);
}

TEST_CASE("with threads, a storage that fails now and then loses nothing", "[scheduler][storage][threads]") {
    store_type store;
    std::atomic<unsigned> count{0};
    store.hooks().before_transact = [&] {
        if (++count % 5 == 4) unavailable();
    };
    store.hooks().before_upcoming = [&] {
        if (++count % 7 == 6) unavailable();
    };
    tally ended;
    tally runs;
    ax::scheduler tasks{store, ax::options{.workers = 3}};
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) ++ended;
    });
    auto const insist = [](auto&& call) {
        for (;;) try {
                call();
                return;
            } catch (ax::error const& e) {
                if (e.kind() != ax::errc::unavailable) throw;
            }
    };
    insist([&] { tasks.on(probe, [&] { ++runs; }); });
    insist([&] { tasks.start(); });
    for (int i = 0; i != 300; ++i) insist([&] { tasks.submit(probe); });
    CHECK(ended.reaches(300, 120s));
    CHECK(runs.value() == 300);
}

TEST_CASE("an outcome that cannot be stored, ever, stands in nobody's way", "[scheduler][storage]") {
    bench b;
    task_id bad{};
    b->on(probe, [] {});
    b->on(shipping, [](parcel const&) {});
    bad = b->submit(probe).id;
    b.store.hooks().before_settle = [&](std::span<ax::attempt_end const> ends) {
        for (auto const& end : ends)
            if (end.id == bad) throw ax::error(ax::errc::corrupt, "a row that makes no sense");
    };
    std::vector<task_id> good;
    for (int i = 0; i != 20; ++i) good.push_back(b->submit(shipping, {i, ""}).id);
    b.run_for(1min);
    for (auto const id : good) CHECK(b.state(id) == task_state::succeeded);
    auto const late = b->submit(shipping, {99, ""}).id;
    b.run_for(1min);
    CHECK(b.state(late) == task_state::succeeded);
    CHECK(b->health().unsettled == 1);
    CHECK(b.state(bad) == task_state::dispatched);

    b.store.hooks() = {};
    b.restart([](simulated& tasks) {
        tasks.on(probe, [] {});
        tasks.on(shipping, [](parcel const&) {});
    });
    b.run_for(1min);
    CHECK(b.state(bad) == task_state::succeeded); // at least once, as for every end of the process
}

TEST_CASE("a claim that cannot be stored, ever, stands in nobody's way", "[scheduler][storage]") {
    bench b;
    task_id bad{};
    b->on(probe, [] {});
    b->on(shipping, [](parcel const&) {});
    bad = b->submit(probe).id;
    b.store.hooks().before_claim = [&](std::span<ax::claim_request const> requests) {
        for (auto const& request : requests)
            if (request.id == bad) throw ax::error(ax::errc::corrupt, "a row that makes no sense");
    };
    std::vector<task_id> good;
    for (int i = 0; i != 20; ++i) good.push_back(b->submit(shipping, {i, ""}).id);
    for (int i = 0; i != 120; ++i) b.poll_after(1s);
    for (auto const id : good) CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.state(bad) == task_state::ready);
}

TEST_CASE("a schedule whose step cannot be stored, ever, stands in nobody's way", "[scheduler][storage]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->on(shipping, [](parcel const&) {});
    b->schedule("broken", ax::every{10s}, probe);
    b.store.hooks().before_step = [] { throw ax::error(ax::errc::corrupt, "no such type"); };
    auto const good = b->submit(shipping, {1, ""}, {.delay = 20s}).id;
    b.run_for(1min);
    CHECK(b.state(good) == task_state::succeeded);
    CHECK(runs == 0);
    b.store.hooks() = {};
    b->schedule("broken", ax::every{5s}, probe); // declared anew
    b.run_for(12s);
    CHECK(runs == 2);
}

TEST_CASE("a fixed delay whose step cannot be stored keeps no other waiting", "[scheduler][storage]") {
    bench b;
    int runs = 0;
    int steps = 0;
    b->on(probe, [&] {
        if (++runs != 3) return;
        b.store.hooks().before_step = [&] { // what comes now counts the next instants from these ends
            if (++steps == 1) throw ax::error(ax::errc::corrupt, "no such type");
        };
    });
    for (auto const name : {"a", "b", "c"}) b->schedule(name, ax::after_each{10s}, probe);
    b.clock.advance(10s);
    b.poll();
    b.poll();
    REQUIRE(runs == 3);
    CHECK(steps == 3);
    std::size_t planned = 0;
    for (auto const& each : b->schedules()) planned += each.next.has_value();
    CHECK(planned == 2);
    b.run_for(1min);
    for (auto const& each : b->schedules()) CHECK(each.fired >= 5); // a sweep found the third
}

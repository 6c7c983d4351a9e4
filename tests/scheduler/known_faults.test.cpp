// SPDX-License-Identifier: MIT
// Faults of other schedulers that no other test here shows to be absent; docs/reliability.md names them by their ids.
#include "scheduler/support.hpp"

#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"

#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace test;

TEST_CASE("an occurrence that is cancelled is the only one that does not run", "[scheduler][schedules]") { // F005
    bench b;
    std::vector<ax::time_point> planned;
    b->on(probe, [&](ax::context& ctx) { planned.push_back(ctx.scheduled_at()); });
    auto const start = b.now();
    ax::schedule_options how;
    how.overlap = ax::overlap::queue_all;
    b->schedule("s", ax::every{1min}, probe, {}, how);
    b.run_for(1min);
    b->pause(probe);
    b.run_for(3min);
    std::size_t cancelled = 0;
    for (auto const& task : b->list({.state = task_state::ready}))
        cancelled += b->cancel(task.id) == cancel_outcome::cancelled;
    CHECK(cancelled == 3); // all that there was of it
    b->resume(probe);
    b.run_for(2min);
    CHECK(planned == std::vector{start + 1min, start + 5min, start + 6min});
    REQUIRE(b->schedules().size() == 1);
    CHECK(b->schedules()[0].next == start + 7min);
}

TEST_CASE("a run that takes forty days is not started a second time", "[scheduler][recovery]") { // F017
    hosted_bench b;
    int runs = 0;
    int others = 0;
    b.tasks.on(other, [&] { ++others; });
    b.tasks.on(probe, [&](ax::context& ctx) {
        ++runs;
        for (int day = 0; day != 40; ++day) {
            b.tasks.submit(other);
            b.pass(24h);
            b.loop.drain();
        }
        CHECK(ctx.still_mine());
    });
    auto const id = b.tasks.submit(probe).id;
    b.settle();
    CHECK(runs == 1);
    CHECK(others == 40);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.tasks.find(id)->attempts == 1);
}

TEST_CASE("each start is a node of its own, whatever it is called", "[scheduler][recovery]") { // F030, F034
    bench b{{.workers = 1, .node_name = "till 3", .seed = 7}};
    queue_executor loop;
    std::vector<ax::node_id> nodes;
    int runs = 0;
    auto const claim_one = [&](task_id id) { // and the loop never comes to it
        hosted tasks{b.store, b.settings, b.clock, loop};
        tasks.on(probe, [&] { ++runs; });
        tasks.poll(b.now());
        nodes.push_back(b.store.find(id)->node);
        REQUIRE(b.store.find(id)->state == task_state::dispatched);
    };
    auto const id = b->submit(probe).id;
    claim_one(id);
    claim_one(id);
    CHECK(nodes[0] != nodes[1]);

    // What the one before held when it died is no longer its own, though this one has its name.
    claim_elsewhere(b.store, id, b.now(), false, to_number(nodes[1]));
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); });
    CHECK(b.poll() == 1);
    CHECK(runs == 1);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("every call after stop has an answer, and what is stored stays steerable", "[scheduler][stop][threads]") { // F105
    bench b;
    b->on(probe, [] {});
    auto const waiting = b->submit(probe, {}, {.delay = 1h}).id;
    auto const moved = b->submit(probe, {}, {.delay = 1h}).id;
    b.poll();
    b->stop();
    CHECK(failure_of([&] { b->submit(probe); }) == ax::errc::stopped);
    CHECK(failure_of([&] { b->start(); }) == ax::errc::stopped);
    CHECK(failure_of([&] { b->backfill("s", b.now() - 1h, b.now()); }) == ax::errc::stopped);
    CHECK(b->cancel(waiting) == cancel_outcome::cancelled);
    CHECK(b->cancel_and_wait(waiting, 1h) == cancel_outcome::too_late);
    CHECK(b->retry(waiting) == change_outcome::done);
    CHECK(b->reschedule(moved, b.now()) == change_outcome::done);
    CHECK(b->find(moved)->state == task_state::ready);
    CHECK(b->list().size() == 2);
    CHECK_FALSE(b->explain(moved).empty());
    CHECK(b->health().storage_ok);
    CHECK_FALSE(b->unschedule("s"));
    b->pause(probe);
    b->resume(probe);
    b.clock.advance(24h);
    CHECK(b.poll() == 0); // it runs nothing any more
    CHECK(b->stop().still_running == 0);
    int runs = 0;
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); });
    b.poll();
    CHECK(runs == 2);
}

TEST_CASE("a wall clock that leaps while the threads sleep is noticed by themselves",
          "[scheduler][clock][threads]") { // F062
    ax::testing::manual_clock clock;
    tally runs;
    tally stored;
    simulated tasks{store_type{}, {.workers = 1}, clock};
    tasks.on(probe, [&] { ++runs; });
    tasks.on(other, [] {});
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) ++stored;
    });
    tasks.start();
    tasks.schedule("s", ax::every{12h}, probe); // due in a night, and so would be a sleep until then
    for (std::size_t i = 1; i != 20; ++i) {
        tasks.submit(other);
        REQUIRE(stored.reaches(i));
    }
    clock.set(clock.now() + 24h); // nobody is told
    CHECK(runs.reaches(1));
    tasks.stop(60s);
    CHECK(tasks.schedules().at(0).skipped == 1);
}

TEST_CASE("a retry wait in one route delays no other", "[scheduler][order][routes]") { // F122
    bench b{{.workers = 1, .claimed_ahead = 1}};
    std::vector<int> order;
    b->on(shipping,
          [&](parcel const& p) {
              order.push_back(p.number);
              if (p.number == 1) throw std::runtime_error("no");
          },
          {.retry = ax::retry::fixed(1h)});
    for (auto const* const key : {"a", "a", "b", "b"})
        b->submit(shipping, {static_cast<int>(b->list().size()) + 1, ""}, {.route_key = key});
    auto const start = b.now();
    b.poll();
    CHECK(order == std::vector{1, 3, 4}); // 2 waits behind 1, which is to be tried again
    CHECK(b.now() == start);
}

TEST_CASE("a timeout counts from the beginning of each run", "[scheduler][limits]") { // F181, F196
    hosted_bench b;
    std::size_t stopped = 0;
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   auto const token = ctx.stop_token();
                   b.pass(9s);
                   stopped += token.stop_requested();
                   if (ctx.attempt() == 1) throw std::runtime_error("once more");
               },
               {.retry = ax::retry::fixed(5s), .timeout = 10s});
    b.tasks.schedule("s", ax::every{1min}, probe);
    auto const late = b.tasks.submit(probe, {}, {.delay = 1h}).id; // to wait is no part of a run
    b.poll();
    for (int i = 0; i != 720; ++i) {
        b.pass(5s);
        b.settle();
    }
    b.settle();
    CHECK(stopped == 0);
    auto const ended = b.tasks.list({.state = task_state::succeeded, .limit = 1'000});
    CHECK(ended.size() > 50);
    CHECK(b.tasks.find(late)->started >= b.tasks.find(late)->created + 1h);
    CHECK(b.state(late) == task_state::succeeded);
}

TEST_CASE("text that looks like SQL is text", "[scheduler][sqlite]") { // F215
    temporary_directory const directory;
    ax::testing::manual_clock clock;
    ax::scheduler tasks{ax::sqlite_storage{directory.file("store.db")}, {}, clock};
    auto const text = GENERATE(as<std::string>{}, "'; DELETE FROM ax_task; --", "\" OR 1=1 --", "%", "?1", "$x", "a_b");
    CAPTURE(text);
    ax::task_type<> const odd{text};
    auto const plain = tasks.submit(probe, {}, {.key = "plain", .delay = 1h}).id;
    ax::submit_options how{.key = text, .delay = 1h, .route_key = text};
    how.tags = {text};
    auto const id = tasks.submit(odd, {}, how).id;
    tasks.schedule(text, ax::every{1h}, odd);
    tasks.limit_tag(text, {.concurrency = 1});
    tasks.pause(odd);
    CHECK(tasks.find_by_key(text)->id == id);
    CHECK(tasks.find(id)->type == text);
    CHECK(tasks.find(id)->route_key == text);
    CHECK(tasks.find(id)->tags == std::vector{text});
    ax::task_filter wanted;
    wanted.type = text;
    CHECK(tasks.list(wanted).size() == 1);
    CHECK(tasks.schedules().at(0).name == text);
    CHECK(tasks.unschedule(text));
    CHECK_FALSE(tasks.find_by_key("x' OR key = 'plain").has_value());
    CHECK(tasks.find(plain)->state == task_state::ready);
    CHECK(tasks.verify().empty());
}

TEST_CASE("a scheduler that lives as long as the program ends with it", "[scheduler][stop][threads]") { // F225, F226
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        static tally runs;
        static ax::scheduler tasks{ax::sqlite_storage{path}, ax::options{.workers = 2}};
        tasks.on(probe, [] { ++runs; });
        tasks.start();
        for (int i = 0; i != 10; ++i) tasks.submit(probe);
        std::exit(runs.reaches(1) ? 42 : 43); // threads at work, and nobody has called stop()
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 42);
    ax::sqlite_storage const store{path};
    CHECK(store.was_clean());
    ax::task_filter wanted;
    std::size_t in_order = 0;
    for (auto const& task : store.list(wanted, ax::now()))
        in_order += task.state == task_state::succeeded || task.state == task_state::ready;
    CHECK(in_order == 10);
}

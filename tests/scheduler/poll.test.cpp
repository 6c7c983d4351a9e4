// SPDX-License-Identifier: MIT
// Driving from a loop of the host's: poll(), next_wakeup(), on_wakeup(), and an executor of its own.
#include "scheduler/support.hpp"

#include <thread>

using namespace test;

TEST_CASE("next_wakeup says when to poll: nothing, now, soon, in a year", "[scheduler][poll]") {
    bench b;
    CHECK(b->next_wakeup() == b.now()); // it has not taken over yet
    b.poll();
    CHECK_FALSE(b->next_wakeup().has_value());
    std::vector<ax::time_point> runs;
    b->on(probe, [&] { runs.push_back(b.now()); });
    b.poll();
    CHECK_FALSE(b->next_wakeup().has_value());

    auto const start = b.now();
    b->submit(probe, {}, {.delay = 24h * 365});
    REQUIRE(b->next_wakeup().has_value());
    CHECK(*b->next_wakeup() > start + 24h * 364);
    CHECK(*b->next_wakeup() <= start + 24h * 365);
    b->submit(probe, {}, {.delay = 2h});
    CHECK(*b->next_wakeup() > start + 1h);
    CHECK(*b->next_wakeup() <= start + 2h);
    b->submit(probe, {}, {.delay = 1min});
    CHECK(b->next_wakeup() == start + 1min);
    b->submit(probe);
    CHECK(b->next_wakeup() == start);

    auto const polls = b.run_for(24h * 366);
    CHECK(runs == std::vector{start, start + 1min, start + 2h, start + 24h * 365});
    CHECK(polls < 20);
    CHECK_FALSE(b->next_wakeup().has_value());
}

TEST_CASE("a task that a restart finds a year ahead runs at its instant", "[scheduler][poll]") {
    bench b;
    std::optional<ax::time_point> ran;
    auto const due = b.now() + 24h * 365;
    b->submit(probe, {}, {.run_at = due});
    b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ran = b.now(); }); });
    auto const polls = b.run_for(24h * 366);
    CHECK(ran == due);
    CHECK(polls < 10);
}

TEST_CASE("a handler that submits itself anew for at once does not keep poll from returning", "[scheduler][poll]") {
    bench b;
    std::size_t runs = 0;
    bool const follow_up = GENERATE(false, true);
    std::size_t const backlog = GENERATE(std::size_t{0}, std::size_t{10'000}); // more than one page of the store
    CAPTURE(follow_up, backlog);
    b->on(probe, [&](ax::context& ctx) {
        ++runs;
        if (follow_up)
            ctx.submit(probe, {});
        else
            b->submit(probe);
    });
    b->submit_all(probe, std::vector<ax::no_payload>(backlog + 1));
    CHECK(b.poll() <= backlog + 2);
    CHECK(b->next_wakeup() == b.now());
    auto const before = runs;
    CHECK(b.poll() <= backlog + 2);
    CHECK(runs > before);
}

TEST_CASE("a handler's own deadline-less loop of retries does not keep poll from returning", "[scheduler][poll]") {
    bench b;
    int runs = 0;
    b->on(probe, [&](ax::context& ctx) {
        ++runs;
        auto const id = ctx.task().id;
        b->submit(other, {}, {.key = "k" + std::to_string(runs)});
        CHECK(b->cancel(id) == cancel_outcome::stop_requested);
        (void)ctx.stop_token();
    });
    b->on(other, [&](ax::context& ctx) { b->retry(task_id{ax::to_number(ctx.task().id) - 1}); });
    b->submit(probe);
    CHECK(b.poll() <= 2);
    CHECK(runs == 1);
}

TEST_CASE("on_wakeup is called when there is something to do earlier than was said", "[scheduler][poll][threads]") {
    bench b;
    int woken = 0;
    b->on_wakeup([&] { ++woken; });
    b->on(probe, [] {});
    b.poll();
    b->next_wakeup();
    woken = 0;
    b->submit(probe, {}, {.delay = 1h});
    CHECK(woken == 1);
    b->next_wakeup();
    b->submit(probe, {}, {.delay = 2h});
    CHECK(woken == 1); // later than what was said
    b->submit(probe, {}, {.delay = 1min});
    CHECK(woken == 2);
    b->next_wakeup();
    b->schedule("s", ax::every{10s}, other);
    CHECK(woken == 3);
    b->next_wakeup();
    std::jthread{[&] { b->submit(probe); }}.join();
    CHECK(woken == 4);
    b.poll();
    b->next_wakeup();
    woken = 0;
    auto const id = b->submit(probe, {}, {.delay = 5h}).id;
    b->reschedule(id, b.now());
    CHECK(woken >= 1);
}

TEST_CASE("an executor of the host's runs the handlers, at most `workers` of them at once", "[scheduler][poll]") {
    hosted_bench b{{.workers = 3}};
    int runs = 0;
    int woken = 0;
    b.tasks.on_wakeup([&] { ++woken; });
    b.tasks.on(probe, [&] { ++runs; });
    std::vector<task_id> ids;
    for (int i = 0; i != 8; ++i) ids.push_back(b.tasks.submit(probe).id);
    CHECK(b.poll() == 3);
    CHECK(b.loop.size() == 3);
    CHECK(runs == 0);
    b.tasks.next_wakeup();
    woken = 0;
    b.loop.step();
    CHECK(runs == 1);
    CHECK(woken > 0);          // its outcome is to be settled
    CHECK(b.loop.size() == 3); // and the next one has been handed over
    CHECK(b.state(ids[0]) != task_state::succeeded);
    b.poll();
    CHECK(b.state(ids[0]) == task_state::succeeded);
    b.settle();
    CHECK(runs == 8);
}

TEST_CASE("an executor that refuses work keeps nothing from returning, and nothing is lost", "[scheduler][poll]") {
    hosted_bench b{{.workers = 2}};
    int runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    std::vector<task_id> ids;
    for (int i = 0; i != 5; ++i) ids.push_back(b.tasks.submit(probe).id);
    b.loop.refuse(true);
    CHECK(b.poll() == 0);
    CHECK(b.poll() == 0);
    CHECK(runs == 0);
    CHECK(b.tasks.health().running == 0);
    b.loop.refuse(false);
    b.settle();
    CHECK(runs == 5);
    for (auto const id : ids) CHECK(b.tasks.find(id)->attempts == 1);
}

TEST_CASE("a scheduler that is polled cannot be started, and time may stand still or go back between polls",
          "[scheduler][poll]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->submit(probe, {}, {.delay = 10s});
    b.poll();
    CHECK(failure_of([&] { b->start(); }) == invalid);
    CHECK(b->poll(b.now() - 1s) == 0);
    CHECK(b->poll(b.now()) == 0);
    CHECK(b->poll(b.now() + 10s) == 1); // it is as late as the host says
    CHECK(runs == 1);
}

TEST_CASE("poll tells handlers and delays the instant that it was given", "[scheduler][poll]") {
    bench b;
    std::optional<ax::time_point> due;
    b->on(probe, [&](ax::context& ctx) {
        due = b->find(b->submit(other, {}, {.delay = 5s}).id)->run_at;
        (void)ctx;
    });
    auto const later = b.now() + 3h;
    b->submit(probe);
    b->poll(later);
    CHECK(due == later + 5s);
}

TEST_CASE("a memory that holds a hundred ids serves ten thousand tasks in time", "[scheduler][poll][memory]") {
    bench b{{.window_tasks = 100}};
    std::size_t runs = 0;
    std::size_t late = 0;
    std::size_t most = 0;
    b->on(shipping, [&](parcel const&, ax::context& ctx) {
        ++runs;
        late += b.now() != ctx.scheduled_at();
        most = (std::max)(most, b->health().in_memory);
    });
    std::vector<parcel> parcels(10'000);
    for (std::size_t i = 0; i != parcels.size(); ++i) parcels[i].number = static_cast<int>(i);
    auto const start = b.now();
    b->submit_all(shipping, parcels, [&](parcel const& p) {
        return ax::submit_options{.run_at = start + ax::duration{p.number * 7919 % 10'000 * 60}};
    });
    b.run_for(11min);
    CHECK(runs == parcels.size());
    CHECK(late == 0);
    CHECK(most <= 100 + 4 * 64 + 64);
    CHECK(b.store.rows_read() < 40'000); // each about once, not a page again and again
}

TEST_CASE("a memory full of later tasks does not keep a due one waiting", "[scheduler][poll][memory]") {
    bench b{{.window_tasks = 100}};
    std::vector<ax::time_point> runs;
    b->on(shipping, [&](parcel const&) {});
    b->on(probe, [&] { runs.push_back(b.now()); });
    b->submit_all(shipping, std::vector<parcel>(1'000),
                  [](parcel const&) { return ax::submit_options{.delay = 4min}; });
    b.poll();
    auto const start = b.now();
    b->submit(probe, {}, {.priority = ax::priority::critical});
    b.poll();
    CHECK(runs == std::vector{start});
    b.clock.advance(30s);
    b.poll();
    b->submit(probe);
    b.poll();
    CHECK(runs.size() == 2);
}

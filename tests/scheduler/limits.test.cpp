// SPDX-License-Identifier: MIT
// Timeouts, expected run times and deadlines, and the rules for what a stopped attempt came to.
#include "scheduler/support.hpp"

#include <memory>

using namespace test;

namespace {

enum class ends { returns, throws, gives_up, skips, snoozes };

void end(ends how) {
    switch (how) {
    case ends::returns: return;
    case ends::throws: throw std::runtime_error("cut off");
    case ends::gives_up: throw ax::give_up{"gave up"};
    case ends::skips: throw ax::skip{"skipped"};
    case ends::snoozes: throw ax::snooze{1h};
    }
}

} // namespace

TEST_CASE("what a stopped handler came to: each way of ending, with its token taken or not", "[scheduler][limits]") {
    using o = attempt_outcome;
    struct row {
        ends how;
        bool takes_token;
        o timed_out, deadline, cancelled;
    };
    auto const expected = GENERATE(values<row>({
        {ends::returns, false, o::succeeded, o::succeeded, o::succeeded},
        {ends::returns, true, o::failed, o::expired, o::cancelled},
        {ends::throws, false, o::failed, o::expired, o::cancelled},
        {ends::throws, true, o::failed, o::expired, o::cancelled},
        {ends::gives_up, false, o::exhausted, o::exhausted, o::exhausted},
        {ends::gives_up, true, o::exhausted, o::exhausted, o::exhausted},
        {ends::skips, true, o::skipped, o::skipped, o::skipped},
        {ends::snoozes, false, o::snoozed, o::snoozed, o::snoozed},
        {ends::snoozes, true, o::failed, o::expired, o::cancelled},
    }));
    CAPTURE(static_cast<int>(expected.how), expected.takes_token);
    auto const reason = GENERATE(0, 1, 2);
    CAPTURE(reason);
    hosted_bench b;
    std::function<void()> meanwhile;
    bool asked = false;
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   std::optional<std::stop_token> token;
                   if (expected.takes_token) token = ctx.stop_token();
                   meanwhile();
                   asked = token && token->stop_requested();
                   end(expected.how);
               },
               {.timeout = 10s});
    auto const id = b.tasks.submit(probe, {}, {.deadline = b.clock.now() + (reason == 1 ? 5s : 1h)}).id;
    meanwhile = [&] {
        // The handler runs on the loop's turn, outside of poll(), so the scheduler can be polled meanwhile.
        if (reason == 0) b.pass(10'001ms);
        if (reason == 1) b.pass(5s);
        if (reason == 2) CHECK(b.tasks.cancel(id) == cancel_outcome::stop_requested);
    };
    b.poll();
    b.loop.drain();
    b.poll();
    CHECK(asked == expected.takes_token);
    CHECK(b.last_outcome(id) == (reason == 0   ? expected.timed_out
                                 : reason == 1 ? expected.deadline
                                               : expected.cancelled));
}

TEST_CASE("a timeout is measured on the steady clock: a stepped wall clock neither causes nor delays it",
          "[scheduler][limits][clock]") {
    hosted_bench b;
    bool stopped = false;
    std::function<void()> meanwhile;
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   auto const token = ctx.stop_token();
                   meanwhile();
                   stopped = token.stop_requested();
               },
               {.retry = ax::retry::none(), .timeout = 10s});
    auto const id = b.tasks.submit(probe).id;
    SECTION("forward by a year: it goes on") {
        meanwhile = [&] {
            b.clock.set(b.clock.now() + 24h * 365);
            b.pass(9'999ms);
        };
    }
    SECTION("back by an hour: it ends when it should") {
        meanwhile = [&] {
            b.clock.set(b.clock.now() - 1h);
            b.pass(10'001ms);
        };
    }
    b.poll();
    auto const start = b.clock.now();
    b.loop.drain();
    bool const set_back = b.clock.now() < start;
    CHECK(stopped == set_back);
    b.poll();
    CHECK(b.state(id) == (set_back ? task_state::dead : task_state::succeeded));
    if (set_back) CHECK(contains(b.tasks.find(id)->last_error, "timeout after 10000 ms"));
}

TEST_CASE("next_wakeup tells of a timeout that comes while a handler runs", "[scheduler][limits][poll]") {
    hosted_bench b;
    std::optional<ax::time_point> next;
    auto const start = b.clock.now();
    b.tasks.on(probe,
               [&] {
                   b.pass(1s); // beyond the mark that notes the start
                   next = b.tasks.next_wakeup();
               },
               {.timeout = 10s});
    b.tasks.submit(probe);
    b.poll();
    b.loop.drain();
    REQUIRE(next.has_value());
    CHECK(*next >= start + 10s);
    CHECK(*next <= start + 10s + 2ms);
}

TEST_CASE("a handler that takes longer than expected is named, and nothing is stopped", "[scheduler][limits]") {
    hosted_bench b;
    bool stopped = true;
    std::vector<ax::task_view> listed;
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   b.pass(4'999ms);
                   CHECK(b.tasks.list({.over_expected = true}).empty());
                   b.pass(3ms);
                   listed = b.tasks.list({.over_expected = true});
                   CHECK(b.tasks.list({.type = "other", .over_expected = true}).empty());
                   CHECK(b.tasks.find(ctx.task().id)->over_expected);
                   stopped = ctx.stop_token().stop_requested();
               },
               {.expected = 5s});
    auto const id = b.tasks.submit(probe).id;
    b.poll();
    b.loop.drain();
    b.poll();
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].id == id);
    CHECK(listed[0].state == task_state::running);
    CHECK_FALSE(stopped);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.tasks.list({.over_expected = true}).empty());
    using e = ax::event_kind;
    CHECK(b.events == std::vector{e::picked_up, e::dispatched, e::overran, e::reported});
}

TEST_CASE("a deadline that passes while a task waits makes it dead without a run", "[scheduler][limits]") {
    bench b;
    int runs = 0;
    SECTION("its type has no handler") {}
    SECTION("its type is paused") {
        b->on(probe, [&] { ++runs; });
        b->pause(probe);
    }
    b.poll();
    auto const id = b->submit(probe, {}, {.deadline = b.now() + 10s}).id;
    CHECK(b->next_wakeup() <= b.now() + 10s);
    b.run_for(9'999ms);
    CHECK(b.state(id) == task_state::ready);
    b.run_for(1ms);
    CHECK(b.state(id) == task_state::dead);
    CHECK(contains(b.get(id).last_error, "deadline"));
    CHECK(b.get(id).attempts == 0);
    CHECK(runs == 0);
}

TEST_CASE("a deadline that passes while a claimed task waits for a worker makes it dead without a run",
          "[scheduler][limits]") {
    hosted_bench b{{.workers = 1}};
    int runs = 0;
    b.tasks.on(other, [&] { b.pass(10s); });
    b.tasks.on(probe, [&] { ++runs; });
    b.tasks.submit(other);
    auto const id = b.tasks.submit(probe, {}, {.deadline = b.clock.now() + 10s}).id;
    b.poll();
    b.loop.drain();
    b.poll();
    b.loop.drain();
    b.poll();
    CHECK(runs == 0);
    CHECK(b.state(id) == task_state::dead);
    CHECK(contains(b.tasks.find(id)->last_error, "deadline"));
}

TEST_CASE("a failure whose retry would come after the deadline is the last", "[scheduler][limits][retry]") {
    bench b;
    b->on(probe, [] { throw std::runtime_error("refused"); }, {.retry = ax::retry::fixed(10s)});
    auto const dead = b->submit(probe, {}, {.deadline = b.now() + 10s}).id;
    auto const again = b->submit(probe, {}, {.deadline = b.now() + 10s + 1ms}).id;
    b.poll();
    CHECK(b.state(dead) == task_state::dead);
    CHECK(contains(b.get(dead).last_error, "refused"));
    CHECK(contains(b.get(dead).last_error, "deadline"));
    CHECK(b.state(again) == task_state::failed);
}

TEST_CASE("those behind a task that its deadline ended go on", "[scheduler][limits][routes]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->submit(other, {}, {.route_key = "r", .deadline = b.now() + 10s}); // no handler: it waits, and holds the key
    auto const behind = b->submit(probe, {}, {.route_key = "r"}).id;
    b.run_for(9s);
    CHECK(runs == 0);
    b.run_for(2s);
    CHECK(runs == 1);
    CHECK(b.state(behind) == task_state::succeeded);
}

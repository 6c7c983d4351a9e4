// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include <string>

using namespace test;

namespace {

/// Three seconds after the first failure, none after the second.
struct twice_at_most {
    std::optional<ax::duration> next_delay(ax::retry::retry_state const& state, ax::retry::random_source&) const {
        if (state.failures >= 2) return std::nullopt;
        return ax::duration{3'000};
    }
};

struct policy_that_throws {
    bool text;
    std::optional<ax::duration> next_delay(ax::retry::retry_state const&, ax::retry::random_source&) const {
        if (text) throw std::runtime_error("no idea");
        throw 42;
    }
};

void always_fails() { throw std::runtime_error("refused"); }

} // namespace

TEST_CASE("the default policy tries four times, a minute and more apart", "[scheduler][retry]") {
    bench b;
    std::vector<ax::time_point> runs;
    b->on(probe, [&] {
        runs.push_back(b.now());
        always_fails();
    });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::failed);
    b.run_for(3h);
    REQUIRE(runs.size() == 4);
    for (std::size_t i = 1; i != 4; ++i) {
        auto const base = 60s * (1 << (i - 1));
        CHECK(runs[i] - runs[i - 1] >= base * 9 / 10);
        CHECK(runs[i] - runs[i - 1] <= base * 11 / 10 + 1ms);
    }
    auto const task = b.get(id);
    CHECK(task.state == task_state::dead);
    CHECK(task.failures == 4);
    CHECK(task.last_error == "refused");
    CHECK(b.outcomes(id) == std::vector{attempt_outcome::failed, attempt_outcome::failed, attempt_outcome::failed,
                                        attempt_outcome::exhausted});
}

TEST_CASE("a task's own policy goes before its handler's, and survives a restart", "[scheduler][retry]") {
    bench b;
    std::vector<ax::time_point> runs;
    auto const prepare = [&](simulated& tasks) {
        tasks.on(probe,
                 [&] {
                     runs.push_back(b.now());
                     always_fails();
                 },
                 {.retry = ax::retry::fixed(1h)});
    };
    b.restart(prepare);
    auto const start = b.now();
    auto const id = b->submit(probe, {}, {.retry = ax::retry::list({2s, 5s})}).id;
    b.poll();
    b.restart(prepare);
    b.run_for(1min);
    CHECK(runs == std::vector{start, start + 2s, start + 7s});
    CHECK(b.state(id) == task_state::dead);
    CHECK(b.get(id).attempts == 3);
}

TEST_CASE("a handler's policy may be any that the concept knows", "[scheduler][retry]") {
    bench b;
    std::vector<ax::time_point> runs;
    b->on(probe,
          [&] {
              runs.push_back(b.now());
              always_fails();
          },
          {.retry = twice_at_most{}});
    auto const start = b.now();
    auto const id = b->submit(probe).id;
    b.run_for(1h);
    CHECK(runs == std::vector{start, start + 3s});
    CHECK(b.state(id) == task_state::dead);
}

TEST_CASE("a policy that throws is noted, and the default one decides", "[scheduler][retry]") {
    bench b;
    auto const text = GENERATE(true, false);
    b->on(probe, always_fails, {.retry = policy_that_throws{text}});
    b->on(other, [] {});
    auto const id = b->submit(probe).id;
    auto const next = b->submit(other).id;
    b.poll();
    CHECK(b.state(id) == task_state::failed);
    CHECK(b.get(id).run_at >= b.now() + 54s);
    CHECK(contains(b.get(id).last_error, "refused"));
    CHECK(contains(b.get(id).last_error, "retry policy"));
    CHECK(b.state(next) == task_state::succeeded);
}

TEST_CASE("a stored policy that does not parse is noted, and the handler's decides", "[scheduler][retry]") {
    bench b;
    b->on(probe, always_fails, {.retry = ax::retry::fixed(7s)});
    task_id id{};
    b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
        ax::new_task task;
        task.type = w.type("probe");
        task.retry = "quadratic 5";
        ax::alarms due;
        id = w.insert(std::span(&task, 1), b.now(), due).at(0).id;
    });
    b.poll();
    CHECK(b.state(id) == task_state::failed);
    CHECK(b.get(id).run_at == b.now() + 7s);
    CHECK(contains(b.get(id).last_error, "refused"));
    CHECK(contains(b.get(id).last_error, "quadratic"));
}

TEST_CASE("retry_after chooses the delay, and the policy still says when it is enough", "[scheduler][retry]") {
    bench b;
    std::vector<ax::time_point> runs;
    b->on(probe,
          [&] {
              runs.push_back(b.now());
              throw ax::retry_after{90s, "patience"};
          },
          {.retry = ax::retry::fixed(1s).attempts(2)});
    auto const start = b.now();
    auto const id = b->submit(probe).id;
    b.run_for(1h);
    CHECK(runs == std::vector{start, start + 90s});
    CHECK(b.state(id) == task_state::dead);
    CHECK(b.get(id).failures == 2);
    CHECK(b.get(id).last_error == "patience");
}

TEST_CASE("snooze uses up nothing", "[scheduler][retry]") {
    bench b;
    int runs = 0;
    b->on(probe,
          [&] {
              ++runs;
              if (runs <= 5) throw ax::snooze{10s, "later"};
              always_fails();
          },
          {.retry = ax::retry::fixed(1s).attempts(2)});
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::ready);
    CHECK(b.get(id).run_at == b.now() + 10s);
    b.run_for(50s);
    CHECK(runs == 6);
    CHECK(b.get(id).snoozes == 5);
    CHECK(b.get(id).failures == 1);
    CHECK(b.state(id) == task_state::failed);
    b.run_for(1s);
    CHECK(b.state(id) == task_state::dead);
    CHECK(b->history(id).size() == 7);
}

TEST_CASE("a snooze of nothing is for the next poll", "[scheduler][retry][poll]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] {
        if (++runs < 100) throw ax::snooze{-5s};
    });
    b->submit(probe);
    CHECK(b.poll() == 1);
    CHECK(b->next_wakeup() == b.now());
    CHECK(b.poll() == 1);
    CHECK(runs == 2);
}

TEST_CASE("give_up and skip end a task at once", "[scheduler][retry]") {
    bench b;
    b->on(probe, [] { throw ax::give_up{"hopeless"}; });
    b->on(other, [] { throw ax::skip{"nothing to do"}; });
    auto const dead = b->submit(probe).id;
    auto const skipped = b->submit(other).id;
    b.poll();
    CHECK(b.state(dead) == task_state::dead);
    CHECK(b.get(dead).last_error == "hopeless");
    CHECK(b.outcomes(dead) == std::vector{attempt_outcome::exhausted});
    CHECK(b.state(skipped) == task_state::skipped);
    CHECK(b.outcomes(skipped) == std::vector{attempt_outcome::skipped});
    CHECK(b->history(skipped).at(0).error == "nothing to do");
    CHECK(b.get(dead).finished == b.now());
}

TEST_CASE("a failure never hot-loops: the next attempt is later than the one that failed", "[scheduler][retry]") {
    bench b;
    int runs = 0;
    b->on(probe,
          [&] {
              ++runs;
              always_fails();
          },
          {.retry = ax::retry::fixed(0s)});
    b->submit(probe);
    CHECK(b.poll() == 1);
    CHECK(b.poll() == 0);
    CHECK(b.poll_after(1ms) == 1);
}

TEST_CASE("the total of a policy counts from the first attempt, also across a restart", "[scheduler][retry]") {
    bench b;
    auto const prepare = [&](simulated& tasks) {
        tasks.on(probe, always_fails, {.retry = ax::retry::fixed(10s).total(25s)});
    };
    b.restart(prepare);
    auto const id = b->submit(probe).id;
    b.poll();
    b.restart(prepare);
    b.run_for(10s);
    CHECK(b.state(id) == task_state::failed);
    b.run_for(10s);
    CHECK(b.state(id) == task_state::dead);
    CHECK(b.get(id).attempts == 3);
}

TEST_CASE("a retry by hand starts the total time anew", "[scheduler][retry]") {
    bench b;
    int runs = 0;
    b->on(probe,
          [&] {
              ++runs;
              throw std::runtime_error("no");
          },
          {.retry = ax::retry::fixed(1s).total(10s)});
    auto const id = b->submit(probe).id;
    b.run_for(1min);
    REQUIRE(b.state(id) == task_state::dead);
    auto const before = runs;
    b.run_for(1h);
    REQUIRE(b->retry(id) == change_outcome::done);
    b.run_for(1min);
    CHECK(runs >= before + 5);
}

// SPDX-License-Identifier: MIT
#include "ax/scheduler/policies.hpp"

#include "ax/storage/sqlite.hpp"

#include "scheduler/support.hpp"
#include "storage/sqlite_fixture.hpp"

using namespace test;

namespace {

/// A schedule "s" of each minute that depends on the past; `bad` says which minutes fail for good.
struct past_bench : bench {
    std::vector<int> ran; ///< minutes
    std::vector<int> bad;
    ax::time_point start;

    past_bench() : start(now()) { again(); }
    void again() {
        restart([this](simulated& tasks) {
            tasks.on(probe, [this](ax::context& ctx) {
                auto const m = minute_of(ctx.scheduled_at());
                ran.push_back(m);
                if (std::count(bad.begin(), bad.end(), m) != 0) throw ax::give_up{"bad"};
                if (m == 77) throw ax::skip{"nothing to do"};
            });
        });
    }
    int minute_of(ax::time_point at) const { return static_cast<int>((at - start) / 60s); }
    ax::schedule_record declare(ax::schedule_options chosen = {}) {
        chosen.depends_on_past = true;
        return (*this)->schedule("s", ax::every{60s}, probe, {}, std::move(chosen));
    }
    ax::task_record at(int minute) {
        auto found = (*this)->store().occurrence("s", start + minute * 60s);
        REQUIRE(found.has_value());
        return std::move(*found);
    }
    bool is_there(int minute) { return (*this)->store().occurrence("s", start + minute * 60s).has_value(); }
    bool says(task_id id, ax::wait_cause cause, std::string_view text, task_id holder = {}) {
        for (auto const& reason : (*this)->explain(id))
            if (reason.cause == cause && contains(reason.text, text) &&
                (holder == task_id{} || reason.holder == "task " + std::to_string(to_number(holder))))
                return true;
        return false;
    }
};

} // namespace

TEST_CASE("depends_on_past: what comes after a failure waits until that is put right",
          "[scheduler][schedules][depends_on_past]") {
    past_bench b;
    b.bad = {2};
    ax::schedule_options how;
    how.overlap = GENERATE(ax::overlap::skip, ax::overlap::allow, ax::overlap::queue_one, ax::overlap::queue_all);
    b.declare(how);
    b.run_for(6min);
    CHECK(b.ran == std::vector{1, 2});
    CHECK(b.at(2).state == task_state::dead);
    for (int m = 3; m <= 6; ++m) CHECK(b.at(m).state == task_state::created); // none is left out
    CHECK(b->schedules().at(0).skipped == 0);
    CHECK(b.says(b.at(3).id, ax::wait_cause::past, "of 2026-01-01T00:02:00", b.at(2).id));
    CHECK(b.says(b.at(3).id, ax::wait_cause::past, "dead, and has to be retried"));
    CHECK(b.says(b.at(4).id, ax::wait_cause::past, "it is created", b.at(3).id));
    CHECK(std::string(to_string(ax::wait_cause::past)) == "past");
    bool const restarted = GENERATE(false, true);
    if (restarted) b.again();
    b.bad.clear();
    CHECK(b->retry(b.at(2).id) == change_outcome::done);
    b.run_for(0s);
    CHECK(b.ran == std::vector{1, 2, 2, 3, 4, 5, 6});
    b.run_for(1min);
    CHECK(b.ran.back() == 7);
}

TEST_CASE("depends_on_past: one that is cancelled keeps those behind it waiting, one that skips itself does not",
          "[scheduler][schedules][depends_on_past]") {
    past_bench b;
    b.declare();
    b->pause(probe);
    b.run_for(2min);
    CHECK(b->cancel(b.at(1).id) == cancel_outcome::cancelled);
    b->resume(probe);
    b.run_for(1min);
    CHECK(b.ran.empty());
    CHECK(b.says(b.at(2).id, ax::wait_cause::past, "cancelled"));
    b->retry(b.at(1).id);
    b.run_for(0s);
    CHECK(b.ran == std::vector{1, 2, 3});
    b.run_for(75min);
    CHECK(b.at(77).state == task_state::skipped);
    CHECK(b.ran.back() == 78);
}

TEST_CASE("depends_on_past: an occurrence waits for one that runs or is to be tried again",
          "[scheduler][schedules][depends_on_past]") {
    hosted_bench b;
    int failures = 1;
    std::vector<ax::time_point> ran;
    b.tasks.on(probe,
               [&](ax::context& ctx) {
                   ran.push_back(ctx.scheduled_at());
                   if (failures-- > 0) throw std::runtime_error("once");
               },
               {.retry = ax::retry::fixed(90s).attempts(3)});
    ax::schedule_options how;
    how.depends_on_past = true;
    auto const start = b.clock.now();
    b.tasks.schedule("s", ax::every{60s}, probe, {}, how);
    b.pass(60s); // the first is posted, and does not return
    b.pass(60s);
    auto const second = b.tasks.store().occurrence("s", start + 120s);
    REQUIRE(second.has_value());
    CHECK(second->state == task_state::created);
    b.settle(); // the first fails, and is tried again in 90 s
    b.pass(60s);
    b.settle();
    CHECK(ran.size() == 1);
    b.pass(30s);
    b.settle();
    CHECK(ran == std::vector{start + 60s, start + 60s, start + 120s, start + 180s});
}

TEST_CASE("depends_on_past: queue_one cancels none of those that wait", "[scheduler][schedules][depends_on_past]") {
    hosted_bench b;
    std::vector<ax::time_point> ran;
    b.tasks.on(probe, [&](ax::context& ctx) { ran.push_back(ctx.scheduled_at()); });
    ax::schedule_options how;
    how.depends_on_past = true;
    how.overlap = ax::overlap::queue_one;
    auto const start = b.clock.now();
    b.tasks.schedule("s", ax::every{60s}, probe, {}, how);
    b.pass(60s);
    b.settle();
    b.tasks.backfill("s", start - 60s, start); // it has the place of the one that runs
    b.pass(60s);
    b.pass(60s);
    CHECK(b.tasks.store().occurrence("s", start + 120s)->blocked);
    b.settle();
    CHECK(ran == std::vector{start + 60s, start - 60s, start + 120s, start + 180s});
}

TEST_CASE("depends_on_past: a run that is asked for keeps the order", "[scheduler][schedules][depends_on_past]") {
    past_bench b;
    b.bad = {1};
    b.declare();
    b.run_for(90s);
    auto const extra = b->run_now("s").id;
    CHECK(b.get(extra).state == task_state::created);
    b.run_for(30s);
    CHECK(b.at(2).state == task_state::created);
    CHECK(b.says(b.at(2).id, ax::wait_cause::past, "created", extra));
    b.bad.clear();
    b->retry(b.at(1).id);
    b.run_for(0s);
    CHECK(b.ran == std::vector{1, 1, 1, 2}); // the one that was asked for at 1:30 lies between
}

TEST_CASE("depends_on_past: a fixed delay waits as well, and has one occurrence at a time",
          "[scheduler][schedules][depends_on_past]") {
    bench b;
    int runs = 0;
    bool fails = true;
    b->on(probe, [&] {
        ++runs;
        if (fails) throw ax::give_up{"bad"};
    });
    ax::schedule_options how;
    how.depends_on_past = true;
    b->schedule("s", ax::after_each{60s}, probe, {}, how);
    b.run_for(10min);
    CHECK(runs == 1);
    CHECK(b->schedules().at(0).fired == 2);
    auto const waiting = b.get(b->schedules().at(0).last_task);
    CHECK(waiting.state == task_state::created);
    fails = false;
    ax::task_filter dead;
    dead.state = task_state::dead;
    b->retry(b->list(dead).at(0).id);
    b.run_for(0s);
    CHECK(runs == 3);
    b.run_for(60s);
    CHECK(runs == 4);
}

TEST_CASE("depends_on_past: a backfill runs in the order of its instants and stops where one fails",
          "[scheduler][schedules][depends_on_past][backfill]") {
    past_bench b;
    b.clock.advance(60min);
    b.start = b.now() - 60min;
    b.bad = {30};
    b.declare();
    b->pause_schedule("s");
    ax::backfill_options chosen;
    chosen.at_once = GENERATE(1U, 4U, 100U);
    b->backfill("s", b.start + 20min, b.start + 40min, chosen);
    b.run_for(10min);
    std::vector<int> expected;
    for (int m = 20; m <= 30; ++m) expected.push_back(m);
    CHECK(b.ran == expected);
    CHECK(b->backfills().size() == (chosen.at_once == 100 ? 1U : 1U));
    CHECK_FALSE(b.is_there(31 + static_cast<int>(chosen.at_once)));
    bool const restarted = GENERATE(false, true);
    if (restarted) b.again();
    b.bad.clear();
    b->retry(b.at(30).id);
    b.run_for(0s);
    expected.push_back(30);
    for (int m = 31; m < 40; ++m) expected.push_back(m);
    CHECK(b.ran == expected);
    CHECK(b->backfills().empty());
}

TEST_CASE("depends_on_past: the option counts for what comes, and what waits goes on waiting without it",
          "[scheduler][schedules][depends_on_past]") {
    past_bench b;
    b.bad = {1};
    b.declare();
    b.run_for(2min);
    CHECK(b.at(2).state == task_state::created);
    b->schedule("s", ax::every{60s}, probe);
    b.run_for(1min);
    CHECK(b.ran == std::vector{1, 3});
    CHECK(b.at(2).state == task_state::created);
}

TEST_CASE("depends_on_past: a clock that ran ahead and is set back makes nobody wait for the future",
          "[scheduler][schedules][depends_on_past][clock]") {
    past_bench b;
    b.bad = {60 * 24};
    b.declare();
    b.run_for(2min);
    b.clock.set(b.start + 24h);
    b.poll();
    REQUIRE(b.ran.back() == 60 * 24);
    b.clock.set(b.start + 150s);
    b.run_for(2min);
    CHECK(b.ran == std::vector{1, 2, 60 * 24, 3, 4});
}

TEST_CASE("depends_on_past: what is pruned has not to be waited for", "[scheduler][schedules][depends_on_past]") {
    bench b;
    b.settings.retention = {.age = 10min, .dead_age = 10min};
    int runs = 0;
    bool fails = false;
    b.restart([&](simulated& tasks) {
        tasks.on(probe, [&] {
            ++runs;
            if (fails) throw ax::give_up{"bad"};
        });
    });
    ax::schedule_options how;
    how.depends_on_past = true;
    auto const start = b.now();
    b->schedule("s", ax::every{1h}, probe, {}, how);
    b.run_for(5h);
    CHECK(runs == 5);
    CHECK_FALSE(b->store().occurrence("s", start + 2h).has_value());
    fails = true;
    b.run_for(5h);
    CHECK(runs == 6);
    auto const dead = b->store().occurrence("s", start + 6h); // waited for: it is kept
    REQUIRE(dead.has_value());
    fails = false;
    b->retry(dead->id);
    b.run_for(0s);
    CHECK(runs == 11);
}

TEST_CASE("depends_on_past on SQLite: what waits is let go after a restart",
          "[scheduler][schedules][depends_on_past]") {
    temporary_directory const directory;
    ax::testing::manual_clock clock;
    auto const start = clock.now();
    std::vector<int> ran;
    bool fails = true;
    using durable = ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock>;
    std::optional<durable> tasks;
    auto const open = [&] {
        tasks.reset();
        tasks.emplace(ax::sqlite_storage{directory.file("store.db")},
                      ax::options{.durability = ax::durability::process_crash}, clock);
        tasks->on(probe, [&](ax::context& ctx) {
            ran.push_back(static_cast<int>((ctx.scheduled_at() - start) / 60s));
            if (fails) throw ax::give_up{"bad"};
        });
    };
    auto const drive = [&](ax::duration span) {
        for (auto const end = clock.now() + span;;) {
            tasks->poll(clock.now());
            auto const next = tasks->next_wakeup();
            if (!next || *next > end) {
                clock.set(end);
                tasks->poll(end);
                return;
            }
            if (*next > clock.now()) clock.set(*next);
        }
    };
    open();
    ax::schedule_options how;
    how.depends_on_past = true;
    tasks->schedule("s", ax::every{60s}, probe, {}, how);
    drive(3min);
    CHECK(ran == std::vector{1});
    auto const first = tasks->store().occurrence("s", start + 1min);
    REQUIRE(first.has_value());
    open();
    drive(0s);
    CHECK(tasks->explain(tasks->store().occurrence("s", start + 2min)->id).front().cause == ax::wait_cause::past);
    fails = false;
    CHECK(tasks->mark_catch_up("s", start + 3min) == ax::period_outcome::done);
    tasks->retry(first->id);
    drive(0s);
    CHECK(ran == std::vector{1, 1, 2});
    open();
    ax::backfill_options chosen;
    chosen.at_once = 1;
    CHECK(tasks->backfill("s", start - 3min, start, chosen).planned == 3);
    drive(0s);
    CHECK(ran == std::vector{1, 1, 2, -3, -2, -1});
    CHECK(tasks->backfills().empty());
    CHECK(tasks->release_all("s") == 1);
    drive(0s);
    CHECK(ran.back() == 3);
    CHECK(tasks->verify().empty());
}

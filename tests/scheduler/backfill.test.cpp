// SPDX-License-Identifier: MIT
#include "ax/scheduler/backfill.hpp"

#include "scheduler/support.hpp"

using namespace test;

namespace {

/// An hourly schedule "s" whose runs are written down.
struct backfill_bench : bench {
    std::vector<ax::time_point> planned; ///< scheduled_at() of each run
    std::vector<std::string> notes;
    ax::time_point start;
    bool fails = false;

    backfill_bench() : start(now()) { again(); }
    void again() {
        restart([this](simulated& tasks) {
            tasks.on(shipping, [this](parcel const& p, ax::context& ctx) {
                planned.push_back(ctx.scheduled_at());
                notes.push_back(p.note);
                if (fails) throw ax::give_up{"no"};
            });
        });
    }
    ax::schedule_record declare(ax::schedule_options chosen = {}) {
        return (*this)->schedule("s", ax::cron{"0 0 * * * *"}, shipping, {}, std::move(chosen));
    }
    std::vector<ax::time_point> hours(std::vector<int> const& which) const {
        std::vector<ax::time_point> all;
        for (auto const h : which) all.push_back(start + h * 1h);
        return all;
    }
    ax::schedule_record record() { return (*this)->schedules().at(0); }
};

} // namespace

// ---------------------------------------------------------------- run_now

TEST_CASE("run_now runs a schedule once more, and moves nothing of it", "[scheduler][schedules][run_now]") {
    backfill_bench b;
    b.declare();
    b.run_for(90min);
    REQUIRE(b.planned.size() == 1);
    auto const before = b.record();
    bool const paused = GENERATE(false, true);
    if (paused) b->pause_schedule("s");
    auto const answer = b->run_now("s");
    CHECK(answer.outcome == submit_outcome::inserted);
    b.run_for(0s);
    REQUIRE(b.planned.size() == 2);
    CHECK(b.planned[1] == b.start + 90min);
    auto const task = b.get(answer.id);
    CHECK(task.tags == std::vector<std::string>{"run_now"});
    CHECK(task.run_at == b.start + 90min);
    CHECK(b.record().next == before.next);
    CHECK(b.record().fired == before.fired);
    CHECK(b.record().last_task == before.last_task);
    if (paused) b->resume_schedule("s");
    b.run_for(30min);
    CHECK(b.planned.back() == b.start + 2h);
    CHECK(b.record().fired == 2);
    CHECK(b.record().skipped == 0);
}

TEST_CASE("run_now never takes the instant of another occurrence", "[scheduler][schedules][run_now]") {
    backfill_bench b;
    b.declare();
    b.clock.set(b.start + 1h); // the planned one is due, and not there yet
    std::vector<task_id> all;
    for (int i = 0; i < 3; ++i) all.push_back(b->run_now("s").id);
    b.run_for(0s);
    auto found = b.planned;
    std::sort(found.begin(), found.end());
    CHECK(found == std::vector{b.start + 1h, b.start + 1h + 1ms, b.start + 1h + 2ms, b.start + 1h + 3ms});
    CHECK(b.get(all[1]).scheduled_at == b.start + 1h + 2ms);
    CHECK(b.record().fired == 1);
}

TEST_CASE("run_now keeps the tags and payload of the schedule, and its order where that has one",
          "[scheduler][schedules][run_now]") {
    hosted_bench b;
    std::vector<std::string> notes;
    b.tasks.on(shipping, [&](parcel const& p) { notes.push_back(p.note); });
    ax::schedule_options how;
    how.overlap = GENERATE(ax::overlap::queue_all, ax::overlap::skip);
    how.tags = {"a", "z"};
    b.tasks.schedule("s", ax::every{1h}, shipping, {7, "{{ts}}"}, how);
    b.pass(1h);
    auto const first = b.tasks.schedules().at(0).last_task;
    auto const extra = b.tasks.run_now("s").id;
    CHECK(b.tasks.find(extra)->blocked == (how.overlap == ax::overlap::queue_all));
    CHECK(b.tasks.find(extra)->tags == std::vector<std::string>{"a", "run_now", "z"});
    b.settle();
    CHECK(b.state(first) == task_state::succeeded);
    CHECK(b.state(extra) == task_state::succeeded);
    CHECK(notes.size() == 2);
}

TEST_CASE("run_now of an unknown schedule is refused, and after a stop as well", "[scheduler][schedules][run_now]") {
    backfill_bench b;
    std::string message;
    CHECK(failure_of([&] { b->run_now("none"); }, &message) == invalid);
    CHECK(contains(message, "\"none\""));
    CHECK(failure_of([&] { b->run_now(""); }) == invalid);
    b.declare();
    b->stop();
    CHECK(failure_of([&] { b->run_now("s"); }) == ax::errc::stopped);
}

// ---------------------------------------------------------------- backfill

TEST_CASE("backfill makes what is missing of a past range, in order, and nothing twice",
          "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.clock.advance(10h);
    b->schedule("s", ax::cron{"0 0 * * * *"}, shipping, {1, "{{ts}}"});
    b.run_for(2h); // 11 and 12
    REQUIRE(b.planned == b.hours({11, 12}));
    b.planned.clear();
    auto const before = b.record();
    auto const report = b->backfill("s", b.start + 3h, b.start + 12h);
    CHECK(report.number == 1);
    CHECK(report.planned == 9);
    CHECK(report.created == 8);
    CHECK(report.existed == 1);
    CHECK(report.remaining == 0);
    b.run_for(0s);
    CHECK(b.planned == b.hours({3, 4, 5, 6, 7, 8, 9, 10}));
    CHECK(b.notes.back() == "2026-01-01T10:00:00+00:00");
    CHECK(b.record().next == before.next);
    CHECK(b.record().version == before.version);
    CHECK(b->backfills().empty());
    auto const again = b->backfill("s", b.start + 3h, b.start + 12h);
    CHECK(again.created == 0);
    CHECK(again.existed == 9);
    CHECK(b->backfills().empty());
}

TEST_CASE("the tasks of a backfill have its priority, what the schedule gives, and a tag",
          "[scheduler][schedules][backfill]") {
    backfill_bench b;
    ax::schedule_options how;
    how.retry = ax::retry::fixed(5s).attempts(2);
    how.tags = {"b"};
    how.spread = 10min;
    how.priority = ax::priority::high;
    b.declare(how);
    b->pause_schedule("s");
    b.clock.advance(10h);
    ax::backfill_options chosen;
    bool const urgent = GENERATE(false, true);
    if (urgent) chosen.priority = ax::priority::critical;
    b->backfill("s", b.start + 1h, b.start + 2h, chosen);
    auto const task = b->store().occurrence("s", b.start + 1h);
    REQUIRE(task.has_value());
    CHECK(task->priority == (urgent ? ax::priority_class::critical : ax::priority_class::low));
    CHECK(task->retry == ax::retry::to_text(*how.retry));
    CHECK(task->tags == std::vector<std::string>{"b", "backfill"});
    CHECK(task->run_at > b.start + 1h);
    CHECK(task->run_at < b.start + 1h + 10min);
}

TEST_CASE("a backfill of a million occurrences makes a few at a time", "[scheduler][schedules][backfill]") {
    hosted_bench b;
    std::size_t runs = 0;
    b.tasks.on(probe, [&] { ++runs; });
    b.clock.set(b.clock.now() + 24h * 30);
    auto const start = b.clock.now();
    b.tasks.schedule("s", ax::every{1s}, probe);
    b.tasks.pause_schedule("s");
    ax::backfill_options chosen;
    chosen.at_once = 3;
    auto const report = b.tasks.backfill("s", start - 1'000'000s, start, chosen);
    CHECK(report.planned == 1'000'000);
    CHECK(report.created == 3);
    CHECK(report.remaining == 999'997);
    auto const unfinished = [&] {
        std::size_t all = 0;
        for (auto const state : {task_state::ready, task_state::dispatched, task_state::running}) {
            ax::task_filter wanted;
            wanted.state = state;
            all += b.tasks.list(wanted).size();
        }
        return all;
    };
    for (int i = 0; i != 20; ++i) {
        b.poll();
        b.loop.step();
        b.poll();
        b.poll();
        CHECK(unfinished() == 3);
    }
    CHECK(runs == 20);
    auto const kept = b.tasks.backfills();
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].made == 23);
    CHECK(b.tasks.stop_backfill(kept[0].number));
    CHECK_FALSE(b.tasks.stop_backfill(kept[0].number));
    b.settle();
    CHECK(runs == 23);
    CHECK_FALSE(b.tasks.next_wakeup().has_value());
}

TEST_CASE("a backfill goes on after a restart, and makes each once", "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.declare();
    b->pause_schedule("s");
    b.clock.advance(50h);
    ax::backfill_options chosen;
    chosen.at_once = 2;
    b->backfill("s", b.start + 1h, b.start + 41h, chosen);
    int restarts = 0;
    for (; !b->backfills().empty() && restarts != 100; ++restarts) {
        b.poll();
        b.again();
    }
    CHECK(restarts > 10);
    auto found = b.planned;
    CHECK(std::is_sorted(found.begin(), found.end()));
    CHECK(found.size() == 40);
    CHECK(std::unique(found.begin(), found.end()) == found.end());
}

TEST_CASE("a task of a backfill that ends in any way makes room for the next", "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.declare();
    b->pause_schedule("s");
    b.clock.advance(10h);
    ax::backfill_options chosen;
    chosen.at_once = 1;
    bool const cancelled = GENERATE(false, true);
    b.fails = !cancelled;
    b->backfill("s", b.start + 1h, b.start + 4h, chosen);
    if (cancelled) {
        for (int h = 1; h != 4; ++h) {
            auto const task = b->store().occurrence("s", b.start + h * 1h);
            REQUIRE(task.has_value());
            b->pause(shipping);
            b.poll();
            CHECK(b->cancel(task->id) == cancel_outcome::cancelled);
            b.poll();
        }
    }
    b.run_for(0s);
    CHECK(b->backfills().empty());
    CHECK(b.planned.size() == (cancelled ? 0U : 3U));
}

TEST_CASE("a backfill runs by the definition that the schedule has then, and not for a removed one",
          "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.declare();
    b->pause_schedule("s");
    b.clock.advance(10h);
    ax::backfill_options chosen;
    chosen.at_once = 1;
    b->backfill("s", b.start + 1h, b.start + 6h, chosen);
    bool const removed = GENERATE(false, true);
    if (removed)
        b->unschedule("s");
    else
        b->schedule("s", ax::cron{"0 0 */2 * * *"}, shipping);
    b.run_for(0s);
    CHECK(b->backfills().empty());
    CHECK(b.planned == (removed ? b.hours({1}) : b.hours({1, 2, 4})));
    CHECK(b->next_wakeup().has_value() == false);
}

TEST_CASE("backfills of every kind of schedule, also from before it was declared", "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.clock.advance(10h);
    b->schedule("rate", ax::every{90min}, shipping);
    b->schedule("single", ax::once{b.start + 2h}, shipping);
    b->pause_schedule("rate");
    b->pause_schedule("single");
    auto const rate = b->backfill("rate", b.start + 1h, b.start + 5h);
    CHECK(rate.planned == 3); // 1:00, 2:30 and 4:00: phase of 10:00
    b.run_for(0s);
    CHECK(b.planned == std::vector{b.start + 1h, b.start + 150min, b.start + 4h});
    b.planned.clear();
    CHECK(b->backfill("single", b.start, b.start + 5h).created == 1);
    b.run_for(0s);
    CHECK(b.planned == b.hours({2}));
}

TEST_CASE("backfills that cannot be are refused, and nothing is stored", "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.declare();
    b->schedule("gap", ax::after_each{1h}, shipping);
    b.clock.advance(10h);
    std::string message;
    ax::backfill_options chosen;
    auto const refused = [&](std::string_view name, ax::time_point from, ax::time_point to, char const* names) {
        CAPTURE(names);
        CHECK(failure_of([&] { b->backfill(name, from, to, chosen); }, &message) == invalid);
        CHECK(contains(message, names));
        CHECK(contains(message, name));
    };
    refused("none", b.start, b.start + 1h, "there is no schedule");
    refused("s", b.start + 1h, b.start + 1h, "is empty");
    refused("s", b.start + 2h, b.start + 1h, "is empty");
    refused("s", b.start + 1h, b.start + 10h + 1ms, "reaches into the future");
    refused("s", b.start + 1min, b.start + 1h, "has no occurrence");
    refused("s", b.start - 24h * 365 * 100, b.start, "1970");
    refused("gap", b.start + 1h, b.start + 9h, "fixed delay");
    chosen.at_once = 0;
    refused("s", b.start, b.start + 2h, "at_once");
    chosen.at_once = 1'001;
    refused("s", b.start, b.start + 2h, "at_once");
    chosen = {};
    chosen.priority = static_cast<ax::priority_class>(4);
    refused("s", b.start, b.start + 2h, "priority");
    CHECK(b->backfills().empty());
    CHECK(b->backfill("s", b.start + 1h, b.start + 10h).created == 9); // its end is the present: that is past
    b->stop();
    CHECK(failure_of([&] { b->backfill("s", b.start, b.start + 2h); }) == ax::errc::stopped);
}

TEST_CASE("a backfill waits where the storage is away, and one that cannot be stored harms nobody",
          "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.declare();
    b->pause_schedule("s");
    b.clock.advance(10h);
    ax::backfill_options chosen;
    chosen.at_once = 1;
    auto const kind = GENERATE(ax::errc::unavailable, ax::errc::corrupt);
    b->backfill("s", b.start + 1h, b.start + 5h, chosen);
    int failures = 3;
    b.store.hooks().before_fill = [&](ax::backfill_step const&) {
        if (failures-- > 0) throw ax::error(kind, "no");
    };
    b.run_for(2min);
    b->submit(shipping);
    b.run_for(1min);
    b.store.hooks().before_fill = {};
    if (kind == ax::errc::corrupt) {
        CHECK(b.planned.size() == 2); // the first of the backfill, and the one that was submitted
        b.again();
        b.run_for(0s);
    }
    CHECK(b.planned.size() == 5);
    CHECK(b->backfills().empty());
}

TEST_CASE("a backfill of which it is not known whether it was stored goes on where it was",
          "[scheduler][schedules][backfill]") {
    backfill_bench b;
    b.declare();
    b->pause_schedule("s");
    b.clock.advance(10h);
    b.poll();
    ax::backfill_options chosen;
    chosen.at_once = 1;
    b.store.hooks().after_transact = [] { throw ax::error(ax::errc::outcome_unknown, "the line is cut"); };
    CHECK(failure_of([&] { b->backfill("s", b.start + 1h, b.start + 5h, chosen); }) == ax::errc::outcome_unknown);
    b.store.hooks().after_transact = {};
    b.run_for(0s);
    CHECK(b.planned == b.hours({1, 2, 3, 4}));
    CHECK(b->backfills().empty());
}

TEST_CASE("outcomes of a period have names", "[scheduler][schedules]") {
    using ax::period_outcome;
    CHECK(std::string(to_string(period_outcome::done)) == "done");
    CHECK(std::string(to_string(period_outcome::not_set_aside)) == "not set aside");
    CHECK(std::string(to_string(static_cast<period_outcome>(99))) == "?");
}

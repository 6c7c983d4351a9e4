// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

using namespace test;

namespace {

struct scheduled_bench : bench {
    std::vector<ax::time_point> runs;
    std::vector<ax::time_point> planned;
    std::function<void()> work;

    scheduled_bench() { again(); }
    void again() {
        restart([this](simulated& tasks) {
            tasks.on(probe, [this](ax::context& ctx) {
                runs.push_back(now());
                planned.push_back(ctx.scheduled_at());
                if (work) work();
            });
        });
    }
    ax::schedule_record record(std::string_view name = "s") {
        for (auto const& one : (*this)->schedules())
            if (one.name == name) return one;
        FAIL("no such schedule");
        return {};
    }
};

} // namespace

TEST_CASE("every: one occurrence each period, counted from the declaration", "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    auto const made = b->schedule("s", ax::every{30s}, probe);
    CHECK(made.next == start + 30s);
    b.run_for(100s);
    CHECK(b.runs == std::vector{start + 30s, start + 60s, start + 90s});
    CHECK(b.planned == b.runs);
    CHECK(b.record().fired == 3);
    CHECK(b.record().skipped == 0);
    CHECK(b.record().next == start + 120s);
}

TEST_CASE("an occurrence runs in the poll that finds it due", "[scheduler][schedules][poll]") {
    scheduled_bench b;
    b->schedule("s", ax::every{30s}, probe);
    CHECK(b.poll() == 0);
    CHECK(b.poll_after(30s) == 1);
    CHECK(b.runs.size() == 1);
    CHECK(b.poll_after(29'999ms) == 0);
    CHECK(b.poll_after(1ms) == 1);
}

TEST_CASE("every keeps its phase across restarts, and what was missed is made up once and counted",
          "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    b->schedule("s", ax::every{60s}, probe);
    b.run_for(90s);
    b.again();
    CHECK(b->schedule("s", ax::every{60s}, probe).next == start + 120s); // unchanged
    b.run_for(60s);
    CHECK(b.planned == std::vector{start + 60s, start + 120s});
    b.clock.advance(5min); // 180, 240, 300, 360, 420 come and go
    b.again();
    b.poll();
    CHECK(b.planned == std::vector{start + 60s, start + 120s, start + 420s});
    CHECK(b.record().fired == 3);
    CHECK(b.record().skipped == 4);
    CHECK(contains(b.record().last_skip, "missed"));
    CHECK(b.record().next == start + 480s);
}

TEST_CASE("a schedule survives a restart without being declared again", "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    b->schedule("s", ax::every{60s}, probe);
    b.again();
    b.run_for(60s);
    CHECK(b.runs == std::vector{start + 60s});
}

TEST_CASE("a schedule that is declared differently is counted from now, and keeps its counters",
          "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    b->schedule("s", ax::every{60s}, probe);
    b.run_for(90s);
    b->schedule("s", ax::every{10s}, probe);
    b.run_for(25s);
    CHECK(b.runs == std::vector{start + 60s, start + 100s, start + 110s});
    CHECK(b.record().fired == 3);
    CHECK(b->schedules().size() == 1);
    b->schedule("s", ax::once{start + 200s}, probe);
    b.run_for(10min);
    CHECK(b.runs.size() == 4);
    CHECK(b.runs.back() == start + 200s);
}

TEST_CASE("after_each: the pause counts from the end of the run before", "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    b.work = [&] { b.clock.advance(7s); };
    b->schedule("s", ax::after_each{10s}, probe);
    for (int i = 0; i != 60; ++i) {
        b.clock.advance(1s);
        b.poll();
    }
    REQUIRE(b.runs.size() >= 3);
    CHECK(b.runs[0] == start + 10s);
    for (std::size_t i = 1; i != b.runs.size(); ++i) {
        CHECK(b.runs[i] - b.runs[i - 1] >= 10s);
        CHECK(b.runs[i] - b.runs[i - 1] <= 18s);
    }
}

TEST_CASE("after_each goes on whatever became of its run", "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    auto const how = GENERATE(0, 1, 2, 3, 4);
    CAPTURE(how);
    b.work = [&] {
        if (b.runs.size() != 1) return;
        if (how == 0) throw ax::give_up{"no"};
        if (how == 1) throw ax::skip{"no"};
        throw std::runtime_error("no"); // waits in backoff
    };
    b->schedule("s", ax::after_each{10s}, probe);
    b.run_for(10s);
    REQUIRE(b.runs.size() == 1);
    auto const id = b.record().last_task;
    if (how >= 2) {
        CHECK(b.state(id) == task_state::failed);
        CHECK_FALSE(b.record().next.has_value());
    }
    if (how == 2) CHECK(b->cancel(id) == cancel_outcome::cancelled); // ends without a run
    if (how == 3) {
        b.run_for(2min); // it is tried again, and succeeds
        CHECK(b.runs.size() > 2);
        return;
    }
    if (how == 4) {
        b.again();
        CHECK(b->cancel(id) == cancel_outcome::cancelled); // ends before the first poll of the new process
    }
    b.run_for(11s);
    CHECK(b.runs.size() == 2);
    CHECK(b.runs.back() >= start + 20s);
}

TEST_CASE("after_each goes on when the task of its run dies while it waits", "[scheduler][schedules]") {
    scheduled_bench b;
    b->schedule("s", ax::after_each{10s}, probe);
    b->pause(probe);
    b.run_for(15s);
    auto const id = b.record().last_task;
    REQUIRE(b.state(id) == task_state::ready);
    CHECK(b->cancel(id) == cancel_outcome::cancelled);
    b->resume(probe);
    b.run_for(11s);
    CHECK(b.runs.size() == 1);
}

TEST_CASE("once: one occurrence, at once where the instant has passed", "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    b->schedule("past", ax::once{start - 1h}, probe);
    b->schedule("soon", ax::once{start + 10s}, probe);
    b->schedule("far", ax::once{start + 24h * 365}, probe);
    b.run_for(1min);
    CHECK(b.runs == std::vector{start, start + 10s});
    CHECK_FALSE(b.record("soon").next.has_value());
    b.again();
    b->schedule("soon", ax::once{start + 10s}, probe); // declared again, it does not run again
    b.run_for(1min);
    CHECK(b.runs.size() == 2);
    b.run_for(24h * 365);
    CHECK(b.runs.size() == 3);
}

TEST_CASE("cron: its instants in its zone", "[scheduler][schedules]") {
    scheduled_bench b; // 2026-01-01 00:00 UTC
    auto const start = b.now();
    b->schedule("s", ax::cron{"0 0 3 * * *", "Asia/Shanghai"}, probe);
    b.run_for(72h);
    CHECK(b.runs == std::vector{start + 19h, start + 43h, start + 67h});
}

TEST_CASE("a month of an hourly schedule takes few polls and misses nothing", "[scheduler][schedules][poll]") {
    scheduled_bench b;
    b->schedule("s", ax::cron{"0 0 * * * *"}, probe);
    auto const polls = b.run_for(24h * 30);
    CHECK(b.runs.size() == 720);
    CHECK(polls <= 3 * 720);
    CHECK(b.record().skipped == 0);
    CHECK(b.planned == b.runs);
}

TEST_CASE("an occurrence that comes while the one before has not ended is left out and counted",
          "[scheduler][schedules]") {
    scheduled_bench b;
    auto const start = b.now();
    b->schedule("s", ax::every{10s}, probe);
    b.work = [&] {
        if (b.runs.size() == 1) throw ax::snooze{25s};
    };
    b.run_for(50s);
    // 10: begins; 20 and 30: left out; 35: it goes on and ends; 40 and 50 as planned.
    CHECK(b.runs == std::vector{start + 10s, start + 35s, start + 40s, start + 50s});
    CHECK(b.record().skipped == 2);
    CHECK(contains(b.record().last_skip, "not ended"));
    CHECK(b.record().fired == 3);
}

TEST_CASE("unschedule removes the definition and leaves its tasks", "[scheduler][schedules]") {
    scheduled_bench b;
    b->schedule("s", ax::every{10s}, probe);
    b->pause(probe);
    b.run_for(10s);
    CHECK(b->unschedule("s"));
    CHECK_FALSE(b->unschedule("s"));
    CHECK(b->schedules().empty());
    b.run_for(1min);
    b->resume(probe);
    b.run_for(1min);
    CHECK(b.runs.size() == 1);
    b.again();
    b.run_for(1min);
    CHECK(b.runs.size() == 1);
}

TEST_CASE("a clock that is set back creates no occurrence twice and none early", "[scheduler][schedules][clock]") {
    scheduled_bench b;
    auto const start = b.now();
    b->schedule("s", ax::every{1h}, probe);
    b.run_for(3h);
    REQUIRE(b.planned == std::vector{start + 1h, start + 2h, start + 3h});
    bool const restarted = GENERATE(false, true);
    CAPTURE(restarted);
    b.clock.set(start + 90min);
    if (restarted) b.again();
    b.run_for(4h); // to 5:30
    CHECK(b.planned == std::vector{start + 1h, start + 2h, start + 3h, start + 4h, start + 5h});
    CHECK(b.record().fired == 5);
    CHECK(b.record().skipped == 2); // 2:00 and 3:00, met again
    CHECK(b.record().last_skip == "it was there already");
    for (std::size_t i = 3; i != b.runs.size(); ++i) CHECK(b.runs[i] == b.planned[i]);
}

TEST_CASE("a small step back behind what has just fired does not meet it again", "[scheduler][schedules][clock]") {
    scheduled_bench b;
    bool const calendar = GENERATE(false, true);
    auto const step = GENERATE(150ms, 1000ms, 1200ms);
    bool const restarted = GENERATE(false, true);
    CAPTURE(calendar, step.count(), restarted);
    if (calendar)
        b->schedule("s", ax::cron{"0 0 * * * *"}, probe);
    else
        b->schedule("s", ax::every{1h}, probe);
    b.run_for(2h);
    REQUIRE(b.record().fired == 2);
    auto const last = b.planned.back();
    b.clock.set(last - step);
    if (restarted) b.again();
    b.run_for(70min);
    CHECK(b.planned.size() == 3);
    CHECK(b.planned.back() == last + 1h);
    CHECK(b.record().skipped == (step > 1s ? 1 : 0));
}

TEST_CASE("a clock that jumps forward makes up one occurrence", "[scheduler][schedules][clock]") {
    scheduled_bench b;
    auto const start = b.now();
    b->schedule("s", ax::every{1h}, probe);
    b.poll();
    b.clock.set(start + 24h * 365 + 1min);
    b.poll();
    CHECK(b.planned == std::vector{start + 24h * 365});
    CHECK(b.record().skipped == 24 * 365 - 1);
    CHECK(b->next_wakeup() == start + 24h * 365 + 1h);
}

TEST_CASE("a schedule whose cursor was carried far ahead by a wrong clock comes back with the clock",
          "[scheduler][schedules][clock]") {
    scheduled_bench b;
    auto const start = b.now();
    bool const calendar = GENERATE(false, true);
    CAPTURE(calendar);
    if (calendar)
        b->schedule("s", ax::cron{"0 0 * * * *"}, probe);
    else
        b->schedule("s", ax::every{1h}, probe);
    b.run_for(2h);
    b.clock.set(start + 24h * 365);
    b.poll();
    REQUIRE(b.planned.size() == 3);
    b.clock.set(start + 150min);
    bool const restarted = GENERATE(false, true);
    CAPTURE(restarted);
    if (restarted) b.again();
    b.run_for(3h);
    b.planned.erase(b.planned.begin() + 2);
    CHECK(b.planned == std::vector{start + 1h, start + 2h, start + 3h, start + 4h, start + 5h});
}

TEST_CASE("a fixed delay does not wait for an end that a wrong clock has written", "[scheduler][schedules][clock]") {
    hosted_bench b;
    std::vector<ax::time_point> runs;
    b.tasks.on(probe, [&] { runs.push_back(b.clock.now()); });
    auto const start = b.clock.now();
    b.tasks.schedule("s", ax::after_each{1min}, probe);
    b.poll();
    b.clock.set(start + 24h * 365);
    b.poll();
    b.loop.drain(); // it ends in a year, and that is not stored yet
    b.clock.set(start + 5min);
    b.settle();
    CHECK(b.tasks.schedules().at(0).next == start + 6min);
    b.clock.advance(1min);
    b.settle();
    CHECK(runs == std::vector{start + 24h * 365, start + 6min});
}

TEST_CASE("a run that waits for the time of a wrong clock keeps none waiting, and comes when it is time",
          "[scheduler][schedules][clock]") {
    hosted_bench b;
    std::vector<ax::time_point> planned;
    b.tasks.on(probe, [&](ax::context& ctx) { planned.push_back(ctx.scheduled_at()); });
    auto const start = b.clock.now();
    bool const delay = GENERATE(false, true);
    CAPTURE(delay);
    if (delay)
        b.tasks.schedule("s", ax::after_each{10min}, probe);
    else
        b.tasks.schedule("s", ax::every{10min}, probe);
    b.poll();
    b.clock.set(start + 40min);
    b.poll(); // claimed, and not begun: the clock goes back first
    b.clock.set(start + 5min);
    b.settle();
    for (int i = 0; i != 35; ++i) {
        b.clock.advance(1min);
        b.settle();
    }
    auto const record = b.tasks.schedules().at(0);
    CHECK(planned == std::vector{start + 10min, start + 20min, start + 30min, start + 40min});
    if (delay) return; // what came late is planned for the instant at which it was due
    CHECK(record.fired == 4);
    CHECK(record.skipped == 4); // 10, 20, 30 by the leap, and 40, met again
    CHECK(record.last_skip == "it was there already");
}

TEST_CASE("schedules that cannot be are refused, and nothing is stored", "[scheduler][schedules]") {
    scheduled_bench b;
    std::string message;
    auto const refused = [&](auto&& call, char const* names) {
        CHECK(failure_of(call, &message) == invalid);
        CHECK(contains(message, names));
    };
    refused([&] { b->schedule("s", ax::every{0s}, probe); }, "period");
    refused([&] { b->schedule("s", ax::every{-1s}, probe); }, "period");
    refused([&] { b->schedule("s", ax::after_each{0ms}, probe); }, "pause");
    refused([&] { b->schedule("s", ax::once{ax::latest_time + 1ms}, probe); }, "instant");
    refused([&] { b->schedule("s", ax::cron{"0 0 0 30 2 *"}, probe); }, "no occurrence");
    refused([&] { b->schedule("", ax::every{1s}, probe); }, "schedule name");
    refused([&] { b->schedule(std::string(256, 's'), ax::every{1s}, probe); }, "schedule name");
    refused([&] { b->schedule("\xFF", ax::every{1s}, probe); }, "schedule name");
    refused([&] { b->schedule("s", ax::every{1s}, ax::task_type<>{""}); }, "task type");
    refused([&] { b->schedule("s", ax::every{1s}, shipping, {1, "\xFF"}); }, "payload");
    CHECK(b->schedules().empty());
    b.poll();
}

TEST_CASE("a schedule whose stored text does not parse is kept, and harms nobody", "[scheduler][schedules]") {
    scheduled_bench b;
    b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
        ax::schedule_record odd;
        odd.name = "odd";
        odd.spec = "lunar 3";
        odd.type = w.type("probe");
        odd.next = b.now();
        w.declare(odd, b.now());
    });
    b.again();
    b->schedule("s", ax::every{10s}, probe);
    b.run_for(25s);
    CHECK(b.runs.size() == 2);
    CHECK(b.record("odd").spec == "lunar 3");
}

TEST_CASE("the payload of a schedule comes with each occurrence", "[scheduler][schedules]") {
    bench b;
    std::vector<int> numbers;
    b->on(shipping, [&](parcel const& p) { numbers.push_back(p.number); });
    b->schedule("s", ax::every{10s}, shipping, {7, "n"});
    b.run_for(20s);
    CHECK(numbers == std::vector{7, 7});
    b->schedule("s", ax::every{10s}, shipping, {8, "n"});
    b.run_for(20s);
    CHECK(numbers == std::vector{7, 7, 8, 8});
}

TEST_CASE("a schedule for a type without a handler waits for one", "[scheduler][schedules]") {
    bench b;
    b->schedule("s", ax::every{10s}, probe);
    b.run_for(35s);
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b.poll();
    CHECK(runs == 1); // one was created, the others were left out while it waited
}

// SPDX-License-Identifier: MIT
#include "ax/scheduler/backfill.hpp"

#include "scheduler/support.hpp"

using namespace test;

using ax::period_outcome;

// How a failed check shows what it found.
namespace ax {
inline std::ostream& operator<<(std::ostream& out, period_outcome o) { return out << to_string(o); }
} // namespace ax

namespace {

/// A schedule "s" of each minute.
struct late_bench : bench {
    std::vector<int> ran; ///< minutes
    ax::time_point start;

    late_bench() : start(now()) { again(); }
    void again() {
        restart([this](simulated& tasks) {
            tasks.on(probe,
                     [this](ax::context& ctx) { ran.push_back(static_cast<int>((ctx.scheduled_at() - start) / 60s)); });
        });
    }
    ax::schedule_record declare(ax::schedule_options chosen = {}) {
        return (*this)->schedule("s", ax::every{60s}, probe, {}, std::move(chosen));
    }
    ax::time_point minute(int m) const { return start + m * 60s; }
    ax::task_record at(int m) {
        auto found = (*this)->store().occurrence("s", minute(m));
        REQUIRE(found.has_value());
        return std::move(*found);
    }
    period_outcome mark(int m) { return (*this)->mark_catch_up("s", minute(m)); }
    period_outcome release(int m) { return (*this)->release("s", minute(m)); }
};

} // namespace

TEST_CASE("late data: a period to come that is set aside does not run, those behind it do", "[scheduler][late_data]") {
    late_bench b;
    ax::schedule_options how;
    how.overlap = GENERATE(ax::overlap::skip, ax::overlap::allow, ax::overlap::queue_one, ax::overlap::queue_all,
                           ax::overlap::cancel_running, ax::overlap::replace_running);
    b.declare(how);
    b.run_for(90s);
    CHECK(b.mark(3) == period_outcome::done);
    CHECK(b.mark(3) == period_outcome::done);
    CHECK(b.at(3).state == task_state::created);
    bool const restarted = GENERATE(false, true);
    if (restarted) b.again();
    b.run_for(4min);
    CHECK(b.ran == std::vector{1, 2, 4, 5});
    CHECK(b->schedules().at(0).skipped == 0);
    auto const why = b->explain(b.at(3).id);
    CHECK(why.at(0).cause == ax::wait_cause::held);
    CHECK(contains(why.at(0).text, "release()"));
    CHECK(b.release(3) == period_outcome::done);
    CHECK(b.at(3).priority == ax::priority_class::high);
    b.run_for(1min);
    CHECK(b.ran == std::vector{1, 2, 4, 5, 3, 6});
    CHECK(b.at(3).attempts == 1);
}

TEST_CASE("late data: where the schedule depends on the past, those behind wait, and come ahead with it",
          "[scheduler][late_data]") {
    late_bench b;
    ax::schedule_options how;
    how.depends_on_past = true;
    b.declare(how);
    b.run_for(90s);
    CHECK(b.mark(3) == period_outcome::done);
    b.run_for(5min); // to 6:30
    CHECK(b.ran == std::vector{1, 2});
    CHECK(b->explain(b.at(4).id).at(0).cause == ax::wait_cause::past);
    CHECK(b->release("s", b.minute(3), ax::priority::critical) == period_outcome::done);
    b.run_for(0s);
    CHECK(b.ran == std::vector{1, 2, 3, 4, 5, 6});
    for (int m = 3; m <= 6; ++m) CHECK(b.at(m).priority == ax::priority_class::critical);
    b.run_for(1min);
    CHECK(b.at(7).priority == ax::priority_class::normal); // it hung on nothing
}

TEST_CASE("late data: what is released comes ahead of what waits for a worker", "[scheduler][late_data]") {
    hosted_bench b{{.workers = 1, .claimed_ahead = 1}};
    std::vector<ax::time_point> ran;
    b.tasks.on(probe, [&](ax::context& ctx) { ran.push_back(ctx.scheduled_at()); });
    auto const start = b.clock.now();
    ax::schedule_options how;
    how.overlap = ax::overlap::allow;
    how.priority = ax::priority::low;
    b.tasks.schedule("s", ax::every{60s}, probe, {}, how);
    b.poll();
    CHECK(b.tasks.mark_catch_up("s", start + 60s) == period_outcome::done);
    for (int i = 0; i != 12; ++i) b.pass(60s);
    CHECK(b.tasks.release("s", start + 60s, ax::priority::critical) == period_outcome::done);
    b.settle();
    REQUIRE(ran.size() == 12);
    auto const place = std::find(ran.begin(), ran.end(), start + 60s) - ran.begin();
    CHECK(place <= 3); // behind those that were claimed by then
}

TEST_CASE("late data: one that waits is set aside in its place, one that was claimed as well",
          "[scheduler][late_data]") {
    hosted_bench b;
    std::vector<ax::time_point> ran;
    b.tasks.on(probe, [&](ax::context& ctx) { ran.push_back(ctx.scheduled_at()); });
    auto const start = b.clock.now();
    b.tasks.schedule("s", ax::every{60s}, probe);
    bool const claimed = GENERATE(false, true);
    if (!claimed) b.tasks.pause(probe);
    b.pass(60s);
    auto const id = b.tasks.store().occurrence("s", start + 60s)->id;
    CHECK(b.tasks.find(id)->state == (claimed ? task_state::dispatched : task_state::ready));
    CHECK(b.tasks.mark_catch_up("s", start + 60s) == period_outcome::done);
    b.tasks.resume(probe);
    b.settle();
    b.pass(90s);
    b.settle();
    CHECK(std::count(ran.begin(), ran.end(), start + 60s) == 0);
    CHECK(b.tasks.find(id)->attempts == 0);
    CHECK(b.tasks.release("s", start + 60s) == period_outcome::done);
    b.settle();
    CHECK(std::count(ran.begin(), ran.end(), start + 60s) == 1);
}

TEST_CASE("late data: one whose attempt failed for want of data is set aside before it is tried again",
          "[scheduler][late_data]") {
    bench b;
    int runs = 0;
    b->on(probe,
          [&] {
              if (++runs == 1) throw std::runtime_error("no data");
          },
          {.retry = ax::retry::fixed(30s).attempts(2)});
    auto const start = b.now();
    b->schedule("s", ax::once{start + 60s}, probe);
    b.run_for(61s);
    CHECK(runs == 1);
    CHECK(b->mark_catch_up("s", start + 60s) == period_outcome::done);
    b.run_for(10min);
    CHECK(runs == 1);
    b->release("s", start + 60s);
    b.run_for(0s);
    CHECK(runs == 2);
}

TEST_CASE("late data: answers for what is running, over, not planned or not set aside", "[scheduler][late_data]") {
    hosted_bench b;
    b.tasks.on(probe, [&](ax::context& ctx) {
        CHECK(b.tasks.mark_catch_up("s", ctx.scheduled_at()) == period_outcome::running);
        CHECK(b.tasks.release("s", ctx.scheduled_at()) == period_outcome::running);
    });
    auto const start = b.clock.now();
    b.tasks.schedule("s", ax::every{60s}, probe);
    b.tasks.schedule("gap", ax::after_each{60s}, other);
    b.pass(60s);
    b.settle();
    CHECK(b.tasks.mark_catch_up("s", start + 60s) == period_outcome::too_late);
    CHECK(b.tasks.release("s", start + 60s) == period_outcome::too_late);
    CHECK(b.tasks.mark_catch_up("s", start + 61s) == period_outcome::unknown_period);
    CHECK(b.tasks.release("s", start + 120s) == period_outcome::unknown_period);
    CHECK(b.tasks.mark_catch_up("none", start + 60s) == period_outcome::unknown_schedule);
    CHECK(b.tasks.release("none", start + 60s) == period_outcome::unknown_schedule);
    CHECK(b.tasks.mark_catch_up("gap", start + 600s) == period_outcome::unknown_period);
    CHECK(b.tasks.mark_catch_up("gap", start + 60s) == period_outcome::done); // that one is there, and waits
    CHECK(b.tasks.release("gap", start + 60s) == period_outcome::done);
    b.tasks.pause(probe);
    b.pass(60s);
    CHECK(b.tasks.release("s", start + 120s) == period_outcome::not_set_aside);
    std::string message;
    CHECK(failure_of([&] { b.tasks.release("none", start, start + 1s); }, &message) == invalid);
    CHECK(contains(message, "none"));
    CHECK(failure_of([&] { b.tasks.release("s", start, start); }, &message) == invalid);
    CHECK(contains(message, "empty"));
    CHECK(failure_of([&] { b.tasks.release("s", start, static_cast<ax::priority_class>(9)); }) == invalid);
    CHECK(failure_of([&] { b.tasks.mark_catch_up("", start); }) == invalid);
}

TEST_CASE("late data: a range is released, or all, over several commits", "[scheduler][late_data]") {
    late_bench b;
    b.declare();
    for (int m = 1; m <= 250; ++m) REQUIRE(b.mark(m) == period_outcome::done);
    b->schedule("other", ax::every{60s}, probe);
    b->mark_catch_up("other", b.minute(2));
    CHECK(b->release("s", b.minute(1), b.minute(3)) == 2);
    CHECK(b->release("s", b.minute(1), b.minute(3)) == 0);
    CHECK(b->release_all("s") == 248);
    CHECK(b->store().aside("other", b.start, b.minute(300), 10).size() == 1);
    b->unschedule("other");
    b.run_for(250min);
    CHECK(b.ran.size() == 250);
}

TEST_CASE("late data: a missed period is set aside though it was never made, and runs when it is released",
          "[scheduler][late_data]") {
    late_bench b;
    ax::schedule_options how;
    how.misfire = ax::misfire::skip;
    b.declare(how);
    b.clock.advance(10min);
    b.again();
    b.run_for(0s);
    CHECK(b.ran.size() <= 1);
    CHECK(b.mark(4) == period_outcome::done);
    b.run_for(0s);
    CHECK(b.ran.size() <= 1);
    CHECK(b.release(4) == period_outcome::done);
    b.run_for(0s);
    CHECK(b.ran.back() == 4);
}

TEST_CASE("late data: what is set aside or released ahead of its instant is no skip", "[scheduler][late_data]") {
    hosted_bench b;
    std::vector<ax::time_point> ran;
    b.tasks.on(probe, [&](ax::context& ctx) { ran.push_back(ctx.scheduled_at()); });
    auto const start = b.clock.now();
    b.tasks.schedule("s", ax::every{60s}, probe);
    b.poll();
    CHECK(b.tasks.mark_catch_up("s", start + 120s) == period_outcome::done);
    bool const released = GENERATE(false, true);
    bool const busy = GENERATE(false, true); // the one before has not ended when it comes
    CAPTURE(released, busy);
    if (released) CHECK(b.tasks.release("s", start + 120s) == period_outcome::done);
    b.pass(60s);
    if (!busy) b.settle();
    b.pass(60s);
    b.settle();
    b.pass(60s);
    b.settle();
    CHECK(b.tasks.schedules().at(0).fired == 2);
    CHECK(b.tasks.schedules().at(0).skipped == 0);
    CHECK(b.tasks.schedules().at(0).last_skip.empty());
    CHECK(ran.size() == (released ? 3 : 2));
}

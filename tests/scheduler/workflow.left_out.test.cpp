// SPDX-License-Identifier: MIT
// Workflows that wait for occurrences that do not come, and for each other.
#include "ax/scheduler/workflow.hpp"

#include "scheduler/support.hpp"

namespace {

using namespace test;
using ax::workflow;

/// Occurrences of "rates" run a handler that may be kept from ending; a workflow waits for one of them.
struct rates_bench : bench {
    std::vector<std::string> log;

    rates_bench() { prepare(); }
    void prepare() {
        (**this).on(shipping, [this](parcel const& p) { log.push_back(p.note); });
    }
    void rates(ax::schedule_options chosen = {}) {
        (*this)->schedule("rates", ax::every{1h}, shipping, {1, "rates"}, std::move(chosen));
    }
    task_id wait_at(ax::time_point at, ax::workflow_wait_options how = {}) {
        workflow w{"w"};
        how.name = "wait";
        auto const wait = w.wait_for(ax::occurrence_of("rates", at), how);
        w.add(shipping, {1, "after"}, {.name = "after", .after = {wait}, .when = ax::trigger_rule::all_done});
        return (*this)->submit(w).id;
    }
    task_state state_of(task_id whole, std::string_view name) {
        for (auto const& each : (*this)->workflow_tasks(whole))
            if (each.name == name) return each.state;
        FAIL("it has no such task");
        return {};
    }
    task_state wait_of(task_id whole) { return state_of(whole, "wait"); }
    /// The wait has been told that its occurrence is left out, and what came behind it has run.
    bool was_left_out(task_id whole) {
        poll();
        poll();
        return wait_of(whole) == task_state::skipped && state_of(whole, "after") == task_state::succeeded &&
               state(whole) == task_state::succeeded;
    }
};

} // namespace

TEST_CASE("a wait for an occurrence ends where the misfire policy leaves that out",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    b.rates({.misfire = ax::misfire::skip});
    auto const id = b.wait_at(b.now() + 1h);
    auto const later = b.wait_at(b.now() + 5h);
    b.clock.advance(90min);
    b.restart();
    b.prepare();
    CHECK(b.wait_of(id) == task_state::created);
    CHECK(b.was_left_out(id));
    CHECK(b.wait_of(later) == task_state::created);
}

TEST_CASE("a wait for an occurrence ends where a later one stands for that", "[scheduler][workflow][schedules]") {
    rates_bench b;
    b.rates();
    auto const id = b.wait_at(b.now() + 1h);
    auto const last = b.wait_at(b.now() + 3h);
    b.clock.advance(3h + 30min);
    b.restart();
    b.prepare();
    b.run_for(1s);
    CHECK(b.wait_of(id) == task_state::skipped);
    CHECK(b.wait_of(last) == task_state::succeeded);
}

TEST_CASE("a wait for an occurrence ends where the one before has not ended", "[scheduler][workflow][schedules]") {
    rates_bench b;
    b->pause(shipping);
    b.rates();
    auto const first = b.wait_at(b.now() + 1h);
    auto const id = b.wait_at(b.now() + 2h);
    b.run_for(2h);
    CHECK(b.wait_of(first) == task_state::created);
    CHECK(b.wait_of(id) == task_state::skipped);
}

TEST_CASE("a wait for an occurrence ends where its schedule was paused and goes on from now",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    b.rates();
    auto const id = b.wait_at(b.now() + 1h);
    b->pause_schedule("rates");
    b.run_for(90min);
    CHECK(b.wait_of(id) == task_state::created);
    b->resume_schedule("rates", ax::resume_policy::from_now);
    CHECK(b.wait_of(id) == task_state::skipped);
    CHECK(b.was_left_out(id));
}

TEST_CASE("a wait for an occurrence ends with the schedule", "[scheduler][workflow][schedules]") {
    rates_bench b;
    b.rates();
    auto const id = b.wait_at(b.now() + 1h);
    SECTION("that is removed") {
        b->unschedule("rates");
        CHECK(b.was_left_out(id));
        auto const next = b.wait_at(b.now() + 1h); // it may be declared anew
        b.run_for(30min);
        CHECK(b.wait_of(next) == task_state::created);
        b->schedule("rates", ax::every{30min}, shipping, {1, "rates"});
        b.run_for(1h);
        CHECK(b.wait_of(next) == task_state::succeeded);
    }
    SECTION("that gets other instants") {
        b->schedule("rates", ax::every{90min}, shipping, {1, "rates"});
        CHECK(b.was_left_out(id));
    }
    SECTION("that goes with the document which declared it") {
        b->declare(R"({"schedules": [{"name": "rates", "type": "shipping", "every": "1h"}]})");
        CHECK(b.wait_of(id) == task_state::created);
        b->declare("{}", {.prune = true});
        CHECK(b.was_left_out(id));
    }
    SECTION("that a document gives other instants") {
        b->declare(R"({"schedules": [{"name": "rates", "type": "shipping", "every": "2h"}]})");
        CHECK(b.was_left_out(id));
    }
}

TEST_CASE("a wait for an instant that is none of its schedule's ends when that has passed it",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    b.rates();
    b.run_for(30min);
    auto const id = b.wait_at(b.now() + 10min);
    CHECK(b.wait_of(id) == task_state::skipped); // the next one is in half an hour
    auto const soon = b.wait_at(b.now() + 40min);
    CHECK(b.wait_of(soon) == task_state::created);
    b.run_for(30min);
    CHECK(b.was_left_out(soon));
}

TEST_CASE("a wait for an occurrence that was left out before it ends at once", "[scheduler][workflow][schedules]") {
    rates_bench b;
    b->schedule("once", ax::once{b.now() + 1h}, shipping, {1, "once"});
    b.rates();
    b.run_for(2h);
    SECTION("behind the cursor") {
        auto const id = b.wait_at(b.now() - 30min);
        CHECK(b.was_left_out(id));
    }
    SECTION("of a schedule that is over") {
        workflow w{"w"};
        w.wait_for(ax::occurrence_of("once", b.now() + 1h), {.name = "wait"});
        CHECK(b.wait_of(b->submit(w).id) == task_state::skipped);
    }
    SECTION("where a backfill has yet to make it, it is waited for") {
        b->pause_schedule("rates");
        b.run_for(6h);
        b->resume_schedule("rates", ax::resume_policy::from_now);
        b->pause(shipping);
        auto const from = b.now() - 3h;
        auto const report = b->backfill("rates", from, b.now(), {.at_once = 1});
        REQUIRE(report.planned == 3);
        REQUIRE(report.created == 1);
        auto const id = b.wait_at(from + 2h);
        CHECK(b.wait_of(id) == task_state::created);
        SECTION("until it comes") {
            b->resume(shipping);
            b.run_for(1min);
            CHECK(b.wait_of(id) == task_state::succeeded);
        }
        SECTION("until that is stopped") {
            b->stop_backfill(report.number);
            CHECK(b.wait_of(id) == task_state::skipped);
        }
    }
}

TEST_CASE("a wait for a run of a fixed delay ends when the next one is known to come later",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    b->schedule("rates", ax::after_each{1h}, shipping, {1, "rates"});
    b.run_for(1h);
    auto const id = b.wait_at(b.now() + 61min);
    b->pause(shipping);
    b.run_for(1h);
    CHECK(b.wait_of(id) == task_state::created); // when the next one comes is not known before this one has run
    b->resume(shipping);
    b.run_for(10s);
    CHECK(b.was_left_out(id));
}

TEST_CASE("a scheduled workflow ends where the period that it waits for was left out",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    b->pause(shipping);
    workflow w{"sums"};
    w.wait_for(ax::occurrence_of("rates"), {.name = "wait"});
    SECTION("whose schedule comes first") {
        b.rates();
        b->schedule("sums", ax::every{1h}, w, {.overlap = ax::overlap::allow});
    }
    SECTION("whose schedule comes behind") {
        b->schedule("sums", ax::every{1h}, w, {.overlap = ax::overlap::allow});
        b.rates();
    }
    b.run_for(3h);
    CHECK(b->list({.state = task_state::skipped, .type = "ax:wait"}).size() == 2);
    CHECK(b->list({.state = task_state::succeeded, .type = "ax:workflow"}).size() == 2);
    b->resume(shipping);
    b.run_for(1min);
    CHECK(b->list({.state = task_state::succeeded, .type = "ax:workflow"}).size() == 3);
}

TEST_CASE("workflows that wait for each other in a circle are refused, and the text has the path",
          "[scheduler][workflow]") {
    rates_bench b;
    workflow first{"first"};
    first.wait_for(ax::task_with_key("b"), {.name = "for b", .within = 10h});
    workflow second{"second"};
    second.wait_for(ax::task_with_key("a"), {.name = "for a"});
    auto const a = b->submit(first, {.key = "a"}).id;
    std::string text;
    CHECK(failure_of([&] { b->submit(second, {.key = "b"}); }, &text) == invalid);
    CHECK(contains(text, R"(circle of waits: "for a" of "second" -> "for b" of "first" -> "second")"));
    CHECK_FALSE(b->find_by_key("b"));
    CHECK(b->submit(second, {.key = "c"}).outcome == ax::submit_outcome::inserted);
    CHECK(b->submit(first, {.key = "a"}).id == a); // it is there, and is not asked again
    b->submit(shipping, {1, "b"}, {.key = "b"});
    b.run_for(1s);
    CHECK(b.state(a) == task_state::succeeded);
}

TEST_CASE("schedules whose workflows wait for each other's period go on, and one of two is left out",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    workflow first{"first"};
    first.wait_for(ax::occurrence_of("second"), {.name = "wait"});
    workflow second{"second"};
    second.wait_for(ax::occurrence_of("first"), {.name = "wait"});
    b->schedule("first", ax::every{1h}, first);
    b->schedule("second", ax::every{1h}, second);
    b.run_for(3h);
    auto const all = b->schedules();
    REQUIRE(all.size() == 2);
    CHECK(all[0].fired == 3);
    CHECK(all[1].fired == 0);
    CHECK(all[1].skipped == 3);
    CHECK(contains(all[1].last_skip, "circle of waits"));
    CHECK(b->list({.state = task_state::succeeded, .type = "ax:workflow"}).size() == 3);
}

TEST_CASE("a fixed delay whose workflow cannot be made leaves out one occurrence at a time",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    workflow good{"w"};
    good.add(shipping, {1, "run"});
    b->schedule("s", ax::after_each{10s}, good);
    b.run_for(15s);
    REQUIRE(b.log.size() == 1);
    workflow bad{"w"}; // the next instant of a fixed delay is not known
    bad.wait_for(ax::task_with_key("{{next}}"), {.name = "before", .within = 1min});
    b->schedule("s", ax::after_each{10s}, bad);
    b.run_for(1min);
    auto const skipped = b->schedules().at(0).skipped;
    CHECK(skipped >= 5);
    CHECK(skipped <= 6);
    b->schedule("s", ax::after_each{10s}, good);
    b.run_for(10s);
    CHECK(b.log.size() == 2);
}

TEST_CASE("a backfill leaves out an occurrence that cannot be made, with its reason, and goes on",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    workflow w{"w"};
    w.add(shipping, {1, "a"}, {.name = "at {{scheduled_at | %H}}"});
    w.add(shipping, {1, "b"}, {.name = "at 02"}); // taken, of two in the morning
    b->schedule("s", ax::every{1h}, w);
    auto const from = b.now();
    b->unschedule("s");
    b->schedule("s", ax::cron{"0 * * * *"}, w, {.misfire = ax::misfire::skip});
    b.clock.advance(24h);
    b.restart();
    b.prepare();
    auto const waiting = [&] {
        workflow waits{"waits"};
        waits.wait_for(ax::occurrence_of("s", from + 2h), {.name = "wait"});
        return b->submit(waits).id;
    };
    b.poll();
    auto const report = b->backfill("s", from + 1h, from + 6h, {.at_once = 2});
    CHECK(report.planned == 5);
    auto const id = waiting();
    b.run_for(10min);
    CHECK(b->backfills().empty());
    for (int hour = 1; hour != 6; ++hour) CHECK(b.store.occurrence("s", from + hour * 1h).has_value() == (hour != 2));
    auto const log = b->schedule_skips("s");
    REQUIRE_FALSE(log.latest.empty());
    CHECK(log.latest.back().first == from + 2h);
    CHECK(log.latest.back().last == from + 2h);
    CHECK(contains(log.latest.back().reason, "at 02"));
    CHECK(is_terminal(b.state(id)));
}

TEST_CASE("a wait that is stored before the first poll ends where its occurrence came and went before",
          "[scheduler][workflow][schedules]") {
    rates_bench b;
    b->schedule("rates", ax::once{b.now() + 1h}, shipping, {1, "rates"}, {.misfire = ax::misfire::skip});
    b.clock.advance(2h);
    b.restart();
    b.prepare();
    b.poll();
    REQUIRE(b->schedules().at(0).skipped == 1);
    b.restart();
    b.prepare();
    auto const id = b.wait_at(b.now() - 1h);
    CHECK(b.was_left_out(id));
}

TEST_CASE("the tasks of a backfilled workflow have the priority of the backfill", "[scheduler][workflow][schedules]") {
    rates_bench b;
    workflow w{"w"};
    w.add(shipping, {1, "a"}, {.name = "urgent", .priority = ax::priority::high});
    w.add(shipping, {1, "b"}, {.name = "plain"});
    b->schedule("s", ax::cron{"0 * * * *"}, w);
    auto const from = b.now();
    b.run_for(1h);
    b->backfill("s", from - 1h, from, {.priority = ax::priority::low});
    b.run_for(1min);
    auto const priorities = [&](ax::time_point at) {
        std::vector<ax::priority_class> all;
        for (auto const& each : b->workflow_tasks(b.store.occurrence("s", at).value().id))
            all.push_back(b.get(each.id).priority);
        return all;
    };
    using enum ax::priority_class;
    CHECK(priorities(from + 1h) == std::vector{normal, high}); // by name
    CHECK(priorities(from - 1h) == std::vector{low, low});
}

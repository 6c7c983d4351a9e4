// SPDX-License-Identifier: MIT
// What has ended is removed after its time, in small steps, and never because of a clock that lies.
#include "ax/scheduler/scheduler.hpp"

#include "scheduler/support.hpp"

using namespace test;

namespace {

constexpr auto day = 24h;

/// Polls once a minute.
void pass(bench& b, ax::time_span span) {
    auto const end = b.clock.steady() + span.value();
    while (b.clock.steady() < end) b.poll_after((std::min)(ax::duration{60'000}, end - b.clock.steady()));
}

task_id run_one(bench& b, ax::submit_options how = {}) {
    auto const id = b->submit(probe, {}, std::move(how)).id;
    b.poll();
    return id;
}

bool is_there(bench& b, task_id id) { return b->find(id).has_value(); }

} // namespace

TEST_CASE("ended tasks are kept for 30 days and dead ones for 90", "[scheduler][retention]") {
    bench b;
    b->on(probe, [] {});
    b->on(other, [] { throw ax::give_up{"no"}; });
    auto const good = run_one(b, {.key = "k"});
    auto const bad = b->submit(other).id;
    auto const gone = b->submit(probe, {}, {.delay = 1h}).id;
    b->cancel(gone);
    b.poll();
    pass(b, 30 * day - 1h);
    CHECK(is_there(b, good));
    CHECK(is_there(b, gone));
    pass(b, 2h);
    CHECK_FALSE(is_there(b, good));
    CHECK_FALSE(is_there(b, gone));
    CHECK(is_there(b, bad));
    CHECK(b->history(good).empty());
    CHECK(b->health().pruned == 2);
    CHECK(b->submit(probe, {}, {.key = "k", .delay = 365 * day}).outcome == submit_outcome::inserted);
    pass(b, 60 * day - 2h);
    CHECK(is_there(b, bad));
    pass(b, 2h);
    CHECK_FALSE(is_there(b, bad));
    CHECK(b->health().pruned == 3);
    CHECK(b->stats().tasks(task_state::ready) == 1);
    CHECK(b->verify().empty());
}

TEST_CASE("a task type may keep its tasks for another time", "[scheduler][retention]") {
    bench b{{.retention = {.age = 10 * day, .count = 100}}};
    b->on(probe, [] {}, {.retention = ax::retention_policy{.age = 1h}});
    b->on(other, [] {});
    auto const mine = run_one(b);
    auto const theirs = b->submit(other).id;
    auto const unhandled = b->submit(shipping).id;
    b->cancel(unhandled);
    pass(b, 1h + 2min);
    CHECK_FALSE(is_there(b, mine));
    CHECK(is_there(b, theirs));
    pass(b, 10 * day);
    CHECK_FALSE(is_there(b, theirs));
    CHECK_FALSE(is_there(b, unhandled)); // also without a handler
}

TEST_CASE("forever is forever", "[scheduler][retention]") {
    bench b{{.retention = {.age = ax::forever, .dead_age = ax::forever, .count = static_cast<std::size_t>(-1)}}};
    b->on(probe, [] {});
    auto const id = run_one(b);
    for (int i = 0; i < 50; ++i) b.poll_after(365 * day);
    CHECK(is_there(b, id));
}

TEST_CASE("of each type no more are kept than its count", "[scheduler][retention]") {
    bench b{{.retention = {.count = 10}}};
    b->on(probe, [] {});
    b->on(other, [] { throw ax::give_up{"no"}; }, {.retention = ax::retention_policy{.count = 3}});
    std::vector<task_id> good, bad;
    for (int i = 0; i < 25; ++i) good.push_back(run_one(b));
    for (int i = 0; i < 5; ++i) bad.push_back(b->submit(other).id);
    b.poll();
    pass(b, 2min);
    for (std::size_t i = 0; i < good.size(); ++i) CHECK(is_there(b, good[i]) == (i >= 15));
    for (std::size_t i = 0; i < bad.size(); ++i) CHECK(is_there(b, bad[i]) == (i >= 2));
}

TEST_CASE("a retention that makes no sense is refused by name", "[scheduler][retention]") {
    struct row {
        ax::retention_policy rule;
        char const* name;
    };
    for (auto const& one : {row{{.age = 0s}, "retention.age"}, row{{.age = -1s}, "retention.age"},
                            row{{.dead_age = 0s}, "retention.dead_age"}, row{{.dead_age = -1h}, "retention.dead_age"},
                            row{{.count = 0}, "retention.count"}}) {
        CAPTURE(one.name);
        ax::testing::manual_clock clock;
        std::string message;
        CHECK(failure_of([&] { simulated tasks(store_type{}, {.retention = one.rule}, clock); }, &message) == invalid);
        CHECK(contains(message, one.name));
        bench b;
        CHECK(failure_of([&] { b->on(probe, [] {}, {.retention = one.rule}); }, &message) == invalid);
        CHECK(contains(message, one.name));
        CHECK(contains(message, "probe"));
        b->on(probe, [] {}); // nothing was registered
    }
}

TEST_CASE("the clean-up goes in small steps with pauses, and says when it goes on", "[scheduler][retention]") {
    bench b{{.retention = {.age = 1h}}};
    b->on(probe, [] {});
    b->submit_all(probe, std::vector<ax::no_payload>(1'000));
    b.poll();
    std::size_t commits = 0;
    std::size_t most = 0;
    std::size_t before = 1'000;
    b.store.hooks().before_prune = [&] { ++commits; };
    b.clock.advance(2h);
    std::size_t polls = 0;
    for (; b->stats().tasks(task_state::succeeded) != 0; ++polls) {
        REQUIRE(polls < 100);
        b.poll();
        auto const left = b->stats().tasks(task_state::succeeded);
        most = (std::max)(most, before - left);
        before = left;
        if (left == 0) break;
        auto const next = b->next_wakeup();
        REQUIRE(next.has_value());
        CHECK(*next > b.now());
        CHECK(*next <= b.now() + 100ms);
        b.clock.advance(*next - b.now());
    }
    CHECK(most <= 200);
    CHECK(commits >= 5);
    CHECK(polls >= 4);
    b.poll_after(50ms);
    CHECK_FALSE(b->next_wakeup().has_value()); // a polling host is not woken for the next pass
}

TEST_CASE("while there is other work the clean-up waits longer, and never for good", "[scheduler][retention]") {
    struct anything;
    ax::detail::cleaning<anything> c;
    auto const type = ax::type_number{1};
    ax::duration steady{1'000'000};
    ax::time_point const now{ax::duration{1'767'225'600'000}};
    REQUIRE(c.due(steady, true));
    c.start_work(steady);
    CHECK_FALSE(c.due(steady, false)); // one at a time
    c.begin({{type, {}, 5'000, 0}}, now);
    REQUIRE(c.next(now, now).size() == 1);
    ax::prune_answer answer;
    answer.pruned = 200;
    answer.more = true;
    answer.after = ax::task_id{200};
    c.pruned(type, answer, now);
    steady += 10ms; // it took that long
    c.end_work(steady);
    CHECK(c.in_pass());
    CHECK_FALSE(c.due(steady + 9ms, false));
    CHECK(c.due(steady + 10ms, false));
    CHECK_FALSE(c.due(steady + 79ms, true));
    CHECK(c.due(steady + 80ms, true));

    c.start_work(steady);
    REQUIRE(c.next(now, now).size() == 1);
    CHECK(c.next(now, now)[0].after == ax::task_id{200});
    answer.more = false;
    c.pruned(type, answer, now);
    c.end_work(steady);
    CHECK(c.in_pass());
    c.start_work(steady);
    CHECK(c.next(now, now).empty());
    CHECK(c.wants_to_compact());
    c.compacted(false);
    c.end_work(steady);
    CHECK_FALSE(c.in_pass());
    CHECK_FALSE(c.due(steady + 59s, false));
    CHECK(c.due(steady + 60s, true));
    CHECK(c.total() == 400);
}

TEST_CASE("nothing is written for the clean-up's sake where nothing is old enough", "[scheduler][retention]") {
    bench b;
    b->on(probe, [] {});
    for (int i = 0; i < 20; ++i) run_one(b);
    pass(b, 10min);
    std::size_t calls = 0;
    b.store.hooks().before_prune = [&] { ++calls; };
    pass(b, 5h);
    CHECK(calls <= 1);
    pass(b, 24h);
    CHECK(calls <= 6); // a look every six hours
}

TEST_CASE("a failing clean-up is seen, harms nothing, and goes on", "[scheduler][retention]") {
    bench b{{.retention = {.age = 1h}}};
    b->on(probe, [] {});
    auto const id = run_one(b);
    b.store.hooks().before_prune = [] { throw ax::error(ax::errc::corrupt, "the index contradicts itself"); };
    pass(b, 2h);
    CHECK(is_there(b, id));
    CHECK(contains(b->health().prune_error, "contradicts"));
    CHECK(b->health().storage_ok);
    CHECK(b.state(run_one(b)) == task_state::succeeded);
    b.store.hooks().before_prune = {};
    pass(b, 2min);
    CHECK_FALSE(is_there(b, id));
    CHECK(b->health().prune_error.empty());
}

TEST_CASE("after stop nothing is removed", "[scheduler][retention]") {
    bench b{{.retention = {.age = 1h}}};
    b->on(probe, [] {});
    auto const id = run_one(b);
    b->stop();
    b.clock.advance(2h);
    for (int i = 0; i < 5; ++i) b.poll_after(1min);
    CHECK(b.store.memory().find(id).has_value());
}

// ---- schedules -----------------------------------------------------------------------------------------------------

TEST_CASE("the latest run of a schedule stays until there is another", "[scheduler][retention]") {
    bench b{{.retention = {.age = 1h, .dead_age = 1h, .count = 1}}};
    std::size_t runs = 0;
    b->on(probe, [&] { ++runs; });
    SECTION("fixed delay: it goes on by the end of its latest run, whenever that was") {
        b->schedule("delay", ax::after_each{7 * day}, probe);
        pass(b, 7 * day + 1min);
        REQUIRE(runs == 1);
        auto const last = b->schedules().at(0).last_task;
        pass(b, 6 * day);
        CHECK(is_there(b, last));
        b.restart([&](simulated& tasks) { tasks.on(probe, [&] { ++runs; }); });
        pass(b, 1 * day);
        CHECK(runs == 2);
        pass(b, 2h);
        CHECK_FALSE(is_there(b, last));
    }
    SECTION("overlap: a run that has not ended is no end, however old") {
        b->schedule("daily", ax::every{day}, other);
        pass(b, day + 1min);
        auto const waiting = b->schedules().at(0).last_task; // nobody handles it
        pass(b, 3 * day);
        CHECK(is_there(b, waiting));
        CHECK(b->schedules().at(0).fired == 1);
        CHECK(b->schedules().at(0).skipped >= 2);
    }
}

// ---- clocks --------------------------------------------------------------------------------------------------------

TEST_CASE("a clock that jumps forward removes nothing before an hour has confirmed it", "[scheduler][retention]") {
    bench b;
    b->on(probe, [] {});
    auto const id = run_one(b);
    pass(b, 1h);
    CHECK_FALSE(b->health().clock_in_doubt);
    b.clock.set(b.now() + 365 * day);
    b.poll();
    CHECK(b->health().clock_in_doubt);
    SECTION("it was right") {
        pass(b, 59min);
        CHECK(is_there(b, id));
        pass(b, 3min);
        CHECK_FALSE(is_there(b, id));
        CHECK_FALSE(b->health().clock_in_doubt);
    }
    SECTION("it was wrong") {
        pass(b, 50min);
        b.clock.set(b.now() - 365 * day);
        pass(b, 5h);
        CHECK(is_there(b, id));
        CHECK_FALSE(b->health().clock_in_doubt);
        pass(b, 30 * day);
        CHECK_FALSE(is_there(b, id));
    }
    SECTION("it swings") {
        for (int i = 0; i < 10; ++i) {
            pass(b, 45min);
            b.clock.set(b.now() - 365 * day);
            pass(b, 5min);
            b.clock.set(b.now() + 365 * day);
        }
        CHECK(is_there(b, id));
    }
    SECTION("what is old by the steady clock goes all the same") {
        auto const start = b.clock.steady();
        while (b.clock.steady() - start < 30 * day) { // never confirmed
            b.poll_after(30min);
            b.clock.set(b.now() - 365 * day);
            b.poll_after(1min);
            b.clock.set(b.now() + 365 * day);
        }
        CHECK_FALSE(is_there(b, id));
    }
}

TEST_CASE("a clock that is set back removes nothing extra, and stops nothing for long", "[scheduler][retention]") {
    bench b{{.retention = {.age = 10 * day}}};
    b->on(probe, [] {});
    b.clock.set(b.now() + 3'650 * day); // a start with a wrong clock
    auto const wrong = run_one(b);
    pass(b, 5h);
    b.clock.set(b.now() - 3'650 * day);
    auto const id = run_one(b);
    pass(b, 9 * day);
    CHECK(is_there(b, id));
    CHECK(is_there(b, wrong));
    pass(b, 1 * day + 7h);
    CHECK_FALSE(is_there(b, id)); // though one from the future lies before it
    CHECK(is_there(b, wrong));
}

TEST_CASE("a long pause between two runs is confirmed like a jump", "[scheduler][retention]") {
    bench b;
    b->on(probe, [] {});
    auto const id = run_one(b);
    pass(b, 5min);
    auto const prepare = [](simulated& tasks) { tasks.on(probe, [] {}); };
    b.clock.advance(40 * day); // nobody looks
    b.restart(prepare);
    b.poll();
    CHECK(b->health().clock_in_doubt);
    pass(b, 55min);
    CHECK(is_there(b, id));
    pass(b, 10min);
    CHECK_FALSE(is_there(b, id));
}

TEST_CASE("the confirmation survives restarts", "[scheduler][retention]") {
    auto const works = GENERATE(true, false); // whether tasks run meanwhile
    CAPTURE(works);
    bench b;
    auto const prepare = [](simulated& tasks) { tasks.on(probe, [] {}); };
    prepare(*b);
    auto const id = run_one(b);
    pass(b, 5min);
    run_one(b);
    b.clock.set(b.now() + 40 * day);
    std::size_t runs = 0;
    for (; is_there(b, id); ++runs) {
        REQUIRE(runs < 10);
        b.restart(prepare);
        for (int i = 0; i < 30; ++i) {
            b.poll_after(1min);
            if (works) run_one(b);
        }
        b.clock.advance(2min); // while it is away
    }
    CHECK(runs >= 2); // half an hour each: not before an hour
    CHECK(runs <= 5);
}

TEST_CASE("the time last seen is written once a minute at most, with other work", "[scheduler][retention]") {
    bench b;
    b->on(probe, [] {});
    run_one(b);
    CHECK_FALSE(b.store.note("clock").empty());
    pass(b, 10min);
    run_one(b);
    auto const first = b.store.note("clock");
    CHECK_FALSE(first.empty());
    b.poll_after(1s);
    run_one(b);
    CHECK(b.store.note("clock") == first);
    pass(b, 3h); // nothing else is written
    CHECK(b.store.note("clock") == first);
    run_one(b);
    CHECK(b.store.note("clock") != first);
}

// ---- trusted_time --------------------------------------------------------------------------------------------------

namespace {

/// A clock and what is made of it.
struct observed {
    ax::detail::trusted_time trust;
    ax::time_point wall = t0;
    ax::duration steady{1'000};

    explicit observed(std::string_view kept = {}) { trust.start(kept, wall, steady); }
    void pass(ax::duration span, ax::duration step = 1s) {
        for (; span > span.zero(); span -= step) {
            wall += step;
            steady += step;
            trust.look(wall, steady);
        }
    }
    void jump(ax::duration by) {
        wall += by;
        trust.look(wall, steady);
    }
    ax::duration behind() const { return wall - trust.now(steady); }
};

} // namespace

TEST_CASE("trusted_time follows the wall clock, is never ahead of it, and takes a jump after an hour",
          "[scheduler][retention]") {
    observed o;
    o.pass(3h);
    CHECK(o.behind() == 0s);
    o.jump(24h);
    CHECK(o.behind() == 24h);
    CHECK(o.trust.doubts());
    o.pass(1h - 1s);
    CHECK(o.behind() == 24h);
    o.pass(1s);
    CHECK(o.behind() == 0s);
    o.jump(-48h);
    CHECK(o.behind() == 0s);
    o.jump(30h);
    CHECK(o.behind() == 30h);
    o.jump(-29h); // a part of it was wrong
    CHECK(o.behind() == 1h);
    o.pass(1h);
    CHECK(o.behind() == 0s);
}

TEST_CASE("trusted_time takes a jump after an hour though the clock drifts", "[scheduler][retention]") {
    observed o;
    auto const drift = GENERATE(1ms, 20ms);
    for (int i = 0; i < 1'800; ++i) {
        o.pass(1s);
        o.jump(drift);
    }
    o.jump(24h);
    o.pass(1h - 1s);
    CHECK(o.behind() >= 24h);
    o.pass(2s);
    CHECK(o.behind() < 10min);
}

TEST_CASE("trusted_time knows from its text what an earlier run knew", "[scheduler][retention]") {
    observed first;
    first.pass(10min);
    first.jump(24h);
    first.pass(40min);
    auto const kept = first.trust.text(first.steady);

    SECTION("the clock goes on") {
        observed second;
        second.wall = first.wall + 5min;
        second.steady = ax::duration{77};
        second.trust.start(kept, second.wall, second.steady);
        CHECK(second.behind() == 24h + 5min);
        second.pass(19min);
        CHECK(second.behind() == 24h + 5min);
        second.pass(1min);
        CHECK(second.behind() == 5min); // the pause is confirmed next
        second.pass(1h);
        CHECK(second.behind() == 0s);
    }
    SECTION("the clock has been set right") {
        observed second;
        second.wall = first.wall - 24h + 5min;
        second.trust.start(kept, second.wall, second.steady);
        CHECK(second.behind() == 5min);
        second.pass(20min + 1s);
        CHECK(second.behind() >= 0s);
        CHECK(second.behind() <= 5min);
    }
    SECTION("the clock is behind all that was seen") {
        observed second;
        second.wall = t0 - 1h;
        second.trust.start(kept, second.wall, second.steady);
        CHECK(second.behind() == 0s);
        CHECK_FALSE(second.trust.doubts());
    }
}

TEST_CASE("trusted_time takes a text that makes no sense for one of long ago", "[scheduler][retention]") {
    for (auto const* text : {"x", "-5 -5 -5", "99999999999999999999999999", " ", "1 2", "7 9 999999999999999999"}) {
        CAPTURE(text);
        observed o(text);
        CHECK(o.trust.now(o.steady) <= o.wall);
        o.pass(2h);
        CHECK(o.trust.now(o.steady) <= o.wall);
        CHECK(o.behind() == 0s);
    }
}

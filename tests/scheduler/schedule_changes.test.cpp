// SPDX-License-Identifier: MIT
#include "ax/scheduler/schedule.hpp"

#include "scheduler/support.hpp"

#include <set>

using namespace test;

namespace {

struct change_bench : bench {
    std::vector<ax::time_point> planned;
    std::vector<ax::time_point> runs;
    ax::time_point start;

    change_bench() : start(now()) { again(); }
    void again() {
        restart([this](simulated& tasks) {
            tasks.on(shipping, [this](parcel const&, ax::context& ctx) {
                planned.push_back(ctx.scheduled_at());
                runs.push_back(now());
            });
        });
    }
    void declare(ax::detail::recurrence const& how, ax::schedule_options chosen = {}, parcel const& payload = {}) {
        (*this)->schedule("s", how, shipping, payload, std::move(chosen));
    }
    ax::schedule_record record() { return (*this)->schedules().at(0); }
};

} // namespace

// ---------------------------------------------------------------- definitions

TEST_CASE("other options or another payload leave a schedule's next occurrence where it is", "[scheduler][schedules]") {
    change_bench b;
    b.declare(ax::every{1h});
    b.run_for(90min);
    ax::schedule_options how;
    parcel payload;
    auto const what = GENERATE(range(0, 8));
    if (what == 0) how.misfire = ax::misfire::skip;
    if (what == 1) how.overlap = ax::overlap::allow;
    if (what == 2) how.priority = ax::priority::low;
    if (what == 3) how.retry = ax::retry::none();
    if (what == 4) how.tags = {"t"};
    if (what == 5) how.depends_on_past = true;
    if (what == 6) payload.number = 9;
    if (what == 7) how.spread = 10min;
    b.declare(ax::every{1h}, how, payload);
    CHECK(b.record().next == b.start + 2h);
    CHECK(b.record().version == 3);
    b.run_for(30min + 10min);
    CHECK(b.planned == std::vector{b.start + 1h, b.start + 2h}); // not at once, and not an hour from the change on
    if (what != 7) CHECK(b.runs.back() == b.start + 2h);
}

TEST_CASE("what was missed is made up for, also where the options are changed at the start", "[scheduler][schedules]") {
    change_bench b;
    b.declare(ax::every{1h});
    b.run_for(90min);
    b.clock.advance(5h);
    b.again();
    ax::schedule_options how;
    how.misfire = ax::misfire::run_all(3);
    b.declare(ax::every{1h}, how);
    b.run_for(0s);
    CHECK(b.planned == std::vector{b.start + 1h, b.start + 4h, b.start + 5h, b.start + 6h});
    CHECK(b.record().skipped == 2);
}

TEST_CASE("another rhythm counts from now, and nothing fires at once", "[scheduler][schedules]") {
    change_bench b;
    b.declare(ax::cron{"0 0 * * * *"});
    b.run_for(90min);
    bool const missed = GENERATE(false, true);
    if (missed) { // what the old rhythm missed is not the new one's
        b.clock.advance(5h);
        b.again();
    }
    auto const now = b.now();
    auto const what = GENERATE(range(0, 4));
    if (what == 0) b.declare(ax::cron{"0 15 * * * *"});
    if (what == 1) b.declare(ax::every{45min});
    if (what == 2) b.declare(ax::after_each{45min});
    if (what == 3) b.declare(ax::cron{"0 15 * * * *", "Asia/Kolkata"}); // 45 past in UTC
    b.run_for(0s);
    CHECK(b.planned.size() == 1);
    CHECK(b.record().next == now + (what == 3 ? 15min : 45min));
    b.run_for(45min);
    CHECK(b.planned.size() == 2);
}

TEST_CASE("the same declaration at each start changes nothing", "[scheduler][schedules]") {
    change_bench b;
    ax::schedule_options how;
    how.depends_on_past = true;
    how.misfire = ax::misfire::within(1h);
    how.tags = {"b", "a"};
    for (int i = 0; i != 10; ++i) {
        b.declare(ax::every{1h}, how);
        b.run_for(0s);
        b.clock.advance(10min);
        b.again();
    }
    CHECK(b.record().version == 1 + b.record().fired);
    CHECK(b.planned == std::vector{b.start + 1h});
}

// ---------------------------------------------------------------- a clock that was wrong

TEST_CASE("a suspend for a day follows the misfire policy", "[scheduler][schedules][clock]") {
    change_bench b;
    ax::schedule_options how;
    auto const what = GENERATE(range(0, 5));
    if (what == 0) how.misfire = ax::misfire::skip;
    if (what == 1) how.misfire = ax::misfire::run_once;
    if (what == 2) how.misfire = ax::misfire::run_all(3);
    if (what == 3) how.misfire = ax::misfire::within(30min);
    if (what == 4) how.misfire = ax::misfire::within(20min);
    b.declare(ax::every{1h}, how);
    b.run_for(90min);
    REQUIRE(b.planned.size() == 1);
    bool const wall_alone = GENERATE(false, true); // a steady clock that stands while the machine sleeps
    CAPTURE(what, wall_alone);
    if (wall_alone)
        b.clock.set(b.now() + 24h);
    else
        b.clock.advance(24h); // to 25:30
    b.run_for(0s);
    std::vector<ax::time_point> expected{b.start + 1h};
    if (what == 1 || what == 3) expected.push_back(b.start + 25h);
    if (what == 2) expected.insert(expected.end(), {b.start + 23h, b.start + 24h, b.start + 25h});
    CHECK(b.planned == expected);
    CHECK(b.record().skipped == 25 - expected.size());
    CHECK(b.record().next == b.start + 26h);
    b.run_for(30min);
    CHECK(b.planned.back() == b.start + 26h);
}

TEST_CASE("what comes due while the machine sleeps was missed, also where the steady clock counts the sleep",
          "[scheduler][schedules][clock][threads]") {
    ax::testing::manual_clock clock;
    store_type store;
    tally looked;
    {
        ax::scheduler<store_type, ax::testing::manual_clock> tasks{store, ax::options{.workers = 1}, clock};
        tasks.on(probe, [] {});
        tasks.on(shipping, [&](parcel const&) { ++looked; });
        ax::schedule_options how;
        how.misfire = ax::misfire::skip;
        tasks.schedule("s", ax::every{1h}, probe, {}, how);
        tasks.schedule("t", ax::every{1h}, shipping, parcel{}); // its run comes after the step of both
        tasks.start();
        clock.advance(24h + 30s);
        CHECK(looked.reaches(1));
    }
    auto const records = store.schedules();
    REQUIRE(records.size() == 2);
    CHECK(records[0].fired == 0);
    CHECK(records[0].skipped == 24);
    CHECK(records[1].fired == 1);
    CHECK(records[1].skipped == 23);
}

TEST_CASE("a clock that leaps to and fro never makes a loop, nor an occurrence twice",
          "[scheduler][schedules][clock]") {
    change_bench b;
    auto const kind = GENERATE(range(0, 3));
    ax::schedule_options how;
    how.overlap = ax::overlap::allow;
    if (kind == 0) b.declare(ax::every{1s}, how);
    if (kind == 1) b.declare(ax::cron{"* * * * * *"}, how);
    if (kind == 2) b.declare(ax::after_each{1s}, how);
    b.run_for(3s);
    auto const seed = GENERATE(1u, 2u, 3u);
    ax::splitmix64 random{seed};
    CAPTURE(kind, seed);
    for (int i = 0; i != 40; ++i) {
        auto const leap = std::chrono::milliseconds{static_cast<std::int64_t>(random() % 31'536'000'000)};
        b.clock.set(i % 2 == 0 ? b.start + leap : b.start + 5s + std::chrono::milliseconds{random() % 5'000});
        if (random() % 4 == 0) b.again();
        auto const before = b.store.transacts();
        auto const runs = b.planned.size();
        for (int polls = 0; polls != 6; ++polls) b.poll();
        CHECK(b.store.transacts() - before < 60);
        CHECK(b.planned.size() - runs <= 3);
        CHECK(b.run_for(2s) < 40);
        if (kind != 2) CHECK(b.planned.back() >= b.now() - 2s); // it goes on at once, wherever the clock stands
        auto const next = b.record().next;
        CHECK((!next || *next <= b.now() + 1s));
    }
    std::set<ax::time_point> const once(b.planned.begin(), b.planned.end());
    CHECK(once.size() == b.planned.size());
}

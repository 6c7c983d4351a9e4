// SPDX-License-Identifier: MIT
// Whatever a schedule leaves out is kept with its instants and its reason.
#include "ax/scheduler/scheduler.hpp"

#include "ax/storage/sqlite.hpp"

#include "scheduler/support.hpp"
#include "storage/sqlite_fixture.hpp"

using namespace test;

namespace {

using texts = std::vector<std::string>;

/// A schedule "s" of each minute.
struct skip_bench : bench {
    ax::time_point const start = now();

    explicit skip_bench(ax::schedule_options how = {}) {
        again();
        (*this)->schedule("s", ax::every{60s}, probe, {}, std::move(how));
    }
    void again() {
        restart([](simulated& tasks) { tasks.on(probe, [] {}); });
    }
    void away(ax::time_span span) {
        clock.advance(span);
        again();
        run_for(0s);
    }
    texts skips() { return skips_of(**this, start, 60s); }
};

std::uint64_t counted(std::vector<ax::skip_count> const& reasons) {
    std::uint64_t sum = 0;
    for (auto const& each : reasons) sum += each.number;
    return sum;
}

} // namespace

TEST_CASE("skips: what was missed is kept, by the words of its policy", "[scheduler][schedules][skips]") {
    struct {
        ax::misfire_policy misfire;
        texts expected;
    } const all[] = {
        {ax::misfire::run_once, {"2..4 (3) missed: a later one stands for it"}},
        {ax::misfire::skip, {"2..5 (4) missed: the policy is to skip"}},
        {ax::misfire::run_all(10), {}},
        {ax::misfire::run_all(2), {"2..3 (2) missed: only the latest 2 are made up for"}},
        {ax::misfire::within(30s), {"2..4 (3) missed: a later one stands for it"}},
        {ax::misfire::within(29s), {"2..5 (4) missed: the latest is late by more than 29000 ms"}},
    };
    auto const& one = all[GENERATE(range(0, 6))];
    ax::schedule_options how;
    how.misfire = one.misfire;
    CAPTURE(to_text(one.misfire));
    skip_bench b{how};
    b.run_for(61s);
    b.away(269s); // to 5:30
    CHECK(b.skips() == one.expected);
    if (!one.expected.empty()) CHECK(b->schedule_skips("s").latest[0].recorded == b.now());
    b.again();
    CHECK(b.skips() == one.expected);
    CHECK(counted(b->schedule_skips("s").reasons) == b->schedules().at(0).skipped);
}

TEST_CASE("skips: one downtime behind another is one range, and a run between them keeps them apart",
          "[scheduler][schedules][skips]") {
    ax::schedule_options how;
    how.misfire = ax::misfire::skip;
    how.spread = 50s; // what is kept are the planned instants all the same
    skip_bench b{how};
    b.run_for(2min);
    b.away(3min);
    b.away(3min);
    auto const first = b.now();
    CHECK(b.skips().size() == 1);
    b.run_for(3min);
    b.away(4min);
    auto const skips = b->schedule_skips("s");
    REQUIRE(skips.latest.size() == 2);
    for (auto const& each : skips.latest) {
        CHECK((each.first - b.start) % 60s == 0s);
        CHECK((each.last - each.first) / 60s + 1 == static_cast<std::int64_t>(each.number));
    }
    CHECK(skips.latest[0].number == 6);
    CHECK(skips.latest[0].recorded == first);
    CHECK(skips.latest[1].number == 4);
    CHECK(skips.latest[1].first > skips.latest[0].last + 60s);
    CHECK(skips.reasons.at(0).number == 10);
}

TEST_CASE("skips: what overlaps is kept, the one that was left out or the one that gave way",
          "[scheduler][schedules][skips]") {
    struct {
        ax::overlap_policy overlap;
        texts expected;
    } const all[] = {
        {ax::overlap::skip, {"2..4 (3) the one before has not ended"}},
        {ax::overlap::allow, {}},
        {ax::overlap::queue_one, {"2..3 (2) a later one took its place"}},
        {ax::overlap::queue_all, {}},
        {ax::overlap::cancel_running, {"2..3 (2) a later one took its place"}},
        {ax::overlap::replace_running, {}}, // all begin at once, and those before are asked to stop
    };
    auto const& one = all[GENERATE(range(0, 6))];
    CAPTURE(to_text(one.overlap));
    hosted_bench b;
    auto const start = b.clock.now();
    bool begun = false;
    b.tasks.on(probe, [&] {
        if (std::exchange(begun, true)) return;
        for (int n = 0; n != 3; ++n) { // the first lasts until 4 has come
            b.pass(10s);
            while (b.loop.step()) {
            }
        }
    });
    ax::schedule_options how;
    how.overlap = one.overlap;
    b.tasks.schedule("s", ax::every{10s}, probe, {}, how);
    b.poll();
    b.pass(10s);
    b.settle();
    CHECK(skips_of(b.tasks, start, 10s) == one.expected);
    CHECK(counted(b.tasks.schedule_skips("s").reasons) == b.tasks.schedules().at(0).skipped);
}

TEST_CASE("skips: what fell into a pause is kept where the schedule goes on from now",
          "[scheduler][schedules][skips]") {
    skip_bench b;
    b.run_for(60s);
    b->pause_schedule("s");
    b.run_for(210s); // to 4:30
    b->resume_schedule("s");
    b.run_for(30s);
    CHECK(b.skips() == texts{"2..4 (3) it was paused"});
    b->pause_schedule("s");
    b.run_for(150s); // to 7:30
    b->resume_schedule("s", ax::resume::catch_up);
    b.run_for(30s);
    CHECK(b.skips() == texts{"2..4 (3) it was paused", "6..6 (1) missed: a later one stands for it"});
}

TEST_CASE("skips: what a clock that was wrong had made already is kept when it is met again",
          "[scheduler][schedules][skips]") {
    skip_bench b;
    b.run_for(3min);
    b.clock.set(b.start + 90s);
    b.again();
    b.run_for(150s); // to 4:00
    CHECK(b.skips() == texts{"2..3 (2) it was there already"});
}

TEST_CASE("skips: one step that leaves out for two reasons keeps both", "[scheduler][schedules][skips]") {
    bench b;
    auto const start = b.now();
    ax::workflow w{"w"}; // of the fifth minute it cannot be made
    w.wait_for(ax::occurrence_of("s", start + 5min), {.within = 1min});
    b->schedule("s", ax::every{1min}, w);
    b.clock.advance(5min + 30s);
    b.restart();
    b.run_for(0s);
    auto const skips = b->schedule_skips("s");
    REQUIRE(skips.latest.size() == 2);
    CHECK(skips_of(*b, start, 1min)[0] == "1..4 (4) missed: a later one stands for it");
    CHECK(skips.latest[1].first == start + 5min);
    CHECK(skips.latest[1].last == start + 5min);
    CHECK(contains(skips.latest[1].reason, "this very workflow"));
    CHECK(b->schedules().at(0).skipped == 5);
    CHECK(counted(skips.reasons) == 5);
}

TEST_CASE("skips: a schedule that is not there has none, and one that is removed takes them along",
          "[scheduler][schedules][skips]") {
    skip_bench b;
    b.away(10min);
    CHECK(b.skips().size() == 1);
    CHECK(failure_of([&] { b->schedule_skips("t"); }) == invalid);
    b->unschedule("s");
    CHECK(failure_of([&] { b->schedule_skips("s"); }) == invalid);
    b->schedule("s", ax::every{60s}, probe);
    CHECK(b.skips().empty());
}

TEST_CASE("skips: SQLite keeps them over restarts, and goes on with them", "[scheduler][schedules][skips][sqlite]") {
    using durable = ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock>;
    temporary_directory const directory;
    ax::testing::manual_clock clock;
    auto const start = clock.now();
    std::optional<durable> tasks;
    auto const open = [&] {
        tasks.reset();
        tasks.emplace(ax::sqlite_storage{directory.file("store.db")}, ax::options{}, clock);
        tasks->on(probe, [] {});
        for (int i = 0; i != 3; ++i) tasks->poll(clock.now());
    };
    open();
    ax::schedule_options how;
    how.misfire = ax::misfire::skip;
    tasks->schedule("s", ax::every{1min}, probe, {}, how);
    for (auto const span : {150s, 120s}) {
        clock.advance(span);
        open();
    }
    CHECK(skips_of(*tasks, start, 1min) == texts{"1..4 (4) missed: the policy is to skip"});
    tasks->pause_schedule("s");
    clock.advance(2min);
    open();
    tasks->resume_schedule("s");
    open();
    CHECK(skips_of(*tasks, start, 1min) == texts{"1..4 (4) missed: the policy is to skip", "5..6 (2) it was paused"});
    CHECK(tasks->schedules().at(0).skipped == 6);
    CHECK(tasks->verify().empty());
}

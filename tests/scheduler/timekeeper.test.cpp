// SPDX-License-Identifier: MIT
// The time of a poll: it begins at the instant that the host says, and goes on while handlers work.
#include "ax/scheduler/detail/timekeeper.hpp"

#include "scheduler/support.hpp"

using namespace test;

TEST_CASE("timekeeper goes on from the pinned instant at the rate of the steady clock", "[scheduler][poll]") {
    ax::testing::manual_clock clock;
    ax::detail::timekeeper times{clock};
    auto const start = clock.now();
    CHECK(times.reached() == start);
    times.pin(start + 1h);
    CHECK(times.reached() == start + 1h);
    CHECK(times.until(start + 2h) == 1h);
    clock.advance(7s);
    CHECK(times.reached() == start + 1h + 7s);
    CHECK(times.present() == start + 1h + 7s);
    CHECK(times.until(start + 2h) == 1h - 7s);
    clock.set(start - 10h); // a step of the wall clock is no time that passes
    CHECK(times.reached() == start + 1h + 7s);
    times.release();
    CHECK(times.reached() == start - 10h);
    times.pin(ax::latest_time);
    clock.advance(1h);
    CHECK(times.reached() >= ax::latest_time); // and is no overflow
}

TEST_CASE("time passes in a poll while its handlers work", "[scheduler][poll]") {
    bench b;
    auto const start = b.now();
    std::optional<ax::time_point> due;
    b->on(probe, [&] {
        b.clock.advance(7s);
        due = b->find(b->submit(other, {}, {.delay = 5s}).id)->run_at;
    });
    auto const id = b->submit(probe).id;
    b->poll(start + 1h);
    CHECK(due == start + 1h + 12s);
    auto const history = b->history(id);
    REQUIRE(history.size() == 1);
    CHECK(history[0].start == start + 1h);
    CHECK(history[0].end == start + 1h + 7s);
    CHECK(b.get(id).finished == start + 1h + 7s);
}

TEST_CASE("a deadline that passes while another handler of the same poll works is kept", "[scheduler][poll]") {
    bench b{{.workers = 1}};
    auto const start = b.now();
    int runs = 0;
    b->on(probe, [&] {
        ++runs;
        b.clock.advance(10s);
    });
    auto const first = b->submit(probe, {}, {.deadline = start + 5s}).id;
    auto const second = b->submit(probe, {}, {.deadline = start + 5s}).id;
    b.poll();
    CHECK(runs == 1);
    CHECK(b.state(first) == task_state::succeeded);
    CHECK(b.state(second) == task_state::dead);
}

// SPDX-License-Identifier: MIT
// Faults of the engine that simulated histories have found, each in its smallest form.
#include "scheduler/support.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

using namespace test;

namespace {

[[noreturn]] void lose_reply() { throw ax::error(ax::errc::outcome_unknown, "the connection is lost"); }

/// Loses the reply to the n-th commit that settles, that claims, or to the n-th of any kind.
class lost_reply {
  public:
    enum class to { settle, claim, any };

    lost_reply(bench& b, to what, int n, bool made = true) : b_(b) {
        auto& hooks = b.store.hooks();
        if (what == to::settle) hooks.before_settle = [this](auto const&) { meant_ = true; };
        if (what == to::claim) hooks.before_claim = [this](auto const&) { meant_ = true; };
        if (what == to::any) meant_ = true;
        auto const lose = [this, n, what] {
            if (std::exchange(meant_, what == to::any) && ++count_ == n) lose_reply();
        };
        (made ? hooks.after_transact : hooks.before_transact) = lose;
    }
    ~lost_reply() { b_.store.hooks() = {}; }
    lost_reply(lost_reply const&) = delete;
    lost_reply& operator=(lost_reply const&) = delete;

    bool happened(int n) const { return count_ >= n; }

  private:
    bench& b_;
    bool meant_ = false;
    int count_ = 0;
};

} // namespace

// ---------------------------------------------------------------- replies that are lost

TEST_CASE("an outcome that was stored though its reply was lost is reported, and is not refused",
          "[scheduler][storage]") {
    bench b;
    int runs = 0;
    std::vector<ax::event_kind> events;
    std::vector<attempt_outcome> outcomes;
    b->on(probe,
          [&](ax::context&) {
              if (++runs == 1) throw std::runtime_error("the first time");
          },
          {.retry = ax::retry::fixed(1s).attempts(3)});
    b->observe([&](ax::event const& e) {
        if (e.kind != ax::event_kind::reported && e.kind != ax::event_kind::refused) return;
        events.push_back(e.kind);
        outcomes.push_back(*e.outcome);
    });
    auto const id = b->submit(probe).id;
    {
        lost_reply const fault{b, lost_reply::to::settle, GENERATE(1, 2)};
        b.run_for(1min);
    }
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(runs == 2);
    CHECK(events == std::vector{ax::event_kind::reported, ax::event_kind::reported});
    CHECK(outcomes == std::vector{attempt_outcome::failed, attempt_outcome::succeeded});
    CHECK(b->health().unsettled == 0);
}

TEST_CASE("an outcome that was stored though its reply was lost is looked up, and not sent again",
          "[scheduler][storage]") {
    bench b;
    b->on(probe, [] {});
    auto const id = b->submit(probe).id;
    int settles = 0;
    bool lost = false;
    b.store.hooks().before_settle = [&](auto const&) { ++settles; };
    b.store.hooks().after_transact = [&] {
        if (settles == 1 && !std::exchange(lost, true)) lose_reply();
    };
    b.run_for(10s);
    CHECK(settles == 1);
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("an outcome in doubt stays so while the storage cannot be asked", "[scheduler][storage]") {
    bench b;
    std::vector<ax::event_kind> events;
    b->on(probe, [] {});
    b->observe([&](ax::event const& e) { events.push_back(e.kind); });
    auto const id = b->submit(probe).id;
    auto const failing = GENERATE(range(1, 5));
    CAPTURE(failing);
    bool settles = false;
    bool lost = false;
    int reads = 0;
    b.store.hooks().before_settle = [&](auto const&) { settles = true; };
    b.store.hooks().after_transact = [&] {
        if (settles && !std::exchange(lost, true)) lose_reply();
    };
    b.store.hooks().before_read = [&] {
        if (lost && ++reads == failing) throw ax::error(ax::errc::unavailable, "busy");
    };
    b.run_for(10s);
    b.store.hooks() = {};
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(std::count(events.begin(), events.end(), ax::event_kind::reported) == 1);
    CHECK(std::count(events.begin(), events.end(), ax::event_kind::refused) == 0);
}

TEST_CASE("an outcome that was not stored when the reply was lost is sent again", "[scheduler][storage]") {
    bench b;
    int runs = 0;
    std::size_t refused = 0;
    b->on(probe, [&] { ++runs; });
    b->observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::refused) ++refused;
    });
    auto const failing = GENERATE(range(1, 5));
    CAPTURE(failing);
    b.poll(); // the host sees a failure of the recovery itself
    auto const id = b->submit(probe).id;
    {
        lost_reply const fault{b, lost_reply::to::any, failing, false};
        b.run_for(1min);
    }
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(runs == 1);
    CHECK(refused == 0);
}

TEST_CASE("a claim whose reply was lost is taken up again, whatever happens before that", "[scheduler][storage]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    auto const first = b->submit(probe).id;
    auto const second = b->submit(probe, {}, {.delay = 500ms}).id;
    {
        lost_reply const fault{b, lost_reply::to::claim, 1};
        b.poll();
        REQUIRE(fault.happened(1));
    }
    REQUIRE(b.state(first) == task_state::dispatched);
    SECTION("nothing") {}
    SECTION("its type is paused for a while") {
        b->pause(probe);
        b.run_for(5s);
        b->resume(probe);
    }
    SECTION("the clock is set back") {
        b.clock.set(b.now() - 1h);
        b.clock.advance(1s);
        b.poll();
        b.clock.set(b.now() + 1h);
    }
    b.run_for(1min);
    CHECK(b.state(first) == task_state::succeeded);
    CHECK(b.state(second) == task_state::succeeded);
    CHECK(runs == 2);
    CHECK(b->history(first).size() == 1);
}

TEST_CASE("a fixed delay goes on, whichever reply is lost", "[scheduler][storage][schedules]") {
    auto const failing = GENERATE(range(1, 12));
    bool const made = GENERATE(true, false);
    CAPTURE(failing, made);
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->schedule("s", ax::after_each{10s}, probe);
    b.poll();
    {
        lost_reply const fault{b, lost_reply::to::any, failing, made};
        b.run_for(65s);
    }
    CHECK(runs == 6);
}

TEST_CASE("a fixed delay goes on when the reply to a cancel of its run is lost", "[scheduler][storage][schedules]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->schedule("s", ax::after_each{10s}, probe);
    b->pause(probe);
    b.run_for(15s);
    auto const waiting = b->list({.state = task_state::ready});
    REQUIRE(waiting.size() == 1);
    {
        lost_reply const fault{b, lost_reply::to::any, 1};
        CHECK(failure_of([&] { b->cancel(waiting.front().id); }) == ax::errc::outcome_unknown);
    }
    REQUIRE(b.state(waiting.front().id) == task_state::cancelled);
    b->resume(probe);
    b.run_for(35s);
    CHECK(runs >= 2);
}

TEST_CASE("a schedule that was resumed or declared fires, though the reply was lost",
          "[scheduler][storage][schedules]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    SECTION("resumed") {
        b->schedule("s", ax::every{10s}, probe);
        b->pause_schedule("s");
        b.run_for(5s);
        lost_reply const fault{b, lost_reply::to::any, 1};
        CHECK(failure_of([&] { b->resume_schedule("s"); }) == ax::errc::outcome_unknown);
    }
    SECTION("declared") {
        b->submit(probe); // the number of the type is known
        b.run_for(1s);
        runs = 0;
        lost_reply const fault{b, lost_reply::to::any, 1};
        CHECK(failure_of([&] { b->schedule("s", ax::every{10s}, probe); }) == ax::errc::outcome_unknown);
    }
    b.run_for(35s);
    CHECK(runs >= 3);
}

// ---------------------------------------------------------------- clocks

TEST_CASE("a clock that is set back by a little keeps nothing from running", "[scheduler][clock]") {
    auto const back = GENERATE(1ms, 10ms, 50ms, 100ms, 101ms, 1'000ms, 3'600'000ms);
    CAPTURE(back.count());
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b->schedule("s", ax::every{1s}, other);
    int fired = 0;
    b->on(other, [&] { ++fired; });
    auto const before = b->submit(probe, {}, {.delay = 20ms}).id;
    b.run_for(10s);
    CHECK(b.state(before) == task_state::succeeded);
    b.clock.set(b.now() - back);
    auto const at_once = b->submit(probe).id;
    auto const soon = b->submit(probe, {}, {.delay = 5ms}).id;
    auto const polls = b.run_for(2s, 1'000);
    CHECK(polls < 200);
    CHECK(b.state(at_once) == task_state::succeeded);
    CHECK(b.state(soon) == task_state::succeeded);
    CHECK(runs == 3);
}

TEST_CASE("a clock that is set back in many small steps keeps nothing from running", "[scheduler][clock]") {
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    b.run_for(10s);
    for (int i = 0; i != 50; ++i) {
        CAPTURE(i);
        b.clock.set(b.now() - 60ms);
        auto const id = b->submit(probe, {}, {.delay = 5ms}).id;
        CHECK(b.run_for(110ms, 1'000) < 200);
        CHECK(b.state(id) == task_state::succeeded);
    }
    CHECK(runs == 50);
}

TEST_CASE("a host that polls rarely finds what its memory has lost", "[scheduler][poll]") {
    auto const pause = GENERATE(1s, 10min, 1h, 24h);
    bool const busy = GENERATE(false, true);
    CAPTURE(pause.count(), busy);
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; });
    auto const number = b.store.types().front().number;
    b.poll();
    b.poll_after(pause);
    task_id lost{};
    b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
        ax::new_task task;
        task.type = number;
        task.run_at = b.now() - 10s;
        ax::alarms nobody_hears;
        lost = w.insert({&task, 1}, b.now(), nobody_hears).front().id;
    });
    for (int i = 0; i != 4; ++i) {
        if (busy) b->submit(probe);
        b.poll_after(pause);
    }
    CHECK(b.state(lost) == task_state::succeeded);
    CHECK(runs == (busy ? 5 : 1));
}

// ---------------------------------------------------------------- starts that are stored first

TEST_CASE("a run whose start cannot be stored is tried again, whatever is thrown", "[scheduler][storage]") {
    enum class fault : std::uint8_t { unavailable, corrupt, unknown, memory, odd };
    auto const what = GENERATE(fault::unavailable, fault::corrupt, fault::unknown, fault::memory, fault::odd);
    auto const failing = GENERATE(range(0, 6));
    bool const made = GENERATE(false, true);
    CAPTURE(static_cast<int>(what), failing, made);
    bench b;
    int runs = 0;
    b->on(probe, [&] { ++runs; }, {.on_interrupt = ax::on_interrupt::hold});
    auto const id = b->submit(probe).id;
    int count = 0;
    (made ? b.store.hooks().after_transact : b.store.hooks().before_transact) = [&] {
        if (count++ != failing) return;
        if (what == fault::unavailable) throw ax::error(ax::errc::unavailable, "away");
        if (what == fault::corrupt) throw ax::error(ax::errc::corrupt, "no such row");
        if (what == fault::unknown) lose_reply();
        if (what == fault::memory) throw std::bad_alloc{};
        throw 7;
    };
    if (what == fault::unknown || !made) { // else it is no fault that a storage may have
        for (int i = 0; i != 20; ++i) try {
                b.poll_after(1s);
            } catch (...) { // of the recovery, which the host sees
            }
        b.store.hooks() = {};
        b.run_for(1min);
        CHECK(b.state(id) == task_state::succeeded);
        CHECK(runs == 1);
        CHECK(b->health().running == 0);
    }
    b.store.hooks() = {};
}

// SPDX-License-Identifier: MIT
#include "ax/wheel/timing_wheel.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;

struct ax::detail::timing_wheel_peer {
    /// Lets the generations of an unused wheel begin so that each record has `uses` left.
    template <class Payload>
    static void age(timing_wheel<Payload>& wheel, std::uint32_t uses) {
        using slab = timer_slab<Payload>;
        wheel.slab_ = slab{slab::last_generation - uses};
    }
};

namespace {

using ax::time_point;
using wheel_of_ints = ax::timing_wheel<int>;

template <class Wheel>
auto advance(Wheel& wheel, time_point now) {
    std::vector<int> fired;
    auto const count = wheel.advance(now, [&](int id) { fired.push_back(id); });
    CHECK(count == fired.size());
    CHECK(wheel.check_invariants());
    return fired;
}

using ints = std::vector<int>;

time_point const epoch{};
time_point const day{std::chrono::milliseconds{1'700'000'000'123}};

static_assert(!std::is_copy_constructible_v<wheel_of_ints>);
static_assert(std::is_nothrow_move_constructible_v<wheel_of_ints>);
static_assert(std::is_trivially_copyable_v<wheel_of_ints::handle>);

} // namespace

TEST_CASE("timing_wheel runs a timer at its tick and not one tick earlier", "[wheel]") {
    auto const start = GENERATE(epoch, day, time_point{-5ms}, time_point{4'095ms}, time_point{-4'096ms});
    auto const delay =
        GENERATE(1ms, 2ms, 62ms, 63ms, 64ms, 65ms, 127ms, 128ms, 4'095ms, 4'096ms, 4'097ms, 262'143ms, 262'144ms,
                 262'145ms, 16'777'215ms, 16'777'216ms, 30 * 86'400'000ms, 8'000 * 365 * 86'400'000ms);
    CAPTURE(start.time_since_epoch().count(), delay.count());
    wheel_of_ints wheel{start};
    wheel.schedule(start + delay, 7);
    CHECK(wheel.size() == 1);
    CHECK(wheel.next_expiry() == start + delay);

    CHECK(advance(wheel, start + delay - 1ms).empty());
    CHECK(wheel.next_expiry() == start + delay);
    CHECK(advance(wheel, start + delay) == ints{7});
    CHECK(wheel.empty());
    CHECK(wheel.next_expiry() == std::nullopt);
    CHECK(advance(wheel, start + delay + 1ms).empty());
}

TEST_CASE("timing_wheel runs a timer at its tick when time moves in small steps", "[wheel]") {
    auto const step = GENERATE(1ms, 7ms, 63ms, 64ms, 65ms, 1000ms);
    CAPTURE(step.count());
    wheel_of_ints wheel{day};
    std::vector<time_point> deadlines;
    for (int i = 0; i != 5'000; ++i) {
        deadlines.push_back(day + std::chrono::milliseconds{i * 13 % 5'000});
        wheel.schedule(deadlines.back(), i);
    }
    std::size_t fired = 0;
    for (auto now = day; now <= day + 6s; now += step) {
        wheel.advance(now, [&](int id) {
            ++fired;
            auto const due = deadlines[static_cast<std::size_t>(id)];
            REQUIRE(due <= now);
            REQUIRE((due > now - step || now == day));
        });
    }
    CHECK(fired == deadlines.size());
}

TEST_CASE("timing_wheel covers the whole range of time_point", "[wheel]") {
    auto const start = GENERATE((time_point::min)(), epoch, day, ax::latest_time);
    wheel_of_ints wheel{start};
    wheel.schedule((time_point::max)(), 3);
    wheel.schedule((time_point::max)() - 1ms, 2);
    wheel.schedule(ax::latest_time, 1);
    wheel.schedule((time_point::min)(), 0);
    CHECK(wheel.check_invariants());
    CHECK(advance(wheel, ax::latest_time) == ints{0, 1});
    CHECK(wheel.next_expiry() == (time_point::max)() - 1ms);
    CHECK(advance(wheel, (time_point::max)() - 1ms) == ints{2});
    CHECK(wheel.next_expiry() == (time_point::max)());
    CHECK(advance(wheel, (time_point::max)()) == ints{3});
    wheel.schedule((time_point::max)(), 4);
    CHECK(wheel.next_expiry() == (time_point::max)());
    CHECK(advance(wheel, (time_point::max)()) == ints{4});
}

TEST_CASE("timing_wheel fires an overdue timer with the next advance (F011)", "[wheel]") {
    wheel_of_ints wheel{day};
    auto const past = GENERATE(0ms, 1ms, 63ms, 64ms, 1'000'000ms);
    wheel.schedule(day - past, 1);
    CHECK(wheel.next_expiry() == day - past);
    CHECK(advance(wheel, day) == ints{1});
}

TEST_CASE("timing_wheel fires overdue timers in the order of their deadlines", "[wheel]") {
    wheel_of_ints wheel{day};
    wheel.schedule(day - 1ms, 3);
    wheel.schedule(day - 3ms, 1);
    wheel.schedule(day, 5);
    wheel.schedule(day - 1ms, 4);
    wheel.schedule(day + 1ms, 6);
    wheel.schedule(day - 2ms, 2);
    CHECK(wheel.check_invariants());
    CHECK(wheel.next_expiry() == day - 3ms);
    CHECK(advance(wheel, day + 1ms) == ints{1, 2, 3, 4, 5, 6});
}

TEST_CASE("timing_wheel does nothing when the clock steps back", "[wheel]") {
    wheel_of_ints wheel{day};
    wheel.schedule(day + 10ms, 1);
    wheel.schedule(day + 20ms, 2);
    CHECK(advance(wheel, day + 10ms) == ints{1});
    wheel.schedule(day + 5ms, 3);
    CHECK(advance(wheel, day + 9ms).empty());
    CHECK(advance(wheel, day - 1h).empty());
    CHECK(wheel.position() == day + 10ms);
    CHECK(advance(wheel, day + 10ms) == ints{3});
    CHECK(advance(wheel, day + 20ms) == ints{2});
}

TEST_CASE("timing_wheel rewinds for a clock that was set back (F060)", "[wheel]") {
    wheel_of_ints wheel{day};
    for (int i = 0; i != 100; ++i) wheel.schedule(day + 1h + std::chrono::milliseconds{i / 2 * 97}, i);
    CHECK(advance(wheel, day + 1h - 1ms).empty());
    wheel.schedule(day + 30min, 1000);
    wheel.schedule(day + 30min, 1001);
    wheel.schedule(day - 1min, 999);
    auto const doomed = wheel.schedule(day + 31min, 5);
    wheel.cancel(doomed);

    wheel.rewind(day + 1h); // not back: nothing happens
    CHECK(wheel.position() == day + 1h - 1ms);
    wheel.rewind(day);
    CHECK(wheel.position() == day);
    CHECK(wheel.check_invariants());
    CHECK(wheel.next_expiry() == day - 1min);
    CHECK(advance(wheel, day + 30min - 1ms) == ints{999});
    CHECK(wheel.next_expiry() == day + 30min);
    CHECK(advance(wheel, day + 30min) == ints{1000, 1001});
    ints all(100);
    for (int i = 0; i != 100; ++i) all[static_cast<std::size_t>(i)] = i;
    CHECK(advance(wheel, day + 2h) == all);
}

TEST_CASE("timing_wheel fires timers of one tick in the order of scheduling", "[wheel]") {
    // The same deadline is scheduled from afar and from ever closer by, so that the timers start on different levels.
    auto const deadline = day + 5h;
    wheel_of_ints wheel{day};
    ints expected;
    int id = 0;
    for (auto const before :
         {5h + 0ms, 4h + 0ms, 1h + 0ms, 10min + 0ms, 300s + 0ms, 5s + 0ms, 4'095ms, 100ms, 64ms, 63ms, 1ms}) {
        CHECK(advance(wheel, deadline - before).empty());
        for (int i = 0; i != 50; ++i) {
            expected.push_back(id);
            wheel.schedule(deadline, id++);
        }
    }
    CHECK(advance(wheel, deadline + 1h) == expected);
}

TEST_CASE("timing_wheel cancels a timer once and destroys its payload at once (F129, F132)", "[wheel]") {
    ax::timing_wheel<std::shared_ptr<int>> wheel{day};
    auto const value = std::make_shared<int>(1);
    auto const far = wheel.schedule(day + 1h, value);
    auto const overdue = wheel.schedule(day, value);
    CHECK(value.use_count() == 3);
    CHECK(wheel.cancel(far));
    CHECK(value.use_count() == 2);
    CHECK_FALSE(wheel.cancel(far));
    CHECK(wheel.cancel(overdue));
    CHECK(value.use_count() == 1);
    CHECK(wheel.empty());
    CHECK(wheel.next_expiry() == std::nullopt);
    CHECK(wheel.advance(day + 2h, [](auto&&) {}) == 0);
    CHECK(wheel.check_invariants());
}

TEST_CASE("timing_wheel ignores handles that are stale or were never given out", "[wheel]") {
    wheel_of_ints wheel{day};
    CHECK_FALSE(wheel.cancel({}));
    auto const first = wheel.schedule(day + 1s, 1);
    CHECK_FALSE(wheel.cancel({}));
    CHECK(advance(wheel, day + 1s) == ints{1});
    CHECK_FALSE(wheel.cancel(first));
    auto const second = wheel.schedule(day + 2s, 2); // takes the same place
    CHECK_FALSE(wheel.cancel(first));
    auto stale = first;
    CHECK_FALSE(wheel.reschedule(stale, day + 3s));
    CHECK(stale == first);
    CHECK(wheel.size() == 1);
    CHECK(wheel.cancel(second));

    wheel_of_ints other{day};
    CHECK_FALSE(other.cancel(second));
}

TEST_CASE("timing_wheel keeps handles stale when the memory behind them went back and came again", "[wheel]") {
    wheel_of_ints wheel{day};
    std::vector<wheel_of_ints::handle> old;
    for (int i = 0; i != 20'000; ++i) old.push_back(wheel.schedule(day + 1h + std::chrono::milliseconds{i}, i));
    for (auto const h : old) CHECK(wheel.cancel(h));
    for (int i = 0; i != 20'000; ++i) wheel.schedule(day + 1h + std::chrono::milliseconds{i}, i);
    for (auto const h : old) REQUIRE_FALSE(wheel.cancel(h));
    CHECK(wheel.size() == 20'000);
    CHECK(advance(wheel, day + 2h).size() == 20'000);
}

TEST_CASE("timing_wheel retires a record before its generations repeat", "[wheel]") {
    wheel_of_ints wheel{day};
    ax::detail::timing_wheel_peer::age(wheel, 4);
    std::vector<wheel_of_ints::handle> old;
    for (int i = 0; i != 5'000; ++i) {
        auto const h = wheel.schedule(day + 1h, i);
        for (auto const& o : old) REQUIRE(!(o == h));
        if (old.size() < 100) old.push_back(h);
        REQUIRE(wheel.cancel(h));
        REQUIRE_FALSE(wheel.cancel(h));
    }
    CHECK(wheel.check_invariants());

    auto timer = wheel.schedule(day + 1s, 42);
    auto first = timer;
    for (int i = 1; i != 3'000; ++i) {
        auto const before = timer;
        REQUIRE(wheel.reschedule(timer, day + 1s + std::chrono::milliseconds{i}));
        REQUIRE_FALSE(wheel.cancel(before));
        REQUIRE(wheel.size() == 1);
    }
    CHECK_FALSE(wheel.cancel(first));
    CHECK(wheel.check_invariants());
    CHECK(wheel.next_expiry() == day + 1s + 2'999ms);
    CHECK(advance(wheel, day + 1h) == ints{42});
}

TEST_CASE("timing_wheel reschedules to an earlier or later tick", "[wheel]") {
    wheel_of_ints wheel{day};
    auto a = wheel.schedule(day + 1s, 1);
    auto b = wheel.schedule(day + 1s, 2);
    auto c = wheel.schedule(day + 1h, 3);
    auto const old = a;
    CHECK(wheel.reschedule(a, day + 2h));
    CHECK_FALSE(wheel.cancel(old));
    CHECK(wheel.reschedule(c, day + 10ms));
    CHECK(wheel.size() == 3);
    CHECK(wheel.next_expiry() == day + 10ms);
    CHECK(advance(wheel, day + 10ms) == ints{3});
    CHECK_FALSE(wheel.reschedule(c, day + 20ms));
    CHECK(wheel.reschedule(b, day)); // overdue
    CHECK(wheel.next_expiry() == day);
    CHECK(advance(wheel, day + 1h) == ints{2});
    CHECK(advance(wheel, day + 2h) == ints{1});
}

TEST_CASE("timing_wheel puts a rescheduled timer last in its tick", "[wheel]") {
    wheel_of_ints wheel{day};
    auto a = wheel.schedule(day + 1h, 1);
    wheel.schedule(day + 1h, 2);
    CHECK(wheel.reschedule(a, day + 1h));
    CHECK(advance(wheel, day + 1h) == ints{2, 1});
}

TEST_CASE("timing_wheel does not grow when a timer is rescheduled for ever", "[wheel]") {
    wheel_of_ints wheel{day};
    auto timer = wheel.schedule(day + 1h, 1);
    for (int i = 0; i != 1'000; ++i) wheel.reschedule(timer, day + 1h + std::chrono::milliseconds{i});
    auto const before = wheel.memory();
    for (int i = 0; i != 200'000; ++i) wheel.reschedule(timer, day + 1h + std::chrono::milliseconds{i % 1'000'000});
    CHECK(wheel.memory() <= before + 64 * 1024);
    CHECK(wheel.check_invariants());
}

TEST_CASE("timing_wheel lets a callback cancel timers, also of its own tick", "[wheel]") {
    wheel_of_ints wheel{day};
    std::vector<wheel_of_ints::handle> handles;
    for (int i = 0; i != 6; ++i) handles.push_back(wheel.schedule(day + 5ms, i));
    handles.push_back(wheel.schedule(day + 6ms, 6));
    handles.push_back(wheel.schedule(day + 1h, 7));
    ints fired;
    wheel.advance(day + 2h, [&](int id) {
        fired.push_back(id);
        if (id == 1) {
            CHECK_FALSE(wheel.cancel(handles[0])); // has fired
            CHECK_FALSE(wheel.cancel(handles[1])); // is firing
            CHECK(wheel.cancel(handles[2]));
            CHECK(wheel.cancel(handles[4]));
            CHECK(wheel.cancel(handles[6]));
            CHECK(wheel.check_invariants());
        }
    });
    CHECK(fired == ints{0, 1, 3, 5, 7});
    CHECK(wheel.check_invariants());
}

TEST_CASE("timing_wheel lets a callback cancel so many that the wheel is swept", "[wheel]") {
    wheel_of_ints wheel{day};
    std::vector<wheel_of_ints::handle> handles;
    for (int i = 0; i != 10'000; ++i) handles.push_back(wheel.schedule(day + (i % 2 ? 5ms : 1h), i));
    ints fired;
    wheel.advance(day + 2h, [&](int id) {
        fired.push_back(id);
        if (id != 101) return;
        for (int i = 0; i != 10'000; ++i) {
            if (i != 103 && i != 9'999 && i != 4'000) wheel.cancel(handles[static_cast<std::size_t>(i)]);
        }
        CHECK(wheel.size() == 3);
        CHECK(wheel.check_invariants());
    });
    CHECK(fired.size() == 51 + 3);
    CHECK(fired.back() == 4'000);
    CHECK(wheel.check_invariants());
}

TEST_CASE("timing_wheel fires what a callback schedules for a later tick in the same call only if it is due",
          "[wheel]") {
    wheel_of_ints wheel{day};
    wheel.schedule(day + 10ms, 1);
    wheel.schedule(day + 50ms, 2);
    ints fired;
    auto const record = [&](int id) {
        fired.push_back(id);
        if (id != 1) return;
        wheel.schedule(day + 100ms, 3);         // due in this call: waits for the next
        wheel.schedule(day + 30ms, 4);          // likewise, though time has not yet come there
        wheel.schedule(day - 1h, 5);            // likewise
        wheel.schedule(day + 101ms, 6);         // after this call
        CHECK(wheel.next_expiry() == day - 1h); // all of them are seen
    };
    CHECK(wheel.advance(day + 100ms, record) == 2);
    CHECK(fired == ints{1, 2});
    CHECK(wheel.next_expiry() == day - 1h);
    CHECK(advance(wheel, day + 100ms) == ints{5, 4, 3});
    CHECK(advance(wheel, day + 101ms) == ints{6});
}

TEST_CASE("timing_wheel is not held up by a timer that renews itself for now", "[wheel]") {
    wheel_of_ints wheel{day};
    wheel.schedule(day + 1ms, 0);
    auto const now = day + 1h;
    for (int round = 0; round != 3; ++round) {
        CHECK(wheel.advance(now, [&](int id) { wheel.schedule(now, id + 1); }) == 1);
        CHECK(wheel.size() == 1);
        CHECK(wheel.check_invariants());
    }
    CHECK(advance(wheel, now) == ints{3});
}

TEST_CASE("timing_wheel lets what a callback throws pass and keeps the rest", "[wheel]") {
    wheel_of_ints wheel{day};
    for (int i = 0; i != 5; ++i) wheel.schedule(day + 10ms, i);
    wheel.schedule(day + 20ms, 5);
    wheel.schedule(day + 30ms, 6);
    wheel.schedule(day + 1h, 8);
    ints fired;
    CHECK_THROWS_AS(wheel.advance(day + 2s,
                                  [&](int id) {
                                      fired.push_back(id);
                                      wheel.schedule(day + 20ms, 10 + id); // due in this call: waits for the next
                                      wheel.schedule(day + 9ms, 20 + id);
                                      if (id == 1) throw std::runtime_error("x");
                                  }),
                    std::runtime_error);
    CHECK(fired == ints{0, 1});
    CHECK(wheel.size() == 10);
    CHECK(wheel.check_invariants());
    CHECK(wheel.next_expiry() == day + 9ms);
    wheel.schedule(day + 10ms, 30);
    wheel.schedule(day + 2s + 1ms, 31);
    CHECK(wheel.check_invariants());
    CHECK(advance(wheel, day + 1s).empty()); // earlier than the call that was cut short
    CHECK(advance(wheel, day + 2s) == ints{20, 21, 2, 3, 4, 30, 5, 10, 11, 6});
    CHECK(advance(wheel, day + 1h) == ints{31, 8});
}

TEST_CASE("timing_wheel goes on after a callback that throws for every overdue timer", "[wheel]") {
    wheel_of_ints wheel{day};
    for (int i = 0; i != 4; ++i) wheel.schedule(day - std::chrono::milliseconds{i}, i);
    ints fired;
    for (int i = 0; i != 4; ++i) {
        CHECK_THROWS_AS(wheel.advance(day,
                                      [&](int id) {
                                          fired.push_back(id);
                                          throw 1;
                                      }),
                        int);
        CHECK(wheel.check_invariants());
    }
    CHECK(fired == ints{3, 2, 1, 0});
    CHECK(wheel.empty());
}

TEST_CASE("timing_wheel ignores advance and rewind from within a callback", "[wheel]") {
    wheel_of_ints wheel{day};
    wheel.schedule(day + 1ms, 1);
    wheel.schedule(day + 1ms, 2);
    wheel.schedule(day + 1h, 3);
    ints fired;
    wheel.advance(day + 1ms, [&](int id) {
        fired.push_back(id);
        CHECK(wheel.advance(day + 2h, [&](int) { FAIL("fired by the inner call"); }) == 0);
        wheel.rewind(day - 1h);
    });
    CHECK(fired == ints{1, 2});
    CHECK(wheel.position() == day + 1ms);
    CHECK(advance(wheel, day + 1h) == ints{3});
}

TEST_CASE("timing_wheel can be cleared, also by a callback", "[wheel]") {
    ax::timing_wheel<std::shared_ptr<int>> wheel{day};
    auto const value = std::make_shared<int>(1);
    auto const fill = [&] {
        for (int i = -10; i != 1'000; ++i) wheel.schedule(day + std::chrono::milliseconds{i * i}, value);
    };
    fill();
    wheel.clear();
    CHECK(value.use_count() == 1);
    CHECK(wheel.empty());
    CHECK(wheel.next_expiry() == std::nullopt);
    CHECK(wheel.check_invariants());

    fill();
    int fired = 0;
    wheel.advance(day + 1h, [&](auto&&) {
        if (++fired == 30) {
            wheel.clear();
            wheel.schedule(day + 2h, value);
        }
    });
    CHECK(fired == 30);
    CHECK(wheel.size() == 1);
    CHECK(value.use_count() == 2);
    CHECK(wheel.check_invariants());
}

TEST_CASE("timing_wheel destroys the payloads that it still holds", "[wheel]") {
    auto const value = std::make_shared<int>(1);
    {
        ax::timing_wheel<std::shared_ptr<int>> wheel{day};
        for (int i = 0; i != 1'000; ++i) {
            auto const h = wheel.schedule(day + std::chrono::milliseconds{i * 977}, value);
            if (i % 3 == 0) wheel.cancel(h);
        }
    }
    CHECK(value.use_count() == 1);
}

TEST_CASE("timing_wheel moves payloads that cannot be copied", "[wheel]") {
    ax::timing_wheel<std::unique_ptr<int>> wheel{day};
    wheel.schedule(day + 1h, std::make_unique<int>(1));
    wheel.schedule(day + 1min, std::make_unique<int>(2));
    std::vector<std::unique_ptr<int>> fired;
    CHECK(wheel.advance(day + 1h, [&](std::unique_ptr<int> p) { fired.push_back(std::move(p)); }) == 2);
    REQUIRE(fired.size() == 2);
    CHECK(*fired[0] == 2);
    CHECK(*fired[1] == 1);
}

namespace {
struct alignas(64) wide {
    int value;
    explicit wide(int v) : value(v) {}
    wide(wide&& other) noexcept : value(other.value) {}
};
} // namespace

TEST_CASE("timing_wheel holds payloads of any alignment and size", "[wheel]") {
    ax::timing_wheel<wide> wheel{day};
    ax::timing_wheel<char> narrow{day};
    ax::timing_wheel<std::string> text{day};
    for (int i = 0; i != 600; ++i) {
        wheel.schedule(day + 1ms, wide{i});
        narrow.schedule(day + 1ms, 'x');
        text.schedule(day + 1ms, std::string(40, 'x'));
    }
    int n = 0;
    wheel.advance(day + 1ms, [&](wide const& w) {
        CHECK(w.value == n++);
        CHECK(reinterpret_cast<std::uintptr_t>(&w) % 64 == 0);
    });
    CHECK(narrow.advance(day + 1ms, [](char c) { CHECK(c == 'x'); }) == 600);
    CHECK(text.advance(day + 1ms, [](std::string const& s) { CHECK(s.size() == 40); }) == 600);
}

TEST_CASE("timing_wheel can be moved with its timers", "[wheel]") {
    ax::timing_wheel<std::unique_ptr<int>> source{day};
    auto const h = source.schedule(day + 1h, std::make_unique<int>(1));
    source.schedule(day + 2h, std::make_unique<int>(2));
    auto wheel = std::move(source);
    CHECK(wheel.size() == 2);
    CHECK(wheel.cancel(h));
    CHECK(wheel.check_invariants());
    source = ax::timing_wheel<std::unique_ptr<int>>{day};
    CHECK(source.empty());
    source.schedule(day + 1h, std::make_unique<int>(3));
    wheel = std::move(source);
    CHECK(wheel.advance(day + 3h, [](auto p) { CHECK(*p == 3); }) == 1);
}

namespace {
/// Uses the wheel when it is destroyed.
struct meddler {
    std::function<void()> act;
    explicit meddler(std::function<void()> f) : act(std::move(f)) {}
    meddler(meddler&& other) noexcept : act(std::exchange(other.act, nullptr)) {}
    ~meddler() {
        if (act) act();
    }
};
} // namespace

TEST_CASE("timing_wheel lets the destructor of a payload use it", "[wheel]") {
    ax::timing_wheel<meddler> wheel{day};
    std::vector<ax::timer_handle> handles;
    int destroyed = 0;
    for (int i = 0; i != 3'000; ++i) {
        handles.push_back(wheel.schedule(day + std::chrono::milliseconds{i * 7}, meddler([&, i] {
                                             ++destroyed;
                                             auto const self = handles[static_cast<std::size_t>(i)];
                                             CHECK_FALSE(wheel.cancel(self));
                                             if (i + 1 < 3'000) wheel.cancel(handles[static_cast<std::size_t>(i + 1)]);
                                             if (i % 10 == 0) wheel.schedule(day + 1h, meddler([&] { ++destroyed; }));
                                         })));
    }
    SECTION("cancel") {
        wheel.cancel(handles[1'000]); // takes all behind it along
        CHECK(wheel.check_invariants());
        CHECK(destroyed == 2'000);
        CHECK(wheel.size() == 1'000 + 200);
    }
    SECTION("clear") {
        wheel.clear();
        CHECK(wheel.check_invariants());
        CHECK(destroyed == 3'000);
        CHECK(wheel.size() == 300);
    }
    SECTION("advance") {
        CHECK(wheel.advance(day + 30min, [](meddler const&) {}) == 1);
        CHECK(wheel.check_invariants());
        CHECK(destroyed == 3'000);
    }
    while (!wheel.empty()) wheel.clear(); // destructors have scheduled again
    CHECK(wheel.check_invariants());
}

namespace {
/// Throws when it is moved for the n-th time.
struct brittle {
    static inline int moves_left = 0;
    int value;
    explicit brittle(int v) : value(v) {}
    brittle(brittle&& other) : value(other.value) {
        if (--moves_left == 0) throw std::runtime_error("moved once too often");
    }
};
} // namespace

TEST_CASE("timing_wheel stays whole when moving a payload throws", "[wheel]") {
    ax::timing_wheel<brittle> wheel{day};
    brittle::moves_left = 1;
    CHECK_THROWS_AS(wheel.schedule(day + 1s, brittle{1}), std::runtime_error);
    CHECK(wheel.empty());
    CHECK(wheel.check_invariants());
    brittle::moves_left = -1;
    wheel.schedule(day + 1s, brittle{1});
    wheel.schedule(day + 1s, brittle{2});
    brittle::moves_left = 1;
    CHECK_THROWS_AS(wheel.advance(day + 1s, [](brittle const&) {}), std::runtime_error);
    CHECK(wheel.size() == 2); // it could not be handed over: still there
    CHECK(wheel.check_invariants());
    ints fired;
    CHECK(wheel.advance(day + 1s, [&](brittle const& b) { fired.push_back(b.value); }) == 2);
    CHECK(fired == ints{1, 2});
}

TEST_CASE("next_expiry wakes once for each of 1,000 timers over 30 days", "[wheel]") {
    std::mt19937_64 random{7};
    wheel_of_ints wheel{day};
    for (int i = 0; i != 1'000; ++i) {
        wheel.schedule(day + std::chrono::milliseconds{random() % (30ULL * 86'400'000)}, i);
    }
    std::size_t fired = 0;
    int wakeups = 0;
    while (auto const next = wheel.next_expiry()) {
        ++wakeups;
        auto const now_fired = wheel.advance(*next, [](int) {});
        CHECK(now_fired > 0);
        fired += now_fired;
    }
    CHECK(fired == 1'000);
    CHECK(wakeups <= 1'000);
}

TEST_CASE("next_expiry passes over cancelled timers", "[wheel]") {
    wheel_of_ints wheel{day};
    std::vector<wheel_of_ints::handle> handles;
    for (int i = 0; i != 200; ++i) handles.push_back(wheel.schedule(day + std::chrono::milliseconds{i * i * i}, i));
    for (std::size_t i = 0; i != 199; ++i) {
        REQUIRE(wheel.next_expiry() == day + std::chrono::milliseconds{i * i * i});
        wheel.cancel(handles[i]);
    }
    CHECK(wheel.next_expiry() == day + std::chrono::milliseconds{199 * 199 * 199});
    auto const fired = wheel.advance(*wheel.next_expiry(), [](int) {});
    CHECK(fired == 1);
}

TEST_CASE("next_expiry is never late and does not report a cancelled timer for ever", "[wheel]") {
    // All share a slot of a high level, so that a search after each cancellation would be too dear.
    wheel_of_ints wheel{epoch};
    std::vector<wheel_of_ints::handle> handles;
    auto const base = epoch + std::chrono::milliseconds{1 << 24};
    for (int i = 0; i != 100'000; ++i) handles.push_back(wheel.schedule(base + std::chrono::milliseconds{i * 64}, i));
    int inexact = 0;
    for (std::size_t i = 0; i != 90'000; ++i) {
        wheel.cancel(handles[i]);
        auto const next = wheel.next_expiry();
        auto const exact = base + std::chrono::milliseconds{(i + 1) * 64};
        REQUIRE(next.has_value());
        REQUIRE(*next <= exact);
        inexact += *next != exact;
    }
    CHECK(inexact > 0); // or this test looks at nothing
    std::size_t fired = 0;
    int wakeups = 0;
    while (auto const next = wheel.next_expiry()) {
        ++wakeups;
        fired += wheel.advance(*next, [](int) {});
    }
    CHECK(fired == 10'000);
    CHECK(wakeups <= 10'001);
}

TEST_CASE("timing_wheel skips empty time, however long", "[wheel]") {
    wheel_of_ints wheel{(time_point::min)()};
    for (int i = 0; i != 63; ++i) {
        wheel.schedule((time_point::min)() + std::chrono::milliseconds{std::int64_t{1} << i}, i);
    }
    int wakeups = 0;
    for (; wheel.next_expiry(); ++wakeups) {
        auto const next = *wheel.next_expiry();
        CHECK(advance(wheel, next - 1ms).empty());
        CHECK(advance(wheel, next).size() == 1);
    }
    CHECK(wakeups == 63);
}

TEST_CASE("next_advance is when advance() fires something, also for a clock that is behind", "[wheel]") {
    ax::time_point const start{1'000ms};
    ax::timing_wheel<int> wheel{start};
    CHECK_FALSE(wheel.next_advance().has_value());
    auto const delay = GENERATE(-50ms, 0ms, 1ms, 5'000ms);
    wheel.schedule(start + delay, 7);
    auto const next = wheel.next_advance();
    REQUIRE(next.has_value());
    CHECK(*next == start + (std::max)(delay, 0ms));
    CHECK(wheel.advance(*next - 1ms, [](int) {}) == 0);
    CHECK(wheel.advance(*next, [](int) {}) == 1);
}

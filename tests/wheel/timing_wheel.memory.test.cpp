// SPDX-License-Identifier: MIT
// What the wheel takes from the system, counted by replacing operator new for this whole program, and what it does when
// it gets nothing.
#include "ax/wheel/timing_wheel.hpp"

#include "support/catch.hpp"
#include "support/counted_new.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace std::chrono_literals;

namespace {

using namespace ax_test;
using ax::time_point;
using std::chrono::milliseconds;

constexpr std::size_t million = 1'000'000;
constexpr std::size_t small_change = 512 * 1024; // what an idle wheel may keep
time_point const origin{milliseconds{1'700'000'000'123}};

using wheel_of_ids = ax::timing_wheel<std::uint64_t>;

std::vector<ax::timer_handle> fill(wheel_of_ids& wheel, std::size_t n, std::int64_t horizon = 600'000) {
    std::mt19937_64 random{11};
    std::vector<ax::timer_handle> handles;
    handles.reserve(n);
    for (std::size_t i = 0; i != n; ++i) {
        auto const delay = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(horizon));
        handles.push_back(wheel.schedule(wheel.position() + milliseconds{delay}, i));
    }
    return handles;
}

} // namespace

TEST_CASE("timing_wheel takes at most 40 bytes for a timer with an id of 64 bits", "[wheel]") {
    auto const horizon = GENERATE(std::int64_t{60}, std::int64_t{600'000}, std::int64_t{1} << 40);
    auto const before = bytes_held.load();
    wheel_of_ids wheel{origin};
    std::mt19937_64 random{11};
    for (std::size_t i = 0; i != million; ++i) {
        wheel.schedule(origin + milliseconds{static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(horizon))},
                       i);
    }
    auto const full = bytes_held.load() - before; // before the test framework keeps anything
    auto const full_said = wheel.memory();
    wheel.advance(origin + milliseconds{horizon / 2}, [](std::uint64_t) {});
    auto const half = bytes_held.load() - before;
    auto const half_said = wheel.memory();
    CAPTURE(horizon, full / million);
    CHECK(full <= 40 * million);
    CHECK(full_said == full);
    CHECK(half <= full);
    CHECK(half_said == half);
}

TEST_CASE("timing_wheel gives the memory of a million cancelled timers back at once", "[wheel]") {
    wheel_of_ids wheel{origin};
    auto handles = fill(wheel, million);
    auto const order = GENERATE(0, 1, 2);
    CAPTURE(order);
    if (order == 1) std::reverse(handles.begin(), handles.end());
    if (order == 2) std::shuffle(handles.begin(), handles.end(), std::mt19937_64{5});
    auto const full = wheel.memory();
    CHECK(full > 20 * million);
    for (std::size_t i = 0; i != million; ++i) {
        wheel.cancel(handles[i]);
        if (i == million / 2 + 1'000 && order != 2) CHECK(wheel.memory() < full * 3 / 4); // not only at the end
    }
    CHECK(wheel.check_invariants());
    CHECK(wheel.memory() <= small_change);
    CHECK(wheel.next_expiry() == std::nullopt);
}

TEST_CASE("timing_wheel gives the memory of a million timers back when they have fired", "[wheel]") {
    wheel_of_ids wheel{origin};
    auto const fill_with_overdue = GENERATE(false, true);
    fill(wheel, million);
    if (fill_with_overdue) {
        for (std::size_t i = 0; i != million; ++i) wheel.schedule(origin - milliseconds{i % 1'000}, i);
    }
    auto const expected = fill_with_overdue ? 2 * million : million;
    CHECK(wheel.advance(origin + 10min, [](std::uint64_t) {}) == expected);
    CHECK(wheel.memory() <= small_change);
    CHECK(wheel.check_invariants());
}

TEST_CASE("timing_wheel does not grow when timeouts are scheduled and cancelled for ever (F129)", "[wheel]") {
    wheel_of_ids wheel{origin};
    wheel.schedule(origin + 24h, 0);
    auto now = origin;
    for (int i = 0; i != 1'000'000; ++i) {
        wheel.cancel(wheel.schedule(now + 30s, 1));
        if (i % 100 == 0) wheel.advance(now += 1ms, [](std::uint64_t) {});
    }
    CHECK(wheel.size() == 1);
    CHECK(wheel.memory() <= small_change);
}

TEST_CASE("timing_wheel at work does not allocate for each timer", "[wheel]") {
    wheel_of_ids wheel{origin};
    fill(wheel, 10'000, 10'000);
    std::uint64_t seed = 1;
    auto now = origin;
    std::size_t fired = 0;
    auto const renew = [&](std::uint64_t id) {
        ++fired;
        seed = seed * 6'364'136'223'846'793'005U + 1;
        wheel.schedule(now + milliseconds{1 + (seed >> 33) % 10'000}, id);
    };
    for (int i = 0; i != 30'000; ++i) wheel.advance(now += 1ms, renew);
    auto const warm = allocations.load();
    fired = 0;
    while (fired < million) wheel.advance(now += 1ms, renew);
    CHECK(allocations.load() - warm <= fired / 1'000);
    CHECK(wheel.size() == 10'000);
}

TEST_CASE("timing_wheel loses no timer when memory runs out", "[wheel]") {
    wheel_of_ids wheel{origin};
    std::vector<ax::timer_handle> handles;
    handles.reserve(20'000);
    std::size_t scheduled = 0;
    std::size_t fired = 0;
    auto failures = 0;
    auto last = time_point{};
    auto const fire = [&](std::uint64_t) { ++fired; };
    // Runs `call` with ever more allocations allowed until it succeeds.
    auto const insist = [&](auto&& call) {
        for (std::int64_t allowed = 0;; ++allowed) {
            allocations_left = allowed;
            try {
                call();
                allocations_left = unlimited;
                return;
            } catch (std::bad_alloc const&) {
                allocations_left = unlimited;
                ++failures;
                REQUIRE(wheel.check_invariants());
                REQUIRE(wheel.size() == scheduled - fired);
            }
        }
    };
    std::mt19937_64 random{3};
    for (int i = 0; i != 20'000; ++i) {
        auto const delay = static_cast<std::int64_t>(random() % (i % 2 == 0 ? 600'000 : 5'000)) - 10;
        insist([&] { handles.push_back(wheel.schedule(origin + milliseconds{delay}, 1)); });
        ++scheduled;
    }
    CHECK(failures > 100);
    auto scratch = handles;
    for (std::size_t i = 0; i < scratch.size(); i += 7) {
        auto const when = origin + milliseconds{static_cast<std::int64_t>(random() % 400'000)};
        auto done = false;
        insist([&] { done = wheel.reschedule(scratch[i], when); });
        REQUIRE(done);
    }
    failures = 0;
    for (auto now = origin; !wheel.empty(); now += 999ms) {
        insist([&] { wheel.advance(now, fire); });
        if (now == origin + 300 * 999ms) insist([&] { wheel.rewind(origin); });
        if (last < now) last = now;
    }
    CHECK(failures > 0);
    CHECK(fired == scheduled);
    CHECK(last < origin + 11min);
}

// SPDX-License-Identifier: MIT
// What the wheel takes from the system, counted by replacing operator new for this whole program, and what it does when
// it gets nothing.
#include "ax/wheel/timing_wheel.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <random>
#include <vector>

using namespace std::chrono_literals;

namespace {

std::atomic<std::size_t> bytes_held{0};
std::atomic<std::size_t> allocations{0};
constexpr auto unlimited = (std::numeric_limits<std::int64_t>::max)();
std::atomic<std::int64_t> allocations_left{unlimited};

/// Before each block lie its size and the beginning of what malloc gave.
struct header {
    void* raw;
    std::size_t size;
};

void* counted_new(std::size_t size, std::size_t alignment) {
    if (allocations_left.load() != unlimited && allocations_left.fetch_sub(1) <= 0) throw std::bad_alloc();
    alignment = (std::max)(alignment, alignof(std::max_align_t));
    auto* const raw = static_cast<char*>(std::malloc(size + alignment + sizeof(header)));
    if (raw == nullptr) throw std::bad_alloc();
    auto const first = reinterpret_cast<std::uintptr_t>(raw) + sizeof(header);
    auto* const block = raw + sizeof(header) + (alignment - first % alignment) % alignment;
    ::new (block - sizeof(header)) header{raw, size};
    bytes_held += size;
    ++allocations;
    return block;
}

void counted_delete(void* block) noexcept {
    if (block == nullptr) return;
    auto const* const h = reinterpret_cast<header*>(static_cast<char*>(block) - sizeof(header));
    bytes_held -= h->size;
    std::free(h->raw);
}

} // namespace

void* operator new(std::size_t size) { return counted_new(size, 0); }
void* operator new[](std::size_t size) { return counted_new(size, 0); }
void* operator new(std::size_t size, std::align_val_t a) { return counted_new(size, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t size, std::align_val_t a) { return counted_new(size, static_cast<std::size_t>(a)); }
void* operator new(std::size_t size, std::nothrow_t const&) noexcept {
    try {
        return counted_new(size, 0);
    } catch (std::bad_alloc const&) {
        return nullptr;
    }
}
void* operator new[](std::size_t size, std::nothrow_t const& tag) noexcept { return operator new(size, tag); }
void operator delete(void* p, std::nothrow_t const&) noexcept { counted_delete(p); }
void operator delete[](void* p, std::nothrow_t const&) noexcept { counted_delete(p); }
void operator delete(void* p) noexcept { counted_delete(p); }
void operator delete[](void* p) noexcept { counted_delete(p); }
void operator delete(void* p, std::size_t) noexcept { counted_delete(p); }
void operator delete[](void* p, std::size_t) noexcept { counted_delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { counted_delete(p); }
void operator delete[](void* p, std::align_val_t) noexcept { counted_delete(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { counted_delete(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { counted_delete(p); }

namespace {

using ax::time_point;
using std::chrono::milliseconds;

constexpr std::size_t million = 1'000'000;
constexpr std::size_t small_change = 512 * 1024; // what an idle wheel may keep
time_point const day{milliseconds{1'700'000'000'123}};

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
    wheel_of_ids wheel{day};
    std::mt19937_64 random{11};
    for (std::size_t i = 0; i != million; ++i) {
        wheel.schedule(day + milliseconds{static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(horizon))},
                       i);
    }
    auto const full = bytes_held.load() - before; // before the test framework keeps anything
    auto const full_said = wheel.memory();
    wheel.advance(day + milliseconds{horizon / 2}, [](std::uint64_t) {});
    auto const half = bytes_held.load() - before;
    auto const half_said = wheel.memory();
    CAPTURE(horizon, full / million);
    CHECK(full <= 40 * million);
    CHECK(full_said == full);
    CHECK(half <= full);
    CHECK(half_said == half);
}

TEST_CASE("timing_wheel gives the memory of a million cancelled timers back at once", "[wheel]") {
    wheel_of_ids wheel{day};
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
    wheel_of_ids wheel{day};
    auto const fill_with_overdue = GENERATE(false, true);
    fill(wheel, million);
    if (fill_with_overdue) {
        for (std::size_t i = 0; i != million; ++i) wheel.schedule(day - milliseconds{i % 1'000}, i);
    }
    auto const expected = fill_with_overdue ? 2 * million : million;
    CHECK(wheel.advance(day + 10min, [](std::uint64_t) {}) == expected);
    CHECK(wheel.memory() <= small_change);
    CHECK(wheel.check_invariants());
}

TEST_CASE("timing_wheel does not grow when timeouts are scheduled and cancelled for ever (F129)", "[wheel]") {
    wheel_of_ids wheel{day};
    wheel.schedule(day + 24h, 0);
    auto now = day;
    for (int i = 0; i != 1'000'000; ++i) {
        wheel.cancel(wheel.schedule(now + 30s, 1));
        if (i % 100 == 0) wheel.advance(now += 1ms, [](std::uint64_t) {});
    }
    CHECK(wheel.size() == 1);
    CHECK(wheel.memory() <= small_change);
}

TEST_CASE("timing_wheel at work does not allocate for each timer", "[wheel]") {
    wheel_of_ids wheel{day};
    fill(wheel, 10'000, 10'000);
    std::uint64_t seed = 1;
    auto now = day;
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
    wheel_of_ids wheel{day};
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
        insist([&] { handles.push_back(wheel.schedule(day + milliseconds{delay}, 1)); });
        ++scheduled;
    }
    CHECK(failures > 100);
    auto scratch = handles;
    for (std::size_t i = 0; i < scratch.size(); i += 7) {
        auto const when = day + milliseconds{static_cast<std::int64_t>(random() % 400'000)};
        auto done = false;
        insist([&] { done = wheel.reschedule(scratch[i], when); });
        REQUIRE(done);
    }
    failures = 0;
    for (auto now = day; !wheel.empty(); now += 999ms) {
        insist([&] { wheel.advance(now, fire); });
        if (now == day + 300 * 999ms) insist([&] { wheel.rewind(day); });
        if (last < now) last = now;
    }
    CHECK(failures > 0);
    CHECK(fired == scheduled);
    CHECK(last < day + 11min);
}

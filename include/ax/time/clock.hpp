// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/time_point.hpp"

#include <chrono>
#include <concepts>
#include <ctime>

namespace ax {

namespace detail {

template <class T>
inline constexpr bool is_wall_time = false;
template <class Duration>
inline constexpr bool is_wall_time<std::chrono::time_point<std::chrono::system_clock, Duration>> = true;

} // namespace detail

/// Tells the time, twice:
///  1. now() is wall time, UTC, in the precision the clock has: it says when tasks are due, and it may be stepped in
///     either direction.
///  2. steady() is the time since some fixed instant. It never goes back, runs at the rate of real time, and goes on
///     while the machine is suspended. Waiting and the trust in a lease are measured with it.
///  3. Both may be called from any thread at once.
template <class C>
concept clock = requires(C const& c) {
    requires detail::is_wall_time<decltype(c.now())>;
    { c.steady() } -> std::same_as<duration>;
};

/// The machine's own clocks.
class system_clock {
  public:
    std::chrono::system_clock::time_point now() const { return std::chrono::system_clock::now(); }

    duration steady() const {
#if defined(CLOCK_BOOTTIME)
        std::timespec t{};
        if (::clock_gettime(CLOCK_BOOTTIME, &t) == 0)
            return std::chrono::floor<duration>(std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec});
#endif
        return std::chrono::floor<duration>(std::chrono::steady_clock::now().time_since_epoch());
    }
};

static_assert(clock<system_clock>);
static_assert(!clock<std::chrono::steady_clock>); // due times are wall time

} // namespace ax

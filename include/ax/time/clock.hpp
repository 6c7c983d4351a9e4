// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/time_point.hpp"

#include <chrono>
#include <concepts>
#include <ctime>

namespace ax {

/// Tells the time, twice:
///  1. now() is wall time, UTC: it says when tasks are due, and it may be stepped in either direction.
///  2. steady() is the time since some fixed instant. It never goes back, runs at the rate of real time, and goes on
///     while the machine is suspended. Waiting and the trust in a lease are measured with it.
///  3. Both may be called from any thread at once.
template <class C>
concept clock = requires(C const& c) {
    { c.now() } -> std::same_as<time_point>;
    { c.steady() } -> std::same_as<duration>;
};

/// The machine's own clocks.
class system_clock {
  public:
    time_point now() const { return ax::now(); }

    duration steady() const {
#if defined(CLOCK_BOOTTIME)
        std::timespec t{};
        if (::clock_gettime(CLOCK_BOOTTIME, &t) == 0)
            return std::chrono::duration_cast<duration>(std::chrono::seconds{t.tv_sec} +
                                                        std::chrono::nanoseconds{t.tv_nsec});
#endif
        return std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch());
    }
};

static_assert(clock<system_clock>);
static_assert(!clock<std::chrono::steady_clock>); // due times are wall time

} // namespace ax

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/clock.hpp"

#include <atomic>
#include <cstdint>

namespace ax::testing {

/// A clock that stands still until its owner moves it: wall and steady time separately, as machines do.
///
/// Threads: safe; each of the two times is one atomic.
class manual_clock {
  public:
    /// @param start  The wall time it shows first. Steady time starts at zero.
    explicit manual_clock(time_point start = time_point{duration{1'767'225'600'000}}) // 2026-01-01
        : wall_(start.time_since_epoch().count()) {}

    time_point now() const { return time_point{duration{wall_.load()}}; }
    duration steady() const { return duration{steady_.load()}; }

    /// Time passes: both times move forward by `step`.
    void advance(time_span step) {
        steady_ += step.value().count();
        wall_ += step.value().count();
    }

    /// Wall time is stepped, as by a person or a time server; steady time does not move.
    void set(instant wall) { wall_ = wall.value().time_since_epoch().count(); }

  private:
    std::atomic<std::int64_t> wall_;
    std::atomic<std::int64_t> steady_{0};
};

static_assert(clock<manual_clock>);

} // namespace ax::testing

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/clock.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace ax::detail {

/// A clock as the engine reads it: the host's, or the instant that a polling host says it is.
/// Threads: safe.
template <clock Clock>
class timekeeper {
  public:
    explicit timekeeper(Clock const& source) noexcept : source_(source) {}

    /// It is `now`, and goes on from there at the rate of the steady clock, until release().
    void pin(time_point now) noexcept {
        pinned_at_.store(source_.steady().count());
        pinned_.store(now.time_since_epoch().count());
    }
    void release() noexcept { pinned_.store(none); }

    /// The instant that has been reached for certain: what is due by it may run. Rounded down: nothing is early.
    time_point reached() const {
        auto const p = pinned();
        return p ? *p : std::chrono::floor<duration>(source_.now());
    }

    /// The present as the start of a delay. Rounded up: nothing is early.
    time_point present() const {
        auto const p = pinned();
        return p ? *p : std::chrono::ceil<duration>(source_.now());
    }

    /// How long it is until `t`; nothing where it has been reached.
    std::chrono::nanoseconds until(time_point t) const {
        if (auto const p = pinned()) return t - *p;
        return std::chrono::duration_cast<std::chrono::nanoseconds>(t - source_.now());
    }

    duration steady() const { return source_.steady(); }

  private:
    static constexpr auto none = (std::numeric_limits<std::int64_t>::min)();

    std::optional<time_point> pinned() const {
        auto const p = pinned_.load();
        if (p == none) return std::nullopt;
        return saturating_add(time_point{duration{p}}, source_.steady() - duration{pinned_at_.load()});
    }

    Clock const& source_;
    std::atomic<std::int64_t> pinned_{none};
    std::atomic<std::int64_t> pinned_at_{0};
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"

#include <chrono>
#include <cstdint>
#include <ratio>
#include <type_traits>

namespace ax {

/// A length of time in the one precision of `ax`: whole milliseconds.
using duration = std::chrono::milliseconds;

/// An instant: UTC, whole milliseconds since 1970, leap seconds not counted.
using time_point = std::chrono::time_point<std::chrono::system_clock, duration>;

/// The present instant of the system's clock, rounded up to a millisecond. Threads: safe.
inline time_point now() { return std::chrono::ceil<duration>(std::chrono::system_clock::now()); }

/// The instants that a store can hold: 1970 to the end of the year 9999.
inline constexpr time_point earliest_time{};
inline constexpr time_point latest_time{duration{253'402'300'799'999}};

namespace detail {

/// `d` in milliseconds, rounded up; what lies beyond the range of 64 bits becomes its end. Not a number is an error.
template <class Rep, class Period>
constexpr duration round_up(std::chrono::duration<Rep, Period> d) {
    using limits = std::chrono::duration_values<std::int64_t>;
    using common = std::common_type_t<Rep, double>;
    auto const approximate = std::chrono::duration<common, std::milli>(d).count();
    if (!(approximate == approximate)) throw error(errc::invalid_argument, "a duration that is not a number");
    if (approximate >= 9.2e18) return duration{(limits::max)()};
    if (approximate <= -9.2e18) return duration{(limits::min)()};
    return std::chrono::ceil<duration>(d);
}

/// `a + b`, stopping at the ends of the range instead of overflowing.
constexpr time_point saturating_add(time_point a, duration b) noexcept {
    auto const base = a.time_since_epoch().count();
    auto const step = b.count();
    if (step > 0 && base > (duration::max)().count() - step) return (time_point::max)();
    if (step < 0 && base < (duration::min)().count() - step) return (time_point::min)();
    return a + b;
}

} // namespace detail

/// A length of time as an argument: takes any std::chrono duration and rounds it up to whole milliseconds, so that
/// nothing is early. Beyond 64 bits it stops at the end of the range.
class time_span {
  public:
    constexpr time_span() noexcept = default;

    template <class Rep, class Period>
    constexpr time_span(std::chrono::duration<Rep, Period> d) : value_(detail::round_up(d)) {}

    constexpr operator duration() const noexcept { return value_; }
    constexpr duration value() const noexcept { return value_; }

    friend constexpr bool operator==(time_span, time_span) noexcept = default;

  private:
    duration value_{};
};

/// An instant as an argument: takes a time point of the system's clock in any precision, rounded up to milliseconds.
class instant {
  public:
    constexpr instant() noexcept = default;

    template <class Duration>
    constexpr instant(std::chrono::time_point<std::chrono::system_clock, Duration> t)
        : value_(detail::round_up(t.time_since_epoch())) {}

    constexpr operator time_point() const noexcept { return value_; }
    constexpr time_point value() const noexcept { return value_; }

    friend constexpr bool operator==(instant, instant) noexcept = default;

  private:
    time_point value_{};
};

} // namespace ax

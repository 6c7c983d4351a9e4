// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/time_point.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ax::detail {

/// How the storage fares: whether it fails, and when it is asked again.
/// Threads: none of its own; the caller's mutex guards it.
class storage_watch {
  public:
    bool down() const noexcept { return failures_ != 0; }
    std::size_t failures() const noexcept { return failures_; } ///< in a row
    std::string const& failure() const noexcept { return failure_; }

    bool backing_off(duration steady) const noexcept { return down() && steady < retry_at_; }

    /// How long it is until the storage is asked again.
    duration pause_left(duration steady) const noexcept { return retry_at_ - steady; }

    /// It works. Returns whether it had failed before.
    bool answered() noexcept {
        bool const was_down = down();
        failures_ = 0;
        return was_down;
    }

    /// It failed, and is asked again after a pause that doubles from 20 ms to 5 s, half of it jitter.
    /// @return  Whether this is news: the first failure in a row, or another one than the last.
    bool failed(std::string const& why, duration steady, std::uint64_t random) {
        bool const news = !down() || failure_ != why;
        failure_ = why;
        ++failures_;
        auto const longest = duration{10LL << (std::min)(failures_, std::size_t{9})};
        auto const half = static_cast<std::uint64_t>(longest.count() / 2);
        retry_at_ = steady + longest / 2 + duration{static_cast<std::int64_t>(random % half)};
        return news;
    }

  private:
    std::size_t failures_ = 0;
    std::string failure_;
    duration retry_at_{}; ///< steady time
};

} // namespace ax::detail

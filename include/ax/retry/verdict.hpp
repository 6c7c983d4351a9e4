// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/time_point.hpp"

#include <stdexcept>
#include <string>

namespace ax {

/// What a handler throws to end its attempt with something other than a plain failure. what() is the reason, which is
/// kept with the attempt.
///
/// They are exceptions and no return values because the decision is often taken deep below the handler, and because a
/// handler may return a result.
class verdict : public std::runtime_error {
  protected:
    using std::runtime_error::runtime_error;
};

/// The attempt failed, and the next one is to start after `delay` instead of what the retry policy says. It uses up an
/// attempt, and the policy still decides whether there is a next one.
///
///     if (response.status == 429) throw ax::retry_after{response.retry_after, "the shop asks for patience"};
class retry_after : public verdict {
  public:
    /// @param delay  Less than nothing counts as nothing: the instant that a server named may have passed already.
    explicit retry_after(time_span delay, std::string const& reason = "retry later")
        : verdict(reason), delay_(delay.value() < duration{0} ? duration{0} : delay.value()) {}

    duration delay() const noexcept { return delay_; }

  private:
    duration delay_;
};

/// Not now: the task goes back and becomes ready again after `delay`. It uses up nothing, neither an attempt nor an
/// interruption.
class snooze : public verdict {
  public:
    /// @param delay  Less than nothing counts as nothing.
    explicit snooze(time_span delay, std::string const& reason = "snoozed")
        : verdict(reason), delay_(delay.value() < duration{0} ? duration{0} : delay.value()) {}

    duration delay() const noexcept { return delay_; }

  private:
    duration delay_;
};

/// The attempt failed and trying again cannot help: the task is dead, whatever its policy says.
class give_up : public verdict {
  public:
    explicit give_up(std::string const& reason) : verdict(reason) {}
};

/// There is nothing to do: the task ends as skipped.
class skip : public verdict {
  public:
    explicit skip(std::string const& reason) : verdict(reason) {}
};

} // namespace ax

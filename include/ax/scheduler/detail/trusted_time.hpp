// SPDX-License-Identifier: MIT
// What time it is for certain, as far as something is to be removed because it is old.
//
// A wall clock that was set far ahead makes everything old at once. So a clock that runs ahead of what it should show
// is believed only after an hour of steady time in which it did so throughout. What it should show is known within one
// run by the steady clock, and from one run to the next by the time last seen, which the store keeps together with what
// is being confirmed: a process that lives for half an hour at a time gets there as well. (How long nothing ran can
// only be told by the wall clock, so a long pause is confirmed like a jump.)
// A clock that is set back is believed at once: nothing becomes older by that.
#pragma once

#include "ax/time/time_point.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ax::detail {

/// Threads: none of its own; the caller's mutex guards it.
class trusted_time {
  public:
    static constexpr duration confirmed_after{3'600'000};

    /// The first look of a run.
    /// @param kept  What text() gave in the run before; empty: there was none.
    void start(std::string_view kept, time_point now, duration steady) {
        auto const wall = now.time_since_epoch();
        pending_.reset();
        trusted_ = wall - steady;
        if (kept.empty()) return;
        auto const seen = number(kept);
        auto const other = number(kept);
        auto const confirmed = number(kept);
        trusted_ = (std::min)(wall, seen) - steady;
        if (seen >= wall) return;
        if (other > seen && confirmed > duration{0})
            pending_ = claim{(std::min)(wall, other) - steady, steady - (std::min)(confirmed, confirmed_after)};
        else
            pending_ = claim{wall - steady, steady};
    }

    /// To be called often: what happens between two looks is not seen.
    void look(time_point now, duration steady) {
        auto const lead = now.time_since_epoch() - steady;
        if (lead <= trusted_) {
            trusted_ = lead;
            pending_.reset();
            return;
        }
        // A clock that drifts is ahead at all times: a jump does not wait for that to be confirmed first.
        if (!pending_ || (lead - pending_->lead >= notable && pending_->lead - trusted_ < notable))
            pending_ = claim{lead, steady};
        pending_->lead = (std::min)(pending_->lead, lead);
        if (steady - pending_->since < confirmed_after) return;
        trusted_ = pending_->lead;
        pending_.reset();
        if (lead > trusted_) pending_ = claim{lead, steady};
    }

    /// Never later than the wall clock as of the latest look.
    time_point now(duration steady) const { return time_point{steady + trusted_}; }

    /// The wall clock is ahead by more than a minute, and that is not confirmed yet.
    bool doubts() const { return pending_ && pending_->lead - trusted_ >= notable; }

    /// For start(), in a later run.
    std::string text(duration steady) const {
        auto const other = pending_ ? pending_->lead : trusted_;
        auto const confirmed = pending_ ? steady - pending_->since : duration{0};
        return std::to_string((steady + trusted_).count()) + ' ' + std::to_string((steady + other).count()) + ' ' +
               std::to_string(confirmed.count());
    }

  private:
    static constexpr duration notable{60'000};

    /// The wall clock was ahead of the steady one by at least `lead` at every look since.
    struct claim {
        duration lead{};
        duration since{}; ///< steady time
    };

    /// Cuts the next number off the text; 0 where there is none, which is believed to be long ago.
    static duration number(std::string_view& text) noexcept {
        std::int64_t value = 0;
        std::size_t at = 0;
        for (; at < text.size() && at < 18 && text[at] >= '0' && text[at] <= '9'; ++at)
            value = value * 10 + (text[at] - '0');
        text.remove_prefix((std::min)(at + 1, text.size()));
        return duration{value};
    }

    duration trusted_{}; ///< lead of the wall clock over the steady one
    std::optional<claim> pending_;
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// The arithmetic of limits, without a store.
//
// A rate is kept as in the "generic cell rate algorithm" (ITU-T I.371): not a number of tokens and an instant, but one
// instant, `rate_at`, at which the bucket will be full again. Each claim moves it on by one interval (period / count);
// a claim may be made while that leaves it no further ahead than the bucket is deep. Nothing has to be written while
// time passes, and a restart finds all there is.
#pragma once

#include "ax/task/limit.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace ax::detail {

/// The most waiters of one lane that are named at once.
inline constexpr std::int64_t most_named = 64;

/// A line of tasks that wait for limits: see memory_lines.hpp. 0: none.
enum class line_number : std::int64_t {};

struct limit_state {
    limit_number number{};
    limit_kind kind{};
    std::string name;
    std::int64_t capacity = 0;    ///< of a resource, or a concurrency; 0: none
    std::int64_t used = 0;        ///< by what is in flight
    std::int64_t rate_count = 0;  ///< 0: no rate
    std::int64_t rate_period = 0; ///< milliseconds
    std::int64_t rate_burst = 0;
    std::int64_t rate_at = 0;    ///< microseconds: the bucket is full from then on
    std::int64_t rate_last = 0;  ///< microseconds: the latest instant for which a token was taken
    std::int64_t rate_taken = 0; ///< tokens ever taken

    static constexpr std::int64_t plenty = (std::numeric_limits<std::int64_t>::max)();

    /// It limits nothing (any more).
    bool empty() const noexcept { return capacity == 0 && rate_count == 0; }

    /// @tparam Limit  ax::limit, as a name by which a unit that only includes this does not pay for its code.
    template <class Limit = limit>
    void define(Limit const& how) noexcept {
        capacity = static_cast<std::int64_t>(how.concurrency.value_or(0));
        rate_count = how.rate ? static_cast<std::int64_t>(how.rate->count) : 0;
        rate_period = how.rate ? how.rate->period.value().count() : 0;
        rate_burst = !how.rate ? 0 : how.rate->burst != 0 ? static_cast<std::int64_t>(how.rate->burst) : rate_count;
        // An emptier bucket than the new one can be is as empty as that.
        rate_at = rate_count == 0 ? 0 : (std::min)(rate_at, rate_last + rate_burst * interval());
    }

    template <class Limit = limit>
    Limit definition() const {
        Limit how;
        if (capacity != 0) how.concurrency = static_cast<std::size_t>(capacity);
        if (rate_count != 0)
            how.rate = {static_cast<std::size_t>(rate_count), duration{rate_period},
                        static_cast<std::size_t>(rate_burst)};
        return how;
    }

    /// How often `amount` still fits in.
    std::int64_t fits(std::int64_t amount) const noexcept {
        if (capacity == 0 || amount == 0) return plenty;
        return used >= capacity ? 0 : (capacity - used) / amount;
    }

    /// How many tokens there are at `at`.
    std::int64_t tokens(time_point at) const noexcept {
        if (rate_count == 0) return plenty;
        auto const ahead = rate_at - microseconds(at);
        if (ahead <= 0) return rate_burst;
        return (std::max)(rate_burst - up(ahead, interval()), std::int64_t{0});
    }

    /// When there is a token again.
    /// @param horizon  No token can have been taken for a later instant. Where one was, the clock was set back, and a
    ///                 claim is due at once: it takes the bucket along.
    time_point next_token(time_point horizon) const noexcept {
        if (rate_last > microseconds(horizon)) return (time_point::min)();
        return time_point{duration{up(rate_at - (rate_burst - 1) * interval(), 1000)}};
    }

    /// When a token comes, where nothing else is missing.
    std::optional<time_point> next_free() const noexcept {
        if (rate_count == 0 || fits(1) == 0) return std::nullopt;
        return next_token(time_point{duration{plenty}});
    }

    /// What it is, for people.
    std::string title() const {
        auto const* const what = kind == limit_kind::type  ? "task type \""
                                 : kind == limit_kind::tag ? "tag \""
                                                           : "resource \"";
        return what + name + '"';
    }

    /// The same, where each of some tasks needs more of it than there is.
    std::string title(std::int64_t amount) const {
        return title() + " (it needs " + std::to_string(amount) + " of " + std::to_string(capacity) + ')';
    }
    bool is_too_little_for(std::int64_t amount) const noexcept { return capacity != 0 && amount > capacity; }

    /// To be called before a claim: where the clock was set back, the bucket goes with it, as if its latest token had
    /// been taken now.
    /// @param until  No claim is made for a later instant.
    /// @return       Whether that changed anything.
    bool follow_clock(time_point now, time_point until) noexcept {
        if (rate_count == 0 || rate_last <= microseconds(until)) return false;
        auto const back = rate_last - microseconds(now);
        rate_at -= back;
        rate_last -= back;
        return true;
    }

    /// An attempt begins at `at`, for which there is room.
    /// @return  The number of its token.
    std::int64_t take(std::int64_t amount, time_point at) noexcept {
        used += amount;
        if (rate_count == 0) return 0;
        rate_at = (std::max)(rate_at, microseconds(at)) + interval();
        rate_last = (std::max)(rate_last, microseconds(at));
        return ++rate_taken;
    }

    void release(std::int64_t amount) noexcept { used = (std::max)(used - amount, std::int64_t{0}); }

    /// The attempt that had taken token number `token` has not begun after all. The bucket is never left fuller than if
    /// the token had not been taken: since then it may have been full, and then there is nothing to give back.
    void give_back(std::int64_t token) noexcept {
        if (rate_count == 0 || token == 0) return;
        auto const at_most = rate_last + (rate_taken - token) * interval();
        rate_at = (std::min)(rate_at, (std::max)(rate_at - interval(), at_most));
    }

    /// Rounded up, so that there are never more than `count` in a period.
    std::int64_t interval() const noexcept { return up(rate_period * 1000, rate_count); }

  private:
    static std::int64_t microseconds(time_point t) noexcept {
        constexpr auto most = plenty / 4000; // the end of the range stands for "never", and must not overflow
        return std::clamp(static_cast<std::int64_t>(t.time_since_epoch().count()), -most, most) * 1000;
    }

    static std::int64_t up(std::int64_t a, std::int64_t b) noexcept { return a / b + (a % b > 0 ? 1 : 0); }
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/time/time_point.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ax {

/// How often something may begin: a token bucket. It is full at first, holds at most `burst` tokens and gains one every
/// `period / count`; each claim takes one.
struct rate {
    std::size_t count = 0; ///< so many ...
    time_span period = {}; ///< ... in this time
    std::size_t burst = 0; ///< at most so many at once; 0: count
};

/// How many may be in flight at once, and how often they may begin. An empty one limits nothing.
struct limit {
    std::optional<std::size_t> concurrency = {};
    std::optional<ax::rate> rate = {};
};

/// What each attempt of a task type holds of a named resource while it is in flight.
struct resource_need {
    std::string name = {};
    std::size_t amount = 1;
};

/// The number of a limit in one store. 0 is no limit. It may be given again once the limit is gone.
enum class limit_number : std::uint32_t {};

/// What a limit belongs to. The numbers are stored and never change their meaning.
enum class limit_kind : std::uint8_t { type = 1, tag = 2, resource = 3 };

/// A limit as it stands in a store.
struct limit_info {
    limit_number number{};
    limit_kind kind{};
    std::string name;
    limit how;            ///< of a resource the capacity, as `concurrency`
    std::size_t used = 0; ///< by what is in flight
};

/// The most that a concurrency, a capacity, a count or a burst may be.
inline constexpr std::size_t largest_limit = 1'000'000'000;

/// The most tags a task may have.
inline constexpr std::size_t most_tags = 16;

namespace detail {

/// @param what  What it is of ("task type \"resize\""), for the message.
/// @throws      error invalid_argument that names it and the fault.
inline void check_limit_number(std::size_t number, std::string_view member, std::string_view what) {
    if (number != 0 && number <= largest_limit) return;
    throw error(errc::invalid_argument,
                std::string(member) + " of " + std::string(what) +
                    (number == 0 ? " is 0" : " is negative or above " + std::to_string(largest_limit)));
}

inline void check_limit(limit const& how, std::string_view what) {
    if (how.concurrency) check_limit_number(*how.concurrency, "concurrency", what);
    if (!how.rate) return;
    check_limit_number(how.rate->count, "rate: the count", what);
    if (how.rate->burst != 0) check_limit_number(how.rate->burst, "rate: the burst", what);
    constexpr duration longest = std::chrono::hours{24 * 366};
    auto const refuse = [&](std::string const& why) {
        throw error(errc::invalid_argument, "rate: the period of " + std::string(what) + why);
    };
    if (how.rate->period.value() <= duration{0}) refuse(" is not positive");
    if (how.rate->period.value() > longest) refuse(" is longer than 366 days");
    // The time in which an empty bucket fills has to be a number of microseconds.
    auto const periods = static_cast<duration::rep>(how.rate->burst / how.rate->count) + 1;
    if (periods > 1000 * longest.count() / how.rate->period.value().count()) refuse(" is too long for such a burst");
}

} // namespace detail

} // namespace ax

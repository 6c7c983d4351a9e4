// SPDX-License-Identifier: MIT
// The least that models the concepts of retry, and near misses. Compiled and never linked.
#include "ax/retry/retry_policy.hpp"

#include <random>
#include <utility>

namespace archetypes { // with linkage: nothing here is defined, and that must not be a warning

using ax::duration;
using ax::retry::random_source;
using ax::retry::retry_state;

struct policy_archetype {
    policy_archetype() = delete;
    policy_archetype(policy_archetype const&) = delete;
    policy_archetype(policy_archetype&&);
    policy_archetype& operator=(policy_archetype const&) = delete;
    policy_archetype& operator=(policy_archetype&&) = delete;
    void operator&() const = delete;
    std::optional<duration> next_delay(retry_state const&, random_source&) const;
};
static_assert(ax::retry::retry_policy<policy_archetype>);

struct policy_that_changes_itself {
    std::optional<duration> next_delay(retry_state const&, random_source&);
};
static_assert(!ax::retry::retry_policy<policy_that_changes_itself>);

struct policy_without_an_end {
    duration next_delay(retry_state const&, random_source&) const;
};
static_assert(!ax::retry::retry_policy<policy_without_an_end>);

struct policy_of_seconds {
    std::optional<std::chrono::seconds> next_delay(retry_state const&, random_source&) const;
};
static_assert(!ax::retry::retry_policy<policy_of_seconds>);

struct policy_without_randomness {
    std::optional<duration> next_delay(retry_state const&) const;
};
static_assert(!ax::retry::retry_policy<policy_without_randomness>);

struct policy_that_stays {
    policy_that_stays(policy_that_stays&&) = delete;
    std::optional<duration> next_delay(retry_state const&, random_source&) const;
};
static_assert(!ax::retry::retry_policy<policy_that_stays>);
static_assert(!ax::retry::retry_policy<int>);

struct generator_archetype {
    generator_archetype() = delete;
    generator_archetype(generator_archetype&&) = delete;
    void operator&() const = delete;
    unsigned char operator()();
    static constexpr unsigned char(min)() { return 1; }
    static constexpr unsigned char(max)() { return 6; }
};
static_assert(ax::retry::bit_generator<generator_archetype>);
static_assert(ax::retry::bit_generator<std::mt19937>);
static_assert(ax::retry::bit_generator<std::random_device>);
static_assert(!ax::retry::bit_generator<std::uniform_int_distribution<int>>);

struct generator_of_one_number {
    unsigned operator()();
    static constexpr unsigned(min)() { return 4; }
    static constexpr unsigned(max)() { return 4; }
};
static_assert(!ax::retry::bit_generator<generator_of_one_number>);

struct generator_of_fractions {
    double operator()();
    static constexpr double(min)() { return 0; }
    static constexpr double(max)() { return 1; }
};
static_assert(!ax::retry::bit_generator<generator_of_fractions>);

struct generator_without_bounds {
    unsigned operator()();
};
static_assert(!ax::retry::bit_generator<generator_without_bounds>);

std::optional<duration> use(policy_archetype&& policy, generator_archetype& random) {
    ax::retry::any_policy held{std::move(policy)};
    auto const copy = held;
    (void)ax::retry::policy{}.next_delay({}, random);
    return copy.next_delay({}, random);
}

} // namespace archetypes

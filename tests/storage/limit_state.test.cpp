// SPDX-License-Identifier: MIT
#include "ax/storage/detail/limit_state.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using ax::detail::limit_state;

namespace {

using test::t0;

limit_state state_of(ax::limit const& how) {
    limit_state state;
    state.define(how);
    return state;
}

/// A token bucket as one would draw it: how full it is, in millionths of a token, told anew for every instant from all
/// that was ever taken.
struct plain_bucket {
    std::int64_t interval_us;
    std::int64_t burst;
    std::vector<ax::time_point> taken = {};

    std::int64_t level(ax::time_point at) const {
        std::int64_t full = burst * interval_us; // what is there, as the time it takes to gain it
        auto last = taken.empty() ? at : taken.front();
        for (auto const t : taken) {
            full = (std::min)(full + (t - last).count() * 1000, burst * interval_us) - interval_us;
            last = t;
        }
        return (std::min)(full + (at - last).count() * 1000, burst * interval_us);
    }
    std::int64_t tokens(ax::time_point at) const { return level(at) / interval_us; }
};

} // namespace

TEST_CASE("a capacity is what is not used yet, by amounts", "[storage][limits]") {
    auto state = state_of({.concurrency = 5});
    CHECK(state.fits(1) == 5);
    CHECK(state.fits(2) == 2);
    CHECK(state.fits(6) == 0);
    CHECK(state.fits(0) == limit_state::plenty);
    state.take(3, t0);
    CHECK(state.fits(2) == 1);
    CHECK(state.fits(3) == 0);
    state.define({.concurrency = 2}); // below what is used
    CHECK(state.fits(1) == 0);
    state.release(3);
    CHECK(state.fits(1) == 2);
    CHECK(state.tokens(t0) == limit_state::plenty);
    CHECK_FALSE(state.empty());
    state.define({});
    CHECK(state.empty());
    CHECK(state.fits(1'000'000) == limit_state::plenty);
}

TEST_CASE("a rate agrees with a bucket that is drawn token by token", "[storage][limits]") {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        std::mt19937 random(seed);
        auto const below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
        ax::rate how{static_cast<std::size_t>(1 + below(7)), ax::duration{1 + below(2'000)},
                     static_cast<std::size_t>(1 + below(5))};
        auto state = state_of({.rate = how});
        plain_bucket plain{state.interval(), static_cast<std::int64_t>(how.burst)};
        auto now = t0;
        for (int step = 0; step != 400; ++step) {
            now += ax::duration{below(2) == 0 ? 0 : below(700)};
            CAPTURE(seed, step, how.count, how.period.value().count(), how.burst);
            REQUIRE(state.tokens(now) == plain.tokens(now));
            if (state.tokens(now) == 0) {
                auto const next = state.next_token(now);
                REQUIRE(next > now);
                REQUIRE(plain.tokens(next) >= 1);
                REQUIRE(plain.tokens(next - 1ms) == 0);
                continue;
            }
            state.take(1, now);
            plain.taken.push_back(now);
        }
        // Never more than the burst and what is gained meanwhile, between any two instants.
        for (std::size_t i = 0; i < plain.taken.size(); ++i)
            for (std::size_t j = i; j < (std::min)(i + 30, plain.taken.size()); ++j)
                REQUIRE(static_cast<std::int64_t>(j - i + 1) <=
                        plain.burst + (plain.taken[j] - plain.taken[i]).count() * 1000 / plain.interval_us + 1);
    }
}

TEST_CASE("a token that comes back never makes the bucket fuller than if it had not been taken", "[storage][limits]") {
    std::size_t exact = 0;
    std::size_t given = 0;
    for (unsigned seed = 1; seed <= 60; ++seed) {
        std::mt19937 random(seed);
        auto const below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
        ax::rate how{1, ax::duration{1 + below(500)}, static_cast<std::size_t>(1 + below(4))};
        auto state = state_of({.rate = how});
        plain_bucket plain{state.interval(), static_cast<std::int64_t>(how.burst)};
        std::vector<std::pair<std::int64_t, ax::time_point>> flying;
        auto now = t0;
        for (int step = 0; step != 300; ++step) {
            now += ax::duration{below(2) == 0 ? 0 : below(400)};
            CAPTURE(seed, step);
            if (below(3) == 0 && !flying.empty()) {
                auto const at = flying.begin() + below(static_cast<unsigned>(flying.size()));
                state.give_back(at->first);
                plain.taken.erase(std::find(plain.taken.begin(), plain.taken.end(), at->second));
                flying.erase(at);
                ++given;
                exact += state.tokens(now) == plain.tokens(now) ? 1 : 0;
            } else if (state.tokens(now) != 0) {
                flying.emplace_back(state.take(1, now), now);
                plain.taken.push_back(now);
            }
            REQUIRE(state.tokens(now) <= plain.tokens(now));
        }
    }
    CHECK(given > 1'000);
    CHECK(exact > given / 2); // and mostly as full
}

TEST_CASE("a bucket goes back with the clock", "[storage][limits]") {
    auto state = state_of({.rate = ax::rate{1, 1min, 2}});
    state.take(1, t0);
    state.take(1, t0);
    CHECK_FALSE(state.follow_clock(t0, t0));
    CHECK(state.next_token(t0) == t0 + 1min);
    CHECK_FALSE(state.follow_clock(t0 - 50ms, t0)); // the token was taken ahead
    CHECK(state.next_token(t0 - 24h) < t0 - 24h);   // a claim would find out
    CHECK(state.follow_clock(t0 - 24h, t0 - 24h + 50ms));
    CHECK(state.next_token(t0 - 24h) == t0 - 24h + 1min);
    CHECK(state.tokens(t0 - 24h) == 0);
    CHECK(state.tokens(t0 - 24h + 1min) == 1);
    CHECK(state.tokens(t0 - 24h + 2min) == 2);
}

TEST_CASE("a rate that changes keeps no more debt than it can have", "[storage][limits]") {
    auto state = state_of({.rate = ax::rate{1, 1h, 3}});
    for (int i = 0; i != 3; ++i) state.take(1, t0);
    state.define({.rate = ax::rate{1, 1s, 3}});
    CHECK(state.tokens(t0) == 0);
    CHECK(state.tokens(t0 + 1s) == 1);
    CHECK(state.tokens(t0 + 3s) == 3);
    state.define({});
    CHECK(state.tokens(t0) == limit_state::plenty);
    CHECK(state.definition().rate.has_value() == false);
}

TEST_CASE("the extremes of rates and instants do not overflow", "[storage][limits]") {
    constexpr auto year = std::chrono::hours{24 * 366};
    auto state = state_of({.rate = ax::rate{1, year, 999}});
    for (int i = 0; i != 999; ++i) state.take(1, ax::latest_time);
    CHECK(state.tokens(ax::latest_time) == 0);
    CHECK(state.next_token(ax::latest_time) == ax::latest_time + year);
    CHECK(state.next_token((ax::time_point::max)()) >= ax::latest_time);
    CHECK(state.tokens((ax::time_point::max)()) == 999);
    CHECK(state.tokens(ax::earliest_time) == 0);
    auto fast = state_of({.rate = ax::rate{ax::largest_limit, 1ms}});
    CHECK(fast.interval() == 1);
    CHECK(fast.tokens(t0) == static_cast<std::int64_t>(ax::largest_limit));
}

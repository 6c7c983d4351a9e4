// SPDX-License-Identifier: MIT
#include "ax/task/options.hpp"

#include "support/catch.hpp"

#include <numeric>
#include <type_traits>

using namespace std::chrono_literals;

namespace {

// Aggregates, so that they can be written with the names of their members.
static_assert(std::is_aggregate_v<ax::submit_options>);
static_assert(std::is_aggregate_v<ax::handler_options>);
static_assert(std::is_aggregate_v<ax::options>);

constexpr ax::time_point noon{1'767'268'800'000ms};

} // namespace

TEST_CASE("a submit that says nothing means: at once, normal, no key, no end, the handler's retries", "[task]") {
    ax::submit_options const how;
    CHECK(how.key.empty());
    CHECK(how.key_scope == ax::key_scope::kept);
    CHECK(how.on_conflict == ax::on_conflict::keep);
    CHECK_FALSE(how.run_at.has_value());
    CHECK_FALSE(how.delay.has_value());
    CHECK_FALSE(how.priority.has_value()); // that of its type, else normal
    CHECK(how.route_key.empty());
    CHECK(how.route_order == ax::route_order::strict);
    CHECK_FALSE(how.deadline.has_value());
    CHECK_FALSE(how.retry.has_value());
}

TEST_CASE("the members of a submit stand in the order in which people write them", "[task]") {
    ax::submit_options const how{.key = "k",
                                 .key_scope = ax::key_scope::active,
                                 .on_conflict = ax::on_conflict::reject,
                                 .run_at = noon,
                                 .delay = 15min,
                                 .priority = ax::priority::critical,
                                 .route_key = "r",
                                 .route_order = ax::route_order::relaxed,
                                 .deadline = noon + 1h,
                                 .retry = ax::retry::fixed(1s)};
    CHECK(how.key == "k");
    CHECK(how.run_at->value() == noon);
    CHECK(how.delay->value() == 900'000ms);
    CHECK(how.deadline->value() == noon + 1h);
    CHECK(how.priority == ax::priority::critical);
    CHECK(how.route_order == ax::route_order::relaxed);
    CHECK(how.retry.has_value());
}

TEST_CASE("times in options take any duration and round up to milliseconds", "[task]") {
    ax::submit_options const how{.delay = 1us};
    CHECK(how.delay->value() == 1ms);
    ax::handler_options const handler{.timeout = 1'500us, .expected = std::chrono::duration<double>{0.25}};
    CHECK(handler.timeout->value() == 2ms);
    CHECK(handler.expected->value() == 250ms);
}

TEST_CASE("a handler that says nothing has no limits, and runs again when it was cut off", "[task]") {
    ax::handler_options const how;
    CHECK_FALSE(how.retry.has_value());
    CHECK_FALSE(how.timeout.has_value());
    CHECK_FALSE(how.expected.has_value());
    CHECK(how.on_interrupt == ax::on_interrupt::rerun);
    ax::handler_options const strict{
        .retry = ax::retry::exponential(1min).attempts(2), .timeout = 10s, .on_interrupt = ax::on_interrupt::hold};
    CHECK(strict.retry.has_value());
    CHECK(strict.on_interrupt == ax::on_interrupt::hold);
}

TEST_CASE("a scheduler that says nothing has the limits that the docs promise", "[task]") {
    ax::options const chosen;
    CHECK(chosen.workers == 4);
    CHECK(chosen.node_name.empty());
    CHECK(chosen.window.value() == 5min);
    CHECK(chosen.read_ahead.value() == 50ms);
    CHECK(chosen.durability == ax::durability::power_loss);
    CHECK(chosen.poison_after == 3);
    CHECK(chosen.claimed_ahead == 64);
    CHECK(chosen.claimed_peak == 16'384);
    CHECK(chosen.window_tasks == 1'000'000);
    CHECK(chosen.submit_queue == 100'000);
    CHECK(chosen.payload_limit == 1024 * 1024);
    CHECK(chosen.stop_grace.value() == 10s);
    CHECK(chosen.seed == 0);
}

TEST_CASE("the shares of the priorities fall with the priority, none is nothing, and they add up to a hundred",
          "[task]") {
    ax::options const chosen;
    REQUIRE(chosen.weights.size() == ax::priority_classes);
    for (std::size_t i = 0; i != chosen.weights.size(); ++i) {
        CHECK(chosen.weights[i] > 0);
        if (i != 0) CHECK(chosen.weights[i] < chosen.weights[i - 1]);
    }
    CHECK(chosen.weights[static_cast<std::size_t>(ax::priority::critical)] == 50);
    CHECK(std::accumulate(chosen.weights.begin(), chosen.weights.end(), std::size_t{0}) == 100);
}

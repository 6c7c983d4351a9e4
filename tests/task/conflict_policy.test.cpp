// SPDX-License-Identifier: MIT
#include "ax/task/conflict_policy.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <string_view>

using namespace std::chrono_literals;

TEST_CASE("a conflict_policy says what it does and for how long", "[task]") {
    STATIC_REQUIRE(ax::conflict_policy{} == ax::on_conflict::keep);
    STATIC_REQUIRE(ax::on_conflict::throttle(1min) == ax::on_conflict::throttle(60s));
    STATIC_REQUIRE(ax::on_conflict::throttle(1min) != ax::on_conflict::throttle(61s));
    STATIC_REQUIRE(ax::on_conflict::throttle(1min).action() == ax::conflict_action::throttle);
    CHECK(ax::on_conflict::throttle(1500us).period() == 2ms); // never shorter than it was said
    CHECK(ax::on_conflict::replace.period() == 0ms);
}

TEST_CASE("a conflict_policy has the name that a caller writes", "[task]") {
    CHECK(to_string(ax::on_conflict::keep.action()) == std::string_view{"keep"});
    CHECK(to_string(ax::on_conflict::reject.action()) == std::string_view{"reject"});
    CHECK(to_string(ax::on_conflict::replace.action()) == std::string_view{"replace"});
    CHECK(to_string(ax::on_conflict::debounce.action()) == std::string_view{"debounce"});
    CHECK(to_string(ax::on_conflict::throttle(1s).action()) == std::string_view{"throttle"});
    CHECK(to_string(static_cast<ax::conflict_action>(9)) == std::string_view{"?"});
}

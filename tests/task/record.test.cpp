// SPDX-License-Identifier: MIT
#include "ax/task/record.hpp"

#include "support/catch.hpp"

#include <set>
#include <string>

TEST_CASE("a lane is one class of one type, and tells both", "[task]") {
    std::set<ax::lane_id> lanes;
    auto const largest = ax::type_number{(std::uint32_t{1} << 30U) - 1}; // four lanes each in 32 bits
    for (auto const type : {ax::type_number{1}, ax::type_number{2}, ax::type_number{1'000'000}, largest})
        for (std::uint8_t urgency = 0; urgency < ax::priority_classes; ++urgency) {
            auto const lane = ax::make_lane(type, static_cast<ax::priority_class>(urgency));
            CHECK(ax::type_of(lane) == type);
            CHECK(ax::class_of(lane) == static_cast<ax::priority_class>(urgency));
            lanes.insert(lane);
        }
    CHECK(lanes.size() == 16);
}

TEST_CASE("priorities and route orders are written by short names", "[task]") {
    CHECK(ax::priority::high == ax::priority_class::high);
    CHECK(ax::priority::critical < ax::priority::low);
    CHECK(ax::route_order::relaxed == ax::route_ordering::relaxed);
    CHECK(ax::new_task{}.priority == ax::priority::normal);
    CHECK(ax::new_task{}.route_order == ax::route_order::strict);
}

TEST_CASE("each outcome of an attempt has a name of its own", "[task]") {
    std::set<std::string> names;
    for (std::uint8_t code = 0; code <= 10; ++code) names.insert(ax::to_string(static_cast<ax::attempt_outcome>(code)));
    CHECK(names.size() == 11);
    CHECK_FALSE(names.contains("?"));
    CHECK(ax::to_string(static_cast<ax::attempt_outcome>(11)) == std::string{"?"});
}

TEST_CASE("the numbers of outcomes and classes are stored and do not change", "[task]") {
    CHECK(static_cast<int>(ax::attempt_outcome::succeeded) == 0);
    CHECK(static_cast<int>(ax::attempt_outcome::released) == 9);
    CHECK(static_cast<int>(ax::attempt_outcome::crashed) == 10);
    CHECK(static_cast<int>(ax::priority_class::critical) == 0);
    CHECK(static_cast<int>(ax::priority_class::low) == 3);
    CHECK(static_cast<int>(ax::route_ordering::relaxed) == 1);
}

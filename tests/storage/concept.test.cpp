// SPDX-License-Identifier: MIT
#include "ax/storage/concept.hpp"

#include "support/catch.hpp"

#include <chrono>

using namespace std::chrono_literals;

TEST_CASE("an answer that was not filled in promises nothing", "[storage]") {
    CHECK(ax::change{}.outcome == ax::change_outcome::unknown);
    CHECK(ax::change{}.due.empty());
    CHECK_FALSE(ax::schedule_answer{}.accepted);
    CHECK_FALSE(ax::schedule_answer{}.occurrence.has_value());
    CHECK(ax::claim_terms{}.suspects == 0);
    CHECK_FALSE(ax::claim_request{}.hold_on_interrupt);
    CHECK(ax::reclaim_terms{}.poison_after == 3);
}

TEST_CASE("alarms are equal where task, lane and instant are", "[storage]") {
    ax::alarm const first{ax::task_id{1}, ax::lane_id{6}, ax::time_point{5ms}};
    auto other = first;
    CHECK(other == first);
    other.run_at += 1ms;
    CHECK(other != first);
    other = first;
    other.lane = ax::lane_id{7};
    CHECK(other != first);
    other = first;
    other.id = ax::task_id{2};
    CHECK(other != first);
}

TEST_CASE("what a submit came to has a word", "[storage]") {
    CHECK(std::string_view{to_string(ax::submit_outcome::inserted)} == "inserted");
    CHECK(std::string_view{to_string(ax::submit_outcome::kept)} == "kept");
    CHECK(std::string_view{to_string(ax::submit_outcome::replaced)} == "replaced");
    CHECK(std::string_view{to_string(ax::submit_outcome::rejected)} == "rejected");
}

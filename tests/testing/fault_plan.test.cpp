// SPDX-License-Identifier: MIT
#include "ax/testing/fault_plan.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <vector>

using ax::testing::fault;
using ax::testing::fault_plan;

namespace {

std::vector<fault> of_commits(fault_plan& plan, int count) {
    std::vector<fault> came;
    for (int i = 0; i != count; ++i) came.push_back(plan.next("commit", false));
    return came;
}

} // namespace

TEST_CASE("a fault_plan without rates lets everything pass", "[testing]") {
    fault_plan plan{1};
    CHECK(of_commits(plan, 100) == std::vector<fault>(100, fault::none));
    CHECK(plan.calls("commit") == 100);
    CHECK(plan.calls("settle") == 0);
}

TEST_CASE("a fault_plan draws the same faults from the same seed", "[testing]") {
    fault_plan a{42};
    fault_plan b{42};
    fault_plan c{43};
    for (auto* plan : {&a, &b, &c}) plan->rate(fault::busy, 0.2).rate(fault::lost_reply, 0.2);
    auto const drawn = of_commits(a, 1'000);
    CHECK(of_commits(b, 1'000) == drawn);
    CHECK(of_commits(c, 1'000) != drawn);
    auto const lost = static_cast<std::size_t>(std::count(drawn.begin(), drawn.end(), fault::lost_reply));
    CHECK(lost > 140);
    CHECK(lost < 260);
    CHECK(a.happened(fault::lost_reply) == lost);
}

TEST_CASE("a read meets busy and late alone, whatever else is drawn", "[testing]") {
    fault_plan plan{7};
    plan.rate(fault::lost_reply, 0.5).rate(fault::busy, 0.25).rate(fault::late, 0.25);
    for (int i = 0; i != 500; ++i) {
        auto const came = plan.next("find", true);
        CHECK((came == fault::none || came == fault::busy || came == fault::late));
    }
    CHECK(plan.happened(fault::lost_reply) == 0);
    CHECK(plan.happened(fault::busy) > 0);
}

TEST_CASE("what is written down for a call comes at that call, once", "[testing]") {
    fault_plan plan{1};
    plan.at("settle", 2, fault::crash_after);
    CHECK(plan.next("settle", false) == fault::none);
    CHECK(plan.next("claim", false) == fault::none);
    CHECK(plan.next("settle", false) == fault::crash_after);
    CHECK(plan.next("settle", false) == fault::none);
    plan.at("settle", 1, fault::busy); // counted from now on
    CHECK(plan.next("settle", false) == fault::busy);
}

TEST_CASE("a fault_plan refuses shares that cannot be, and a call number 0", "[testing]") {
    fault_plan plan{1};
    plan.rate(fault::busy, 0.75);
    CHECK_THROWS_AS(plan.rate(fault::late, 0.5), ax::error);
    CHECK_THROWS_AS(plan.rate(fault::late, -0.1), ax::error);
    plan.rate(fault::busy, 0.5).rate(fault::late, 0.5); // another share for the same takes its place
    CHECK_THROWS_AS(plan.at("settle", 0, fault::busy), ax::error);
}

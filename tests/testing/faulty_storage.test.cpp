// SPDX-License-Identifier: MIT
#include "ax/testing/faulty_storage.hpp"

#include "ax/storage/memory.hpp"

#include "storage/memory_fixture.hpp"
#include "support/catch.hpp"
#include "testing/faulty_cases.hpp"

#include <vector>

using ax::testing::fault;
using ax::testing::fault_plan;

static_assert(ax::storage<ax::testing::faulty_storage<ax::memory_storage>>);
static_assert(!ax::transactional_storage<ax::testing::faulty_storage<ax::memory_storage>>);

TEST_CASE("faulty_storage without a plan is the storage itself", "[testing]") {
    faulty_cases::transparent<memory_fixture>();
}

TEST_CASE("faulty_storage: each fault does what it says", "[testing]") { faulty_cases::each_fault<memory_fixture>(); }

TEST_CASE("faulty_storage: the end of a life ends every copy, and nothing that was written", "[testing]") {
    faulty_cases::lives<memory_fixture>();
}

TEST_CASE("faulty_storage: reads are busy or late, and nothing else", "[testing]") {
    faulty_cases::reads_are_busy<memory_fixture>();
}

TEST_CASE("faulty_storage: an outcome whose reply is lost is stored once", "[testing]") {
    faulty_cases::a_settlement_is_read_back<memory_fixture>();
}

TEST_CASE("fault_plan: one seed gives one course of events, at the given rates", "[testing]") {
    auto const course = [](std::uint64_t seed) {
        auto plan = fault_plan{seed}.rate(fault::busy, 0.1).rate(fault::redone, 0.05);
        std::vector<fault> all;
        for (int i = 0; i != 10'000; ++i) all.push_back(plan.next("commit", false));
        CHECK(plan.calls("commit") == 10'000);
        CHECK(plan.happened(fault::busy) > 900);
        CHECK(plan.happened(fault::busy) < 1'100);
        CHECK(plan.happened(fault::redone) > 400);
        CHECK(plan.happened(fault::redone) < 600);
        CHECK(plan.happened(fault::late) == 0);
        return all;
    };
    CHECK(course(1) == course(1));
    CHECK(course(1) != course(2));
}

TEST_CASE("fault_plan: what is written down comes at that call, once, also while chance is off", "[testing]") {
    auto plan = fault_plan{1}.rate(fault::busy, 1.0);
    plan.on(false);
    plan.at("settle", 2, fault::full);
    CHECK(plan.next("settle", false) == fault::none);
    CHECK(plan.next("commit", false) == fault::none);
    CHECK(plan.next("settle", false) == fault::full);
    CHECK(plan.next("settle", false) == fault::none);
    plan.at("settle", 1, fault::late); // from now on
    CHECK(plan.next("settle", false) == fault::late);
    plan.on(true);
    CHECK(plan.next("commit", false) == fault::busy);
    CHECK(plan.next("settle", false) == fault::none); // by chance it comes with commits
}

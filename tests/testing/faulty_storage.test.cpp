// SPDX-License-Identifier: MIT
#include "ax/testing/faulty_storage.hpp"

#include "ax/storage/memory.hpp"

#include "storage/memory_fixture.hpp"
#include "support/catch.hpp"
#include "testing/faulty_cases.hpp"

#include <cstddef>
#include <cstdint>
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

TEST_CASE("faulty_storage: who starts takes its former self's tasks, and a node's beside it only by take_over()",
          "[testing]") {
    using store_type = ax::testing::faulty_storage<ax::memory_storage>;
    using faulty_cases::t0;
    store_type const shared{ax::memory_storage{}};
    auto left = shared.another_node();
    auto right = shared.another_node();
    auto const reclaim = [](store_type& from, std::uint64_t node) {
        std::size_t taken = 0;
        from.transact(ax::commit::durable, [&](store_type::writer& w) {
            taken = w.reclaim({ax::node_id{node}, 3, t0}).reclaimed;
        });
        return taken;
    };
    auto const claim = [](store_type& by, std::uint64_t node) {
        ax::alarms due;
        REQUIRE_FALSE(faulty_cases::insert(by, due));
        ax::claim_request const wanted{due.front().id, false, {}};
        ax::claim_answer answer;
        by.transact(ax::commit::durable, [&](store_type::writer& w) {
            answer = w.claim({&wanted, 1}, {ax::node_id{node}, t0, t0, 0});
        });
        REQUIRE(answer.claimed.size() == 1);
        return answer.claimed.front();
    };
    auto const of_left = claim(left, 1);
    auto const of_right = claim(right, 2);
    CHECK(left.is_mine(ax::node_id{1}));
    CHECK_FALSE(left.is_mine(ax::node_id{2}));

    left.cut(); // which nobody knows yet
    CHECK(right.alive());
    CHECK(reclaim(right, 2) == 0);
    CHECK(right.find(of_left.id)->state == ax::task_state::dispatched);

    auto next = left.another_life(); // its node has started anew
    CHECK(reclaim(next, 3) == 1);
    CHECK(right.find(of_left.id)->state == ax::task_state::ready);
    CHECK(right.find(of_right.id)->state == ax::task_state::dispatched);

    CHECK(right.take_over(t0).reclaimed == 1); // it stands still, and the others have waited long enough
    ax::attempt_end late;
    late.id = of_right.id;
    late.fence = of_right.fence;
    late.ended = t0;
    late.started = t0;
    ax::settlement answer;
    right.transact(ax::commit::durable, [&](store_type::writer& w) { answer = w.settle({&late, 1}, t0); });
    CHECK_FALSE(answer.accepted.front());
    CHECK(next.find(of_right.id)->state == ax::task_state::ready);

    auto const anew = claim(right, 2); // it goes on
    CHECK(reclaim(next, 3) == 0);
    CHECK(next.find(anew.id)->state == ax::task_state::dispatched);
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

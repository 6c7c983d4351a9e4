// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/claims.hpp"
#include "conformance/recovery.hpp"
#include "conformance/routes.hpp"
#include "conformance/steps.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage gives claimable tasks to one node at a time", "[storage][memory]") {
    conformance::claims<memory_fixture>();
}

TEST_CASE("memory_storage bounds the suspects in flight", "[storage][memory]") {
    conformance::suspects<memory_fixture>();
}

TEST_CASE("memory_storage recovers what dead owners held", "[storage][memory]") {
    conformance::recovery<memory_fixture>();
}

TEST_CASE("memory_storage leaves with the nodes beside the caller what they hold", "[storage][memory]") {
    using namespace conformance;
    workbench<memory_fixture> w;
    auto const gone = w.take(w.add(), t0, node_a);
    auto const beside = w.take(w.add(), t0, node_b);
    w.start(beside, t0);
    auto const mine = w.take(w.add(), t0, ax::node_id{77});

    ax::reclaim_answer answer;
    w.store.transact(ax::commit::durable, [&](ax::memory_storage::writer& to) {
        answer = to.reclaim({ax::node_id{77}, 3, t0 + 1s, {node_b}});
    });
    CHECK(answer.reclaimed == 1);
    CHECK(w.state(gone.id) == task_state::ready);
    CHECK(w.state(beside.id) == task_state::running);
    CHECK(w.state(mine.id) == task_state::dispatched);
    w.reclaim(t0 + 2s, ax::node_id{77}); // nobody is beside it any more
    CHECK(w.state(beside.id) == task_state::ready);
}

TEST_CASE("memory_storage runs a route one at a time, in order", "[storage][memory]") {
    conformance::routes<memory_fixture>();
}

TEST_CASE("memory_storage keeps the values of finished steps", "[storage][memory]") {
    conformance::steps<memory_fixture>();
}

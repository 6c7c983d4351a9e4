// SPDX-License-Identifier: MIT
// stats() and verify() of a scheduler.
#include "ax/scheduler/upkeep.hpp"

#include "scheduler/support.hpp"

using namespace test;

TEST_CASE("stats counts tasks by type and state, over all priority classes", "[scheduler][upkeep]") {
    bench b;
    b->on(probe, [] {});
    b->on(shipping, [](parcel const&) { throw ax::give_up{"no"}; });
    CHECK(b->stats().counts.empty());
    b->submit(probe);
    b->submit(probe, {}, {.priority = ax::priority::high});
    b->submit(shipping, {1, ""});
    b->submit(other, {}, {.delay = 1h});
    b->submit(other, {}, {.priority = ax::priority::low});
    CHECK(b->stats().tasks(task_state::ready) == 5);
    CHECK(b->stats().tasks("probe", task_state::ready) == 2);
    b.poll();
    auto const stats = b->stats();
    CHECK(stats.tasks("probe", task_state::succeeded) == 2);
    CHECK(stats.tasks("shipping", task_state::dead) == 1);
    CHECK(stats.tasks("other", task_state::ready) == 2);
    CHECK(stats.tasks(task_state::ready) == 2);
    CHECK(stats.tasks("unheard of", task_state::ready) == 0);
    CHECK(stats.counts.size() == 3);
}

TEST_CASE("verify finds nothing in a store in use", "[scheduler][upkeep]") {
    bench b;
    b->on(probe, [] {});
    for (int i = 0; i < 10; ++i) b->submit(probe, {}, {.route_key = "r", .deadline = b.now() + 1h});
    CHECK(b->verify().empty());
    b.poll();
    CHECK(b->verify().empty());
    CHECK(b->verify({.repair = true}).empty());
}

TEST_CASE("a task that is in flight by the store and not in memory is found, and runs after the repair",
          "[scheduler][upkeep]") {
    bench b;
    std::size_t runs = 0;
    ax::node_id self{};
    b->on(probe, [&](ax::context& ctx) {
        ++runs;
        self = ctx.task().node;
    });
    b->submit(probe);
    b.poll();
    bool const started = GENERATE(false, true);
    bool const unknown_node = GENERATE(false, true);
    auto const id = b->submit(probe, {}, {.delay = 1h}).id;
    auto const node = unknown_node ? 4'711U : to_number(self);
    auto const claimed = claim_elsewhere(b.store, id, b.now() + 2h, false, node); // behind its back
    if (started) start_elsewhere(b.store, claimed, b.now());

    auto const found = b->verify();
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "lost");
    CHECK(found[0].task == id);
    CHECK((found[0].text.find("node 4711") != std::string::npos) == unknown_node);
    CHECK_FALSE(found[0].repaired);
    b.clock.advance(3h);
    b.poll();
    CHECK(runs == 1);
    auto const repaired = b->verify({.repair = true});
    REQUIRE(repaired.size() == 1);
    CHECK(repaired[0].repaired);
    CHECK(b->verify().empty());
    b.poll();
    CHECK(runs == 2);
    CHECK(b.get(id).attempts == (started ? 2 : 1));
}

TEST_CASE("verify leaves a running task alone", "[scheduler][upkeep]") {
    hosted_bench b;
    b.tasks.on(probe, [&] {
        CHECK(b.tasks.verify({.repair = true}).empty());
        b.pass(1s); // its start is stored by now
        CHECK(b.tasks.verify({.repair = true}).empty());
    });
    auto const id = b.tasks.submit(probe).id;
    b.settle();
    CHECK(b.state(id) == task_state::succeeded);
}

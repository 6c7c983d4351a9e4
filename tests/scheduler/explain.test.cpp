// SPDX-License-Identifier: MIT
#include "scheduler/support.hpp"

#include "ax/scheduler/explain.hpp"

using namespace test;
using ax::wait_cause;

namespace ax {
static std::ostream& operator<<(std::ostream& out, wait_cause cause) { return out << to_string(cause); }
} // namespace ax

namespace {

std::vector<wait_cause> causes(std::vector<ax::wait_reason> const& reasons) {
    std::vector<wait_cause> all;
    for (auto const& one : reasons) {
        CHECK_FALSE(one.text.empty());
        all.push_back(one.cause);
    }
    return all;
}

using list_of = std::vector<wait_cause>;

std::string name_of(task_id id) { return "task " + std::to_string(ax::to_number(id)); }

} // namespace

TEST_CASE("explain names a task that does not exist", "[scheduler][explain]") {
    bench b;
    b.poll();
    CHECK(causes(b->explain(task_id{99})) == list_of{wait_cause::unknown_task});
}

TEST_CASE("explain says when a task that waits for its time is due", "[scheduler][explain]") {
    bench b;
    b->on(probe, [] {});
    b.poll();
    auto const id = b->submit(probe, {}, {.delay = 15min}).id;
    auto const why = b->explain(id);
    CHECK(causes(why) == list_of{wait_cause::time});
    CHECK(why.at(0).text == "due at " + ax::to_text(b.now() + 15min));
    b.poll_after(15min);
    auto const over = b->explain(id);
    CHECK(causes(over) == list_of{wait_cause::ended});
    CHECK(over.at(0).text == "succeeded at " + ax::to_text(b.now()));
}

TEST_CASE("explain says that a failed attempt is tried again, when, and what went wrong", "[scheduler][explain]") {
    bench b;
    b->on(probe, [] { throw std::runtime_error("the bank is closed"); },
          {.retry = ax::retry::fixed(10min).attempts(3)});
    auto const id = b->submit(probe).id;
    b.poll();
    auto const why = b->explain(id);
    CHECK(causes(why) == list_of{wait_cause::retry_wait});
    CHECK(contains(why.at(0).text, "the bank is closed"));
    CHECK(contains(why.at(0).text, ax::to_text(b.now() + 10min)));
}

TEST_CASE("explain says that a task is held", "[scheduler][explain]") {
    bench b;
    auto const prepare = [](simulated& tasks) { tasks.on(probe, [] {}, {.on_interrupt = ax::on_interrupt::hold}); };
    auto const id = b->submit(probe).id;
    start_elsewhere(b.store, claim_elsewhere(b.store, id, b.now(), true), b.now());
    b.restart(prepare);
    b.poll();
    REQUIRE(b.get(id).held);
    auto const why = b->explain(id);
    CHECK(causes(why) == list_of{wait_cause::held});
    CHECK(contains(why.at(0).text, "the process ended"));
    b->retry(id);
    CHECK(causes(b->explain(id)) == list_of{wait_cause::next});
}

TEST_CASE("explain names the task that has the route key", "[scheduler][explain]") {
    bench b;
    b->on(probe, [] {});
    auto const first = b->submit(probe, {}, {.delay = 1min, .route_key = "account 7"}).id;
    auto const second = b->submit(probe, {}, {.delay = 1min, .route_key = "account 7"}).id;
    b.poll();
    auto const why = b->explain(second);
    CHECK(causes(why) == list_of{wait_cause::time, wait_cause::route});
    CHECK(why.at(1).holder == name_of(first));
    CHECK(contains(why.at(1).text, "account 7"));
    CHECK(causes(b->explain(first)) == list_of{wait_cause::time});
}

TEST_CASE("explain says that a type is paused, with and without a handler", "[scheduler][explain]") {
    bench b;
    b->on(probe, [] {});
    b->pause(probe);
    b->pause(other);
    auto const with = b->submit(probe).id;
    auto const without = b->submit(other).id;
    b.poll();
    CHECK(causes(b->explain(with)) == list_of{wait_cause::paused});
    CHECK(causes(b->explain(without)) == list_of{wait_cause::no_handler, wait_cause::paused});
    b->resume(probe);
    CHECK(causes(b->explain(with)) == list_of{wait_cause::next});
}

TEST_CASE("explain says that nobody has a handler", "[scheduler][explain]") {
    bench b;
    b.poll();
    auto const id = b->submit(probe).id;
    b.poll();
    auto const why = b->explain(id);
    CHECK(causes(why) == list_of{wait_cause::no_handler});
    CHECK(contains(why.at(0).text, "probe"));
}

TEST_CASE("explain names the tasks that keep every worker busy", "[scheduler][explain]") {
    hosted_bench b{{.workers = 1}};
    std::vector<ax::wait_reason> seen;
    task_id waiting{};
    b.tasks.on(probe, [&] { seen = b.tasks.explain(waiting); });
    auto const busy = b.tasks.submit(probe).id;
    waiting = b.tasks.submit(probe).id;
    b.poll();
    b.loop.step(); // the first runs, and looks at the second
    CHECK(causes(seen) == list_of{wait_cause::no_worker});
    CHECK(seen.at(0).holder == name_of(busy));
}

TEST_CASE("explain says that a task runs, here or elsewhere", "[scheduler][explain]") {
    hosted_bench b;
    std::vector<ax::wait_reason> seen;
    task_id self{};
    b.tasks.on(probe, [&] { seen = b.tasks.explain(self); });
    self = b.tasks.submit(probe).id;
    b.settle();
    CHECK(causes(seen) == list_of{wait_cause::running});

    auto const far = b.tasks.submit(other).id;
    auto const claimed = claim_elsewhere(b.store, far, b.clock.now());
    auto const why = b.tasks.explain(far);
    CHECK(causes(why) == list_of{wait_cause::running_elsewhere});
    CHECK(why.at(0).holder == "node " + std::to_string(0xDEAD));
    start_elsewhere(b.store, claimed, b.clock.now());
    CHECK(causes(b.tasks.explain(far)) == list_of{wait_cause::running_elsewhere});
}

TEST_CASE("explain says that the storage is away", "[scheduler][explain]") {
    bench b;
    b->on(probe, [] {});
    auto const id = b->submit(probe).id;
    auto const fail = [] { throw ax::error(ax::errc::unavailable, "the disk is asleep"); };

    b.store.hooks().before_read = fail; // not even a read is answered
    auto const blind = b->explain(id);
    CHECK(causes(blind) == list_of{wait_cause::storage_down});
    CHECK(contains(blind.at(0).text, "the disk is asleep"));
    b.store.hooks().before_read = {};

    b.poll();
    auto const later = b->submit(probe).id;
    b.store.hooks().before_transact = fail; // reads are, writes are not
    b.poll();
    CHECK(causes(b->explain(later)) == list_of{wait_cause::storage_down});
    b.store.hooks().before_transact = {};
    b.poll_after(10s);
    CHECK(b.state(later) == task_state::succeeded);
}

TEST_CASE("explain says that the scheduler was not started, or has been stopped", "[scheduler][explain]") {
    bench b;
    b->on(probe, [] {});
    auto const id = b->submit(probe, {}, {.delay = 1s}).id;
    CHECK(causes(b->explain(id)) == list_of{wait_cause::stopped, wait_cause::time});
    b.poll();
    CHECK(causes(b->explain(id)) == list_of{wait_cause::time});
    b->stop();
    CHECK(causes(b->explain(id)) == list_of{wait_cause::stopped, wait_cause::time});
}

TEST_CASE("explain says that a suspect waits for its lonely run, and for whom", "[scheduler][explain][recovery]") {
    hosted_bench b;
    b.tasks.on(probe, [] {});
    auto const first = b.tasks.submit(probe).id;
    auto const second = b.tasks.submit(probe).id;
    auto const plain = b.tasks.submit(probe, {}, {.delay = 1h}).id;
    for (std::uint64_t const node : {101u, 102u}) { // two processes that die with both in flight
        for (auto const id : {first, second}) claim_elsewhere(b.store, id, b.clock.now(), false, node);
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
            w.reclaim({ax::node_id{node + 1}, 3, b.clock.now()});
        });
    }
    REQUIRE(b.tasks.find(second)->unclean_ends == 2);
    b.poll();
    for (auto const id : {first, second}) { // the pause after the start
        auto const why = b.tasks.explain(id);
        CHECK(causes(why) == list_of{wait_cause::suspect});
        CHECK(why.at(0).holder.empty());
    }
    CHECK(causes(b.tasks.explain(plain)) == list_of{wait_cause::time});
    b.tasks.pause(probe); // one reason more
    CHECK(causes(b.tasks.explain(second)) == list_of{wait_cause::paused, wait_cause::suspect});
    b.tasks.resume(probe);

    b.pass(1s);
    b.poll();
    REQUIRE(b.loop.size() == 1);
    REQUIRE(b.state(first) == task_state::dispatched);
    CHECK(causes(b.tasks.explain(first)) == list_of{wait_cause::next});
    auto const why = b.tasks.explain(second);
    CHECK(causes(why) == list_of{wait_cause::suspect});
    CHECK(why.at(0).holder == name_of(first));
    CHECK(contains(why.at(0).text, "one at a time"));

    b.settle();
    CHECK(b.state(first) == task_state::succeeded);
    CHECK(b.state(second) == task_state::succeeded);
}

TEST_CASE("explain names the suspect that is about to run alone, also before a worker has it",
          "[scheduler][explain][recovery]") {
    hosted_bench b{ax::options{.workers = 1}};
    b.tasks.on(probe, [] {});
    b.tasks.on(other, [] {});
    auto const first = b.tasks.submit(probe).id;
    auto const second = b.tasks.submit(probe).id;
    for (std::uint64_t const node : {101u, 102u}) {
        for (auto const id : {first, second}) claim_elsewhere(b.store, id, b.clock.now(), false, node);
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
            w.reclaim({ax::node_id{node + 1}, 3, b.clock.now()});
        });
    }
    b.poll();
    auto const busy = b.tasks.submit(other).id;
    b.poll(); // the one worker has this
    b.pass(1s);
    b.poll();
    REQUIRE(b.state(busy) == task_state::dispatched);
    REQUIRE(b.state(first) == task_state::dispatched);
    auto const why = b.tasks.explain(second);
    CHECK(causes(why) == list_of{wait_cause::suspect});
    CHECK(why.at(0).holder == name_of(first));
    b.settle();
    CHECK(b.state(second) == task_state::succeeded);
}

TEST_CASE("explain calls a suspect no suspect any more when its payload was replaced",
          "[scheduler][explain][recovery][keys]") {
    hosted_bench b;
    b.tasks.on(probe, [] {});
    auto const id = b.tasks.submit(probe, {}, {.key = "k"}).id;
    for (std::uint64_t const node : {101u, 102u}) {
        claim_elsewhere(b.store, id, b.clock.now(), false, node);
        b.store.transact(ax::commit::durable, [&](store_type::writer& w) {
            w.reclaim({ax::node_id{node + 1}, 3, b.clock.now()});
        });
    }
    b.poll();
    REQUIRE(causes(b.tasks.explain(id)) == list_of{wait_cause::suspect});
    b.tasks.submit(probe, {}, {.key = "k", .on_conflict = ax::on_conflict::replace});
    CHECK(causes(b.tasks.explain(id)) == list_of{wait_cause::next});
    b.settle(); // it need not wait for the end of the pause
    CHECK(b.state(id) == task_state::succeeded);
}

TEST_CASE("explain says how a task ended", "[scheduler][explain]") {
    bench b;
    b->on(probe, [] { throw ax::give_up{"no such order"}; });
    auto const dead = b->submit(probe).id;
    auto const gone = b->submit(probe, {}, {.delay = 1h}).id;
    b.poll();
    b->cancel(gone);
    auto const why = b->explain(dead);
    CHECK(causes(why) == list_of{wait_cause::ended});
    CHECK(contains(why.at(0).text, "dead"));
    CHECK(contains(why.at(0).text, "no such order"));
    CHECK(contains(b->explain(gone).at(0).text, "cancelled"));
}

TEST_CASE("explain says that a task needs more of a resource than there will be", "[scheduler][explain][limits]") {
    bench b;
    b->set_resource("gpu", 3);
    b->on(probe, [] {}, {.resources = {{"gpu", 3}}});
    auto const id = b->submit(probe).id;
    b.restart(); // and its handler does not come back
    b->set_resource("gpu", 2);
    b.poll();
    auto const why = b->explain(id);
    CHECK(causes(why) == list_of{wait_cause::no_handler, wait_cause::limit});
    CHECK(contains(why.at(1).text, "resource \"gpu\" (it needs 3 of 2)"));
    CHECK(contains(why.at(1).text, "never"));
    CHECK_THROWS_AS(b->on(probe, [] {}, {.resources = {{"gpu", 3}}}), ax::error);
    b->on(probe, [] {}, {.resources = {{"gpu", 2}}});
    b.poll();
    CHECK(b.get(id).state == task_state::succeeded);
}

TEST_CASE("explain names the limit that is used up, and the tasks that have it", "[scheduler][explain][limits]") {
    hosted_bench b;
    b.tasks.on(probe, [] {}, {.concurrency = 1});
    b.tasks.limit_tag("tenant-7", {.rate = ax::rate{1, 1min}});
    b.tasks.on(other, [] {});
    auto const first = b.tasks.submit(probe).id;
    auto const second = b.tasks.submit(probe).id;
    b.poll();
    auto const why = b.tasks.explain(second);
    CHECK(causes(why) == list_of{wait_cause::limit});
    CHECK(why.at(0).holder == name_of(first));
    CHECK(contains(why.at(0).text, "probe"));
    b.settle();
    CHECK(b.state(second) == task_state::succeeded);

    b.tasks.submit(other, {}, {.tags = {"tenant-7"}});
    auto const late = b.tasks.submit(other, {}, {.tags = {"tenant-7"}}).id;
    b.settle();
    auto const rated = b.tasks.explain(late);
    CHECK(causes(rated) == list_of{wait_cause::limit});
    CHECK(contains(rated.at(0).text, "tenant-7"));
    CHECK(contains(rated.at(0).text, ax::to_text(b.clock.now() + 1min))); // when its next token comes
    CHECK(rated.at(0).holder.empty());
}

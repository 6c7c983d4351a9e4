// SPDX-License-Identifier: MIT
// What is claimed and taken back again leaves nothing behind: its payload is let go, though its place in the queue is
// only passed over.
#include "ax/scheduler/detail/flight.hpp"

#include "ax/scheduler/detail/engine.hpp"
#include "ax/scheduler/detail/engine_explain.hpp"
#include "ax/scheduler/detail/engine_pump.hpp"
#include "ax/scheduler/detail/engine_requests.hpp"

#include "scheduler/support.hpp"

using namespace test;

namespace {

/// An attempt that is counted while it lives.
struct counted_attempt : ax::detail::claimed_attempt {
    static inline std::size_t alive = 0;
    counted_attempt() { ++alive; }
    counted_attempt(counted_attempt const&) = delete;
    counted_attempt& operator=(counted_attempt const&) = delete;
    ~counted_attempt() { --alive; }
};

using counted_flight = ax::detail::flight<counted_attempt>;
using counted_engine = ax::detail::engine<store_type, ax::testing::manual_clock, counted_attempt>;

} // namespace

TEST_CASE("flight lets go of revoked attempts once they outnumber the others in its queue", "[scheduler][memory]") {
    counted_attempt::alive = 0;
    ax::detail::handler by;
    ax::time_point const now{};
    counted_flight flight{now, ax::duration{0}, 1, 1'000, 1'000, {50, 25, 15, 10}};
    std::vector<std::shared_ptr<counted_attempt>> entered;
    for (std::uint64_t i = 1; i <= 100; ++i) {
        ax::task_record record;
        record.id = task_id{i};
        record.payload = std::string(1'000, 'p');
        REQUIRE(flight.reserve(record.id));
        entered.push_back(flight.enter(std::move(record), by));
        REQUIRE(flight.admit(entered.back(), now));
    }
    REQUIRE(counted_attempt::alive == 100);
    for (std::size_t i = 0; i != 90; ++i) {
        REQUIRE(flight.revoke(*entered[i]));
        flight.leave(*entered[i]);
        entered[i] = nullptr;
        flight.take_dead();
        auto const living = 100 - (i + 1);
        CHECK(flight.claimed() == living);
        CHECK(counted_attempt::alive <= 2 * living + 1);
    }
    entered.clear();
    std::size_t started = 0;
    while (auto const next = flight.take_next()) { // those that are left come in their order
        CHECK(next->record.id == task_id{91 + started});
        ++started;
        flight.ended(*next);
        flight.leave(*next);
    }
    CHECK(started == 10);
    CHECK(counted_attempt::alive == 0);
}

TEST_CASE("flight claims ahead twice what the workers have taken between two claims lately, between its bounds",
          "[scheduler]") {
    using enum ax::priority_class;
    ax::detail::handler by;
    counted_flight flight{ax::time_point{}, ax::duration{0}, 1'000, 4, 20, {50, 25, 15, 10}};
    std::uint64_t next = 1;
    auto const claim_and_start = [&](std::size_t count) {
        for (std::size_t i = 0; i != count; ++i) {
            ax::task_record record;
            record.id = task_id{next++};
            REQUIRE(flight.reserve(record.id));
            flight.admit(flight.enter(std::move(record), by), ax::time_point{});
        }
        for (std::size_t i = 0; i != count; ++i) REQUIRE(flight.take_next());
    };
    flight.plan_claims();
    CHECK(flight.room(normal) == 4);
    claim_and_start(4);
    CHECK(flight.room(normal) == 4);
    flight.plan_claims();
    CHECK(flight.room(normal) == 8);
    CHECK(flight.room(critical) == 4);
    claim_and_start(8);
    flight.plan_claims();
    CHECK(flight.room(normal) == 16);
    claim_and_start(16);
    flight.plan_claims();
    CHECK(flight.room(normal) == 20); // the peak
    claim_and_start(3);
    flight.plan_claims();
    CHECK(flight.room(normal) == 17); // one exchange that follows close on another says little
    flight.plan_claims();
    CHECK(flight.room(normal) == 14);
    for (int i = 0; i != 7; ++i) flight.plan_claims();
    CHECK(flight.room(normal) == 4);
    flight.plan_claims();
    CHECK(flight.room(normal) == 4);
}

TEST_CASE("flight lets nothing go while most of what is queued may still start", "[scheduler][memory]") {
    counted_attempt::alive = 0;
    ax::detail::handler by;
    counted_flight flight{ax::time_point{}, ax::duration{0}, 1, 1'000, 1'000, {50, 25, 15, 10}};
    for (std::uint64_t i = 1; i <= 10; ++i) {
        ax::task_record record;
        record.id = task_id{i};
        flight.reserve(record.id);
        flight.admit(flight.enter(std::move(record), by), ax::time_point{});
    }
    for (std::uint64_t i = 1; i <= 5; ++i) REQUIRE(flight.revoke(*flight.find(task_id{i})));
    CHECK(flight.take_dead().empty()); // a sweep of the queue for each would cost their square
    REQUIRE(flight.revoke(*flight.find(task_id{6})));
    CHECK(flight.take_dead().size() == 6);
    CHECK(flight.take_dead().empty());
    CHECK(flight.take_next()->record.id == task_id{7});
}

TEST_CASE("the payloads of claimed tasks that are cancelled are let go at once", "[scheduler][memory][cancel]") {
    counted_attempt::alive = 0;
    ax::testing::manual_clock clock;
    store_type store;
    counted_engine engine{store, ax::options{.workers = 1, .claimed_ahead = 1'000}, clock};
    engine.post = [](std::shared_ptr<counted_attempt> const&) {}; // a loop that never comes to it
    engine.recover();
    engine.add_handler("probe", [](ax::context&, std::string_view) {}, {});
    std::vector<ax::detail::submission> wanted;
    for (int i = 0; i != 500; ++i)
        wanted.push_back(ax::detail::make_submission("probe", std::string(1'000, '1'), ax::submit_options{},
                                                     clock.now(), 1'000'000));
    auto const made = engine.submit(std::move(wanted));
    for (int i = 0; i != 4; ++i) {
        engine.turn();
        engine.pump();
        engine.dispatch();
    }
    REQUIRE(counted_attempt::alive == 500);
    for (auto const& one : made) REQUIRE(engine.cancel(one.id) == counted_engine::cancel_answer::cancelled);
    CHECK(counted_attempt::alive <= 1);
    CHECK(engine.health().claimed == 0);
}

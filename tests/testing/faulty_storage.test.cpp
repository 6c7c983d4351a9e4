// SPDX-License-Identifier: MIT
#include "ax/testing/faulty_storage.hpp"

#include "ax/storage/memory.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using ax::testing::fault;
using ax::testing::fault_plan;
using store_type = ax::testing::faulty_storage<ax::memory_storage>;

static_assert(ax::storage<store_type>);
static_assert(!ax::transactional_storage<store_type>);

namespace {

using test::t0;

/// Inserts one task. Gives the code of what is thrown, nothing where nothing is.
std::optional<ax::errc> insert(store_type& store, ax::alarms& due, int* calls = nullptr) {
    try {
        store.transact(ax::commit::durable, [&](store_type::writer& w) {
            if (calls != nullptr) ++*calls;
            due.clear();
            ax::new_task task;
            task.type = w.type("t");
            w.insert({&task, 1}, t0, due);
        });
        return std::nullopt;
    } catch (ax::error const& e) {
        return e.kind();
    }
}

std::size_t tasks(store_type const& store) { return store.base().list({}, t0).size(); }

} // namespace

TEST_CASE("faulty_storage without a plan is the storage itself", "[testing]") {
    store_type store{ax::memory_storage{}};
    ax::alarms due;
    CHECK_FALSE(insert(store, due));
    CHECK(due.size() == 1);
    CHECK(store.list({}, t0).size() == 1);
    CHECK(store.commits() == 1);
    CHECK(store.alive());
}

TEST_CASE("faulty_storage: each fault does what it says", "[testing]") {
    struct expected {
        fault what;
        std::optional<ax::errc> code;
        std::size_t written;
        bool alive;
    };
    auto const each = GENERATE(
        expected{fault::none, std::nullopt, 1, true}, //
        expected{fault::busy, ax::errc::unavailable, 0, true}, expected{fault::full, ax::errc::disk_full, 0, true},
        expected{fault::lost_request, ax::errc::outcome_unknown, 0, true},
        expected{fault::lost_reply, ax::errc::outcome_unknown, 1, true}, expected{fault::redone, std::nullopt, 1, true},
        expected{fault::late, std::nullopt, 1, true}, expected{fault::crash_before, ax::errc::unavailable, 0, false},
        expected{fault::crash_after, ax::errc::unavailable, 1, false});
    std::string const call = GENERATE("commit", "insert"); // a verb in the transaction, or the commit
    CAPTURE(to_string(each.what), call);
    store_type store{ax::memory_storage{}};
    store.plan().at(call, 1, each.what);
    int late = 0;
    int said = 0;
    std::size_t acknowledged = 0;
    store.on_late([&] { ++late; });
    store.on_fault([&](std::string_view, fault what) {
        CHECK(what == each.what);
        ++said;
    });
    store.on_acknowledged([&](std::span<ax::insertion const> answers) { acknowledged += answers.size(); });
    ax::alarms due;
    int calls = 0;
    CHECK(insert(store, due, &calls) == each.code);
    CHECK(tasks(store) == each.written);
    CHECK(store.alive() == each.alive);
    CHECK(late == (each.what == fault::late ? 1 : 0));
    CHECK(said == (each.what == fault::none ? 0 : 1));
    CHECK(acknowledged == (each.code ? 0 : 1));
    if (each.what == fault::redone) CHECK(calls == 2);
    CHECK(store.plan().happened(each.what) >= 1);
    if (each.alive) CHECK_FALSE(insert(store, due)); // it comes once
}

TEST_CASE("faulty_storage: the end of a life ends every copy, and nothing that was written", "[testing]") {
    store_type store{ax::memory_storage{}};
    auto copy = store;
    ax::alarms due;
    REQUIRE_FALSE(insert(copy, due));
    auto next = store.another_life();
    CHECK_FALSE(copy.alive());
    CHECK(insert(copy, due) == ax::errc::unavailable);
    CHECK_THROWS_AS(store.list({}, t0), ax::error);
    CHECK(next.list({}, t0).size() == 1);
    next.cut();
    CHECK_THROWS_AS(next.list({}, t0), ax::error);
    auto last = next.another_life();
    CHECK(last.list({}, t0).size() == 1);
}

TEST_CASE("faulty_storage: reads are busy or late, and nothing else", "[testing]") {
    store_type store{ax::memory_storage{}, fault_plan{3}.rate(fault::lost_reply, 0.5).rate(fault::busy, 0.5)};
    int busy = 0;
    for (int i = 0; i != 1'000; ++i) try {
            (void)store.list({}, t0);
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::unavailable);
            ++busy;
        }
    CHECK(busy > 400);
    CHECK(busy < 600);
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

// SPDX-License-Identifier: MIT
// What faulty_storage does with any storage. A storage's own test file only says how to open one.
#pragma once

#include "ax/testing/faulty_storage.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace faulty_cases {

using ax::testing::fault;
using ax::testing::fault_plan;
using test::t0;

/// Inserts one task. Gives the code of what is thrown, nothing where nothing is.
template <class Store>
std::optional<ax::errc> insert(Store& store, ax::alarms& due, int* calls = nullptr) {
    try {
        store.transact(ax::commit::durable, [&](typename Store::writer& w) {
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

template <class Store>
std::size_t tasks(Store const& store) {
    return store.base().list({}, t0).size();
}

template <class Fixture>
using store_of = ax::testing::faulty_storage<typename Fixture::storage_type>;

template <class Fixture>
void transparent() {
    Fixture fixture;
    store_of<Fixture> store{fixture.open()};
    ax::alarms due;
    CHECK_FALSE(insert(store, due));
    CHECK(due.size() == 1);
    CHECK(store.list({}, t0).size() == 1);
    CHECK(store.commits() == 1);
    CHECK(store.alive());
}

template <class Fixture>
void each_fault() {
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
    Fixture fixture;
    store_of<Fixture> store{fixture.open()};
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
    CHECK(store.base().verify().empty());
}

template <class Fixture>
void lives() {
    Fixture fixture;
    store_of<Fixture> store{fixture.open()};
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

/// Of an attempt whose end is sent while the storage fails: the outcome is stored once, and the fence decides.
template <class Fixture>
void a_settlement_is_read_back() {
    auto const what = GENERATE(fault::lost_request, fault::lost_reply);
    CAPTURE(to_string(what));
    Fixture fixture;
    store_of<Fixture> store{fixture.open()};
    using writer = typename store_of<Fixture>::writer;
    ax::alarms due;
    REQUIRE_FALSE(insert(store, due));
    ax::claim_answer claims;
    store.transact(ax::commit::durable, [&](writer& w) {
        ax::claim_request const wanted{due.front().id, false, {}};
        claims = w.claim({&wanted, 1}, {ax::node_id{1}, t0, t0, 0});
    });
    REQUIRE(claims.claimed.size() == 1);
    ax::attempt_end end;
    end.id = due.front().id;
    end.fence = claims.claimed.front().fence;
    end.ended = t0;
    end.started = t0;
    ax::settlement answer;
    auto const settle = [&] {
        store.transact(ax::commit::durable, [&](writer& w) { answer = w.settle({&end, 1}, t0); });
    };
    store.plan().at("settle", 1, what);
    CHECK_THROWS_AS(settle(), ax::error);
    bool const written = what == fault::lost_reply;
    CHECK((store.find(end.id)->state == ax::task_state::succeeded) == written);
    settle(); // whoever sends it again changes nothing where it was written
    CHECK(answer.accepted.front() == !written);
    CHECK(store.find(end.id)->state == ax::task_state::succeeded);
    CHECK(store.history(end.id).size() == 1);
}

template <class Fixture>
void reads_are_busy() {
    Fixture fixture;
    store_of<Fixture> store{fixture.open(), fault_plan{3}.rate(fault::lost_reply, 0.5).rate(fault::busy, 0.5)};
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

} // namespace faulty_cases

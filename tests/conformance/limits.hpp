// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

using ax::limit;
using ax::limit_kind;
using ax::limit_number;
using ax::rate;

/// Short forms of the verbs that are about limits.
template <class Fixture>
class limit_bench : public workbench<Fixture> {
  public:
    using workbench<Fixture>::workbench;

    ax::alarms limit_type(ax::type_number type, limit const& how, std::vector<ax::resource_need> const& needs = {},
                          ax::time_point now = t0) {
        return this->write([&](auto& w) { return w.limit_type(type, how, needs, now); });
    }
    ax::alarms limit_tag(std::string_view tag, limit const& how, ax::time_point now = t0) {
        return this->write([&](auto& w) { return w.limit_tag(tag, how, now); });
    }
    ax::alarms set_resource(std::string_view name, std::size_t capacity, ax::time_point now = t0) {
        return this->write([&](auto& w) { return w.set_resource(name, capacity, now); });
    }
    ax::new_task tagged(std::vector<std::string> tags, ax::time_point when = t0) const {
        auto made = this->task_at(when);
        made.tags = std::move(tags);
        return made;
    }
    ax::new_task of(ax::type_number type, ax::time_point when = t0) const {
        auto made = this->task_at(when);
        made.type = type;
        return made;
    }
    ids add_many(std::size_t count, ax::new_task const& made) {
        ids answer;
        for (auto const& each : this->insert(std::vector<ax::new_task>(count, made))) answer.push_back(each.id);
        return answer;
    }

    /// Claims what it can of these, in this order.
    ax::claim_answer claim_all(ids const& wanted, ax::time_point now = t0, ax::duration ahead = 0ms) {
        std::vector<ax::claim_request> requests;
        for (auto const id : wanted) requests.push_back({id, false});
        return this->claim(requests, {node_a, now, now + ahead, 10});
    }
    /// The ids of those that could be claimed.
    ids taken(ids const& wanted, ax::time_point now = t0) { return ids_of(claim_all(wanted, now).claimed); }

    limit_number waits_for(ax::task_id id) const { return this->get(id).waits_for; }
    bool waits(ax::task_id id) const { return waits_for(id) != limit_number{}; }

    ax::limit_info info(limit_kind kind, std::string_view name) const {
        for (auto const& each : this->store.limits())
            if (each.kind == kind && each.name == name) return each;
        return {};
    }
    std::size_t used(limit_kind kind, std::string_view name) const { return info(kind, name).used; }

    /// The ids that waiting() names as worth a claim at `now`.
    ids named(ax::time_point now = t0) const { return named_of(this->store.waiting({}, 1000, now).due, now); }
    static ids named_of(ax::alarms const& due, ax::time_point now = t0) {
        ids answer;
        for (auto const& each : due)
            if (each.waits && each.run_at <= now) answer.push_back(each.id);
        return answer;
    }
};

/// storage_writer 24: limits are stored, changed and taken back.
template <class Fixture>
void limit_definitions() {
    limit_bench<Fixture> w;

    SECTION("a store begins without limits, and keeps what it is told") {
        CHECK(w.store.limits().empty());
        CHECK(w.limit_tag("tenant-7", {2, rate{100, 1min, 5}}).empty());
        w.limit_type(w.probe, {3, {}});
        w.set_resource("gpu", 4);
        REQUIRE(w.store.limits().size() == 3);
        auto const tag = w.info(limit_kind::tag, "tenant-7");
        CHECK(tag.how.concurrency == 2U);
        REQUIRE(tag.how.rate.has_value());
        CHECK(tag.how.rate->count == 100);
        CHECK(tag.how.rate->period == ax::time_span{1min});
        CHECK(tag.how.rate->burst == 5);
        CHECK(tag.used == 0);
        CHECK(w.info(limit_kind::type, "probe").how.concurrency == 3U);
        CHECK(w.info(limit_kind::resource, "gpu").how.concurrency == 4U);
        CHECK(w.info(limit_kind::tag, "tenant-7").number != w.info(limit_kind::resource, "gpu").number);
    }
    SECTION("a burst of 0 is as large as the count") {
        w.limit_tag("x", {{}, rate{7, 1s}});
        CHECK(w.info(limit_kind::tag, "x").how.rate->burst == 7);
    }
    SECTION("an empty limit takes it back, and one that was never there is none") {
        w.limit_tag("x", {2, {}});
        w.limit_tag("x", {});
        w.limit_tag("y", {});
        w.limit_type(w.probe, {2, {}});
        w.limit_type(w.probe, {});
        CHECK(w.store.limits().empty());
        auto const id = w.add(w.tagged({"x"}));
        w.take(id);
        CHECK(w.store.limits().empty());
    }
    SECTION("a type, a tag and a resource of one name are three limits") {
        w.limit_type(w.probe, {1, {}});
        w.limit_tag("probe", {2, {}});
        w.set_resource("probe", 3);
        CHECK(w.store.limits().size() == 3);
        CHECK(w.info(limit_kind::tag, "probe").how.concurrency == 2U);
    }
    SECTION("a resource has to be declared, and an amount must be within its capacity") {
        auto const refuses = [&](std::vector<ax::resource_need> const& needs, std::string_view word) {
            try {
                w.limit_type(w.probe, {9, {}}, needs);
            } catch (ax::error const& e) {
                CAPTURE(e.what());
                return e.kind() == ax::errc::invalid_argument &&
                       std::string_view{e.what()}.find(word) != std::string_view::npos;
            }
            return false;
        };
        w.set_resource("gpu", 2);
        CHECK(refuses({{"gpu", 1}, {"tpu", 1}}, "\"tpu\""));
        CHECK(refuses({{"gpu", 3}}, "\"gpu\""));
        CHECK(refuses({{"gpu", 0}}, "is 0"));
        CHECK(w.store.limits().size() == 1); // nor was the type's own limit stored
        w.limit_type(w.probe, {}, {{"gpu", 2}});
        auto const two = w.add_many(2, w.task());
        CHECK(w.taken(two) == ids{two[0]});
    }
    SECTION("tags are kept with the task") {
        auto const id = w.add(w.tagged({"a", "tenant-7"}));
        CHECK(w.get(id).tags == std::vector<std::string>{"a", "tenant-7"});
        CHECK(w.take(id).tags.size() == 2);
        CHECK(w.get(w.add()).tags.empty());
    }
    SECTION("what was undone limits nothing") {
        try {
            w.store.transact(ax::commit::lazy, [&](auto& writer) {
                writer.limit_tag("x", {1, {}}, t0);
                throw 1;
            });
        } catch (int) {
        }
        auto const two = w.add_many(2, w.tagged({"x"}));
        CHECK(w.taken(two) == two);
        CHECK(w.store.limits().empty());
    }
    SECTION("what is in flight when a limit comes is not counted") {
        auto const three = w.add_many(3, w.tagged({"x"}));
        w.take(three[0]);
        w.limit_tag("x", {1, {}});
        CHECK(w.taken({three[1], three[2]}) == ids{three[1]});
        CHECK(w.used(limit_kind::tag, "x") == 1);
    }
    if constexpr (Fixture::durable) {
        SECTION("limits and what is held of them are there after a restart") {
            w.limit_tag("x", {1, rate{1, 1h, 5}});
            w.set_resource("gpu", 2);
            w.limit_type(w.probe, {}, {{"gpu", 2}});
            auto const two = w.add_many(2, w.tagged({"x"}));
            auto const held = w.take(two[0]);
            CHECK(w.taken({two[1]}).empty());
            w.store = w.fixture.reopen(std::move(w.store));
            CHECK(w.used(limit_kind::resource, "gpu") == 2);
            CHECK(w.waits(two[1]));
            CHECK(w.taken({two[1]}).empty());
            CHECK(w.named().empty());
            w.finish(held, attempt_outcome::succeeded);
            CHECK(w.named() == ids{two[1]});
            CHECK(w.taken({two[1]}) == ids{two[1]});
        }
        SECTION("the state of a rate is there after a restart") {
            w.limit_tag("x", {{}, rate{2, 10s, 2}});
            auto const all = w.add_many(4, w.tagged({"x"}));
            CHECK(w.taken(all) == ids{all[0], all[1]});
            w.store = w.fixture.reopen(std::move(w.store));
            CHECK(w.taken({all[2]}, t0 + 5s - 1ms).empty());
            CHECK(w.taken({all[2], all[3]}, t0 + 5s) == ids{all[2]});
        }
    }
}

/// storage_writer 25: claim() takes what has room, and holds it until it is settled.
template <class Fixture>
void limits() {
    limit_bench<Fixture> w;

    SECTION("of a type no more are in flight than its concurrency") {
        w.limit_type(w.probe, {2, {}});
        auto const all = w.add_many(3, w.task());
        CHECK(w.taken(all) == ids{all[0], all[1]});
        CHECK(w.used(limit_kind::type, "probe") == 2);
        auto const elsewhere = w.add(w.of(w.type("other")));
        CHECK(w.can_take(elsewhere));
    }
    SECTION("the classes of a type share its limit") {
        w.limit_type(w.probe, {1, {}});
        auto urgent = w.task();
        urgent.priority = ax::priority::critical;
        auto const a = w.add();
        auto const b = w.add(urgent);
        CHECK(w.taken({a, b}) == ids{a});
    }
    SECTION("tasks of any type share the limit of their tag") {
        w.limit_tag("x", {1, {}});
        auto other = w.of(w.type("other"));
        other.tags = {"x"};
        auto const a = w.add(w.tagged({"x"}));
        auto const b = w.add(other);
        auto const c = w.add(w.tagged({"y"}));
        CHECK(w.taken({a, b, c}) == ids{a, c});
    }
    SECTION("resources are taken by amounts") {
        w.set_resource("gpu", 5);
        auto const large = w.type("large");
        w.limit_type(w.probe, {}, {{"gpu", 1}});
        w.limit_type(large, {}, {{"gpu", 3}});
        auto const a = w.add(w.of(large));
        auto const b = w.add(w.of(large));
        auto const small = w.add_many(3, w.task());
        CHECK(w.taken({a, b, small[0], small[1], small[2]}) == ids{a, small[0], small[1]});
        CHECK(w.used(limit_kind::resource, "gpu") == 5);
    }
    SECTION("of two limits both must have room, and neither is taken where one is full") {
        w.limit_tag("x", {1, {}});
        w.limit_tag("y", {2, {}});
        auto const both = w.add(w.tagged({"x", "y"}));
        auto const x = w.add(w.tagged({"x"}));
        auto const y = w.add_many(2, w.tagged({"y"}));
        w.take(both);
        CHECK(w.taken({x, y[0], y[1]}) == ids{y[0]});
        CHECK(w.used(limit_kind::tag, "x") == 1);
        CHECK(w.used(limit_kind::tag, "y") == 2);
    }
    SECTION("every end of an attempt gives back what it held") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::failed, attempt_outcome::exhausted,
                                      attempt_outcome::snoozed, attempt_outcome::interrupted, attempt_outcome::held,
                                      attempt_outcome::cancelled, attempt_outcome::skipped, attempt_outcome::expired,
                                      attempt_outcome::released);
        w.limit_tag("x", {1, {}});
        auto const two = w.add_many(2, w.tagged({"x"}));
        auto const first = w.take(two[0]);
        CHECK(w.taken({two[1]}).empty());
        auto const answer = w.finish(first, outcome);
        CHECK(w.named_of(answer.due) == ids{two[1]});
        CHECK(w.used(limit_kind::tag, "x") == 0);
        CHECK(w.taken({two[1]}) == ids{two[1]});
    }
    SECTION("a success with a log and one without both give back") {
        w.limit_tag("x", {1, {}});
        auto const two = w.add_many(2, w.tagged({"x"}));
        auto end = w.end_of(w.take(two[0]), attempt_outcome::succeeded, t0);
        end.log = "told";
        w.settle({end}, t0);
        CHECK(w.used(limit_kind::tag, "x") == 0);
        w.finish(w.take(two[1]), attempt_outcome::succeeded);
        CHECK(w.used(limit_kind::tag, "x") == 0);
    }
    SECTION("an end that is refused gives nothing back") {
        w.limit_tag("x", {1, {}});
        auto const id = w.add(w.tagged({"x"}));
        auto const old = w.take(id);
        w.finish(old, attempt_outcome::released);
        w.take(id);
        CHECK(w.settle({w.end_of(old, attempt_outcome::succeeded, t0)}, t0).accepted == std::vector<bool>{false});
        CHECK(w.used(limit_kind::tag, "x") == 1);
    }
    SECTION("what a dead owner held is given back by reclaim") {
        w.limit_tag("x", {1, {}});
        auto const two = w.add_many(2, w.tagged({"x"}));
        w.take(two[0]);
        CHECK(w.taken({two[1]}).empty());
        w.reclaim();
        CHECK(w.used(limit_kind::tag, "x") == 0);
        CHECK(w.named() == ids{two[1]});
    }
    SECTION("a changed limit counts what was taken before") {
        w.limit_tag("x", {1, {}});
        auto const all = w.add_many(4, w.tagged({"x"}));
        auto const first = w.take(all[0]);
        w.limit_tag("x", {3, {}});
        CHECK(w.taken({all[1], all[2], all[3]}) == ids{all[1], all[2]});
        w.limit_tag("x", {1, {}});
        w.finish(first, attempt_outcome::succeeded);
        CHECK(w.used(limit_kind::tag, "x") == 2);
        CHECK(w.named().empty());
    }

    SECTION("a rate lets as many begin at once as its burst, then one each interval") {
        w.limit_tag("x", {{}, rate{3, 1s, 2}});
        auto const all = w.add_many(9, w.tagged({"x"}));
        CHECK(w.taken(all) == ids{all[0], all[1]});
        CHECK(w.taken(all, t0 + 333ms).empty()); // a third of a second, rounded up
        CHECK(w.taken(all, t0 + 334ms) == ids{all[2]});
        CHECK(w.taken(all, t0 + 666ms).empty());
        CHECK(w.taken(all, t0 + 667ms) == ids{all[3]});
        CHECK(w.taken(all, t0 + 1h) == ids{all[4], all[5]}); // no more than the burst, however long nothing came
    }
    SECTION("a failed attempt keeps its token, a released one gives it back") {
        w.limit_tag("x", {{}, rate{1, 1min}});
        auto const two = w.add_many(2, w.tagged({"x"}));
        w.finish(w.take(two[0]), attempt_outcome::released);
        auto const again = w.take(two[0]);
        w.finish(again, attempt_outcome::failed);
        CHECK(w.taken({two[1]}, t0 + 60s - 1ms).empty());
        CHECK(w.taken({two[1]}, t0 + 60s) == ids{two[1]});
    }
    SECTION("a token that comes back late makes no bucket fuller than it would be") {
        w.limit_tag("x", {{}, rate{1, 1s}});
        auto const all = w.add_many(3, w.tagged({"x"}));
        auto const first = w.take(all[0]);
        w.take(all[1], t0 + 10s); // the bucket has been full since
        w.finish(first, attempt_outcome::released, t0 + 10s);
        CHECK(w.taken({all[2]}, t0 + 10s).empty());
        CHECK(w.taken({all[2]}, t0 + 11s) == ids{all[2]});
    }
    SECTION("a task claimed ahead takes a token of its own instant") {
        w.limit_tag("x", {{}, rate{1, 10ms}});
        auto const a = w.add(w.tagged({"x"}, t0 + 40ms));
        auto const b = w.add(w.tagged({"x"}, t0 + 45ms));
        auto const c = w.add(w.tagged({"x"}, t0 + 50ms));
        CHECK(ids_of(w.claim_all({a, b, c}, t0, 50ms).claimed) == ids{a}); // c comes later than b, who waits
        CHECK(w.taken({b}, t0 + 49ms).empty());
        CHECK(w.taken({b}, t0 + 50ms) == ids{b});
        CHECK(w.taken({c}, t0 + 60ms) == ids{c});
    }
    SECTION("a clock that is set back does not stop a rate") {
        w.limit_tag("x", {{}, rate{1, 1min, 2}});
        auto const all = w.add_many(4, w.tagged({"x"}, t0 - 1h));
        CHECK(w.taken({all[0], all[1], all[2]}, t0) == ids{all[0], all[1]});
        CHECK(w.named(t0 - 1h) == ids{all[2]}); // its claim takes the bucket along
        auto const answer = w.claim_all({all[2]}, t0 - 1h, 50ms);
        CHECK(answer.claimed.empty());
        CHECK(answer.due == ax::alarms{{all[2], w.lane(), t0 - 59min, true}});
        CHECK(w.taken({all[2]}, t0 - 59min - 1ms).empty());
        CHECK(w.taken({all[2]}, t0 - 59min) == ids{all[2]});
    }
    SECTION("a faster rate counts at once") {
        w.limit_tag("x", {{}, rate{1, 1h}});
        auto const two = w.add_many(2, w.tagged({"x"}));
        CHECK(w.taken(two) == ids{two[0]});
        auto const due = w.limit_tag("x", {{}, rate{1, 1s}}, t0);
        REQUIRE(due.size() == 1);
        CHECK(due[0].run_at == t0 + 1s);
        CHECK(w.taken({two[1]}, t0 + 1s) == ids{two[1]});
    }
}

/// storage_writer 26 and 27, storage 13: who waits, in what order, and who is named when.
template <class Fixture>
void waiting_for_limits() {
    limit_bench<Fixture> w;

    SECTION("who meets a full limit waits for it, and is no part of upcoming") {
        w.limit_tag("x", {1, {}});
        auto const two = w.add_many(2, w.tagged({"x"}));
        w.take(two[0]);
        auto const before = w.get(two[1]);
        CHECK(w.upcoming() == ids{two[1]});
        CHECK(w.claim_all({two[1]}).due.empty());
        auto const after = w.get(two[1]);
        CHECK(after.waits_for == w.info(limit_kind::tag, "x").number);
        CHECK(after.state == task_state::ready);
        CHECK(after.version == before.version);
        CHECK(w.upcoming().empty());
        CHECK(w.named().empty());
    }
    SECTION("a task that is not due does not wait for a limit") {
        w.limit_tag("x", {1, {}});
        auto const a = w.add(w.tagged({"x"}));
        auto const b = w.add(w.tagged({"x"}, t0 + 1ms));
        w.take(a);
        CHECK(w.taken({b}).empty());
        CHECK_FALSE(w.waits(b));
        CHECK(w.upcoming() == ids{b});
    }
    SECTION("they come in the order of run_at and id, and a later one does not overtake") {
        w.limit_tag("x", {1, {}});
        auto const holder = w.take(w.add(w.tagged({"x"})));
        auto const late = w.add(w.tagged({"x"}, t0 + 2s));
        auto const early = w.add(w.tagged({"x"}, t0 + 1s));
        auto const same = w.add(w.tagged({"x"}, t0 + 1s));
        CHECK(w.taken({late, same, early}, t0 + 5s).empty());
        auto const answer = w.finish(holder, attempt_outcome::succeeded, t0 + 5s);
        CHECK(w.named_of(answer.due, t0 + 5s) == ids{early});
        auto const newcomer = w.add(w.tagged({"x"}, t0 + 4s));
        CHECK(w.taken({newcomer, late, same}, t0 + 5s).empty());
        CHECK(w.waits(newcomer));
        auto const first = w.take(early, t0 + 5s);
        CHECK_FALSE(w.waits(early));
        w.finish(first, attempt_outcome::succeeded, t0 + 5s);
        auto const second = w.take(same, t0 + 5s);
        w.finish(second, attempt_outcome::succeeded, t0 + 5s);
        CHECK(w.named(t0 + 5s) == ids{late});
    }
    SECTION("one that is earlier than all who wait goes first") {
        w.limit_tag("x", {1, {}});
        auto const holder = w.take(w.add(w.tagged({"x"})));
        auto const waits = w.add(w.tagged({"x"}, t0 + 1s));
        CHECK(w.taken({waits}, t0 + 1s).empty());
        w.finish(holder, attempt_outcome::succeeded, t0 + 1s);
        auto const early = w.add(w.tagged({"x"}, t0));
        CHECK(w.taken({early}, t0 + 1s) == ids{early});
    }
    SECTION("lanes do not wait for each other") {
        w.limit_tag("x", {1, {}});
        auto const holder = w.take(w.add(w.tagged({"x"})));
        auto urgent = w.tagged({"x"}, t0 + 1s);
        urgent.priority = ax::priority::high;
        auto const normal = w.add_many(2, w.tagged({"x"}));
        auto const high = w.add_many(2, urgent);
        CHECK(w.taken({normal[0], normal[1], high[0], high[1]}, t0 + 1s).empty());
        auto const answer = w.finish(holder, attempt_outcome::succeeded, t0 + 1s);
        CHECK(w.named_of(answer.due, t0 + 1s) == ids{high[0], normal[0]}); // by lane
        CHECK(w.taken({high[0], normal[0]}, t0 + 1s) == ids{high[0]});
    }
    SECTION("as many are named as there is room for, and the next ones by the claim of these") {
        w.limit_tag("x", {3, {}});
        auto const holders = w.claim_all(w.add_many(3, w.tagged({"x"}))).claimed;
        auto const all = w.add_many(9, w.tagged({"x"}));
        CHECK(w.taken(all).empty());
        std::vector<ax::attempt_end> ends;
        for (auto const& each : holders) ends.push_back(w.end_of(each, attempt_outcome::succeeded, t0));
        auto const answer = w.settle(ends, t0);
        CHECK(w.named_of(answer.due) == ids{all[0], all[1], all[2]});
        auto const claimed = w.claim_all({all[0], all[1]});
        CHECK(ids_of(claimed.claimed) == ids{all[0], all[1]});
        CHECK(w.named_of(claimed.due) == ids{all[2]});
        CHECK(w.named_of(w.claim_all({all[2]}).due).empty());
    }
    SECTION("no more than 64 of a lane are named at once") {
        w.limit_tag("x", {1, {}});
        w.take(w.add(w.tagged({"x"})));
        auto const all = w.add_many(100, w.tagged({"x"}));
        w.claim_all(all);
        auto const due = w.named_of(w.limit_tag("x", {1000, {}}));
        CHECK(due == ids(all.begin(), all.begin() + 64));
        auto const claimed = w.claim_all(due);
        CHECK(claimed.claimed.size() == 64);
        CHECK(w.named_of(claimed.due) == ids(all.begin() + 64, all.end()));
    }
    SECTION("a limit that is taken back lets all go, by and by, and is gone after the last") {
        w.limit_tag("x", {1, {}});
        auto const holder = w.take(w.add(w.tagged({"x"})));
        auto const all = w.add_many(70, w.tagged({"x"}));
        w.claim_all(all);
        auto due = w.named_of(w.limit_tag("x", {}));
        CHECK(due.size() == 64);
        CHECK(w.can_take(w.add(w.tagged({"x"})))); // nobody stands before it any more
        due = w.named_of(w.claim_all(due).due);
        CHECK(due.size() == 6);
        w.claim_all(due);
        CHECK(w.store.limits().size() == 1);
        w.finish(holder, attempt_outcome::succeeded);
        CHECK(w.store.limits().empty());
        CHECK(w.store.waiting({}, 10, t0).due.empty());
    }
    SECTION("a resource that a type needs no more lets its tasks go") {
        w.set_resource("gpu", 1);
        w.limit_type(w.probe, {}, {{"gpu", 1}});
        w.take(w.add());
        auto const two = w.add_many(2, w.task());
        w.claim_all(two);
        CHECK(w.named().empty());
        CHECK(w.named_of(w.limit_type(w.probe, {})) == two);
        CHECK(w.taken(two) == two);
        CHECK(w.store.limits().size() == 1); // a resource stays
    }
    SECTION("only a token is missing: the first is named, at the instant of the next one") {
        w.limit_tag("x", {{}, rate{1, 10s}});
        auto const all = w.add_many(4, w.tagged({"x"}));
        auto const answer = w.claim_all(all);
        CHECK(ids_of(answer.claimed) == ids{all[0]});
        REQUIRE(answer.due.size() == 1);
        CHECK(answer.due[0] == ax::alarm{all[1], w.lane(), t0 + 10s, true});
        CHECK(w.store.waiting({}, 10, t0 + 1s).due == answer.due);
        auto const next = w.claim_all({all[1]}, t0 + 10s);
        CHECK(ids_of(next.claimed) == ids{all[1]});
        REQUIRE(next.due.size() == 1);
        CHECK(next.due[0] == ax::alarm{all[2], w.lane(), t0 + 20s, true});
        CHECK(w.claim_all({all[2]}, t0 + 19s).due == next.due); // too early: it is said again
    }
    SECTION("one that meets another full limit waits for that one, and the next one is named") {
        w.limit_tag("x", {1, {}});
        w.limit_tag("y", {1, {}});
        auto const x = w.take(w.add(w.tagged({"x"})));
        auto const y = w.take(w.add(w.tagged({"y"})));
        auto const both = w.add(w.tagged({"x", "y"}));
        auto const next = w.add(w.tagged({"x"}));
        CHECK(w.taken({both, next}).empty());
        CHECK(w.waits_for(both) == w.info(limit_kind::tag, "x").number);
        CHECK(w.named_of(w.finish(x, attempt_outcome::succeeded).due) == ids{both});
        auto const answer = w.claim_all({both});
        CHECK(answer.claimed.empty());
        CHECK(w.waits_for(both) == w.info(limit_kind::tag, "y").number);
        CHECK(w.named_of(answer.due) == ids{next});
        auto const then = w.take(next);
        CHECK(w.named_of(w.finish(y, attempt_outcome::succeeded).due).empty()); // x is full again
        CHECK(w.waits_for(both) == w.info(limit_kind::tag, "x").number);
        CHECK(w.named_of(w.finish(then, attempt_outcome::succeeded).due) == ids{both});
        CHECK(w.taken({both}) == ids{both});
    }
    SECTION("whoever leaves the line makes the next one the first") {
        w.limit_tag("x", {{}, rate{1, 10s}});
        auto first = w.tagged({"x"});
        first.deadline = t0 + 5s;
        first.key = "k";
        w.take(w.add(w.tagged({"x"})));
        auto const a = w.add(first);
        auto const b = w.add(w.tagged({"x"}));
        w.claim_all({a, b});
        ax::alarm const next{b, w.lane(), t0 + 10s, true};
        SECTION("cancelled") {
            CHECK(announces(w.cancel(a).due, next));
            CHECK(w.state(a) == task_state::cancelled);
        }
        SECTION("moved") {
            auto const moved = w.reschedule(a, t0 + 1h);
            CHECK(announces(moved.due, next));
            CHECK(announces(moved.due, ax::alarm{a, w.lane(), t0 + 1h}));
            CHECK(w.upcoming() == ids{a});
        }
        SECTION("expired") { CHECK(announces(w.expire(t0 + 5s).due, next)); }
        SECTION("replaced") {
            auto other = w.tagged({"y"});
            other.key = "k";
            other.on_conflict = ax::on_conflict::replace;
            CHECK(w.insert({other}).at(0).id == a);
            CHECK(announces(w.due, next));
            CHECK(announces(w.due, ax::alarm{a, w.lane(), t0}));
            CHECK(w.get(a).tags == std::vector<std::string>{"y"});
        }
        SECTION("put off") {
            auto other = w.tagged({"z"}, t0 + 1h);
            other.key = "k";
            other.on_conflict = ax::on_conflict::debounce;
            CHECK(w.insert({other}).at(0).id == a);
            CHECK(announces(w.due, next));
            CHECK(w.get(a).tags == std::vector<std::string>{"x"});
        }
        CHECK_FALSE(w.waits(a));
        CHECK(w.taken({b}, t0 + 10s) == ids{b});
    }
    SECTION("one that another of its route key goes before waits for no limit") {
        w.limit_tag("x", {1, {}});
        auto const holder = w.take(w.add(w.tagged({"x"})));
        auto routed = w.tagged({"x"}, t0 + 2s);
        routed.route_key = "r";
        auto const a = w.add(routed);
        auto const b = w.add(w.tagged({"x"}, t0 + 3s));
        w.claim_all({a, b}, t0 + 3s);
        w.finish(holder, attempt_outcome::succeeded, t0 + 3s);
        routed.run_at = t0 + 1s;
        routed.tags.clear();
        auto const before = w.add(routed, t0 + 3s);
        CHECK(w.get(a).blocked);
        CHECK_FALSE(w.waits(a));
        CHECK(announces(w.due, ax::alarm{b, w.lane(), t0 + 3s, true}));
        CHECK(w.taken({b}, t0 + 3s) == ids{b});
        w.finish(w.take(before, t0 + 3s), attempt_outcome::succeeded, t0 + 3s);
        CHECK_FALSE(w.get(a).blocked);
        CHECK(w.upcoming() == ids{a});
    }
    SECTION("a suspect for whom there is no room stands in nobody's way") {
        w.limit_tag("x", {1, {}});
        auto const odd = w.add(w.tagged({"x"}));
        for (int i = 0; i != 2; ++i) {
            w.take(odd);
            w.reclaim();
        }
        auto const holder = w.take(w.add(w.tagged({"x"}, t0 - 1s)));
        auto const next = w.add(w.tagged({"x"}));
        w.claim_all({odd, next});
        CHECK(w.waits(odd));
        w.finish(holder, attempt_outcome::succeeded);
        auto const answer = w.claim({{odd, false}}, {node_a, t0, t0, 0});
        CHECK(answer.suspects == ids{odd});
        CHECK_FALSE(w.waits(odd));
        CHECK(w.named_of(answer.due) == ids{next});
        CHECK(w.taken({next}) == ids{next});
    }
    SECTION("obstacles() names the limit, who holds it, and when a token comes") {
        w.limit_tag("x", {20, rate{20, 20s}});
        auto const all = w.add_many(22, w.tagged({"x"}));
        auto const claimed = w.claim_all(all).claimed;
        CHECK(claimed.size() == 20);
        CHECK(w.store.obstacles(all[0]).empty());
        auto found = w.store.obstacles(all[20]);
        REQUIRE(found.size() == 1);
        CHECK(found[0].kind == ax::obstacle::what::limit);
        CHECK(found[0].name == "tag \"x\"");
        CHECK(found[0].holders == ids(all.begin(), all.begin() + 16));
        CHECK_FALSE(found[0].free_at.has_value());
        w.finish(claimed[0], attempt_outcome::succeeded);
        found = w.store.obstacles(all[20]);
        CHECK(found.at(0).free_at == t0 + 1s);
    }
    SECTION("obstacles() says where a capacity has become too small for a task ever to run") {
        w.set_resource("gpu", 4);
        auto const large = w.type("large");
        w.limit_type(large, {}, {{"gpu", 3}});
        auto const all = w.add_many(3, w.of(large));
        auto const held = w.take(all[0]);
        w.claim_all({all[1]});
        REQUIRE(w.waits(all[1]));
        w.set_resource("gpu", 2);
        CHECK(w.store.obstacles(all[0]).empty()); // it does run
        for (auto const id : {all[1], all[2]}) {  // also the one that nobody has tried
            auto const found = w.store.obstacles(id);
            REQUIRE(found.size() == 1);
            CHECK(found[0].never);
            CHECK(found[0].name == "resource \"gpu\" (it needs 3 of 2)");
            CHECK(found[0].holders.empty());
        }
        w.finish(held, attempt_outcome::succeeded);
        CHECK(w.store.obstacles(all[0]).empty()); // it is over
        CHECK(w.named().empty());
        CHECK(w.named_of(w.set_resource("gpu", 3)) == ids{all[1]}); // and nothing was lost by it
        CHECK(w.store.obstacles(all[2]).empty());
        w.take(all[1]);
        w.claim_all({all[2]});
        auto const full = w.store.obstacles(all[2]);
        REQUIRE(full.size() == 1);
        CHECK_FALSE(full[0].never);
        CHECK(full[0].holders == ids{all[1]});
        w.set_resource("gpu", 2);
        CHECK(w.named_of(w.limit_type(large, {}, {{"gpu", 2}})).empty());
        CHECK_FALSE(w.store.obstacles(all[2]).at(0).never);
    }
    SECTION("waiting() goes limit by limit") {
        for (auto const* tag : {"a", "b", "c"}) {
            w.limit_tag(tag, {1, {}});
            w.take(w.add(w.tagged({tag})));
            w.claim_all({w.add(w.tagged({tag}))});
        }
        auto const c = w.info(limit_kind::tag, "c").number;
        auto const page = w.store.waiting({}, 2, t0);
        CHECK(page.last == w.info(limit_kind::tag, "b").number);
        CHECK_FALSE(page.complete);
        auto const rest = w.store.waiting(page.last, 2, t0);
        CHECK(rest.last == c);
        CHECK(rest.complete);
        CHECK(w.store.waiting({}, 3, t0).complete);
        CHECK(w.store.waiting(c, 2, t0).last == limit_number{});
        CHECK(w.store.waiting(c, 2, t0).complete);
    }
    SECTION("a list has those that wait for a limit with the blocked and held ones, last") {
        w.limit_tag("x", {1, {}});
        w.take(w.add(w.tagged({"x"})));
        auto const waits = w.add(w.tagged({"x"}));
        w.claim_all({waits});
        auto const free = w.add(w.task_at(t0 + 1h));
        ax::task_filter filter;
        filter.state = task_state::ready;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{free, waits});
    }
}

} // namespace conformance

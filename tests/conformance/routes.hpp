// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 3: tasks with one route key run one at a time, in order.
template <class Fixture>
void routes() {
    using ax::route_ordering;
    workbench<Fixture> w;
    auto const blocked = [&](ax::task_id id) { return w.get(id).blocked; };

    SECTION("only the first can be claimed, and the others are no part of upcoming") {
        auto const answer = w.insert({w.task_of("r"), w.task_of("r"), w.task_of("r"), w.task_of("other")});
        auto const a = answer[0].id;
        auto const b = answer[1].id;
        auto const other = answer[3].id;
        CHECK(announces(w.due, a));
        CHECK_FALSE(announces(w.due, b));
        CHECK(answer[1].state == task_state::ready);
        CHECK(w.upcoming() == ids{a, other});
        CHECK_FALSE(blocked(a));
        CHECK(blocked(b));
        CHECK_FALSE(w.can_take(b));
        CHECK(w.can_take(a));
    }
    SECTION("obstacles() names the task that goes first, while it does") {
        auto const answer = w.insert({w.task_of("r"), w.task_of("r"), w.task_of("r"), w.task()});
        auto const first = answer[0].id;
        CHECK(w.store.obstacles(first).empty());
        CHECK(w.store.obstacles(answer[3].id).empty());
        CHECK(w.store.obstacles(ax::task_id{12'345}).empty());
        for (auto const id : {answer[1].id, answer[2].id}) {
            auto const found = w.store.obstacles(id);
            REQUIRE(found.size() == 1);
            CHECK(found[0].kind == ax::obstacle::what::route);
            CHECK(found[0].name == "r");
            CHECK(found[0].holders == ids{first});
            CHECK_FALSE(found[0].free_at.has_value());
        }
        w.finish(w.take(first), attempt_outcome::succeeded);
        CHECK(w.store.obstacles(answer[1].id).empty());
        CHECK(w.store.obstacles(answer[2].id).at(0).holders == ids{answer[1].id});
    }
    SECTION("a task without a route key is never blocked") {
        auto const answer = w.insert({w.task(), w.task()});
        CHECK_FALSE(blocked(answer[0].id));
        CHECK_FALSE(blocked(answer[1].id));
    }
    SECTION("the order is run_at, then id; priority has no say") {
        auto late = w.task_of("r");
        late.run_at = t0 + 2s;
        late.priority = ax::priority::critical;
        auto early = w.task_of("r");
        early.run_at = t0 + 1s;
        early.priority = ax::priority::low;
        auto const l = w.add(late);
        CHECK_FALSE(blocked(l));
        auto const e = w.add(early);
        CHECK(announces(w.due, ax::alarm{e, w.lane(ax::priority_class::low), t0 + 1s}));
        CHECK(blocked(l));
        CHECK_FALSE(blocked(e));
        auto const same = w.add(early);
        CHECK(blocked(same));
        w.finish(w.take(e, t0 + 1s), attempt_outcome::succeeded, t0 + 1s);
        CHECK_FALSE(blocked(same)); // the same instant, the later id
        CHECK(blocked(l));
    }
    SECTION("who is blocked costs no change of version") {
        auto const first = w.add(w.task_of("r"));
        auto const second = w.add(w.task_of("r"));
        w.finish(w.take(first), attempt_outcome::succeeded);
        CHECK(w.get(second).version == 1);
        CHECK(w.get(second).changed == t0);
    }
    SECTION("a task in flight is never overtaken") {
        auto const a = w.add(w.task_of("r"));
        auto const claimed = w.take(a, t0 + 5s);
        auto early = w.task_of("r");
        early.run_at = t0 - 1h;
        auto const b = w.add(early);
        CHECK(w.due.empty());
        CHECK(blocked(b));
        CHECK_FALSE(w.can_take(b, t0 + 1h));
        w.start(claimed, t0 + 5s);
        CHECK(blocked(b));
        auto const answer = w.finish(claimed, attempt_outcome::succeeded, t0 + 6s);
        CHECK(announces(answer.due, ax::alarm{b, w.lane(), t0 - 1h}));
        CHECK_FALSE(blocked(b));
    }
    SECTION("every terminal end lets the next one go, with an alarm") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::exhausted,
                                      attempt_outcome::cancelled, attempt_outcome::skipped, attempt_outcome::expired);
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        auto const c = w.add(w.task_of("r"));
        auto const answer = w.finish(w.take(a), outcome);
        CHECK(announces(answer.due, ax::alarm{b, w.lane(), t0}));
        CHECK_FALSE(announces(answer.due, c));
        CHECK_FALSE(blocked(a));
        CHECK_FALSE(blocked(b));
        CHECK(blocked(c));
    }
    SECTION("a strict task in backoff keeps its place and the others wait") {
        auto const outcome = GENERATE(attempt_outcome::failed, attempt_outcome::snoozed);
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        auto const answer = w.finish(w.take(a), outcome);
        CHECK(announces(answer.due, ax::alarm{a, w.lane(), t0 + 60s}));
        CHECK_FALSE(announces(answer.due, b));
        CHECK(w.get(a).order_at == t0);
        CHECK_FALSE(blocked(a));
        CHECK(blocked(b));
        CHECK_FALSE(w.can_take(b, t0 + 30s));
        CHECK(w.can_take(a, t0 + 60s));
    }
    SECTION("a relaxed task in backoff goes behind those due before its retry") {
        auto const outcome = GENERATE(attempt_outcome::failed, attempt_outcome::snoozed);
        auto const a = w.add(w.task_of("r", route_ordering::relaxed)); // tried again at +60 s
        auto const b = w.add(w.task_of("r"));
        auto behind = w.task_of("r");
        behind.run_at = t0 + 61s;
        auto const c = w.add(behind);
        auto const answer = w.finish(w.take(a), outcome);
        CHECK(announces(answer.due, ax::alarm{b, w.lane(), t0}));
        CHECK_FALSE(announces(answer.due, a));
        CHECK(w.get(a).order_at == t0 + 60s);
        CHECK(blocked(a));
        CHECK_FALSE(w.can_take(a, t0 + 60s));
        auto const next = w.finish(w.take(b), attempt_outcome::succeeded);
        CHECK(announces(next.due, ax::alarm{a, w.lane(), t0 + 60s}));
        CHECK_FALSE(announces(next.due, c));
        CHECK(w.can_take(a, t0 + 60s));
    }
    SECTION("an interrupted task stays first, relaxed or not") {
        auto const order = GENERATE(route_ordering::strict, route_ordering::relaxed);
        auto const a = w.add(w.task_of("r", order));
        auto const b = w.add(w.task_of("r"));
        auto const answer = w.finish(w.take(a), attempt_outcome::interrupted, t0 + 5s);
        CHECK(announces(answer.due, ax::alarm{a, w.lane(), t0}));
        CHECK_FALSE(announces(answer.due, b));
        CHECK(w.can_take(a, t0 + 5s));
    }
    SECTION("a released task stays first") {
        auto const a = w.add(w.task_of("r", route_ordering::relaxed));
        auto const b = w.add(w.task_of("r"));
        w.finish(w.take(a), attempt_outcome::released);
        CHECK_FALSE(blocked(a));
        CHECK(blocked(b));
    }
    SECTION("a held strict task keeps its place and blocks the others") {
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        auto const answer = w.finish(w.take(a), attempt_outcome::held);
        CHECK(answer.due.empty());
        CHECK_FALSE(blocked(a));
        CHECK(blocked(b));
        CHECK(w.upcoming().empty());
        auto const gone = w.retry(a);
        CHECK(announces(gone.due, ax::alarm{a, w.lane(), t0}));
        CHECK(w.upcoming() == ids{a});
    }
    SECTION("a held relaxed task lets the others pass and comes back to its place") {
        auto const a = w.add(w.task_of("r", route_ordering::relaxed));
        auto const b = w.add(w.task_of("r"));
        auto const answer = w.finish(w.take(a), attempt_outcome::held);
        CHECK(announces(answer.due, ax::alarm{b, w.lane(), t0}));
        CHECK(blocked(a));
        CHECK_FALSE(blocked(b));
        auto const gone = w.retry(a);
        CHECK(gone.outcome == change_outcome::done);
        CHECK(announces(gone.due, ax::alarm{a, w.lane(), t0}));
        CHECK_FALSE(blocked(a));
        CHECK(blocked(b));
    }
    SECTION("a held relaxed task alone is let go by retry") {
        auto const a = w.add(w.task_of("r", route_ordering::relaxed));
        w.finish(w.take(a), attempt_outcome::held);
        CHECK(w.upcoming().empty());
        CHECK(announces(w.retry(a).due, a));
        CHECK_FALSE(blocked(a));
        CHECK(w.can_take(a));
    }
    SECTION("cancelling the first lets the next one go") {
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        CHECK(announces(w.cancel(a).due, ax::alarm{b, w.lane(), t0}));
        CHECK(w.upcoming() == ids{b});
    }
    SECTION("cancelling a blocked one changes nothing for the others") {
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        auto const c = w.add(w.task_of("r"));
        CHECK(w.cancel(b).outcome == change_outcome::done);
        CHECK_FALSE(blocked(b)); // it has ended
        CHECK_FALSE(blocked(a));
        CHECK(blocked(c));
    }
    SECTION("rescheduling moves a task along the line") {
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        auto const behind = w.reschedule(a, t0 + 1h);
        CHECK(announces(behind.due, ax::alarm{b, w.lane(), t0}));
        CHECK_FALSE(announces(behind.due, a));
        CHECK(blocked(a));
        auto const front = w.reschedule(a, t0 - 1s);
        CHECK(announces(front.due, ax::alarm{a, w.lane(), t0 - 1s}));
        CHECK(blocked(b));
        auto const still_behind = w.reschedule(b, t0 + 2h);
        CHECK_FALSE(announces(still_behind.due, b));
        CHECK(blocked(b));
    }
    SECTION("rescheduling those behind a task in flight frees nobody") {
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        w.take(a);
        CHECK(w.reschedule(b, t0 - 1h).due.empty());
        CHECK(blocked(b));
        CHECK(w.get(b).order_at == t0 - 1h);
    }
    SECTION("a task retried by hand takes its place by the present") {
        auto const a = w.add(w.task_of("r"));
        auto later = w.task_of("r");
        later.run_at = t0 + 1min;
        auto const b = w.add(later);
        w.finish(w.take(a), attempt_outcome::exhausted);
        CHECK_FALSE(blocked(b));
        auto const in_front = w.retry(a, t0 + 30s);
        CHECK(announces(in_front.due, ax::alarm{a, w.lane(), t0 + 30s}));
        CHECK(blocked(b));
        w.cancel(a);
        auto const behind = w.retry(a, t0 + 2min);
        CHECK(behind.due.empty());
        CHECK(blocked(a));
        CHECK_FALSE(blocked(b));
    }
    SECTION("a deadline of the first lets the next one go") {
        auto mortal = w.task_of("r");
        mortal.deadline = t0 + 1s;
        auto const a = w.add(mortal);
        auto const b = w.add(w.task_of("r"));
        auto const answer = w.expire(t0 + 1s);
        CHECK(answer.dead == ids{a});
        CHECK(announces(answer.due, ax::alarm{b, w.lane(), t0}));
        CHECK(w.upcoming() == ids{b});
    }
    SECTION("a reclaimed task stays first, a poisoned one lets the next go") {
        auto const a = w.add(w.task_of("r"));
        auto const b = w.add(w.task_of("r"));
        w.take(a);
        w.reclaim();
        CHECK(w.upcoming() == ids{a});
        w.take(a);
        w.reclaim();
        w.take(a); // lonely
        CHECK(w.reclaim(t0, node_b, 1).poisoned == ids{a});
        CHECK_FALSE(blocked(a));
        CHECK(w.upcoming() == ids{b});
    }
    SECTION("a reclaimed relaxed task that is held lets the others pass") {
        auto const a = w.add(w.task_of("r", route_ordering::relaxed));
        auto const b = w.add(w.task_of("r"));
        w.start(w.take(a, t0, node_a, true), t0);
        CHECK(w.reclaim().held == 1);
        CHECK(w.upcoming() == ids{b});
        CHECK(blocked(a));
    }
    SECTION("a route crosses task types and classes") {
        auto first = w.task_of("r");
        auto second = w.task_of("r");
        second.type = w.type("other");
        second.priority = ax::priority::low;
        auto const a = w.add(first);
        auto const b = w.add(second);
        auto const lane = ax::make_lane(second.type, second.priority);
        CHECK(w.store.upcoming({{}, lane, {}}, ax::latest_time, 10).empty());
        auto const answer = w.finish(w.take(a), attempt_outcome::succeeded);
        CHECK(announces(answer.due, ax::alarm{b, lane, t0}));
        CHECK(w.store.upcoming({{}, lane, {}}, ax::latest_time, 10).size() == 1);
    }
    SECTION("a follow-up into its own route is let go by the end of its parent") {
        auto const a = w.add(w.task_of("r"));
        auto end = w.end_of(w.take(a), attempt_outcome::succeeded, t0);
        end.follow_ups = {w.task_of("r"), w.task_of("r")};
        auto const answer = w.settle({end}, t0);
        CHECK(announces(answer.due, ax::task_id{2}));
        CHECK_FALSE(blocked(ax::task_id{2}));
        CHECK(blocked(ax::task_id{3}));
    }
    SECTION("a route empties and fills again") {
        for (int round = 0; round < 3; ++round) {
            auto const a = w.add(w.task_of("\xF0\x9F\x9A\x82"));
            CHECK_FALSE(blocked(a));
            w.finish(w.take(a), attempt_outcome::succeeded);
        }
    }
    SECTION("a long line is let go one by one, in order") {
        std::vector<ax::new_task> made;
        for (int i = 0; i < 200; ++i) {
            made.push_back(w.task_of("r"));
            made.back().run_at = t0 + std::chrono::seconds{(i * 37) % 200}; // each second once, out of order
        }
        w.insert(made);
        auto expected = t0;
        for (int i = 0; i < 200; ++i) {
            auto const free = w.upcoming();
            REQUIRE(free.size() == 1);
            auto const claimed = w.take(free[0], t0 + 1h);
            CHECK(claimed.run_at == expected);
            expected += 1s;
            w.finish(claimed, attempt_outcome::succeeded, t0 + 1h);
        }
        CHECK(w.upcoming().empty());
    }
}

} // namespace conformance

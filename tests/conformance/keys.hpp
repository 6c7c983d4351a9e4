// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <thread>

namespace conformance {

/// A task that holds the key "k", brought into a state.
enum class holder_in { ready, failed, held, dispatched, running, succeeded, dead, cancelled, skipped };

inline constexpr std::array holders{holder_in::ready,      holder_in::failed,    holder_in::held,
                                    holder_in::dispatched, holder_in::running,   holder_in::succeeded,
                                    holder_in::dead,       holder_in::cancelled, holder_in::skipped};

constexpr task_state state_of(holder_in which) {
    switch (which) {
    case holder_in::ready:
    case holder_in::held: return task_state::ready;
    case holder_in::failed: return task_state::failed;
    case holder_in::dispatched: return task_state::dispatched;
    case holder_in::running: return task_state::running;
    case holder_in::succeeded: return task_state::succeeded;
    case holder_in::dead: return task_state::dead;
    case holder_in::cancelled: return task_state::cancelled;
    case holder_in::skipped: return task_state::skipped;
    }
    return task_state::created;
}

template <class Workbench>
ax::new_task keyed(Workbench const& w, std::string payload, ax::conflict_policy policy = {},
                   ax::key_scoping scope = ax::key_scope::kept) {
    auto made = w.task(std::move(payload));
    made.key = "k";
    made.key_scope = scope;
    made.on_conflict = policy;
    return made;
}

template <class Workbench>
ax::task_id holder(Workbench& w, holder_in which, ax::key_scoping scope = ax::key_scope::kept) {
    auto const id = w.add(keyed(w, "first", {}, scope));
    if (which == holder_in::ready) return id;
    if (which == holder_in::cancelled) {
        REQUIRE(w.cancel(id).outcome == change_outcome::done);
        return id;
    }
    auto const claimed = w.take(id);
    switch (which) {
    case holder_in::failed: w.finish(claimed, attempt_outcome::failed); break;
    case holder_in::held: w.finish(claimed, attempt_outcome::held); break;
    case holder_in::running: w.start(claimed, t0); break;
    case holder_in::succeeded: w.finish(claimed, attempt_outcome::succeeded); break;
    case holder_in::dead: w.finish(claimed, attempt_outcome::exhausted); break;
    case holder_in::skipped: w.finish(claimed, attempt_outcome::skipped); break;
    case holder_in::dispatched:
    case holder_in::ready:
    case holder_in::cancelled: break;
    }
    return id;
}

/// storage_writer 16: every policy, whatever state the holder is in.
template <class Fixture>
void key_policies() {
    workbench<Fixture> w;
    auto const second_at = t0 + 30s;
    auto const submit = [&](ax::conflict_policy policy) {
        auto made = keyed(w, "second", policy);
        made.delay = 1h;
        return w.insert({made}, second_at).at(0);
    };
    auto const which = GENERATE(from_range(holders));
    auto const id = holder(w, which);
    auto const before = w.get(id);
    REQUIRE(before.state == state_of(which));
    bool const in_flight = which == holder_in::dispatched || which == holder_in::running;
    bool const ended = ax::is_terminal(before.state);
    CAPTURE(before.state, before.held);

    auto const is_untouched = [&] {
        auto const now = w.get(id);
        CHECK(now.payload == "first");
        CHECK(now.run_at == before.run_at);
        CHECK(now.version == before.version);
        CHECK(now.state == before.state);
        CHECK_FALSE(now.key_released);
        CHECK(w.store.find_by_key("k")->id == id);
        CHECK(w.store.list({}, t0).size() == 1);
        CHECK(w.due.empty());
    };
    auto const has_passed = [&](ax::insertion const& answer) {
        CHECK(answer.outcome == submit_outcome::inserted);
        CHECK(answer.state == task_state::ready);
        REQUIRE(answer.id != id);
        auto const added = w.get(answer.id);
        CHECK(added.payload == "second");
        CHECK(added.run_at == second_at + 1h);
        CHECK(added.created == second_at);
        CHECK_FALSE(added.key_released);
        CHECK(announces(w.due, ax::alarm{answer.id, w.lane(), second_at + 1h}));
        CHECK(w.store.find_by_key("k")->id == answer.id);
        auto const old = w.get(id);
        CHECK(old.key == "k");
        CHECK(old.key_released);
        CHECK(old.version == before.version);
        CHECK(old.state == before.state);
        CHECK(old.payload == "first");
    };
    auto const is_replaced = [&](ax::insertion const& answer) {
        CHECK(answer.outcome == submit_outcome::replaced);
        CHECK(answer.id == id);
        CHECK(answer.state == before.state);
        auto const now = w.get(id);
        CHECK(now.payload == "second");
        CHECK(now.run_at == second_at + 1h);
        CHECK(now.state == before.state);
        CHECK(now.held == before.held);
        CHECK(now.created == before.created);
        CHECK(now.changed == before.changed);
        CHECK(now.version == before.version + 1);
        CHECK(now.attempts == before.attempts);
        CHECK_FALSE(now.key_released);
        CHECK(w.store.find_by_key("k")->id == id);
        CHECK(w.store.list({}, t0).size() == 1);
        CHECK(announces(w.due, ax::alarm{id, w.lane(), second_at + 1h}) != now.held);
    };

    SECTION("keep") {
        auto const answer = submit(ax::on_conflict::keep);
        CHECK(answer.outcome == submit_outcome::kept);
        CHECK(answer.id == id);
        CHECK(answer.state == before.state);
        is_untouched();
    }
    SECTION("reject") {
        auto const answer = submit(ax::on_conflict::reject);
        CHECK(answer.outcome == submit_outcome::rejected);
        CHECK(answer.id == id);
        CHECK(answer.state == before.state);
        is_untouched();
    }
    SECTION("replace") {
        auto const answer = submit(ax::on_conflict::replace);
        if (in_flight) {
            has_passed(answer);
        } else if (ended) {
            CHECK(answer.outcome == submit_outcome::kept);
            CHECK(answer.id == id);
            is_untouched();
        } else {
            is_replaced(answer);
            CHECK(w.get(id).failures == 0);
            CHECK_FALSE(w.get(id).first_started.has_value());
        }
    }
    SECTION("debounce") {
        auto const answer = submit(ax::on_conflict::debounce);
        if (in_flight) {
            has_passed(answer);
        } else if (ended) {
            CHECK(answer.outcome == submit_outcome::kept);
            CHECK(answer.id == id);
            is_untouched();
        } else {
            is_replaced(answer);
            CHECK(w.get(id).failures == before.failures);
            CHECK(w.get(id).first_started == before.first_started);
        }
    }
    SECTION("throttle within the period") {
        auto const answer = submit(ax::on_conflict::throttle(30s + 1ms));
        CHECK(answer.outcome == submit_outcome::kept);
        CHECK(answer.id == id);
        CHECK(answer.state == before.state);
        is_untouched();
    }
    SECTION("throttle when the period is over") { has_passed(submit(ax::on_conflict::throttle(30s))); }
}

/// storage_writer 16: what a policy writes and leaves alone.
template <class Fixture>
void key_conflicts() {
    workbench<Fixture> w;

    SECTION("replace takes over all that was submitted, and keeps what the task was") {
        auto first = keyed(w, "first", {}, ax::key_scope::active);
        first.run_at = t0 + 1h;
        first.deadline = t0 + 2h;
        first.retry = "fixed(1s)";
        first.route_key = "r";
        first.schedule = "nightly";
        first.scheduled_at = t0;
        auto const id = w.add(first);
        auto second = keyed(w, "second", ax::on_conflict::replace);
        second.run_at = t0 + 10min;
        second.priority = ax::priority::critical;
        second.route_key = "s";
        second.route_order = ax::route_order::relaxed;
        second.deadline = t0 + 20min;
        second.retry = "fixed(2s)";
        auto const answer = w.insert({second}, t0 + 1s).at(0);
        CHECK(answer.outcome == submit_outcome::replaced);
        CHECK(answer.id == id);
        auto const now = w.get(id);
        CHECK(now.payload == "second");
        CHECK(now.run_at == t0 + 10min);
        CHECK(now.order_at == t0 + 10min);
        CHECK(now.priority == ax::priority_class::critical);
        CHECK(now.route_key == "s");
        CHECK(now.route_order == ax::route_ordering::relaxed);
        CHECK_FALSE(now.blocked);
        CHECK(now.deadline == t0 + 20min);
        CHECK(now.retry == "fixed(2s)");
        CHECK(now.created == t0);
        CHECK(now.schedule == "nightly");
        CHECK(now.key_scope == ax::key_scoping::active); // the scope is the holder's
        CHECK(now.version == 2);
        auto const urgent = w.lane(ax::priority_class::critical);
        CHECK(announces(w.due, ax::alarm{id, urgent, t0 + 10min}));
        CHECK(w.upcoming().empty()); // of the former class
        REQUIRE(w.store.upcoming({{}, urgent, {}}, ax::latest_time, 10).size() == 1);

        CHECK(w.expire(t0 + 15min).next == t0 + 20min);
        auto plain = keyed(w, "", ax::on_conflict::replace);
        CHECK(w.insert({plain}, t0 + 2s).at(0).id == id);
        CHECK(w.get(id).payload.empty());
        CHECK(w.get(id).route_key.empty());
        CHECK(w.get(id).route_order == ax::route_ordering::strict);
        CHECK(w.get(id).retry.empty());
        CHECK_FALSE(w.get(id).deadline.has_value());
        CHECK(w.get(id).run_at == t0 + 2s);
        CHECK(w.take(id, t0 + 2s).payload.empty());
    }
    SECTION("a replaced task runs at its new instant and not at the old one") {
        auto const id = w.add(keyed(w, "first"));
        auto second = keyed(w, "second", ax::on_conflict::replace);
        second.run_at = t0 + 1min;
        w.add(second);
        CHECK_FALSE(w.can_take(id, t0));
        CHECK(w.take(id, t0 + 1min).payload == "second");
    }
    SECTION("replace forgets the failures, so that the retries begin anew") {
        auto const id = holder(w, holder_in::failed);
        REQUIRE(w.get(id).failures == 1);
        w.add(keyed(w, "second", ax::on_conflict::replace));
        CHECK(w.get(id).failures == 0);
        CHECK(w.get(id).state == task_state::failed);
        CHECK(w.get(id).attempts == 1);
        auto const claimed = w.take(id);
        CHECK(claimed.payload == "second");
        w.finish(claimed, attempt_outcome::succeeded);
        CHECK(w.store.history(id).size() == 2);
    }
    SECTION("a new payload has no part in the deaths and errors of the old one") {
        auto const policy = GENERATE(as<ax::conflict_policy>{}, ax::on_conflict::replace, ax::on_conflict::debounce);
        auto const id = w.add(keyed(w, "first"));
        for (int i = 0; i != 4; ++i) { // twice among others, twice alone
            w.take(id);
            REQUIRE(w.reclaim(t0, node_b, 3).poisoned.empty());
        }
        REQUIRE(w.get(id).unclean_ends == 4);
        REQUIRE(w.get(id).lonely_deaths == 2);
        REQUIRE_FALSE(w.get(id).last_error.empty());
        auto second = keyed(w, "second", policy);
        second.run_at = t0;
        REQUIRE(w.insert({second}).at(0).outcome == submit_outcome::replaced);
        CHECK(w.get(id).unclean_ends == 0);
        CHECK(w.get(id).lonely_deaths == 0);
        CHECK(w.get(id).last_error.empty());
        CHECK(w.store.history(id).size() == 4); // what was, was
        auto const claimed = w.take(id);
        CHECK(claimed.payload == "second");
        CHECK_FALSE(claimed.lonely);
        CHECK(w.reclaim(t0, node_b, 1).poisoned.empty());
        CHECK(w.get(id).unclean_ends == 1);
        w.finish(w.take(id), attempt_outcome::failed);
        REQUIRE_FALSE(w.get(id).last_error.empty());
        w.insert({second});
        CHECK(w.get(id).last_error.empty());
        CHECK(w.get(id).state == task_state::failed);
    }
    SECTION("a task that leaves its route lets the next one go, and queues in the new one") {
        auto first = keyed(w, "first");
        first.route_key = "r";
        auto const id = w.add(first);
        auto const behind = w.add(w.task_of("r"));
        auto const there = w.add(w.task_of("s"));
        REQUIRE(w.get(behind).blocked);
        auto second = keyed(w, "second", ax::on_conflict::replace);
        second.route_key = "s";
        second.run_at = t0 + 1s;
        w.add(second);
        CHECK(announces(w.due, ax::alarm{behind, w.lane(), t0}));
        CHECK_FALSE(announces(w.due, id));
        CHECK_FALSE(w.get(behind).blocked);
        CHECK(w.get(id).blocked);
        CHECK_FALSE(w.get(there).blocked);

        second.run_at = t0 - 1s; // before the one that is first there
        w.add(second);
        CHECK(announces(w.due, ax::alarm{id, w.lane(), t0 - 1s}));
        CHECK_FALSE(w.get(id).blocked);
        CHECK(w.get(there).blocked);

        second.route_key.clear();
        w.add(second);
        CHECK_FALSE(w.get(id).blocked);
        CHECK_FALSE(w.get(there).blocked);
        CHECK(announces(w.due, there));
        CHECK(announces(w.due, id));
    }
    SECTION("behind a task that is in flight the replaced one stays blocked") {
        auto const flying = w.take(w.add(w.task_of("r")));
        auto first = keyed(w, "first");
        auto const id = w.add(first);
        auto second = keyed(w, "second", ax::on_conflict::replace);
        second.route_key = "r";
        second.run_at = t0 - 1h;
        w.add(second);
        CHECK(w.get(id).blocked);
        CHECK(w.due.empty());
        auto const freed = w.finish(flying, attempt_outcome::succeeded);
        CHECK(announces(freed.due, id));
        CHECK(w.can_take(id));
    }
    SECTION("a task that is put off within its route lets others pass") {
        auto first = keyed(w, "first");
        first.route_key = "r";
        auto const id = w.add(first);
        auto const behind = w.add(w.task_of("r"));
        auto second = keyed(w, "second",
                            GENERATE(as<ax::conflict_policy>{}, ax::on_conflict::replace, ax::on_conflict::debounce));
        second.route_key = "r";
        second.run_at = t0 + 1min;
        w.add(second);
        CHECK(w.get(id).order_at == t0 + 1min);
        CHECK(w.get(id).blocked);
        CHECK(announces(w.due, ax::alarm{behind, w.lane(), t0}));
        CHECK(w.can_take(behind));
    }
    SECTION("a held task stays held, and gets a place by its new order") {
        auto first = keyed(w, "first");
        first.route_key = "r";
        auto const id = w.add(first);
        w.finish(w.take(id), attempt_outcome::held);
        auto const behind = w.add(w.task_of("r"));
        REQUIRE(w.get(behind).blocked); // strict: a held one keeps its place
        auto second = keyed(w, "second", ax::on_conflict::replace);
        second.route_key = "r";
        second.route_order = ax::route_order::relaxed;
        w.add(second);
        CHECK(w.get(id).held);
        CHECK_FALSE(w.get(behind).blocked);
        CHECK(announces(w.due, behind));
        CHECK_FALSE(announces(w.due, id));
        w.finish(w.take(behind), attempt_outcome::succeeded);
        CHECK(announces(w.retry(id).due, id));
        CHECK(w.take(id).payload == "second");
    }

    SECTION("debounce never moves a task to an earlier instant") {
        auto first = keyed(w, "first");
        first.run_at = t0 + 1h;
        first.route_key = "r";
        first.priority = ax::priority::high;
        first.retry = "fixed(1s)";
        auto const id = w.add(first);
        auto second = keyed(w, "second", ax::on_conflict::debounce);
        second.delay = 1min;
        second.route_key = "s";
        second.retry = "fixed(2s)";
        CHECK(w.insert({second}, t0 + 1s).at(0).outcome == submit_outcome::replaced);
        auto const now = w.get(id);
        CHECK(now.run_at == t0 + 1h);
        CHECK(now.order_at == t0 + 1h);
        CHECK(now.payload == "second");
        CHECK(now.version == 2);
        CHECK(now.route_key == "r");
        CHECK(now.priority == ax::priority_class::high);
        CHECK(now.retry == "fixed(1s)");
        CHECK(announces(w.due, ax::alarm{id, w.lane(ax::priority_class::high), t0 + 1h}));
    }
    SECTION("debounce runs the last of many once, when they have ceased") {
        auto call = keyed(w, "0", ax::on_conflict::debounce);
        call.delay = 10s;
        auto const id = w.add(call);
        for (int i = 1; i <= 20; ++i) {
            call.payload = std::to_string(i);
            CHECK(w.insert({call}, t0 + i * 5s).at(0).id == id);
            CHECK_FALSE(w.can_take(id, t0 + i * 5s));
        }
        CHECK_FALSE(w.can_take(id, t0 + 110s - 1ms));
        CHECK(w.take(id, t0 + 110s).payload == "20");
        CHECK(w.store.list({}, t0).size() == 1);
    }
    SECTION("debounce keeps the later of two deadlines, so that what is put off is not dead when it is due") {
        auto first = keyed(w, "first", ax::on_conflict::debounce);
        first.deadline = t0 + 1min;
        auto const id = w.add(first);
        auto second = first;
        second.run_at = t0 + 2min;
        second.deadline = t0 + 3min;
        w.add(second);
        CHECK(w.get(id).deadline == t0 + 3min);
        second.deadline = t0 + 150s;
        w.add(second);
        CHECK(w.get(id).deadline == t0 + 3min);
        CHECK(w.expire(t0 + 2min).dead.empty());
        second.deadline.reset();
        w.add(second);
        CHECK_FALSE(w.get(id).deadline.has_value());
        second.deadline = t0 + 3min;
        w.add(second);
        CHECK_FALSE(w.get(id).deadline.has_value());
    }

    SECTION(
        "a task keeps its type: one of another is rejected while the holder waits, and has its own row after that") {
        auto const policy = GENERATE(as<ax::conflict_policy>{}, ax::on_conflict::replace, ax::on_conflict::debounce);
        auto const id = w.add(keyed(w, "first"));
        auto other = keyed(w, "second", policy);
        other.type = w.type("other");
        auto const answer = w.insert({other}).at(0);
        CHECK(answer.outcome == submit_outcome::rejected);
        CHECK(answer.id == id);
        CHECK(w.get(id).payload == "first");
        CHECK(w.get(id).version == 1);
        w.take(id);
        auto const passed = w.insert({other}).at(0);
        CHECK(passed.outcome == submit_outcome::inserted);
        CHECK(w.get(passed.id).type == "other");
    }

    SECTION("who runs on without its key ends as its attempt does, and its key stays with the new task") {
        auto const scope = GENERATE(ax::key_scope::kept, ax::key_scope::active);
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::failed, attempt_outcome::cancelled);
        auto const old = w.add(keyed(w, "first", {}, scope));
        auto const claimed = w.take(old);
        auto const next = w.add(keyed(w, "second", ax::on_conflict::replace));
        w.finish(claimed, outcome);
        CHECK(w.get(old).key_released);
        CHECK(w.store.find_by_key("k")->id == next);
        CHECK(w.insert({keyed(w, "third", ax::on_conflict::replace)}).at(0).id == next);
        w.finish(w.take(next), attempt_outcome::succeeded);
        CHECK(w.insert({keyed(w, "fourth", ax::on_conflict::replace)}).at(0).outcome == submit_outcome::kept);
    }
    SECTION("a task without its key that waits for a retry runs beside the new one") {
        auto const old = w.add(keyed(w, "first"));
        auto const claimed = w.take(old);
        auto const next = w.add(keyed(w, "second", ax::on_conflict::replace));
        w.finish(claimed, attempt_outcome::failed);
        CHECK(w.can_take(next));
        CHECK(w.can_take(old, t0 + 60s));
    }

    SECTION("throttle stores one task per period, counted from the first one's submit") {
        auto const call = keyed(w, "", ax::on_conflict::throttle(10s));
        std::vector<int> stored;
        for (int second = 0; second != 35; ++second)
            if (w.insert({call}, t0 + second * 1s).at(0).outcome == submit_outcome::inserted) stored.push_back(second);
        CHECK(stored == std::vector{0, 10, 20, 30});
        CHECK(w.upcoming().size() == 4);
    }
    SECTION("throttle counts a period to its end, also where the key is free before") {
        auto const call = keyed(w, "", ax::on_conflict::throttle(10s), ax::key_scope::active);
        auto const id = w.add(call);
        w.finish(w.take(id), attempt_outcome::succeeded);
        auto const early = w.insert({call}, t0 + 10s - 1ms).at(0);
        CHECK(early.outcome == submit_outcome::kept);
        CHECK(early.id == id);
        CHECK(early.state == task_state::succeeded);
        auto const late = w.insert({call}, t0 + 10s).at(0);
        CHECK(late.outcome == submit_outcome::inserted);
        w.finish(w.take(late.id, t0 + 10s), attempt_outcome::succeeded);
        CHECK(w.insert({call}, t0 + 19s).at(0).id == late.id); // the latest counts
    }
    SECTION("throttle counts from the latest task also where an older one has got the key back") {
        auto const call = keyed(w, "", ax::on_conflict::throttle(10s), ax::key_scope::active);
        auto const old = w.add(call);
        w.finish(w.take(old), attempt_outcome::exhausted);
        auto const latest = w.insert({call}, t0 + 1h).at(0);
        REQUIRE(latest.outcome == submit_outcome::inserted);
        w.finish(w.take(latest.id, t0 + 1h), attempt_outcome::succeeded);
        REQUIRE(w.retry(old).outcome == change_outcome::done);
        REQUIRE_FALSE(w.get(old).key_released);

        auto const early = w.insert({call}, t0 + 1h + 10s - 1ms).at(0);
        CHECK(early.outcome == submit_outcome::kept);
        CHECK(early.id == latest.id);
        CHECK(early.state == task_state::succeeded);
        CHECK_FALSE(w.get(old).key_released);
        auto const late = w.insert({call}, t0 + 1h + 10s).at(0);
        CHECK(late.outcome == submit_outcome::inserted);
        CHECK(w.get(old).key_released);
        CHECK(w.store.find_by_key("k")->id == late.id);
    }
    SECTION("a clock that was set back holds a throttled key for no longer than a period") {
        auto const call = keyed(w, "", ax::on_conflict::throttle(10s));
        auto const id = w.add(call, t0 + 1h);
        CHECK(w.insert({call}, t0 + 1h - 9s).at(0).id == id);
        CHECK(w.insert({call}, t0).at(0).outcome == submit_outcome::inserted);
    }

    SECTION("within one call each task meets those before it") {
        auto const three = [&](ax::conflict_policy policy) {
            std::vector<ax::new_task> tasks;
            for (auto const* payload : {"1", "2", "3"}) {
                tasks.push_back(keyed(w, payload, policy));
                tasks.back().run_at = t0 + 1s * static_cast<int>(tasks.size());
            }
            return w.insert(tasks);
        };
        auto const is = [&](std::vector<ax::insertion> const& answers, submit_outcome outcome, char const* payload) {
            REQUIRE(answers.size() == 3);
            CHECK(answers[0].outcome == submit_outcome::inserted);
            CHECK(answers[1].outcome == outcome);
            CHECK(answers[2].outcome == outcome);
            CHECK(answers[1].id == answers[0].id);
            CHECK(answers[2].id == answers[0].id);
            CHECK(w.get(answers[0].id).payload == payload);
            CHECK(w.store.list({}, t0).size() == 1);
        };
        SECTION("keep") { is(three(ax::on_conflict::keep), submit_outcome::kept, "1"); }
        SECTION("reject") { is(three(ax::on_conflict::reject), submit_outcome::rejected, "1"); }
        SECTION("replace") {
            is(three(ax::on_conflict::replace), submit_outcome::replaced, "3");
            CHECK(w.get(ax::task_id{1}).run_at == t0 + 3s);
        }
        SECTION("debounce") {
            is(three(ax::on_conflict::debounce), submit_outcome::replaced, "3");
            CHECK(w.get(ax::task_id{1}).run_at == t0 + 3s);
        }
        SECTION("throttle") { is(three(ax::on_conflict::throttle(1s)), submit_outcome::kept, "1"); }
    }
    SECTION("follow-ups meet the holder at the commit that records the success") {
        auto const policy = GENERATE(as<ax::conflict_policy>{}, ax::on_conflict::keep, ax::on_conflict::replace);
        auto const id = w.add(keyed(w, "first"));
        auto end = w.end_of(w.take(w.add()), attempt_outcome::succeeded, t0);
        end.follow_ups = {keyed(w, "second", policy), keyed(w, "third", policy)};
        end.follow_ups[1].run_at = t0 + 1min;
        auto const settled = w.settle({end}, t0);
        bool const replaced = policy == ax::on_conflict::replace;
        CHECK(w.get(id).payload == (replaced ? "third" : "first"));
        CHECK(announces(settled.due, ax::alarm{id, w.lane(), t0 + 1min}) == replaced);
        CHECK(w.store.list({}, t0).size() == 2);
    }
    SECTION("a follow-up that renews its own task's key finds it free, or taken, as the scope says") {
        auto const scope = GENERATE(ax::key_scope::kept, ax::key_scope::active);
        auto const id = w.add(keyed(w, "first", {}, scope));
        auto end = w.end_of(w.take(id), attempt_outcome::succeeded, t0);
        end.follow_ups = {keyed(w, "second", ax::on_conflict::replace, scope)};
        w.settle({end}, t0);
        CHECK(w.store.list({}, t0).size() == (scope == ax::key_scope::active ? 2 : 1));
    }
    SECTION("an occurrence that exists is kept, whatever its key's policy says, and no key is lost for it") {
        auto const policy = GENERATE(as<ax::conflict_policy>{}, ax::on_conflict::replace, ax::on_conflict::debounce,
                                     ax::on_conflict::throttle(1ms));
        auto occurrence = w.task("there");
        occurrence.schedule = "nightly";
        occurrence.scheduled_at = t0;
        auto const there = w.add(occurrence);
        CAPTURE(to_string(policy.action()));
        auto const id = holder(w, GENERATE(holder_in::ready, holder_in::running));
        auto again = keyed(w, "again", policy);
        again.schedule = "nightly";
        again.scheduled_at = t0;
        auto const answer = w.insert({again}, t0 + 1s).at(0);
        CHECK(answer.outcome == submit_outcome::kept);
        CHECK(answer.id == there);
        CHECK(w.get(id).payload == "first");
        CHECK(w.store.find_by_key("k")->id == id);
        CHECK(w.add(w.task()) == ax::task_id{3});
    }

    SECTION("when the transaction is undone, every key is where it was") {
        struct refusal : std::runtime_error {
            using std::runtime_error::runtime_error;
        };
        auto const policy =
            GENERATE(as<ax::conflict_policy>{}, ax::on_conflict::keep, ax::on_conflict::reject,
                     ax::on_conflict::replace, ax::on_conflict::debounce, ax::on_conflict::throttle(1ms));
        auto const which = GENERATE(from_range(holders));
        auto const id = holder(w, which, GENERATE(ax::key_scope::kept, ax::key_scope::active));
        auto const before = w.get(id);
        auto const routed = w.add(w.task_of("r"));
        auto const upcoming = w.upcoming();
        auto made = keyed(w, "second", policy);
        made.route_key = "r";
        made.run_at = t0 - 1h;
        auto free = made;
        free.key = "free";
        CHECK_THROWS_AS(w.write([&](auto& verbs) {
            ax::alarms due;
            verbs.insert(std::vector{made, free, made}, t0 + 1s, due);
            verbs.insert(std::vector{free}, t0 + 1s, due);
            verbs.cancel(id, t0 + 1s);
            verbs.retry(id, t0 + 1s);
            throw refusal("enough");
        }),
                        refusal);
        auto const after = w.get(id);
        CHECK(after.version == before.version);
        CHECK(after.payload == "first");
        CHECK(after.run_at == before.run_at);
        CHECK(after.route_key.empty());
        CHECK(after.key_released == before.key_released);
        CHECK_FALSE(w.get(routed).blocked);
        CHECK(w.upcoming() == upcoming);
        CHECK(w.store.find_by_key("k")->id == id);
        CHECK_FALSE(w.store.find_by_key("free").has_value());
        CHECK(w.store.list({}, t0).size() == 2);
        CHECK(w.insert({keyed(w, "third")}).at(0).id == (before.key_released ? ax::task_id{3} : id));
    }

    SECTION("whatever threads submit at once, a key has exactly one holder") {
        // Bounded by the work: each thread does a fixed number of short transactions.
        std::array const policies{ax::on_conflict::replace, ax::on_conflict::debounce, ax::on_conflict::throttle(1ms),
                                  ax::on_conflict::reject};
        constexpr int rounds = 60;
        auto const work = [&](std::size_t thread) {
            auto made = keyed(w, "", policies[thread], thread % 2 == 0 ? ax::key_scope::kept : ax::key_scope::active);
            for (int round = 0; round != rounds; ++round) {
                auto const now = t0 + round * 2ms;
                made.run_at = t0;
                made.payload = std::to_string(thread) + "/" + std::to_string(round);
                w.store.transact(ax::commit::lazy, [&](auto& verbs) {
                    ax::alarms due;
                    auto const answer = verbs.insert(std::span(&made, 1), now, due);
                    if (round % 3 != 0) return; // now and then it is claimed, and ended where it was
                    ax::claim_request const request{answer[0].id, false};
                    auto const claimed = verbs.claim(std::span(&request, 1), {node_a, now, now, 0}).claimed;
                    if (claimed.empty() || round % 2 != 0) return;
                    auto const end = w.end_of(claimed[0], attempt_outcome::succeeded, now);
                    verbs.settle(std::span(&end, 1), now);
                });
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i != policies.size(); ++i) threads.emplace_back(work, i);
        for (auto& thread : threads) thread.join();

        ax::task_filter all;
        all.limit = 10'000;
        std::size_t holding = 0;
        std::size_t released = 0;
        ids holder_found;
        for (auto const& task : w.store.list(all, t0)) {
            CHECK(task.key == "k");
            ++(task.key_released ? released : holding);
            if (!task.key_released) holder_found.push_back(task.id);
        }
        CHECK(released > 0);
        CHECK(holding <= 1); // none, where the last to end had let it go
        if (holding == 1) CHECK(ids{w.store.find_by_key("k")->id} == holder_found);
        auto const last = w.insert({keyed(w, "last")}, t0).at(0);
        CHECK((last.outcome == submit_outcome::inserted) == (holding == 0));
    }
}

/// storage_writer 17: for how long a key is held.
template <class Fixture>
void key_scopes() {
    workbench<Fixture> w;
    using ax::key_scope::active;
    auto const again = [&] { return w.insert({keyed(w, "second", {}, active)}).at(0).outcome; };

    SECTION("an active key is free after every end, and a kept one after none") {
        auto const scope = GENERATE(ax::key_scope::kept, ax::key_scope::active);
        auto const expect_end = [&](ax::task_id id) {
            REQUIRE(ax::is_terminal(w.state(id)));
            CHECK(w.get(id).key == "k");
            CHECK(w.get(id).key_scope == scope);
            CHECK(w.get(id).key_released == (scope == active));
            CHECK(w.store.find_by_key("k")->id == id);
            CHECK(again() == (scope == active ? submit_outcome::inserted : submit_outcome::kept));
            CHECK((w.store.find_by_key("k")->id == id) == (scope != active));
        };
        auto made = keyed(w, "first", {}, scope);
        SECTION("by an attempt") {
            auto const outcome =
                GENERATE(attempt_outcome::succeeded, attempt_outcome::exhausted, attempt_outcome::cancelled,
                         attempt_outcome::skipped, attempt_outcome::expired);
            made.route_key = GENERATE("", "r");
            bool const started = GENERATE(true, false);
            auto const log = GENERATE("", "line");
            auto const id = w.add(made);
            auto const claimed = w.take(id, t0, node_a, true);
            if (started) w.start(claimed, t0);
            auto end = w.end_of(claimed, outcome, t0);
            end.log = log;
            REQUIRE(w.settle({end}, t0).accepted == std::vector{true});
            expect_end(id);
        }
        SECTION("by a cancel") {
            auto const id = w.add(made);
            if (GENERATE(true, false)) w.finish(w.take(id), attempt_outcome::failed);
            w.cancel(id);
            expect_end(id);
        }
        SECTION("by its deadline") {
            made.deadline = t0 + 1s;
            auto const id = w.add(made);
            REQUIRE(w.expire(t0 + 1s).dead == ids{id});
            expect_end(id);
        }
        SECTION("as poison") {
            auto const id = w.add(made);
            for (int death = 0; death != 3; ++death) {
                w.take(id, t0, node_a);
                w.reclaim(t0, node_b, 1);
            }
            REQUIRE(w.get(id).last_error.starts_with("poison"));
            expect_end(id);
        }
    }
    SECTION("an active key is held through all that is no end") {
        auto const id = w.add(keyed(w, "first", {}, active));
        auto const outcome = GENERATE(attempt_outcome::failed, attempt_outcome::snoozed, attempt_outcome::interrupted,
                                      attempt_outcome::held, attempt_outcome::released);
        CHECK(again() == submit_outcome::kept);
        auto const claimed = w.take(id);
        CHECK(claimed.key_scope == active);
        CHECK(again() == submit_outcome::kept);
        w.start(claimed, t0);
        CHECK(again() == submit_outcome::kept);
        w.finish(claimed, outcome);
        CHECK(again() == submit_outcome::kept);
        if (outcome == attempt_outcome::held) w.retry(id);
        w.take(id, t0 + 1h);
        w.reclaim();
        CHECK(w.state(id) == task_state::ready);
        CHECK(again() == submit_outcome::kept);
        w.reschedule(id, t0);
        w.finish(w.take(id), attempt_outcome::succeeded);
        CHECK(again() == submit_outcome::inserted);
    }
    SECTION("the scope is that of the task that holds the key") {
        auto const id = w.add(keyed(w, "first"));
        CHECK(w.insert({keyed(w, "second", ax::on_conflict::replace, active)}).at(0).id == id);
        w.finish(w.take(id), attempt_outcome::succeeded);
        CHECK(again() == submit_outcome::kept);
    }
    SECTION("an active scope without a key means nothing") {
        auto made = w.task();
        made.key_scope = active;
        auto const id = w.add(made);
        w.finish(w.take(id), attempt_outcome::succeeded);
        CHECK_FALSE(w.get(id).key_released);
        CHECK(w.get(id).key.empty());
        CHECK_FALSE(w.store.find_by_key("").has_value());
    }

    SECTION("retry() takes a key back that is free") {
        auto const id = holder(w, GENERATE(holder_in::dead, holder_in::cancelled), active);
        REQUIRE(w.get(id).key_released);
        auto const answer = w.retry(id);
        CHECK(answer.outcome == change_outcome::done);
        CHECK(announces(answer.due, id));
        CHECK_FALSE(w.get(id).key_released);
        CHECK(again() == submit_outcome::kept);
        w.finish(w.take(id), attempt_outcome::succeeded);
        CHECK(w.get(id).key_released);
        CHECK(again() == submit_outcome::inserted);
    }
    SECTION("retry() of a task whose key has another holder changes nothing") {
        auto const id = holder(w, GENERATE(holder_in::dead, holder_in::cancelled), active);
        auto const before = w.get(id);
        auto const next = w.add(keyed(w, "second", {}, active));
        auto const answer = w.retry(id);
        CHECK(answer.outcome == change_outcome::wrong_state);
        CHECK(answer.state == before.state);
        CHECK(answer.due.empty());
        CHECK(w.get(id).version == before.version);
        CHECK(w.get(id).key_released);
        CHECK(w.store.find_by_key("k")->id == next);
        w.finish(w.take(next), attempt_outcome::succeeded);
        CHECK(w.store.find_by_key("k")->id == next); // the latest that had it
        CHECK(w.retry(id).outcome == change_outcome::done);
        CHECK(w.store.find_by_key("k")->id == id);
    }
    SECTION("retry() of a task whose key a throttle has passed on changes nothing") {
        auto const id = holder(w, holder_in::dead);
        auto const next = w.insert({keyed(w, "second", ax::on_conflict::throttle(1s))}, t0 + 1s).at(0).id;
        REQUIRE(next != id);
        CHECK(w.retry(id).outcome == change_outcome::wrong_state);
        w.cancel(next);
        CHECK(w.retry(id).outcome == change_outcome::wrong_state); // a kept key is held by what has ended, too
    }
    SECTION("a held task that has lost its key goes on without it") {
        auto const id = holder(w, holder_in::held);
        w.insert({keyed(w, "second", ax::on_conflict::throttle(1s))}, t0 + 1s);
        REQUIRE(w.get(id).key_released);
        CHECK(w.retry(id).outcome == change_outcome::done);
        CHECK(w.get(id).key_released);
        CHECK(w.can_take(id));
    }
    SECTION("find_by_key() finds the holder, else the latest that had the key") {
        CHECK_FALSE(w.store.find_by_key("k").has_value());
        ids all;
        for (int i = 0; i != 3; ++i) {
            all.push_back(w.add(keyed(w, "", {}, active)));
            CHECK(w.store.find_by_key("k")->id == all.back());
            w.cancel(all.back());
            CHECK(w.store.find_by_key("k")->id == all.back());
        }
        w.retry(all[0]);
        CHECK(w.store.find_by_key("k")->id == all[0]);
        CHECK(w.store.find_by_key("k")->key == "k");
        CHECK_FALSE(w.store.find_by_key("K").has_value());
    }

    if constexpr (Fixture::durable) {
        SECTION("who holds a key and who had it is there when the store is opened again") {
            auto const had = holder(w, holder_in::succeeded, active);
            auto const passed = w.add(keyed(w, "passed", {}, active));
            auto const claimed = w.take(passed);
            auto call = keyed(w, "put off", ax::on_conflict::debounce);
            auto const holds = w.add(call);
            call.run_at = t0 + 1h;
            w.add(call);
            w.store = w.fixture.reopen(std::move(w.store));
            CHECK(w.get(had).key_released);
            CHECK(w.get(had).key_scope == active);
            CHECK(w.get(passed).key_released);
            CHECK_FALSE(w.get(holds).key_released);
            CHECK(w.get(holds).run_at == t0 + 1h);
            CHECK(w.store.find_by_key("k")->id == holds);
            w.finish(claimed, attempt_outcome::exhausted);
            CHECK(w.retry(passed).outcome == change_outcome::wrong_state);
            CHECK(w.insert({call}).at(0).id == holds);
        }
    }
}

} // namespace conformance

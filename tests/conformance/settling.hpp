// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 7 and 8: the fence, what each outcome writes, follow-ups.
template <class Fixture>
void settling() {
    workbench<Fixture> w;

    SECTION("an old owner cannot settle a task that was claimed again") {
        auto const id = w.add();
        auto const old = w.take(id, t0, node_a);
        w.reclaim(t0 + 31s);
        CHECK(w.settle({w.end_of(old, attempt_outcome::succeeded, t0 + 32s)}, t0 + 32s).accepted == std::vector{false});
        auto const current = w.take(id, t0 + 31s, node_b);
        auto const before = w.get(id);
        auto const refused = w.settle({w.end_of(old, attempt_outcome::failed, t0 + 32s)}, t0 + 32s);
        CHECK(refused.accepted == std::vector{false});
        CHECK(refused.due.empty());
        CHECK(w.get(id).version == before.version);
        CHECK(w.state(id) == task_state::dispatched);
        CHECK(w.store.history(id).size() == 2);
        CHECK(w.settle({w.end_of(current, attempt_outcome::succeeded, t0 + 33s)}, t0 + 33s).accepted ==
              std::vector{true});
    }
    SECTION("an attempt is settled once") {
        auto const claimed = w.take(w.add());
        auto const end = w.end_of(claimed, attempt_outcome::succeeded, t0);
        auto const answer = w.settle({end, end}, t0);
        CHECK(answer.accepted == std::vector{true, false});
        CHECK(w.settle({end}, t0).accepted == std::vector{false});
        CHECK(w.store.history(claimed.id).size() == 1);
    }
    SECTION("an unknown task is refused and the others are settled") {
        auto const claimed = w.take(w.add());
        auto unknown = w.end_of(claimed, attempt_outcome::succeeded, t0);
        unknown.id = ax::task_id{77};
        auto const answer = w.settle({unknown, w.end_of(claimed, attempt_outcome::succeeded, t0)}, t0);
        CHECK(answer.accepted == std::vector{false, true});
        REQUIRE(answer.states.size() == 2);
        CHECK(answer.states[1] == task_state::succeeded);
    }
    SECTION("nor while another has it, with whatever outcome, whether or not that one has started") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::failed, attempt_outcome::exhausted);
        auto const started = GENERATE(false, true);
        auto const id = w.add();
        auto const old = w.take(id, t0, node_a);
        w.reclaim(t0 + 31s);
        auto const current = w.take(id, t0 + 31s, node_b);
        if (started) w.start(current, t0 + 31s);
        auto const before = w.get(id);
        auto late = w.end_of(old, outcome, t0 + 32s);
        late.started = t0; // as the end of most attempts says
        CHECK(w.settle({late}, t0 + 32s).accepted == std::vector{false});
        CHECK(w.get(id).version == before.version);
        CHECK(w.state(id) == before.state);
        CHECK(w.settle({w.end_of(current, attempt_outcome::succeeded, t0 + 33s)}, t0 + 33s).accepted ==
              std::vector{true});
    }
    SECTION("a started attempt is settled under the fence of its claim, though the version is higher") {
        auto const claimed = w.take(w.add());
        w.start(claimed, t0 + 1s);
        w.finish(claimed, attempt_outcome::succeeded, t0 + 2s);
        CHECK(w.get(claimed.id).version == 4);
    }
    SECTION("the instants of an end are its own, not those of the call that records it") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::exhausted, attempt_outcome::failed);
        auto const claimed = w.take(w.add());
        CHECK(w.settle({w.end_of(claimed, outcome, t0 + 1s)}, t0 + 9s).accepted == std::vector{true});
        auto const stored = w.get(claimed.id);
        CHECK(stored.changed == t0 + 1s);
        if (ax::is_terminal(stored.state)) CHECK(stored.finished == t0 + 1s);
        REQUIRE(w.store.history(claimed.id).size() == 1);
        CHECK(w.store.history(claimed.id)[0].end == t0 + 1s);
    }

    SECTION("succeeded ends the task with its result") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::failed);
        auto const claimed = w.take(id, t0 + 1min);
        auto end = w.end_of(claimed, attempt_outcome::succeeded, t0 + 2min);
        end.started = t0 + 61s;
        end.result = "{\"paid\":true}";
        auto const answer = w.settle({end}, t0 + 2min);
        CHECK(answer.states == std::vector{task_state::succeeded});
        CHECK(answer.due.empty());
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::succeeded);
        CHECK(stored.result == "{\"paid\":true}");
        CHECK(stored.finished == t0 + 2min);
        CHECK(stored.changed == t0 + 2min);
        CHECK(stored.started == t0 + 61s);
        CHECK(stored.version == claimed.version + 1);
        CHECK(stored.failures == 1);
        CHECK(stored.attempts == 2);
        CHECK(stored.node == node_a);
    }
    SECTION("an error is kept until a success clears it") {
        auto const id = w.add();
        auto end = w.end_of(w.take(id), attempt_outcome::failed, t0);
        end.error = "no route to host";
        w.settle({end}, t0);
        CHECK(w.get(id).last_error == "no route to host");
        w.finish(w.take(id, t0 + 1min), attempt_outcome::snoozed, t0 + 1min); // says nothing
        CHECK(w.get(id).last_error == "no route to host");
        w.finish(w.take(id, t0 + 1h), attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.get(id).last_error.empty());
        CHECK(w.store.history(id).at(0).error == "no route to host");
    }
    SECTION("failed is tried again, counts as a failure and gives an alarm") {
        auto const id = w.add();
        auto const answer = w.finish(w.take(id), attempt_outcome::failed, t0 + 1s);
        CHECK(answer.states[0] == task_state::failed);
        CHECK(announces(answer.due, ax::alarm{id, w.lane(), t0 + 61s}));
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::failed);
        CHECK(stored.run_at == t0 + 61s);
        CHECK(stored.failures == 1);
        CHECK(stored.interruptions == 0);
        CHECK(stored.snoozes == 0);
        CHECK(stored.changed == t0 + 1s);
        CHECK_FALSE(stored.finished.has_value());
    }
    SECTION("exhausted is dead and counts as a failure") {
        auto const id = w.add();
        auto const answer = w.finish(w.take(id), attempt_outcome::exhausted, t0 + 1s);
        CHECK(answer.states[0] == task_state::dead);
        CHECK(answer.due.empty());
        CHECK(w.get(id).failures == 1);
        CHECK(w.get(id).finished == t0 + 1s);
    }
    SECTION("snoozed comes again later and uses up nothing but a snooze") {
        auto const id = w.add();
        auto const answer = w.finish(w.take(id), attempt_outcome::snoozed, t0 + 1s);
        CHECK(answer.states[0] == task_state::ready);
        CHECK(announces(answer.due, ax::alarm{id, w.lane(), t0 + 61s}));
        auto const stored = w.get(id);
        CHECK(stored.run_at == t0 + 61s);
        CHECK(stored.snoozes == 1);
        CHECK(stored.failures == 0);
        CHECK(stored.interruptions == 0);
        CHECK(stored.attempts == 1);
    }
    SECTION("interrupted is due again at once and counts as an interruption") {
        auto const id = w.add();
        auto const answer = w.finish(w.take(id, t0 + 5s), attempt_outcome::interrupted, t0 + 9s);
        CHECK(answer.states[0] == task_state::ready);
        CHECK(announces(answer.due, ax::alarm{id, w.lane(), t0}));
        CHECK(w.get(id).run_at == t0);
        CHECK(w.get(id).interruptions == 1);
        CHECK(w.get(id).failures == 0);
    }
    SECTION("held waits for a person, without an alarm") {
        auto const id = w.add();
        auto const answer = w.finish(w.take(id, t0, node_a, true), attempt_outcome::held, t0 + 9s);
        CHECK(answer.states[0] == task_state::ready);
        CHECK_FALSE(announces(answer.due, id));
        auto const stored = w.get(id);
        CHECK(stored.held);
        CHECK(stored.interruptions == 1);
        CHECK_FALSE(stored.hold_on_interrupt);
        CHECK(w.upcoming().empty());
    }
    SECTION("cancelled, skipped and expired end the task and count nothing") {
        auto const [outcome, state] = GENERATE(std::pair{attempt_outcome::cancelled, task_state::cancelled},
                                               std::pair{attempt_outcome::skipped, task_state::skipped},
                                               std::pair{attempt_outcome::expired, task_state::dead});
        auto const id = w.add();
        auto const answer = w.finish(w.take(id), outcome, t0 + 1s);
        CHECK(answer.states[0] == state);
        CHECK(answer.due.empty());
        auto const stored = w.get(id);
        CHECK(stored.state == state);
        CHECK(stored.finished == t0 + 1s);
        CHECK(stored.failures == 0);
        CHECK(stored.interruptions == 0);
        CHECK(stored.snoozes == 0);
    }
    SECTION("released uses up nothing and leaves no trace in the history") {
        auto const id = w.add(w.task_at(t0 + 40ms));
        auto const claimed = w.claim({{id, true}}, {node_a, t0, t0 + 50ms, 0}).claimed.at(0);
        auto const answer = w.finish(claimed, attempt_outcome::released, t0 + 1ms);
        CHECK(answer.states[0] == task_state::ready);
        CHECK(announces(answer.due, ax::alarm{id, w.lane(), t0 + 40ms}));
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::ready);
        CHECK(stored.attempts == 0);
        CHECK(stored.interruptions == 0);
        CHECK(stored.run_at == t0 + 40ms);
        CHECK(stored.version == claimed.version + 1);
        CHECK_FALSE(stored.hold_on_interrupt);
        CHECK_FALSE(stored.started.has_value());
        CHECK(w.store.history(id).empty());
    }
    SECTION("every outcome is accepted from running as well") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::failed, attempt_outcome::exhausted,
                                      attempt_outcome::snoozed, attempt_outcome::interrupted, attempt_outcome::held,
                                      attempt_outcome::cancelled, attempt_outcome::skipped, attempt_outcome::expired,
                                      attempt_outcome::released);
        auto const claimed = w.take(w.add());
        w.start(claimed, t0 + 1s);
        w.finish(claimed, outcome, t0 + 2s);
        CHECK_FALSE(ax::is_active(w.state(claimed.id)));
    }
    SECTION("every end but released forgets unclean ends") {
        auto const id = w.add();
        w.take(id);
        w.reclaim();
        CHECK(w.get(id).unclean_ends == 1);
        w.finish(w.take(id), attempt_outcome::released);
        CHECK(w.get(id).unclean_ends == 1);
        w.finish(w.take(id), attempt_outcome::interrupted);
        CHECK(w.get(id).unclean_ends == 0);
    }
    SECTION("the first start is remembered though it was told with the end") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::failed, t0 + 1s);
        w.finish(w.take(id, t0 + 2min), attempt_outcome::failed, t0 + 2min);
        CHECK(w.get(id).first_started == t0 + 1s);
        CHECK(w.get(id).started == t0 + 2min);
    }

    SECTION("follow-ups are inserted with a success") {
        auto const claimed = w.take(w.add());
        auto end = w.end_of(claimed, attempt_outcome::succeeded, t0 + 1s);
        auto later = w.task("later");
        later.delay = 10s;
        end.follow_ups = {w.task("now"), later};
        auto const answer = w.settle({end}, t0 + 2s);
        CHECK(announces(answer.due, ax::alarm{ax::task_id{2}, w.lane(), t0 + 2s}));
        CHECK(announces(answer.due, ax::alarm{ax::task_id{3}, w.lane(), t0 + 12s}));
        CHECK(w.get(ax::task_id{2}).payload == "now");
        CHECK(w.get(ax::task_id{2}).created == t0 + 2s);
        CHECK(w.get(ax::task_id{3}).payload == "later");
        CHECK(w.get(ax::task_id{3}).run_at == t0 + 12s);
    }
    SECTION("follow-ups are left out with every other outcome") {
        auto const outcome = GENERATE(attempt_outcome::failed, attempt_outcome::exhausted, attempt_outcome::snoozed,
                                      attempt_outcome::interrupted, attempt_outcome::held, attempt_outcome::cancelled,
                                      attempt_outcome::skipped, attempt_outcome::expired, attempt_outcome::released);
        auto const claimed = w.take(w.add());
        auto end = w.end_of(claimed, outcome, t0);
        end.follow_ups = {w.task()};
        w.settle({end}, t0);
        CHECK_FALSE(w.store.find(ax::task_id{2}).has_value());
    }
    SECTION("follow-ups are left out with a refused success") {
        auto const claimed = w.take(w.add());
        auto end = w.end_of(claimed, attempt_outcome::succeeded, t0);
        end.fence = ax::fence_token{99};
        end.follow_ups = {w.task()};
        auto const answer = w.settle({end}, t0);
        CHECK(answer.accepted == std::vector{false});
        CHECK(answer.due.empty());
        CHECK_FALSE(w.store.find(ax::task_id{2}).has_value());
    }
    SECTION("a follow-up whose key is taken is left out without a word") {
        auto keyed = w.task("first");
        keyed.key = "k";
        auto const holder = w.add(keyed);
        auto const claimed = w.take(w.add());
        auto end = w.end_of(claimed, attempt_outcome::succeeded, t0);
        keyed.payload = "second";
        end.follow_ups = {keyed, w.task("plain")};
        auto const answer = w.settle({end}, t0);
        CHECK(answer.accepted == std::vector{true});
        CHECK_FALSE(announces(answer.due, holder));
        CHECK(w.get(holder).payload == "first");
        CHECK(w.get(ax::task_id{3}).payload == "plain");
    }
}

/// storage 6: history().
template <class Fixture>
void histories() {
    workbench<Fixture> w;

    SECTION("an unknown task and one that never ran have none") {
        CHECK(w.store.history(ax::task_id{77}).empty());
        CHECK(w.store.history(w.add()).empty());
    }
    SECTION("every ended attempt is there, in order, with all that is known of it") {
        auto const id = w.add();
        auto const first = w.take(id, t0, node_a);
        auto end = w.end_of(first, attempt_outcome::failed, t0 + 3s);
        end.started = t0 + 1s;
        end.error = "boom";
        end.log = "one\ntwo";
        w.settle({end}, t0 + 3s);
        auto const second = w.take(id, t0 + 2min, node_b);
        w.start(second, t0 + 2min + 5ms);
        auto good = w.end_of(second, attempt_outcome::succeeded, t0 + 3min);
        good.started = t0 + 2min + 5ms;
        w.settle({good}, t0 + 3min);

        auto const attempts = w.store.history(id);
        REQUIRE(attempts.size() == 2);
        CHECK(attempts[0].number == 1);
        CHECK(attempts[0].id == first.fence);
        CHECK(attempts[0].node == node_a);
        CHECK(attempts[0].start == t0 + 1s);
        CHECK(attempts[0].end == t0 + 3s);
        CHECK(attempts[0].outcome == attempt_outcome::failed);
        CHECK(attempts[0].error == "boom");
        CHECK(attempts[0].log == "one\ntwo");
        CHECK(attempts[1].number == 2);
        CHECK(attempts[1].id == second.fence);
        CHECK(attempts[1].node == node_b);
        CHECK(attempts[1].start == t0 + 2min + 5ms);
        CHECK(attempts[1].end == t0 + 3min);
        CHECK(attempts[1].outcome == attempt_outcome::succeeded);
        CHECK(attempts[1].error.empty());
    }
    SECTION("the attempt in flight comes last, without an end") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::snoozed, t0);
        auto const claimed = w.take(id, t0 + 1h, node_b);
        auto attempts = w.store.history(id);
        REQUIRE(attempts.size() == 2);
        CHECK(attempts[1].number == 2);
        CHECK(attempts[1].id == claimed.fence);
        CHECK(attempts[1].node == node_b);
        CHECK_FALSE(attempts[1].start.has_value()); // the start of the attempt before is not its own
        CHECK_FALSE(attempts[1].end.has_value());
        CHECK_FALSE(attempts[1].outcome.has_value());
        w.start(claimed, t0 + 1h + 1s);
        attempts = w.store.history(id);
        REQUIRE(attempts.size() == 2);
        CHECK(attempts[1].start == t0 + 1h + 1s);
    }
    SECTION("each outcome is kept as it was, released excepted") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::failed, attempt_outcome::exhausted,
                                      attempt_outcome::snoozed, attempt_outcome::interrupted, attempt_outcome::held,
                                      attempt_outcome::cancelled, attempt_outcome::skipped, attempt_outcome::expired);
        auto const claimed = w.take(w.add());
        w.finish(claimed, outcome, t0 + 1s);
        REQUIRE(w.store.history(claimed.id).size() == 1);
        CHECK(w.store.history(claimed.id)[0].outcome == outcome);
    }
    SECTION("the number of a released attempt is given again") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::released);
        auto const claimed = w.take(id);
        CHECK(claimed.attempts == 1);
        w.finish(claimed, attempt_outcome::succeeded);
        REQUIRE(w.store.history(id).size() == 1);
        CHECK(w.store.history(id)[0].number == 1);
    }
}

} // namespace conformance

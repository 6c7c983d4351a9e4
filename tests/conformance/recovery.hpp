// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 9: what dead owners held.
template <class Fixture>
void recovery() {
    workbench<Fixture> w;
    auto const crashed_text = std::string{"the process ended while this attempt was in flight"};

    SECTION("what others hold runs again, what the caller holds stays") {
        auto const dispatched = w.take(w.add(), t0, node_a);
        auto const running = w.take(w.add(), t0, node_a);
        w.start(running, t0 + 1s);
        auto const mine = w.take(w.add(), t0, node_b);
        auto const waiting = w.add();

        auto const answer = w.reclaim(t0 + 1min, node_b);
        CHECK(answer.reclaimed == 2);
        CHECK(answer.held == 0);
        CHECK(answer.poisoned.empty());
        CHECK(w.state(dispatched.id) == task_state::ready);
        CHECK(w.state(running.id) == task_state::ready);
        CHECK(w.state(mine.id) == task_state::dispatched);
        CHECK(w.get(waiting).version == 1);
        CHECK(w.upcoming() == ids{dispatched.id, running.id, waiting});
    }
    SECTION("a reclaimed task keeps its time and says what happened") {
        auto const id = w.add(w.task_at(t0 - 5s));
        auto const claimed = w.take(id);
        w.reclaim(t0 + 1min);
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::ready);
        CHECK(stored.run_at == t0 - 5s);
        CHECK(stored.interruptions == 1);
        CHECK(stored.unclean_ends == 1);
        CHECK(stored.lonely_deaths == 0);
        CHECK(stored.failures == 0);
        CHECK(stored.attempts == 1);
        CHECK(stored.version == claimed.version + 1);
        CHECK(stored.changed == t0 + 1min);
        CHECK(stored.last_error == crashed_text);
        CHECK_FALSE(stored.held);
        CHECK_FALSE(stored.hold_on_interrupt);
        CHECK_FALSE(stored.finished.has_value());
    }
    SECTION("the history has the lost attempt, with its start where one is known") {
        auto const id = w.add();
        auto const unknown_start = w.take(id);
        w.reclaim(t0 + 1min);
        auto const known_start = w.take(id, t0 + 2min);
        w.start(known_start, t0 + 2min + 1s);
        w.reclaim(t0 + 3min);
        auto const attempts = w.store.history(id);
        REQUIRE(attempts.size() == 2);
        CHECK(attempts[0].id == unknown_start.fence);
        CHECK(attempts[0].outcome == attempt_outcome::crashed);
        CHECK_FALSE(attempts[0].start.has_value());
        CHECK(attempts[0].end == t0 + 1min);
        CHECK(attempts[0].node == node_a);
        CHECK(attempts[0].number == 1);
        CHECK(attempts[0].error == crashed_text);
        CHECK(attempts[0].log.empty());
        CHECK(attempts[1].outcome == attempt_outcome::crashed);
        CHECK(attempts[1].start == t0 + 2min + 1s);
        CHECK(attempts[1].end == t0 + 3min);
        CHECK(attempts[1].number == 2);
    }
    SECTION("reclaiming twice takes nothing the second time") {
        w.take(w.add());
        CHECK(w.reclaim().reclaimed == 1);
        CHECK(w.reclaim().reclaimed == 0);
    }
    SECTION("a task whose claim said so waits for a person") {
        auto const id = w.add();
        w.start(w.take(id, t0, node_a, true), t0 + 1s);
        auto const answer = w.reclaim(t0 + 1min);
        CHECK(answer.reclaimed == 0);
        CHECK(answer.held == 1);
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::ready);
        CHECK(stored.held);
        CHECK_FALSE(stored.hold_on_interrupt);
        CHECK(stored.interruptions == 1);
        CHECK(w.upcoming().empty());
        w.retry(id);
        w.take(id, t0 + 1min); // this claim does not say so
        CHECK(w.reclaim(t0 + 2min).reclaimed == 1);
    }
    SECTION("a task that had not started runs again, whatever its claim said") {
        auto const id = w.add();
        w.take(id, t0, node_a, true);
        auto const answer = w.reclaim(t0 + 1min);
        CHECK(answer.reclaimed == 1);
        CHECK(answer.held == 0);
        CHECK_FALSE(w.get(id).held);
        CHECK(w.upcoming() == ids{id});
    }
    SECTION("deaths among others never poison") {
        auto const id = w.add();
        for (int i = 0; i < 2; ++i) {
            w.take(id);
            CHECK(w.reclaim(t0, node_b, 1).poisoned.empty());
        }
        CHECK(w.get(id).unclean_ends == 2);
        CHECK(w.get(id).lonely_deaths == 0);
    }
    SECTION("the poison_after-th death in a lonely run is the end") {
        auto const id = w.add();
        for (int i = 0; i < 4; ++i) { // twice among others, twice alone
            w.take(id);
            CHECK(w.reclaim(t0, node_b, 3).poisoned.empty());
        }
        CHECK(w.get(id).lonely_deaths == 2);
        auto const last = w.take(id);
        CHECK(last.lonely);
        auto const answer = w.reclaim(t0 + 1h, node_b, 3);
        CHECK(answer.poisoned == ids{id});
        CHECK(answer.reclaimed == 0);
        CHECK(answer.held == 0);
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::dead);
        CHECK(stored.finished == t0 + 1h);
        CHECK(stored.interruptions == 5);
        CHECK(stored.unclean_ends == 5);
        CHECK(stored.lonely_deaths == 3);
        CHECK_FALSE(stored.lonely);
        CHECK_FALSE(stored.held);
        CHECK(stored.last_error == "poison: the process ended 3 times while this task ran alone");
        CHECK(w.store.history(id).size() == 5);
        CHECK(w.store.history(id).back().outcome == attempt_outcome::crashed);
    }
    SECTION("a clean end in between forgets the deaths before it") {
        auto const id = w.add();
        for (int i = 0; i < 3; ++i) { // twice among others, once alone
            w.take(id);
            w.reclaim(t0, node_b, 2);
        }
        CHECK(w.get(id).lonely_deaths == 1);
        w.finish(w.take(id), attempt_outcome::interrupted);
        CHECK(w.get(id).lonely_deaths == 0);
        for (int i = 0; i < 3; ++i) {
            w.take(id);
            CHECK(w.reclaim(t0, node_b, 2).poisoned.empty());
        }
        CHECK(w.get(id).lonely_deaths == 1);
    }
    SECTION("a claim given back is no clean end") {
        auto const id = w.add();
        for (int i = 0; i < 3; ++i) {
            w.take(id);
            w.reclaim(t0, node_b, 2);
        }
        w.finish(w.take(id), attempt_outcome::released);
        CHECK(w.get(id).lonely_deaths == 1);
        w.take(id);
        CHECK(w.reclaim(t0, node_b, 2).poisoned == ids{id});
    }
    SECTION("poison goes before waiting for a person") {
        auto const id = w.add();
        for (int i = 0; i < 2; ++i) {
            w.take(id);
            w.reclaim();
        }
        w.take(id, t0, node_a, true);
        auto const answer = w.reclaim(t0, node_b, 1);
        CHECK(answer.poisoned == ids{id});
        CHECK(answer.held == 0);
    }
    SECTION("a poisoned task retried by hand starts with a clean record") {
        auto const id = w.add();
        for (int i = 0; i < 3; ++i) {
            w.take(id);
            w.reclaim(t0, node_b, 1);
        }
        REQUIRE(w.state(id) == task_state::dead);
        w.retry(id, t0 + 1h);
        CHECK(w.get(id).unclean_ends == 0);
        CHECK(w.get(id).lonely_deaths == 0);
        CHECK_FALSE(w.take(id, t0 + 1h).lonely);
        CHECK(w.reclaim(t0 + 1h, node_b, 1).reclaimed == 1);
    }
}

} // namespace conformance

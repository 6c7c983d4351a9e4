// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 10, 11 and 12: what callers and deadlines change.
template <class Fixture>
void changes() {
    workbench<Fixture> w;

    SECTION("an unknown task is unknown") {
        CHECK(w.cancel(ax::task_id{77}).outcome == change_outcome::unknown);
        CHECK(w.retry(ax::task_id{77}).outcome == change_outcome::unknown);
        CHECK(w.reschedule(ax::task_id{77}, t0).outcome == change_outcome::unknown);
        CHECK(w.cancel(ax::task_id{}).outcome == change_outcome::unknown);
    }

    SECTION("cancel ends what waits") {
        auto const id = w.add();
        auto const answer = w.cancel(id, t0 + 1s);
        CHECK(answer.outcome == change_outcome::done);
        CHECK(answer.state == task_state::cancelled);
        CHECK(answer.due.empty());
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::cancelled);
        CHECK(stored.finished == t0 + 1s);
        CHECK(stored.changed == t0 + 1s);
        CHECK(stored.version == 2);
        CHECK(w.upcoming().empty());
        CHECK(w.store.history(id).empty());
    }
    SECTION("cancel ends what is in backoff, held or blocked") {
        auto const failed = w.add();
        w.finish(w.take(failed), attempt_outcome::failed);
        auto const held = w.add();
        w.finish(w.take(held), attempt_outcome::held);
        w.add(w.task_of("r"));
        auto const blocked = w.add(w.task_of("r"));
        for (auto const id : {failed, held, blocked}) {
            CHECK(w.cancel(id).outcome == change_outcome::done);
            auto const stored = w.get(id);
            CHECK(stored.state == task_state::cancelled);
            CHECK_FALSE(stored.held);
            CHECK_FALSE(stored.blocked);
        }
    }
    SECTION("cancel leaves alone what is in flight or has ended, and says so") {
        auto const claimed = w.take(w.add());
        CHECK(w.cancel(claimed.id).outcome == change_outcome::wrong_state);
        CHECK(w.cancel(claimed.id).state == task_state::dispatched);
        w.start(claimed, t0);
        CHECK(w.cancel(claimed.id).outcome == change_outcome::wrong_state);
        CHECK(w.cancel(claimed.id).state == task_state::running);
        w.finish(claimed, attempt_outcome::succeeded);
        auto const version = w.get(claimed.id).version;
        CHECK(w.cancel(claimed.id).outcome == change_outcome::wrong_state);
        CHECK(w.cancel(claimed.id).state == task_state::succeeded);
        CHECK(w.get(claimed.id).version == version);
    }

    SECTION("retry makes dead and cancelled tasks ready at once") {
        bool const dead = GENERATE(true, false);
        auto const id = w.add();
        auto end = w.end_of(w.take(id), dead ? attempt_outcome::exhausted : attempt_outcome::cancelled, t0);
        end.error = "given up";
        w.settle({end}, t0);
        auto const before = w.get(id);
        auto const answer = w.retry(id, t0 + 1h);
        CHECK(answer.outcome == change_outcome::done);
        CHECK(answer.state == task_state::ready);
        CHECK(announces(answer.due, ax::alarm{id, w.lane(), t0 + 1h}));
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::ready);
        CHECK(stored.run_at == t0 + 1h);
        CHECK(stored.order_at == t0 + 1h);
        CHECK(stored.failures == 0);
        CHECK(stored.attempts == 1);
        CHECK(stored.changed == t0 + 1h);
        CHECK(stored.version == before.version + 1);
        CHECK(stored.last_error == "given up");
        CHECK_FALSE(stored.finished.has_value());
        CHECK(w.store.history(id).size() == 1);
        CHECK(w.take(id, t0 + 1h).attempts == 2);
    }
    SECTION("retry forgets a deadline that has passed, and only that") {
        auto made = w.task();
        made.deadline = t0 + 1h;
        auto const id = w.add(made);
        w.cancel(id);
        w.retry(id, t0 + 1h - 1ms);
        CHECK(w.get(id).deadline == t0 + 1h);
        w.cancel(id);
        w.retry(id, t0 + 1h);
        CHECK_FALSE(w.get(id).deadline.has_value());
        CHECK(w.can_take(id, t0 + 1h));
    }
    SECTION("retry lets a held task go, which keeps its time and its counters") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::failed); // one failure, then held
        w.finish(w.take(id, t0 + 1min), attempt_outcome::held, t0 + 1min);
        auto const before = w.get(id);
        auto const answer = w.retry(id, t0 + 1h);
        CHECK(answer.outcome == change_outcome::done);
        CHECK(answer.state == task_state::ready);
        CHECK(announces(answer.due, ax::alarm{id, w.lane(), before.run_at}));
        auto const stored = w.get(id);
        CHECK_FALSE(stored.held);
        CHECK(stored.run_at == before.run_at);
        CHECK(stored.failures == 1);
        CHECK(stored.version == before.version + 1);
        CHECK(stored.changed == before.changed);
        CHECK(w.upcoming() == ids{id});
    }
    SECTION("retry leaves alone what waits, is in flight or is done, and says so") {
        auto const ready = w.add();
        CHECK(w.retry(ready).outcome == change_outcome::wrong_state);
        CHECK(w.retry(ready).state == task_state::ready);
        auto const claimed = w.take(ready);
        CHECK(w.retry(ready).state == task_state::dispatched);
        w.start(claimed, t0);
        CHECK(w.retry(ready).state == task_state::running);
        w.finish(claimed, attempt_outcome::failed);
        CHECK(w.retry(ready).outcome == change_outcome::wrong_state);
        CHECK(w.retry(ready).state == task_state::failed);
        w.finish(w.take(ready, t0 + 1h), attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.retry(ready).outcome == change_outcome::wrong_state);
        auto const skipped = w.add();
        w.finish(w.take(skipped), attempt_outcome::skipped);
        CHECK(w.retry(skipped).outcome == change_outcome::wrong_state);
        CHECK(w.retry(skipped).state == task_state::skipped);
    }

    SECTION("reschedule moves what waits, in either direction") {
        auto const id = w.add(w.task_at(t0 + 1h));
        auto const later = w.reschedule(id, t0 + 2h);
        CHECK(later.outcome == change_outcome::done);
        CHECK(later.state == task_state::ready);
        CHECK(announces(later.due, ax::alarm{id, w.lane(), t0 + 2h}));
        auto const sooner = w.reschedule(id, t0 + 1s);
        CHECK(announces(sooner.due, ax::alarm{id, w.lane(), t0 + 1s}));
        auto const stored = w.get(id);
        CHECK(stored.run_at == t0 + 1s);
        CHECK(stored.order_at == t0 + 1s);
        CHECK(stored.version == 3);
        CHECK(stored.changed == t0);
        CHECK(w.upcoming(t0 + 1s) == ids{id});
    }
    SECTION("a failed task that is rescheduled stays failed") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::failed);
        auto const answer = w.reschedule(id, t0 + 1s);
        CHECK(answer.state == task_state::failed);
        CHECK(w.state(id) == task_state::failed);
        CHECK(w.get(id).failures == 1);
        CHECK(w.can_take(id, t0 + 1s));
    }
    SECTION("a held task that is rescheduled stays held, without an alarm") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::held);
        auto const answer = w.reschedule(id, t0 + 1s);
        CHECK(answer.outcome == change_outcome::done);
        CHECK(answer.due.empty());
        CHECK(w.get(id).held);
        CHECK(w.get(id).run_at == t0 + 1s);
    }
    SECTION("reschedule leaves alone what is in flight or has ended, and says so") {
        auto const claimed = w.take(w.add());
        CHECK(w.reschedule(claimed.id, t0 + 1h).outcome == change_outcome::wrong_state);
        CHECK(w.reschedule(claimed.id, t0 + 1h).state == task_state::dispatched);
        w.finish(claimed, attempt_outcome::cancelled);
        CHECK(w.reschedule(claimed.id, t0 + 1h).outcome == change_outcome::wrong_state);
        CHECK(w.reschedule(claimed.id, t0 + 1h).state == task_state::cancelled);
        CHECK(w.get(claimed.id).run_at == t0);
    }

    SECTION("what waits beyond its deadline dies") {
        auto made = w.task();
        made.deadline = t0 + 10s;
        auto const id = w.add(made);
        CHECK(w.expire(t0 + 10s - 1ms).dead.empty());
        CHECK(w.expire(t0 + 10s).dead == ids{id});
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::dead);
        CHECK(stored.finished == t0 + 10s);
        CHECK(stored.changed == t0 + 10s);
        CHECK(stored.last_error == "deadline passed");
        CHECK(stored.version == 2);
        CHECK(stored.failures == 0);
        CHECK(w.upcoming().empty());
        CHECK(w.expire(t0 + 11s).dead.empty());
    }
    SECTION("blocked, held and failed tasks die at their deadline as well") {
        auto made = w.task();
        made.deadline = t0 + 10s;
        auto const failed = w.add(made);
        w.finish(w.take(failed), attempt_outcome::failed);
        auto const held = w.add(made);
        w.finish(w.take(held), attempt_outcome::held);
        w.add(w.task_of("r"));
        made.route_key = "r";
        auto const blocked = w.add(made);
        auto answer = w.expire(t0 + 10s);
        std::sort(answer.dead.begin(), answer.dead.end());
        CHECK(answer.dead == ids{failed, held, blocked});
        CHECK_FALSE(w.get(held).held);
        CHECK_FALSE(w.get(blocked).blocked);
    }
    SECTION("what runs or has ended is not touched by its deadline") {
        auto made = w.task();
        made.deadline = t0 + 10s;
        auto const running = w.take(w.add(made));
        w.start(running, t0);
        auto const dispatched = w.take(w.add(made));
        auto const done = w.add(made);
        w.finish(w.take(done), attempt_outcome::succeeded);
        w.add(); // no deadline
        CHECK(w.expire(t0 + 1h).dead.empty());
        CHECK(w.state(running.id) == task_state::running);
        w.finish(dispatched, attempt_outcome::interrupted, t0 + 1h); // waits again
        CHECK(w.expire(t0 + 1h).dead == ids{dispatched.id});
    }
    SECTION("expire tells the earliest deadline that is left") {
        CHECK_FALSE(w.expire(t0).next.has_value());
        w.add(); // no deadline
        auto made = w.task();
        made.deadline = t0 + 20s;
        auto const later = w.add(made);
        made.deadline = t0 + 10s;
        auto const sooner = w.add(made);
        made.deadline = t0 + 5s;
        w.take(w.add(made)); // in flight: its handler's business
        CHECK(w.expire(t0).next == t0 + 10s);
        CHECK(w.expire(t0 + 20s, 1).next == t0 + 20s); // overdue and left over
        w.cancel(later);
        CHECK_FALSE(w.expire(t0).next.has_value());
        w.retry(later, t0 + 1s);
        CHECK(w.expire(t0 + 1s).next == t0 + 20s);
        CHECK(w.state(sooner) == task_state::dead);
        CHECK(w.expire(t0 + 20s).dead == ids{later});
        CHECK_FALSE(w.expire(t0 + 20s).next.has_value());
    }
    SECTION("expire is bounded") {
        auto made = w.task();
        made.deadline = t0;
        w.insert(std::vector<ax::new_task>(10, made));
        CHECK(w.expire(t0, 4).dead.size() == 4);
        CHECK(w.expire(t0, 0).dead.empty());
        CHECK(w.expire(t0, 4).dead.size() == 4);
        CHECK(w.expire(t0, 4).dead.size() == 2);
    }

    SECTION("what was asked to stop does not run again, however its attempt ends") {
        auto const outcome = GENERATE(attempt_outcome::failed, attempt_outcome::snoozed, attempt_outcome::interrupted,
                                      attempt_outcome::held, attempt_outcome::released, attempt_outcome::exhausted,
                                      attempt_outcome::succeeded);
        CAPTURE(outcome);
        auto const id = w.add(w.task_of("r"));
        auto const next = w.add(w.task_of("r"));
        auto const claimed = w.take(id);
        w.write([&](auto& writer) { return writer.ask_to_stop(id); });
        w.finish(claimed, outcome, t0 + 1s);
        auto const expected = outcome == attempt_outcome::succeeded   ? task_state::succeeded
                              : outcome == attempt_outcome::exhausted ? task_state::dead
                                                                      : task_state::cancelled;
        auto const stored = w.get(id);
        CHECK(stored.state == expected);
        CHECK(stored.finished == t0 + 1s);
        CHECK_FALSE(stored.held);
        CHECK_FALSE(stored.stop_asked);
        CHECK(stored.attempts == (outcome == attempt_outcome::released ? 0U : 1U)); // released had not begun
        CHECK(w.can_take(next, t0 + 2s));                                           // and it keeps nobody waiting
    }
    SECTION("what was asked to stop and whose owner died is cancelled, and held by nobody") {
        bool const hold = GENERATE(false, true);
        auto const id = w.add();
        auto const claimed = w.take(id, t0, node_a, hold);
        w.start(claimed, t0);
        w.write([&](auto& writer) { return writer.ask_to_stop(id); });
        auto const answer = w.write([&](auto& writer) { return writer.reclaim({node_b, 3, t0 + 1h}); });
        CHECK(answer.reclaimed + answer.held == 0);
        CHECK(w.get(id).state == task_state::cancelled);
        CHECK_FALSE(w.get(id).held);
        CHECK(w.store.history(id).size() == 1);
    }
    SECTION("ask_to_stop marks what is in flight, until its attempt ends") {
        auto const waiting = w.add();
        auto const claimed = w.add();
        auto const running = w.add();
        auto const ask = [&](ax::task_id id) { return w.write([&](auto& writer) { return writer.ask_to_stop(id); }); };
        auto const first = w.take(claimed);
        auto const second = w.take(running);
        w.start(second, t0);
        CHECK(w.store.asked_to_stop().empty());
        CHECK_FALSE(ask(waiting));
        CHECK_FALSE(ask(ax::task_id{77}));
        CHECK(ask(claimed));
        CHECK(ask(running));
        CHECK(ask(running)); // once more is the same
        CHECK(w.store.asked_to_stop() == ids{claimed, running});
        CHECK(w.get(running).stop_asked);
        CHECK(w.get(running).version == second.version + 1); // the start's: the mark is no change of the attempt
        CHECK_FALSE(w.get(waiting).stop_asked);
        w.finish(second, attempt_outcome::succeeded);
        w.finish(first, attempt_outcome::failed, t0 + 1s);
        CHECK(w.store.asked_to_stop().empty());
        CHECK_FALSE(w.get(claimed).stop_asked);
        w.retry(claimed);
        w.take(claimed, t0 + 1h);
        CHECK(w.store.asked_to_stop().empty()); // it was a wish for that attempt
    }
    SECTION("a type is paused and resumed, and its tasks stay as they are") {
        auto const other = w.type("other");
        auto const id = w.add();
        w.write([&](auto& writer) { writer.pause(w.probe, true); });
        auto types = w.store.types();
        REQUIRE(types.size() == 2);
        CHECK(types[0].paused);
        CHECK_FALSE(types[1].paused);
        CHECK(w.type("probe") == w.probe);
        CHECK(w.store.types()[0].paused);
        CHECK(w.upcoming() == ids{id});
        w.write([&](auto& writer) {
            writer.pause(w.probe, false);
            writer.pause(other, false); // it was not
            writer.pause(ax::type_number{77}, true);
        });
        CHECK_FALSE(w.store.types()[0].paused);
        CHECK(w.store.types().size() == 2);
    }
}

} // namespace conformance

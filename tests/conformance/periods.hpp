// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 28 and 29, storage 15: occurrences that wait for the one before them, or are set aside.
template <class Fixture>
void periods() {
    workbench<Fixture> w;

    auto const occurrence = [&](int minute, bool after_past = true, std::string schedule = "s") {
        auto made = w.task_at(t0 + minute * 1min);
        made.schedule = std::move(schedule);
        made.scheduled_at = made.run_at;
        made.after_past = after_past;
        return made;
    };
    auto const aside = [&](int minute, bool after_past = false) {
        auto made = occurrence(minute, after_past);
        made.set_aside = true;
        return made;
    };
    auto const set_aside = [&](ax::task_id id, ax::time_point now = t0) {
        return w.write([&](auto& writer) { return writer.set_aside(id, now); });
    };
    auto const release = [&](ax::task_id id, ax::priority_class urgency = ax::priority::high) {
        return w.write([&](auto& writer) { return writer.release(id, urgency, t0 + 2h); });
    };
    auto const late = t0 + 1h;
    auto const pasts_of = [&](ax::task_id id) {
        ids all;
        for (auto const& each : w.store.obstacles(id))
            if (each.kind == ax::obstacle::what::past) {
                CHECK(each.name == "s");
                all.insert(all.end(), each.holders.begin(), each.holders.end());
            }
        return all;
    };

    SECTION("the first occurrence waits for none") {
        auto const id = w.add(occurrence(1));
        CHECK(w.state(id) == task_state::ready);
        CHECK(announces(w.due, id));
        CHECK(pasts_of(id).empty());
    }
    SECTION("one waits as created until the one before it has succeeded or was skipped") {
        auto const first = w.add(occurrence(1));
        auto const second = w.insert({occurrence(2)}).at(0);
        CHECK(second.state == task_state::created);
        CHECK(w.state(second.id) == task_state::created);
        CHECK(w.due.empty());
        CHECK(pasts_of(second.id) == ids{first});
        CHECK_FALSE(w.can_take(second.id, late));
        CHECK(w.upcoming() == ids{first});
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::skipped);
        auto const version = w.get(second.id).version;
        auto const settled = w.finish(w.take(first, late), outcome, late + 1s);
        CHECK(announces(settled.due, ax::alarm{second.id, w.lane(), t0 + 2min}));
        auto const freed = w.get(second.id);
        CHECK(freed.state == task_state::ready);
        CHECK(freed.changed == late + 1s);
        CHECK(freed.version == version + 1);
        CHECK(freed.run_at == t0 + 2min);
        CHECK(pasts_of(second.id).empty());
        CHECK(w.can_take(second.id, late));
    }
    SECTION("a started and marked success lets go as well") { // which is not the plainest of them
        auto const first = w.add(occurrence(1));
        auto const second = w.add(occurrence(2));
        auto const claimed = w.take(first, late);
        w.start(claimed, late);
        auto end = w.end_of(claimed, attempt_outcome::succeeded, late + 1s);
        end.log = "a line";
        CHECK(announces(w.settle({end}, late).due, second));
    }
    SECTION("any other end keeps it waiting, and a retry of the one before lets it go") {
        auto const first = w.add(occurrence(1));
        auto const second = w.add(occurrence(2));
        auto const how = GENERATE(attempt_outcome::failed, attempt_outcome::exhausted, attempt_outcome::cancelled,
                                  attempt_outcome::snoozed, attempt_outcome::interrupted, attempt_outcome::expired);
        w.finish(w.take(first, late), how, late);
        CHECK(w.state(second) == task_state::created);
        CHECK(pasts_of(second) == ids{first});
        if (is_terminal(w.state(first))) CHECK(w.retry(first, late).outcome == change_outcome::done);
        w.finish(w.take(first, late + 1h), attempt_outcome::succeeded, late + 1h);
        CHECK(w.state(second) == task_state::ready);
    }
    SECTION("one that comes after a failure waits, one that comes after a success does not") {
        auto const first = w.add(occurrence(1));
        w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        auto const second = w.add(occurrence(2));
        CHECK(w.state(second) == task_state::ready);
        w.cancel(second, late);
        auto const third = w.add(occurrence(3));
        CHECK(w.state(third) == task_state::created);
        CHECK(pasts_of(third) == ids{second});
    }
    SECTION("one that does not ask for it waits for nobody, nor does another schedule") {
        w.add(occurrence(1));
        CHECK(w.state(w.add(occurrence(2, false))) == task_state::ready);
        CHECK(w.state(w.add(occurrence(2, true, "r"))) == task_state::ready);
        CHECK(w.state(w.add(occurrence(0))) == task_state::ready); // nothing lies before it
    }
    SECTION("what is inserted between two is waited for instead") {
        auto const first = w.add(occurrence(1));
        auto const last = w.add(occurrence(5));
        auto const between = w.add(occurrence(3));
        CHECK(pasts_of(last) == ids{between});
        CHECK(pasts_of(between) == ids{first});
        w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        CHECK(w.state(between) == task_state::ready);
        CHECK(w.state(last) == task_state::created);
        w.finish(w.take(between, late), attempt_outcome::succeeded, late);
        CHECK(w.state(last) == task_state::ready);
    }
    SECTION("a chain runs in the order of nominal instants, however it was inserted") {
        ids order;
        for (int minute : {1, 4, 2, 5, 3}) w.add(occurrence(minute));
        for (int i = 0; i < 5; ++i) {
            auto const next = w.upcoming();
            REQUIRE(next.size() == 1);
            w.finish(w.take(next[0], late), attempt_outcome::succeeded, late);
            order.push_back(next[0]);
        }
        CHECK(order == ids{ax::task_id{1}, ax::task_id{3}, ax::task_id{5}, ax::task_id{2}, ax::task_id{4}});
    }
    SECTION("with a route key it takes its place there once it is let go") {
        auto const routed = [&](int minute) {
            auto made = occurrence(minute);
            made.route_key = "r";
            return made;
        };
        auto const first = w.add(routed(1));
        auto const second = w.add(routed(2));
        auto other = w.task_of("r");
        other.run_at = t0 + 10min;
        auto const behind = w.add(other);
        CHECK_FALSE(w.get(second).blocked);
        CHECK(w.get(behind).blocked);
        auto const settled = w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        CHECK(w.state(second) == task_state::ready);
        CHECK_FALSE(w.get(second).blocked);
        CHECK(w.get(behind).blocked);
        CHECK(announces(settled.due, second));
        w.finish(w.take(second, late), attempt_outcome::succeeded, late);
        CHECK_FALSE(w.get(behind).blocked);
    }
    SECTION("it is let go in the more urgent of both classes") {
        auto urgent = occurrence(1);
        urgent.priority = ax::priority::high;
        auto const first = w.add(urgent);
        auto const second = w.add(occurrence(2));
        auto slow = occurrence(3);
        slow.priority = ax::priority::critical;
        auto const third = w.add(slow);
        auto const settled = w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        CHECK(w.get(second).priority == ax::priority::high);
        CHECK(announces(settled.due, ax::alarm{second, w.lane(ax::priority::high), t0 + 2min}));
        w.finish(w.take(second, late), attempt_outcome::succeeded, late);
        CHECK(w.get(third).priority == ax::priority::critical);
        for (auto const& each : w.store.counts()) {
            CAPTURE(int(each.priority), to_string(each.state));
            CHECK(each.tasks == (each.priority == ax::priority::high ? 2 : 1));
        }
    }
    SECTION("who is waited for is not pruned, and is once it is waited for no more") {
        auto const first = w.add(occurrence(1));
        w.add(occurrence(2));
        w.finish(w.take(first, late), attempt_outcome::exhausted, late);
        ax::prune_terms terms;
        terms.type = w.probe;
        terms.ended_by = terms.dead_by = late + 1h;
        CHECK(w.write([&](auto& writer) { return writer.prune(terms, 10); }).pruned == 0);
        w.retry(first, late);
        w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        CHECK(w.write([&](auto& writer) { return writer.prune(terms, 10); }).pruned == 1);
    }
    SECTION("one that is cancelled or expires while it waits is over, and those behind it wait on") {
        auto const first = w.add(occurrence(1));
        auto mortal = occurrence(2);
        mortal.deadline = t0 + 30min;
        auto const second = w.add(mortal);
        auto const third = w.add(occurrence(3));
        bool const expires = GENERATE(false, true);
        if (expires)
            CHECK(w.expire(late).dead == ids{second});
        else
            CHECK(w.cancel(second, late).outcome == change_outcome::done);
        w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        CHECK(w.state(second) == (expires ? task_state::dead : task_state::cancelled));
        CHECK(w.state(third) == task_state::created);
        CHECK(pasts_of(third) == ids{second});
        CHECK(w.retry(second, late).state == task_state::ready); // by hand: at once
        w.finish(w.take(second, late), attempt_outcome::succeeded, late);
        CHECK(w.state(third) == task_state::ready);
    }
    SECTION("it is there once, and a retry or a new instant is not for one that waits") {
        auto const first = w.add(occurrence(1));
        auto const second = w.add(occurrence(2));
        auto const again = w.insert({occurrence(2)}).at(0);
        CHECK(again.id == second);
        CHECK(again.outcome == submit_outcome::kept);
        CHECK(again.state == task_state::created);
        CHECK(w.retry(second).outcome == change_outcome::wrong_state);
        CHECK(w.reschedule(second, t0).outcome == change_outcome::wrong_state);
        CHECK(pasts_of(second) == ids{first});
    }
    SECTION("the end of the owner's process is no success") {
        auto const first = w.add(occurrence(1));
        auto const second = w.add(occurrence(2));
        w.take(first, late);
        CHECK(w.reclaim(late).reclaimed == 1);
        CHECK(w.state(second) == task_state::created);
        w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        CHECK(w.state(second) == task_state::ready);
    }
    SECTION("what a transaction that fails had let go waits again") {
        auto const first = w.add(occurrence(1));
        auto const second = w.add(occurrence(2));
        auto const claimed = w.take(first, late);
        struct failure {};
        CHECK_THROWS_AS(w.write([&](auto& writer) {
            writer.settle(std::vector{w.end_of(claimed, attempt_outcome::succeeded, late)}, late);
            throw failure{};
        }),
                        failure);
        CHECK(w.state(second) == task_state::created);
        CHECK(pasts_of(second) == ids{first});
        CHECK(w.store.counts().size() == 2);
        w.finish(claimed, attempt_outcome::succeeded, late);
        CHECK(w.state(second) == task_state::ready);
    }

    // ---- set aside

    SECTION("an occurrence that is inserted set aside is created and held, and a release makes it ready") {
        auto const made = w.insert({aside(1)}).at(0);
        CHECK(made.state == task_state::created);
        CHECK(w.due.empty());
        auto const record = w.get(made.id);
        CHECK(record.held);
        CHECK(record.set_aside);
        CHECK_FALSE(w.can_take(made.id, late));
        bool const by_retry = GENERATE(false, true);
        auto const freed = by_retry ? w.retry(made.id, t0 + 2h) : release(made.id);
        auto const urgency = by_retry ? ax::priority::normal : ax::priority::high;
        CHECK(freed.outcome == change_outcome::done);
        CHECK(freed.state == task_state::ready);
        CHECK(announces(freed.due, ax::alarm{made.id, w.lane(urgency), t0 + 1min}));
        CHECK(w.get(made.id).priority == urgency);
        CHECK_FALSE(w.get(made.id).held);
        CHECK_FALSE(w.get(made.id).set_aside);
        CHECK(w.get(made.id).changed == t0 + 2h);
        CHECK(release(made.id).outcome == change_outcome::wrong_state);
        CHECK(w.can_take(made.id, late));
    }
    SECTION("a release lowers no priority") {
        auto urgent = aside(1);
        urgent.priority = ax::priority::critical;
        auto const id = w.add(urgent);
        release(id, ax::priority::low);
        CHECK(w.get(id).priority == ax::priority::critical);
    }
    SECTION("one that waits is set aside, whether it is ready, failed or created") {
        auto const id = w.add(occurrence(1));
        auto const follower = w.add(occurrence(2));
        auto expected = task_state::ready;
        if (GENERATE(false, true)) {
            w.finish(w.take(id, late), attempt_outcome::failed, late);
            expected = task_state::failed;
        }
        auto const version = w.get(id).version;
        CHECK(set_aside(id).outcome == change_outcome::done);
        CHECK(w.state(id) == expected);
        CHECK(w.get(id).set_aside);
        CHECK(w.get(id).version == version + 1);
        CHECK_FALSE(w.can_take(id, late + 1h));
        CHECK(w.upcoming().empty());
        CHECK(set_aside(id).outcome == change_outcome::done);
        CHECK(set_aside(follower).state == task_state::created);
        CHECK(release(id).state == expected);
        w.finish(w.take(id, late + 1h), attempt_outcome::succeeded, late);
        CHECK(w.state(follower) == task_state::created); // set aside as well
        CHECK(pasts_of(follower).empty());
        CHECK(w.get(follower).priority == ax::priority::high); // what hangs on a release comes ahead as well
        CHECK(release(follower, ax::priority::low).state == task_state::ready);
        CHECK(w.can_take(follower, late));
    }
    SECTION("what runs or is over is not set aside, nor what is not there") {
        auto const id = w.add(occurrence(1));
        auto const claimed = w.take(id, late);
        CHECK(set_aside(id).outcome == change_outcome::wrong_state);
        CHECK(set_aside(id).state == task_state::dispatched);
        w.finish(claimed, attempt_outcome::succeeded, late);
        CHECK(set_aside(id).state == task_state::succeeded);
        CHECK(release(id).outcome == change_outcome::wrong_state);
        CHECK(set_aside(ax::task_id{999}).outcome == change_outcome::unknown);
        CHECK(release(ax::task_id{999}).outcome == change_outcome::unknown);
    }
    SECTION("one that is set aside keeps nobody with its route key waiting") {
        auto const routed = [&](int minute) {
            auto made = occurrence(minute, false);
            made.route_key = "r";
            return made;
        };
        auto const first = w.add(routed(1));
        auto const second = w.add(routed(2));
        CHECK(announces(set_aside(first).due, second));
        CHECK_FALSE(w.get(second).blocked);
        auto const third = w.add(routed(3));
        release(first);
        CHECK_FALSE(w.get(first).blocked);
        CHECK(w.get(second).blocked);
        w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        w.finish(w.take(second, late), attempt_outcome::succeeded, late);
        CHECK(w.can_take(third, late));
    }
    SECTION("a period that was set aside before those in front of it were there waits for the last of them") {
        auto const first = w.add(occurrence(1));
        w.finish(w.take(first, late), attempt_outcome::succeeded, late);
        auto const later_one = w.add(aside(3, true));
        auto const between = w.add(occurrence(2));
        CHECK(w.state(between) == task_state::ready);
        CHECK(pasts_of(later_one) == ids{between});
        CHECK(release(later_one).state == task_state::created);
        CHECK_FALSE(w.get(later_one).held);
        w.finish(w.take(between, late), attempt_outcome::succeeded, late);
        CHECK(w.state(later_one) == task_state::ready);
    }
    SECTION("those that are set aside are given by schedule and nominal instant") {
        auto const one = w.add(aside(5));
        auto const two = w.add(aside(3));
        auto const three = w.add(occurrence(4, false));
        auto const four = w.add(occurrence(7, false));
        auto other = aside(4);
        other.schedule = "r";
        w.add(other);
        set_aside(four);
        auto const found = [&](ax::time_point from, ax::time_point to, std::size_t limit) {
            return ids_of(w.store.aside("s", from, to, limit));
        };
        CHECK(found(t0, t0 + 1h, 10) == ids{two, one, four});
        CHECK(found(t0 + 3min, t0 + 7min, 10) == ids{two, one});
        CHECK(found(t0, t0 + 1h, 1) == ids{two});
        release(two);
        w.cancel(one);
        CHECK(found(t0, t0 + 1h, 10) == ids{four});
        CHECK(w.store.occurrence("s", t0 + 4min)->id == three);
        CHECK(w.store.occurrence("s", t0 + 5min)->state == task_state::cancelled);
        CHECK_FALSE(w.store.occurrence("s", t0 + 6min).has_value());
        CHECK_FALSE(w.store.occurrence("q", t0 + 4min).has_value());
    }
    SECTION("a step that meets a period set aside goes on, and that one does not become the latest") {
        ax::schedule_record definition;
        definition.name = "s";
        definition.spec = "every 60s";
        definition.type = w.probe;
        definition.next = t0 + 1min;
        auto const declared = w.write([&](auto& writer) { return writer.declare(definition, t0); });
        auto const marked = w.add(aside(2));
        ax::schedule_step step;
        step.name = "s";
        step.version = declared.version;
        step.next = t0 + 2min;
        step.occurrence = occurrence(1, false);
        step.skip_if_unfinished = true;
        auto const take_step = [&] { return w.write([&](auto& writer) { return writer.step(step, t0 + 2min); }); };
        auto const first = take_step();
        w.take(first.occurrence->id, t0 + 1min);
        step.version = first.record.version;
        step.next = t0 + 3min;
        step.occurrence = occurrence(2, false);
        step.skip_if_unfinished = false;
        auto const second = take_step();
        CHECK(second.occurrence->id == marked);
        CHECK(second.record.last_task == first.occurrence->id);
        CHECK(second.record.last_nominal == t0 + 2min);
        step.version = second.record.version;
        step.next = t0 + 4min;
        step.occurrence = occurrence(3, false);
        step.skip_if_unfinished = true;
        CHECK_FALSE(take_step().occurrence.has_value()); // the one before it runs
    }
}

/// storage_writer 30, storage 16.
template <class Fixture>
void backfills() {
    workbench<Fixture> w;
    auto const occurrence = [&](int minute) {
        auto made = w.task_at(t0 + minute * 1min);
        made.schedule = "s";
        made.scheduled_at = made.run_at;
        return made;
    };
    auto const range = [&](std::size_t at_once) {
        ax::backfill_record wanted;
        wanted.schedule = "s";
        wanted.from = t0;
        wanted.to = t0 + 10min;
        wanted.next = t0 + 1min;
        wanted.priority = ax::priority::low;
        wanted.at_once = at_once;
        wanted.planned = 4;
        return w.write([&](auto& writer) { return writer.begin_backfill(wanted, t0 + 1h); });
    };
    auto const fill = [&](ax::backfill_record const& at, std::vector<int> const& minutes, std::optional<int> next) {
        ax::backfill_step step;
        step.number = at.number;
        step.version = at.version;
        for (auto const minute : minutes) step.occurrences.push_back(occurrence(minute));
        if (next) step.next = t0 + *next * 1min;
        return w.write([&](auto& writer) { return writer.fill(step, t0 + 1h); });
    };
    auto const the_task = [&](int minute) { return w.store.occurrence("s", t0 + minute * 1min)->id; };
    auto const end = [&](int minute, attempt_outcome how = attempt_outcome::succeeded) {
        w.finish(w.take(the_task(minute), t0 + 1h), how, t0 + 1h);
    };

    SECTION("a backfill is kept as it was given, under a number of its own") {
        auto const first = range(2);
        CHECK(first.number == 1);
        CHECK(first.version == 1);
        REQUIRE(w.store.backfills().size() == 1);
        auto const kept = w.store.backfills()[0];
        CHECK(kept.number == 1);
        CHECK(kept.schedule == "s");
        CHECK(kept.from == t0);
        CHECK(kept.to == t0 + 10min);
        CHECK(kept.next == t0 + 1min);
        CHECK(kept.priority == ax::priority::low);
        CHECK(kept.at_once == 2);
        CHECK(kept.planned == 4);
        CHECK(kept.made == 0);
        CHECK(kept.existed == 0);
        CHECK(kept.created == t0 + 1h);
        CHECK(w.write([&](auto& writer) { return writer.drop_backfill(1); }));
        CHECK_FALSE(w.write([&](auto& writer) { return writer.drop_backfill(1); }));
        CHECK(w.store.backfills().empty());
        CHECK(range(1).number == 2); // a number is not given again
    }
    SECTION("it makes as many as may be unfinished, and goes on as they end") {
        auto const begun = range(2);
        auto made = fill(begun, {1, 2, 3}, 4);
        CHECK(made.accepted);
        CHECK_FALSE(made.over);
        CHECK(made.record.made == 2);
        CHECK(made.record.unfinished == 2);
        CHECK(made.record.next == t0 + 3min);
        CHECK(announces(made.due, the_task(2)));
        made = fill(made.record, {3, 4}, std::nullopt); // no room
        CHECK(made.record.made == 2);
        CHECK(made.record.next == t0 + 3min);
        end(1, attempt_outcome::exhausted);
        made = fill(made.record, {3, 4}, std::nullopt);
        CHECK(made.record.made == 3);
        CHECK(made.record.next == t0 + 4min);
        end(2, attempt_outcome::failed); // not an end
        made = fill(made.record, {4}, std::nullopt);
        CHECK(made.record.made == 3);
        end(3);
        made = fill(made.record, {4}, std::nullopt);
        CHECK(made.record.made == 4);
        CHECK_FALSE(made.record.next.has_value());
        CHECK_FALSE(made.over);
        CHECK(w.store.backfills().at(0).made == 4);
        w.cancel(the_task(2), t0 + 1h);
        end(4);
        made = fill(made.record, {}, std::nullopt);
        CHECK(made.over);
        CHECK(w.store.backfills().empty());
        CHECK_FALSE(fill(made.record, {5}, std::nullopt).accepted);
        CHECK_FALSE(w.store.occurrence("s", t0 + 5min).has_value());
    }
    SECTION("what is there already takes no room") {
        w.add(occurrence(1));
        w.add(occurrence(2));
        auto const made = fill(range(1), {1, 2, 3, 4}, std::nullopt);
        CHECK(made.record.existed == 2);
        CHECK(made.record.made == 1);
        CHECK(made.record.next == t0 + 4min);
    }
    SECTION("a step under an old version writes nothing") {
        auto const begun = range(3);
        auto const made = fill(begun, {1}, 2);
        auto const refused = fill(begun, {2}, 3);
        CHECK_FALSE(refused.accepted);
        CHECK(refused.record.version == made.record.version);
        CHECK_FALSE(w.store.occurrence("s", t0 + 2min).has_value());
        ax::backfill_record unknown;
        unknown.number = 99;
        CHECK(fill(unknown, {2}, 3).record.number == 0);
    }
    SECTION("a forgotten schedule takes its backfills along, and what they made stays") {
        ax::schedule_record definition;
        definition.name = "s";
        definition.type = w.probe;
        w.write([&](auto& writer) { return writer.declare(definition, t0); });
        fill(range(1), {1}, 2);
        w.write([&](auto& writer) { return writer.forget("s"); });
        CHECK(w.store.backfills().empty());
        CHECK(w.store.occurrence("s", t0 + 1min).has_value());
    }
    SECTION("what a transaction that fails had made is made again") {
        auto const begun = range(2);
        struct failure {};
        ax::backfill_step step;
        step.number = begun.number;
        step.version = begun.version;
        step.occurrences = {occurrence(1)};
        CHECK_THROWS_AS(w.write([&](auto& writer) {
            writer.fill(step, t0);
            throw failure{};
        }),
                        failure);
        CHECK(w.store.backfills().at(0).made == 0);
        CHECK(fill(begun, {1}, 2).record.made == 1);
    }
    if constexpr (Fixture::durable) {
        SECTION("it survives the process, as do those that wait") {
            auto const made = fill(range(2), {1, 2, 3}, 4);
            auto waiting = occurrence(4);
            waiting.after_past = true;
            auto const id = w.add(waiting);
            auto marked = occurrence(9);
            marked.set_aside = true;
            w.add(marked);
            w.store = w.fixture.reopen(std::move(w.store));
            REQUIRE(w.store.backfills().size() == 1);
            CHECK(w.store.backfills()[0].next == t0 + 3min);
            CHECK(w.store.backfills()[0].version == made.record.version);
            CHECK(w.state(id) == task_state::created);
            CHECK(w.store.aside("s", t0, t0 + 1h, 10).size() == 1);
            end(2);
            CHECK(w.state(id) == task_state::ready);
            CHECK(fill(w.store.backfills()[0], {3}, 4).record.made == 3);
        }
    }
}

} // namespace conformance

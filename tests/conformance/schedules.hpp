// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 13, 14 and 15: recurring definitions.
template <class Fixture>
void schedules() {
    workbench<Fixture> w;

    auto const definition = [&](std::string name) {
        ax::schedule_record made;
        made.name = std::move(name);
        made.spec = "every 30s";
        made.type = w.probe;
        made.payload = std::string("\0{}", 3);
        made.terms = "overlap allow\n";
        made.next = t0 + 30s;
        return made;
    };
    auto const declare = [&](ax::schedule_record const& wanted, ax::time_point now = t0) {
        return w.write([&](auto& writer) { return writer.declare(wanted, now); });
    };
    auto const take_step = [&](ax::schedule_step const& next, ax::time_point now = t0) {
        return w.write([&](auto& writer) { return writer.step(next, now); });
    };
    auto const occurrence = [&](ax::time_point nominal) {
        auto made = w.task_at(nominal);
        made.schedule = "nightly";
        made.scheduled_at = nominal;
        return made;
    };
    /// From `record` to the next half minute.
    auto const step_of = [&](ax::schedule_record const& record) {
        ax::schedule_step next;
        next.name = record.name;
        next.version = record.version;
        next.next = *record.next + 30s;
        next.occurrence = occurrence(*record.next);
        return next;
    };
    auto const stored = [&](std::string_view name) {
        std::optional<ax::schedule_record> found;
        for (auto const& each : w.store.schedules())
            if (each.name == name) found = each;
        return found;
    };

    SECTION("a new schedule is stored as it was given") {
        auto const record = declare(definition("nightly"), t0 + 1s);
        CHECK(record.version == 1);
        CHECK(record.created == t0 + 1s);
        auto const found = stored("nightly");
        REQUIRE(found.has_value());
        CHECK(found->name == "nightly");
        CHECK(found->spec == "every 30s");
        CHECK(found->type == w.probe);
        CHECK(found->payload == std::string("\0{}", 3));
        CHECK(found->terms == "overlap allow\n");
        CHECK_FALSE(found->paused);
        CHECK(found->next == t0 + 30s);
        CHECK_FALSE(found->last_nominal.has_value());
        CHECK(found->last_task == ax::task_id{});
        CHECK(found->version == 1);
        CHECK(found->fired == 0);
        CHECK(found->skipped == 0);
        CHECK(found->last_skip.empty());
        CHECK(found->created == t0 + 1s);
    }
    SECTION("schedules are given in the order of their names, byte by byte") {
        for (auto const* name : {"b", "\xF0\x9F\x90\xA2", "a", "B", "ab"}) declare(definition(name));
        std::vector<std::string> names;
        for (auto const& each : w.store.schedules()) names.push_back(each.name);
        CHECK(names == std::vector<std::string>{"B", "a", "ab", "b", "\xF0\x9F\x90\xA2"});
    }
    SECTION("an equal definition leaves the schedule as it is") {
        auto const first = declare(definition("nightly"));
        take_step(step_of(first));
        auto again = definition("nightly");
        again.next = t0 + 10min; // a cursor is no part of the definition
        auto const record = declare(again, t0 + 1h);
        CHECK(record.version == 2);
        CHECK(record.next == t0 + 60s);
        CHECK(record.fired == 1);
        CHECK(record.created == t0);
    }
    SECTION("a different definition replaces the old one and keeps its counters") {
        auto const first = declare(definition("nightly"));
        auto step = step_of(first);
        step.skipped = {{t0 - 60s, t0, 3, "late", {}}};
        auto const task = take_step(step).occurrence->id;
        auto changed = definition("nightly");
        auto const what = GENERATE(0, 1, 2, 3);
        if (what == 0) changed.spec = "every 10s";
        if (what == 1) changed.payload = "{}";
        if (what == 2) changed.type = w.type("other");
        if (what == 3) changed.terms.clear();
        changed.next = t0 + 10min;
        auto const record = declare(changed, t0 + 1h);
        CHECK(record.version == 3);
        CHECK(record.spec == changed.spec);
        CHECK(record.payload == changed.payload);
        CHECK(record.type == changed.type);
        CHECK(record.terms == changed.terms);
        CHECK(record.next == (what == 0 ? t0 + 10min : t0 + 60s)); // only what recurs moves the cursor
        CHECK(record.fired == 1);
        CHECK(record.skipped == 3);
        CHECK(record.last_skip == "late");
        CHECK(record.last_task == task);
        CHECK(record.last_nominal == t0 + 30s);
        CHECK(record.created == t0);
        REQUIRE(stored("nightly").has_value());
        CHECK(stored("nightly")->version == 3);
    }

    SECTION("a step moves the cursor and creates the occurrence") {
        auto const first = declare(definition("nightly"));
        auto const answer = take_step(step_of(first), t0 + 30s);
        CHECK(answer.accepted);
        REQUIRE(answer.occurrence.has_value());
        CHECK(answer.occurrence->outcome == submit_outcome::inserted);
        auto const id = answer.occurrence->id;
        CHECK(announces(answer.due, ax::alarm{id, w.lane(), t0 + 30s}));
        CHECK(answer.record.version == 2);
        CHECK(answer.record.next == t0 + 60s);
        CHECK(answer.record.fired == 1);
        CHECK(answer.record.skipped == 0);
        CHECK(answer.record.last_task == id);
        CHECK(answer.record.last_nominal == t0 + 30s);
        auto const found = stored("nightly");
        REQUIRE(found.has_value());
        CHECK(found->version == 2);
        CHECK(found->next == t0 + 60s);
        CHECK(found->last_task == id);
        CHECK(w.get(id).schedule == "nightly");
        CHECK(w.get(id).scheduled_at == t0 + 30s);
        CHECK(w.get(id).created == t0 + 30s);
    }
    SECTION("a step under an old version writes nothing") {
        auto const first = declare(definition("nightly"));
        take_step(step_of(first));
        auto step = step_of(first);
        step.occurrence = occurrence(t0 + 31s);
        auto const answer = take_step(step);
        CHECK_FALSE(answer.accepted);
        CHECK(answer.record.version == 2);
        CHECK(answer.record.next == t0 + 60s);
        CHECK_FALSE(answer.occurrence.has_value());
        CHECK(answer.due.empty());
        CHECK_FALSE(w.store.find(ax::task_id{2}).has_value());
        REQUIRE(stored("nightly").has_value());
        CHECK(stored("nightly")->fired == 1);
    }
    SECTION("a step of a schedule that is gone writes nothing") {
        ax::schedule_step step;
        step.name = "nightly";
        step.version = 1;
        step.occurrence = occurrence(t0);
        auto const answer = take_step(step);
        CHECK_FALSE(answer.accepted);
        CHECK(answer.record.name.empty());
        CHECK_FALSE(answer.occurrence.has_value());
        CHECK_FALSE(w.store.find(ax::task_id{1}).has_value());
    }
    SECTION("a step without an occurrence counts what was left out") {
        auto const first = declare(definition("nightly"));
        ax::schedule_step step;
        step.name = "nightly";
        step.version = 1;
        step.next = std::nullopt;
        step.skipped = {{t0 + 30s, t0 + 210s, 7, "more than 10 min late", {}}};
        auto const answer = take_step(step);
        CHECK(answer.accepted);
        CHECK_FALSE(answer.occurrence.has_value());
        CHECK(answer.record.skipped == 7);
        CHECK(answer.record.last_skip == "more than 10 min late");
        CHECK_FALSE(answer.record.next.has_value());
        CHECK(answer.record.fired == 0);
        CHECK(answer.record.last_task == ax::task_id{});
        REQUIRE(stored("nightly").has_value());
        CHECK_FALSE(stored("nightly")->next.has_value());
        step.version = 2;
        step.skipped.clear();
        CHECK(take_step(step).record.last_skip == "more than 10 min late");
    }
    SECTION("an occurrence is created once for ever, whatever happens to the cursor") {
        auto const first = declare(definition("nightly"));
        auto const id = take_step(step_of(first), t0 + 30s).occurrence->id;
        w.finish(w.take(id, t0 + 30s), attempt_outcome::succeeded, t0 + 31s);
        auto back = definition("nightly");
        back.spec = "every 15s"; // its cursor goes back with it
        auto const answer = take_step(step_of(declare(back)));
        CHECK(answer.accepted);
        REQUIRE(answer.occurrence.has_value());
        CHECK(answer.occurrence->outcome == submit_outcome::kept);
        CHECK(answer.occurrence->id == id);
        CHECK(answer.occurrence->state == task_state::succeeded);
        CHECK(answer.record.fired == 1);
        CHECK(answer.record.skipped == 1);
        CHECK(answer.record.last_skip == "it was there already");
        CHECK(answer.record.last_task == id);
        CHECK(answer.record.next == t0 + 60s);
        CHECK(answer.due.empty());
    }
    SECTION("one that was made ahead of its instant is met, and is no skip, though the one before has not ended") {
        auto const first = take_step(step_of(declare(definition("nightly"))));
        auto step = step_of(first.record);
        auto ahead = *step.occurrence;
        ahead.set_aside = GENERATE(false, true);
        auto const id = w.insert({ahead}).front().id;
        bool const busy = GENERATE(false, true);
        if (!busy) w.cancel(first.occurrence->id);
        step.skip_if_unfinished = true;
        auto const answer = take_step(step, t0 + 60s);
        REQUIRE(answer.occurrence.has_value());
        CHECK(answer.occurrence->id == id);
        CHECK(answer.record.fired == 1);
        CHECK(answer.record.skipped == 0);
        CHECK(answer.record.last_task == (busy || ahead.set_aside ? first.occurrence->id : id));
    }
    SECTION("an occurrence that is met again is the latest task only where it has not ended") {
        auto const first = take_step(step_of(declare(definition("nightly"))));
        auto const id = first.occurrence->id;
        auto const second = take_step(step_of(first.record));
        bool const ended = GENERATE(false, true);
        if (ended) w.cancel(id);
        auto back = step_of(second.record);
        back.occurrence = occurrence(t0 + 30s);
        auto const answer = take_step(back);
        CHECK(answer.occurrence->id == id);
        CHECK(answer.record.last_task == (ended ? second.occurrence->id : id));
    }
    SECTION("what waits for a later instant, which a wrong clock has made, is in nobody's way") {
        auto const first = take_step(step_of(declare(definition("nightly"))));
        auto const id = first.occurrence->id;
        auto back = step_of(first.record);
        back.occurrence = occurrence(t0 + 20s);
        auto const what = GENERATE(0, 1, 2, 3);
        CAPTURE(what);
        if (what == 0) back.skip_if_unfinished = true;
        if (what == 1) back.stop_latest = true;
        if (what >= 2) { // but one that runs is
            w.take(id, t0 + 30s);
            (what == 2 ? back.skip_if_unfinished : back.stop_latest) = true;
        }
        auto const answer = take_step(back);
        CHECK(answer.record.fired == (what == 2 ? 1 : 2));
        CHECK(answer.record.skipped == (what == 2 ? 1 : 0));
        CHECK(answer.cancelled == ax::task_id{});
        CHECK(answer.asked_to_stop == (what == 3 ? id : ax::task_id{}));
        CHECK(w.get(id).state == (what >= 2 ? task_state::dispatched : task_state::ready));
    }
    SECTION("an occurrence is created once even where the schedule was forgotten in between") {
        auto const id = take_step(step_of(declare(definition("nightly")))).occurrence->id;
        w.write([&](auto& writer) { return writer.forget("nightly"); });
        auto const answer = take_step(step_of(declare(definition("nightly"))));
        REQUIRE(answer.occurrence.has_value());
        CHECK(answer.occurrence->outcome == submit_outcome::kept);
        CHECK(answer.occurrence->id == id);
        CHECK(answer.record.fired == 0);
    }
    SECTION("an occurrence is left out while the one before has not ended, where the step says so") {
        auto const first = take_step(step_of(declare(definition("nightly"))));
        auto step = step_of(first.record);
        step.skip_if_unfinished = true;
        step.skipped = {{t0, t0 + 30s, 2, "late", {}}};
        auto const busy = take_step(step);
        CHECK(busy.accepted);
        CHECK_FALSE(busy.occurrence.has_value());
        CHECK(busy.due.empty());
        CHECK(busy.record.skipped == 3);
        CHECK(busy.record.last_skip == "the one before has not ended");
        CHECK(busy.record.fired == 1);
        CHECK(busy.record.last_task == first.occurrence->id);
        CHECK(busy.record.last_nominal == t0 + 30s);
        CHECK(busy.record.next == t0 + 90s);

        w.finish(w.take(first.occurrence->id, t0 + 30s), attempt_outcome::failed, t0 + 31s); // comes again
        step = step_of(busy.record);
        step.skip_if_unfinished = true;
        auto const still = take_step(step);
        CHECK_FALSE(still.occurrence.has_value());

        w.cancel(first.occurrence->id);
        step = step_of(still.record);
        step.skip_if_unfinished = true;
        auto const free = take_step(step);
        REQUIRE(free.occurrence.has_value());
        CHECK(free.occurrence->outcome == submit_outcome::inserted);
        CHECK(free.record.fired == 2);
    }
    SECTION("without being told so, a step creates its occurrence beside the one before") {
        auto const first = take_step(step_of(declare(definition("nightly"))));
        auto const second = take_step(step_of(first.record));
        REQUIRE(second.occurrence.has_value());
        CHECK(second.occurrence->outcome == submit_outcome::inserted);
    }
    SECTION("a step pauses and resumes, which a declaration does not") {
        auto const first = declare(definition("nightly"));
        ax::schedule_step step;
        step.name = "nightly";
        step.version = 1;
        step.next = first.next;
        step.paused = true;
        CHECK(take_step(step).record.paused);
        CHECK(stored("nightly")->paused);
        auto changed = definition("nightly");
        changed.payload = "{}";
        CHECK(declare(changed).paused);
        step.version = 3;
        step.paused.reset();
        CHECK(take_step(step).record.paused);
        step.version = 4;
        step.paused = false;
        CHECK_FALSE(take_step(step).record.paused);
        CHECK_FALSE(stored("nightly")->paused);
    }
    SECTION("an occurrence takes the place of the one that waits behind another, where the step says so") {
        auto in_line = [&](ax::schedule_record const& record) {
            auto step = step_of(record);
            step.occurrence->route_key = "line";
            step.replace_blocked = true;
            return step;
        };
        auto const first = take_step(in_line(declare(definition("nightly"))));
        auto const second = take_step(in_line(first.record)); // the first is not blocked: it stays
        CHECK(second.cancelled == ax::task_id{});
        CHECK(second.record.skipped == 0);
        auto const third = take_step(in_line(second.record), t0 + 5s);
        CHECK(third.cancelled == second.occurrence->id);
        CHECK(third.record.skipped == 1);
        CHECK(third.record.last_skip == "a later one took its place");
        CHECK(third.record.last_task == third.occurrence->id);
        CHECK(w.state(first.occurrence->id) == task_state::ready);
        CHECK(w.state(second.occurrence->id) == task_state::cancelled);
        CHECK(w.get(second.occurrence->id).finished == t0 + 5s);
        CHECK(w.get(third.occurrence->id).blocked);
    }
    SECTION("an occurrence cancels the one that waits and asks the one in flight to stop, where the step says so") {
        auto const first = take_step(step_of(declare(definition("nightly"))));
        auto step = step_of(first.record);
        step.stop_latest = true;
        auto const second = take_step(step);
        CHECK(second.cancelled == first.occurrence->id);
        CHECK(second.asked_to_stop == ax::task_id{});
        CHECK(second.record.skipped == 1);
        w.take(second.occurrence->id, t0 + 60s);
        step = step_of(second.record);
        step.stop_latest = true;
        auto const third = take_step(step);
        CHECK(third.cancelled == ax::task_id{});
        CHECK(third.asked_to_stop == second.occurrence->id);
        CHECK(third.record.skipped == 1);
        CHECK(w.store.asked_to_stop() == std::vector{second.occurrence->id});
        auto again = definition("nightly"); // the cursor goes back to what is there: nobody is in the way of it
        again.spec = "every 15s";
        again.next = *second.record.next;
        step = step_of(declare(again));
        step.stop_latest = true;
        auto const kept = take_step(step);
        CHECK(kept.occurrence->outcome == submit_outcome::kept);
        CHECK(kept.cancelled == ax::task_id{});
        CHECK(w.state(third.occurrence->id) == task_state::ready);
    }
    SECTION("the first step has nobody to wait for") {
        auto step = step_of(declare(definition("nightly")));
        step.skip_if_unfinished = true;
        CHECK(take_step(step).occurrence.has_value());
    }

    SECTION("a forgotten schedule is gone and its tasks stay") {
        auto const id = take_step(step_of(declare(definition("nightly")))).occurrence->id;
        declare(definition("other"));
        CHECK(w.write([&](auto& writer) { return writer.forget("nightly"); }));
        CHECK_FALSE(w.write([&](auto& writer) { return writer.forget("nightly"); }));
        CHECK_FALSE(w.write([&](auto& writer) { return writer.forget("never was"); }));
        CHECK_FALSE(stored("nightly").has_value());
        CHECK(stored("other").has_value());
        CHECK(w.state(id) == task_state::ready);
        auto const again = declare(definition("nightly"), t0 + 1h);
        CHECK(again.version == 1);
        CHECK(again.created == t0 + 1h);
        CHECK(again.fired == 0);
    }
}

} // namespace conformance

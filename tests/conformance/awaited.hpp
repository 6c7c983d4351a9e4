// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/workflows.hpp"

namespace conformance {

/// storage_writer 40: waits for occurrences that do not come.
template <class Fixture>
void occurrences_left_out() {
    loom<Fixture> w;

    auto const nightly = [&](std::optional<ax::time_point> next) {
        ax::schedule_record wanted;
        wanted.name = "nightly";
        wanted.spec = next ? std::to_string(next->time_since_epoch().count()) : "over";
        wanted.type = w.type("nightly");
        wanted.next = next;
        return w.write([&](auto& verbs) { return verbs.declare(wanted, t0); });
    };
    auto const end_waits = [&](std::string_view schedule = "nightly", bool over = true) {
        w.due.clear();
        w.write([&](auto& verbs) {
            verbs.end_waits(schedule, over, t0 + 1s, w.due);
            return true;
        });
        CHECK(w.store.verify().empty());
    };
    auto const move_to = [&](std::uint64_t version, std::optional<ax::time_point> next) {
        ax::schedule_step step;
        step.name = "nightly";
        step.version = version;
        step.next = next;
        CHECK(w.write([&](auto& verbs) { return verbs.step(step, t0); }).accepted);
    };
    auto const wait_at = [&](std::string name, ax::time_point at, std::string schedule = "nightly") {
        return w.wait(std::move(name), {{}, std::move(schedule), at, {}});
    };
    auto const occurrence = [&](ax::time_point at) {
        auto made = w.task_at(t0);
        made.schedule = "nightly";
        made.scheduled_at = at;
        return made;
    };

    SECTION("what lies behind the cursor counts as a skipped parent, and what lies at it or before it is waited for") {
        nightly(t0 + 2h);
        w.add_graph({wait_at("behind", t0 + 2h - 1ms), wait_at("at", t0 + 2h), wait_at("before", t0 + 3h)});
        CHECK(w.at("behind") == task_state::created);
        end_waits();
        CHECK(w.at("behind") == task_state::skipped);
        CHECK(w.at("at") == task_state::created);
        CHECK(w.at("before") == task_state::created);
        CHECK(w.store.obstacles(w.id("behind")).empty());
        move_to(1, t0 + 3h);
        end_waits();
        CHECK(w.at("at") == task_state::skipped);
        CHECK(w.at("before") == task_state::created);
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("its rule decides, and what hangs on it goes on in the same commit") {
        nightly(t0 + 2h);
        auto done = wait_at("done", t0);
        done.when = ax::trigger_rule::all_done;
        auto failed = wait_at("failed", t0);
        failed.when = ax::trigger_rule::all_failed;
        w.add_graph({done, w.node("after done", {0}), wait_at("skipped", t0), w.node("after skipped", {2}),
                     w.node("whatever", {2}, ax::trigger_rule::all_done), failed});
        end_waits();
        CHECK(w.at("done") == task_state::succeeded);
        CHECK(w.at("after done") == task_state::ready);
        CHECK(announces(w.due, w.id("after done")));
        CHECK(w.at("skipped") == task_state::skipped);
        CHECK(w.at("after skipped") == task_state::skipped);
        CHECK(w.at("whatever") == task_state::ready);
        CHECK(w.at("failed") == task_state::skipped);
        w.run("after done", attempt_outcome::succeeded, t0 + 1s);
        w.run("whatever", attempt_outcome::succeeded, t0 + 1s);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a workflow of nothing but such waits ends with them") {
        nightly(t0 + 2h);
        w.add_graph({wait_at("w", t0), w.wait("inner", {{}, "nightly", t0, "a task of it"})});
        end_waits();
        CHECK(w.at("inner") == task_state::skipped);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("an occurrence that is there is seen as what it comes to") {
        nightly(t0 + 2h);
        auto const there = w.add(occurrence(t0));
        w.add_graph({wait_at("w", t0), wait_at("soon", t0 + 1h)});
        auto const soon = w.add(occurrence(t0 + 1h));
        end_waits();
        CHECK(w.at("w") == task_state::created);
        CHECK(w.at("soon") == task_state::created);
        w.finish(w.take(there), attempt_outcome::succeeded);
        w.finish(w.take(soon), attempt_outcome::succeeded);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("other schedules and keys are other ones, whatever their names") {
        auto const far = std::to_string(std::uint64_t{1} << 63);
        nightly(t0 + 2h);
        w.add_graph({wait_at("a", t0, "nightly 2"), wait_at("b", t0, "night"), wait_at("c", t0, "nightly 0" + far),
                     wait_at("d", t0, "nightly"), w.wait("e", {"nightly", {}, {}, {}})});
        end_waits();
        for (auto const* each : {"a", "b", "c", "e"}) CHECK(w.at(each) == task_state::created);
        CHECK(w.at("d") == task_state::skipped);
    }
    SECTION("where there is no such schedule, none comes") {
        w.add_graph({wait_at("w", t0 + 24h * 365), w.wait("never", {"never", {}, {}, {}})});
        end_waits("another");
        CHECK(w.at("w") == task_state::created);
        end_waits();
        CHECK(w.at("w") == task_state::skipped);
        CHECK(w.at("never") == task_state::created);
    }
    SECTION("a schedule without a next instant is over, or waits for the end of its latest run") {
        auto const over = GENERATE(true, false);
        nightly(t0);
        ax::schedule_step step;
        step.name = "nightly";
        step.version = 1;
        step.occurrence = occurrence(t0);
        w.write([&](auto& verbs) { return verbs.step(step, t0); });
        w.add_graph({wait_at("before", t0 - 1h), wait_at("later", t0 + 1h)});
        end_waits("nightly", over);
        CHECK(w.at("before") == task_state::skipped);
        CHECK(w.at("later") == (over ? task_state::skipped : task_state::created));
    }
    SECTION("a definition that leaves the instant out") {
        nightly(t0 + 1h);
        w.add_graph({wait_at("w", t0 + 1h)});
        nightly(t0 + 2h);
        end_waits();
        CHECK(w.at("w") == task_state::skipped);
    }
    SECTION("what a backfill has yet to look at may come") {
        nightly(t0 + 2h);
        ax::backfill_record range;
        range.schedule = "nightly";
        range.from = t0 - 3h;
        range.to = t0;
        range.next = t0 - 2h;
        auto const begun = w.write([&](auto& verbs) { return verbs.begin_backfill(range, t0); });
        w.add_graph({wait_at("seen", t0 - 2h - 1ms), wait_at("first", t0 - 2h), wait_at("last", t0 - 1ms),
                     wait_at("beyond", t0)});
        end_waits();
        CHECK(w.at("seen") == task_state::skipped);
        CHECK(w.at("first") == task_state::created);
        CHECK(w.at("last") == task_state::created);
        CHECK(w.at("beyond") == task_state::skipped);
        SECTION("until it has") {
            ax::backfill_step step;
            step.number = begun.number;
            step.version = begun.version;
            step.occurrences = {occurrence(t0 - 2h)};
            step.next = t0 - 1h;
            w.write([&](auto& verbs) { return verbs.fill(step, t0); });
            end_waits();
            CHECK(w.at("first") == task_state::created); // it has come
            CHECK(w.at("last") == task_state::created);
            step = {begun.number, begun.version + 1, {}, {}, {}};
            w.write([&](auto& verbs) { return verbs.fill(step, t0); });
            end_waits();
            CHECK(w.at("last") == task_state::skipped);
        }
        SECTION("or is stopped") {
            w.write([&](auto& verbs) { return verbs.drop_backfill(begun.number); });
            end_waits();
            CHECK(w.at("first") == task_state::skipped);
            CHECK(w.at("last") == task_state::skipped);
        }
    }
    SECTION("a wait that has ended stays as it is, and is decided when it is retried") {
        nightly(t0 + 2h);
        auto wait = wait_at("w", t0);
        wait.task.deadline = t0 + 1s;
        w.add_graph({wait, wait_at("x", t0)});
        w.expire(t0 + 1s);
        CHECK(w.at("w") == task_state::dead);
        end_waits();
        CHECK(w.at("w") == task_state::dead);
        CHECK(w.at("x") == task_state::skipped);
        CHECK(w.retry(w.id("w"), t0 + 2s).outcome == change_outcome::done);
        CHECK(w.at("w") == task_state::skipped);
        CHECK(w.store.verify().empty());
    }
    SECTION("a new generation of it is skipped as well, though the occurrence has come by then") {
        nightly(t0 + 2h);
        w.add_graph({wait_at("w", t0)});
        end_waits();
        w.add(occurrence(t0));
        CHECK(w.rerun("w", ax::below::unfinished, t0 + 2s).outcome == change_outcome::done);
        CHECK(w.at("w") == task_state::skipped);
        CHECK(w.store.verify().empty());
    }
    SECTION("what is undone is waited for again") {
        nightly(t0 + 2h);
        w.add_graph({wait_at("w", t0)});
        CHECK_THROWS(w.write([&](auto& verbs) {
            verbs.end_waits("nightly", true, t0, w.due);
            throw std::runtime_error{"no"};
            return true;
        }));
        CHECK(w.at("w") == task_state::created);
        w.finish(w.take(w.add(occurrence(t0))), attempt_outcome::succeeded);
        CHECK(w.at("w") == task_state::succeeded);
    }
}

/// storage_writer 41: workflows that wait for each other.
template <class Fixture>
void wait_circles() {
    loom<Fixture> w;

    auto const on = [](std::string key, std::string member = {}) {
        return ax::awaited_task{std::move(key), {}, {}, std::move(member)};
    };
    auto const named = [&](std::string name, std::vector<ax::new_member> members) {
        auto made = w.graph({}, name);
        made.workflow = std::make_shared<ax::workflow_plan const>(ax::workflow_plan{name, std::move(members)});
        return made;
    };
    auto const refusal_of = [&](ax::new_task const& wanted) -> std::string {
        try {
            w.put(wanted);
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::invalid_argument);
            CHECK(w.store.verify().empty());
            return e.what();
        }
        return {};
    };
    auto const says = [](std::string const& text, std::string_view part) { return text.find(part) != text.npos; };

    SECTION("the last one of two is refused, with the path, and leaves nothing behind") {
        w.put(named("a", {w.wait("wait for b", on("b"))}));
        auto const first = w.head;
        auto const text = refusal_of(named("b", {w.node("x"), w.wait("wait for a", on("a"))}));
        CHECK(says(text, R"(workflow "b": circle of waits: "wait for a" of "b" -> "wait for b" of "a" -> "b")"));
        CHECK_FALSE(w.store.find_by_key("b"));
        w.put(named("b", {w.node("x")})); // and who waits for it still does
        w.run("x");
        w.head = first;
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a workflow of more than 10,000 tasks is not looked through") {
        auto const size = GENERATE(std::size_t{9'900}, std::size_t{10'001});
        std::vector<ax::new_member> crowd{w.wait("for b", on("b"))};
        while (crowd.size() != size) crowd.push_back(w.node(std::to_string(crowd.size())));
        w.put(named("a", std::move(crowd)));
        CHECK(refusal_of(named("b", {w.wait("for a", on("a"))})).empty() == (size > 10'000));
    }
    SECTION("the last one of three, through tasks that hang on waits") {
        w.put(named("a", {w.wait("for b", on("b", "late")), w.node("end", {0})}));
        w.put(named("b", {w.wait("for c", on("c")), w.node("late", {0}), w.node("free")}));
        auto const text = refusal_of(named("c", {w.wait("for a", on("a", "end"))}));
        CHECK(says(text,
                   R"("for a" of "c" -> "end" of "a" -> "for b" of "a" -> "late" of "b" -> "for c" of "b" -> "c")"));
        CHECK(refusal_of(named("c", {w.wait("for b", on("b", "free"))})).empty());
    }
    SECTION("of a task of the new one only what that hangs on counts") {
        w.put(named("a", {w.wait("for m", on("b", "m"))}));
        auto const text = refusal_of(named("b", {w.wait("for a", on("a")), w.node("x", {0}), w.node("m", {1})}));
        CHECK(says(text, R"("for m" of "a" -> "m" of "b")"));
        auto const second = refusal_of(named("b", {w.wait("1", on("a")), w.wait("2", on("a")), w.node("m", {1})}));
        CHECK(says(second, R"("2" of "b")"));
        CHECK(refusal_of(named("b", {w.wait("for a", on("a")), w.node("m")})).empty());
        w.run("m");
        CHECK(w.at("for a") == task_state::succeeded);
    }
    SECTION("what need not wait for all its parents may get out of it") {
        auto const rule = GENERATE(ax::trigger_rule::one_success, ax::trigger_rule::one_done,
                                   ax::trigger_rule::one_failed, ax::trigger_rule::always);
        auto wait = w.wait("for b", on("b"));
        wait.when = rule;
        wait.after = {1};
        w.put(named("a", {wait, w.node("x")}));
        CHECK(refusal_of(named("b", {w.wait("for a", on("a"))})).empty());
    }
    SECTION("nor is there one where what is waited for has ended") {
        w.put(named("a", {w.wait("for b", on("b"))}));
        w.cancel(w.head);
        CHECK(refusal_of(named("b", {w.wait("for a", on("a"))})).empty());
    }
    SECTION("two that wait for a third") {
        w.put(named("a", {w.wait("for b", on("b")), w.wait("for c", on("c"))}));
        w.put(named("b", {w.wait("for c", on("c"))}));
        CHECK(refusal_of(named("c", {w.node("x")})).empty());
    }
    SECTION("an occurrence of a schedule leaves its schedule as it was") {
        ax::schedule_record wanted;
        wanted.name = "s";
        wanted.type = w.whole;
        wanted.next = t0;
        w.write([&](auto& verbs) { return verbs.declare(wanted, t0); });
        w.put(named("a", {w.wait("for s", {{}, "s", t0, {}})}));
        ax::schedule_step step;
        step.name = "s";
        step.version = 1;
        step.next = t0 + 1h;
        step.occurrence = w.graph({w.wait("for a", on("a"))});
        step.occurrence->schedule = "s";
        step.occurrence->scheduled_at = t0;
        CHECK_THROWS_AS(w.write([&](auto& verbs) { return verbs.step(step, t0); }), ax::error);
        CHECK(w.store.schedules().at(0).version == 1);
        CHECK(w.store.schedules().at(0).next == t0);
        CHECK_FALSE(w.store.occurrence("s", t0));
        // A caller that goes on in the same transaction finds nothing written.
        auto const answer = w.write([&](auto& verbs) {
            CHECK_THROWS_AS(verbs.step(step, t0), ax::error);
            auto without = step;
            without.occurrence.reset();
            return verbs.step(without, t0);
        });
        CHECK(answer.accepted);
        CHECK(w.store.schedules().at(0).version == 2);
        CHECK(w.store.verify().empty());
    }
    SECTION("a backfill leaves it out, and goes on") {
        ax::schedule_record wanted;
        wanted.name = "s";
        wanted.type = w.whole;
        w.write([&](auto& verbs) { return verbs.declare(wanted, t0); });
        ax::backfill_record range;
        range.schedule = "s";
        range.from = range.next.emplace(t0);
        range.to = t0 + 3h;
        range.at_once = 3;
        auto const begun = w.write([&](auto& verbs) { return verbs.begin_backfill(range, t0); });
        w.put(named("a", {w.wait("for s", {{}, "s", t0, {}})}));
        ax::backfill_step step;
        step.number = begun.number;
        step.version = begun.version;
        for (int i = 0; i != 2; ++i) {
            step.occurrences.push_back(w.graph({w.wait("for a", on("a"))}));
            step.occurrences.back().schedule = "s";
            step.occurrences.back().scheduled_at = t0 + i * 1h;
        }
        auto const answer = w.write([&](auto& verbs) { return verbs.fill(step, t0); });
        CHECK(answer.accepted);
        CHECK(answer.record.existed == 0);
        CHECK(answer.record.made == 1);
        auto const log = w.store.skips("s");
        REQUIRE(log.latest.size() == 1);
        CHECK(log.latest[0].first == t0);
        CHECK(log.latest[0].number == 1);
        CHECK(log.latest[0].reason.find("circle of waits") != std::string::npos);
        CHECK_FALSE(w.store.occurrence("s", t0));
        CHECK(w.store.occurrence("s", t0 + 1h));
        w.write([&](auto& verbs) {
            verbs.end_waits("s", true, t0, w.due);
            return true;
        });
        CHECK(w.at("for s") == task_state::skipped);
        CHECK(w.store.verify().empty());
    }
    SECTION("a long path is cut in the middle") {
        for (int i = 0; i != 40; ++i)
            w.put(named("w" + std::to_string(i), {w.wait("next", on("w" + std::to_string(i + 1)))}));
        auto const text = refusal_of(named("w40", {w.wait("next", on("w0"))}));
        CHECK(says(text, R"("next" of "w7" -> ... -> "next" of "w32")"));
        CHECK(says(text, R"("next" of "w39" -> "w40")"));
    }
}

/// storage 16: what members() tells of waits.
template <class Fixture>
void told_waits() {
    loom<Fixture> w;
    auto const told = [&](std::string_view name) {
        for (auto const& each : w.store.members(w.head, {}, 100))
            if (each.name == name) return each;
        FAIL("there is no such member");
        return ax::member_record{};
    };
    w.put(w.graph({w.node("early")}, "there"));
    auto const there = w.head;
    auto by_key = w.wait("key", {"k \x01", {}, {}, "inner"});
    by_key.task.deadline = t0 + 1h;
    w.add_graph({by_key, w.wait("occurrence", {{}, "n 1", t0 - 1ms, {}}), w.wait("member", {"there", {}, {}, "late"}),
                 w.wait("early", {"there", {}, {}, "early"}), w.node("x")});
    auto const key = told("key");
    REQUIRE(key.until);
    CHECK(key.until->key == "k \x01");
    CHECK(key.until->schedule.empty());
    CHECK(key.until->name == "inner");
    CHECK(key.until->workflow == ax::task_id{});
    CHECK(key.deadline == t0 + 1h);
    auto const occurrence = told("occurrence");
    REQUIRE(occurrence.until);
    CHECK(occurrence.until->key.empty());
    CHECK(occurrence.until->schedule == "n 1");
    CHECK(occurrence.until->scheduled_at == t0 - 1ms);
    CHECK(occurrence.until->name.empty());
    CHECK_FALSE(occurrence.deadline);
    auto const member = told("member");
    REQUIRE(member.until);
    CHECK(member.until->key.empty());
    CHECK(member.until->schedule.empty());
    CHECK(member.until->workflow == there);
    CHECK(member.until->name == "late");
    CHECK_FALSE(told("early").until);
    CHECK(told("early").parents.size() == 1);
    CHECK_FALSE(told("x").until);
}

} // namespace conformance

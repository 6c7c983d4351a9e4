// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/workflows.hpp"

namespace conformance {

/// storage_writer 20: what goes with a workflow, and when.
template <class Fixture>
void pruned_workflows() {
    loom<Fixture> w;
    ax::prune_terms terms;
    terms.type = w.whole;
    terms.ended_by = terms.dead_by = t0 + 1h;
    auto const prune = [&](std::size_t limit = 1'000) {
        return w.write([&](auto& verbs) { return verbs.prune(terms, limit); });
    };
    auto const is_there = [&](ax::task_id id) { return w.store.find(id).has_value(); };
    auto const chain = [&](std::size_t size) {
        std::vector<ax::new_member> members;
        for (std::uint32_t i = 0; i != size; ++i)
            members.push_back(w.node("t" + std::to_string(i),
                                     i == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{i - 1}));
        w.add_graph(std::move(members));
    };
    auto const run_all = [&](std::size_t size) {
        for (std::size_t i = 0; i != size; ++i) w.run("t" + std::to_string(i));
    };
    /// Calls that go on behind each other.
    auto const prune_all = [&](std::size_t limit) {
        std::size_t calls = 1;
        for (auto part = prune(limit); part.more; part = prune(limit), ++calls) {
            CHECK(part.pruned <= limit);
            terms.after = part.after;
            REQUIRE(calls < 1'000);
        }
        return calls;
    };

    SECTION("it goes as a whole, with all that is kept of it") {
        chain(3);
        w.run("t0", attempt_outcome::failed);
        w.finish(w.take(w.id("t0"), t0 + 1min), attempt_outcome::succeeded);
        w.run("t1");
        w.run("t2");
        auto const member = w.id("t0");
        CHECK(prune().pruned == 4);
        CHECK_FALSE(is_there(w.head));
        CHECK_FALSE(is_there(member));
        CHECK(w.store.history(member).empty());
        CHECK_FALSE(w.store.workflow(w.head));
        CHECK_FALSE(w.store.workflow(member));
        CHECK(w.store.members(w.head, {}, 10).empty());
        CHECK(w.store.counts().empty());
        CHECK(w.store.verify().empty());
    }
    SECTION("a task of it never goes by itself, and counts as none of its type") {
        chain(4);
        run_all(4);
        ids plain;
        for (int i = 0; i != 3; ++i) {
            plain.push_back(w.add());
            w.finish(w.take(plain.back()), attempt_outcome::succeeded);
        }
        terms.type = w.probe;
        terms.ended_by = (ax::time_point::min)();
        terms.keep = 3;
        CHECK(prune().pruned == 0);
        terms.keep = 2;
        CHECK(prune().pruned == 1);
        CHECK_FALSE(is_there(plain[0]));
        CHECK(is_there(plain[1]));
        terms.keep = 0;
        terms.ended_by = t0 + 1h;
        CHECK(prune().pruned == 2);
        CHECK(w.store.members(w.head, {}, 10).size() == 4);
        CHECK(w.store.verify().empty());
    }
    SECTION("not before it has ended, nor while one of its tasks is unfinished") {
        chain(2);
        w.run("t0");
        CHECK(prune().pruned == 0);
        w.run("t1");
        w.rerun("t1", ax::below::unfinished);
        CHECK(w.store.workflow(w.head)->state == task_state::created); // it goes on, with a new head
        CHECK(prune().pruned == 0);
        w.run("t1");
        CHECK(prune().pruned == 5); // both generations, and both heads
        CHECK(w.store.counts().empty());
    }
    SECTION("a few at a time, and consistent in between") {
        chain(23);
        run_all(23);
        auto const first = prune(7);
        CHECK(first.pruned == 7);
        CHECK(first.more);
        CHECK(first.after < w.head);
        CHECK(is_there(w.head));
        CHECK(w.store.verify().empty());
        CHECK(w.store.workflow(w.head)->total() == 16);
        terms.after = first.after;
        CHECK(prune_all(8) == 3); // 8 and 8, and one for the head
        CHECK_FALSE(is_there(w.head));
        CHECK(w.store.counts().empty());
        CHECK(w.store.verify().empty());
    }
    SECTION("what is left of one that is retried meanwhile goes on") {
        chain(6);
        w.run("t0", attempt_outcome::exhausted);
        prune(2);
        auto const left = w.store.members(w.head, {}, 10);
        REQUIRE(left.size() == 4);
        CHECK(w.rerun(left.front().name, ax::below::unfinished, t0 + 2h).outcome == change_outcome::done);
        CHECK(w.store.verify().empty());
        CHECK(w.end() == task_state::upstream_failed);
    }
    SECTION("beyond the count the first workflow goes, and its generations are one") {
        chain(2);
        run_all(2);
        auto const first = w.head;
        w.rerun("t0", ax::below::all);
        run_all(2);
        CHECK(w.store.workflow(first)->head != first);
        chain(1);
        run_all(1);
        terms.ended_by = (ax::time_point::min)();
        terms.keep = 2;
        CHECK(prune().pruned == 0);
        terms.keep = 1;
        CHECK(prune().pruned == 6);
        CHECK_FALSE(is_there(first));
        CHECK(is_there(w.head));
        CHECK(w.store.verify().empty());
    }
    SECTION("the latest occurrence of a schedule stays with all its tasks, also where it was rerun") {
        ax::schedule_record nightly;
        nightly.name = "nightly";
        nightly.type = w.whole;
        nightly.next = t0;
        w.write([&](auto& verbs) { return verbs.declare(nightly, t0); });
        ax::schedule_step step;
        step.name = "nightly";
        step.version = 1;
        step.next = t0 + 24h;
        step.occurrence = w.graph({w.node("t0")});
        step.occurrence->schedule = "nightly";
        step.occurrence->scheduled_at = t0;
        w.head = w.write([&](auto& verbs) { return verbs.step(step, t0); }).occurrence->id;
        w.run("t0");
        CHECK(prune().pruned == 0);
        w.rerun("t0", ax::below::all);
        w.run("t0");
        CHECK(prune().pruned == 0);
        w.write([&](auto& verbs) { return verbs.forget("nightly"); });
        CHECK(prune().pruned == 4);
        CHECK(w.store.counts().empty());
    }
    SECTION("a task that was waited for goes, and who waited for it can be rerun") {
        auto other = w.task();
        other.key = "other";
        auto const awaited = w.add(other);
        w.add_graph({w.wait("w", {"other", {}, {}, {}}), w.node("a", {0})});
        w.finish(w.take(awaited), attempt_outcome::succeeded);
        terms.type = w.probe;
        CHECK(prune().pruned == 1);
        CHECK(w.store.parents(w.id("w")).empty());
        CHECK(w.store.verify().empty());
        CHECK(w.rerun("w", ax::below::all).outcome == change_outcome::done);
        CHECK(w.at("w") == task_state::succeeded); // what it came to is known
        w.run("a");
        CHECK(w.end() == task_state::succeeded);
        CHECK(w.store.verify().empty());
    }
    SECTION("what is pruned in a transaction that is undone is there again, whole") {
        chain(3);
        run_all(3);
        auto const before = w.store.members(w.head, {}, 10);
        for (std::size_t const limit : {2U, 10U})
            CHECK_THROWS(w.store.transact(ax::commit::lazy, [&](auto& verbs) {
                verbs.prune(terms, limit);
                throw std::runtime_error("no");
            }));
        auto const after = w.store.members(w.head, {}, 10);
        REQUIRE(after.size() == before.size());
        for (std::size_t i = 0; i != after.size(); ++i) CHECK(after[i].parents == before[i].parents);
        CHECK(counts_are_true(w.store, w.head));
        CHECK(w.store.verify().empty());
        CHECK(prune().pruned == 4);
    }
}

/// storage 7, and storage_writer 16 and 36 where keys are those of workflows.
template <class Fixture>
void workflow_obstacles() {
    loom<Fixture> w;
    auto const about = [&](std::string const& name) { return w.store.obstacles(w.id(name)); };

    SECTION("a task names the parents that it waits for") {
        w.add_graph({w.node("a"), w.node("b"), w.node("c", {0, 1})});
        auto found = about("c");
        REQUIRE(found.size() == 1);
        CHECK(found[0].kind == ax::obstacle::what::parents);
        CHECK(found[0].name == "task \"a\", task \"b\"");
        CHECK(found[0].holders == ids{w.id("a"), w.id("b")});
        CHECK(about("a").empty());
        w.run("a");
        found = about("c");
        REQUIRE(found.size() == 1);
        CHECK(found[0].name == "task \"b\"");
        w.run("b");
        CHECK(about("c").empty());
    }
    SECTION("at most 16 of them") {
        std::vector<ax::new_member> members;
        std::vector<std::uint32_t> all;
        for (std::uint32_t i = 0; i != 40; ++i) {
            members.push_back(w.node("p" + std::to_string(i)));
            all.push_back(i);
        }
        members.push_back(w.node("c", all));
        w.add_graph(std::move(members));
        CHECK(about("c").at(0).holders.size() == 16);
    }
    SECTION("a wait names what it waits for, before it is there and afterwards") {
        w.add_graph({w.wait("w", {"other", {}, {}, {}}), w.wait("n", {{}, "nightly", t0, {}}),
                     w.wait("m", {"big", {}, {}, "load"})});
        CHECK(about("w").at(0).name == "key \"other\"");
        CHECK(about("w").at(0).holders.empty());
        CHECK(about("n").at(0).name == "an occurrence of \"nightly\"");
        CHECK(about("m").at(0).name == "task \"load\" of key \"big\"");
        auto other = w.task();
        other.key = "other";
        auto const there = w.add(other);
        CHECK(about("w").at(0).name == "task " + std::to_string(ax::to_number(there)));
        CHECK(about("w").at(0).holders == ids{there});
    }
    SECTION("a paused workflow is one, for all that would run or wait") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c")});
        w.run("c");
        w.pause(true);
        auto const found = about("a");
        REQUIRE(found.size() == 1);
        CHECK(found[0].kind == ax::obstacle::what::paused);
        CHECK(found[0].name == "order");
        CHECK(found[0].holders == ids{w.head});
        CHECK(about("b").size() == 2);
        CHECK(about("c").empty());
        CHECK(w.store.obstacles(w.head).empty());
    }
    SECTION("a workflow that goes on is in flight for the policy of its key") {
        auto const first = w.put(w.graph({w.node("a")}, "k"));
        auto wanted = w.graph({w.node("x"), w.node("y", {0})}, "k");
        wanted.on_conflict = GENERATE(ax::on_conflict::replace, ax::on_conflict::debounce);
        auto const second = w.put(wanted);
        CHECK(second.outcome == submit_outcome::inserted);
        CHECK(second.id != first.id);
        CHECK(w.store.find_by_key("k")->id == second.id);
        CHECK(w.store.members(second.id, {}, 10).size() == 2);
        CHECK(w.store.members(first.id, {}, 10).size() == 1);
        auto plain = w.task();
        plain.key = "k";
        plain.on_conflict = wanted.on_conflict;
        auto const third = w.insert({plain}).at(0);
        CHECK(third.outcome == submit_outcome::inserted);
        CHECK(w.state(second.id) == task_state::created);
        wanted.key = "k";
        CHECK(w.put(wanted).outcome == submit_outcome::rejected); // a waiting task of another type
        CHECK(w.store.verify().empty());
    }
    SECTION("a workflow that has ended keeps its key, and throttle counts from its creation") {
        w.put(w.graph({w.node("a")}, "k"));
        auto const first = w.head;
        auto wanted = w.graph({w.node("x")}, "k");
        wanted.on_conflict = ax::on_conflict::throttle(1h);
        CHECK(w.put(wanted, t0 + 1min).outcome == submit_outcome::kept);
        auto const second = w.put(wanted, t0 + 2h);
        CHECK(second.outcome == submit_outcome::inserted);
        w.run("x", attempt_outcome::succeeded, t0 + 2h);
        wanted.on_conflict = ax::on_conflict::replace;
        CHECK(w.put(wanted, t0 + 3h).outcome == submit_outcome::kept);
        w.head = first;
        w.run("a");
        CHECK(w.end() == task_state::succeeded);
        CHECK(w.store.verify().empty());
    }
    SECTION("a wait for a task of a workflow that is stored later") {
        w.add_graph({w.wait("w", {"later", {}, {}, "inner"})});
        auto const waiting = w.head;
        w.put(w.graph({w.node("inner"), w.node("rest", {0})}, "later"));
        w.run("inner");
        w.head = waiting;
        CHECK(w.at("w") == task_state::succeeded);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a wait that has ended before what it waited for came is tied to it all the same") {
        auto wait = w.wait("w", {"late", {}, {}, {}});
        wait.task.deadline = t0 + 1h;
        w.add_graph({wait});
        w.expire(t0 + 1h);
        auto late = w.task();
        late.key = "late";
        auto const task = w.add(late, t0 + 2h);
        CHECK(w.retry(w.id("w"), t0 + 2h).state == task_state::created);
        w.finish(w.take(task, t0 + 2h), attempt_outcome::succeeded, t0 + 2h);
        CHECK(w.at("w") == task_state::succeeded);
    }
    SECTION("a new generation of a wait waits for the same") {
        auto wait = w.wait("w", {"late", {}, {}, {}});
        wait.task.deadline = t0 + 1h;
        w.add_graph({wait});
        w.expire(t0 + 1h);
        CHECK(w.rerun("w", ax::below::unfinished, t0 + 2h).outcome == change_outcome::done);
        CHECK(w.at("w") == task_state::created);
        auto late = w.task();
        late.key = "late";
        w.finish(w.take(w.add(late, t0 + 2h), t0 + 2h), attempt_outcome::succeeded, t0 + 2h);
        CHECK(w.at("w") == task_state::succeeded);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("what is waited for and ends in the call that adds the wait counts once") {
        auto other = w.task();
        other.key = "other";
        auto const awaited = w.add(other);
        w.add_graph({w.wait("first", {"other", {}, {}, {}}), w.node("a"), w.node("b", {1})});
        auto const x = w.take(awaited);
        auto end = w.end_of(w.take(w.id("a")), attempt_outcome::succeeded, t0);
        end.members = {w.wait("second", {"other", {}, {}, {}})};
        w.settle({w.end_of(x, attempt_outcome::cancelled, t0), end}, t0);
        CHECK(w.at("second") == task_state::upstream_failed);
        CHECK(w.store.verify().empty());
    }
    SECTION("a mark lets nothing run upon what is about to come back") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c", {0, 1}, ax::trigger_rule::all_done_min_one_success)});
        w.run("a", attempt_outcome::exhausted);
        CHECK(w.at("c") == task_state::upstream_failed);
        w.mark(w.id("a"));
        CHECK(w.at("b") == task_state::ready);
        CHECK(w.at("c") == task_state::created); // and not ready upon b as it was
        w.run("b");
        CHECK(w.at("c") == task_state::ready);
    }
    SECTION("a rerun leaves former generations where they are") {
        w.add_graph({w.node("a"), w.node("b"), w.node("c", {0, 1})});
        for (auto const* name : {"a", "b", "c"}) w.run(name);
        for (auto const* name : {"a", "b", "a"}) {
            CHECK(w.rerun(name, ax::below::all).outcome == change_outcome::done);
            CHECK(w.store.verify().empty());
            w.run(name);
            w.run("c");
        }
        CHECK(w.store.members(w.head, {}, 100).size() == 3 + 2 * 3);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("in a cancelled workflow nothing starts, whatever is marked") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c")});
        w.run("a", attempt_outcome::exhausted);
        w.cancel(w.head);
        w.mark(w.id("a"));
        CHECK(w.at("b") == task_state::cancelled);
        CHECK(w.end() == task_state::cancelled);
        w.retry(w.head);
        CHECK(w.at("b") == task_state::ready);
    }
    SECTION("what ran, was retried and then ended by its rule comes back, too") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("z", {0}, ax::trigger_rule::none_failed), w.node("q"),
                     w.node("p", {3}, ax::trigger_rule::all_failed),
                     w.node("y", {0, 4}, ax::trigger_rule::none_failed)});
        w.run("a");
        w.run("q"); // p is skipped
        CHECK(w.at("p") == task_state::skipped);
        w.run("y", attempt_outcome::exhausted);
        w.rerun("q", ax::below::unfinished);
        CHECK(w.retry(w.id("y")).state == task_state::created); // p is open again
        w.run("q", attempt_outcome::exhausted);
        w.run("p", attempt_outcome::exhausted);
        CHECK(w.at("y") == task_state::upstream_failed);
        w.retry(w.id("p"));
        CHECK(w.at("y") == task_state::created);
        w.run("p");
        CHECK(w.at("y") == task_state::ready);
    }
    SECTION("a wait that succeeded has no attempts") {
        auto other = w.task();
        other.key = "other";
        w.finish(w.take(w.add(other)), attempt_outcome::succeeded);
        w.add_graph({w.wait("w", {"other", {}, {}, {}})});
        CHECK(w.at("w") == task_state::succeeded);
        CHECK(w.store.history(w.id("w")).empty());
        CHECK(w.store.history(w.head).empty());
    }
}

} // namespace conformance

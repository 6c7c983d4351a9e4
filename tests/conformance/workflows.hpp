// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>

namespace conformance {

/// Workflows by the names of their tasks.
template <class Fixture>
struct loom : workbench<Fixture> {
    using base = workbench<Fixture>;
    using writer = typename base::writer;

    loom() : whole(base::type("ax:workflow")), pause_type(base::type("ax:wait")) {}

    ax::new_member node(std::string name, std::vector<std::uint32_t> after = {},
                        ax::trigger_rule when = ax::trigger_rule::all_success) const {
        return {base::task(), std::move(name), when, std::move(after), {}};
    }
    ax::new_member wait(std::string name, ax::awaited_task until) const {
        auto made = node(std::move(name));
        made.task.type = pause_type;
        made.until = std::move(until);
        return made;
    }
    ax::new_task graph(std::vector<ax::new_member> members, std::string key = {}) const {
        ax::new_task made;
        made.type = whole;
        made.key = std::move(key);
        made.workflow = std::make_shared<ax::workflow_plan const>(ax::workflow_plan{"order", std::move(members)});
        return made;
    }
    ax::insertion put(ax::new_task const& wanted, ax::time_point now = t0) {
        auto const answer = base::write([&](writer& w) {
            base::due.clear();
            return w.insert({&wanted, 1}, now, base::due).front();
        });
        head = answer.id;
        return answer;
    }
    ax::task_id add_graph(std::vector<ax::new_member> members) { return put(graph(std::move(members))).id; }

    /// The latest generation of a member.
    ax::task_id id(std::string const& name) const {
        ax::task_id found{};
        for (auto const& each : base::store.members(head, {}, 1'000))
            if (each.name == name) found = each.id;
        REQUIRE(found != ax::task_id{});
        return found;
    }
    task_state at(std::string const& name) const { return base::state(id(name)); }
    task_state end() const { return base::store.workflow(head)->state; }
    ax::settlement run(std::string const& name, attempt_outcome outcome = attempt_outcome::succeeded,
                       ax::time_point when = t0) {
        return base::finish(base::take(id(name), when), outcome, when);
    }
    ax::change mark(ax::task_id task) {
        return base::write([&](writer& w) { return w.mark_succeeded(task, t0); });
    }
    ax::change rerun(std::string const& name, ax::rerun_scope scope, ax::time_point now = t0) {
        auto const old = id(name);
        return base::write([&](writer& w) { return w.rerun(old, scope, now); });
    }
    ax::change pause(bool yes) {
        return base::write([&](writer& w) { return w.pause_workflow(head, yes, t0); });
    }

    ax::type_number whole;
    ax::type_number pause_type;
    ax::task_id head{};
};

/// Every count of a workflow, told from its tasks.
template <class Storage>
bool counts_are_true(Storage const& store, ax::task_id head) {
    std::map<std::string, ax::member_record> latest;
    for (auto const& each : store.members(head, {}, 100'000))
        if (!each.outdated) latest[each.name] = each;
    std::map<task_state, std::size_t> n;
    for (auto const& [name, each] : latest) ++n[each.state];
    auto const w = *store.workflow(head);
    return w.waiting == n[task_state::created] && w.succeeded == n[task_state::succeeded] &&
           w.dead == n[task_state::dead] && w.cancelled == n[task_state::cancelled] &&
           w.skipped == n[task_state::skipped] && w.upstream_failed == n[task_state::upstream_failed] &&
           w.total() == latest.size();
}

/// storage_writer 28 to 30, and storage 15 to 17.
template <class Fixture>
void workflows() {
    loom<Fixture> w;
    using ax::trigger_rule;

    SECTION("what has no parents is ready, the rest waits, and no claim takes the head") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c", {0}), w.node("d", {1, 2})});
        CHECK(w.at("a") == task_state::ready);
        CHECK(w.at("b") == task_state::created);
        CHECK(w.end() == task_state::created);
        CHECK(announces(w.due, w.id("a")));
        CHECK(w.due.size() == 1);
        CHECK_FALSE(w.can_take(w.head));
        CHECK_FALSE(w.can_take(w.id("b")));
        CHECK(w.upcoming() == ids{w.id("a")});
        CHECK(w.get(w.head).in_workflow);
        CHECK(w.get(w.id("d")).in_workflow);
        auto const record = *w.store.workflow(w.id("d"));
        CHECK(record.id == w.head);
        CHECK(record.name == "order");
        CHECK(record.waiting == 3);
        CHECK(record.ready == 1);
        CHECK(record.total() == 4);
    }
    SECTION("what is claimed is at work in its own workflow, and what is to be tried again is not") {
        w.add_graph({w.node("x")});
        auto const other = w.take(w.id("x"));
        w.add_graph({w.node("a"), w.node("b"), w.node("c"), w.node("d", {0})});
        auto const counted = [&] {
            auto const record = *w.store.workflow(w.head);
            CHECK(record.waiting == 1);
            CHECK(record.total() == 4);
            CHECK(record.unfinished() == 4);
            return std::pair{record.ready, record.running};
        };
        CHECK(counted() == std::pair{std::size_t{3}, std::size_t{0}});
        auto const a = w.take(w.id("a"));
        CHECK(counted() == std::pair{std::size_t{2}, std::size_t{1}});
        auto const b = w.take(w.id("b"));
        w.start(b, t0);
        CHECK(counted() == std::pair{std::size_t{1}, std::size_t{2}});
        w.finish(b, attempt_outcome::failed, t0);
        w.settle({w.end_of(a, attempt_outcome::released, t0)}, t0);
        CHECK(counted() == std::pair{std::size_t{3}, std::size_t{0}});
        w.finish(other, attempt_outcome::succeeded);
    }
    SECTION("children are let go in the commit that ends the last parent, and the last end ends the workflow") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c", {0}), w.node("d", {1, 2})});
        auto const due = w.run("a", attempt_outcome::succeeded, t0 + 1s).due;
        CHECK(announces(due, w.id("b")));
        CHECK(announces(due, w.id("c")));
        CHECK(w.get(w.id("b")).run_at == t0 + 1s);
        w.run("b", attempt_outcome::succeeded, t0 + 2s);
        CHECK(w.at("d") == task_state::created);
        w.run("c", attempt_outcome::succeeded, t0 + 3s);
        CHECK(w.at("d") == task_state::ready);
        CHECK(w.end() == task_state::created);
        w.run("d", attempt_outcome::succeeded, t0 + 4s);
        CHECK(w.end() == task_state::succeeded);
        auto const record = *w.store.workflow(w.head);
        CHECK(record.succeeded == 4);
        CHECK(record.started == t0 + 1s);
        CHECK(record.finished == t0 + 4s);
        CHECK(record.last_ended == w.id("d"));
        CHECK(w.store.counts().size() == 2); // four succeeded probes, one succeeded workflow
    }
    SECTION("a workflow has begun with the first attempt of one of its tasks, whatever came of it") {
        w.add_graph({w.node("a"), w.node("b", {0})});
        CHECK_FALSE(w.store.workflow(w.head)->started);
        w.run("a", attempt_outcome::failed, t0 + 1s);
        CHECK(w.store.workflow(w.head)->started == t0 + 1s);
    }
    SECTION("a parent that stands behind its child in the list is a parent like any other") {
        w.add_graph({w.node("last", {1}), w.node("first")});
        CHECK(w.at("first") == task_state::ready);
        CHECK(w.at("last") == task_state::created);
        w.run("first");
        CHECK(w.at("last") == task_state::ready);
    }
    SECTION("a failed attempt leaves the children waiting until its task is dead") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c", {1})});
        w.run("a", attempt_outcome::failed);
        CHECK(w.at("b") == task_state::created);
        w.run("a", attempt_outcome::exhausted, t0 + 1h);
        CHECK(w.at("b") == task_state::upstream_failed);
        CHECK(w.at("c") == task_state::upstream_failed);
        CHECK(w.end() == task_state::upstream_failed);
        CHECK(w.get(w.head).last_error == "its task \"c\" did not succeed");
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("every rule lets its task go, or ends it, as decide() says of the parents") {
        auto const rule = GENERATE(from_range(std::begin(ax::all_trigger_rules), std::end(ax::all_trigger_rules)));
        auto const first = GENERATE(attempt_outcome::succeeded, attempt_outcome::exhausted, attempt_outcome::skipped,
                                    attempt_outcome::cancelled);
        auto const second = GENERATE(attempt_outcome::succeeded, attempt_outcome::exhausted, attempt_outcome::skipped);
        w.add_graph({w.node("a"), w.node("b"), w.node("c", {0, 1}, rule)});
        ax::parent_counts counts;
        counts.total = 2;
        auto const expected = [&] {
            switch (ax::decide(rule, counts)) {
            case ax::trigger_decision::wait: return task_state::created;
            case ax::trigger_decision::run: return task_state::ready;
            case ax::trigger_decision::skip: return task_state::skipped;
            case ax::trigger_decision::upstream_failed: break;
            }
            return task_state::upstream_failed;
        };
        auto const count = [&](attempt_outcome outcome) {
            ++(outcome == attempt_outcome::succeeded ? counts.succeeded
               : outcome == attempt_outcome::skipped ? counts.skipped
                                                     : counts.failed);
        };
        CHECK(w.at("c") == expected());
        w.run("a", first);
        count(first);
        CHECK(w.at("c") == expected());
        w.run("b", second);
        count(second);
        CHECK(w.at("c") == expected());
        CHECK(counts_are_true(w.store, w.head));
        if (w.at("c") == task_state::ready) w.run("c");
        CHECK(is_terminal(w.end()));
    }
    SECTION("two parents that end in one call let their child go once") {
        w.add_graph({w.node("a"), w.node("b"), w.node("c", {0, 1})});
        auto const a = w.take(w.id("a"));
        auto const b = w.take(w.id("b"));
        auto const answer =
            w.settle({w.end_of(a, attempt_outcome::succeeded, t0), w.end_of(b, attempt_outcome::succeeded, t0)}, t0);
        CHECK(std::count_if(answer.due.begin(), answer.due.end(),
                            [&](auto const& each) { return each.id == w.id("c"); }) == 1);
        CHECK(w.get(w.id("c")).version == 2);
    }
    SECTION("the outcome is that of the tasks without children") {
        w.add_graph({w.node("a"), w.node("clean up", {0}, trigger_rule::all_done)});
        w.run("a", attempt_outcome::exhausted);
        CHECK(w.at("clean up") == task_state::ready);
        w.run("clean up");
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a long chain falls in one commit") {
        std::vector<ax::new_member> chain{w.node("0")};
        for (std::uint32_t i = 1; i != 3'000; ++i) chain.push_back(w.node(std::to_string(i), {i - 1}));
        w.add_graph(std::move(chain));
        w.run("0", attempt_outcome::exhausted);
        CHECK(w.store.workflow(w.head)->upstream_failed == 2'999);
        CHECK(w.end() == task_state::upstream_failed);
    }
    SECTION("the key of a workflow is that of a task") {
        auto const first = w.put(w.graph({w.node("a")}, "k"));
        auto const second = w.put(w.graph({w.node("a")}, "k"));
        CHECK(first.outcome == submit_outcome::inserted);
        CHECK(first.state == task_state::created);
        CHECK(second.outcome == submit_outcome::kept);
        CHECK(second.id == first.id);
        CHECK(w.store.find_by_key("k")->id == first.id);
        CHECK(w.store.members(first.id, {}, 10).size() == 1);
    }
    SECTION("a transaction that throws leaves nothing, and the store goes on") {
        CHECK_THROWS(w.store.transact(ax::commit::lazy, [&](auto& verbs) {
            auto const wanted = w.graph({w.node("a"), w.node("b", {0})}, "k");
            verbs.insert({&wanted, 1}, t0, w.due);
            throw std::runtime_error("no");
        }));
        CHECK_FALSE(w.store.find_by_key("k"));
        w.put(w.graph({w.node("a")}, "k"));
        w.run("a");
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("members are paged by name, and parents tell their results") {
        w.add_graph({w.node("a"), w.node("b"), w.node("c", {0, 1})});
        auto first = w.store.members(w.head, {}, 2);
        REQUIRE(first.size() == 2);
        CHECK(first[1].name == "b");
        auto const rest = w.store.members(w.head, "b", 2);
        REQUIRE(rest.size() == 1);
        CHECK(rest[0].parents == ids{w.id("a"), w.id("b")});
        auto end = w.end_of(w.take(w.id("a")), attempt_outcome::succeeded, t0);
        end.result = "{\"n\":1}";
        w.settle({end}, t0);
        auto const parents = w.store.parents(w.id("c"));
        REQUIRE(parents.size() == 2);
        CHECK(parents[0].name == "a");
        CHECK(parents[0].state == task_state::succeeded);
        CHECK(parents[0].result == "{\"n\":1}");
        CHECK(parents[1].state == task_state::ready);
        CHECK(w.store.parents(ax::task_id{99}).empty());
        CHECK_FALSE(w.store.workflow(ax::task_id{99}));
    }
    SECTION("a route key holds between the tasks of a workflow, too") {
        auto one = w.node("a");
        one.task.route_key = "r";
        auto two = w.node("b", {0});
        two.task.route_key = "r";
        auto three = w.node("c");
        three.task.route_key = "r";
        w.add_graph({one, two, three});
        CHECK(w.get(w.id("c")).blocked);
        w.run("a");
        CHECK(w.get(w.id("c")).blocked); // b was stored before it
        w.run("b");
        w.run("c");
        CHECK(w.end() == task_state::succeeded);
    }
}

/// storage_writer 29, 31, 33 to 35: what people do to a workflow.
template <class Fixture>
void workflow_changes() {
    loom<Fixture> w;
    using ax::trigger_rule;
    auto const diamond = [&] { w.add_graph({w.node("a"), w.node("b", {0}), w.node("c", {0}), w.node("d", {1, 2})}); };

    SECTION("a dead task that is retried brings back what it had ended") {
        diamond();
        w.run("a");
        w.run("b", attempt_outcome::exhausted);
        CHECK(w.at("d") == task_state::upstream_failed);
        CHECK(w.end() == task_state::created); // c is left
        w.run("c");
        CHECK(w.end() == task_state::upstream_failed);
        auto const change = w.retry(w.id("b"), t0 + 1h);
        CHECK(change.outcome == change_outcome::done);
        CHECK(change.state == task_state::ready);
        CHECK(announces(change.due, w.id("b")));
        CHECK(w.at("d") == task_state::created);
        CHECK(w.end() == task_state::created);
        CHECK_FALSE(w.get(w.head).finished);
        CHECK(counts_are_true(w.store, w.head));
        w.run("b", attempt_outcome::succeeded, t0 + 1h);
        w.run("d", attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.end() == task_state::succeeded);
        CHECK(w.get(w.head).last_error.empty());
    }
    SECTION("so does one that is marked as succeeded") {
        diamond();
        w.run("a");
        w.run("c");
        w.run("b", attempt_outcome::exhausted);
        auto const change = w.mark(w.id("b"));
        CHECK(change.outcome == change_outcome::done);
        CHECK(announces(change.due, w.id("d")));
        CHECK(w.at("d") == task_state::ready);
        CHECK(w.mark(w.id("b")).outcome == change_outcome::wrong_state);
        CHECK(w.mark(ax::task_id{99}).outcome == change_outcome::unknown);
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("what its handler has skipped does not come back") {
        w.add_graph({w.node("a"), w.node("b", {0}, trigger_rule::all_done)});
        w.run("a", attempt_outcome::exhausted);
        w.run("b", attempt_outcome::skipped);
        w.retry(w.id("a"));
        CHECK(w.at("b") == task_state::skipped);
    }
    SECTION("cancelling a workflow ends what waits, asks what runs to stop, and nothing starts afterwards") {
        w.add_graph({w.node("a"), w.node("b"), w.node("c", {0}), w.node("d", {0, 1}, trigger_rule::all_done)});
        auto const a = w.take(w.id("a"));
        auto const change = w.cancel(w.head);
        CHECK(change.outcome == change_outcome::done);
        CHECK(change.state == task_state::created);
        CHECK(change.asked_to_stop == ids{a.id});
        CHECK(w.store.asked_to_stop() == ids{a.id});
        CHECK(w.at("b") == task_state::cancelled);
        CHECK(w.at("c") == task_state::cancelled);
        CHECK(w.at("d") == task_state::cancelled);
        CHECK(w.store.workflow(w.head)->stopping);
        w.finish(a, attempt_outcome::failed);
        CHECK(w.at("a") == task_state::cancelled);
        CHECK(w.end() == task_state::cancelled);
        CHECK(w.upcoming().empty());
        CHECK(counts_are_true(w.store, w.head));
        CHECK(w.cancel(w.head).outcome == change_outcome::wrong_state);
    }
    SECTION("a cancelled workflow where nothing runs is over at once, and can be retried") {
        diamond();
        w.run("a");
        CHECK(w.cancel(w.head).state == task_state::cancelled);
        auto const change = w.retry(w.head, t0 + 1h);
        CHECK(change.outcome == change_outcome::done);
        CHECK(w.at("a") == task_state::succeeded);
        CHECK(w.at("b") == task_state::ready);
        CHECK(w.at("c") == task_state::ready);
        CHECK(w.at("d") == task_state::created);
        CHECK(w.end() == task_state::created);
        CHECK(counts_are_true(w.store, w.head));
        for (auto const* name : {"b", "c", "d"}) w.run(name, attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("one cancelled task counts as a failed one") {
        diamond();
        w.cancel(w.id("a"));
        CHECK(w.at("d") == task_state::upstream_failed);
        CHECK(w.end() == task_state::upstream_failed);
    }
    SECTION("a workflow beyond its deadline is dead, and its tasks are cancelled") {
        auto wanted = w.graph({w.node("a"), w.node("b", {0})});
        wanted.deadline = t0 + 1h;
        w.put(wanted);
        auto const a = w.take(w.id("a"));
        auto const late = w.expire(t0 + 1h);
        CHECK(late.dead == ids{w.head});
        CHECK(late.asked_to_stop == ids{a.id});
        CHECK(w.at("b") == task_state::cancelled);
        CHECK(w.end() == task_state::dead);
        w.finish(a, attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.end() == task_state::dead);
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("a task beyond its deadline is a failed parent") {
        auto late = w.node("b", {0});
        late.task.deadline = t0 + 1h;
        w.add_graph({w.node("a"), late, w.node("c", {1}, trigger_rule::one_failed)});
        w.expire(t0 + 1h);
        CHECK(w.at("b") == task_state::dead);
        CHECK(w.at("c") == task_state::ready);
    }
    SECTION("retry of a member that waited lets it wait for its parents again") {
        diamond();
        w.cancel(w.id("d"));
        CHECK(w.retry(w.id("d")).state == task_state::created);
        CHECK(w.get(w.id("d")).finished == std::nullopt);
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("a paused workflow is not claimed, nor what is let go or comes back meanwhile") {
        diamond();
        auto const a = w.take(w.id("a"));
        CHECK(w.pause(true).outcome == change_outcome::done);
        w.finish(a, attempt_outcome::failed, t0);
        CHECK_FALSE(w.can_take(w.id("a"), t0 + 1h));
        CHECK(w.get(w.id("a")).paused);
        CHECK(w.upcoming().empty());
        auto const due = w.pause(false).due;
        CHECK(announces(due, w.id("a")));
        w.pause(true);
        w.pause(false);
        auto const again = w.take(w.id("a"), t0 + 1h);
        w.pause(true);
        CHECK(w.store.workflow(w.head)->paused);
        w.finish(again, attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.at("b") == task_state::ready);
        CHECK_FALSE(w.can_take(w.id("b"), t0 + 2h));
        w.pause(false);
        CHECK(w.can_take(w.id("b"), t0 + 2h));
        auto const member = w.id("b");
        CHECK(w.write([&](auto& verbs) { return verbs.pause_workflow(member, true, t0); }).outcome ==
              change_outcome::unknown);
    }
    SECTION("rerun of what waits: a new generation, and what waits hangs on it") {
        diamond();
        w.run("a");
        w.run("b", attempt_outcome::exhausted);
        auto const old = w.id("b");
        auto const change = w.rerun("b", ax::below::unfinished, t0 + 1h);
        CHECK(change.outcome == change_outcome::done);
        CHECK(change.task == w.id("b"));
        CHECK(change.task != old);
        CHECK(w.at("b") == task_state::ready);
        CHECK(w.state(old) == task_state::dead);
        CHECK(w.at("d") == task_state::created);
        CHECK(counts_are_true(w.store, w.head));
        auto const again = w.rerun("b", ax::below::all);
        CHECK(again.outcome == change_outcome::wrong_state);        // it is ready: it still runs
        CHECK(w.retry(old).outcome == change_outcome::wrong_state); // a later one took its place
        CHECK(w.mark(old).outcome == change_outcome::wrong_state);
        w.run("b", attempt_outcome::succeeded, t0 + 1h);
        w.run("c", attempt_outcome::succeeded, t0 + 1h);
        w.run("d", attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("rerun of all that is below takes what has run with it, and the workflow is open again") {
        diamond();
        for (auto const* name : {"a", "b", "c", "d"}) w.run(name);
        CHECK(w.end() == task_state::succeeded);
        auto const a = w.id("a");
        auto const d = w.id("d");
        CHECK(w.rerun("b", ax::below::all, t0 + 1h).outcome == change_outcome::done);
        CHECK(w.id("a") == a);
        CHECK(w.id("d") != d);
        CHECK(w.at("b") == task_state::ready);
        CHECK(w.at("d") == task_state::created);
        CHECK(w.state(w.head) == task_state::succeeded); // a succeeded row never changes
        CHECK(w.end() == task_state::created);
        CHECK(w.store.workflow(w.head)->head != w.head);
        CHECK(counts_are_true(w.store, w.head));
        w.run("b", attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.at("d") == task_state::ready); // c's success still counts
        w.run("d", attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a stale parent starts no child of a later generation") {
        w.add_graph({w.node("a"), w.node("x"), w.node("b", {0, 1})});
        w.run("a", attempt_outcome::exhausted);
        auto const old = w.id("a");
        w.rerun("a", ax::below::unfinished);
        w.run("x");
        CHECK(w.at("b") == task_state::created);
        CHECK(w.mark(old).outcome == change_outcome::wrong_state);
        CHECK(w.at("b") == task_state::created);
    }
    SECTION("rerun is refused while something below is in flight, and names it") {
        diamond();
        w.run("a");
        auto const b = w.take(w.id("b"));
        for (auto const scope : {ax::below::unfinished, ax::below::all}) {
            auto const change = w.rerun("a", scope);
            CHECK(change.outcome == change_outcome::wrong_state);
            CHECK(change.task == b.id);
        }
        CHECK(counts_are_true(w.store, w.head));
        CHECK(w.write([&](auto& verbs) { return verbs.rerun(w.head, ax::below::all, t0); }).outcome ==
              change_outcome::wrong_state);
        CHECK(w.write([&](auto& verbs) { return verbs.rerun(ax::task_id{99}, ax::below::all, t0); }).outcome ==
              change_outcome::unknown);
    }
    SECTION("rerun renews what is ready below, and leaves what has ended with below::unfinished") {
        diamond();
        w.run("a");
        w.run("b");
        auto const c = w.id("c");
        auto const b = w.id("b");
        CHECK(w.rerun("a", ax::below::unfinished, t0 + 1h).outcome == change_outcome::done);
        CHECK(w.state(c) == task_state::cancelled);
        CHECK(w.at("c") == task_state::created);
        CHECK(w.id("b") == b);
        CHECK(counts_are_true(w.store, w.head));
        for (auto const* name : {"a", "c", "d"}) w.run(name, attempt_outcome::succeeded, t0 + 1h);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a reclaimed task that is poison is a failed parent") {
        diamond();
        for (int i = 0; i != 5; ++i) {
            w.take(w.id("a"), t0, node_a);
            w.reclaim();
        }
        CHECK(w.at("a") == task_state::dead);
        CHECK(w.end() == task_state::upstream_failed);
    }
    SECTION("undone changes leave no trace") {
        diamond();
        w.run("a");
        CHECK_THROWS(w.store.transact(ax::commit::lazy, [&](auto& verbs) {
            verbs.cancel(w.head, t0);
            throw std::runtime_error("no");
        }));
        CHECK(w.at("b") == task_state::ready);
        CHECK(counts_are_true(w.store, w.head));
        auto const a = w.id("a");
        CHECK_THROWS(w.store.transact(ax::commit::lazy, [&](auto& verbs) {
            verbs.rerun(a, ax::below::all, t0);
            throw std::runtime_error("no");
        }));
        w.run("b");
        w.run("c");
        CHECK(w.at("d") == task_state::ready);
        CHECK(counts_are_true(w.store, w.head));
    }
}

/// storage_writer 32 and 36.
template <class Fixture>
void growing_workflows() {
    loom<Fixture> w;
    using ax::trigger_rule;
    auto const grow = [&](std::string const& by, std::vector<ax::new_member> members,
                          attempt_outcome outcome = attempt_outcome::succeeded) {
        auto end = w.end_of(w.take(w.id(by)), outcome, t0);
        end.members = std::move(members);
        return w.settle({end}, t0);
    };

    SECTION("added tasks come behind who adds them, and before what waits for it") {
        w.add_graph({w.node("a"), w.node("z", {0})});
        auto const due = grow("a", {w.node("x"), w.node("y", {0}), w.node("x2")}).due;
        CHECK(w.at("x") == task_state::ready);
        CHECK(announces(due, w.id("x")));
        CHECK(w.at("y") == task_state::created);
        CHECK(w.at("z") == task_state::created);
        CHECK(w.store.workflow(w.head)->total() == 5);
        CHECK(counts_are_true(w.store, w.head));
        w.run("x");
        w.run("x2");
        CHECK(w.at("z") == task_state::created);
        w.run("y");
        CHECK(w.at("z") == task_state::ready);
        w.run("z");
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("the last task of a workflow may add, too: it goes on") {
        w.add_graph({w.node("a")});
        grow("a", {w.node("x")});
        CHECK(w.end() == task_state::created);
        w.run("x");
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("nothing is added with a failure") {
        w.add_graph({w.node("a")});
        grow("a", {w.node("x")}, attempt_outcome::exhausted);
        CHECK(w.store.workflow(w.head)->total() == 1);
    }
    SECTION("a name that is taken meanwhile is told apart") {
        w.add_graph({w.node("a"), w.node("b")});
        grow("a", {w.node("x")});
        grow("b", {w.node("x")});
        CHECK(w.store.workflow(w.head)->total() == 4);
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("what a task had added is left behind where it is rerun, and its new run adds it anew") {
        auto const scope = GENERATE(ax::below::unfinished, ax::below::all);
        w.add_graph({w.node("a"), w.node("z", {0})});
        grow("a", {w.node("x"), w.node("y", {0})});
        w.run("x");
        auto const y = w.id("y");
        CHECK(w.state(y) == task_state::ready);
        CHECK(w.rerun("a", scope).outcome == change_outcome::done);
        CHECK(w.state(y) == task_state::cancelled);
        CHECK_FALSE(w.can_take(y));
        CHECK(w.retry(y).outcome == change_outcome::wrong_state);
        CHECK(w.rerun("x", scope).outcome == change_outcome::wrong_state);
        CHECK(w.store.workflow(w.head)->total() == 2); // a and z
        CHECK(w.at("z") == task_state::created);
        CHECK(w.store.parents(w.id("z")).size() == 1);
        CHECK(w.store.verify().empty());
        grow("a", {w.node("x"), w.node("y", {0})});
        CHECK(w.store.members(w.head, {}, 100).size() == 2 + 1 + 2 * 2); // z waited, and stays as it is
        CHECK(w.store.workflow(w.head)->total() == 4);
        for (auto const* name : {"x", "y", "z"}) w.run(name);
        CHECK(w.end() == task_state::succeeded);
        for (auto const& each : w.store.members(w.head, {}, 100)) {
            CAPTURE(each.name, each.generation);
            bool const added = each.name == "x" || each.name == "y";
            CHECK((each.added_by != ax::task_id{}) == added);
            CHECK(each.outdated == (each.id != w.id(each.name)));
        }
        CHECK(w.store.verify().empty());
    }
    SECTION("what had added more takes that with it, and what its new run does not add is gone") {
        w.add_graph({w.node("a"), w.node("z", {0})});
        grow("a", {w.node("x")});
        grow("x", {w.node("y")});
        w.run("y", attempt_outcome::exhausted);
        CHECK(w.end() == task_state::upstream_failed);
        w.rerun("x", ax::below::all); // of its adder nothing changes
        grow("x", {w.node("y")});
        CHECK(w.store.workflow(w.head)->total() == 4);
        w.run("y", attempt_outcome::exhausted);
        CHECK(w.rerun("a", ax::below::all).outcome == change_outcome::done);
        w.run("a");
        w.run("z");
        CHECK(w.end() == task_state::succeeded);
        CHECK(w.store.workflow(w.head)->total() == 2);
        CHECK(w.store.workflow(w.head)->dead == 0);
        CHECK(w.retry(w.head).outcome == change_outcome::wrong_state); // of what is gone nothing is tried again
        CHECK(w.store.verify().empty());
    }
    SECTION("a rerun is refused while something is in flight that was added") {
        w.add_graph({w.node("a"), w.node("z", {0})});
        grow("a", {w.node("x"), w.node("y", {0})});
        w.run("x");
        auto const busy = w.take(w.id("y"));
        auto const answer = w.rerun("a", ax::below::unfinished);
        CHECK(answer.outcome == change_outcome::wrong_state);
        CHECK(answer.task == busy.id);
    }
    SECTION("a rerun that is undone leaves what was added where it was") {
        w.add_graph({w.node("a")});
        grow("a", {w.node("x")});
        auto const a = w.id("a");
        CHECK_THROWS(w.store.transact(ax::commit::lazy, [&](auto& verbs) {
            verbs.rerun(a, ax::below::all, t0);
            throw std::runtime_error("no");
        }));
        CHECK(w.at("x") == task_state::ready);
        CHECK(w.store.verify().empty());
        w.run("x");
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a task that is rerun by itself sees its parents as they are by now") {
        w.add_graph({w.node("a"), w.node("b", {0})});
        w.run("a");
        w.run("b");
        w.rerun("a", ax::below::unfinished);
        CHECK(w.rerun("b", ax::below::unfinished).outcome == change_outcome::done);
        CHECK(w.at("b") == task_state::created);
        w.run("a");
        CHECK(w.at("b") == task_state::ready);
        CHECK(w.store.parents(w.id("b")).at(0).id == w.id("a"));
    }
    SECTION("a wait for a task that a workflow gets later is tied when it comes, and when it comes anew") {
        auto const first = w.put(w.graph({w.node("a")}, "k")).id;
        w.add_graph({w.wait("w", {"k", {}, {}, "x"})});
        auto const second = w.head;
        CHECK(w.at("w") == task_state::created);
        CHECK(w.store.obstacles(w.id("w")).at(0).name ==
              "task \"x\" of workflow " + std::to_string(ax::to_number(first)));
        w.head = first;
        grow("a", {w.node("x")});
        w.rerun("a", ax::below::unfinished); // before x has run
        w.head = second;
        CHECK(w.at("w") == task_state::created);
        CHECK(w.store.obstacles(w.id("w")).at(0).holders.empty());
        CHECK(w.store.verify().empty());
        w.head = first;
        grow("a", {w.node("x")});
        w.run("x");
        w.head = second;
        CHECK(w.at("w") == task_state::succeeded);
        CHECK(w.end() == task_state::succeeded);
        CHECK(w.store.verify().empty());
    }
    SECTION("a workflow is stopping until it has ended") {
        w.add_graph({w.node("a"), w.node("b", {0})});
        auto const a = w.take(w.id("a"));
        w.cancel(w.head);
        CHECK(w.store.workflow(w.head)->stopping);
        w.finish(a, attempt_outcome::cancelled);
        CHECK(w.end() == task_state::cancelled);
        CHECK_FALSE(w.store.workflow(w.head)->stopping);
    }
    SECTION("what is added to a cancelled workflow does not start") {
        w.add_graph({w.node("a"), w.node("b", {0})});
        auto end = w.end_of(w.take(w.id("a")), attempt_outcome::succeeded, t0);
        end.members = {w.node("x")};
        w.cancel(w.head);
        w.settle({end}, t0);
        CHECK(w.at("x") == task_state::cancelled);
        CHECK(w.end() == task_state::cancelled);
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("a wait is over when the task that it waits for has ended, stored before it or after") {
        auto other = w.task();
        other.key = "other";
        bool const before = GENERATE(true, false);
        ax::task_id awaited{};
        if (before) awaited = w.add(other);
        w.add_graph({w.wait("w", {"other", {}, {}, {}}), w.node("a", {0})});
        CHECK(w.at("w") == task_state::created);
        CHECK_FALSE(w.can_take(w.id("w")));
        if (!before) awaited = w.add(other);
        CHECK(w.at("a") == task_state::created);
        w.finish(w.take(awaited), attempt_outcome::succeeded);
        CHECK(w.at("w") == task_state::succeeded);
        CHECK(w.at("a") == task_state::ready);
        CHECK(counts_are_true(w.store, w.head));
    }
    SECTION("a wait sees how it has ended") {
        auto other = w.task();
        other.key = "other";
        auto const awaited = w.add(other);
        w.cancel(awaited);
        w.add_graph({w.wait("w", {"other", {}, {}, {}}), w.node("a", {0}, trigger_rule::one_failed)});
        CHECK(w.at("w") == task_state::upstream_failed);
        CHECK(w.at("a") == task_state::ready);
    }
    SECTION("a wait for an occurrence, for a workflow, and for a task of one") {
        auto occurrence = w.task();
        occurrence.schedule = "nightly";
        occurrence.scheduled_at = t0;
        w.put(w.graph({w.node("inner"), w.node("rest", {0})}, "first"));
        auto const first = w.head;
        auto const inner = w.id("inner");
        w.add_graph({w.wait("o", {{}, "nightly", t0, {}}), w.wait("w", {"first", {}, {}, {}}),
                     w.wait("i", {"first", {}, {}, "inner"})});
        auto const second = w.head;
        w.finish(w.take(w.add(occurrence)), attempt_outcome::succeeded);
        CHECK(w.at("o") == task_state::succeeded);
        w.finish(w.take(inner), attempt_outcome::succeeded);
        CHECK(w.at("i") == task_state::succeeded);
        CHECK(w.at("w") == task_state::created);
        w.head = first;
        w.run("rest");
        w.head = second;
        CHECK(w.at("w") == task_state::succeeded);
        CHECK(w.end() == task_state::succeeded);
    }
    SECTION("a wait whose deadline passes is dead") {
        auto wait = w.wait("w", {"never", {}, {}, {}});
        wait.task.deadline = t0 + 1h;
        w.add_graph({wait, w.node("a", {0})});
        w.expire(t0 + 1h);
        CHECK(w.at("w") == task_state::dead);
        CHECK(w.end() == task_state::upstream_failed);
        auto late = w.task();
        late.key = "never"; // it comes too late, and nothing happens
        w.finish(w.take(w.add(late)), attempt_outcome::succeeded);
        CHECK(w.at("w") == task_state::dead);
    }
    SECTION("a schedule's step creates a workflow as its occurrence, once") {
        ax::schedule_record nightly;
        nightly.name = "nightly";
        nightly.type = w.whole;
        nightly.next = t0;
        w.write([&](auto& verbs) { return verbs.declare(nightly, t0); });
        ax::schedule_step step;
        step.name = "nightly";
        step.version = 1;
        step.next = t0 + 24h;
        step.occurrence = w.graph({w.node("a"), w.node("b", {0})});
        step.occurrence->schedule = "nightly";
        step.occurrence->scheduled_at = t0;
        auto answer = w.write([&](auto& verbs) { return verbs.step(step, t0); });
        REQUIRE(answer.occurrence);
        CHECK(answer.occurrence->outcome == submit_outcome::inserted);
        w.head = answer.occurrence->id;
        CHECK(announces(answer.due, w.id("a")));
        CHECK(w.store.workflow(w.head)->name == "order");
        step.version = 2;
        answer = w.write([&](auto& verbs) { return verbs.step(step, t0); });
        CHECK(answer.occurrence->outcome == submit_outcome::kept);
        CHECK(answer.occurrence->id == w.head);
        CHECK(w.store.members(w.head, {}, 10).size() == 2);
    }
}

} // namespace conformance

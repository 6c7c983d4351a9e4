// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/workflows.hpp"

namespace conformance {

/// A loom whose verbs run under an offer.
template <class Fixture>
struct eager_loom : loom<Fixture> {
    using base = loom<Fixture>;
    using writer = typename base::writer;

    eager_loom() { offer_types({{base::probe, false}}); }

    void offer_types(std::vector<ax::offered_type> wanted) { types = std::move(wanted); }

    /// Inserts with room for `room` of each class; `offer` has what was claimed.
    std::vector<ax::insertion> insert_eagerly(std::vector<ax::new_task> const& tasks, std::size_t room = 100,
                                              ax::time_point until = t0) {
        return base::write([&](writer& w) {
            base::due.clear();
            give(w, room, until);
            return w.insert(tasks, t0, base::due);
        });
    }
    ax::settlement settle_eagerly(std::vector<ax::attempt_end> const& ends, std::size_t room = 100,
                                  ax::time_point now = t0) {
        return base::write([&](writer& w) {
            give(w, room, now);
            return w.settle(ends, now);
        });
    }
    void give(writer& w, std::size_t room, ax::time_point until) {
        offer = {};
        offer.node = node_a;
        offer.until = until;
        offer.types = types;
        offer.room.fill(room);
        w.offer(offer);
    }
    ids claimed() const { return ids_of(offer.claimed); }

    std::vector<ax::offered_type> types;
    ax::claim_offer offer;
};

/// What of two tasks may not differ but for their ids.
inline void check_alike(ax::task_record a, ax::task_record const& b) {
    a.id = b.id;
    CHECK(a.type == b.type);
    CHECK(a.priority == b.priority);
    CHECK(a.state == b.state);
    CHECK(a.run_at == b.run_at);
    CHECK(a.order_at == b.order_at);
    CHECK(a.version == b.version);
    CHECK(a.fence == b.fence);
    CHECK(a.node == b.node);
    CHECK(a.attempts == b.attempts);
    CHECK(a.failures == b.failures);
    CHECK(a.interruptions == b.interruptions);
    CHECK(a.snoozes == b.snoozes);
    CHECK(a.unclean_ends == b.unclean_ends);
    CHECK(a.created == b.created);
    CHECK(a.changed == b.changed);
    CHECK(a.started == b.started);
    CHECK(a.finished == b.finished);
    CHECK(a.deadline == b.deadline);
    CHECK(a.scheduled_at == b.scheduled_at);
    CHECK(a.route_order == b.route_order);
    CHECK(a.key_scope == b.key_scope);
    CHECK(a.hold_on_interrupt == b.hold_on_interrupt);
    CHECK(a.retry == b.retry);
    CHECK(a.tags == b.tags);
    CHECK(a.payload == b.payload);
    CHECK(a.in_workflow == b.in_workflow);
}

/// eager_writer: what is claimed in the verb that makes it due.
template <class Fixture>
void offers() {
    eager_loom<Fixture> w;

    SECTION("what is claimed at once is stored as if it had been claimed a moment later") {
        auto task = w.task("{\"order\":7}");
        task.priority = ax::priority_class::high;
        task.tags = {"a", "b"};
        task.retry = "retry text";
        task.deadline = t0 + 1h;
        task.scheduled_at = t0 - 1h;
        w.offer_types({{w.probe, true}});
        auto const answer = w.insert_eagerly({task});
        REQUIRE(w.offer.claimed.size() == 1);
        auto const& claimed = w.offer.claimed.front();
        CHECK(answer.at(0).id == claimed.id);
        CHECK(answer.at(0).outcome == submit_outcome::inserted);
        CHECK(answer.at(0).state == task_state::dispatched);
        CHECK(w.due.empty());
        CHECK(w.offer.room == std::array<std::size_t, ax::priority_classes>{100, 99, 100, 100});

        auto const other = w.add(task);
        auto const later = w.take(other, t0, node_a, true);
        check_alike(claimed, later);
        check_alike(w.get(claimed.id), w.get(other));
        check_alike(claimed, w.get(claimed.id));
        CHECK(w.store.verify().empty());

        w.finish(claimed, attempt_outcome::succeeded, t0 + 1s);
        CHECK(w.state(claimed.id) == task_state::succeeded);
        CHECK(w.store.history(claimed.id).size() == 1);
    }
    SECTION("counts are those of a claimed task") {
        w.insert_eagerly({w.task(), w.task()}, 1);
        REQUIRE(w.offer.claimed.size() == 1);
        auto const counts = w.store.counts();
        auto const of = [&](task_state state) {
            std::size_t sum = 0;
            for (auto const& each : counts)
                if (each.state == state) sum += each.tasks;
            return sum;
        };
        CHECK(of(task_state::dispatched) == 1);
        CHECK(of(task_state::ready) == 1);
        CHECK(w.store.verify().empty());
    }
    SECTION("there is no claim beyond the room; the rest is announced") {
        auto const answer = w.insert_eagerly({w.task(), w.task(), w.task()}, 2);
        CHECK(w.claimed() == ids{answer.at(0).id, answer.at(1).id});
        CHECK(w.state(answer.at(2).id) == task_state::ready);
        CHECK(announces(w.due, answer.at(2).id));
        CHECK_FALSE(announces(w.due, answer.at(0).id));
    }
    SECTION("what is due later than the offer says waits") {
        auto const answer = w.insert_eagerly({w.task_at(t0 + 50ms), w.task_at(t0 + 51ms)}, 9, t0 + 50ms);
        CHECK(w.claimed() == ids{answer.at(0).id});
        CHECK(w.upcoming() == ids{answer.at(1).id});
    }
    SECTION("a type that is not offered waits") {
        w.offer_types({});
        auto const answer = w.insert_eagerly({w.task()});
        CHECK(w.claimed().empty());
        CHECK(w.upcoming() == ids{answer.at(0).id});
    }
    SECTION("what waits for more than its time is left to claim()") {
        auto keyed = w.task();
        keyed.key = "k";
        auto late = w.task();
        late.deadline = t0;
        auto occurrence = w.task();
        occurrence.schedule = "nightly";
        occurrence.scheduled_at = t0;
        auto tagged = w.task();
        tagged.tags = {"free", "slow"};
        w.write([&](auto& writer) { writer.limit_tag("slow", {1, {}}, t0); });
        auto const answer = w.insert_eagerly({keyed, w.task_of("r"), w.task_of("r"), late, occurrence, tagged});
        CHECK(w.claimed().empty());
        for (auto const& each : answer) CHECK(w.state(each.id) == task_state::ready);
        CHECK(w.get(answer.at(2).id).blocked);
    }
    SECTION("a task of a limited type is left to claim(), which counts it") {
        w.write([&](auto& writer) { writer.limit_type(w.probe, {1, {}}, {}, t0); });
        auto const answer = w.insert_eagerly({w.task(), w.task()});
        CHECK(w.claimed().empty());
        CHECK(w.can_take(answer.at(0).id));
        CHECK_FALSE(w.can_take(answer.at(1).id));
    }
    SECTION("a transaction that is undone has claimed nothing") {
        struct no {};
        CHECK_THROWS_AS(w.write([&](auto& writer) -> int {
            w.give(writer, 9, t0);
            w.due.clear();
            auto const task = w.task();
            writer.insert({&task, 1}, t0, w.due);
            throw no{};
        }),
                        no);
        CHECK(w.store.list({}, t0).empty());
        auto const next = w.add();
        CHECK(w.state(next) == task_state::ready);
    }
    SECTION("another node takes over what was claimed at once") {
        auto const id = w.insert_eagerly({w.task()}).at(0).id;
        CHECK(w.reclaim().reclaimed == 1);
        CHECK(w.state(id) == task_state::ready);
        CHECK(w.get(id).unclean_ends == 1);
        CHECK(w.take(id).fence > w.offer.claimed.at(0).fence);
    }
    SECTION("a child goes from created to claimed in the commit that ends its last parent") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c", {0, 1})});
        auto const first = w.take(w.id("a"));
        auto const made = w.settle_eagerly({w.end_of(first, attempt_outcome::succeeded, t0 + 1s)}, 9, t0 + 1s);
        CHECK(made.due.empty());
        REQUIRE(w.claimed() == ids{w.id("b")});
        auto const child = w.offer.claimed.front();
        CHECK(w.at("c") == task_state::created);

        loom<Fixture> plain;
        plain.add_graph({plain.node("a"), plain.node("b", {0}), plain.node("c", {0, 1})});
        plain.run("a", attempt_outcome::succeeded, t0 + 1s);
        check_alike(child, plain.take(plain.id("b"), t0 + 1s));
        check_alike(w.get(child.id), plain.get(plain.id("b")));
        CHECK(w.store.verify().empty());
        auto const whole = *w.store.workflow(w.head);
        CHECK(whole.waiting == 1);
        CHECK(whole.ready == 0);
        CHECK(whole.running == 1);
        CHECK(whole.succeeded == 1);

        w.settle_eagerly({w.end_of(child, attempt_outcome::succeeded, t0 + 2s)}, 9, t0 + 2s);
        REQUIRE(w.claimed() == ids{w.id("c")});
        w.finish(w.offer.claimed.front(), attempt_outcome::succeeded, t0 + 3s);
        CHECK(w.end() == task_state::succeeded);
        CHECK(w.store.verify().empty());
    }
    SECTION("a child that its parents do not let run is not claimed") {
        w.add_graph({w.node("a"), w.node("b", {0}), w.node("c", {0}, ax::trigger_rule::all_failed)});
        auto const first = w.take(w.id("a"));
        w.settle_eagerly({w.end_of(first, attempt_outcome::exhausted, t0)});
        CHECK(w.claimed() == ids{w.id("c")});
        CHECK(w.at("b") == task_state::upstream_failed);
    }
    SECTION("a child of a paused or cancelled workflow is not claimed") {
        w.add_graph({w.node("a"), w.node("b", {0})});
        auto const first = w.take(w.id("a"));
        bool const cancels = GENERATE(false, true);
        CAPTURE(cancels);
        if (cancels)
            w.cancel(w.head);
        else
            w.write([&](auto& writer) { return writer.pause_workflow(w.head, true, t0); });
        w.settle_eagerly({w.end_of(first, attempt_outcome::succeeded, t0)});
        CHECK(w.claimed().empty());
        CHECK(w.at("b") == (cancels ? task_state::cancelled : task_state::ready));
    }
    SECTION("a child of a later generation is claimed, and not that of an earlier one") {
        w.add_graph({w.node("a"), w.node("b", {0})});
        w.run("a");
        w.run("b", attempt_outcome::exhausted);
        w.write([&](auto& writer) { return writer.rerun(w.id("a"), ax::rerun_scope::all, t0); });
        auto const again = w.take(w.id("a"));
        w.settle_eagerly({w.end_of(again, attempt_outcome::succeeded, t0)});
        REQUIRE(w.claimed() == ids{w.id("b")});
        CHECK(w.offer.claimed.front().attempts == 1);
        w.finish(w.offer.claimed.front(), attempt_outcome::succeeded);
        CHECK(w.end() == task_state::succeeded);
    }
}

} // namespace conformance

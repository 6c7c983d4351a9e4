// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 4, 5 and 6: who may be claimed, what a claim writes, and the start of an attempt.
template <class Fixture>
void claims() {
    workbench<Fixture> w;

    SECTION("a task of another type than was asked for is passed over") {
        auto const id = w.add();
        auto const other = w.type("another");
        CHECK(w.claim({{id, false, other}}, {node_a, t0, t0, 1}).claimed.empty());
        CHECK(w.get(id).state == task_state::ready);
        CHECK(w.claim({{id, false, w.probe}}, {node_a, t0, t0, 1}).claimed.size() == 1);
    }
    SECTION("a claim writes state, version, fence, node and attempts") {
        auto const id = w.add();
        auto const answer = w.claim({{id, true}}, {node_a, t0 + 1s, t0 + 1s, 0});
        REQUIRE(answer.claimed.size() == 1);
        CHECK(answer.suspects.empty());
        auto const& task = answer.claimed[0];
        CHECK(task.id == id);
        CHECK(task.state == task_state::dispatched);
        CHECK(task.version == 2);
        CHECK(task.fence == ax::fence_token{2});
        CHECK(task.node == node_a);
        CHECK(task.attempts == 1);
        CHECK(task.changed == t0 + 1s);
        CHECK(task.hold_on_interrupt);
        CHECK_FALSE(task.lonely);
        CHECK_FALSE(task.started.has_value());

        auto const stored = w.get(id);
        CHECK(stored.state == task_state::dispatched);
        CHECK(stored.version == 2);
        CHECK(stored.fence == task.fence);
        CHECK(stored.node == node_a);
        CHECK(stored.attempts == 1);
        CHECK(stored.hold_on_interrupt);
    }
    SECTION("claims answer in the order asked") {
        auto const a = w.add();
        auto const b = w.add();
        auto const c = w.add();
        auto const answer = w.claim({{c, false}, {a, false}, {b, true}}, {node_a, t0, t0, 0});
        CHECK(ids_of(answer.claimed) == ids{c, a, b});
        CHECK(answer.claimed.at(2).hold_on_interrupt);
        CHECK_FALSE(answer.claimed.at(0).hold_on_interrupt);
    }
    SECTION("a task is claimed up to the claim-ahead and not a millisecond further") {
        auto const id = w.add(w.task_at(t0 + 50ms));
        CHECK(w.claim({{id, false}}, {node_a, t0, t0 + 49ms, 0}).claimed.empty());
        CHECK(w.get(id).version == 1);
        CHECK(w.claim({{id, false}}, {node_a, t0, t0 + 50ms, 0}).claimed.size() == 1);
    }
    SECTION("a task in flight is passed over, for every node") {
        auto const id = w.add();
        auto const first = w.take(id);
        CHECK(w.claim({{id, false}}, {node_b, t0, t0, 9}).claimed.empty());
        CHECK(w.claim({{id, false}}, {node_a, t0, t0, 9}).claimed.empty());
        w.start(first, t0);
        CHECK(w.claim({{id, false}}, {node_b, t0, t0, 9}).claimed.empty());
        CHECK(w.get(id).fence == first.fence);
    }
    SECTION("the second of two equal ids is passed over") {
        auto const id = w.add();
        auto const answer = w.claim({{id, false}, {id, true}}, {node_a, t0, t0, 0});
        CHECK(ids_of(answer.claimed) == ids{id});
        CHECK(w.get(id).attempts == 1);
        CHECK_FALSE(w.get(id).hold_on_interrupt);
    }
    SECTION("an unknown id is passed over, and the others are claimed") {
        auto const id = w.add();
        auto const answer =
            w.claim({{ax::task_id{77}, false}, {ax::task_id{}, false}, {id, false}}, {node_a, t0, t0, 0});
        CHECK(ids_of(answer.claimed) == ids{id});
    }
    SECTION("what has ended is passed over") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::exhausted,
                                      attempt_outcome::cancelled, attempt_outcome::skipped, attempt_outcome::expired);
        auto const id = w.add();
        w.finish(w.take(id), outcome);
        CHECK_FALSE(w.can_take(id, t0 + 1h));
    }
    SECTION("what a caller cancelled is passed over") {
        auto const id = w.add();
        w.cancel(id);
        CHECK_FALSE(w.can_take(id));
    }
    SECTION("a held task is passed over until it is let go") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::held);
        CHECK_FALSE(w.can_take(id, t0 + 1h));
        w.retry(id);
        CHECK(w.can_take(id, t0 + 1h));
    }
    SECTION("a failed task is claimed at its retry and not before") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::failed); // tried again a minute later
        CHECK_FALSE(w.can_take(id, t0 + 60s - 1ms));
        CHECK(w.take(id, t0 + 60s).attempts == 2);
    }
    SECTION("a task is not claimed at its deadline, and is a millisecond before") {
        auto made = w.task();
        made.deadline = t0 + 10s;
        auto const early = w.add(made);
        auto const late = w.add(made);
        CHECK(w.can_take(early, t0 + 10s - 1ms));
        CHECK_FALSE(w.can_take(late, t0 + 10s));
        CHECK_FALSE(w.can_take(late, t0 + 11s));
        CHECK(w.state(late) == task_state::ready);
    }
    SECTION("the deadline is judged by now, not by the end of the claim-ahead") {
        auto made = w.task();
        made.deadline = t0 + 10s;
        auto const id = w.add(made);
        CHECK(w.claim({{id, false}}, {node_a, t0 + 10s - 1ms, t0 + 11s, 0}).claimed.size() == 1);
    }
    SECTION("every claim has a larger fence than those before") {
        auto const id = w.add();
        auto const first = w.take(id);
        w.finish(first, attempt_outcome::interrupted);
        auto const second = w.take(id);
        CHECK(second.fence > first.fence);
        CHECK(to_number(second.fence) == second.version);
        w.finish(second, attempt_outcome::released);
        CHECK(w.take(id).fence > second.fence);
    }
    SECTION("a claim leaves the start of the attempt before in its place") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::interrupted, t0 + 5s);
        auto const again = w.take(id, t0 + 9s);
        CHECK(again.started == t0 + 5s);
        CHECK(again.first_started == t0 + 5s);
    }

    SECTION("start turns dispatched into running") {
        auto const id = w.add();
        auto const claimed = w.take(id);
        w.start(claimed, t0 + 20ms);
        auto const stored = w.get(id);
        CHECK(stored.state == task_state::running);
        CHECK(stored.started == t0 + 20ms);
        CHECK(stored.first_started == t0 + 20ms);
        CHECK(stored.changed == t0 + 20ms);
        CHECK(stored.version == 3);
        CHECK(stored.fence == claimed.fence);
    }
    SECTION("start does nothing twice") {
        auto const id = w.add();
        auto const claimed = w.take(id);
        w.start(claimed, t0 + 20ms);
        w.start(claimed, t0 + 30ms);
        CHECK(w.get(id).started == t0 + 20ms);
        CHECK(w.get(id).version == 3);
    }
    SECTION("start under an old fence does nothing") {
        auto const id = w.add();
        auto const old = w.take(id);
        w.finish(old, attempt_outcome::released);
        w.start(old, t0 + 1s); // ready again
        CHECK(w.state(id) == task_state::ready);
        w.take(id);
        w.start(old, t0 + 1s); // claimed again
        CHECK(w.state(id) == task_state::dispatched);
        w.write([&](auto& writer) {
            ax::start_mark const unknown{ax::task_id{77}, ax::fence_token{1}, t0};
            writer.start(std::span(&unknown, 1), t0);
        });
    }
    SECTION("several starts are taken in one call, the bad ones left out") {
        auto const a = w.take(w.add());
        auto const b = w.take(w.add());
        std::array<ax::start_mark, 3> const marks{
            {{a.id, ax::fence_token{99}, t0}, {b.id, b.fence, t0}, {a.id, a.fence, t0}}};
        w.write([&](auto& writer) { writer.start(marks, t0); });
        CHECK(w.state(a.id) == task_state::running);
        CHECK(w.state(b.id) == task_state::running);
    }
    SECTION("the first start is remembered beside the latest") {
        auto const id = w.add();
        auto const first = w.take(id);
        w.start(first, t0 + 1s);
        w.finish(first, attempt_outcome::interrupted, t0 + 1s);
        auto const second = w.take(id, t0 + 5s);
        w.start(second, t0 + 6s);
        CHECK(w.get(id).first_started == t0 + 1s);
        CHECK(w.get(id).started == t0 + 6s);
    }
}

/// A task whose owner has died `times` times in a row while it was in flight.
template <class Fixture>
ax::task_id suspect(workbench<Fixture>& w, std::size_t times = 2) {
    auto const id = w.add();
    for (std::size_t i = 0; i < times; ++i) {
        w.take(id, t0, node_a);
        w.reclaim(t0, node_b, 1000);
    }
    return id;
}

/// storage_writer 5: suspects.
template <class Fixture>
void suspects() {
    workbench<Fixture> w;

    SECTION("a task is a suspect from its second unclean end on") {
        auto const once = suspect(w, 1);
        CHECK(w.claim({{once, false}}, {node_a, t0, t0, 0}).claimed.size() == 1);
        CHECK_FALSE(w.get(once).lonely);
        auto const twice = suspect(w, 2);
        auto const answer = w.claim({{twice, false}}, {node_a, t0, t0, 0});
        CHECK(answer.claimed.empty());
        CHECK(answer.suspects == ids{twice});
        CHECK(w.state(twice) == task_state::ready);
    }
    SECTION("a claim takes as many suspects as it may and names the rest") {
        auto const a = suspect(w);
        auto const b = suspect(w);
        auto const c = suspect(w);
        auto const plain = w.add();
        auto const answer = w.claim({{a, false}, {b, false}, {plain, false}, {c, false}}, {node_a, t0, t0, 1});
        CHECK(ids_of(answer.claimed) == ids{a, plain});
        CHECK(answer.suspects == ids{b, c});
        CHECK(w.get(a).lonely);
        CHECK_FALSE(w.get(plain).lonely);
        CHECK(w.state(b) == task_state::ready);
    }
    SECTION("a suspect that is not due or not free takes no room and is not named") {
        auto const a = suspect(w);
        auto const b = suspect(w);
        w.reschedule(a, t0 + 1h);
        auto const answer = w.claim({{a, false}, {b, false}}, {node_a, t0, t0, 1});
        CHECK(ids_of(answer.claimed) == ids{b});
        CHECK(answer.suspects.empty());
        CHECK(w.claim({{b, false}}, {node_a, t0, t0, 0}).suspects.empty());
    }
    SECTION("a clean end makes a suspect a task like any other") {
        auto const outcome = GENERATE(attempt_outcome::failed, attempt_outcome::snoozed, attempt_outcome::interrupted);
        auto const id = suspect(w);
        w.finish(w.take(id), outcome);
        CHECK(w.get(id).unclean_ends == 0);
        CHECK_FALSE(w.get(id).lonely);
        CHECK(w.claim({{id, false}}, {node_a, t0 + 1h, t0 + 1h, 0}).claimed.size() == 1);
    }
    SECTION("a suspect that was given back is still one") {
        auto const id = suspect(w);
        w.finish(w.take(id), attempt_outcome::released);
        CHECK(w.get(id).unclean_ends == 2);
        CHECK_FALSE(w.get(id).lonely);
        CHECK(w.claim({{id, false}}, {node_a, t0, t0, 0}).suspects == ids{id});
    }
}

} // namespace conformance

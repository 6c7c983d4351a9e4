// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 19 and 20: what goes, in which order, and what stays.
template <class Fixture>
void pruning() {
    workbench<Fixture> w;
    using writer = typename workbench<Fixture>::writer;
    ax::prune_terms terms;
    terms.type = w.probe;

    auto const prune = [&](std::size_t limit = 1'000) {
        return w.write([&](writer& each) { return each.prune(terms, limit); });
    };
    /// A task that has come to `outcome` at `end`.
    auto const ended = [&](ax::new_task const& made, ax::time_point at,
                           attempt_outcome outcome = attempt_outcome::succeeded) {
        auto const id = w.add(made, t0);
        w.finish(w.take(id, (std::max)(t0, at)), outcome, at);
        return id;
    };
    auto const is_there = [&](ax::task_id id) { return w.store.find(id).has_value(); };

    SECTION("what finished by the instant goes, with its attempts, and nothing else") {
        auto const old = ended(w.task("old"), t0 + 1min);
        auto const edge = ended(w.task(), t0 + 2min);
        auto const young = ended(w.task(), t0 + 2min + 1ms);
        auto const waiting = w.add();
        terms.ended_by = t0 + 2min;
        auto const answer = prune();
        CHECK(answer.pruned == 2);
        CHECK_FALSE(answer.more);
        CHECK_FALSE(is_there(old));
        CHECK(w.store.history(old).empty());
        CHECK_FALSE(is_there(edge));
        CHECK(is_there(young));
        CHECK(w.store.history(young).size() == 1);
        CHECK(is_there(waiting));
        CHECK(w.store.list({}, t0).size() == 2);
    }
    SECTION("attempts that failed go with their task") {
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::failed);
        w.finish(w.take(id, t0 + 1min), attempt_outcome::exhausted, t0 + 1min);
        auto const other = w.add();
        w.finish(w.take(other), attempt_outcome::failed);
        terms.dead_by = t0 + 1h;
        CHECK(prune().pruned == 1);
        CHECK(w.store.history(id).empty());
        CHECK(w.store.history(other).size() == 1);
        CHECK(w.store.verify().empty());
    }
    SECTION("every way to end counts, and the dead have an instant of their own") {
        auto const outcome = GENERATE(attempt_outcome::succeeded, attempt_outcome::cancelled, attempt_outcome::skipped,
                                      attempt_outcome::exhausted, attempt_outcome::expired);
        CAPTURE(outcome);
        auto const id = ended(w.task(), t0 + 1min, outcome);
        bool const dead = w.state(id) == task_state::dead;
        (dead ? terms.ended_by : terms.dead_by) = t0 + 1h;
        CHECK(prune().pruned == 0);
        CHECK(is_there(id));
        (dead ? terms.dead_by : terms.ended_by) = t0 + 1h;
        CHECK(prune().pruned == 1);
        CHECK_FALSE(is_there(id));
    }
    SECTION("what has not ended stays, whatever the terms") {
        auto const claimed = w.take(w.add());
        auto const running = w.take(w.add());
        w.start(running, t0);
        auto const failed = w.add();
        w.finish(w.take(failed), attempt_outcome::failed);
        auto const ready = w.add();
        terms.ended_by = terms.dead_by = t0 + 24h;
        terms.keep = 0;
        CHECK(prune().pruned == 0);
        for (auto const id : {claimed.id, running.id, failed, ready}) CHECK(is_there(id));
    }
    SECTION("one type alone is pruned, in all its priority classes") {
        auto const second = w.type("other");
        auto foreign = w.task();
        foreign.type = second;
        auto const kept = ended(foreign, t0);
        ids mine;
        for (auto const urgency : {ax::priority::critical, ax::priority::low, ax::priority::normal}) {
            auto made = w.task();
            made.priority = urgency;
            mine.push_back(ended(made, t0));
        }
        terms.ended_by = t0;
        CHECK(prune().pruned == 3);
        for (auto const id : mine) CHECK_FALSE(is_there(id));
        CHECK(is_there(kept));
    }
    SECTION("beyond the count the first ones go, across priority classes and ways to end") {
        ids all;
        for (int i = 0; i < 8; ++i) {
            auto made = w.task();
            made.priority = static_cast<ax::priority_class>(i % 4);
            all.push_back(ended(made, t0 + std::chrono::minutes{10 - i},
                                i % 3 == 0 ? attempt_outcome::skipped : attempt_outcome::succeeded));
        }
        terms.keep = 3;
        CHECK(prune().pruned == 5);
        for (std::size_t i = 0; i < all.size(); ++i) CHECK(is_there(all[i]) == (i >= 5));
        CHECK(prune().pruned == 0);
    }
    SECTION("the dead are counted apart") {
        auto const first = ended(w.task(), t0, attempt_outcome::exhausted);
        auto const second = ended(w.task(), t0, attempt_outcome::exhausted);
        auto const good = ended(w.task(), t0);
        terms.keep = 1;
        CHECK(prune().pruned == 1);
        CHECK_FALSE(is_there(first));
        CHECK(is_there(second));
        CHECK(is_there(good));
    }
    SECTION("a limit is kept to, and the next call goes on behind") {
        ids all;
        for (int i = 0; i < 25; ++i) all.push_back(ended(w.task(), t0));
        terms.ended_by = t0;
        auto first = prune(10);
        CHECK(first.pruned == 10);
        CHECK(first.more);
        CHECK_FALSE(is_there(all[9]));
        CHECK(is_there(all[10]));
        std::size_t calls = 1;
        for (terms.after = first.after; first.more; terms.after = first.after, ++calls) {
            first = prune(10);
            CHECK(first.pruned <= 10);
        }
        CHECK(calls >= 3);
        CHECK(w.store.list({}, t0).empty());
    }
    SECTION("what stays on the way is looked at once, and bounded by the terms") {
        for (int i = 0; i < 40; ++i) ended(w.task(), t0 + 1h); // made early, ended late
        auto const last = ended(w.task(), t0);
        terms.ended_by = t0 + 1min;
        terms.look_at = 7;
        std::size_t looked_at = 0;
        for (bool more = true; more;) {
            auto const part = prune();
            CHECK(part.looked_at <= 7);
            looked_at += part.looked_at;
            more = part.more;
            terms.after = part.after;
        }
        CHECK(looked_at == 41);
        CHECK_FALSE(is_there(last));
    }
    SECTION("the walk ends at the first one that was made after both instants") {
        auto const old = ended(w.task(), t0);
        auto const late = w.add(w.task(), t0 + 1h);
        w.finish(w.take(late, t0 + 1h), attempt_outcome::succeeded, t0 + 1h);
        for (int i = 0; i < 50; ++i) {
            auto const id = w.add(w.task(), t0 + 1h);
            w.finish(w.take(id, t0 + 1h), attempt_outcome::succeeded, t0 + 1h);
        }
        terms.ended_by = t0 + 1min;
        auto const answer = prune();
        CHECK(answer.pruned == 1);
        CHECK(answer.looked_at == 1);
        CHECK_FALSE(answer.more);
        CHECK_FALSE(is_there(old));
    }
    SECTION("the latest task of a schedule stays for as long as it is that") {
        w.write([&](writer& each) {
            ax::schedule_record wanted;
            wanted.name = "nightly";
            wanted.spec = "every 60s";
            wanted.type = w.probe;
            wanted.next = t0;
            each.declare(wanted, t0);
        });
        auto const occur = [&](std::uint64_t version, ax::time_point when) {
            ax::schedule_step step;
            step.name = "nightly";
            step.version = version;
            step.next = when + 1min;
            step.occurrence = w.task();
            step.occurrence->schedule = "nightly";
            step.occurrence->scheduled_at = when;
            auto const id = w.write([&](writer& each) { return each.step(step, when); }).occurrence->id;
            w.finish(w.take(id, when), attempt_outcome::succeeded, when);
            return id;
        };
        auto const first = occur(1, t0);
        terms.ended_by = terms.dead_by = t0 + 1h;
        terms.keep = 0;
        CHECK(prune().pruned == 0);
        CHECK(is_there(first));
        auto const second = occur(2, t0 + 1min);
        CHECK(prune().pruned == 1);
        CHECK_FALSE(is_there(first));
        CHECK(is_there(second));
        w.write([&](writer& each) { each.forget("nightly"); });
        CHECK(prune().pruned == 1);
        CHECK_FALSE(is_there(second));
    }
    SECTION("a key that was pruned is new, and the id is not given again") {
        auto keyed = w.task();
        keyed.key = "order-42";
        auto const id = ended(keyed, t0);
        CHECK(w.insert({keyed}).at(0).outcome == submit_outcome::kept);
        terms.ended_by = t0;
        prune();
        CHECK_FALSE(w.store.find_by_key("order-42").has_value());
        auto const again = w.insert({keyed}).at(0);
        CHECK(again.outcome == submit_outcome::inserted);
        CHECK(again.id > id);
        CHECK(w.store.find_by_key("order-42")->id == again.id);
    }
    SECTION("what is pruned in a transaction that is undone is there again, whole") {
        auto keyed = w.task("payload");
        keyed.key = "k";
        auto const id = w.add(keyed);
        w.finish(w.take(id), attempt_outcome::failed);
        w.finish(w.take(id, t0 + 1min), attempt_outcome::succeeded, t0 + 1min);
        struct undo {};
        terms.ended_by = t0 + 1h;
        CHECK_THROWS_AS(w.write([&](writer& each) {
            CHECK(each.prune(terms, 10).pruned == 1);
            throw undo{};
        }),
                        undo);
        CHECK(w.get(id).payload == "payload");
        CHECK(w.store.history(id).size() == 2);
        CHECK(w.store.find_by_key("k").has_value());
        CHECK(w.store.counts().at(0).tasks == 1);
        CHECK(prune().pruned == 1);
    }
    SECTION("a route is not disturbed by the end of those before") {
        auto const first = ended(w.task_of("r"), t0);
        auto const second = w.add(w.task_of("r"));
        auto const third = w.add(w.task_of("r"));
        terms.ended_by = t0;
        CHECK(prune().pruned == 1);
        CHECK_FALSE(is_there(first));
        CHECK_FALSE(w.get(second).blocked);
        CHECK(w.get(third).blocked);
    }
    SECTION("an unknown type has nothing to prune") {
        ended(w.task(), t0);
        terms.type = ax::type_number{77};
        terms.keep = 0;
        terms.ended_by = t0 + 1h;
        auto const answer = prune();
        CHECK(answer.pruned == 0);
        CHECK_FALSE(answer.more);
    }
    SECTION("compact ends, whether or not there is something to give back") {
        for (int i = 0; w.write([](writer& each) { return each.compact(); }); ++i) REQUIRE(i < 10'000);
    }
}

/// storage 9: counts().
template <class Fixture>
void counting() {
    workbench<Fixture> w;
    using writer = typename workbench<Fixture>::writer;
    auto const count = [&](task_state state, std::string_view type = "probe") {
        std::size_t tasks = 0;
        for (auto const& each : w.store.counts())
            if (each.state == state && each.type == type) tasks += each.tasks;
        return tasks;
    };

    SECTION("an empty store counts nothing") { CHECK(w.store.counts().empty()); }
    SECTION("a task is counted in the state that it is in, from its first to its last") {
        auto const id = w.add();
        CHECK(count(task_state::ready) == 1);
        auto claimed = w.take(id);
        CHECK(count(task_state::ready) == 0);
        CHECK(count(task_state::dispatched) == 1);
        w.start(claimed, t0);
        CHECK(count(task_state::dispatched) == 0);
        CHECK(count(task_state::running) == 1);
        w.finish(claimed, attempt_outcome::failed);
        CHECK(count(task_state::running) == 0);
        CHECK(count(task_state::failed) == 1);
        claimed = w.take(id, t0 + 1min);
        CHECK(count(task_state::failed) == 0);
        CHECK(count(task_state::dispatched) == 1);
        w.finish(claimed, attempt_outcome::exhausted);
        CHECK(count(task_state::dead) == 1);
        w.retry(id);
        CHECK(count(task_state::dead) == 0);
        CHECK(count(task_state::ready) == 1);
        w.finish(w.take(id, t0 + 1h), attempt_outcome::succeeded);
        CHECK(count(task_state::succeeded) == 1);
        CHECK(w.store.counts().size() == 1);
    }
    SECTION("cancelled, expired, skipped and reclaimed ones as well") {
        w.cancel(w.add());
        auto late = w.task();
        late.deadline = t0;
        w.add(late);
        w.expire(t0);
        w.finish(w.take(w.add()), attempt_outcome::skipped);
        w.take(w.add());
        w.reclaim();
        CHECK(count(task_state::cancelled) == 1);
        CHECK(count(task_state::dead) == 1);
        CHECK(count(task_state::skipped) == 1);
        CHECK(count(task_state::ready) == 1);
        CHECK(w.store.counts().size() == 4);
    }
    SECTION("each type and priority class has a number of its own, in that order") {
        auto foreign = w.task();
        foreign.type = w.type("other");
        foreign.priority = ax::priority::high;
        auto urgent = w.task();
        urgent.priority = ax::priority::critical;
        w.insert({foreign, w.task(), urgent, w.task()});
        auto const counts = w.store.counts();
        REQUIRE(counts.size() == 3);
        CHECK(counts[0].type == "probe");
        CHECK(counts[0].priority == ax::priority::critical);
        CHECK(counts[0].tasks == 1);
        CHECK(counts[1].priority == ax::priority::normal);
        CHECK(counts[1].tasks == 2);
        CHECK(counts[2].type == "other");
        CHECK(counts[2].priority == ax::priority::high);
        CHECK(counts[2].state == task_state::ready);
    }
    SECTION("a task that is kept is not counted again") {
        auto keyed = w.task();
        keyed.key = "k";
        w.insert({keyed, keyed});
        w.insert({keyed});
        CHECK(count(task_state::ready) == 1);
    }
    SECTION("what was undone is not counted") {
        struct undo {};
        auto const claimed = w.take(w.add());
        CHECK_THROWS_AS(w.write([&](writer& each) {
            ax::alarms due;
            auto const made = w.task();
            each.insert({&made, 1}, t0, due);
            auto const end = w.end_of(claimed, attempt_outcome::succeeded, t0);
            each.settle({&end, 1}, t0);
            throw undo{};
        }),
                        undo);
        CHECK(count(task_state::ready) == 0);
        CHECK(count(task_state::dispatched) == 1);
        CHECK(count(task_state::succeeded) == 0);
    }
    SECTION("an id that comes back in another lane after an undone transaction is counted there") {
        // The undone transaction claims a task of one class, and the id goes to a task of another.
        struct undo {};
        auto urgent = w.task();
        urgent.priority = ax::priority::critical;
        CHECK_THROWS_AS(w.write([&](writer& each) {
            ax::alarms due;
            auto const id = each.insert({&urgent, 1}, t0, due).at(0).id;
            ax::claim_request const request{id, false};
            each.claim({&request, 1}, {node_a, t0, t0, 1});
            throw undo{};
        }),
                        undo);
        auto const id = w.add();
        w.finish(w.take(id), attempt_outcome::succeeded);
        auto const counts = w.store.counts();
        REQUIRE(counts.size() == 1);
        CHECK(counts[0].priority == ax::priority::normal);
    }
    SECTION("a success is counted where nobody remembers its claim") {
        auto const first = w.take(w.add());
        for (int i = 0; i < 5'000; ++i) w.add(); // ids far enough apart to meet in any memory of them
        ids others;
        w.write([&](writer& each) {
            for (std::uint64_t id = 2; id <= 5'001; ++id) {
                ax::claim_request const request{ax::task_id{id}, false};
                each.claim({&request, 1}, {node_a, t0, t0, 0});
            }
        });
        w.finish(first, attempt_outcome::succeeded);
        CHECK(count(task_state::succeeded) == 1);
        CHECK(count(task_state::dispatched) == 5'000);
        CHECK(w.store.verify().empty());
    }
    if constexpr (Fixture::durable) {
        SECTION("they are still there when the store is opened again") {
            w.add();
            w.finish(w.take(w.add()), attempt_outcome::succeeded);
            w.store = w.fixture.reopen(std::move(w.store));
            CHECK(count(task_state::ready) == 1);
            CHECK(count(task_state::succeeded) == 1);
        }
    }
}

/// storage_writer 21 and storage 10.
template <class Fixture>
void notes() {
    workbench<Fixture> w;
    using writer = typename workbench<Fixture>::writer;
    CHECK(w.store.note("clock").empty());
    w.write([](writer& each) { each.note("clock", "1 2 3"); });
    w.write([](writer& each) { each.note("clock2", "4"); });
    CHECK(w.store.note("clock") == "1 2 3");
    w.write([](writer& each) { each.note("clock", "5"); });
    CHECK(w.store.note("clock") == "5");
    struct undo {};
    CHECK_THROWS_AS(w.write([](writer& each) {
        each.note("clock", "6");
        each.note("fresh", "7");
        throw undo{};
    }),
                    undo);
    CHECK(w.store.note("clock") == "5");
    CHECK(w.store.note("fresh").empty());
    if constexpr (Fixture::durable) {
        w.store = w.fixture.reopen(std::move(w.store));
        CHECK(w.store.note("clock") == "5");
        CHECK(w.store.note("clock2") == "4");
    }
}

} // namespace conformance

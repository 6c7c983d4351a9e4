// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

namespace conformance {

/// storage 1, 2 and 3: commits, exceptions, threads.
template <class Fixture>
void transactions() {
    workbench<Fixture> w;
    using writer = typename workbench<Fixture>::writer;
    struct refusal : std::runtime_error {
        using std::runtime_error::runtime_error;
    };

    SECTION("several verbs share one commit") {
        ax::task_id id{};
        auto const made = std::vector{w.task("x")};
        w.store.transact(ax::commit::durable, [&](writer& verbs) {
            ax::alarms due;
            id = verbs.insert(made, t0, due).at(0).id;
            ax::claim_request const request{id, false};
            auto const claimed = verbs.claim(std::span(&request, 1), {node_a, t0, t0, 0}).claimed.at(0);
            auto const end = w.end_of(claimed, attempt_outcome::succeeded, t0);
            verbs.settle(std::span(&end, 1), t0);
        });
        CHECK(w.state(id) == task_state::succeeded);
        CHECK(w.get(id).version == 3);
    }
    SECTION("a transaction that does nothing is one") {
        w.store.transact(ax::commit::durable, [](writer&) {});
        CHECK(w.store.list({}, t0).empty());
    }
    SECTION("when the function throws, its exception comes through and nothing of it is to be seen") {
        auto const waiting = w.add(w.task_at(t0 + 1h));
        auto const routed = w.add(w.task_of("r"));
        auto const behind = w.add(w.task_of("r"));
        auto const claimed = w.take(w.add());
        auto const lost = w.take(w.add(), t0, node_b);
        auto mortal = w.task();
        mortal.deadline = t0;
        auto const dying = w.add(mortal);
        auto const held = w.add();
        w.finish(w.take(held), attempt_outcome::held);
        ax::schedule_record definition;
        definition.name = "nightly";
        definition.spec = "every 30s";
        definition.type = w.probe;
        definition.next = t0;
        w.write([&](writer& verbs) { return verbs.declare(definition, t0); });
        auto const before = w.store.list({}, t0);
        auto const upcoming = w.upcoming();

        auto const explode = [&](writer& verbs) {
            ax::alarms due;
            auto const other = verbs.type("other");
            verbs.pause(w.probe, true);
            auto keyed = w.task_of("r");
            keyed.type = other;
            keyed.key = "k";
            keyed.schedule = "nightly";
            keyed.scheduled_at = t0;
            keyed.run_at = t0 - 1h;
            verbs.insert(std::vector{keyed, w.task(), w.task_of("new route")}, t0, due);
            verbs.reschedule(waiting, t0, t0);
            verbs.cancel(routed, t0);
            verbs.cancel(behind, t0);
            verbs.retry(behind, t0);
            verbs.retry(held, t0);
            verbs.expire(t0, 10);
            auto end = w.end_of(claimed, attempt_outcome::succeeded, t0);
            end.follow_ups = {w.task()};
            verbs.settle(std::span(&end, 1), t0);
            verbs.reclaim({node_a, 3, t0});
            ax::claim_request const request{waiting, true};
            auto const taken = verbs.claim(std::span(&request, 1), {node_a, t0, t0, 0}).claimed;
            if (!taken.empty()) {
                ax::start_mark const mark{waiting, taken[0].fence, t0};
                verbs.start(std::span(&mark, 1), t0);
            }
            auto changed = definition;
            changed.spec = "every 10s";
            verbs.declare(changed, t0);
            ax::schedule_step step;
            step.name = "nightly";
            step.version = 2;
            step.occurrence = keyed;
            verbs.step(step, t0);
            verbs.forget("nightly");
            changed.name = "new";
            verbs.declare(changed, t0);
            throw refusal("enough");
        };
        CHECK_THROWS_AS(w.store.transact(ax::commit::durable, explode), refusal);

        auto const after = w.store.list({}, t0);
        REQUIRE(ids_of(after) == ids_of(before));
        for (std::size_t i = 0; i < after.size(); ++i) {
            CAPTURE(after[i].id);
            CHECK(after[i].version == before[i].version);
            CHECK(after[i].state == before[i].state);
            CHECK(after[i].run_at == before[i].run_at);
            CHECK(after[i].blocked == before[i].blocked);
            CHECK(after[i].held == before[i].held);
            CHECK(w.store.history(after[i].id).size() == (after[i].attempts));
        }
        CHECK(w.upcoming() == upcoming);
        CHECK_FALSE(w.store.find_by_key("k").has_value());
        REQUIRE(w.store.types().size() == 1);
        CHECK_FALSE(w.store.types()[0].paused);
        REQUIRE(w.store.schedules().size() == 1);
        CHECK(w.store.schedules()[0].version == 1);
        CHECK(w.store.schedules()[0].spec == "every 30s");

        // and all of it can still be done, though others have come in between
        CHECK(w.type("in between") == ax::type_number{2});
        CHECK(w.type("other") == ax::type_number{3});
        auto keyed = w.task();
        keyed.key = "k";
        auto occurrence = w.task();
        occurrence.schedule = "nightly";
        occurrence.scheduled_at = t0;
        auto const answer = w.insert({w.task(), keyed, occurrence, keyed, occurrence});
        REQUIRE(answer.size() == 5);
        CHECK(answer[1].outcome == submit_outcome::inserted);
        CHECK(answer[2].outcome == submit_outcome::inserted);
        CHECK(answer[3].outcome == submit_outcome::kept);
        CHECK(answer[3].id == answer[1].id);
        CHECK(answer[4].outcome == submit_outcome::kept);
        CHECK(answer[4].id == answer[2].id);
        CHECK(w.store.find_by_key("k")->id == answer[1].id);
        w.finish(claimed, attempt_outcome::succeeded);
        w.finish(lost, attempt_outcome::succeeded);
        CHECK(w.expire(t0).dead == ids{dying});
    }
    SECTION("a verb that is refused does nothing of its own, and the transaction can go on") {
        auto wrong = w.task();
        wrong.type = ax::type_number{77};
        ax::task_id before{};
        ax::task_id after{};
        bool refused = false;
        w.store.transact(ax::commit::lazy, [&](writer& verbs) {
            ax::alarms due;
            before = verbs.insert(std::vector{w.task("before")}, t0, due).at(0).id;
            auto lost = w.task("lost");
            lost.key = "k";
            due.clear();
            try {
                verbs.insert(std::vector{lost, wrong}, t0, due);
            } catch (ax::error const& fault) {
                refused = fault.kind() == ax::errc::invalid_argument && due.empty();
            }
            after = verbs.insert(std::vector{w.task("after")}, t0, due).at(0).id;
        });
        CHECK(refused);
        CHECK(w.get(before).payload == "before");
        CHECK(w.get(after).payload == "after");
        CHECK(w.store.list({}, t0).size() == 2);
        CHECK_FALSE(w.store.find_by_key("k").has_value());
    }
    SECTION("a throw after a throw, and a success after that") {
        for (int i = 0; i < 3; ++i) {
            CHECK_THROWS_AS(w.write([&](writer& verbs) {
                ax::alarms due;
                verbs.insert(std::vector{w.task()}, t0, due);
                throw refusal("enough");
            }),
                            refusal);
        }
        w.add();
        CHECK(w.store.list({}, t0).size() == 1);
    }

    SECTION("many threads write and read at once, and every write counts") {
        // Bounded by the work, not by time: each thread does a fixed number of short transactions.
        constexpr std::size_t thread_count = 4;
        constexpr std::size_t rounds = 40;
        std::atomic<std::size_t> thrown{0};
        std::atomic<std::size_t> won{0};
        std::atomic<std::size_t> bad_reads{0};
        auto const contested = [&] {
            std::vector<ax::new_task> made(rounds, w.task());
            return w.insert(made);
        }();

        auto const work = [&](std::size_t thread) {
            auto const node = ax::node_id{thread + 1};
            for (std::size_t round = 0; round < rounds; ++round) {
                auto made = w.task(std::to_string(round));
                made.key = std::to_string(thread) + "/" + std::to_string(round);
                bool const refuse = round % 4 == 3;
                try {
                    std::size_t claimed = 0;
                    w.store.transact(ax::commit::lazy, [&](writer& verbs) {
                        ax::alarms due;
                        verbs.insert(std::span(&made, 1), t0, due);
                        if (refuse) throw refusal(made.key);
                        ax::claim_request const request{contested[round].id, false};
                        claimed = verbs.claim(std::span(&request, 1), {node, t0, t0, 0}).claimed.size();
                    });
                    won += claimed;
                } catch (refusal const& mine) {
                    if (mine.what() == made.key) ++thrown; // and not that of another
                }
                auto const found = w.store.find_by_key(made.key);
                if (found.has_value() == refuse) ++bad_reads;
                if (w.store.upcoming({{}, w.lane(), {}}, t0, 5).size() > 5) ++bad_reads;
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < thread_count; ++i) threads.emplace_back(work, i);
        for (auto& thread : threads) thread.join();

        CHECK(thrown == thread_count * rounds / 4);
        CHECK(bad_reads == 0);
        std::size_t in_flight = 0;
        std::map<ax::node_id, int> owners;
        for (auto const& each : contested) {
            auto const task = w.get(each.id);
            if (task.state != task_state::dispatched) continue;
            ++in_flight;
            CHECK(task.attempts == 1);
            ++owners[task.node];
        }
        CHECK(in_flight == rounds - rounds / 4);
        CHECK(won == in_flight);
        ax::task_filter all;
        all.limit = 1000;
        CHECK(w.store.list(all, t0).size() == rounds + thread_count * (rounds - rounds / 4));
    }
}

/// storage 1, where S::durable: what another process would find.
template <class Fixture>
void durability() {
    if constexpr (Fixture::durable) {
        static_assert(Fixture::storage_type::durable);
        workbench<Fixture> w;
        auto const reopen = [&] { w.store = w.fixture.reopen(std::move(w.store)); };

        SECTION("everything is there when the store is opened again") {
            auto made = w.task(std::string("\0\xFF", 2));
            made.key = "\xF0\x9F\x90\xA2";
            made.run_at = ax::latest_time;
            made.deadline = ax::latest_time;
            made.route_key = "r";
            made.retry = "exponential(1min)";
            made.schedule = "nightly";
            made.scheduled_at = t0;
            auto const id = w.add(made);
            auto const done = w.add();
            auto end = w.end_of(w.take(done), attempt_outcome::succeeded, t0 + 1s);
            end.result = "{}";
            end.log = "line";
            w.settle({end}, t0 + 1s);
            auto const running = w.take(w.add());
            w.start(running, t0 + 2s);
            ax::schedule_record definition;
            definition.name = "nightly";
            definition.spec = "every 30s";
            definition.type = w.probe;
            definition.next = t0 + 30s;
            w.write([&](auto& verbs) { return verbs.declare(definition, t0); });
            w.write([&](auto& verbs) { verbs.pause(w.probe, true); }, ax::commit::durable);
            reopen();

            auto const stored = w.get(id);
            CHECK(stored.payload == made.payload);
            CHECK(stored.key == made.key);
            CHECK(stored.run_at == ax::latest_time);
            CHECK(stored.deadline == ax::latest_time);
            CHECK(stored.route_key == "r");
            CHECK(stored.retry == "exponential(1min)");
            CHECK(stored.scheduled_at == t0);
            CHECK(w.store.find_by_key("\xF0\x9F\x90\xA2")->id == id);
            CHECK(w.state(done) == task_state::succeeded);
            CHECK(w.get(done).result == "{}");
            REQUIRE(w.store.history(done).size() == 1);
            CHECK(w.store.history(done)[0].log == "line");
            CHECK(w.state(running.id) == task_state::running);
            CHECK(w.get(running.id).fence == running.fence);
            REQUIRE(w.store.types().size() == 1);
            CHECK(w.store.types()[0].paused);
            REQUIRE(w.store.schedules().size() == 1);
            CHECK(w.store.schedules()[0].next == t0 + 30s);
            CHECK(w.type("probe") == w.probe);
            CHECK(w.reclaim(t0 + 1min).reclaimed == 1);
            CHECK(w.add() > ax::task_id{3});
            CHECK(w.insert({made}).at(0).outcome == submit_outcome::kept);
        }
        SECTION("what was thrown away stays away") {
            CHECK_THROWS_AS(w.write([&](auto& verbs) {
                ax::alarms due;
                verbs.insert(std::vector{w.task()}, t0, due);
                throw std::runtime_error("enough");
            }),
                            std::runtime_error);
            reopen();
            CHECK(w.store.list({}, t0).empty());
        }
        SECTION("an owner of before the end can settle while nobody has reclaimed, and not after") {
            auto const a = w.take(w.add());
            auto const b = w.take(w.add());
            reopen();
            w.finish(a, attempt_outcome::succeeded);
            w.reclaim();
            CHECK(w.settle({w.end_of(b, attempt_outcome::succeeded, t0)}, t0).accepted == std::vector{false});
        }
        SECTION("ids are not given again after opening") {
            w.add();
            w.add();
            reopen();
            CHECK(w.add() > ax::task_id{2});
        }
    }
}

} // namespace conformance

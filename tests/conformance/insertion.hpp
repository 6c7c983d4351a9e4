// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

namespace conformance {

/// storage_writer 1 and 2: types, and what insert() stores and answers.
template <class Fixture>
void insertion() {
    workbench<Fixture> w;

    SECTION("a type keeps its number for ever, and numbers rise from 1") {
        CHECK(w.probe == ax::type_number{1});
        CHECK(w.type("close-order") == ax::type_number{2});
        CHECK(w.type("probe") == ax::type_number{1});
        auto const types = w.store.types();
        REQUIRE(types.size() == 2);
        CHECK(types[0].name == "probe");
        CHECK(types[1].name == "close-order");
        CHECK(types[1].number == ax::type_number{2});
        CHECK_FALSE(types[1].paused);
    }
    SECTION("type names are told apart byte by byte") {
        CHECK(w.type("Probe") != w.probe);
        CHECK(w.type("probe ") != w.probe);
        CHECK(w.type("\xF0\x9F\x90\xA2") == w.type("\xF0\x9F\x90\xA2"));
    }

    SECTION("an inserted task is stored as it was given") {
        auto made = w.task(R"({"order":42})");
        made.key = "close-42";
        made.run_at = t0 + 15min;
        made.priority = ax::priority::high;
        made.route_key = "customer-7";
        made.route_order = ax::route_order::relaxed;
        made.deadline = t0 + 1h;
        made.retry = "exponential(1min)";
        made.schedule = "nightly";
        made.scheduled_at = t0 + 14min;
        auto const answer = w.insert({made}, t0);
        REQUIRE(answer.size() == 1);
        CHECK(answer[0].id == ax::task_id{1});
        CHECK(answer[0].outcome == submit_outcome::inserted);
        CHECK(answer[0].state == task_state::ready);

        auto const stored = w.get(answer[0].id);
        CHECK(stored.id == answer[0].id);
        CHECK(stored.type == "probe");
        CHECK(stored.key == "close-42");
        CHECK(stored.state == task_state::ready);
        CHECK(stored.payload == R"({"order":42})");
        CHECK(stored.run_at == t0 + 15min);
        CHECK(stored.order_at == t0 + 15min);
        CHECK(stored.created == t0);
        CHECK(stored.changed == t0);
        CHECK(stored.priority == ax::priority_class::high);
        CHECK(stored.route_key == "customer-7");
        CHECK(stored.route_order == ax::route_ordering::relaxed);
        CHECK(stored.deadline == t0 + 1h);
        CHECK(stored.retry == "exponential(1min)");
        CHECK(stored.schedule == "nightly");
        CHECK(stored.scheduled_at == t0 + 14min);
        CHECK(stored.version == 1);
        CHECK(stored.fence == ax::fence_token{});
        CHECK(stored.node == ax::node_id{});
        CHECK(stored.attempts == 0);
        CHECK(stored.failures == 0);
        CHECK_FALSE(stored.blocked);
        CHECK_FALSE(stored.held);
        CHECK_FALSE(stored.lonely);
        CHECK_FALSE(stored.started.has_value());
        CHECK_FALSE(stored.first_started.has_value());
        CHECK_FALSE(stored.finished.has_value());
        CHECK(stored.last_error.empty());
        CHECK(stored.result.empty());
        CHECK(w.store.history(stored.id).empty());
    }
    SECTION("a plain task has nothing but its defaults") {
        auto const stored = w.get(w.add());
        CHECK(stored.key.empty());
        CHECK(stored.payload.empty());
        CHECK(stored.route_key.empty());
        CHECK(stored.retry.empty());
        CHECK(stored.schedule.empty());
        CHECK_FALSE(stored.scheduled_at.has_value());
        CHECK_FALSE(stored.deadline.has_value());
        CHECK(stored.priority == ax::priority_class::normal);
        CHECK(stored.run_at == t0);
    }
    SECTION("a delay counts from the storage's present, and an instant goes before it") {
        auto delayed = w.task();
        delayed.delay = 15min;
        auto both = w.task_at(t0 + 1min);
        both.delay = 15min;
        CHECK(w.get(w.add(delayed)).run_at == t0 + 15min);
        CHECK(w.get(w.add(both)).run_at == t0 + 1min);
    }
    SECTION("a delay beyond the range of time stops at its end") {
        auto made = w.task();
        made.delay = (ax::duration::max)();
        CHECK(w.get(w.add(made)).run_at == (ax::time_point::max)());
    }
    SECTION("ids rise in the order of insertion") {
        auto const answer = w.insert({w.task(), w.task(), w.task()});
        REQUIRE(answer.size() == 3);
        CHECK(answer[0].id == ax::task_id{1});
        CHECK(answer[1].id == ax::task_id{2});
        CHECK(answer[2].id == ax::task_id{3});
        CHECK(w.add() == ax::task_id{4});
    }
    SECTION("a type without a number of this store is refused, and nothing of the call is kept") {
        auto wrong = w.task();
        wrong.type = ax::type_number{77};
        CHECK_THROWS_AS(w.insert({w.task(), wrong}), ax::error);
        wrong.type = {};
        CHECK_THROWS_AS(w.insert({w.task(), wrong}), ax::error);
        CHECK(w.add() == ax::task_id{1});
    }
    SECTION("an empty call does nothing") {
        CHECK(w.insert({}).empty());
        CHECK(w.due.empty());
    }
    SECTION("each inserted task that can be claimed has its alarm") {
        auto urgent = w.task_at(t0 + 5s);
        urgent.priority = ax::priority::critical;
        auto const answer = w.insert({w.task(), urgent});
        CHECK(announces(w.due, ax::alarm{answer[0].id, w.lane(), t0}));
        CHECK(announces(w.due, ax::alarm{answer[1].id, w.lane(ax::priority_class::critical), t0 + 5s}));
    }
    SECTION("alarms are added to those that are there") {
        ax::alarms due{{ax::task_id{99}, w.lane(), t0}};
        auto const made = std::vector{w.task()};
        w.write([&](auto& writer) {
            due.resize(1);
            return writer.insert(made, t0, due);
        });
        REQUIRE(due.size() == 2);
        CHECK(due[0].id == ax::task_id{99});
        CHECK(due[1].id == ax::task_id{1});
    }

    SECTION("a key that is taken keeps its holder and names it") {
        auto first = w.task("one");
        first.key = "k";
        auto second = w.task("two");
        second.key = "k";
        auto const id = w.add(first);
        w.take(id);
        auto const answer = w.insert({second}, t0 + 1s);
        REQUIRE(answer.size() == 1);
        CHECK(answer[0].id == id);
        CHECK(answer[0].outcome == submit_outcome::kept);
        CHECK(answer[0].state == task_state::dispatched);
        CHECK(w.due.empty());
        CHECK(w.get(id).payload == "one");
        CHECK(w.get(id).version == 2);
        CHECK(w.add(w.task()) == ax::task_id{2});
    }
    SECTION("a key is taken within one call as well") {
        auto made = w.task();
        made.key = "k";
        auto const answer = w.insert({made, w.task(), made});
        REQUIRE(answer.size() == 3);
        CHECK(answer[0].outcome == submit_outcome::inserted);
        CHECK(answer[1].outcome == submit_outcome::inserted);
        CHECK(answer[2].outcome == submit_outcome::kept);
        CHECK(answer[2].id == answer[0].id);
    }
    SECTION("a key is kept by a task that has ended") {
        auto made = w.task();
        made.key = "k";
        auto const id = w.add(made);
        w.finish(w.take(id), attempt_outcome::succeeded);
        auto const answer = w.insert({made});
        CHECK(answer.at(0).outcome == submit_outcome::kept);
        CHECK(answer.at(0).id == id);
        CHECK(answer.at(0).state == task_state::succeeded);
    }
    SECTION("keys are told apart byte by byte, and emoji are text like any other") {
        auto const keys =
            std::vector<std::string>{"k", "K", "k ", "\xF0\x9F\x90\xA2", "\xF0\x9F\x90\xA3", "k%", "'; --"};
        std::vector<ax::new_task> made;
        for (auto const& key : keys) {
            made.push_back(w.task());
            made.back().key = key;
        }
        for (auto const& each : w.insert(made)) CHECK(each.outcome == submit_outcome::inserted);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            auto const found = w.store.find_by_key(keys[i]);
            REQUIRE(found.has_value());
            CHECK(found->id == ax::task_id{i + 1});
        }
    }
    SECTION("an occurrence that exists is kept, and its task is named") {
        auto made = w.task("first");
        made.schedule = "nightly";
        made.scheduled_at = t0;
        auto const id = w.add(made);
        made.payload = "second";
        auto const again = w.insert({made}, t0 + 1s).at(0);
        CHECK(again.outcome == submit_outcome::kept);
        CHECK(again.id == id);
        CHECK(w.due.empty());
        made.scheduled_at = t0 + 1ms;
        CHECK(w.insert({made}).at(0).outcome == submit_outcome::inserted);
        made.schedule = "weekly";
        made.scheduled_at = t0;
        CHECK(w.insert({made}).at(0).outcome == submit_outcome::inserted);
    }

    SECTION("payloads, results and logs are bytes") {
        std::string bytes;
        for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
        bytes += std::string("\0\0\xFF\xC0", 4);
        auto const id = w.add(w.task(bytes));
        CHECK(w.get(id).payload == bytes);
        auto const claimed = w.take(id);
        CHECK(claimed.payload == bytes);
        auto end = w.end_of(claimed, attempt_outcome::succeeded, t0);
        end.result = bytes;
        end.log = bytes;
        w.settle({end}, t0);
        CHECK(w.get(id).result == bytes);
        REQUIRE(w.store.history(id).size() == 1);
        CHECK(w.store.history(id)[0].log == bytes);
    }
    SECTION("a payload of a megabyte comes back whole") {
        std::string large(1U << 20U, 'x');
        large.back() = '\0';
        CHECK(w.get(w.add(w.task(large))).payload == large);
    }
    SECTION("instants to the end of the year 9999 keep their millisecond") {
        auto const when = GENERATE(ax::earliest_time, ax::time_point{2'147'483'648'000ms}, // 2038-01-19, 32 bits end
                                   ax::time_point{16'725'225'600'001ms},                   // 2500-01-01
                                   ax::latest_time);
        auto made = w.task_at(when);
        made.deadline = when;
        made.schedule = "far";
        made.scheduled_at = when;
        auto const stored = w.get(w.add(made));
        CHECK(stored.run_at == when);
        CHECK(stored.deadline == when);
        CHECK(stored.scheduled_at == when);
    }
}

} // namespace conformance

// SPDX-License-Identifier: MIT
#pragma once

#include "conformance/support.hpp"

#include <set>

namespace conformance {

/// storage 4 and 5: find, upcoming, list.
template <class Fixture>
void reads() {
    workbench<Fixture> w;

    SECTION("what is not there is not found") {
        CHECK_FALSE(w.store.find(ax::task_id{1}).has_value());
        CHECK_FALSE(w.store.find(ax::task_id{}).has_value());
        CHECK_FALSE(w.store.find(ax::task_id{~std::uint64_t{0} >> 1U}).has_value());
        w.add(); // without a key
        CHECK_FALSE(w.store.find_by_key("").has_value());
        CHECK_FALSE(w.store.find_by_key("k").has_value());
        CHECK(w.store.list({}, t0).size() == 1);
    }
    SECTION("an empty store gives empty answers") {
        CHECK(w.store.list({}, t0).empty());
        CHECK(w.store.schedules().empty());
        CHECK(w.store.upcoming({{}, w.lane(), {}}, ax::latest_time, 10).empty());
        CHECK(w.store.types().size() == 1);
    }
    SECTION("a task is found by its key whatever its state") {
        auto made = w.task("x");
        made.key = "k";
        auto const id = w.add(made);
        CHECK(w.store.find_by_key("k")->id == id);
        w.cancel(id);
        CHECK(w.store.find_by_key("k")->state == task_state::cancelled);
    }

    SECTION("upcoming gives one lane in the order of run_at, then id") {
        auto urgent = w.task_at(t0);
        urgent.priority = ax::priority::critical;
        auto foreign = w.task_at(t0);
        foreign.type = w.type("other");
        auto const answer = w.insert({w.task_at(t0 + 2s), w.task_at(t0 + 1s), urgent, foreign, w.task_at(t0 + 1s)});
        auto const due = w.store.upcoming({{}, w.lane(), {}}, ax::latest_time, 10);
        CHECK(due == ax::alarms{{answer[1].id, w.lane(), t0 + 1s},
                                {answer[4].id, w.lane(), t0 + 1s},
                                {answer[0].id, w.lane(), t0 + 2s}});
        auto const critical = w.lane(ax::priority_class::critical);
        CHECK(w.store.upcoming({{}, critical, {}}, ax::latest_time, 10) == ax::alarms{{answer[2].id, critical, t0}});
    }
    SECTION("upcoming ends at `until`, which is part of it") {
        w.add(w.task_at(t0 + 1s));
        CHECK(w.upcoming(t0 + 1s - 1ms).empty());
        CHECK(w.upcoming(t0 + 1s).size() == 1);
    }
    SECTION("upcoming goes on strictly behind an alarm, page by page") {
        std::vector<ax::new_task> made;
        for (int i = 0; i < 25; ++i) made.push_back(w.task_at(t0 + std::chrono::seconds{(i * 7) % 5})); // ties
        w.insert(made);
        auto const whole = w.store.upcoming({{}, w.lane(), {}}, ax::latest_time, 100);
        REQUIRE(whole.size() == 25);
        ax::alarms paged;
        ax::alarm after{{}, w.lane(), {}};
        for (;;) {
            auto const page = w.store.upcoming(after, ax::latest_time, 4);
            CHECK(page.size() <= 4);
            if (page.empty()) break;
            paged.insert(paged.end(), page.begin(), page.end());
            after = page.back();
            REQUIRE(paged.size() <= 25);
        }
        CHECK(paged == whole);
        CHECK(w.store.upcoming({{}, w.lane(), {}}, ax::latest_time, 0).empty());
    }
    SECTION("upcoming has what can be claimed and nothing else") {
        auto const ready = w.add();
        auto const failed = w.add();
        w.finish(w.take(failed), attempt_outcome::failed);
        auto const held = w.add();
        w.finish(w.take(held), attempt_outcome::held);
        w.take(w.add());
        auto const running = w.take(w.add());
        w.start(running, t0);
        w.finish(w.take(w.add()), attempt_outcome::succeeded);
        auto const first = w.add(w.task_of("r"));
        w.add(w.task_of("r"));
        CHECK(w.upcoming() == ids{ready, first, failed});
    }

    SECTION("list gives the latest first where no state is asked for") {
        auto const a = w.add();
        auto const b = w.add();
        w.cancel(a);
        auto const c = w.add();
        CHECK(ids_of(w.store.list({}, t0)) == ids{c, b, a});
        ax::task_filter filter;
        filter.limit = 2;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{c, b});
        filter.after = b;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{a});
        filter.after = a;
        CHECK(w.store.list(filter, t0).empty());
        filter = {};
        filter.limit = 0;
        CHECK(w.store.list(filter, t0).empty());
    }
    SECTION("list gives ended tasks of one state, the latest first") {
        auto const a = w.add();
        auto const b = w.add();
        auto const c = w.add();
        for (auto const id : {c, a, b}) w.cancel(id);
        w.add();
        ax::task_filter filter;
        filter.state = task_state::cancelled;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{c, b, a});
        filter.limit = 1;
        filter.after = c;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{b});
        filter.state = task_state::dead;
        CHECK(w.store.list(filter, t0).empty());
    }
    SECTION("list gives whole records") {
        auto made = w.task("payload");
        made.key = "k";
        made.deadline = t0 + 1h;
        auto const id = w.add(made);
        w.take(id);
        auto const listed = w.store.list({}, t0);
        REQUIRE(listed.size() == 1);
        CHECK(listed[0].payload == "payload");
        CHECK(listed[0].key == "k");
        CHECK(listed[0].deadline == t0 + 1h);
        CHECK(listed[0].node == node_a);
        CHECK(listed[0].type == "probe");
    }
    SECTION("ready and failed ones come in the order they run, what waits for others last") {
        auto const late = w.add(w.task_at(t0 + 2h));
        auto const held = w.add();
        w.finish(w.take(held), attempt_outcome::held);
        auto const first = w.add(w.task_of("r"));
        auto behind = w.task_of("r");
        behind.run_at = t0 + 1s;
        auto const blocked = w.add(behind);
        auto const soon = w.add(w.task_at(t0 + 1h));
        ax::task_filter filter;
        filter.state = task_state::ready;
        auto const order = ids{first, soon, late, held, blocked};
        CHECK(ids_of(w.store.list(filter, t0)) == order);
        filter.limit = 1;
        ids paged;
        for (std::size_t i = 0; i < order.size(); ++i) {
            auto const page = w.store.list(filter, t0);
            REQUIRE(page.size() == 1);
            paged.push_back(page[0].id);
            filter.after = page[0].id;
        }
        CHECK(paged == order);
        CHECK(w.store.list(filter, t0).empty());
    }
    SECTION("failed ones come in the order of their retries") {
        auto const a = w.add();
        auto const b = w.add();
        w.finish(w.take(a, t0 + 9s), attempt_outcome::failed, t0 + 9s);
        w.finish(w.take(b), attempt_outcome::failed, t0);
        ax::task_filter filter;
        filter.state = task_state::failed;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{b, a});
        filter.after = b;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{a});
    }
    SECTION("list narrows by type") {
        auto const a = w.add();
        auto other = w.task();
        other.type = w.type("other");
        auto const b = w.add(other);
        ax::task_filter filter;
        filter.type = "other";
        CHECK(ids_of(w.store.list(filter, t0)) == ids{b});
        filter.state = task_state::ready;
        CHECK(ids_of(w.store.list(filter, t0)) == ids{b});
        filter.type = "probe";
        CHECK(ids_of(w.store.list(filter, t0)) == ids{a});
        filter.type = "unknown";
        CHECK(w.store.list(filter, t0).empty());
    }
    SECTION("list narrows to what is in its state for longer than asked") {
        auto const old = w.take(w.add());
        w.start(old, t0);
        auto const fresh = w.take(w.add());
        w.start(fresh, t0 + 30s);
        ax::task_filter filter;
        filter.state = task_state::running;
        filter.stuck_for = 1min;
        CHECK(w.store.list(filter, t0 + 1min).empty());
        CHECK(ids_of(w.store.list(filter, t0 + 1min + 1ms)) == ids{old.id});
        CHECK(ids_of(w.store.list(filter, t0 + 1h)) == ids{fresh.id, old.id});
        filter.stuck_for = std::chrono::hours::max();
        CHECK(w.store.list(filter, t0 + 1h).empty());
    }
    SECTION("ten thousand tasks are read page by page, each once") {
        std::size_t const count = 10'000;
        std::vector<ax::new_task> made;
        for (std::size_t i = 0; i < count; ++i) {
            auto const jumbled = static_cast<std::int64_t>((i * 7919) % 1000);
            made.push_back(w.task_at(t0 + std::chrono::milliseconds{jumbled}));
        }
        REQUIRE(w.insert(made).size() == count);
        bool const by_state = GENERATE(true, false);
        ax::task_filter filter;
        if (by_state) filter.state = task_state::ready;
        filter.limit = 777;
        std::set<ax::task_id> seen;
        std::optional<ax::task_record> last;
        for (;;) {
            auto const page = w.store.list(filter, t0);
            if (page.empty()) break;
            REQUIRE(page.size() <= filter.limit);
            std::size_t out_of_order = 0;
            for (auto const& task : page) {
                if (last && by_state && std::pair(task.run_at, task.id) <= std::pair(last->run_at, last->id))
                    ++out_of_order;
                if (last && !by_state && task.id >= last->id) ++out_of_order;
                seen.insert(task.id);
                last = task;
            }
            REQUIRE(out_of_order == 0);
            filter.after = page.back().id;
        }
        CHECK(seen.size() == count);
        ax::alarms due;
        for (ax::alarm after{{}, w.lane(), {}};;) {
            auto const page = w.store.upcoming(after, ax::latest_time, 777);
            if (page.empty()) break;
            due.insert(due.end(), page.begin(), page.end());
            after = page.back();
            REQUIRE(due.size() <= count);
        }
        CHECK(due.size() == count);
        CHECK(std::is_sorted(due.begin(), due.end(), [](ax::alarm const& a, ax::alarm const& b) {
            return std::pair(a.run_at, a.id) < std::pair(b.run_at, b.id);
        }));
    }
}

} // namespace conformance

// SPDX-License-Identifier: MIT
// The judge finds each fault that is planted, and nothing where all is well.
#include "ax/testing/history.hpp"

#include "ax/storage/memory.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using ax::event_kind;
using ax::task_state;
using ax::testing::history;

namespace {

using test::t0;

ax::event event_of(event_kind kind, std::uint64_t fence, ax::duration lateness = ax::duration{0}) {
    ax::event e;
    e.kind = kind;
    e.at = t0;
    e.id = ax::task_id{7};
    e.attempt_id = ax::fence_token{fence};
    e.lateness = lateness;
    if (kind == event_kind::reported) e.outcome = ax::attempt_outcome::succeeded;
    return e;
}

bool has(history const& judge, std::string const& text) {
    return judge.report().find("fault: " + text) != std::string::npos;
}

/// A store whose rows a test changes behind everybody's back.
class forged_store {
  public:
    using writer = ax::memory_storage::writer;
    static constexpr bool durable = false;

    std::vector<ax::task_record> rows;
    std::vector<ax::type_info> all_types;
    std::optional<ax::workflow_record> whole;
    std::vector<ax::member_record> parts;

    template <class Fn>
    void transact(ax::commit kind, Fn&& fn) {
        none_.transact(kind, std::forward<Fn>(fn));
    }
    std::optional<ax::task_record> find(ax::task_id id) const {
        for (auto const& row : rows)
            if (row.id == id) return row;
        return std::nullopt;
    }
    std::vector<ax::task_record> list(ax::task_filter const& filter, ax::time_point) const {
        std::vector<ax::task_record> found;
        for (auto const& row : rows)
            if (!filter.state || row.state == *filter.state) found.push_back(row);
        return found;
    }
    std::vector<ax::type_info> types() const { return all_types; }
    std::optional<ax::workflow_record> workflow(ax::task_id) const { return whole; }
    std::vector<ax::member_record> members(ax::task_id, std::string_view, std::size_t) const { return parts; }

    std::optional<ax::task_record> find_by_key(std::string_view key) const { return none_.find_by_key(key); }
    std::vector<ax::attempt_view> history(ax::task_id id) const { return none_.history(id); }
    std::vector<ax::obstacle> obstacles(ax::task_id id) const { return none_.obstacles(id); }
    std::vector<ax::task_id> asked_to_stop() const { return none_.asked_to_stop(); }
    ax::alarms upcoming(ax::alarm const& after, ax::time_point until, std::size_t limit) const {
        return none_.upcoming(after, until, limit);
    }
    std::vector<ax::schedule_record> schedules() const { return none_.schedules(); }
    std::vector<ax::kept_step> steps(ax::task_id id) const { return none_.steps(id); }
    std::vector<ax::task_count> counts() const { return none_.counts(); }
    std::string note(std::string_view name) const { return none_.note(name); }
    std::vector<ax::finding> verify() const { return none_.verify(); }
    ax::waiting_page waiting(ax::limit_number after, std::size_t most, ax::time_point now) const {
        return none_.waiting(after, most, now);
    }
    std::vector<ax::limit_info> limits() const { return none_.limits(); }
    std::vector<ax::parent_record> parents(ax::task_id id) const { return none_.parents(id); }
    std::optional<ax::task_record> occurrence(std::string_view name, ax::time_point nominal) const {
        return none_.occurrence(name, nominal);
    }
    std::vector<ax::task_record> aside(std::string_view name, ax::time_point from, ax::time_point to,
                                       std::size_t limit) const {
        return none_.aside(name, from, to, limit);
    }
    std::vector<ax::backfill_record> backfills() const { return none_.backfills(); }
    ax::skip_log skips(std::string_view schedule) const { return none_.skips(schedule); }

  private:
    ax::memory_storage none_;
};
static_assert(ax::storage<forged_store>);

ax::task_record row_of(std::uint64_t id, task_state state = task_state::ready) {
    ax::task_record row;
    row.id = ax::task_id{id};
    row.type = "t";
    row.state = state;
    row.version = 5;
    row.fence = ax::fence_token{3};
    row.run_at = row.order_at = t0;
    return row;
}

} // namespace

TEST_CASE("history: an ordinary life is sound", "[testing]") {
    history judge;
    forged_store store;
    store.rows = {row_of(7)};
    ax::insertion told{ax::task_id{7}};
    judge.acknowledged({&told, 1});
    judge.look(store, t0);
    judge.record(event_of(event_kind::picked_up, 6));
    judge.record(event_of(event_kind::dispatched, 6));
    judge.process_ended(); // and it runs again
    judge.record(event_of(event_kind::dispatched, 8));
    judge.record(event_of(event_kind::reported, 8));
    store.rows[0].version = 9;
    store.rows[0].fence = ax::fence_token{8};
    store.rows[0].state = task_state::succeeded;
    judge.look(store, t0);
    judge.finish_all(store, t0);
    INFO(judge.report());
    CHECK(judge.sound());
    CHECK(judge.events() == 4);
}

TEST_CASE("history: attempts that must not be", "[testing]") {
    history judge;
    judge.record(event_of(event_kind::dispatched, 6));
    SECTION("two live ones") {
        judge.record(event_of(event_kind::dispatched, 8));
        CHECK(has(judge, "task 7 has two live attempts"));
    }
    SECTION("under an old fence") {
        judge.process_ended();
        judge.record(event_of(event_kind::dispatched, 6));
        CHECK(has(judge, "task 7 starts under an old fence"));
    }
    SECTION("after a success") {
        judge.record(event_of(event_kind::reported, 6));
        judge.record(event_of(event_kind::dispatched, 8));
        CHECK(has(judge, "task 7 starts after it has succeeded"));
    }
    SECTION("refused without another owner") {
        judge.record(event_of(event_kind::refused, 6));
        CHECK(has(judge, "task 7 was taken from its only owner"));
    }
    CHECK_FALSE(judge.sound());
}

TEST_CASE("history: a node that was cut off may run what others have taken over, and report nothing of it",
          "[testing]") {
    history judge;
    bool const has_started = GENERATE(true, false);
    if (has_started) judge.record(event_of(event_kind::dispatched, 6), 0);
    judge.taken_over(ax::task_id{7}, ax::fence_token{6});
    if (!has_started) judge.record(event_of(event_kind::dispatched, 6), 0);
    judge.record(event_of(event_kind::dispatched, 8), 1);
    CHECK(judge.sound());
    SECTION("it is refused") {
        judge.record(event_of(event_kind::refused, 6), 0);
        judge.record(event_of(event_kind::reported, 8), 1);
        CHECK(judge.sound());
        judge.record(event_of(event_kind::refused, 6), 0); // which comes once
        CHECK(has(judge, "task 7 was taken from its only owner"));
    }
    SECTION("it is believed") {
        judge.record(event_of(event_kind::reported, 6), 0);
        CHECK(has(judge, "task 7 was reported by a node that had lost it"));
    }
}

TEST_CASE("history: two nodes run one task at once", "[testing]") {
    history judge;
    ax::memory_storage store;
    ax::alarms due;
    ax::fence_token fence{};
    store.transact(ax::commit::durable, [&](ax::memory_storage::writer& w) {
        ax::new_task task;
        task.type = w.type("t");
        auto const id = w.insert({&task, 1}, t0, due).front().id;
        ax::claim_request const wanted{id, false, {}};
        fence = w.claim({&wanted, 1}, {ax::node_id{1}, t0, t0, 0}).claimed.front().fence;
    });
    auto first = event_of(event_kind::dispatched, to_number(fence));
    auto second = event_of(event_kind::dispatched, to_number(fence) + 1);
    first.id = second.id = due.front().id;
    judge.record(first, 0);
    SECTION("since it was taken from one that lives") {
        store.transact(ax::commit::durable, [&](ax::memory_storage::writer& w) { w.reclaim({ax::node_id{2}, 3, t0}); });
        judge.record(second, 1);
        judge.glance(store, t0);
        CHECK(has(judge, "task 1 has two live attempts"));
    }
    SECTION("as far as events tell: its outcome is stored, and the node has yet to learn it") {
        ax::attempt_end end;
        end.id = first.id;
        end.fence = fence;
        end.outcome = ax::attempt_outcome::failed;
        end.retry_at = t0;
        end.started = t0;
        end.ended = t0;
        store.transact(ax::commit::durable, [&](ax::memory_storage::writer& w) { w.settle({&end, 1}, t0); });
        judge.record(second, 1);
        judge.glance(store, t0);
        CHECK(judge.sound());
    }
    SECTION("of which one has ended") {
        judge.process_ended(1);
        judge.process_ended(0);
        judge.record(second, 1);
        judge.glance(store, t0);
        CHECK(judge.sound());
    }
}

TEST_CASE("history: an attempt before its instant", "[testing]") {
    history judge;
    judge.clock_was_set(t0 + 2h); // before it was picked up: no excuse
    judge.record(event_of(event_kind::picked_up, 6));
    bool const excused = GENERATE(false, true);
    if (excused) judge.clock_was_set(t0 + 1ms);
    judge.record(event_of(event_kind::dispatched, 6, -1ms));
    CHECK(judge.sound() == excused);
    CHECK(has(judge, "task 7 starts too early") == !excused);
}

TEST_CASE("history: rows that must not be", "[testing]") {
    history judge;
    forged_store store;
    store.rows = {row_of(7), row_of(8)};
    auto& first = store.rows[0];
    judge.look(store, t0);
    REQUIRE(judge.sound());
    std::string expected;
    SECTION("an acknowledged task is lost") {
        ax::insertion told{ax::task_id{9}};
        judge.acknowledged({&told, 1});
        expected = "task 9 was acknowledged and is lost";
    }
    SECTION("a version falls") {
        first.version = 4;
        expected = "task 7: its version fell";
    }
    SECTION("a fence falls") {
        first.version = 6;
        first.fence = ax::fence_token{2};
        expected = "task 7: its fence fell";
    }
    SECTION("a change without a version") {
        first.state = task_state::dead;
        expected = "task 7 has changed under one version";
    }
    SECTION("a success is undone") {
        first.version = 6;
        first.state = task_state::succeeded;
        judge.look(store, t0);
        first.version = 7;
        first.state = task_state::ready;
        expected = "task 7 had succeeded and is ready";
    }
    SECTION("two tasks for one instant") {
        for (auto& row : store.rows) row.schedule = "s";
        for (auto& row : store.rows) row.scheduled_at = t0;
        expected = "schedule \"s\" has two tasks for one instant: 7 and 8";
    }
    SECTION("beyond a limit") {
        judge.limit_type("t", 1);
        for (auto& row : store.rows) row.version = 6;
        for (auto& row : store.rows) row.state = task_state::dispatched;
        expected = "2 tasks are in flight of type \"t\", and 1 may be";
    }
    SECTION("beyond the limit of a tag") {
        judge.limit_tag("x", 1);
        for (auto& row : store.rows) row.version = 6;
        for (auto& row : store.rows) row.tags = {"x"};
        for (auto& row : store.rows) row.state = task_state::running;
        expected = "2 tasks are in flight with tag \"x\", and 1 may be";
    }
    SECTION("two of a route in flight") {
        for (auto& row : store.rows) row.version = 6;
        for (auto& row : store.rows) row.route_key = "r";
        for (auto& row : store.rows) row.state = task_state::running;
        expected = "two tasks of route \"r\" are in flight";
    }
    SECTION("one overtaken") {
        for (auto& row : store.rows) row.route_key = "r";
        store.rows[1].version = 6;
        store.rows[1].fence = ax::fence_token{6};
        store.rows[1].state = task_state::dispatched;
        expected = "task 8 has overtaken task 7 of route \"r\"";
    }
    judge.look(store, t0);
    INFO(judge.report());
    CHECK(has(judge, expected));
    CHECK(judge.faults().size() == 1);
}

TEST_CASE("history: what has stayed behind at the end", "[testing]") {
    history judge;
    forged_store store;
    store.rows = {row_of(7)};
    auto& row = store.rows[0];
    std::string expected;
    SECTION("due, and not run") { expected = "task 7 is due and has not run"; }
    SECTION("in flight") {
        row.state = task_state::running;
        expected = "task 7 is still in flight";
    }
    SECTION("not due yet") { row.run_at = t0 + 1h; }
    SECTION("of a type that is paused") { store.all_types = {{ax::type_number{1}, "t", true}}; }
    SECTION("held") { row.held = true; }
    SECTION("a workflow without an unfinished task") {
        row.state = task_state::created;
        row.in_workflow = true;
        store.whole.emplace();
        store.whole->id = store.whole->head = row.id;
        store.rows.push_back(row_of(8, task_state::succeeded));
        store.parts.resize(1);
        store.parts[0].id = ax::task_id{8};
        expected = "workflow 7 has not ended, and all of its tasks have";
    }
    judge.finish(store, t0 + 1min, 10s);
    INFO(judge.report());
    CHECK(judge.sound() == expected.empty());
    if (!expected.empty()) CHECK(has(judge, expected));
    history last;
    last.finish_all(store, t0);
    CHECK_FALSE(last.sound()); // nobody may stay behind then
}

TEST_CASE("history: a report is bounded", "[testing]") {
    history judge;
    for (int i = 0; i != 1'000; ++i) judge.fault("f");
    CHECK(judge.faults().size() == 20);
    CHECK(judge.report().find("and 980 faults more") != std::string::npos);
}

// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "ax/storage/detail/sqlite_verify.hpp"

#include "conformance/support.hpp"

#include <functional>

namespace {

using namespace conformance;
using ax::detail::memory_row;
using ax::detail::memory_tables;

/// Tables as a storage would have them: two tasks of a route, one in flight, one ended, one that waits.
memory_tables populated() {
    memory_tables tables;
    auto const add = [&](task_state state, std::string const& route_key = {}) {
        memory_row row;
        row.type = tables.type("probe");
        row.task.type = "probe";
        row.task.state = state;
        row.task.version = 1;
        row.task.route_key = route_key;
        if (ax::is_terminal(state)) row.task.finished = t0;
        if (ax::is_active(state)) {
            row.task.attempts = 1;
            row.task.node = node_a;
        }
        row.task.blocked = !route_key.empty();
        tables.add(std::move(row));
        tables.promote(route_key);
    };
    add(task_state::ready, "r");
    add(task_state::ready, "r");
    add(task_state::dispatched);
    add(task_state::succeeded);
    add(task_state::ready);
    {
        memory_row row;
        row.type = tables.type("probe");
        row.task.type = "probe";
        row.task.state = task_state::cancelled;
        row.task.finished = t0;
        row.task.key = "k";
        row.task.key_scope = ax::key_scope::active;
        row.task.key_released = true;
        tables.add(std::move(row));
    }
    tables.commit();
    return tables;
}

struct memory_wound {
    char const* kind;
    std::uint64_t task;
    std::function<void(ax::task_record&)> damage;
};

} // namespace

TEST_CASE("memory_storage finds and repairs impossible states under the names that SQLite uses", "[storage][memory]") {
    std::vector<memory_wound> const wounds{
        {"state", 5, [](auto& task) { task.state = static_cast<task_state>(42); }},
        {"owner", 3, [](auto& task) { task.node = {}; }},
        {"finished", 5, [](auto& task) { task.finished = t0; }},
        {"unfinished", 4, [](auto& task) { task.finished.reset(); }},
        {"gate", 4, [](auto& task) { task.held = true; }},
        {"blocked", 5, [](auto& task) { task.blocked = true; }},
        {"route", 1, [](auto& task) { task.blocked = true; }},
        {"route", 2, [](auto& task) { task.blocked = false; }},
        {"waiting", 2, [](auto& task) { task.waits_for = ax::limit_number{1}; }}, // it is blocked
        {"key", 6, [](auto& task) { task.key_released = false; }},
        {"fence", 3, [](auto& task) { task.fence = ax::fence_token{9}; }},
        {"attempts", 3, [](auto& task) { task.attempts = 0; }},
    };
    for (auto const& one : wounds) {
        CAPTURE(one.kind, one.task);
        auto tables = populated();
        REQUIRE(ax::detail::memory_verify(tables).empty());
        tables.change(*tables.find(ax::task_id{one.task}), one.damage);
        auto found = ax::detail::memory_verify(tables);
        REQUIRE(found.size() == 1);
        CHECK(found[0].kind == one.kind);
        CHECK(found[0].task == ax::task_id{one.task});
        ax::detail::memory_repair(tables, found[0], t0 + 1h);
        CHECK(found[0].repaired);
        auto const left = ax::detail::memory_verify(tables);
        CAPTURE(left.empty() ? std::string{} : left[0].text);
        CHECK(left.empty());
        CHECK(tables.check_invariants() == "");
    }
}

TEST_CASE("memory_storage finds what is wrong with limits under the names and in the words of SQLite",
          "[storage][memory]") {
    struct limit_wound {
        char const* kind;
        std::uint64_t task;
        std::function<void(memory_tables&)> damage;
        std::string text;
    };
    auto const narrow = ax::limit_number{1};
    std::vector<limit_wound> const wounds{
        {"limit", 0, [&](auto& tables) { tables.limits().change(narrow, [](auto& state) { state.used = 2; }); },
         "the limit of tag \"narrow\" counts 2 in use, and 1 are"},
        {"hold", 5,
         [&](auto& tables) {
             tables.limits().set_holds(ax::task_id{5}, {{narrow, 1, 0}});
             tables.limits().change(narrow, [](auto& state) { ++state.used; });
         },
         "it takes up the limit of tag \"narrow\", and is not in flight"},
        {"waiting", 5,
         [&](auto& tables) {
             tables.change(*tables.find(ax::task_id{5}), [](auto& task) { task.waits_for = ax::limit_number{77}; });
         },
         "it is said to wait for a limit, and cannot: there is no such limit, or it is not its turn"},
        {"waiting", 5,
         [&](auto& tables) {
             auto& row = *tables.find(ax::task_id{5});
             auto const line = tables.lines().open({row.lane(), {}, ax::limit_number{9}});
             tables.change(row, [&](auto& task) { task.waits_for = static_cast<ax::limit_number>(line); });
         },
         "it is said to wait for a limit, and cannot: there is no such limit, or it is not its turn"},
    };
    for (auto const& one : wounds) {
        CAPTURE(one.kind, one.text);
        auto tables = populated();
        REQUIRE(tables.limits().add(ax::limit_kind::tag, "narrow").number == narrow);
        tables.limits().change(narrow, [](auto& state) { state.capacity = state.used = 1; });
        tables.limits().set_holds(ax::task_id{3}, {{narrow, 1, 0}});
        REQUIRE(ax::detail::memory_verify(tables).empty());
        one.damage(tables);
        std::size_t rounds = 0;
        for (auto found = ax::detail::memory_verify(tables); !found.empty();
             found = ax::detail::memory_verify(tables)) {
            CAPTURE(found[0].kind, found[0].text);
            REQUIRE(++rounds < 4);
            if (rounds == 1) {
                CHECK(found[0].kind == one.kind);
                CHECK(found[0].task == ax::task_id{one.task});
                CHECK(found[0].text == one.text);
            }
            for (auto& each : found) {
                CHECK(each.kind != "index");
                ax::detail::memory_repair(tables, each, t0 + 1h);
            }
        }
        CHECK(rounds >= 1);
        CHECK(tables.check_invariants() == "");
        CHECK(tables.limits().find(narrow)->used == 1);
        while (tables.limits().take_touched()) {
        }
    }
}

TEST_CASE("memory_storage and SQLite say the same of the same fault", "[storage][memory]") {
    // Every text of the one is in a statement of the other, but for what differs from store to store.
    auto const in_sqlite = [](std::string const& kind, std::string const& text) {
        for (auto const& check : ax::detail::sqlite_checks)
            if (check.kind == kind && std::string(check.find).find(text) != std::string::npos) return true;
        return false;
    };
    for (auto const* text : {"it is in flight, and no node has claimed it"}) CHECK(in_sqlite("owner", text));
    CHECK(in_sqlite("waiting",
                    "it is said to wait for a limit, and cannot: there is no such limit, or it is not its turn"));
    CHECK(in_sqlite("hold", "it takes up the limit of "));
    CHECK(in_sqlite("hold", ", and is not in flight"));
    CHECK(in_sqlite("limit", "the limit of "));
    CHECK(in_sqlite("limit", " in use, and "));
    CHECK(in_sqlite("gate", "it has ended or is in flight, and is held or blocked"));
    CHECK(in_sqlite("fence", "its fence is above its version: no end of its attempt would be taken"));
    CHECK(in_sqlite("attempts", "its history has more attempts than it counts"));
    CHECK(in_sqlite("key", "it has lost its key, and holds it all the same"));
    CHECK_FALSE(in_sqlite("key", "anything else"));
}

TEST_CASE("memory_storage repairs nothing that is well by then", "[storage][memory]") {
    auto tables = populated();
    ax::finding gone{"owner", ax::task_id{3}, "", false, {}};
    auto const before = tables.find(ax::task_id{3})->task.version;
    ax::detail::memory_repair(tables, gone, t0);
    CHECK(gone.repaired);
    CHECK(tables.find(ax::task_id{3})->task.version == before);
    CHECK(tables.find(ax::task_id{3})->task.state == task_state::dispatched);
}

TEST_CASE("memory_storage makes its indexes anew", "[storage][memory]") {
    auto tables = populated();
    ax::finding index{"index", {}, "", false, {}};
    ax::detail::memory_repair(tables, index, t0);
    CHECK(tables.check_invariants() == "");
    CHECK(tables.count(ax::make_lane(ax::type_number{1}, ax::priority::normal), task_state::ready) == 3);
}

TEST_CASE("memory_storage tells those behind whoever a repair takes out of a line", "[storage][memory]") {
    auto tables = populated();
    auto const narrow = tables.limits().add(ax::limit_kind::tag, "narrow").number;
    auto const lane = tables.find(ax::task_id{2})->lane();
    auto const line = tables.lines().open({lane, {"narrow"}, narrow});
    tables.change(*tables.find(ax::task_id{1}), [](auto& task) { task.blocked = true; });
    tables.change(*tables.find(ax::task_id{2}), [&](auto& task) {
        task.blocked = false;
        task.tags = {"narrow"};
        task.waits_for = static_cast<ax::limit_number>(line);
    });
    tables.commit();
    auto found = ax::detail::memory_verify(tables);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == std::string{"route"});
    ax::detail::memory_repair(tables, found[0], t0 + 1h);
    CHECK(tables.find(ax::task_id{2})->task.waits_for == ax::limit_number{});
    CHECK(tables.find(ax::task_id{2})->task.blocked);
    CHECK(tables.limits().take_touched() == narrow);
    CHECK(tables.lines().all().empty());
    CHECK(ax::detail::memory_verify(tables).empty());
}

TEST_CASE("memory_storage finds what cannot be of workflows", "[storage][memory][verify]") {
    using ax::member_kind;
    memory_tables tables;
    auto const add = [&](task_state state, std::string const& name, member_kind kind, std::uint32_t parents) {
        memory_row row;
        row.type = tables.type("probe");
        row.task.type = "probe";
        row.task.state = state;
        row.task.version = 1;
        row.task.in_workflow = true;
        if (ax::is_terminal(state)) row.task.finished = t0;
        auto const id = tables.add(std::move(row)).task.id;
        ax::detail::graph_row member;
        member.workflow = ax::task_id{1};
        member.kind = kind;
        member.parents.total = parents;
        tables.graphs().put_member(id, {member, name});
        return id;
    };
    auto const head = add(task_state::created, {}, member_kind::workflow, 0);
    auto const a = add(task_state::ready, "a", member_kind::task, 0);
    auto const b = add(task_state::created, "b", member_kind::task, 1);
    tables.graphs().link(a, b);
    ax::detail::workflow_row whole;
    whole.id = whole.head = head;
    whole.counts = {1, 1, 0, 0, 0, 0, 0};
    tables.graphs().put_workflow(whole, "order");
    tables.commit();
    REQUIRE(ax::detail::memory_verify(tables).empty());

    auto const counts = [](std::uint32_t total, std::uint32_t succeeded) {
        ax::parent_counts made;
        made.total = total;
        made.succeeded = succeeded;
        return made;
    };
    std::string kind;
    ax::task_id about{};
    SECTION("parents that were counted too early") {
        tables.graphs().put_parents(b, counts(2, 1));
        tables.graphs().put_parents(b, counts(1, 1));
        kind = "parents";
        about = b;
    }
    SECTION("parents that are not there") {
        tables.graphs().put_parents(b, counts(2, 0));
        kind = "parents";
        about = b;
    }
    SECTION("a task that waits for nothing") {
        tables.change(*tables.find(a), [](ax::task_record& task) {
            task.state = task_state::succeeded;
            task.finished = t0;
        });
        tables.graphs().put_parents(b, counts(1, 1));
        whole.counts = {1, 0, 1, 0, 0, 0, 0};
        tables.graphs().put_workflow(whole);
        kind = "stuck";
        about = b;
    }
    SECTION("counts of the workflow") {
        whole.counts = {2, 1, 0, 0, 0, 0, 0};
        tables.graphs().put_workflow(whole);
        kind = "workflow";
        about = head;
    }
    SECTION("a head that has ended before its tasks") {
        tables.change(*tables.find(head), [](ax::task_record& task) {
            task.state = task_state::upstream_failed;
            task.finished = t0;
        });
        kind = "head";
        about = head;
    }
    SECTION("a task that is of no workflow") {
        tables.change(*tables.find(a), [](ax::task_record& task) { task.in_workflow = false; });
        kind = "member";
        about = a;
    }
    SECTION("a pause that is none") {
        tables.change(*tables.find(a), [](ax::task_record& task) { task.paused = true; });
        kind = "paused";
        about = a;
    }
    auto found = ax::detail::memory_verify(tables);
    CHECK(std::any_of(found.begin(), found.end(),
                      [&](auto const& each) { return each.kind == kind && each.task == about; }));
    if (kind == "stuck" || kind == "head") return; // repaired by the rules of workflows: see the writer
    for (auto& each : found) ax::detail::memory_repair(tables, each, t0);
    CHECK(ax::detail::memory_verify(tables).empty());
}

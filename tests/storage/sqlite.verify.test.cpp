// SPDX-License-Identifier: MIT
// A store that is damaged by hand in every way that the verifier knows: found, named, repaired, and well afterwards.
#include "ax/storage/sqlite.hpp"

#include "conformance/workflows.hpp"
#include "storage/sqlite_fixture.hpp"

#include <set>

namespace {

using namespace conformance;
using bench = workbench<sqlite_fixture>;

/// Writes past all verbs.
void damage(bench& w, std::string const& sql) {
    w.store.transact(ax::commit::lazy, [&](ax::sqlite_storage::writer& each) {
        CHECK(sqlite3_exec(each.handle(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    });
}

std::vector<ax::finding> repair(bench& w, std::vector<ax::finding> found, ax::time_point now = t0 + 1h) {
    w.store.transact(ax::commit::durable, [&](ax::sqlite_storage::writer& each) {
        w.due.clear();
        each.repair(found, now, w.due);
    });
    return found;
}

std::set<std::string> kinds(std::vector<ax::finding> const& found) {
    std::set<std::string> names;
    for (auto const& one : found) names.insert(one.kind);
    return names;
}

/// One task in each state and on each kind of place, so that a repair has neighbours to leave alone.
void populate(bench& w) {
    w.finish(w.take(w.add()), attempt_outcome::succeeded);              // 1
    w.finish(w.take(w.add()), attempt_outcome::exhausted);              // 2
    w.finish(w.take(w.add()), attempt_outcome::failed);                 // 3
    w.cancel(w.add());                                                  // 4
    w.take(w.add());                                                    // 5
    w.start(w.take(w.add()), t0);                                       // 6
    w.add();                                                            // 7
    w.add(w.task_of("route"));                                          // 8
    w.add(w.task_of("route"));                                          // 9
    w.add(w.task_of("route", ax::route_ordering::relaxed));             // 10
    w.take(w.add(w.task_of("flying")));                                 // 11
    w.add(w.task_of("flying"));                                         // 12
    w.finish(w.take(w.add(), t0, node_a, true), attempt_outcome::held); // 13
    auto keyed = w.task();
    keyed.key = "k";
    keyed.key_scope = ax::key_scope::active;
    w.finish(w.take(w.add(keyed)), attempt_outcome::succeeded); // 14
    w.write([](auto& each) { return each.limit_tag("narrow", {.concurrency = 1}, t0); });
    auto tagged = w.task();
    tagged.tags = {"narrow"};
    w.take(w.add(tagged));                                   // 15
    w.claim({{w.add(tagged), false}}, {node_a, t0, t0, 10}); // 16 waits for it
    auto occurrence = w.task_of("line");
    occurrence.schedule = "s";
    occurrence.after_past = true;
    for (int minute = 1; minute <= 3; ++minute) {
        occurrence.scheduled_at = t0 + minute * 1min;
        w.add(occurrence); // 17; 18 waits for it, and 19 for 18
    }
}

struct wound {
    std::string kind;
    std::uint64_t task;
    std::string sql;
    std::vector<std::string> also = {}; ///< kinds that follow from it
};

std::vector<wound> const& wounds() {
    static std::vector<wound> const all{
        {"state", 7, "UPDATE ax_task SET state = 42 WHERE id = 7", {"count"}},
        {"state", 5, "UPDATE ax_task SET state = -1 WHERE id = 5", {"count"}},
        {"type", 7, "UPDATE ax_task SET lane = 4002 WHERE id = 7", {"count"}},
        {"owner", 5, "UPDATE ax_task SET node = 0 WHERE id = 5"},
        {"owner", 6, "UPDATE ax_task SET node = 0 WHERE id = 6"},
        {"owner", 11, "UPDATE ax_task SET node = 0 WHERE id = 11"},
        {"finished", 7, "UPDATE ax_task SET finished = 5 WHERE id = 7"},
        {"finished", 3, "UPDATE ax_task SET finished = 5 WHERE id = 3"},
        {"finished", 6, "UPDATE ax_task SET finished = 5 WHERE id = 6"},
        {"unfinished", 1, "UPDATE ax_task SET finished = NULL WHERE id = 1"},
        {"unfinished", 2, "UPDATE ax_task SET finished = NULL WHERE id = 2"},
        {"unfinished", 4, "UPDATE ax_task SET finished = NULL WHERE id = 4"},
        {"gate", 1, "UPDATE ax_task SET gate = 2 WHERE id = 1"},
        {"gate", 5, "UPDATE ax_task SET gate = 1 WHERE id = 5"},
        {"blocked", 7, "UPDATE ax_task SET gate = 1 WHERE id = 7"},
        {"route", 8, "UPDATE ax_task SET gate = 1 WHERE id = 8"}, // no head
        {"route", 9,
         "UPDATE ax_task SET gate = 1 WHERE id = 8; UPDATE ax_task SET gate = 0 WHERE id = 9"}, // the wrong one
        {"fence", 5, "UPDATE ax_task SET fence = version + 3 WHERE id = 5"},
        {"attempts", 3, "UPDATE ax_task SET attempts = 0 WHERE id = 3"},
        {"attempts", 5, "INSERT INTO ax_attempt (task, number, fence, node, ended, outcome) VALUES (5, 1, 2, 1, 5, 1)"},
        {"attempt", 700,
         "INSERT INTO ax_attempt (task, number, fence, node, ended, outcome) VALUES (700, 3, 1, 1, 5, 1)"},
        {"attempt", 9'000'000'000,
         "INSERT INTO ax_attempt (task, number, fence, node, ended, outcome) VALUES (9000000000, 1, 1, 1, 5, 1)"},
        {"key", 14, "UPDATE ax_task SET key = former_key, former_key = NULL WHERE id = 14; DELETE FROM ax_former_key"},
        {"key", 14, "UPDATE ax_task SET key = former_key WHERE id = 14; DELETE FROM ax_former_key"},
        {"key", 14, "DELETE FROM ax_former_key"},
        {"former-key", 7, "INSERT INTO ax_former_key VALUES ('other', 7)"},
        {"former-key", 888, "INSERT INTO ax_former_key VALUES ('other', 888)"},
        {"former-key", 14, "UPDATE ax_task SET former_key = NULL WHERE id = 14"},
        {"waiting", 16, "UPDATE ax_task SET gate = 0 WHERE id = 16", {"line"}},
        {"waiting", 16, "UPDATE ax_task SET waits_for = NULL WHERE id = 16", {"line"}},
        {"waiting", 16, "UPDATE ax_task SET waits_for = 77 WHERE id = 16", {"line"}},
        {"waiting", 16, "UPDATE ax_line SET limit_number = 77"},
        {"waiting", 16, "UPDATE ax_line SET lane = lane + 1"},
        {"waiting", 16, "DELETE FROM ax_line"},
        {"line", 0, "UPDATE ax_line SET first = 7"},
        {"line", 0, "UPDATE ax_line SET run_at = run_at + 1"},
        {"line", 0,
         "INSERT INTO ax_line (lane, tags, limit_number, run_at, first) VALUES (6, x'7400', 1, 5, 16)"}, // of nobody
        {"waiting", 7, "UPDATE ax_task SET gate = 8 WHERE id = 7"},
        {"waiting", 9, "UPDATE ax_task SET gate = 9, waits_for = 1 WHERE id = 9"},    // blocked, too
        {"waiting", 13, "UPDATE ax_task SET gate = 10, waits_for = 1 WHERE id = 13"}, // held, too
        {"holds", 15, "DELETE FROM ax_hold", {"limit"}},
        {"hold", 7, "INSERT INTO ax_hold VALUES (7, 1, 1, 0)", {"limit"}},
        {"hold", 999, "INSERT INTO ax_hold VALUES (999, 1, 1, 0)", {"limit"}},
        {"limit", 0, "UPDATE ax_limit SET used = 2"}, // counted twice
        {"limit", 0, "UPDATE ax_limit SET used = 0"},
        {"past", 18, "UPDATE ax_task SET flags = 0 WHERE id = 17"},
        {"past", 18, "UPDATE ax_past SET past = 777 WHERE task = 18"},
        {"past", 18, "UPDATE ax_past SET past = 1 WHERE task = 18"}, // it has succeeded
        {"past", 19, "UPDATE ax_past SET past = 0 WHERE task = 19"},
        {"past", 7, "INSERT INTO ax_past VALUES (7, 17)"},
        {"past", 999, "INSERT INTO ax_past VALUES (999, 0)"},
        {"step", 888, "INSERT INTO ax_step VALUES (888, 'charge', 'x')"},
        {"id", 2'000'000, "UPDATE ax_task SET id = 2000000 WHERE id = 7"},
        {"count", 0, "UPDATE ax_count SET tasks = tasks + 2 WHERE state = 4"},
        {"count", 0, "DELETE FROM ax_count"},
        {"count", 0, "INSERT INTO ax_count VALUES (77, 3, 5)"},
        {"count", 0, "DELETE FROM ax_task WHERE id = 7"},
    };
    return all;
}

} // namespace

TEST_CASE("a store in use has no impossible state", "[storage][sqlite][verify]") {
    bench w;
    CHECK(w.store.verify().empty());
    populate(w);
    CHECK(w.store.verify().empty());
}

TEST_CASE("every impossible state is found, named, repaired, and gone", "[storage][sqlite][verify]") {
    auto const at = GENERATE(range(std::size_t{0}, std::size_t{57}));
    REQUIRE(wounds().size() == 57);
    auto const& one = wounds()[at];
    CAPTURE(one.kind, one.sql);
    bench w;
    populate(w);
    damage(w, one.sql);

    auto const found = w.store.verify();
    auto expected = std::set<std::string>{one.kind};
    expected.insert(one.also.begin(), one.also.end());
    REQUIRE(kinds(found) == expected);
    std::size_t named = 0;
    for (auto const& each : found) {
        CHECK_FALSE(each.text.empty());
        CHECK_FALSE(each.repaired);
        if (each.kind == one.kind && each.task == ax::task_id{one.task}) ++named;
    }
    CHECK(named >= 1);
    CHECK(w.store.verify().size() == found.size()); // looking changes nothing

    for (auto const& each : repair(w, found)) {
        CAPTURE(each.kind, each.text);
        CHECK(each.repaired);
    }
    auto const left = w.store.verify();
    CAPTURE(left.empty() ? std::string{} : left.front().kind + ": " + left.front().text);
    CHECK(left.empty());
    for (auto const& each : w.store.list({}, t0)) CHECK(w.store.find(each.id).has_value());
    w.store = w.fixture.reopen(std::move(w.store));
    CHECK(w.store.verify().empty());
}

TEST_CASE("every impossible state of a workflow is found, named, repaired, and gone", "[storage][sqlite][verify]") {
    loom<sqlite_fixture> w;
    // 1 the workflow: 2 a has succeeded, 3 b runs, 4 c is ready, 5 d waits for both, 6 e for what never comes.
    w.add_graph(
        {w.node("a"), w.node("b", {0}), w.node("c", {0}), w.node("d", {1, 2}), w.wait("e", {"never", {}, {}, {}})});
    w.run("a");
    w.take(w.id("b"));
    auto const plain = w.add(); // 7
    // 8 another one, which has ended: 9 x is dead, 10 y has failed upstream.
    auto const first = std::exchange(w.head, {});
    w.add_graph({w.node("x"), w.node("y", {0})});
    w.run("x", attempt_outcome::exhausted);
    auto const second = std::exchange(w.head, first);
    REQUIRE(plain == ax::task_id{7});
    REQUIRE(second == ax::task_id{8});
    REQUIRE(w.store.verify().empty());
    std::vector<wound> const all{
        {"parents", 5, "UPDATE ax_member SET succeeded = 1 WHERE task = 5"},
        {"parents", 5, "UPDATE ax_member SET total = 3 WHERE task = 5"},
        {"parents", 5, "UPDATE ax_member SET failed = 2 WHERE task = 5", {"stuck"}},
        {"parents", 3, "UPDATE ax_member SET succeeded = 0 WHERE task = 3"},
        {"parents", 6, "UPDATE ax_member SET total = 2 WHERE task = 6"},
        {"parents", 10, "UPDATE ax_member SET failed = 0 WHERE task = 10"},
        {"stuck", 4, "UPDATE ax_task SET state = 0 WHERE id = 4", {"count", "workflow"}},
        {"stuck", 10, "UPDATE ax_task SET state = 0, finished = NULL WHERE id = 10", {"count", "workflow"}},
        {"stuck", 6, "UPDATE ax_member SET rule = 11 WHERE task = 6"},
        {"workflow", 1, "UPDATE ax_workflow SET waiting = waiting + 1 WHERE id = 1"},
        {"workflow", 1, "UPDATE ax_workflow SET succeeded = 0, ready = 3 WHERE id = 1"},
        {"workflow", 8, "UPDATE ax_workflow SET dead = 0 WHERE id = 8"},
        {"head", 1, "UPDATE ax_task SET state = 9, finished = 5 WHERE id = 1", {"count"}},
        {"head", 8, "UPDATE ax_task SET state = 0, finished = NULL WHERE id = 8", {"count"}},
        {"member", 999, "INSERT INTO ax_member VALUES (999, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'z')"},
        {"member", 7, "UPDATE ax_task SET flags = flags | 128 WHERE id = 7"},
        {"member", 7, "UPDATE ax_task SET flags = flags | 640 WHERE id = 7"},
        {"member", 4, "UPDATE ax_task SET flags = 0 WHERE id = 4"},
        {"member", 9, "UPDATE ax_task SET flags = 0 WHERE id = 9", {"count"}},
        {"member", 1, "UPDATE ax_task SET flags = 128 WHERE id = 1"},
        {"member", 5, "DELETE FROM ax_member WHERE task = 5", {"edge", "workflow"}},
        {"member", 10, "DELETE FROM ax_workflow WHERE id = 8"},
        {"edge", 5, "INSERT INTO ax_edge VALUES (888, 5)"},
        {"edge", 7, "INSERT INTO ax_edge VALUES (2, 7)"},
        {"await", 7, "INSERT INTO ax_await VALUES ('kother', 7, '')"},
        {"await", 999, "INSERT INTO ax_await VALUES ('kother', 999, '')"},
        {"paused", 4, "UPDATE ax_task SET gate = 16 WHERE id = 4"},
        {"paused", 7, "UPDATE ax_task SET gate = 16 WHERE id = 7"},
        {"paused", 4, "UPDATE ax_workflow SET paused = 1 WHERE id = 1"},
        {"count", 0, "DELETE FROM ax_count WHERE lane < 0"},
    };
    auto const at = GENERATE(range(std::size_t{0}, std::size_t{30}));
    REQUIRE(all.size() == 30);
    auto const& one = all[at];
    CAPTURE(one.kind, one.sql);
    damage(w, one.sql);
    auto const found = w.store.verify();
    auto expected = std::set<std::string>{one.kind};
    expected.insert(one.also.begin(), one.also.end());
    CHECK(kinds(found) == expected);
    CHECK(std::any_of(found.begin(), found.end(),
                      [&](auto const& each) { return each.kind == one.kind && each.task == ax::task_id{one.task}; }));
    std::size_t rounds = 0;
    for (auto left = found; !left.empty(); left = w.store.verify()) {
        CAPTURE(left.front().kind, left.front().text, left.front().task);
        REQUIRE(++rounds < 5);
        repair(w, left);
    }
    if (one.kind == "stuck" && one.task == 4) {
        CHECK(w.state(ax::task_id{4}) == task_state::ready);
        CHECK(w.can_take(ax::task_id{4}, t0 + 1h));
    }
    if (one.kind == "stuck" && one.task == 10) CHECK(w.state(ax::task_id{10}) == task_state::upstream_failed);
    if (one.kind == "head") {
        CHECK(w.state(first) == task_state::created);
        CHECK(w.state(second) == task_state::upstream_failed);
    }
    if (one.kind == "member" && one.task == 5) CHECK(w.state(ax::task_id{5}) == task_state::dead);
    if (one.kind == "paused") CHECK(w.can_take(ax::task_id{4}, t0 + 1h) == !w.store.workflow(first)->paused);
}

TEST_CASE("all of them at once are repaired as well", "[storage][sqlite][verify]") {
    bench w;
    populate(w);
    for (auto const& one : wounds())
        if (one.kind != "id" && one.sql.find("DELETE FROM ax_task") == one.sql.npos) damage(w, one.sql);
    std::size_t rounds = 0;
    for (auto found = w.store.verify(); !found.empty(); found = w.store.verify()) {
        REQUIRE(++rounds < 5);
        repair(w, found);
    }
    CHECK(rounds >= 1);
}

TEST_CASE("what is found is said in words for those who do not know the tables", "[storage][sqlite][verify]") {
    bench w;
    populate(w);
    auto const text_after = [&](std::string const& sql) {
        damage(w, sql);
        auto const found = w.store.verify();
        REQUIRE(found.size() == 1);
        repair(w, found);
        return found[0].text;
    };
    CHECK(text_after("UPDATE ax_limit SET used = 2") == "the limit of tag \"narrow\" counts 2 in use, and 1 are");
    CHECK(text_after("UPDATE ax_count SET tasks = tasks + 2 WHERE state = 4") ==
          "tasks of type \"probe\", priority normal, succeeded: 2 more are counted than there are");
    CHECK(text_after("UPDATE ax_count SET tasks = tasks - 1 WHERE state = 1") ==
          "tasks of type \"probe\", priority normal, ready or in flight: 1 fewer are counted than there are");
    CHECK(text_after("UPDATE ax_line SET first = 7") ==
          "another task than the one noted is the first of those that wait for the limit of tag \"narrow\"");
    damage(w, "INSERT INTO ax_hold VALUES (7, 1, 1, 0)");
    auto const found = w.store.verify();
    REQUIRE(found.size() == 2);
    CHECK(found[0].text == "it takes up the limit of tag \"narrow\", and is not in flight");
}

TEST_CASE("the one that a repair makes the first of a line is named", "[storage][sqlite][verify]") {
    bench w;
    populate(w);
    auto tagged = w.task();
    tagged.tags = {"narrow"};
    auto const late = w.add(tagged);
    w.claim({{late, false}}, {node_a, t0, t0, 10});
    damage(w, "UPDATE ax_line SET first = 17");
    w.finish(w.get(ax::task_id{15}), attempt_outcome::succeeded);
    repair(w, w.store.verify());
    CHECK(announces(w.due, ax::task_id{16}));
    CHECK(w.can_take(ax::task_id{16}));
    CHECK(w.store.verify().empty());
}

TEST_CASE("two heads of a route are found where the index that forbids them is gone", "[storage][sqlite][verify]") {
    bench w;
    populate(w);
    damage(w, "DROP INDEX ax_task_head; UPDATE ax_task SET gate = 0 WHERE route_key = 'route'");
    auto const found = w.store.verify();
    CHECK(kinds(found) == std::set<std::string>{"route"});
    repair(w, found);
    CHECK(w.store.verify().empty());
    CHECK_FALSE(w.get(ax::task_id{8}).blocked);
    CHECK(w.get(ax::task_id{9}).blocked);
    damage(w, "CREATE UNIQUE INDEX ax_task_head ON ax_task (route_key) "
              "WHERE route_key IS NOT NULL AND state IN (1,2,3,5) AND (gate & 1) = 0");
}

TEST_CASE("a repair leaves a task as its kind says, tells of it, and lets it run", "[storage][sqlite][verify]") {
    bench w;
    populate(w);
    SECTION("a task without an owner is ready again") {
        damage(w, "UPDATE ax_task SET node = 0 WHERE id = 6");
        auto const before = w.get(ax::task_id{6});
        repair(w, w.store.verify());
        auto const after = w.get(ax::task_id{6});
        CHECK(after.state == task_state::ready);
        CHECK(after.interruptions == 1);
        CHECK(after.version > before.version);
        CHECK(announces(w.due, ax::task_id{6}));
        CHECK(w.can_take(ax::task_id{6}, t0 + 1h));
        CHECK(w.store.verify().empty());
    }
    SECTION("a state that does not exist becomes dead, for a person to decide") {
        damage(w, "UPDATE ax_task SET state = 42 WHERE id = 7");
        repair(w, w.store.verify());
        auto const after = w.get(ax::task_id{7});
        CHECK(after.state == task_state::dead);
        CHECK(after.last_error.find("42") != after.last_error.npos);
        CHECK(after.finished == t0 + 1h);
        CHECK(w.retry(ax::task_id{7}).outcome == change_outcome::done);
        CHECK(w.store.verify().empty());
    }
    SECTION("the first of a route is let go, and only that one") {
        damage(w, "UPDATE ax_task SET gate = 1 WHERE id = 8");
        CHECK_FALSE(w.can_take(ax::task_id{8}));
        repair(w, w.store.verify());
        CHECK(announces(w.due, ax::task_id{8}));
        CHECK(w.get(ax::task_id{9}).blocked);
        CHECK(w.can_take(ax::task_id{8}));
    }
    SECTION("an attempt that stood in the way of the next is no obstacle any more") {
        damage(w, "UPDATE ax_task SET attempts = 0 WHERE id = 3");
        CHECK_THROWS_AS(w.finish(w.take(ax::task_id{3}, t0 + 1h), attempt_outcome::failed), ax::error);
        damage(w, "UPDATE ax_task SET attempts = 0 WHERE id = 3");
        repair(w, w.store.verify());
        auto const task = w.get(ax::task_id{3});
        CHECK(task.attempts == 2); // the one in flight counts
        w.finish(task, attempt_outcome::succeeded, t0 + 2h);
        CHECK(w.store.history(ax::task_id{3}).size() == 2);
        CHECK(w.store.verify().empty());
    }
    SECTION("who stands in line and is blocked leaves it, and the next in line is named") {
        w.finish(w.get(ax::task_id{15}), attempt_outcome::succeeded); // room, and 16 is named for it
        damage(w, "UPDATE ax_task SET gate = 9, waits_for = 1, run_at = 1 WHERE id = 9");
        repair(w, w.store.verify());
        CHECK(w.get(ax::task_id{9}).blocked);
        CHECK(w.get(ax::task_id{9}).waits_for == ax::limit_number{});
        CHECK(announces(w.due, ax::task_id{16}));
        CHECK(w.can_take(ax::task_id{16}, t0 + 1h));
    }
    SECTION("who is blocked by the repair of a route leaves its line, and the next in line is named") {
        w.finish(w.get(ax::task_id{15}), attempt_outcome::succeeded);
        damage(w, "UPDATE ax_task SET gate = 1 WHERE id = 8; "
                  "UPDATE ax_task SET gate = 8, waits_for = 1, run_at = 1 WHERE id = 9; "
                  "UPDATE ax_line SET first = 9, run_at = 1");
        auto found = w.store.verify();
        REQUIRE(kinds(found) == std::set<std::string>{"route"});
        repair(w, found);
        CHECK_FALSE(w.get(ax::task_id{8}).blocked);
        CHECK(w.get(ax::task_id{9}).blocked);
        CHECK(w.get(ax::task_id{9}).waits_for == ax::limit_number{});
        CHECK(announces(w.due, ax::task_id{16}));
        CHECK(w.store.verify().empty());
    }
    SECTION("a hold that was none makes room for the next in line") {
        damage(w, "UPDATE ax_task SET state = 1, node = 0, flags = 0, attempts = 0 WHERE id = 15; "
                  "UPDATE ax_task SET run_at = run_at + 1 WHERE id = 15");
        repair(w, w.store.verify()); // that it holds it
        REQUIRE(kinds(w.store.verify()) == std::set<std::string>{"limit"});
        repair(w, w.store.verify()); // that it is in use
        CHECK(announces(w.due, ax::task_id{16}));
        CHECK(w.store.verify().empty());
    }
    SECTION("new tasks get ids behind all that are there") {
        damage(w, "UPDATE ax_task SET id = 2000000 WHERE id = 7");
        repair(w, w.store.verify());
        w.store = w.fixture.reopen(std::move(w.store));
        CHECK(w.add() > ax::task_id{2'000'000});
    }
}

TEST_CASE("a repair of what has changed since it was found changes nothing", "[storage][sqlite][verify]") {
    bench w;
    populate(w);
    damage(w, "UPDATE ax_task SET gate = 1 WHERE id = 7; UPDATE ax_task SET node = 0 WHERE id = 5");
    auto const found = w.store.verify();
    REQUIRE(found.size() == 2);
    damage(w, "UPDATE ax_task SET gate = 0 WHERE id = 7; UPDATE ax_task SET node = 9 WHERE id = 5");
    auto const before = w.get(ax::task_id{5}).version;
    for (auto const& each : repair(w, found)) CHECK(each.repaired); // not there any more
    CHECK(w.state(ax::task_id{5}) == task_state::dispatched);
    CHECK(w.get(ax::task_id{5}).version == before);
}

TEST_CASE("a count is repaired once, whatever the store does in between", "[storage][sqlite][verify]") {
    bench w;
    populate(w);
    damage(w, "UPDATE ax_count SET tasks = tasks + 5 WHERE state = 1");
    auto const found = w.store.verify();
    REQUIRE(kinds(found) == std::set<std::string>{"count"});
    w.add(); // the difference stays what it is
    w.finish(w.take(w.add()), attempt_outcome::succeeded);
    CHECK(repair(w, found).front().repaired);
    CHECK(w.store.verify().empty());
    CHECK_FALSE(repair(w, found).front().repaired); // by somebody who looked before that
    CHECK(w.store.verify().empty());
}

TEST_CASE("a large store is searched slice by slice, and the findings are bounded", "[storage][sqlite][verify]") {
    bench w;
    w.insert(std::vector<ax::new_task>(25'000, w.task()));
    damage(w, "UPDATE ax_task SET gate = 1 WHERE id IN (1, 9999, 10000, 10001, 20000, 20001, 25000)");
    ids where;
    for (auto const& each : w.store.verify()) where.push_back(each.task);
    CHECK(where == ids{ax::task_id{1}, ax::task_id{9'999}, ax::task_id{10'000}, ax::task_id{10'001},
                       ax::task_id{20'000}, ax::task_id{20'001}, ax::task_id{25'000}});
    damage(w, "UPDATE ax_task SET gate = 1");
    CHECK(w.store.verify().size() == 1'000);
}

TEST_CASE("a blocked route of many tasks is one finding", "[storage][sqlite][verify]") {
    bench w;
    w.insert(std::vector<ax::new_task>(3'000, w.task_of("r")));
    damage(w, "UPDATE ax_task SET gate = 1");
    auto const found = w.store.verify();
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "route");
    CHECK(found[0].task == ax::task_id{1});
    repair(w, found);
    CHECK(w.store.verify().empty());
}

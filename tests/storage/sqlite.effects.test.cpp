// SPDX-License-Identifier: MIT
// What handlers write in the commit that records their success.
#include "ax/storage/sqlite.hpp"

#include "conformance/support.hpp"
#include "storage/sqlite_fixture.hpp"

#include <sqlite3.h>

#include <memory>
#include <stdexcept>
#include <thread>

namespace {

using namespace conformance;

struct effects_bench : workbench<sqlite_fixture> {
    effects_bench() {
        run("CREATE TABLE ledger (task INTEGER PRIMARY KEY, line TEXT)");
        run("CREATE TABLE other (n INTEGER)");
    }

    void run(char const* sql) {
        write([&](writer& w) { REQUIRE(sqlite3_exec(w.handle(), sql, nullptr, nullptr, nullptr) == SQLITE_OK); });
    }
    std::int64_t number(char const* sql) {
        std::int64_t answer = -1;
        write([&](writer& w) {
            sqlite3_stmt* query = nullptr;
            REQUIRE(sqlite3_prepare_v2(w.handle(), sql, -1, &query, nullptr) == SQLITE_OK);
            REQUIRE(sqlite3_step(query) == SQLITE_ROW);
            answer = sqlite3_column_int64(query, 0);
            sqlite3_finalize(query);
        });
        return answer;
    }

    /// An attempt that has succeeded, and writes what is added to it.
    struct attempt {
        ax::task_record claimed;
        ax::attempt_effects effects;

        void add(std::string sql) {
            effects.on_sqlite.push_back([sql = std::move(sql)](sqlite3* db) {
                if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
                    throw std::runtime_error(sqlite3_errmsg(db));
            });
        }
        /// SQL whose errors the handler overlooks.
        void add_careless(std::string sql) {
            effects.on_sqlite.push_back(
                [sql = std::move(sql)](sqlite3* db) { sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr); });
        }
        std::string line() const {
            return "INSERT INTO ledger VALUES (" + std::to_string(to_number(claimed.id)) + ", 'closed')";
        }
        ax::attempt_end end() {
            auto made = end_of(claimed, attempt_outcome::succeeded, t0 + 1s);
            made.effects = &effects;
            return made;
        }
    };

    std::unique_ptr<attempt> take_one() {
        auto made = std::make_unique<attempt>();
        made->claimed = take(add());
        made->effects.otherwise = attempt_outcome::failed;
        made->effects.retry_at = t0 + 7min;
        return made;
    }
    ax::settlement settle_one(attempt& one) { return settle({one.end()}, t0 + 1s); }

    /// Settles it and expects that it fails alone, with a text that says so.
    void expect_failure(attempt& one, std::string const& text) {
        auto const answer = settle_one(one);
        CHECK(answer.accepted == std::vector{true});
        REQUIRE(answer.failed.size() == 1);
        CHECK(answer.failed[0].at == 0);
        CAPTURE(answer.failed[0].error);
        CHECK(answer.failed[0].error.find(text) != std::string::npos);
        auto const stored = get(one.claimed.id);
        CHECK(stored.state == task_state::failed);
        CHECK(stored.run_at == t0 + 7min);
        CHECK(stored.failures == 1);
        CHECK(stored.last_error == answer.failed[0].error);
        CHECK(announces(answer.due, ax::alarm{one.claimed.id, lane(), t0 + 7min}));
        CHECK(number("SELECT count(*) FROM ledger") == 0);
        // The store goes on as if nothing had been.
        auto const next = take_one();
        next->add(next->line());
        CHECK(settle_one(*next).failed.empty());
        CHECK(number("SELECT count(*) FROM ledger") == 1);
    }
};

} // namespace

TEST_CASE("what a handler writes is committed with its success, in order", "[storage][sqlite][once]") {
    effects_bench b;
    auto const one = b.take_one();
    one->add(one->line());
    one->add("UPDATE ledger SET line = line || '!'");
    one->effects.remark = "; not to be seen";
    auto end = one->end();
    end.result = "7";
    end.follow_ups.push_back(b.task());
    auto const answer = b.settle({end}, t0 + 1s);
    CHECK(answer.accepted == std::vector{true});
    CHECK(answer.states == std::vector{task_state::succeeded});
    CHECK(answer.failed.empty());
    CHECK(b.get(one->claimed.id).result == "7");
    CHECK(b.number("SELECT count(*) FROM ledger WHERE line = 'closed!'") == 1);
    CHECK(b.state(ax::task_id{to_number(one->claimed.id) + 1}) == task_state::ready);
}

TEST_CASE("a handler's writes that throw are undone, and its attempt ends otherwise", "[storage][sqlite][once]") {
    effects_bench b;
    auto const one = b.take_one();
    one->add(one->line());
    SECTION("with an exception") {
        one->effects.on_sqlite.push_back([](sqlite3*) { throw std::runtime_error("no such account"); });
        one->effects.remark = "; so it is tried again";
        b.expect_failure(*one, "no such account; so it is tried again");
    }
    SECTION("with something else") {
        one->effects.on_sqlite.push_back([](sqlite3*) { throw 7; });
        b.expect_failure(*one, "commit_with threw something that is no std::exception");
    }
    SECTION("with a statement that fails") {
        one->add(one->line());
        b.expect_failure(*one, "UNIQUE constraint failed: ledger.task");
    }
    SECTION("and what comes behind is not called") {
        one->effects.on_sqlite.push_back([](sqlite3*) { throw std::runtime_error("stop here"); });
        one->effects.on_sqlite.push_back([](sqlite3*) { FAIL("called"); });
        b.expect_failure(*one, "stop here");
    }
    SECTION("for good where no attempt is left") {
        one->effects.on_sqlite.push_back([](sqlite3*) { throw std::runtime_error("no such account"); });
        one->effects.otherwise = attempt_outcome::exhausted;
        one->effects.retry_at.reset();
        auto end = one->end();
        end.log = "a line";
        end.result = "7";
        end.follow_ups.push_back(b.task());
        auto const answer = b.settle({end}, t0 + 1s);
        CHECK(answer.states == std::vector{task_state::dead});
        CHECK(b.get(one->claimed.id).result.empty());
        CHECK(b.store.list({}, t0).size() == 1); // no follow-up
        auto const history = b.store.history(one->claimed.id);
        REQUIRE(history.size() == 1);
        CHECK(history[0].outcome == attempt_outcome::exhausted);
        CHECK(history[0].error == "no such account");
        CHECK(history[0].log == "a line");
        CHECK(history[0].start == end.started);
    }
}

TEST_CASE("a handler's writes are called for no other end than success", "[storage][sqlite][once]") {
    effects_bench b;
    auto const one = b.take_one();
    one->effects.on_sqlite.push_back([](sqlite3*) { FAIL("called"); });
    auto end = one->end();
    SECTION("not for a failure") {
        end.outcome = attempt_outcome::failed;
        CHECK(b.settle({end}, t0 + 1s).states == std::vector{task_state::failed});
    }
    SECTION("not under a fence that is not current") {
        b.reclaim(t0 + 31s);
        CHECK(b.settle({end}, t0 + 32s).accepted == std::vector{false});
        b.take(one->claimed.id, t0 + 32s, node_b);
        CHECK(b.settle({end}, t0 + 33s).accepted == std::vector{false});
    }
    SECTION("not for a task that is gone") {
        end.id = ax::task_id{77};
        CHECK(b.settle({end}, t0 + 1s).accepted == std::vector{false});
    }
}

TEST_CASE("a handler may not end the transaction, reach beyond the file, or change what is ours",
          "[storage][sqlite][once]") {
    effects_bench b;
    struct misdeed {
        char const* sql;
        char const* told;
    };
    auto const each = GENERATE(values<misdeed>({
        {"COMMIT", "commit_with may not begin or end a transaction: COMMIT"},
        {"END", "begin or end a transaction: COMMIT"},
        {"ROLLBACK", "begin or end a transaction: ROLLBACK"},
        {"BEGIN", "begin or end a transaction: BEGIN"},
        {"RELEASE ax_effects", "use the savepoint of its caller: ax_effects"},
        {"ROLLBACK TO Ax_Effects", "use the savepoint of its caller: Ax_Effects"},
        {"SAVEPOINT ax_effects", "use the savepoint of its caller"},
        {"ATTACH ':memory:' AS elsewhere", "attach a database: :memory:"},
        {"DETACH temp", "detach a database: temp"},
        {"PRAGMA synchronous = OFF", "set synchronous = OFF"},
        {"PRAGMA journal_mode(delete)", "set journal_mode = delete"},
        {"PRAGMA foreign_keys = 1", "set foreign_keys = 1"},
        {"INSERT INTO ax_meta VALUES ('mine', 1)", "change ax_meta"},
        {"UPDATE AX_TASK SET state = 4", "change ax_task"},
        {"DELETE FROM ax_attempt", "change ax_attempt"},
        {"DELETE FROM ax_task WHERE id < 0", "change ax_task"},
        {"DROP TABLE ax_step", "change ax_step"},
        {"ALTER TABLE ax_type ADD COLUMN colour", "change ax_type"},
        {"CREATE INDEX mine ON ax_task (payload)", "change ax_task"},
        {"DROP INDEX ax_task_due", "change ax_task"},
        {"CREATE TRIGGER mine AFTER INSERT ON ax_task BEGIN SELECT 1; END", "change ax_task"},
        {"CREATE TEMP TRIGGER mine AFTER INSERT ON ax_task BEGIN SELECT 1; END", "change ax_task"},
        {"CREATE TABLE ax_mine (n)", "change ax_mine"},
        {"CREATE TEMP TABLE ax_task (n)", "change ax_task"},
        {"CREATE TEMP VIEW ax_task AS SELECT 1", "change ax_task"},
        {"ANALYZE ax_task", "analyze ax_task"},
        {"ANALYZE", "analyze ax_"},
        {"REINDEX ax_task_due", "reindex ax_task_due"},
        {"REINDEX ax_type", "reindex sqlite_autoindex_ax_type_1"},
        {"REINDEX", "reindex "},
        {"ALTER TABLE other RENAME TO ax_mine", "name a table ax_mine"},
        {"ALTER TABLE other RENAME TO Ax_Mine", "name a table Ax_Mine"},
        {"CREATE TEMP TABLE mine (n); ALTER TABLE mine RENAME TO ax_task", "name a table ax_task"},
    }));
    CAPTURE(each.sql);
    auto const one = b.take_one();
    one->add(one->line());
    if (GENERATE(false, true))
        one->add(each.sql);
    else
        one->add_careless(each.sql); // it fails although the handler overlooks the error
    b.expect_failure(*one, each.told);
}

TEST_CASE("a trigger of the host's cannot change what is ours either", "[storage][sqlite][once]") {
    effects_bench b;
    b.run("CREATE TRIGGER reach AFTER INSERT ON ledger BEGIN UPDATE ax_task SET state = 4; END");
    auto const one = b.take_one();
    one->add_careless(one->line());
    auto const answer = b.settle_one(*one);
    REQUIRE(answer.failed.size() == 1);
    CHECK(answer.failed[0].error.find("change ax_task") != std::string::npos);
}

TEST_CASE("a handler may read all, make tables, and use savepoints of its own", "[storage][sqlite][once]") {
    effects_bench b;
    auto const one = b.take_one();
    one->add("CREATE TABLE shelf (n); CREATE INDEX shelf_n ON shelf (n); INSERT INTO shelf SELECT id FROM ax_task");
    one->add("SAVEPOINT mine; INSERT INTO other VALUES (1); ROLLBACK TO mine; RELEASE mine");
    one->add("SAVEPOINT left_open; INSERT INTO other VALUES (2)");
    one->add("PRAGMA user_version; PRAGMA table_info(ledger); DELETE FROM other WHERE n = 7");
    one->add("ALTER TABLE other RENAME COLUMN n TO m");
    one->add("CREATE TABLE former (n); ALTER TABLE former RENAME TO axle; REINDEX ledger; ANALYZE ledger");
    auto const answer = b.settle_one(*one);
    CAPTURE(answer.failed.empty() ? "" : answer.failed[0].error);
    CHECK(answer.failed.empty());
    CHECK(b.number("SELECT count(*) FROM shelf") == 1);
    CHECK(b.number("SELECT sum(m) FROM other") == 2);
}

TEST_CASE("who ends the whole transaction unasked fails alone, and writes nothing", "[storage][sqlite][once]") {
    effects_bench b;
    b.run("INSERT INTO ledger VALUES (1000, 'there')");
    b.run("CREATE TRIGGER strict BEFORE INSERT ON other WHEN new.n < 0 BEGIN SELECT RAISE(ROLLBACK, 'negative'); END");
    auto const bad = b.take_one();
    SECTION("INSERT OR ROLLBACK") { bad->add("INSERT OR ROLLBACK INTO ledger VALUES (1000, 'again')"); }
    SECTION("the same, overlooked, with more behind it that must not commit by itself") {
        bad->add_careless("INSERT OR ROLLBACK INTO ledger VALUES (1000, 'again')");
        bad->add_careless("INSERT INTO ledger VALUES (2000, 'alone')");
        bad->effects.on_sqlite.push_back([](sqlite3* db) {
            sqlite3_exec(db, "INSERT OR ROLLBACK INTO ledger VALUES (1000, 'again')", nullptr, nullptr, nullptr);
            sqlite3_exec(db, "INSERT INTO ledger VALUES (3000, 'alone')", nullptr, nullptr, nullptr);
        });
    }
    SECTION("both in one call") {
        bad->effects.on_sqlite.push_back([](sqlite3* db) {
            sqlite3_exec(db, "INSERT OR ROLLBACK INTO ledger VALUES (1000, 'again')", nullptr, nullptr, nullptr);
            sqlite3_exec(db, "INSERT INTO ledger VALUES (3000, 'alone')", nullptr, nullptr, nullptr);
            sqlite3_exec(db, "SAVEPOINT x; INSERT INTO ledger VALUES (4000, 'alone'); RELEASE x", nullptr, nullptr,
                         nullptr);
        });
    }
    SECTION("RAISE(ROLLBACK)") { bad->add("INSERT INTO other VALUES (-1)"); }

    std::vector<std::unique_ptr<effects_bench::attempt>> good;
    std::vector<ax::attempt_end> ends;
    std::vector<int> calls(10);
    for (std::size_t i = 0; i != 10; ++i) {
        good.push_back(b.take_one());
        good.back()->effects.on_sqlite.push_back([&, i](sqlite3*) { ++calls[i]; });
        good.back()->add(good.back()->line());
        if (i == 5) ends.push_back(bad->end());
        ends.push_back(good.back()->end());
    }
    auto const answer = b.settle(ends, t0 + 1s);
    CHECK(answer.accepted == std::vector<bool>(11, true));
    REQUIRE(answer.failed.size() == 1);
    CHECK(answer.failed[0].at == 5);
    CAPTURE(answer.failed[0].error);
    CHECK(answer.failed[0].error.find("commit_with ended the transaction that it was called in") != std::string::npos);
    CHECK(b.state(bad->claimed.id) == task_state::failed);
    for (auto const& one : good) CHECK(b.state(one->claimed.id) == task_state::succeeded);
    CHECK(b.number("SELECT count(*) FROM ledger") == 11);
    CHECK(calls == std::vector{2, 2, 2, 2, 2, 1, 1, 1, 1, 1}); // called again, since the first transaction was undone
}

TEST_CASE("one bad commit_with among many good ones harms none of them", "[storage][sqlite][once]") {
    effects_bench b;
    std::vector<std::unique_ptr<effects_bench::attempt>> all;
    std::vector<ax::attempt_end> ends;
    for (std::size_t i = 0; i != 100; ++i) {
        all.push_back(b.take_one());
        all.back()->add(all.back()->line());
        if (i % 10 == 3) all.back()->effects.on_sqlite.push_back([](sqlite3*) { throw std::runtime_error("bad"); });
        if (i % 10 == 7) all.back()->add_careless("COMMIT");
        if (i % 50 == 9) all.back()->add("INSERT OR ROLLBACK INTO ledger SELECT task, 'again' FROM ledger");
        ends.push_back(all.back()->end());
    }
    auto const answer = b.settle(ends, t0 + 1s);
    CHECK(answer.failed.size() == 22);
    for (std::size_t i = 0; i != 100; ++i) {
        CAPTURE(i);
        bool const bad = i % 10 == 3 || i % 10 == 7 || i % 50 == 9;
        CHECK(b.state(all[i]->claimed.id) == (bad ? task_state::failed : task_state::succeeded));
    }
    CHECK(b.number("SELECT count(*) FROM ledger") == 78);
}

TEST_CASE("other callers who share the commit notice nothing of a bad one", "[storage][sqlite][once][threads]") {
    effects_bench b;
    constexpr std::size_t rounds = 50;
    std::vector<std::unique_ptr<effects_bench::attempt>> bad;
    for (std::size_t i = 0; i != rounds; ++i) {
        bad.push_back(b.take_one());
        bad.back()->add(bad.back()->line());
        bad.back()->add("INSERT OR ROLLBACK INTO ledger SELECT task, 'again' FROM ledger");
    }
    std::vector<std::thread> threads;
    for (int t = 0; t != 3; ++t)
        threads.emplace_back([&] {
            for (std::size_t i = 0; i != rounds; ++i)
                b.store.transact(ax::commit::lazy, [&](ax::sqlite_storage::writer& w) {
                    ax::alarms due;
                    auto const one = b.task();
                    w.insert({&one, 1}, t0, due);
                });
        });
    for (auto const& one : bad) CHECK(b.settle_one(*one).failed.size() == 1);
    for (auto& thread : threads) thread.join();
    CHECK(b.number("SELECT count(*) FROM ax_task") == 4 * rounds);
    CHECK(b.number("SELECT count(*) FROM ledger") == 0);
}

TEST_CASE("a statement that a handler leaves in the middle is reset", "[storage][sqlite][once]") {
    effects_bench b;
    b.run("INSERT INTO other VALUES (1), (2), (3)");
    auto const one = b.take_one();
    sqlite3_stmt* reading = nullptr;
    sqlite3_stmt* writing = nullptr;
    one->effects.on_sqlite.push_back([&](sqlite3* db) {
        sqlite3_prepare_v2(db, "SELECT n FROM other", -1, &reading, nullptr);
        sqlite3_step(reading);
        sqlite3_prepare_v2(db, "INSERT INTO ledger VALUES (1, 'a'), (2, 'b') RETURNING task", -1, &writing, nullptr);
        sqlite3_step(writing);
    });
    CHECK(b.settle_one(*one).failed.empty());
    CHECK(sqlite3_stmt_busy(reading) == 0);
    CHECK(sqlite3_stmt_busy(writing) == 0);
    CHECK(b.number("SELECT count(*) FROM ledger") == 2);
    sqlite3_finalize(reading);
    sqlite3_finalize(writing);
}

TEST_CASE("commit_with cannot begin a transaction of the storage inside of its own", "[storage][sqlite][once]") {
    effects_bench b;
    auto const one = b.take_one();
    one->add(one->line());
    one->effects.on_sqlite.push_back([&](sqlite3*) { b.type("inside"); });
    b.expect_failure(*one, "a transaction was begun inside of another one");
}

TEST_CASE("foreign keys of the host hold in commit_with where the store is opened so", "[storage][sqlite][once]") {
    temporary_directory const directory;
    bool const on = GENERATE(false, true);
    ax::sqlite_storage store{directory.file("store.db"), {.foreign_keys = on}};
    ax::task_record claimed;
    store.transact(ax::commit::lazy, [&](ax::sqlite_storage::writer& w) {
        sqlite3_exec(w.handle(),
                     "CREATE TABLE person (id INTEGER PRIMARY KEY);"
                     "CREATE TABLE pet (owner REFERENCES person (id) DEFERRABLE INITIALLY DEFERRED)",
                     nullptr, nullptr, nullptr);
        ax::new_task task;
        task.type = w.type("probe");
        ax::alarms due;
        ax::claim_request const request{w.insert({&task, 1}, t0, due).at(0).id, false};
        claimed = w.claim({&request, 1}, {node_a, t0, t0, 1}).claimed.at(0);
    });
    ax::attempt_effects effects;
    effects.on_sqlite.push_back(
        [](sqlite3* db) { sqlite3_exec(db, "INSERT INTO pet VALUES (7)", nullptr, nullptr, nullptr); });
    auto end = workbench<sqlite_fixture>::end_of(claimed, attempt_outcome::succeeded, t0);
    end.effects = &effects;
    ax::settlement answer;
    store.transact(ax::commit::lazy, [&](ax::sqlite_storage::writer& w) { answer = w.settle({&end, 1}, t0); });
    CHECK(answer.failed.size() == (on ? 1 : 0));
    if (on) CHECK(answer.failed[0].error == "commit_with left a foreign key without its row");
    CHECK(store.find(claimed.id)->state == (on ? task_state::dead : task_state::succeeded));
}

TEST_CASE("a handler that fills the disk fails alone", "[storage][sqlite][once]") {
    temporary_directory const directory;
    ax::sqlite_storage store{directory.file("store.db"), {.largest_size = 400'000}};
    std::vector<ax::task_record> claimed;
    store.transact(ax::commit::lazy, [&](ax::sqlite_storage::writer& w) {
        sqlite3_exec(w.handle(), "CREATE TABLE ledger (line)", nullptr, nullptr, nullptr);
        std::vector<ax::new_task> tasks(5);
        for (auto& task : tasks) task.type = w.type("probe");
        ax::alarms due;
        std::vector<ax::claim_request> requests;
        for (auto const& one : w.insert(tasks, t0, due)) requests.push_back({one.id, false});
        claimed = w.claim(requests, {node_a, t0, t0, 1}).claimed;
    });
    REQUIRE(claimed.size() == 5);
    std::vector<ax::attempt_effects> effects(5);
    std::vector<ax::attempt_end> ends;
    for (std::size_t i = 0; i != 5; ++i) {
        effects[i].on_sqlite.push_back([i](sqlite3* db) {
            auto const* const sql =
                i == 2 ? "INSERT INTO ledger VALUES (zeroblob(1000000))" : "INSERT INTO ledger VALUES ('closed')";
            if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
                throw std::runtime_error(sqlite3_errmsg(db));
        });
        ends.push_back(workbench<sqlite_fixture>::end_of(claimed[i], attempt_outcome::succeeded, t0));
        ends.back().effects = &effects[i];
    }
    ax::settlement answer;
    store.transact(ax::commit::durable, [&](ax::sqlite_storage::writer& w) { answer = w.settle(ends, t0); });
    REQUIRE(answer.failed.size() == 1);
    CHECK(answer.failed[0].at == 2);
    CHECK(answer.failed[0].error.find("database or disk is full") != std::string::npos);
    for (std::size_t i = 0; i != 5; ++i)
        CHECK(store.find(claimed[i].id)->state == (i == 2 ? task_state::dead : task_state::succeeded));
}

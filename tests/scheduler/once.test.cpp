// SPDX-License-Identifier: MIT
// What a handler writes in the commit of its success, and what is submitted in a transaction of the host's.
#include "ax/scheduler/scheduler.hpp"

#include "ax/storage/sqlite.hpp"

#include "scheduler/support.hpp"
#include "storage/sqlite_fixture.hpp"

#include <sqlite3.h>

#include <atomic>
#include <memory>
#include <thread>

namespace {

using namespace test;

void execute(sqlite3* db, std::string const& sql) { // on any thread: nothing of Catch is called
    if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throw std::runtime_error(sqlite3_errmsg(db));
}

/// A connection of the host's.
class host {
  public:
    explicit host(std::string const& path) {
        if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) throw std::runtime_error(path);
        execute(db_, "PRAGMA busy_timeout = 5000");
    }
    host(host const&) = delete;
    host& operator=(host const&) = delete;
    ~host() { sqlite3_close_v2(db_); }

    operator sqlite3*() const noexcept { return db_; }
    void run(std::string const& sql) { execute(db_, sql); }
    std::int64_t number(char const* sql) {
        sqlite3_stmt* query = nullptr;
        sqlite3_prepare_v2(db_, sql, -1, &query, nullptr);
        auto const found = sqlite3_step(query) == SQLITE_ROW ? sqlite3_column_int64(query, 0) : -1;
        sqlite3_finalize(query);
        return found;
    }

  private:
    sqlite3* db_ = nullptr;
};

using durable = ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock>;

/// As test::bench, on a file.
struct file_bench {
    temporary_directory directory;
    std::string path = directory.file("shop.db");
    ax::testing::manual_clock clock;
    std::vector<ax::event> events;
    std::vector<std::string> errors;
    std::optional<durable> tasks;
    std::optional<host> db;

    file_bench() {
        restart();
        db.emplace(path);
        db->run("CREATE TABLE ledger (id INTEGER PRIMARY KEY, line TEXT)");
    }
    void restart() {
        tasks.reset();
        ax::options chosen;
        chosen.seed = 7;
        tasks.emplace(ax::sqlite_storage{path}, chosen, clock);
        tasks->observe([this](ax::event const& e) {
            events.push_back(e);
            errors.emplace_back(e.error);
        });
    }
    std::size_t poll() { return tasks->poll(clock.now()); }
    void pass(ax::time_span span) {
        clock.advance(span);
        poll();
    }
    void run_for(ax::time_span span) {
        auto const end = clock.now() + span.value();
        for (int polls = 0; polls != 10'000; ++polls) {
            poll();
            auto const next = tasks->next_wakeup();
            if (!next || *next > end) break;
            if (*next > clock.now()) clock.advance(*next - clock.now());
        }
        if (end > clock.now()) clock.advance(end - clock.now());
        poll();
    }
    ax::task_view get(task_id id) {
        auto found = tasks->find(id);
        REQUIRE(found.has_value());
        return *found;
    }
    task_state state(task_id id) { return get(id).state; }
    std::int64_t lines() { return db->number("SELECT count(*) FROM ledger"); }
};

std::string line_of(ax::context const& ctx) {
    return "INSERT INTO ledger (line) VALUES ('task " + std::to_string(ax::to_number(ctx.task().id)) + "')";
}

} // namespace

TEST_CASE("commit_with writes with the success, after the handler has returned", "[scheduler][once]") {
    file_bench b;
    bool returned = false;
    bool in_order = false;
    b.tasks->on(probe, [&](ax::context& ctx) {
        ctx.commit_with([&, sql = line_of(ctx)](sqlite3* db) {
            in_order = returned;
            execute(db, sql);
        });
        ctx.commit_with([owned = std::make_unique<int>(7)](sqlite3* db) {
            execute(db, "UPDATE ledger SET line = line || ' and " + std::to_string(*owned) + "'");
        });
        CHECK(b.lines() == 0);
        returned = true;
        return 42;
    });
    auto const id = b.tasks->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.get(id).result == "42");
    CHECK(in_order);
    CHECK(b.db->number("SELECT count(*) FROM ledger WHERE line = 'task 1 and 7'") == 1);
}

TEST_CASE("commit_with writes nothing for an attempt that does not succeed", "[scheduler][once]") {
    file_bench b;
    b.tasks->on(probe,
                [&](ax::context& ctx) {
                    ctx.commit_with([sql = line_of(ctx)](sqlite3* db) { execute(db, sql); });
                    if (ctx.attempt() == 1) throw std::runtime_error("once");
                    if (ctx.attempt() == 2) throw ax::snooze{1s};
                },
                {.retry = ax::retry::fixed(1s).attempts(3)});
    auto const id = b.tasks->submit(probe).id;
    b.poll();
    CHECK(b.lines() == 0);
    b.pass(1s);
    CHECK(b.lines() == 0);
    b.run_for(2s);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(b.lines() == 1);
}

TEST_CASE("a commit_with that throws fails its attempt under the retry policy", "[scheduler][once]") {
    file_bench b;
    int calls = 0;
    b.tasks->on(probe,
                [&](ax::context& ctx) {
                    ctx.commit_with([sql = line_of(ctx)](sqlite3* db) { execute(db, sql); });
                    ctx.commit_with([&](sqlite3*) {
                        if (++calls != 3) throw std::runtime_error("the ledger is closed");
                    });
                    ctx.submit(other, {});
                    ctx.log("a line");
                },
                {.retry = ax::retry::fixed(10s).attempts(2)});
    SECTION("again and again, until no attempt is left") {
        auto const id = b.tasks->submit(probe).id;
        b.poll();
        auto const first = b.get(id);
        CHECK(first.state == task_state::failed);
        CHECK(first.failures == 1);
        CHECK(first.run_at == b.clock.now() + 10s);
        CHECK(first.last_error == "the ledger is closed");
        CHECK(b.tasks->history(id).at(0).log == "a line\n");
        REQUIRE(b.events.back().kind == ax::event_kind::reported);
        CHECK(b.events.back().outcome == attempt_outcome::failed);
        CHECK(b.errors.back() == "the ledger is closed");
        CHECK(b.tasks->list().size() == 1); // no follow-up

        b.pass(10s);
        CHECK(b.state(id) == task_state::dead);
        CHECK(b.events.back().outcome == attempt_outcome::exhausted);
        CHECK(b.lines() == 0);

        CHECK(b.tasks->retry(id) == change_outcome::done);
        b.poll();
        CHECK(b.state(id) == task_state::succeeded);
        CHECK(b.lines() == 1);
        CHECK(b.tasks->list().size() == 2);
    }
    SECTION("with what the policy has to say about the deadline") {
        auto const id = b.tasks->submit(probe, {}, {.deadline = b.clock.now() + 5s}).id;
        b.poll();
        CHECK(b.state(id) == task_state::dead);
        CHECK(b.get(id).last_error == "the ledger is closed; the deadline comes before the next attempt");
    }
}

TEST_CASE("one bad commit_with in a group commit fails alone", "[scheduler][once]") {
    file_bench b;
    b.db->run("INSERT INTO ledger VALUES (1000, 'there')");
    b.tasks->on(shipping,
                [&](parcel const& p, ax::context& ctx) {
                    ctx.commit_with([sql = line_of(ctx)](sqlite3* db) { execute(db, sql); });
                    if (p.note.empty()) return;
                    ctx.commit_with([note = p.note](sqlite3* db) {
                        sqlite3_exec(db, note.c_str(), nullptr, nullptr, nullptr); // errors are overlooked
                    });
                },
                {.retry = ax::retry::fixed(1h).attempts(2)});
    auto const bad = GENERATE(values<std::string>({
        "COMMIT",
        "ROLLBACK",
        "UPDATE ax_task SET state = 4",
        "ATTACH ':memory:' AS elsewhere",
        "INSERT OR ROLLBACK INTO ledger VALUES (1000, 'again')",
    }));
    CAPTURE(bad);
    std::vector<parcel> parcels(50);
    parcels[23].note = bad;
    auto const answers = b.tasks->submit_all(shipping, parcels);
    b.poll();
    for (std::size_t i = 0; i != 50; ++i) {
        CAPTURE(i, b.get(answers[i].id).last_error);
        CHECK(b.state(answers[i].id) == (i == 23 ? task_state::failed : task_state::succeeded));
    }
    CHECK(b.lines() == 50);
    CHECK(contains(b.get(answers[23].id).last_error, "commit_with"));
    CHECK(b.tasks->health().storage_ok);
    CHECK(b.tasks->health().unsettled == 0);
}

TEST_CASE("commit_with is refused where no connection could be handed out", "[scheduler][once]") {
    bench b;
    b->on(probe, [](ax::context& ctx) { ctx.commit_with([](sqlite3*) {}); });
    auto const id = b->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::failed);
    CHECK(contains(b.get(id).last_error, "commit_with: the storage of this scheduler has no connection"));
    CHECK(contains(b.get(id).last_error, "invalid argument"));
}

TEST_CASE("what commit_with owns is let go outside of every lock, whatever becomes of the attempt",
          "[scheduler][once]") {
    file_bench b;
    std::size_t gone = 0;
    struct witness {
        durable* tasks;
        std::size_t* gone;
        witness(durable* t, std::size_t* g) : tasks(t), gone(g) {}
        witness(witness const&) = delete;
        witness& operator=(witness const&) = delete;
        ~witness() {
            (void)tasks->health(); // takes the scheduler's lock
            ++*gone;
        }
    };
    b.tasks->on(shipping, [&](parcel const& p, ax::context& ctx) {
        ctx.commit_with([&, kept = std::make_unique<witness>(&*b.tasks, &gone), p](sqlite3*) {
            if (p.number == 1) throw std::runtime_error("no");
        });
        if (p.number == 2) throw ax::give_up{"no"};
    });
    b.tasks->submit_all(shipping, std::vector<parcel>{{0, ""}, {1, ""}, {2, ""}});
    b.poll();
    CHECK(gone == 3);
}

TEST_CASE("the host's open transaction makes a settle wait, and nothing happens twice", "[scheduler][once][threads]") {
    temporary_directory const directory;
    auto const path = directory.file("shop.db");
    tally succeeded;
    std::atomic<int> calls{0};
    constexpr std::size_t count = 40;
    {
        ax::scheduler tasks{ax::sqlite_storage{path}, {.workers = 4}};
        host db{path};
        db.run("CREATE TABLE ledger (id INTEGER PRIMARY KEY)");
        tasks.on(shipping, [&](parcel const& p, ax::context& ctx) {
            ctx.commit_with([&, n = p.number](sqlite3* mine) {
                ++calls;
                execute(mine, "INSERT INTO ledger VALUES (" + std::to_string(n) + ")");
            });
        });
        tasks.observe([&](ax::event const& e) {
            if (e.outcome == attempt_outcome::succeeded) ++succeeded;
        });
        tasks.start();
        std::vector<parcel> parcels;
        for (std::size_t i = 0; i != count; ++i) parcels.push_back({static_cast<int>(i), ""});
        tasks.submit_all(shipping, parcels,
                         [](parcel const& p) { return ax::submit_options{.delay = ax::duration{p.number * 5}}; });
        for (int i = 0; i != 40; ++i) { // while handlers come to their ends, the lock is the host's again and again
            db.run("BEGIN IMMEDIATE");
            db.run("INSERT INTO ledger VALUES (" + std::to_string(1000 + i) + ")");
            auto const before = calls.load();
            std::this_thread::yield();
            CHECK(calls.load() == before); // no handler's writes while the host writes
            db.run(i % 2 == 0 ? "COMMIT" : "ROLLBACK");
        }
        REQUIRE(succeeded.reaches(count));
        CHECK(db.number("SELECT count(*) FROM ledger WHERE id < 1000") == count);
        CHECK(db.number("SELECT count(*) FROM ledger WHERE id >= 1000") == 20);
    }
}

// ---- submit_in ------------------------------------------------------------------------------------------------------

TEST_CASE("a task of the host's transaction runs once that is committed", "[scheduler][once]") {
    file_bench b;
    std::vector<int> ran;
    b.tasks->on(shipping, [&](parcel const& p) { ran.push_back(p.number); });
    b.poll();
    b.db->run("BEGIN IMMEDIATE");
    b.db->run("INSERT INTO ledger VALUES (1, 'order')");
    auto answer = b.tasks->submit_in(*b.db, shipping, {7, "x"}, {.key = "seven"});
    CHECK(answer.outcome == submit_outcome::inserted);
    CHECK(answer.state == task_state::ready);
    CHECK_FALSE(b.tasks->find(answer.id));
    SECTION("and is told of it: at once") {
        b.db->run("COMMIT");
        answer.committed();
        CHECK(b.tasks->next_wakeup() <= b.clock.now());
        b.poll();
        CHECK(ran == std::vector{7});
        answer.committed(); // does nothing
        b.run_for(1min);
        CHECK(ran == std::vector{7});
    }
    SECTION("and is not told: within 20 ms") {
        b.db->run("COMMIT");
        b.poll();
        auto const next = b.tasks->next_wakeup();
        REQUIRE(next.has_value());
        CHECK(*next <= b.clock.now() + 20ms);
        b.run_for(20ms);
        CHECK(ran == std::vector{7});
    }
    SECTION("and not before, however often it looks") {
        for (int i = 0; i != 5; ++i) b.pass(20ms);
        CHECK(ran.empty());
        b.db->run("COMMIT");
        b.pass(20ms);
        b.poll(); // what is new to a poll is for the next one
        CHECK(ran == std::vector{7});
    }
    SECTION("and never where that is rolled back") {
        b.db->run("ROLLBACK");
        b.run_for(1min);
        CHECK(ran.empty());
        CHECK_FALSE(b.tasks->find_by_key("seven"));
        // Nothing is looked for any more.
        auto const next = b.tasks->next_wakeup();
        CHECK((!next || *next > b.clock.now() + 100ms));
        answer.committed(); // a lie does no harm
        b.run_for(1min);
        CHECK(b.tasks->submit(shipping, {8, ""}).outcome == submit_outcome::inserted);
        b.poll();
        CHECK(ran == std::vector{8});
    }
    SECTION("and is found by the sweep where the transaction is open for long") {
        b.clock.advance(12s);
        b.db->run("COMMIT");
        b.poll();
        CHECK(ran == std::vector{7});
    }
}

TEST_CASE("submit_in outside of a transaction stores and wakes at once", "[scheduler][once]") {
    file_bench b;
    int ran = 0;
    b.tasks->on(probe, [&] { ++ran; });
    b.poll();
    auto const answer = b.tasks->submit_in(*b.db, probe);
    CHECK(b.state(answer.id) == task_state::ready);
    CHECK(b.tasks->next_wakeup() <= b.clock.now());
    b.poll();
    CHECK(ran == 1);
}

TEST_CASE("delays, deadlines and keys hold for submit_in", "[scheduler][once]") {
    file_bench b;
    int ran = 0;
    b.tasks->on(probe, [&] { ++ran; });
    b.poll();
    b.db->run("BEGIN");
    auto late = b.tasks->submit_in(*b.db, probe, {}, {.key = "late", .delay = 15min});
    auto const again = b.tasks->submit_in(*b.db, probe, {}, {.key = "late"});
    CHECK(again.outcome == submit_outcome::kept);
    CHECK(again.id == late.id);
    auto doomed = b.tasks->submit_in(*b.db, other, {}, {.deadline = b.clock.now() + 1min}); // no handler takes it
    b.db->run("COMMIT");
    SECTION("with committed()") {
        late.committed();
        doomed.committed();
    }
    SECTION("without") { b.run_for(20ms); }
    CHECK(b.tasks->submit(probe, {}, {.key = "late"}).id == late.id);
    CHECK(b.get(late.id).run_at == b.get(late.id).created + 15min);
    b.run_for(61s);
    CHECK(b.state(doomed.id) == task_state::dead);
    CHECK(ran == 0);
    b.run_for(15min);
    CHECK(ran == 1);
}

TEST_CASE("a task that is replaced in the host's transaction moves once that is committed", "[scheduler][once]") {
    file_bench b;
    std::vector<int> ran;
    b.tasks->on(shipping, [&](parcel const& p) { ran.push_back(p.number); });
    auto const id = b.tasks->submit(shipping, {1, ""}, {.key = "one", .delay = 1h}).id;
    b.poll();
    b.db->run("BEGIN");
    auto const answer = b.tasks->submit_in(*b.db, shipping, {2, ""},
                                           {.key = "one", .on_conflict = ax::on_conflict::replace, .delay = 1s});
    CHECK(answer.outcome == submit_outcome::replaced);
    CHECK(answer.id == id);
    for (int i = 0; i != 5; ++i) b.pass(20ms); // it is there, but it is the old one
    b.db->run("COMMIT");
    b.run_for(20ms);
    b.run_for(880ms);
    CHECK(b.get(id).run_at == b.clock.now());
    CHECK(ran == std::vector{2});
}

TEST_CASE("submit_in refuses what it cannot store with the rest, and leaves the host's transaction alone",
          "[scheduler][once]") {
    file_bench b;
    std::string why;
    CHECK(failure_of([&] { b.tasks->submit_in(nullptr, probe); }, &why) == invalid);
    CHECK(contains(why, "submit_in: the connection is null"));
    b.db->run("BEGIN");
    b.db->run("INSERT INTO ledger VALUES (1, 'order')");
    CHECK(failure_of([&] { b.tasks->submit_in(*b.db, probe, {}, {.delay = -1s}); }) == invalid);
    host elsewhere{b.directory.file("other.db")};
    CHECK(failure_of([&] { b.tasks->submit_in(elsewhere, probe); }, &why) == invalid);
    b.db->run("COMMIT");
    CHECK(b.lines() == 1);
    CHECK(b.tasks->list().empty());
    b.tasks->stop();
    CHECK(failure_of([&] { b.tasks->submit_in(*b.db, probe); }) == ax::errc::stopped);
}

TEST_CASE("submit_in in commit_with is refused: that is what context::submit() is for", "[scheduler][once]") {
    file_bench b;
    b.tasks->on(probe, [&](ax::context& ctx) { ctx.commit_with([&](sqlite3* db) { b.tasks->submit_in(db, other); }); });
    auto const id = b.tasks->submit(probe).id;
    b.poll();
    CHECK(b.state(id) == task_state::failed);
    CHECK(contains(b.get(id).last_error, "the store's own connection"));
}

TEST_CASE("tasks that a handler submits through the host's connection are for the next poll", "[scheduler][once]") {
    file_bench b;
    int ran = 0;
    b.tasks->on(probe, [&] {
        if (++ran < 100) b.tasks->submit_in(*b.db, probe);
    });
    b.tasks->submit(probe);
    CHECK(b.poll() == 1);
    CHECK(b.poll() == 1);
    CHECK(b.poll() == 1);
    CHECK(ran == 3);
}

TEST_CASE("a threaded scheduler starts what was committed, told or not", "[scheduler][once][threads]") {
    temporary_directory const directory;
    auto const path = directory.file("shop.db");
    tally ran;
    ax::scheduler tasks{ax::sqlite_storage{path}, {.workers = 2}};
    tasks.on(probe, [&] { ++ran; });
    tasks.start();
    host db{path};
    constexpr std::size_t count = 60;
    std::size_t expected = 0;
    for (std::size_t i = 0; i != count; ++i) {
        db.run("BEGIN IMMEDIATE");
        auto answer = tasks.submit_in(db, probe);
        if (i % 3 == 2) {
            db.run("ROLLBACK");
            continue;
        }
        db.run("COMMIT");
        if (i % 3 == 0) answer.committed();
        tasks.submit(probe); // its own writer, in between
        expected += 2;
    }
    CHECK(ran.reaches(expected));
    tasks.stop(10s);
    CHECK(ran.value() == expected);
    CHECK(tasks.list({.state = task_state::succeeded, .limit = 1000}).size() == expected);
}

// ---- steps on a file ------------------------------------------------------------------------------------------------

TEST_CASE("a finished step is skipped after the process has gone and come back", "[scheduler][once]") {
    file_bench b;
    int charged = 0;
    int seen = 0;
    auto const prepare = [&](bool fail) {
        b.tasks->on(probe, [&, fail](ax::context& ctx) {
            auto const n = ctx.step("charge", [&] { return ++charged; });
            if (fail) throw std::runtime_error("the host falls over");
            ctx.commit_with([n, &seen](sqlite3* db) {
                execute(db, "INSERT INTO ledger VALUES (" + std::to_string(n) + ", 'charged')");
                seen = n;
            });
        });
    };
    prepare(true);
    auto const id = b.tasks->submit(probe).id;
    b.poll();
    b.restart();
    prepare(false);
    b.run_for(2min);
    CHECK(b.state(id) == task_state::succeeded);
    CHECK(charged == 1);
    CHECK(seen == 1);
    CHECK(b.lines() == 1);
}

TEST_CASE("an id that is given again after a rollback runs by the handler of its own type", "[scheduler][once]") {
    file_bench b;
    int wrong = 0;
    int right = 0;
    b.tasks->on(probe, [&] { ++wrong; });
    b.tasks->on(other, [&] { ++right; });
    b.tasks->pause(other);
    b.tasks->poll(b.clock.now());
    auto const when = b.clock.now() + 1s;
    b.db->run("BEGIN IMMEDIATE");
    auto const gone = b.tasks->submit_in(*b.db, probe, {}, {.run_at = when, .priority = ax::priority::critical});
    b.db->run("ROLLBACK");
    auto const again = b.tasks->submit(other, {}, {.run_at = when});
    REQUIRE(again.id == gone.id);
    for (int i = 0; i != 5; ++i) {
        b.clock.advance(1s);
        b.tasks->poll(b.clock.now());
    }
    CHECK(wrong == 0);
    CHECK(right == 0); // its type is paused
    CHECK(b.tasks->find(again.id)->state == task_state::ready);
    b.tasks->resume(other);
    b.tasks->poll(b.clock.now());
    CHECK(right == 1);
}

TEST_CASE("two submits of one task in one transaction wake all that each of them freed", "[scheduler][once]") {
    file_bench b;
    std::vector<std::string> ran;
    b.tasks->on(shipping, [&](parcel const& p) { ran.push_back(p.note); });
    b.tasks->submit(shipping, {1, "head"}, {.key = "moved", .delay = 1h, .route_key = "r"});
    b.tasks->poll(b.clock.now());
    auto const behind = b.tasks->submit(shipping, {4, "behind"}, {.run_at = b.clock.now() + 2h, .route_key = "r"}).id;
    REQUIRE(b.tasks->find(behind)->blocked);
    b.db->run("BEGIN IMMEDIATE");
    // The first takes the head out of the route, which frees the one behind it; the second finds it out already.
    auto const replacing = ax::submit_options{.key = "moved", .on_conflict = ax::on_conflict::replace, .delay = 3h};
    b.tasks->submit_in(*b.db, shipping, {1, "head"}, replacing);
    auto answer = b.tasks->submit_in(*b.db, shipping, {1, "head"}, replacing);
    b.db->run("COMMIT");
    answer.committed();
    CHECK_FALSE(b.tasks->find(behind)->blocked);
    CHECK(b.tasks->next_wakeup() <= b.clock.now() + 2h); // it has its alarm, though nothing was polled since
    b.clock.advance(2h);
    b.tasks->poll(b.clock.now());
    CHECK(ran == std::vector<std::string>{"behind"});
}

// SPDX-License-Identifier: MIT
// Tasks that are inserted through a connection of the host's.
#include "ax/storage/sqlite.hpp"

#include "conformance/support.hpp"
#include "storage/sqlite_fixture.hpp"

#include <sqlite3.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace {

using namespace conformance;

/// A connection of the host's.
class host_connection {
  public:
    explicit host_connection(std::string const& path, int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) {
        if (sqlite3_open_v2(path.c_str(), &db_, flags, nullptr) != SQLITE_OK) throw std::runtime_error(path);
        run("PRAGMA busy_timeout = 5000");
    }
    host_connection(host_connection const&) = delete;
    host_connection& operator=(host_connection const&) = delete;
    ~host_connection() {
        if (sqlite3_close(db_) != SQLITE_OK) std::abort(); // it is refused while a statement is left on it
    }

    operator sqlite3*() const noexcept { return db_; }
    void run(char const* sql) { // also on threads of a test, where nothing of Catch may be called
        if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
            throw std::runtime_error(std::string(sql) + ": " + sqlite3_errmsg(db_));
    }
    bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

  private:
    sqlite3* db_ = nullptr;
};

struct guest_bench : workbench<sqlite_fixture> {
    host_connection host{store.path()};

    guest_bench() { host.run("CREATE TABLE orders (id INTEGER PRIMARY KEY)"); }

    ax::guest_insertion submit(sqlite3* connection, ax::new_task wanted = {}, std::string_view type = "probe") {
        due.clear();
        return store.insert_in(connection, type, wanted, t0, due);
    }
    std::string refusal(sqlite3* connection) {
        try {
            submit(connection);
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::invalid_argument);
            CHECK(due.empty());
            return e.what();
        }
        FAIL("it was taken");
        return {};
    }
};

bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("a task submitted in the host's transaction is stored with it, and not before", "[storage][sqlite][once]") {
    guest_bench b;
    b.host.run("BEGIN");
    b.host.run("INSERT INTO orders VALUES (42)");
    ax::new_task wanted;
    wanted.key = "close-42";
    wanted.payload = "42";
    wanted.run_at = t0 + 15min;
    auto const answer = b.submit(b.host, wanted);
    CHECK(answer.outcome == submit_outcome::inserted);
    CHECK_FALSE(answer.committed);
    CHECK(b.due == ax::alarms{{answer.id, b.lane(), t0 + 15min}});
    CHECK(sqlite3_last_insert_rowid(b.host) == 42); // the host's, as it was
    CHECK(b.host.in_transaction());
    CHECK_FALSE(b.store.find(answer.id).has_value());
    b.host.run("COMMIT");
    auto const stored = b.get(answer.id);
    CHECK(stored.key == "close-42");
    CHECK(stored.payload == "42");
    CHECK(stored.state == task_state::ready);
    CHECK(b.upcoming() == ids{answer.id});
}

TEST_CASE("a task submitted in the host's transaction is gone with it", "[storage][sqlite][once]") {
    guest_bench b;
    b.host.run("BEGIN IMMEDIATE");
    auto const answer = b.submit(b.host, {}, "a type that is new");
    b.host.run("ROLLBACK");
    CHECK_FALSE(b.store.find(answer.id).has_value());
    CHECK(b.store.types().size() == 1); // the type went, too
    auto const type = b.type("another");
    CHECK(b.type("a type that is new") != type);
    auto const later = b.submit(b.host, {}, "a type that is new");
    CHECK(b.get(later.id).type == "a type that is new");

    b.host.run("BEGIN; SAVEPOINT mine");
    auto const inner = b.submit(b.host);
    b.host.run("ROLLBACK TO mine; COMMIT");
    CHECK_FALSE(b.store.find(inner.id).has_value());
}

TEST_CASE("a task submitted outside of a transaction is stored at once", "[storage][sqlite][once]") {
    guest_bench b;
    auto const answer = b.submit(b.host);
    CHECK(answer.committed);
    CHECK_FALSE(b.host.in_transaction());
    CHECK(b.get(answer.id).state == task_state::ready);
}

TEST_CASE("ids rise by whatever way a task comes", "[storage][sqlite][once]") {
    guest_bench b;
    ids given;
    for (int i = 0; i != 3; ++i) {
        given.push_back(b.add());
        given.push_back(b.submit(b.host).id);
        b.host.run("BEGIN");
        given.push_back(b.submit(b.host).id);
        given.push_back(b.submit(b.host).id);
        b.host.run("COMMIT");
        b.host.run("BEGIN");
        b.submit(b.host);
        b.host.run("ROLLBACK");
    }
    given.push_back(b.add());
    for (std::size_t i = 1; i != given.size(); ++i) {
        CAPTURE(i, given[i]);
        CHECK(given[i] > given[i - 1]);
    }
    CHECK(b.store.list({}, t0).size() == given.size());
}

TEST_CASE("keys, routes and deadlines hold through the host's connection as through the store's own",
          "[storage][sqlite][once]") {
    guest_bench b;
    ax::new_task wanted;
    wanted.key = "close-42";
    auto const first = b.submit(b.host, wanted);
    b.host.run("BEGIN");
    auto const second = b.submit(b.host, wanted);
    CHECK(second.outcome == submit_outcome::kept);
    CHECK(second.id == first.id);
    CHECK(b.due.empty());
    b.host.run("COMMIT");
    auto same = b.task();
    same.key = "close-42";
    CHECK(b.insert({same}).at(0).id == first.id);

    ax::new_task routed;
    routed.route_key = "customer-7";
    routed.deadline = t0 + 1h;
    auto const head = b.submit(b.host, routed).id;
    auto const behind = b.submit(b.host, routed);
    CHECK(b.due.empty());
    CHECK_FALSE(b.get(head).blocked);
    CHECK(b.get(behind.id).blocked);
    CHECK(b.expire(t0 + 2h).dead == ids{head, behind.id});
}

TEST_CASE("a connection through which nothing can be submitted is refused, with the reason",
          "[storage][sqlite][once]") {
    guest_bench b;
    auto const other = b.fixture.directory.file("other.db");
    SECTION("null") { CHECK(says(b.refusal(nullptr), "the connection is null")); }
    SECTION("the store's own") {
        std::string text;
        b.write([&](auto& w) { text = b.refusal(w.handle()); });
        CHECK(says(text, "the store's own connection"));
    }
    SECTION("of another file, also of another store") {
        host_connection elsewhere{other};
        CHECK(says(b.refusal(elsewhere), "other.db, and the tasks are in "));
        ax::sqlite_storage const second{other};
        CHECK(says(b.refusal(elsewhere), "other.db, and the tasks are in "));
    }
    SECTION("of no file") {
        host_connection memory{":memory:"};
        CHECK(says(b.refusal(memory), "open on no file"));
    }
    SECTION("with an attached database") {
        b.host.run(("ATTACH '" + other + "' AS elsewhere").c_str());
        CHECK(says(b.refusal(b.host), "attached databases"));
        b.host.run("DETACH elsewhere");
        b.submit(b.host);
    }
    SECTION("that only reads") {
        host_connection reader{b.store.path(), SQLITE_OPEN_READONLY};
        CHECK(says(b.refusal(reader), "read-only"));
        b.host.run("PRAGMA query_only = ON");
        CHECK(says(b.refusal(b.host), "query_only"));
    }
    SECTION("of a file in which another store lies by now") {
        b.host.run("BEGIN; UPDATE ax_meta SET value = '00112233445566778899aabbccddeeff' WHERE name = 'store_id'");
        CHECK(says(b.refusal(b.host), "is not this store"));
        CHECK(b.host.in_transaction()); // and stands as it was
        b.host.run("ROLLBACK");
    }
    SECTION("that sees no store at all") {
        b.host.run("BEGIN; ALTER TABLE ax_meta RENAME TO hidden");
        CHECK(says(b.refusal(b.host), "is not this store"));
        b.host.run("ROLLBACK");
    }
    SECTION("under another name of the file it is taken") {
        auto const link = b.fixture.directory.file("link.db");
        std::filesystem::create_symlink(b.store.path(), link);
        host_connection linked{link};
        b.submit(linked);
    }
}

TEST_CASE("a submit that fails leaves the host's transaction as it was", "[storage][sqlite][once]") {
    guest_bench b;
    host_connection second{b.store.path()};
    SECTION("it has read what another has changed since") {
        b.host.run("BEGIN; SELECT count(*) FROM orders");
        second.run("INSERT INTO orders VALUES (1)");
        b.due.clear();
        ax::new_task wanted;
        try {
            b.store.insert_in(b.host, "probe", wanted, t0, b.due);
            FAIL("it was taken");
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::unavailable);
        }
        CHECK(b.host.in_transaction());
        b.host.run("COMMIT; BEGIN");
        b.submit(b.host);
        b.host.run("COMMIT");
    }
    SECTION("another holds the lock") {
        b.host.run("PRAGMA busy_timeout = 0; BEGIN");
        second.run("BEGIN IMMEDIATE");
        ax::new_task wanted;
        CHECK_THROWS_AS(b.store.insert_in(b.host, "probe", wanted, t0, b.due), ax::error);
        CHECK(b.host.in_transaction());
        second.run("ROLLBACK");
        b.submit(b.host);
        b.host.run("COMMIT");
    }
    SECTION("and so the host without a transaction has none afterwards") {
        b.host.run("PRAGMA busy_timeout = 0");
        second.run("BEGIN IMMEDIATE");
        ax::new_task wanted;
        CHECK_THROWS_AS(b.store.insert_in(b.host, "probe", wanted, t0, b.due), ax::error);
        CHECK_FALSE(b.host.in_transaction());
        second.run("ROLLBACK");
    }
    CHECK(b.store.list({}, t0).size() < 2);
}

TEST_CASE("two open transactions, the store's and the host's, wait for each other and lose nothing",
          "[storage][sqlite][once][threads]") {
    guest_bench b;
    constexpr int rounds = 100;
    std::atomic<bool> failed{false};
    std::thread hosting([&] {
        try {
            host_connection mine{b.store.path()};
            for (int i = 0; i != rounds; ++i) {
                ax::alarms due;
                ax::new_task wanted;
                wanted.key = "shared-" + std::to_string(i);
                mine.run("BEGIN IMMEDIATE");
                b.store.insert_in(mine, "probe", wanted, t0, due);
                ax::new_task plain;
                b.store.insert_in(mine, "probe", plain, t0, due);
                mine.run(i % 3 == 0 ? "ROLLBACK" : "COMMIT");
            }
        } catch (...) {
            failed = true;
        }
    });
    for (int i = 0; i != rounds; ++i) {
        auto mine = b.task();
        mine.key = "shared-" + std::to_string(i);
        b.add(mine);
    }
    hosting.join();
    CHECK_FALSE(failed);
    std::size_t found = 0;
    for (int i = 0; i != rounds; ++i) found += b.store.find_by_key("shared-" + std::to_string(i)).has_value() ? 1 : 0;
    CHECK(found == rounds);
    CHECK(b.store.list({.limit = 1'000}, t0).size() == rounds + rounds - (rounds + 2) / 3);
}

// SPDX-License-Identifier: MIT
// faulty_storage around SQLite: what it does around memory, and the host's own transactions.
#include "ax/testing/faulty_storage.hpp"

#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"
#include "support/instants.hpp"
#include "testing/faulty_cases.hpp"

#include <sqlite3.h>

#include <memory>
#include <optional>

static_assert(ax::storage<ax::testing::faulty_storage<ax::sqlite_storage>>);
static_assert(ax::transactional_storage<ax::testing::faulty_storage<ax::sqlite_storage>>);

TEST_CASE("faulty_storage around SQLite without a plan is the storage itself", "[testing][sqlite]") {
    faulty_cases::transparent<sqlite_fixture>();
}

TEST_CASE("faulty_storage around SQLite: each fault does what it says", "[testing][sqlite]") {
    faulty_cases::each_fault<sqlite_fixture>();
}

TEST_CASE("faulty_storage around SQLite: the end of a life ends every copy, and nothing that was written",
          "[testing][sqlite]") {
    faulty_cases::lives<sqlite_fixture>();
}

TEST_CASE("faulty_storage around SQLite: reads are busy or late, and nothing else", "[testing][sqlite]") {
    faulty_cases::reads_are_busy<sqlite_fixture>();
}

TEST_CASE("faulty_storage around SQLite: an outcome whose reply is lost is stored once", "[testing][sqlite]") {
    faulty_cases::a_settlement_is_read_back<sqlite_fixture>();
}

TEST_CASE("faulty_storage around SQLite: a submit in the host's transaction fails before it is made, or not at all",
          "[testing][sqlite]") {
    using ax::testing::fault;
    using test::t0;
    auto const what = GENERATE(fault::none, fault::busy, fault::full, fault::crash_before);
    CAPTURE(to_string(what));
    sqlite_fixture fixture;
    ax::testing::faulty_storage<ax::sqlite_storage> store{fixture.open()};
    sqlite3* opened = nullptr;
    REQUIRE(sqlite3_open_v2(store.base().path().c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
    std::unique_ptr<sqlite3, int (*)(sqlite3*)> const host{opened, sqlite3_close};
    auto const run = [&](char const* sql) { return sqlite3_exec(host.get(), sql, nullptr, nullptr, nullptr); };
    REQUIRE(run("CREATE TABLE orders (id INTEGER PRIMARY KEY)") == SQLITE_OK);
    REQUIRE(run("BEGIN IMMEDIATE") == SQLITE_OK);
    REQUIRE(run("INSERT INTO orders VALUES (1)") == SQLITE_OK);
    if (what != fault::none) store.plan().at("insert_in", 1, what);
    ax::alarms due;
    ax::new_task task;
    std::optional<ax::errc> code;
    try {
        store.insert_in(host.get(), "t", task, t0, due);
    } catch (ax::error const& e) {
        code = e.kind();
    }
    CHECK(code.has_value() == (what != fault::none));
    if (what == fault::full) CHECK(code == ax::errc::disk_full);
    CHECK(sqlite3_get_autocommit(host.get()) == 0); // what the host had done stands, and is the host's to commit
    REQUIRE(run("COMMIT") == SQLITE_OK);
    CHECK(store.base().list({}, t0).size() == (what == fault::none ? 1 : 0));
    CHECK(store.alive() == (what != fault::crash_before));
}

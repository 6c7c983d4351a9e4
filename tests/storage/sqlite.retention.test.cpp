// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/retention.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage removes the ended tasks that it is told to, and no others", "[storage][sqlite]") {
    conformance::pruning<sqlite_fixture>();
}

TEST_CASE("sqlite_storage knows how many tasks are in each state", "[storage][sqlite]") {
    conformance::counting<sqlite_fixture>();
}

TEST_CASE("sqlite_storage keeps notes", "[storage][sqlite]") { conformance::notes<sqlite_fixture>(); }

namespace {

using namespace conformance;

/// A store that was full once: 4,000 tasks of 2 KiB that have ended, and are pruned.
void fill_and_prune(workbench<sqlite_fixture>& w) {
    std::vector<ax::new_task> const tasks(1'000, w.task(std::string(2'048, 'x')));
    for (int round = 0; round < 4; ++round) {
        auto const answers = w.insert(tasks);
        w.write([&](ax::sqlite_storage::writer& each) {
            for (auto const& one : answers) each.cancel(one.id, t0);
        });
    }
    ax::prune_terms terms;
    terms.type = w.probe;
    terms.ended_by = t0;
    for (bool more = true; more;)
        more = w.write([&](ax::sqlite_storage::writer& each) { return each.prune(terms, 200); }).more;
    REQUIRE(w.store.counts().empty());
}

} // namespace

TEST_CASE("a store that ax has created gives the space of pruned tasks back, a little at a time", "[storage][sqlite]") {
    workbench<sqlite_fixture> w;
    auto const path = w.store.path();
    fill_and_prune(w);
    std::size_t steps = 1;
    while (w.write([](ax::sqlite_storage::writer& each) { return each.compact(); })) ++steps;
    CHECK(steps > 10);
    CHECK(steps < 200);
    CHECK(w.store.health().database_bytes < 1'500'000); // while it is open; it was 8 MB or more
    CHECK(w.add() > ax::task_id{4'000});
    w.store = w.fixture.reopen(std::move(w.store));
    CHECK(w.store.health().database_bytes < 1'500'000);
    CHECK(w.store.verify().empty());
}

TEST_CASE("the database of a host is not made to shrink", "[storage][sqlite]") {
    workbench<sqlite_fixture> w;
    auto const path = w.fixture.directory.file("host.db");
    {
        ax::detail::sqlite_connection db{path};
        db.execute("CREATE TABLE host (id INTEGER PRIMARY KEY)");
    }
    w.store = ax::sqlite_storage{path};
    w.probe = w.type("probe");
    fill_and_prune(w);
    CHECK_FALSE(w.write([](ax::sqlite_storage::writer& each) { return each.compact(); }));
    w.store = ax::sqlite_storage{w.fixture.directory.file("other.db")}; // closes it
    ax::detail::sqlite_connection db{path};
    auto const statement = db.prepare("PRAGMA freelist_count");
    ax::detail::sqlite_run row(db, statement.get());
    REQUIRE(row.next());
    CHECK(row.number(0) > 1'000); // kept, and used again
}

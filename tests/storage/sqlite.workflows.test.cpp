// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/awaited.hpp"
#include "conformance/workflow_upkeep.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage lets the tasks of a workflow go as their parents end", "[storage][workflow]") {
    conformance::workflows<sqlite_fixture>();
}

TEST_CASE("sqlite_storage does to a workflow what is asked", "[storage][workflow]") {
    conformance::workflow_changes<sqlite_fixture>();
}

TEST_CASE("sqlite_storage lets workflows grow and wait for each other", "[storage][workflow]") {
    conformance::growing_workflows<sqlite_fixture>();
}

TEST_CASE("sqlite_storage removes workflows as a whole", "[storage][workflow]") {
    conformance::pruned_workflows<sqlite_fixture>();
}

TEST_CASE("sqlite_storage says what the tasks of a workflow wait for", "[storage][workflow]") {
    conformance::workflow_obstacles<sqlite_fixture>();
}

TEST_CASE("a task inserted through the host's connection is what a wait waits for", "[storage][sqlite][workflow]") {
    conformance::loom<sqlite_fixture> w;
    w.add_graph({w.wait("w", {"other", {}, {}, {}}), w.node("a", {0})});
    sqlite3* host = nullptr;
    REQUIRE(sqlite3_open(w.fixture.directory.file("store.db").c_str(), &host) == SQLITE_OK);
    REQUIRE(sqlite3_exec(host, "BEGIN", nullptr, nullptr, nullptr) == SQLITE_OK);
    auto other = w.task();
    other.key = "other";
    auto const inserted = w.store.insert_in(host, "probe", other, conformance::t0, w.due);
    CHECK(w.store.parents(w.id("w")).empty()); // not committed yet
    REQUIRE(sqlite3_exec(host, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(host);
    CHECK(w.store.parents(w.id("w")).size() == 1);
    w.finish(w.take(inserted.id), ax::attempt_outcome::succeeded);
    CHECK(w.at("w") == ax::task_state::succeeded);
    CHECK(w.at("a") == ax::task_state::ready);
    CHECK(w.store.verify().empty());
}

TEST_CASE("sqlite_storage ends the waits for occurrences that do not come", "[storage][workflow]") {
    conformance::occurrences_left_out<sqlite_fixture>();
}

TEST_CASE("sqlite_storage refuses workflows that wait for each other in a circle", "[storage][workflow]") {
    conformance::wait_circles<sqlite_fixture>();
}

TEST_CASE("sqlite_storage tells what a wait waits for that is not there", "[storage][workflow]") {
    conformance::told_waits<sqlite_fixture>();
}

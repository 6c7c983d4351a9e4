// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

namespace {

std::vector<std::string> plan_of(ax::detail::sqlite_connection& db, char const* sql) {
    auto const statement = db.prepare((std::string("EXPLAIN QUERY PLAN ") + sql).c_str());
    ax::detail::sqlite_run row(db, statement.get());
    std::vector<std::string> steps;
    while (row.next()) steps.push_back(row.copy(3));
    return steps;
}

bool is_cheap(std::string const& step) {
    return step.find("SCAN") == std::string::npos && step.find("TEMP B-TREE") == std::string::npos &&
           step.find("AUTOMATIC") == std::string::npos;
}

} // namespace

TEST_CASE("no statement of sqlite_storage scans a table or sorts", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    { ax::sqlite_storage const store{path}; }
    ax::detail::sqlite_connection db{path};

    for (auto const& statement : ax::detail::sqlite_statements) {
        CAPTURE(statement.sql);
        for (auto const& step : plan_of(db, statement.sql)) {
            CAPTURE(step);
            CHECK(is_cheap(step));
        }
    }
    CHECK_FALSE(is_cheap(plan_of(db, "SELECT id FROM ax_task WHERE state = 6").at(0))); // the test can fail
    CHECK_FALSE(is_cheap(plan_of(db, "SELECT id FROM ax_task WHERE lane = 1 AND state = 5 AND state IN (1,5) "
                                     "ORDER BY payload")
                             .back()));
}

TEST_CASE("the statements of sqlite_storage go through the indexes meant for them", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    { ax::sqlite_storage const store{path}; }
    ax::detail::sqlite_connection db{path};
    using ax::detail::sqlite_sql;
    auto const uses = [&](sqlite_sql name, std::string const& index) {
        auto const* const sql = ax::detail::sqlite_statements[static_cast<std::size_t>(name)].sql;
        auto const steps = plan_of(db, sql);
        CAPTURE(sql, steps);
        return steps.size() == 1 && steps[0].find(index + " ") != std::string::npos;
    };
    CHECK(uses(sqlite_sql::due_at, "INDEX ax_task_due"));
    CHECK(uses(sqlite_sql::due_after, "INDEX ax_task_due"));
    CHECK(uses(sqlite_sql::ready_after, "INDEX ax_task_due"));
    CHECK(uses(sqlite_sql::failed_after, "INDEX ax_task_apart"));
    CHECK(uses(sqlite_sql::ready_apart_after, "INDEX ax_task_apart"));
    CHECK(uses(sqlite_sql::list_dead, "INDEX ax_task_state"));
    CHECK(uses(sqlite_sql::in_flight_elsewhere, "INDEX ax_task_state"));
    CHECK(uses(sqlite_sql::route_head, "INDEX ax_task_head"));
    CHECK(uses(sqlite_sql::route_first, "INDEX ax_task_route"));
    CHECK(uses(sqlite_sql::overdue, "INDEX ax_task_deadline"));
    CHECK(uses(sqlite_sql::key_holder, "INDEX ax_task_key"));
    CHECK(uses(sqlite_sql::ended_succeeded, "INDEX ax_task_state"));
    CHECK(uses(sqlite_sql::in_flight_dispatched, "INDEX ax_task_state"));
    CHECK(uses(sqlite_sql::occurrence_holder, "INDEX ax_task_occurrence"));
    CHECK(uses(sqlite_sql::occurrence_before, "INDEX ax_task_occurrence"));
    CHECK(uses(sqlite_sql::occurrence_behind, "INDEX ax_task_occurrence"));
    CHECK(uses(sqlite_sql::tasks_aside, "INDEX ax_task_aside"));
    CHECK(uses(sqlite_sql::waiting_for_past, "INDEX ax_past_awaited"));
}

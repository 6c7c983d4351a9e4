// SPDX-License-Identifier: MIT
// All SQL of sqlite_storage: the schema, its migrations, and every statement. Nothing is put together at run time.
//
// The tables share a file with those of the host, so each name begins with ax_.
//
// How ax_task is built. What decides the speed is how many B-tree leaves a task dirties on its way, so:
//  - ids rise with time: rows, and the tails of most indexes, are appended;
//  - every index but the primary key is partial, and a plain task (no key, no route key, no deadline) is in one of them
//    at a time: in `due` while it waits, then in `state`;
//  - the columns that change come first and are small; texts and blobs come last, so that they overflow and not these.
// States in statements are literals: with a bound one the planner cannot know that a partial index applies. For the
// same reason some conditions repeat an index's own (`state IN (1,5) AND state = 1`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ax::detail {

/// The gate of a task: what besides its time keeps it from being claimed. Zero: nothing.
inline constexpr std::int64_t gate_blocked = 1; ///< another task with its route key goes first
inline constexpr std::int64_t gate_held = 2;    ///< waits for a person
inline constexpr std::int64_t gate_aside = 4;   ///< held and relaxed: others with its route key pass it

/// Bits of ax_task.flags.
inline constexpr std::int64_t flag_hold_on_interrupt = 1;
inline constexpr std::int64_t flag_lonely = 2;
inline constexpr std::int64_t flag_relaxed = 4;

/// One step of the schema. A released one is never edited: what is to change is a further step.
struct sqlite_migration {
    int version;
    char const* sql;
};

inline constexpr sqlite_migration sqlite_migrations[] = {
    {1, R"sql(
CREATE TABLE ax_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;

CREATE TABLE ax_type (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    paused INTEGER NOT NULL
);

CREATE TABLE ax_task (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    gate INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    order_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    node INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    interruptions INTEGER NOT NULL,
    snoozes INTEGER NOT NULL,
    unclean_ends INTEGER NOT NULL,
    lonely_deaths INTEGER NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    started INTEGER,
    first_started INTEGER,
    finished INTEGER,
    deadline INTEGER,
    scheduled_at INTEGER,
    key TEXT,
    route_key TEXT,
    schedule TEXT,
    retry TEXT,
    last_error TEXT,
    result BLOB,
    payload BLOB
);
CREATE INDEX ax_task_due ON ax_task (lane, run_at)
    WHERE state IN (1,5) AND gate = 0;
CREATE INDEX ax_task_state ON ax_task (state, lane)
    WHERE state NOT IN (1,5);
CREATE INDEX ax_task_apart ON ax_task (lane, state, (gate <> 0), run_at)
    WHERE state IN (1,5) AND (state = 5 OR gate <> 0);
CREATE UNIQUE INDEX ax_task_key ON ax_task (key)
    WHERE key IS NOT NULL;
CREATE UNIQUE INDEX ax_task_occurrence ON ax_task (schedule, scheduled_at)
    WHERE schedule IS NOT NULL AND scheduled_at IS NOT NULL;
CREATE UNIQUE INDEX ax_task_head ON ax_task (route_key)
    WHERE route_key IS NOT NULL AND state IN (1,2,3,5) AND (gate & 1) = 0;
CREATE INDEX ax_task_route ON ax_task (route_key, order_at)
    WHERE route_key IS NOT NULL AND state IN (1,2,3,5) AND (gate & 4) = 0;
CREATE INDEX ax_task_deadline ON ax_task (deadline)
    WHERE deadline IS NOT NULL AND state IN (0,1,5);

CREATE TABLE ax_attempt (
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    node INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    error TEXT,
    log BLOB,
    PRIMARY KEY (task, number)
) WITHOUT ROWID;

CREATE TABLE ax_schedule (
    name TEXT NOT NULL PRIMARY KEY,
    spec TEXT NOT NULL,
    type INTEGER NOT NULL,
    payload BLOB,
    next INTEGER,
    last_nominal INTEGER,
    last_task INTEGER NOT NULL,
    version INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    last_skip TEXT,
    created INTEGER NOT NULL
) WITHOUT ROWID;
)sql"},
};

inline constexpr int sqlite_schema_version = sqlite_migrations[std::size(sqlite_migrations) - 1].version;

// What is asked before the schema is known to be there: prepared where it is used, and exempt from the test of plans.
inline constexpr char const* sqlite_count_tables =
    "SELECT count(*), count(CASE WHEN name = 'ax_meta' THEN 1 END) FROM sqlite_master "
    "WHERE type = 'table' AND name IN ('ax_meta', 'ax_type', 'ax_task', 'ax_attempt', 'ax_schedule')";
inline constexpr char const* sqlite_read_meta = "SELECT value FROM ax_meta WHERE name = ?1";
inline constexpr char const* sqlite_write_meta = "INSERT OR REPLACE INTO ax_meta (name, value) VALUES (?1, ?2)";

// clang-format off
#define AX_SQLITE_TASK_COLUMNS                                                                                         \
    "id, lane, state, gate, flags, run_at, order_at, version, fence, node, attempts, failures, interruptions, "        \
    "snoozes, unclean_ends, lonely_deaths, created, changed, started, first_started, finished, deadline, "             \
    "scheduled_at, key, route_key, schedule, retry, last_error, result, payload"
#define AX_SQLITE_SCHEDULE_COLUMNS                                                                                     \
    "name, spec, type, payload, next, last_nominal, last_task, version, fired, skipped, last_skip, created"
// clang-format on

/// Every statement of the running storage.
enum class sqlite_sql : std::size_t {
    begin_read,
    begin_write,
    commit,
    rollback,
    id_block,
    take_id_block,
    put_id_block,
    count_commit,
    type_number,
    type_name,
    last_type,
    insert_type,
    pause_type,
    types,
    insert_task,
    task,
    task_by_key,
    key_holder,
    occurrence_holder,
    task_state,
    task_row,
    claim_task,
    start_task,
    succeed_task,
    succeed_plainly,
    update_task,
    route_head,
    route_first,
    block_task,
    unblock_task,
    alarm_of,
    in_flight_elsewhere,
    overdue,
    insert_attempt,
    attempts,
    due_at,
    due_after,
    ready_at,
    ready_after,
    ready_apart_at,
    ready_apart_after,
    failed_at,
    failed_after,
    failed_apart_at,
    failed_apart_after,
    list_created,
    list_dispatched,
    list_running,
    list_succeeded,
    list_dead,
    list_cancelled,
    list_skipped,
    list_upstream_failed,
    list_all,
    list_all_of_type,
    schedule,
    schedules,
    put_schedule,
    delete_schedule,
    count_
};

struct sqlite_statement_text {
    sqlite_sql name;
    char const* sql;
};

#define AX_SQLITE_LIST_STATE(number)                                                                                   \
    "SELECT id, 0 FROM ax_task WHERE state = " number                                                                  \
    " AND state NOT IN (1,5) AND lane = ?1 AND id < ?2 AND changed < ?3 ORDER BY id DESC LIMIT ?4"
// In the order (run_at, id) from behind a place: first the rest of that instant, then what is later. A comparison of
// row values would say it in one, but SQLite 3.40 walks over the whole instant for it, which makes paging through a
// million tasks of one instant quadratic.
#define AX_SQLITE_LIST_AT(condition)                                                                                   \
    "SELECT id, run_at FROM ax_task WHERE lane = ?1 AND " condition                                                    \
    " AND run_at = ?2 AND id > ?3 AND changed < ?4 ORDER BY id LIMIT ?5"
#define AX_SQLITE_LIST_AFTER(condition)                                                                                \
    "SELECT id, run_at FROM ax_task WHERE lane = ?1 AND " condition                                                    \
    " AND run_at > ?2 AND changed < ?3 ORDER BY run_at, id LIMIT ?4"

inline constexpr std::array<sqlite_statement_text, static_cast<std::size_t>(sqlite_sql::count_)> sqlite_statements{{
    {sqlite_sql::begin_read, "BEGIN"},
    {sqlite_sql::begin_write, "BEGIN IMMEDIATE"},
    {sqlite_sql::commit, "COMMIT"},
    {sqlite_sql::rollback, "ROLLBACK"},

    {sqlite_sql::id_block, "SELECT value FROM ax_meta WHERE name = 'next_id'"},
    {sqlite_sql::take_id_block, "UPDATE ax_meta SET value = value + ?1 WHERE name = 'next_id'"},
    {sqlite_sql::put_id_block, "UPDATE ax_meta SET value = ?1 WHERE name = 'next_id' AND value = ?2"},

    {sqlite_sql::count_commit, "UPDATE ax_meta SET value = value + 1 WHERE name = 'empty_commits'"},

    {sqlite_sql::type_number, "SELECT number FROM ax_type WHERE name = ?1"},
    {sqlite_sql::type_name, "SELECT name FROM ax_type WHERE number = ?1"},
    {sqlite_sql::last_type, "SELECT number FROM ax_type WHERE number > 0 ORDER BY number DESC LIMIT 1"},
    {sqlite_sql::insert_type, "INSERT INTO ax_type (number, name, paused) VALUES (?1, ?2, 0)"},
    {sqlite_sql::pause_type, "UPDATE ax_type SET paused = ?2 WHERE number = ?1"},
    {sqlite_sql::types, "SELECT number, name, paused FROM ax_type WHERE number > 0 ORDER BY number"},

    {sqlite_sql::insert_task,
     "INSERT INTO ax_task (" AX_SQLITE_TASK_COLUMNS ") VALUES (?1, ?2, 1, ?3, ?4, ?5, ?5, 1, 0, 0, 0, 0, 0, 0, 0, 0, "
     "?6, ?6, NULL, NULL, NULL, ?7, ?8, ?9, ?10, ?11, ?12, NULL, NULL, ?13) ON CONFLICT DO NOTHING"},
    {sqlite_sql::task, "SELECT " AX_SQLITE_TASK_COLUMNS " FROM ax_task WHERE id = ?1"},
    {sqlite_sql::task_by_key, "SELECT " AX_SQLITE_TASK_COLUMNS " FROM ax_task WHERE key = ?1"},
    {sqlite_sql::key_holder, "SELECT id, state FROM ax_task WHERE key = ?1"},
    {sqlite_sql::occurrence_holder, "SELECT id, state FROM ax_task WHERE schedule = ?1 AND scheduled_at = ?2"},
    {sqlite_sql::task_state, "SELECT state FROM ax_task WHERE id = ?1"},
    {sqlite_sql::task_row,
     "SELECT id, lane, state, gate, flags, run_at, order_at, version, fence, node, attempts, failures, interruptions, "
     "snoozes, unclean_ends, lonely_deaths, changed, started, first_started, finished, deadline, route_key "
     "FROM ax_task WHERE id = ?1"},

    {sqlite_sql::claim_task,
     "UPDATE ax_task SET state = 2, version = ?2, fence = ?2, node = ?3, attempts = ?4, changed = ?5, flags = ?6 "
     "WHERE id = ?1"},
    {sqlite_sql::start_task,
     "UPDATE ax_task SET state = 3, version = version + 1, started = ?3, first_started = coalesce(first_started, ?3), "
     "changed = ?3 WHERE id = ?1 AND fence = ?2 AND state = 2"},
    {sqlite_sql::succeed_task,
     "UPDATE ax_task SET state = 4, version = ?2, flags = ?3, unclean_ends = 0, lonely_deaths = 0, changed = ?4, "
     "started = ?5, first_started = ?6, finished = ?4, last_error = NULL, result = ?7 WHERE id = ?1"},
    {sqlite_sql::succeed_plainly,
     "UPDATE ax_task SET state = 4, version = version + 1, flags = flags & 4, unclean_ends = 0, lonely_deaths = 0, "
     "changed = ?3, started = ?4, first_started = coalesce(first_started, ?4), finished = ?3, last_error = NULL, "
     "result = ?5 WHERE id = ?1 AND fence = ?2 AND state IN (2,3) AND route_key IS NULL"},
    {sqlite_sql::update_task,
     "UPDATE ax_task SET state = ?2, gate = ?3, flags = ?4, run_at = ?5, order_at = ?6, version = ?7, attempts = ?8, "
     "failures = ?9, interruptions = ?10, snoozes = ?11, unclean_ends = ?12, lonely_deaths = ?13, changed = ?14, "
     "started = ?15, first_started = ?16, finished = ?17, deadline = ?18, last_error = coalesce(?19, last_error) "
     "WHERE id = ?1"},

    {sqlite_sql::route_head, "SELECT id, state, order_at FROM ax_task "
                             "WHERE route_key = ?1 AND state IN (1,2,3,5) AND (gate & 1) = 0"},
    {sqlite_sql::route_first, "SELECT id FROM ax_task WHERE route_key = ?1 AND state IN (1,2,3,5) AND (gate & 4) = 0 "
                              "ORDER BY order_at, id LIMIT 1"},
    {sqlite_sql::block_task, "UPDATE ax_task SET gate = gate | 1 WHERE id = ?1"},
    {sqlite_sql::unblock_task, "UPDATE ax_task SET gate = gate & ~1 WHERE id = ?1"},
    {sqlite_sql::alarm_of, "SELECT lane, run_at FROM ax_task WHERE id = ?1 AND state IN (1,5) AND gate = 0"},

    {sqlite_sql::in_flight_elsewhere,
     "SELECT id FROM ax_task WHERE state IN (2,3) AND state NOT IN (1,5) AND node <> ?1"},
    {sqlite_sql::overdue,
     "SELECT id, deadline FROM ax_task WHERE deadline <= ?1 AND state IN (0,1,5) ORDER BY deadline, id LIMIT 1"},

    {sqlite_sql::insert_attempt,
     "INSERT INTO ax_attempt (task, number, fence, node, started, ended, outcome, error, log) "
     "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
    {sqlite_sql::attempts,
     "SELECT number, fence, node, started, ended, outcome, error, log FROM ax_attempt WHERE task = ?1 ORDER BY number"},

    {sqlite_sql::due_at,
     "SELECT id FROM ax_task WHERE lane = ?1 AND state IN (1,5) AND gate = 0 AND run_at = ?2 AND id > ?3 "
     "ORDER BY id LIMIT ?4"},
    {sqlite_sql::due_after,
     "SELECT id, run_at FROM ax_task WHERE lane = ?1 AND state IN (1,5) AND gate = 0 AND run_at > ?2 AND run_at <= ?3 "
     "ORDER BY run_at, id LIMIT ?4"},

    {sqlite_sql::ready_at, AX_SQLITE_LIST_AT("state IN (1,5) AND gate = 0 AND state = 1")},
    {sqlite_sql::ready_after, AX_SQLITE_LIST_AFTER("state IN (1,5) AND gate = 0 AND state = 1")},
    {sqlite_sql::ready_apart_at, AX_SQLITE_LIST_AT("state IN (1,5) AND gate <> 0 AND state = 1 AND (gate <> 0) = 1")},
    {sqlite_sql::ready_apart_after,
     AX_SQLITE_LIST_AFTER("state IN (1,5) AND gate <> 0 AND state = 1 AND (gate <> 0) = 1")},
    {sqlite_sql::failed_at, AX_SQLITE_LIST_AT("state IN (1,5) AND state = 5 AND (gate <> 0) = 0")},
    {sqlite_sql::failed_after, AX_SQLITE_LIST_AFTER("state IN (1,5) AND state = 5 AND (gate <> 0) = 0")},
    {sqlite_sql::failed_apart_at, AX_SQLITE_LIST_AT("state IN (1,5) AND state = 5 AND (gate <> 0) = 1")},
    {sqlite_sql::failed_apart_after, AX_SQLITE_LIST_AFTER("state IN (1,5) AND state = 5 AND (gate <> 0) = 1")},

    {sqlite_sql::list_created, AX_SQLITE_LIST_STATE("0")},
    {sqlite_sql::list_dispatched, AX_SQLITE_LIST_STATE("2")},
    {sqlite_sql::list_running, AX_SQLITE_LIST_STATE("3")},
    {sqlite_sql::list_succeeded, AX_SQLITE_LIST_STATE("4")},
    {sqlite_sql::list_dead, AX_SQLITE_LIST_STATE("6")},
    {sqlite_sql::list_cancelled, AX_SQLITE_LIST_STATE("7")},
    {sqlite_sql::list_skipped, AX_SQLITE_LIST_STATE("8")},
    {sqlite_sql::list_upstream_failed, AX_SQLITE_LIST_STATE("9")},
    {sqlite_sql::list_all, "SELECT id, 0 FROM ax_task WHERE id < ?1 AND changed < ?2 ORDER BY id DESC LIMIT ?3"},
    {sqlite_sql::list_all_of_type,
     "SELECT id, 0 FROM ax_task WHERE id < ?1 AND changed < ?2 AND lane >= ?4 AND lane < ?4 + 4 "
     "ORDER BY id DESC LIMIT ?3"},

    {sqlite_sql::schedule, "SELECT " AX_SQLITE_SCHEDULE_COLUMNS " FROM ax_schedule WHERE name = ?1"},
    {sqlite_sql::schedules, "SELECT " AX_SQLITE_SCHEDULE_COLUMNS " FROM ax_schedule WHERE name >= '' ORDER BY name"},
    {sqlite_sql::put_schedule, "INSERT OR REPLACE INTO ax_schedule (" AX_SQLITE_SCHEDULE_COLUMNS ") "
                               "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"},
    {sqlite_sql::delete_schedule, "DELETE FROM ax_schedule WHERE name = ?1"},
}};

#undef AX_SQLITE_LIST_STATE
#undef AX_SQLITE_LIST_AT
#undef AX_SQLITE_LIST_AFTER
#undef AX_SQLITE_TASK_COLUMNS
#undef AX_SQLITE_SCHEDULE_COLUMNS

consteval bool sqlite_statements_are_in_order() {
    for (std::size_t i = 0; i < sqlite_statements.size(); ++i)
        if (static_cast<std::size_t>(sqlite_statements[i].name) != i || sqlite_statements[i].sql == nullptr)
            return false;
    return true;
}
static_assert(sqlite_statements_are_in_order());

} // namespace ax::detail

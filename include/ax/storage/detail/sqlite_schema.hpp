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
// ax_count says how many tasks are in each state, so that nobody has to count them. What waits to be claimed first and
// what is in flight are one number there, under state 1: claims and starts, which come once a task, write no count, and
// what is in flight is little enough to be counted when somebody asks. Under the negative of a lane it says how many of
// the ended ones are tasks of workflows, which retention does not count.
// States in statements are literals: with a bound one the planner cannot know that a partial index applies. For the
// same reason some conditions repeat an index's own (`state IN (1,5) AND state = 1`). No index has an IN of more than
// two in its condition: SQLite fills a table with them for each row that it writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ax::detail {

/// The gate of a task: what besides its time keeps it from being claimed. Zero: nothing.
inline constexpr std::int64_t gate_blocked = 1; ///< another task with its route key goes first
inline constexpr std::int64_t gate_held = 2;    ///< waits for a person
inline constexpr std::int64_t gate_aside = 4;   ///< held, and relaxed or set aside: others of its route pass it
inline constexpr std::int64_t gate_limited = 8; ///< waits for a limit (waits_for says in which line)
inline constexpr std::int64_t gate_paused = 16; ///< its workflow is paused

/// Bits of ax_task.flags.
inline constexpr std::int64_t flag_hold_on_interrupt = 1;
inline constexpr std::int64_t flag_lonely = 2;
inline constexpr std::int64_t flag_relaxed = 4;
inline constexpr std::int64_t flag_key_active = 8;  ///< its key is free when it has ended
inline constexpr std::int64_t flag_holds = 32;      ///< there are rows in ax_hold
inline constexpr std::int64_t flag_stop_asked = 64; ///< goes with the attempt
inline constexpr std::int64_t flag_member = 128;    ///< there is a row in ax_member
inline constexpr std::int64_t flag_watched = 256;   ///< a member of another workflow waits for it
inline constexpr std::int64_t flag_head = 512;      ///< it is a workflow, and of its latest generation
inline constexpr std::int64_t flag_awaited = 1024;  ///< there were rows in ax_past for it
inline constexpr std::int64_t flags_for_life = flag_relaxed | flag_key_active | flag_member | flag_watched | flag_head |
                                               flag_awaited; ///< the others are of one attempt

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
    waits_for INTEGER,
    key TEXT,
    former_key TEXT,
    route_key TEXT,
    schedule TEXT,
    retry TEXT,
    tags BLOB,
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
CREATE INDEX ax_task_waiting ON ax_task (waits_for, run_at)
    WHERE waits_for IS NOT NULL;

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
    created INTEGER NOT NULL,
    terms TEXT,
    paused INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE ax_former_key (
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (key, task)
) WITHOUT ROWID;
CREATE TRIGGER ax_task_deleted AFTER DELETE ON ax_task WHEN old.former_key IS NOT NULL
BEGIN
    DELETE FROM ax_former_key WHERE key = old.former_key AND task = old.id;
END;
CREATE TABLE ax_step (
    task INTEGER NOT NULL,
    name TEXT NOT NULL,
    value BLOB,
    PRIMARY KEY (task, name)
) WITHOUT ROWID;

CREATE INDEX ax_schedule_latest ON ax_schedule (last_task);

CREATE TABLE ax_count (
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (lane, state)
) WITHOUT ROWID;

CREATE TABLE ax_limit (
    number INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    capacity INTEGER NOT NULL,
    used INTEGER NOT NULL,
    rate_count INTEGER NOT NULL,
    rate_period INTEGER NOT NULL,
    rate_burst INTEGER NOT NULL,
    rate_at INTEGER NOT NULL,
    rate_last INTEGER NOT NULL,
    rate_taken INTEGER NOT NULL,
    UNIQUE (kind, name)
);

CREATE TABLE ax_need (
    type INTEGER NOT NULL,
    limit_number INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (type, limit_number)
) WITHOUT ROWID;
CREATE INDEX ax_need_limit ON ax_need (limit_number);

CREATE TABLE ax_hold (
    task INTEGER NOT NULL,
    limit_number INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    token INTEGER NOT NULL,
    PRIMARY KEY (task, limit_number)
) WITHOUT ROWID;
CREATE INDEX ax_hold_limit ON ax_hold (limit_number);

CREATE TABLE ax_line (
    number INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    tags BLOB NOT NULL,
    limit_number INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    first INTEGER NOT NULL,
    UNIQUE (lane, tags)
);
CREATE INDEX ax_line_head ON ax_line (limit_number, lane, run_at, first);
CREATE TABLE ax_workflow (
    id INTEGER PRIMARY KEY,
    head INTEGER NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL,
    stopping INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    ready INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    upstream_failed INTEGER NOT NULL,
    started INTEGER,
    last_ended INTEGER NOT NULL
);
CREATE TABLE ax_member (
    task INTEGER PRIMARY KEY,
    workflow INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    rule INTEGER NOT NULL,
    total INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    upstream_failed INTEGER NOT NULL,
    added_by INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    name TEXT NOT NULL
);
CREATE UNIQUE INDEX ax_member_name ON ax_member (workflow, name, generation);
CREATE INDEX ax_member_added ON ax_member (added_by)
    WHERE added_by > 0;
CREATE TABLE ax_edge (
    parent INTEGER NOT NULL,
    child INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX ax_edge_child ON ax_edge (child, parent);
CREATE TABLE ax_await (
    target TEXT NOT NULL,
    task INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (target, task)
) WITHOUT ROWID;
CREATE INDEX ax_await_task ON ax_await (task);
CREATE TABLE ax_past (
    task INTEGER PRIMARY KEY,
    past INTEGER NOT NULL
);
CREATE INDEX ax_past_awaited ON ax_past (past)
    WHERE past > 0;
CREATE INDEX ax_task_aside ON ax_task (schedule, scheduled_at)
    WHERE schedule IS NOT NULL AND (gate & 4) <> 0;

CREATE TABLE ax_backfill (
    number INTEGER PRIMARY KEY,
    schedule TEXT NOT NULL,
    first INTEGER NOT NULL,
    until INTEGER NOT NULL,
    next INTEGER,
    priority INTEGER NOT NULL,
    at_once INTEGER NOT NULL,
    planned INTEGER NOT NULL,
    made INTEGER NOT NULL,
    existed INTEGER NOT NULL,
    unfinished INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created INTEGER NOT NULL
);
CREATE TABLE ax_backfilled (
    backfill INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (backfill, task)
) WITHOUT ROWID;
)sql"},
    {2, R"sql(
CREATE TABLE ax_skip (
    schedule TEXT NOT NULL,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    recorded INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (schedule, number)
) WITHOUT ROWID;
CREATE TABLE ax_skip_count (
    schedule TEXT NOT NULL,
    reason TEXT NOT NULL,
    skipped INTEGER NOT NULL,
    PRIMARY KEY (schedule, reason)
) WITHOUT ROWID;
UPDATE ax_await SET target = 's' || substr(target, instr(target, ' ') + 1) || ' 09' ||
    printf('%018d', 223372036854775808 + CAST(substr(target, 2, instr(target, ' ') - 2) AS INTEGER))
    WHERE substr(target, 1, 1) = 's';
)sql"},
    {3, R"sql(
DROP INDEX ax_task_head;
DROP INDEX ax_task_route;
DROP INDEX ax_task_deadline;
CREATE UNIQUE INDEX ax_task_head ON ax_task (route_key)
    WHERE route_key IS NOT NULL AND state BETWEEN 1 AND 5 AND state <> 4 AND (gate & 1) = 0;
CREATE INDEX ax_task_route ON ax_task (route_key, order_at)
    WHERE route_key IS NOT NULL AND state BETWEEN 1 AND 5 AND state <> 4 AND (gate & 4) = 0;
CREATE INDEX ax_task_deadline ON ax_task (deadline)
    WHERE deadline IS NOT NULL AND (state < 2 OR state = 5);
)sql"},
};

inline constexpr int sqlite_schema_version = sqlite_migrations[std::size(sqlite_migrations) - 1].version;

// What is asked before the schema is known to be there: prepared where it is used, and exempt from the test of plans.
inline constexpr char const* sqlite_count_tables =
    "SELECT count(*), count(CASE WHEN name = 'ax_meta' THEN 1 END) FROM sqlite_master "
    "WHERE type = 'table' AND name IN ('ax_meta', 'ax_type', 'ax_task', 'ax_attempt', 'ax_schedule', 'ax_former_key', "
    "'ax_step', 'ax_count', 'ax_limit', 'ax_need', 'ax_hold', 'ax_line', 'ax_workflow', 'ax_member', 'ax_edge', "
    "'ax_await', 'ax_past', 'ax_backfill', 'ax_backfilled', 'ax_skip', 'ax_skip_count')";
inline constexpr char const* sqlite_read_meta = "SELECT value FROM ax_meta WHERE name = ?1";
inline constexpr char const* sqlite_write_meta = "INSERT OR REPLACE INTO ax_meta (name, value) VALUES (?1, ?2)";

// clang-format off
#define AX_SQLITE_TASK_COLUMNS                                                                                         \
    "id, lane, state, gate, flags, run_at, order_at, version, fence, node, attempts, failures, interruptions, "        \
    "snoozes, unclean_ends, lonely_deaths, created, changed, started, first_started, finished, deadline, "             \
    "scheduled_at, key, route_key, schedule, retry, last_error, result, payload, former_key, tags, "                 \
    "waits_for"
#define AX_SQLITE_SCHEDULE_COLUMNS                                                                                     \
    "name, spec, type, payload, next, last_nominal, last_task, version, fired, skipped, last_skip, created, "          \
    "terms, paused"
#define AX_SQLITE_SKIP_COLUMNS "number, first, last, skipped, recorded, reason"
#define AX_SQLITE_NODE_COLUMNS                                                                                         \
    "t.id, t.state, t.first_started IS NOT NULL, t.lane, t.run_at, t.route_key IS NOT NULL, m.workflow, m.generation, m.kind, m.rule, " \
    "m.total, m.succeeded, m.failed, m.skipped, m.upstream_failed, m.added_by, m.dropped"
#define AX_SQLITE_WORKFLOW_COLUMNS                                                                                     \
    "id, head, paused, stopping, waiting, ready, succeeded, dead, cancelled, skipped, upstream_failed, started, "      \
    "last_ended"
#define AX_SQLITE_NOT_SUPERSEDED                                                                                       \
    "m.dropped = 0 AND NOT EXISTS (SELECT 1 FROM ax_member AS l WHERE l.workflow = m.workflow AND l.name = m.name "    \
    "AND l.generation > m.generation)"
#define AX_SQLITE_LIMIT_COLUMNS                                                                                        \
    "number, kind, name, capacity, used, rate_count, rate_period, rate_burst, rate_at, rate_last, rate_taken"
#define AX_SQLITE_BACKFILL_COLUMNS                                                                                     \
    "number, schedule, first, until, next, priority, at_once, planned, made, existed, unfinished, version, created"
// clang-format on

/// Every statement of the running storage.
enum class sqlite_sql : std::size_t {
    begin_read,
    begin_write,
    commit,
    id_block,
    take_id_block,
    put_id_block,
    count_commit,
    mark_log,
    type_number,
    type_name,
    last_type,
    insert_type,
    pause_type,
    types,
    insert_task,
    insert_claimed,
    task,
    task_by_key,
    key_holder,
    occurrence_holder,
    task_state,
    task_row,
    claim_task,
    claim_promoted,
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
    ask_to_stop,
    asked_to_stop,
    schedule,
    schedules,
    put_schedule,
    delete_schedule,
    skips,
    latest_skip,
    put_skip,
    trim_skips,
    skip_counts,
    put_skip_count,
    drop_skip_count,
    drop_skip_counts,
    task_by_former_key,
    former_holder,
    add_former_key,
    release_key,
    key_taken_from,
    remove_former_key,
    take_key_back,
    replace_task,
    debounce_task,

    keep_step,
    drop_steps,
    steps,
    begin_effects,
    undo_effects,
    keep_effects,
    begin_guest,
    undo_guest,
    keep_guest,
    store_id,
    touch_ids,
    count_tasks,
    counted,
    counted_in_lane,
    in_flight_dispatched,
    in_flight_running,
    dispatched_of_workflow,
    running_of_workflow,
    lane_of,
    ended_succeeded,
    ended_dead,
    ended_cancelled,
    ended_skipped,
    ended_upstream_failed,
    prune_task,
    prune_attempts,
    free_pages,
    all_pages,
    give_back_pages,
    put_note,
    get_note,
    park_task,
    unpark_task,
    claim_parked,
    first_waiters,
    waiting_lane,
    waiting_limit,
    limit_row,
    limit_by_name,
    last_limit,
    limits,
    all_tag_limits,
    insert_limit,
    update_limit,
    drop_limit,
    all_needs,
    needs_of_type,
    put_need,
    drop_needs_of_type,
    drop_needs_of_limit,
    put_hold,
    holds_of,
    drop_holds,
    holders,
    lines_at,
    line_row,
    line_of,
    open_line,
    head_line,
    move_line,
    close_line,
    clear_error,
    promote_child,
    copy_task,
    watch_task,
    pause_member,
    member,
    member_name,
    latest_member,
    children,
    parents,
    unfinished_members,
    failed_members,
    failed_leaf,
    insert_member,
    added_members,
    leave_member,
    put_parents,
    link,
    unlink,
    workflow,
    insert_workflow,
    update_workflow,
    any_await,
    await,
    awaiting,
    awaiting_between,
    drop_awaits,
    workflow_of,
    members_of,
    parents_of,
    occurrence_before,
    occurrence_behind,
    put_past,
    move_past,
    drop_past,
    past_of,
    waiting_for_past,
    mark_awaited,
    hold_back_task,
    move_to_lane,
    task_of_occurrence,
    tasks_aside,
    backfill,
    backfills,
    put_backfill,
    drop_backfill,
    put_backfilled,
    forget_backfilled,
    count_backfilled,
    drop_backfilled,
    pass_await,
    demote_head,
    scheduled_head,
    members_to_prune,
    prune_row,
    drop_member,
    drop_edges_below,
    drop_edges_above,
    drop_awaits_of,
    drop_workflow,
    count_fewer,
    open_parents,
    await_of,
    workflow_name,
    child_ids,
    member_place,
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

#define AX_SQLITE_ENDED(number)                                                                                        \
    "SELECT id, created, finished, flags FROM ax_task WHERE state = " number                                           \
    " AND state NOT IN (1,5) AND lane = ?1 AND id > ?2 ORDER BY id LIMIT ?3"

inline constexpr std::array<sqlite_statement_text, static_cast<std::size_t>(sqlite_sql::count_)> sqlite_statements{{
    {sqlite_sql::begin_read, "BEGIN"},
    {sqlite_sql::begin_write, "BEGIN IMMEDIATE"},
    {sqlite_sql::commit, "COMMIT"},

    {sqlite_sql::id_block, "SELECT value FROM ax_meta WHERE name = 'next_id'"},
    {sqlite_sql::take_id_block, "UPDATE ax_meta SET value = value + ?1 WHERE name = 'next_id'"},
    {sqlite_sql::put_id_block, "UPDATE ax_meta SET value = ?1 WHERE name = 'next_id' AND value = ?2"},

    {sqlite_sql::count_commit, "UPDATE ax_meta SET value = value + 1 WHERE name = 'empty_commits'"},
    {sqlite_sql::mark_log, "INSERT INTO ax_meta (name, value) VALUES ('store_log', 1) "
                           "ON CONFLICT (name) DO UPDATE SET value = value + 1"},

    {sqlite_sql::type_number, "SELECT number FROM ax_type WHERE name = ?1"},
    {sqlite_sql::type_name, "SELECT name FROM ax_type WHERE number = ?1"},
    {sqlite_sql::last_type, "SELECT number FROM ax_type WHERE number > 0 ORDER BY number DESC LIMIT 1"},
    {sqlite_sql::insert_type, "INSERT INTO ax_type (number, name, paused) VALUES (?1, ?2, 0)"},
    {sqlite_sql::pause_type, "UPDATE ax_type SET paused = ?2 WHERE number = ?1"},
    {sqlite_sql::types, "SELECT number, name, paused FROM ax_type WHERE number > 0 ORDER BY number"},

    {sqlite_sql::insert_task,
     "INSERT INTO ax_task (" AX_SQLITE_TASK_COLUMNS ") VALUES (?1, ?2, ?15, ?3, ?4, ?5, ?5, 1, 0, 0, 0, 0, 0, 0, 0, 0, "
     "?6, ?6, NULL, NULL, NULL, ?7, ?8, ?9, ?10, ?11, ?12, NULL, NULL, ?13, NULL, ?14, NULL) ON CONFLICT DO NOTHING"},
    {sqlite_sql::insert_claimed,
     "INSERT INTO ax_task (id, lane, state, gate, flags, run_at, order_at, version, fence, node, attempts, failures, "
     "interruptions, snoozes, unclean_ends, lonely_deaths, created, changed, deadline, scheduled_at, retry, tags, "
     "payload) VALUES (?1, ?2, 2, 0, ?3, ?4, ?4, 2, 2, ?5, 1, 0, 0, 0, 0, 0, ?6, ?6, ?7, ?8, ?9, ?10, ?11)"},
    {sqlite_sql::task, "SELECT " AX_SQLITE_TASK_COLUMNS " FROM ax_task WHERE id = ?1"},
    {sqlite_sql::task_by_key, "SELECT " AX_SQLITE_TASK_COLUMNS " FROM ax_task WHERE key = ?1"},
    {sqlite_sql::key_holder, "SELECT id, state, lane, created, flags FROM ax_task WHERE key = ?1"},
    {sqlite_sql::occurrence_holder, "SELECT id, state, created FROM ax_task WHERE schedule = ?1 AND scheduled_at = ?2"},
    {sqlite_sql::task_state, "SELECT state, scheduled_at FROM ax_task WHERE id = ?1"},
    {sqlite_sql::task_row,
     "SELECT id, lane, state, gate, flags, run_at, order_at, version, fence, node, attempts, failures, interruptions, "
     "snoozes, unclean_ends, lonely_deaths, changed, started, first_started, finished, deadline, route_key, "
     "waits_for FROM ax_task WHERE id = ?1"},

    {sqlite_sql::claim_task,
     "UPDATE ax_task SET state = 2, version = ?2, fence = ?2, node = ?3, attempts = ?4, changed = ?5, "
     "flags = (flags & 1408) | ?6 WHERE id = ?1"},
    {sqlite_sql::claim_promoted,
     "UPDATE ax_task SET state = 2, gate = 0, run_at = ?7, order_at = ?7, version = ?2, fence = ?2, node = ?3, "
     "attempts = ?4, changed = ?5, flags = (flags & 1408) | ?6 WHERE id = ?1"},
    {sqlite_sql::start_task,
     "UPDATE ax_task SET state = 3, version = version + 1, started = ?3, first_started = coalesce(first_started, ?3), "
     "changed = ?3 WHERE id = ?1 AND fence = ?2 AND state = 2"},
    {sqlite_sql::succeed_task,
     "UPDATE ax_task SET state = 4, version = ?2, flags = ?3, unclean_ends = 0, lonely_deaths = 0, changed = ?4, "
     "started = ?5, first_started = ?6, finished = ?4, last_error = NULL, result = ?7 WHERE id = ?1"},
    {sqlite_sql::succeed_plainly,
     "UPDATE ax_task SET state = 4, version = version + 1, flags = flags & 132, unclean_ends = 0, lonely_deaths = 0, "
     "changed = ?3, started = ?4, first_started = coalesce(first_started, ?4), finished = ?3, last_error = NULL, "
     "result = ?5 WHERE id = ?1 AND fence = ?2 AND state IN (2,3) AND route_key IS NULL "
     "AND (flags & 1320) = 0"},
    {sqlite_sql::update_task,
     "UPDATE ax_task SET state = ?2, gate = ?3, flags = ?4, run_at = ?5, order_at = ?6, version = ?7, attempts = ?8, "
     "failures = ?9, interruptions = ?10, snoozes = ?11, unclean_ends = ?12, lonely_deaths = ?13, changed = ?14, "
     "started = ?15, first_started = ?16, finished = ?17, deadline = ?18, last_error = coalesce(?19, last_error) "
     "WHERE id = ?1"},

    {sqlite_sql::route_head, "SELECT id, state, order_at, waits_for FROM ax_task "
                             "WHERE route_key = ?1 AND state BETWEEN 1 AND 5 AND state <> 4 AND (gate & 1) = 0"},
    {sqlite_sql::route_first, "SELECT id FROM ax_task WHERE route_key = ?1 AND state BETWEEN 1 AND 5 AND state <> 4 "
                              "AND (gate & 4) = 0 ORDER BY order_at, id LIMIT 1"},
    {sqlite_sql::block_task, "UPDATE ax_task SET gate = (gate | 1) & ~8, waits_for = NULL WHERE id = ?1"},
    {sqlite_sql::unblock_task, "UPDATE ax_task SET gate = gate & ~1 WHERE id = ?1"},
    {sqlite_sql::alarm_of, "SELECT lane, run_at FROM ax_task WHERE id = ?1 AND state IN (1,5) AND gate = 0"},

    {sqlite_sql::in_flight_elsewhere,
     "SELECT id FROM ax_task WHERE state IN (2,3) AND state NOT IN (1,5) AND node <> ?1"},
    {sqlite_sql::overdue,
     "SELECT id, deadline FROM ax_task WHERE deadline <= ?1 AND (state < 2 OR state = 5) ORDER BY deadline, id "
     "LIMIT 1"},

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

    {sqlite_sql::ask_to_stop, "UPDATE ax_task SET flags = flags | 64 WHERE id = ?1 AND state IN (2,3)"},
    {sqlite_sql::asked_to_stop,
     "SELECT id FROM ax_task WHERE state IN (2,3) AND state NOT IN (1,5) AND (flags & 64) <> 0"},

    {sqlite_sql::schedule, "SELECT " AX_SQLITE_SCHEDULE_COLUMNS " FROM ax_schedule WHERE name = ?1"},
    {sqlite_sql::schedules, "SELECT " AX_SQLITE_SCHEDULE_COLUMNS " FROM ax_schedule WHERE name >= '' ORDER BY name"},
    {sqlite_sql::put_schedule, "INSERT OR REPLACE INTO ax_schedule (" AX_SQLITE_SCHEDULE_COLUMNS ") "
                               "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"},
    {sqlite_sql::delete_schedule, "DELETE FROM ax_schedule WHERE name = ?1"},
    {sqlite_sql::skips, "SELECT " AX_SQLITE_SKIP_COLUMNS " FROM ax_skip WHERE schedule = ?1 ORDER BY number"},
    {sqlite_sql::latest_skip,
     "SELECT " AX_SQLITE_SKIP_COLUMNS " FROM ax_skip WHERE schedule = ?1 ORDER BY number DESC LIMIT 1"},
    {sqlite_sql::put_skip, "INSERT OR REPLACE INTO ax_skip (schedule, " AX_SQLITE_SKIP_COLUMNS ") "
                           "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
    {sqlite_sql::trim_skips, "DELETE FROM ax_skip WHERE schedule = ?1 AND number <= ?2"},
    {sqlite_sql::skip_counts, "SELECT reason, skipped FROM ax_skip_count WHERE schedule = ?1 ORDER BY reason"},
    {sqlite_sql::put_skip_count, "INSERT INTO ax_skip_count (schedule, reason, skipped) VALUES (?1, ?2, ?3) "
                                 "ON CONFLICT (schedule, reason) DO UPDATE SET skipped = skipped + ?3"},
    {sqlite_sql::drop_skip_count, "DELETE FROM ax_skip_count WHERE schedule = ?1 AND reason = ?2"},
    {sqlite_sql::drop_skip_counts, "DELETE FROM ax_skip_count WHERE schedule = ?1"},

    {sqlite_sql::task_by_former_key, "SELECT " AX_SQLITE_TASK_COLUMNS " FROM ax_task WHERE id = "
                                     "(SELECT task FROM ax_former_key WHERE key = ?1 ORDER BY task DESC LIMIT 1)"},
    {sqlite_sql::former_holder, "SELECT id, state, lane, created, flags FROM ax_task WHERE id = "
                                "(SELECT task FROM ax_former_key WHERE key = ?1 ORDER BY task DESC LIMIT 1)"},
    {sqlite_sql::add_former_key, "INSERT OR IGNORE INTO ax_former_key (key, task) "
                                 "SELECT key, id FROM ax_task WHERE id = ?1 AND key IS NOT NULL"},
    {sqlite_sql::release_key, "UPDATE ax_task SET former_key = key, key = NULL WHERE id = ?1 AND key IS NOT NULL"},
    {sqlite_sql::key_taken_from, "SELECT held.id FROM ax_task AS lost CROSS JOIN ax_task AS held "
                                 "WHERE lost.id = ?1 AND held.key = lost.former_key"},
    {sqlite_sql::remove_former_key,
     "DELETE FROM ax_former_key WHERE key = (SELECT former_key FROM ax_task WHERE id = ?1) AND task = ?1"},
    {sqlite_sql::take_key_back,
     "UPDATE ax_task SET key = former_key, former_key = NULL WHERE id = ?1 AND former_key IS NOT NULL"},
    {sqlite_sql::replace_task,
     "UPDATE ax_task SET lane = ?2, gate = ?3, flags = ?4, run_at = ?5, order_at = ?5, version = ?6, failures = 0, "
     "unclean_ends = 0, lonely_deaths = 0, first_started = NULL, deadline = ?7, route_key = ?8, retry = ?9, "
     "last_error = NULL, payload = ?10, tags = ?11 WHERE id = ?1"},
    {sqlite_sql::debounce_task, "UPDATE ax_task SET run_at = ?2, order_at = ?3, version = ?4, deadline = ?5, "
                                "unclean_ends = 0, lonely_deaths = 0, last_error = NULL, payload = ?6 WHERE id = ?1"},

    {sqlite_sql::keep_step, "INSERT OR REPLACE INTO ax_step (task, name, value) SELECT ?1, ?3, ?4 FROM ax_task "
                            "WHERE id = ?1 AND fence = ?2 AND state IN (2,3)"},
    {sqlite_sql::drop_steps, "DELETE FROM ax_step WHERE task = ?1"},
    {sqlite_sql::steps, "SELECT name, value FROM ax_step WHERE task = ?1 ORDER BY name"},
    {sqlite_sql::begin_effects, "SAVEPOINT ax_effects"},
    {sqlite_sql::undo_effects, "ROLLBACK TO ax_effects"},
    {sqlite_sql::keep_effects, "RELEASE ax_effects"},
    {sqlite_sql::begin_guest, "SAVEPOINT ax_guest"},
    {sqlite_sql::undo_guest, "ROLLBACK TO ax_guest"},
    {sqlite_sql::keep_guest, "RELEASE ax_guest"},
    {sqlite_sql::store_id, "SELECT value FROM ax_meta WHERE name = 'store_id'"},
    {sqlite_sql::touch_ids, "UPDATE ax_meta SET value = value WHERE name = 'next_id'"},

    {sqlite_sql::count_tasks, "INSERT INTO ax_count (lane, state, tasks) VALUES (?1, ?2, ?3) "
                              "ON CONFLICT (lane, state) DO UPDATE SET tasks = tasks + ?3"},
    {sqlite_sql::counted, "SELECT lane, state, tasks FROM ax_count WHERE lane > 0 ORDER BY lane, state"},
    {sqlite_sql::counted_in_lane, "SELECT state, tasks, lane FROM ax_count WHERE lane IN (?1, -?1)"},
    {sqlite_sql::in_flight_dispatched,
     "SELECT lane, count(*) FROM ax_task WHERE state = 2 AND state NOT IN (1,5) GROUP BY lane"},
    {sqlite_sql::in_flight_running,
     "SELECT lane, count(*) FROM ax_task WHERE state = 3 AND state NOT IN (1,5) GROUP BY lane"},
    {sqlite_sql::dispatched_of_workflow, "SELECT count(*) FROM ax_task AS t CROSS JOIN ax_member AS m ON m.task = t.id "
                                         "WHERE t.state = 2 AND t.state NOT IN (1,5) AND m.workflow = ?1"},
    {sqlite_sql::running_of_workflow, "SELECT count(*) FROM ax_task AS t CROSS JOIN ax_member AS m ON m.task = t.id "
                                      "WHERE t.state = 3 AND t.state NOT IN (1,5) AND m.workflow = ?1"},
    {sqlite_sql::lane_of, "SELECT lane, flags FROM ax_task WHERE id = ?1"},
    {sqlite_sql::ended_succeeded, AX_SQLITE_ENDED("4")},
    {sqlite_sql::ended_dead, AX_SQLITE_ENDED("6")},
    {sqlite_sql::ended_cancelled, AX_SQLITE_ENDED("7")},
    {sqlite_sql::ended_skipped, AX_SQLITE_ENDED("8")},
    {sqlite_sql::ended_upstream_failed, AX_SQLITE_ENDED("9")},
    {sqlite_sql::prune_task,
     "DELETE FROM ax_task WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM ax_schedule WHERE last_task = ?1) "
     "AND ((flags & 1024) = 0 OR NOT EXISTS (SELECT 1 FROM ax_past WHERE past = ?1 AND past > 0))"},
    {sqlite_sql::prune_attempts, "DELETE FROM ax_attempt WHERE task = ?1"},
    {sqlite_sql::free_pages, "PRAGMA freelist_count"},
    {sqlite_sql::all_pages, "PRAGMA page_count"},
    {sqlite_sql::give_back_pages, "PRAGMA incremental_vacuum(64)"},
    {sqlite_sql::put_note, "INSERT OR REPLACE INTO ax_meta (name, value) VALUES ('note ' || ?1, ?2)"},
    {sqlite_sql::get_note, "SELECT value FROM ax_meta WHERE name = 'note ' || ?1"},
    {sqlite_sql::park_task, "UPDATE ax_task SET gate = gate | 8, waits_for = ?2 WHERE id = ?1"},
    {sqlite_sql::unpark_task, "UPDATE ax_task SET gate = gate & ~8, waits_for = NULL WHERE id = ?1"},
    {sqlite_sql::claim_parked,
     "UPDATE ax_task SET state = 2, version = ?2, fence = ?2, node = ?3, attempts = ?4, changed = ?5, "
     "flags = (flags & 1408) | ?6, gate = gate & ~8, waits_for = NULL WHERE id = ?1"},
    {sqlite_sql::first_waiters, "SELECT id, run_at FROM ax_task WHERE waits_for = ?1 AND state IN (1,5) "
                                "ORDER BY run_at, id LIMIT ?2"},
    {sqlite_sql::waiting_lane, "SELECT lane FROM ax_line WHERE limit_number = ?1 AND lane > ?2 ORDER BY lane LIMIT 1"},
    {sqlite_sql::waiting_limit,
     "SELECT limit_number FROM ax_line WHERE limit_number > ?1 ORDER BY limit_number LIMIT 1"},
    {sqlite_sql::limit_row, "SELECT " AX_SQLITE_LIMIT_COLUMNS " FROM ax_limit WHERE number = ?1"},
    {sqlite_sql::limit_by_name, "SELECT " AX_SQLITE_LIMIT_COLUMNS " FROM ax_limit WHERE kind = ?1 AND name = ?2"},
    {sqlite_sql::last_limit, "SELECT number FROM ax_limit WHERE number > 0 ORDER BY number DESC LIMIT 1"},
    {sqlite_sql::limits, "SELECT " AX_SQLITE_LIMIT_COLUMNS " FROM ax_limit WHERE number > 0 ORDER BY number"},
    {sqlite_sql::all_tag_limits, "SELECT name, number FROM ax_limit WHERE kind = 2 AND capacity + rate_count > 0 "
                                 "ORDER BY name"},
    {sqlite_sql::insert_limit, "INSERT INTO ax_limit (" AX_SQLITE_LIMIT_COLUMNS ") "
                               "VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, 0, 0, 0)"},
    {sqlite_sql::update_limit,
     "UPDATE ax_limit SET capacity = ?2, used = ?3, rate_count = ?4, rate_period = ?5, rate_burst = ?6, rate_at = ?7, "
     "rate_last = ?8, rate_taken = ?9 WHERE number = ?1"},
    {sqlite_sql::drop_limit, "DELETE FROM ax_limit WHERE number = ?1"},
    {sqlite_sql::all_needs,
     "SELECT type, limit_number, amount FROM ax_need WHERE type > 0 ORDER BY type, limit_number"},
    {sqlite_sql::needs_of_type, "SELECT limit_number, amount FROM ax_need WHERE type = ?1 ORDER BY limit_number"},
    {sqlite_sql::put_need, "INSERT OR REPLACE INTO ax_need (type, limit_number, amount) VALUES (?1, ?2, ?3)"},
    {sqlite_sql::drop_needs_of_type, "DELETE FROM ax_need WHERE type = ?1"},
    {sqlite_sql::drop_needs_of_limit, "DELETE FROM ax_need WHERE limit_number = ?1"},
    {sqlite_sql::put_hold,
     "INSERT OR REPLACE INTO ax_hold (task, limit_number, amount, token) VALUES (?1, ?2, ?3, ?4)"},
    {sqlite_sql::holds_of, "SELECT limit_number, amount, token FROM ax_hold WHERE task = ?1 ORDER BY limit_number"},
    {sqlite_sql::drop_holds, "DELETE FROM ax_hold WHERE task = ?1"},
    {sqlite_sql::holders, "SELECT task FROM ax_hold WHERE limit_number = ?1 ORDER BY task LIMIT 16"},
    {sqlite_sql::lines_at, "SELECT number, tags, run_at, first FROM ax_line WHERE limit_number = ?1 AND lane = ?2 "
                           "ORDER BY run_at, first"},
    {sqlite_sql::line_row, "SELECT lane, tags, limit_number, run_at, first FROM ax_line WHERE number = ?1"},
    {sqlite_sql::line_of, "SELECT number, limit_number, run_at, first FROM ax_line WHERE lane = ?1 AND tags = ?2"},
    {sqlite_sql::open_line,
     "INSERT INTO ax_line (lane, tags, limit_number, run_at, first) VALUES (?1, ?2, ?3, ?4, ?5)"},
    {sqlite_sql::head_line, "UPDATE ax_line SET run_at = ?2, first = ?3 WHERE number = ?1"},
    {sqlite_sql::move_line, "UPDATE ax_line SET limit_number = ?2 WHERE number = ?1"},
    {sqlite_sql::close_line, "DELETE FROM ax_line WHERE number = ?1"},

    {sqlite_sql::clear_error, "UPDATE ax_task SET last_error = NULL WHERE id = ?1"},
    {sqlite_sql::promote_child,
     "UPDATE ax_task SET state = 1, gate = ?2, run_at = max(run_at, ?3), order_at = max(run_at, ?3), "
     "version = version + 1, changed = ?3 WHERE id = ?1"},
    {sqlite_sql::copy_task,
     "INSERT INTO ax_task (" AX_SQLITE_TASK_COLUMNS ") SELECT ?2, lane, 0, 0, flags & 644, ?3, ?3, 1, 0, 0, 0, 0, 0, "
     "0, 0, 0, ?3, ?3, NULL, NULL, NULL, CASE WHEN deadline > ?3 THEN deadline END, scheduled_at, NULL, route_key, "
     "NULL, retry, NULL, NULL, payload, NULL, tags, NULL FROM ax_task WHERE id = ?1"},
    {sqlite_sql::watch_task, "UPDATE ax_task SET flags = flags | 256 WHERE id = ?1 AND (flags & 128) = 0"},
    {sqlite_sql::pause_member, "UPDATE ax_task SET gate = (gate & ~16) | ?2 WHERE id = ?1"},
    {sqlite_sql::member, "SELECT " AX_SQLITE_NODE_COLUMNS " FROM ax_member AS m CROSS JOIN ax_task AS t "
                         "ON t.id = m.task WHERE m.task = ?1"},
    {sqlite_sql::member_name, "SELECT name FROM ax_member WHERE task = ?1"},
    {sqlite_sql::latest_member,
     "SELECT task FROM ax_member WHERE workflow = ?1 AND name = ?2 ORDER BY generation DESC LIMIT 1"},
    {sqlite_sql::children, "SELECT " AX_SQLITE_NODE_COLUMNS " FROM ax_edge AS e CROSS JOIN ax_member AS m "
                           "ON m.task = e.child CROSS JOIN ax_task AS t ON t.id = e.child WHERE e.parent = ?1 "
                           "ORDER BY e.child"},
    {sqlite_sql::parents, "SELECT parent FROM ax_edge WHERE child = ?1 ORDER BY parent"},
    {sqlite_sql::unfinished_members,
     "SELECT " AX_SQLITE_NODE_COLUMNS " FROM ax_member AS m CROSS JOIN ax_task AS t ON t.id = m.task "
     "WHERE m.workflow = ?1 AND m.kind <> 1 AND t.state IN (0,1,2,3,5)"},
    {sqlite_sql::failed_members,
     "SELECT " AX_SQLITE_NODE_COLUMNS " FROM ax_member AS m CROSS JOIN ax_task AS t ON t.id = m.task "
     "WHERE m.workflow = ?1 AND m.kind <> 1 AND t.state IN (6,7) AND " AX_SQLITE_NOT_SUPERSEDED},
    {sqlite_sql::failed_leaf,
     "SELECT m.name FROM ax_member AS m CROSS JOIN ax_task AS t ON t.id = m.task "
     "WHERE m.workflow = ?1 AND m.kind <> 1 AND t.state IN (6,7,9) AND " AX_SQLITE_NOT_SUPERSEDED
     " AND NOT EXISTS (SELECT 1 FROM ax_edge AS e CROSS JOIN ax_member AS c ON c.task = e.child "
     "WHERE e.parent = m.task AND c.workflow = m.workflow) LIMIT 1"},
    {sqlite_sql::insert_member,
     "INSERT INTO ax_member (task, workflow, generation, kind, rule, total, succeeded, failed, skipped, "
     "upstream_failed, added_by, dropped, name) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0, ?8, 0, ?7)"},
    {sqlite_sql::added_members,
     "SELECT " AX_SQLITE_NODE_COLUMNS " FROM ax_member AS m CROSS JOIN ax_task AS t ON t.id = m.task "
     "WHERE m.added_by = ?1 AND m.added_by > 0 AND m.dropped = 0"},
    {sqlite_sql::leave_member, "UPDATE ax_member SET dropped = 1 WHERE task = ?1"},
    {sqlite_sql::put_parents, "UPDATE ax_member SET total = ?2, succeeded = ?3, failed = ?4, skipped = ?5, "
                              "upstream_failed = ?6 WHERE task = ?1"},
    {sqlite_sql::link, "INSERT OR IGNORE INTO ax_edge (parent, child) VALUES (?1, ?2)"},
    {sqlite_sql::unlink, "DELETE FROM ax_edge WHERE parent = ?1 AND child = ?2"},
    {sqlite_sql::workflow, "SELECT " AX_SQLITE_WORKFLOW_COLUMNS " FROM ax_workflow WHERE id = ?1"},
    {sqlite_sql::insert_workflow,
     "INSERT INTO ax_workflow (id, head, name, paused, stopping, waiting, ready, succeeded, dead, cancelled, skipped, "
     "upstream_failed, started, last_ended) VALUES (?1, ?1, ?2, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0)"},
    {sqlite_sql::update_workflow,
     "UPDATE ax_workflow SET head = ?2, paused = ?3, stopping = ?4, waiting = ?5, ready = ?6, succeeded = ?7, "
     "dead = ?8, cancelled = ?9, skipped = ?10, upstream_failed = ?11, started = ?12, last_ended = ?13 WHERE id = ?1"},
    {sqlite_sql::any_await, "SELECT 1 FROM ax_await WHERE target > '' LIMIT 1"},
    {sqlite_sql::await, "INSERT OR IGNORE INTO ax_await (target, task, name) VALUES (?1, ?2, ?3)"},
    {sqlite_sql::awaiting, "SELECT task, name FROM ax_await WHERE target = ?1 ORDER BY task"},
    {sqlite_sql::awaiting_between,
     "SELECT target, task FROM ax_await WHERE target >= ?1 AND target < ?2 ORDER BY target, task"},
    {sqlite_sql::drop_awaits, "DELETE FROM ax_await WHERE target = ?1"},
    {sqlite_sql::workflow_of,
     "SELECT w.id, w.head, w.paused, w.stopping, w.waiting, w.ready, w.succeeded, w.dead, w.cancelled, w.skipped, "
     "w.upstream_failed, w.started, w.last_ended, w.name, h.state, h.finished, f.created, f.key, f.former_key "
     "FROM ax_member AS m CROSS JOIN ax_workflow AS w ON w.id = m.workflow CROSS JOIN ax_task AS h ON h.id = w.head "
     "CROSS JOIN ax_task AS f ON f.id = w.id WHERE m.task = ?1"},
    {sqlite_sql::members_of,
     "SELECT m.task, m.name, m.generation, m.kind, m.rule, t.lane, t.state, t.created, t.first_started, t.finished, "
     "m.dropped, m.added_by, t.deadline "
     "FROM ax_member AS m CROSS JOIN ax_task AS t ON t.id = m.task "
     "WHERE m.workflow = ?1 AND m.name > ?2 ORDER BY m.name, m.generation"},
    {sqlite_sql::parents_of,
     "SELECT t.id, m.name, t.state, t.result FROM ax_edge AS e CROSS JOIN ax_task AS t ON t.id = e.parent "
     "LEFT JOIN ax_member AS m ON m.task = e.parent WHERE e.child = ?1 ORDER BY e.parent"},
    {sqlite_sql::occurrence_before,
     "SELECT id, state, scheduled_at FROM ax_task WHERE schedule = ?1 AND scheduled_at < ?2 "
     "ORDER BY scheduled_at DESC LIMIT 1"},
    {sqlite_sql::occurrence_behind, "SELECT id, state FROM ax_task WHERE schedule = ?1 AND scheduled_at > ?2 "
                                    "ORDER BY scheduled_at LIMIT 1"},
    {sqlite_sql::put_past, "INSERT OR REPLACE INTO ax_past (task, past) VALUES (?1, ?2)"},
    {sqlite_sql::move_past, "UPDATE ax_past SET past = ?2 WHERE task = ?1"},
    {sqlite_sql::drop_past, "DELETE FROM ax_past WHERE task = ?1"},
    {sqlite_sql::past_of, "SELECT past FROM ax_past WHERE task = ?1"},
    {sqlite_sql::waiting_for_past, "SELECT task FROM ax_past WHERE past = ?1 AND past > 0 ORDER BY task"},
    {sqlite_sql::mark_awaited, "UPDATE ax_task SET flags = flags | 1024 WHERE id = ?1"},
    {sqlite_sql::hold_back_task, "UPDATE ax_task SET state = ?2, gate = ?3 WHERE id = ?1"},
    {sqlite_sql::move_to_lane, "UPDATE ax_task SET lane = ?2 WHERE id = ?1"},
    {sqlite_sql::task_of_occurrence,
     "SELECT " AX_SQLITE_TASK_COLUMNS " FROM ax_task WHERE schedule = ?1 AND scheduled_at = ?2"},
    {sqlite_sql::tasks_aside, "SELECT " AX_SQLITE_TASK_COLUMNS " FROM ax_task INDEXED BY ax_task_aside "
                              "WHERE schedule = ?1 AND schedule IS NOT NULL AND (gate & 4) <> 0 "
                              "AND scheduled_at >= ?2 AND scheduled_at < ?3 ORDER BY scheduled_at LIMIT ?4"},
    {sqlite_sql::backfill, "SELECT " AX_SQLITE_BACKFILL_COLUMNS " FROM ax_backfill WHERE number = ?1"},
    {sqlite_sql::backfills, "SELECT " AX_SQLITE_BACKFILL_COLUMNS " FROM ax_backfill WHERE number > 0 ORDER BY number"},
    {sqlite_sql::put_backfill, "INSERT OR REPLACE INTO ax_backfill (" AX_SQLITE_BACKFILL_COLUMNS ") "
                               "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"},
    {sqlite_sql::drop_backfill, "DELETE FROM ax_backfill WHERE number = ?1"},
    {sqlite_sql::put_backfilled, "INSERT OR IGNORE INTO ax_backfilled (backfill, task) VALUES (?1, ?2)"},
    {sqlite_sql::forget_backfilled, "DELETE FROM ax_backfilled WHERE backfill = ?1 AND NOT EXISTS "
                                    "(SELECT 1 FROM ax_task WHERE id = ax_backfilled.task AND state IN (0,1,2,3,5))"},
    {sqlite_sql::count_backfilled, "SELECT count(*) FROM ax_backfilled WHERE backfill = ?1"},
    {sqlite_sql::drop_backfilled, "DELETE FROM ax_backfilled WHERE backfill = ?1"},
    {sqlite_sql::pass_await, "UPDATE ax_await SET task = ?2 WHERE task = ?1"},
    {sqlite_sql::demote_head, "UPDATE ax_task SET flags = flags & ~512 WHERE id = ?1"},
    {sqlite_sql::scheduled_head, "SELECT 1 FROM ax_member AS m CROSS JOIN ax_schedule AS s ON s.last_task = m.task "
                                 "WHERE m.workflow = ?1 AND m.name = '' LIMIT 1"},
    {sqlite_sql::members_to_prune,
     "SELECT m.task, m.name, m.kind, t.lane, t.state, m.dropped FROM ax_member AS m CROSS JOIN ax_task AS t "
     "ON t.id = m.task "
     "WHERE m.workflow = ?1 AND m.task <> ?2 ORDER BY m.name, m.generation LIMIT ?3"},
    {sqlite_sql::prune_row, "DELETE FROM ax_task WHERE id = ?1"},
    {sqlite_sql::drop_member, "DELETE FROM ax_member WHERE task = ?1"},
    {sqlite_sql::drop_edges_below, "DELETE FROM ax_edge WHERE parent = ?1"},
    {sqlite_sql::drop_edges_above, "DELETE FROM ax_edge WHERE child = ?1"},
    {sqlite_sql::drop_awaits_of, "DELETE FROM ax_await WHERE task = ?1"},
    {sqlite_sql::drop_workflow, "DELETE FROM ax_workflow WHERE id = ?1"},
    {sqlite_sql::count_fewer,
     "UPDATE ax_workflow SET succeeded = succeeded - ?2, dead = dead - ?3, cancelled = cancelled - ?4, "
     "skipped = skipped - ?5, upstream_failed = upstream_failed - ?6 WHERE id = ?1"},
    {sqlite_sql::open_parents,
     "SELECT p.id, m.name FROM ax_edge AS e CROSS JOIN ax_task AS p ON p.id = e.parent LEFT JOIN ax_member AS m ON "
     "m.task = e.parent WHERE e.child = ?1 AND p.state IN (0,1,2,3,5) ORDER BY e.parent LIMIT 16"},
    {sqlite_sql::await_of, "SELECT target, name FROM ax_await WHERE task = ?1 ORDER BY task LIMIT 1"},
    {sqlite_sql::workflow_name, "SELECT w.name, w.head, w.paused FROM ax_member AS m CROSS JOIN ax_workflow AS w ON "
                                "w.id = m.workflow WHERE m.task = ?1"},
    {sqlite_sql::child_ids, "SELECT child FROM ax_edge WHERE parent = ?1 ORDER BY child"},
    {sqlite_sql::member_place, "SELECT workflow, kind FROM ax_member WHERE task = ?1"},
}};

#undef AX_SQLITE_LIST_STATE
#undef AX_SQLITE_LIST_AT
#undef AX_SQLITE_LIST_AFTER
#undef AX_SQLITE_ENDED
#undef AX_SQLITE_TASK_COLUMNS
#undef AX_SQLITE_SCHEDULE_COLUMNS
#undef AX_SQLITE_SKIP_COLUMNS
#undef AX_SQLITE_LIMIT_COLUMNS
#undef AX_SQLITE_NODE_COLUMNS
#undef AX_SQLITE_WORKFLOW_COLUMNS
#undef AX_SQLITE_NOT_SUPERSEDED
#undef AX_SQLITE_BACKFILL_COLUMNS

consteval bool sqlite_statements_are_in_order() {
    for (std::size_t i = 0; i < sqlite_statements.size(); ++i)
        if (static_cast<std::size_t>(sqlite_statements[i].name) != i || sqlite_statements[i].sql == nullptr)
            return false;
    return true;
}
static_assert(sqlite_statements_are_in_order());

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// What cannot be in a store, how it is found, and what is done about it. One entry of the table below for each kind:
// what is to be checked besides is a further entry.
//
// Searching reads the whole store, a slice of ids at a time and each slice in a transaction of its own, so that no
// reader is open for long. Between search and repair the store goes on, so a repair is a write that repeats the
// condition; where nothing matches any more, nothing is done.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_counts.hpp"
#include "ax/storage/detail/sqlite_lines.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

enum class sqlite_extent : std::uint8_t {
    slices, ///< asked for one slice of task ids after another
    once    ///< asked for once
};

struct sqlite_check {
    char const* kind;
    sqlite_extent extent;
    /// Gives the task (0: of no single one), a text, and where more than a task is needed to find it again, a number.
    /// Bound: ?1 < task <= ?2 (slices only), ?3 the most rows wanted.
    char const* find;
    /// Bound: ?1 the task, ?2 the number, ?3 the present instant. Null: only its route key is decided anew, which is
    /// done in any case.
    char const* repair;
};

// NOT INDEXED: what the rows say, whatever an index says of them.
#define AX_SQLITE_TASKS(text, condition)                                                                               \
    "SELECT t.id, " text " FROM ax_task AS t NOT INDEXED WHERE t.id > ?1 AND t.id <= ?2 AND " condition " LIMIT ?3"
#define AX_SQLITE_FIX(change, condition)                                                                               \
    "UPDATE ax_task AS t SET " change ", version = version + 1 WHERE id = ?1 AND " condition
#define AX_SQLITE_LINE "route_key = t.route_key AND state BETWEEN 1 AND 5 AND state <> 4"
#define AX_SQLITE_FIRST                                                                                                \
    "(SELECT id FROM ax_task WHERE " AX_SQLITE_LINE " AND (gate & 4) = 0 ORDER BY order_at, id LIMIT 1)"

// As limit_state::title() has it, for column `number`.
#define AX_SQLITE_TITLE(number_wanted)                                                                                 \
    "coalesce((SELECT CASE kind WHEN 1 THEN 'task type \"' WHEN 2 THEN 'tag \"' ELSE 'resource \"' END || name || "    \
    "'\"' "                                                                                                            \
    "FROM ax_limit WHERE number = " number_wanted "), 'that does not exist')"

#define AX_SQLITE_NO_STATE "(typeof(t.state) <> 'integer' OR t.state NOT BETWEEN 0 AND 9)"
#define AX_SQLITE_NO_TYPE "t.lane > 3 AND NOT EXISTS (SELECT 1 FROM ax_type WHERE number = t.lane / 4)"
#define AX_SQLITE_NO_OWNER "t.state IN (2,3) AND t.node = 0"
#define AX_SQLITE_FINISHED "t.state IN (0,1,2,3,5) AND t.finished IS NOT NULL"
#define AX_SQLITE_UNFINISHED "t.state IN (4,6,7,8,9) AND t.finished IS NULL"
#define AX_SQLITE_GATE "t.state IN (2,3,4,6,7,8,9) AND t.gate <> 0"
#define AX_SQLITE_BLOCKED "t.state IN (1,5) AND (t.gate & 1) <> 0 AND t.route_key IS NULL"
#define AX_SQLITE_KEY_KEPT                                                                                             \
    "t.key IS NOT NULL AND (t.former_key IS NOT NULL OR (t.state IN (4,6,7,8,9) AND (t.flags & 8) <> 0))"
#define AX_SQLITE_KEY_LOST                                                                                             \
    "t.former_key IS NOT NULL AND t.key IS NULL AND NOT EXISTS "                                                       \
    "(SELECT 1 FROM ax_former_key WHERE key = t.former_key AND task = t.id)"
#define AX_SQLITE_WAITING                                                                                              \
    "(((t.gate & 8) <> 0) <> (t.waits_for IS NOT NULL) OR (t.waits_for IS NOT NULL AND (t.state NOT IN (1,5) OR "      \
    "(t.gate & 7) <> 0 OR NOT EXISTS (SELECT 1 FROM ax_line AS l WHERE l.number = t.waits_for AND l.lane = t.lane "    \
    "AND EXISTS (SELECT 1 FROM ax_limit WHERE number = l.limit_number)))))"
#define AX_SQLITE_HOLDS                                                                                                \
    "t.state IN (2,3) AND (t.flags & 32) <> 0 AND NOT EXISTS (SELECT 1 FROM ax_hold WHERE task = t.id)"
#define AX_SQLITE_HOLDER "(SELECT 1 FROM ax_task WHERE id = h.task AND state IN (2,3) AND (flags & 32) <> 0)"
#define AX_SQLITE_HELD "(SELECT coalesce(sum(amount), 0) FROM ax_hold WHERE limit_number = ax_limit.number)"
#define AX_SQLITE_IN_LINE                                                                                              \
    "(SELECT 1 FROM ax_task WHERE waits_for = l.number AND state IN (1,5) AND (gate & 15) = 8 AND "
#define AX_SQLITE_FENCE "t.fence > t.version"
#define AX_SQLITE_PAST(text, condition)                                                                                \
    "SELECT p.task, '" text "' FROM ax_past AS p WHERE p.task > ?1 AND p.task <= ?2 AND " condition " LIMIT ?3"
#define AX_SQLITE_AWAITED "SELECT 1 FROM ax_task WHERE id = p.past AND state NOT IN (4,8)"
#define AX_SQLITE_PAST_UNSEEN "p.past > 0 AND EXISTS (" AX_SQLITE_AWAITED " AND (flags & 1024) = 0)"
#define AX_SQLITE_PAST_DONE "p.past > 0 AND NOT EXISTS (" AX_SQLITE_AWAITED ")"
#define AX_SQLITE_PAST_FREE                                                                                            \
    "p.past = 0 AND EXISTS (SELECT 1 FROM ax_task WHERE id = p.task AND state = 0 AND (gate & 2) = 0)"
#define AX_SQLITE_PAST_STALE "NOT EXISTS (SELECT 1 FROM ax_task WHERE id = p.task AND state = 0)"
#define AX_SQLITE_ATTEMPTS "t.attempts - (t.state IN (2,3)) < (SELECT max(number) FROM ax_attempt WHERE task = t.id)"
// A task without a row in ax_member is of no workflow; the latest head of one has another flag besides.
#define AX_SQLITE_OF_WORKFLOW                                                                                          \
    "coalesce((SELECT 128 + 512 * (w.head = t.id) FROM ax_member AS m CROSS JOIN ax_workflow AS w ON "                 \
    "w.id = m.workflow WHERE m.task = t.id), 0)"
#define AX_SQLITE_FLAGS_OF_WORKFLOW "(t.flags & 640) <> " AX_SQLITE_OF_WORKFLOW
// What nothing would let go any more is dead.
#define AX_SQLITE_ABANDONED "CASE WHEN state = 0 AND " AX_SQLITE_OF_WORKFLOW " = 0 THEN "
#define AX_SQLITE_FIXED_FLAGS                                                                                          \
    "flags = (flags & ~640) | " AX_SQLITE_OF_WORKFLOW ", finished = " AX_SQLITE_ABANDONED "?3 ELSE finished END, "     \
    "last_error = " AX_SQLITE_ABANDONED "'its workflow is gone' ELSE last_error END, "                                 \
    "state = " AX_SQLITE_ABANDONED "6 ELSE state END"
#define AX_SQLITE_NO_MEMBER                                                                                            \
    "(NOT EXISTS (SELECT 1 FROM ax_task WHERE id = m.task) OR "                                                        \
    "NOT EXISTS (SELECT 1 FROM ax_workflow WHERE id = m.workflow))"
#define AX_SQLITE_NO_EDGE                                                                                              \
    "(NOT EXISTS (SELECT 1 FROM ax_task WHERE id = e.parent) OR NOT EXISTS (SELECT 1 FROM ax_member WHERE "            \
    "task = e.child))"
#define AX_SQLITE_NO_AWAIT "NOT EXISTS (SELECT 1 FROM ax_member WHERE task = a.task AND kind = 2)"
#define AX_SQLITE_MEMBERS(text, condition)                                                                             \
    "SELECT m.task, " text " FROM ax_member AS m CROSS JOIN ax_task AS t ON t.id = m.task "                            \
    "WHERE m.task > ?1 AND m.task <= ?2 AND m.kind <> 1 AND " condition " LIMIT ?3"
#define AX_SQLITE_PARENTS                                                                                              \
    "(SELECT count(*) FROM ax_edge AS e CROSS JOIN ax_task AS p ON p.id = e.parent WHERE e.child = m.task AND "        \
    "p.state IN "
// Parents that were pruned had ended: they are in the counts alone. Who waits has perhaps one that is not there yet.
#define AX_SQLITE_MISCOUNTED_PARENTS                                                                                   \
    "(m.succeeded < " AX_SQLITE_PARENTS "(4)) OR m.failed < " AX_SQLITE_PARENTS "(6,7))"                               \
    " OR m.skipped < " AX_SQLITE_PARENTS "(8)) OR m.upstream_failed < " AX_SQLITE_PARENTS "(9))"                       \
    " OR m.total - m.succeeded - m.failed - m.skipped - m.upstream_failed - " AX_SQLITE_PARENTS "(0,1,2,3,5))"         \
    " NOT BETWEEN 0 AND (m.kind = 2))"
#define AX_SQLITE_COUNTED_PARENTS                                                                                      \
    "total = " AX_SQLITE_PARENTS "(0,1,2,3,4,5,6,7,8,9)) + EXISTS (SELECT 1 FROM ax_await WHERE task = ?1), "          \
    "succeeded = " AX_SQLITE_PARENTS "(4)), failed = " AX_SQLITE_PARENTS "(6,7)), "                                    \
    "skipped = " AX_SQLITE_PARENTS "(8)), upstream_failed = " AX_SQLITE_PARENTS "(9))"
// What decide() says before all parents have ended, rule by rule; where they have, no rule waits.
#define AX_SQLITE_STUCK                                                                                                \
    "t.state = 0 AND (m.succeeded + m.failed + m.skipped + m.upstream_failed >= m.total OR CASE m.rule "               \
    "WHEN 0 THEN m.failed + m.upstream_failed WHEN 1 THEN m.succeeded + m.skipped WHEN 3 THEN m.skipped "              \
    "WHEN 4 THEN m.succeeded + m.failed + m.upstream_failed WHEN 5 THEN m.failed + m.upstream_failed "                 \
    "WHEN 6 THEN m.succeeded WHEN 7 THEN m.succeeded + m.failed WHEN 8 THEN m.failed + m.upstream_failed "             \
    "WHEN 9 THEN m.failed + m.upstream_failed WHEN 10 THEN m.skipped WHEN 11 THEN 1 ELSE 0 END > 0)"
#define AX_SQLITE_MEMBER_COUNTS                                                                                        \
    "(SELECT count(CASE WHEN t.state = 0 THEN 1 END), count(CASE WHEN t.state IN (1,2,3,5) THEN 1 END), "              \
    "count(CASE WHEN t.state = 4 THEN 1 END), count(CASE WHEN t.state = 6 THEN 1 END), "                               \
    "count(CASE WHEN t.state = 7 THEN 1 END), count(CASE WHEN t.state = 8 THEN 1 END), "                               \
    "count(CASE WHEN t.state = 9 THEN 1 END) FROM ax_member AS m CROSS JOIN ax_task AS t ON t.id = m.task "            \
    "WHERE m.workflow = w.id AND m.kind <> 1 AND m.dropped = 0 AND NOT EXISTS (SELECT 1 FROM ax_member AS l WHERE "    \
    "l.workflow = m.workflow AND l.name = m.name AND l.generation > m.generation))"
#define AX_SQLITE_WORKFLOW_COUNTS "(waiting, ready, succeeded, dead, cancelled, skipped, upstream_failed)"
#define AX_SQLITE_WORKFLOWS(text, condition)                                                                           \
    "SELECT w.id, " text " FROM ax_workflow AS w WHERE w.id > ?1 AND w.id <= ?2 AND " condition " LIMIT ?3"
#define AX_SQLITE_HEAD_STATE "(SELECT state FROM ax_task WHERE id = w.head)"
#define AX_SQLITE_WRONG_HEAD                                                                                           \
    "((" AX_SQLITE_HEAD_STATE " = 0 AND waiting + ready = 0) OR "                                                      \
    "(" AX_SQLITE_HEAD_STATE " IN (6,7,8,9) AND stopping = 0 AND waiting + ready > 0))"
#define AX_SQLITE_PAUSED                                                                                               \
    "coalesce((SELECT w.paused FROM ax_member AS m CROSS JOIN ax_workflow AS w ON w.id = m.workflow WHERE "            \
    "m.task = t.id AND t.state <> 0), 0)"
#define AX_SQLITE_NOT_AS_PAUSED "t.state IN (0,1,5) AND ((t.gate & 16) <> 0) <> " AX_SQLITE_PAUSED

inline constexpr sqlite_check sqlite_checks[] = {
    {"state", sqlite_extent::slices,
     AX_SQLITE_TASKS("'its state is ' || t.state || ', which does not exist'", AX_SQLITE_NO_STATE),
     AX_SQLITE_FIX("state = 6, gate = 0, finished = ?3, changed = ?3, last_error = 'its state was ' || state || "
                   "', which does not exist'",
                   AX_SQLITE_NO_STATE " AND ?2 IS NOT NULL")},
    {"type", sqlite_extent::slices,
     AX_SQLITE_TASKS("'its type has the number ' || t.lane / 4 || ', and no name'", AX_SQLITE_NO_TYPE),
     "INSERT INTO ax_type (number, name, paused) SELECT t.lane / 4, 'unknown type ' || t.lane / 4, 0 "
     "FROM ax_task AS t WHERE t.id = ?1 AND " AX_SQLITE_NO_TYPE},
    {"owner", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it is in flight, and no node has claimed it'", AX_SQLITE_NO_OWNER),
     AX_SQLITE_FIX("state = 1, attempts = max(attempts - 1, 0), interruptions = interruptions + 1, changed = ?3, "
                   "flags = flags & 1932",
                   AX_SQLITE_NO_OWNER " AND ?2 IS NOT NULL")},
    {"finished", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it has not ended, and has a time at which it did'", AX_SQLITE_FINISHED),
     AX_SQLITE_FIX("finished = NULL", AX_SQLITE_FINISHED)},
    {"unfinished", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it has ended, and has no time at which it did'", AX_SQLITE_UNFINISHED),
     AX_SQLITE_FIX("finished = changed", AX_SQLITE_UNFINISHED)},
    {"gate", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it has ended or is in flight, and is held or blocked'", AX_SQLITE_GATE),
     AX_SQLITE_FIX("gate = 0", AX_SQLITE_GATE)},
    {"blocked", sqlite_extent::slices, AX_SQLITE_TASKS("'it waits for its route key, and has none'", AX_SQLITE_BLOCKED),
     AX_SQLITE_FIX("gate = gate & ~1", AX_SQLITE_BLOCKED)},
    // One finding for each route key is enough: the repair is of the whole.
    {"route", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it is the first of its route key, and blocked'",
                     "t.state IN (1,5) AND (t.gate & 1) <> 0 AND t.route_key IS NOT NULL AND NOT EXISTS "
                     "(SELECT 1 FROM ax_task WHERE " AX_SQLITE_LINE " AND (gate & 1) = 0) AND t.id = " AX_SQLITE_FIRST),
     nullptr},
    {"route", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it is not the first of its route key, and not blocked'",
                     "t.state IN (1,5) AND (t.gate & 1) = 0 AND t.route_key IS NOT NULL AND (t.id <> " AX_SQLITE_FIRST
                     " OR EXISTS (SELECT 1 FROM ax_task WHERE " AX_SQLITE_LINE " AND (gate & 5) = 0 AND id < t.id))"),
     nullptr},
    {"fence", sqlite_extent::slices,
     AX_SQLITE_TASKS("'its fence is above its version: no end of its attempt would be taken'", AX_SQLITE_FENCE),
     "UPDATE ax_task AS t SET version = fence WHERE id = ?1 AND " AX_SQLITE_FENCE},
    {"attempts", sqlite_extent::slices,
     AX_SQLITE_TASKS("'its history has more attempts than it counts'", AX_SQLITE_ATTEMPTS),
     AX_SQLITE_FIX("attempts = (SELECT max(number) FROM ax_attempt WHERE task = t.id) + (state IN (2,3))",
                   AX_SQLITE_ATTEMPTS)},
    {"key", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it has lost its key, and holds it all the same'", AX_SQLITE_KEY_KEPT),
     AX_SQLITE_FIX("former_key = key, key = NULL", AX_SQLITE_KEY_KEPT)},
    {"key", sqlite_extent::slices,
     AX_SQLITE_TASKS("'the key that it has lost does not lead to it'", AX_SQLITE_KEY_LOST),
     "INSERT INTO ax_former_key (key, task) SELECT t.former_key, t.id FROM ax_task AS t WHERE t.id = ?1 "
     "AND " AX_SQLITE_KEY_LOST},
    {"former-key", sqlite_extent::once,
     "SELECT f.task, 'the store says that it had a key, and it had not' FROM ax_former_key AS f WHERE NOT EXISTS "
     "(SELECT 1 FROM "
     "ax_task WHERE id = f.task AND former_key = f.key AND key IS NULL) AND ?1 < ?2 LIMIT ?3",
     "DELETE FROM ax_former_key WHERE task = ?1 AND NOT EXISTS (SELECT 1 FROM ax_task WHERE id = ?1 AND "
     "former_key = ax_former_key.key AND key IS NULL)"},
    {"waiting", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it is said to wait for a limit, and cannot: there is no such limit, or it is not its turn'",
                     AX_SQLITE_WAITING),
     AX_SQLITE_FIX("gate = gate & ~8, waits_for = NULL", AX_SQLITE_WAITING)},
    {"line", sqlite_extent::once,
     "SELECT 0, 'another task than the one noted is the first of those that wait for the limit of '"
     " || " AX_SQLITE_TITLE(
         "l.limit_number") ", l.number FROM ax_line AS l WHERE (NOT EXISTS " AX_SQLITE_IN_LINE
                           "id = l.first AND run_at = l.run_at) OR EXISTS " AX_SQLITE_IN_LINE
                           "(run_at < l.run_at OR (run_at = l.run_at AND id < l.first)))) AND ?1 < ?2 LIMIT ?3",
     nullptr}, // see sqlite_repairs
    {"holds", sqlite_extent::slices,
     AX_SQLITE_TASKS("'it is said to take up a limit, and takes up none'", AX_SQLITE_HOLDS),
     AX_SQLITE_FIX("flags = flags & ~32", AX_SQLITE_HOLDS)},
    {"hold", sqlite_extent::slices,
     "SELECT h.task, 'it takes up the limit of ' || " AX_SQLITE_TITLE(
         "h.limit_number") " || ', and is not in flight', h.limit_number FROM ax_hold AS h "
                           "WHERE h.task > ?1 AND h.task <= ?2 AND NOT EXISTS " AX_SQLITE_HOLDER " LIMIT ?3",
     "DELETE FROM ax_hold AS h WHERE h.task = ?1 AND h.limit_number = ?2 AND NOT EXISTS " AX_SQLITE_HOLDER},
    // Behind the holds: what they come to is what is in use.
    {"limit", sqlite_extent::once,
     "SELECT 0, 'the limit of ' || " AX_SQLITE_TITLE(
         "ax_limit.number") " || ' counts ' || used || ' in use, and ' || " AX_SQLITE_HELD
                            " || ' are', number FROM ax_limit WHERE used <> " AX_SQLITE_HELD " AND ?1 < ?2 LIMIT ?3",
     "UPDATE ax_limit SET used = " AX_SQLITE_HELD " WHERE number = ?2 AND ?1 = 0 AND used <> " AX_SQLITE_HELD},
    {"attempt", sqlite_extent::slices,
     "SELECT a.task, 'attempt ' || a.number || ' is of no task', a.number FROM ax_attempt AS a "
     "WHERE a.task > ?1 AND a.task <= ?2 AND NOT EXISTS (SELECT 1 FROM ax_task WHERE id = a.task) LIMIT ?3",
     "DELETE FROM ax_attempt WHERE task = ?1 AND number = ?2 AND NOT EXISTS (SELECT 1 FROM ax_task WHERE id = ?1)"},
    {"step", sqlite_extent::slices,
     "SELECT s.task, 'step ' || s.name || ' is of no task' FROM ax_step AS s WHERE s.task > ?1 AND s.task <= ?2 "
     "AND NOT EXISTS (SELECT 1 FROM ax_task WHERE id = s.task) GROUP BY s.task LIMIT ?3",
     "DELETE FROM ax_step WHERE task = ?1 AND ?2 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ax_task WHERE id = ?1)"},
    // In this order: the second makes work for the third, and that for the last.
    {"past", sqlite_extent::slices,
     AX_SQLITE_PAST("it waits for the occurrence before it, which does not know of that", AX_SQLITE_PAST_UNSEEN),
     "UPDATE ax_task SET flags = flags | 1024 WHERE id = (SELECT past FROM ax_past AS p WHERE p.task = ?1 "
     "AND " AX_SQLITE_PAST_UNSEEN ")"},
    {"past", sqlite_extent::slices,
     AX_SQLITE_PAST("it waits for the occurrence before it, which is done or not there", AX_SQLITE_PAST_DONE),
     "UPDATE ax_past AS p SET past = 0 WHERE p.task = ?1 AND " AX_SQLITE_PAST_DONE},
    {"past", sqlite_extent::slices,
     AX_SQLITE_PAST("it waits for an occurrence before it, and there is none", AX_SQLITE_PAST_FREE),
     "UPDATE ax_task SET state = 1, gate = (route_key IS NOT NULL), changed = ?3, version = version + 1 WHERE id = "
     "(SELECT p.task FROM ax_past AS p WHERE p.task = ?1 AND ?2 IS NOT NULL AND " AX_SQLITE_PAST_FREE ")"},
    {"past", sqlite_extent::slices,
     AX_SQLITE_PAST("it is said to wait for the occurrence before it, and does not", AX_SQLITE_PAST_STALE),
     "DELETE FROM ax_past AS p WHERE p.task = ?1 AND " AX_SQLITE_PAST_STALE},
    // Workflows: first the rows, then what they count, then what follows from that, which is left to their rules.
    {"member", sqlite_extent::slices,
     "SELECT m.task, 'it is said to be of a workflow, and one of both is not there' FROM ax_member AS m "
     "WHERE m.task > ?1 AND m.task <= ?2 AND " AX_SQLITE_NO_MEMBER " LIMIT ?3",
     "DELETE FROM ax_member AS m WHERE m.task = ?1 AND " AX_SQLITE_NO_MEMBER},
    {"member", sqlite_extent::slices,
     AX_SQLITE_TASKS("'what it says of its workflow is not so'", AX_SQLITE_FLAGS_OF_WORKFLOW),
     AX_SQLITE_FIX(AX_SQLITE_FIXED_FLAGS, AX_SQLITE_FLAGS_OF_WORKFLOW " AND ?2 IS NOT NULL")},
    {"edge", sqlite_extent::slices,
     "SELECT e.child, 'it is tied to task ' || e.parent || ', and one of both is not there', e.parent "
     "FROM ax_edge AS e WHERE e.child > ?1 AND e.child <= ?2 AND " AX_SQLITE_NO_EDGE " LIMIT ?3",
     "DELETE FROM ax_edge AS e WHERE e.child = ?1 AND e.parent = ?2 AND " AX_SQLITE_NO_EDGE},
    {"await", sqlite_extent::slices,
     "SELECT a.task, 'something is awaited for it, and it is no wait' FROM ax_await AS a "
     "WHERE a.task > ?1 AND a.task <= ?2 AND " AX_SQLITE_NO_AWAIT " GROUP BY a.task LIMIT ?3",
     "DELETE FROM ax_await AS a WHERE a.task = ?1 AND ?2 IS NOT NULL AND " AX_SQLITE_NO_AWAIT},
    {"parents", sqlite_extent::slices,
     AX_SQLITE_MEMBERS("'what it counts of its parents is not how they stand'", AX_SQLITE_MISCOUNTED_PARENTS),
     "UPDATE ax_member AS m SET " AX_SQLITE_COUNTED_PARENTS " WHERE m.task = ?1 AND m.kind <> 1 "
     "AND " AX_SQLITE_MISCOUNTED_PARENTS},
    {"stuck", sqlite_extent::slices,
     AX_SQLITE_MEMBERS("'its parents let it go or end it, and it waits'", AX_SQLITE_STUCK), nullptr},
    {"workflow", sqlite_extent::slices,
     AX_SQLITE_WORKFLOWS("'it counts its tasks otherwise than they stand'",
                         AX_SQLITE_WORKFLOW_COUNTS " IS NOT " AX_SQLITE_MEMBER_COUNTS),
     "UPDATE ax_workflow AS w SET " AX_SQLITE_WORKFLOW_COUNTS " = " AX_SQLITE_MEMBER_COUNTS " WHERE w.id = ?1"},
    {"head", sqlite_extent::slices,
     AX_SQLITE_WORKFLOWS("'all its tasks have ended, and it has not, or the other way'", AX_SQLITE_WRONG_HEAD),
     nullptr},
    {"paused", sqlite_extent::slices,
     AX_SQLITE_TASKS("'its workflow is paused, and it is not, or the other way'", AX_SQLITE_NOT_AS_PAUSED),
     AX_SQLITE_FIX("gate = CASE WHEN (gate & 16) = 0 THEN (gate & ~8) | 16 ELSE gate & ~16 END, waits_for = NULL",
                   AX_SQLITE_NOT_AS_PAUSED)},
    {"id", sqlite_extent::once,
     "SELECT id, 'its id is to be given again' FROM ax_task WHERE id >= (SELECT value FROM ax_meta WHERE name = "
     "'next_id') AND ?1 < ?2 ORDER BY id DESC LIMIT min(?3, 1)",
     "UPDATE ax_meta SET value = (SELECT max(id) + 1 FROM ax_task) WHERE name = 'next_id' AND value <= "
     "(SELECT max(id) FROM ax_task WHERE id >= ?1)"},
};

#undef AX_SQLITE_TASKS
#undef AX_SQLITE_FIX
#undef AX_SQLITE_LINE
#undef AX_SQLITE_FIRST
#undef AX_SQLITE_TITLE
#undef AX_SQLITE_NO_STATE
#undef AX_SQLITE_NO_TYPE
#undef AX_SQLITE_NO_OWNER
#undef AX_SQLITE_FINISHED
#undef AX_SQLITE_UNFINISHED
#undef AX_SQLITE_GATE
#undef AX_SQLITE_BLOCKED
#undef AX_SQLITE_KEY_KEPT
#undef AX_SQLITE_KEY_LOST
#undef AX_SQLITE_WAITING
#undef AX_SQLITE_HOLDS
#undef AX_SQLITE_HOLDER
#undef AX_SQLITE_HELD
#undef AX_SQLITE_IN_LINE
#undef AX_SQLITE_FENCE
#undef AX_SQLITE_ATTEMPTS
#undef AX_SQLITE_PAST
#undef AX_SQLITE_AWAITED
#undef AX_SQLITE_PAST_UNSEEN
#undef AX_SQLITE_PAST_DONE
#undef AX_SQLITE_PAST_FREE
#undef AX_SQLITE_PAST_STALE
#undef AX_SQLITE_OF_WORKFLOW
#undef AX_SQLITE_FLAGS_OF_WORKFLOW
#undef AX_SQLITE_NO_MEMBER
#undef AX_SQLITE_NO_EDGE
#undef AX_SQLITE_NO_AWAIT
#undef AX_SQLITE_MEMBERS
#undef AX_SQLITE_PARENTS
#undef AX_SQLITE_MISCOUNTED_PARENTS
#undef AX_SQLITE_STUCK
#undef AX_SQLITE_MEMBER_COUNTS
#undef AX_SQLITE_WORKFLOW_COUNTS
#undef AX_SQLITE_WORKFLOWS
#undef AX_SQLITE_HEAD_STATE
#undef AX_SQLITE_WRONG_HEAD
#undef AX_SQLITE_ABANDONED
#undef AX_SQLITE_FIXED_FLAGS
#undef AX_SQLITE_COUNTED_PARENTS
#undef AX_SQLITE_PAUSED
#undef AX_SQLITE_NOT_AS_PAUSED

inline constexpr char const* sqlite_slice_end =
    "SELECT max(id) FROM (SELECT id FROM ax_task WHERE id > ?1 ORDER BY id LIMIT 10000)";
inline constexpr char const* sqlite_all_states = "SELECT lane, state, (flags & 640) = 128 FROM ax_task";
inline constexpr char const* sqlite_all_counts = "SELECT lane, state, tasks FROM ax_count";
inline constexpr char const* sqlite_repairs_of_counts = "SELECT value FROM ax_meta WHERE name = 'count_repairs'";
inline constexpr char const* sqlite_count_repair =
    "UPDATE ax_meta SET value = value + 1 WHERE name = 'count_repairs' AND value = ?1";
inline constexpr char const* sqlite_place_of =
    "SELECT lane, state, route_key, waits_for, flags FROM ax_task WHERE id = ?1";
inline constexpr char const* sqlite_waited_for_by_route =
    "SELECT waits_for FROM ax_task WHERE route_key = ?1 AND state IN (1,5) AND waits_for IS NOT NULL "
    "GROUP BY waits_for";
inline constexpr char const* sqlite_block_route =
    "UPDATE ax_task SET gate = (gate | 1) & ~8, waits_for = NULL WHERE "
    "route_key = ?1 AND state BETWEEN 1 AND 5 AND state <> 4 AND (gate & 1) = 0 "
    "AND state IN (1,5)";

constexpr bool has_ended(std::int64_t state) noexcept {
    auto const known = task_state_of(state);
    return known && is_terminal(*known);
}

/// The search, on a connection for reading.
template <class Connection>
class sqlite_search {
  public:
    static constexpr std::int64_t most = 1'000; ///< findings

    explicit sqlite_search(std::vector<dependent<finding, Connection>>& found) : found_(found) {}

    bool full() const noexcept { return left() <= 0; }

    /// Looks at a slice of the ids behind `after`.
    /// @return  Where the next slice begins; the greatest number where this was the last.
    std::int64_t slice(Connection& sql, std::int64_t after) {
        constexpr auto all = (std::numeric_limits<std::int64_t>::max)();
        auto end = all;
        {
            auto const statement = sql.prepare(sqlite_slice_end);
            sqlite_run row(sql, statement.get(), {after});
            // The last slice goes on to the end of all numbers: an attempt without a task may lie there.
            if (row.next() && !row.null(0)) end = row.number(0);
        }
        for (auto const& check : sqlite_checks)
            if (check.extent == sqlite_extent::slices) run(sql, check, after, end);
        return end;
    }

    void once(Connection& sql) {
        for (auto const& check : sqlite_checks)
            if (check.extent == sqlite_extent::once) run(sql, check, 0, 1);
        if (!full()) counts(sql);
    }

    /// Whether `one` is still there. By the connection that repairs it.
    static bool is_there(Connection& sql, finding const& one) {
        std::vector<finding> again;
        sqlite_search search(again);
        for (auto const& check : sqlite_checks) {
            if (one.kind != check.kind) continue;
            auto const task = static_cast<std::int64_t>(one.task);
            bool const sliced = check.extent == sqlite_extent::slices;
            search.run(sql, check, sliced ? task - 1 : 0, sliced ? task : 1);
        }
        for (auto const& each : again)
            if (each.task == one.task && each.subject == one.subject) return true;
        return false;
    }

  private:
    std::int64_t left() const noexcept { return most - static_cast<std::int64_t>(found_.size()); }

    void run(Connection& sql, sqlite_check const& check, std::int64_t after, std::int64_t end) {
        if (full()) return;
        auto const statement = sql.prepare(check.find);
        sqlite_run row(sql, statement.get(), {after, end, left()});
        while (row.next()) {
            found_.push_back({check.kind, row.template as<task_id>(0), row.copy(1), false, {}});
            if (sqlite3_column_count(statement.get()) > 2) found_.back().subject.push_back(row.number(2));
        }
    }

    /// Compares the counts with the rows: by one statement each in one snapshot, since what changes a row changes its
    /// count in the same commit. So the difference stays the same until somebody repairs it, whatever else happens.
    void counts(Connection& sql) {
        sqlite_counts<Connection> difference;
        {
            auto const statement = sql.prepare(sqlite_all_states);
            sqlite_run row(sql, statement.get());
            while (row.next()) {
                auto const state = row.number(1);
                difference.add(row.number(0), counted_state(state), 1);
                if (row.number(2) != 0 && has_ended(state)) difference.add(-row.number(0), state, 1);
            }
        }
        {
            auto const statement = sql.prepare(sqlite_all_counts);
            sqlite_run row(sql, statement.get());
            while (row.next()) difference.add(row.number(0), row.number(1), -row.number(2));
        }
        std::int64_t repairs = 0;
        {
            auto const statement = sql.prepare(sqlite_repairs_of_counts);
            sqlite_run row(sql, statement.get());
            if (row.next()) repairs = row.number(0);
        }
        for (auto const& each : difference.entries()) {
            if (each.tasks == 0 || full()) continue;
            found_.push_back(
                {"count",
                 {},
                 what_is_counted(sql, each.lane < 0 ? -each.lane : each.lane, each.state) +
                     (each.lane < 0 ? ", of workflows: " : ": ") +
                     std::to_string(each.tasks > 0 ? each.tasks : -each.tasks) +
                     (each.tasks > 0 ? " fewer are counted than there are" : " more are counted than there are"),
                 false,
                 {each.lane, each.state, each.tasks, repairs}});
        }
    }

    static std::string what_is_counted(Connection& sql, std::int64_t lane, std::int64_t state) {
        auto const type = lane / static_cast<std::int64_t>(priority_classes);
        auto text = "tasks of type number " + std::to_string(type);
        {
            sqlite_run name(sql, sqlite_sql::type_name, {type});
            if (name.next()) text = "tasks of type \"" + name.copy(0) + '"';
        }
        text += std::string(", priority ") + to_string(class_of(static_cast<lane_id>(lane))) + ", ";
        auto const known = task_state_of(state);
        if (!known) return text + "state " + std::to_string(state);
        return text + std::string(to_string(*known)) + (*known == task_state::ready ? " or in flight" : "");
    }

    std::vector<dependent<finding, Connection>>& found_;
};

/// The whole search for impossible states, each slice in a read transaction of its own.
/// @tparam Reader  Has look(): see sqlite_reader.
template <class Connection, class Reader>
std::vector<dependent<finding, Connection>> search_all(Reader& reader) {
    using numbers = std::numeric_limits<std::int64_t>;
    std::vector<dependent<finding, Connection>> found;
    sqlite_search<Connection> search(found);
    for (auto at = (numbers::min)(); at != (numbers::max)() && !search.full();)
        at = reader.look([&](Connection& sql) { return search.slice(sql, at); });
    if (!search.full()) reader.look([&](Connection& sql) { search.once(sql); });
    return found;
}

/// Repairs, inside of a write transaction.
template <class Session>
class sqlite_repairs {
    using connection_type = typename Session::connection_type;

  public:
    explicit sqlite_repairs(Session& session) : session_(session), sql_(session.connection()) {}

    /// @param promote  Called with a route key to decide anew who is its first, where none of those that wait is.
    /// @param decide   Called to decide anew what follows in workflows.
    template <class Promote, class Decide>
    void operator()(finding& one, time_point now, Promote&& promote, Decide&& decide) {
        if (one.kind == "count") return count(one);
        auto const before = place_of(one.task);
        leave(before.waits_for);
        if (one.kind == "line" && !one.subject.empty()) leave(one.subject.front());
        for (auto const& number : one.kind == "hold" || one.kind == "limit" ? one.subject : std::vector<std::int64_t>{})
            touch(number);
        for (auto const& check : sqlite_checks) {
            if (one.kind != check.kind || check.repair == nullptr) continue;
            auto const number = one.subject.empty() ? std::int64_t{0} : one.subject.front();
            auto const statement = sql_.prepare(check.repair);
            switch (sqlite3_bind_parameter_count(statement.get())) {
            case 1: sqlite_run(sql_, statement.get(), {one.task}).finish(); break;
            case 2: sqlite_run(sql_, statement.get(), {one.task, number}).finish(); break;
            default: sqlite_run(sql_, statement.get(), {one.task, number, now}).finish(); break;
            }
        }
        auto const after = place_of(one.task);
        count(before, -1);
        count(after, 1);
        leave(before.waits_for);
        leave(after.waits_for);
        if (!after.route_key.empty()) {
            std::vector<std::int64_t> lines;
            {
                auto const statement = sql_.prepare(sqlite_waited_for_by_route);
                sqlite_run line(sql_, statement.get(), {std::string_view{after.route_key}});
                while (line.next()) lines.push_back(line.number(0));
            }
            auto const statement = sql_.prepare(sqlite_block_route);
            sqlite_run(sql_, statement.get(), {std::string_view{after.route_key}}).finish();
            for (auto const line : lines) leave(line);
            promote(after.route_key);
        }
        decide();
        one.repaired = !sqlite_search<connection_type>::is_there(sql_, one);
    }

  private:
    struct place {
        bool there = false;
        std::int64_t lane = 0;
        std::int64_t state = 0;
        std::string route_key;
        std::int64_t waits_for = 0;
        bool ended_member = false;
    };

    void count(place const& at, std::int64_t by) {
        if (!at.there) return;
        session_.counts().add(at.lane, at.state, by);
        if (at.ended_member) session_.counts().add(-at.lane, at.state, by);
    }

    /// Those that wait for this limit may have lost who goes before them.
    void touch(std::int64_t number) {
        if (number > 0) session_.limits().touch(static_cast<limit_number>(number));
    }

    /// Somebody may have left that line, and those at its limit have lost who goes before them.
    void leave(std::int64_t line) {
        if (line > 0) session_.limits().left(static_cast<line_number>(line));
    }

    place place_of(task_id id) {
        auto const statement = sql_.prepare(sqlite_place_of);
        sqlite_run row(sql_, statement.get(), {id});
        if (!row.next()) return {};
        return {true,
                row.number(0),
                counted_state(row.number(1)),
                row.copy(2),
                row.null(3) ? 0 : row.number(3),
                (row.number(4) & (flag_member | flag_head)) == flag_member && has_ended(row.number(1))};
    }

    /// Adds the difference that was found, unless somebody has repaired counts since.
    void count(finding& one) {
        if (one.subject.size() != 4) return;
        auto const seen = one.subject[3];
        if (!repairing_counts_) {
            auto const statement = sql_.prepare(sqlite_count_repair);
            repairing_counts_ = sqlite_run(sql_, statement.get(), {seen}).finish() != 0;
            counts_as_of_ = seen;
        }
        if (!repairing_counts_ || seen != counts_as_of_) return;
        session_.counts().add(one.subject[0], one.subject[1], one.subject[2]);
        one.repaired = true;
    }

    Session& session_;
    connection_type& sql_;
    bool repairing_counts_ = false;
    std::int64_t counts_as_of_ = 0;
};

} // namespace ax::detail

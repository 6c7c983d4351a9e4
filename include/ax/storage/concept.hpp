// SPDX-License-Identifier: MIT
// What a place that keeps tasks must do. The scheduler is written against this file alone; every backend passes the
// suite in tests/conformance, which has one test for each numbered sentence.
//
// Reads are members of the storage itself. Writes are members of its writer, and a writer exists only inside
// transact(): so several verbs share one commit by being called one after another, and there is no second form of each
// verb for the lone case.
#pragma once

#include "ax/task/record.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax {

/// What a commit survives when transact() has returned.
enum class commit : std::uint8_t {
    durable, ///< what the storage declares: for SQLite a power cut
    lazy     ///< the end of the process; a power cut only once a later durable commit has returned
};

/// A claimable task and when it is due: what a timing wheel needs to know of it.
struct alarm {
    task_id id{};
    lane_id lane{};
    time_point run_at{};

    friend bool operator==(alarm const&, alarm const&) = default;
};

/// What insert() did with one task.
enum class submit_outcome : std::uint8_t { inserted, kept, replaced, rejected };

struct insertion {
    task_id id{}; ///< the new task, or the one that holds the key
    submit_outcome outcome = submit_outcome::inserted;
    task_state state = task_state::ready; ///< of the task named by `id`
};

/// A storage's answer to changes: what became claimable, or claimable at another instant. Who drives the storage sets
/// its alarm clock by it. It misses none, but may name one twice, or one that a later change of the same transaction
/// has overtaken: claim() decides.
using alarms = std::vector<alarm>;

struct claim_request {
    task_id id{};
    bool hold_on_interrupt = false; ///< its handler must not run twice: see attempt_outcome::held
};

struct claim_terms {
    node_id node{};
    time_point now{};
    time_point until{};       ///< claims what is due by then (the claim-ahead)
    std::size_t suspects = 0; ///< how many suspects (two unclean ends or more) it may claim
};

struct claim_answer {
    std::vector<task_record> claimed; ///< in the order asked; fence and attempts as the claim wrote them
    std::vector<task_id> suspects;    ///< claimable, but the terms left no room for a suspect
};

/// An attempt has started.
struct start_mark {
    task_id id{};
    fence_token fence{};
    time_point at{};
};

/// An attempt has ended.
struct attempt_end {
    task_id id{};
    fence_token fence{};
    attempt_outcome outcome = attempt_outcome::succeeded;
    std::optional<time_point> retry_at; ///< for failed and snoozed
    std::optional<time_point> started;  ///< none only for released
    time_point ended{};
    std::string error; ///< bounded text; becomes last_error unless empty
    std::string log;
    std::string result;               ///< JSON text
    std::vector<new_task> follow_ups; ///< inserted with a success, and only with it
};

struct settlement {
    std::vector<bool> accepted;     ///< one for each end: false = not mine any more, nothing changed
    std::vector<task_state> states; ///< one for each end: the state that it led to; nothing where not accepted
    alarms due;                     ///< the task itself where it is tried again, those it had blocked, follow-ups
};

struct reclaim_terms {
    node_id node{}; ///< the caller; all others have lost what they held
    std::size_t poison_after = 3;
    time_point now{};
};

struct reclaim_answer {
    std::size_t reclaimed = 0;     ///< will run again
    std::size_t held = 0;          ///< wait for a person
    std::vector<task_id> poisoned; ///< dead now
};

/// What came of a change that a caller asked for.
enum class change_outcome : std::uint8_t { done, wrong_state, unknown };

struct change {
    change_outcome outcome = change_outcome::unknown;
    task_state state = task_state::created; ///< after the change, or as found; nothing where unknown
    alarms due;
};

/// A task that died because its deadline passed while it waited.
struct expiry {
    std::vector<task_id> dead;
    std::optional<time_point> next; ///< the earliest deadline of a waiting task that is left
    alarms due;                     ///< those that were behind them
};

/// A recurring definition, as it is stored.
struct schedule_record {
    std::string name;
    std::string spec; ///< what recurs, in the scheduler's own text form
    type_number type{};
    std::string payload;
    std::optional<time_point> next; ///< the next nominal instant; none: waits for the end of its latest task, or over
    std::optional<time_point> last_nominal; ///< of the latest occurrence
    task_id last_task{};                    ///< 0: none yet
    std::uint64_t version = 0;
    std::uint64_t fired = 0;   ///< occurrences created
    std::uint64_t skipped = 0; ///< occurrences left out
    std::string last_skip;     ///< why the latest of those was left out
    time_point created{};
};

/// One step of a schedule: its cursor moves on, and its occurrence is created, in one commit.
struct schedule_step {
    std::string name;
    std::uint64_t version = 0; ///< as read; the step is refused if it is another now
    std::optional<time_point> next;
    std::optional<new_task> occurrence; ///< with schedule and scheduled_at set
    bool skip_if_unfinished = false;    ///< leave the occurrence out while the latest task is not terminal
    std::uint64_t skipped = 0;          ///< occurrences left out before this one
    std::string skip_reason;            ///< why
};

struct schedule_answer {
    bool accepted = false;               ///< false: the schedule has changed or is gone; nothing was written
    schedule_record record;              ///< as it stands now
    std::optional<insertion> occurrence; ///< none: left out, or none was asked for
    alarms due;
};

struct type_info {
    type_number number{};
    std::string name;
    bool paused = false;
};

/// The verbs that change a store. Each is atomic by itself and joins the transaction that it is called in.
///
///  1. type() gives a name its number, the same one for ever.
///  2. insert() stores each task whose key is free and answers for every one, in order; a key that is taken (also by an
///     earlier task of the same call) keeps the task that holds it and names it.
///  3. Tasks with one route key: at most one is claimable or in flight, the first by (order_at, id); the others are
///     `blocked`, are no part of upcoming(), and cost nothing. A task that is in flight is never overtaken.
///  4. claim() takes each named task that is ready or failed, not blocked, not held, due by `until` and not past its
///     deadline: state, version, fence, node and attempts are written. All others it passes over in silence.
///  5. claim() never takes more suspects than it may, and names those it left.
///  6. start() turns dispatched into running where the fence is current, and does nothing where not.
///  7. settle() under a fence that is no longer current changes nothing and says so. Otherwise the task moves to the
///     outcome's state, the attempt enters the history, follow-ups are inserted with a success, and who was blocked by
///     it is let go.
///  8. failed raises failures, snoozed raises snoozes, interrupted and held raise interruptions, released takes the
///     attempt back: it uses up nothing. With `relaxed` order a failed or snoozed task goes behind, with `strict` it
///     keeps its place. Every end but released forgets unclean ends.
///  9. reclaim() takes all that other nodes hold: it runs again, waits for a person where it had started and its
///     claim said so, or is dead
///     where it was the `poison_after`-th death of the process in a lonely run of it.
/// 10. cancel() ends what waits (created, ready, failed), held and blocked ones too. retry() makes dead and cancelled
///     tasks ready at once, with their failures and a deadline that has passed forgotten, and lets a held one go.
///     reschedule() moves what waits (ready, failed). In any other state they change nothing and say which.
/// 11. expire() makes dead what waits beyond its deadline, a bounded number at a time.
/// 12. pause() is kept with the type.
/// 13. declare() stores a schedule, leaves an equal one (spec, type, payload) as it is, and replaces a different one's
///     definition and cursor, keeping its counters.
/// 14. step() moves a schedule's cursor and creates its occurrence where the version is the one read. An occurrence of
///     one (schedule, nominal instant) is created once for ever, whatever happens to the cursor.
/// 15. forget() removes a schedule; its tasks stay.
/// Errors: error unavailable, disk_full, corrupt; the transaction is rolled back.
template <class W>
concept storage_writer = requires(W& w, std::string_view name, std::span<new_task const> tasks,
                                  std::span<claim_request const> requests, claim_terms const& claims,
                                  std::span<start_mark const> starts, std::span<attempt_end const> ends,
                                  reclaim_terms const& terms, task_id id, type_number number, time_point t,
                                  std::size_t limit, bool yes, schedule_record const& schedule,
                                  schedule_step const& next, alarms& due) {
    { w.type(name) } -> std::same_as<type_number>;
    { w.insert(tasks, t, due) } -> std::same_as<std::vector<insertion>>;
    { w.claim(requests, claims) } -> std::same_as<claim_answer>;
    { w.start(starts, t) } -> std::same_as<void>;
    { w.settle(ends, t) } -> std::same_as<settlement>;
    { w.reclaim(terms) } -> std::same_as<reclaim_answer>;
    { w.cancel(id, t) } -> std::same_as<change>;
    { w.retry(id, t) } -> std::same_as<change>;
    { w.reschedule(id, t, t) } -> std::same_as<change>;
    { w.expire(t, limit) } -> std::same_as<expiry>;
    { w.pause(number, yes) } -> std::same_as<void>;
    { w.declare(schedule, t) } -> std::same_as<schedule_record>;
    { w.step(next, t) } -> std::same_as<schedule_answer>;
    { w.forget(name) } -> std::same_as<bool>;
};

namespace detail {

/// The least that transact() accepts: a function object that is only called. It need be neither copied nor moved.
template <class W>
struct transaction_archetype {
    transaction_archetype() = delete;
    transaction_archetype(transaction_archetype const&) = delete;
    transaction_archetype& operator=(transaction_archetype const&) = delete;
    void operator()(W&);
};

} // namespace detail

/// Keeps tasks and hands each due task to one node at a time.
///
///  1. When transact() returns, every reader sees what `fn` wrote; where S::durable, so does the process after a crash,
///     and after a power cut what was committed `durable`. When it throws, nothing of it is to be seen.
///  2. `fn` is called once or more (again from the start after a rollback) and may be called on another thread; it
///     calls the writer's verbs and nothing else of the storage. What it throws passes through to its own caller, and
///     to no other that shares the commit.
///  3. All members may be called from any thread at once.
///  4. upcoming() gives the claimable tasks of one lane in the order (run_at, id), strictly behind `after`, due by
///     `until`, at most `limit`.
///  5. list() gives tasks in a stable order: ready and failed ones by (run_at, id) with blocked and held ones last, all
///     others the latest id first; `after` continues behind the last one of the page before.
///  6. history() has every attempt that was started, in order, the running one last.
/// `now` is the caller's clock; a shared storage uses its own instead.
/// Errors: error unavailable, outcome_unknown, disk_full, corrupt.
template <class S>
concept storage = std::movable<S> && storage_writer<typename S::writer> &&
    requires(S& s, S const& c, detail::transaction_archetype<typename S::writer>& fn, task_id id, std::string_view name,
             alarm const& after, time_point t, std::size_t limit, task_filter const& filter) {
    { S::durable } -> std::convertible_to<bool>;
    { s.transact(commit::durable, fn) } -> std::same_as<void>;
    { s.transact(commit::lazy, std::move(fn)) } -> std::same_as<void>;
    { c.find(id) } -> std::same_as<std::optional<task_record>>;
    { c.find_by_key(name) } -> std::same_as<std::optional<task_record>>;
    { c.list(filter, t) } -> std::same_as<std::vector<task_record>>;
    { c.history(id) } -> std::same_as<std::vector<attempt_view>>;
    { c.upcoming(after, t, limit) } -> std::same_as<alarms>;
    { c.types() } -> std::same_as<std::vector<type_info>>;
    { c.schedules() } -> std::same_as<std::vector<schedule_record>>;
};

} // namespace ax

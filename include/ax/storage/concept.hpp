// SPDX-License-Identifier: MIT
// What a place that keeps tasks must do. The scheduler is written against this file alone; every backend passes the
// suite in tests/conformance, which has one test for each numbered sentence.
//
// Reads are members of the storage itself. Writes are members of its writer, and a writer exists only inside
// transact(): so several verbs share one commit by being called one after another, and there is no second form of each
// verb for the lone case.
#pragma once

#include "ax/core/unique_function.hpp"
#include "ax/storage/graph.hpp"
#include "ax/task/record.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct sqlite3;

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
    bool waits = false; ///< for a limit that may have room by `run_at`; it is no part of upcoming()

    friend bool operator==(alarm const&, alarm const&) = default;
};

/// What insert() did with one task.
enum class submit_outcome : std::uint8_t {
    inserted, ///< there is a new task
    kept,     ///< its key (or occurrence) was taken, and who has it stays as it is
    replaced, ///< who holds the key waited, and has what was given now
    rejected  ///< its key was taken, and nothing was done
};

constexpr char const* to_string(submit_outcome outcome) noexcept {
    switch (outcome) {
    case submit_outcome::inserted: return "inserted";
    case submit_outcome::kept: return "kept";
    case submit_outcome::replaced: return "replaced";
    case submit_outcome::rejected: return "rejected";
    }
    return "?";
}

struct insertion {
    task_id id{}; ///< the new task, or the one that holds the key
    submit_outcome outcome = submit_outcome::inserted;
    task_state state = task_state::ready; ///< of the task named by `id`
};

/// What insert_in() did.
struct guest_insertion : insertion {
    bool committed = false; ///< at once, since there was no transaction of the host's
};

/// A storage's answer to changes: what became claimable, or claimable at another instant. Who drives the storage sets
/// its alarm clock by it. It misses none, but may name one twice, or one that a later change of the same transaction
/// has overtaken: claim() decides.
using alarms = std::vector<alarm>;

struct claim_request {
    task_id id{};
    bool hold_on_interrupt = false; ///< its handler must not run twice: see attempt_outcome::held
    type_number type{};             ///< passed over where its type is another; 0: of any type
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
    alarms due;                       ///< who waits for a limit and is worth another claim, or the next one is
};

/// A task type of which tasks may be claimed at once.
struct offered_type {
    type_number type{};
    bool hold_on_interrupt = false; ///< as in a claim_request
};

/// Leave to claim at once what a transaction makes due: such a task is stored as claimed, without having been stored as
/// ready before, which saves its storage a write. See eager_writer.
struct claim_offer {
    node_id node{};
    time_point until{};                               ///< only what is due by then
    std::span<offered_type const> types;              ///< by number; of no others
    std::array<std::size_t, priority_classes> room{}; ///< how many more of each class
    std::vector<task_record> claimed;                 ///< what was claimed; no alarm names it

    /// What the offer says of the type of a task that is due at `run_at`; null where it does not take one.
    offered_type const* takes(lane_id lane, time_point run_at) const noexcept {
        if (run_at > until || room[static_cast<std::size_t>(class_of(lane))] == 0) return nullptr;
        auto const at = std::lower_bound(types.begin(), types.end(), type_of(lane),
                                         [](offered_type const& a, type_number b) { return a.type < b; });
        return at != types.end() && at->type == type_of(lane) ? &*at : nullptr;
    }
};

/// An attempt has started.
struct start_mark {
    task_id id{};
    fence_token fence{};
    time_point at{};
};

/// What a handler writes itself in the commit that records its success, and what its attempt comes to where that fails.
/// Only a transactional_storage is ever given any.
struct attempt_effects {
    std::vector<unique_function<void(sqlite3*)>> on_sqlite; ///< called in order, again where the transaction is redone
    attempt_outcome otherwise = attempt_outcome::exhausted; ///< the outcome where one of them fails
    std::optional<time_point> retry_at;                     ///< of that outcome
    std::string remark;                                     ///< goes behind the error
    std::string fault; ///< written by the storage: they have ended its transaction, and are not called again
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
    std::string result;                 ///< JSON text
    std::vector<new_task> follow_ups;   ///< inserted with a success, and only with it
    std::vector<new_member> members;    ///< added to the task's workflow with a success, and only with it
    attempt_effects* effects = nullptr; ///< called with a success, and only with it; null: none
};

/// A success that became another outcome, since the attempt's own writes failed.
struct failed_effects {
    std::size_t at = 0; ///< which of the ends
    std::string error;
};

/// The value of a step that an attempt has finished.
struct kept_step {
    std::string name;
    std::string value; ///< JSON text

    friend bool operator==(kept_step const&, kept_step const&) = default;
};

struct settlement {
    std::vector<bool> accepted;         ///< one for each end: false = not mine any more, nothing changed
    std::vector<task_state> states;     ///< one for each end: the state that it led to; nothing where not accepted
    alarms due;                         ///< the task itself where it is tried again, those it had blocked, follow-ups
    std::vector<failed_effects> failed; ///< in the order of the ends; mostly empty
};

struct reclaim_terms {
    node_id node{}; ///< the caller; all others have lost what they held, but for those beside it
    std::size_t poison_after = 3;
    time_point now{};
    std::vector<node_id> beside = {}; ///< live on, and keep what they hold; none where one process has the storage
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
    alarms due = {};
    std::vector<task_id> asked_to_stop = {}; ///< of a workflow: who is in flight
    task_id task = {};                       ///< of rerun(): the new row; where refused, who is in the way
};

/// A task that died because its deadline passed while it waited.
struct expiry {
    std::vector<task_id> dead;
    std::optional<time_point> next;     ///< the earliest deadline of a waiting task that is left
    alarms due;                         ///< those that were behind them
    std::vector<task_id> asked_to_stop; ///< in flight, of a workflow whose deadline it was
};

/// What a waiting task needs and other tasks have.
struct obstacle {
    enum class what : std::uint8_t { route, limit, past, parents, paused };

    what kind{};
    std::string name;             ///< the route key, the limit (`tag "tenant-7"`), the schedule, the first 16
                                  ///< parents that have not ended (`task "load", task "check"`), the paused workflow
    std::vector<task_id> holders; ///< who has it now, or who they are, at most 16; the earliest id first
    std::optional<time_point> free_at; ///< for a rate: when its next token comes
    bool never = false;                ///< of a resource the task needs more than there is
};

constexpr char const* to_string(obstacle::what kind) noexcept {
    switch (kind) {
    case obstacle::what::route: return "route key";
    case obstacle::what::limit: return "limit";
    case obstacle::what::past: return "past";
    case obstacle::what::parents: return "parents";
    case obstacle::what::paused: return "paused workflow";
    }
    return "?";
}

/// A recurring definition, as it is stored.
struct schedule_record {
    std::string name;
    std::string spec; ///< what recurs, in the scheduler's own text form
    type_number type{};
    std::string payload;
    std::string terms;              ///< its policies and what its tasks get, in the scheduler's own text form
    bool paused = false;            ///< nothing is created until it is resumed
    std::optional<time_point> next; ///< the next nominal instant; none: waits for the end of its latest task, or over
    std::optional<time_point> last_nominal; ///< of the latest occurrence
    task_id last_task{};                    ///< 0: none yet
    std::uint64_t version = 0;
    std::uint64_t fired = 0;   ///< occurrences created
    std::uint64_t skipped = 0; ///< occurrences left out
    std::string last_skip;     ///< why the latest of those was left out
    time_point created{};
};

/// Occurrences that were left out one behind the other, all for one reason.
struct skip_range {
    time_point first{};       ///< nominal instant of the first one
    time_point last{};        ///< of the last one
    std::uint64_t number = 0; ///< how many
    std::string reason;
    time_point recorded{}; ///< when the last of them was left out
};

struct skip_count {
    std::string reason;
    std::uint64_t number = 0;
};

/// What a schedule has left out, as far as it is kept; schedule_record::skipped counts all of it.
struct skip_log {
    std::vector<skip_range> latest;  ///< in the order in which they were left out
    std::vector<skip_count> reasons; ///< how many for each, by reason, byte by byte
};

/// How many ranges, and how many reasons, are kept of each schedule.
inline constexpr std::size_t most_skips_kept = 32;

/// One step of a schedule: its cursor moves on, and its occurrence is created, in one commit.
struct schedule_step {
    std::string name;
    std::uint64_t version = 0; ///< as read; the step is refused if it is another now
    std::optional<time_point> next;
    std::optional<new_task> occurrence; ///< with schedule and scheduled_at set
    bool skip_if_unfinished = false;    ///< leave the occurrence out while the latest task is not terminal
    bool replace_blocked = false;       ///< cancel the latest task where it waits behind another with its route key
    bool stop_latest = false;           ///< cancel the latest task; ask it to stop where it is in flight
    std::optional<bool> paused;         ///< none: as it was
    std::vector<skip_range> skipped;    ///< left out before this one, in order; when they are recorded the step says
};

struct schedule_answer {
    bool accepted = false;               ///< false: the schedule has changed or is gone; nothing was written
    schedule_record record;              ///< as it stands now
    std::optional<insertion> occurrence; ///< none: left out, or none was asked for
    task_id asked_to_stop{};             ///< the task in flight that was; 0: none
    task_id cancelled{};                 ///< the waiting task that was; 0: none
    alarms due;
};

/// A past range of a schedule whose missing occurrences are being made, a few at a time.
struct backfill_record {
    std::uint64_t number = 0; ///< in this store, never given again; 0: none
    std::string schedule;
    time_point from{};
    time_point to{};                ///< the first instant that is no part of it
    std::optional<time_point> next; ///< the first nominal instant not looked at yet; none: all have been
    priority_class priority = priority_class::low;
    std::size_t at_once = 1;    ///< how many of its occurrences may be unfinished
    std::uint64_t planned = 0;  ///< nominal instants in the range
    std::uint64_t made = 0;     ///< occurrences created
    std::uint64_t existed = 0;  ///< occurrences that were there already
    std::size_t unfinished = 0; ///< of those created, as of its latest step
    std::uint64_t version = 0;
    time_point created{};
};

/// One step of a backfill: what has ended makes room for the next occurrences.
struct backfill_step {
    std::uint64_t number = 0;
    std::uint64_t version = 0;         ///< as read; the step is refused if it is another now
    std::vector<new_task> occurrences; ///< the next nominal instants, in order, with schedule and scheduled_at set
    std::optional<time_point> next;    ///< the nominal instant behind them; none: they are the last
    std::vector<skip_range> left_out;  ///< instants among them that cannot be made, in order, each by itself
};

struct backfill_answer {
    bool accepted = false;  ///< false: it has gone on, or is gone; nothing was written
    backfill_record record; ///< as it stands now; number 0 where it is gone
    bool over = false;      ///< all are made and have ended: it is gone
    alarms due;
};

/// Who waits for limits, and what for.
struct waiting_page {
    alarms due;            ///< the first ones of each limit that has room, now or later
    limit_number last{};   ///< the last limit looked at; 0: there was none
    bool complete = false; ///< no limit behind it has waiters
};

struct type_info {
    type_number number{};
    std::string name;
    bool paused = false;
};

/// How many tasks of one type and priority class are in one state.
struct task_count {
    std::string type;
    priority_class priority = priority_class::normal;
    task_state state = task_state::ready;
    std::size_t tasks = 0;
};

/// Which terminal tasks of one type are to go, with all that is kept of them.
struct prune_terms {
    type_number type{};
    time_point ended_by = (time_point::min)();       ///< those that finished by then, but for the dead ones
    time_point dead_by = (time_point::min)();        ///< dead ones that finished by then
    std::size_t keep = static_cast<std::size_t>(-1); ///< beyond so many, and beyond so many dead ones, the oldest too
    task_id after{};                                 ///< continue behind this one; 0: from the first
    std::size_t look_at = 1'000;                     ///< tasks that may be looked at, whether or not they go
    time_point now = (time_point::max)();            ///< what was created later says nothing of what lies behind it
};

struct prune_answer {
    std::size_t pruned = 0;
    std::size_t looked_at = 0;
    bool more = false;                             ///< there may be more to prune behind `after`
    task_id after{};                               ///< the last one looked at
    time_point oldest_ended = (time_point::max)(); ///< nothing that stays ended before, but for a schedule's latest
    time_point oldest_dead = (time_point::max)();  ///< likewise of the dead
};

/// A state that cannot come about, as verify() found it.
struct finding {
    std::string kind; ///< its name, the same in every storage and version; docs/verify.md has the list
    task_id task{};   ///< 0: of no single task
    std::string text; ///< for people
    bool repaired = false;
    std::vector<std::int64_t> subject; ///< how the storage finds it again
};

/// The verbs that change a store. Each is atomic by itself and joins the transaction that it is called in.
///
///  1. type() gives a name its number, the same one for ever.
///  2. insert() stores each task whose key is free and answers for every one, in order. Where the key is taken (also by
///     an earlier task of the same call), on_conflict decides and the answer names the task that holds it: see 16.
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
///  9. reclaim() takes all that other nodes hold, but for those beside the caller: it runs again, waits for a person
///     where it had started and its claim said so, or is dead where it was the `poison_after`-th death of the process
///     in a lonely run of it. A storage that one process has to itself is never told of any beside.
/// 10. cancel() ends what waits (created, ready, failed), held and blocked ones too. retry() makes dead and cancelled
///     tasks ready at once, with their failures and a deadline that has passed forgotten, and lets a held one go.
///     reschedule() moves what waits (ready, failed). In any other state they change nothing and say which.
/// 11. expire() makes dead what waits beyond its deadline, a bounded number at a time.
/// 12. pause() is kept with the type.
/// 13. declare() stores a schedule, leaves an equal one (spec, type, payload, terms) as it is, and replaces a different
///     one's definition, keeping its counters, and whether it is paused. Its cursor is replaced with another spec only.
/// 14. step() moves a schedule's cursor and creates its occurrence where the version is the one read. An occurrence of
///     one (schedule, nominal instant) is created once, whatever happens to the cursor, while its task is kept: one
///     that is met again counts as skipped where it is neither set aside nor was created before its nominal instant,
///     and becomes the latest task only where it has not ended and the step would not leave it out. Where the step says
///     so and the occurrence is not there yet, the latest task is cancelled or asked to stop in the same commit; one
///     that is cancelled unstarted counts as skipped. One that is set aside never becomes the latest, and one that was
///     never eligible (created) is in nobody's way; nor is one that waits (ready, failed) and
///     has a later nominal instant. Whatever it counts as skipped becomes the latest range of the schedule's skips, or
///     joins that where the reason is the same, its instants lie behind it, and no occurrence lies between the two;
///     the first range goes where there are more than most_skips_kept, and of so many reasons that with the smallest
///     number, the first of these by its bytes, where another one comes.
/// 15. forget() removes a schedule with its backfills and what is known of its skips; its tasks stay.
/// 16. A key that is taken: `keep` and `reject` leave its holder as it is. `replace` makes of one that waits (created,
///     ready, failed; not of a workflow, which counts as in flight until it has ended) what was given, and `debounce`
///     gives it the payload, the later of the two instants (which is its place in its route as well) and the later of
///     the two deadlines: it keeps its id, created, state and whether it is held, its version rises, its unclean ends
///     and last error are forgotten, by replace also its failures. One of another type rejects them. Where the holder
///     is in flight the key passes to a new task; one that has ended keeps it. `throttle` keeps a task that holds, or
///     was the last to have held, the key and was created less than a period ago; else the key passes to a new task.
///     Who loses a key is changed in nothing else, not even in its version.
/// 17. A task with key_scope::active loses its key when it becomes terminal, in whatever way. retry() gives a task its
///     key back, or is refused (wrong_state) where another holds it. find_by_key() finds the holder, else the latest
///     that had the key.
/// 18. ask_to_stop() marks a task that is in flight, for its owner to see. However its attempt ends then, it is not run
///     again: where it would have been, or is reclaimed, it is cancelled. False where it is not in flight.
/// 19. keep_step() keeps the value of a step with its task where the fence is current, in the place of an older one,
///     and says whether it was. What gets another payload by its key loses the steps done for the old one.
/// 20. prune() removes terminal tasks of one type with their attempts, in the order of their ids: those that finished
///     by the given instants, and the first ones beyond the count; at most `limit` of them, and none that a schedule
///     names as its latest. Calls that go on behind each other's `after` come to the same as one. It ends at the
///     first task that was created after both instants, and by now. A key that was pruned is new. A task of a workflow
///     is passed over, and counts as none of its type; the workflow goes as a whole when its head would go, and none of
///     its tasks is unfinished: all generations, also over several calls, which name it as `more` until it is gone.
/// 21. compact() gives space that is not used any more back, a little at a time, and says whether there is more.
/// 22. note() keeps a small text of the scheduler's under a name.
/// 23. repair() looks again at what verify() found and makes it possible; what has changed meanwhile it leaves alone.
///     It marks each that is repaired, or is not there any more.
/// 24. limit_type() and limit_tag() say how many of a type, or with a tag, may be in flight at once and how often one
/// may
///     begin, and an empty limit takes that back; set_resource() declares a capacity or changes it. What is in flight
///     keeps what it holds. limit_type() refuses a resource that was never declared and an amount above its capacity
///     (invalid_argument, and nothing is changed).
/// 25. claim() takes a task only where each of its limits has room: that of its type, those of its tags, and the
///     resources that its type needs. What it takes of them it holds until its attempt is settled or reclaimed. Of a
///     rate it takes a token, for the later of `now` and run_at; only `released` gives it back.
/// 26. A due task that meets a full limit waits for it: `waits_for` names the limit, the task is no part of upcoming(),
///     and costs nothing. Those that wait for one limit in one lane come in the order (run_at, id); whoever comes later
///     waits behind them. Lanes do not wait for each other. Where the limit has room and another one is full that the
///     task needs as well, it waits for that one. However often they open and fill, a task is written for that at most
///     once for each of its tags that has a limit.
/// 27. Whatever makes room for tasks that wait, or makes another the first, names the first ones of each lane in `due`:
///     as many as there is room for in all that they are known to need, at most 64; where only a token is missing, the
///     first one, at the instant of the next token. They go on waiting until they are claimed. A task that is
///     cancelled, moved, expired or blocked waits no more.
/// 28. insert(), step() and fill() store a workflow where new_task::workflow says so: its head, with all members, or
/// they
///     answer as always where the head's key or occurrence is taken. A member whose rule has nothing to wait for is
///     ready, the others are created. The head is created, and no claim takes it.
/// 29. Whatever changes the state of a task decides anew, in the same commit, what hangs on it: a child whose rule
/// holds
///     becomes ready, one whose rule cannot hold any more skipped or upstream_failed, and so on down. What a rule has
///     ended comes back (created) where a parent is tried again, marked or rerun. What has been claimed or has run
///     stays as it is.
/// 30. The head ends when the last member has: succeeded, or upstream_failed where a member without children has not
///     succeeded and was not skipped; cancelled where the workflow was.
/// 31. cancel() of a head cancels what waits in its workflow and asks what is in flight to stop (`asked_to_stop`); the
///     head is cancelled when the last has ended. expire() of a head does the same, and the head is dead. retry() of a
///     head lets dead and cancelled members go back to where their parents leave them, and of such a member that one.
/// 32. attempt_end::members are added to the workflow of the task: behind the task, and before what waits for it.
/// 33. mark_succeeded() makes a dead task succeeded.
/// 34. rerun() stores a new generation of an ended member, and of those below it that wait (of all for
///     rerun_scope::all). It is refused where one of them is in flight, which the answer names. What waits hangs on the
///     new rows from then on, and new rows on the latest of their parents. What the handlers of those members had added
///     is left behind: cancelled where it waits, counted no more, and added anew under the next generation of its name.
///     With all, a workflow that had succeeded gets a new head, too.
/// 35. pause_workflow() keeps what is claimable, and what becomes so, from being claimed; also through a restart.
/// 36. A wait is tied to what it waits for, when that is stored or, of a workflow's member, added; then it is a parent
///     like any other.
/// 37. An occurrence that is inserted with after_past waits as created, where the one before it (that with the latest
///     nominal instant before its own) has neither succeeded nor been skipped. In the commit in which that one does, it
///     becomes ready, in the more urgent of both priority classes. Where an occurrence with after_past is inserted
///     between the two, it waits for that one. Who is waited for is not pruned. cancel() and expire() end the waiting.
/// 38. An occurrence that is inserted with set_aside is created and held. set_aside() holds one that waits (created,
///     ready, failed). It keeps nobody with its route key waiting. release(), and retry() as well, let it go: it is
///     ready, or waits for the one before it; release() gives it the more urgent of its own class and the one given. In
///     any other state they change nothing and say which.
/// 39. begin_backfill() stores a backfill under a new number. fill() forgets those of its tasks that have ended, then
///     inserts the occurrences given, in order, while there are fewer than at_once; one that is there already takes no
///     room. Its cursor moves behind the last one looked at. When that is the end and the last one has ended, the
///     backfill is gone. drop_backfill() removes one; its tasks stay.
/// 40. end_waits() looks at the waits for occurrences of a schedule that are not there. One that cannot come any more
///     counts as a parent that was skipped, and each such wait is decided: where there is no such schedule, or its
///     cursor is behind the instant, or it has none and is `over` (else: where the instant is not after that of its
///     latest occurrence); but not while a backfill under way has yet to look at the instant.
/// 41. insert() and step() refuse a workflow that would wait for what waits for it: invalid_argument with the path, and
///     the verb has written nothing. fill() leaves it out, as it does what left_out names. They look at no more
///     than 10,000 tasks, and not through a task whose rule may let it go before all its parents have ended.
/// Errors: error unavailable, disk_full, corrupt; the transaction is rolled back.
template <class W>
concept storage_writer = requires(W& w, std::string_view name, std::span<new_task const> tasks,
                                  std::span<claim_request const> requests, claim_terms const& claims,
                                  std::span<start_mark const> starts, std::span<attempt_end const> ends,
                                  reclaim_terms const& terms, task_id id, type_number number, time_point t,
                                  std::size_t limit, std::size_t capacity, bool yes, schedule_record const& schedule,
                                  schedule_step const& next, alarms& due, fence_token fence, prune_terms const& ended,
                                  std::span<finding> found, ax::limit const& how, rerun_scope scope,
                                  std::vector<resource_need> const& needs, priority_class urgency,
                                  backfill_record const& range, backfill_step const& some, std::uint64_t which) {
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
    { w.ask_to_stop(id) } -> std::same_as<bool>;
    { w.keep_step(id, fence, name, name) } -> std::same_as<bool>;
    { w.prune(ended, limit) } -> std::same_as<prune_answer>;
    { w.compact() } -> std::same_as<bool>;
    { w.note(name, name) } -> std::same_as<void>;
    { w.repair(found, t, due) } -> std::same_as<void>;
    { w.limit_type(number, how, needs, t) } -> std::same_as<alarms>;
    { w.limit_tag(name, how, t) } -> std::same_as<alarms>;
    { w.set_resource(name, capacity, t) } -> std::same_as<alarms>;
    { w.mark_succeeded(id, t) } -> std::same_as<change>;
    { w.rerun(id, scope, t) } -> std::same_as<change>;
    { w.pause_workflow(id, yes, t) } -> std::same_as<change>;
    { w.set_aside(id, t) } -> std::same_as<change>;
    { w.release(id, urgency, t) } -> std::same_as<change>;
    { w.begin_backfill(range, t) } -> std::same_as<backfill_record>;
    { w.fill(some, t) } -> std::same_as<backfill_answer>;
    { w.drop_backfill(which) } -> std::same_as<bool>;
    { w.end_waits(name, yes, t, due) } -> std::same_as<void>;
};

/// A writer that may claim at once what its verbs make due. After offer() the verbs of this transaction put what they
/// take into `claimed`, as claim() would have done a moment later, and take it off `room`. They may leave any task to
/// claim(); they take none that waits for anything but its time, none of a limited type or with a limited tag, and no
/// suspect. `leave` must live as long as the transaction.
template <class W>
concept eager_writer = storage_writer<W> && requires(W& w, claim_offer& leave) {
    { w.offer(leave) } -> std::same_as<void>;
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
///  5. list() gives tasks in a stable order: ready and failed ones by (run_at, id) with those last that are blocked,
///     held or wait for a limit, all others the latest id first; `after` continues behind the last one of the page
///     before.
///  6. history() has every attempt that was started, in order, the running one last.
///  7. obstacles() tells what keeps a waiting task back that other tasks have, and who they are: its route key, the
///     limit it has met, the occurrence before it, the parents that have not ended (or what a wait waits for and is not
///     there yet), that its workflow is paused, and each resource of which its type needs more than the capacity. It is
///     empty for a task that nothing of the kind keeps back.
///  8. asked_to_stop() names the tasks in flight that ask_to_stop() has marked.
///  9. steps() gives all that keep_step() has kept of a task, by name, whatever has become of the attempt.
/// 10. counts() is exact as of one commit, by type number, priority class and state, and leaves out what is zero. It
///     costs no more where there are more tasks.
/// 11. note() gives what was kept under that name; nothing where nothing was.
/// 12. verify() finds states that cannot come about, at most a thousand of them, and changes nothing.
/// 13. waiting() names anew who waits, as writer's sentence 27 says, for at most `most` limits behind `after`.
/// 14. limits() gives every limit, by number.
/// 15. workflow() tells how the workflow stands that a head or member belongs to, as of one commit. It costs no more
///     where that is larger: what is in flight in the store is looked at, and no other task.
/// 16. members() gives the members of a workflow by (name, generation), those with a name behind `after`; a page has
/// all
///     generations of each name in it.
/// 17. parents() gives the parents of a task in the order of their ids.
/// 18. occurrence() gives the task of a schedule and a nominal instant. aside() gives those that are set aside, by
///     nominal instant, from `from` and before `to`, at most `limit`.
/// 19. backfills() gives every backfill that is under way, by number.
/// 20. skips() gives what a schedule has left out; nothing of one that is not there.
/// `now` is the caller's clock; a shared storage uses its own instead.
/// Errors: error unavailable, outcome_unknown, disk_full, corrupt.
template <class S>
concept storage = std::movable<S> && storage_writer<typename S::writer> &&
    requires(S& s, S const& c, detail::transaction_archetype<typename S::writer>& fn, task_id id, std::string_view name,
             alarm const& after, limit_number number, time_point t, std::size_t limit, task_filter const& filter) {
    { S::durable } -> std::convertible_to<bool>;
    { s.transact(commit::durable, fn) } -> std::same_as<void>;
    { s.transact(commit::lazy, std::move(fn)) } -> std::same_as<void>;
    { c.find(id) } -> std::same_as<std::optional<task_record>>;
    { c.find_by_key(name) } -> std::same_as<std::optional<task_record>>;
    { c.list(filter, t) } -> std::same_as<std::vector<task_record>>;
    { c.history(id) } -> std::same_as<std::vector<attempt_view>>;
    { c.obstacles(id) } -> std::same_as<std::vector<obstacle>>;
    { c.asked_to_stop() } -> std::same_as<std::vector<task_id>>;
    { c.upcoming(after, t, limit) } -> std::same_as<alarms>;
    { c.types() } -> std::same_as<std::vector<type_info>>;
    { c.schedules() } -> std::same_as<std::vector<schedule_record>>;
    { c.steps(id) } -> std::same_as<std::vector<kept_step>>;
    { c.counts() } -> std::same_as<std::vector<task_count>>;
    { c.note(name) } -> std::same_as<std::string>;
    { c.verify() } -> std::same_as<std::vector<finding>>;
    { c.waiting(number, limit, t) } -> std::same_as<waiting_page>;
    { c.limits() } -> std::same_as<std::vector<limit_info>>;
    { c.workflow(id) } -> std::same_as<std::optional<workflow_record>>;
    { c.members(id, name, limit) } -> std::same_as<std::vector<member_record>>;
    { c.parents(id) } -> std::same_as<std::vector<parent_record>>;
    { c.occurrence(name, t) } -> std::same_as<std::optional<task_record>>;
    { c.aside(name, t, t, limit) } -> std::same_as<std::vector<task_record>>;
    { c.backfills() } -> std::same_as<std::vector<backfill_record>>;
    { c.skips(name) } -> std::same_as<skip_log>;
};

/// A storage that lies in a database of the host's, so that both can write in one transaction.
///
///  1. settle() calls the effects of a success, where the fence is current, in the transaction that records it, each
///     with the connection, in order. Where one throws, or does what it may not, all that they wrote is undone, the
///     attempt ends as `otherwise` says, and the settlement names it; every other end is settled as if alone. Where
///     they end the transaction itself, it is redone without them.
///  2. insert_in() inserts a task through the host's connection: inside of its open transaction, and visible and
///     undone with that, or in one of its own where there is none. The rest is as insert().
/// Errors: invalid_argument where that connection is none to this store, or cannot write it in one commit with the
///         rest; unavailable, disk_full, corrupt: nothing of the task was written, and the host's transaction stands
///         (unless SQLite has undone that as a whole).
template <class S>
concept transactional_storage = storage<S> &&
    requires(S& s, typename S::host_connection connection, std::string_view type, new_task& task, time_point now,
             alarms& due) {
    { s.insert_in(connection, type, task, now, due) } -> std::same_as<guest_insertion>;
};

} // namespace ax

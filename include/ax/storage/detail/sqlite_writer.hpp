// SPDX-License-Identifier: MIT
// The verbs of sqlite_storage. A verb reads the row, decides in C++, and writes it: all inside a write transaction, so
// that nobody comes between. (One conditional UPDATE ... RETURNING instead would be slower: SQLite builds a table of
// the returned rows first.)
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// What changes of a task.
struct sqlite_task_row {
    task_id id{};
    lane_id lane{};
    task_state state{};
    std::int64_t gate = 0;
    std::int64_t flags = 0;
    time_point run_at{};
    time_point order_at{};
    std::uint64_t version = 0;
    fence_token fence{};
    node_id node{};
    std::uint64_t attempts = 0;
    std::uint64_t failures = 0;
    std::uint64_t interruptions = 0;
    std::uint64_t snoozes = 0;
    std::uint64_t unclean_ends = 0;
    std::uint64_t lonely_deaths = 0;
    time_point changed{};
    std::optional<time_point> started;
    std::optional<time_point> first_started;
    std::optional<time_point> finished;
    std::optional<time_point> deadline;
    std::string route_key;

    bool relaxed() const noexcept { return (flags & flag_relaxed) != 0; }

    void enter(task_state to, time_point at) noexcept {
        state = to;
        changed = at;
        ++version;
        if (!is_terminal(to)) return;
        finished = at;
        gate = 0;
    }

    /// Waits for a person from now on, or no longer.
    void hold(bool yes) noexcept {
        auto const bits = gate_held | (relaxed() ? gate_aside : 0);
        gate = yes ? gate | bits : gate & ~(gate_held | gate_aside);
    }
};

/// What a writing connection remembers from one transaction to the next, and takes back where one is undone.
template <class Connection>
class sqlite_session {
  public:
    explicit sqlite_session(Connection& connection) : connection_(connection) {}

    Connection& connection() noexcept { return connection_; }
    sqlite_type_names<Connection>& names() noexcept { return names_; }

    void committed() noexcept { ids_before_ = ids_; }
    void undone() noexcept {
        ids_ = ids_before_;
        names_.clear(); // a type of the undone transaction may come back under another number
    }

    /// The id for the next task. Ids are taken out of the store in blocks, so that an id is never used again, even
    /// after the latest tasks have been deleted, without writing a counter for each.
    task_id next_id() {
        if (ids_.next == ids_.end) {
            std::uint64_t first = 0;
            {
                sqlite_run query(connection_, sqlite_sql::id_block);
                if (!query.next() || !query.is_integer(0) || query.number(0) < 1)
                    throw error(errc::corrupt, connection_.path() + ": ax_meta has no next_id");
                first = query.as<std::uint64_t>(0);
            }
            sqlite_run(connection_, sqlite_sql::take_id_block, {id_block}).finish();
            ids_ = {first, first + id_block};
        }
        return task_id{ids_.next++};
    }

    /// Takes back the latest id, which was not used.
    void give_back(task_id id) noexcept { ids_.next = to_number(id); }

    /// Gives back what is left of the present block, where it is still the latest: so ids have no gap over a restart.
    void return_ids() {
        if (ids_.next == ids_.end) return;
        sqlite_run(connection_, sqlite_sql::put_id_block, {ids_.next, ids_.end}).finish();
        ids_.next = ids_.end;
    }

    sqlite_task_row& scratch() noexcept { return scratch_; }

  private:
    static constexpr std::uint64_t id_block = 1'000;
    struct ids {
        std::uint64_t next = 0;
        std::uint64_t end = 0;
    };

    Connection& connection_;
    sqlite_type_names<Connection> names_;
    ids ids_;
    ids ids_before_; ///< as of the latest commit
    sqlite_task_row scratch_;
};

/// The verbs of sqlite_storage; see storage_writer. Exists only inside transact().
///
/// Where a verb fails in SQLite (disk full, unreachable), the whole transaction is undone, whatever `fn` does about it.
template <class Connection>
class sqlite_writer {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using task_id = dependent<ax::task_id, Connection>;
    using task_state = dependent<ax::task_state, Connection>;
    using task_record = dependent<ax::task_record, Connection>;
    using time_point = dependent<ax::time_point, Connection>;
    using type_number = dependent<ax::type_number, Connection>;
    using new_task = dependent<ax::new_task, Connection>;
    using alarms = dependent<ax::alarms, Connection>;
    using insertion = dependent<ax::insertion, Connection>;
    using claim_request = dependent<ax::claim_request, Connection>;
    using claim_answer = dependent<ax::claim_answer, Connection>;
    using start_mark = dependent<ax::start_mark, Connection>;
    using attempt_end = dependent<ax::attempt_end, Connection>;
    using settlement = dependent<ax::settlement, Connection>;
    using reclaim_answer = dependent<ax::reclaim_answer, Connection>;
    using change = dependent<ax::change, Connection>;
    using expiry = dependent<ax::expiry, Connection>;
    using schedule_record = dependent<ax::schedule_record, Connection>;
    using schedule_step = dependent<ax::schedule_step, Connection>;
    using schedule_answer = dependent<ax::schedule_answer, Connection>;

  public:
    explicit sqlite_writer(sqlite_session<Connection>& session) noexcept
        : session_(session), sql_(session.connection()) {}
    sqlite_writer(sqlite_writer const&) = delete;
    sqlite_writer& operator=(sqlite_writer const&) = delete;

    /// The connection, in the middle of this transaction: what is written through it commits with the rest or not at
    /// all. It must not be used to end the transaction, nor to change what begins with ax_.
    sqlite3* handle() const noexcept { return sql_.handle(); }

    type_number type(std::string_view name) {
        check_open();
        if (auto const known = number_of(name)) return *known;
        std::uint32_t number = 1;
        {
            sqlite_run last(sql_, sqlite_sql::last_type);
            if (last.next()) number = last.as<std::uint32_t>(0) + 1;
        }
        sqlite_run(sql_, sqlite_sql::insert_type, {number, name}).finish();
        return type_number{number};
    }

    std::vector<insertion> insert(std::span<new_task const> tasks, time_point now, alarms& due) {
        check_open();
        check_types(tasks);
        std::vector<insertion> answer;
        answer.reserve(tasks.size());
        for (auto const& task : tasks) answer.push_back(insert_one(task, now, due));
        return answer;
    }

    claim_answer claim(std::span<claim_request const> requests, claim_terms const& terms) {
        check_open();
        claim_answer answer;
        answer.claimed.reserve(requests.size());
        auto room = terms.suspects;
        for (auto const& request : requests)
            if (auto task = claimable(request.id, terms)) {
                bool const suspect = task->unclean_ends >= 2;
                if (suspect && room == 0) {
                    if (std::find(answer.suspects.begin(), answer.suspects.end(), request.id) == answer.suspects.end())
                        answer.suspects.push_back(request.id);
                    continue;
                }
                if (suspect) --room;
                task->state = task_state::dispatched;
                task->changed = terms.now;
                task->fence = fence_token{++task->version};
                task->node = terms.node;
                task->hold_on_interrupt = request.hold_on_interrupt;
                task->lonely = suspect;
                ++task->attempts;
                auto const flags = (task->hold_on_interrupt ? flag_hold_on_interrupt : 0) |
                                   (suspect ? flag_lonely : 0) |
                                   (task->route_order == route_ordering::relaxed ? flag_relaxed : 0);
                sqlite_run(sql_, sqlite_sql::claim_task,
                           {task->id, task->version, task->node, task->attempts, task->changed, flags})
                    .finish();
                answer.claimed.push_back(*std::move(task));
            }
        return answer;
    }

    void start(std::span<start_mark const> starts, time_point) {
        check_open();
        for (auto const& mark : starts)
            sqlite_run(sql_, sqlite_sql::start_task, {mark.id, mark.fence, mark.at}).finish();
    }

    settlement settle(std::span<attempt_end const> ends, time_point now) {
        check_open();
        for (auto const& end : ends)
            if (end.outcome == attempt_outcome::succeeded) check_types(end.follow_ups);
        settlement answer;
        answer.accepted.reserve(ends.size());
        answer.states.reserve(ends.size());
        for (auto const& end : ends) {
            auto const state = settle_one(end, now, answer.due);
            answer.accepted.push_back(state.has_value());
            answer.states.push_back(state.value_or(task_state::created));
        }
        return answer;
    }

    reclaim_answer reclaim(reclaim_terms const& terms) {
        check_open();
        std::vector<task_id> lost;
        {
            sqlite_run query(sql_, sqlite_sql::in_flight_elsewhere, {terms.node});
            while (query.next()) lost.push_back(query.as<task_id>(0));
        }
        std::make_heap(lost.begin(), lost.end());
        std::sort_heap(lost.begin(), lost.end());
        reclaim_answer answer;
        for (auto const id : lost) reclaim_one(id, terms, answer);
        return answer;
    }

    change cancel(task_id id, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (task->state != task_state::created && !is_claimable(task->state))
            return {change_outcome::wrong_state, task->state, {}};
        task->enter(task_state::cancelled, now);
        update(*task);
        return changed(*task);
    }

    change retry(task_id id, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (task->state == task_state::dead || task->state == task_state::cancelled) {
            task->enter(task_state::ready, now);
            task->run_at = now;
            task->order_at = now;
            task->failures = 0;
            task->unclean_ends = 0;
            task->lonely_deaths = 0;
            task->finished.reset();
            task->first_started.reset();
            task->gate = task->route_key.empty() ? 0 : gate_blocked; // until it has been seen to be the first
            if (task->deadline && *task->deadline <= now) task->deadline.reset();
        } else if ((task->gate & gate_held) != 0) {
            task->hold(false);
            ++task->version;
        } else {
            return {change_outcome::wrong_state, task->state, {}};
        }
        update(*task);
        return changed(*task);
    }

    change reschedule(task_id id, time_point run_at, time_point) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (!is_claimable(task->state)) return {change_outcome::wrong_state, task->state, {}};
        task->run_at = run_at;
        task->order_at = run_at;
        ++task->version;
        update(*task);
        return changed(*task);
    }

    expiry expire(time_point now, std::size_t limit) {
        check_open();
        expiry answer;
        while (answer.dead.size() < limit) {
            auto const late = first_deadline(now);
            auto* const task = late ? load(late->first) : nullptr;
            if (task == nullptr) break;
            task->enter(task_state::dead, now);
            update(*task, "deadline passed");
            answer.dead.push_back(task->id);
            rearm(*task, answer.due);
        }
        if (auto const next = first_deadline((time_point::max)())) answer.next = next->second;
        return answer;
    }

    void pause(type_number number, bool yes) {
        check_open();
        sqlite_run(sql_, sqlite_sql::pause_type, {number, yes}).finish();
    }

    schedule_record declare(schedule_record const& wanted, time_point now) {
        check_open();
        auto const present = find_schedule(wanted.name);
        if (present && present->spec == wanted.spec && present->type == wanted.type &&
            present->payload == wanted.payload)
            return *present;
        auto record = present ? *present : wanted;
        if (present) {
            record.spec = wanted.spec;
            record.type = wanted.type;
            record.payload = wanted.payload;
            record.next = wanted.next;
            ++record.version;
        } else {
            record.version = 1;
            record.created = now;
        }
        put_schedule(record);
        return record;
    }

    schedule_answer step(schedule_step const& next, time_point now) {
        check_open();
        schedule_answer answer;
        auto present = find_schedule(next.name);
        if (!present) return answer;
        answer.record = *std::move(present);
        auto& record = answer.record;
        if (record.version != next.version) return answer;
        if (next.occurrence) check_types({&*next.occurrence, 1});

        answer.accepted = true;
        ++record.version;
        record.next = next.next;
        record.skipped += next.skipped;
        if (next.skipped > 0) record.last_skip = next.skip_reason;
        if (next.occurrence) {
            if (next.skip_if_unfinished && is_unfinished(record.last_task)) {
                ++record.skipped;
                record.last_skip = "the one before has not ended";
            } else {
                answer.occurrence = insert_one(*next.occurrence, now, answer.due);
                if (answer.occurrence->outcome == submit_outcome::inserted) ++record.fired;
                record.last_task = answer.occurrence->id;
                record.last_nominal = next.occurrence->scheduled_at;
            }
        }
        put_schedule(record);
        return answer;
    }

    bool forget(std::string_view name) {
        check_open();
        return sqlite_run(sql_, sqlite_sql::delete_schedule, {name}).finish() > 0;
    }

  private:
    /// After some errors SQLite has undone the transaction by itself, and whatever ran now would commit on its own.
    void check_open() const {
        if (sql_.has_failed() || !sql_.in_transaction()) sql_.throw_first_failure();
    }

    // ---- types -----------------------------------------------------------------------------------------------------

    std::optional<type_number> number_of(std::string_view name) {
        sqlite_run query(sql_, sqlite_sql::type_number, {name});
        return query.next() ? std::optional{query.as<type_number>(0)} : std::nullopt;
    }

    /// Before anything is written, since this is the one fault that is the caller's.
    void check_types(std::span<new_task const> tasks) {
        type_number known{};
        for (auto const& task : tasks) {
            if (task.type == known) continue;
            if (session_.names().find(sql_, task.type) == nullptr)
                throw error(errc::invalid_argument, "task type without a number of this store");
            known = task.type;
        }
    }

    // ---- rows ------------------------------------------------------------------------------------------------------

    /// @return  Nothing where there is no such task, or its row makes no sense.
    sqlite_task_row* load(task_id id) {
        sqlite_run row(sql_, sqlite_sql::task_row, {id});
        if (!row.next()) return nullptr;
        auto const state = task_state_of(row.number(2));
        if (!state) return nullptr;
        auto& task = session_.scratch();
        task.id = id;
        task.lane = row.as<lane_id>(1);
        task.state = *state;
        task.gate = row.number(3);
        task.flags = row.number(4);
        task.run_at = row.time(5);
        task.order_at = row.time(6);
        task.version = row.as<std::uint64_t>(7);
        task.fence = row.as<fence_token>(8);
        task.node = row.as<node_id>(9);
        task.attempts = row.as<std::uint64_t>(10);
        task.failures = row.as<std::uint64_t>(11);
        task.interruptions = row.as<std::uint64_t>(12);
        task.snoozes = row.as<std::uint64_t>(13);
        task.unclean_ends = row.as<std::uint64_t>(14);
        task.lonely_deaths = row.as<std::uint64_t>(15);
        task.changed = row.time(16);
        task.started = row.maybe_time(17);
        task.first_started = row.maybe_time(18);
        task.finished = row.maybe_time(19);
        task.deadline = row.maybe_time(20);
        task.route_key = row.text(21);
        return &task;
    }

    /// @param problem  Becomes last_error unless empty.
    void update(sqlite_task_row const& task, std::string_view problem = {}) {
        sqlite_run(sql_, sqlite_sql::update_task,
                   {task.id, task.state, task.gate, task.flags, task.run_at, task.order_at, task.version, task.attempts,
                    task.failures, task.interruptions, task.snoozes, task.unclean_ends, task.lonely_deaths,
                    task.changed, task.started, task.first_started, task.finished, task.deadline, sqlite_text{problem}})
            .finish();
    }

    // ---- inserting -------------------------------------------------------------------------------------------------

    insertion insert_one(new_task const& task, time_point now, alarms& due) {
        auto const lane = make_lane(task.type, task.priority);
        auto const run_at = task.run_at ? *task.run_at : saturating_add(now, task.delay);
        bool const routed = !task.route_key.empty();
        auto const id = session_.next_id();
        auto const flags = task.route_order == route_ordering::relaxed ? flag_relaxed : 0;
        auto const gate = routed ? gate_blocked : 0; // until it has been seen to be the first
        int const added = sqlite_run(sql_, sqlite_sql::insert_task,
                                     {id, lane, gate, flags, run_at, now, task.deadline, task.scheduled_at,
                                      sqlite_text{task.key}, sqlite_text{task.route_key}, sqlite_text{task.schedule},
                                      sqlite_text{task.retry}, sqlite_blob{task.payload}})
                              .finish();
        if (added == 0) {
            session_.give_back(id);
            return holder_of(task);
        }
        if (!routed)
            due.push_back({id, lane, run_at});
        else if (auto const turn = promote(task.route_key); turn.freed != task_id{})
            announce(turn.freed, due);
        return {id, submit_outcome::inserted, task_state::ready};
    }

    insertion holder_of(new_task const& task) {
        if (!task.key.empty()) {
            sqlite_run query(sql_, sqlite_sql::key_holder, {task.key});
            if (query.next()) return {query.as<task_id>(0), submit_outcome::kept, query.as<task_state>(1)};
        }
        if (!task.schedule.empty() && task.scheduled_at) {
            sqlite_run query(sql_, sqlite_sql::occurrence_holder, {task.schedule, task.scheduled_at});
            if (query.next()) return {query.as<task_id>(0), submit_outcome::kept, query.as<task_state>(1)};
        }
        throw error(errc::corrupt, sql_.path() + ": a task was refused, and none holds its key");
    }

    // ---- claiming and settling -------------------------------------------------------------------------------------

    std::optional<task_record> claimable(task_id id, claim_terms const& terms) {
        sqlite_run row(sql_, sqlite_sql::task, {id});
        if (!row.next() || row.number(3) != 0) return std::nullopt;
        auto const state = row.number(2);
        if (state != static_cast<int>(task_state::ready) && state != static_cast<int>(task_state::failed))
            return std::nullopt;
        if (row.time(5) > terms.until || (!row.null(21) && row.time(21) <= terms.now)) return std::nullopt;
        return read_task(row, sql_, session_.names());
    }

    /// What most attempts come to, in one statement: a success of a task without a route, with nothing to tell.
    bool succeed_plainly(attempt_end const& end) {
        return end.outcome == attempt_outcome::succeeded && end.started && end.error.empty() && end.log.empty() &&
               sqlite_run(sql_, sqlite_sql::succeed_plainly,
                          {end.id, end.fence, end.ended, end.started, sqlite_blob{end.result}})
                       .finish() != 0;
    }

    std::optional<task_state> settle_one(attempt_end const& end, time_point now, alarms& due) {
        if (succeed_plainly(end)) {
            for (auto const& follow_up : end.follow_ups) insert_one(follow_up, now, due);
            return task_state::succeeded;
        }
        auto* const task = load(end.id);
        if (task == nullptr || !is_active(task->state) || task->fence != end.fence) return std::nullopt;
        auto attempt_start = end.started;
        if (!attempt_start && task->state == task_state::running) attempt_start = task->started;
        auto const number = task->attempts;
        bool const released = end.outcome == attempt_outcome::released;

        task->flags &= flag_relaxed;
        if (!released && end.started) {
            task->started = end.started;
            if (!task->first_started) task->first_started = end.started;
        }
        if (end.outcome == attempt_outcome::succeeded) {
            task->enter(task_state::succeeded, end.ended);
            sqlite_run(sql_, sqlite_sql::succeed_task,
                       {task->id, task->version, task->flags, task->changed, task->started, task->first_started,
                        sqlite_blob{end.result}})
                .finish();
            // What nothing but the task itself says is not written twice: history() tells it from there.
            if (!attempt_start || !end.error.empty() || !end.log.empty())
                record_attempt(*task, number, attempt_start, end);
        } else {
            apply(*task, end);
            update(*task, released ? std::string_view{} : std::string_view{end.error});
            if (!released) record_attempt(*task, number, attempt_start, end);
        }
        auto const state = task->state;
        rearm(*task, due);
        if (end.outcome == attempt_outcome::succeeded) // `task` is overwritten here
            for (auto const& follow_up : end.follow_ups) insert_one(follow_up, now, due);
        return state;
    }

    static void apply(sqlite_task_row& task, attempt_end const& end) {
        if (end.outcome != attempt_outcome::released) {
            task.unclean_ends = 0;
            task.lonely_deaths = 0;
        }
        auto const again = [&](task_state state) {
            task.enter(state, end.ended);
            if (!end.retry_at) return;
            task.run_at = *end.retry_at;
            if (task.relaxed()) task.order_at = task.run_at;
        };
        switch (end.outcome) {
        case attempt_outcome::failed: ++task.failures; return again(task_state::failed);
        case attempt_outcome::snoozed: ++task.snoozes; return again(task_state::ready);
        case attempt_outcome::exhausted: ++task.failures; return task.enter(task_state::dead, end.ended);
        case attempt_outcome::expired: return task.enter(task_state::dead, end.ended);
        case attempt_outcome::cancelled: return task.enter(task_state::cancelled, end.ended);
        case attempt_outcome::skipped: return task.enter(task_state::skipped, end.ended);
        case attempt_outcome::held: task.hold(true); [[fallthrough]];
        case attempt_outcome::interrupted:
        case attempt_outcome::crashed: ++task.interruptions; return task.enter(task_state::ready, end.ended);
        case attempt_outcome::released: --task.attempts; return task.enter(task_state::ready, end.ended);
        case attempt_outcome::succeeded: return;
        }
    }

    void record_attempt(sqlite_task_row const& task, std::uint64_t number, std::optional<time_point> const& started,
                        attempt_end const& end) {
        sqlite_run(sql_, sqlite_sql::insert_attempt,
                   {task.id, number, task.fence, task.node, started, end.ended, end.outcome, sqlite_text{end.error},
                    sqlite_blob{end.log}})
            .finish();
    }

    void reclaim_one(task_id id, reclaim_terms const& terms, reclaim_answer& answer) {
        auto* const task = load(id);
        if (task == nullptr) return;
        bool const may_have_run = task->state == task_state::running;
        auto const started = may_have_run ? task->started : std::nullopt;
        ++task->interruptions;
        ++task->unclean_ends;
        if ((task->flags & flag_lonely) != 0) ++task->lonely_deaths;
        std::string problem = "the process ended while this attempt was in flight";
        if (task->lonely_deaths >= terms.poison_after) {
            task->enter(task_state::dead, terms.now);
            problem =
                "poison: the process ended " + std::to_string(task->lonely_deaths) + " times while this task ran alone";
            answer.poisoned.push_back(id);
        } else {
            task->enter(task_state::ready, terms.now);
            bool const hold = may_have_run && (task->flags & flag_hold_on_interrupt) != 0;
            task->hold(hold);
            ++(hold ? answer.held : answer.reclaimed);
        }
        task->flags &= flag_relaxed;
        update(*task, problem);
        sqlite_run(sql_, sqlite_sql::insert_attempt,
                   {task->id, task->attempts, task->fence, task->node, started, terms.now, attempt_outcome::crashed,
                    sqlite_text{problem}, sqlite_blob{}})
            .finish();
        promote(task->route_key);
    }

    /// The waiting task with the earliest deadline, where that is not behind `until`.
    std::optional<std::pair<task_id, time_point>> first_deadline(time_point until) {
        sqlite_run query(sql_, sqlite_sql::overdue, {until});
        if (!query.next()) return std::nullopt;
        return std::pair{query.as<task_id>(0), query.time(1)};
    }

    // ---- routes ----------------------------------------------------------------------------------------------------

    struct route_turn {
        task_id freed{};   ///< it is its turn now
        task_id blocked{}; ///< it was, and is no longer
    };

    /// Decides anew who is first of a route key. To be called after every change of one of its tasks.
    route_turn promote(std::string_view route_key) {
        if (route_key.empty()) return {};
        route_turn answer;
        {
            sqlite_run head(sql_, sqlite_sql::route_head, {route_key});
            if (head.next()) {
                if (is_active(head.as<task_state>(1))) return {};
                answer.blocked = head.as<task_id>(0);
            }
        }
        {
            sqlite_run first(sql_, sqlite_sql::route_first, {route_key});
            if (first.next()) answer.freed = first.as<task_id>(0);
        }
        if (answer.freed == answer.blocked) return {};
        // In this order: the index of heads is unique.
        if (answer.blocked != task_id{}) sqlite_run(sql_, sqlite_sql::block_task, {answer.blocked}).finish();
        if (answer.freed != task_id{}) sqlite_run(sql_, sqlite_sql::unblock_task, {answer.freed}).finish();
        return answer;
    }

    void announce(task_id id, alarms& due) {
        sqlite_run query(sql_, sqlite_sql::alarm_of, {id});
        if (query.next()) due.push_back({id, query.as<lane_id>(0), query.time(1)});
    }

    /// To be called after a task has been updated: whose turn is it, and what is there to wake up for?
    void rearm(sqlite_task_row& task, alarms& due) {
        auto const turn = promote(task.route_key);
        if (turn.blocked == task.id) task.gate |= gate_blocked;
        if (turn.freed == task.id) task.gate &= ~gate_blocked;
        if (turn.freed != task_id{} && turn.freed != task.id) announce(turn.freed, due);
        if (is_claimable(task.state) && task.gate == 0) due.push_back({task.id, task.lane, task.run_at});
    }

    change changed(sqlite_task_row& task) {
        change answer{change_outcome::done, task.state, {}};
        rearm(task, answer.due);
        return answer;
    }

    // ---- schedules -------------------------------------------------------------------------------------------------

    std::optional<schedule_record> find_schedule(std::string_view name) {
        sqlite_run query(sql_, sqlite_sql::schedule, {name});
        return query.next() ? std::optional{read_schedule(query)} : std::nullopt;
    }

    void put_schedule(schedule_record const& record) {
        sqlite_run(sql_, sqlite_sql::put_schedule,
                   {std::string_view{record.name}, std::string_view{record.spec}, record.type,
                    sqlite_blob{record.payload}, record.next, record.last_nominal, record.last_task, record.version,
                    record.fired, record.skipped, sqlite_text{record.last_skip}, record.created})
            .finish();
    }

    bool is_unfinished(task_id id) {
        sqlite_run query(sql_, sqlite_sql::task_state, {id});
        return query.next() && !is_terminal(query.as<task_state>(0));
    }

    sqlite_session<Connection>& session_;
    Connection& sql_;
};

} // namespace ax::detail

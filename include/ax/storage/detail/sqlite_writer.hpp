// SPDX-License-Identifier: MIT
// The verbs of sqlite_storage. A verb reads the row, decides in C++, and writes it: all inside a write transaction, so
// that nobody comes between. (One conditional UPDATE ... RETURNING instead would be slower: SQLite builds a table of
// the returned rows first.)
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/awaited_occurrence.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_counts.hpp"
#include "ax/storage/detail/sqlite_effects.hpp"
#include "ax/storage/detail/sqlite_graph.hpp"
#include "ax/storage/detail/sqlite_keys.hpp"
#include "ax/storage/detail/sqlite_limits.hpp"
#include "ax/storage/detail/sqlite_periods.hpp"
#include "ax/storage/detail/sqlite_prune.hpp"
#include "ax/storage/detail/sqlite_rows.hpp"
#include "ax/storage/detail/sqlite_verify.hpp"

#include <algorithm>
#include <atomic>
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
    task_state counted{}; ///< the state that it is counted in
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
    line_number waits_for{};

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

    bool is_aside() const noexcept { return (gate & gate_aside) != 0 && !relaxed(); }
};

/// What a writing connection remembers from one transaction to the next, and takes back where one is undone.
template <class Connection>
class sqlite_session {
  public:
    using connection_type = Connection;

    /// @param id_block  How many ids are taken out of the store at once.
    explicit sqlite_session(Connection& connection, std::uint64_t id_block = 1'000)
        : connection_(connection), limits_(connection), id_block_(id_block) {}

    Connection& connection() noexcept { return connection_; }
    sqlite_type_names<Connection>& names() noexcept { return names_; }
    sqlite_limits<Connection>& limits() noexcept { return limits_; }

    sqlite_counts<Connection>& counts() noexcept { return counts_; }
    sqlite_lanes<Connection>& lanes() noexcept { return lanes_; }

    /// Writes what is written once a transaction. To be called before each commit, and where another than this session
    /// commits, behind each verb.
    void flush() { counts_.flush(connection_); }

    void committed() noexcept { ids_before_ = ids_; }
    void undone() noexcept {
        ids_ = ids_before_;
        counts_.clear();
        wants_checkpoint_ = false;
        lanes_.clear(); // an id of the undone transaction may come back in another lane
        names_.clear(); // a type of the undone transaction may come back under another number
        limits_.forget();
    }

    /// The id for the next task. Ids are taken out of the store in blocks, so that an id is never used again, even
    /// after the latest tasks have been deleted, without writing a counter for each.
    task_id next_id() {
        auto const guests = guests_.load(std::memory_order_relaxed);
        if (ids_.next == ids_.end || ids_.guests != guests) {
            std::uint64_t first = 0;
            {
                sqlite_run query(connection_, sqlite_sql::id_block);
                if (!query.next() || !query.is_integer(0) || query.number(0) < 1)
                    throw error(errc::corrupt, connection_.path() + ": ax_meta has no next_id");
                first = query.as<std::uint64_t>(0);
            }
            sqlite_run(connection_, sqlite_sql::take_id_block, {id_block_}).finish();
            ids_ = {first, first + id_block_, guests};
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

    /// Another connection has taken ids behind the present block: the next id is to be behind those. Threads: safe.
    void overtaken() noexcept { guests_.fetch_add(1, std::memory_order_relaxed); }

    sqlite_effects<Connection>& effects() noexcept { return effects_; }

    sqlite_task_row& scratch() noexcept { return scratch_; }

    /// The file has become shorter in this transaction, which it really does when the log is copied back.
    void ask_for_checkpoint() noexcept { wants_checkpoint_ = true; }
    bool take_wish_for_checkpoint() noexcept { return std::exchange(wants_checkpoint_, false); }

  private:
    struct ids {
        std::uint64_t next = 0;
        std::uint64_t end = 0;
        std::uint32_t guests = 0; ///< as counted when the block was taken
    };

    Connection& connection_;
    sqlite_type_names<Connection> names_;
    sqlite_counts<Connection> counts_;
    sqlite_lanes<Connection> lanes_;
    sqlite_limits<Connection> limits_;
    ids ids_;
    ids ids_before_; ///< as of the latest commit
    std::uint64_t const id_block_;
    std::atomic<std::uint32_t> guests_{0}; ///< how often others have taken ids
    sqlite_effects<Connection> effects_;
    sqlite_task_row scratch_;
    bool wants_checkpoint_ = false;
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
    using limit_terms = dependent<ax::limit, Connection>;
    using resource_need = dependent<ax::resource_need, Connection>;
    using insertion = dependent<ax::insertion, Connection>;
    using claim_request = dependent<ax::claim_request, Connection>;
    using claim_answer = dependent<ax::claim_answer, Connection>;
    using claim_offer = dependent<ax::claim_offer, Connection>;
    using start_mark = dependent<ax::start_mark, Connection>;
    using attempt_end = dependent<ax::attempt_end, Connection>;
    using settlement = dependent<ax::settlement, Connection>;
    using reclaim_answer = dependent<ax::reclaim_answer, Connection>;
    using change = dependent<ax::change, Connection>;
    using expiry = dependent<ax::expiry, Connection>;
    using schedule_record = dependent<ax::schedule_record, Connection>;
    using schedule_step = dependent<ax::schedule_step, Connection>;
    using schedule_answer = dependent<ax::schedule_answer, Connection>;
    using skip_range = dependent<ax::skip_range, Connection>;
    using lane_id = dependent<ax::lane_id, Connection>;
    using finding = dependent<ax::finding, Connection>;
    using prune_answer = dependent<ax::prune_answer, Connection>;
    using backfill_record = dependent<ax::backfill_record, Connection>;
    using backfill_step = dependent<ax::backfill_step, Connection>;
    using backfill_answer = dependent<ax::backfill_answer, Connection>;

  public:
    using connection_type = Connection;

    explicit sqlite_writer(sqlite_session<Connection>& session) noexcept
        : session_(session), sql_(session.connection()), keys_(sql_), limits_(session.limits()), periods_(sql_) {}
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
        for (auto const& task : tasks) graph_.refuse_circle(task);
        std::vector<insertion> answer;
        answer.reserve(tasks.size());
        for (auto const& task : tasks) answer.push_back(insert_any(task, now, due));
        settle_changes(now, due);
        return answer;
    }

    change rerun(task_id id, rerun_scope scope, time_point now) {
        check_open();
        change answer;
        answer.outcome = graph_.rerun(id, scope, now, answer.due, answer.task);
        settle_changes(now, answer.due);
        if (auto const* const task = load(answer.task)) answer.state = task->state;
        return answer;
    }

    change mark_succeeded(task_id id, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (task->state != task_state::dead || is_workflow(*task) || is_superseded(*task))
            return {change_outcome::wrong_state, task->state};
        task->enter(task_state::succeeded, now);
        update(*task);
        change answer{change_outcome::done, task_state::succeeded};
        if ((task->flags & flag_awaited) != 0) let_followers_go(id, class_of(task->lane), now, answer.due);
        settle_changes(now, answer.due);
        return answer;
    }

    change pause_workflow(task_id id, bool yes, time_point now) {
        check_open();
        auto const head = store_.node(id);
        if (!head || head->kind != member_kind::workflow) return {};
        change answer{change_outcome::done, head->state};
        graph_.pause(head->workflow, yes, answer.due, answer.asked_to_stop);
        settle_changes(now, answer.due);
        return answer;
    }

    void offer(claim_offer& leave) noexcept { offer_ = &leave; }

    claim_answer claim(std::span<claim_request const> requests, claim_terms const& terms) {
        check_open();
        claim_answer answer;
        answer.claimed.reserve(requests.size());
        auto room = terms.suspects;
        lane_id lane{};
        for (auto const& request : requests)
            if (auto task = claimable(request.id, terms, lane)) {
                if (request.type != type_number{} && request.type != type_of(lane)) continue;
                bool const suspect = task->unclean_ends >= 2;
                if (suspect && room == 0) {
                    if (std::find(answer.suspects.begin(), answer.suspects.end(), request.id) == answer.suspects.end())
                        answer.suspects.push_back(request.id);
                    wait_no_more(*task); // else it would keep those behind it waiting
                    continue;
                }
                bool holds = false;
                if (!limits_.admit(*task, lane, terms, holds)) continue;
                if (suspect) --room;
                session_.counts().move(lane, task->state, task_state::dispatched);
                task->hold_on_interrupt = request.hold_on_interrupt;
                task->lonely = suspect;
                become_claimed(*task, lane, terms.node, terms.now);
                auto const line = line_of(*task);
                task->waits_for = {};
                sqlite_run(sql_, line == line_number{} ? sqlite_sql::claim_task : sqlite_sql::claim_parked,
                           {task->id, task->version, task->node, task->attempts, task->changed,
                            flags_of_claim(*task) | (holds ? flag_holds : 0)})
                    .finish();
                limits_.left(line);
                answer.claimed.push_back(*std::move(task));
            }
        limits_.announce(terms.now, terms.until, answer.due);
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
            if (end.outcome == attempt_outcome::succeeded) {
                check_types(end.follow_ups);
                for (auto const& each : end.members) check_types({&each.task, 1});
            }
        settlement answer;
        answer.accepted.reserve(ends.size());
        answer.states.reserve(ends.size());
        for (auto const& end : ends) {
            bool const plain = end.effects == nullptr || end.outcome != attempt_outcome::succeeded;
            auto const state = plain ? settle_one(end, now, answer.due) : settle_with_effects(end, now, answer);
            answer.accepted.push_back(state.has_value());
            answer.states.push_back(state.value_or(task_state::created));
        }
        settle_changes(now, answer.due);
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
        alarms unused; // who starts reads waiting() anyway
        settle_changes(terms.now, unused);
        return answer;
    }

    change cancel(task_id id, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (task->state != task_state::created && !is_claimable(task->state)) {
            auto const state = task->state;
            if (auto const head = head_behind(*task); head != task_id{}) return cancel(head, now);
            return {change_outcome::wrong_state, state};
        }
        if (is_workflow(*task)) return cancel_workflow(id, now);
        wait_no_more(*task);
        if (task->state == task_state::created) periods_.wait_no_more(id);
        task->enter(task_state::cancelled, now);
        update(*task);
        return changed(*task, now);
    }

    change retry(task_id id, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if ((task->flags & flag_member) != 0 && is_terminal(task->state)) return retry_member(*task, now);
        if (task->state == task_state::dead || task->state == task_state::cancelled) {
            if (!keys_.take_back(id)) return {change_outcome::wrong_state, task->state};
            task->enter(task_state::ready, now);
            forget_end(*task, now);
            task->gate = task->route_key.empty() ? 0 : gate_blocked; // until it has been seen to be the first
        } else if (task->is_aside()) {
            return release(id, priority_class::low, now);
        } else if ((task->gate & gate_held) != 0) {
            task->hold(false);
            ++task->version;
        } else {
            return {change_outcome::wrong_state, task->state};
        }
        update(*task);
        return changed(*task, now);
    }

    change reschedule(task_id id, time_point run_at, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (!is_claimable(task->state)) return {change_outcome::wrong_state, task->state};
        wait_no_more(*task);
        task->run_at = run_at;
        task->order_at = run_at;
        ++task->version;
        update(*task);
        return changed(*task, now);
    }

    expiry expire(time_point now, std::size_t limit) {
        check_open();
        expiry answer;
        while (answer.dead.size() < limit) {
            auto const late = first_deadline(now);
            auto* const task = late ? load(late->first) : nullptr;
            if (task == nullptr) break;
            wait_no_more(*task);
            if (task->state == task_state::created) periods_.wait_no_more(task->id);
            task->enter(task_state::dead, now);
            update(*task, "deadline passed");
            answer.dead.push_back(task->id);
            bool const whole = is_workflow(*task);
            rearm(*task, answer.due);
            if (whole) graph_.stop(late->first, now, answer.due, answer.asked_to_stop);
            graph_.settle(now, answer.due);
        }
        if (auto const next = first_deadline((time_point::max)())) answer.next = next->second;
        limits_.announce(now, answer.due);
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
            present->payload == wanted.payload && present->terms == wanted.terms)
            return *present;
        auto record = present ? *present : wanted;
        if (present) {
            if (record.spec != wanted.spec) record.next = wanted.next;
            record.spec = wanted.spec;
            record.type = wanted.type;
            record.payload = wanted.payload;
            record.terms = wanted.terms;
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
        if (next.occurrence) graph_.refuse_circle(*next.occurrence);

        answer.accepted = true;
        ++record.version;
        record.next = next.next;
        if (next.paused) record.paused = *next.paused;
        for (auto const& range : next.skipped) leave_out(record, range, now);
        if (next.occurrence) {
            auto const nominal = next.occurrence->scheduled_at.value_or(now);
            bool const busy = next.skip_if_unfinished && is_unfinished(record.last_task, next.occurrence->scheduled_at);
            if (busy && !occurrence_created(*next.occurrence)) {
                leave_out(record, {nominal, nominal, 1, "the one before has not ended", now}, now);
            } else {
                make_way(next, now, answer);
                answer.occurrence = insert_any(*next.occurrence, now, answer.due);
                bool const aside = is_aside(*answer.occurrence);
                if (answer.occurrence->outcome == submit_outcome::inserted) {
                    ++record.fired;
                } else if (!aside && !is_early(*next.occurrence)) {
                    leave_out(record, {nominal, nominal, 1, "it was there already", now}, now);
                }
                if (!busy && !is_terminal(answer.occurrence->state) && !aside) record.last_task = answer.occurrence->id;
                record.last_nominal = next.occurrence->scheduled_at;
            }
        }
        put_schedule(record);
        settle_changes(now, answer.due);
        return answer;
    }

    bool forget(std::string_view name) {
        check_open();
        if (sqlite_run(sql_, sqlite_sql::delete_schedule, {name}).finish() == 0) return false;
        periods_.drop_of_schedule(name);
        periods_.drop_skips_of(name);
        return true;
    }

    bool ask_to_stop(task_id id) {
        check_open();
        return sqlite_run(sql_, sqlite_sql::ask_to_stop, {id}).finish() > 0;
    }

    bool keep_step(task_id id, fence_token fence, std::string_view name, std::string_view value) {
        check_open();
        return sqlite_run(sql_, sqlite_sql::keep_step, {id, fence, name, sqlite_blob{value}}).finish() > 0;
    }

    prune_answer prune(prune_terms const& terms, std::size_t limit) {
        check_open();
        return sqlite_pruner<sqlite_session<Connection>>(session_, terms, limit)();
    }

    bool compact() {
        check_open();
        return sqlite_compact(session_);
    }

    void note(std::string_view name, std::string_view text) {
        check_open();
        sqlite_run(sql_, sqlite_sql::put_note, {name, text}).finish();
    }

    void repair(std::span<finding> found, time_point now, alarms& due) {
        check_open();
        sqlite_repairs<sqlite_session<Connection>> repairs(session_);
        for (auto& one : found) {
            repairs(
                one, now, [&](std::string const& route_key) { announce(promote(route_key).freed, due); },
                [&] {
                    graph_.revise(one.task);
                    graph_.settle(now, due);
                });
            announce(one.task, due);
        }
        limits_.announce(now, due); // of limits as they are now: none was opened before the repairs
        limits_.forget();           // what it remembers may be what was repaired
    }

    alarms limit_type(type_number number, limit_terms const& how, std::vector<resource_need> const& needs,
                      time_point now) {
        check_open();
        auto const* const name = session_.names().find(sql_, number);
        if (name == nullptr) throw error(errc::invalid_argument, "task type without a number of this store");
        alarms due;
        limits_.limit_type(number, *name, how, needs);
        limits_.announce(now, due);
        return due;
    }

    alarms limit_tag(std::string_view tag, limit_terms const& how, time_point now) {
        check_open();
        alarms due;
        limits_.define(limit_kind::tag, tag, how);
        limits_.announce(now, due);
        return due;
    }

    alarms set_resource(std::string_view name, std::size_t capacity, time_point now) {
        check_open();
        alarms due;
        limits_.define(limit_kind::resource, name, {capacity, {}});
        limits_.announce(now, due);
        return due;
    }

    change set_aside(task_id id, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (task->state != task_state::created && !is_claimable(task->state))
            return {change_outcome::wrong_state, task->state, {}};
        wait_no_more(*task);
        task->gate |= gate_held | gate_aside;
        ++task->version;
        update(*task);
        return changed(*task, now);
    }

    change release(task_id id, priority_class urgency, time_point now) {
        check_open();
        auto* const task = load(id);
        if (task == nullptr) return {};
        if (!task->is_aside()) return {change_outcome::wrong_state, task->state, {}};
        task->hold(false);
        change answer{change_outcome::done, {}, {}};
        let_go(*task, urgency, now, answer.due);
        answer.state = task->state;
        limits_.announce(now, answer.due);
        return answer;
    }

    backfill_record begin_backfill(backfill_record const& wanted, time_point now) {
        check_open();
        auto record = wanted;
        record.number = periods_.next_number();
        record.version = 1;
        record.created = now;
        record.unfinished = 0;
        periods_.put(record);
        return record;
    }

    backfill_answer fill(backfill_step const& step, time_point now) {
        check_open();
        backfill_answer answer;
        auto present = periods_.find(step.number);
        if (!present) return answer;
        answer.record = *std::move(present);
        auto& record = answer.record;
        if (record.version != step.version) return answer;
        check_types(step.occurrences);
        answer.accepted = true;
        ++record.version;
        record.unfinished = periods_.forget_ended(step.number);
        bool const all_seen = !record.next;
        if (!all_seen) record.next = step.next;
        auto left_out = step.left_out;
        for (auto const& task : step.occurrences) {
            if (all_seen) break;
            if (record.unfinished >= record.at_once) {
                record.next = task.scheduled_at;
                break;
            }
            if (auto const why = graph_.circle(task); !why.empty()) {
                left_out.push_back({*task.scheduled_at, *task.scheduled_at, 1, bounded_text(why, 255), now});
                continue;
            }
            auto const made = insert_any(task, now, answer.due);
            bool const is_new = made.outcome == submit_outcome::inserted;
            ++(is_new ? record.made : record.existed);
            if (!is_new) continue;
            periods_.remember(step.number, made.id);
            ++record.unfinished;
        }
        if (!all_seen) leave_out_of(record, left_out, now);
        answer.over = !record.next && record.unfinished == 0;
        if (answer.over)
            periods_.drop(step.number);
        else
            periods_.put(record);
        settle_changes(now, answer.due);
        return answer;
    }

    bool drop_backfill(std::uint64_t number) {
        check_open();
        return periods_.drop(number);
    }

    void end_waits(std::string_view schedule, bool over, time_point now, alarms& due) {
        check_open();
        if (!store_.any_await()) return;
        auto const record = find_schedule(schedule);
        auto const waiting = store_.awaiting(schedule, passed_until(record ? &*record : nullptr, over));
        if (waiting.empty()) return;
        auto const backfills = read_backfills(sql_);
        for (auto const& [instant, id] : waiting) {
            auto const is_to_come = [&, at = instant](auto const& each) { return is_to_make(each, schedule, at); };
            if (std::none_of(backfills.begin(), backfills.end(), is_to_come)) graph_.left_out(id);
        }
        settle_changes(now, due);
    }

  private:
    friend sqlite_graph<sqlite_writer>;

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
            if (task.type == known && !task.workflow) continue;
            if (session_.names().find(sql_, task.type) == nullptr)
                throw error(errc::invalid_argument, "task type without a number of this store");
            known = task.type;
            if (task.workflow)
                for (auto const& each : task.workflow->members) check_types({&each.task, 1});
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
        task.counted = *state;
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
        task.waits_for = row.as<line_number>(22);
        return &task;
    }

    /// @param problem  Becomes last_error unless empty.
    void update(sqlite_task_row& task, std::string_view problem = {}) {
        count(task);
        sqlite_run(sql_, sqlite_sql::update_task,
                   {task.id, task.state, task.gate, task.flags, task.run_at, task.order_at, task.version, task.attempts,
                    task.failures, task.interruptions, task.snoozes, task.unclean_ends, task.lonely_deaths,
                    task.changed, task.started, task.first_started, task.finished, task.deadline, sqlite_text{problem}})
            .finish();
        let_key_go(task);
    }

    /// To be called after every change of a task that may have ended it.
    void let_key_go(sqlite_task_row const& task) {
        if (is_terminal(task.state) && (task.flags & flag_key_active) != 0) keys_.release(task.id);
    }

    /// To be called where the state of a row is written.
    void count(sqlite_task_row& task) {
        if ((task.flags & (flag_member | flag_head)) == flag_member)
            session_.counts().move_member(task.lane, task.counted, task.state);
        else
            session_.counts().move(task.lane, task.counted, task.state);
        if ((task.flags & (flag_member | flag_watched)) != 0 && task.counted != task.state)
            graph_.changed(task.id, task.counted, task.state, task.first_started);
        task.counted = task.state;
    }

    // ---- inserting -------------------------------------------------------------------------------------------------

    insertion insert_any(new_task const& task, time_point now, alarms& due) {
        return task.workflow ? graph_.insert(task, now, due) : insert_one(task, now, due);
    }

    insertion insert_one(new_task const& task, time_point now, alarms& due, task_state state = task_state::ready,
                         std::int64_t more_flags = 0) {
        auto const lane = make_lane(task.type, task.priority);
        auto const run_at = task.run_at ? *task.run_at : saturating_add(now, task.delay);
        if (state == task_state::ready && more_flags == 0)
            if (auto const id = insert_claimed(task, lane, run_at, now))
                return {*id, submit_outcome::inserted, task_state::dispatched};
        if (auto const recent = throttled(task, now)) return *recent;
        auto id = insert_row(task, lane, run_at, now, state, more_flags);
        if (!id) {
            if (auto const answer = meet_holder(task, lane, run_at, now, due)) return *answer;
            id = insert_row(task, lane, run_at, now, state, more_flags);
        }
        if (!id) throw error(errc::corrupt, sql_.path() + ": a task was refused whose key is free");
        if (!task.key.empty() || !task.schedule.empty()) graph_.arrived(task, *id);
        if (task.after_past || task.set_aside) return hold_back(task, *id, lane, run_at, due);
        if (state != task_state::ready) return {*id, submit_outcome::inserted, state};
        if (task.route_key.empty())
            due.push_back({*id, lane, run_at});
        else if (auto const turn = promote(task.route_key); turn.freed != task_id{})
            announce(turn.freed, due);
        return {*id, submit_outcome::inserted, state};
    }

    /// An occurrence has been inserted as ready that may have to wait for the one before it, or is set aside.
    insertion hold_back(new_task const& task, task_id id, lane_id lane, time_point run_at, alarms& due) {
        bool const is_occurrence = !task.schedule.empty() && task.scheduled_at;
        auto const past = task.after_past && is_occurrence ? periods_.past_to_wait_for(task) : task_id{};
        bool const aside = task.set_aside && is_occurrence;
        bool const waits = aside || past != task_id{};
        if (waits) {
            auto const gate = aside ? gate_held | gate_aside : 0;
            sqlite_run(sql_, sqlite_sql::hold_back_task, {id, task_state::created, gate}).finish();
            session_.counts().move(lane, task_state::ready, task_state::created);
        }
        if (task.after_past && is_occurrence) periods_.stand_in_chain(task, id, waits, past);
        if (waits) return {id, submit_outcome::inserted, task_state::created};
        if (task.route_key.empty())
            due.push_back({id, lane, run_at});
        else if (auto const turn = promote(task.route_key); turn.freed != task_id{})
            announce(turn.freed, due);
        return {id, submit_outcome::inserted, task_state::ready};
    }

    /// The occurrence is done that others wait for.
    void let_followers_go(task_id past, priority_class urgency, time_point at, alarms& due) {
        for (auto const id : periods_.waiting_for(past)) {
            periods_.past_is_done(id);
            if (auto* const task = load(id)) let_go(*task, urgency, at, due);
        }
    }

    /// What its past and a person kept waiting is ready, where neither does any more.
    void let_go(sqlite_task_row& task, priority_class urgency, time_point at, alarms& due) {
        bool const is_free =
            task.state == task_state::created && (task.gate & gate_held) == 0 && periods_.past_of(task.id) == task_id{};
        if (urgency < class_of(task.lane)) {
            session_.counts().add(task.lane, task.counted, -1);
            task.lane = make_lane(type_of(task.lane), urgency);
            session_.counts().add(task.lane, task.counted, 1);
            sqlite_run(sql_, sqlite_sql::move_to_lane, {task.id, task.lane}).finish();
        }
        if (is_free) {
            periods_.wait_no_more(task.id);
            task.enter(task_state::ready, at);
            if (!task.route_key.empty()) task.gate |= gate_blocked; // until it has been seen to be the first
        } else {
            ++task.version;
        }
        update(task);
        rearm(task, due);
    }

    /// @return  Nothing where the key or the occurrence is there already.
    std::optional<task_id> insert_row(new_task const& task, lane_id lane, time_point run_at, time_point now,
                                      task_state state, std::int64_t more_flags) {
        auto const id = session_.next_id();
        auto const flags = more_flags | (task.route_order == route_ordering::relaxed ? flag_relaxed : 0) |
                           (task.key_scope == key_scoping::active ? flag_key_active : 0);
        bool const in_line = state == task_state::ready && !task.route_key.empty();
        auto const gate = in_line ? gate_blocked : 0; // until it has been seen to be the first
        auto const tags = join_tags(task.tags);
        int const added = sqlite_run(sql_, sqlite_sql::insert_task,
                                     {id, lane, gate, flags, run_at, now, task.deadline, task.scheduled_at,
                                      sqlite_text{task.key}, sqlite_text{task.route_key}, sqlite_text{task.schedule},
                                      sqlite_text{task.retry}, sqlite_blob{task.payload}, sqlite_blob{tags}, state})
                              .finish();
        if (added == 0) {
            session_.give_back(id);
            return std::nullopt;
        }
        session_.counts().add(lane, state, 1);
        return id;
    }

    /// A period that began with a task that had the key goes on: where the key is free, and where an older task has
    /// got it back.
    std::optional<insertion> throttled(new_task const& task, time_point now) {
        if (task.on_conflict.action() != conflict_action::throttle) return std::nullopt;
        auto const latest = keys_.former(task.key);
        if (!latest || !is_within(now - latest->created, task.on_conflict.period())) return std::nullopt;
        if (auto const holder = keys_.holder(task.key); holder && holder->id > latest->id) return std::nullopt;
        return insertion{latest->id, submit_outcome::kept, latest->state};
    }

    /// What becomes of a task that could not be inserted; nothing where it can be now.
    std::optional<insertion> meet_holder(new_task const& task, lane_id lane, time_point run_at, time_point now,
                                         alarms& due) {
        auto const holder = task.key.empty() ? std::nullopt : keys_.holder(task.key);
        auto move = key_move::pass;
        if (holder)
            move = decide_conflict(task.on_conflict, state_for_conflict(holder->state, holder->is_workflow),
                                   type_of(holder->lane) == task.type, now - holder->created);
        if (move == key_move::keep) return insertion{holder->id, submit_outcome::kept, holder->state};
        if (move == key_move::reject) return insertion{holder->id, submit_outcome::rejected, holder->state};
        if (!task.schedule.empty() && task.scheduled_at) { // it is there once, whatever the policy of a key
            sqlite_run query(sql_, sqlite_sql::occurrence_holder, {task.schedule, task.scheduled_at});
            if (query.next()) return insertion{query.as<task_id>(0), submit_outcome::kept, query.as<task_state>(1)};
        }
        if (!holder) throw error(errc::corrupt, sql_.path() + ": a task was refused, and none holds its key");
        if (move == key_move::pass) {
            keys_.release(holder->id);
            return std::nullopt;
        }
        auto* const held = load(holder->id);
        if (held == nullptr) throw error(errc::corrupt, sql_.path() + ": the row that holds a key makes no sense");
        wait_no_more(*held);
        if (move == key_move::replace) {
            auto const route_before = held->route_key;
            session_.counts().add(held->lane, held->state, -1);
            keys_.replace(*held, task, lane, run_at);
            session_.counts().add(held->lane, held->state, 1);
            if (route_before != held->route_key)
                if (auto const turn = promote(route_before); turn.freed != task_id{}) announce(turn.freed, due);
        } else {
            keys_.debounce(*held, task, run_at);
        }
        rearm(*held, due);
        return insertion{held->id, submit_outcome::replaced, held->state};
    }

    // ---- claiming at once ------------------------------------------------------------------------------------------

    /// A new task is stored as claimed, where it is offered and nothing but its time could keep it waiting.
    std::optional<task_id> insert_claimed(new_task const& task, lane_id lane, time_point run_at, time_point now) {
        auto const* const kind = offer_ == nullptr ? nullptr : offer_->takes(lane, run_at);
        if (kind == nullptr || !task.key.empty() || !task.route_key.empty() || !task.schedule.empty() ||
            (task.deadline && *task.deadline <= now) || limits_.concern(task.type, task.tags))
            return std::nullopt;
        auto const* const name = session_.names().find(sql_, task.type);
        if (name == nullptr) return std::nullopt;
        task_record made;
        made.id = session_.next_id();
        made.type = *name;
        made.priority = task.priority;
        made.run_at = made.order_at = run_at;
        made.version = 1;
        made.created = now;
        made.deadline = task.deadline;
        made.scheduled_at = task.scheduled_at;
        made.route_order = task.route_order;
        made.key_scope = task.key_scope;
        made.retry = task.retry;
        made.tags = task.tags;
        made.payload = task.payload;
        made.hold_on_interrupt = kind->hold_on_interrupt;
        become_claimed(made, lane, offer_->node, now);
        auto const tags = join_tags(made.tags);
        sqlite_run(sql_, sqlite_sql::insert_claimed,
                   {made.id, lane, flags_of_claim(made), run_at, made.node, now, made.deadline, made.scheduled_at,
                    sqlite_text{made.retry}, sqlite_blob{tags}, sqlite_blob{made.payload}})
            .finish();
        session_.counts().add(lane, task_state::dispatched, 1);
        auto const id = made.id;
        took(std::move(made), lane);
        return id;
    }

    /// A task whose parents let it go goes straight from created to claimed, where it is offered and nothing but its
    /// time could keep it waiting.
    bool claim_promoted(graph_node const& one, time_point now) {
        auto const run_at = (std::max)(one.run_at, now);
        auto const* const kind = offer_ == nullptr || one.routed ? nullptr : offer_->takes(one.lane, run_at);
        if (kind == nullptr) return false;
        std::optional<task_record> task;
        {
            sqlite_run row(sql_, sqlite_sql::task, {one.id});
            if (row.next() && row.number(3) == 0) task = read_task(row, sql_, session_.names());
        }
        if (!task || task->unclean_ends >= 2 || (task->deadline && *task->deadline <= now) ||
            limits_.concern(kind->type, task->tags))
            return false;
        task->run_at = task->order_at = run_at;
        task->hold_on_interrupt = kind->hold_on_interrupt;
        task->lonely = false;
        ++task->version; // it was ready in between
        become_claimed(*task, one.lane, offer_->node, now, one.workflow);
        sqlite_run(sql_, sqlite_sql::claim_promoted,
                   {task->id, task->version, task->node, task->attempts, task->changed, flags_of_claim(*task), run_at})
            .finish();
        took(*std::move(task), one.lane);
        return true;
    }

    void took(task_record task, lane_id lane) {
        --offer_->room[static_cast<std::size_t>(class_of(lane))];
        offer_->claimed.push_back(std::move(task));
    }

    /// What every claim makes of a task; its row is still to be written.
    /// @param workflow  Of which it is a task, where that is known.
    void become_claimed(task_record& task, lane_id lane, node_id node, time_point now, task_id workflow = {}) {
        session_.lanes().put({task.id, lane, task.in_workflow, workflow});
        task.state = task_state::dispatched;
        task.changed = now;
        task.fence = fence_token{++task.version};
        task.node = node;
        ++task.attempts;
    }

    static std::int64_t flags_of_claim(task_record const& task) noexcept {
        return (task.hold_on_interrupt ? flag_hold_on_interrupt : 0) | (task.lonely ? flag_lonely : 0) |
               (task.route_order == route_ordering::relaxed ? flag_relaxed : 0) |
               (task.key_scope == key_scoping::active ? flag_key_active : 0);
    }

    // ---- claiming and settling -------------------------------------------------------------------------------------

    /// @param lane  That of the task.
    std::optional<task_record> claimable(task_id id, claim_terms const& terms, lane_id& lane) {
        sqlite_run row(sql_, sqlite_sql::task, {id});
        if (!row.next() || (row.number(3) & ~gate_limited) != 0) return std::nullopt;
        lane = row.as<lane_id>(1);
        auto const state = row.number(2);
        if (state != static_cast<int>(task_state::ready) && state != static_cast<int>(task_state::failed))
            return std::nullopt;
        if (!row.null(21) && row.time(21) <= terms.now) return std::nullopt;
        if (row.time(5) > terms.until) {
            if (!row.null(32))
                limits_.name_again(row.as<line_number>(32)); // where it stands in line, it is named again
            return std::nullopt;
        }
        return read_task(row, sql_, session_.names());
    }

    /// What most attempts come to, in one statement: a success of a task without a route, with nothing to tell.
    bool succeed_plainly(attempt_end const& end) {
        bool const done = end.outcome == attempt_outcome::succeeded && end.started && end.error.empty() &&
                          end.log.empty() && end.members.empty() &&
                          sqlite_run(sql_, sqlite_sql::succeed_plainly,
                                     {end.id, end.fence, end.ended, end.started, sqlite_blob{end.result}})
                                  .finish() != 0;
        if (done) {
            auto const place = session_.lanes().find(sql_, end.id);
            if (place.is_member) {
                session_.counts().move_member(place.lane, task_state::running, task_state::succeeded);
                graph_.changed(end.id, task_state::running, task_state::succeeded, end.started, place.workflow);
            } else {
                session_.counts().move(place.lane, task_state::running, task_state::succeeded);
            }
        }
        return done;
    }

    /// A success that depends on what the handler has to write itself.
    std::optional<task_state> settle_with_effects(attempt_end const& end, time_point now, settlement& answer) {
        auto* const task = load(end.id);
        if (task == nullptr || !is_active(task->state) || task->fence != end.fence) return std::nullopt;
        auto& effects = *end.effects;
        auto problem = session_.effects().run(sql_, effects);
        if (problem.empty()) return settle_one(end, now, answer.due);
        problem += effects.remark;
        attempt_end other;
        other.id = end.id;
        other.fence = end.fence;
        other.outcome = effects.otherwise;
        other.retry_at = effects.retry_at;
        other.started = end.started;
        other.ended = end.ended;
        other.error = problem;
        other.log = end.log;
        answer.failed.push_back({answer.accepted.size(), std::move(problem)});
        return settle_one(other, now, answer.due);
    }

    std::optional<task_state> settle_one(attempt_end const& end, time_point now, alarms& due) {
        if (succeed_plainly(end)) {
            for (auto const& follow_up : end.follow_ups) insert_one(follow_up, now, due);
            return task_state::succeeded;
        }
        auto* task = load(end.id);
        if (task == nullptr || !is_active(task->state) || task->fence != end.fence) return std::nullopt;
        if (end.outcome == attempt_outcome::succeeded && !end.members.empty()) {
            graph_.add(end.id, end.members, now, due);
            task = load(end.id);
        }
        auto attempt_start = end.started;
        if (!attempt_start && task->state == task_state::running) attempt_start = task->started;
        auto const number = task->attempts;
        bool const released = end.outcome == attempt_outcome::released;
        bool const unwanted = (task->flags & flag_stop_asked) != 0;

        if ((task->flags & flag_holds) != 0) limits_.release(task->id, released);
        task->flags &= flags_for_life;
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
            count(*task);
            let_key_go(*task);
            // What nothing but the task itself says is not written twice: history() tells it from there.
            if (!attempt_start || !end.error.empty() || !end.log.empty())
                record_attempt(*task, number, attempt_start, end);
        } else {
            apply(*task, end);
            if (unwanted && !is_terminal(task->state)) task->enter(task_state::cancelled, end.ended);
            update(*task, released ? std::string_view{} : std::string_view{end.error});
            if (!released) record_attempt(*task, number, attempt_start, end);
        }
        auto const state = task->state;
        bool const awaited =
            (task->flags & flag_awaited) != 0 && (state == task_state::succeeded || state == task_state::skipped);
        auto const urgency = class_of(task->lane);
        rearm(*task, due);
        if (awaited) let_followers_go(end.id, urgency, end.ended, due);
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
        // As a value to bind: GCC 12 takes an optional that is chosen here for one that may not be initialized.
        auto const started = may_have_run ? sqlite_value(task->started) : sqlite_value(sqlite_blob{});
        ++task->interruptions;
        ++task->unclean_ends;
        if ((task->flags & flag_lonely) != 0) ++task->lonely_deaths;
        std::string problem = "the process ended while this attempt was in flight";
        if (task->lonely_deaths >= terms.poison_after) {
            task->enter(task_state::dead, terms.now);
            problem =
                "poison: the process ended " + std::to_string(task->lonely_deaths) + " times while this task ran alone";
            answer.poisoned.push_back(id);
        } else if ((task->flags & flag_stop_asked) != 0) {
            task->enter(task_state::ready, terms.now);
            task->enter(task_state::cancelled, terms.now);
        } else {
            task->enter(task_state::ready, terms.now);
            bool const hold = may_have_run && (task->flags & flag_hold_on_interrupt) != 0;
            task->hold(hold);
            ++(hold ? answer.held : answer.reclaimed);
        }
        if ((task->flags & flag_holds) != 0) limits_.release(task->id, false);
        task->flags &= flags_for_life;
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
        line_number line{};
        {
            sqlite_run head(sql_, sqlite_sql::route_head, {route_key});
            if (head.next()) {
                if (is_active(head.as<task_state>(1))) return {};
                answer.blocked = head.as<task_id>(0);
                line = head.as<line_number>(3);
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
        limits_.left(line); // who is blocked does not stand there, too
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

    change changed(sqlite_task_row& task, time_point now) {
        change answer{change_outcome::done, task.state};
        auto const id = task.id;
        bool const in_workflow = (task.flags & flag_member) != 0;
        rearm(task, answer.due);
        settle_changes(now, answer.due);
        if (in_workflow) answer.state = store_.state(id).value_or(answer.state);
        return answer;
    }

    /// To be called at the end of each verb that changes tasks: what follows in workflows, and who may pass a limit.
    void settle_changes(time_point now, alarms& due) {
        graph_.settle(now, due);
        limits_.announce(now, due);
    }

    // ---- workflows -------------------------------------------------------------------------------------------------

    static bool is_workflow(sqlite_task_row const& task) noexcept { return (task.flags & flag_head) != 0; }

    bool is_superseded(sqlite_task_row const& task) {
        if ((task.flags & flag_member) == 0) return false;
        auto const one = store_.node(task.id);
        return one && graph_.is_superseded(*one);
    }

    /// The latest head, where this is one of an earlier generation; else 0.
    task_id head_behind(sqlite_task_row const& task) {
        if ((task.flags & flag_member) == 0 || (task.flags & flag_head) != 0) return {};
        auto const one = store_.node(task.id);
        if (!one || one->kind != member_kind::workflow) return {};
        auto const whole = store_.workflow(one->workflow);
        return whole && whole->head != task.id ? whole->head : task_id{};
    }

    /// Whether another has the key by now that this workflow had.
    bool has_lost_key(task_id workflow) {
        sqlite_run another(sql_, sqlite_sql::key_taken_from, {workflow});
        return another.next();
    }

    change cancel_workflow(task_id id, time_point now) {
        change answer{change_outcome::done, task_state::created};
        graph_.stop(id, now, answer.due, answer.asked_to_stop);
        settle_changes(now, answer.due);
        answer.state = store_.state(id).value_or(answer.state);
        return answer;
    }

    change retry_member(sqlite_task_row& task, time_point now) {
        change answer{change_outcome::wrong_state, task.state};
        auto const one = store_.node(task.id);
        if (!one || has_lost_key(one->workflow)) return answer;
        if (auto const head = head_behind(task); head != task_id{}) return retry(head, now);
        if (graph_.is_superseded(*one)) return answer;
        if (one->kind == member_kind::workflow) {
            if (one->state == task_state::succeeded) return answer;
            if (!graph_.retry_failed(one->workflow, now, answer.due)) return answer;
        } else {
            if (one->state != task_state::dead && one->state != task_state::cancelled) return answer;
            graph_.retry(*one, now, answer.due);
        }
        answer.outcome = change_outcome::done;
        settle_changes(now, answer.due);
        answer.state = store_.state(one->id).value_or(answer.state);
        return answer;
    }

    /// A task that had ended is as it was before its first attempt, but for what history() tells.
    static void forget_end(sqlite_task_row& task, time_point now) {
        task.run_at = now;
        task.order_at = now;
        task.failures = 0;
        task.unclean_ends = 0;
        task.lonely_deaths = 0;
        task.finished.reset();
        task.first_started.reset();
        if (task.deadline && *task.deadline <= now) task.deadline.reset();
    }

    /// A task that waits for a limit leaves its line; for any other, nothing happens.
    /// @tparam Task  A record or a row; its gate is seen to where it has one.
    template <class Task>
    void wait_no_more(Task& task) {
        auto const line = line_of(task);
        if (line == line_number{}) return;
        sqlite_run(sql_, sqlite_sql::unpark_task, {task.id}).finish();
        task.waits_for = {};
        limits_.left(line);
        if constexpr (requires { task.gate; }) task.gate &= ~gate_limited;
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
                    record.fired, record.skipped, sqlite_text{record.last_skip}, record.created,
                    sqlite_text{record.terms}, record.paused})
            .finish();
    }

    /// What an occurrence does to the one before it, before it is created.
    void make_way(schedule_step const& next, time_point now, schedule_answer& answer) {
        if (!next.stop_latest && !next.replace_blocked) return;
        auto const id = answer.record.last_task;
        auto const* const latest = load(id);
        if (latest == nullptr || is_terminal(latest->state)) return;
        if (latest->state == task_state::created && (latest->flags & flag_head) == 0) return;
        if (!next.stop_latest && (latest->gate & gate_blocked) == 0) return;
        auto const& occurrence = *next.occurrence;
        if (!is_unfinished(id, occurrence.scheduled_at)) return;
        if (occurrence_created(occurrence)) return;
        if (ask_to_stop(id)) {
            answer.asked_to_stop = id;
            return;
        }
        auto const nominal = nominal_of(id).value_or(now);
        auto const made = cancel(id, now);
        answer.due.insert(answer.due.end(), made.due.begin(), made.due.end());
        answer.cancelled = id;
        leave_out(answer.record, {nominal, nominal, 1, "a later one took its place", now}, now);
    }

    /// Counts what a schedule leaves out, and keeps why.
    void leave_out(schedule_record& record, skip_range range, time_point now) {
        record.skipped += range.number;
        record.last_skip = range.reason;
        range.recorded = now;
        periods_.leave_out(record.name, std::move(range));
    }

    /// What a backfill has left out up to where it stands.
    void leave_out_of(backfill_record const& by, std::vector<skip_range> const& ranges, time_point now) {
        if (ranges.empty()) return;
        auto record = find_schedule(by.schedule);
        if (!record) return;
        for (auto const& range : in_order(ranges))
            if (!by.next || range.first < *by.next) leave_out(*record, range, now);
        put_schedule(*record);
    }

    /// Whether a task keeps the occurrence at `nominal` waiting: not one that has ended, nor one that waits for a later
    /// instant, which a clock that was wrong has made.
    bool is_unfinished(task_id id, std::optional<time_point> nominal) {
        sqlite_run query(sql_, sqlite_sql::task_state, {id});
        if (!query.next()) return false;
        auto const state = query.as<task_state>(0);
        if (is_claimable(state) && query.maybe_time(1) > nominal) return false;
        if (state == task_state::created) return store_.node(id).has_value(); // a workflow that goes on
        return !is_terminal(state);
    }

    std::optional<time_point> nominal_of(task_id id) {
        sqlite_run query(sql_, sqlite_sql::task_state, {id});
        return query.next() ? query.maybe_time(1) : std::nullopt;
    }

    /// When the occurrence was created; none where it is not there.
    std::optional<time_point> occurrence_created(new_task const& occurrence) {
        if (!occurrence.scheduled_at) return std::nullopt;
        sqlite_run query(sql_, sqlite_sql::occurrence_holder, {occurrence.schedule, occurrence.scheduled_at});
        return query.next() ? query.maybe_time(2) : std::nullopt;
    }

    /// Whether the occurrence is there and was created ahead of its instant: then somebody had asked for it.
    bool is_early(new_task const& occurrence) {
        auto const created = occurrence_created(occurrence);
        return created && created < occurrence.scheduled_at;
    }

    /// Whether the occurrence that a step met was set aside before it came due.
    bool is_aside(insertion const& met) {
        if (met.outcome == submit_outcome::inserted && met.state != task_state::created) return false;
        auto const* const task = load(met.id);
        return task != nullptr && task->is_aside();
    }

    sqlite_session<Connection>& session_;
    Connection& sql_;
    claim_offer* offer_ = nullptr; ///< of the caller's, if any
    sqlite_keys<Connection> keys_;
    sqlite_limits<Connection>& limits_;
    sqlite_periods<Connection> periods_;
    sqlite_graph<sqlite_writer> store_{*this};
    graph_rules<sqlite_graph<sqlite_writer>> graph_{store_};
};

} // namespace ax::detail

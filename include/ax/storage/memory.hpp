// SPDX-License-Identifier: MIT
// The reference for every other storage: what the sentences of storage/concept.hpp mean, written down as plainly as
// they can be. It keeps nothing beyond its own life, which is what a test wants: a month of tasks in virtual time, and
// no file.
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/detail/awaited_occurrence.hpp"
#include "ax/storage/detail/backfill_number.hpp"
#include "ax/storage/detail/graph_names.hpp"
#include "ax/storage/detail/key_conflict.hpp"
#include "ax/storage/detail/memory_limiter.hpp"
#include "ax/storage/detail/memory_prune.hpp"
#include "ax/storage/detail/memory_tables.hpp"
#include "ax/storage/detail/memory_verify.hpp"
#include "ax/storage/detail/skip_rules.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ax {

/// Keeps tasks in the memory of the process, and loses them with it.
///
/// Models ax::storage. Ids rise from 1 in the order of insertion, type numbers from 1 in the order of first use.
///
/// Complexity: every verb O(log n) for each task named; upcoming() and expire() besides that O(tasks given); list() and
///             schedules() O(tasks or schedules kept). About 750 bytes a task and 130 an attempt, until it is pruned;
///             then 8 bytes, until all before it are.
/// Threads:    safe; one mutex. `fn` of transact() runs on the calling thread with it held, and must call nothing of
/// the
///             storage but the writer it is given. A storage that was moved from may only be destroyed or assigned to.
class memory_storage {
  public:
    static constexpr bool durable = false;

    class writer;

    /// Calls `fn(writer&)` once. When it throws, all that it did is undone and the exception passes through.
    /// @param durability  Makes no difference here.
    template <class Fn>
    void transact(commit durability, Fn&& fn);

    std::optional<task_record> find(task_id id) const;
    std::optional<task_record> find_by_key(std::string_view key) const;
    std::vector<task_record> list(task_filter const& filter, time_point now) const;
    std::vector<attempt_view> history(task_id id) const;
    std::vector<obstacle> obstacles(task_id id) const;
    std::vector<task_id> asked_to_stop() const;
    alarms upcoming(alarm const& after, time_point until, std::size_t limit) const;
    std::vector<type_info> types() const;
    std::vector<schedule_record> schedules() const;
    std::vector<kept_step> steps(task_id id) const;
    std::vector<task_count> counts() const;
    std::string note(std::string_view name) const;
    std::vector<finding> verify() const;
    waiting_page waiting(limit_number after, std::size_t most, time_point now) const;
    std::vector<limit_info> limits() const;
    std::optional<workflow_record> workflow(task_id id) const;
    std::vector<member_record> members(task_id workflow, std::string_view after, std::size_t limit) const;
    std::vector<parent_record> parents(task_id id) const;
    std::optional<task_record> occurrence(std::string_view schedule, time_point nominal) const;
    std::vector<task_record> aside(std::string_view schedule, time_point from, time_point to, std::size_t limit) const;
    std::vector<backfill_record> backfills() const;
    skip_log skips(std::string_view schedule) const;

    /// What is wrong with the structure, in words; empty where nothing is. For tests. O(n log n).
    std::string check_invariants() const {
        std::scoped_lock const lock(state_->mutex);
        return state_->tables.check_invariants();
    }

  private:
    struct state {
        std::mutex mutex;
        detail::memory_tables tables;
    };
    std::unique_ptr<state> state_ = std::make_unique<state>(); // its own block: a mutex does not move
};

/// The verbs of memory_storage; see storage_writer. Exists only inside transact().
class memory_storage::writer {
  public:
    writer(writer const&) = delete;
    writer& operator=(writer const&) = delete;

    type_number type(std::string_view name) { return tables_.type(name); }
    std::vector<insertion> insert(std::span<new_task const> tasks, time_point now, alarms& due);
    claim_answer claim(std::span<claim_request const> requests, claim_terms const& terms);
    void start(std::span<start_mark const> starts, time_point now);
    settlement settle(std::span<attempt_end const> ends, time_point now);
    reclaim_answer reclaim(reclaim_terms const& terms);
    change cancel(task_id id, time_point now);
    change retry(task_id id, time_point now);
    change reschedule(task_id id, time_point run_at, time_point now);
    expiry expire(time_point now, std::size_t limit);
    void pause(type_number number, bool yes) { tables_.pause(number, yes); }
    schedule_record declare(schedule_record const& wanted, time_point now);
    schedule_answer step(schedule_step const& next, time_point now);
    bool forget(std::string_view name);
    bool ask_to_stop(task_id id);
    bool keep_step(task_id id, fence_token fence, std::string_view name, std::string_view value);
    prune_answer prune(prune_terms const& terms, std::size_t limit);
    bool compact() noexcept { return false; }
    void note(std::string_view name, std::string_view text) { tables_.put_note(name, text); }
    void repair(std::span<finding> found, time_point now, alarms& due);
    alarms limit_type(type_number number, limit const& how, std::vector<resource_need> const& needs, time_point now);
    alarms limit_tag(std::string_view tag, limit const& how, time_point now);
    alarms set_resource(std::string_view name, std::size_t capacity, time_point now);
    change mark_succeeded(task_id id, time_point now);
    change rerun(task_id id, rerun_scope scope, time_point now);
    change pause_workflow(task_id id, bool yes, time_point now);
    change set_aside(task_id id, time_point now);
    change release(task_id id, priority_class urgency, time_point now);
    backfill_record begin_backfill(backfill_record const& wanted, time_point now);
    backfill_answer fill(backfill_step const& step, time_point now);
    bool drop_backfill(std::uint64_t number);
    void end_waits(std::string_view schedule, bool over, time_point now, alarms& due);

  private:
    friend class memory_storage;
    friend detail::memory_graph<writer>;
    using row = detail::memory_row;

    explicit writer(detail::memory_tables& tables) noexcept : tables_(tables), limiter_(tables) {}

    /// Runs one verb; what it had done is undone where it throws, and the transaction can go on.
    template <class Verb>
    auto atomically(Verb&& verb) {
        auto const before = tables_.mark();
        try {
            return verb();
        } catch (...) {
            tables_.undo(before);
            graph_.forget();
            throw;
        }
    }

    type_info const& known_type(type_number number) const {
        if (auto const* const found = tables_.find_type(number)) return *found;
        throw error(errc::invalid_argument, "task type without a number of this store");
    }

    void check_types(new_task const& task) const;
    insertion insert_any(new_task const& task, time_point now, alarms& due) {
        return task.workflow ? graph_.insert(task, now, due) : insert_one(task, now, due);
    }
    insertion insert_one(new_task const& task, time_point now, alarms& due, task_state state = task_state::ready,
                         bool in_workflow = false);
    void tell_graph();
    void settle_changes(time_point now, alarms& due);
    task_id copy(row const& old, time_point now);
    void enter_by_rule(row& member, task_state state, time_point now, std::string_view error, alarms& due);
    void promote_member(row& member, bool paused, time_point now, alarms& due);
    change after_change(task_id id, time_point now, change answer);
    change retry_member(row& member, time_point now);
    bool is_workflow(row const& found) const {
        auto const* const one = tables_.graphs().member(found.task.id);
        return one != nullptr && one->row.kind == member_kind::workflow;
    }
    /// The latest head, where this is one of an earlier generation; else 0.
    task_id head_behind(row const& found) const {
        if (!is_workflow(found)) return {};
        auto const head = tables_.graphs().workflow(tables_.graphs().member(found.task.id)->row.workflow)->row.head;
        return head != found.task.id ? head : task_id{};
    }
    bool is_superseded(row const& found) {
        auto const one = store_.node(found.task.id);
        return one && graph_.is_superseded(*one);
    }
    std::optional<insertion> meet_holder(new_task const& task, time_point now, alarms& due);
    void replace(row& held, new_task const& task, time_point now, alarms& due);
    void debounce(row& held, new_task const& task, time_point now, alarms& due);
    void forget_past(row& held);
    std::optional<task_state> settle_one(attempt_end const& end, time_point now, alarms& due);
    void reclaim_one(row& lost, reclaim_terms const& terms, reclaim_answer& answer);
    void leave_out(schedule_record& record, skip_range range, time_point now);
    void leave_out_of(backfill_record const& by, std::vector<skip_range> const& ranges, time_point now);
    void make_way(schedule_step const& next, row const* latest, time_point now, schedule_answer& answer);
    task_id past_to_wait_for(new_task const& task) const;
    void stand_in_chain(row const& added, task_id past);
    void let_followers_go(row const& done, alarms& due);
    void let_go(row& waiting, priority_class urgency, time_point at, alarms& due);

    /// Moves a task along an edge of the lifecycle. What is claimed and ends without a start passes through running.
    static void enter(task_record& task, task_state to, time_point at) {
        assert(lifecycle.allowed(task.state, to) ||
               (task.state == task_state::dispatched && lifecycle.allowed(task.state, task_state::running) &&
                lifecycle.allowed(task_state::running, to)));
        task.state = to;
        task.changed = at;
        ++task.version;
        if (!is_active(to)) task.stop_asked = false;
        if (!is_terminal(to)) return;
        task.finished = at;
        task.blocked = false;
        task.held = false;
        task.paused = false;
        task.set_aside = false;
        if (task.key_scope == key_scoping::active) task.key_released = !task.key.empty();
    }

    /// Calls `modify(task_record&)` for a task that may wait for a limit, and then waits for none.
    template <class Modify>
    void change_waiting(row& waiting, Modify&& modify) {
        limiter_.leave(waiting);
        tables_.change(waiting, std::forward<Modify>(modify));
    }

    void announce(task_id id, alarms& due) {
        auto const* const found = tables_.find(id);
        if (found != nullptr && detail::memory_tables::is_claimable_now(found->task))
            due.push_back({id, found->lane(), found->task.run_at});
    }

    /// To be called after every change of a task: decides anew who is first of its route key, and gives alarms.
    void rearm(row const& changed, alarms& due) {
        auto const freed = tables_.promote(changed.task.route_key);
        if (freed != changed.task.id) announce(freed, due);
        announce(changed.task.id, due);
    }

    static time_point first_run(new_task const& task, time_point now) noexcept {
        return task.run_at ? *task.run_at : detail::saturating_add(now, task.delay);
    }

    static bool is_current(row const* found, fence_token fence) noexcept {
        return found != nullptr && is_active(found->task.state) && found->task.fence == fence;
    }

    /// The attempt that is in flight, as far as it has come.
    static attempt_view present_attempt(task_record const& task) {
        attempt_view attempt;
        attempt.number = task.attempts;
        attempt.id = task.fence;
        attempt.node = task.node;
        if (task.state == task_state::running) attempt.start = task.started;
        return attempt;
    }

    detail::memory_tables& tables_;
    detail::memory_limiter limiter_;
    detail::memory_graph<writer> store_{*this};
    detail::graph_rules<detail::memory_graph<writer>> graph_{store_};
};

// ---- writes --------------------------------------------------------------------------------------------------------

template <class Fn>
void memory_storage::transact(commit, Fn&& fn) {
    std::scoped_lock const lock(state_->mutex);
    auto& tables = state_->tables;
    try {
        writer verbs(tables);
        fn(verbs);
    } catch (...) {
        tables.undo({});
        throw;
    }
    tables.commit();
}

inline std::vector<insertion> memory_storage::writer::insert(std::span<new_task const> tasks, time_point now,
                                                             alarms& due) {
    return atomically([&] {
        for (auto const& task : tasks) check_types(task); // before `due` is added to
        for (auto const& task : tasks) graph_.refuse_circle(task);
        std::vector<insertion> answer;
        answer.reserve(tasks.size());
        for (auto const& task : tasks) answer.push_back(insert_any(task, now, due));
        settle_changes(now, due);
        return answer;
    });
}

inline insertion memory_storage::writer::insert_one(new_task const& task, time_point now, alarms& due, task_state state,
                                                    bool in_workflow) {
    auto const& kind = known_type(task.type);
    if (auto const answer = meet_holder(task, now, due)) return *answer;

    bool const is_occurrence = !task.schedule.empty() && task.scheduled_at;
    bool const after_past = task.after_past && is_occurrence;
    auto const past = after_past ? past_to_wait_for(task) : task_id{};
    row added;
    added.type = task.type;
    auto& record = added.task;
    record.type = kind.name;
    record.key = task.key;
    record.set_aside = task.set_aside && is_occurrence;
    record.held = record.set_aside;
    record.state = past != task_id{} || record.set_aside ? task_state::created : state;
    record.in_workflow = in_workflow;
    record.payload = task.payload;
    record.key_scope = task.key_scope;
    record.run_at = first_run(task, now);
    record.order_at = record.run_at;
    record.created = now;
    record.changed = now;
    record.priority = task.priority;
    record.route_key = task.route_key;
    record.route_order = task.route_order;
    record.blocked = is_claimable(record.state) && !task.route_key.empty(); // until it has been seen to be the first
    record.deadline = task.deadline;
    record.retry = task.retry;
    record.schedule = task.schedule;
    record.scheduled_at = task.scheduled_at;
    record.tags = task.tags;
    record.version = 1;
    auto const& stored = tables_.add(std::move(added));
    if (!task.key.empty() || !task.schedule.empty()) graph_.arrived(task, stored.task.id);
    if (after_past) stand_in_chain(stored, past);
    rearm(stored, due);
    return {stored.task.id, submit_outcome::inserted, stored.task.state};
}

/// What becomes of a submit whose key or occurrence is there already; nothing where it is to be stored.
inline std::optional<insertion> memory_storage::writer::meet_holder(new_task const& task, time_point now, alarms& due) {
    using detail::key_move;
    auto const answer = [](row const& named, submit_outcome what) {
        return insertion{named.task.id, what, named.task.state};
    };
    row* const holder = task.key.empty() ? nullptr : tables_.key_holder(task.key);
    row const* latest = holder;
    if (task.on_conflict.action() == conflict_action::throttle) {
        // A period goes on where the key is free, and where an older task has got it back.
        auto const* const former = tables_.former_key_holder(task.key);
        if (former != nullptr && (holder == nullptr || former->task.id > holder->task.id) &&
            detail::is_within(now - former->task.created, task.on_conflict.period()))
            latest = former;
    }
    auto const move = latest == nullptr
                          ? key_move::pass
                          : detail::decide_conflict(
                                task.on_conflict, detail::state_for_conflict(latest->task.state, is_workflow(*latest)),
                                latest->type == task.type, now - latest->task.created);
    if (move == key_move::keep) return answer(*latest, submit_outcome::kept);
    if (move == key_move::reject) return answer(*latest, submit_outcome::rejected);
    if (!task.schedule.empty() && task.scheduled_at) // an occurrence is there once, whatever the policy of a key
        if (auto const* const same = tables_.find_occurrence(task.schedule, *task.scheduled_at))
            return answer(*same, submit_outcome::kept);
    if (move == key_move::pass) {
        if (holder != nullptr) tables_.change(*holder, [](task_record& old) { old.key_released = true; });
        return std::nullopt;
    }
    if (move == key_move::replace)
        replace(*holder, task, now, due);
    else
        debounce(*holder, task, now, due);
    return answer(*holder, submit_outcome::replaced);
}

inline void memory_storage::writer::replace(row& held, new_task const& task, time_point now, alarms& due) {
    auto const route_before = held.task.route_key;
    change_waiting(held, [&](task_record& record) {
        record.payload = task.payload;
        record.run_at = first_run(task, now);
        record.order_at = record.run_at;
        record.priority = task.priority;
        record.route_key = task.route_key;
        record.route_order = task.route_order;
        record.blocked = is_claimable(record.state) && !task.route_key.empty(); // until it has been seen to be first
        record.deadline = task.deadline;
        record.retry = task.retry;
        record.tags = task.tags;
        record.failures = 0;
        record.first_started.reset();
        ++record.version;
    });
    forget_past(held);
    if (route_before != task.route_key) announce(tables_.promote(route_before), due);
    rearm(held, due);
}

/// What was done for the old payload is not done for the new one, which is not to blame for what that one did either.
inline void memory_storage::writer::forget_past(row& held) {
    tables_.drop_steps(held);
    tables_.change(held, [](task_record& record) {
        record.unclean_ends = 0;
        record.lonely_deaths = 0;
        record.last_error.clear();
    });
}

inline void memory_storage::writer::debounce(row& held, new_task const& task, time_point now, alarms& due) {
    change_waiting(held, [&](task_record& record) {
        record.payload = task.payload;
        if (auto const later = first_run(task, now); later > record.run_at) record.run_at = record.order_at = later;
        record.deadline = detail::later_deadline(record.deadline, task.deadline);
        ++record.version;
    });
    forget_past(held);
    rearm(held, due);
}

inline claim_answer memory_storage::writer::claim(std::span<claim_request const> requests, claim_terms const& terms) {
    return atomically([&] {
        claim_answer answer;
        auto room = terms.suspects;
        for (auto const& request : requests) {
            auto* const found = tables_.find(request.id);
            if (found == nullptr) continue;
            auto const& task = found->task;
            if (request.type != type_number{} && request.type != found->type) continue;
            if (!is_claimable(task.state) || task.blocked || task.held || task.paused ||
                (task.deadline && *task.deadline <= terms.now))
                continue;
            if (task.run_at > terms.until) { // where it stands in line, it is named again
                limiter_.name_again(*found);
                continue;
            }
            bool const suspect = task.unclean_ends >= 2;
            if (suspect && room == 0) {
                if (std::find(answer.suspects.begin(), answer.suspects.end(), request.id) == answer.suspects.end())
                    answer.suspects.push_back(request.id);
                limiter_.leave(*found); // else it would keep those behind it waiting
                continue;
            }
            if (!limiter_.admit(*found, terms)) continue;
            if (suspect) --room;
            tables_.change(*found, [&](task_record& claimed) {
                enter(claimed, task_state::dispatched, terms.now);
                claimed.fence = fence_token{claimed.version};
                claimed.node = terms.node;
                claimed.hold_on_interrupt = request.hold_on_interrupt;
                claimed.lonely = suspect;
                ++claimed.attempts;
            });
            answer.claimed.push_back(task);
        }
        limiter_.announce(terms.now, terms.until, answer.due);
        return answer;
    });
}

inline void memory_storage::writer::start(std::span<start_mark const> starts, time_point) {
    atomically([&] {
        for (auto const& mark : starts) {
            auto* const found = tables_.find(mark.id);
            if (!is_current(found, mark.fence) || found->task.state != task_state::dispatched) continue;
            tables_.change(*found, [&](task_record& task) {
                enter(task, task_state::running, mark.at);
                task.started = mark.at;
                if (!task.first_started) task.first_started = mark.at;
            });
        }
    });
}

namespace detail {

/// Where an outcome leads.
constexpr task_state state_after(attempt_outcome outcome) noexcept {
    switch (outcome) {
    case attempt_outcome::succeeded: return task_state::succeeded;
    case attempt_outcome::failed: return task_state::failed;
    case attempt_outcome::exhausted:
    case attempt_outcome::expired: return task_state::dead;
    case attempt_outcome::cancelled: return task_state::cancelled;
    case attempt_outcome::skipped: return task_state::skipped;
    case attempt_outcome::snoozed:
    case attempt_outcome::interrupted:
    case attempt_outcome::held:
    case attempt_outcome::released:
    case attempt_outcome::crashed: break;
    }
    return task_state::ready;
}

} // namespace detail

inline settlement memory_storage::writer::settle(std::span<attempt_end const> ends, time_point now) {
    return atomically([&] {
        settlement answer;
        for (auto const& end : ends) {
            auto const state = settle_one(end, now, answer.due);
            answer.accepted.push_back(state.has_value());
            answer.states.push_back(state.value_or(task_state::created));
        }
        settle_changes(now, answer.due);
        return answer;
    });
}

inline std::optional<task_state> memory_storage::writer::settle_one(attempt_end const& end, time_point now,
                                                                    alarms& due) {
    auto* const found = tables_.find(end.id);
    if (!is_current(found, end.fence)) return std::nullopt;
    auto attempt = present_attempt(found->task);
    bool const released = end.outcome == attempt_outcome::released;
    limiter_.release(end.id, released);
    if (end.outcome == attempt_outcome::succeeded) graph_.add(end.id, end.members, now, due);

    tables_.change(*found, [&](task_record& task) {
        bool const unwanted = task.stop_asked;
        enter(task, detail::state_after(end.outcome), end.ended);
        if (unwanted && !is_terminal(task.state)) enter(task, task_state::cancelled, end.ended);
        task.hold_on_interrupt = false;
        task.lonely = false;
        if (released) {
            --task.attempts;
            return;
        }
        task.unclean_ends = 0;
        task.lonely_deaths = 0;
        if (end.started) {
            task.started = end.started;
            if (!task.first_started) task.first_started = end.started;
        }
        if (!end.error.empty()) task.last_error = end.error;

        switch (end.outcome) {
        case attempt_outcome::succeeded:
            task.last_error.clear();
            task.result = end.result;
            break;
        case attempt_outcome::failed:
        case attempt_outcome::exhausted: ++task.failures; break;
        case attempt_outcome::snoozed: ++task.snoozes; break;
        case attempt_outcome::held:
            task.held = !is_terminal(task.state);
            ++task.interruptions;
            break;
        case attempt_outcome::interrupted:
        case attempt_outcome::crashed: ++task.interruptions; break;
        case attempt_outcome::cancelled:
        case attempt_outcome::skipped:
        case attempt_outcome::expired:
        case attempt_outcome::released: break;
        }
        if ((end.outcome == attempt_outcome::failed || end.outcome == attempt_outcome::snoozed) && end.retry_at) {
            task.run_at = *end.retry_at;
            if (task.route_order == route_ordering::relaxed) task.order_at = task.run_at;
        }
    });

    if (!released) {
        if (end.started) attempt.start = end.started;
        attempt.end = end.ended;
        attempt.outcome = end.outcome;
        attempt.error = end.error;
        attempt.log = end.log;
        tables_.add_attempt(*found, std::move(attempt));
    }
    rearm(*found, due);
    let_followers_go(*found, due);
    if (end.outcome == attempt_outcome::succeeded)
        for (auto const& task : end.follow_ups) insert_one(task, now, due);
    return found->task.state;
}

inline void memory_storage::writer::tell_graph() {
    for (auto const& each : tables_.take_state_changes()) graph_.changed(each.id, each.from, each.to, each.started);
}

inline void memory_storage::writer::settle_changes(time_point now, alarms& due) {
    tell_graph();
    graph_.settle(now, due);
    limiter_.announce(now, due);
}

inline reclaim_answer memory_storage::writer::reclaim(reclaim_terms const& terms) {
    return atomically([&] {
        reclaim_answer answer;
        auto const in_flight = std::vector(tables_.in_flight().begin(), tables_.in_flight().end());
        for (auto const id : in_flight) {
            auto& held = *tables_.find(id);
            auto const owner = held.task.node;
            if (owner == terms.node || std::ranges::find(terms.beside, owner) != terms.beside.end()) continue;
            reclaim_one(held, terms, answer);
        }
        alarms unused; // who starts reads waiting() anyway
        settle_changes(terms.now, unused);
        return answer;
    });
}

inline void memory_storage::writer::reclaim_one(row& lost, reclaim_terms const& terms, reclaim_answer& answer) {
    auto attempt = present_attempt(lost.task);
    limiter_.release(lost.task.id, false);
    bool const may_have_run = lost.task.state == task_state::running;
    tables_.change(lost, [&](task_record& task) {
        bool const unwanted = task.stop_asked;
        ++task.interruptions;
        ++task.unclean_ends;
        if (task.lonely) ++task.lonely_deaths;
        if (task.lonely_deaths >= terms.poison_after) {
            enter(task, task_state::dead, terms.now);
            task.last_error =
                "poison: the process ended " + std::to_string(task.lonely_deaths) + " times while this task ran alone";
            answer.poisoned.push_back(task.id);
        } else {
            enter(task, task_state::ready, terms.now);
            task.last_error = "the process ended while this attempt was in flight";
            if (unwanted) {
                enter(task, task_state::cancelled, terms.now);
            } else {
                task.held = task.hold_on_interrupt && may_have_run;
                ++(task.held ? answer.held : answer.reclaimed);
            }
        }
        task.lonely = false;
        task.hold_on_interrupt = false;
    });
    attempt.end = terms.now;
    attempt.outcome = attempt_outcome::crashed;
    attempt.error = lost.task.last_error;
    tables_.add_attempt(lost, std::move(attempt));
    tables_.promote(lost.task.route_key);
}

inline change memory_storage::writer::cancel(task_id id, time_point now) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        auto const state = found->task.state;
        if (state != task_state::created && !is_claimable(state)) {
            if (auto const head = head_behind(*found); head != task_id{}) return cancel(head, now);
            return {change_outcome::wrong_state, state};
        }
        change answer{change_outcome::done, task_state::cancelled};
        if (is_workflow(*found)) {
            graph_.stop(id, now, answer.due, answer.asked_to_stop);
        } else {
            change_waiting(*found, [&](task_record& task) { enter(task, task_state::cancelled, now); });
            tables_.periods().put_past(id, std::nullopt);
            rearm(*found, answer.due);
        }
        return after_change(id, now, std::move(answer));
    });
}

inline change memory_storage::writer::retry(task_id id, time_point now) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        auto const state = found->task.state;
        if (found->task.in_workflow && is_terminal(state)) return retry_member(*found, now);
        if (state == task_state::dead || state == task_state::cancelled) {
            if (found->task.key_released && tables_.key_holder(found->task.key) != nullptr)
                return {change_outcome::wrong_state, state};
            tables_.change(*found, [&](task_record& task) {
                enter(task, task_state::ready, now);
                task.run_at = now;
                task.order_at = now;
                task.failures = 0;
                task.unclean_ends = 0;
                task.lonely_deaths = 0;
                task.finished.reset();
                task.first_started.reset();
                task.blocked = !task.route_key.empty(); // until it has been seen to be the first
                task.key_released = false;
                if (task.deadline && *task.deadline <= now) task.deadline.reset();
            });
        } else if (found->task.set_aside) {
            return release(id, priority_class::low, now);
        } else if (found->task.held) {
            tables_.change(*found, [](task_record& task) {
                task.held = false;
                ++task.version;
            });
        } else {
            return {change_outcome::wrong_state, state};
        }
        change answer{change_outcome::done, found->task.state};
        rearm(*found, answer.due);
        settle_changes(now, answer.due);
        return answer;
    });
}

inline change memory_storage::writer::retry_member(row& member, time_point now) {
    auto const one = store_.node(member.task.id);
    change answer{change_outcome::wrong_state, member.task.state};
    if (!one) return answer;
    if (auto const head = head_behind(member); head != task_id{}) return retry(head, now);
    if (graph_.is_superseded(*one)) return answer;
    if (auto const& first = tables_.find(one->workflow)->task; // another may have the key by now that it had
        first.key_released && tables_.key_holder(first.key) != nullptr)
        return answer;
    if (one->kind == member_kind::workflow) {
        if (one->state == task_state::succeeded || !graph_.retry_failed(one->workflow, now, answer.due)) return answer;
    } else {
        if (one->state != task_state::dead && one->state != task_state::cancelled) return answer;
        graph_.retry(*one, now, answer.due);
    }
    answer.outcome = change_outcome::done;
    return after_change(member.task.id, now, std::move(answer));
}

/// What a verb answers that may have changed a workflow.
inline change memory_storage::writer::after_change(task_id id, time_point now, change answer) {
    settle_changes(now, answer.due);
    if (auto const* const found = tables_.find(id)) answer.state = found->task.state;
    return answer;
}

inline void memory_storage::writer::check_types(new_task const& task) const {
    (void)known_type(task.type);
    if (task.workflow)
        for (auto const& each : task.workflow->members) (void)known_type(each.task.type);
}

inline change memory_storage::writer::mark_succeeded(task_id id, time_point now) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        if (found->task.state != task_state::dead || is_workflow(*found) || is_superseded(*found))
            return {change_outcome::wrong_state, found->task.state};
        tables_.change(*found, [&](task_record& task) { enter(task, task_state::succeeded, now); });
        change answer{change_outcome::done, task_state::succeeded};
        let_followers_go(*found, answer.due);
        return after_change(id, now, std::move(answer));
    });
}

inline change memory_storage::writer::rerun(task_id id, rerun_scope scope, time_point now) {
    return atomically([&] {
        change answer;
        answer.outcome = graph_.rerun(id, scope, now, answer.due, answer.task);
        auto const about = answer.task;
        return after_change(about, now, std::move(answer));
    });
}

inline change memory_storage::writer::pause_workflow(task_id id, bool yes, time_point now) {
    return atomically([&]() -> change {
        auto const head = store_.node(id);
        if (!head || head->kind != member_kind::workflow) return {};
        change answer{change_outcome::done, head->state};
        graph_.pause(head->workflow, yes, answer.due, answer.asked_to_stop);
        return after_change(id, now, std::move(answer));
    });
}

/// The task as it was submitted, without its key.
inline task_id memory_storage::writer::copy(row const& old, time_point now) {
    row fresh;
    fresh.type = old.type;
    auto& task = fresh.task;
    task.type = old.task.type;
    task.state = task_state::created;
    task.in_workflow = true;
    task.payload = old.task.payload;
    task.run_at = task.order_at = task.created = task.changed = now;
    task.priority = old.task.priority;
    task.route_key = old.task.route_key;
    task.route_order = old.task.route_order;
    if (old.task.deadline && *old.task.deadline > now) task.deadline = old.task.deadline;
    task.retry = old.task.retry;
    task.scheduled_at = old.task.scheduled_at;
    task.tags = old.task.tags;
    task.version = 1;
    return tables_.add(std::move(fresh)).task.id;
}

inline void memory_storage::writer::enter_by_rule(row& member, task_state state, time_point now, std::string_view error,
                                                  alarms& due) {
    if (state == task_state::created && member.task.key_released && tables_.key_holder(member.task.key) == nullptr)
        tables_.change(member, [](task_record& task) { task.key_released = false; });
    change_waiting(member, [&](task_record& task) {
        bool const key_released = task.key_released;
        if (is_terminal(task.state) && state == task_state::created) {
            task.run_at = task.order_at = now;
            task.failures = 0;
            task.unclean_ends = 0;
            task.lonely_deaths = 0;
            task.finished.reset();
            task.first_started.reset();
            if (task.deadline && *task.deadline <= now) task.deadline.reset();
        }
        task.state = state; // by the rules of the workflow; one that runs nothing passes through in one step
        task.changed = now;
        ++task.version;
        task.blocked = task.held = task.paused = false;
        if (is_terminal(state)) {
            task.finished = now;
            task.key_released = key_released || (task.key_scope == key_scoping::active && !task.key.empty());
        }
        if (!error.empty()) task.last_error = error;
        if (state == task_state::created || state == task_state::succeeded) task.last_error.clear();
    });
    tell_graph();
    rearm(member, due);
}

inline void memory_storage::writer::promote_member(row& member, bool paused, time_point now, alarms& due) {
    tables_.change(member, [&](task_record& task) {
        enter(task, task_state::ready, now);
        task.run_at = task.order_at = (std::max)(task.run_at, now);
        task.blocked = !task.route_key.empty(); // until it has been seen to be the first
        task.paused = paused;
    });
    tell_graph();
    rearm(member, due);
}

inline change memory_storage::writer::reschedule(task_id id, time_point run_at, time_point now) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        auto const state = found->task.state;
        if (!is_claimable(state)) return {change_outcome::wrong_state, state};
        change_waiting(*found, [&](task_record& task) {
            task.run_at = run_at;
            task.order_at = run_at;
            ++task.version;
        });
        change answer{change_outcome::done, state};
        rearm(*found, answer.due);
        limiter_.announce(now, answer.due);
        return answer;
    });
}

inline expiry memory_storage::writer::expire(time_point now, std::size_t limit) {
    return atomically([&] {
        expiry answer;
        auto const& deadlines = tables_.deadlines();
        while (answer.dead.size() < limit && !deadlines.empty() && deadlines.begin()->first <= now) {
            auto& late = *tables_.find(deadlines.begin()->second);
            change_waiting(late, [&](task_record& task) {
                enter(task, task_state::dead, now);
                task.last_error = "deadline passed";
            });
            tables_.periods().put_past(late.task.id, std::nullopt);
            answer.dead.push_back(late.task.id);
            rearm(late, answer.due);
            if (is_workflow(late)) graph_.stop(late.task.id, now, answer.due, answer.asked_to_stop);
            settle_changes(now, answer.due);
        }
        if (!deadlines.empty()) answer.next = deadlines.begin()->first;
        limiter_.announce(now, answer.due);
        return answer;
    });
}

inline schedule_record memory_storage::writer::declare(schedule_record const& wanted, time_point now) {
    return atomically([&] {
        auto const* const present = tables_.find_schedule(wanted.name);
        if (present != nullptr && present->spec == wanted.spec && present->type == wanted.type &&
            present->payload == wanted.payload && present->terms == wanted.terms)
            return *present;
        schedule_record record = present == nullptr ? wanted : *present;
        if (present == nullptr) {
            record.version = 1;
            record.created = now;
        } else {
            if (record.spec != wanted.spec) record.next = wanted.next;
            record.spec = wanted.spec;
            record.type = wanted.type;
            record.payload = wanted.payload;
            record.terms = wanted.terms;
            ++record.version;
        }
        tables_.put_schedule(record);
        return record;
    });
}

inline schedule_answer memory_storage::writer::step(schedule_step const& next, time_point now) {
    return atomically([&] {
        schedule_answer answer;
        auto const* const present = tables_.find_schedule(next.name);
        if (present == nullptr) return answer;
        answer.record = *present;
        if (present->version != next.version) return answer;
        if (next.occurrence) graph_.refuse_circle(*next.occurrence);

        answer.accepted = true;
        auto& record = answer.record;
        ++record.version;
        record.next = next.next;
        if (next.paused) record.paused = *next.paused;
        for (auto const& range : next.skipped) leave_out(record, range, now);
        if (next.occurrence) {
            auto const* latest = tables_.find(record.last_task);
            // One that waits for a later instant was made by a clock that was wrong, and is in nobody's way.
            if (latest != nullptr && is_claimable(latest->task.state) &&
                latest->task.scheduled_at > next.occurrence->scheduled_at)
                latest = nullptr;
            bool const busy = next.skip_if_unfinished && latest != nullptr && !is_terminal(latest->task.state) &&
                              (latest->task.state != task_state::created || latest->task.in_workflow);
            auto const& wanted = *next.occurrence;
            auto const* const met =
                wanted.scheduled_at ? tables_.find_occurrence(wanted.schedule, *wanted.scheduled_at) : nullptr;
            bool const early = met != nullptr && met->task.created < wanted.scheduled_at; // somebody had asked for it
            auto const nominal = wanted.scheduled_at.value_or(now);
            if (busy && met == nullptr) {
                leave_out(record, {nominal, nominal, 1, "the one before has not ended", now}, now);
            } else {
                make_way(next, latest, now, answer);
                answer.occurrence = insert_any(*next.occurrence, now, answer.due);
                auto const& there = tables_.find(answer.occurrence->id)->task;
                if (answer.occurrence->outcome == submit_outcome::inserted) {
                    ++record.fired;
                } else if (!there.set_aside && !early) {
                    leave_out(record, {nominal, nominal, 1, "it was there already", now}, now);
                }
                if (!busy && !is_terminal(answer.occurrence->state) && !there.set_aside)
                    record.last_task = answer.occurrence->id;
                record.last_nominal = next.occurrence->scheduled_at;
            }
        }
        tables_.put_schedule(record);
        settle_changes(now, answer.due);
        return answer;
    });
}

/// Counts what a schedule leaves out, and keeps why.
inline void memory_storage::writer::leave_out(schedule_record& record, skip_range range, time_point now) {
    record.skipped += range.number;
    record.last_skip = range.reason;
    range.recorded = now;
    auto skips = tables_.periods().skips(record.name);
    detail::count_skips(skips.reasons, range.reason, range.number);
    auto& latest = skips.latest;
    auto const* const before = std::as_const(tables_).occurrence_before(record.name, range.first);
    if (!latest.empty() &&
        detail::follows_on(latest.back(), range, before == nullptr ? std::nullopt : before->task.scheduled_at)) {
        latest.back().last = range.last;
        latest.back().number += range.number;
        latest.back().recorded = now;
    } else {
        latest.push_back(std::move(range));
        if (latest.size() > most_skips_kept) latest.erase(latest.begin());
    }
    tables_.periods().put_skips(record.name, std::move(skips));
}

/// What a backfill has left out up to where it stands.
inline void memory_storage::writer::leave_out_of(backfill_record const& by, std::vector<skip_range> const& ranges,
                                                 time_point now) {
    auto const* const present = tables_.find_schedule(by.schedule);
    if (present == nullptr) return;
    auto record = *present;
    for (auto const& range : detail::in_order(ranges))
        if (!by.next || range.first < *by.next) leave_out(record, range, now);
    if (record.skipped != present->skipped) tables_.put_schedule(record);
}

/// What an occurrence does to the one before it, before it is created.
inline void memory_storage::writer::make_way(schedule_step const& next, row const* latest, time_point now,
                                             schedule_answer& answer) {
    if (latest == nullptr || is_terminal(latest->task.state)) return;
    if (latest->task.state == task_state::created && !is_workflow(*latest)) return;
    if (!next.stop_latest && !(next.replace_blocked && latest->task.blocked)) return;
    auto const& occurrence = *next.occurrence;
    if (occurrence.scheduled_at && tables_.find_occurrence(occurrence.schedule, *occurrence.scheduled_at)) return;
    auto const id = latest->task.id;
    if (is_active(latest->task.state)) {
        if (ask_to_stop(id)) answer.asked_to_stop = id;
        return;
    }
    auto const made = cancel(id, now);
    answer.due.insert(answer.due.end(), made.due.begin(), made.due.end());
    answer.cancelled = id;
    auto const nominal = latest->task.scheduled_at.value_or(now);
    leave_out(answer.record, {nominal, nominal, 1, "a later one took its place", now}, now);
}

inline bool memory_storage::writer::forget(std::string_view name) {
    return atomically([&] {
        if (tables_.find_schedule(name) == nullptr) return false;
        tables_.erase_schedule(name);
        tables_.periods().put_skips(std::string(name), {});
        std::vector<std::uint64_t> gone;
        for (auto const& [number, each] : tables_.periods().backfills())
            if (each.record.schedule == name) gone.push_back(number);
        for (auto const number : gone) tables_.periods().put_backfill(number, std::nullopt);
        return true;
    });
}

inline bool memory_storage::writer::ask_to_stop(task_id id) {
    auto* const found = tables_.find(id);
    if (found == nullptr || !is_active(found->task.state)) return false;
    tables_.change(*found, [](task_record& task) { task.stop_asked = true; });
    return true;
}

inline bool memory_storage::writer::keep_step(task_id id, fence_token fence, std::string_view name,
                                              std::string_view value) {
    auto* const found = tables_.find(id);
    if (!is_current(found, fence)) return false;
    tables_.put_step(*found, std::string(name), std::string(value));
    return true;
}

inline prune_answer memory_storage::writer::prune(prune_terms const& terms, std::size_t limit) {
    return atomically([&] { return detail::memory_prune(tables_, terms, limit); });
}

inline void memory_storage::writer::repair(std::span<finding> found, time_point now, alarms& due) {
    for (auto& one : found) {
        detail::memory_repair(tables_, one, now);
        tell_graph();
        graph_.revise(one.task);
        settle_changes(now, due);
        announce(one.task, due);
    }
    limiter_.announce(now, due);
}

inline alarms memory_storage::writer::limit_type(type_number number, limit const& how,
                                                 std::vector<resource_need> const& needs, time_point now) {
    return atomically([&] {
        alarms due;
        limiter_.limit_type(known_type(number), how, needs);
        limiter_.announce(now, due);
        return due;
    });
}

inline alarms memory_storage::writer::limit_tag(std::string_view tag, limit const& how, time_point now) {
    return atomically([&] {
        alarms due;
        limiter_.define(limit_kind::tag, tag, how);
        limiter_.announce(now, due);
        return due;
    });
}

inline alarms memory_storage::writer::set_resource(std::string_view name, std::size_t capacity, time_point now) {
    return atomically([&] {
        alarms due;
        limiter_.define(limit_kind::resource, name, {capacity, {}});
        limiter_.announce(now, due);
        return due;
    });
}

/// The one before an occurrence that is to be inserted, where it has not done what those behind it wait for.
inline task_id memory_storage::writer::past_to_wait_for(new_task const& task) const {
    auto const* const before = std::as_const(tables_).occurrence_before(task.schedule, *task.scheduled_at);
    if (before == nullptr || before->task.state == task_state::succeeded || before->task.state == task_state::skipped)
        return {};
    return before->task.id;
}

/// A new occurrence that waits for `past`, if for any; the one behind it, where it waits, waits for the new one.
inline void memory_storage::writer::stand_in_chain(row const& added, task_id past) {
    auto& periods = tables_.periods();
    if (added.task.state == task_state::created) periods.put_past(added.task.id, past);
    auto const* const behind = std::as_const(tables_).occurrence_behind(added.task.schedule, *added.task.scheduled_at);
    if (behind != nullptr && periods.past_of(behind->task.id)) periods.put_past(behind->task.id, added.task.id);
}

inline void memory_storage::writer::let_followers_go(row const& done, alarms& due) {
    if (done.task.state != task_state::succeeded && done.task.state != task_state::skipped) return;
    for (auto const id : tables_.periods().waiting_for(done.task.id)) {
        tables_.periods().put_past(id, task_id{});
        let_go(*tables_.find(id), done.task.priority, *done.task.finished, due);
    }
}

/// What its past and a person kept waiting is ready, where neither does any more.
inline void memory_storage::writer::let_go(row& waiting, priority_class urgency, time_point at, alarms& due) {
    auto& periods = tables_.periods();
    bool const free = waiting.task.state == task_state::created && !waiting.task.held &&
                      periods.past_of(waiting.task.id).value_or(task_id{}) == task_id{};
    if (free) periods.put_past(waiting.task.id, std::nullopt);
    tables_.change(waiting, [&](task_record& task) {
        task.priority = (std::min)(task.priority, urgency);
        if (!free) {
            ++task.version;
            return;
        }
        enter(task, task_state::ready, at);
        task.blocked = !task.route_key.empty(); // until it has been seen to be the first
    });
    rearm(waiting, due);
}

inline change memory_storage::writer::set_aside(task_id id, time_point now) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        auto const state = found->task.state;
        if (state != task_state::created && !is_claimable(state)) return {change_outcome::wrong_state, state, {}};
        change_waiting(*found, [](task_record& task) {
            task.held = true;
            task.set_aside = true;
            ++task.version;
        });
        change answer{change_outcome::done, state, {}};
        rearm(*found, answer.due);
        limiter_.announce(now, answer.due);
        return answer;
    });
}

inline change memory_storage::writer::release(task_id id, priority_class urgency, time_point now) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        if (!found->task.set_aside) return {change_outcome::wrong_state, found->task.state, {}};
        tables_.change(*found, [](task_record& task) {
            task.held = false;
            task.set_aside = false;
        });
        change answer{change_outcome::done, {}, {}};
        let_go(*found, urgency, now, answer.due);
        answer.state = found->task.state;
        limiter_.announce(now, answer.due);
        return answer;
    });
}

inline backfill_record memory_storage::writer::begin_backfill(backfill_record const& wanted, time_point now) {
    return atomically([&] {
        auto record = wanted;
        record.number = detail::next_backfill(tables_.note(detail::backfills_note));
        tables_.put_note(detail::backfills_note, std::to_string(record.number));
        record.version = 1;
        record.created = now;
        record.unfinished = 0;
        tables_.periods().put_backfill(record.number, detail::memory_backfill{record, {}});
        return record;
    });
}

inline backfill_answer memory_storage::writer::fill(backfill_step const& step, time_point now) {
    return atomically([&] {
        backfill_answer answer;
        auto const* const present = tables_.periods().find_backfill(step.number);
        if (present == nullptr) return answer;
        answer.record = present->record;
        if (present->record.version != step.version) return answer;
        answer.accepted = true;
        auto changed = *present;
        auto& record = changed.record;
        ++record.version;
        std::erase_if(changed.unfinished, [&](task_id id) {
            auto const* const task = std::as_const(tables_).find(id);
            return task == nullptr || is_terminal(task->task.state);
        });
        bool const all_seen = !record.next;
        if (!all_seen) record.next = step.next;
        auto left_out = step.left_out;
        for (auto const& task : step.occurrences) {
            if (all_seen) break;
            if (changed.unfinished.size() >= record.at_once) {
                record.next = task.scheduled_at;
                break;
            }
            if (auto const why = graph_.circle(task); !why.empty()) {
                left_out.push_back({*task.scheduled_at, *task.scheduled_at, 1, detail::bounded_text(why, 255), now});
                continue;
            }
            auto const made = insert_any(task, now, answer.due);
            bool const is_new = made.outcome == submit_outcome::inserted;
            ++(is_new ? record.made : record.existed);
            if (is_new) changed.unfinished.insert(made.id);
        }
        if (!all_seen) leave_out_of(record, left_out, now);
        record.unfinished = changed.unfinished.size();
        answer.record = record;
        answer.over = !record.next && changed.unfinished.empty();
        tables_.periods().put_backfill(step.number, answer.over ? std::nullopt : std::optional{std::move(changed)});
        settle_changes(now, answer.due);
        return answer;
    });
}

inline bool memory_storage::writer::drop_backfill(std::uint64_t number) {
    if (tables_.periods().find_backfill(number) == nullptr) return false;
    tables_.periods().put_backfill(number, std::nullopt);
    return true;
}

inline void memory_storage::writer::end_waits(std::string_view schedule, bool over, time_point now, alarms& due) {
    atomically([&] {
        auto const* const record = tables_.find_schedule(schedule);
        for (auto const& [instant, id] : tables_.graphs().awaiting(schedule, detail::passed_until(record, over))) {
            auto const is_to_come = [&, at = instant](auto const& each) {
                return detail::is_to_make(each.second.record, schedule, at);
            };
            auto const& backfills = tables_.periods().backfills();
            if (std::none_of(backfills.begin(), backfills.end(), is_to_come)) graph_.left_out(id);
        }
        settle_changes(now, due);
    });
}

// ---- reads ---------------------------------------------------------------------------------------------------------

inline std::optional<task_record> memory_storage::find(task_id id) const {
    std::scoped_lock const lock(state_->mutex);
    auto const* const found = std::as_const(state_->tables).find(id);
    return found == nullptr ? std::nullopt : std::optional{std::as_const(state_->tables).shown(*found)};
}

inline std::optional<task_record> memory_storage::find_by_key(std::string_view key) const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    auto const* found = tables.key_holder(std::string(key));
    if (found == nullptr) found = tables.former_key_holder(std::string(key));
    return found == nullptr ? std::nullopt : std::optional{tables.shown(*found)};
}

/// `filter.over_expected` is left to who knows the handlers: a storage does not.
inline std::vector<task_record> memory_storage::list(task_filter const& filter, time_point now) const {
    auto const wanted = [&](task_record const& task) {
        return (!filter.state || task.state == *filter.state) && (filter.type.empty() || task.type == filter.type) &&
               (!filter.stuck_for || task.changed < detail::saturating_add(now, -filter.stuck_for->value()));
    };
    std::scoped_lock const lock(state_->mutex);
    auto const& rows = state_->tables.rows();
    std::vector<task_record const*> found;

    if (filter.state && is_claimable(*filter.state)) {
        auto const waits = [](task_record const& task) {
            return task.blocked || task.held || task.paused || task.waits_for != limit_number{};
        };
        auto const before = [&](task_record const* a, task_record const* b) {
            return std::tuple(waits(*a), a->run_at, a->id) < std::tuple(waits(*b), b->run_at, b->id);
        };
        auto const* const last = std::as_const(state_->tables).find(filter.after);
        for (auto const& row : rows)
            if (row && wanted(row->task) && (last == nullptr || before(&last->task, &row->task)))
                found.push_back(&row->task);
        auto const page = found.begin() + static_cast<std::ptrdiff_t>((std::min)(filter.limit, found.size()));
        std::partial_sort(found.begin(), page, found.end(), before);
        found.erase(page, found.end());
    } else {
        auto const first = state_->tables.first();
        auto const after = to_number(filter.after);
        auto const count = after == 0      ? rows.size()
                           : after < first ? 0
                                           : (std::min)(std::size_t{after - first}, rows.size());
        for (auto at = count; at > 0 && found.size() < filter.limit; --at)
            if (rows[at - 1] && wanted(rows[at - 1]->task)) found.push_back(&rows[at - 1]->task);
    }

    std::vector<task_record> answer;
    answer.reserve(found.size());
    for (auto const* task : found)
        answer.push_back(state_->tables.shown(*std::as_const(state_->tables).find(task->id)));
    return answer;
}

inline std::vector<attempt_view> memory_storage::history(task_id id) const {
    std::scoped_lock const lock(state_->mutex);
    auto const* const found = std::as_const(state_->tables).find(id);
    if (found == nullptr) return {};
    auto attempts = found->ended;
    if (is_active(found->task.state)) attempts.push_back(writer::present_attempt(found->task));
    return attempts;
}

inline std::vector<obstacle> memory_storage::obstacles(task_id id) const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    auto const* const found = tables.find(id);
    std::vector<obstacle> answer;
    if (found == nullptr) return answer;
    if (found->task.blocked)
        answer.push_back({obstacle::what::route,
                          found->task.route_key,
                          {tables.route_front(found->task.route_key)},
                          std::nullopt,
                          false});
    if (auto const past = tables.periods().past_of(id).value_or(task_id{}); past != task_id{})
        answer.push_back({obstacle::what::past, found->task.schedule, {past}, std::nullopt, false});
    auto const met_number = tables.waits_at(*found);
    bool met_in_vain = false;
    if (found->task.state == task_state::created || is_claimable(found->task.state))
        for (auto const& need : tables.limits().needs(found->type)) {
            auto const& needed = *tables.limits().find(need.number);
            if (!needed.is_too_little_for(need.amount)) continue;
            answer.push_back({obstacle::what::limit, needed.title(need.amount), {}, std::nullopt, true});
            met_in_vain = met_in_vain || need.number == met_number;
        }
    if (auto const* const met = met_in_vain ? nullptr : tables.limits().find(met_number)) {
        obstacle full{obstacle::what::limit, met->title(), {}, met->next_free(), false};
        for (auto const& [holder, holds] : tables.limits().holds())
            for (auto const& hold : holds)
                if (hold.number == met->number && full.holders.size() < 16) full.holders.push_back(holder);
        answer.push_back(std::move(full));
    }
    auto const& graphs = tables.graphs();
    auto const* const member = graphs.member(id);
    if (member == nullptr || member->row.kind == member_kind::workflow) return answer;
    auto const stands = found->task.state;
    if (stands == task_state::created) {
        obstacle open{obstacle::what::parents, {}, {}, std::nullopt};
        for (auto const parent : graphs.parents(id)) {
            auto const* const row = tables.find(parent);
            if (row == nullptr || is_terminal(row->task.state) || open.holders.size() == 16) continue;
            open.holders.push_back(parent);
            auto const* const named = graphs.member(parent);
            detail::name_parent(open.name, parent, named == nullptr ? std::string_view{} : named->name);
        }
        if (auto const await = graphs.awaited_by(id)) {
            auto const& [key, schedule, instant, workflow] = await->first;
            if (workflow != task_id{})
                detail::name_awaited(open.name, std::to_string(to_number(workflow)), await->second);
            else
                detail::name_awaited(open.name, key, schedule, await->second);
        }
        if (!open.name.empty()) answer.push_back(std::move(open));
    }
    auto const* const whole = graphs.workflow(member->row.workflow);
    if (whole != nullptr && whole->row.paused && (stands == task_state::created || is_claimable(stands)))
        answer.push_back({obstacle::what::paused, whole->name, {whole->row.head}, std::nullopt});
    return answer;
}

inline std::vector<task_id> memory_storage::asked_to_stop() const {
    std::scoped_lock const lock(state_->mutex);
    std::vector<task_id> answer;
    for (auto const id : state_->tables.in_flight())
        if (std::as_const(state_->tables).find(id)->task.stop_asked) answer.push_back(id);
    return answer;
}

inline alarms memory_storage::upcoming(alarm const& after, time_point until, std::size_t limit) const {
    std::scoped_lock const lock(state_->mutex);
    alarms answer;
    auto const& lanes = state_->tables.due();
    auto const lane = lanes.find(after.lane);
    if (lane == lanes.end()) return answer;
    auto at = lane->second.upper_bound({after.run_at, after.id});
    for (; at != lane->second.end() && at->first <= until && answer.size() < limit; ++at)
        answer.push_back({at->second, after.lane, at->first});
    return answer;
}

inline std::vector<type_info> memory_storage::types() const {
    std::scoped_lock const lock(state_->mutex);
    return state_->tables.types();
}

inline std::vector<schedule_record> memory_storage::schedules() const {
    std::scoped_lock const lock(state_->mutex);
    std::vector<schedule_record> answer;
    for (auto const& [name, record] : state_->tables.schedules()) answer.push_back(record);
    return answer;
}

inline std::vector<kept_step> memory_storage::steps(task_id id) const {
    std::scoped_lock const lock(state_->mutex);
    std::vector<kept_step> answer;
    auto const* const found = std::as_const(state_->tables).find(id);
    if (found == nullptr) return answer;
    for (auto const& [name, value] : found->steps) answer.push_back({name, value});
    return answer;
}

inline std::optional<workflow_record> memory_storage::workflow(task_id id) const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    auto const* const member = tables.graphs().member(id);
    auto const* const found = member == nullptr ? nullptr : tables.graphs().workflow(member->row.workflow);
    if (found == nullptr) return std::nullopt;
    auto const& row = found->row;
    auto const& first = tables.find(row.id)->task;
    auto const& head = tables.find(row.head)->task;
    workflow_record answer;
    answer.id = row.id;
    answer.head = row.head;
    answer.name = found->name;
    answer.key = first.key;
    answer.state = head.state;
    answer.paused = row.paused;
    answer.stopping = row.stopping && row.unfinished() > 0; // later it says what goes for who comes back
    std::size_t* const counts[] = {&answer.waiting,   &answer.ready,   &answer.succeeded,      &answer.dead,
                                   &answer.cancelled, &answer.skipped, &answer.upstream_failed};
    for (std::size_t i = 0; i != detail::member_groups; ++i) *counts[i] = static_cast<std::size_t>(row.counts[i]);
    for (auto const each : tables.in_flight()) {
        auto const* const at_work = tables.graphs().member(each);
        if (at_work != nullptr && at_work->row.workflow == row.id) ++answer.running;
    }
    answer.running = (std::min)(answer.running, answer.ready);
    answer.ready -= answer.running;
    answer.created = first.created;
    answer.started = row.started;
    answer.finished = head.finished;
    answer.last_ended = row.last_ended;
    return answer;
}

inline std::vector<member_record> memory_storage::members(task_id workflow, std::string_view after,
                                                          std::size_t limit) const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    auto const& names = tables.graphs().names();
    std::vector<member_record> answer;
    auto at = names.upper_bound({workflow, std::string(after), static_cast<std::uint32_t>(-1)});
    for (; at != names.end() && std::get<0>(at->first) == workflow; ++at) {
        if (answer.size() >= limit && answer.back().name != std::get<1>(at->first)) break;
        auto const& member = *tables.graphs().member(at->second);
        auto const& task = tables.find(at->second)->task;
        auto& one = answer.emplace_back();
        one.id = at->second;
        one.name = member.name;
        one.generation = member.row.generation;
        one.kind = member.row.kind;
        one.when = member.row.when;
        one.type = task.type;
        one.state = task.state;
        one.parents.assign(tables.graphs().parents(one.id).begin(), tables.graphs().parents(one.id).end());
        if (auto const await = tables.graphs().awaited_by(one.id)) {
            auto const& [key, schedule, instant, of] = await->first;
            one.until = open_await{{key, schedule, instant, await->second}, of};
        }
        one.deadline = task.deadline;
        one.created = task.created;
        one.started = task.first_started;
        one.finished = task.finished;
        one.outdated = member.row.dropped;
        one.added_by = member.row.added_by;
    }
    detail::mark_outdated(answer);
    return answer;
}

inline std::vector<parent_record> memory_storage::parents(task_id id) const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    std::vector<parent_record> answer;
    for (auto const parent : tables.graphs().parents(id)) {
        auto const* const row = tables.find(parent);
        if (row == nullptr) continue;
        auto const* const member = tables.graphs().member(parent);
        answer.push_back({parent, member == nullptr ? std::string{} : member->name, row->task.state, row->task.result});
    }
    return answer;
}

inline std::vector<task_count> memory_storage::counts() const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    std::vector<task_count> answer;
    for (auto const& [what, tasks] : tables.counts()) {
        auto const* const type = tables.find_type(type_of(what.first));
        if (tasks != 0 && type != nullptr) answer.push_back({type->name, class_of(what.first), what.second, tasks});
    }
    return answer;
}

inline std::string memory_storage::note(std::string_view name) const {
    std::scoped_lock const lock(state_->mutex);
    return state_->tables.note(name);
}

inline std::vector<finding> memory_storage::verify() const {
    std::scoped_lock const lock(state_->mutex);
    return detail::memory_verify(state_->tables);
}

inline waiting_page memory_storage::waiting(limit_number after, std::size_t most, time_point now) const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    waiting_page page;
    auto const& heads = tables.lines().heads();
    auto at = heads.upper_bound(after);
    for (; at != heads.end() && most != 0; ++at, --most) {
        page.last = at->first;
        detail::memory_limiter::name_waiters(tables, *tables.limits().find(at->first), now, page.due);
    }
    page.complete = at == heads.end();
    return page;
}

inline std::vector<limit_info> memory_storage::limits() const {
    std::scoped_lock const lock(state_->mutex);
    std::vector<limit_info> answer;
    for (auto const& [number, each] : std::as_const(state_->tables).limits().all())
        answer.push_back({number, each.kind, each.name, each.definition(), static_cast<std::size_t>(each.used)});
    return answer;
}

inline std::optional<task_record> memory_storage::occurrence(std::string_view schedule, time_point nominal) const {
    std::scoped_lock const lock(state_->mutex);
    auto const* const found = std::as_const(state_->tables).find_occurrence(std::string(schedule), nominal);
    return found == nullptr ? std::nullopt : std::optional{found->task};
}

inline std::vector<task_record> memory_storage::aside(std::string_view schedule, time_point from, time_point to,
                                                      std::size_t limit) const {
    std::scoped_lock const lock(state_->mutex);
    auto const& tables = std::as_const(state_->tables);
    std::vector<task_record> answer;
    auto at = tables.occurrences().lower_bound({std::string(schedule), from});
    for (; at != tables.occurrences().end() && at->first.first == schedule && at->first.second < to; ++at) {
        if (answer.size() == limit) break;
        if (auto const& task = tables.find(at->second)->task; task.set_aside) answer.push_back(task);
    }
    return answer;
}

inline std::vector<backfill_record> memory_storage::backfills() const {
    std::scoped_lock const lock(state_->mutex);
    std::vector<backfill_record> answer;
    for (auto const& [number, each] : std::as_const(state_->tables).periods().backfills())
        answer.push_back(each.record);
    return answer;
}

inline skip_log memory_storage::skips(std::string_view schedule) const {
    std::scoped_lock const lock(state_->mutex);
    return std::as_const(state_->tables).periods().skips(schedule);
}

static_assert(storage<memory_storage>);

} // namespace ax

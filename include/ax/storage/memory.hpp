// SPDX-License-Identifier: MIT
// The reference for every other storage: what the sentences of storage/concept.hpp mean, written down as plainly as
// they can be. It keeps nothing beyond its own life, which is what a test wants: a month of tasks in virtual time, and
// no file.
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/detail/memory_tables.hpp"

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
///             schedules() O(tasks or schedules kept). Nothing is ever removed: about 650 bytes a task and 130 an
///             attempt.
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
    alarms upcoming(alarm const& after, time_point until, std::size_t limit) const;
    std::vector<type_info> types() const;
    std::vector<schedule_record> schedules() const;

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

  private:
    friend class memory_storage;
    using row = detail::memory_row;

    explicit writer(detail::memory_tables& tables) noexcept : tables_(tables) {}

    /// Runs one verb; what it had done is undone where it throws, and the transaction can go on.
    template <class Verb>
    auto atomically(Verb&& verb) {
        auto const before = tables_.mark();
        try {
            return verb();
        } catch (...) {
            tables_.undo(before);
            throw;
        }
    }

    type_info const& known_type(type_number number) const {
        if (auto const* const found = tables_.find_type(number)) return *found;
        throw error(errc::invalid_argument, "task type without a number of this store");
    }

    insertion insert_one(new_task const& task, time_point now, alarms& due);
    std::optional<task_state> settle_one(attempt_end const& end, time_point now, alarms& due);
    void reclaim_one(row& lost, reclaim_terms const& terms, reclaim_answer& answer);

    /// Moves a task along an edge of the lifecycle. What is claimed and ends without a start passes through running.
    static void enter(task_record& task, task_state to, time_point at) {
        assert(lifecycle.allowed(task.state, to) ||
               (task.state == task_state::dispatched && lifecycle.allowed(task.state, task_state::running) &&
                lifecycle.allowed(task_state::running, to)));
        task.state = to;
        task.changed = at;
        ++task.version;
        if (!is_terminal(to)) return;
        task.finished = at;
        task.blocked = false;
        task.held = false;
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
        for (auto const& task : tasks) (void)known_type(task.type); // before `due` is added to
        std::vector<insertion> answer;
        answer.reserve(tasks.size());
        for (auto const& task : tasks) answer.push_back(insert_one(task, now, due));
        return answer;
    });
}

inline insertion memory_storage::writer::insert_one(new_task const& task, time_point now, alarms& due) {
    auto const& kind = known_type(task.type);
    row const* holder = task.key.empty() ? nullptr : tables_.find_by_key(task.key);
    if (holder == nullptr && !task.schedule.empty() && task.scheduled_at)
        holder = tables_.find_occurrence(task.schedule, *task.scheduled_at);
    if (holder != nullptr) return {holder->task.id, submit_outcome::kept, holder->task.state};

    row added;
    added.type = task.type;
    auto& record = added.task;
    record.type = kind.name;
    record.key = task.key;
    record.state = task_state::ready;
    record.payload = task.payload;
    record.run_at = task.run_at ? *task.run_at : detail::saturating_add(now, task.delay);
    record.order_at = record.run_at;
    record.created = now;
    record.changed = now;
    record.priority = task.priority;
    record.route_key = task.route_key;
    record.route_order = task.route_order;
    record.blocked = !task.route_key.empty(); // until it has been seen to be the first
    record.deadline = task.deadline;
    record.retry = task.retry;
    record.schedule = task.schedule;
    record.scheduled_at = task.scheduled_at;
    record.version = 1;
    auto const& stored = tables_.add(std::move(added));
    rearm(stored, due);
    return {stored.task.id, submit_outcome::inserted, stored.task.state};
}

inline claim_answer memory_storage::writer::claim(std::span<claim_request const> requests, claim_terms const& terms) {
    return atomically([&] {
        claim_answer answer;
        auto room = terms.suspects;
        for (auto const& request : requests) {
            auto* const found = tables_.find(request.id);
            if (found == nullptr) continue;
            auto const& task = found->task;
            if (!detail::memory_tables::is_claimable_now(task) || task.run_at > terms.until ||
                (task.deadline && *task.deadline <= terms.now))
                continue;
            bool const suspect = task.unclean_ends >= 2;
            if (suspect && room == 0) {
                if (std::find(answer.suspects.begin(), answer.suspects.end(), request.id) == answer.suspects.end())
                    answer.suspects.push_back(request.id);
                continue;
            }
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
        return answer;
    });
}

inline std::optional<task_state> memory_storage::writer::settle_one(attempt_end const& end, time_point now,
                                                                    alarms& due) {
    auto* const found = tables_.find(end.id);
    if (!is_current(found, end.fence)) return std::nullopt;
    auto attempt = present_attempt(found->task);
    bool const released = end.outcome == attempt_outcome::released;

    tables_.change(*found, [&](task_record& task) {
        enter(task, detail::state_after(end.outcome), end.ended);
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
            task.held = true;
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
    if (end.outcome == attempt_outcome::succeeded)
        for (auto const& task : end.follow_ups) insert_one(task, now, due);
    return found->task.state;
}

inline reclaim_answer memory_storage::writer::reclaim(reclaim_terms const& terms) {
    return atomically([&] {
        reclaim_answer answer;
        auto const in_flight = std::vector(tables_.in_flight().begin(), tables_.in_flight().end());
        for (auto const id : in_flight)
            if (auto& held = *tables_.find(id); held.task.node != terms.node) reclaim_one(held, terms, answer);
        return answer;
    });
}

inline void memory_storage::writer::reclaim_one(row& lost, reclaim_terms const& terms, reclaim_answer& answer) {
    auto attempt = present_attempt(lost.task);
    bool const may_have_run = lost.task.state == task_state::running;
    tables_.change(lost, [&](task_record& task) {
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
            task.held = task.hold_on_interrupt && may_have_run;
            ++(task.held ? answer.held : answer.reclaimed);
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
        if (state != task_state::created && !is_claimable(state)) return {change_outcome::wrong_state, state, {}};
        tables_.change(*found, [&](task_record& task) { enter(task, task_state::cancelled, now); });
        change answer{change_outcome::done, found->task.state, {}};
        rearm(*found, answer.due);
        return answer;
    });
}

inline change memory_storage::writer::retry(task_id id, time_point now) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        auto const state = found->task.state;
        if (state == task_state::dead || state == task_state::cancelled) {
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
                if (task.deadline && *task.deadline <= now) task.deadline.reset();
            });
        } else if (found->task.held) {
            tables_.change(*found, [](task_record& task) {
                task.held = false;
                ++task.version;
            });
        } else {
            return {change_outcome::wrong_state, state, {}};
        }
        change answer{change_outcome::done, found->task.state, {}};
        rearm(*found, answer.due);
        return answer;
    });
}

inline change memory_storage::writer::reschedule(task_id id, time_point run_at, time_point) {
    return atomically([&]() -> change {
        auto* const found = tables_.find(id);
        if (found == nullptr) return {};
        auto const state = found->task.state;
        if (!is_claimable(state)) return {change_outcome::wrong_state, state, {}};
        tables_.change(*found, [&](task_record& task) {
            task.run_at = run_at;
            task.order_at = run_at;
            ++task.version;
        });
        change answer{change_outcome::done, state, {}};
        rearm(*found, answer.due);
        return answer;
    });
}

inline expiry memory_storage::writer::expire(time_point now, std::size_t limit) {
    return atomically([&] {
        expiry answer;
        auto const& deadlines = tables_.deadlines();
        while (answer.dead.size() < limit && !deadlines.empty() && deadlines.begin()->first <= now) {
            auto& late = *tables_.find(deadlines.begin()->second);
            tables_.change(late, [&](task_record& task) {
                enter(task, task_state::dead, now);
                task.last_error = "deadline passed";
            });
            answer.dead.push_back(late.task.id);
            rearm(late, answer.due);
        }
        if (!deadlines.empty()) answer.next = deadlines.begin()->first;
        return answer;
    });
}

inline schedule_record memory_storage::writer::declare(schedule_record const& wanted, time_point now) {
    return atomically([&] {
        auto const* const present = tables_.find_schedule(wanted.name);
        if (present != nullptr && present->spec == wanted.spec && present->type == wanted.type &&
            present->payload == wanted.payload)
            return *present;
        schedule_record record = present == nullptr ? wanted : *present;
        if (present == nullptr) {
            record.version = 1;
            record.created = now;
        } else {
            record.spec = wanted.spec;
            record.type = wanted.type;
            record.payload = wanted.payload;
            record.next = wanted.next;
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

        answer.accepted = true;
        auto& record = answer.record;
        ++record.version;
        record.next = next.next;
        record.skipped += next.skipped;
        if (next.skipped > 0) record.last_skip = next.skip_reason;
        if (next.occurrence) {
            auto const* const latest = tables_.find(record.last_task);
            if (next.skip_if_unfinished && latest != nullptr && !is_terminal(latest->task.state)) {
                ++record.skipped;
                record.last_skip = "the one before has not ended";
            } else {
                answer.occurrence = insert_one(*next.occurrence, now, answer.due);
                if (answer.occurrence->outcome == submit_outcome::inserted) ++record.fired;
                record.last_task = answer.occurrence->id;
                record.last_nominal = next.occurrence->scheduled_at;
            }
        }
        tables_.put_schedule(record);
        return answer;
    });
}

inline bool memory_storage::writer::forget(std::string_view name) {
    return atomically([&] {
        if (tables_.find_schedule(name) == nullptr) return false;
        tables_.erase_schedule(name);
        return true;
    });
}

// ---- reads ---------------------------------------------------------------------------------------------------------

inline std::optional<task_record> memory_storage::find(task_id id) const {
    std::scoped_lock const lock(state_->mutex);
    auto const* const found = std::as_const(state_->tables).find(id);
    return found == nullptr ? std::nullopt : std::optional{found->task};
}

inline std::optional<task_record> memory_storage::find_by_key(std::string_view key) const {
    std::scoped_lock const lock(state_->mutex);
    auto const* const found = state_->tables.find_by_key(std::string(key));
    return found == nullptr ? std::nullopt : std::optional{found->task};
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
        auto const waits = [](task_record const& task) { return task.blocked || task.held; };
        auto const before = [&](task_record const* a, task_record const* b) {
            return std::tuple(waits(*a), a->run_at, a->id) < std::tuple(waits(*b), b->run_at, b->id);
        };
        auto const* const last = std::as_const(state_->tables).find(filter.after);
        for (auto const& row : rows)
            if (wanted(row.task) && (last == nullptr || before(&last->task, &row.task))) found.push_back(&row.task);
        auto const page = found.begin() + static_cast<std::ptrdiff_t>((std::min)(filter.limit, found.size()));
        std::partial_sort(found.begin(), page, found.end(), before);
        found.erase(page, found.end());
    } else {
        auto const count =
            filter.after == task_id{} ? rows.size() : (std::min)(to_number(filter.after) - 1, rows.size());
        for (auto at = count; at > 0 && found.size() < filter.limit; --at)
            if (wanted(rows[at - 1].task)) found.push_back(&rows[at - 1].task);
    }

    std::vector<task_record> answer;
    answer.reserve(found.size());
    for (auto const* task : found) answer.push_back(*task);
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

static_assert(storage<memory_storage>);

} // namespace ax

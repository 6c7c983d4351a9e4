// SPDX-License-Identifier: MIT
// What callers ask of the engine: handlers, submits, changes of a task, reads. On the caller's thread; what
// is claimed here is taken back first, so that the storage's answer is the truth.
#pragma once

#include "ax/scheduler/detail/engine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::recover() {
    std::lock_guard const one_at_a_time{recover_mutex_};
    {
        std::lock_guard const guard{mutex_};
        if (recovered_) return false;
    }
    auto const kept = store_.schedules();
    reclaim_answer answer;
    alarms due;
    store_.transact(commit::durable, [&](writer& w) {
        due.clear();
        answer = w.reclaim({self_, settings_.poison_after, times_.reached()});
        // Until now nobody knew the schedules: a wait that was stored meanwhile may be for what has passed.
        for (auto const& record : kept) end_waits(w, record, due);
    });
    auto const backfills = store_.backfills();
    task_filter newest;
    newest.limit = 1;
    auto const latest = store_.list(newest, times_.reached());
    auto const clock = store_.note("clock");
    std::lock_guard const guard{mutex_};
    recovery_ = answer;
    for (auto const& record : kept) timetable_.put(record, times_.reached());
    timetable_.look_ahead(times_.reached());
    for (auto const& record : backfills) backfills_.put(record);
    for (auto const& one : latest) newest_ = (std::max)(newest_, one.id);
    newest_before_poll_ = newest_;
    recovered_ = true;
    watching_since_ = times_.reached();
    trust_.start(clock, times_.reached(), times_.steady());
    suspects_.restart(times_.steady());
    arm(due);
    return true;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::add_handler(std::string_view name,
                                                              unique_function<void(context&, std::string_view)> call,
                                                              handler_options how) {
    check_type_name(name);
    auto const positive = [&](std::optional<time_span> const& limit, char const* what) {
        if (limit && limit->value() <= duration{0})
            throw error(errc::invalid_argument,
                        std::string(what) + " of task type \"" + std::string(name) + "\" is not positive");
    };
    positive(how.timeout, "timeout");
    positive(how.expected, "expected run time");
    if (how.retention) check(*how.retention, "task type \"" + std::string(name) + "\": ");
    if (how.isolation > isolation::process || (how.isolation == isolation::process && !can_isolate))
        throw error(errc::invalid_argument, "isolation of task type \"" + std::string(name) +
                                                "\" is none that this system has: a child process needs fork()");
    check_limits(name, how);
    auto const number = number_of(name);
    std::lock_guard const in_order{pause_mutex_}; // no capacity or document changes before the handler is known
    {
        std::lock_guard const guard{mutex_};
        if (handlers_.contains(number))
            throw error(errc::invalid_argument, "task type \"" + std::string(name) + "\" has a handler already");
    }
    auto said = how;
    declared_.apply(name, how);
    auto const due = store_limits(number, how);
    bool paused = false;
    for (auto const& type : store_.types())
        if (type.number == number) paused = type.paused;
    {
        std::lock_guard const guard{mutex_};
        auto& made = handlers_[number];
        made = std::make_unique<handler_type>();
        made->name = name;
        made->number = number;
        made->call = std::move(call);
        made->said = std::move(said);
        made->how = std::make_shared<later<handler_options> const>(std::move(how));
        made->paused = paused;
        for (std::size_t i = 0; i != priority_classes; ++i) {
            auto& lane = made->lanes[i];
            lane.lane = make_lane(number, static_cast<priority_class>(i));
            window_.set_runnable(lane, !paused);
            lanes_.push_back(&lane);
        }
        offered_types_.reset();
        must_load_ = must_look_ = true;
        arm(due);
        nudge_pump_ = true;
    }
    flush();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::number_of(std::string_view name) -> type_number {
    {
        std::lock_guard const guard{mutex_};
        if (auto const known = numbers_.find(name); known != numbers_.end()) return known->second;
    }
    type_number number{};
    store_.transact(commit::durable, [&](writer& w) { number = w.type(name); });
    std::lock_guard const guard{mutex_};
    numbers_.emplace(std::string(name), number);
    return number;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::pause(std::string_view type, bool yes) {
    check_text(type, "task type", longest_name, false);
    auto const number = number_of(type);
    std::lock_guard const in_order{pause_mutex_}; // what memory does is what was stored last
    transact([&](writer& w) { w.pause(number, yes); });
    std::vector<attempt_ptr> revoked;
    {
        std::lock_guard const guard{mutex_};
        if (auto const by = handlers_.find(number); by != handlers_.end()) {
            revoked = set_paused(*by->second, yes);
        }
    }
    try {
        if (!revoked.empty()) settle_revoked(std::move(revoked), attempt_outcome::released, [](writer&) {});
    } catch (error const&) { // the pump gives them back: the pause itself is stored
    }
    flush();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::submit(std::vector<submission> wanted) -> std::vector<insertion> {
    submit_room const room{*this, wanted.size()};
    std::vector<new_task> tasks;
    tasks.reserve(wanted.size());
    auto const from = times_.present();
    std::string_view last_type;
    type_number last_number{};
    for (auto& one : wanted) {
        if (one.type != last_type) {
            last_type = one.type;
            last_number = number_of(one.type);
        }
        one.task.type = last_number;
        if (!one.says_priority) one.task.priority = usual_priority(one.type);
        if (one.task.delay > duration{0}) one.task.run_at = saturating_add(from, std::exchange(one.task.delay, {}));
        tasks.push_back(std::move(one.task));
    }
    std::vector<insertion> answer;
    alarms due;
    batch b;
    {
        std::lock_guard const guard{mutex_};
        auto const horizon = saturating_add(times_.reached(), settings_.read_ahead);
        std::array<std::size_t, priority_classes> at_hand{};
        for (auto const& task : tasks)
            if (task.key.empty() && task.route_key.empty() && (!task.run_at || *task.run_at <= horizon))
                ++at_hand[static_cast<std::size_t>(task.priority)];
        b.leave.emplace(*this).open(at_hand);
    }
    transact([&](writer& w) {
        due.clear();
        b.leave->give(w);
        answer = w.insert(tasks, times_.reached(), due);
    });
    try {
        {
            std::lock_guard const guard{mutex_};
            for (auto const& task : tasks) plan_deadline(task.deadline);
            for (auto const& one : answer) newest_ = (std::max)(newest_, one.id);
            b.leave->take(b.entered);
        }
        take_alarms(due);
        start_claimed(b);
    } catch (...) { // memory ran out: all is stored, and what is claimed is given back
        {
            std::lock_guard const guard{mutex_};
            for (auto const& mine : b.entered)
                if (flight_.revoke(*mine)) give_back(mine);
            must_relearn_ = must_sweep_ = true;
            nudge_pump_ = true;
        }
        flush();
        throw;
    }
    return answer;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::start_claimed(batch& b) {
    if (b.entered.empty()) return;
    bool mine = false;
    {
        std::lock_guard const guard{mutex_};
        mine = posts_at_once_ && !observer;
        if (observer) handed_in_.insert(handed_in_.end(), b.entered.begin(), b.entered.end());
    }
    if (!observer) admit(b);
    if (!mine) {
        std::lock_guard const guard{mutex_};
        nudge_pump_ = true; // its thread calls the observer, and the host's executor
    }
    flush();
    if (mine) dispatch();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Connection>
auto engine<Storage, Clock, Attempt, Recurrence>::submit_in(Connection connection, submission wanted)
    -> guest_insertion {
    refuse_in_isolated_child("submit_in");
    if (stopping()) throw error(errc::stopped, "submit_in");
    auto& task = wanted.task;
    if (!wanted.says_priority) task.priority = usual_priority(wanted.type);
    if (task.delay > duration{0}) task.run_at = saturating_add(times_.present(), std::exchange(task.delay, {}));
    guest_task guest;
    auto const answer = store_.insert_in(connection, wanted.type, task, times_.reached(), guest.due);
    guest.id = answer.id;
    bool const changed = answer.outcome == submit_outcome::inserted || answer.outcome == submit_outcome::replaced;
    if (changed) guest.deadline = task.deadline;
    if (guest.due.empty() && !guest.deadline) return answer; // known already, or behind another
    {
        std::lock_guard const guard{mutex_};
        guests_.add(std::move(guest), times_.steady());
        nudge_pump_ = true; // who sleeps is to sleep for a shorter time
    }
    if (answer.committed)
        guest_committed(answer.id);
    else
        flush();
    return answer;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::guest_committed(ax::task_id id) {
    {
        std::lock_guard const guard{mutex_};
        auto const guest = guests_.take(id);
        if (!guest) return;
        plan_deadline(guest->deadline);
        arm(guest->due);
    }
    flush();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::cancel(task_id id) -> cancel_answer {
    for (;;) {
        auto const held = take_back(id);
        if (held.running) {
            held.running->request_stop(stop_reason::cancelled); // stop callbacks of the host run here
            return cancel_answer::stop_requested;
        }
        if (held.revoked) {
            change after;
            settle_revoked({held.revoked}, attempt_outcome::released, // it never started: no attempt is counted
                           [&](writer& w) { after = w.cancel(id, times_.reached()); });
            take_alarms(after.due);
            if (after.outcome != change_outcome::done) continue; // it was not ours any more
            run_ended({id});
            return cancel_answer::cancelled;
        }
        change made;
        transact([&](writer& w) { made = w.cancel(id, times_.reached()); });
        take_alarms(made.due);
        if (made.outcome == change_outcome::done) {
            if (!made.asked_to_stop.empty()) stop_asked(made.asked_to_stop);
            run_ended({id});
            return is_terminal(made.state) ? cancel_answer::cancelled : cancel_answer::stop_requested;
        }
        if (made.outcome == change_outcome::unknown) return cancel_answer::unknown;
        if (is_terminal(made.state)) return cancel_answer::too_late;
        if (claimed_meanwhile(id, made) || recover()) continue; // ours; or an earlier run's, which is taken over now
        auto const now_is = store_.find(id);
        if (!now_is || is_active(now_is->state)) return cancel_answer::too_late; // somebody else's
        // Its attempt ended between two looks at it: it waits again, or is over.
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::retry(task_id id) -> change_outcome {
    change made;
    transact([&](writer& w) { made = w.retry(id, times_.reached()); });
    take_alarms(made.due);
    return made.outcome;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::reschedule(task_id id, time_point when) -> change_outcome {
    check_instant(when, "reschedule to an instant that");
    for (;;) {
        auto const held = take_back(id);
        if (held.running) return change_outcome::wrong_state;
        change made;
        auto const move = [&](writer& w) { made = w.reschedule(id, when, times_.reached()); };
        if (held.revoked)
            settle_revoked({held.revoked}, attempt_outcome::released, move);
        else
            transact(move);
        take_alarms(made.due);
        if (!claimed_meanwhile(id, made)) return made.outcome;
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::list(task_filter const& wanted) const -> std::vector<task_view> {
    refuse_in_isolated_child("list");
    std::vector<task_view> found;
    if (!wanted.over_expected) {
        for (auto& record : store_.list(wanted, times_.reached())) found.push_back(*shown(std::move(record)));
        return found;
    }
    std::vector<task_id> slow;
    {
        std::lock_guard const guard{mutex_};
        for (auto const& mine : flight_.running_ones())
            if (mine->over_expected && (wanted.type.empty() || mine->record.type == wanted.type) &&
                mine->record.id > wanted.after)
                slow.push_back(mine->record.id);
    }
    std::sort(slow.begin(), slow.end());
    if (slow.size() > wanted.limit) slow.resize(wanted.limit);
    for (auto const id : slow)
        if (auto one = find(id); one && one->over_expected) found.push_back(std::move(*one));
    return found;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::history(task_id id) const -> std::vector<attempt_view> {
    refuse_in_isolated_child("history");
    auto attempts = store_.history(id);
    std::lock_guard const guard{mutex_};
    auto const mine = flight_.find(id);
    if (mine && mine->status == attempt_status::running && !attempts.empty() && !attempts.back().end &&
        attempts.back().id == mine->record.fence) {
        attempts.back().start = mine->started;
        std::lock_guard const text{mine->text_mutex};
        attempts.back().log = mine->log;
    }
    return attempts;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::take_back(task_id id) -> taken_back {
    refuse_in_isolated_child("a change of a task");
    for (;;) {
        std::unique_lock lock{mutex_};
        if (!flight_.contains(id)) return {};
        auto mine = flight_.find(id);
        if (mine && mine->status == attempt_status::running) return {mine, nullptr};
        if (mine && flight_.revoke(*mine)) return {nullptr, mine};
        // Its claim is being committed, its handler is about to be called, or its outcome is on the way, which may
        // take until the storage is back.
        if (mine && mine->status == attempt_status::ended && watch_.down())
            throw error(errc::unavailable,
                        "the outcome of task " + std::to_string(to_number(id)) + ": " + watch_.failure());
        bool const by_me = !threaded_ || pumping_here == this; // on the way by the hands of this very thread
        if (by_me && !outbox_.empty()) {
            lock.unlock();
            pump();
            continue;
        }
        if (pumping_here == this)
            throw error(errc::unavailable, "task " + std::to_string(to_number(id)) +
                                               ": an observer asked while its claim or outcome was on the way");
        settled_.wait_for(lock, std::chrono::milliseconds{20}, [&] { return !flight_.contains(id); });
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::claimed_meanwhile(task_id id, change const& made) {
    if (made.outcome != change_outcome::wrong_state || !is_active(made.state)) return false;
    std::unique_lock lock{mutex_};
    settled_.wait_for(lock, std::chrono::milliseconds{20}, [&] { return offers_ == 0 || flight_.contains(id); });
    return offers_ != 0 || flight_.contains(id); // the store is asked again
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Also>
void engine<Storage, Clock, Attempt, Recurrence>::settle_revoked(std::vector<attempt_ptr> revoked, attempt_outcome how,
                                                                 Also&& also) {
    std::vector<attempt_end> ends;
    for (auto const& mine : revoked) ends.push_back(end_of(*mine, how));
    settlement settled;
    try {
        transact([&](writer& w) {
            if (!ends.empty()) settled = w.settle(ends, times_.reached());
            also(w);
        });
    } catch (...) { // not recorded: the pump gives them back, and the caller learns of the failure
        {
            std::lock_guard const guard{mutex_};
            for (auto const& mine : revoked) give_back(mine);
        }
        flush();
        throw;
    }
    std::vector<attempt_ptr> dead; // destroyed without the lock
    {
        std::lock_guard const guard{mutex_};
        for (auto const& mine : revoked) leave_flight(*mine);
        dead = flight_.take_dead();
        nudge_turn_ = true;
        nudge_pump_ = true; // a worker, or room for a claim, may be free
        arm(settled.due);
    }
    settled_.notify_all();
    flush();
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// All that a scheduler does, without the threads that do it. It does four steps, called by whoever drives:
//
//  - turn() moves what became due out of the wheels: ids to the queue of due ids, attempts to their start.
//  - pump() is one exchange with the storage, in one commit: outcomes in, claims out. It also reads what fills the
//  window.
//  - dispatch() hands attempts that may start to the executor.
//  - run() calls one handler, on the executor, and leaves the outcome for the next pump().
//
// A threaded scheduler has one thread for turn() and one for pump(); a polled one calls them in turn. One mutex guards
// the memory; it is never held while the storage, a handler or an observer is called.
//
// The memory: alarm_window (ids that come due soon), flight (what is claimed), timetable (schedules), outbox (outcomes
// on their way). Each is a plain object; this file is what joins them.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/random.hpp"
#include "ax/observe/events.hpp"
#include "ax/scheduler/detail/alarm_window.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/scheduler/detail/flight.hpp"
#include "ax/scheduler/detail/handler_call.hpp"
#include "ax/scheduler/detail/host_name.hpp"
#include "ax/scheduler/detail/id_set.hpp"
#include "ax/scheduler/detail/outbox.hpp"
#include "ax/scheduler/detail/timekeeper.hpp"
#include "ax/scheduler/detail/timetable.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/clock.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ax::detail {

/// Checks what a caller chose. @throws error invalid_argument that names the member.
inline options checked(options chosen) {
    auto const refuse = [](char const* why) { throw error(errc::invalid_argument, std::string("options: ") + why); };
    if (chosen.workers == 0) refuse("workers is 0");
    if (chosen.window.value() < duration{1000}) refuse("window is shorter than a second");
    if (chosen.read_ahead.value() < duration{0}) refuse("read_ahead is negative");
    if (chosen.read_ahead.value() > chosen.window.value() / 2) refuse("read_ahead is longer than half the window");
    if (chosen.poison_after == 0) refuse("poison_after is 0");
    if (chosen.claimed_ahead == 0) refuse("claimed_ahead is 0");
    if (chosen.window_tasks == 0) refuse("window_tasks is 0");
    if (chosen.submit_queue == 0) refuse("submit_queue is 0");
    check_text(chosen.node_name, "node name", longest_name, true);
    if (chosen.node_name.empty()) chosen.node_name = machine_and_process();
    return chosen;
}

template <storage Storage, clock Clock, class Attempt = claimed_attempt, class Recurrence = recurrence>
class engine {
    using attempt_ptr = std::shared_ptr<Attempt>;
    using handler_type = typename Attempt::handler_type;
    using lane_type = typename handler_type::lane_type;
    using window_type = alarm_window<lane_type>;
    using due_task = typename window_type::due_task;
    using page_request = typename window_type::page_request;
    using plan_type = timetable<Recurrence>;
    using finished_attempt = finished<Attempt>;
    using pending_event = pending<Attempt>;

    // The records of a storage as dependent names, so that a unit that only includes this does not pay for its code.
    template <class T>
    using later = dependent<T, Storage>;
    using task_id = later<ax::task_id>;
    using type_number = later<ax::type_number>;
    using time_point = later<ax::time_point>;
    using new_task = later<ax::new_task>;
    using task_record = later<ax::task_record>;
    using task_view = later<ax::task_view>;
    using attempt_view = later<ax::attempt_view>;
    using attempt_end = later<ax::attempt_end>;
    using insertion = later<ax::insertion>;
    using alarms = later<ax::alarms>;
    using change = later<ax::change>;
    using expiry = later<ax::expiry>;
    using settlement = later<ax::settlement>;
    using start_mark = later<ax::start_mark>;
    using claim_request = later<ax::claim_request>;
    using claim_answer = later<ax::claim_answer>;
    using reclaim_answer = later<ax::reclaim_answer>;
    using schedule_record = later<ax::schedule_record>;
    using schedule_step = later<ax::schedule_step>;
    using schedule_answer = later<ax::schedule_answer>;

  public:
    using writer = typename Storage::writer;

    engine(Storage store, options chosen, Clock const& time)
        : store_(std::move(store)), settings_(checked(std::move(chosen))), times_(time),
          self_(node_id{system_random()}), random_(settings_.seed != 0 ? settings_.seed : system_random()),
          window_(times_.reached(), settings_.window, settings_.window_tasks, settings_.weights),
          flight_(times_.reached(), times_.steady(), settings_.workers, settings_.claimed_ahead, settings_.weights),
          timetable_(times_.reached()), recovered_at_(times_.steady()),
          clock_lead_(times_.reached().time_since_epoch() - times_.steady()) {}

    engine(engine const&) = delete;
    engine& operator=(engine const&) = delete;

    // ---------------------------------------------------------------- what the driver sets before it drives

    /// Called, without a lock, when the one who calls turn() or pump() should do so earlier than it knew.
    unique_function<void()> on_nudge_turn;
    unique_function<void()> on_nudge_pump;
    /// Called, without a lock, with an attempt to be run; it arranges for run() to be called with it.
    unique_function<void(attempt_ptr const&)> post;
    unique_function<void(event const&)> observer;

    // ---------------------------------------------------------------- recovery

    /// Takes over what an earlier run left behind. The first thing a driver does. Returns false, and does nothing, when
    /// repeated.
    bool recover() {
        std::lock_guard const one_at_a_time{recover_mutex_};
        {
            std::lock_guard const guard{mutex_};
            if (recovered_) return false;
        }
        reclaim_answer answer;
        store_.transact(commit::durable, [&](writer& w) {
            answer = w.reclaim({self_, settings_.poison_after, times_.reached()});
        });
        auto const kept = store_.schedules();
        task_filter newest;
        newest.limit = 1;
        auto const latest = store_.list(newest, times_.reached());
        std::lock_guard const guard{mutex_};
        recovery_ = answer;
        for (auto const& record : kept) timetable_.put(record);
        timetable_.look_ahead(times_.reached());
        for (auto const& one : latest) newest_ = (std::max)(newest_, one.id);
        newest_before_poll_ = newest_;
        recovered_ = true;
        recovered_at_ = times_.steady();
        return true;
    }

    reclaim_answer recovery() const {
        std::lock_guard const guard{mutex_};
        return recovery_;
    }

    // ---------------------------------------------------------------- handlers

    void add_handler(std::string_view name, unique_function<void(context&, std::string_view)> call,
                     handler_options how) {
        check_text(name, "task type", longest_name, false);
        auto const positive = [&](std::optional<time_span> const& limit, char const* what) {
            if (limit && limit->value() <= duration{0})
                throw error(errc::invalid_argument,
                            std::string(what) + " of task type \"" + std::string(name) + "\" is not positive");
        };
        positive(how.timeout, "timeout");
        positive(how.expected, "expected run time");
        auto const number = number_of(name);
        bool paused = false;
        for (auto const& type : store_.types())
            if (type.number == number) paused = type.paused;
        {
            std::lock_guard const guard{mutex_};
            auto& made = handlers_[number];
            if (made)
                throw error(errc::invalid_argument, "task type \"" + std::string(name) + "\" has a handler already");
            made = std::make_unique<handler_type>();
            made->name = name;
            made->number = number;
            made->call = std::move(call);
            made->how = std::move(how);
            made->paused = paused;
            for (std::size_t i = 0; i != priority_classes; ++i) {
                auto& lane = made->lanes[i];
                lane.lane = make_lane(number, static_cast<priority_class>(i));
                window_.set_runnable(lane, !paused);
                lanes_.push_back(&lane);
            }
            must_load_ = true;
            nudge_pump_ = true;
        }
        flush();
    }

    type_number number_of(std::string_view name) {
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

    /// No task of the type is claimed while it is paused; claims that have not started are given back.
    void pause(std::string_view type, bool yes) {
        check_text(type, "task type", longest_name, false);
        auto const number = number_of(type);
        std::lock_guard const in_order{pause_mutex_}; // what memory does is what was stored last
        transact([&](writer& w) { w.pause(number, yes); });
        std::vector<attempt_ptr> revoked;
        {
            std::lock_guard const guard{mutex_};
            if (auto const by = handlers_.find(number); by != handlers_.end()) {
                by->second->paused = yes;
                for (auto& lane : by->second->lanes) window_.set_runnable(lane, !yes);
                if (yes)
                    revoked =
                        flight_.revoke_all([&](Attempt const& mine) { return mine.handled_by == by->second.get(); });
                must_load_ = true;
                nudge_pump_ = true;
            }
        }
        try {
            if (!revoked.empty()) settle_revoked(std::move(revoked), attempt_outcome::released, [](writer&) {});
        } catch (error const&) { // the pump gives them back: the pause itself is stored
        }
        flush();
    }

    // ---------------------------------------------------------------- tasks, as callers ask for them

    std::vector<insertion> submit(std::vector<submission> wanted) {
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
            if (one.task.delay > duration{0}) one.task.run_at = saturating_add(from, std::exchange(one.task.delay, {}));
            tasks.push_back(std::move(one.task));
        }
        std::vector<insertion> answer;
        alarms due;
        transact([&](writer& w) {
            due.clear();
            answer = w.insert(tasks, times_.reached(), due);
        });
        {
            std::lock_guard const guard{mutex_};
            for (auto const& task : tasks) plan_deadline(task.deadline);
            for (auto const& one : answer) newest_ = (std::max)(newest_, one.id);
        }
        take_alarms(due);
        return answer;
    }

    enum class cancel_answer : std::uint8_t { cancelled, stop_requested, too_late, unknown };

    cancel_answer cancel(task_id id) {
        for (;;) {
            auto const held = take_back(id);
            if (held.running) {
                held.running->request_stop(stop_reason::cancelled); // stop callbacks of the host run here
                return cancel_answer::stop_requested;
            }
            if (held.revoked) {
                settle_revoked({held.revoked}, attempt_outcome::released, // it never started: no attempt is counted
                               [&](writer& w) { w.cancel(id, times_.reached()); });
                run_ended({id});
                return cancel_answer::cancelled;
            }
            change made;
            transact([&](writer& w) { made = w.cancel(id, times_.reached()); });
            take_alarms(made.due);
            if (made.outcome == change_outcome::done) {
                run_ended({id});
                return cancel_answer::cancelled;
            }
            if (made.outcome == change_outcome::unknown) return cancel_answer::unknown;
            if (is_terminal(made.state)) return cancel_answer::too_late;
            if (claimed_meanwhile(id, made) || recover())
                continue; // ours; or an earlier run's, which is taken over now
            auto const now_is = store_.find(id);
            if (!now_is || is_active(now_is->state)) return cancel_answer::too_late; // somebody else's
            // Its attempt ended between two looks at it: it waits again, or is over.
        }
    }

    change_outcome retry(task_id id) {
        change made;
        transact([&](writer& w) { made = w.retry(id, times_.reached()); });
        take_alarms(made.due);
        return made.outcome;
    }

    change_outcome reschedule(task_id id, time_point when) {
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

    // ---------------------------------------------------------------- schedules

    schedule_record declare(std::string_view name, Recurrence const& how, std::string_view type, std::string payload) {
        check_text(name, "schedule name", longest_name, false);
        check_text(type, "task type", longest_name, false);
        check_size(payload, "payload of schedule \"" + std::string(name) + "\"", settings_.payload_limit);
        auto const now = times_.reached();
        schedule_record wanted;
        wanted.name = name;
        wanted.spec = how.spec();
        wanted.type = number_of(type);
        wanted.payload = std::move(payload);
        wanted.next = how.first(now);
        schedule_record stored;
        transact([&](writer& w) { stored = w.declare(wanted, now); });
        {
            std::lock_guard const guard{mutex_};
            place(stored);
        }
        flush();
        return stored;
    }

    bool forget(std::string_view name) {
        bool known = false;
        transact([&](writer& w) { known = w.forget(name); });
        std::lock_guard const guard{mutex_};
        timetable_.remove(name);
        return known;
    }

    // ---------------------------------------------------------------- reads

    std::optional<task_view> find(task_id id) const { return shown(store_.find(id)); }
    std::optional<task_view> find_by_key(std::string_view key) const { return shown(store_.find_by_key(key)); }

    std::vector<task_view> list(task_filter const& wanted) const {
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

    std::vector<attempt_view> history(task_id id) const {
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

    Storage const& store() const noexcept { return store_; }

    struct health_numbers {
        bool storage_ok = true;
        std::string storage_error;
        std::size_t consecutive_failures = 0;
        std::size_t running = 0;
        std::size_t claimed = 0;
        std::size_t unsettled = 0;
        std::size_t in_memory = 0;
    };

    health_numbers health() const {
        std::lock_guard const guard{mutex_};
        return {failures_ == 0,    failures_ == 0 ? std::string{} : failure_,
                failures_,         flight_.running(),
                flight_.claimed(), outbox_.size(),
                window_.size()};
    }

    // ---------------------------------------------------------------- the steps

    /// Moves what is due. Returns whether there is something for pump() or dispatch() to do.
    bool turn() {
        flight_events<Attempt> found;
        std::vector<pending_event> events;
        bool work = false;
        {
            std::lock_guard const guard{mutex_};
            auto const now = times_.reached();
            auto const steady = times_.steady();
            notice_clock(now, steady);
            window_.turn(saturating_add(now, settings_.read_ahead));
            timetable_.turn(now);
            flight_.turn(now, steady, found);
            try_next_suspect();
            to_note_.insert(to_note_.end(), found.to_note.begin(), found.to_note.end());
            for (auto const& mine : found.overran)
                note(events, event_kind::overran, mine, now).run_time = steady - mine->started_steady;
            work = pump_has_work(now) || flight_.may_start();
        }
        for (auto const& [who, why] : found.to_stop) who->request_stop(why); // stop callbacks of handlers run here
        send(events);
        return work;
    }

    /// How long the one who calls turn() may sleep, at most `most`.
    std::chrono::nanoseconds until_next_turn(duration most) {
        std::lock_guard const guard{mutex_};
        auto const last = saturating_add(times_.reached(), most);
        auto const next = next_turn(settings_.read_ahead);
        turn_planned_at_ = (std::min)(next.value_or(last), last);
        if (!next || *next > last) return most;
        return (std::max)(times_.until(*next), std::chrono::nanoseconds{0});
    }

    /// The wall-clock instant at which a polling host should drive again; none where nothing is known to come.
    std::optional<time_point> next_wakeup() {
        std::lock_guard const guard{mutex_};
        auto const now = times_.reached();
        std::optional<time_point> next;
        if (backing_off()) {
            next = saturating_add(now, retry_storage_at_ - times_.steady());
        } else if (!recovered_ || must_load_ || pump_has_work(now) || flight_.may_start()) {
            next = now;
        } else {
            next = next_turn(duration{0});
            for (auto const* lane : lanes_) next = earlier(next, window_.next_read(*lane));
            next = earlier(next, next_deadline_);
            if (next) next = (std::max)(*next, now);
        }
        turn_planned_at_ = next.value_or((time_point::max)());
        return next;
    }

    /// One exchange with the storage. Returns whether it moved anything. Errors of the storage are kept for health(),
    /// and nothing is lost: what could not be recorded is recorded by a later pump().
    bool pump() {
        mark_pumping const mark{this};
        batch b;
        std::vector<pending_event> events;
        {
            std::lock_guard const guard{mutex_};
            if (backing_off()) return false;
            collect(b, times_.reached());
        }
        bool moved = false;
        try {
            if (!b.empty()) {
                exchange(b);
                apply(b, events);
                send(events); // that a task was picked up is said before its handler can start
                events.clear();
                admit(b);
                moved = true;
            }
            moved = read_pages(b.sweep) || moved;
            fill_gaps();
            storage_answered(events);
        } catch (error const& e) {
            storage_failed(b, e, events);
        } catch (std::exception const& e) { // out of memory, say: as transient as a storage that is away
            storage_failed(b, error(errc::unavailable, e.what()), events);
        }
        flush();
        send(events);
        return moved;
    }

    /// Hands attempts that may start to the executor, as long as a worker is free.
    void dispatch() {
        std::vector<attempt_ptr> starting;
        {
            std::lock_guard const guard{mutex_};
            while (auto next = flight_.take_next()) starting.push_back(std::move(next));
        }
        for (auto const& mine : starting) {
            try {
                post(mine);
            } catch (...) { // the executor takes no more: it is asked again by the next dispatch()
                std::lock_guard const guard{mutex_};
                flight_.not_posted(mine);
            }
        }
    }

    /// The executor dropped what it was handed. Where the attempt was taken back before, this object may be gone.
    void dropped(attempt_ptr const& mine) noexcept {
        if (!mine->begin()) return;
        {
            std::lock_guard const guard{mutex_};
            mine->begun.store(false);
            flight_.not_posted(mine);
            nudge_pump_ = true;
        }
        flush();
    }

    /// Calls the handler of an attempt that dispatch() posted. On the executor's thread.
    /// @param another  Whether it may go on with the next attempt on this thread.
    void run(attempt_ptr mine, bool another) {
        while (mine) {
            finished_attempt done;
            done.what = mine;
            if (!begin_run(mine, done)) return;
            attempt_ptr next;
            {
                std::lock_guard const guard{mutex_};
                end_run(*mine, done);
                outbox_.put(std::move(done));
                nudge_pump_ = true;
                if (another) next = flight_.take_next();
            }
            settled_.notify_all();
            flush();
            if (!next) dispatch();
            mine = std::move(next);
            std::lock_guard const guard{mutex_};
            if (--inside_ == 0) settled_.notify_all(); // the last touch: the destructor may be waiting for it
        }
    }

    // ---------------------------------------------------------------- the end

    /// No claims and no schedules from now on; what was claimed and not started is given back. Returns how many that
    /// were.
    std::size_t begin_stop() {
        std::size_t released = 0;
        {
            std::lock_guard const guard{mutex_};
            if (stopping_) return 0;
            stopping_ = true;
            for (auto const& mine : flight_.revoke_all([](Attempt const&) { return true; })) {
                give_back(mine);
                ++released;
            }
        }
        room_.notify_all();
        settled_.notify_all();
        flush();
        return released;
    }

    /// Sets the stop token of every running handler.
    void ask_all_to_stop() {
        std::vector<attempt_ptr> running;
        {
            std::lock_guard const guard{mutex_};
            running = flight_.in_hands();
        }
        for (auto const& mine : running) mine->request_stop(stop_reason::stopping); // stop callbacks run here
    }

    /// Whether `one`, which may be null or another scheduler's, is in flight here.
    bool holds(claimed_attempt const* one) const {
        if (one == nullptr) return false;
        std::lock_guard const guard{mutex_};
        return flight_.find(one->record.id).get() == one;
    }

    std::size_t running() const {
        std::lock_guard const guard{mutex_};
        return flight_.running();
    }

    bool stopping() const {
        std::lock_guard const guard{mutex_};
        return stopping_;
    }

    /// Waits, at most for `limit`, until no more than `left` handlers run.
    bool wait_idle(duration limit, std::size_t left) {
        std::unique_lock lock{mutex_};
        return settled_.wait_for(lock, bounded(limit), [&] { return flight_.running() <= left; });
    }

    /// Waits until no thread is inside of run() any more.
    void wait_idle() {
        std::unique_lock lock{mutex_};
        settled_.wait(lock, [&] { return flight_.running() == 0 && inside_ == 0; });
    }

    /// Waits until the task is in flight no more; false where `limit` passed first.
    bool wait_not_in_flight(task_id id, duration limit) {
        auto const end = saturating_add(time_point{times_.steady()}, limit);
        for (;;) {
            std::unique_lock lock{mutex_};
            if (!flight_.contains(id)) return true;
            auto const left = end - time_point{times_.steady()};
            if (left <= duration{0}) return false;
            auto const gone = [&] { return !flight_.contains(id); };
            if (threaded_) {
                if (settled_.wait_for(lock, bounded(left), gone)) return true;
            } else { // nobody else may store the outcome
                if (settled_.wait_for(lock, (std::min)(left, duration{20}), gone)) return true;
                lock.unlock();
                pump();
            }
        }
    }

    /// Waits, at most for `limit`, until every outcome is stored.
    bool wait_settled(duration limit) {
        std::unique_lock lock{mutex_};
        return settled_.wait_for(lock, bounded(limit), [&] { return outbox_.open() == 0; });
    }

    // ---------------------------------------------------------------- for the driver

    /// It is `now` until end_poll(). What is submitted meanwhile, or tried again, is for the next poll.
    void begin_poll(time_point now) {
        times_.pin(now);
        std::lock_guard const guard{mutex_};
        polling_ = true;
        newest_before_poll_ = newest_;
        run_in_poll_.clear();
    }

    void end_poll() {
        std::lock_guard const guard{mutex_};
        polling_ = false;
        times_.release();
    }

    /// True while outcomes wait for the storage that it may still take.
    bool unsettled() const {
        std::lock_guard const guard{mutex_};
        return outbox_.open() != 0;
    }

    bool pump_has_work() const {
        std::lock_guard const guard{mutex_};
        return !backing_off() && (must_load_ || pump_has_work(times_.reached()));
    }

    bool storage_down() const {
        std::lock_guard const guard{mutex_};
        return failures_ != 0;
    }

    /// The next pump() also looks for what has been lost from memory, and for deadlines.
    void sweep_soon() {
        std::lock_guard const guard{mutex_};
        must_sweep_ = true;
    }

    void set_threaded(bool yes) {
        std::lock_guard const guard{mutex_};
        threaded_ = yes;
    }

    options const& settings() const noexcept { return settings_; }
    timekeeper<Clock> const& times() const noexcept { return times_; }

  private:
    static constexpr std::size_t expire_size = 256; ///< deadlines handled in one commit
    static constexpr duration suspects_wait{1000};  ///< after the start, before the first lonely run

    /// What one pump() carries to the storage and brings back.
    struct batch {
        std::vector<finished_attempt> ended;
        std::vector<attempt_ptr> noted;
        std::vector<due_task> drawn;
        std::vector<schedule_step> steps;
        bool sweep = false;
        bool alone = false; ///< one thing only, to find out what it is that cannot be stored

        settlement settled;
        claim_answer claims;
        std::vector<schedule_answer> stepped;
        expiry expired;
        std::vector<attempt_ptr> entered; ///< claimed, and not let to their handlers yet
        std::vector<task_id> doubted;     ///< not claimable after a claim of which it is not known whether it was made

        bool empty() const { return ended.empty() && noted.empty() && drawn.empty() && steps.empty() && !sweep; }
    };

    /// The engine whose pump() runs on this thread, if any.
    static inline thread_local engine const* pumping_here = nullptr;

    struct mark_pumping {
        engine const* const outer;
        explicit mark_pumping(engine const* mine) : outer(std::exchange(pumping_here, mine)) {}
        ~mark_pumping() { pumping_here = outer; }
        mark_pumping(mark_pumping const&) = delete;
        mark_pumping& operator=(mark_pumping const&) = delete;
    };

    /// Counts a submit among those under way, and waits for room first.
    class submit_room {
      public:
        submit_room(engine& owner, std::size_t count) : owner_(owner), count_(count) {
            std::unique_lock lock{owner.mutex_};
            auto const fits = [&] {
                return owner_.stopping_ || owner_.submitting_ == 0 ||
                       owner_.submitting_ + count_ <= owner_.settings_.submit_queue;
            };
            if (!fits()) {
                if (running_here != nullptr)
                    throw error(errc::queue_full, std::to_string(owner_.submitting_) +
                                                      " tasks are being submitted, and a handler may not wait");
                owner_.room_.wait(lock, fits);
            }
            if (owner_.stopping_) throw error(errc::stopped, "submit");
            owner_.submitting_ += count_;
        }
        ~submit_room() {
            {
                std::lock_guard const guard{owner_.mutex_};
                owner_.submitting_ -= count_;
            }
            owner_.room_.notify_all();
        }
        submit_room(submit_room const&) = delete;
        submit_room& operator=(submit_room const&) = delete;

      private:
        engine& owner_;
        std::size_t count_;
    };

    // ---------------------------------------------------------------- small parts

    /// A wait that the clock of a condition variable can hold.
    static duration bounded(duration limit) { return (std::min)(limit, duration{std::chrono::hours{24 * 365}}); }

    commit how_durable() const {
        return settings_.durability == durability::power_loss ? commit::durable : commit::lazy;
    }

    template <class Fn>
    void transact(Fn&& fn) {
        try {
            store_.transact(how_durable(), std::forward<Fn>(fn));
        } catch (error const& e) {
            if (e.kind() == errc::outcome_unknown) {
                std::lock_guard const guard{mutex_};
                read_anew();
                nudge_pump_ = true;
            }
            throw;
        }
    }

    /// What a commit made claimable may have been made without our knowing: memory is filled anew from the store.
    void read_anew() {
        window_.reset(times_.reached(), lanes_);
        must_load_ = true;
    }

    handler_type* handler_of(lane_id lane) const {
        auto const found = handlers_.find(type_of(lane));
        return found == handlers_.end() ? nullptr : found->second.get();
    }

    static pending_event& note(std::vector<pending_event>& events, event_kind kind, attempt_ptr about, time_point at) {
        events.push_back({kind, std::move(about), at, std::nullopt, {}, {}, {}});
        return events.back();
    }

    void send(std::vector<pending_event> const& events) {
        if (!observer) return;
        for (auto const& one : events) {
            event e;
            e.kind = one.kind;
            e.at = one.at;
            if (one.about) {
                auto const& record = one.about->record;
                e.id = record.id;
                e.type = record.type;
                e.key = record.key;
                e.attempt = record.attempts;
                e.attempt_id = record.fence;
            }
            e.outcome = one.outcome;
            e.lateness = one.lateness;
            e.run_time = one.run_time;
            e.error = one.text;
            try {
                observer(e);
            } catch (...) { // an observer's fault is no task's
            }
        }
    }

    /// The wall-clock instant at which turn() finds something next, ids `ahead` of their own instant.
    std::optional<time_point> next_turn(duration ahead) {
        auto next = window_.next_expiry();
        if (next) next = saturating_add(*next, -ahead);
        next = earlier(next, timetable_.next_turn());
        if (!suspects_.empty() && suspects_must_wait())
            next = earlier(next, saturating_add(times_.reached(), recovered_at_ + suspects_wait - times_.steady()));
        return earlier(next, flight_.next_turn(times_.reached(), times_.steady()));
    }

    /// Something is due at `at`: whoever sleeps longer than that is woken by the next flush().
    void plan_turn(time_point at) {
        if (at >= turn_planned_at_) return;
        turn_planned_at_ = at;
        nudge_turn_ = true;
    }

    /// Wakes whom the work under the lock made wake. Without the lock.
    void flush() {
        bool turn = false;
        bool pump = false;
        {
            std::lock_guard const guard{mutex_};
            turn = std::exchange(nudge_turn_, false);
            pump = std::exchange(nudge_pump_, false);
        }
        if (turn && on_nudge_turn) on_nudge_turn();
        if (pump && on_nudge_pump) on_nudge_pump();
    }

    /// Arms what a change made claimable. Without the lock.
    void take_alarms(alarms const& due) {
        if (due.empty()) return;
        {
            std::lock_guard const guard{mutex_};
            arm(due);
        }
        flush();
    }

    /// A task was stored that may wait beyond its deadline: expire() is called by then.
    void plan_deadline(std::optional<time_point> deadline) {
        if (!deadline || (next_deadline_ && *next_deadline_ <= *deadline)) return;
        next_deadline_ = deadline;
        plan_turn(*deadline);
    }

    /// @param at_once  Also what is new goes with this poll: an occurrence that has come due is no handler's submit.
    void arm(alarms const& due, bool at_once = false) {
        auto const horizon = saturating_add(times_.reached(), settings_.read_ahead);
        for (auto const& a : due) {
            newest_ = (std::max)(newest_, a.id);
            auto* const by = handler_of(a.lane);
            if (by == nullptr) continue; // no handler here: it stays in the store
            bool const next_poll = polling_ && !at_once && (a.id > newest_before_poll_ || run_in_poll_.contains(a.id));
            window_.arm(by->lanes[static_cast<std::size_t>(class_of(a.lane))], a,
                        next_poll ? (time_point::min)() : horizon);
            if (a.run_at <= horizon)
                nudge_pump_ = true;
            else
                plan_turn(saturating_add(a.run_at, -settings_.read_ahead.value()));
        }
    }

    /// Tasks have ended without a run here: one may be what a schedule waits for.
    void run_ended(std::vector<task_id> const& ids) {
        {
            std::lock_guard const guard{mutex_};
            for (auto const id : ids) timetable_.run_ended(id);
            if (timetable_.any_gap()) nudge_pump_ = true;
        }
        flush();
    }

    void place(schedule_record const& record) {
        timetable_.put(record);
        if (record.next) plan_turn(*record.next);
        if (timetable_.any_gap()) nudge_pump_ = true;
    }

    // ---------------------------------------------------------------- taking claimed tasks back

    struct taken_back {
        attempt_ptr running; ///< its handler is at work: nothing was taken
        attempt_ptr revoked; ///< it was claimed and will not start; the caller settles it
    };

    /// What this process holds of a task: nothing, its running attempt, or a claim that is now the caller's to settle.
    taken_back take_back(task_id id) {
        for (;;) {
            std::unique_lock lock{mutex_};
            if (!flight_.contains(id)) return {};
            auto mine = flight_.find(id);
            if (mine && mine->status == attempt_status::running) return {mine, nullptr};
            if (mine && flight_.revoke(*mine)) return {nullptr, mine};
            // Its claim is being committed, its handler is about to be called, or its outcome is on the way, which may
            // take until the storage is back.
            if (mine && mine->status == attempt_status::ended && failures_ != 0)
                throw error(errc::unavailable,
                            "the outcome of task " + std::to_string(to_number(id)) + ": " + failure_);
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

    /// True where a change failed only because the task was claimed here between two looks at it.
    bool claimed_meanwhile(task_id id, change const& made) const {
        if (made.outcome != change_outcome::wrong_state || !is_active(made.state)) return false;
        std::lock_guard const guard{mutex_};
        return flight_.contains(id);
    }

    attempt_end end_of(Attempt const& mine, attempt_outcome how) const {
        attempt_end end;
        end.id = mine.record.id;
        end.fence = mine.record.fence;
        end.outcome = how;
        end.ended = times_.reached();
        return end;
    }

    /// Leaves a revoked attempt for the next pump(), as released.
    void give_back(attempt_ptr const& mine) {
        finished_attempt done;
        done.what = mine;
        done.end = end_of(*mine, attempt_outcome::released);
        outbox_.put(std::move(done));
        nudge_pump_ = true;
    }

    /// Records revoked attempts at once, on the caller's thread, in one commit with `also`.
    template <class Also>
    void settle_revoked(std::vector<attempt_ptr> revoked, attempt_outcome how, Also&& also) {
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
            nudge_turn_ = nudge_pump_ = true; // a worker, or room for a claim, may be free
            arm(settled.due);
        }
        settled_.notify_all();
        flush();
    }

    void leave_flight(Attempt const& mine) {
        flight_.leave(mine);
        if (!mine.record.lonely) return;
        lonely_ = false;
        try_next_suspect();
    }

    /// A process that dies again and again soon after its start has another reason than a task: while it is young,
    /// suspects wait, so that its deaths do not count against the one that would be running alone.
    bool suspects_must_wait() const { return times_.steady() - recovered_at_ < suspects_wait; }

    /// Lets one suspect be claimed, where none is in flight.
    void try_next_suspect() {
        while (!lonely_ && !suspects_.empty() && !suspects_must_wait()) {
            auto const next = suspects_.begin()->second;
            suspects_.erase(suspects_.begin());
            if (!next.lane->runnable) continue; // read again when its type is resumed
            window_.requeue(next);
            nudge_pump_ = true;
            return;
        }
    }

    // ---------------------------------------------------------------- time

    /// Notices a wall clock that was set back: what memory holds by wall time is built anew.
    void notice_clock(time_point now, duration steady) {
        auto const lead = now.time_since_epoch() - steady;
        if (lead > clock_lead_) clock_lead_ = lead;
        if (clock_lead_ - lead <= duration{100}) return; // small steps add up until they count
        clock_lead_ = lead;
        window_.reset(now, lanes_);
        timetable_.set_back(now);
        for (auto const& mine : flight_.set_back(now, saturating_add(now, settings_.read_ahead))) give_back(mine);
        must_load_ = true;
    }

    // ---------------------------------------------------------------- one run

    /// Calls the handler, or finds that it is too late for it. False where the attempt was taken back before it began.
    bool begin_run(attempt_ptr const& mine, finished_attempt& done) {
        std::vector<pending_event> events;
        bool expired = false;
        splitmix64 jitter{0};
        {
            std::lock_guard const guard{mutex_};
            if (mine->status != attempt_status::posted) return false;
            auto const now = times_.reached();
            ++inside_;
            if (polling_) run_in_poll_.insert(mine->record.id);
            flight_.started(*mine, now, times_.steady());
            expired = mine->record.deadline && *mine->record.deadline <= now;
            jitter = splitmix64{random_()};
            if (!expired) {
                if (auto const first = flight_.set_limits(*mine, now)) plan_turn(*first);
                note(events, event_kind::dispatched, mine, now).lateness = now - mine->record.run_at;
            }
        }
        flush();
        send(events);
        if (expired) {
            done.end.outcome = attempt_outcome::expired;
            done.end.error = "deadline passed";
        } else if (!start_is_stored(*mine)) {
            done.end.outcome = attempt_outcome::released;
        } else {
            done.end = handler_call{*mine, times_, settings_.payload_limit, jitter}();
            done.end.started = mine->started;
        }
        return true;
    }

    /// A handler that must not run twice is called only once the store knows that it was: after a crash, what had
    /// started waits for a person, and what had not runs. False where the store could not be told.
    bool start_is_stored(Attempt const& mine) {
        if (!mine.record.hold_on_interrupt) return true;
        start_mark const mark{mine.record.id, mine.record.fence, mine.started};
        try {
            store_.transact(commit::lazy, [&](writer& w) { w.start({&mark, 1}, times_.reached()); });
            return true;
        } catch (error const&) {
            return false;
        }
    }

    /// Fills in the rest of an outcome, and frees the worker.
    void end_run(Attempt& mine, finished_attempt& done) {
        flight_.ended(mine);
        auto& end = done.end;
        end.id = mine.record.id;
        end.fence = mine.record.fence;
        end.ended = (std::max)(times_.reached(), mine.started);
        std::lock_guard const text{mine.text_mutex};
        end.log = std::move(mine.log);
        if (mine.log_dropped != 0) end.log += "... " + std::to_string(mine.log_dropped) + " lines left out\n";
        if (end.outcome == attempt_outcome::succeeded) {
            end.result = std::move(mine.result);
            done.follow_ups = std::move(mine.follow_ups);
        }
    }

    // ---------------------------------------------------------------- the pump's parts

    bool backing_off() const { return failures_ != 0 && times_.steady() < retry_storage_at_; }

    bool pump_has_work(time_point now) const {
        return !outbox_.empty() || alone_ != 0 || !to_note_.empty() || must_sweep_ || timetable_.any_gap() ||
               (next_deadline_ && *next_deadline_ <= now) ||
               (!stopping_ && (window_.any_due(flight_.open_classes()) || timetable_.any_due()));
    }

    /// What cannot be stored must not stand in the way of the rest: after a commit that failed for another reason than
    /// a storage that is away, what it carried goes by itself, one thing at a time and each kind in turn.
    void collect_one(batch& b, time_point now) {
        --alone_;
        b.alone = true;
        for (int tries = 0; tries != 3 && b.empty(); ++tries) {
            auto const kind = next_kind_++ % 3;
            if (kind == 0) b.ended = outbox_.take(1);
            if (stopping_) continue;
            if (kind == 1) b.steps = timetable_.take_steps(now, 1);
            if (kind == 2) draw(b, 1);
        }
    }

    void collect(batch& b, time_point now) {
        if (alone_ != 0) return collect_one(b, now);
        b.ended = outbox_.take((std::numeric_limits<std::size_t>::max)());
        for (auto& mine : std::exchange(to_note_, {}))
            if (mine->status == attempt_status::running) b.noted.push_back(std::move(mine));
        b.sweep = std::exchange(must_sweep_, false) || (next_deadline_ && *next_deadline_ <= now);
        if (stopping_) return;
        b.steps = timetable_.take_steps(now, (std::numeric_limits<std::size_t>::max)());
        draw(b, (std::numeric_limits<std::size_t>::max)());
    }

    /// Draws due tasks to be claimed, as many as there is room for.
    void draw(batch& b, std::size_t most) {
        auto open = flight_.open_classes();
        std::array<std::size_t, priority_classes> room{};
        for (std::size_t i = 0; i != priority_classes; ++i) room[i] = flight_.room(static_cast<priority_class>(i));
        while (b.drawn.size() != most) {
            auto const task = window_.draw(open);
            if (!task) break;
            if (!flight_.reserve(task->id)) continue; // in flight here already
            auto const c = static_cast<std::size_t>(class_of(task->lane->lane));
            open[c] = --room[c] != 0;
            b.drawn.push_back(*task);
        }
    }

    void exchange(batch& b) {
        std::vector<attempt_end> ends;
        ends.reserve(b.ended.size());
        for (auto& one : b.ended) {
            ends.push_back(one.end);
            for (auto const& f : one.follow_ups) { // numbers are looked up before the commit, which may be repeated
                ends.back().follow_ups.push_back(f.task);
                ends.back().follow_ups.back().type = number_of(f.type);
            }
        }
        std::vector<claim_request> requests;
        requests.reserve(b.drawn.size());
        std::vector<start_mark> starts;
        claim_terms terms;
        terms.node = self_;
        {
            std::lock_guard const guard{mutex_};
            for (auto const& task : b.drawn)
                requests.push_back({task.id, handler_of(task.lane->lane)->how.on_interrupt == on_interrupt::hold});
            for (auto const& mine : b.noted) starts.push_back({mine->record.id, mine->record.fence, mine->started});
            terms.suspects = lonely_ || suspects_must_wait() ? 0 : 1;
        }
        bool const answers = !ends.empty() || !b.steps.empty() || b.sweep; // a claim alone need not survive a power cut
        store_.transact(answers ? how_durable() : commit::lazy, [&](writer& w) {
            auto const now = times_.reached();
            if (!ends.empty()) b.settled = w.settle(ends, now);
            if (!starts.empty()) w.start(starts, now);
            if (b.sweep) b.expired = w.expire(now, expire_size);
            b.stepped.clear();
            for (auto const& step : b.steps) b.stepped.push_back(w.step(step, now));
            if (requests.empty()) return;
            terms.now = now;
            terms.until = saturating_add(now, settings_.read_ahead);
            b.claims = w.claim(requests, terms);
        });
    }

    void apply(batch& b, std::vector<pending_event>& events) {
        {
            std::lock_guard const guard{mutex_};
            auto const now = times_.reached();
            apply_settlement(b, now, events);
            if (b.sweep) {
                arm(b.expired.due);
                for (auto const id : b.expired.dead) timetable_.run_ended(id);
                next_deadline_ = b.expired.next;
            }
            for (auto const& answer : b.stepped) {
                arm(answer.due, true);
                if (answer.accepted || !answer.record.name.empty()) place(answer.record);
            }
            b.steps.clear();
            apply_claims(b, now, events);
        }
        settled_.notify_all();
    }

    void apply_settlement(batch& b, time_point now, std::vector<pending_event>& events) {
        for (std::size_t i = 0; i != b.ended.size(); ++i) {
            auto const& one = b.ended[i];
            bool const taken = b.settled.accepted[i];
            leave_flight(*one.what);
            if (one.end.outcome == attempt_outcome::released) continue;
            if (taken)
                for (auto const& f : one.follow_ups) plan_deadline(f.task.deadline);
            if (taken && !one.what->record.schedule.empty() && is_terminal(b.settled.states[i])) timetable_.run_ended();
            if (!observer) continue;
            auto& e = note(events, taken ? event_kind::reported : event_kind::refused, one.what, now);
            e.outcome = one.end.outcome;
            e.run_time = one.end.started ? one.end.ended - *one.end.started : duration{0};
            e.text = one.end.error;
        }
        outbox_.stored(b.ended.size());
        b.ended.clear();
        arm(b.settled.due);
    }

    void apply_claims(batch& b, time_point now, std::vector<pending_event>& events) {
        for (auto const id : b.claims.suspects)
            for (auto const& task : b.drawn)
                if (task.id == id) suspects_.insert_or_assign(id, task);
        std::size_t at = 0; // the claimed ones stand in the order in which they were asked for
        for (auto const& task : b.drawn) {
            if (at == b.claims.claimed.size() || b.claims.claimed[at].id != task.id) {
                flight_.give_up(task.id); // somebody else's, or not claimable any more
                if (doubtful_.erase(task.id)) b.doubted.push_back(task.id);
                continue;
            }
            auto const by = handler_of(task.lane->lane);
            auto const mine = flight_.enter(std::move(b.claims.claimed[at++]), *by);
            if (mine->record.lonely) lonely_ = true;
            if (observer) note(events, event_kind::picked_up, mine, now);
            b.entered.push_back(mine);
        }
        b.drawn.clear();
        try_next_suspect(); // the lonely one may have ended in the same commit, or was not claimable any more
    }

    /// Lets what was claimed to its handlers, now or at its instant.
    void admit(batch& b) {
        for (auto const id : b.doubted)
            if (auto record = store_.find(id); record && is_active(record->state) && record->node == self_) {
                auto const lost = std::make_shared<Attempt>();
                lost->record = std::move(*record);
                lost->status = attempt_status::ended;
                std::lock_guard const guard{mutex_};
                if (!flight_.contains(id)) give_back(lost);
            }
        std::lock_guard const guard{mutex_};
        auto const now = times_.reached();
        for (auto const& mine : b.entered) {
            if (mine->status != attempt_status::waiting) continue; // taken back meanwhile
            if ((stopping_ || mine->handled_by->paused) && flight_.revoke(*mine))
                give_back(mine);
            else if (flight_.admit(mine, now))
                continue;
            else
                plan_turn(mine->record.run_at);
        }
        b.entered.clear();
    }

    /// Reads the next page of each lane that wants one. Returns whether anything came.
    bool read_pages(bool sweep) {
        std::vector<page_request> requests;
        {
            std::lock_guard const guard{mutex_};
            if (stopping_) must_load_ = false;
            if (stopping_ || !recovered_) return false;
            must_load_ = false;
            auto const now = times_.reached();
            for (auto* const lane : lanes_) {
                if (auto request = window_.next_page(*lane, now)) requests.push_back(*request);
                if (!sweep) continue;
                if (auto request = window_.next_sweep(*lane, now)) requests.push_back(*request);
            }
        }
        bool came = false;
        std::size_t at = 0;
        try {
            for (; at != requests.size(); ++at) came = read_page(requests[at]) || came;
        } catch (...) {
            std::lock_guard const guard{mutex_};
            for (; at != requests.size(); ++at) window_.failed(requests[at]);
            must_load_ = true;
            throw;
        }
        return came;
    }

    bool read_page(page_request const& request) {
        auto const page = store_.upcoming(request.after, request.until, request.limit);
        std::optional<time_point> beyond;
        if (!request.sweep && page.size() < request.limit) {
            alarm behind = request.after;
            behind.run_at = request.until;
            behind.id = window_type::behind_all;
            auto const first = store_.upcoming(behind, (time_point::max)(), 1);
            if (!first.empty()) beyond = first.front().run_at;
        }
        std::lock_guard const guard{mutex_};
        window_.loaded(request, page, beyond, saturating_add(times_.reached(), settings_.read_ahead));
        if (!page.empty()) newest_ = (std::max)(newest_, page.back().id);
        if (auto const next = next_turn(settings_.read_ahead)) plan_turn(*next);
        return !page.empty();
    }

    /// Fixed delays whose run has ended get their next instant. It counts from what the store knows, so that an end of
    /// the process between the run and this step loses nothing.
    void fill_gaps() {
        std::vector<typename plan_type::gap> gaps;
        {
            std::lock_guard const guard{mutex_};
            if (!recovered_) return;
            gaps = timetable_.take_gaps();
        }
        try {
            for (auto const& gap : gaps) {
                auto const last = store_.find(gap.last_task);
                if (last && !is_terminal(last->state)) continue;
                schedule_step step;
                step.name = gap.name;
                step.version = gap.version;
                step.next = gap.how.after_end(last && last->finished ? *last->finished : times_.reached());
                schedule_answer answer;
                transact([&](writer& w) { answer = w.step(step, times_.reached()); });
                std::lock_guard const guard{mutex_};
                if (!answer.record.name.empty()) place(answer.record);
            }
        } catch (...) {
            std::lock_guard const guard{mutex_};
            timetable_.run_ended();
            throw;
        }
    }

    void storage_answered(std::vector<pending_event>& events) {
        std::lock_guard const guard{mutex_};
        if (failures_ == 0) return;
        failures_ = 0;
        note(events, event_kind::storage_up, nullptr, times_.reached());
    }

    /// The storage failed: all that the batch held is kept, and the storage is asked again after a pause that grows.
    void storage_failed(batch& b, error const& e, std::vector<pending_event>& events) {
        std::lock_guard const guard{mutex_};
        bool const passes = e.transient() || e.kind() == errc::outcome_unknown;
        if (!passes && !b.alone)
            alone_ = (std::min)(3 * (b.ended.size() + b.steps.size() + b.drawn.size()) + 3, std::size_t{10'000});
        bool const guilty = !passes && b.alone;
        if (guilty && !b.ended.empty())
            outbox_.refused(b.ended, e);
        else
            outbox_.put_back(b.ended);
        if (e.kind() == errc::outcome_unknown) read_anew();
        to_note_.insert(to_note_.end(), b.noted.begin(), b.noted.end());
        for (auto const& task : b.drawn) {
            flight_.give_up(task.id);
            if (guilty) continue; // the next sweep finds it again
            window_.requeue(task);
            if (e.kind() == errc::outcome_unknown) doubtful_.insert(task.id);
        }
        for (auto const& step : b.steps) guilty ? timetable_.set_aside(step.name) : timetable_.again(step.name);
        must_sweep_ = must_sweep_ || b.sweep;
        if (failures_ == 0 || failure_ != e.what())
            note(events, event_kind::storage_down, nullptr, times_.reached()).text = e.what();
        failure_ = e.what();
        ++failures_;
        auto const longest = duration{10LL << (std::min)(failures_, std::size_t{9})}; // 20 ms to 5 s, half of it jitter
        auto const half = static_cast<std::uint64_t>(longest.count() / 2);
        retry_storage_at_ = times_.steady() + longest / 2 + duration{static_cast<std::int64_t>(random_() % half)};
        settled_.notify_all();
    }

    /// A stored task with what only this process knows of it.
    std::optional<task_view> shown(std::optional<task_record> record) const {
        if (!record) return std::nullopt;
        task_view view;
        static_cast<task_record&>(view) = std::move(*record);
        std::lock_guard const guard{mutex_};
        auto const mine = flight_.find(view.id);
        if (!mine || mine->status != attempt_status::running || mine->record.fence != view.fence) return view;
        view.state = task_state::running;
        view.started = mine->started;
        view.over_expected = mine->over_expected;
        std::lock_guard const text{mine->text_mutex};
        view.progress = mine->progress;
        view.progress_note = mine->progress_note;
        return view;
    }

    // ---------------------------------------------------------------- members

    Storage store_;
    options const settings_;
    timekeeper<Clock> times_;
    node_id const self_;

    std::mutex recover_mutex_;
    std::mutex pause_mutex_;          ///< one pause() or resume() at a time
    mutable std::mutex mutex_;        ///< guards all below
    std::condition_variable settled_; ///< something left the flight, or a handler returned
    std::condition_variable room_;    ///< a submit has ended

    splitmix64 random_;
    window_type window_;
    flight<Attempt> flight_;
    plan_type timetable_;
    outbox<Attempt> outbox_;

    std::map<std::string, type_number, std::less<>> numbers_;
    std::unordered_map<type_number, std::unique_ptr<handler_type>> handlers_;
    std::vector<lane_type*> lanes_;        ///< of all handlers
    std::map<task_id, due_task> suspects_; ///< wait for the lonely run to end
    id_set<task_id> doubtful_;             ///< drawn for a claim whose commit may or may not have been made
    std::vector<attempt_ptr> to_note_;
    std::size_t inside_ = 0;     ///< threads in run()
    std::size_t submitting_ = 0; ///< tasks in submits under way
    bool lonely_ = false;        ///< a suspect is in flight
    bool stopping_ = false;
    bool recovered_ = false;
    bool threaded_ = false;
    bool must_load_ = true; ///< a lane may want a page
    bool must_sweep_ = true;
    std::optional<time_point> next_deadline_;
    reclaim_answer recovery_;

    std::size_t alone_ = 0;     ///< how many commits carry one thing only
    std::size_t next_kind_ = 0; ///< of what the next of them carries
    bool nudge_turn_ = false;
    bool nudge_pump_ = false;
    time_point turn_planned_at_ = (time_point::min)(); ///< when the one who turns looks next, by itself

    bool polling_ = false;
    task_id newest_{};
    task_id newest_before_poll_{};
    id_set<task_id> run_in_poll_;

    std::size_t failures_ = 0; ///< of the storage, in a row
    std::string failure_;
    duration retry_storage_at_{};
    duration recovered_at_; ///< steady time
    duration clock_lead_;   ///< of the wall clock over the steady one, the most since it was set back
};

} // namespace ax::detail

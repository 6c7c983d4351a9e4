// SPDX-License-Identifier: MIT
// All that a scheduler does, without the threads that do it. Four steps, each called by whoever drives:
//
//   turn()     moves what became due out of the wheels: ids into the queue of due ids, attempts to their start
//   pump()     one exchange with the storage, in one commit: outcomes in, claims out; and the reads that fill the window
//   dispatch() hands started attempts to the executor
//   run()      calls one handler (on the executor) and leaves the outcome for the next pump()
//
// A threaded scheduler has one thread for turn() and one for pump(); a polled one calls them in turn. One mutex guards
// the memory; it is never held while the storage, a handler or an observer is called.
#pragma once

#include "ax/core/random.hpp"
#include "ax/dispatch/fair_queue.hpp"
#include "ax/observe/events.hpp"
#include "ax/scheduler/detail/alarm_window.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/scheduler/detail/handler_call.hpp"
#include "ax/scheduler/detail/timekeeper.hpp"
#include "ax/scheduler/detail/timetable.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/clock.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ax::detail {

using attempt_ptr = std::shared_ptr<claimed_attempt>;

/// An attempt that is over, and what is to be recorded of it.
struct finished_attempt {
    attempt_ptr what;
    attempt_end end;
    std::vector<submission> follow_ups;
    std::size_t tries = 0; ///< exchanges with the storage that failed with it aboard alone
};

/// An event to be sent once no lock is held.
struct pending_event {
    event_kind kind{};
    attempt_ptr about;
    time_point at{};
    std::optional<attempt_outcome> outcome;
    duration lateness{};
    duration run_time{};
    std::string text;
};

template <storage Storage, clock Clock>
class engine {
  public:
    using writer = typename Storage::writer;

    engine(Storage store, options chosen, Clock const& time)
        : store_(std::move(store)), settings_(checked(std::move(chosen))), times_(time), self_(node_id{system_random()}),
          random_(settings_.seed != 0 ? settings_.seed : system_random()),
          window_(times_.reached(), settings_.window, settings_.window_tasks, settings_.weights),
          instants_(times_.reached()), limits_(time_point{times_.steady()}), waiting_to_start_(settings_.weights),
          last_now_(times_.reached()), last_steady_(times_.steady()) {}

    engine(engine const&) = delete;
    engine& operator=(engine const&) = delete;

    // ---------------------------------------------------------------- what the driver sets before it drives

    /// Called, without a lock, whenever there may be something to do earlier than was known: whoever sleeps wakes.
    unique_function<void()> on_nudge_turn;
    unique_function<void()> on_nudge_pump;
    /// Called, without a lock, with an attempt to be run; it arranges for run() to be called with it.
    unique_function<void(attempt_ptr)> post;
    unique_function<void(event const&)> observer;

    // ---------------------------------------------------------------- recovery

    /// Takes over what an earlier run left behind. The first thing a driver does; does nothing when repeated.
    void recover() {
        {
            std::lock_guard const guard{mutex_};
            if (recovered_) return;
        }
        auto const now = times_.reached();
        reclaim_answer answer;
        store_.transact(commit::durable, [&](writer& w) {
            answer = w.reclaim({self_, settings_.poison_after, now});
        });
        auto const kept = store_.schedules();
        std::lock_guard const guard{mutex_};
        recovery_ = answer;
        for (auto const& record : kept) place_schedule(record);
        recovered_ = true;
    }

    reclaim_answer recovery() const {
        std::lock_guard const guard{mutex_};
        return recovery_;
    }

    // ---------------------------------------------------------------- handlers

    void add_handler(std::string_view name, unique_function<void(context&, std::string_view)> call,
                     handler_options how) {
        check_text(name, "task type", longest_name, false);
        if (how.timeout && how.timeout->value() <= duration{0})
            throw error(errc::invalid_argument, "timeout of task type \"" + std::string(name) + "\" is not positive");
        if (how.expected && how.expected->value() <= duration{0})
            throw error(errc::invalid_argument,
                        "expected run time of task type \"" + std::string(name) + "\" is not positive");
        auto const number = number_of(name);
        bool paused = false;
        for (auto const& type : store_.types())
            if (type.number == number) paused = type.paused;
        {
            std::lock_guard const guard{mutex_};
            if (handlers_.contains(number))
                throw error(errc::invalid_argument,
                            "task type \"" + std::string(name) + "\" has a handler already");
            auto made = std::make_unique<handler>();
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
            handlers_.emplace(number, std::move(made));
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

    // ---------------------------------------------------------------- what callers ask for

    std::vector<insertion> submit(std::vector<submission> wanted) {
        submit_room const room{*this, wanted.size()};
        std::vector<new_task> tasks;
        tasks.reserve(wanted.size());
        auto const base = times_.present();
        std::string_view last_type;
        type_number last_number{};
        for (auto& one : wanted) {
            if (tasks.empty() || one.type != last_type) {
                last_type = one.type;
                last_number = number_of(one.type);
            }
            one.task.type = last_number;
            if (!one.task.run_at && one.task.delay > duration{0}) {
                one.task.run_at = saturating_add(base, one.task.delay);
                one.task.delay = duration{0};
            }
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
            for (auto const& task : tasks) plan_deadline(task);
        }
        take_alarms(due);
        return answer;
    }

    enum class cancel_answer : std::uint8_t { cancelled, stop_requested, too_late, unknown };

    cancel_answer cancel(task_id id) {
        for (;;) {
            attempt_ptr revoked;
            {
                std::unique_lock lock{mutex_};
                if (auto const busy = in_flight_.find(id); busy != in_flight_.end()) {
                    auto const& mine = busy->second;
                    if (mine && mine->status == attempt_status::running) {
                        mine->request_stop(stop_reason::cancelled);
                        return cancel_answer::stop_requested;
                    }
                    if (!mine || !revoke(mine)) {
                        wait_for_settlement(lock, id);
                        continue;
                    }
                    revoked = mine;
                }
            }
            if (revoked) {
                settle_revoked({revoked}, attempt_outcome::cancelled, [](writer&) {});
                return cancel_answer::cancelled;
            }
            change made;
            transact([&](writer& w) { made = w.cancel(id, times_.reached()); });
            take_alarms(made.due);
            if (made.outcome == change_outcome::done) return cancel_answer::cancelled;
            if (made.outcome == change_outcome::unknown) return cancel_answer::unknown;
            if (is_terminal(made.state)) return cancel_answer::too_late;
            std::unique_lock lock{mutex_};
            if (!in_flight_.contains(id)) return cancel_answer::too_late; // in flight elsewhere: not ours to stop
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
            attempt_ptr revoked;
            {
                std::unique_lock lock{mutex_};
                if (auto const busy = in_flight_.find(id); busy != in_flight_.end()) {
                    auto const& mine = busy->second;
                    if (mine && mine->status == attempt_status::running) return change_outcome::wrong_state;
                    if (!mine || !revoke(mine)) {
                        wait_for_settlement(lock, id);
                        continue;
                    }
                    revoked = mine;
                }
            }
            change made;
            auto const move = [&](writer& w) { made = w.reschedule(id, when, times_.reached()); };
            if (revoked)
                settle_revoked({revoked}, attempt_outcome::released, move);
            else
                transact(move);
            take_alarms(made.due);
            if (made.outcome == change_outcome::wrong_state && is_active(made.state)) {
                std::unique_lock lock{mutex_};
                if (in_flight_.contains(id)) continue; // claimed meanwhile
            }
            return made.outcome;
        }
    }

    void pause(std::string_view type, bool yes) {
        check_text(type, "task type", longest_name, false);
        auto const number = number_of(type);
        std::vector<attempt_ptr> revoked;
        {
            std::lock_guard const guard{mutex_};
            if (auto const found = handlers_.find(number); found != handlers_.end()) {
                found->second->paused = yes;
                for (auto& lane : found->second->lanes) window_.set_runnable(lane, !yes);
                if (yes) revoked = revoke_all([&](claimed_attempt const& a) { return a.handled_by == found->second.get(); });
                must_load_ = true;
                nudge_pump_ = true;
            }
        }
        settle_revoked(std::move(revoked), attempt_outcome::released, [&](writer& w) { w.pause(number, yes); });
        flush();
    }

    // ---------------------------------------------------------------- schedules

    schedule_record declare(std::string_view name, recurrence const& how, std::string_view type, std::string payload) {
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
            place_schedule(stored);
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
            for (auto const& [id, mine] : in_flight_)
                if (mine && mine->over_expected && mine->status == attempt_status::running &&
                    (wanted.type.empty() || mine->record.type == wanted.type) && id > wanted.after)
                    slow.push_back(id);
        }
        std::sort(slow.begin(), slow.end());
        if (slow.size() > wanted.limit) slow.resize(wanted.limit);
        for (auto const id : slow)
            if (auto one = find(id)) found.push_back(std::move(*one));
        return found;
    }

    std::vector<attempt_view> history(task_id id) const {
        auto attempts = store_.history(id);
        std::lock_guard const guard{mutex_};
        auto const busy = in_flight_.find(id);
        if (busy != in_flight_.end() && busy->second && !attempts.empty() && !attempts.back().end) {
            auto& mine = *busy->second;
            if (mine.status == attempt_status::running) attempts.back().start = mine.started;
            std::lock_guard const text{mine.text_mutex};
            attempts.back().log = mine.log;
        }
        return attempts;
    }

    Storage const& store() const noexcept { return store_; }

    struct health_numbers {
        bool storage_ok = true;
        std::string storage_error;           ///< the latest; empty while all is well
        std::size_t consecutive_failures = 0;
        std::size_t running = 0;             ///< handlers at work
        std::size_t claimed = 0;             ///< claimed and not yet started
        std::size_t unsettled = 0;           ///< ended, outcome not yet stored
        std::size_t in_memory = 0;           ///< ids of due and soon due tasks
    };

    health_numbers health() const {
        std::lock_guard const guard{mutex_};
        health_numbers h;
        h.storage_ok = failures_ == 0;
        h.storage_error = failures_ == 0 ? std::string{} : failure_;
        h.consecutive_failures = failures_;
        h.running = running_;
        for (auto const n : claimed_) h.claimed += n;
        h.unsettled = finished_.size() + settling_;
        h.in_memory = window_.size();
        return h;
    }

    // ---------------------------------------------------------------- the steps

    /// Moves what is due. Returns whether there is something for pump() or dispatch() to do.
    bool turn() {
        std::vector<pending_event> events;
        bool work = false;
        {
            std::lock_guard const guard{mutex_};
            auto const now = times_.reached();
            auto const steady = times_.steady();
            notice_clock(now, steady);
            window_.turn(saturating_add(now, settings_.read_ahead));
            instants_.advance(now, [&](mark const& m) { on_instant(m); });
            limits_.advance(time_point{steady}, [&](mark const& m) { on_limit(m, now, events); });
            work = pump_has_work(now) || may_dispatch();
        }
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
        } else if (pump_has_work(now) || may_dispatch() || must_load_ || !recovered_) {
            next = now;
        } else {
            next = next_turn(duration{0});
            for (auto const* lane : lanes_) next = earlier(next, window_.next_read(*lane));
            next = earlier(next, next_deadline_);
        }
        turn_planned_at_ = next.value_or((time_point::max)());
        return next;
    }

    /// One exchange with the storage. Returns whether it moved anything. Errors of the storage are kept for health(), and
    /// nothing is lost: what could not be recorded is recorded by a later pump().
    bool pump() {
        batch b;
        std::vector<pending_event> events;
        {
            std::lock_guard const guard{mutex_};
            auto const now = times_.reached();
            if (backing_off()) return false;
            collect(b, now);
        }
        bool moved = false;
        try {
            if (!b.empty()) {
                exchange(b);
                apply(b, events);
                moved = true;
            }
            moved = read_pages(b.sweep) || moved;
            recovered_from_failure(events);
        } catch (error const& e) {
            on_failure(b, e, events);
        } catch (std::exception const& e) { // out of memory, say: as transient as a storage that is away
            on_failure(b, error(errc::unavailable, e.what()), events);
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
            while (auto next = take_next()) starting.push_back(std::move(next));
        }
        for (auto& one : starting) {
            try {
                post(one);
            } catch (...) { // the executor takes no more: the claim is given back
                std::lock_guard const guard{mutex_};
                if (revoke(one)) give_back(one);
            }
        }
    }

    /// Calls the handler of an attempt that dispatch() posted. On the executor's thread.
    /// @param another  Whether it may go on with the next attempt on this thread.
    void run(attempt_ptr now_running, bool another) {
        while (now_running) {
            auto& a = *now_running;
            std::vector<pending_event> events;
            bool expired = false;
            splitmix64 jitter{0};
            {
                std::lock_guard const guard{mutex_};
                if (a.status != attempt_status::posted) return; // revoked meanwhile
                auto const now = times_.reached();
                expired = a.record.deadline && *a.record.deadline <= now;
                a.status = attempt_status::running;
                ++inside_;
                if (polling_) run_in_poll_.insert(a.record.id);
                a.started = now;
                a.started_steady = times_.steady();
                jitter = splitmix64{random_()};
                if (!expired) {
                    set_limits(a);
                    note(events, event_kind::dispatched, now_running, now).lateness = now - a.record.run_at;
                }
            }
            flush();
            send(events);
            finished_attempt done;
            done.what = now_running;
            if (expired) {
                done.end.outcome = attempt_outcome::expired;
                done.end.error = "deadline passed";
            } else {
                done.end = handler_call{a, times_, settings_.payload_limit, jitter}();
            }
            attempt_ptr next;
            {
                std::lock_guard const guard{mutex_};
                finish(a, done, expired);
                finished_.push_back(std::move(done));
                --running_;
                nudge_pump_ = true;
                if (another) next = take_next();
            }
            settled_.notify_all();
            flush();
            if (!next) dispatch();
            now_running = std::move(next);
            std::lock_guard const guard{mutex_};
            if (--inside_ == 0) settled_.notify_all(); // the last touch: the destructor may be waiting for it
        }
    }

    // ---------------------------------------------------------------- the end

    /// No claims and no schedules from now on; what was claimed and not started is given back.
    std::size_t begin_stop() {
        std::size_t released = 0;
        {
            std::lock_guard const guard{mutex_};
            if (stopping_) return 0;
            stopping_ = true;
            for (auto const& one : revoke_all([](claimed_attempt const&) { return true; })) {
                give_back(one);
                ++released;
            }
            nudge_pump_ = true;
        }
        room_.notify_all();
        settled_.notify_all();
        flush();
        return released;
    }

    void ask_all_to_stop() {
        std::vector<attempt_ptr> running;
        {
            std::lock_guard const guard{mutex_};
            for (auto const& [id, mine] : in_flight_)
                if (mine && mine->status == attempt_status::running) running.push_back(mine);
        }
        for (auto const& one : running) one->request_stop(stop_reason::stopping); // callbacks of the host run here
    }

    std::size_t running() const {
        std::lock_guard const guard{mutex_};
        return running_;
    }

    bool stopping() const {
        std::lock_guard const guard{mutex_};
        return stopping_;
    }

    /// Waits, at most for `limit`, until no more than `left` handlers run.
    bool wait_idle(std::chrono::nanoseconds limit, std::size_t left) {
        std::unique_lock lock{mutex_};
        return settled_.wait_for(lock, limit, [&] { return running_ <= left; });
    }

    void wait_idle() {
        std::unique_lock lock{mutex_};
        settled_.wait(lock, [&] { return running_ == 0 && inside_ == 0; });
    }

    /// Waits until the task is in flight no more; false where `limit` passed first.
    bool wait_not_in_flight(task_id id, std::chrono::nanoseconds limit) {
        std::unique_lock lock{mutex_};
        return settled_.wait_for(lock, limit, [&] { return !in_flight_.contains(id); });
    }

    /// True while outcomes wait for the storage.
    bool unsettled() const {
        std::lock_guard const guard{mutex_};
        return !finished_.empty() || settling_ != 0;
    }

    bool pump_has_work() const {
        std::lock_guard const guard{mutex_};
        return !backing_off() && (pump_has_work(times_.reached()) || must_load_);
    }

    void sweep_soon() {
        std::lock_guard const guard{mutex_};
        must_sweep_ = true;
    }

    bool may_dispatch_now() const {
        std::lock_guard const guard{mutex_};
        return may_dispatch();
    }

    options const& settings() const noexcept { return settings_; }
    timekeeper<Clock>& times() noexcept { return times_; }
    node_id self() const noexcept { return self_; }

  private:
    // ---------------------------------------------------------------- small parts

    static std::optional<time_point> earlier(std::optional<time_point> a, std::optional<time_point> b) {
        if (!a || !b) return a ? a : b;
        return (std::min)(*a, *b);
    }

    /// The wall-clock instant at which turn() finds something next, ids `ahead` of their own instant.
    std::optional<time_point> next_turn(duration ahead) {
        auto next = window_.next_expiry();
        if (next) next = saturating_add(*next, -ahead);
        next = earlier(next, instants_.next_expiry());
        if (auto const limit = limits_.next_expiry())
            next = earlier(next, saturating_add(times_.reached(), limit->time_since_epoch() - times_.steady()));
        return next;
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

    /// A deadline of some kind that belongs to an attempt or a schedule.
    struct mark {
        enum class what : std::uint32_t { start, deadline, timeout, expected, note_start, schedule };
        std::uint64_t number = 0; ///< task id, or the schedule's place in the timetable
        std::uint32_t stamp = 0;  ///< low bits of the fence: an older attempt's mark is stale
        what kind{};
    };

    static constexpr std::size_t expire_size = 256; ///< deadlines handled in one commit

    struct batch {
        std::vector<finished_attempt> ended;
        std::vector<attempt_ptr> noted;
        std::vector<due_task> drawn;
        std::vector<schedule_step> steps;
        bool sweep = false;

        settlement settled;
        claim_answer claims;
        std::vector<schedule_answer> stepped;
        expiry expired;
        bool empty() const {
            return ended.empty() && noted.empty() && drawn.empty() && steps.empty() && !sweep;
        }
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

    static options checked(options chosen) {
        auto const refuse = [](std::string const& why) { throw error(errc::invalid_argument, "options: " + why); };
        if (chosen.workers == 0) refuse("workers is 0");
        if (chosen.window.value() < duration{1000}) refuse("window is shorter than a second");
        if (chosen.read_ahead.value() < duration{0}) refuse("read_ahead is negative");
        if (chosen.read_ahead.value() * 2 > chosen.window.value()) refuse("read_ahead is longer than half the window");
        if (chosen.poison_after == 0) refuse("poison_after is 0");
        if (chosen.claimed_ahead == 0) refuse("claimed_ahead is 0");
        if (chosen.window_tasks == 0) refuse("window_tasks is 0");
        if (chosen.submit_queue == 0) refuse("submit_queue is 0");
        for (auto const weight : chosen.weights)
            if (weight == 0) refuse("a weight is 0");
        check_text(chosen.node_name, "node name", longest_name, true);
        return chosen;
    }

    commit how_durable() const {
        return settings_.durability == durability::power_loss ? commit::durable : commit::lazy;
    }

    template <class Fn>
    void transact(Fn&& fn) {
        store_.transact(how_durable(), std::forward<Fn>(fn));
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

    static pending_event& note(std::vector<pending_event>& events, event_kind kind, attempt_ptr about, time_point at) {
        events.push_back({});
        auto& e = events.back();
        e.kind = kind;
        e.about = std::move(about);
        e.at = at;
        return e;
    }

    handler* handler_of(lane_id lane) const {
        auto const found = handlers_.find(type_of(lane));
        return found == handlers_.end() ? nullptr : found->second.get();
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
    void plan_deadline(new_task const& task) {
        if (!task.deadline || (next_deadline_ && *next_deadline_ <= *task.deadline)) return;
        next_deadline_ = task.deadline;
        plan_turn(*task.deadline);
    }

    void arm(alarms const& due) {
        auto const horizon = saturating_add(times_.reached(), settings_.read_ahead);
        for (auto const& a : due) {
            auto* const by = handler_of(a.lane);
            if (by == nullptr) continue; // no handler here: it stays in the store
            newest_ = (std::max)(newest_, a.id);
            bool const next_poll = polling_ && (a.id > newest_before_poll_ || run_in_poll_.contains(a.id));
            window_.arm(by->lanes[static_cast<std::size_t>(class_of(a.lane))], a,
                        next_poll ? (time_point::min)() : horizon);
            if (a.run_at <= horizon)
                nudge_pump_ = true;
            else
                plan_turn(saturating_add(a.run_at, -settings_.read_ahead.value()));
        }
    }

    // ---------------------------------------------------------------- in flight

    bool unstarted(claimed_attempt const& a) const {
        return a.status == attempt_status::waiting || a.status == attempt_status::queued ||
               a.status == attempt_status::posted;
    }

    /// Takes an attempt that has not started out of the way to its handler. False where it has started.
    bool revoke(attempt_ptr const& mine) {
        if (!unstarted(*mine)) return false;
        if (mine->status == attempt_status::posted) {
            if (!mine->begin()) return false; // the executor has come to it
            --running_;
        } else {
            --claimed_[static_cast<std::size_t>(mine->record.priority)];
        }
        mine->status = attempt_status::ended; // where it is queued, it is passed over
        drop_marks(*mine);
        return true;
    }

    template <class Wanted>
    std::vector<attempt_ptr> revoke_all(Wanted&& wanted) {
        std::vector<attempt_ptr> revoked;
        for (auto const& [id, mine] : in_flight_)
            if (mine && unstarted(*mine) && wanted(*mine) && revoke(mine)) revoked.push_back(mine);
        return revoked;
    }

    /// Leaves a revoked attempt for the next pump(), as released.
    void give_back(attempt_ptr const& mine) {
        finished_attempt done;
        done.what = mine;
        done.end = end_of(*mine, attempt_outcome::released);
        finished_.push_back(std::move(done));
    }

    attempt_end end_of(claimed_attempt const& a, attempt_outcome how) const {
        attempt_end end;
        end.id = a.record.id;
        end.fence = a.record.fence;
        end.outcome = how;
        end.ended = times_.reached();
        return end;
    }

    /// Records revoked attempts at once, on the caller's thread, together with `also`.
    template <class Also>
    void settle_revoked(std::vector<attempt_ptr> revoked, attempt_outcome how, Also&& also) {
        std::vector<attempt_end> ends;
        for (auto const& one : revoked) ends.push_back(end_of(*one, how));
        settlement settled;
        try {
            transact([&](writer& w) {
                settled = w.settle(ends, times_.reached());
                also(w);
            });
        } catch (...) { // not recorded: the pump gives them back, and the caller learns of the failure
            {
                std::lock_guard const guard{mutex_};
                for (auto const& one : revoked) give_back(one);
                nudge_pump_ = true;
            }
            flush();
            throw;
        }
        {
            std::lock_guard const guard{mutex_};
            for (auto const& one : revoked) leave_flight(*one);
        }
        settled_.notify_all();
        take_alarms(settled.due);
    }

    void leave_flight(claimed_attempt const& a) {
        auto const found = in_flight_.find(a.record.id);
        if (found != in_flight_.end() && found->second.get() == &a) in_flight_.erase(found);
        if (a.record.lonely) {
            lonely_ = false;
            if (!suspects_.empty()) {
                auto const next = suspects_.begin()->second;
                suspects_.erase(suspects_.begin());
                window_.requeue(next);
            }
        }
    }

    /// Waits until `id` has left its present flight; helps where the outcome waits for a pump that this thread drives.
    void wait_for_settlement(std::unique_lock<std::mutex>& lock, task_id id) {
        if (!threaded_ && !finished_.empty()) {
            lock.unlock();
            pump();
            lock.lock();
            return;
        }
        settled_.wait_for(lock, std::chrono::milliseconds{20}, [&] { return !in_flight_.contains(id); });
    }

    std::uint32_t stamp_of(claimed_attempt const& a) const {
        return static_cast<std::uint32_t>(to_number(a.record.fence));
    }

    mark mark_of(claimed_attempt const& a, typename mark::what kind) const {
        return {to_number(a.record.id), stamp_of(a), kind};
    }

    claimed_attempt* marked(mark const& m) const {
        auto const found = in_flight_.find(task_id{m.number});
        if (found == in_flight_.end() || !found->second || stamp_of(*found->second) != m.stamp) return nullptr;
        return found->second.get();
    }

    void drop_marks(claimed_attempt& a) {
        instants_.cancel(a.marks[0]);
        for (std::size_t i = 1; i != a.marks.size(); ++i) limits_.cancel(a.marks[i]);
    }

    void queue(attempt_ptr const& mine) {
        mine->status = attempt_status::queued;
        waiting_to_start_.push(mine->record.priority, mine);
    }

    bool may_dispatch() const { return running_ < settings_.workers && !waiting_to_start_.empty(); }

    /// The next attempt that may start, if a worker is free; it counts as running from now on.
    attempt_ptr take_next() {
        while (running_ < settings_.workers) {
            auto next = waiting_to_start_.pop();
            if (!next) break;
            if ((*next)->status != attempt_status::queued) continue;
            (*next)->status = attempt_status::posted;
            --claimed_[static_cast<std::size_t>((*next)->record.priority)];
            ++running_;
            return std::move(*next);
        }
        return nullptr;
    }

    void set_limits(claimed_attempt& a) {
        auto const from = time_point{a.started_steady + duration{1}};
        auto const& how = a.handled_by->how;
        if (a.record.deadline) a.marks[0] = instants_.schedule(*a.record.deadline, mark_of(a, mark::what::deadline));
        if (how.timeout)
            a.marks[1] = limits_.schedule(saturating_add(from, *how.timeout), mark_of(a, mark::what::timeout));
        if (how.expected)
            a.marks[2] = limits_.schedule(saturating_add(from, *how.expected), mark_of(a, mark::what::expected));
        a.marks[3] = limits_.schedule(from + duration{50}, mark_of(a, mark::what::note_start));
        auto const now = times_.reached();
        if (how.timeout) plan_turn(saturating_add(now, *how.timeout));
        if (how.expected) plan_turn(saturating_add(now, *how.expected));
        if (a.record.deadline) plan_turn(*a.record.deadline);
    }

    // ---------------------------------------------------------------- time

    /// Notices a wall clock that was set back: what memory holds by wall time is built anew.
    void notice_clock(time_point now, duration steady) {
        auto const step = (now - last_now_) - (steady - last_steady_);
        last_now_ = now;
        last_steady_ = steady;
        if (step >= -duration{100}) return;
        window_.reset(now, lanes_);
        must_load_ = true;
        instants_ = timing_wheel<mark>{now};
        auto const horizon = saturating_add(now, settings_.read_ahead);
        for (auto const& [id, mine] : in_flight_) {
            if (!mine) continue;
            if (unstarted(*mine) && mine->status != attempt_status::posted && mine->record.run_at > horizon) {
                if (revoke(mine)) give_back(mine); // claimed too early, as it turns out
            } else if (mine->status == attempt_status::waiting) {
                mine->marks[0] = instants_.schedule(mine->record.run_at, mark_of(*mine, mark::what::start));
            } else if (mine->status == attempt_status::running && mine->record.deadline) {
                mine->marks[0] = instants_.schedule(*mine->record.deadline, mark_of(*mine, mark::what::deadline));
            }
        }
        timetable_.for_each([&](std::uint64_t place, planned& p) {
            p.timer = {};
            arm_schedule(place, p);
        });
    }

    void on_instant(mark const& m) {
        if (m.kind == mark::what::schedule) {
            timetable_.came_due(m.number);
            return;
        }
        auto* const a = marked(m);
        if (a == nullptr) return;
        if (m.kind == mark::what::start && a->status == attempt_status::waiting)
            queue(in_flight_.find(a->record.id)->second);
        if (m.kind == mark::what::deadline && a->status == attempt_status::running)
            to_stop_.push_back({in_flight_.find(a->record.id)->second, stop_reason::deadline});
    }

    void on_limit(mark const& m, time_point now, std::vector<pending_event>& events) {
        auto* const a = marked(m);
        if (a == nullptr || a->status != attempt_status::running) return;
        auto const& mine = in_flight_.find(a->record.id)->second;
        if (m.kind == mark::what::timeout) to_stop_.push_back({mine, stop_reason::timed_out});
        if (m.kind == mark::what::expected) {
            a->over_expected = true;
            note(events, event_kind::overran, mine, now).run_time = times_.steady() - a->started_steady;
        }
        if (m.kind == mark::what::note_start) to_note_.push_back(mine);
    }

  public:
    /// Sets the stop tokens whose time has come. After turn(), without a lock: a handler's stop callbacks run here.
    void deliver_stops() {
        std::vector<std::pair<attempt_ptr, stop_reason>> stops;
        {
            std::lock_guard const guard{mutex_};
            stops.swap(to_stop_);
        }
        for (auto const& [who, why] : stops) who->request_stop(why);
    }

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

    bool storage_down() const {
        std::lock_guard const guard{mutex_};
        return failures_ != 0;
    }

    /// Waits, at most for `limit`, until every outcome is stored.
    bool wait_settled(std::chrono::nanoseconds limit) {
        std::unique_lock lock{mutex_};
        return settled_.wait_for(lock, limit, [&] { return finished_.empty() && settling_ == 0; });
    }

    void set_threaded(bool yes) {
        std::lock_guard const guard{mutex_};
        threaded_ = yes;
    }

  private:
    // ---------------------------------------------------------------- schedules in memory

    void place_schedule(schedule_record const& record) {
        auto const place = timetable_.put(record);
        arm_schedule(place, timetable_.at(place));
    }

    void arm_schedule(std::uint64_t place, planned& p) {
        instants_.cancel(p.timer);
        p.timer = {};
        if (!p.how) return;
        if (p.record.next) {
            p.timer = instants_.schedule(*p.record.next, {place, 0, mark::what::schedule});
            plan_turn(*p.record.next);
        } else if (p.how->waits_for_end()) { // counts from the end of the latest run, which the store knows
            must_check_gaps_ = true;
            nudge_pump_ = true;
        }
    }

    schedule_step step_for(planned const& p, time_point now) const {
        auto const found = p.how->latest(*p.record.next, now);
        schedule_step step;
        step.name = p.record.name;
        step.version = p.record.version;
        step.next = p.how->following(found.nominal);
        step.skip_if_unfinished = true;
        step.skipped = found.missed;
        if (found.missed != 0) step.skip_reason = "missed: a later one stands for it";
        new_task task;
        task.type = p.record.type;
        task.payload = p.record.payload;
        task.run_at = found.nominal;
        task.schedule = p.record.name;
        task.scheduled_at = found.nominal;
        step.occurrence = std::move(task);
        return step;
    }

    /// Fixed delays whose run has ended get their next instant.
    void check_gaps() {
        std::vector<std::pair<schedule_record, recurrence>> waiting;
        {
            std::lock_guard const guard{mutex_};
            if (!std::exchange(must_check_gaps_, false)) return;
            timetable_.for_each([&](std::uint64_t, planned& p) {
                if (p.how && p.how->waits_for_end() && !p.record.next) waiting.emplace_back(p.record, *p.how);
            });
        }
        for (auto const& [record, how] : waiting) {
            auto const last = store_.find(record.last_task);
            if (last && !is_terminal(last->state)) continue;
            auto const end = last && last->finished ? *last->finished : times_.reached();
            schedule_step step;
            step.name = record.name;
            step.version = record.version;
            step.next = how.after_end(end);
            schedule_answer answer;
            transact([&](writer& w) { answer = w.step(step, times_.reached()); });
            std::lock_guard const guard{mutex_};
            place_schedule(answer.record);
        }
    }

    // ---------------------------------------------------------------- the pump's parts

    bool backing_off() const { return failures_ != 0 && times_.steady() < retry_storage_at_; }

    std::array<bool, priority_classes> open_classes() const {
        std::array<bool, priority_classes> open{};
        if (stopping_) return open;
        for (std::size_t i = 0; i != priority_classes; ++i) open[i] = claimed_[i] < settings_.claimed_ahead;
        return open;
    }

    bool pump_has_work(time_point now) const {
        return !finished_.empty() || !to_note_.empty() || window_.any_due(open_classes()) ||
               (!stopping_ && timetable_.any_due()) || must_sweep_ || must_check_gaps_ ||
               (next_deadline_ && *next_deadline_ <= now);
    }

    void collect(batch& b, time_point now) {
        if (one_by_one_ && finished_.size() > 1) {
            b.ended.push_back(std::move(finished_.front()));
            finished_.pop_front();
        } else {
            b.ended.assign(std::make_move_iterator(finished_.begin()), std::make_move_iterator(finished_.end()));
            finished_.clear();
            one_by_one_ = false;
        }
        settling_ += b.ended.size();
        for (auto& mine : std::exchange(to_note_, {}))
            if (mine->status == attempt_status::running && !mine->start_noted) b.noted.push_back(std::move(mine));
        if (!stopping_) {
            auto open = open_classes();
            auto taken = claimed_;
            while (auto task = window_.draw(open)) {
                if (!in_flight_.try_emplace(task->id, nullptr).second) continue; // in flight here already
                auto const c = static_cast<std::size_t>(class_of(task->lane->lane));
                if (++taken[c] >= settings_.claimed_ahead) open[c] = false;
                b.drawn.push_back(*task);
            }
            for (auto const place : timetable_.take_due()) {
                auto& p = timetable_.at(place);
                if (!p.how || !p.record.next) continue;
                if (*p.record.next <= now)
                    b.steps.push_back(step_for(p, now));
                else
                    arm_schedule(place, p); // the clock went back meanwhile
            }
        }
        b.sweep = std::exchange(must_sweep_, false) || (next_deadline_ && *next_deadline_ <= now);
    }

    void exchange(batch& b) {
        // Numbers of follow-up types are looked up before the commit, which may be repeated.
        for (auto& one : b.ended) {
            one.end.follow_ups.clear();
            for (auto const& f : one.follow_ups) {
                one.end.follow_ups.push_back(f.task);
                one.end.follow_ups.back().type = number_of(f.type);
            }
        }
        std::vector<attempt_end> ends;
        ends.reserve(b.ended.size());
        for (auto const& one : b.ended) ends.push_back(one.end);
        std::vector<claim_request> requests;
        requests.reserve(b.drawn.size());
        std::vector<start_mark> starts;
        claim_terms terms;
        {
            std::lock_guard const guard{mutex_};
            for (auto const& task : b.drawn) {
                auto const* by = handler_of(task.lane->lane);
                requests.push_back({task.id, by->how.on_interrupt == on_interrupt::hold});
            }
            for (auto const& mine : b.noted) starts.push_back({mine->record.id, mine->record.fence, mine->started});
            terms.suspects = lonely_ ? 0 : 1;
        }
        terms.node = self_;
        bool const answers = !ends.empty() || !b.steps.empty() || b.sweep;
        store_.transact(answers ? how_durable() : commit::lazy, [&](writer& w) {
            auto const now = times_.reached();
            if (!ends.empty()) b.settled = w.settle(ends, now);
            if (!starts.empty()) w.start(starts, now);
            if (b.sweep) b.expired = w.expire(now, expire_size);
            b.stepped.clear();
            for (auto const& step : b.steps) b.stepped.push_back(w.step(step, now));
            if (!requests.empty()) {
                terms.now = now;
                terms.until = saturating_add(now, settings_.read_ahead);
                b.claims = w.claim(requests, terms);
            }
        });
    }

    void apply(batch& b, std::vector<pending_event>& events) {
        std::vector<attempt_ptr> over;
        {
            std::lock_guard const guard{mutex_};
            auto const now = times_.reached();
            for (auto const& mine : b.noted) mine->start_noted = true;
            apply_settlement(b, now, events);
            arm(b.expired.due);
            if (b.sweep) {
                next_deadline_ = b.expired.next;
                if (b.expired.dead.size() == expire_size) must_sweep_ = true;
            }
            for (auto& answer : b.stepped) {
                arm(answer.due);
                if (answer.accepted)
                    place_schedule(answer.record);
                else
                    timetable_.remove(answer.record.name);
            }
            apply_claims(b, now, events);
        }
        settled_.notify_all();
    }

    void apply_settlement(batch& b, time_point now, std::vector<pending_event>& events) {
        for (std::size_t i = 0; i != b.ended.size(); ++i) {
            auto const& one = b.ended[i];
            auto const taken = b.settled.accepted[i];
            leave_flight(*one.what);
            if (one.end.outcome == attempt_outcome::released) continue;
            if (observer) {
                auto& e = note(events, taken ? event_kind::reported : event_kind::refused, one.what, now);
                e.outcome = one.end.outcome;
                e.run_time = one.end.started ? one.end.ended - *one.end.started : duration{0};
                e.text = one.end.error;
            }
            if (taken && one.end.outcome == attempt_outcome::succeeded)
                for (auto const& f : one.end.follow_ups) plan_deadline(f);
            if (taken && !one.what->record.schedule.empty() && is_terminal(b.settled.states[i])) must_check_gaps_ = true;
        }
        settling_ -= b.ended.size();
        b.ended.clear();
        arm(b.settled.due);
    }

    void apply_claims(batch& b, time_point now, std::vector<pending_event>& events) {
        std::size_t at = 0;
        for (auto const id : b.claims.suspects)
            for (auto const& task : b.drawn)
                if (task.id == id) suspects_.insert_or_assign(id, task);
        for (auto const& task : b.drawn) {
            if (at == b.claims.claimed.size() || b.claims.claimed[at].id != task.id) {
                in_flight_.erase(task.id); // somebody else's, or not claimable any more
                continue;
            }
            auto mine = std::make_shared<claimed_attempt>();
            mine->record = std::move(b.claims.claimed[at++]);
            mine->handled_by = handler_of(task.lane->lane);
            if (mine->record.lonely) lonely_ = true;
            in_flight_[task.id] = mine;
            ++claimed_[static_cast<std::size_t>(mine->record.priority)];
            if (observer) note(events, event_kind::picked_up, mine, now);
            if (stopping_ || mine->handled_by->paused) {
                if (revoke(mine)) give_back(mine);
            } else if (mine->record.run_at <= now) {
                queue(mine);
            } else {
                mine->marks[0] = instants_.schedule(mine->record.run_at, mark_of(*mine, mark::what::start));
                plan_turn(mine->record.run_at);
            }
        }
        b.drawn.clear();
    }

    /// Reads the next page of each lane that wants one. Returns whether anything came.
    bool read_pages(bool sweep) {
        std::vector<page_request> requests;
        {
            std::lock_guard const guard{mutex_};
            must_load_ = false;
            if (!stopping_ && recovered_) {
                auto const now = times_.reached();
                for (auto* const lane : lanes_) {
                    if (auto request = window_.next_page(*lane, now)) requests.push_back(*request);
                    if (!sweep) continue;
                    if (auto request = window_.next_sweep(*lane, now)) requests.push_back(*request);
                }
            }
        }
        bool came = false;
        std::size_t at = 0;
        try {
            for (; at != requests.size(); ++at) {
                auto const& request = requests[at];
                auto const page = store_.upcoming(request.after, request.until, request.limit);
                std::optional<time_point> beyond;
                if (!request.sweep && page.size() < request.limit) {
                    auto behind = request.after;
                    behind.run_at = request.until;
                    behind.id = task_id{(std::numeric_limits<std::int64_t>::max)()};
                    auto const first = store_.upcoming(behind, (time_point::max)(), 1);
                    if (!first.empty()) beyond = first.front().run_at;
                }
                std::lock_guard const guard{mutex_};
                auto const horizon = saturating_add(times_.reached(), settings_.read_ahead);
                window_.loaded(request, page, beyond, horizon);
                for (auto const& a : page)
                    if (a.run_at > horizon) {
                        plan_turn(saturating_add(a.run_at, -settings_.read_ahead.value()));
                        break;
                    }
                came = came || !page.empty();
            }
        } catch (...) {
            std::lock_guard const guard{mutex_};
            for (; at != requests.size(); ++at) window_.failed(requests[at]);
            must_load_ = true;
            throw;
        }
        check_gaps();
        return came;
    }

    void recovered_from_failure(std::vector<pending_event>& events) {
        std::lock_guard const guard{mutex_};
        if (failures_ == 0) return;
        failures_ = 0;
        note(events, event_kind::storage_up, nullptr, times_.reached());
    }

    /// The storage failed: everything the batch held is kept, and the storage is asked again after a pause that grows.
    void on_failure(batch& b, error const& e, std::vector<pending_event>& events) {
        std::lock_guard const guard{mutex_};
        auto const now = times_.reached();
        settling_ -= b.ended.size();
        for (auto& one : b.ended) {
            // What cannot be stored as it is, and never will be, must not stand in the way of the others for ever.
            if (!e.transient() && b.ended.size() == 1 && ++one.tries >= 3 && !one.follow_ups.empty()) {
                one.follow_ups.clear();
                one.end.outcome = attempt_outcome::exhausted;
                one.end.error = bounded_text(e.what(), error_limit);
            }
            finished_.push_back(std::move(one));
        }
        if (!e.transient() && b.ended.size() > 1) one_by_one_ = true;
        for (auto const& mine : b.noted) to_note_.push_back(mine);
        for (auto const& task : b.drawn) {
            auto const found = in_flight_.find(task.id);
            if (found != in_flight_.end() && !found->second) in_flight_.erase(found);
            window_.requeue(task);
        }
        for (auto const& step : b.steps)
            if (auto const place = timetable_.find(step.name)) timetable_.came_due(*place);
        if (b.sweep) must_sweep_ = true;
        if (failures_ == 0 || failure_ != e.what()) note(events, event_kind::storage_down, nullptr, now).text = e.what();
        failure_ = e.what();
        ++failures_;
        auto const shift = (std::min)(failures_, std::size_t{9});
        auto const longest = duration{10LL << shift}; // 20 ms to 5 s
        auto const jitter = duration{static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(longest.count() / 2))};
        retry_storage_at_ = times_.steady() + longest / 2 + jitter;
        settled_.notify_all();
    }

    /// Fills in the rest of an outcome, under the lock.
    void finish(claimed_attempt& a, finished_attempt& done, bool expired) {
        drop_marks(a);
        a.status = attempt_status::ended;
        auto& end = done.end;
        end.id = a.record.id;
        end.fence = a.record.fence;
        end.ended = (std::max)(times_.reached(), a.started);
        if (!expired) end.started = a.started;
        std::lock_guard const text{a.text_mutex};
        end.log = std::move(a.log);
        if (a.log_dropped != 0) end.log += "... " + std::to_string(a.log_dropped) + " lines left out\n";
        if (end.outcome == attempt_outcome::succeeded) {
            end.result = std::move(a.result);
            done.follow_ups = std::move(a.follow_ups);
        }
    }

    std::optional<task_view> shown(std::optional<task_record> record) const {
        if (!record) return std::nullopt;
        task_view view;
        static_cast<task_record&>(view) = std::move(*record);
        std::lock_guard const guard{mutex_};
        auto const busy = in_flight_.find(view.id);
        if (busy == in_flight_.end() || !busy->second) return view;
        auto& mine = *busy->second;
        if (mine.status != attempt_status::running || mine.record.fence != view.fence) return view;
        view.state = task_state::running;
        view.started = mine.started;
        view.over_expected = mine.over_expected;
        std::lock_guard const text{mine.text_mutex};
        view.progress = mine.progress;
        view.progress_note = mine.progress_note;
        return view;
    }

    // ---------------------------------------------------------------- members

    Storage store_;
    options const settings_;
    timekeeper<Clock> times_;
    node_id const self_;

    mutable std::mutex mutex_;
    std::condition_variable settled_; ///< something left the flight, or a handler returned
    std::condition_variable room_;    ///< a submit has ended

    splitmix64 random_;
    alarm_window window_;
    timing_wheel<mark> instants_; ///< by wall time: starts of what was claimed ahead, deadlines, schedules
    timing_wheel<mark> limits_;   ///< by steady time: timeouts and the like
    timetable timetable_;
    fair_queue<attempt_ptr, priority_class> waiting_to_start_;

    std::map<std::string, type_number, std::less<>> numbers_;
    std::unordered_map<type_number, std::unique_ptr<handler>> handlers_;
    std::vector<lane_state*> lanes_;
    std::unordered_map<task_id, attempt_ptr> in_flight_; ///< null while the claim is being committed
    std::map<task_id, due_task> suspects_;               ///< wait for the lonely run to end
    std::deque<finished_attempt> finished_;
    std::vector<attempt_ptr> to_note_;
    std::vector<std::pair<attempt_ptr, stop_reason>> to_stop_;
    std::array<std::size_t, priority_classes> claimed_{}; ///< waiting or queued
    std::size_t running_ = 0;                             ///< posted or running
    std::size_t inside_ = 0;                              ///< threads in run()
    std::size_t settling_ = 0;
    std::size_t submitting_ = 0;
    bool lonely_ = false;
    bool stopping_ = false;
    bool recovered_ = false;
    bool threaded_ = false;
    bool polling_ = false;
    task_id newest_{};
    task_id newest_before_poll_{};
    std::unordered_set<task_id> run_in_poll_;
    bool must_load_ = true;
    bool must_sweep_ = true;
    bool must_check_gaps_ = true;
    bool one_by_one_ = false; ///< one outcome spoils the commit of all: each is tried alone
    bool nudge_turn_ = false;
    bool nudge_pump_ = false;
    time_point turn_planned_at_ = (time_point::min)(); ///< when the one who turns looks next, by itself
    std::optional<time_point> next_deadline_;
    reclaim_answer recovery_;

    std::size_t failures_ = 0;
    std::string failure_;
    duration retry_storage_at_{};
    time_point last_now_;
    duration last_steady_;
};

} // namespace ax::detail

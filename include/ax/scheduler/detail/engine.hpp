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
#include "ax/scheduler/backfill.hpp"
#include "ax/scheduler/detail/alarm_window.hpp"
#include "ax/scheduler/detail/backfills.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/scheduler/detail/cleaning.hpp"
#include "ax/scheduler/detail/declared_document.hpp"
#include "ax/scheduler/detail/flight.hpp"
#include "ax/scheduler/detail/guest_submits.hpp"
#include "ax/scheduler/detail/handler_call.hpp"
#include "ax/scheduler/detail/host_name.hpp"
#include "ax/scheduler/detail/id_set.hpp"
#include "ax/scheduler/detail/named_waiters.hpp"
#include "ax/scheduler/detail/outbox.hpp"
#include "ax/scheduler/detail/storage_watch.hpp"
#include "ax/scheduler/detail/suspect_line.hpp"
#include "ax/scheduler/detail/timekeeper.hpp"
#include "ax/scheduler/detail/timetable.hpp"
#include "ax/scheduler/detail/trusted_time.hpp"
#include "ax/scheduler/explain.hpp"
#include "ax/scheduler/upkeep.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/clock.hpp"

#include <algorithm>
#include <atomic>
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

/// @throws error invalid_argument that names the member; `where` comes before it.
inline void check(retention_policy const& chosen, std::string const& where) {
    auto const refuse = [&](char const* why) { throw error(errc::invalid_argument, where + why); };
    if (chosen.age.value() <= duration{0}) refuse("retention.age is not positive");
    if (chosen.dead_age.value() <= duration{0}) refuse("retention.dead_age is not positive");
    if (chosen.count == 0) refuse("retention.count is 0");
}

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
    check(chosen.retention, "options: ");
    check_text(chosen.node_name, "node name", longest_name, true);
    if (chosen.node_name.empty()) chosen.node_name = machine_and_process();
    return chosen;
}

template <storage Storage, clock Clock, class Attempt = claimed_attempt, class Recurrence = recurrence>
class engine : public guest_desk {
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
    using new_member = later<ax::new_member>;
    using task_record = later<ax::task_record>;
    using task_view = later<ax::task_view>;
    using obstacle = later<ax::obstacle>;
    using wait_reason = later<ax::wait_reason>;
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
    using claim_offer = later<ax::claim_offer>;
    using offered_type = later<ax::offered_type>;
    using reclaim_answer = later<ax::reclaim_answer>;
    using schedule_record = later<ax::schedule_record>;
    using schedule_step = later<ax::schedule_step>;
    using schedule_answer = later<ax::schedule_answer>;
    using guest_task = later<detail::guest_task>;
    using guest_insertion = later<ax::guest_insertion>;
    using kept_step = later<ax::kept_step>;
    using prune_terms = later<ax::prune_terms>;
    using prune_answer = later<ax::prune_answer>;
    using finding = later<ax::finding>;
    using task_stats = later<ax::task_stats>;
    using backfill_record = later<ax::backfill_record>;
    using backfill_step = later<ax::backfill_step>;
    using backfill_answer = later<ax::backfill_answer>;

  public:
    using writer = typename Storage::writer;

    engine(Storage store, options chosen, Clock const& time)
        : store_(std::move(store)), settings_(checked(std::move(chosen))), times_(time),
          self_(node_id{system_random()}), random_(settings_.seed != 0 ? settings_.seed : system_random()),
          window_(times_.reached(), settings_.window, settings_.window_tasks, settings_.weights),
          flight_(times_.reached(), times_.steady(), settings_.workers, settings_.claimed_ahead, settings_.claimed_peak,
                  settings_.weights),
          timetable_(times_.reached()), waiters_(times_.reached()), suspects_(times_.steady()),
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
    bool recover();

    reclaim_answer recovery() const {
        std::lock_guard const guard{mutex_};
        return recovery_;
    }

    // ---------------------------------------------------------------- handlers

    void add_handler(std::string_view name, unique_function<void(context&, std::string_view)> call,
                     handler_options how);

    type_number number_of(std::string_view name);

    /// No task of the type is claimed while it is paused; claims that have not started are given back.
    void pause(std::string_view type, bool yes);

    // ---------------------------------------------------------------- limits

    void limit_tag(std::string_view tag, later<limit> const& how);

    void set_resource(std::string_view name, std::size_t capacity);

    // ---------------------------------------------------------------- tasks, as callers ask for them

    std::vector<insertion> submit(std::vector<submission> wanted);

    /// In a transaction of the host's. Waits for nothing that the storage's own writer may hold.
    template <class Connection>
    guest_insertion submit_in(Connection connection, submission wanted);

    /// What was submitted under that id in a transaction of the host's is stored now.
    void guest_committed(ax::task_id id) override;

    enum class cancel_answer : std::uint8_t { cancelled, stop_requested, too_late, unknown };

    cancel_answer cancel(task_id id);

    change_outcome retry(task_id id);

    change_outcome reschedule(task_id id, time_point when);

    // ---------------------------------------------------------------- workflows

    /// @param head  What was said of the workflow as a whole.
    template <class Workflow>
    insertion submit_workflow(Workflow const& wanted, submission head);

    change_outcome mark_succeeded(task_id id);

    rerun_answer rerun(task_id id, rerun_scope scope);

    change_outcome pause_workflow(task_id id, bool yes);

    std::vector<later<member_record>> members(task_id id) const;

    std::vector<task_view> critical_path(task_id id) const;

    // ---------------------------------------------------------------- schedules

    schedule_record declare(std::string_view name, Recurrence const& how, std::string_view type, std::string payload,
                            later<schedule_options> chosen);

    template <class Workflow>
    schedule_record declare_workflow(std::string_view name, Recurrence const& how, Workflow const& wanted,
                                     later<schedule_options> chosen);

    /// Declares what a document defines; see scheduler::declare().
    template <class Definitions>
    later<ax::declared> declare_all(Definitions wanted, bool prune);

    later<ax::workflow> workflow_named(std::string_view name) const;

    bool forget(std::string_view name);

    bool pause_schedule(std::string_view name);

    bool resume_schedule(std::string_view name, resume_policy how);

    std::vector<later<firing>> preview(std::string_view name, std::size_t most) const;
    later<skip_log> skips(std::string_view name) const;
    later<std::string> why_no_more(std::string_view name) const;

    insertion run_now(std::string_view name);

    later<backfill_report> backfill(std::string_view name, time_point from, time_point to,
                                    later<backfill_options> const& chosen);

    bool stop_backfill(std::uint64_t number);

    period_outcome mark_catch_up(std::string_view name, time_point nominal);

    period_outcome release(std::string_view name, time_point nominal, priority_class urgency);

    /// Those of a range; returns how many.
    std::size_t release(std::string_view name, time_point from, time_point to, priority_class urgency);

    // ---------------------------------------------------------------- reads

    std::optional<task_view> find(task_id id) const {
        refuse_in_isolated_child("find");
        return shown(store_.find(id));
    }
    /// Of a workflow that was rerun as a whole its latest generation has no key of its own.
    std::optional<task_view> find_by_key(std::string_view key) const {
        refuse_in_isolated_child("find_by_key");
        auto found = store_.find_by_key(key);
        auto const whole = found && found->in_workflow ? store_.workflow(found->id) : std::nullopt;
        if (!whole || whole->head == found->id) return shown(std::move(found));
        auto latest = store_.find(whole->head);
        if (!latest) return shown(std::move(found));
        latest->key = found->key;
        latest->key_released = found->key_released;
        return shown(std::move(latest));
    }

    std::vector<task_view> list(task_filter const& wanted) const;

    std::vector<attempt_view> history(task_id id) const;

    /// Why a task is not running now: at least one reason.
    std::vector<wait_reason> explain(task_id id) const;

    Storage const& store() const noexcept { return store_; }

    struct health_numbers {
        bool storage_ok = true;
        std::string storage_error;
        std::size_t consecutive_failures = 0;
        std::size_t running = 0;
        std::size_t claimed = 0;
        std::size_t unsettled = 0;
        std::size_t in_memory = 0;
        std::size_t pruned = 0;
        std::string prune_error;
        bool clock_in_doubt = false;
    };

    health_numbers health() const {
        std::lock_guard const guard{mutex_};
        return {!watch_.down(),      watch_.down() ? watch_.failure() : std::string{},
                watch_.failures(),   flight_.running(),
                flight_.claimed(),   outbox_.size(),
                window_.size(),      cleaning_.total(),
                cleaning_.failure(), trust_.doubts()};
    }

    // ---------------------------------------------------------------- upkeep

    task_stats stats() const;

    /// Finds states that cannot come about.
    std::vector<finding> verify(bool repair);

    /// How long the one who calls pump() may sleep, at most `most`: a clean-up that goes on, and tasks of which it is
    /// not known whether they are stored, ask for it earlier.
    duration until_next_errand(duration most) const {
        std::lock_guard const guard{mutex_};
        if (stopping_) return most;
        if (cleaning_.in_pass()) most = (std::min)(most, cleaning_.pause_left(times_.steady()));
        if (backing_off()) return most;
        return (std::min)(most, guests_.next_look(times_.steady()).value_or(most));
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
            waiters_.turn(now, [this](due_task const& task) { window_.requeue(task); });
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
            next = saturating_add(now, watch_.pause_left(times_.steady()));
        } else if (!recovered_ || must_load_ || pump_has_work(now) || flight_.may_start()) {
            next = now;
        } else {
            next = next_turn(duration{0});
            for (auto const* lane : lanes_) next = earlier(next, window_.next_read(*lane));
            next = earlier(next, next_deadline_);
            if (auto const pause = guests_.next_look(times_.steady()); pause && !stopping_)
                next = earlier(next, saturating_add(now, *pause));
            if (cleaning_.in_pass() && !stopping_)
                next = earlier(next, saturating_add(now, cleaning_.pause_left(times_.steady())));
            if (next) next = (std::max)(*next, now);
        }
        turn_planned_at_ = next.value_or((time_point::max)());
        return next;
    }

    /// One exchange with the storage. Returns whether it moved anything. Errors of the storage are kept for health(),
    /// and nothing is lost: what could not be recorded is recorded by a later pump().
    bool pump();

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

    /// The executor dropped what it was handed. The caller has called begin() on it: nobody takes it back meanwhile.
    void dropped(attempt_ptr const& mine) noexcept {
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

    /// How long a stop waits for handlers that it has asked: their grace, at whose end child processes are killed, and
    /// then a moment for these.
    duration stop_patience() const {
        auto const grace = settings_.stop_grace.value();
        std::lock_guard const guard{mutex_};
        bool const any = std::any_of(handlers_.begin(), handlers_.end(),
                                     [](auto const& one) { return one.second->how->isolation != isolation::none; });
        return any ? saturating_add(time_point{grace}, duration{2'000}).time_since_epoch() : grace;
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
        return wait_until(limit, [&] {
            std::lock_guard const guard{mutex_};
            return !flight_.contains(id);
        });
    }

    /// Waits until the workflow has ended; false where `limit` passed first.
    bool wait_workflow_ended(task_id id, duration limit) {
        return wait_until(limit, [&] {
            auto const whole = store_.workflow(id);
            return !whole || is_terminal(whole->state);
        });
    }

    /// Waits until `done()`; false where `limit` passed first.
    template <class Done>
    bool wait_until(duration limit, Done&& done) {
        auto const end = saturating_add(time_point{times_.steady()}, limit);
        while (!done()) {
            auto const left = end - time_point{times_.steady()};
            if (left <= duration{0}) return false;
            {
                std::unique_lock lock{mutex_}; // what ended between the look and here is seen after 20 ms
                settled_.wait_for(lock, (std::min)(left, duration{20}));
            }
            if (!threaded_) pump(); // nobody else may store the outcome
        }
        return true;
    }

    /// Waits, at most for `limit`, until every outcome is stored.
    bool wait_settled(duration limit) {
        std::unique_lock lock{mutex_};
        return settled_.wait_for(lock, bounded(limit), [&] { return outbox_.open() == 0 && offers_ == 0; });
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

    /// True while outcomes wait for the storage that it may still take, or may come from a claim under way.
    bool unsettled() const {
        std::lock_guard const guard{mutex_};
        return outbox_.open() != 0 || offers_ != 0;
    }

    bool pump_has_work() const {
        std::lock_guard const guard{mutex_};
        return !backing_off() && (must_load_ || pump_has_work(times_.reached()));
    }

    bool storage_down() const {
        std::lock_guard const guard{mutex_};
        return watch_.down();
    }

    /// The next pump() also looks for what has been lost from memory, and for deadlines.
    void sweep_soon() {
        std::lock_guard const guard{mutex_};
        must_sweep_ = true;
    }

    /// @param posts_at_once  Any thread may hand attempts to the executor, for it runs none inside of that call.
    void set_threaded(bool yes, bool posts_at_once = false) {
        std::lock_guard const guard{mutex_};
        threaded_ = yes;
        posts_at_once_ = posts_at_once;
        turned_at_ = times_.steady();
    }

    options const& settings() const noexcept { return settings_; }
    timekeeper<Clock> const& times() const noexcept { return times_; }

  private:
    static constexpr std::size_t expire_size = 256; ///< deadlines handled in one commit
    static constexpr std::size_t waiting_size = 64; ///< limits looked at in one read

    /// Leave for one transaction of this thread's to claim at once what it makes due, within the room that there is in
    /// flight. What waits in memory for a claim goes first: there is no leave for its class. Only where a thread of
    /// ours drives; a host that polls says itself when tasks run.
    ///
    /// Between the commit and take() nobody here knows what was claimed, which is why open offers are counted: who
    /// looks for a task that is in flight and not in memory waits for them.
    class claims_at_once {
        static constexpr bool supported = eager_writer<writer>;

      public:
        explicit claims_at_once(engine& owner) noexcept : owner_(owner) {}
        claims_at_once(claims_at_once const&) = delete;
        claims_at_once& operator=(claims_at_once const&) = delete;
        ~claims_at_once() {
            {
                std::lock_guard const guard{owner_.mutex_};
                close();
            }
            owner_.settled_.notify_all();
            owner_.flush();
        }

        /// Under the engine's mutex.
        /// @param wanted  How many of each class are made due, at most.
        /// @param pump    What is being claimed is claimed in the same commit, and goes first all the same.
        void open(std::array<std::size_t, priority_classes> const& wanted, bool pump = false);

        /// To be called first in the transaction, each time that it is run.
        void give(writer& w) {
            if constexpr (supported) {
                if (!open_) return;
                offer_.claimed.clear();
                offer_.room = room_;
                w.offer(offer_);
            }
        }

        /// What was claimed is in flight from now on. Under the engine's mutex, after the commit.
        /// @param entered  Gets those that are to be admitted.
        void take(std::vector<attempt_ptr>& entered);

      private:
        void close();

        engine& owner_;
        bool open_ = false;
        std::array<std::size_t, priority_classes> room_{};
        std::shared_ptr<std::vector<offered_type> const> types_; ///< which offer_ looks at
        claim_offer offer_;
    };

    /// What one pump() carries to the storage and brings back.
    struct batch {
        std::vector<finished_attempt> ended; ///< those that are stored already come last
        std::size_t sent = 0;                ///< how many of them are not
        std::vector<finished_attempt>
            settled_ones; ///< kept until no lock is held: what handlers captured goes with them
        std::vector<attempt_ptr> noted;
        std::vector<due_task> drawn;
        std::vector<schedule_step> steps;
        bool sweep = false;
        bool alone = false; ///< one thing only, to find out what it is that cannot be stored

        settlement settled;
        claim_answer claims;
        std::vector<schedule_answer> stepped;
        expiry expired;
        std::optional<claims_at_once> leave;
        std::vector<attempt_ptr> entered; ///< claimed, and not let to their handlers yet

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
            refuse_in_isolated_child("submit");
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
        refuse_in_isolated_child("a change of the store");
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

    /// A commit may have been made without our knowing: what it has changed is read from the store. What it made
    /// claimable fills memory anew, and a run may have ended that a fixed delay waits for.
    void read_anew() {
        window_.reset(times_.reached(), lanes_);
        must_load_ = must_look_ = must_sweep_ = must_relearn_ = true;
        timetable_.run_ended();
        backfills_.read_anew();
    }

    handler_type* handler_of(lane_id lane) const {
        auto const found = handlers_.find(type_of(lane));
        return found == handlers_.end() ? nullptr : found->second.get();
    }

    /// The types of which something may be claimed at once. Under the mutex.
    std::shared_ptr<std::vector<offered_type> const> offered_types();

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
        if (next)
            next = (std::max)(saturating_add(*next, -ahead),
                              saturating_add(window_.position(), -settings_.read_ahead.value()));
        next = earlier(earlier(next, timetable_.next_turn()), waiters_.next_expiry());
        if (auto const pause = suspects_.pause_left(times_.steady()))
            next = earlier(next, saturating_add(times_.reached(), *pause));
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
        // What this thread has set it sees, and each calls this after what it has set: no lock is needed to look.
        if (nudge_turn_.load() && nudge_turn_.exchange(false) && on_nudge_turn) on_nudge_turn();
        if (nudge_pump_.load() && nudge_pump_.exchange(false) && on_nudge_pump) on_nudge_pump();
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
            auto& lane = by->lanes[static_cast<std::size_t>(class_of(a.lane))];
            if (a.waits) {
                arm_waiter(lane, a, next_poll);
                continue;
            }
            window_.arm(lane, a, next_poll ? (time_point::min)() : horizon);
            if (a.run_at <= horizon)
                nudge_pump_ = true;
            else
                plan_turn(saturating_add(a.run_at, -settings_.read_ahead.value()));
        }
    }

    /// @throws error invalid_argument that names what is wrong.
    static void check_limits(std::string_view name, later<handler_options> const& how);

    alarms store_limits(type_number number, later<handler_options> const& how);

    void arm_waiter(lane_type& lane, alarm const& a, bool next_poll) {
        if (!lane.runnable || !waiters_.name(a.id, a.run_at)) return; // a type that is resumed is looked at anew
        due_task const task{a.id, &lane};
        if (a.run_at <= times_.reached() && !next_poll) {
            window_.requeue(task);
            nudge_pump_ = true;
        } else {
            waiters_.wait(task, a.run_at);
            plan_turn(a.run_at);
        }
    }

    /// Tasks have ended without a run here: one may be what a schedule waits for.
    void run_ended(std::vector<task_id> const& ids) {
        {
            std::lock_guard const guard{mutex_};
            for (auto const id : ids) timetable_.run_ended(id);
            backfills_.wake();
            if (timetable_.any_gap() || backfills_.wants_look()) nudge_pump_ = true;
        }
        flush();
    }

    void place(schedule_record const& record) {
        timetable_.put(record, times_.reached());
        if (record.next && !record.paused) plan_turn(*record.next); // a spread makes it look once in vain
        if (timetable_.any_gap()) nudge_pump_ = true;
    }

    // ---------------------------------------------------------------- taking claimed tasks back

    struct taken_back {
        attempt_ptr running; ///< its handler is at work: nothing was taken
        attempt_ptr revoked; ///< it was claimed and will not start; the caller settles it
    };

    /// What this process holds of a task: nothing, its running attempt, or a claim that is now the caller's to settle.
    taken_back take_back(task_id id);

    /// True where a change failed only because the task was claimed here between two looks at it.
    bool claimed_meanwhile(task_id id, change const& made);

    attempt_end end_of(Attempt const& mine, attempt_outcome how) const {
        attempt_end end;
        end.id = mine.record.id;
        end.fence = mine.record.fence;
        end.outcome = how;
        end.ended = times_.reached();
        return end;
    }

    /// What memory does when a type is paused or resumed. Returns the claims that are taken back, for the caller to
    /// settle.
    std::vector<attempt_ptr> set_paused(handler_type& which, bool yes) {
        which.paused = yes;
        offered_types_.reset();
        for (auto& lane : which.lanes) window_.set_runnable(lane, !yes);
        must_load_ = must_look_ = true;
        nudge_pump_ = true;
        if (!yes) return {};
        return flight_.revoke_all([&](Attempt const& mine) { return mine.handled_by == &which; });
    }

    /// Leaves a revoked attempt for the next pump().
    void give_back(attempt_ptr const& mine) {
        finished_attempt done;
        done.what = mine;
        done.end = end_of(*mine, attempt_outcome::released);
        outbox_.put(std::move(done));
        nudge_pump_ = true;
    }

    /// Records revoked attempts at once, on the caller's thread, in one commit with `also`.
    template <class Also>
    void settle_revoked(std::vector<attempt_ptr> revoked, attempt_outcome how, Also&& also);

    void leave_flight(Attempt const& mine) {
        flight_.leave(mine);
        if (!mine.record.lonely || suspects_.alone() != mine.record.id) return;
        suspects_.landed();
        try_next_suspect();
    }

    /// Lets one suspect be claimed, where none is in flight.
    void try_next_suspect() {
        while (auto const next = suspects_.next(times_.steady())) {
            if (!next->lane->runnable) continue; // read again when its type is resumed
            window_.requeue(*next);
            nudge_pump_ = true;
            return;
        }
    }

    // ---------------------------------------------------------------- time

    /// A thread of ours looks each second. Where it has not for longer than this, it or the machine slept.
    static constexpr duration longest_look_away{5'000};

    /// Notices a wall clock that was set back: what memory holds by wall time is built anew. Also a sleep that the
    /// steady clock counts, where a thread of ours turns; a host may poll as rarely as it likes.
    void notice_clock(time_point now, duration steady) {
        if (threaded_ && steady - turned_at_ > longest_look_away) watching_since_ = now;
        turned_at_ = steady;
        auto const lead = now.time_since_epoch() - steady;
        if (lead - clock_lead_ > punctual) watching_since_ = now; // it leapt, or the machine slept
        if (lead > clock_lead_) clock_lead_ = lead;
        if (clock_lead_ - lead <= duration{100}) return; // small steps add up until they count
        clock_lead_ = lead;
        watching_since_ = now;
        window_.reset(now, lanes_);
        timetable_.set_back(now);
        for (auto const& mine : flight_.set_back(now, saturating_add(now, settings_.read_ahead))) give_back(mine);
        must_load_ = must_look_ = true;
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
        } else if (!start_is_stored(mine)) {
            done.end.outcome = attempt_outcome::released;
        } else {
            mine->store = &attempt_store_;
            done.end = handler_call{*mine, times_, settings_.payload_limit, jitter, settings_.stop_grace.value()}();
            done.end.started = mine->started;
        }
        return true;
    }

    /// A handler that must not run twice is called only once the store knows that it was: after a crash, what had
    /// started waits for a person, and what had not runs. False where the store could not be told, whatever it threw:
    /// then the storage is asked again after a pause, so that nobody claims and gives back in a loop.
    bool start_is_stored(attempt_ptr const& mine) {
        if (!mine->record.hold_on_interrupt) return true;
        start_mark const mark{mine->record.id, mine->record.fence, mine->started};
        std::vector<pending_event> events;
        auto const failed = [&](std::string const& why) {
            std::lock_guard const guard{mutex_};
            if (watch_.failed(why, times_.steady(), random_()))
                note(events, event_kind::storage_down, nullptr, times_.reached()).text = why;
        };
        try {
            store_.transact(commit::lazy, [&](writer& w) { w.start({&mark, 1}, times_.reached()); });
            return true;
        } catch (std::exception const& e) {
            failed(e.what());
        } catch (...) {
            failed("it threw something that is no std::exception");
        }
        send(events);
        return false;
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
            done.additions = std::move(mine.additions);
            done.effects = std::move(mine.effects);
            end.effects = done.effects.get();
        }
    }

    // ---------------------------------------------------------------- the pump's parts

    bool backing_off() const { return watch_.backing_off(times_.steady()); }

    bool pump_has_work(time_point now) const {
        return !outbox_.empty() || !handed_in_.empty() || alone_ != 0 || !to_note_.empty() || must_sweep_ ||
               timetable_.any_gap() || (must_relearn_ && recovered_ && offers_ == 0) ||
               (backfills_.wants_look() && !stopping_) || (next_deadline_ && *next_deadline_ <= now) ||
               (!stopping_ && (must_look_ || window_.any_due(flight_.open_classes()) || timetable_.any_due()));
    }

    /// What cannot be stored must not stand in the way of the rest: after a commit that failed for another reason than
    /// a storage that is away, what it carried goes by itself, one thing at a time and each kind in turn.
    void collect_one(batch& b, time_point now);

    void collect(batch& b, time_point now);

    /// Draws due tasks to be claimed, as many as there is room for.
    void draw(batch& b, std::size_t most);

    /// Looks up outcomes whose commit got no answer: those that are stored are not sent again.
    void read_back(batch& b);

    void exchange(batch& b);

    /// Lets what a submit has claimed go on: to its handlers, or where the pump's thread takes it from.
    void start_claimed(batch& b);

    /// What the ends of tasks of a workflow let go may be claimed in the same commit. Under the mutex.
    void offer_to_children(batch& b);

    /// Looks up what else such a commit may have done: claims that it made are given back, and schedules stand as the
    /// store has them. Returns whether there was a claim.
    bool relearn();

    template <class Node>
    new_member member_of(Node const& node, new_task const& common, time_point now);

    template <class Workflow>
    void become(new_task& head, Workflow const& wanted, time_point now, bool says_priority);

    void complete(new_task& occurrence, time_point now);

    void complete(schedule_step& step, time_point now);
    void complete(backfill_step& step, time_point now);
    later<std::string> complete_or_say(new_task& occurrence, time_point now);

    static schedule_answer step_or_leave_out(writer& w, schedule_step const& step, time_point now);

    void plan_deadlines(new_task const& task);

    /// Schedules that have moved on or are waited for: some of their occurrences may not come any more.
    struct moved_schedules {
        struct one {
            std::string name;
            bool over; ///< once it has no next instant
        };
        std::vector<one> all;
    };

    static void add_awaited(std::vector<std::string>& schedules, new_task const& task);
    moved_schedules known_of(std::vector<std::string> schedules) const;
    moved_schedules moved_by(backfill_step const& step, std::string const& schedule) const;
    /// Decides who waits for what does not come any more. To be called in the transaction that makes it so.
    void end_waits(writer& w, moved_schedules const& moved, alarms& due) const;
    void end_waits(writer& w, schedule_record const& moved, alarms& due) const;

    bool makes_workflows(type_number number);

    type_number workflow_number();

    schedule_record checked_schedule(std::string_view name, Recurrence const& how, std::string_view type,
                                     std::string payload, later<schedule_options> chosen) const;

    template <class Definitions>
    std::vector<schedule_record> checked_document(Definitions const& wanted) const;

    /// The names of those that an earlier document declared.
    std::vector<std::string> declared_before() const;

    alarms change_handlers(writer& w, later<declared_document<std::string>> const& by);

    /// The priority of tasks of a type where nothing is said of them.
    priority_class usual_priority(std::string_view type) const {
        if (!any_priority_.load(std::memory_order_relaxed)) return priority_class::normal;
        std::lock_guard const guard{mutex_};
        return declared_.priority_of(type);
    }

    template <class Verb>
    change change_task(Verb&& verb);

    std::optional<schedule_record> find_schedule(std::string_view name) const;

    /// @throws error invalid_argument where there is none.
    schedule_record known_schedule(std::string_view name) const;

    static void check_urgency(priority_class urgency) {
        if (urgency > priority_class::low)
            throw error(errc::invalid_argument,
                        "priority " + std::to_string(static_cast<int>(urgency)) + " is no priority class");
    }

    static backfill_step fill_step(backfill_record const& from, schedule_record const& record,
                                   schedule_meaning<Recurrence> const& means);

    void plan_deadlines_of(backfill_step const& step);

    void took_fill(backfill_answer const& answer);

    /// Backfills go on where some of what they made has ended. Returns whether anything was made.
    bool fill_backfills();

    template <class Decide>
    bool change_schedule(std::string_view name, Decide&& decide);

    /// Somebody beside their handlers wants these tasks to stop. A claim that has not started is given back.
    void stop_asked(std::vector<task_id> const& asked);

    void apply(batch& b, std::vector<pending_event>& events);

    void apply_settlement(batch& b, time_point now, std::vector<pending_event>& events);

    void apply_claims(batch& b, time_point now, std::vector<pending_event>& events);

    /// Tells of what submits have claimed and admits it, where there is an observer: no submit calls that.
    bool admit_handed_in();

    /// Lets what was claimed to its handlers, now or at its instant.
    void admit(batch& b);

    /// Reads the next page of each lane that wants one. Returns whether anything came.
    bool read_pages(bool sweep);

    /// Learns what others have done to the store beside this process: pauses, and wishes that a task should stop.
    void look_around();

    bool read_page(page_request const& request);

    /// Reads who waits for limits and may go: all where memory has forgotten them, else, in a sweep, a few limits in
    /// turn. Returns whether anybody.
    bool read_waiters(bool sweep);

    /// Fixed delays whose run has ended get their next instant. It counts from what the store knows, so that an end of
    /// the process between the run and this step loses nothing.
    void fill_gaps();
    void fill(typename plan_type::gap const& gap);
    bool was_met(typename plan_type::gap const& gap, time_point instant) const;

    /// Asks the store for what was submitted in transactions of the host's. Returns whether any of it has come.
    bool look_for_guests();

    void storage_answered(std::vector<pending_event>& events);

    /// The storage failed: all that the batch held is kept, and the storage is asked again after a pause that grows.
    void storage_failed(batch& b, error const& e, std::vector<pending_event>& events);

    /// Removes some of what has ended, where it is time for that. At most one commit.
    void clean(bool busy);
    void begin_cleaning();
    void clean_some();

    /// What the store is to know of the clock with the next commit: nothing within a minute of the last time, nor,
    /// where nothing else is written, unless a confirmation is under way and ten minutes have passed.
    std::string clock_to_keep(bool writes) const {
        auto const passed = times_.steady() - clock_kept_at_;
        bool const wanted = writes ? passed >= duration{60'000} : trust_.doubts() && passed >= duration{600'000};
        return wanted && recovered_ ? trust_.text(times_.steady()) : std::string{};
    }

    void find_lost(std::vector<finding>& all, bool repair);

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
    std::atomic<bool> any_priority_{false}; ///< whether a document gives one to a task type
    attempt_store_of<Storage> attempt_store_{store_, how_durable()};

    std::mutex recover_mutex_;
    std::mutex pause_mutex_;          ///< one pause(), resume(), on(), set_resource() or declare_all() at a time
    std::mutex schedules_mutex_;      ///< one of them is declared, removed or changed at a time; behind pause_mutex_
    mutable std::mutex mutex_;        ///< guards all below
    std::condition_variable settled_; ///< something left the flight, or a handler returned
    std::condition_variable room_;    ///< a submit has ended

    splitmix64 random_;
    window_type window_;
    flight<Attempt> flight_;
    plan_type timetable_;
    backfill_list<Storage> backfills_;
    outbox<Attempt> outbox_;

    later<declared_document<std::string>> declared_;
    std::map<std::string, type_number, std::less<>> numbers_;
    std::vector<task_id> held_back_; ///< of workflows paused or cancelled: given back once their claim is known
    std::map<type_number, bool> workflow_types_; ///< whether it is the type of workflows
    std::unordered_map<type_number, std::unique_ptr<handler_type>> handlers_;
    std::vector<lane_type*> lanes_;   ///< of all handlers
    named_waiters<due_task> waiters_; ///< for limits
    suspect_line<due_task> suspects_;
    std::vector<attempt_ptr> to_note_;
    guest_submits<guest_task> guests_;
    std::size_t inside_ = 0;                               ///< threads in run()
    std::size_t submitting_ = 0;                           ///< tasks in submits under way
    std::size_t offers_ = 0;                               ///< transactions under way that may claim
    std::array<std::size_t, priority_classes> claiming_{}; ///< drawn, and not claimed yet
    std::vector<attempt_ptr> handed_in_;                   ///< claimed by submits, and not admitted yet
    bool relearning_ = false;
    std::shared_ptr<std::vector<offered_type> const> offered_types_; ///< of handlers that may run; null: to be found
    bool stopping_ = false;
    bool recovered_ = false;
    bool threaded_ = false;
    bool posts_at_once_ = false; ///< see set_threaded()
    bool must_load_ = true;      ///< a lane may want a page
    bool must_sweep_ = true;
    bool must_relearn_ = false;  ///< a commit may have been made that memory knows nothing of
    bool must_look_ = true;      ///< memory does not know who waits for limits
    limit_number swept_limit_{}; ///< the last one that a sweep has looked at
    std::optional<time_point> next_deadline_;
    reclaim_answer recovery_;

    std::size_t alone_ = 0;     ///< how many commits carry one thing only
    std::size_t next_kind_ = 0; ///< of what the next of them carries
    std::atomic<bool> nudge_turn_{false};
    std::atomic<bool> nudge_pump_{false};
    time_point turn_planned_at_ = (time_point::min)(); ///< when the one who turns looks next, by itself

    bool polling_ = false;
    task_id newest_{};
    task_id newest_before_poll_{};
    id_set<task_id> run_in_poll_;

    storage_watch watch_;
    cleaning<Storage> cleaning_;
    trusted_time trust_;
    duration clock_kept_at_ = duration{-3'600'000};   ///< steady time
    time_point watching_since_ = (time_point::max)(); ///< without a break: what came due before was missed
    duration turned_at_{0};                           ///< steady time of the latest turn
    duration clock_lead_; ///< of the wall clock over the steady one, the most since it was set back
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/dispatch/executor.hpp"
#include "ax/dispatch/thread_pool.hpp"
#include "ax/scheduler/context.hpp"
#include "ax/scheduler/detail/engine.hpp"
#include "ax/scheduler/detail/waker.hpp"
#include "ax/scheduler/registry.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/task/options.hpp"
#include "ax/task/task_type.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ax {

/// The answer to a submit: the task, new or found by its key, and what was done.
struct submitted {
    task_id id{};
    submit_outcome outcome = submit_outcome::inserted;
    task_state state = task_state::ready;
};

/// The answer to a cancel.
enum class cancel_outcome : std::uint8_t {
    cancelled,      ///< it will not run
    stop_requested, ///< its handler is at work and was asked to stop
    too_late,       ///< it had ended already
    unknown         ///< there is no such task
};

/// What a stop came to.
struct stop_report {
    std::size_t finished = 0;      ///< handlers that returned while the stop waited
    std::size_t released = 0;      ///< claimed tasks that had not started and were given back
    std::size_t still_running = 0; ///< handlers that have not returned yet
};

/// How a scheduler and its storage are.
struct health_report {
    bool storage_ok = true;
    std::string storage_error;            ///< the latest; empty while all is well
    std::size_t consecutive_failures = 0; ///< of the storage
    std::size_t running = 0;              ///< handlers at work
    std::size_t claimed = 0;              ///< tasks claimed and not yet started
    std::size_t unsettled = 0;            ///< attempts that have ended and whose outcome is not stored yet
    std::size_t in_memory = 0;            ///< ids of tasks that are due, now or soon
    std::size_t recovered = 0; ///< tasks that an unclean end had cut off and that were taken over at the start
    std::size_t poisoned = 0;  ///< of those, how many are dead now
    std::string node_name;
};

/// A durable scheduler: keeps tasks in a storage and runs each when it is due.
///
/// Either start() it, then it has threads of its own, or call poll() from a loop of the host's.
///
/// @tparam Storage   Where tasks live; owned.
/// @tparam Clock     Tells the time; held by reference, and must live longer.
/// @tparam Executor  Runs handlers: thread_pool for one of the scheduler's own, or a host's, held by reference.
/// Threads: all members may be called from any thread at once and from inside handlers, but for the constructor, the
///          destructor, on(), observe(), on_wakeup(), adopt_registered() and start(), which belong to one thread.
/// Errors:  every call that reaches the storage may throw error unavailable, disk_full, corrupt or outcome_unknown.
template <storage Storage, clock Clock = system_clock, class Executor = thread_pool>
class scheduler {
    static constexpr bool own_pool = std::same_as<Executor, thread_pool>;
    static_assert(own_pool || executor<Executor>, "an executor has execute(f) for a move-only f()");

    // As dependent names, so that a unit that only includes this does not pay for its code: see detail::dependent.
    template <class T>
    using later = detail::dependent<T, Storage>;
    using submitted = later<ax::submitted>;
    using task_view = later<ax::task_view>;
    using attempt_view = later<ax::attempt_view>;
    using schedule_record = later<ax::schedule_record>;
    using submission = later<detail::submission>;
    using attempt_ptr = later<detail::attempt_ptr>;
    using pool_type = later<thread_pool>;

  public:
    /// @param store   Taken over.
    /// @param chosen  See options. Errors: invalid_argument names the member that is wrong.
    template <class C = Clock> // a template, for Clang 14 instantiates members whose constraints do not hold
        requires(std::same_as<C, system_clock>&& own_pool)
    explicit scheduler(Storage store, ax::options chosen = {})
        : scheduler(std::move(store), std::move(chosen), machine_clock) {}

    scheduler(Storage store, ax::options chosen, Clock const& time) requires own_pool
        : engine_(std::move(store), std::move(chosen), time) {
        connect();
    }

    scheduler(Storage store, ax::options chosen, Clock const& time, Executor& runs_on)
        : executor_(std::addressof(runs_on)), engine_(std::move(store), std::move(chosen), time) {
        connect();
    }

    scheduler(scheduler const&) = delete;
    scheduler& operator=(scheduler const&) = delete;

    /// Stops, if that has not been done, and waits for every handler to return.
    ~scheduler() {
        try {
            stop(duration{0});
        } catch (...) { // what could not be recorded is found by the next start
        }
        finish();
    }

    // ------------------------------------------------------------ handlers

    /// Registers the handler of a task type, before or after start().
    ///
    /// @param work  Called as work(payload, context), work(payload), work(context) or work(); what it returns, if
    ///              anything, is kept as the task's result (any value that JSON can hold). It need not be copyable, and
    ///              is called from several threads at once. What it throws makes the attempt fail; see
    ///              ax/retry/verdict.hpp.
    /// Errors: invalid_argument where the type has a handler already or an option is wrong.
    template <class Payload, class Work>
    void on(task_type<Payload> const& type, Work&& work, handler_options how = {}) {
        engine_.add_handler(type.name, wrap<Payload>(std::string(type.name), std::forward<Work>(work)), std::move(how));
    }

    /// Registers all that AX_TASK and AX_CRON have declared. Returns how many; 0 where that has been done before.
    std::size_t adopt_registered() {
        std::size_t adopted = 0;
        if (std::exchange(adopted_, true)) return 0;
        for (auto const* one = detail::registered_handler::first(); one != nullptr; one = one->next, ++adopted) {
            engine_.add_handler(one->name, one->call, {});
            if (!one->cron.empty()) engine_.declare(one->name, cron{std::string(one->cron)}, one->name, {});
        }
        return adopted;
    }

    /// Sends every event to `observer`, from the thread on which it arises and never under a lock. Before start().
    void observe(unique_function<void(event const&)> observer) { engine_.observer = std::move(observer); }

    // ------------------------------------------------------------ submit

    /// Stores a task. When this returns, it is durable, as options::durability says.
    ///
    /// Errors: invalid_argument names what is wrong, and nothing is stored; stopped after stop(); queue_full where too
    /// many
    ///         submits are under way and the caller is a handler (others wait).
    template <class Payload>
    submitted submit(task_type<Payload> const& type, std::type_identity_t<Payload> const& payload = {},
                     submit_options how = {}) {
        std::vector<submission> one;
        one.push_back(prepare(type, payload, std::move(how)));
        auto const answer = engine_.submit(std::move(one)).front();
        return {answer.id, answer.outcome, answer.state};
    }

    /// Stores many tasks in one commit. `how_each(payload)` gives the options of each.
    /// @return  An answer for each, in order.
    template <class Payload, class Range, std::invocable<Payload const&> HowEach>
    std::vector<submitted> submit_all(task_type<Payload> const& type, Range const& payloads, HowEach&& how_each) {
        std::vector<submission> all;
        for (auto const& payload : payloads) all.push_back(prepare(type, payload, how_each(payload)));
        std::vector<submitted> answers;
        if (all.empty()) return answers;
        answers.reserve(all.size());
        for (auto const& one : engine_.submit(std::move(all))) answers.push_back({one.id, one.outcome, one.state});
        return answers;
    }

    template <class Payload, class Range>
    std::vector<submitted> submit_all(task_type<Payload> const& type, Range const& payloads) {
        return submit_all(type, payloads, [](Payload const&) { return submit_options{}; });
    }

    // ------------------------------------------------------------ schedules

    /// Declares a schedule: cron, every, after_each or once. It is kept in the store. Declaring the same one again
    /// changes nothing; another definition under the same name replaces it, and its next occurrence is counted from
    /// now.
    ///
    /// Occurrences missed while nothing ran are made up by one; an occurrence that comes while the one before has not
    /// ended is left out. Both are counted. Errors: invalid_argument for a bad name, a period that is not positive, a
    /// cron that never occurs.
    template <class Payload>
    schedule_record schedule(std::string_view name, detail::recurrence const& how, task_type<Payload> const& type,
                             std::type_identity_t<Payload> const& payload = {}) {
        return engine_.declare(name, how, type.name, detail::encode_payload(payload, type.name));
    }

    /// Removes a schedule; tasks it has created stay. Returns whether there was one.
    bool unschedule(std::string_view name) { return engine_.forget(name); }

    /// All schedules, by name.
    std::vector<schedule_record> schedules() const { return engine_.store().schedules(); }

    // ------------------------------------------------------------ looking and steering

    std::optional<task_view> find(task_id id) const { return engine_.find(id); }
    std::optional<task_view> find_by_key(std::string_view key) const { return engine_.find_by_key(key); }

    /// Tasks by state, type and how long they have been in their state; see task_filter.
    std::vector<task_view> list(task_filter const& wanted = {}) const { return engine_.list(wanted); }

    /// Every attempt of a task, the first one first; empty for an unknown task.
    std::vector<attempt_view> history(task_id id) const { return engine_.history(id); }

    /// Ends a task that waits, or asks a running one to stop. The answer is final: `cancelled` is stored.
    cancel_outcome cancel(task_id id) { return answer(engine_.cancel(id)); }

    /// Like cancel(), and waits until a running handler has returned, at most for `limit`.
    /// @return  cancelled, or too_late where it ended otherwise; stop_requested where `limit` passed first, or where a
    ///          handler asks for its own end.
    cancel_outcome cancel_and_wait(task_id id, time_span limit) {
        auto const first = cancel(id);
        if (first != cancel_outcome::stop_requested) return first;
        if (detail::running_here != nullptr && detail::running_here->record.id == id) return first;
        if (!engine_.wait_not_in_flight(id, limit.value())) return first;
        auto const ended = find(id);
        return ended && ended->state == task_state::cancelled ? cancel_outcome::cancelled : cancel_outcome::too_late;
    }

    /// Makes a dead or cancelled task ready again, with its failures forgotten, and lets a held one go.
    change_outcome retry(task_id id) { return engine_.retry(id); }

    /// Moves a task that waits to another instant; one that passed makes it due at once.
    change_outcome reschedule(task_id id, instant when) { return engine_.reschedule(id, when); }

    /// No task of this type starts until resume(); what runs goes on. Kept in the store, whether or not the type has a
    /// handler here.
    template <class Payload>
    void pause(task_type<Payload> const& type) {
        engine_.pause(type.name, true);
    }

    template <class Payload>
    void resume(task_type<Payload> const& type) {
        engine_.pause(type.name, false);
    }

    health_report health() const {
        auto report = engine_.health();
        health_report h;
        h.storage_ok = report.storage_ok;
        h.storage_error = std::move(report.storage_error);
        h.consecutive_failures = report.consecutive_failures;
        h.running = report.running;
        h.claimed = report.claimed;
        h.unsettled = report.unsettled;
        h.in_memory = report.in_memory;
        auto const found = engine_.recovery();
        h.recovered = found.reclaimed + found.held;
        h.poisoned = found.poisoned.size();
        h.node_name = engine_.settings().node_name;
        return h;
    }

    Storage const& store() const noexcept { return engine_.store(); }

    // ------------------------------------------------------------ driving: threads of its own

    /// Takes over what an unclean end left behind, and starts to run what is due.
    /// Errors: invalid_argument where it was started or polled before; stopped after stop().
    void start() {
        if (engine_.stopping()) throw error(errc::stopped, "start");
        if (threaded_ || polled_) throw error(errc::invalid_argument, "start() of a scheduler that is already driven");
        engine_.recover();
        threaded_ = true;
        engine_.set_threaded(true);
        if constexpr (own_pool) {
            pool_.emplace(engine_.settings().workers, engine_.settings().workers);
            executor_ = &*pool_;
        }
        pumper_ = std::thread([this] { pump_loop(); });
        turner_ = std::thread([this] { turn_loop(); });
    }

    /// Ends in order: claims stop at once; handlers have `limit` to return, then their stop tokens are set and they
    /// have options::stop_grace; what was claimed and had not started is given back. What still runs then keeps its
    /// task, is counted, and is waited for by the destructor. May be called again, to wait again.
    stop_report stop(time_span limit = duration{0}) {
        std::size_t const own = engine_.holds(detail::running_here) ? 1 : 0; // a handler does not wait for itself
        stop_report report;
        report.released = engine_.begin_stop();
        auto const before = engine_.running();
        if (!engine_.wait_idle(limit.value(), own)) {
            engine_.ask_all_to_stop();
            engine_.wait_idle(engine_.settings().stop_grace.value(), own);
        }
        report.still_running = engine_.running();
        report.finished = before > report.still_running ? before - report.still_running : 0;
        if (threaded_)
            engine_.wait_settled(std::chrono::seconds{5});
        else
            for (int tries = 0; engine_.unsettled() && tries != 3; ++tries) engine_.pump();
        return report;
    }

    // ------------------------------------------------------------ driving: a loop of the host's

    /// Runs all that is due by `now` and returns when it is settled. Without an executor of the host's, handlers run on
    /// the calling thread; with one they are handed over, and what has ended meanwhile is settled.
    ///
    /// Each task runs at most once in one call: what a handler submits for at once is for the next call.
    /// @return  How many attempts were started.
    /// Threads: one at a time.
    std::size_t poll(instant now) {
        if (threaded_) throw error(errc::invalid_argument, "poll() of a scheduler that has been started");
        polled_ = true;
        engine_.recover();
        polling const pinned{*this, now};
        if (!last_sweep_ || *last_sweep_ > now.value() || now.value() - *last_sweep_ >= std::chrono::seconds{1}) {
            last_sweep_ = now.value();
            engine_.sweep_soon();
        }
        engine_.turn();
        std::size_t started = 0;
        for (bool moved = true; moved;) {
            moved = engine_.pump();
            engine_.dispatch();
            started += posted_.exchange(0);
            for (auto& one : std::exchange(to_run_here_, {})) {
                engine_.run(std::move(one), false);
                moved = true;
            }
        }
        return started;
    }

    /// When poll() should be called again, at the latest; none: not before something changes (see on_wakeup()).
    std::optional<time_point> next_wakeup() { return engine_.next_wakeup(); }

    /// `wake` is called, from any thread, when next_wakeup() has moved closer than it last said. Before the first
    /// poll().
    void on_wakeup(unique_function<void()> wake) { wake_host_ = std::move(wake); }

  private:
    static constexpr system_clock machine_clock{};

    /// Says what time it is while poll() runs.
    struct polling {
        scheduler& owner;
        polling(scheduler& s, time_point now) : owner(s) {
            owner.in_poll_ = true;
            owner.engine_.begin_poll(now);
        }
        ~polling() {
            owner.engine_.end_poll();
            owner.in_poll_ = false;
        }
        polling(polling const&) = delete;
        polling& operator=(polling const&) = delete;
    };

    /// What the executor gets. One that is dropped without being called gives its worker back.
    struct posted_work {
        scheduler* owner;
        attempt_ptr what;

        posted_work(scheduler* s, attempt_ptr one) noexcept : owner(s), what(std::move(one)) {}
        posted_work(posted_work&&) noexcept = default;
        posted_work& operator=(posted_work&&) = delete;
        ~posted_work() {
            if (what) owner->engine_.dropped(what);
        }

        void operator()() {
            auto const mine = std::move(what);
            what = nullptr;
            if (mine->begin()) owner->engine_.run(mine, own_pool);
        }
    };

    void connect() {
        engine_.on_nudge_turn = [this] { threaded_ ? turn_waker_.wake() : wake_host(); };
        engine_.on_nudge_pump = [this] { threaded_ ? pump_waker_.wake() : wake_host(); };
        engine_.post = [this](attempt_ptr const& one) { post(one); };
    }

    void wake_host() {
        if (!wake_host_ || in_poll_) return;
        try {
            wake_host_();
        } catch (...) { // what was asked for has been done, whatever the host's loop says
        }
    }

    void post(attempt_ptr one) {
        if (executor_ == nullptr) {
            to_run_here_.push_back(std::move(one));
            posted_.fetch_add(1);
            return;
        }
        // A host's executor may keep the call for longer than this object lives: whether the engine may be touched is
        // decided by the attempt itself, which a stop takes back.
        executor_->execute(posted_work{this, std::move(one)});
        posted_.fetch_add(1);
    }

    void turn_loop() {
        while (!quit_.load()) {
            turn_waker_.sleep(engine_.until_next_turn(std::chrono::seconds{1}));
            bool const work = engine_.turn();
            if (!work) continue;
            engine_.dispatch();
            pump_waker_.wake();
        }
    }

    void pump_loop() {
        auto const& times = engine_.times();
        auto last_sweep = times.steady();
        while (!quit_.load() || engine_.unsettled()) {
            if (!engine_.pump_has_work())
                pump_waker_.sleep(std::chrono::milliseconds{engine_.storage_down() ? 20 : 1000});
            if (times.steady() - last_sweep >= std::chrono::seconds{1}) {
                last_sweep = times.steady();
                engine_.sweep_soon();
            }
            engine_.pump();
            engine_.dispatch();
            if (quit_.load() && engine_.storage_down()) break; // the next start finds what could not be recorded
        }
    }

    /// Waits for the last handler and ends the threads.
    void finish() {
        engine_.wait_idle();
        if (!threaded_) {
            if (engine_.unsettled()) engine_.pump();
            return;
        }
        quit_.store(true);
        turn_waker_.wake();
        pump_waker_.wake();
        if (turner_.joinable()) turner_.join();
        if (pumper_.joinable()) pumper_.join();
        if constexpr (own_pool) pool_.reset();
    }

    template <class Payload>
    submission prepare(task_type<Payload> const& type, Payload const& payload, submit_options how) {
        return detail::make_submission(type.name, detail::encode_payload(payload, type.name), std::move(how),
                                       engine_.times().present(), engine_.settings().payload_limit);
    }

    static cancel_outcome answer(typename detail::engine<Storage, Clock>::cancel_answer a) {
        return static_cast<cancel_outcome>(a);
    }

    /// A handler of any shape as the engine calls it.
    template <class Payload, class Work>
    static unique_function<void(context&, std::string_view)> wrap(std::string name, Work&& work) {
        using W = std::decay_t<Work>;
        return
            [name = std::move(name), work = W(std::forward<Work>(work))](context& ctx, std::string_view text) mutable {
                auto const keep = [&ctx](auto&& call) {
                    if constexpr (std::is_void_v<decltype(call())>)
                        call();
                    else
                        ctx.result(call());
                };
                if constexpr (std::same_as<Payload, no_payload>) {
                    if constexpr (std::invocable<W&, context&>)
                        keep([&]() -> decltype(auto) { return work(ctx); });
                    else if constexpr (std::invocable<W&>)
                        keep([&]() -> decltype(auto) { return work(); });
                    else
                        static_assert(std::invocable<W&, context&>,
                                      "a handler without payload takes (context&) or nothing");
                } else {
                    if constexpr (std::invocable<W&, Payload const&, context&>) {
                        auto const payload = detail::decode_payload<Payload>(text, name);
                        keep([&]() -> decltype(auto) { return work(payload, ctx); });
                    } else if constexpr (std::invocable<W&, Payload const&>) {
                        auto const payload = detail::decode_payload<Payload>(text, name);
                        keep([&]() -> decltype(auto) { return work(payload); });
                    } else if constexpr (std::invocable<W&, context&>) {
                        keep([&]() -> decltype(auto) { return work(ctx); });
                    } else if constexpr (std::invocable<W&>) {
                        keep([&]() -> decltype(auto) { return work(); });
                    } else {
                        static_assert(
                            std::invocable<W&, Payload const&, context&>,
                            "a handler takes (payload const&, context&), (payload const&), (context&) or nothing");
                    }
                }
            };
    }

    std::optional<pool_type> pool_;
    Executor* executor_ = nullptr;
    detail::engine<Storage, Clock> engine_;
    detail::waker turn_waker_;
    detail::waker pump_waker_;
    std::thread turner_;
    std::thread pumper_;
    std::atomic<bool> quit_{false};
    std::atomic<bool> threaded_{false};
    bool polled_ = false;
    bool adopted_ = false;
    std::atomic<bool> in_poll_{false};
    std::optional<time_point> last_sweep_; ///< by poll()
    std::atomic<std::size_t> posted_{0};   ///< counted for poll()
    std::vector<attempt_ptr> to_run_here_;
    unique_function<void()> wake_host_;
};

template <storage Storage>
scheduler(Storage) -> scheduler<Storage>;
template <storage Storage>
scheduler(Storage, options) -> scheduler<Storage>;
template <storage Storage, clock Clock>
scheduler(Storage, options, Clock const&) -> scheduler<Storage, Clock>;
template <storage Storage, clock Clock, executor Executor>
scheduler(Storage, options, Clock const&, Executor&) -> scheduler<Storage, Clock, Executor>;

} // namespace ax

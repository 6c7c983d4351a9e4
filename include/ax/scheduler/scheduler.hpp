// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/dispatch/executor.hpp"
#include "ax/dispatch/thread_pool.hpp"
#include "ax/scheduler/backfill.hpp"
#include "ax/scheduler/context.hpp"
#include "ax/scheduler/definitions.hpp"
#include "ax/scheduler/detail/engine_definitions.hpp"
#include "ax/scheduler/detail/engine_explain.hpp"
#include "ax/scheduler/detail/engine_limits.hpp"
#include "ax/scheduler/detail/engine_offers.hpp"
#include "ax/scheduler/detail/engine_periods.hpp"
#include "ax/scheduler/detail/engine_pump.hpp"
#include "ax/scheduler/detail/engine_requests.hpp"
#include "ax/scheduler/detail/engine_schedules.hpp"
#include "ax/scheduler/detail/engine_upkeep.hpp"
#include "ax/scheduler/detail/engine_workflows.hpp"
#include "ax/scheduler/detail/waker.hpp"
#include "ax/scheduler/registry.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/scheduler/upkeep.hpp"
#include "ax/scheduler/workflow.hpp"
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

/// The answer to a submit in a transaction of the host's. Where that is rolled back, it means nothing.
class submitted_in : public submitted {
  public:
    submitted_in(submitted const& answer, detail::guest_desk* desk) : submitted(answer), desk_(desk) {}

    /// To be called after the host's commit, while the scheduler lives: the task starts as soon as it is due. Without
    /// this call the scheduler notices within about 20 ms. After a rollback it is best not called, and does no harm.
    void committed() {
        if (desk_ != nullptr) desk_->guest_committed(id);
        desk_ = nullptr;
    }

  private:
    detail::guest_desk* desk_; ///< null: it has been told
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
    std::size_t pruned = 0;      ///< ended tasks removed since the start, as options::retention says
    std::string prune_error;     ///< why the latest clean-up failed; empty while all is well
    bool clock_in_doubt = false; ///< the wall clock is ahead, unconfirmed: nothing grows old by that yet
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
    using wait_reason = later<ax::wait_reason>;
    using kept_step = later<ax::kept_step>;
    using task_stats = later<ax::task_stats>;
    using finding = later<ax::finding>;
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

    /// Limits all tasks with a tag together: how many are in flight at once, and how often one may begin. Kept in the
    /// store; an empty limit takes it back. What is in flight already is not counted.
    /// Errors: invalid_argument for a bad tag, a concurrency, count or burst of 0, a period that is not positive.
    void limit_tag(std::string_view tag, limit const& how) { engine_.limit_tag(tag, how); }

    /// Declares how much there is of a resource that handlers may ask for (handler_options::resources), or changes it.
    /// Kept in the store. Errors: invalid_argument for a bad name, a capacity of 0, or one below what a registered
    /// handler asks for.
    void set_resource(std::string_view name, std::size_t capacity) { engine_.set_resource(name, capacity); }

    /// Registers all that AX_TASK and AX_CRON have declared. Returns how many; 0 where that has been done before.
    std::size_t adopt_registered() {
        std::size_t adopted = 0;
        if (std::exchange(adopted_, true)) return 0;
        for (auto const* one = detail::registered_handler::first(); one != nullptr; one = one->next, ++adopted) {
            engine_.add_handler(one->name, one->call, {});
            if (!one->cron.empty()) engine_.declare(one->name, cron{std::string(one->cron)}, one->name, {}, {});
        }
        return adopted;
    }

    /// Sends every event to `observer`, from the thread on which it arises and never under a lock. Before start().
    void observe(unique_function<void(event const&)> observer) { engine_.observer = std::move(observer); }

    // ------------------------------------------------------------ submit

    /// Stores a task. When this returns, it is durable, as options::durability says. Where its key is taken,
    /// submit_options::on_conflict decides, and the answer says what was done.
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

    /// Stores a task in the transaction that is open on `connection`, a connection of the host's to the store's own
    /// database: it is stored with what the host writes, or not at all. Where none is open, it is stored at once.
    ///
    ///     auto answer = tasks.submit_in(db, closing, {42}, {.delay = 15min});   // between BEGIN and COMMIT
    ///     ...                                                                   // COMMIT
    ///     answer.committed();
    ///
    /// Keys and all options are as in submit(). It takes the database's write lock, which the host's transaction then
    /// holds to its end: begin that IMMEDIATE, and keep it short.
    /// Errors: as submit(), where it stores nothing and the host's transaction stands; also invalid_argument for a
    ///         connection to anything else, one that only reads, or one with attached databases (several files do not
    ///         commit together in WAL mode); unavailable where the lock cannot be had, also at once where the host's
    ///         transaction has read what was changed since.
    /// Threads: as SQLite wants it of that connection.
    template <class Payload, class S = Storage>
    submitted_in submit_in(typename S::host_connection connection, task_type<Payload> const& type,
                           std::type_identity_t<Payload> const& payload = {},
                           submit_options how = {}) requires transactional_storage<S> {
        auto const answer = engine_.submit_in(connection, prepare(type, payload, std::move(how)));
        return {submitted{answer.id, answer.outcome, answer.state}, answer.committed ? nullptr : &engine_};
    }

    /// Stores a workflow with all its tasks, in one commit. Its id is that of a task which stands for it as a whole: it
    /// is `created` while the workflow goes on, then succeeded, upstream_failed (a task without children did not
    /// succeed), cancelled, or dead (beyond its deadline). cancel(), retry() and explain() take it, too.
    ///
    /// @param how  `key` makes it idempotent (on_conflict: keep or reject). `run_at` and `delay` say when it begins,
    ///             `deadline` when it is given up; `priority`, `retry` and `tags` are those of tasks that say nothing.
    /// Errors: as submit(); invalid_argument also for a workflow without tasks, and for a cycle, whose path the text
    ///         shows. Complexity: O(tasks + edges), one commit.
    submitted submit(later<workflow> const& wanted, submit_options how = {}) {
        auto head = detail::make_submission("workflow", {}, std::move(how), engine_.times().present(),
                                            engine_.settings().payload_limit);
        auto const made = engine_.submit_workflow(wanted, std::move(head));
        return {made.id, made.outcome, made.state};
    }

    // ------------------------------------------------------------ workflows

    /// How a workflow stands: counts by state, when it began and ended. By its id or that of any of its tasks. Costs no
    /// more where it has more tasks.
    std::optional<later<workflow_record>> find_workflow(task_id id) const { return engine_.store().workflow(id); }

    /// All its tasks of all generations, by name and generation, with their parents; those of old are `outdated`.
    /// O(tasks + edges).
    std::vector<later<member_record>> workflow_tasks(task_id id) const { return engine_.members(id); }

    /// The chain of tasks that its end (so far) waited for, the first one first. O(tasks of the chain and their
    /// parents).
    std::vector<task_view> critical_path(task_id id) const { return engine_.critical_path(id); }

    /// No task of the workflow is started until resume_workflow(); what runs goes on. Kept in the store.
    change_outcome pause_workflow(task_id id) { return engine_.pause_workflow(id, true); }
    change_outcome resume_workflow(task_id id) { return engine_.pause_workflow(id, false); }

    /// Runs a task of a workflow again that has ended, as a new task of the next generation, and those below it: with
    /// below::unfinished those that wait, with below::all also those that have run. What waits below hangs on the new
    /// ones from now on. Refused (wrong_state) where the task or one below it is in flight, or was rerun already.
    rerun_answer rerun(task_id id, rerun_scope scope = rerun_scope::unfinished) { return engine_.rerun(id, scope); }

    /// Makes a dead task succeeded, for someone has done its work by hand; what it had blocked comes back.
    change_outcome mark_succeeded(task_id id) { return engine_.mark_succeeded(id); }

    // ------------------------------------------------------------ schedules

    /// Declares a schedule: cron, calendar, every, after_each or once. It is kept in the store. Declaring the same one
    /// again changes nothing; another definition under the same name replaces it. Only where another thing recurs is
    /// its next occurrence counted from now: it never fires at once for being changed.
    ///
    /// Unless `chosen` says otherwise, occurrences missed while nothing ran are made up by one, and an occurrence that
    /// comes while the one before has not ended is left out. Both are counted. See docs/schedules.md.
    ///
    /// Strings of the payload may hold placeholders, `{{ds - 1d}}`: see payload_template.
    ///
    /// Errors: invalid_argument for a bad name, a period that is not positive, a cron or calendar that never occurs, a
    /// spread as long as the period, a placeholder that is none, and depends_on_past together with an overlap policy
    /// that cancels what runs.
    template <class Payload>
    schedule_record schedule(std::string_view name, detail::recurrence const& how, task_type<Payload> const& type,
                             std::type_identity_t<Payload> const& payload = {}, later<schedule_options> chosen = {}) {
        detail::check_type_name(type.name);
        return engine_.declare(name, how, type.name, detail::encode_payload(payload, type.name), std::move(chosen));
    }

    /// The same with a workflow, which is created anew for each occurrence; context::scheduled_at() of each task is the
    /// nominal instant, and placeholders in its payloads are filled in. The occurrence has ended when the workflow has.
    /// Errors: also invalid_argument where a task has a deadline, and for depends_on_past, overlap::cancel_running,
    /// queue_one and queue_all.
    schedule_record schedule(std::string_view name, detail::recurrence const& how, later<workflow> const& wanted,
                             later<schedule_options> chosen = {}) {
        return engine_.declare_workflow(name, how, wanted, std::move(chosen));
    }

    /// Declares what a document defines: docs/definitions.md. It is checked as a whole before anything is stored, and
    /// the schedules go into one commit. To be called at each start: what is as it was stays as it is.
    ///
    ///  - Schedules are declared as by schedule(). Those that this document does not have stay; with `.prune = true`
    ///    those go that an earlier document declared. What the code declares is left alone.
    ///  - What it says of a task type goes before what the code says in on(), be that earlier or later; what it leaves
    ///    open is the code's, and what is said with a single task goes before both. Attempts under way end as they
    ///    began.
    ///  - Workflows are given by workflow_named().
    ///
    /// Of task types and workflows the latest document counts. Give it before schedules that take their priority from
    /// their type.
    ///
    /// @param document  JSON text, or nlohmann::json.
    /// Errors: invalid_argument with every fault and its path; nothing is changed then.
    template <detail::definition_document Document>
    later<declared> declare(Document const& document, later<declare_options> how = {}) {
        return engine_.declare_all(parse_definitions(document, engine_.times().reached()), how.prune);
    }

    /// A workflow of the document that was declared last, to be submitted. Placeholders in it are filled in only where
    /// a schedule creates it.
    /// Errors: invalid_argument where there is none of that name.
    later<workflow> workflow_named(std::string_view name) const { return engine_.workflow_named(name); }

    /// Until it is resumed, the schedule creates nothing; its tasks stay. Kept in the store. Returns whether there is
    /// such a schedule.
    bool pause_schedule(std::string_view name) { return engine_.pause_schedule(name); }

    /// Lets a paused schedule go on; does nothing to another. Returns whether there is such a schedule.
    bool resume_schedule(std::string_view name, resume_policy how = resume_policy::from_now) {
        return engine_.resume_schedule(name, how);
    }

    /// The next occurrences of a schedule as they would be created if nothing changes, each with its reason, missed
    /// ones that are still to be made up for included; at most `most`, which is at most 10,000. None where it is
    /// paused, over, or (a fixed delay) waits for the end of a run; of a fixed delay only the next one is known.
    /// Errors: invalid_argument where there is no such schedule. Complexity: O(schedules + most).
    std::vector<later<firing>> preview(std::string_view name, std::size_t most = 10) const {
        return engine_.preview(name, most);
    }

    /// Why preview() gives none, or fewer than were asked for: it is paused, waits for the end of a run, or ends. For
    /// people. Errors: invalid_argument where there is no such schedule.
    later<std::string> why_no_more(std::string_view name) const { return engine_.why_no_more(name); }

    /// Removes a schedule; tasks it has created stay. Returns whether there was one.
    bool unschedule(std::string_view name) { return engine_.forget(name); }

    /// Runs a schedule once more, now, paused or not: an occurrence whose scheduled_at() is the present instant (or the
    /// next millisecond that no occurrence has), with the tag "run_now". The schedule itself does not move, and what it
    /// does next takes no notice of this run. Where occurrences queue or depend on the past, it takes its place in
    /// their order; else it runs beside whatever runs. Errors: invalid_argument where there is no such schedule; as
    /// submit().
    submitted run_now(std::string_view name) {
        auto const answer = engine_.run_now(name);
        return {answer.id, answer.outcome, answer.state};
    }

    /// Makes the occurrences of [from, to) that are missing, in the order of time, with the tag "backfill". Those that
    /// are there are not made again, whatever became of them, while their tasks are kept.
    ///
    /// At most backfill_options::at_once of them are unfinished at a time; as they end, the next are made. The backfill
    /// is kept in the store and goes on after a restart. The definition that the schedule has then is what counts.
    /// @return  How far it has come in this call.
    /// Errors: invalid_argument where there is no such schedule, it is a fixed delay, the range is empty, has no
    ///         occurrence or reaches into the future, or an option is wrong; stopped after stop().
    /// Complexity: O(schedules + at_once), whatever the range.
    later<backfill_report> backfill(std::string_view name, instant from, instant to,
                                    later<backfill_options> const& chosen = {}) {
        return engine_.backfill(name, from, to, chosen);
    }

    /// The backfills that are under way, by number.
    std::vector<later<backfill_record>> backfills() const { return engine_.store().backfills(); }

    /// Ends a backfill; what it has made stays. Returns whether it was under way.
    bool stop_backfill(std::uint64_t number) { return engine_.stop_backfill(number); }

    /// Sets a period aside whose data has not come: its occurrence, there already or to come, does not run until it is
    /// released. Those behind it go on, or wait for it where the schedule depends on the past. Kept in the store.
    /// Errors: stopped after stop().
    period_outcome mark_catch_up(std::string_view name, instant nominal) {
        return engine_.mark_catch_up(name, nominal);
    }

    /// Lets a period go that was set aside. It and all that waits for it come with at least that priority: ahead of the
    /// others.
    period_outcome release(std::string_view name, instant nominal, priority_class urgency = priority_class::high) {
        return engine_.release(name, nominal, urgency);
    }

    /// Likewise all periods of [from, to) that are set aside, in commits of a hundred. Returns how many.
    /// Errors: invalid_argument where there is no such schedule, or the range is empty.
    std::size_t release(std::string_view name, instant from, instant to,
                        priority_class urgency = priority_class::high) {
        return engine_.release(name, from, to, urgency);
    }

    /// Likewise all of the schedule.
    std::size_t release_all(std::string_view name, priority_class urgency = priority_class::high) {
        return engine_.release(name, (time_point::min)(), (time_point::max)(), urgency);
    }

    /// All schedules, by name.
    std::vector<schedule_record> schedules() const { return engine_.store().schedules(); }

    /// What a schedule has left out: the latest ranges of occurrences, each with its reason, and how many for each
    /// reason; at most 32 of either. All of it is counted in schedule_record::skipped.
    /// Errors: invalid_argument where there is no such schedule. Complexity: O(schedules).
    later<skip_log> schedule_skips(std::string_view name) const { return engine_.skips(name); }

    // ------------------------------------------------------------ looking and steering

    std::optional<task_view> find(task_id id) const { return engine_.find(id); }
    /// Who has this key, or had it last; of a workflow that was rerun as a whole the latest generation, under its own
    /// id. find() gives what the id names, whatever came after it.
    std::optional<task_view> find_by_key(std::string_view key) const { return engine_.find_by_key(key); }

    /// Tasks by state, type and how long they have been in their state; see task_filter.
    std::vector<task_view> list(task_filter const& wanted = {}) const { return engine_.list(wanted); }

    /// Every attempt of a task, the first one first; empty for an unknown task.
    std::vector<attempt_view> history(task_id id) const { return engine_.history(id); }

    /// What the steps of a task have returned so far, by name; see context::step().
    std::vector<kept_step> steps(task_id id) const { return engine_.store().steps(id); }

    /// Why a task is not running now: each reason with a sentence and with who has what it waits for. At least one.
    /// An answer where the storage is away, too.
    std::vector<wait_reason> explain(task_id id) const { return engine_.explain(id); }

    /// Ends a task that waits, or asks a running one to stop. The answer is final: `cancelled` is stored.
    cancel_outcome cancel(task_id id) { return answer(engine_.cancel(id)); }

    /// Like cancel(), and waits until a running handler (of a workflow: all of them) has returned, at most for `limit`.
    /// @return  cancelled, or too_late where it ended otherwise; stop_requested where `limit` passed first, or where a
    ///          handler asks for its own end.
    cancel_outcome cancel_and_wait(task_id id, time_span limit) {
        auto const first = cancel(id);
        if (first != cancel_outcome::stop_requested) return first;
        if (detail::running_here != nullptr && detail::running_here->record.id == id) return first;
        auto const asked = find(id);
        bool const whole = asked && asked->type == detail::workflow_type;
        if (whole ? !engine_.wait_workflow_ended(id, limit.value()) : !engine_.wait_not_in_flight(id, limit.value()))
            return first;
        auto const ended = whole ? engine_.store().find(engine_.store().workflow(id)->head) : engine_.store().find(id);
        return ended && ended->state == task_state::cancelled ? cancel_outcome::cancelled : cancel_outcome::too_late;
    }

    /// Makes a dead or cancelled task ready again, with its failures forgotten, and lets a held one go. wrong_state
    /// also where its key has another holder by now.
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
        h.pruned = report.pruned;
        h.prune_error = std::move(report.prune_error);
        h.clock_in_doubt = report.clock_in_doubt;
        return h;
    }

    /// How many tasks of each type are in each state, as stored: an attempt counts as dispatched until it has run for
    /// 50 ms. Costs no more where there are more tasks.
    task_stats stats() const { return engine_.stats(); }

    /// Finds what cannot be: states that neither this library nor a crash leaves behind, but a write by hand, a
    /// damaged file or a fault might. With `.repair = true` it also puts them right; see docs/verify.md.
    ///
    /// Reads the whole store, in slices. Repairs are small commits, each of which looks again first.
    /// @return  What was found, and whether it is repaired; at most a thousand without a repair.
    std::vector<finding> verify(verify_options how = {}) { return engine_.verify(how.repair); }

    Storage const& store() const noexcept { return engine_.store(); }

    // ------------------------------------------------------------ driving: threads of its own

    /// Takes over what an unclean end left behind, and starts to run what is due.
    /// Errors: invalid_argument where it was started or polled before; stopped after stop().
    void start() {
        if (engine_.stopping()) throw error(errc::stopped, "start");
        if (threaded_ || polled_) throw error(errc::invalid_argument, "start() of a scheduler that is already driven");
        engine_.recover();
        threaded_ = true;
        if constexpr (own_pool) {
            pool_.emplace(engine_.settings().workers, engine_.settings().workers);
            executor_ = &*pool_;
        }
        engine_.set_threaded(true, own_pool);
        pumper_ = std::thread([this] { pump_loop(); });
        turner_ = std::thread([this] { turn_loop(); });
    }

    /// Ends in order: claims stop at once; handlers have `limit` to return, then their stop tokens are set and they
    /// have options::stop_grace; what was claimed and had not started is given back. What still runs then keeps its
    /// task, is counted, and is waited for by the destructor. May be called again, to wait again.
    stop_report stop(time_span limit = duration{0}) {
        detail::refuse_in_isolated_child("stop");
        std::size_t const own = engine_.holds(detail::running_here) ? 1 : 0; // a handler does not wait for itself
        stop_report report;
        report.released = engine_.begin_stop();
        auto const before = engine_.running();
        if (!engine_.wait_idle(limit.value(), own)) {
            engine_.ask_all_to_stop();
            engine_.wait_idle(engine_.stop_patience(), own);
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
            if (what && what->begin())
                owner->engine_.dropped(what); // else it was taken back, and the owner may be gone
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
                pump_waker_.sleep(engine_.until_next_errand(duration{engine_.storage_down() ? 20 : 1000}));
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

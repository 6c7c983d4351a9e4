// SPDX-License-Identifier: MIT
#pragma once

#include "ax/retry/verdict.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/scheduler/detail/durable_step.hpp"
#include "ax/task/task_type.hpp"

#include <fmt/core.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ax {

/// The most text that log() keeps of one attempt, in bytes.
inline constexpr std::size_t log_limit = 16U * 1024U;

namespace detail {

/// What can be kept, and called with a connection.
template <class Work>
concept sqlite_work = std::constructible_from<std::decay_t<Work>, Work> && std::invocable < std::decay_t<Work>
&, sqlite3* > ;

} // namespace detail

/// What a running handler knows about its attempt, and what it can say. Lives as long as the handler's call.
///
/// Threads: safe, so that a handler may share it with threads of its own while it runs.
class context {
  public:
    context(detail::claimed_attempt& now_running, time_point now, std::size_t payload_limit) noexcept
        : attempt_(now_running), now_(now), payload_limit_(payload_limit) {}
    context(context const&) = delete;
    context& operator=(context const&) = delete;

    /// The task as it was claimed.
    task_record const& task() const noexcept { return attempt_.record; }

    /// The number of this attempt: 1 for the first.
    std::size_t attempt() const noexcept { return attempt_.record.attempts; }

    /// The instant this run stands for: a schedule's nominal instant, else `run_at`.
    time_point scheduled_at() const noexcept {
        return attempt_.record.scheduled_at ? *attempt_.record.scheduled_at : attempt_.record.run_at;
    }

    /// The payload as it is stored: JSON text.
    std::string_view payload() const noexcept { return attempt_.record.payload; }

    /// Set when the attempt should end early: cancelled, timed out, past its deadline, the scheduler stops. A handler
    /// that has taken its token and returns after it was set counts as stopped, not as succeeded; one that never took
    /// it has finished.
    std::stop_token stop_token() const {
        if (!attempt_.token_taken.exchange(true) && attempt_.link != nullptr) attempt_.link->say_token_taken();
        return attempt_.stop.get_token();
    }

    /// False once this attempt has lost its task to another node: nothing it reports will be taken.
    bool still_mine() const noexcept { return attempt_.reason.load() != detail::stop_reason::lease_lost; }

    /// The number to hand to outside systems that can refuse a stale owner. Grows with every attempt of the task.
    fence_token fence() const noexcept { return attempt_.record.fence; }

    /// Keeps a line with the attempt; history() shows it. Beyond log_limit bytes, lines are counted and left out.
    void log(std::string_view line) {
        std::lock_guard const guard{attempt_.text_mutex};
        auto const room = log_limit - attempt_.log.size();
        auto const clean = detail::bounded_text(line, log_limit);
        if (clean.size() + 1 > room) {
            ++attempt_.log_dropped;
            return;
        }
        attempt_.log += clean;
        attempt_.log += '\n';
        if (attempt_.link != nullptr) attempt_.link->say_log(clean);
    }

    /// The same with a format string of fmt.
    template <class First, class... Rest>
    void log(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
        log(std::string_view{fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)});
    }

    /// Says how far the work is, from 0 to 1; find() shows it while the attempt runs.
    void progress(double fraction, std::string_view note = {}) {
        std::lock_guard const guard{attempt_.text_mutex};
        attempt_.progress = fraction;
        attempt_.progress_note = detail::bounded_text(note, longest_key);
        if (attempt_.link != nullptr) attempt_.link->say_progress(fraction, attempt_.progress_note);
    }

    /// Submits a task in the commit that records this attempt's success, and only then. Where its key is
    /// taken by then, on_conflict decides. Errors: invalid_argument, as scheduler::submit().
    template <class Payload>
    void submit(task_type<Payload> const& type, std::type_identity_t<Payload> const& payload, submit_options how = {}) {
        auto made = detail::make_submission(type.name, detail::encode_payload(payload, type.name), std::move(how), now_,
                                            payload_limit_);
        std::lock_guard const guard{attempt_.text_mutex};
        attempt_.follow_ups.push_back(std::move(made));
    }

    /// Has `work(sqlite3*)` called in the transaction that records this attempt's success: what it writes is committed
    /// with that, exactly once, or not at all.
    ///
    /// It is called after the handler has returned, on a thread of the scheduler's, with the store's own connection,
    /// in a savepoint of its own; several run in order. It owns what it captures, and is called again where the
    /// transaction has to be redone. It is not called where the attempt does not succeed, or has lost its task. What it
    /// throws undoes what it has written, and the attempt has failed with that text. It may not begin or end the
    /// transaction, attach databases, set pragmas or change tables called ax_...: each fails the attempt as well.
    ///
    /// While it runs nobody else writes to the file, so it should do nothing but write.
    /// Errors: invalid_argument where the scheduler's storage is none of SQLite, and under isolation::process.
    template <detail::sqlite_work Work>
    void commit_with(Work&& work) {
        using effects_type = detail::dependent<attempt_effects, Work>;
        if (attempt_.link != nullptr)
            throw error(errc::invalid_argument, "commit_with: this handler runs in a child process "
                                                "(isolation::process), which has no part in the commit of its parent");
        if (attempt_.store == nullptr || !attempt_.store->takes_sqlite())
            throw error(errc::invalid_argument, "commit_with: the storage of this scheduler has no connection of "
                                                "SQLite that could be handed out");
        unique_function<void(sqlite3*)> owned{std::forward<Work>(work)};
        std::lock_guard const guard{attempt_.text_mutex};
        if (!attempt_.effects) attempt_.effects = std::make_unique<effects_type>();
        attempt_.effects->on_sqlite.push_back(std::move(owned));
    }

    /// Does a part of the work that is not to be done again: calls `work()`, stores what it returns, and returns that.
    /// A later attempt, after a failure, an interruption or a crash, gets the stored value and does not call it.
    ///
    ///     auto const receipt = ctx.step("charge", [&] { return bank.charge(order); });
    ///     ctx.step("mail", [&] { mail(receipt); });
    ///
    /// The value is any that JSON can hold, or nothing. Between the end of `work` and the commit of its value there is
    /// a moment in which a crash makes it run again: let the other side know it by task and step. What `work` throws
    /// passes through, and the step can be tried again. It may have steps in it.
    ///
    /// @param name  Names the step within its task, for ever: an attempt of a later version of the program, too, goes
    ///              by it. A name stands for one step; using it twice in one attempt is an error, since a loop would
    ///              otherwise do its first round only.
    /// Errors: invalid_argument (the name; a value beyond options::payload_limit or that cannot be written as JSON),
    ///         corrupt (the stored value is none of this type), not_mine (the task was claimed again: the attempt is
    ///         void), and those of the storage.
    /// Complexity: one commit; in attempts behind the first also one read.
    template <std::invocable Work>
    auto step(std::string_view name, Work&& work) -> std::decay_t<std::invoke_result_t<Work&>> {
        using value_type = std::decay_t<std::invoke_result_t<Work&>>;
        detail::durable_step<detail::dependent<detail::claimed_attempt, Work>> one{attempt_, name, payload_limit_};
        if constexpr (std::is_void_v<value_type>) {
            if (one.is_kept()) return;
            work();
            one.keep("null");
        } else {
            if (one.is_kept()) return one.template value<value_type>();
            value_type value = work();
            one.keep(detail::encode(value, "value of step \"" + std::string(name) + '"'));
            return value;
        }
    }

    /// Adds a task to the workflow that this one belongs to, in the commit that records this attempt's success, and
    /// only then. Those without `after` come behind this task; what waits for this task waits for the last of them,
    /// too. `after` names tasks that were added in this attempt.
    ///
    /// A name that the workflow has already, by another handler meanwhile, gets `~` and the task's id behind it; names
    /// that are left out hold the id of this task.
    /// Errors: invalid_argument where this task is in no workflow, or as workflow::add().
    template <class Payload>
    workflow_task add(task_type<Payload> const& type, std::type_identity_t<Payload> const& payload = {},
                      workflow_task_options const& how = {}) {
        if (!attempt_.record.in_workflow)
            throw error(errc::invalid_argument, "task " + std::to_string(to_number(attempt_.record.id)) +
                                                    " is in no workflow to add to: submit() stores one beside it");
        auto made = detail::make_node(type, payload, how);
        detail::check_size(made.payload, "payload of task type \"" + made.type + '"', payload_limit_);
        std::lock_guard const guard{attempt_.text_mutex};
        return attempt_.additions.add(std::move(made), how.after,
                                      '#' + std::to_string(to_number(attempt_.record.id)) + '.');
    }

    /// What a parent in this task's workflow has returned; null where it has not succeeded, or returned nothing.
    /// Errors: invalid_argument where there is no parent of that name; those of the storage. Complexity: one read.
    template <class Json = nlohmann::json>
    Json parent(std::string_view name) const {
        for (auto const& one : parents())
            if (one.name == name) return one.result.empty() ? Json() : Json::parse(one.result);
        throw error(errc::invalid_argument, "this task has no parent \"" + detail::bounded_text(name, 80) + '"');
    }

    /// All parents of this task, with what they have come to, in the order in which they were stored.
    std::vector<parent_record> parents() const {
        return attempt_.store == nullptr ? std::vector<parent_record>{} : attempt_.store->parents(attempt_.record.id);
    }

    /// Keeps a result with the task, when it succeeds: any value that JSON can hold.
    /// Errors: invalid_argument where it is larger than a payload may be, or cannot be written as JSON.
    template <class Value = nlohmann::json>
    void result(Value const& value) {
        auto text = detail::encode(value, "result");
        detail::check_size(text, "result", payload_limit_);
        std::lock_guard const guard{attempt_.text_mutex};
        attempt_.result = std::move(text);
    }

  private:
    detail::claimed_attempt& attempt_;
    time_point now_;
    std::size_t payload_limit_;
};

} // namespace ax

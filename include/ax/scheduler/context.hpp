// SPDX-License-Identifier: MIT
#pragma once

#include "ax/retry/verdict.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/task/task_type.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ax {

/// The most text that log() keeps of one attempt, in bytes.
inline constexpr std::size_t log_limit = 16U * 1024U;

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
        attempt_.token_taken.store(true);
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
    }

    /// Submits a task in the commit that records this attempt's success, and only then. A key that is taken by then
    /// keeps the task that holds it. Errors: invalid_argument, as scheduler::submit().
    template <class Payload>
    void submit(task_type<Payload> const& type, std::type_identity_t<Payload> const& payload, submit_options how = {}) {
        auto made = detail::make_submission(type.name, detail::encode_payload(payload, type.name), std::move(how), now_,
                                            payload_limit_);
        std::lock_guard const guard{attempt_.text_mutex};
        attempt_.follow_ups.push_back(std::move(made));
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

// SPDX-License-Identifier: MIT
// One call of a handler, and what its end means. The rules, in the order in which they are asked:
//
//   a returned normally, and was not stopped (or never took its stop token)   succeeded
//   gave_up / skip                                                            dead / skipped, stopped or not
//   stopped: by cancel, timeout, deadline, the scheduler's stop               cancelled, failed, dead, interrupted
//   snooze                                                                    ready later
//   anything else that was thrown                                             failed: the retry policy decides
//   its child process died (isolation::process)                               failed, or held as on_interrupt says
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/random.hpp"
#include "ax/retry/retry_policy.hpp"
#include "ax/retry/verdict.hpp"
#include "ax/scheduler/context.hpp"
#include "ax/scheduler/detail/child_process.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/scheduler/detail/timekeeper.hpp"
#include "ax/storage/concept.hpp"

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ax::detail {

/// The attempt whose handler runs on this thread, if any.
inline thread_local claimed_attempt* running_here = nullptr;

/// The longest error text that is kept, in bytes.
inline constexpr std::size_t error_limit = 4096;

template <clock Clock>
class handler_call {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using attempt_end = dependent<ax::attempt_end, Clock>;
    using claimed_attempt = dependent<detail::claimed_attempt, Clock>;
    using splitmix64 = dependent<ax::splitmix64, Clock>;
    using string = dependent<std::string, Clock>;
    using time_point = dependent<ax::time_point, Clock>;

  public:
    /// @param grace  How long a child process has after it was asked to stop.
    handler_call(claimed_attempt& which, timekeeper<Clock> const& times, std::size_t payload_limit, splitmix64 jitter,
                 duration grace = {}) noexcept
        : attempt_(which), times_(times), payload_limit_(payload_limit), jitter_(jitter), grace_(grace) {}

    /// Calls the handler. Nothing that it throws passes through.
    /// @return  The outcome, with `retry_at` and `error`; the caller fills in the rest.
    attempt_end operator()() {
        attempt_end end;
        bool const isolated = attempt_.how->isolation == isolation::process;
        auto const how = isolated ? call_in_child(end) : call(end, times_.present());
        auto const why = attempt_.reason.load();
        bool const stopped =
            why != stop_reason::none && (how == ending::failed || how == ending::died || attempt_.token_taken.load());
        if (how == ending::gave_up) {
            end.outcome = attempt_outcome::exhausted;
        } else if (how == ending::skipped) {
            end.outcome = attempt_outcome::skipped;
        } else if (stopped) {
            if (how == ending::snoozed) asked_.reset(); // where it comes to a retry, the policy says when
            end.outcome = outcome_of(why, end.error);
        } else if (how == ending::snoozed) {
            end.outcome = attempt_outcome::snoozed;
            end.retry_at = later(*asked_);
        } else {
            end.outcome = how == ending::returned ? attempt_outcome::succeeded : attempt_outcome::failed;
        }
        // How far it came is not known, as after a crash of this process.
        if (how == ending::died && end.outcome == attempt_outcome::failed &&
            attempt_.how->on_interrupt == on_interrupt::hold)
            end.outcome = attempt_outcome::held;
        if (end.outcome == attempt_outcome::failed) decide_retry(end);
        if (end.outcome == attempt_outcome::succeeded) decide_otherwise();
        end.error = bounded_text(end.error, error_limit);
        return end;
    }

  private:
    enum class ending : std::uint8_t { returned, failed, snoozed, gave_up, skipped, died };

    /// How long a task waits for which the system could not make a process.
    static constexpr duration no_child_pause{5'000};

    ending call_in_child(attempt_end& end) {
#if defined(AX_HAS_FORK)
        try {
            child_process<claimed_attempt> child{attempt_, payload_limit_, grace_, [this] { return times_.steady(); }};
            auto told = child.run([this, now = times_.present()](claimed_attempt& mine) {
                handler_call inside{mine, times_, payload_limit_, jitter_};
                attempt_end its_end;
                child_ending said;
                said.how = static_cast<std::uint8_t>(inside.call(its_end, now));
                said.asked = inside.asked_;
                said.error = bounded_text(its_end.error, error_limit);
                return said;
            });
            end.error = std::move(told.error);
            asked_ = told.none ? std::optional{no_child_pause} : told.asked;
            if (told.none) return ending::snoozed;
            return told.told ? static_cast<ending>(told.how) : ending::died;
        } catch (std::exception const& e) {
            end.error = std::string("the child process was given up: ") + e.what();
            return ending::died;
        }
#else
        end.error = "there are no child processes";
        return ending::failed;
#endif
    }

    ending call(attempt_end& end, time_point now) {
        claimed_attempt* const outer = std::exchange(running_here, &attempt_);
        auto how = ending::failed;
        try {
            context ctx{attempt_, now, payload_limit_};
            attempt_.handled_by->call(ctx, attempt_.record.payload);
            how = ending::returned;
        } catch (snooze const& s) {
            how = ending::snoozed;
            asked_ = s.delay();
            end.error = s.what();
        } catch (give_up const& g) {
            how = ending::gave_up;
            end.error = g.what();
        } catch (skip const& s) {
            how = ending::skipped;
            end.error = s.what();
        } catch (retry_after const& r) {
            asked_ = r.delay();
            end.error = r.what();
        } catch (std::exception const& e) {
            auto const* const text = e.what(); // a class of the host's: it may be null
            end.error = text != nullptr && *text != '\0' ? text : "an exception without a text";
        } catch (...) {
            end.error = "the handler threw something that is no std::exception";
        }
        running_here = outer;
        return how;
    }

    attempt_outcome outcome_of(stop_reason why, string& text) const {
        auto const because = [&](string const& reason) { text = text.empty() ? reason : reason + ": " + text; };
        if (why == stop_reason::cancelled) {
            because("cancelled while it ran");
            return attempt_outcome::cancelled;
        }
        if (why == stop_reason::timed_out) {
            because("timeout after " + std::to_string(attempt_.how->timeout->value().count()) + " ms");
            return attempt_outcome::failed;
        }
        if (why == stop_reason::deadline) {
            because("deadline passed while it ran");
            return attempt_outcome::expired;
        }
        because("interrupted by a stop of the scheduler");
        return attempt_.how->on_interrupt == on_interrupt::hold ? attempt_outcome::held : attempt_outcome::interrupted;
    }

    time_point later(duration delay) const {
        auto const at = saturating_add(times_.present(), delay);
        return at > latest_time ? latest_time : at;
    }

    /// Whether and when a failed attempt is followed by another.
    void decide_retry(attempt_end& end) {
        auto const& record = attempt_.record;
        ax::retry::retry_state so_far;
        so_far.failures = record.failures + 1;
        so_far.elapsed = times_.present() - record.first_started.value_or(attempt_.started);
        auto const delay = next_delay(so_far, end.error);
        if (delay) end.retry_at = later(asked_.value_or(*delay));
        if (end.retry_at && record.deadline && *end.retry_at >= *record.deadline) {
            end.retry_at.reset();
            end.error += "; the deadline comes before the next attempt";
        }
        if (!end.retry_at) end.outcome = attempt_outcome::exhausted;
    }

    /// A success that the handler's own writes may yet turn into a failure: what becomes of it then.
    void decide_otherwise() {
        attempt_effects* effects = nullptr;
        {
            std::lock_guard const guard{attempt_.text_mutex};
            effects = attempt_.effects.get();
        }
        if (effects == nullptr) return;
        attempt_end other;
        other.outcome = attempt_outcome::failed;
        decide_retry(other);
        effects->otherwise = other.outcome;
        effects->retry_at = other.retry_at;
        effects->remark = std::move(other.error);
    }

    /// What the task's own policy says, else its handler's. One that cannot say is noted and passed over.
    std::optional<duration> next_delay(ax::retry::retry_state const& so_far, string& text) {
        try {
            if (!attempt_.record.retry.empty())
                return ax::retry::parse(attempt_.record.retry).next_delay(so_far, jitter_);
        } catch (std::exception const& e) {
            text += string("; stored retry policy: ") + e.what();
        }
        try {
            if (auto const& own = attempt_.how->retry) return own->next_delay(so_far, jitter_);
        } catch (...) { // a custom policy that throws
            text += "; the handler's retry policy threw";
        }
        return ax::retry::policy{}.next_delay(so_far, jitter_);
    }

    claimed_attempt& attempt_;
    timekeeper<Clock> const& times_;
    std::size_t payload_limit_;
    splitmix64 jitter_;
    duration grace_;
    std::optional<duration> asked_;
};

} // namespace ax::detail

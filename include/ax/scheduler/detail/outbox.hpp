// SPDX-License-Identifier: MIT
#pragma once

#include "ax/observe/events.hpp"
#include "ax/scheduler/detail/flight.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/storage/concept.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ax::detail {

/// An attempt that is over, and what is to be recorded of it.
template <class Attempt>
struct finished {
    std::shared_ptr<Attempt> what;
    attempt_end end;
    std::vector<submission> follow_ups;       ///< their types get numbers when they are stored
    workflow_nodes<std::string> additions;    ///< to the workflow of the task, likewise
    std::unique_ptr<attempt_effects> effects; ///< what `end` points to; null: none
    std::size_t tries = 0;                    ///< commits that failed with it aboard alone
    bool in_doubt = false;                    ///< was part of a commit of which it is not known whether it was made
    std::optional<task_state> stored;         ///< it was: the state that it has led to
};

/// Outcomes on their way to the storage.
/// Threads: none of its own; the caller's mutex guards it.
template <class Attempt>
class outbox {
  public:
    using finished_attempt = finished<Attempt>;

    void put(finished_attempt one) { waiting_.push_back(std::move(one)); }

    bool empty() const noexcept { return waiting_.empty(); }

    /// How many are waiting, under way, or kept back.
    std::size_t size() const noexcept { return waiting_.size() + under_way_ + kept_back_.size(); }

    /// How many are waiting or under way: those that a commit may still take.
    std::size_t open() const noexcept { return waiting_.size() + under_way_; }

    std::vector<finished_attempt> take(std::size_t most) {
        std::vector<finished_attempt> taken;
        while (!waiting_.empty() && taken.size() != most) {
            taken.push_back(std::move(waiting_.front()));
            waiting_.pop_front();
        }
        under_way_ += taken.size();
        return taken;
    }

    void stored(std::size_t count) noexcept { under_way_ -= count; }

    /// They could not be stored, for a reason that passes.
    void put_back(std::vector<finished_attempt>& taken) {
        under_way_ -= taken.size();
        for (auto& one : taken) waiting_.push_back(std::move(one));
        taken.clear();
    }

    /// One could not be stored, alone, and not because the storage is away. After three times its follow-ups are given
    /// up, and it counts as failed; where it has none it is kept back: the task stays claimed until the next start, and
    /// harms no other.
    void refused(std::vector<finished_attempt>& taken, error const& e) {
        auto& one = taken.front();
        if (++one.tries < 3) return put_back(taken);
        --under_way_;
        if (!one.follow_ups.empty() || !one.additions.all().empty()) {
            one.follow_ups.clear();
            one.additions = {};
            one.tries = 0;
            one.end.outcome = attempt_outcome::exhausted;
            one.end.error = bounded_text(std::string("its follow-ups cannot be stored: ") + e.what(), 4096);
            waiting_.push_back(std::move(one));
        } else {
            kept_back_.push_back(std::move(one));
        }
        taken.clear();
    }

  private:
    std::deque<finished_attempt> waiting_;
    std::vector<finished_attempt> kept_back_;
    std::size_t under_way_ = 0;
};

/// An event to be sent once no lock is held.
template <class Attempt>
struct pending {
    event_kind kind{};
    std::shared_ptr<Attempt> about;
    time_point at{};
    std::optional<attempt_outcome> outcome;
    duration lateness{};
    duration run_time{};
    std::string text;
};

} // namespace ax::detail

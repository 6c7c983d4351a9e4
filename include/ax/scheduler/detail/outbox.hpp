// SPDX-License-Identifier: MIT
#pragma once

#include "ax/observe/events.hpp"
#include "ax/scheduler/detail/flight.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/storage/concept.hpp"

#include <cstddef>
#include <deque>
#include <iterator>
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
    std::vector<submission> follow_ups; ///< their types get numbers when they are stored
    std::size_t tries = 0;              ///< commits that failed with it aboard alone
};

/// Outcomes on their way to the storage. They travel together; where that fails for another reason than a storage that
/// is away, each travels alone until the one that spoils the commit is known and has been changed into a failure.
/// Threads: none of its own; the caller's mutex guards it.
template <class Attempt>
class outbox {
  public:
    using finished_attempt = finished<Attempt>;

    void put(finished_attempt one) { waiting_.push_back(std::move(one)); }

    bool empty() const noexcept { return waiting_.empty(); }

    /// How many are waiting or under way.
    std::size_t size() const noexcept { return waiting_.size() + under_way_; }

    std::vector<finished_attempt> take() {
        std::vector<finished_attempt> taken;
        if (one_by_one_ && waiting_.size() > 1) {
            taken.push_back(std::move(waiting_.front()));
            waiting_.pop_front();
        } else {
            taken.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
            waiting_.clear();
            one_by_one_ = false;
        }
        under_way_ += taken.size();
        return taken;
    }

    void stored(std::size_t count) noexcept { under_way_ -= count; }

    /// They could not be stored, for the reason `e`.
    void put_back(std::vector<finished_attempt>& taken, error const& e) {
        under_way_ -= taken.size();
        if (!e.transient() && taken.size() > 1) one_by_one_ = true;
        for (auto& one : taken) {
            if (!e.transient() && taken.size() == 1 && ++one.tries >= 3 && !one.follow_ups.empty()) {
                one.follow_ups.clear(); // what it would submit is refused, whatever is tried
                one.end.outcome = attempt_outcome::exhausted;
                one.end.error = bounded_text(std::string("its follow-ups cannot be stored: ") + e.what(), 4096);
            }
            waiting_.push_back(std::move(one));
        }
        taken.clear();
    }

  private:
    std::deque<finished_attempt> waiting_;
    std::size_t under_way_ = 0;
    bool one_by_one_ = false;
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

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/ids.hpp"
#include "ax/time/time_point.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

namespace ax::detail {

/// Tasks that wait for a limit and that the storage has named as worth a claim, now or at the instant of a token.
///
/// They are no part of the pages that the window reads, and the storage may name one again and again while it stands in
/// a queue: it is remembered from the first time until it is drawn. Unlike what only waits for its time, they are not
/// drawn ahead of their instant: a token that is not there yet cannot be claimed.
/// Threads: none of its own; the caller's mutex guards it.
template <class DueTask>
class named_waiters {
  public:
    explicit named_waiters(time_point now) : wheel_(now) {}

    /// Returns whether that is news: nobody has named it for so early an instant.
    bool name(task_id id, time_point at) {
        auto const [known, added] = named_.try_emplace(id, at);
        if (!added && known->second <= at) return false;
        known->second = at;
        return true;
    }

    /// turn() hands it out at `at`.
    void wait(DueTask const& task, time_point at) { wheel_.schedule(at, task); }

    template <class Enqueue>
    void turn(time_point now, Enqueue&& enqueue) {
        wheel_.advance(now, std::forward<Enqueue>(enqueue));
    }

    std::optional<time_point> next_expiry() { return wheel_.next_advance(); }

    void drawn(task_id id) {
        if (!named_.empty()) named_.erase(id);
    }

    /// Forgets all: they are about to be named anew.
    void reset(time_point now) {
        wheel_ = timing_wheel<DueTask>{now};
        named_.clear();
    }

  private:
    timing_wheel<DueTask> wheel_;
    // By a dependent name, so that a unit that only includes this does not pay for its code.
    std::unordered_map<dependent<task_id, DueTask>, time_point> named_; ///< from when on it is worth a claim
};

} // namespace ax::detail

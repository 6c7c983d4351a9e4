// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace ax::detail {

/// Who is told that a transaction of the host's has been committed.
class guest_desk {
  public:
    virtual void guest_committed(task_id id) = 0;

  protected:
    ~guest_desk() = default;
};

/// A task that was submitted in a transaction of the host's.
struct guest_task {
    task_id id{};
    alarms due;
    std::optional<time_point> deadline;
    duration until{}; ///< steady time at which it is given up
};

/// What the store is asked for.
struct guest_look {
    task_id id{};
    std::optional<time_point> run_at; ///< a task that was replaced is there before, too, but has its old instant
};

/// Tasks that were submitted in transactions of the host's, while it is not known that those are committed. Who says
/// so is believed; for the others the store is asked again and again, for a while.
/// Threads: none of its own; the caller's mutex guards it.
template <class Task>
class guest_submits {
  public:
    static constexpr duration look_every{20};
    static constexpr duration wait_for{10'000}; ///< a transaction that is open for longer is found by the next sweep
    static constexpr std::size_t most = 1'024;  ///< likewise those beyond
    static constexpr std::size_t looks = 64;    ///< for how many of them the store is asked at once

    bool empty() const noexcept { return waiting_.empty(); }

    void add(Task one, duration steady) {
        // The same task once more in one transaction, or an id that is given again since the first was rolled back:
        // what the first would have woken is woken in vain at worst.
        if (auto const before = take(one.id)) {
            one.due.insert(one.due.end(), before->due.begin(), before->due.end());
            if (!one.deadline || (before->deadline && *before->deadline < *one.deadline))
                one.deadline = before->deadline;
        }
        if (waiting_.empty()) next_look_ = steady + look_every;
        if (waiting_.size() == most) waiting_.pop_front();
        one.until = steady + wait_for;
        waiting_.push_back(std::move(one));
    }

    /// Takes out what waits under an id.
    std::optional<Task> take(task_id id) {
        for (auto at = waiting_.begin(); at != waiting_.end(); ++at)
            if (at->id == id) {
                std::optional<Task> found{std::move(*at)};
                waiting_.erase(at);
                return found;
            }
        return std::nullopt;
    }

    /// How long until the store is to be asked; none where nobody waits.
    std::optional<duration> next_look(duration steady) const {
        if (waiting_.empty()) return std::nullopt;
        return next_look_ > steady ? next_look_ - steady : duration{0};
    }

    /// Those for which the store is to be asked now. They are looked for in turn.
    std::vector<guest_look> take_looks(duration steady) {
        std::vector<guest_look> wanted;
        if (waiting_.empty() || next_look_ > steady) return wanted;
        next_look_ = steady + look_every;
        auto left = waiting_.size();
        for (; left != 0 && wanted.size() != looks; --left) {
            auto one = std::move(waiting_.front());
            waiting_.pop_front();
            if (one.until <= steady) continue;
            guest_look look{one.id, std::nullopt};
            for (auto const& a : one.due)
                if (a.id == one.id && !look.run_at) look.run_at = a.run_at; // the latest stands first
            wanted.push_back(look);
            waiting_.push_back(std::move(one));
        }
        return wanted;
    }

  private:
    std::deque<Task> waiting_;
    duration next_look_{};
};

} // namespace ax::detail

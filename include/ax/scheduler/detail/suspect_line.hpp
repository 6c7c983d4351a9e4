// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/ids.hpp"
#include "ax/time/time_point.hpp"

#include <map>
#include <optional>
#include <utility>

namespace ax::detail {

/// The suspects that wait for their lonely run: tasks that were in flight at two unclean ends in a row. One flies at a
/// time.
///
/// A process that dies again and again soon after its start has another reason than a task: while it is young, suspects
/// wait, so that its deaths do not count against the one that would be running alone.
/// Threads: none of its own; the caller's mutex guards it.
template <class DueTask>
class suspect_line {
  public:
    static constexpr duration pause_after_start{1000};

    explicit suspect_line(duration steady) noexcept : started_(steady) {}

    /// The pause begins now.
    void restart(duration steady) noexcept { started_ = steady; }

    /// Whether a suspect may be claimed.
    bool open(duration steady) const noexcept { return alone_ == task_id{} && !pausing(steady); }

    /// How long the pause lasts yet, where somebody waits for its end.
    std::optional<duration> pause_left(duration steady) const noexcept {
        if (waiting_.empty() || !pausing(steady)) return std::nullopt;
        return started_ + pause_after_start - steady;
    }

    /// Whether it waits in line.
    bool contains(task_id id) const { return waiting_.contains(id); }

    void put(task_id id, DueTask const& task) { waiting_.insert_or_assign(id, task); }

    void took_off(task_id id) noexcept { alone_ = id; }
    void landed() noexcept { alone_ = {}; }

    /// The one that was claimed to run alone, and has not ended; 0: none.
    task_id alone() const noexcept { return alone_; }

    /// Takes the next one that may be claimed now.
    std::optional<DueTask> next(duration steady) {
        if (waiting_.empty() || !open(steady)) return std::nullopt;
        auto const first = waiting_.extract(waiting_.begin());
        return first.mapped();
    }

  private:
    bool pausing(duration steady) const noexcept { return steady - started_ < pause_after_start; }

    std::map<task_id, DueTask> waiting_;
    duration started_; ///< steady time
    task_id alone_{};
};

} // namespace ax::detail

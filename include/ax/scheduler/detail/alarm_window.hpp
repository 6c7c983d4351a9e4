// SPDX-License-Identifier: MIT
// The near future in memory. The store holds all tasks; this holds the ids of those that come due soon, in a timing
// wheel, and of those that are due, in one queue for each priority class. It is a cache: it may be emptied at any
// moment, and every id in it may be stale; the conditional claim decides.
//
// Each lane is read page by page in the order (run_at, id). What a lane has read up to is its `loaded_until`: a task
// that becomes due by then is armed by whoever learned of it (a submit, a retry), a later one is left for the next
// page.
#pragma once

#include "ax/dispatch/fair_queue.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace ax::detail {

/// An id in memory, and the lane it was read from.
template <class Lane>
struct due_task {
    task_id id{};
    Lane* lane = nullptr;
};

/// One read of the store: `upcoming(after, until, limit)` for `lane`.
template <class Lane>
struct page_request {
    Lane* lane = nullptr;
    alarm after{};
    time_point until{};
    std::size_t limit = 0;
    bool sweep = false; ///< looks for overdue tasks that memory has lost
};

/// Threads: none of its own; the caller's mutex guards it.
template <class Lane>
class alarm_window {
  public:
    using due_task = detail::due_task<Lane>;
    using page_request = detail::page_request<Lane>;

    static constexpr std::size_t page_size = 4096;
    static constexpr std::size_t sweep_size = 256;
    /// The ids for which every lane has room, however full the memory is: so no flood in one lane keeps another from
    /// being read, and the memory holds at most `most` ids and this many for each lane.
    static constexpr std::size_t reserve = 64;
    static constexpr task_id behind_all{static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max)())};

    alarm_window(time_point now, duration length, std::size_t most, std::array<std::size_t, priority_classes> weights)
        : wheel_(now), due_(weights), length_(length), most_(most) {}

    /// Lets a lane take part, or takes it out. Whatever it had in memory is forgotten.
    void set_runnable(Lane& lane, bool yes) {
        lane.runnable = yes;
        forget(lane);
    }

    /// A task of `lane` is claimable at `a.run_at`.
    void arm(Lane& lane, alarm const& a, time_point horizon) {
        if (!lane.runnable) return;
        if (a.run_at > (std::max)(lane.loaded_until, lane.loading_until)) { // for a later page
            lane.beyond = (std::min)(lane.beyond.value_or(a.run_at), a.run_at);
            return;
        }
        if (size() >= most_ && lane.in_memory >= reserve) {
            lane.truncated_at = (std::min)(lane.truncated_at.value_or(a.run_at), a.run_at);
            if (lane.loading_until == (time_point::min)()) truncate(lane);
            return;
        }
        ++lane.in_memory;
        if (a.run_at <= horizon)
            enqueue({a.id, &lane});
        else
            wheel_.schedule(a.run_at, {a.id, &lane});
    }

    /// Puts a claimable id straight among the due ones (one that had to wait for another reason than time).
    void requeue(due_task task) {
        if (!task.lane->runnable) return;
        ++task.lane->in_memory;
        enqueue(task);
    }

    /// Moves what is due by `horizon` into the queue.
    void turn(time_point horizon) {
        wheel_.advance(horizon, [this](due_task task) { enqueue(task); });
    }

    /// The earliest instant of those that wait for theirs.
    std::optional<time_point> next_expiry() { return wheel_.next_expiry(); }

    /// The horizon of the latest turn(): an earlier one finds nothing.
    time_point position() const { return wheel_.position(); }

    bool any_due(priority_class c) const { return due_.size(c) != 0; }

    bool any_due(std::array<bool, priority_classes> const& classes) const {
        for (std::size_t i = 0; i != priority_classes; ++i)
            if (classes[i] && due_.size(static_cast<priority_class>(i)) != 0) return true;
        return false;
    }

    /// Draws one due id from the classes that may be drawn from, by weight.
    std::optional<due_task> draw(std::array<bool, priority_classes> const& classes) {
        while (auto task = due_.pop(classes)) {
            --task->lane->queued;
            --task->lane->in_memory;
            if (task->lane->runnable) return task;
        }
        return std::nullopt;
    }

    /// What `lane` should read next, if anything. The caller reads it without holding its mutex and then calls
    /// loaded().
    std::optional<page_request> next_page(Lane& lane, time_point now) {
        if (!lane.runnable || lane.loading_until != (time_point::min)()) return std::nullopt;
        if (!wants_more(lane)) return std::nullopt;
        if (lane.complete && lane.loaded_until - now > length_ / 2) return std::nullopt;
        auto const until = saturating_add(now, length_);
        lane.loading_until = until;
        lane.beyond.reset(); // what is learned of it while the page is read counts together with the page
        auto const room = (std::max)(most_ - (std::min)(most_, size()), reserve);
        return page_request{&lane, lane.cursor, until, (std::min)(page_size, room), false};
    }

    /// The read that finds overdue tasks that memory knows nothing of. They have been overdue for two seconds, so that
    /// ordinary work is never read twice; nor is what the lane's next page has. To be asked for before that page: a
    /// host that looks rarely reads one each time.
    std::optional<page_request> next_sweep(Lane& lane, time_point now) {
        if (!lane.runnable || !lane.sweep_due || lane.queued != 0) return std::nullopt;
        lane.sweep_due = false;
        auto const until = (std::min)(now - std::chrono::seconds{2}, lane.cursor.run_at);
        if (until == (time_point::min)()) return std::nullopt; // all of it is read anew
        alarm first{};
        first.lane = lane.lane;
        first.run_at = (time_point::min)();
        return page_request{&lane, first, until, sweep_size, true};
    }

    /// @param beyond  The first task of the lane behind a page that reached the end of the window, if any.
    void loaded(page_request const& request, std::span<alarm const> page, std::optional<time_point> beyond,
                time_point horizon) {
        auto& lane = *request.lane;
        if (request.sweep) {
            if (lane.queued == 0)
                for (auto const& a : page) requeue({a.id, &lane});
            return;
        }
        if (lane.loading_until == (time_point::min)()) return; // forgotten while the page was read
        lane.complete = page.size() < request.limit;
        auto const next = lane.complete ? beyond : page.back().run_at;
        if (next) lane.beyond = (std::min)(lane.beyond.value_or(*next), *next);
        if (lane.complete) {
            lane.loaded_until = request.until;
            lane.cursor.run_at = request.until;
            lane.cursor.id = behind_all;
        } else {
            lane.loaded_until = page.back().run_at;
            lane.cursor = page.back();
        }
        lane.loading_until = (time_point::min)();
        for (auto const& a : page) arm(lane, a, horizon);
        if (lane.truncated_at) truncate(lane);
    }

    /// A page could not be read: the lane asks again.
    void failed(page_request const& request) {
        if (request.sweep)
            request.lane->sweep_due = true;
        else
            request.lane->loading_until = (time_point::min)();
    }

    /// Empties the memory and starts the wheel anew at `now`: after the wall clock was set back.
    void reset(time_point now, std::span<Lane* const> lanes) {
        wheel_ = timing_wheel<due_task>{now};
        while (due_.pop()) {
        }
        for (auto* lane : lanes) {
            lane->in_memory = 0;
            lane->queued = 0;
            forget(*lane);
        }
    }

    /// The instant at which the next page of `lane` should be read; none where nothing lies behind what it has read.
    std::optional<time_point> next_read(Lane const& lane) const {
        if (!lane.runnable || !lane.beyond) return std::nullopt;
        if (!wants_more(lane)) return std::nullopt; // what is in memory comes first: its own alarms say when
        return saturating_add(*lane.beyond, -length_ / 2);
    }

    std::size_t size() const { return wheel_.size() + due_.size(); }

  private:
    /// Whether a page is worth reading: not while there is plenty, and not for a few places in a memory that is nearly
    /// full, for then most of each page would be read in vain.
    bool wants_more(Lane const& lane) const {
        if (lane.in_memory < reserve / 2) return true;
        return lane.in_memory <= page_size / 2 && size() <= most_ - most_ / 4;
    }

    void enqueue(due_task task) {
        ++task.lane->queued;
        due_.push(class_of(task.lane->lane), task);
    }

    static void forget(Lane& lane) {
        lane.complete = false;
        lane.beyond.reset();
        lane.loaded_until = (time_point::min)();
        lane.loading_until = (time_point::min)();
        lane.truncated_at.reset();
        lane.cursor = {};
        lane.cursor.lane = lane.lane;
        lane.cursor.run_at = (time_point::min)();
    }

    /// Memory was full: what `lane` has from truncated_at on is read again later.
    static void truncate(Lane& lane) {
        auto const at = *lane.truncated_at;
        lane.truncated_at.reset();
        if (at > lane.loaded_until) return;
        lane.complete = false;
        lane.loaded_until = at - duration{1};
        lane.beyond = at;
        lane.cursor.run_at = at;
        lane.cursor.id = task_id{0};
    }

    timing_wheel<due_task> wheel_;
    fair_queue<due_task, priority_class> due_;
    duration length_;
    std::size_t most_;
};

} // namespace ax::detail

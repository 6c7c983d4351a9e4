// SPDX-License-Identifier: MIT
// What this process holds: every task from its claim to its settled outcome. A claimed task waits for its instant, is
// queued for a worker, is posted to the executor, runs, and has ended when its outcome is on the way to the storage.
// Until it has left, no second claim of it is made here.
#pragma once

#include "ax/dispatch/fair_queue.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ax::detail {

using attempt_ptr = std::shared_ptr<claimed_attempt>;

/// The earlier of two instants, where nothing is later than everything.
inline std::optional<time_point> earlier(std::optional<time_point> a, std::optional<time_point> b) {
    if (!a || !b) return a ? a : b;
    return (std::min)(*a, *b);
}

/// What a turn of the clocks found.
template <class Attempt>
struct flight_events {
    std::vector<std::pair<std::shared_ptr<Attempt>, stop_reason>> to_stop; ///< to be asked, without a lock
    std::vector<std::shared_ptr<Attempt>> overran;                         ///< running for longer than expected
    std::vector<std::shared_ptr<Attempt>> to_note; ///< running long enough for the store to be told
};

/// A template, as are the other parts of the engine, so that a unit that schedules nothing does not pay for its code.
/// Threads: none of its own; the caller's mutex guards it.
template <class Attempt>
class flight {
  public:
    using attempt_ptr = std::shared_ptr<Attempt>;

    /// How long an attempt runs before the store is told that it does: a short one is told when it ends.
    static constexpr duration note_after{50};

    /// @param least  So many of a class may always be claimed ahead, and
    /// @param peak   so many where the workers take them as fast: see plan_claims().
    flight(time_point now, duration steady, std::size_t workers, std::size_t least, std::size_t peak,
           std::array<std::size_t, priority_classes> weights)
        : instants_(now), limits_(time_point{steady}), queue_(weights), workers_(workers), least_(least),
          peak_((std::max)(least, peak)) {
        most_claimed_.fill(least_);
    }

    // ---------------------------------------------------------------- coming in

    /// Before claims are drawn: of each class twice as many may be claimed ahead as the workers have taken since the
    /// last time, or somewhat fewer than then. So short tasks are claimed in large commits, also where one exchange
    /// with the storage comes close behind another, and of long ones few are held.
    void plan_claims() {
        for (std::size_t i = 0; i != priority_classes; ++i) {
            auto const fewer = most_claimed_[i] - (most_claimed_[i] + 7) / 8;
            most_claimed_[i] = std::clamp((std::max)(2 * std::exchange(taken_[i], 0), fewer), least_, peak_);
        }
    }

    /// The classes of which more may be claimed.
    std::array<bool, priority_classes> open_classes() const {
        std::array<bool, priority_classes> open{};
        for (std::size_t i = 0; i != priority_classes; ++i) open[i] = claimed_[i] < most_claimed_[i];
        return open;
    }

    /// How many more of one class may be claimed.
    std::size_t room(priority_class c) const {
        auto const held = claimed_[static_cast<std::size_t>(c)];
        auto const most = most_claimed_[static_cast<std::size_t>(c)];
        return held < most ? most - held : 0;
    }

    /// Keeps room for claims of which it is not known yet what they are of.
    void hold_room(priority_class c, std::size_t count) { claimed_[static_cast<std::size_t>(c)] += count; }
    void free_room(priority_class c, std::size_t count) { claimed_[static_cast<std::size_t>(c)] -= count; }

    /// Announces a claim. False where the task is here already.
    bool reserve(task_id id) { return tasks_.try_emplace(id, nullptr).second; }

    /// The announced claim was not made.
    void give_up(task_id id) {
        auto const found = tasks_.find(id);
        if (found != tasks_.end() && !found->second) tasks_.erase(found);
    }

    /// The announced claim was made. It waits for admit().
    attempt_ptr enter(task_record record, handler& by) {
        auto mine = std::make_shared<Attempt>();
        mine->record = std::move(record);
        mine->handled_by = &by;
        mine->how = by.how;
        tasks_[mine->record.id] = mine;
        ++claimed_[index(*mine)];
        return mine;
    }

    /// Where the task is due it may start from now on, else it waits for its instant. Returns which.
    bool admit(attempt_ptr const& mine, time_point now) {
        if (mine->record.run_at <= now)
            enqueue(mine);
        else
            wait_for_instant(*mine);
        return mine->record.run_at <= now;
    }

    // ---------------------------------------------------------------- to the handler

    bool may_start() const { return running_ < workers_ && !queue_.empty(); }

    /// The next attempt that may start, if a worker is free; the worker is its own from now on.
    attempt_ptr take_next() {
        while (running_ < workers_) {
            auto next = queue_.pop();
            if (!next) break;
            auto& mine = **next;
            if (mine.status != attempt_status::queued) { // taken back meanwhile
                if (dead_in_queue_ != 0) --dead_in_queue_;
                continue;
            }
            mine.status = attempt_status::posted;
            --claimed_[index(mine)];
            ++taken_[index(mine)];
            ++running_;
            return std::move(*next);
        }
        return nullptr;
    }

    /// The executor refused it: it is queued again, behind the others of its class.
    void not_posted(attempt_ptr const& mine) {
        if (mine->status != attempt_status::posted || mine->begun.load()) return;
        --running_;
        ++claimed_[index(*mine)];
        enqueue(mine);
    }

    void started(claimed_attempt& mine, time_point now, duration steady) {
        mine.status = attempt_status::running;
        mine.started = now;
        mine.started_steady = steady;
    }

    /// Sets the alarms of a running attempt. Returns the wall-clock instant of the first that matters.
    std::optional<time_point> set_limits(Attempt& mine, time_point now) {
        auto const from = time_point{mine.started_steady + duration{1}};
        auto const& how = *mine.how;
        std::optional<time_point> first;
        if (mine.record.deadline) {
            mine.wall_alarm = instants_.schedule(*mine.record.deadline, mark_of(mine, what::deadline));
            first = mine.record.deadline;
        }
        if (how.timeout) {
            mine.steady_alarms[0] = limits_.schedule(saturating_add(from, *how.timeout), mark_of(mine, what::timeout));
            first = earlier(first, saturating_add(now, *how.timeout));
        }
        if (how.expected) {
            mine.steady_alarms[1] =
                limits_.schedule(saturating_add(from, *how.expected), mark_of(mine, what::expected));
            first = earlier(first, saturating_add(now, *how.expected));
        }
        mine.steady_alarms[2] = limits_.schedule(from + note_after, mark_of(mine, what::note));
        return first;
    }

    /// The handler has returned; the worker is free.
    void ended(Attempt& mine) {
        drop_alarms(mine);
        mine.status = attempt_status::ended;
        --running_;
    }

    // ---------------------------------------------------------------- taking back

    /// Takes an attempt that has not started out of the way to its handler. False where it has started.
    bool revoke(Attempt& mine) {
        if (!unstarted(mine)) return false;
        if (mine.status == attempt_status::posted) {
            if (!mine.begin()) return false; // the executor has come to it
            --running_;
        } else {
            --claimed_[index(mine)];
        }
        if (mine.status == attempt_status::queued) ++dead_in_queue_; // it is passed over; see take_dead()
        mine.status = attempt_status::ended;
        drop_alarms(mine);
        return true;
    }

    template <class Wanted>
    std::vector<attempt_ptr> revoke_all(Wanted&& wanted) {
        std::vector<attempt_ptr> revoked;
        for (auto const& [id, mine] : tasks_)
            if (mine && unstarted(*mine) && wanted(*mine) && revoke(*mine)) revoked.push_back(mine);
        return revoked;
    }

    /// The revoked ones that still stand in the queue, once they outnumber the others there: a caller that holds a lock
    /// lets them go after it.
    std::vector<attempt_ptr> take_dead() {
        if (dead_in_queue_ * 2 <= queue_.size()) return {};
        dead_in_queue_ = 0;
        return queue_.remove_if([](attempt_ptr const& one) { return one->status != attempt_status::queued; });
    }

    // ---------------------------------------------------------------- leaving

    /// The outcome is settled: the task may be claimed again.
    void leave(Attempt const& mine) {
        auto const found = tasks_.find(mine.record.id);
        if (found != tasks_.end() && found->second.get() == &mine) tasks_.erase(found);
    }

    // ---------------------------------------------------------------- looking

    bool contains(task_id id) const { return tasks_.contains(id); }

    /// Null where the task is not here, or only announced.
    attempt_ptr find(task_id id) const {
        auto const found = tasks_.find(id);
        return found == tasks_.end() ? nullptr : found->second;
    }

    std::vector<attempt_ptr> running_ones() const {
        std::vector<attempt_ptr> found;
        for (auto const& [id, mine] : tasks_)
            if (mine && mine->status == attempt_status::running) found.push_back(mine);
        return found;
    }

    /// Running, or handed to the executor for that.
    std::vector<attempt_ptr> in_hands() const {
        std::vector<attempt_ptr> found;
        for (auto const& [id, mine] : tasks_)
            if (mine && (mine->status == attempt_status::running || mine->status == attempt_status::posted))
                found.push_back(mine);
        return found;
    }

    std::size_t running() const noexcept { return running_; }

    std::size_t claimed() const noexcept {
        std::size_t sum = 0;
        for (auto const n : claimed_) sum += n;
        return sum;
    }

    // ---------------------------------------------------------------- time

    /// Moves both clocks: starts what has come due, and tells what has run too long.
    void turn(time_point now, duration steady, flight_events<Attempt>& found) {
        instants_.advance(now, [&](mark const& m) {
            auto const mine = marked(m);
            if (!mine) return;
            if (m.kind == what::start && mine->status == attempt_status::waiting) enqueue(mine);
            if (m.kind == what::deadline && mine->status == attempt_status::running)
                found.to_stop.emplace_back(mine, stop_reason::deadline);
        });
        limits_.advance(time_point{steady}, [&](mark const& m) {
            auto const mine = marked(m);
            if (!mine || mine->status != attempt_status::running) return;
            if (m.kind == what::timeout) found.to_stop.emplace_back(mine, stop_reason::timed_out);
            if (m.kind == what::note) found.to_note.push_back(mine);
            if (m.kind == what::expected) {
                mine->over_expected = true;
                found.overran.push_back(mine);
            }
        });
    }

    /// The wall-clock instant at which turn() finds something next.
    std::optional<time_point> next_turn(time_point now, duration steady) {
        auto next = instants_.next_advance();
        if (auto const limit = limits_.next_expiry())
            next = earlier(next, saturating_add(now, limit->time_since_epoch() - steady));
        return next;
    }

    /// The wall clock was set back to `now`. Returns what was claimed too early, as it turns out, and is taken back.
    std::vector<attempt_ptr> set_back(time_point now, time_point horizon) {
        instants_ = timing_wheel<mark>{now};
        for (auto const& [id, mine] : tasks_) {
            if (!mine) continue;
            mine->wall_alarm = {};
            if (mine->status == attempt_status::queued && mine->record.run_at > now)
                mine->status = attempt_status::waiting; // its place in the queue is passed over
            if (mine->status == attempt_status::waiting) wait_for_instant(*mine);
            if (mine->status == attempt_status::running && mine->record.deadline)
                mine->wall_alarm = instants_.schedule(*mine->record.deadline, mark_of(*mine, what::deadline));
        }
        return revoke_all([&](Attempt const& mine) { return mine.record.run_at > horizon; });
    }

  private:
    enum class what : std::uint32_t { start, deadline, timeout, expected, note };

    /// An alarm that belongs to an attempt. One of an older attempt of the same task finds nobody.
    struct mark {
        task_id id{};
        std::uint32_t stamp = 0; ///< the low bits of the fence
        what kind{};
    };

    static std::size_t index(Attempt const& mine) { return static_cast<std::size_t>(mine.record.priority); }

    static std::uint32_t stamp_of(Attempt const& mine) {
        return static_cast<std::uint32_t>(to_number(mine.record.fence));
    }

    static mark mark_of(Attempt const& mine, what kind) { return {mine.record.id, stamp_of(mine), kind}; }

    attempt_ptr marked(mark const& m) const {
        auto mine = find(m.id);
        return mine && stamp_of(*mine) == m.stamp ? mine : nullptr;
    }

    static bool unstarted(Attempt const& mine) {
        return mine.status == attempt_status::waiting || mine.status == attempt_status::queued ||
               mine.status == attempt_status::posted;
    }

    void enqueue(attempt_ptr const& mine) {
        mine->status = attempt_status::queued;
        queue_.push(mine->record.priority, mine);
    }

    void wait_for_instant(Attempt& mine) {
        mine.wall_alarm = instants_.schedule(mine.record.run_at, mark_of(mine, what::start));
    }

    void drop_alarms(Attempt& mine) {
        instants_.cancel(mine.wall_alarm);
        for (auto const limit : mine.steady_alarms) limits_.cancel(limit);
    }

    std::unordered_map<task_id, attempt_ptr> tasks_; ///< null while the claim is being committed
    timing_wheel<mark> instants_;                    ///< by wall time: starts, deadlines
    timing_wheel<mark> limits_;                      ///< by steady time: timeouts and the like
    fair_queue<attempt_ptr, priority_class> queue_;
    std::size_t workers_;
    std::size_t least_;
    std::size_t peak_;
    std::array<std::size_t, priority_classes> most_claimed_{}; ///< between both
    std::array<std::size_t, priority_classes> claimed_{};      ///< waiting or queued
    std::array<std::size_t, priority_classes> taken_{};        ///< by workers, since plan_claims()
    std::size_t dead_in_queue_ = 0;                            ///< revoked, and still standing in the queue
    std::size_t running_ = 0;                                  ///< posted or running
};

} // namespace ax::detail

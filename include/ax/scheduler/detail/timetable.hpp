// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The schedules of a store in memory: what each means, and when it is due next.
/// Threads: none of its own; the caller's mutex guards it.
template <class Recurrence>
class timetable {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using place_number = dependent<std::uint64_t, Recurrence>;
    using new_task = dependent<ax::new_task, Recurrence>;
    using schedule_record = dependent<ax::schedule_record, Recurrence>;
    using schedule_step = dependent<ax::schedule_step, Recurrence>;

  public:
    explicit timetable(time_point now) : wheel_(now) {}

    /// A schedule whose next instant depends on the end of its latest run.
    struct gap {
        std::string name;
        std::uint64_t version = 0;
        task_id last_task{};
        Recurrence how;
    };

    /// Enters a schedule, or replaces what is known of it.
    void put(schedule_record const& record) {
        auto const known = places_.find(record.name);
        auto const place = known != places_.end() ? known->second : ++last_place_;
        if (known == places_.end()) places_.emplace(record.name, place);
        auto& p = entries_[place];
        if (record.created == p.record.created && record.version < p.record.version) return; // older than what is known
        if (!p.how || p.record.spec != record.spec) {
            p.how.reset();
            try {
                p.how = Recurrence::parse(record.spec);
            } catch (error const&) { // kept in the store, for the version that can read it
            }
        }
        p.record = record;
        arm(place, p);
    }

    void remove(std::string_view name) {
        auto const known = places_.find(name);
        if (known == places_.end()) return;
        auto const found = entries_.find(known->second);
        wheel_.cancel(found->second.timer);
        entries_.erase(found);
        places_.erase(known);
    }

    void turn(time_point now) {
        wheel_.advance(now, [this](std::uint64_t place) { due_.push_back(place); });
    }

    std::optional<time_point> next_turn() { return wheel_.next_expiry(); }

    bool any_due() const { return !due_.empty(); }

    /// The steps of all that are due: the cursor moves on, and one occurrence stands for all that were missed.
    /// @param most  How many at the most; the others stay due.
    std::vector<schedule_step> take_steps(time_point now, std::size_t most) {
        std::vector<schedule_step> steps;
        auto taken = std::exchange(due_, {});
        if (taken.size() > most) {
            due_.assign(taken.begin() + static_cast<std::ptrdiff_t>(most), taken.end());
            taken.resize(most);
        }
        for (auto const place : taken) {
            auto const found = entries_.find(place);
            if (found == entries_.end() || !found->second.record.next) continue;
            auto const& p = found->second;
            if (!p.how) continue;
            if (*p.record.next <= now)
                steps.push_back(step_of(p, now));
            else if (auto const nearer = p.how->nearer(*p.record.next, now))
                steps.push_back(step_back(p, *nearer));
            else
                arm(place, found->second); // the clock went back meanwhile, or it was declared anew
        }
        return steps;
    }

    /// It cannot be stored whatever is tried: it fires no more until it is declared anew, and harms no other.
    void set_aside(std::string_view name) {
        if (auto const known = places_.find(name); known != places_.end()) entries_.at(known->second).how.reset();
    }

    /// A step could not be stored: the schedule is due again.
    void again(std::string_view name) {
        if (auto const known = places_.find(name); known != places_.end()) due_.push_back(known->second);
    }

    /// Whether take_gaps() has something to look at.
    bool any_gap() const { return look_at_gaps_; }

    /// A run of a schedule has ended.
    void run_ended() { look_at_gaps_ = true; }

    /// A task has ended that may be what a fixed delay waits for.
    void run_ended(task_id id) {
        for (auto const& [place, p] : entries_)
            if (p.record.last_task == id && p.how && p.how->waits_for_end() && !p.record.next) look_at_gaps_ = true;
    }

    std::vector<gap> take_gaps() {
        std::vector<gap> waiting;
        if (!std::exchange(look_at_gaps_, false)) return waiting;
        for (auto const& [place, p] : entries_)
            if (p.how && p.how->waits_for_end() && !p.record.next)
                waiting.push_back({p.record.name, p.record.version, p.record.last_task, *p.how});
        return waiting;
    }

    /// The wall clock was set back to `now`.
    void set_back(time_point now) {
        wheel_ = timing_wheel<place_number>{now};
        for (auto& [place, p] : entries_) {
            p.timer = {};
            arm(place, p);
        }
        look_ahead(now);
    }

    /// Finds the schedules that a wrong clock has carried further ahead than they can be at `now`: they are due, to be
    /// set back. What occurred already does not occur again, for the store knows it.
    void look_ahead(time_point now) {
        for (auto const& [place, p] : entries_)
            if (p.how && p.record.next && p.how->nearer(*p.record.next, now)) due_.push_back(place);
    }

  private:
    struct entry {
        schedule_record record;
        std::optional<Recurrence> how; ///< none where the stored text does not parse: it never fires
        timer_handle timer{};
    };

    void arm(std::uint64_t place, entry& p) {
        wheel_.cancel(p.timer);
        p.timer = {};
        if (!p.how) return;
        if (p.record.next)
            p.timer = wheel_.schedule(*p.record.next, place);
        else if (p.how->waits_for_end())
            look_at_gaps_ = true;
    }

    /// Moves the cursor, and nothing else.
    static schedule_step step_back(entry const& p, time_point to) {
        schedule_step step;
        step.name = p.record.name;
        step.version = p.record.version;
        step.next = to;
        return step;
    }

    static schedule_step step_of(entry const& p, time_point now) {
        auto const found = p.how->latest(*p.record.next, now);
        schedule_step step;
        step.name = p.record.name;
        step.version = p.record.version;
        step.next = p.how->following(found.nominal);
        step.skip_if_unfinished = true;
        step.skipped = found.missed;
        if (found.missed != 0) step.skip_reason = "missed: a later one stands for it";
        new_task task;
        task.type = p.record.type;
        task.payload = p.record.payload;
        task.run_at = found.nominal;
        task.schedule = p.record.name;
        task.scheduled_at = found.nominal;
        step.occurrence = std::move(task);
        return step;
    }

    std::map<place_number, entry> entries_; ///< by a place number, given once and never again
    std::map<std::string, place_number, std::less<>> places_;
    timing_wheel<place_number> wheel_;
    std::vector<place_number> due_;
    std::uint64_t last_place_ = 0;
    bool look_at_gaps_ = true;
};

} // namespace ax::detail

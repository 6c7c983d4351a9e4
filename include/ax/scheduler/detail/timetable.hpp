// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/scheduler/detail/misfire_plan.hpp"
#include "ax/scheduler/detail/schedule_terms.hpp"
#include "ax/scheduler/detail/spread.hpp"
#include "ax/scheduler/payload_template.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// What a stored schedule means.
template <class Recurrence>
struct schedule_meaning {
    using text = dependent<std::string, Recurrence>;

    Recurrence how;
    basic_schedule_terms<text> terms;
    duration offset{0};                                  ///< of the spread
    std::optional<basic_payload_template<text>> payload; ///< none: it is the same for each occurrence

    /// Errors: corrupt where a stored text is none.
    explicit schedule_meaning(dependent<schedule_record, Recurrence> const& record)
        : how(Recurrence::parse(record.spec)), terms(basic_schedule_terms<text>::parse(record.terms)),
          offset(spread_offset(record.name, terms.spread)) {
        if (is_template(record.payload)) payload = basic_payload_template<text>::parse(record.payload);
    }

    /// Whether a payload, which is JSON, may hold what is no part of the payload of its tasks.
    static bool is_template(std::string_view payload) {
        return payload.find("{{") != payload.npos || payload.find("\\u007") != payload.npos;
    }

    /// The first planned instant of the schedule from `from` on.
    std::optional<time_point> at_or_after(dependent<schedule_record, Recurrence> const& record, time_point from) const {
        return how.at_or_after(from, record.next.value_or(record.last_nominal.value_or(record.created)));
    }
    bool is_planned(dependent<schedule_record, Recurrence> const& record, time_point nominal) const {
        return nominal >= earliest_time && nominal <= latest_time && at_or_after(record, nominal) == nominal;
    }

    /// Where a clock that was wrong has carried the cursor away: the instant at which it should stand. A step back by
    /// no more than a second, behind the instant before the cursor, moves none: what has just fired is not met again.
    std::optional<time_point> nearer(dependent<schedule_record, Recurrence> const& record, time_point now) const {
        auto const to = how.nearer(record.next, now);
        if (!to) return std::nullopt;
        auto const before = record.next ? how.preceding(*record.next) : record.last_nominal;
        if (before && *to <= *before && *before - now <= punctual) return std::nullopt;
        return to;
    }

    /// The task of the occurrence at that instant, as far as it does not depend on others.
    dependent<new_task, Recurrence> occurrence(dependent<schedule_record, Recurrence> const& record,
                                               time_point nominal) const {
        dependent<new_task, Recurrence> task;
        task.type = record.type;
        if (payload) {
            std::optional<time_point> prev;
            std::optional<time_point> next;
            if (payload->asks_for_neighbours()) {
                auto const here = at_or_after(record, nominal); // run_now: not planned itself, but between two that are
                prev = how.preceding(here.value_or(nominal));
                next = at_or_after(record, nominal + duration{1});
            }
            auto const zone = how.zone();
            if (!zone && prev && *prev <= record.created) prev.reset(); // a rate begins when it is declared
            task.payload = payload->render(nominal, prev, next, zone.value_or(time_zone{}));
        } else {
            task.payload = record.payload;
        }
        task.run_at = saturating_add(nominal, offset);
        task.priority = terms.priority;
        task.retry = terms.retry;
        task.tags = terms.tags;
        task.schedule = record.name;
        task.scheduled_at = nominal;
        task.after_past = terms.depends_on_past;
        return task;
    }

    /// Lets an occurrence wait for those before it where the policy is that one runs at a time.
    /// @param making_up  It is one of several that run_all makes up for.
    void stand_in_line(dependent<schedule_record, Recurrence> const& record, dependent<new_task, Recurrence>& task,
                       bool making_up) const {
        bool const in_line =
            terms.overlap == overlap_policy::skip
                ? making_up
                : terms.overlap != overlap_policy::allow && terms.overlap != overlap_policy::replace_running;
        if (in_line) (task.route_key = schedule_route) += record.name;
    }

    static void add_tag(dependent<new_task, Recurrence>& task, std::string_view tag) {
        auto const at = std::lower_bound(task.tags.begin(), task.tags.end(), tag);
        if (at == task.tags.end() || *at != tag) task.tags.emplace(at, tag);
    }

    /// What becomes of the occurrences that are due.
    misfire_plan<Recurrence> plan(time_point cursor, time_point now, time_point watching_since,
                                  std::size_t most) const {
        misfire_terms const chosen{terms.misfire, offset, misfire_grace(now, watching_since), most};
        return plan_misfires(how, cursor, now, chosen);
    }
};

/// The schedules of a store in memory: what each means, and when it is due next.
/// Threads: none of its own; the caller's mutex guards it.
template <class Recurrence>
class timetable {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using place_number = dependent<std::uint64_t, Recurrence>;
    using new_task = dependent<ax::new_task, Recurrence>;
    using schedule_record = dependent<ax::schedule_record, Recurrence>;
    using schedule_step = dependent<ax::schedule_step, Recurrence>;
    using meaning = schedule_meaning<Recurrence>;

  public:
    explicit timetable(time_point now) : wheel_(now) {}

    /// A schedule whose next instant depends on the end of its latest run.
    struct gap {
        std::string name;
        std::uint64_t version = 0;
        task_id last_task{};
        std::optional<time_point> last_nominal;
        bool has_skipped = false;
        Recurrence how;
    };

    /// Enters a schedule, or replaces what is known of it. What came due while it was paused was missed.
    void put(schedule_record const& record, time_point now) {
        auto const known = places_.find(record.name);
        auto const place = known != places_.end() ? known->second : ++last_place_;
        if (known == places_.end()) places_.emplace(record.name, place);
        auto& p = entries_[place];
        if (record.created == p.record.created && record.version < p.record.version) return; // older than what is known
        if (!p.means || p.record.spec != record.spec || p.record.terms != record.terms ||
            p.record.payload != record.payload) {
            p.means.reset();
            try {
                p.means.emplace(record);
            } catch (error const&) { // kept in the store, for the version that can read it
            }
        }
        if (p.record.paused && !record.paused) p.resumed = now;
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

    /// Calls `use(record, meaning)` with the schedule of that name; false where there is none, or it makes no sense.
    template <class Use>
    bool with(std::string_view name, Use&& use) const {
        auto const known = places_.find(name);
        if (known == places_.end()) return false;
        auto const& p = entries_.at(known->second);
        if (p.means) use(p.record, *p.means);
        return p.means.has_value();
    }

    /// Since when a schedule is watched without a break, where others are since `others`.
    time_point watched_since(std::string_view name, time_point others) const {
        auto const known = places_.find(name);
        return known == places_.end() ? others : entries_.at(known->second).watched_since(others);
    }

    void turn(time_point now) {
        wheel_.advance(now, [this](std::uint64_t place) { due_.push_back(place); });
    }

    std::optional<time_point> next_turn() { return wheel_.next_advance(); }

    bool any_due() const { return !due_.empty(); }

    /// Occurrences of one schedule that are created in one commit; those beyond stay due.
    static constexpr std::size_t most_at_once = 100;

    /// The steps of all that are due, each with at most one occurrence; those of one schedule go together, in order.
    /// @param watching_since  See misfire_grace().
    /// @param most            How many schedules at the most; the others stay due.
    std::vector<schedule_step> take_steps(time_point now, time_point watching_since, std::size_t most) {
        std::vector<schedule_step> steps;
        auto taken = std::exchange(due_, {});
        std::sort(taken.begin(), taken.end());
        taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
        if (taken.size() > most) {
            due_.assign(taken.begin() + static_cast<std::ptrdiff_t>(most), taken.end());
            taken.resize(most);
        }
        for (auto const place : taken) {
            auto const found = entries_.find(place);
            if (found == entries_.end() || !found->second.means || found->second.record.paused) continue;
            auto& p = found->second;
            if (p.record.next && p.due_at() <= now)
                add_steps(steps, p, now, p.watched_since(watching_since));
            else if (auto const nearer = p.nearer(now))
                steps.push_back(step_back(p, *nearer));
            else if (p.record.next)
                arm(place, found->second); // the clock went back meanwhile, or it was declared anew
        }
        return steps;
    }

    /// It cannot be stored whatever is tried: it fires no more until it is declared anew, and harms no other.
    void set_aside(std::string_view name) {
        if (auto const known = places_.find(name); known != places_.end()) entries_.at(known->second).means.reset();
    }

    /// A step could not be stored: the schedule is due again.
    void again(std::string_view name) {
        if (auto const known = places_.find(name); known != places_.end()) due_.push_back(known->second);
    }

    /// Whether take_gaps() has something to look at.
    bool any_gap() const { return look_at_gaps_; }

    /// A run of a schedule has ended.
    void run_ended() { look_at_gaps_ = true; }

    /// A run may have ended where nobody tells: by a wait of its workflow, or by another program on the same store.
    void sweep(duration steady) {
        if (steady - swept_ < duration{5'000} && steady >= swept_) return;
        swept_ = steady;
        run_ended();
    }

    /// A task has ended that may be what a fixed delay waits for.
    void run_ended(task_id id) {
        for (auto const& [place, p] : entries_)
            if (p.record.last_task == id && p.waits_for_end()) look_at_gaps_ = true;
    }

    std::vector<gap> take_gaps() {
        std::vector<gap> waiting;
        if (!std::exchange(look_at_gaps_, false)) return waiting;
        for (auto const& [place, p] : entries_)
            if (p.waits_for_end())
                waiting.push_back({p.record.name, p.record.version, p.record.last_task, p.record.last_nominal,
                                   p.record.skipped != 0, p.means->how});
        return waiting;
    }

    /// The wall clock was set back to `now`.
    void set_back(time_point now) {
        wheel_ = timing_wheel<place_number>{now};
        for (auto& [place, p] : entries_) {
            p.timer = {};
            p.resumed = (time_point::min)();
            arm(place, p);
        }
        look_ahead(now);
    }

    /// Finds the schedules that a wrong clock has carried further ahead than they can be at `now`: they are due, to be
    /// set back. What occurred already does not occur again, for the store knows it.
    void look_ahead(time_point now) {
        for (auto const& [place, p] : entries_)
            if (p.means && p.nearer(now)) due_.push_back(place);
    }

  private:
    struct entry {
        schedule_record record;
        std::optional<meaning> means; ///< none where a stored text does not parse: it never fires
        timer_handle timer{};
        time_point resumed = (time_point::min)(); ///< here: what came due before was not waited for
        bool more_to_make_up = false; ///< the latest plan was cut: what is on time comes behind the rest of it

        /// Since when, where others are watched since `others`. A clock that was set back behind it forgets it.
        time_point watched_since(time_point others) const { return (std::max)(others, resumed); }
        time_point due_at() const { return saturating_add(*record.next, means->offset); }
        std::optional<time_point> nearer(time_point now) const { return means->nearer(record, now); }
        bool waits_for_end() const { return means && means->how.waits_for_end() && !record.next; }
    };

    void arm(std::uint64_t place, entry& p) {
        wheel_.cancel(p.timer);
        p.timer = {};
        if (!p.means || p.record.paused) return;
        if (p.record.next)
            p.timer = wheel_.schedule(p.due_at(), place);
        else if (p.waits_for_end())
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

    static void add_steps(std::vector<schedule_step>& steps, entry& p, time_point now, time_point watching_since) {
        auto const& terms = p.means->terms;
        auto const plan = p.means->plan(*p.record.next, now, watching_since, most_at_once);
        schedule_step step;
        step.name = p.record.name;
        step.version = p.record.version;
        if (plan.skipped != 0)
            step.skipped.push_back({*plan.first_skipped, *plan.last_skipped, plan.skipped, plan.reason, now});
        if (plan.create.empty()) {
            step.next = plan.next;
            steps.push_back(std::move(step));
            return;
        }
        // What run_all makes up for runs in order, one after another, also where overlapping ones are left out: else
        // only the first of them would ever run.
        auto const late = now - saturating_add(plan.create.front(), p.means->offset);
        auto const on_time = plan.create.size() == 1 ? misfire_grace(now, watching_since) : punctual;
        bool const all = terms.misfire.what() == misfire_policy::action::run_all;
        // Where each waits for the one before, none overlaps: see docs/schedules.md.
        step.skip_if_unfinished = terms.overlap == overlap_policy::skip && !terms.depends_on_past &&
                                  !(all && (late > on_time || p.more_to_make_up));
        p.more_to_make_up = plan.create.size() == most_at_once;
        step.replace_blocked = terms.overlap == overlap_policy::queue_one && !terms.depends_on_past;
        step.stop_latest =
            terms.overlap == overlap_policy::cancel_running || terms.overlap == overlap_policy::replace_running;
        for (std::size_t i = 0; i != plan.create.size(); ++i) {
            step.next = i + 1 == plan.create.size() ? plan.next : std::optional{plan.create[i + 1]};
            step.occurrence = p.means->occurrence(p.record, plan.create[i]);
            p.means->stand_in_line(p.record, *step.occurrence, all);
            steps.push_back(step);
            ++step.version;
            step.skipped.clear();
        }
    }

    std::map<place_number, entry> entries_; ///< by a place number, given once and never again
    std::map<std::string, place_number, std::less<>> places_;
    timing_wheel<place_number> wheel_;
    std::vector<place_number> due_;
    std::uint64_t last_place_ = 0;
    bool look_at_gaps_ = true;
    duration swept_{0};
};

} // namespace ax::detail

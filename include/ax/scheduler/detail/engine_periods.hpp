// SPDX-License-Identifier: MIT
// What a person asks of the periods of a schedule: a run now, a past range made up for, a period set aside until its
// data has come, and its release.
#pragma once

#include "ax/scheduler/backfill.hpp"
#include "ax/scheduler/detail/engine.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/time/instant_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The most occurrences of a backfill that are looked at in one commit, and the most periods that are released in one.
inline constexpr std::size_t most_filled = 100;

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::known_schedule(std::string_view name) const -> schedule_record {
    check_text(name, "schedule name", longest_name, false);
    auto record = find_schedule(name);
    if (!record) throw error(errc::invalid_argument, "there is no schedule \"" + bounded_text(name, 200) + "\"");
    return *std::move(record);
}

// ---------------------------------------------------------------- run_now

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::run_now(std::string_view name) -> insertion {
    submit_room const room{*this, 1};
    auto const record = known_schedule(name);
    schedule_meaning<Recurrence> const means{record};
    auto const now = times_.reached();
    auto nominal = now;
    for (int tries = 0;; ++tries) {
        // An instant that is planned belongs to the occurrence that is planned there.
        if (means.is_planned(record, nominal) && !means.is_planned(record, nominal + duration{1}))
            nominal += duration{1};
        auto task = means.occurrence(record, nominal);
        task.run_at = now;
        means.stand_in_line(record, task, false);
        means.add_tag(task, run_now_tag);
        complete(task, now);
        if (task.workflow)
            for (auto const& member : task.workflow->members)
                if (member.until && !member.until->schedule.empty() && member.until->scheduled_at == nominal)
                    throw error(errc::invalid_argument,
                                "run_now of schedule \"" + bounded_text(name, 80) + "\": its task \"" +
                                    bounded_text(member.name, 80) + "\" waits for the same period of schedule \"" +
                                    bounded_text(member.until->schedule, 80) + "\", which has none at this instant");
        std::vector<std::string> awaited_schedules;
        add_awaited(awaited_schedules, task);
        auto const moved = known_of(std::move(awaited_schedules));
        insertion answer;
        alarms due;
        transact([&](writer& w) {
            due.clear();
            answer = w.insert({&task, 1}, now, due).front();
            end_waits(w, moved, due);
        });
        if (answer.outcome == submit_outcome::kept && tries != 10'000) { // another run was asked for at this instant
            nominal += duration{1};
            continue;
        }
        {
            std::lock_guard const guard{mutex_};
            plan_deadlines(task);
            newest_ = (std::max)(newest_, answer.id);
        }
        take_alarms(due);
        return answer;
    }
}

// ---------------------------------------------------------------- backfill

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::backfill(std::string_view name, time_point from, time_point to,
                                                           later<backfill_options> const& chosen)
    -> later<backfill_report> {
    auto const label = "backfill of schedule \"" + bounded_text(name, 200) + "\": ";
    auto const refuse = [&](std::string const& why) { throw error(errc::invalid_argument, label + why); };
    check_instant(from, label + "from");
    check_instant(to, label + "to");
    auto const range = "from " + to_text(from) + " to " + to_text(to);
    if (from >= to) refuse("the range " + range + " is empty");
    if (chosen.at_once == 0 || chosen.at_once > most_at_once)
        refuse("at_once is " + std::to_string(chosen.at_once) + ": from 1 to " + std::to_string(most_at_once));
    if (chosen.priority > priority_class::low)
        refuse("priority " + std::to_string(static_cast<int>(chosen.priority)) + " is no priority class");
    auto const now = times_.reached();
    if (to > now) refuse("the range " + range + " reaches into the future: it is " + to_text(now));
    if (stopping()) throw error(errc::stopped, "backfill");
    auto const record = known_schedule(name);
    schedule_meaning<Recurrence> const means{record};
    if (means.how.waits_for_end()) refuse("a fixed delay has no planned instants");
    auto const first = means.at_or_after(record, from);
    if (!first || *first >= to) refuse("the schedule has no occurrence " + range);

    backfill_record wanted;
    wanted.schedule = record.name;
    wanted.from = from;
    wanted.to = to;
    wanted.next = first;
    wanted.priority = chosen.priority;
    wanted.at_once = chosen.at_once;
    wanted.planned = 1 + means.how.count(*first, to - duration{1});
    auto step = fill_step(wanted, record, means);
    complete(step, now);
    auto const moved = moved_by(step, wanted.schedule);
    backfill_answer answer;
    transact([&](writer& w) {
        auto const begun = w.begin_backfill(wanted, now);
        step.number = begun.number;
        step.version = begun.version;
        answer = w.fill(step, now);
        end_waits(w, moved, answer.due);
    });
    plan_deadlines_of(step);
    took_fill(answer);
    later<backfill_report> report;
    report.number = answer.record.number;
    report.planned = answer.record.planned;
    report.created = answer.record.made;
    report.existed = answer.record.existed;
    report.remaining = report.planned - (std::min)(report.planned, report.created + report.existed);
    return report;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::stop_backfill(std::uint64_t number) {
    moved_schedules moved;
    for (auto const& each : store_.backfills())
        if (each.number == number) moved = known_of({each.schedule});
    bool known = false;
    alarms due;
    transact([&](writer& w) {
        due.clear();
        known = w.drop_backfill(number);
        end_waits(w, moved, due);
    });
    {
        std::lock_guard const guard{mutex_};
        backfills_.erase(number);
    }
    take_alarms(due);
    return known;
}

/// The next step of a backfill: as many occurrences as may be unfinished, at the most.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::fill_step(backfill_record const& from, schedule_record const& record,
                                                            schedule_meaning<Recurrence> const& means)
    -> backfill_step {
    backfill_step step;
    step.number = from.number;
    step.version = from.version;
    auto at = from.next ? means.at_or_after(record, *from.next) : std::nullopt;
    auto const most = (std::min)(from.at_once, most_filled);
    for (; at && *at < from.to && step.occurrences.size() != most; at = means.how.following(*at)) {
        auto task = means.occurrence(record, *at);
        task.priority = from.priority;
        means.stand_in_line(record, task, false);
        means.add_tag(task, backfill_tag);
        step.occurrences.push_back(std::move(task));
    }
    if (at && *at < from.to) step.next = at;
    return step;
}

/// The schedules whose waits such a step may end.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::moved_by(backfill_step const& step, std::string const& schedule) const
    -> moved_schedules {
    std::vector<std::string> names{schedule};
    for (auto const& task : step.occurrences) add_awaited(names, task);
    return known_of(std::move(names));
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::plan_deadlines_of(backfill_step const& step) {
    std::lock_guard const guard{mutex_};
    for (auto const& task : step.occurrences) plan_deadlines(task);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::took_fill(backfill_answer const& answer) {
    {
        std::lock_guard const guard{mutex_};
        arm(answer.due); // in a poll: for the next one, which is how long one poll lasts
        auto const& record = answer.record;
        if (answer.over || record.number == 0) {
            backfills_.erase(record.number);
        } else {
            backfills_.put(record);
            bool const room = record.next && record.unfinished < record.at_once;
            if (answer.accepted && !room) backfills_.looked_at(record.number);
            if (room || !answer.accepted) nudge_pump_ = true;
        }
    }
    flush();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::fill_backfills() {
    std::vector<backfill_step> steps;
    std::vector<std::string> schedules; // of the steps
    bool anew = false;
    {
        std::lock_guard const guard{mutex_};
        if (!recovered_ || stopping_) return false;
        anew = backfills_.take_wish_to_read();
    }
    std::vector<backfill_record> known;
    try {
        if (anew) known = store_.backfills();
    } catch (...) {
        std::lock_guard const guard{mutex_};
        backfills_.read_anew();
        throw;
    }
    {
        std::lock_guard const guard{mutex_};
        for (auto const& record : known) backfills_.put(record);
        for (auto const& one : backfills_.take(times_.steady()))
            if (!timetable_.with(one.schedule, [&](schedule_record const& record, auto const& means) {
                    steps.push_back(fill_step(one, record, means));
                    schedules.push_back(one.schedule);
                }))
                backfills_.set_aside(one.number);
    }
    bool moved = false;
    for (std::size_t at = 0; at != steps.size(); ++at) {
        auto& step = steps[at];
        backfill_answer answer;
        try {
            complete(step, times_.reached());
            auto const ended = moved_by(step, schedules[at]);
            transact([&](writer& w) {
                answer = w.fill(step, times_.reached());
                end_waits(w, ended, answer.due);
            });
        } catch (error const& e) {
            std::lock_guard const guard{mutex_};
            if (e.transient() || e.kind() == errc::outcome_unknown) {
                for (; at != steps.size(); ++at) backfills_.wake(steps[at].number);
                throw;
            }
            backfills_.set_aside(step.number);
            continue;
        }
        if (answer.record.number == 0) answer.record.number = step.number; // it is gone: so it is here
        answer.over = answer.over || !answer.record.version;
        plan_deadlines_of(step);
        took_fill(answer);
        moved = moved || !answer.due.empty();
    }
    return moved;
}

// ---------------------------------------------------------------- late data

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::mark_catch_up(std::string_view name, time_point nominal)
    -> period_outcome {
    check_text(name, "schedule name", longest_name, false);
    auto const record = find_schedule(name);
    if (!record) return period_outcome::unknown_schedule;
    if (stopping()) throw error(errc::stopped, "mark_catch_up");
    for (;;) {
        if (makes_workflows(record->type))
            throw error(errc::invalid_argument, "mark_catch_up of schedule \"" + bounded_text(name, 200) +
                                                    "\": a workflow cannot be set aside; pause_workflow() stops one");
        auto const found = store_.occurrence(name, nominal);
        if (!found) {
            schedule_meaning<Recurrence> const means{*record};
            if (!means.is_planned(*record, nominal)) return period_outcome::unknown_period;
            auto task = means.occurrence(*record, nominal);
            means.stand_in_line(*record, task, false);
            task.set_aside = true;
            insertion made;
            alarms due;
            transact([&](writer& w) { made = w.insert({&task, 1}, times_.reached(), due).front(); });
            if (made.outcome == submit_outcome::inserted) return period_outcome::done;
            continue; // it has come meanwhile
        }
        if (is_terminal(found->state)) return period_outcome::too_late;
        auto const held = take_back(found->id);
        if (held.running) return period_outcome::running;
        change made;
        auto const put_aside = [&](writer& w) { made = w.set_aside(found->id, times_.reached()); };
        if (held.revoked)
            settle_revoked({held.revoked}, attempt_outcome::released, put_aside);
        else
            transact(put_aside);
        take_alarms(made.due);
        if (made.outcome == change_outcome::done) return period_outcome::done;
        if (claimed_meanwhile(found->id, made)) continue;
        if (made.outcome == change_outcome::unknown) continue; // it was pruned
        if (is_terminal(made.state)) return period_outcome::too_late;
        if (!recover()) return period_outcome::running; // else it was an earlier run's, which is taken over now
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::release(std::string_view name, time_point nominal,
                                                          priority_class urgency) -> period_outcome {
    check_text(name, "schedule name", longest_name, false);
    check_urgency(urgency);
    auto const found = store_.occurrence(name, nominal);
    if (!found) return find_schedule(name) ? period_outcome::unknown_period : period_outcome::unknown_schedule;
    change made;
    transact([&](writer& w) { made = w.release(found->id, urgency, times_.reached()); });
    take_alarms(made.due);
    if (made.outcome == change_outcome::done) return period_outcome::done;
    if (made.outcome == change_outcome::unknown) return period_outcome::unknown_period;
    if (is_terminal(made.state)) return period_outcome::too_late;
    return is_active(made.state) ? period_outcome::running : period_outcome::not_set_aside;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
std::size_t engine<Storage, Clock, Attempt, Recurrence>::release(std::string_view name, time_point from, time_point to,
                                                                 priority_class urgency) {
    (void)known_schedule(name);
    check_urgency(urgency);
    if (from >= to)
        throw error(errc::invalid_argument, "release of schedule \"" + bounded_text(name, 200) + "\": the range from " +
                                                to_text(from) + " to " + to_text(to) + " is empty");
    std::size_t released = 0;
    for (;;) {
        auto const some = store_.aside(name, from, to, most_filled);
        if (some.empty()) return released;
        std::size_t here = 0;
        alarms due;
        transact([&](writer& w) {
            here = 0;
            due.clear();
            for (auto const& one : some) {
                auto const made = w.release(one.id, urgency, times_.reached());
                if (made.outcome == change_outcome::done) ++here;
                due.insert(due.end(), made.due.begin(), made.due.end());
            }
        });
        take_alarms(due);
        released += here;
        from = *some.back().scheduled_at + duration{1};
        if (from >= to) return released;
    }
}

} // namespace ax::detail

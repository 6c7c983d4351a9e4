// SPDX-License-Identifier: MIT
// What callers ask of the engine about workflows. What follows from a change is the storage's: see graph_rules.
#pragma once

#include "ax/scheduler/detail/engine.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/scheduler/detail/workflow_reader.hpp"
#include "ax/scheduler/detail/workflow_text.hpp"
#include "ax/scheduler/workflow.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// One task of a workflow as it is stored.
/// @param common  What tasks get that do not say otherwise.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Node>
auto engine<Storage, Clock, Attempt, Recurrence>::member_of(Node const& node, new_task const& common, time_point now)
    -> new_member {
    new_member made;
    auto const label = "task \"" + node.name + "\" of a workflow: ";
    made.task.type = number_of(node.type);
    check_size(node.payload, label + "payload", settings_.payload_limit);
    made.task.payload = node.payload;
    made.task.run_at = common.run_at;
    made.task.delay = common.delay;
    made.task.priority = node.priority.value_or(common.priority);
    made.task.route_key = node.route_key;
    made.task.retry = node.retry.empty() ? common.retry : node.retry;
    made.task.tags = common.tags;
    made.task.scheduled_at = common.scheduled_at;
    if (node.deadline) {
        if (*node.deadline <= (std::max)(now, common.run_at.value_or(now)))
            throw error(errc::invalid_argument, label + "its deadline is not after the start of the workflow");
        made.task.deadline = node.deadline;
    }
    if (node.within) made.task.deadline = saturating_add((std::max)(now, common.run_at.value_or(now)), *node.within);
    made.name = node.name;
    made.when = node.when;
    made.after = node.after;
    if (node.until) {
        auto const& until = *node.until;
        made.until.emplace();
        made.until->key = until.key;
        made.until->schedule = until.schedule;
        made.until->name = until.task;
        if (until.key.empty()) {
            if (!until.at && !common.scheduled_at)
                throw error(errc::invalid_argument,
                            label + "it waits for an occurrence of \"" + until.schedule +
                                "\" without an instant, and the workflow is of no schedule that had one");
            made.until->scheduled_at = until.at ? until.at->value() : *common.scheduled_at;
        }
    }
    return made;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Workflow>
auto engine<Storage, Clock, Attempt, Recurrence>::submit_workflow(Workflow const& wanted, submission head)
    -> insertion {
    auto const& nodes = wanted.nodes().all();
    submit_room const room{*this, nodes.size() + 1};
    check_graph(nodes, wanted.name());
    auto const label = "workflow \"" + bounded_text(wanted.name(), 80) + "\": ";
    auto const action = head.task.on_conflict.action();
    if (action != conflict_action::keep && action != conflict_action::reject)
        throw error(errc::invalid_argument, label + "on_conflict is keep or reject; a workflow is not replaced");
    if (!head.task.route_key.empty())
        throw error(errc::invalid_argument, label + "a route key belongs to one of its tasks");
    auto const now = times_.present();
    if (head.task.delay > duration{0}) head.task.run_at = saturating_add(now, std::exchange(head.task.delay, {}));
    head.task.type = workflow_number();
    become(head.task, wanted, now, head.says_priority);
    std::vector<std::string> awaited_schedules;
    add_awaited(awaited_schedules, head.task);
    auto const moved = known_of(std::move(awaited_schedules));
    insertion answer;
    alarms due;
    transact([&](writer& w) {
        due.clear();
        answer = w.insert({&head.task, 1}, times_.reached(), due).front();
        end_waits(w, moved, due);
    });
    {
        std::lock_guard const guard{mutex_};
        plan_deadlines(head.task);
        newest_ = (std::max)(newest_, task_id{to_number(answer.id) + nodes.size()});
    }
    take_alarms(due);
    return answer;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Workflow>
auto engine<Storage, Clock, Attempt, Recurrence>::declare_workflow(std::string_view name, Recurrence const& how,
                                                                   Workflow const& wanted,
                                                                   later<schedule_options> chosen) -> schedule_record {
    if (chosen.overlap == overlap_policy::queue_one || chosen.overlap == overlap_policy::queue_all)
        throw error(errc::invalid_argument,
                    "schedule \"" + bounded_text(name, 80) + "\": a workflow cannot be queued behind the one before");
    if (chosen.overlap == overlap_policy::cancel_running)
        throw error(errc::invalid_argument, "schedule \"" + bounded_text(name, 80) +
                                                "\": a workflow does not wait for the one before to stop: "
                                                "overlap::replace_running cancels that and goes on");
    if (chosen.depends_on_past)
        throw error(errc::invalid_argument,
                    "schedule \"" + bounded_text(name, 80) +
                        "\": depends_on_past is for tasks; a workflow waits with wait_for() for another occurrence");
    auto const& nodes = wanted.nodes().all();
    check_graph(nodes, wanted.name());
    check_own_waits(nodes, name);
    new_task common;
    common.scheduled_at = times_.reached(); // as every occurrence has one
    for (auto const& node : nodes) member_of(node, common, times_.reached());
    auto const usual = [this](std::string_view type) { return usual_priority(type); };
    return declare(name, how, workflow_type, scheduled_text(wanted, chosen, usual), std::move(chosen));
}

/// Makes of a task, whose key, instant and the like have been said, a workflow.
/// @param says_priority  Whether its priority is that of tasks that say none: else they get that of their types.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Workflow>
void engine<Storage, Clock, Attempt, Recurrence>::become(new_task& head, Workflow const& wanted, time_point now,
                                                         bool says_priority) {
    auto const plan = std::make_shared<later<workflow_plan>>();
    plan->name = wanted.name();
    plan->members.reserve(wanted.size());
    for (auto const& node : wanted.nodes().all()) {
        plan->members.push_back(member_of(node, head, now));
        if (auto const& until = plan->members.back().until;
            until && (until->key.empty() ? until->schedule == head.schedule && until->scheduled_at == head.scheduled_at
                                         : until->key == head.key))
            refuse_own_wait(node);
        if (!node.priority && !says_priority) plan->members.back().task.priority = usual_priority(node.type);
    }
    head.workflow = plan;
    head.route_key.clear(); // what is left of these is its tasks'
    head.retry.clear();
    head.tags.clear();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::plan_deadlines(new_task const& task) {
    plan_deadline(task.deadline);
    if (task.workflow)
        for (auto const& each : task.workflow->members) plan_deadline(each.task.deadline);
}

/// The schedules for whose occurrences a new task waits.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::add_awaited(std::vector<std::string>& schedules,
                                                              new_task const& task) {
    if (!task.workflow) return;
    for (auto const& each : task.workflow->members)
        if (each.until && each.until->key.empty() && (schedules.empty() || schedules.back() != each.until->schedule))
            schedules.push_back(each.until->schedule);
}

/// Of these schedules those that are there: one that is not may be declared yet, with all its occurrences.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::known_of(std::vector<std::string> schedules) const
    -> moved_schedules {
    moved_schedules known;
    if (schedules.empty()) return known;
    std::sort(schedules.begin(), schedules.end());
    schedules.erase(std::unique(schedules.begin(), schedules.end()), schedules.end());
    std::lock_guard const guard{mutex_};
    for (auto& name : schedules) {
        bool over = false;
        if (timetable_.with(name, [&](auto const&, auto const& means) { over = !means.how.waits_for_end(); }))
            known.all.push_back({std::move(name), over});
    }
    return known;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::end_waits(writer& w, moved_schedules const& moved,
                                                            alarms& due) const {
    for (auto const& each : moved.all) w.end_waits(each.name, each.over, times_.reached(), due);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::end_waits(writer& w, schedule_record const& moved,
                                                            alarms& due) const {
    if (moved.name.empty()) return;
    bool over = !moved.next;
    try {
        over = over && !Recurrence::parse(moved.spec).waits_for_end();
    } catch (error const&) { // what it means is not known here, nor then whether it goes on
        over = false;
    }
    w.end_waits(moved.name, over, times_.reached(), due);
}

/// An occurrence of a schedule that creates workflows has the text of its workflow as its payload, and becomes that.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::complete(new_task& occurrence, time_point now) {
    if (occurrence.workflow || !makes_workflows(occurrence.type)) return;
    become(occurrence, parse_workflow<later<nlohmann::json>>(occurrence.payload), now, true);
    occurrence.payload.clear();
}

/// The same for one that is left out where it cannot be made: a name that is empty or taken once its placeholders are
/// filled in. Returns that reason, else nothing. What the storage fails with goes on to the caller, corruption
/// included: the occurrence is made later.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::complete_or_say(new_task& occurrence, time_point now)
    -> later<std::string> {
    if (occurrence.workflow || !makes_workflows(occurrence.type)) return {};
    bool is_read = false;
    try {
        auto const wanted = parse_workflow<later<nlohmann::json>>(occurrence.payload);
        is_read = true;
        become(occurrence, wanted, now, true);
        occurrence.payload.clear();
        return {};
    } catch (error const& e) {
        if (e.kind() != errc::invalid_argument && (e.kind() != errc::corrupt || is_read)) throw;
        return bounded_text(e.what(), 255);
    }
}

/// The schedule goes on without such an occurrence.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::complete(schedule_step& step, time_point now) {
    auto const why = complete_or_say(*step.occurrence, now);
    if (why.empty()) return;
    auto const nominal = *step.occurrence->scheduled_at;
    step.occurrence.reset();
    step.skipped.push_back({nominal, nominal, 1, why, now});
}

/// So does a backfill, whose priority is that of all tasks of its workflows.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::complete(backfill_step& step, time_point now) {
    std::erase_if(step.occurrences, [&](new_task& occurrence) {
        auto const why = complete_or_say(occurrence, now);
        if (!why.empty()) step.left_out.push_back({*occurrence.scheduled_at, *occurrence.scheduled_at, 1, why, now});
        if (occurrence.workflow) {
            auto const plan = std::make_shared<later<workflow_plan>>(*occurrence.workflow);
            for (auto& each : plan->members) each.task.priority = occurrence.priority;
            occurrence.workflow = plan;
        }
        return !why.empty();
    });
}

/// A workflow that the storage refuses, since it would wait for what waits for it, is left out likewise.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::step_or_leave_out(writer& w, schedule_step const& step,
                                                                    time_point now) -> schedule_answer {
    if (!step.occurrence || !step.occurrence->workflow) return w.step(step, now);
    try {
        return w.step(step, now);
    } catch (error const& e) {
        if (e.kind() != errc::invalid_argument) throw;
        auto without = step;
        auto const nominal = *step.occurrence->scheduled_at;
        without.occurrence.reset();
        without.skipped.push_back({nominal, nominal, 1, bounded_text(e.what(), 255), now});
        return w.step(without, now);
    }
}

/// Whether it is the type of workflows, without giving that a number in a store that has none.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::makes_workflows(type_number number) {
    {
        std::lock_guard const guard{mutex_};
        if (handlers_.contains(number)) return false;
        if (auto const known = workflow_types_.find(number); known != workflow_types_.end()) return known->second;
    }
    auto const types = store_.types();
    std::lock_guard const guard{mutex_};
    for (auto const& type : types) workflow_types_[type.number] = type.name == workflow_type;
    return workflow_types_[number];
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::workflow_number() -> type_number {
    return number_of(workflow_type);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::mark_succeeded(task_id id) -> change_outcome {
    return change_task([&](writer& w) { return w.mark_succeeded(id, times_.reached()); }).outcome;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::rerun(task_id id, rerun_scope scope) -> rerun_answer {
    auto const made = change_task([&](writer& w) { return w.rerun(id, scope, times_.reached()); });
    return {made.outcome, made.task};
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::pause_workflow(task_id id, bool yes) -> change_outcome {
    auto const made = change_task([&](writer& w) { return w.pause_workflow(id, yes, times_.reached()); });
    if (made.outcome != change_outcome::done || !yes) return made.outcome;
    std::vector<attempt_ptr> revoked;
    {
        std::lock_guard const guard{mutex_};
        for (auto const one : made.asked_to_stop) { // what is in flight, whether or not it has started
            auto const mine = flight_.find(one);
            if (mine && flight_.revoke(*mine)) revoked.push_back(mine);
            if (!mine && (offers_ != 0 || flight_.contains(one)))
                held_back_.push_back(one); // its claim may be on the way
        }
    }
    try {
        if (!revoked.empty()) settle_revoked(std::move(revoked), attempt_outcome::released, [](writer&) {});
    } catch (error const&) { // the pump gives them back: the pause itself is stored
    }
    return made.outcome;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Verb>
auto engine<Storage, Clock, Attempt, Recurrence>::change_task(Verb&& verb) -> change {
    change made;
    transact([&](writer& w) { made = verb(w); });
    take_alarms(made.due);
    return made;
}

/// All tasks of a workflow, by name and generation.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::members(task_id id) const -> std::vector<later<member_record>> {
    std::vector<later<member_record>> all;
    auto const whole = store_.workflow(id);
    if (!whole) return all;
    for (;;) {
        auto page =
            store_.members(whole->id, all.empty() ? std::string_view{} : std::string_view{all.back().name}, 1'000);
        if (page.empty()) return all;
        all.insert(all.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
    }
}

/// The chain of tasks that the end of the workflow (so far) waited for: from the one that ended last back to the parent
/// that ended last, and so on.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::critical_path(task_id id) const -> std::vector<task_view> {
    std::vector<task_view> path;
    auto const whole = store_.workflow(id);
    auto at = whole ? find(whole->last_ended) : std::nullopt;
    while (at && at->in_workflow) {
        std::optional<task_view> latest;
        auto const begun = at->started ? at->started : at->finished; // what ended later was not waited for
        for (auto const& parent : store_.parents(at->id))
            if (auto one = find(parent.id); one && one->finished && (!begun || *one->finished <= *begun) &&
                                            (!latest || *one->finished > *latest->finished))
                latest = std::move(one);
        path.push_back(std::move(*at));
        at = std::move(latest);
    }
    std::reverse(path.begin(), path.end());
    return path;
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// Why a task is not running: what the store says of it, and what only this process knows.
#pragma once

#include "ax/scheduler/detail/engine.hpp"
#include "ax/scheduler/explain.hpp"
#include "ax/time/instant_text.hpp"

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// Puts the answer of explain() together.
/// @tparam Task  task_record, as a name by which a unit that explains nothing does not pay for this code.
template <class Task>
class explanation {
  public:
    void add(wait_cause cause, std::string text, std::string holder = {}) {
        reasons_.push_back({cause, std::move(text), std::move(holder)});
    }

    /// What has become of it, where it does not wait. Returns whether it does.
    bool waits(Task const& task) {
        auto const attempt = "attempt " + std::to_string(task.attempts);
        auto const node = "node " + std::to_string(to_number(task.node));
        if (is_terminal(task.state)) {
            auto text = std::string(to_string(task.state)) + " at " + to_text(task.finished.value_or(task.changed));
            if (!task.last_error.empty()) text += ": " + task.last_error;
            add(wait_cause::ended, std::move(text));
        } else if (task.state == task_state::running) {
            add(wait_cause::running_elsewhere,
                attempt + " runs there since " + to_text(task.started.value_or(task.changed)), node);
        } else if (task.state == task_state::dispatched) {
            add(wait_cause::running_elsewhere, "claimed there at " + to_text(task.changed), node);
        } else {
            return true;
        }
        return false;
    }

    /// What the task itself says.
    void about(Task const& task, time_point now) {
        if (task.set_aside)
            add(wait_cause::held, "set aside: release() lets it go");
        else if (task.held)
            add(wait_cause::held,
                "held: retry() lets it go" + (task.last_error.empty() ? std::string{} : "; " + task.last_error));
        if (task.run_at <= now) return;
        if (task.state == task_state::failed)
            add(wait_cause::retry_wait, "attempt " + std::to_string(task.attempts) + " failed" +
                                            (task.last_error.empty() ? std::string{} : " (" + task.last_error + ")") +
                                            "; it is tried again at " + to_text(task.run_at));
        else
            add(wait_cause::time, "due at " + to_text(task.run_at));
    }

    /// @param before  The occurrence that it waits for.
    void about_past(std::optional<Task> const& before) {
        if (!before) return add(wait_cause::past, "the occurrence before it is not there any more");
        auto text = "the occurrence before it, of " + to_text(before->scheduled_at.value_or(before->run_at)) +
                    ", has not succeeded: it is " + std::string(to_string(before->state));
        if (is_terminal(before->state)) text += ", and has to be retried";
        add(wait_cause::past, std::move(text), tasks_text({before->id}));
    }

    void about(obstacle const& one) {
        if (one.kind == obstacle::what::past) return;
        if (one.kind == obstacle::what::parents)
            add(wait_cause::parents, "it waits for the end of " + one.name, tasks_text(one.holders));
        else if (one.kind == obstacle::what::paused)
            add(wait_cause::paused, "its workflow \"" + one.name + "\" is paused", tasks_text(one.holders));
        else if (one.kind == obstacle::what::route)
            add(wait_cause::route, "another task with the route key \"" + one.name + "\" goes first",
                tasks_text(one.holders));
        else if (one.never)
            add(wait_cause::limit, "there is too little of " + one.name +
                                       ": it can never run unless set_resource() raises that, or its handler asks "
                                       "for less");
        else
            add(wait_cause::limit,
                "the limit of " + one.name + " is used up" +
                    (one.free_at ? ", until " + to_text(*one.free_at) : std::string{}),
                tasks_text(one.holders));
    }

    static std::string tasks_text(std::vector<task_id> const& ids) {
        std::string text;
        for (auto const id : ids) text += (text.empty() ? "task " : ", task ") + std::to_string(to_number(id));
        return text;
    }

    bool empty() const noexcept { return reasons_.empty(); }
    std::vector<wait_reason> take() { return std::move(reasons_); }

  private:
    std::vector<wait_reason> reasons_;
};

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::explain(task_id id) const -> std::vector<wait_reason> {
    explanation<task_record> answer;
    std::optional<task_record> task;
    std::vector<obstacle> obstacles;
    std::optional<std::optional<task_record>> before;
    std::optional<later<workflow_record>> whole;
    bool paused = false;
    try {
        task = store_.find(id);
        if (task) obstacles = store_.obstacles(id);
        if (task && task->type == workflow_type) whole = store_.workflow(id);
        for (auto const& one : obstacles)
            if (one.kind == obstacle::what::past) before = store_.find(one.holders.front());
        for (auto const& type : store_.types()) paused = paused || (type.paused && task && type.name == task->type);
    } catch (error const& e) {
        if (!e.transient()) throw;
        answer.add(wait_cause::storage_down, e.what());
        return answer.take();
    }
    if (!task) {
        answer.add(wait_cause::unknown_task, "there is no task " + std::to_string(to_number(id)));
        return answer.take();
    }
    std::lock_guard const guard{mutex_};
    auto const now = times_.reached();
    if (watch_.down()) answer.add(wait_cause::storage_down, watch_.failure());
    auto const mine = flight_.find(id);
    if (mine && mine->status == attempt_status::running && mine->record.fence >= task->fence) {
        answer.add(wait_cause::running,
                   "attempt " + std::to_string(mine->record.attempts) + " runs since " + to_text(mine->started));
        return answer.take();
    }
    bool const claimed_here = mine && mine->status != attempt_status::ended && task->node == self_;
    if (!claimed_here && !answer.waits(*task)) return answer.take();

    auto const lane =
        make_lane(numbers_.contains(task->type) ? numbers_.find(task->type)->second : type_number{}, task->priority);
    auto const* const by = handler_of(lane);
    bool const runs_nothing = std::string_view{task->type}.substr(0, 3) == "ax:";
    if (by == nullptr && !runs_nothing)
        answer.add(wait_cause::no_handler, "no handler for task type \"" + task->type + "\" is registered here");
    if (paused) answer.add(wait_cause::paused, "task type \"" + task->type + "\" is paused");
    if (stopping_) answer.add(wait_cause::stopped, "the scheduler has been stopped");
    if (!recovered_) answer.add(wait_cause::stopped, "the scheduler has not been started");
    answer.about(*task, now);
    if (before) answer.about_past(*before);
    for (auto const& one : obstacles) answer.about(one);
    if (whole)
        answer.add(wait_cause::parents, "its tasks have not ended: " + std::to_string(whole->ready + whole->running) +
                                            " are ready or at work, " + std::to_string(whole->waiting) + " wait");
    else if (task->state == task_state::created && !task->held && obstacles.empty())
        answer.add(wait_cause::held, "it is not eligible yet");
    // In line, or about to be: the store gives none of them away while the line is not open.
    if (!claimed_here && task->unclean_ends >= 2 && (suspects_.contains(id) || !suspects_.open(times_.steady()))) {
        std::vector<ax::task_id> alone;
        if (suspects_.alone() != ax::task_id{}) alone.push_back(suspects_.alone());
        answer.add(wait_cause::suspect,
                   "it was in flight when the process died twice in a row: suspects run one at a time",
                   explanation<task_record>::tasks_text(alone));
    }
    if (!answer.empty()) return answer.take();

    if (flight_.running() >= settings_.workers) {
        std::vector<ax::task_id> busy;
        for (auto const& one : flight_.in_hands()) busy.push_back(one->record.id);
        answer.add(wait_cause::no_worker,
                   "all of the " + std::to_string(settings_.workers) + " workers are busy, or are about to be",
                   explanation<task_record>::tasks_text(busy));
    } else {
        answer.add(wait_cause::next, "nothing stands in its way: it is next");
    }
    return answer.take();
}

} // namespace ax::detail

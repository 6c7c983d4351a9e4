// SPDX-License-Identifier: MIT
// Workflows as a storage keeps them. A workflow is itself a task (its head), which no handler runs: it is `created`
// while its members are at work and ends when the last of them has. So its key, its deadline, the schedule that makes
// it and its retention are those of any task.
#pragma once

#include "ax/dag/trigger_rule.hpp"
#include "ax/task/record.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ax {

/// What stands in a workflow.
enum class member_kind : std::uint8_t {
    task = 0,     ///< a handler runs it
    workflow = 1, ///< the workflow as a whole
    wait = 2      ///< waits for a task outside, and runs nothing itself
};

/// A task by what it is known by, also before it is there: the one with this key, or this occurrence of a schedule; and
/// where that is a workflow, one of its members.
struct awaited_task {
    std::string key;
    std::string schedule;      ///< where `key` is empty
    time_point scheduled_at{}; ///< the nominal instant of that occurrence
    std::string name;          ///< of the member; empty: the task or workflow itself
};

/// A task of a workflow about to be stored.
struct new_member {
    new_task task; ///< without a key, schedule or conflict policy
    std::string name;
    trigger_rule when = trigger_rule::all_success;
    std::vector<std::uint32_t> after;  ///< places of its parents among those stored with it; no cycle, each once
    std::optional<awaited_task> until; ///< it is a wait, whose other parent is this
};

/// What a new task stands for that is a workflow: see new_task::workflow.
struct workflow_plan {
    std::string name;
    std::vector<new_member> members; ///< at least one; names are unique
};

/// Which tasks below a task go into its next generation.
enum class rerun_scope : std::uint8_t {
    unfinished, ///< those that wait
    all         ///< also those that have run, and the workflow where it has succeeded
};

/// The values of rerun_scope, as a caller writes them: `ax::below::all`.
namespace below {
using enum rerun_scope;
}

/// How a workflow stands.
struct workflow_record {
    task_id id{};   ///< of the task that submit() gave
    task_id head{}; ///< of its latest generation
    std::string name;
    std::string key;
    task_state state = task_state::created; ///< of the head: created while it goes on
    bool paused = false;
    bool stopping = false;   ///< cancelled, or beyond its deadline, and one of its tasks may still be at work
    std::size_t waiting = 0; ///< its parents have not ended
    std::size_t ready = 0;   ///< will run, or will be tried again; or waits for a person, since it was interrupted
    std::size_t running = 0; ///< claimed: runs, or is about to
    std::size_t succeeded = 0;
    std::size_t dead = 0;
    std::size_t cancelled = 0;
    std::size_t skipped = 0;
    std::size_t upstream_failed = 0;
    time_point created{};
    std::optional<time_point> started;  ///< of the first attempt, once an attempt has ended
    std::optional<time_point> finished; ///< of the head
    task_id last_ended{};               ///< the member that ended last

    std::size_t unfinished() const noexcept { return waiting + ready + running; }
    std::size_t total() const noexcept {
        return unfinished() + succeeded + dead + cancelled + skipped + upstream_failed;
    }
};

/// What a wait waits for, while that is not there.
struct open_await : awaited_task {
    task_id workflow{}; ///< where neither key nor schedule is said: the one to which `name` is yet to be added
};

/// One task of a workflow, as members() tells it.
struct member_record {
    task_id id{};
    std::string name;
    std::uint32_t generation = 1; ///< how often it was stored anew, and this time included
    bool outdated = false;        ///< a later generation took its place, or who had added it was rerun
    task_id added_by{};           ///< the task whose handler added it; 0: it came with the workflow
    member_kind kind = member_kind::task;
    trigger_rule when = trigger_rule::all_success;
    std::string type;
    task_state state = task_state::created;
    std::vector<task_id> parents;       ///< in rising order; of this generation
    std::optional<open_await> until;    ///< of a wait; none once that is there, and a parent, or does not come any more
    std::optional<time_point> deadline; ///< then it is dead, unless it has ended or is at work
    time_point created{};
    std::optional<time_point> started; ///< of the first attempt
    std::optional<time_point> finished;
};

/// A parent of a task, and what it has come to.
struct parent_record {
    task_id id{};
    std::string name; ///< in its workflow; empty for a task outside of any
    task_state state = task_state::created;
    std::string result; ///< JSON text; empty: none
};

} // namespace ax

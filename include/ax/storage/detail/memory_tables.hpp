// SPDX-License-Identifier: MIT
// What memory_storage keeps, and the one way to change it.
//
// Every index below is a function of the records alone: link() enters a record where its present fields say, unlink()
// takes it out by the same fields. A change is therefore always "take out, keep a copy, modify, enter again", and
// undoing it is "take out, put the copy back, enter again": no verb has an undo of its own that could forget something.
#pragma once

#include "ax/core/error.hpp"
#include "ax/storage/concept.hpp"

#include <cassert>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ax::detail {

/// A place in an order by time: ties go to the earlier id.
using memory_place = std::pair<time_point, task_id>;

struct memory_row {
    task_record task;
    type_number type{};
    std::vector<attempt_view> ended; ///< its attempts that have ended, in order

    lane_id lane() const noexcept { return make_lane(type, task.priority); }
};

/// The non-terminal tasks of one route key.
struct memory_route {
    std::set<memory_place> waiting; ///< those that may become the first, by (order_at, id)
    task_id active{};               ///< the one in flight; 0: none
    task_id front{};                ///< the one that is not blocked; 0: none
    std::size_t members = 0;
};

/// Where a transaction, or a verb within it, began.
struct memory_mark {
    std::size_t tasks = 0;
    std::size_t schedules = 0;
    std::size_t types = 0;
};

class memory_tables {
  public:
    // ---- tasks -----------------------------------------------------------------------------------------------------

    memory_row* find(task_id id) noexcept {
        auto const number = to_number(id);
        return number == 0 || number > rows_.size() ? nullptr : &rows_[number - 1];
    }
    memory_row const* find(task_id id) const noexcept { return const_cast<memory_tables*>(this)->find(id); }

    std::deque<memory_row> const& rows() const noexcept { return rows_; }

    memory_row const* find_by_key(std::string const& key) const {
        auto const found = keys_.find(key);
        return found == keys_.end() ? nullptr : find(found->second);
    }

    memory_row const* find_occurrence(std::string const& schedule, time_point nominal) const {
        auto const found = occurrences_.find({schedule, nominal});
        return found == occurrences_.end() ? nullptr : find(found->second);
    }

    /// Appends a task under the next id.
    memory_row& add(memory_row row) {
        task_log_.push_back({task_id{}, {}, 0});
        row.task.id = task_id{rows_.size() + 1};
        rows_.push_back(std::move(row));
        auto& added = rows_.back();
        auto const& task = added.task;
        if (!task.key.empty()) keys_.emplace(task.key, task.id);
        if (is_occurrence(task)) occurrences_.emplace(std::pair{task.schedule, *task.scheduled_at}, task.id);
        link(added);
        return added;
    }

    /// Calls `modify(task_record&)` and keeps every index true. It must not touch id, key, type, route key or
    /// occurrence, which never change.
    template <class Modify>
    void change(memory_row& row, Modify&& modify) {
        task_log_.push_back({row.task.id, row.task, row.ended.size()});
        unlink(row);
        modify(row.task);
        link(row);
    }

    void add_attempt(memory_row& row, attempt_view attempt) { row.ended.push_back(std::move(attempt)); }

    static bool is_claimable_now(task_record const& task) noexcept {
        return is_claimable(task.state) && !task.blocked && !task.held;
    }

    /// Lets go whoever is now the first of that route key, and blocks who was.
    /// @return  The task let go; 0 where nothing changed.
    task_id promote(std::string const& route_key) {
        auto const found = route_key.empty() ? routes_.end() : routes_.find(route_key);
        if (found == routes_.end()) return {};
        auto const& route = found->second;
        if (route.members == 0) {
            routes_.erase(found);
            return {};
        }
        auto first = route.active;
        if (first == task_id{} && !route.waiting.empty()) first = route.waiting.begin()->second;
        auto const before = route.front;
        if (first == before) return {};
        if (auto* const row = find(before)) change(*row, [](task_record& task) { task.blocked = true; });
        if (auto* const row = find(first)) change(*row, [](task_record& task) { task.blocked = false; });
        return first;
    }

    /// The claimable tasks by lane, in the order of run_at and id.
    std::map<lane_id, std::set<memory_place>> const& due() const noexcept { return due_; }
    /// What waits with a deadline, the earliest first.
    std::set<memory_place> const& deadlines() const noexcept { return deadlines_; }
    /// What is dispatched or running.
    std::set<task_id> const& in_flight() const noexcept { return in_flight_; }

    // ---- types -----------------------------------------------------------------------------------------------------

    std::vector<type_info> const& types() const noexcept { return types_; }

    type_info const* find_type(type_number number) const noexcept {
        auto const value = static_cast<std::size_t>(number);
        return value == 0 || value > types_.size() ? nullptr : &types_[value - 1];
    }

    type_number type(std::string_view name) {
        auto const [found, added] = type_numbers_.try_emplace(std::string(name), type_number{});
        if (added) {
            found->second = type_number{static_cast<std::uint32_t>(types_.size() + 1)};
            types_.push_back({found->second, found->first, false});
            type_log_.push_back({});
        }
        return found->second;
    }

    void pause(type_number number, bool yes) {
        if (find_type(number) == nullptr) return;
        auto& info = types_[static_cast<std::size_t>(number) - 1];
        type_log_.push_back(info);
        info.paused = yes;
    }

    // ---- schedules -------------------------------------------------------------------------------------------------

    std::map<std::string, schedule_record, std::less<>> const& schedules() const noexcept { return schedules_; }

    schedule_record const* find_schedule(std::string_view name) const {
        auto const found = schedules_.find(name);
        return found == schedules_.end() ? nullptr : &found->second;
    }

    void put_schedule(schedule_record record) {
        auto const name = record.name;
        log_schedule(name);
        schedules_.insert_or_assign(name, std::move(record));
    }

    void erase_schedule(std::string_view name) {
        log_schedule(std::string(name));
        schedules_.erase(schedules_.find(name));
    }

    // ---- transactions ----------------------------------------------------------------------------------------------

    memory_mark mark() const noexcept { return {task_log_.size(), schedule_log_.size(), type_log_.size()}; }

    /// Forgets how to undo: what was done stays.
    void commit() noexcept {
        task_log_.clear();
        schedule_log_.clear();
        type_log_.clear();
    }

    /// Undoes all that was done since `since`, the latest first.
    void undo(memory_mark since) {
        while (task_log_.size() > since.tasks) {
            auto& before = task_log_.back();
            if (before.id == task_id{})
                remove_last();
            else
                restore(before);
            task_log_.pop_back();
        }
        while (schedule_log_.size() > since.schedules) {
            auto& before = schedule_log_.back();
            if (before.record)
                schedules_.insert_or_assign(before.name, std::move(*before.record));
            else
                schedules_.erase(before.name);
            schedule_log_.pop_back();
        }
        while (type_log_.size() > since.types) {
            auto& before = type_log_.back();
            if (before.number == type_number{}) {
                type_numbers_.erase(types_.back().name);
                types_.pop_back();
            } else {
                types_[static_cast<std::size_t>(before.number) - 1] = std::move(before);
            }
            type_log_.pop_back();
        }
    }

    /// The first index entry or record that contradicts another, in words; empty where there is none. O(n log n).
    std::string check_invariants() const;

  private:
    struct task_image {
        task_id id{}; ///< 0: the task was added
        task_record task;
        std::size_t ended = 0;
    };
    struct schedule_image {
        std::string name;
        std::optional<schedule_record> record; ///< none: the schedule was added
    };

    static bool is_occurrence(task_record const& task) noexcept {
        return !task.schedule.empty() && task.scheduled_at.has_value();
    }
    static bool is_waiting(task_record const& task) noexcept {
        return task.state == task_state::created || is_claimable(task.state);
    }
    static bool is_member(task_record const& task) noexcept {
        return !task.route_key.empty() && (is_claimable(task.state) || is_active(task.state));
    }
    /// A held task that lets others pass is no candidate for the first place.
    static bool stands_in_line(task_record const& task) noexcept {
        return is_claimable(task.state) && !(task.held && task.route_order == route_ordering::relaxed);
    }

    void link(memory_row const& row) {
        auto const& task = row.task;
        if (is_claimable_now(task)) due_[row.lane()].emplace(task.run_at, task.id);
        if (is_waiting(task) && task.deadline) deadlines_.emplace(*task.deadline, task.id);
        if (is_active(task.state)) in_flight_.insert(task.id);
        if (!is_member(task)) return;
        auto& route = routes_[task.route_key];
        ++route.members;
        if (!task.blocked) route.front = task.id;
        if (is_active(task.state)) route.active = task.id;
        if (stands_in_line(task)) route.waiting.emplace(task.order_at, task.id);
    }

    void unlink(memory_row const& row) {
        auto const& task = row.task;
        if (is_claimable_now(task)) due_[row.lane()].erase({task.run_at, task.id});
        if (is_waiting(task) && task.deadline) deadlines_.erase({*task.deadline, task.id});
        if (is_active(task.state)) in_flight_.erase(task.id);
        if (!is_member(task)) return;
        auto& route = routes_[task.route_key]; // an empty route goes with the next promote()
        --route.members;
        if (route.front == task.id) route.front = {};
        if (route.active == task.id) route.active = {};
        route.waiting.erase({task.order_at, task.id});
    }

    void restore(task_image& before) {
        auto& row = *find(before.id);
        unlink(row);
        row.task = std::move(before.task);
        row.ended.resize(before.ended);
        link(row);
        drop_if_empty(row.task.route_key);
    }

    void remove_last() {
        auto const& row = rows_.back();
        unlink(row);
        if (!row.task.key.empty()) keys_.erase(row.task.key);
        if (is_occurrence(row.task)) occurrences_.erase({row.task.schedule, *row.task.scheduled_at});
        drop_if_empty(row.task.route_key);
        rows_.pop_back();
    }

    void drop_if_empty(std::string const& route_key) {
        auto const found = routes_.find(route_key);
        if (found != routes_.end() && found->second.members == 0) routes_.erase(found);
    }

    void log_schedule(std::string name) {
        auto const* const record = find_schedule(name);
        schedule_log_.push_back({std::move(name), record == nullptr ? std::nullopt : std::optional{*record}});
    }

    std::deque<memory_row> rows_; ///< the task with id n stands at n - 1
    std::unordered_map<std::string, task_id> keys_;
    std::map<std::pair<std::string, time_point>, task_id> occurrences_;
    std::map<lane_id, std::set<memory_place>> due_;
    std::set<memory_place> deadlines_;
    std::set<task_id> in_flight_;
    std::unordered_map<std::string, memory_route> routes_;
    std::vector<type_info> types_; ///< the type with number n stands at n - 1
    std::unordered_map<std::string, type_number> type_numbers_;
    std::map<std::string, schedule_record, std::less<>> schedules_;

    std::vector<task_image> task_log_;
    std::vector<schedule_image> schedule_log_;
    std::vector<type_info> type_log_; ///< number 0: the type was added
};

inline std::string memory_tables::check_invariants() const {
    std::size_t claimable = 0;
    std::size_t deadlines = 0;
    std::size_t active = 0;
    std::size_t keys = 0;
    std::size_t occurrences = 0;
    std::map<std::string, std::vector<task_record const*>> members;
    for (auto const& row : rows_) {
        auto const& task = row.task;
        auto const name = "task " + std::to_string(to_number(task.id));
        if (find(task.id) != &row) return name + " stands at the wrong place";
        if (is_terminal(task.state) && (task.blocked || task.held)) return name + " has ended and is blocked or held";
        if (is_terminal(task.state) != task.finished.has_value()) return name + " has a wrong end";
        if (task.blocked && task.route_key.empty()) return name + " is blocked without a route key";
        if (task.fence > fence_token{task.version}) return name + " has a fence above its version";
        if (row.ended.size() + (is_active(task.state) ? 1 : 0) != task.attempts)
            return name + " miscounts its attempts";
        if (is_claimable_now(task)) {
            ++claimable;
            auto const lane = due_.find(row.lane());
            if (lane == due_.end() || !lane->second.contains({task.run_at, task.id})) return name + " has no alarm";
        }
        if (is_waiting(task) && task.deadline) {
            ++deadlines;
            if (!deadlines_.contains({*task.deadline, task.id})) return name + " has a deadline that nobody watches";
        }
        if (is_active(task.state)) {
            ++active;
            if (!in_flight_.contains(task.id)) return name + " is in flight unseen";
        }
        if (!task.key.empty()) {
            ++keys;
            if (find_by_key(task.key) != &row) return name + " is not found by its key";
        }
        if (is_occurrence(task)) {
            ++occurrences;
            if (find_occurrence(task.schedule, *task.scheduled_at) != &row) return name + " is not found as occurrence";
        }
        if (is_member(task)) members[task.route_key].push_back(&task);
    }
    std::size_t alarms_kept = 0;
    for (auto const& [lane, places] : due_) alarms_kept += places.size();
    if (alarms_kept != claimable) return "alarms without a claimable task";
    if (deadlines_.size() != deadlines) return "deadlines without a waiting task";
    if (in_flight_.size() != active) return "tasks in flight that are not";
    if (keys_.size() != keys) return "keys without a task";
    if (occurrences_.size() != occurrences) return "occurrences without a task";
    if (routes_.size() != members.size()) return "routes without a task";

    for (auto const& [key, tasks] : members) {
        // Told from the rule, not from the index: the one in flight, else the least in line.
        task_record const* first = nullptr;
        std::size_t flying = 0;
        for (auto const* task : tasks)
            if (is_active(task->state)) {
                first = task;
                ++flying;
            }
        if (flying > 1) return "route " + key + " has two in flight";
        if (flying == 0)
            for (auto const* task : tasks)
                if (stands_in_line(*task) && (first == nullptr || memory_place{task->order_at, task->id} <
                                                                      memory_place{first->order_at, first->id}))
                    first = task;
        for (auto const* task : tasks)
            if (task->blocked != (task != first))
                return "route " + key + ": task " + std::to_string(to_number(task->id)) + " is wrongly " +
                       (task->blocked ? "blocked" : "let go");
    }
    return {};
}

} // namespace ax::detail

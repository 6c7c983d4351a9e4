// SPDX-License-Identifier: MIT
// What memory_storage keeps, and the one way to change it.
//
// Every index below is a function of the records alone: link() enters a record where its present fields say, unlink()
// takes it out by the same fields. A change is therefore always "take out, keep a copy, modify, enter again", and
// undoing it is "take out, put the copy back, enter again": no verb has an undo of its own that could forget something.
#pragma once

#include "ax/core/error.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/memory_graph.hpp"
#include "ax/storage/detail/memory_limits.hpp"
#include "ax/storage/detail/memory_lines.hpp"
#include "ax/storage/detail/memory_periods.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ax::detail {

struct memory_row {
    task_record task; ///< its waits_for is the number of the line here: see shown()
    type_number type{};
    std::vector<attempt_view> ended;                       ///< its attempts that have ended, in order
    std::map<std::string, std::string, std::less<>> steps; ///< values by name

    lane_id lane() const noexcept { return make_lane(type, task.priority); }
    line_number line() const noexcept { return static_cast<line_number>(task.waits_for); }
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
    std::size_t steps = 0;
    std::size_t notes = 0;
    std::size_t lines = 0;
    memory_limits::mark_type limits;
    memory_periods::mark_type periods;
    std::size_t graphs = 0;
};

/// A task of a workflow, or one that a task of a workflow waits for, has come into another state.
struct memory_state_change {
    task_id id{};
    task_state from{};
    task_state to{};
    std::optional<time_point> started;
};

class memory_tables {
  public:
    // ---- tasks -----------------------------------------------------------------------------------------------------

    memory_row* find(task_id id) noexcept {
        auto const number = to_number(id);
        return number < first_ || number - first_ >= rows_.size() ? nullptr : rows_[number - first_].get();
    }
    memory_row const* find(task_id id) const noexcept { return const_cast<memory_tables*>(this)->find(id); }

    /// The id of the first place of rows().
    std::uint64_t first() const noexcept { return first_; }
    /// By id; null where a task was removed.
    std::deque<std::unique_ptr<memory_row>> const& rows() const noexcept { return rows_; }

    /// Who holds the key.
    memory_row const* key_holder(std::string const& key) const {
        auto const found = keys_.find(key);
        return found == keys_.end() ? nullptr : find(found->second);
    }
    memory_row* key_holder(std::string const& key) {
        return const_cast<memory_row*>(std::as_const(*this).key_holder(key));
    }

    /// Who had the key last, of those that have lost it.
    memory_row const* former_key_holder(std::string const& key) const {
        auto const found = former_keys_.find(key);
        return found == former_keys_.end() ? nullptr : find(*found->second.rbegin());
    }

    memory_row const* find_occurrence(std::string const& schedule, time_point nominal) const {
        auto const found = occurrences_.find({schedule, nominal});
        return found == occurrences_.end() ? nullptr : find(found->second);
    }

    /// The occurrence of a schedule with the latest nominal instant before that one, or the earliest behind it.
    memory_row const* occurrence_before(std::string const& schedule, time_point nominal) const {
        auto const at = occurrences_.lower_bound({schedule, nominal});
        if (at == occurrences_.begin() || std::prev(at)->first.first != schedule) return nullptr;
        return find(std::prev(at)->second);
    }
    memory_row const* occurrence_behind(std::string const& schedule, time_point nominal) const {
        auto const at = occurrences_.upper_bound({schedule, nominal});
        return at == occurrences_.end() || at->first.first != schedule ? nullptr : find(at->second);
    }
    /// By schedule and nominal instant.
    std::map<std::pair<std::string, time_point>, task_id> const& occurrences() const noexcept { return occurrences_; }

    memory_periods& periods() noexcept { return periods_; }
    memory_periods const& periods() const noexcept { return periods_; }

    /// Appends a task under the next id.
    memory_row& add(memory_row row) {
        task_log_.push_back({task_id{}, {}, 0, nullptr});
        row.task.id = task_id{first_ + rows_.size()};
        rows_.push_back(std::make_unique<memory_row>(std::move(row)));
        auto& added = *rows_.back();
        auto const& task = added.task;
        enter_names(task);
        link(added);
        return added;
    }

    /// Removes a terminal task with its attempts. Its id is not given again.
    void remove(memory_row& row) {
        auto const id = row.task.id;
        unlink(row);
        drop_names(row.task);
        task_log_.push_back({id, {}, 0, std::move(rows_[to_number(id) - first_])});
    }

    /// Calls `modify(task_record&)` and keeps every index true. It must not touch id, key, type or
    /// occurrence, which never change. Who changes the route key promotes both.
    template <class Modify>
    void change(memory_row& row, Modify&& modify) {
        task_log_.push_back({row.task.id, row.task, row.ended.size(), nullptr});
        unlink(row);
        bool const released = row.task.key_released;
        auto const before = row.task.state;
        modify(row.task);
        if (before != row.task.state && (row.task.in_workflow || graphs_.is_watched(row.task.id)))
            state_changes_.push_back({row.task.id, before, row.task.state, row.task.first_started});
        if (row.task.key_released != released) move_key(row.task);
        link(row);
    }

    void add_attempt(memory_row& row, attempt_view attempt) { row.ended.push_back(std::move(attempt)); }

    void put_step(memory_row& row, std::string name, std::string value) {
        auto const found = row.steps.find(name);
        step_log_.push_back(
            {row.task.id, name, found == row.steps.end() ? std::nullopt : std::optional{found->second}});
        row.steps.insert_or_assign(std::move(name), std::move(value));
    }

    void drop_steps(memory_row& row) {
        for (auto& [name, value] : row.steps) step_log_.push_back({row.task.id, name, std::move(value)});
        row.steps.clear();
    }

    static bool is_claimable_now(task_record const& task) noexcept {
        return is_claimable(task.state) && !task.blocked && !task.held && !task.paused &&
               task.waits_for == limit_number{};
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
        if (auto* const row = find(before)) {
            auto const line = row->line();
            change(*row, [](task_record& task) {
                task.blocked = true;
                task.waits_for = {}; // who is blocked does not stand in line, too
            });
            left(line);
        }
        if (auto* const row = find(first)) change(*row, [](task_record& task) { task.blocked = false; });
        return first;
    }

    /// The task of a route key that is not blocked; 0: none.
    task_id route_front(std::string const& route_key) const {
        auto const found = routes_.find(route_key);
        return found == routes_.end() ? task_id{} : found->second.front;
    }

    /// The claimable tasks by lane, in the order of run_at and id.
    std::map<lane_id, std::set<memory_place>> const& due() const noexcept { return due_; }
    /// What waits with a deadline, the earliest first.
    std::set<memory_place> const& deadlines() const noexcept { return deadlines_; }
    /// What is dispatched or running.
    std::set<task_id> const& in_flight() const noexcept { return in_flight_; }
    /// What is terminal, by lane.
    std::map<lane_id, std::set<task_id>> const& ended() const noexcept { return ended_; }

    std::map<std::pair<lane_id, task_state>, std::size_t> const& counts() const noexcept { return counts_; }
    std::size_t count(lane_id lane, task_state state) const {
        auto const found = counts_.find({lane, state});
        return found == counts_.end() ? 0 : found->second;
    }

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
        set_schedule(name, std::move(record));
    }

    void erase_schedule(std::string_view name) {
        log_schedule(std::string(name));
        drop_schedule(name);
    }

    bool is_latest_of_a_schedule(task_id id) const { return latest_.contains(id); }

    // ---- notes -----------------------------------------------------------------------------------------------------

    std::string note(std::string_view name) const {
        auto const found = notes_.find(name);
        return found == notes_.end() ? std::string{} : found->second;
    }
    void put_note(std::string_view name, std::string_view text) {
        note_log_.emplace_back(std::string(name), note(name));
        notes_.insert_or_assign(std::string(name), std::string(text));
    }

    // ---- limits ----------------------------------------------------------------------------------------------------

    memory_limits& limits() noexcept { return limits_; }
    memory_limits const& limits() const noexcept { return limits_; }

    /// Where those stand that wait for a limit.
    memory_lines& lines() noexcept { return lines_; }
    memory_lines const& lines() const noexcept { return lines_; }

    /// The limit at which a task waits; 0: none.
    limit_number waits_at(memory_row const& row) const {
        auto const* const line = lines_.find(row.line());
        return line == nullptr ? limit_number{} : line->at;
    }

    /// The record as others see it.
    task_record shown(memory_row const& row) const {
        auto task = row.task;
        task.waits_for = waits_at(row);
        return task;
    }

    /// To be called after somebody has left that line, or may have.
    void left(line_number number) {
        auto const* const line = lines_.find(number);
        if (line == nullptr) return;
        limits_.touch(line->at);
        if (lines_.places(number) == nullptr) lines_.close(number);
    }

    // ---- workflows -------------------------------------------------------------------------------------------------

    memory_graphs& graphs() noexcept { return graphs_; }
    memory_graphs const& graphs() const noexcept { return graphs_; }

    /// What graph_rules has not been told yet.
    std::vector<memory_state_change> take_state_changes() noexcept { return std::exchange(state_changes_, {}); }

    // ---- transactions ----------------------------------------------------------------------------------------------

    memory_mark mark() const noexcept {
        return {task_log_.size(), schedule_log_.size(), type_log_.size(), step_log_.size(), note_log_.size(),
                lines_.mark(),    limits_.mark(),       periods_.mark(),  graphs_.mark()};
    }

    /// Forgets how to undo: what was done stays.
    void commit() noexcept {
        task_log_.clear();
        schedule_log_.clear();
        type_log_.clear();
        step_log_.clear();
        note_log_.clear();
        for (; !rows_.empty() && !rows_.front(); ++first_) rows_.pop_front();
        limits_.commit();
        graphs_.commit();
        lines_.commit();
        periods_.commit();
    }

    /// Undoes all that was done since `since`, the latest first.
    void undo(memory_mark since) {
        state_changes_.clear();
        graphs_.undo(since.graphs);
        while (step_log_.size() > since.steps) { // first, while their tasks are there
            auto& before = step_log_.back();
            auto& steps = find(before.task)->steps;
            if (before.value)
                steps.insert_or_assign(before.name, std::move(*before.value));
            else
                steps.erase(before.name);
            step_log_.pop_back();
        }
        limits_.undo(since.limits);
        lines_.undo(since.lines);
        periods_.undo(since.periods);
        while (task_log_.size() > since.tasks) {
            auto& before = task_log_.back();
            if (before.id == task_id{})
                remove_last();
            else if (before.removed)
                put_back(std::move(before.removed));
            else
                restore(before);
            task_log_.pop_back();
        }
        while (schedule_log_.size() > since.schedules) {
            auto& before = schedule_log_.back();
            if (before.record)
                set_schedule(before.name, std::move(*before.record));
            else
                drop_schedule(before.name);
            schedule_log_.pop_back();
        }
        while (note_log_.size() > since.notes) {
            notes_.insert_or_assign(note_log_.back().first, std::move(note_log_.back().second));
            note_log_.pop_back();
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

    /// Makes every index anew from the records. For repairs, outside of what undo() can take back.
    void rebuild() {
        due_.clear();
        deadlines_.clear();
        in_flight_.clear();
        ended_.clear();
        counts_.clear();
        routes_.clear();
        keys_.clear();
        former_keys_.clear();
        occurrences_.clear();
        lines_.clear();
        for (auto const& row : rows_)
            if (row) {
                enter_names(row->task);
                link(*row);
            }
        auto const lines = lines_.all();
        for (auto const& [number, line] : lines) left(number);
    }

    /// The first index entry or record that contradicts another, in words; empty where there is none. O(n log n).
    std::string check_invariants() const;

  private:
    struct task_image {
        task_id id{}; ///< 0: the task was added
        task_record task;
        std::size_t ended = 0;
        std::unique_ptr<memory_row> removed; ///< where the task was removed: all of it
    };
    struct schedule_image {
        std::string name;
        std::optional<schedule_record> record; ///< none: the schedule was added
    };

    struct step_image {
        task_id task{};
        std::string name;
        std::optional<std::string> value; ///< none: the step was added
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
        return is_claimable(task.state) &&
               !(task.held && (task.set_aside || task.route_order == route_ordering::relaxed));
    }

    void enter_names(task_record const& task) {
        enter_key(task);
        if (is_occurrence(task)) occurrences_.emplace(std::pair{task.schedule, *task.scheduled_at}, task.id);
    }
    void drop_names(task_record const& task) {
        leave_key(task, task.key_released);
        if (is_occurrence(task)) occurrences_.erase({task.schedule, *task.scheduled_at});
    }

    void link(memory_row const& row) {
        auto const& task = row.task;
        ++counts_[{row.lane(), task.state}];
        if (is_terminal(task.state)) ended_[row.lane()].insert(task.id);
        if (is_claimable_now(task)) due_[row.lane()].emplace(task.run_at, task.id);
        if (task.waits_for != limit_number{}) lines_.enter(row.line(), {task.run_at, task.id});
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
        --counts_[{row.lane(), task.state}];
        if (is_terminal(task.state)) ended_[row.lane()].erase(task.id);
        if (is_claimable_now(task)) due_[row.lane()].erase({task.run_at, task.id});
        if (task.waits_for != limit_number{}) lines_.leave(row.line(), {task.run_at, task.id});
        if (is_waiting(task) && task.deadline) deadlines_.erase({*task.deadline, task.id});
        if (is_active(task.state)) in_flight_.erase(task.id);
        if (!is_member(task)) return;
        auto& route = routes_[task.route_key]; // an empty route goes with the next promote()
        --route.members;
        if (route.front == task.id) route.front = {};
        if (route.active == task.id) route.active = {};
        route.waiting.erase({task.order_at, task.id});
    }

    void enter_key(task_record const& task) {
        if (task.key.empty()) return;
        if (task.key_released)
            former_keys_[task.key].insert(task.id);
        else
            keys_.emplace(task.key, task.id);
    }

    void leave_key(task_record const& task, bool released) {
        if (task.key.empty()) return;
        if (!released) {
            keys_.erase(task.key);
            return;
        }
        auto const found = former_keys_.find(task.key);
        found->second.erase(task.id);
        if (found->second.empty()) former_keys_.erase(found);
    }

    /// The task has lost its key, or got it back.
    void move_key(task_record const& task) {
        leave_key(task, !task.key_released);
        enter_key(task);
    }

    void restore(task_image& before) {
        auto& row = *find(before.id);
        unlink(row);
        auto const present = std::exchange(row.task, std::move(before.task));
        if (row.task.key_released != present.key_released) move_key(row.task);
        row.ended.resize(before.ended);
        link(row);
        drop_if_empty(row.task.route_key);
        drop_if_empty(present.route_key);
    }

    void remove_last() {
        auto const& row = *rows_.back();
        unlink(row);
        drop_names(row.task);
        drop_if_empty(row.task.route_key);
        rows_.pop_back();
    }

    void put_back(std::unique_ptr<memory_row> removed) {
        auto& place = rows_[to_number(removed->task.id) - first_];
        place = std::move(removed);
        enter_names(place->task);
        link(*place);
    }

    void set_schedule(std::string const& name, schedule_record record) {
        drop_schedule(name);
        latest_.insert(record.last_task);
        schedules_.emplace(name, std::move(record));
    }
    void drop_schedule(std::string_view name) {
        auto const found = schedules_.find(name);
        if (found == schedules_.end()) return;
        latest_.erase(latest_.find(found->second.last_task));
        schedules_.erase(found);
    }

    void drop_if_empty(std::string const& route_key) {
        auto const found = routes_.find(route_key);
        if (found != routes_.end() && found->second.members == 0) routes_.erase(found);
    }

    void log_schedule(std::string name) {
        auto const* const record = find_schedule(name);
        schedule_log_.push_back({std::move(name), record == nullptr ? std::nullopt : std::optional{*record}});
    }

    std::deque<std::unique_ptr<memory_row>> rows_; ///< the task with id n stands at n - first_
    std::uint64_t first_ = 1;
    std::unordered_map<std::string, task_id> keys_;                  ///< who holds it
    std::unordered_map<std::string, std::set<task_id>> former_keys_; ///< who held it
    std::map<std::pair<std::string, time_point>, task_id> occurrences_;
    std::map<lane_id, std::set<memory_place>> due_;
    memory_lines lines_;
    memory_limits limits_;
    memory_periods periods_;
    std::set<memory_place> deadlines_;
    std::set<task_id> in_flight_;
    std::map<lane_id, std::set<task_id>> ended_;
    std::map<std::pair<lane_id, task_state>, std::size_t> counts_;
    std::unordered_map<std::string, memory_route> routes_;
    std::vector<type_info> types_; ///< the type with number n stands at n - 1
    std::unordered_map<std::string, type_number> type_numbers_;
    std::map<std::string, schedule_record, std::less<>> schedules_;
    std::multiset<task_id> latest_; ///< the latest task of each schedule
    std::map<std::string, std::string, std::less<>> notes_;
    memory_graphs graphs_;
    std::vector<memory_state_change> state_changes_;

    std::vector<task_image> task_log_;
    std::vector<schedule_image> schedule_log_;
    std::vector<type_info> type_log_; ///< number 0: the type was added
    std::vector<step_image> step_log_;
    std::vector<std::pair<std::string, std::string>> note_log_;
};

inline std::string memory_tables::check_invariants() const {
    std::size_t claimable = 0;
    std::size_t waiters = 0;
    std::size_t deadlines = 0;
    std::size_t active = 0;
    std::size_t keys = 0;
    std::size_t former = 0;
    std::size_t occurrences = 0;
    std::map<std::string, std::vector<task_record const*>> members;
    std::map<std::pair<lane_id, task_state>, std::size_t> counted;
    std::size_t ends = 0;
    for (auto const& place : rows_) {
        if (!place) continue;
        auto const& row = *place;
        auto const& task = row.task;
        ++counted[{row.lane(), task.state}];
        if (is_terminal(task.state)) {
            ++ends;
            auto const lane = ended_.find(row.lane());
            if (lane == ended_.end() || !lane->second.contains(task.id))
                return "task " + std::to_string(to_number(task.id)) + " has ended unseen";
        }
        auto const name = "task " + std::to_string(to_number(task.id));
        if (find(task.id) != &row) return name + " stands at the wrong place";
        if (task.set_aside && !task.held) return name + " is set aside and not held";
        if (periods_.past_of(task.id) && task.state != task_state::created)
            return name + " waits for the one before it and is not created";
        if (is_terminal(task.state) && (task.blocked || task.held)) return name + " has ended and is blocked or held";
        if (task.waits_for != limit_number{}) {
            ++waiters;
            if (!is_claimable(task.state) || task.blocked || task.held) return name + " waits for a limit in vain";
            auto const* const line = lines_.find(row.line());
            auto const* const places = lines_.places(row.line());
            if (line == nullptr || line->lane != row.lane() || limits_.find(line->at) == nullptr || places == nullptr ||
                !places->contains({task.run_at, task.id}))
                return name + " waits for a limit unseen";
            auto const* const heads = lines_.heads(line->at, line->lane);
            if (heads == nullptr || !heads->contains({*places->begin(), row.line()}))
                return name + " waits in a line that stands nowhere";
            for (auto const& tag : line->tags)
                if (std::find(task.tags.begin(), task.tags.end(), tag) == task.tags.end())
                    return name + " waits in the line of a tag that it has not";
        }
        if (limits_.holds().contains(task.id) && !is_active(task.state))
            return name + " holds a limit and is not in flight";
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
        if (!task.key.empty() && !task.key_released) {
            ++keys;
            if (key_holder(task.key) != &row) return name + " is not found by its key";
            if (task.key_scope == key_scoping::active && is_terminal(task.state))
                return name + " has ended and holds its key";
        }
        if (!task.key.empty() && task.key_released) {
            ++former;
            auto const found = former_keys_.find(task.key);
            if (found == former_keys_.end() || !found->second.contains(task.id))
                return name + " is not found by the key that it had";
        }
        if (is_occurrence(task)) {
            ++occurrences;
            if (find_occurrence(task.schedule, *task.scheduled_at) != &row) return name + " is not found as occurrence";
        }
        if (is_member(task)) members[task.route_key].push_back(&task);
    }
    std::size_t alarms_kept = 0;
    for (auto const& [lane, places] : due_) alarms_kept += places.size();
    std::size_t ends_kept = 0;
    for (auto const& [lane, ids] : ended_) ends_kept += ids.size();
    if (ends_kept != ends) return "ends without a terminal task";
    for (auto const& [what, tasks] : counts_)
        if (auto const found = counted.find(what); tasks != (found == counted.end() ? 0 : found->second))
            return "a count differs from the tasks";
    for (auto const& [what, tasks] : counted)
        if (count(what.first, what.second) != tasks) return "a count is missing";
    if (alarms_kept != claimable) return "alarms without a claimable task";
    std::size_t in_line = 0;
    for (auto const& [number, line] : lines_.all()) {
        auto const* const places = lines_.places(number);
        if (places == nullptr) return "a line in which nobody waits";
        in_line += places->size();
    }
    if (in_line != waiters) return "waiters without a task";
    std::map<limit_number, std::int64_t> held;
    for (auto const& [id, holds] : limits_.holds())
        for (auto const& hold : holds) held[hold.number] += hold.amount;
    for (auto const& [number, state] : limits_.all())
        if (state.used != held[number]) return "limit " + state.name + " miscounts what is held of it";
    if (deadlines_.size() != deadlines) return "deadlines without a waiting task";
    if (in_flight_.size() != active) return "tasks in flight that are not";
    if (keys_.size() != keys) return "keys without a task";
    std::size_t former_kept = 0;
    for (auto const& [key, tasks] : former_keys_) former_kept += tasks.size();
    if (former_kept != former) return "lost keys without a task";
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

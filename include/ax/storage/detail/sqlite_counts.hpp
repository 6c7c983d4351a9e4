// SPDX-License-Identifier: MIT
// How many tasks are in which state, kept true without a write for each: what a transaction changes is collected and
// written once, before it is committed.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/task/record.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ax::detail {

/// The state under which a task is counted: see sqlite_schema.hpp.
constexpr std::int64_t counted_state(std::int64_t state) noexcept {
    return state == static_cast<int>(task_state::dispatched) || state == static_cast<int>(task_state::running)
               ? static_cast<int>(task_state::ready)
               : state;
}
constexpr std::int64_t counted_state(task_state state) noexcept {
    return counted_state(static_cast<std::int64_t>(state));
}

/// By how much the numbers of tasks differ from what is stored. A copy is what to go back to where a part of a
/// transaction is undone.
/// @tparam Connection  Only delays its compilation.
template <class Connection>
class sqlite_counts {
  public:
    struct entry {
        std::int64_t lane = 0;
        std::int64_t state = 0; ///< a counted_state()
        std::int64_t tasks = 0;
    };

    void add(lane_id lane, task_state state, std::int64_t tasks) {
        add(static_cast<std::int64_t>(lane), counted_state(state), tasks);
    }
    void move(lane_id lane, task_state from, task_state to) {
        if (counted_state(from) == counted_state(to)) return;
        add(lane, from, -1);
        add(lane, to, 1);
    }

    /// Likewise of a task of a workflow, which is counted apart once it has ended.
    void move_member(lane_id lane, task_state from, task_state to) {
        move(lane, from, to);
        if (is_terminal(from)) add(-static_cast<std::int64_t>(lane), counted_state(from), -1);
        if (is_terminal(to)) add(-static_cast<std::int64_t>(lane), counted_state(to), 1);
    }

    void add(std::int64_t lane, std::int64_t state, std::int64_t tasks) {
        auto const before = [&](entry const& e) { return e.lane != lane ? e.lane < lane : e.state < state; };
        auto at = entries_.size();
        if (latest_ < at && entries_[latest_].lane == lane && entries_[latest_].state == state) {
            at = latest_;
        } else {
            auto const place = std::partition_point(entries_.begin(), entries_.end(), before);
            at = static_cast<std::size_t>(place - entries_.begin());
            if (place == entries_.end() || place->lane != lane || place->state != state)
                entries_.insert(place, entry{lane, state, 0});
        }
        latest_ = at;
        entries_[at].tasks += tasks;
    }

    /// By lane and state; also what has come to nothing.
    auto const& entries() const noexcept { return entries_; }

    /// Writes what has changed, in the present transaction.
    void flush(Connection& sql) {
        for (auto const& each : entries_)
            if (each.tasks != 0) sqlite_run(sql, sqlite_sql::count_tasks, {each.lane, each.state, each.tasks}).finish();
        clear();
    }

    void clear() noexcept { entries_.clear(); }

  private:
    std::vector<dependent<entry, Connection>> entries_;
    std::size_t latest_ = 0;
};

/// What a success must know of the tasks claimed lately without reading their rows for it. Neither changes while a task
/// is in flight.
template <class Connection>
class sqlite_lanes {
  public:
    struct place {
        task_id id{};
        lane_id lane{};
        bool is_member = false; ///< of a workflow
        task_id workflow{};     ///< that, where it is known
    };

    void put(place const& claimed) {
        if (places_.empty()) places_.resize(size);
        places_[to_number(claimed.id) % size] = claimed;
    }

    place find(Connection& sql, task_id id) const {
        if (!places_.empty())
            if (auto const& known = places_[to_number(id) % size]; known.id == id) return known;
        sqlite_run query(sql, sqlite_sql::lane_of, {id});
        if (!query.next()) return {};
        return {id, query.as<lane_id>(0), (query.number(1) & flag_member) != 0, {}};
    }

    void clear() noexcept { places_.clear(); }

  private:
    static constexpr std::size_t size = 16'384; // more than are in flight: ids rise, so few meet

    std::vector<dependent<place, Connection>> places_;
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// How rows become records.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_limits.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ax::detail {

/// The names of task types by their number, as one connection has come to know them.
template <class Connection>
class sqlite_type_names {
  public:
    /// @return  Nothing for a number that is none.
    std::string const* find(Connection& connection, type_number number) {
        auto const at = static_cast<std::size_t>(number);
        if (at < names_.size() && !names_[at].empty()) return &names_[at];
        if (at >= most_in_order) return find_far(connection, number);
        sqlite_run query(connection, sqlite_sql::type_name, {number});
        if (at == 0 || !query.next()) return nullptr;
        if (at >= names_.size()) names_.resize(at + 1);
        names_[at] = query.text(0);
        return &names_[at];
    }

    void clear() noexcept {
        names_.clear();
        far_.clear();
    }

  private:
    static constexpr std::size_t most_in_order = 65'536;

    /// Numbers rise from 1, so such a one was written by nobody of ours: a place for each one before it would fill the
    /// memory.
    std::string const* find_far(Connection& connection, type_number number) {
        if (auto const known = far_.find(number); known != far_.end()) return &known->second;
        sqlite_run query(connection, sqlite_sql::type_name, {number});
        return query.next() ? &(far_[number] = query.text(0)) : nullptr;
    }

    dependent<std::map<type_number, std::string>, Connection> far_;
    std::vector<dependent<std::string, Connection>> names_; // a type has a name, so an empty one is not known yet
};

/// The task in the present row of a query for all columns.
/// @return  Nothing where the row makes no sense: it is left alone, and its neighbours go on.
template <class Connection>
std::optional<dependent<task_record, Connection>> read_task(sqlite_run const& row, Connection& connection,
                                                            sqlite_type_names<Connection>& names) {
    auto const state = task_state_of(row.number(2));
    auto const lane = row.as<lane_id>(1);
    auto const* const type = names.find(connection, type_of(lane));
    if (!state || type == nullptr) return std::nullopt;
    auto const gate = row.number(3);
    auto const flags = row.number(4);
    std::optional<dependent<task_record, Connection>> answer(std::in_place);
    auto& task = *answer;
    task.id = row.as<task_id>(0);
    task.type = *type;
    task.priority = class_of(lane);
    task.state = *state;
    task.blocked = (gate & gate_blocked) != 0;
    task.held = (gate & gate_held) != 0;
    task.set_aside = (gate & gate_aside) != 0 && (flags & flag_relaxed) == 0;
    task.hold_on_interrupt = (flags & flag_hold_on_interrupt) != 0;
    task.lonely = (flags & flag_lonely) != 0;
    task.stop_asked = (flags & flag_stop_asked) != 0;
    task.route_order = (flags & flag_relaxed) != 0 ? route_ordering::relaxed : route_ordering::strict;
    task.run_at = row.time(5);
    task.order_at = row.time(6);
    task.version = row.as<std::uint64_t>(7);
    task.fence = row.as<fence_token>(8);
    task.node = row.as<node_id>(9);
    task.attempts = row.as<std::size_t>(10);
    task.failures = row.as<std::size_t>(11);
    task.interruptions = row.as<std::size_t>(12);
    task.snoozes = row.as<std::size_t>(13);
    task.unclean_ends = row.as<std::size_t>(14);
    task.lonely_deaths = row.as<std::size_t>(15);
    task.created = row.time(16);
    task.changed = row.time(17);
    task.started = row.maybe_time(18);
    task.first_started = row.maybe_time(19);
    task.finished = row.maybe_time(20);
    task.deadline = row.maybe_time(21);
    task.scheduled_at = row.maybe_time(22);
    task.key = row.text(23);
    task.route_key = row.text(24);
    task.schedule = row.text(25);
    task.retry = row.text(26);
    task.last_error = row.text(27);
    task.result = row.text(28);
    task.payload = row.text(29);
    task.key_scope = (flags & flag_key_active) != 0 ? key_scoping::active : key_scoping::kept;
    task.key_released = !row.null(30);
    if (task.key_released) task.key = row.text(30);
    split_tags(row.text(31), task.tags);
    task.waits_for = row.as<limit_number>(32); // the line: see line_of()
    task.in_workflow = (flags & flag_member) != 0;
    task.paused = (gate & gate_paused) != 0;
    return answer;
}

template <class Run>
dependent<schedule_record, Run> read_schedule(Run const& row) {
    dependent<schedule_record, Run> record;
    record.name = row.text(0);
    record.spec = row.text(1);
    record.type = row.template as<type_number>(2);
    record.payload = row.text(3);
    record.next = row.maybe_time(4);
    record.last_nominal = row.maybe_time(5);
    record.last_task = row.template as<task_id>(6);
    record.version = row.template as<std::uint64_t>(7);
    record.fired = row.template as<std::uint64_t>(8);
    record.skipped = row.template as<std::uint64_t>(9);
    record.last_skip = row.text(10);
    record.created = row.time(11);
    record.terms = row.text(12);
    record.paused = row.template as<int>(13) != 0;
    return record;
}

} // namespace ax::detail

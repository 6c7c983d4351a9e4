// SPDX-License-Identifier: MIT
// Who holds a key in SQLite. A holder has its key in the column `key`, under a unique index; who has lost it has it in
// `former_key`, and is found through a table. A bit in the flags would need no second column, but then every statement
// that writes flags would take the row out of the index of keys and put it in again: a leaf more to dirty at each claim
// and each end. An index of former_key would need no table, but makes each insert 7 % slower, also without a key.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/key_conflict.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_limits.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace ax::detail {

template <class Connection>
class sqlite_keys {
    using new_task = dependent<ax::new_task, Connection>;

  public:
    struct owner {
        task_id id{};
        task_state state{};
        lane_id lane{};
        time_point created{};
        bool is_workflow = false;
    };

    explicit sqlite_keys(Connection& connection) noexcept : sql_(connection) {}

    std::optional<owner> holder(std::string_view key) { return read(sqlite_sql::key_holder, key); }

    /// Who had the key last, of those that have lost it.
    std::optional<owner> former(std::string_view key) { return read(sqlite_sql::former_holder, key); }

    /// Takes the key from a task, if it holds one.
    void release(task_id id) {
        if (sqlite_run(sql_, sqlite_sql::add_former_key, {id}).finish() == 0) return;
        sqlite_run(sql_, sqlite_sql::release_key, {id}).finish();
    }

    /// Gives a task the key back that it has lost, if any.
    /// @return  False, and nothing is written, where another holds it.
    bool take_back(task_id id) {
        {
            sqlite_run another(sql_, sqlite_sql::key_taken_from, {id});
            if (another.next()) return false;
        }
        if (sqlite_run(sql_, sqlite_sql::remove_former_key, {id}).finish() == 0) return true;
        sqlite_run(sql_, sqlite_sql::take_key_back, {id}).finish();
        return true;
    }

    /// Makes of a task that waits what `task` says. Whose turn it is in its route, the old and the new one, is to be
    /// decided by the caller.
    template <class Row>
    void replace(Row& held, new_task const& task, lane_id lane, time_point run_at) {
        bool const waits_for_person = (held.gate & gate_held) != 0;
        held.hold(false);
        held.flags &= ~flag_relaxed;
        if (task.route_order == route_ordering::relaxed) held.flags |= flag_relaxed;
        held.hold(waits_for_person);
        held.gate &= ~gate_blocked;
        if (is_claimable(held.state) && !task.route_key.empty()) held.gate |= gate_blocked;
        held.lane = lane;
        held.run_at = run_at;
        held.order_at = run_at;
        forget_past(held);
        held.failures = 0;
        held.first_started.reset();
        held.deadline = task.deadline;
        held.route_key = task.route_key;
        ++held.version;
        auto const tags = join_tags(task.tags);
        sqlite_run(sql_, sqlite_sql::replace_task,
                   {held.id, held.lane, held.gate, held.flags, held.run_at, held.version, held.deadline,
                    sqlite_text{task.route_key}, sqlite_text{task.retry}, sqlite_blob{task.payload}, sqlite_blob{tags}})
            .finish();
    }

    /// Puts a task that waits off.
    template <class Row>
    void debounce(Row& held, new_task const& task, time_point run_at) {
        if (run_at > held.run_at) held.run_at = held.order_at = run_at;
        held.deadline = later_deadline(held.deadline, task.deadline);
        forget_past(held);
        ++held.version;
        sqlite_run(sql_, sqlite_sql::debounce_task,
                   {held.id, held.run_at, held.order_at, held.version, held.deadline, sqlite_blob{task.payload}})
            .finish();
    }

  private:
    /// What was done for the old payload is not done for the new one, which is not to blame for what that one did
    /// either. The statements forget its last error as well.
    template <class Row>
    void forget_past(Row& held) {
        held.unclean_ends = 0;
        held.lonely_deaths = 0;
        if (held.attempts != 0) sqlite_run(sql_, sqlite_sql::drop_steps, {held.id}).finish();
    }

    std::optional<owner> read(sqlite_sql query, std::string_view key) {
        sqlite_run row(sql_, query, {key});
        if (!row.next()) return std::nullopt;
        return owner{row.as<task_id>(0), row.as<task_state>(1), row.as<lane_id>(2), row.time(3),
                     (row.number(4) & flag_head) != 0};
    }

    Connection& sql_;
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// What sqlite_storage knows of the periods of schedules beside their tasks: which occurrence waits for which, the
// backfills under way, and what was left out. An occurrence that waits has a row in ax_past; the one that it waits for
// has a flag, so that no other task that ends has to look there.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/backfill_number.hpp"
#include "ax/storage/detail/skip_rules.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ax::detail {

template <class Run>
dependent<backfill_record, Run> read_backfill(Run const& row) {
    dependent<backfill_record, Run> record;
    record.number = row.template as<std::uint64_t>(0);
    record.schedule = row.text(1);
    record.from = row.time(2);
    record.to = row.time(3);
    record.next = row.maybe_time(4);
    record.priority = row.template as<priority_class>(5);
    record.at_once = row.template as<std::size_t>(6);
    record.planned = row.template as<std::uint64_t>(7);
    record.made = row.template as<std::uint64_t>(8);
    record.existed = row.template as<std::uint64_t>(9);
    record.unfinished = row.template as<std::size_t>(10);
    record.version = row.template as<std::uint64_t>(11);
    record.created = row.time(12);
    return record;
}

template <class Connection>
std::vector<dependent<backfill_record, Connection>> read_backfills(Connection& sql) {
    std::vector<dependent<backfill_record, Connection>> answer;
    sqlite_run row(sql, sqlite_sql::backfills);
    while (row.next()) answer.push_back(read_backfill(row));
    return answer;
}

template <class Run>
dependent<skip_range, Run> read_skip(Run const& row) {
    return {row.time(1), row.time(2), row.template as<std::uint64_t>(3), row.copy(5), row.time(4)};
}

template <class Connection>
std::vector<dependent<skip_count, Connection>> read_skip_counts(Connection& sql, std::string_view schedule) {
    std::vector<dependent<skip_count, Connection>> answer;
    sqlite_run row(sql, sqlite_sql::skip_counts, {schedule});
    while (row.next()) answer.push_back({row.copy(0), row.template as<std::uint64_t>(1)});
    return answer;
}

template <class Connection>
dependent<skip_log, Connection> read_skips(Connection& sql, std::string_view schedule) {
    dependent<skip_log, Connection> answer;
    {
        sqlite_run row(sql, sqlite_sql::skips, {schedule});
        while (row.next()) answer.latest.push_back(read_skip(row));
    }
    answer.reasons = read_skip_counts(sql, schedule);
    return answer;
}

/// The rows of ax_past, ax_backfill, ax_backfilled, ax_skip and ax_skip_count, as a writer changes them.
template <class Connection>
class sqlite_periods {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using task_id = dependent<ax::task_id, Connection>;
    using task_state = dependent<ax::task_state, Connection>;
    using new_task = dependent<ax::new_task, Connection>;
    using backfill_record = dependent<ax::backfill_record, Connection>;
    using time_point = dependent<ax::time_point, Connection>;
    using skip_range = dependent<ax::skip_range, Connection>;

  public:
    explicit sqlite_periods(Connection& sql) noexcept : sql_(sql) {}

    /// The one before an occurrence, where it has not done what those behind it wait for; 0: none.
    task_id past_to_wait_for(new_task const& task) {
        sqlite_run before(sql_, sqlite_sql::occurrence_before, {task.schedule, task.scheduled_at});
        if (!before.next()) return {};
        auto const state = before.as<task_state>(1);
        return state == task_state::succeeded || state == task_state::skipped ? task_id{} : before.as<task_id>(0);
    }

    /// A new occurrence that waits for `past`, if for any; the one behind it, where it waits, waits for the new one.
    void stand_in_chain(new_task const& task, task_id id, bool waits, task_id past) {
        if (waits) sqlite_run(sql_, sqlite_sql::put_past, {id, past}).finish();
        if (past != task_id{}) sqlite_run(sql_, sqlite_sql::mark_awaited, {past}).finish();
        task_id behind{};
        {
            sqlite_run next(sql_, sqlite_sql::occurrence_behind, {task.schedule, task.scheduled_at});
            if (next.next()) behind = next.as<task_id>(0);
        }
        if (behind != task_id{} && sqlite_run(sql_, sqlite_sql::move_past, {behind, id}).finish() != 0)
            sqlite_run(sql_, sqlite_sql::mark_awaited, {id}).finish();
    }

    std::vector<task_id> waiting_for(task_id past) {
        std::vector<task_id> ids;
        sqlite_run row(sql_, sqlite_sql::waiting_for_past, {past});
        while (row.next()) ids.push_back(row.template as<task_id>(0));
        return ids;
    }

    /// 0: it waits for none, now or at all.
    task_id past_of(task_id waiting) {
        sqlite_run row(sql_, sqlite_sql::past_of, {waiting});
        return row.next() ? row.as<task_id>(0) : task_id{};
    }

    void past_is_done(task_id waiting) { sqlite_run(sql_, sqlite_sql::move_past, {waiting, task_id{}}).finish(); }
    void wait_no_more(task_id waiting) { sqlite_run(sql_, sqlite_sql::drop_past, {waiting}).finish(); }

    // ---- backfills -------------------------------------------------------------------------------------------------

    std::uint64_t next_number() {
        std::string latest;
        {
            sqlite_run row(sql_, sqlite_sql::get_note, {backfills_note});
            if (row.next()) latest = row.text(0);
        }
        auto const number = next_backfill(latest);
        sqlite_run(sql_, sqlite_sql::put_note, {backfills_note, std::string_view{std::to_string(number)}}).finish();
        return number;
    }

    std::optional<backfill_record> find(std::uint64_t number) {
        sqlite_run row(sql_, sqlite_sql::backfill, {number});
        return row.next() ? std::optional<backfill_record>{read_backfill(row)} : std::nullopt;
    }

    void put(backfill_record const& record) {
        sqlite_run(sql_, sqlite_sql::put_backfill,
                   {record.number, std::string_view{record.schedule}, record.from, record.to, record.next,
                    record.priority, record.at_once, record.planned, record.made, record.existed, record.unfinished,
                    record.version, record.created})
            .finish();
    }

    /// Forgets those of its tasks that have ended. Returns how many are left.
    std::size_t forget_ended(std::uint64_t number) {
        sqlite_run(sql_, sqlite_sql::forget_backfilled, {number}).finish();
        sqlite_run row(sql_, sqlite_sql::count_backfilled, {number});
        return row.next() ? row.as<std::size_t>(0) : 0;
    }

    void remember(std::uint64_t number, task_id id) {
        sqlite_run(sql_, sqlite_sql::put_backfilled, {number, id}).finish();
    }

    bool drop(std::uint64_t number) {
        sqlite_run(sql_, sqlite_sql::drop_backfilled, {number}).finish();
        return sqlite_run(sql_, sqlite_sql::drop_backfill, {number}).finish() > 0;
    }

    void drop_of_schedule(std::string_view schedule) {
        for (auto const& each : read_backfills(sql_))
            if (each.schedule == schedule) drop(each.number);
    }

    // ---- what was left out -----------------------------------------------------------------------------------------

    /// Keeps what a schedule leaves out, as the latest range or joined with that, and counts it.
    void leave_out(std::string_view schedule, skip_range range) {
        auto counts = read_skip_counts(sql_, schedule);
        if (auto const gone = count_skips(counts, range.reason, range.number))
            sqlite_run(sql_, sqlite_sql::drop_skip_count, {schedule, std::string_view{*gone}}).finish();
        sqlite_run(sql_, sqlite_sql::put_skip_count, {schedule, std::string_view{range.reason}, range.number}).finish();

        std::int64_t number = 0;
        if (sqlite_run row(sql_, sqlite_sql::latest_skip, {schedule}); row.next()) {
            number = row.number(0);
            auto const latest = read_skip(row);
            if (follows_on(latest, range, occurrence_before(schedule, range.first))) {
                range.first = latest.first;
                range.number += latest.number;
            } else {
                ++number;
            }
        }
        sqlite_run(
            sql_, sqlite_sql::put_skip,
            {schedule, number, range.first, range.last, range.number, range.recorded, std::string_view{range.reason}})
            .finish();
        sqlite_run(sql_, sqlite_sql::trim_skips, {schedule, number - static_cast<std::int64_t>(most_skips_kept)})
            .finish();
    }

    void drop_skips_of(std::string_view schedule) {
        sqlite_run(sql_, sqlite_sql::trim_skips, {schedule, (std::numeric_limits<std::int64_t>::max)()}).finish();
        sqlite_run(sql_, sqlite_sql::drop_skip_counts, {schedule}).finish();
    }

  private:
    std::optional<time_point> occurrence_before(std::string_view schedule, time_point nominal) {
        sqlite_run before(sql_, sqlite_sql::occurrence_before, {schedule, nominal});
        return before.next() ? before.maybe_time(2) : std::nullopt;
    }

    Connection& sql_;
};

} // namespace ax::detail

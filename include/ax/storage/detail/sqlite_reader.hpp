// SPDX-License-Identifier: MIT
// The reads of sqlite_storage, on connections of their own: in WAL mode they wait for no writer and see what is
// committed.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/awaited_occurrence.hpp"
#include "ax/storage/detail/graph_names.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_counts.hpp"
#include "ax/storage/detail/sqlite_lock.hpp"
#include "ax/storage/detail/sqlite_periods.hpp"
#include "ax/storage/detail/sqlite_rows.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// One connection for reading. Used by one thread at a time.
template <class Connection>
class sqlite_reader {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using task_id = dependent<ax::task_id, Connection>;
    using task_record = dependent<ax::task_record, Connection>;
    using attempt_view = dependent<ax::attempt_view, Connection>;
    using obstacle = dependent<ax::obstacle, Connection>;
    using alarms = dependent<ax::alarms, Connection>;
    using type_number = dependent<ax::type_number, Connection>;
    using type_info = dependent<ax::type_info, Connection>;
    using lane_id = dependent<ax::lane_id, Connection>;
    using schedule_record = dependent<ax::schedule_record, Connection>;
    using kept_step = dependent<ax::kept_step, Connection>;
    using task_count = dependent<ax::task_count, Connection>;

  public:
    explicit sqlite_reader(std::string const& path, std::string const& pragmas, std::string const& vfs = {})
        : sql_(path, false, vfs) {
        sql_.execute(pragmas.c_str());
        sql_.execute("PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0");
        sql_.opened();
    }

    std::optional<task_record> find(task_id id) {
        sqlite_run row(sql_, sqlite_sql::task, {id});
        return row.next() ? parsed(row) : std::nullopt;
    }

    std::optional<task_record> find_by_key(std::string_view key) {
        if (auto found = by_key(sqlite_sql::task_by_key, key)) return found;
        snapshot const one_view(sql_); // a key that moves between two looks would not be seen
        auto found = by_key(sqlite_sql::task_by_key, key);
        return found ? std::move(found) : by_key(sqlite_sql::task_by_former_key, key);
    }

    std::vector<task_record> list(task_filter const& filter, time_point now) {
        snapshot const one_view(sql_);
        page wanted;
        wanted.limit = bounded(filter.limit);
        if (filter.stuck_for) wanted.changed_before = saturating_add(now, -filter.stuck_for->value());
        std::optional<type_number> type;
        if (!filter.type.empty()) {
            type = number_of(filter.type);
            if (!type) return {};
        }
        if (filter.state && is_claimable(*filter.state))
            collect_claimable(wanted, *filter.state, lanes(type), filter.after);
        else if (filter.state)
            collect_other(wanted, *filter.state, lanes(type), filter.after);
        else
            collect_any(wanted, type, filter.after);

        std::vector<task_record> answer;
        answer.reserve(wanted.places.size());
        for (auto const& at : wanted.places) {
            sqlite_run row(sql_, sqlite_sql::task, {at.id});
            if (!row.next()) continue;
            if (auto task = read_task(row, sql_, names_)) answer.push_back(shown(*std::move(task)));
        }
        return answer;
    }

    std::vector<attempt_view> history(task_id id) {
        snapshot const one_view(sql_);
        sqlite_run task(sql_, sqlite_sql::task_row, {id});
        if (!task.next()) return {};
        std::vector<attempt_view> answer;
        {
            sqlite_run row(sql_, sqlite_sql::attempts, {id});
            while (row.next()) answer.push_back(read_attempt(row));
        }
        auto const state = task.as<task_state>(2);
        auto const number = task.as<std::size_t>(10);
        bool const told = !answer.empty() && answer.back().number == number;
        if (!is_active(state) && (state != task_state::succeeded || told || number == 0)) return answer;
        attempt_view latest; // of which there is no row: see settle()
        latest.number = number;
        latest.id = task.as<fence_token>(8);
        latest.node = task.as<node_id>(9);
        if (state != task_state::dispatched) latest.start = task.maybe_time(17);
        if (state == task_state::succeeded) {
            latest.end = task.maybe_time(19);
            latest.outcome = attempt_outcome::succeeded;
        }
        answer.push_back(std::move(latest));
        return answer;
    }

    std::vector<obstacle> obstacles(task_id id) {
        snapshot const one_view(sql_);
        std::vector<obstacle> answer;
        sqlite_run task(sql_, sqlite_sql::task_row, {id});
        if (!task.next()) return answer;
        if ((task.number(3) & gate_blocked) != 0) {
            obstacle route{obstacle::what::route, task.copy(21), {}, std::nullopt, false};
            sqlite_run head(sql_, sqlite_sql::route_head, {std::string_view{route.name}});
            if (head.next()) route.holders.push_back(head.as<task_id>(0));
            answer.push_back(std::move(route));
        }
        if (task.number(2) == static_cast<int>(task_state::created)) {
            sqlite_run row(sql_, sqlite_sql::past_of, {id});
            if (row.next() && row.number(0) != 0) {
                answer.push_back({obstacle::what::past, {}, {row.as<task_id>(0)}, std::nullopt, false});
                sqlite_run waiting(sql_, sqlite_sql::task, {id});
                if (waiting.next()) answer.back().name = waiting.copy(25);
            }
        }
        auto const met = stands_at(task.as<line_number>(22));
        bool met_in_vain = false;
        if (auto const state = task.as<task_state>(2); state == task_state::created || is_claimable(state)) {
            sqlite_run need(sql_, sqlite_sql::needs_of_type, {type_of(task.as<lane_id>(1))});
            while (need.next()) {
                sqlite_run row(sql_, sqlite_sql::limit_row, {need.number(0)});
                if (!row.next()) continue;
                auto const limit = read_limit(row);
                if (!limit.is_too_little_for(need.number(1))) continue;
                answer.push_back({obstacle::what::limit, limit.title(need.number(1)), {}, std::nullopt, true});
                met_in_vain = met_in_vain || limit.number == met;
            }
        }
        if (met != limit_number{} && !met_in_vain) {
            sqlite_run row(sql_, sqlite_sql::limit_row, {met});
            if (!row.next()) return answer;
            auto const state = read_limit(row);
            obstacle full{obstacle::what::limit, state.title(), {}, state.next_free(), false};
            sqlite_run holder(sql_, sqlite_sql::holders, {state.number});
            while (holder.next()) full.holders.push_back(holder.as<task_id>(0));
            answer.push_back(std::move(full));
        }
        if ((task.number(4) & flag_member) != 0) add_workflow_obstacles(id, task.as<task_state>(2), answer);
        return answer;
    }

    std::vector<task_id> asked_to_stop() {
        std::vector<task_id> answer;
        sqlite_run row(sql_, sqlite_sql::asked_to_stop);
        while (row.next()) answer.push_back(row.as<task_id>(0));
        return answer;
    }

    alarms upcoming(alarm const& after, time_point until, std::size_t limit) {
        snapshot const one_view(sql_);
        alarms answer;
        if (after.run_at <= until) {
            sqlite_run row(sql_, sqlite_sql::due_at, {after.lane, after.run_at, after.id, bounded(limit)});
            while (row.next()) answer.push_back({row.as<task_id>(0), after.lane, after.run_at});
        }
        if (answer.size() < limit) {
            sqlite_run row(sql_, sqlite_sql::due_after,
                           {after.lane, after.run_at, until, bounded(limit - answer.size())});
            while (row.next()) answer.push_back({row.as<task_id>(0), after.lane, row.time(1)});
        }
        return answer;
    }

    std::vector<type_info> types() {
        std::vector<type_info> answer;
        sqlite_run row(sql_, sqlite_sql::types);
        while (row.next()) answer.push_back({row.as<type_number>(0), row.copy(1), row.number(2) != 0});
        return answer;
    }

    std::vector<schedule_record> schedules() {
        std::vector<schedule_record> answer;
        sqlite_run row(sql_, sqlite_sql::schedules);
        while (row.next()) answer.push_back(read_schedule(row));
        return answer;
    }

    std::vector<kept_step> steps(task_id id) {
        std::vector<kept_step> answer;
        sqlite_run row(sql_, sqlite_sql::steps, {id});
        while (row.next()) answer.push_back({row.copy(0), row.copy(1)});
        return answer;
    }

    std::optional<workflow_record> workflow(task_id id) {
        snapshot const one_view(sql_);
        sqlite_run row(sql_, sqlite_sql::workflow_of, {id});
        if (!row.next()) return std::nullopt;
        std::optional<workflow_record> answer(std::in_place);
        auto& whole = *answer;
        whole.id = row.as<task_id>(0);
        whole.head = row.as<task_id>(1);
        whole.paused = row.number(2) != 0;
        whole.stopping = row.number(3) != 0;
        whole.waiting = row.as<std::size_t>(4);
        whole.ready = row.as<std::size_t>(5);
        whole.succeeded = row.as<std::size_t>(6);
        whole.dead = row.as<std::size_t>(7);
        whole.cancelled = row.as<std::size_t>(8);
        whole.skipped = row.as<std::size_t>(9);
        whole.upstream_failed = row.as<std::size_t>(10);
        whole.started = row.maybe_time(11);
        whole.last_ended = row.as<task_id>(12);
        whole.name = row.text(13);
        whole.state = task_state_of(row.number(14)).value_or(task_state::dead);
        whole.finished = row.maybe_time(15);
        whole.created = row.time(16);
        whole.key = row.null(17) ? row.text(18) : row.text(17);
        whole.stopping = whole.stopping && whole.unfinished() > 0; // later it says what goes for who comes back
        if (whole.ready == 0) return answer;
        for (auto const which : {sqlite_sql::dispatched_of_workflow, sqlite_sql::running_of_workflow}) {
            sqlite_run at_work(sql_, which, {whole.id});
            if (at_work.next()) whole.running += at_work.template as<std::size_t>(0);
        }
        whole.running = (std::min)(whole.running, whole.ready);
        whole.ready -= whole.running;
        return answer;
    }

    std::vector<member_record> members(task_id workflow, std::string_view after, std::size_t limit) {
        snapshot const one_view(sql_);
        std::vector<member_record> answer;
        {
            sqlite_run row(sql_, sqlite_sql::members_of, {workflow, after});
            while (row.next()) {
                if (answer.size() >= limit && answer.back().name != row.text(1)) break;
                auto const* const type = names_.find(sql_, type_of(row.as<lane_id>(5)));
                auto& one = answer.emplace_back();
                one.id = row.as<task_id>(0);
                one.name = row.text(1);
                one.generation = row.as<std::uint32_t>(2);
                one.kind = row.as<member_kind>(3);
                one.when = row.as<trigger_rule>(4);
                if (type != nullptr) one.type = *type;
                one.state = task_state_of(row.number(6)).value_or(task_state::dead);
                one.created = row.time(7);
                one.started = row.maybe_time(8);
                one.finished = row.maybe_time(9);
                one.outdated = row.number(10) != 0;
                one.added_by = row.as<task_id>(11);
                one.deadline = row.maybe_time(12);
            }
        }
        mark_outdated(answer);
        for (auto& one : answer) {
            sqlite_run row(sql_, sqlite_sql::parents, {one.id});
            while (row.next()) one.parents.push_back(row.as<task_id>(0));
            if (one.kind != member_kind::wait) continue;
            sqlite_run await(sql_, sqlite_sql::await_of, {one.id});
            if (await.next()) one.until = open_await_of(await.text(0), await.text(1));
        }
        return answer;
    }

    std::vector<parent_record> parents(task_id id) {
        std::vector<parent_record> answer;
        sqlite_run row(sql_, sqlite_sql::parents_of, {id});
        while (row.next())
            answer.push_back({row.as<task_id>(0), std::string(row.text(1)),
                              task_state_of(row.number(2)).value_or(task_state::dead), std::string(row.text(3))});
        return answer;
    }

    std::vector<task_count> counts() {
        snapshot const one_view(sql_);
        sqlite_counts<Connection> all;
        {
            sqlite_run row(sql_, sqlite_sql::counted);
            while (row.next()) all.add(row.number(0), row.number(1), row.number(2));
        }
        count_in_flight(all, sqlite_sql::in_flight_dispatched, task_state::dispatched);
        count_in_flight(all, sqlite_sql::in_flight_running, task_state::running);
        std::vector<task_count> answer;
        for (auto const& each : all.entries()) {
            auto const state = task_state_of(each.state);
            auto const lane = static_cast<lane_id>(each.lane);
            auto const* const type = names_.find(sql_, type_of(lane));
            if (state && type != nullptr && each.tasks > 0)
                answer.push_back({*type, class_of(lane), *state, static_cast<std::size_t>(each.tasks)});
        }
        return answer;
    }

    dependent<waiting_page, Connection> waiting(limit_number after, std::size_t most, time_point now) {
        snapshot const one_view(sql_);
        dependent<waiting_page, Connection> answer;
        for (;; --most) {
            {
                sqlite_run next(sql_, sqlite_sql::waiting_limit, {after});
                answer.complete = !next.next();
                if (answer.complete || most == 0) return answer;
                answer.last = after = next.as<limit_number>(0);
            }
            dependent<limit_state, Connection> state;
            {
                sqlite_run row(sql_, sqlite_sql::limit_row, {after});
                if (!row.next()) continue;
                state = read_limit(row);
            }
            name_waiters(sql_, state, now, answer.due);
        }
    }

    std::vector<dependent<limit_info, Connection>> limits() {
        std::vector<dependent<limit_info, Connection>> answer;
        sqlite_run row(sql_, sqlite_sql::limits);
        while (row.next()) {
            auto const state = read_limit(row);
            answer.push_back(
                {state.number, state.kind, state.name, state.definition(), static_cast<std::size_t>(state.used)});
        }
        return answer;
    }

    std::optional<task_record> occurrence(std::string_view schedule, time_point nominal) {
        sqlite_run row(sql_, sqlite_sql::task_of_occurrence, {schedule, nominal});
        return row.next() ? parsed(row) : std::nullopt;
    }

    std::vector<task_record> aside(std::string_view schedule, time_point from, time_point to, std::size_t limit) {
        std::vector<task_record> answer;
        sqlite_run row(sql_, sqlite_sql::tasks_aside, {schedule, from, to, bounded(limit)});
        while (row.next())
            if (auto task = read_task(row, sql_, names_); task && task->set_aside) answer.push_back(*std::move(task));
        return answer;
    }

    std::vector<dependent<backfill_record, Connection>> backfills() { return read_backfills(sql_); }
    dependent<skip_log, Connection> skips(std::string_view schedule) { return read_skips(sql_, schedule); }

    std::string note(std::string_view name) {
        sqlite_run row(sql_, sqlite_sql::get_note, {name});
        return row.next() ? row.copy(0) : std::string{};
    }

    /// Calls `read(connection)`, which sees one state of the store.
    template <class Read>
    auto look(Read&& read) {
        snapshot const one_view(sql_);
        return read(sql_);
    }

    /// @return  Whether this connection works; a broken one is better opened anew.
    bool healthy() const noexcept { return !sql_.has_failed(); }

  private:
    /// All reads of its life see the same state of the store.
    class snapshot {
      public:
        explicit snapshot(Connection& sql) : sql_(sql) { sqlite_run(sql_, sqlite_sql::begin_read).finish(); }
        snapshot(snapshot const&) = delete;
        snapshot& operator=(snapshot const&) = delete;
        ~snapshot() {
            // Nothing was written, so this cannot fail in a way that matters; and it may be over by itself.
            if (sql_.in_transaction()) sqlite3_exec(sql_.handle(), "COMMIT", nullptr, nullptr, nullptr);
        }

      private:
        Connection& sql_;
    };

    void add_workflow_obstacles(task_id id, task_state state, std::vector<obstacle>& answer) {
        sqlite_run whole(sql_, sqlite_sql::workflow_name, {id});
        if (!whole.next() || whole.as<task_id>(1) == id) return;
        if (state == task_state::created) {
            obstacle open{obstacle::what::parents, {}, {}, std::nullopt};
            {
                sqlite_run parent(sql_, sqlite_sql::open_parents, {id});
                while (parent.next()) {
                    open.holders.push_back(parent.as<task_id>(0));
                    name_parent(open.name, open.holders.back(), parent.text(1));
                }
            }
            sqlite_run await(sql_, sqlite_sql::await_of, {id});
            if (await.next()) {
                auto const target = await.text(0);
                bool const by_key = target.substr(0, 1) == "k";
                if (target.substr(0, 1) == "w")
                    name_awaited(open.name, target.substr(1), await.text(1));
                else
                    name_awaited(open.name, by_key ? target.substr(1) : std::string_view{},
                                 by_key ? std::string_view{} : awaited_schedule(target), await.text(1));
            }
            if (!open.name.empty()) answer.push_back(std::move(open));
        }
        if (whole.number(2) != 0 && (state == task_state::created || is_claimable(state)))
            answer.push_back({obstacle::what::paused, whole.copy(0), {whole.as<task_id>(1)}, std::nullopt});
    }

    /// A place in the order of a list: by `first`, then by id.
    struct place {
        std::int64_t first = 0; ///< run_at, or -id where the latest comes first
        task_id id{};

        friend bool operator<(place const& a, place const& b) noexcept {
            return a.first != b.first ? a.first < b.first : a.id < b.id;
        }
    };
    struct page {
        std::int64_t limit = 0;
        time_point changed_before = (time_point::max)();
        std::vector<place> places;

        bool full() const noexcept { return static_cast<std::int64_t>(places.size()) >= limit; }
    };

    static std::int64_t bounded(std::size_t limit) noexcept {
        constexpr auto most = static_cast<std::size_t>((std::numeric_limits<std::int64_t>::max)());
        return static_cast<std::int64_t>((std::min)(limit, most));
    }

    std::optional<task_record> by_key(sqlite_sql query, std::string_view key) {
        sqlite_run row(sql_, query, {key});
        return row.next() ? parsed(row) : std::nullopt;
    }

    /// What is in flight is counted among those that wait: see sqlite_schema.hpp.
    void count_in_flight(sqlite_counts<Connection>& all, sqlite_sql which, task_state state) {
        sqlite_run row(sql_, which);
        while (row.next()) {
            all.add(row.as<lane_id>(0), task_state::ready, -row.number(1));
            all.add(row.number(0), static_cast<std::int64_t>(state), row.number(1));
        }
    }

    std::optional<task_record> parsed(sqlite_run const& row) {
        auto task = read_task(row, sql_, names_);
        if (!task)
            throw error(errc::corrupt,
                        sql_.path() + ": the row of task " + std::to_string(row.number(0)) + " makes no sense");
        return shown(*std::move(task));
    }

    /// The limit at which a line stands; 0: there is no such line.
    limit_number stands_at(line_number line) {
        if (line == line_number{}) return {};
        sqlite_run row(sql_, sqlite_sql::line_row, {line});
        return row.next() ? row.as<limit_number>(2) : limit_number{};
    }

    /// A record as others see it: it names the limit for which the task waits, not the line.
    task_record shown(task_record task) {
        task.waits_for = stands_at(line_of(task));
        return task;
    }

    static attempt_view read_attempt(sqlite_run const& row) {
        attempt_view attempt;
        attempt.number = row.as<std::size_t>(0);
        attempt.id = row.as<fence_token>(1);
        attempt.node = row.as<node_id>(2);
        attempt.start = row.maybe_time(3);
        attempt.end = row.maybe_time(4);
        attempt.outcome = row.as<attempt_outcome>(5);
        attempt.error = row.text(6);
        attempt.log = row.text(7);
        return attempt;
    }

    std::optional<type_number> number_of(std::string_view name) {
        sqlite_run query(sql_, sqlite_sql::type_number, {name});
        return query.next() ? std::optional{query.as<type_number>(0)} : std::nullopt;
    }

    /// Every index begins with the lane, so a list over several is merged here from one stream of each: in SQL that
    /// would be a sort of all there is.
    std::vector<lane_id> lanes(std::optional<type_number> type) {
        std::vector<lane_id> answer;
        auto const add = [&](type_number number) {
            for (std::size_t urgency = 0; urgency < priority_classes; ++urgency)
                answer.push_back(make_lane(number, static_cast<priority_class>(urgency)));
        };
        if (type) {
            add(*type);
            return answer;
        }
        sqlite_run row(sql_, sqlite_sql::types);
        while (row.next()) add(row.as<type_number>(0));
        return answer;
    }

    void collect_claimable(page& wanted, task_state state, std::vector<lane_id> const& among, task_id after) {
        constexpr place start{(std::numeric_limits<std::int64_t>::min)(), task_id{}};
        bool const ready = state == task_state::ready;
        place from = start;
        bool apart = false;
        {
            sqlite_run last(sql_, sqlite_sql::task_row, {after});
            if (last.next()) {
                from = {last.number(5), after};
                apart = last.number(3) != 0;
            }
        }
        if (!apart) {
            if (ready)
                collect(wanted, sqlite_sql::ready_at, sqlite_sql::ready_after, among, from);
            else
                collect(wanted, sqlite_sql::failed_at, sqlite_sql::failed_after, among, from);
            from = start;
        }
        if (wanted.full()) return;
        if (ready)
            collect(wanted, sqlite_sql::ready_apart_at, sqlite_sql::ready_apart_after, among, from);
        else
            collect(wanted, sqlite_sql::failed_apart_at, sqlite_sql::failed_apart_after, among, from);
    }

    void collect(page& wanted, sqlite_sql same_instant, sqlite_sql later, std::vector<lane_id> const& among,
                 place from) {
        auto const room = wanted.limit - static_cast<std::int64_t>(wanted.places.size());
        std::vector<place> found;
        for (auto const lane : among) {
            auto left = room;
            {
                sqlite_run row(sql_, same_instant, {lane, from.first, from.id, wanted.changed_before, left});
                for (; row.next(); --left) found.push_back({row.number(1), row.as<task_id>(0)});
            }
            if (left == 0) continue;
            sqlite_run row(sql_, later, {lane, from.first, wanted.changed_before, left});
            while (row.next()) found.push_back({row.number(1), row.as<task_id>(0)});
        }
        sort_and_cut(found, room);
        wanted.places.insert(wanted.places.end(), found.begin(), found.end());
    }

    static void sort_and_cut(std::vector<place>& places, std::int64_t limit) {
        std::make_heap(places.begin(), places.end()); // as fast here as std::sort, and faster to compile
        std::sort_heap(places.begin(), places.end());
        if (static_cast<std::int64_t>(places.size()) > limit) places.resize(static_cast<std::size_t>(limit));
    }

    static sqlite_sql list_of(task_state state) noexcept {
        switch (state) {
        case task_state::dispatched: return sqlite_sql::list_dispatched;
        case task_state::running: return sqlite_sql::list_running;
        case task_state::succeeded: return sqlite_sql::list_succeeded;
        case task_state::dead: return sqlite_sql::list_dead;
        case task_state::cancelled: return sqlite_sql::list_cancelled;
        case task_state::skipped: return sqlite_sql::list_skipped;
        case task_state::upstream_failed: return sqlite_sql::list_upstream_failed;
        case task_state::created:
        case task_state::ready:
        case task_state::failed: break;
        }
        return sqlite_sql::list_created;
    }

    static std::int64_t before(task_id after) noexcept {
        return after == task_id{} ? (std::numeric_limits<std::int64_t>::max)() : static_cast<std::int64_t>(after);
    }

    void collect_other(page& wanted, task_state state, std::vector<lane_id> const& among, task_id after) {
        auto& found = wanted.places;
        for (auto const lane : among) {
            sqlite_run row(sql_, list_of(state), {lane, before(after), wanted.changed_before, wanted.limit});
            while (row.next()) found.push_back({-row.number(0), row.as<task_id>(0)});
        }
        sort_and_cut(found, wanted.limit);
    }

    void collect_any(page& wanted, std::optional<type_number> type, task_id after) {
        auto const take = [&](sqlite_run&& row) {
            while (row.next()) wanted.places.push_back({0, row.as<task_id>(0)}); // in order already
        };
        if (type)
            take(sqlite_run(sql_, sqlite_sql::list_all_of_type,
                            {before(after), wanted.changed_before, wanted.limit, make_lane(*type, priority_class{})}));
        else
            take(sqlite_run(sql_, sqlite_sql::list_all, {before(after), wanted.changed_before, wanted.limit}));
    }

    Connection sql_;
    sqlite_type_names<Connection> names_;
};

/// A few readers, opened as they are needed. Threads: safe.
template <class Connection>
class sqlite_readers {
  public:
    /// @param file  What is to be found at `path`: a database that was put in its place meanwhile is not read.
    sqlite_readers(std::string path, file_identity const& file, std::string pragmas, std::string vfs, std::size_t limit)
        : path_(std::move(path)), file_(file), pragmas_(std::move(pragmas)), vfs_(std::move(vfs)),
          limit_((std::min)((std::max)(limit, std::size_t{1}), std::size_t{64})) {
        idle_.reserve(limit_);
    }

    /// Calls `read(sqlite_reader&)` with a reader that nobody else uses; waits for one where all are in use.
    template <class Read>
    auto with(Read&& read) {
        loan const borrowed(*this);
        return read(*borrowed.reader);
    }

    void close() noexcept {
        std::scoped_lock const lock(mutex_);
        idle_.clear();
    }

  private:
    struct loan {
        explicit loan(sqlite_readers& from) : pool(from), reader(from.take()) {}
        loan(loan const&) = delete;
        loan& operator=(loan const&) = delete;
        ~loan() { pool.give(std::move(reader)); }

        sqlite_readers& pool;
        mutable std::unique_ptr<sqlite_reader<Connection>> reader;
    };

    std::unique_ptr<sqlite_reader<Connection>> take() {
        {
            std::unique_lock lock(mutex_);
            returned_.wait(lock, [&] { return !idle_.empty() || lent_ < limit_; });
            ++lent_;
            if (!idle_.empty()) {
                auto reader = std::move(idle_.back());
                idle_.pop_back();
                return reader;
            }
        }
        try {
            file_identity present;
            if (!identify(path_, present) || !(present == file_))
                throw error(errc::unavailable, path_ + " was moved, replaced or deleted while the store was open");
            return std::make_unique<sqlite_reader<Connection>>(path_, pragmas_, vfs_);
        } catch (...) {
            give(nullptr);
            throw;
        }
    }

    void give(std::unique_ptr<sqlite_reader<Connection>> reader) noexcept {
        if (reader && !reader->healthy()) reader.reset();
        std::scoped_lock const lock(mutex_);
        --lent_;
        if (reader) idle_.push_back(std::move(reader)); // there is room: see the constructor
        returned_.notify_one();
    }

    std::string const path_;
    file_identity const file_;
    std::string const pragmas_;
    std::string const vfs_;
    std::size_t const limit_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<std::unique_ptr<sqlite_reader<Connection>>> idle_;
    std::size_t lent_ = 0;
};

} // namespace ax::detail

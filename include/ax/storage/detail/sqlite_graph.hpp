// SPDX-License-Identifier: MIT
// The rows that graph_rules works on, in SQLite.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/awaited_occurrence.hpp"
#include "ax/storage/detail/graph_rules.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_counts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// What a task is waited for by: its key, its schedule and instant, or the workflow to which it is to be added.
template <class Text>
Text awaited_target(awaited_task const& what, task_id workflow = {}) {
    if (workflow != task_id{}) return 'w' + std::to_string(to_number(workflow));
    if (!what.key.empty()) return 'k' + what.key;
    return awaited_occurrence<Text>(what.schedule, what.scheduled_at);
}

/// @tparam Writer  Lends what changes a task: see sqlite_writer.
template <class Writer>
class sqlite_graph {
    using connection = typename Writer::connection_type;
    using node_type = dependent<graph_node, Writer>;
    using nodes = std::vector<node_type>;
    using text = dependent<std::string, Writer>;
    using task_id = dependent<ax::task_id, Writer>;
    using task_state = dependent<ax::task_state, Writer>;
    using workflow_type = dependent<workflow_row, Writer>;
    using new_task = dependent<ax::new_task, Writer>;
    using awaited_task = dependent<ax::awaited_task, Writer>;

  public:
    explicit sqlite_graph(Writer& writer) noexcept : writer_(writer), sql_(writer.sql_) {}

    std::optional<node_type> node(task_id id) { return one_of(sqlite_sql::member, id); }
    auto children(task_id id) { return all_of(sqlite_sql::children, id); }
    template <class Fn>
    void children(task_id id, Fn&& fn) {
        sqlite_run row(sql_, sqlite_sql::child_ids, {id});
        while (row.next()) fn(row.as<task_id>(0));
    }
    std::optional<std::pair<task_id, member_kind>> place(task_id id) {
        sqlite_run row(sql_, sqlite_sql::member_place, {id});
        if (!row.next()) return std::nullopt;
        return std::pair{row.as<task_id>(0), row.as<member_kind>(1)};
    }
    auto unfinished(task_id workflow) { return all_of(sqlite_sql::unfinished_members, workflow); }
    auto added(task_id id) { return all_of(sqlite_sql::added_members, id); }
    void drop(task_id id) {
        sqlite_run(sql_, sqlite_sql::leave_member, {id}).finish();
        sqlite_run(sql_, sqlite_sql::drop_awaits_of, {id}).finish();
    }
    auto failed(task_id workflow) { return all_of(sqlite_sql::failed_members, workflow); }

    auto parents(task_id id) {
        std::vector<task_id> answer;
        sqlite_run row(sql_, sqlite_sql::parents, {id});
        while (row.next()) answer.push_back(row.as<task_id>(0));
        return answer;
    }

    std::optional<text> failed_leaf(task_id workflow) {
        sqlite_run row(sql_, sqlite_sql::failed_leaf, {workflow});
        return row.next() ? std::optional<text>{row.text(0)} : std::nullopt;
    }

    std::optional<task_id> latest(task_id workflow, std::string_view name) {
        sqlite_run row(sql_, sqlite_sql::latest_member, {workflow, name});
        return row.next() ? std::optional{row.as<task_id>(0)} : std::nullopt;
    }

    text name(task_id id) {
        sqlite_run row(sql_, sqlite_sql::member_name, {id});
        return row.next() ? text{row.text(0)} : text{};
    }

    std::optional<task_state> state(task_id id) {
        sqlite_run row(sql_, sqlite_sql::task_state, {id});
        return row.next() ? task_state_of(row.number(0)) : std::nullopt;
    }

    void put_parents(graph_node const& one) {
        sqlite_run(sql_, sqlite_sql::put_parents,
                   {one.id, one.parents.total, one.parents.succeeded, one.parents.failed, one.parents.skipped,
                    one.parents.upstream_failed})
            .finish();
    }

    std::optional<workflow_type> workflow(task_id id) {
        sqlite_run row(sql_, sqlite_sql::workflow, {id});
        if (!row.next()) return std::nullopt;
        workflow_type whole;
        whole.id = row.as<task_id>(0);
        whole.head = row.as<task_id>(1);
        whole.paused = row.number(2) != 0;
        whole.stopping = row.number(3) != 0;
        for (std::size_t i = 0; i != member_groups; ++i) whole.counts[i] = row.number(static_cast<int>(4 + i));
        whole.started = row.maybe_time(11);
        whole.last_ended = row.as<task_id>(12);
        return whole;
    }

    void put(workflow_row const& whole) {
        auto const& n = whole.counts;
        sqlite_run(sql_, sqlite_sql::update_workflow,
                   {whole.id, whole.head, whole.paused, whole.stopping, n[0], n[1], n[2], n[3], n[4], n[5], n[6],
                    whole.started, whole.last_ended})
            .finish();
    }

    void add(workflow_row const& whole, std::string_view name) {
        sqlite_run(sql_, sqlite_sql::insert_workflow, {whole.id, name}).finish();
    }

    void set_up(task_id id, graph_row const& row, std::string_view name) {
        sqlite_run(sql_, sqlite_sql::insert_member,
                   {id, row.workflow, row.generation, row.kind, row.when, row.parents.total, name, row.added_by})
            .finish();
    }

    bool link(task_id parent, task_id child) {
        return sqlite_run(sql_, sqlite_sql::link, {parent, child}).finish() != 0;
    }
    void unlink(task_id parent, task_id child) { sqlite_run(sql_, sqlite_sql::unlink, {parent, child}).finish(); }
    void watch(task_id id) { sqlite_run(sql_, sqlite_sql::watch_task, {id}).finish(); }

    insertion insert_head(new_task const& task, time_point now, alarms& due) {
        return writer_.insert_one(task, now, due, task_state::created, flag_member | flag_head);
    }

    task_id insert_member(new_task const& task, task_state state, bool paused, time_point now, alarms& due) {
        auto const id = writer_.insert_one(task, now, due, state, flag_member).id;
        if (paused && state == task_state::ready) set_paused(id, true, due);
        return id;
    }

    task_id copy(task_id id, time_point now) {
        auto const made = writer_.session_.next_id();
        sqlite_run(sql_, sqlite_sql::copy_task, {id, made, now}).finish();
        if (auto const place = writer_.session_.lanes().find(sql_, id); place.id == id)
            writer_.session_.counts().add(place.lane, task_state::created, 1);
        return made;
    }

    void enter(task_id id, task_state state, time_point now, std::string_view error, alarms& due) {
        auto* const task = writer_.load(id);
        if (task == nullptr) return;
        writer_.wait_no_more(*task);
        bool const forgets = state == task_state::created || state == task_state::succeeded;
        if (state == task_state::created) {
            writer_.keys_.take_back(id);
            writer_.forget_end(*task, now);
            task->gate = 0;
        }
        task->enter(state, now);
        writer_.update(*task, error);
        if (forgets) sqlite_run(sql_, sqlite_sql::clear_error, {id}).finish();
        writer_.rearm(*task, due);
    }

    void promote(graph_node const& one, bool paused, time_point now, alarms& due) {
        auto const gate = (one.routed ? gate_blocked : 0) | (paused ? gate_paused : 0);
        bool const claimed = !paused && writer_.claim_promoted(one, now);
        if (!claimed) sqlite_run(sql_, sqlite_sql::promote_child, {one.id, gate, now}).finish();
        writer_.session_.counts().move(one.lane, task_state::created, task_state::ready);
        writer_.graph_.changed(one.id, task_state::created, task_state::ready, {}, one.workflow);
        if (claimed) return;
        if (one.routed) {
            if (auto* const task = writer_.load(one.id)) writer_.rearm(*task, due);
        } else if (!paused) {
            due.push_back({one.id, one.lane, (std::max)(one.run_at, now)});
        }
    }

    void set_paused(task_id id, bool yes, alarms& due) {
        auto* const task = writer_.load(id);
        if (task == nullptr || !is_claimable(task->state)) return;
        writer_.wait_no_more(*task);
        sqlite_run(sql_, sqlite_sql::pause_member, {id, yes ? gate_paused : 0}).finish();
        if (!yes) writer_.announce(id, due);
    }

    void demote(task_id id, task_state state) {
        auto const place = writer_.session_.lanes().find(sql_, id);
        sqlite_run(sql_, sqlite_sql::demote_head, {id}).finish();
        writer_.session_.counts().add(-static_cast<std::int64_t>(place.lane), counted_state(state), 1);
    }

    bool ask_to_stop(task_id id) { return writer_.ask_to_stop(id); }

    std::optional<std::pair<task_id, task_state>> find(awaited_task const& what) {
        if (what.key.empty()) {
            sqlite_run row(sql_, sqlite_sql::occurrence_holder, {std::string_view{what.schedule}, what.scheduled_at});
            if (!row.next()) return std::nullopt;
            return std::pair{row.as<task_id>(0), row.as<task_state>(1)};
        }
        auto holder = writer_.keys_.holder(what.key);
        if (!holder) holder = writer_.keys_.former(what.key);
        if (!holder) return std::nullopt;
        return std::pair{holder->id, holder->state};
    }

    void await(awaited_task const& what, task_id id, task_id workflow) {
        sqlite_run(sql_, sqlite_sql::await,
                   {std::string_view{awaited_target<text>(what, workflow)}, id, std::string_view{what.name}})
            .finish();
    }

    void pass_await(task_id from, task_id to) { sqlite_run(sql_, sqlite_sql::pass_await, {from, to}).finish(); }

    auto arrived(new_task const& task) {
        std::vector<std::pair<task_id, text>> answer;
        auto const take = [&](awaited_task const& what) {
            auto const target = awaited_target<text>(what);
            {
                sqlite_run row(sql_, sqlite_sql::awaiting, {std::string_view{target}});
                while (row.next()) answer.emplace_back(row.as<task_id>(0), row.text(1));
            }
            if (!answer.empty()) sqlite_run(sql_, sqlite_sql::drop_awaits, {std::string_view{target}}).finish();
        };
        if (!any_await()) return answer;
        if (!task.key.empty()) take({task.key, {}, {}, {}});
        if (!task.schedule.empty() && task.scheduled_at) take({{}, task.schedule, *task.scheduled_at, {}});
        return answer;
    }

    auto waiting_for(new_task const& task) {
        std::vector<std::pair<task_id, text>> answer;
        if (!any_await()) return answer;
        auto const look = [&](awaited_task const& what) {
            auto const target = awaited_target<text>(what);
            sqlite_run row(sql_, sqlite_sql::awaiting, {std::string_view{target}});
            while (row.next()) answer.emplace_back(row.as<task_id>(0), row.text(1));
        };
        if (!task.key.empty()) look({task.key, {}, {}, {}});
        if (!task.schedule.empty() && task.scheduled_at) look({{}, task.schedule, *task.scheduled_at, {}});
        return answer;
    }
    text workflow_name(task_id id) {
        sqlite_run row(sql_, sqlite_sql::workflow_name, {id});
        return row.next() ? text{row.text(0)} : text{};
    }

    auto arrived_member(task_id workflow, std::string_view name) {
        std::vector<task_id> answer;
        if (!any_await()) return answer;
        auto const target = awaited_target<text>({}, workflow);
        {
            sqlite_run row(sql_, sqlite_sql::awaiting, {std::string_view{target}});
            while (row.next())
                if (row.text(1) == name) answer.push_back(row.as<task_id>(0));
        }
        for (auto const id : answer) sqlite_run(sql_, sqlite_sql::drop_awaits_of, {id}).finish();
        return answer;
    }

    bool any_await() {
        sqlite_run any(sql_, sqlite_sql::any_await);
        return any.next();
    }

    /// Who waits for occurrences of a schedule that are not there, and for which, before `bound`; the earliest first.
    auto awaiting(std::string_view schedule, ax::time_point bound) {
        std::vector<std::pair<ax::time_point, task_id>> answer;
        auto const from = awaited_occurrence<text>(schedule, (ax::time_point::min)());
        auto const to = awaited_occurrence<text>(schedule, bound);
        sqlite_run row(sql_, sqlite_sql::awaiting_between, {std::string_view{from}, std::string_view{to}});
        while (row.next()) // the name of another schedule may go on with what stands between
            if (auto const target = row.text(0); target.size() == from.size())
                answer.emplace_back(awaited_instant(target), row.as<task_id>(1));
        return answer;
    }
    void drop_await(task_id id) { sqlite_run(sql_, sqlite_sql::drop_awaits_of, {id}).finish(); }

  private:
    static node_type read(sqlite_run const& row) {
        node_type one;
        one.id = row.as<task_id>(0);
        one.state = task_state_of(row.number(1)).value_or(task_state::dead);
        one.has_run = row.number(2) != 0;
        one.lane = row.as<lane_id>(3);
        one.run_at = row.time(4);
        one.routed = row.number(5) != 0;
        one.workflow = row.as<task_id>(6);
        one.generation = row.as<std::uint32_t>(7);
        one.kind = row.as<member_kind>(8);
        one.when = row.as<trigger_rule>(9);
        one.parents.total = row.as<std::uint32_t>(10);
        one.parents.succeeded = row.as<std::uint32_t>(11);
        one.parents.failed = row.as<std::uint32_t>(12);
        one.parents.skipped = row.as<std::uint32_t>(13);
        one.parents.upstream_failed = row.as<std::uint32_t>(14);
        one.added_by = row.as<task_id>(15);
        one.dropped = row.number(16) != 0;
        return one;
    }

    std::optional<node_type> one_of(sqlite_sql what, task_id id) {
        sqlite_run row(sql_, what, {id});
        return row.next() ? std::optional{read(row)} : std::nullopt;
    }

    nodes all_of(sqlite_sql what, task_id id) {
        nodes answer;
        sqlite_run row(sql_, what, {id});
        while (row.next()) answer.push_back(read(row));
        return answer;
    }

    Writer& writer_;
    connection& sql_;
};

} // namespace ax::detail

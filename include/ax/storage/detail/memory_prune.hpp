// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/detail/memory_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace ax::detail {

/// The first terminal task of a type behind `after`, whatever its priority class.
inline memory_row* next_ended(memory_tables& tables, type_number type, task_id after) {
    std::optional<task_id> first;
    for (std::size_t i = 0; i != priority_classes; ++i) {
        auto const lane = tables.ended().find(make_lane(type, static_cast<priority_class>(i)));
        if (lane == tables.ended().end()) continue;
        auto const next = lane->second.upper_bound(after);
        if (next != lane->second.end() && (!first || *next < *first)) first = *next;
    }
    return first ? tables.find(*first) : nullptr;
}

/// How many ended tasks of a type are tasks of workflows, which go with those; and how many of the dead ones.
inline std::pair<std::size_t, std::size_t> ended_members(memory_tables const& tables, type_number type) {
    std::pair<std::size_t, std::size_t> answer{0, 0};
    if (tables.graphs().members().empty()) return answer;
    for (std::size_t i = 0; i != priority_classes; ++i) {
        auto const lane = tables.ended().find(make_lane(type, static_cast<priority_class>(i)));
        if (lane == tables.ended().end()) continue;
        for (auto const id : lane->second)
            if (tables.graphs().member(id) != nullptr && !tables.graphs().is_head(id))
                ++(tables.find(id)->task.state == task_state::dead ? answer.second : answer.first);
    }
    return answer;
}

/// Removes as many tasks of a workflow as there is room for, but not its head. What stays is counted, as before.
/// @return  Whether none is left, and there is room for the head.
inline bool prune_members(memory_tables& tables, task_id head, std::size_t limit, prune_answer& answer) {
    auto& graphs = tables.graphs();
    auto const workflow = graphs.member(head)->row.workflow;
    auto whole = graphs.workflow(workflow)->row;
    std::vector<task_id> members;
    for (auto at = graphs.names().lower_bound({workflow, {}, 0});
         at != graphs.names().end() && std::get<0>(at->first) == workflow; ++at)
        if (at->second != head) members.push_back(at->second);
    for (auto const id : members) {
        if (answer.pruned == limit) break;
        auto const& one = *graphs.member(id);
        auto& row = *tables.find(id);
        if (one.row.kind != member_kind::workflow && !one.row.dropped && graphs.latest(workflow, one.name) == id)
            --whole.count(group_of(row.task.state));
        graphs.remove(id);
        tables.remove(row);
        ++answer.pruned;
    }
    graphs.put_workflow(whole);
    return answer.pruned != limit;
}

inline prune_answer memory_prune(memory_tables& tables, prune_terms const& terms, std::size_t limit) {
    std::size_t surplus[2] = {0, 0}; // of ended tasks, and of dead ones
    for (auto const state : lifecycle.states()) {
        if (!is_terminal(state)) continue;
        for (std::size_t i = 0; i != priority_classes; ++i)
            surplus[state == task_state::dead ? 1 : 0] +=
                tables.count(make_lane(terms.type, static_cast<priority_class>(i)), state);
    }
    if (surplus[0] > terms.keep || surplus[1] > terms.keep) {
        auto const members = ended_members(tables, terms.type);
        surplus[0] -= members.first;
        surplus[1] -= members.second;
    }
    for (auto& each : surplus) each -= (std::min)(each, terms.keep);

    prune_answer answer;
    answer.after = terms.after;
    auto const last = (std::max)(terms.ended_by, terms.dead_by);
    while (auto* const row = next_ended(tables, terms.type, answer.after)) {
        if (answer.looked_at == terms.look_at || answer.pruned == limit) {
            answer.more = true;
            return answer;
        }
        auto const& task = row->task;
        if (task.created > last && task.created <= terms.now && surplus[0] == 0 && surplus[1] == 0) {
            answer.oldest_ended = (std::min)(answer.oldest_ended, task.created);
            answer.oldest_dead = (std::min)(answer.oldest_dead, task.created);
            return answer;
        }
        ++answer.looked_at;
        auto const before = std::exchange(answer.after, task.id);
        auto& graphs = tables.graphs();
        bool const is_head = graphs.is_head(task.id);
        if (graphs.member(task.id) != nullptr && !is_head) continue; // goes with its workflow
        bool const dead = task.state == task_state::dead;
        bool const old = task.finished && *task.finished <= (dead ? terms.dead_by : terms.ended_by);
        if (!old && surplus[dead] == 0) {
            auto& oldest = dead ? answer.oldest_dead : answer.oldest_ended;
            if (task.finished) oldest = (std::min)(oldest, *task.finished);
            continue;
        }
        if (is_head) {
            auto const workflow = graphs.member(task.id)->row.workflow;
            bool scheduled = false;
            for (auto at = graphs.names().lower_bound({workflow, {}, 0});
                 at != graphs.names().end() && std::get<0>(at->first) == workflow && std::get<1>(at->first).empty();
                 ++at)
                scheduled = scheduled || tables.is_latest_of_a_schedule(at->second);
            if (scheduled || graphs.workflow(workflow)->row.unfinished() > 0) continue;
            if (!prune_members(tables, task.id, limit, answer)) {
                answer.after = before; // the next call goes on with it
                answer.more = true;
                return answer;
            }
            graphs.remove_workflow(workflow);
        } else if (tables.is_latest_of_a_schedule(task.id) || tables.periods().is_awaited(task.id)) {
            continue;
        }
        graphs.remove(task.id);
        tables.remove(*row);
        ++answer.pruned;
        if (surplus[dead] != 0) --surplus[dead];
    }
    return answer;
}

} // namespace ax::detail

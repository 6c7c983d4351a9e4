// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/detail/memory_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ax::detail {

/// The one in flight, else the least in line: told from the rule, not from an index.
inline task_record const* first_of_route(std::vector<task_record const*> const& members) {
    task_record const* first = nullptr;
    for (auto const* task : members)
        if (is_active(task->state)) return task;
    for (auto const* task : members)
        if (is_claimable(task->state) &&
            !(task->held && (task->set_aside || task->route_order == route_ordering::relaxed)) &&
            (first == nullptr || memory_place{task->order_at, task->id} < memory_place{first->order_at, first->id}))
            first = task;
    return first;
}

/// What cannot be of one task by itself, in words; its kind first. Nothing where all is well.
inline std::vector<std::pair<char const*, std::string>> wrongs_of(memory_tables const& tables, memory_row const& row) {
    auto const& task = row.task;
    std::vector<std::pair<char const*, std::string>> wrong;
    if (!lifecycle.contains(task.state)) {
        wrong.emplace_back("state",
                           "its state is " + std::to_string(static_cast<int>(task.state)) + ", which does not exist");
        return wrong;
    }
    if (is_active(task.state) && task.node == node_id{})
        wrong.emplace_back("owner", "it is in flight, and no node has claimed it");
    if (!is_terminal(task.state) && task.finished)
        wrong.emplace_back("finished", "it has not ended, and has a time at which it did");
    if (is_terminal(task.state) && !task.finished)
        wrong.emplace_back("unfinished", "it has ended, and has no time at which it did");
    if ((is_terminal(task.state) || is_active(task.state)) && (task.blocked || task.held))
        wrong.emplace_back("gate", "it has ended or is in flight, and is held or blocked");
    if (is_claimable(task.state) && task.blocked && task.route_key.empty())
        wrong.emplace_back("blocked", "it waits for its route key, and has none");
    if (task.waits_for != limit_number{}) {
        auto const* const line = tables.lines().find(row.line());
        if (!is_claimable(task.state) || task.blocked || task.held || line == nullptr || line->lane != row.lane() ||
            tables.limits().find(line->at) == nullptr)
            wrong.emplace_back(
                "waiting", "it is said to wait for a limit, and cannot: there is no such limit, or it is not its turn");
    }
    if (is_terminal(task.state) && !task.key.empty() && task.key_scope == key_scoping::active && !task.key_released)
        wrong.emplace_back("key", "it has lost its key, and holds it all the same");
    if (task.fence > fence_token{task.version})
        wrong.emplace_back("fence", "its fence is above its version: no end of its attempt would be taken");
    if (row.ended.size() + (is_active(task.state) ? 1 : 0) > task.attempts)
        wrong.emplace_back("attempts", "its history has more attempts than it counts");
    return wrong;
}

inline std::int64_t held_of(memory_tables const& tables, limit_number number) {
    std::int64_t held = 0;
    for (auto const& [id, holds] : tables.limits().holds())
        for (auto const& hold : holds)
            if (hold.number == number) held += hold.amount;
    return held;
}

/// What cannot be of limits and what is held of them.
inline void wrongs_of_limits(memory_tables const& tables, std::vector<finding>& found) {
    for (auto const& [id, holds] : tables.limits().holds()) {
        auto const* const row = tables.find(id);
        if (row != nullptr && is_active(row->task.state)) continue;
        for (auto const& hold : holds) {
            auto const* const limit = tables.limits().find(hold.number);
            found.push_back({"hold",
                             id,
                             "it takes up the limit of " + (limit == nullptr ? "that does not exist" : limit->title()) +
                                 ", and is not in flight",
                             false,
                             {static_cast<std::int64_t>(hold.number)}});
        }
    }
    for (auto const& [number, state] : tables.limits().all())
        if (auto const held = held_of(tables, number); held != state.used)
            found.push_back({"limit",
                             {},
                             "the limit of " + state.title() + " counts " + std::to_string(state.used) +
                                 " in use, and " + std::to_string(held) + " are",
                             false,
                             {static_cast<std::int64_t>(number)}});
}

inline void repair_limit(memory_tables& tables, finding const& one) {
    if (one.subject.size() != 1) return;
    auto& limits = tables.limits();
    auto const number = static_cast<limit_number>(one.subject[0]);
    if (one.kind == "hold") {
        auto const* const row = tables.find(one.task);
        auto const holds = limits.holds().find(one.task);
        if (holds != limits.holds().end() && (row == nullptr || !is_active(row->task.state))) {
            auto left = holds->second;
            std::erase_if(left, [&](memory_hold const& hold) { return hold.number == number; });
            limits.set_holds(one.task, std::move(left));
        }
    } else if (limits.find(number) != nullptr) {
        limits.change(number, [&](limit_state& state) { state.used = held_of(tables, number); });
    }
    limits.touch(number);
}

/// The counts of a member by how its parents stand. Who waits has perhaps one more, which is not there yet; those that
/// were pruned are in its own counts alone.
inline parent_counts parents_of(memory_tables const& tables, task_id id) {
    parent_counts counts;
    for (auto const parent : tables.graphs().parents(id)) {
        ++counts.total;
        if (auto const* const row = tables.find(parent)) count_parent(counts, row->task.state, 1);
    }
    return counts;
}

inline workflow_row counted(memory_tables const& tables, workflow_row whole) {
    whole.counts = {};
    for (auto const& [id, one] : tables.graphs().members())
        if (one.row.workflow == whole.id && one.row.kind != member_kind::workflow && !one.row.dropped &&
            tables.graphs().latest(whole.id, one.name) == id && tables.find(id) != nullptr)
            ++whole.count(group_of(tables.find(id)->task.state));
    return whole;
}

/// What cannot be of workflows, as sqlite_verify.hpp has it.
inline void verify_graphs(memory_tables const& tables, std::vector<finding>& found) {
    auto const& graphs = tables.graphs();
    auto const add = [&](char const* kind, task_id id, char const* text) {
        found.push_back({kind, id, text, false, {}});
    };
    for (auto const& row : tables.rows())
        if (row && row->task.in_workflow != (graphs.member(row->task.id) != nullptr))
            add("member", row->task.id, "what it says of its workflow is not so");
    for (auto const& [id, one] : graphs.members()) {
        auto const* const row = tables.find(id);
        auto const* const whole = graphs.workflow(one.row.workflow);
        if (row == nullptr || whole == nullptr) {
            add("member", id, "it is said to be of a workflow, and one of both is not there");
            continue;
        }
        if (one.row.kind == member_kind::workflow) continue;
        auto const is = parents_of(tables, id);
        auto const& said = one.row.parents;
        auto const open = said.unfinished() - (std::min)(said.unfinished(), is.unfinished());
        if (said.succeeded < is.succeeded || said.failed < is.failed || said.skipped < is.skipped ||
            said.upstream_failed < is.upstream_failed || said.unfinished() < is.unfinished() ||
            said.ended() > said.total || open > (one.row.kind == member_kind::wait ? 1U : 0U))
            add("parents", id, "what it counts of its parents is not how they stand");
        if (row->task.state == task_state::created && decide(one.row.when, said) != trigger_decision::wait)
            add("stuck", id, "its parents let it go or end it, and it waits");
        if (row->task.paused != (is_claimable(row->task.state) && whole->row.paused))
            add("paused", id, "its workflow is paused, and it is not, or the other way");
    }
    for (auto const& [id, whole] : graphs.workflows()) {
        if (counted(tables, whole.row).counts != whole.row.counts)
            add("workflow", id, "it counts its tasks otherwise than they stand");
        auto const* const head = tables.find(whole.row.head);
        if (head == nullptr) continue;
        auto const state = head->task.state;
        bool const open = whole.row.unfinished() > 0;
        if ((state == task_state::created && !open) ||
            (is_terminal(state) && state != task_state::succeeded && open && !whole.row.stopping))
            add("head", id, "all its tasks have ended, and it has not, or the other way");
    }
}

inline std::vector<finding> memory_verify(memory_tables const& tables) {
    constexpr std::size_t most = 1'000;
    std::vector<finding> found;
    std::map<std::string, std::vector<task_record const*>> routes;
    for (auto const& row : tables.rows()) {
        if (!row) continue;
        auto const& task = row->task;
        for (auto& [kind, text] : wrongs_of(tables, *row)) found.push_back({kind, task.id, std::move(text), false, {}});
        if (!task.route_key.empty() && (is_claimable(task.state) || is_active(task.state)))
            routes[task.route_key].push_back(&task);
        if (found.size() >= most) return found;
    }
    for (auto const& [key, members] : routes) {
        auto const* const first = first_of_route(members);
        for (auto const* task : members)
            if (is_claimable(task->state) && task->blocked != (task != first)) {
                found.push_back({"route",
                                 task->id,
                                 task->blocked ? "it is the first of its route key, and blocked"
                                               : "it is not the first of its route key, and not blocked",
                                 false,
                                 {}});
                break;
            }
        if (found.size() >= most) return found;
    }
    verify_graphs(tables, found);
    wrongs_of_limits(tables, found);
    if (found.size() > most) found.resize(most);
    if (found.empty())
        if (auto text = tables.check_invariants(); !text.empty())
            found.push_back({"index", {}, std::move(text), false, {}});
    return found;
}

/// Decides anew who is first of a route key, whatever was decided before.
inline void reseat(memory_tables& tables, std::string const& route_key) {
    if (route_key.empty()) return;
    for (auto const& row : tables.rows())
        if (row && row->task.route_key == route_key && is_claimable(row->task.state)) {
            auto const line = row->line();
            tables.change(*tables.find(row->task.id), [](task_record& task) {
                task.blocked = true;
                task.waits_for = {}; // who is blocked does not stand in line, too
            });
            tables.left(line);
        }
    tables.promote(route_key);
}

inline void memory_repair(memory_tables& tables, finding& one, time_point now) {
    one.repaired = true;
    if (one.kind == "index") return tables.rebuild();
    if (one.kind == "hold" || one.kind == "limit") return repair_limit(tables, one);
    auto* const row = tables.find(one.task);
    auto& graphs = tables.graphs();
    if (one.kind == "member" && (row == nullptr || graphs.member(one.task) == nullptr ||
                                 graphs.workflow(graphs.member(one.task)->row.workflow) == nullptr))
        graphs.remove(one.task);
    if (row == nullptr) return;
    auto const* const member = graphs.member(one.task);
    if (one.kind == "member" && row->task.in_workflow != (member != nullptr))
        tables.change(*row, [&](task_record& task) {
            ++task.version;
            task.in_workflow = member != nullptr;
            if (member != nullptr || task.state != task_state::created) return;
            task.state = task_state::dead; // nothing would let it go any more
            task.finished = task.changed = now;
            task.last_error = "its workflow is gone";
        });
    if (member != nullptr && one.kind == "parents") {
        auto counts = parents_of(tables, one.task);
        if (graphs.awaited_by(one.task)) ++counts.total;
        graphs.put_parents(one.task, counts);
    }
    if (one.kind == "workflow" && graphs.workflow(one.task) != nullptr)
        graphs.put_workflow(counted(tables, graphs.workflow(one.task)->row));
    if (member != nullptr && one.kind == "paused") {
        auto const* const whole = graphs.workflow(member->row.workflow);
        tables.change(*row, [&](task_record& task) {
            ++task.version;
            task.paused = whole != nullptr && whole->row.paused && is_claimable(task.state);
            if (task.paused) task.waits_for = {};
        });
    }
    auto const line = row->line();
    for (auto const& wrong : wrongs_of(tables, *row)) {
        if (one.kind != wrong.first) continue;
        tables.change(*row, [&](task_record& task) {
            ++task.version;
            if (one.kind == "state") {
                task.last_error = wrong.second;
                task.state = task_state::dead;
                task.changed = now;
                task.finished = now;
                task.blocked = task.held = task.set_aside = false;
            } else if (one.kind == "owner") {
                task.state = task_state::ready;
                task.changed = now;
                task.attempts = row->ended.size(); // the attempt has no end that could be told
                ++task.interruptions;
            } else if (one.kind == "finished") {
                task.finished.reset();
            } else if (one.kind == "unfinished") {
                task.finished = task.changed;
            } else if (one.kind == "gate") {
                task.blocked = task.held = task.set_aside = false;
            } else if (one.kind == "blocked") {
                task.blocked = false;
            } else if (one.kind == "waiting") {
                task.waits_for = {};
            } else if (one.kind == "key") {
                task.key_released = true;
            } else if (one.kind == "fence") {
                task.fence = fence_token{task.version};
            } else if (one.kind == "attempts") {
                task.attempts = row->ended.size() + (is_active(task.state) ? 1 : 0);
            }
        });
        break;
    }
    tables.left(line);
    auto const route_key = row->task.route_key;
    reseat(tables, route_key);
}

} // namespace ax::detail

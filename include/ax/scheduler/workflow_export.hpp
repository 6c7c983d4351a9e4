// SPDX-License-Identifier: MIT
// How a workflow stands, for other programs: as JSON, and as a drawing for Graphviz. Both are made of what
// scheduler::find_workflow() and workflow_tasks() give, or sqlite_visitor, and always in the same order.
#pragma once

#include "ax/core/ids.hpp"
#include "ax/core/text.hpp"
#include "ax/dag/trigger_rule.hpp"
#include "ax/storage/graph.hpp"
#include "ax/task/lifecycle.hpp"
#include "ax/time/instant_text.hpp"
#include "ax/time/time_point.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ax {

constexpr std::string_view to_string(member_kind kind) noexcept {
    switch (kind) {
    case member_kind::task: return "task";
    case member_kind::workflow: return "workflow";
    case member_kind::wait: return "wait";
    }
    return "unknown";
}

/// The chain of tasks that the end of a workflow (so far) waited for, the first one first: of each the parent that
/// ended last. What is outside of the workflow is left out. O(tasks + edges).
inline std::vector<task_id> critical_path_of(workflow_record const& whole, std::span<member_record const> members) {
    std::unordered_map<std::uint64_t, member_record const*> by_id;
    for (auto const& one : members) by_id.emplace(to_number(one.id), &one);
    std::vector<task_id> path;
    auto at = by_id.find(to_number(whole.last_ended));
    while (at != by_id.end() && path.size() != members.size()) {
        path.push_back(at->second->id);
        auto latest = by_id.end();
        auto const begun = at->second->started ? at->second->started : at->second->finished;
        for (auto const id : at->second->parents) {
            auto const parent = by_id.find(to_number(id));
            if (parent == by_id.end() || !parent->second->finished) continue;
            if (begun && *parent->second->finished > *begun) continue; // it was not waited for
            if (latest == by_id.end() || *parent->second->finished > *latest->second->finished) latest = parent;
        }
        at = latest;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

namespace detail {

inline nlohmann::json await_json(std::optional<open_await> const& what) {
    using json = nlohmann::json;
    if (!what) return {};
    auto const text = [](std::string const& one) { return one.empty() ? json() : json(one); };
    return {{"key", text(what->key)},
            {"schedule", text(what->schedule)},
            {"at", what->schedule.empty() ? json() : json(to_text(what->scheduled_at))},
            {"workflow", what->workflow == task_id{} ? json() : json(to_number(what->workflow))},
            {"task", text(what->name)}};
}

} // namespace detail

/// In words what a wait waits for that is not there: `the occurrence of "rates" at 2026-01-01T03:00:00Z`.
inline std::string to_text(open_await const& what) {
    auto const whole = !what.key.empty() ? "key \"" + what.key + '"'
                       : !what.schedule.empty()
                           ? "the occurrence of \"" + what.schedule + "\" at " + to_text(what.scheduled_at)
                           : "workflow " + std::to_string(to_number(what.workflow));
    return what.name.empty() ? whole : "task \"" + what.name + "\" of " + whole;
}

/// How a workflow stands, with its tasks and edges:
///
///     {"id": 1, "name": "register", "key": "register-7", "state": "created", "paused": false, "stopping": false,
///      "counts": {"waiting": 1, "ready": 1, ...}, "created": "2026-01-01T00:00:00Z", "started": ..., "finished": null,
///      "tasks": [{"id": 2, "name": "account", "generation": 1, "kind": "task", "type": "init-account",
///                 "when": "all_success", "state": "succeeded", "waits_for": null, "deadline": null, "created": ...,
///                 "started": ..., "finished": ...}, ...],
///      "edges": [{"from": 2, "to": 3}, ...], "critical_path": [2, 3]}
///
/// Tasks are by name and generation, edges by the task they lead to; `from` may be a task outside of the workflow.
/// `waits_for` is what a wait waits for that is not there: {"key", "schedule", "at", "workflow", "task"}, each null
/// where it says nothing; "workflow" is the id of the one to which "task" is yet to be added.
inline nlohmann::json workflow_to_json(workflow_record const& whole, std::span<member_record const> members) {
    using json = nlohmann::json;
    auto const instant = [](std::optional<time_point> t) { return t ? json(to_text(*t)) : json(); };
    auto tasks = json::array();
    auto edges = json::array();
    for (auto const& one : members) {
        tasks.push_back({{"id", to_number(one.id)},
                         {"name", one.name},
                         {"generation", one.generation},
                         {"kind", to_string(one.kind)},
                         {"type", one.type},
                         {"when", to_string(one.when)},
                         {"state", to_string(one.state)},
                         {"waits_for", detail::await_json(one.until)},
                         {"deadline", instant(one.deadline)},
                         {"created", instant(one.created)},
                         {"started", instant(one.started)},
                         {"finished", instant(one.finished)}});
        for (auto const parent : one.parents) edges.push_back({{"from", to_number(parent)}, {"to", to_number(one.id)}});
    }
    auto path = json::array();
    for (auto const id : critical_path_of(whole, members)) path.push_back(to_number(id));
    return {{"id", to_number(whole.id)},
            {"name", whole.name},
            {"key", whole.key},
            {"state", to_string(whole.state)},
            {"paused", whole.paused},
            {"stopping", whole.stopping},
            {"counts",
             {{"waiting", whole.waiting},
              {"ready", whole.ready},
              {"running", whole.running},
              {"succeeded", whole.succeeded},
              {"dead", whole.dead},
              {"cancelled", whole.cancelled},
              {"skipped", whole.skipped},
              {"upstream_failed", whole.upstream_failed}}},
            {"created", instant(whole.created)},
            {"started", instant(whole.started)},
            {"finished", instant(whole.finished)},
            {"tasks", std::move(tasks)},
            {"edges", std::move(edges)},
            {"critical_path", std::move(path)}};
}

namespace detail {

/// A text between the quotes of Graphviz, as one line.
inline std::string dot_text(std::string_view text) {
    std::string quoted;
    for (char const c : bounded_text(text, longest_name)) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
    return quoted;
}

constexpr char const* dot_colour(task_state state) noexcept {
    switch (state) {
    case task_state::succeeded: return "palegreen";
    case task_state::dead: return "salmon";
    case task_state::failed: return "orange";
    case task_state::cancelled: return "lightgrey";
    case task_state::skipped: return "lightgrey";
    case task_state::upstream_failed: return "mistyrose";
    case task_state::dispatched:
    case task_state::running: return "lightblue";
    case task_state::ready: return "lightyellow";
    case task_state::created: break;
    }
    return "white";
}

} // namespace detail

/// A workflow as a directed graph for Graphviz (`dot -Tsvg`): a box for each task, with its state as text and colour,
/// a dashed one for each task outside that it waits for, there or not; the critical path is drawn thick.
inline std::string workflow_to_dot(workflow_record const& whole, std::span<member_record const> members) {
    std::unordered_map<std::uint64_t, std::size_t> on_path; // its place on the path, from 1
    for (auto const id : critical_path_of(whole, members)) on_path.emplace(to_number(id), on_path.size() + 1);
    std::unordered_map<std::uint64_t, bool> inside;
    for (auto const& one : members) inside.emplace(to_number(one.id), true);

    std::string text = "digraph \"" + detail::dot_text(whole.name) + "\" {\n  rankdir=LR;\n" +
                       "  node [shape=box, style=filled, fillcolor=white];\n";
    std::vector<std::uint64_t> outside;
    std::string edges;
    for (auto const& one : members) {
        auto const id = to_number(one.id);
        auto label = detail::dot_text(one.name);
        if (one.generation > 1) label += " #" + std::to_string(one.generation);
        label += "\\n" + std::string(to_string(one.state));
        if (one.when != trigger_rule::all_success && !one.parents.empty())
            label += "\\n" + std::string(to_string(one.when));
        text += "  t" + std::to_string(id) + " [label=\"" + label + "\"";
        if (one.state != task_state::created) text += std::string(", fillcolor=") + detail::dot_colour(one.state);
        if (one.kind == member_kind::wait) text += ", shape=ellipse";
        if (on_path.contains(id)) text += ", penwidth=2";
        text += "];\n";
        if (one.until) {
            auto const what = "u" + std::to_string(id);
            text += "  " + what + " [label=\"" + detail::dot_text(to_text(*one.until)) + "\", style=dashed];\n";
            edges += "  " + what + " -> t" + std::to_string(id) + " [style=dashed];\n";
        }
        for (auto const parent : one.parents) {
            auto const from = to_number(parent);
            if (!inside.contains(from)) outside.push_back(from);
            edges += "  t" + std::to_string(from) + " -> t" + std::to_string(id);
            auto const begin = on_path.find(from);
            auto const end = on_path.find(id);
            if (begin != on_path.end() && end != on_path.end() && begin->second + 1 == end->second)
                edges += " [penwidth=2]";
            edges += ";\n";
        }
    }
    std::sort(outside.begin(), outside.end());
    outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
    for (auto const id : outside)
        text += "  t" + std::to_string(id) + " [label=\"task " + std::to_string(id) + "\", style=dashed];\n";
    return text + edges + "}\n";
}

} // namespace ax

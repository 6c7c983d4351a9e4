// SPDX-License-Identifier: MIT
// Workflows in JSON, one form for all who write or keep one: documents of definitions, and the store, which keeps the
// workflow of a schedule as text.
//
//     {"name": "reconcile", "tasks": [
//        {"name": "fetch", "type": "fetch", "payload": {"day": "{{ds}}"}, "priority": "high"},
//        {"name": "rates", "wait_for": {"schedule": "rates"}, "within": "2h"},
//        {"name": "sum", "type": "sum", "after": ["fetch", "rates"], "when": "none_failed",
//         "retry": {"fixed": "1m", "attempts": 3}}]}
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/dag/graph.hpp"
#include "ax/dag/trigger_rule.hpp"
#include "ax/scheduler/detail/definition_page.hpp"
#include "ax/scheduler/detail/definition_text.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// @throws error invalid_argument where there is no task, or a cycle, whose path the text shows.
template <class Node>
void check_graph(std::vector<Node> const& nodes, std::string_view name) {
    try {
        dag::graph graph;
        for (auto const& each : nodes) graph.add(each.name);
        for (std::size_t i = 0; i != nodes.size(); ++i)
            for (auto const parent : nodes[i].after)
                graph.depend(dag::node_id{static_cast<std::uint32_t>(i)}, dag::node_id{parent});
        graph.topological_order();
    } catch (error const& e) {
        std::string why = e.what();
        why.resize(why.size() - (": " + e.code().message()).size());
        throw error(errc::invalid_argument, "workflow \"" + bounded_text(name, 80) + "\": " + why);
    }
}

inline constexpr auto trigger_rule_names = [] {
    std::array<std::string_view, std::size(all_trigger_rules)> names{};
    for (std::size_t i = 0; i != names.size(); ++i) names[i] = to_string(all_trigger_rules[i]);
    return names;
}();

/// Reads one workflow.
template <class Json>
class workflow_reader {
  public:
    using page_type = definition_page<Json>;
    using made_type = dependent<ax::workflow, Json>;
    using name_map = typename page_type::name_map;

    explicit workflow_reader(page_type& page) : page_(page) {}

    /// Nothing where there is any fault in it.
    /// @param taken  The names of workflows that there are already, and `place` the how-manieth this one is.
    std::optional<made_type> read(Json const& one, std::string const& path, name_map& taken, std::size_t place) {
        auto const before = page_.fault_count();
        if (!page_.is_object(one, path)) return std::nullopt;
        page_.check_members(one, path, {"name", "tasks"});
        auto const name = page_.name_of(one, path, taken, place);
        auto const* const tasks = page_.member(one, "tasks");
        auto const where = path + "/tasks";
        if (!tasks) page_.fail(where, "is missing");
        if (tasks && !tasks->is_array()) page_.wrong_kind(*tasks, where, "a list");
        if (!tasks || !tasks->is_array()) return std::nullopt;
        if (tasks->empty()) page_.fail(where, "is empty: a workflow has at least one task");
        if (tasks->size() > most_members)
            page_.fail(where, "has " + std::to_string(tasks->size()) + " tasks: at most " +
                                  std::to_string(most_members) + " are allowed");
        if (tasks->size() > most_members) return std::nullopt;

        std::vector<node> nodes(tasks->size());
        name_map places;
        for (std::size_t i = 0; i != nodes.size(); ++i)
            read_task((*tasks)[i], page_.below(where, std::to_string(i)), nodes[i], places, i);
        for (std::size_t i = 0; i != nodes.size(); ++i)
            read_parents((*tasks)[i], page_.below(where, std::to_string(i)), nodes[i], places);
        if (page_.fault_count() != before) return std::nullopt;
        if (!page_.attempt(where, [&] { check_graph(nodes, name); })) return std::nullopt;

        made_type made{name};
        auto& all = made.nodes();
        for (auto& each : nodes) all.add(std::move(each), {});
        return made;
    }

  private:
    using node = dependent<workflow_node, Json>;

    void read_task(Json const& one, std::string const& path, node& made, name_map& places, std::size_t place) {
        if (!page_.is_object(one, path)) return;
        page_.check_members(
            one, path,
            {"name", "type", "payload", "after", "when", "priority", "route_key", "retry", "wait_for", "within"});
        made.name = page_.name_of(one, path, places, place);
        if (auto const word = page_.word_of(one, path, "when", trigger_rule_names); !word.empty())
            made.when = *trigger_rule_from(word);
        bool const waits = page_.member(one, "wait_for") != nullptr;
        bool const runs = page_.member(one, "type") != nullptr;
        if (waits && runs)
            page_.fail(path, "says what in 2 ways (type, wait_for): one is needed");
        else if (!waits && !runs)
            page_.fail(path, "does not say what: one of type, wait_for is needed");
        else if (waits)
            read_wait(one, path, made);
        else
            read_run(one, path, made);
    }

    void read_run(Json const& one, std::string const& path, node& made) {
        made.type = page_.type_of(*page_.member(one, "type"), path + "/type");
        if (auto const* value = page_.member(one, "payload"))
            made.payload = page_.payload_of(*value, path + "/payload", false);
        made.priority = page_.priority_of(one, path);
        if (auto const* value = page_.member(one, "route_key")) {
            made.route_key = page_.text_of(*value, path + "/route_key", longest_key);
            if (made.route_key.starts_with(schedule_route))
                page_.fail(path + "/route_key", "begins with \"schedule:\": those are the schedules' own");
        }
        if (auto const* value = page_.member(one, "retry"))
            if (auto const policy = page_.retry_of(*value, path + "/retry")) made.retry = ax::retry::to_text(*policy);
        if (page_.member(one, "within")) page_.fail(path + "/within", "belongs to wait_for");
    }

    void read_wait(Json const& one, std::string const& path, node& made) {
        made.type = wait_type;
        for (std::string_view const key : {"payload", "priority", "route_key", "retry"})
            if (page_.member(one, key))
                page_.fail(page_.below(path, key), "belongs to a task that runs: this one waits");
        if (auto const span = page_.length_of(one, path, "within")) made.within = span->value();
        auto const& what = *page_.member(one, "wait_for");
        auto const place = path + "/wait_for";
        if (!what.is_object()) {
            page_.wrong_kind(what, place, R"(an object such as {"key": "import-7"} or {"schedule": "nightly"})");
            return;
        }
        page_.check_members(what, place, {"key", "schedule", "at", "task"});
        auto const text = [&](char const* key, std::size_t limit) {
            auto const* const value = page_.member(what, key);
            return value ? page_.text_of(*value, page_.below(place, key), limit) : std::string{};
        };
        if ((page_.member(what, "key") != nullptr) == (page_.member(what, "schedule") != nullptr))
            page_.fail(place, "needs one of key, schedule");
        made.until.emplace();
        made.until->key = text("key", longest_key);
        made.until->schedule = text("schedule", longest_name);
        made.until->task = text("task", longest_name);
        if (auto const* const at = page_.member(what, "at")) read_instant(*at, place + "/at", made);
        if (made.until->at && page_.member(what, "key")) page_.fail(place + "/at", "belongs to a schedule");
    }

    void read_instant(Json const& value, std::string const& path, node& made) {
        if (!value.is_string()) {
            page_.wrong_kind(value, path, "a text");
            return;
        }
        auto const written = written_instant_of(page_.string(value));
        if (!written || !written->east) {
            page_.fail(path,
                       page_.quoted(page_.string(value)) + " is no instant; allowed: as 2026-03-29T03:00:00+02:00");
            return;
        }
        time_point const at{written->wall.time_since_epoch() - *written->east};
        if (page_.attempt(path, [&] { check_instant(at, "the instant"); })) made.until->at = at;
    }

    void read_parents(Json const& one, std::string const& path, node& made, name_map const& places) {
        if (!one.is_object()) return;
        page_.each(one, path, "after", [&](Json const& value, std::string const& place, std::size_t) {
            auto const name = page_.text_of(value, place, longest_name);
            if (name.empty()) return;
            auto const found = places.find(name);
            if (found != places.end())
                made.after.push_back(static_cast<std::uint32_t>(found->second));
            else
                unknown_parent(name, place, places);
        });
        std::sort(made.after.begin(), made.after.end());
        made.after.erase(std::unique(made.after.begin(), made.after.end()), made.after.end());
    }

    void unknown_parent(std::string const& name, std::string const& path, name_map const& places) {
        constexpr std::size_t most_compared = 1'000; // for a hint only
        std::vector<std::string_view> known;
        for (auto at = places.begin(); at != places.end() && known.size() != most_compared; ++at)
            known.push_back(at->first);
        auto const meant = nearest_word(name, known);
        page_.fail(path, page_.quoted(name) + " is no task of this workflow" +
                             (meant.empty() ? std::string{} : "; did you mean \"" + std::string(meant) + "\"?"));
    }

    page_type& page_;
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// A workflow as JSON text, as a schedule keeps the one that it creates: what workflow_reader reads.
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/scheduler/detail/definition_page.hpp"
#include "ax/scheduler/detail/definition_text.hpp"
#include "ax/scheduler/detail/workflow_reader.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/time/instant_text.hpp"
#include "ax/time/time_point.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ax::detail {

/// A retry policy in the form of documents, of its text form.
template <class Json>
Json retry_json(std::string_view text) {
    auto const take = [&text] {
        auto const word = text.substr(0, text.find(' '));
        text.remove_prefix((std::min)(text.size(), word.size() + 1));
        return word;
    };
    auto const length = [](std::string_view digits) {
        std::int64_t ms = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), ms);
        return text_of_length(duration{ms});
    };
    auto const kind = take();
    if (kind == "none") return "none";
    Json made = Json::object();
    if (kind == "list") {
        auto& delays = made["list"] = Json::array();
        while (!text.empty() && text.front() >= '0' && text.front() <= '9') delays.push_back(length(take()));
    } else {
        made[kind == "fixed" ? "fixed" : "exponential"] = length(take());
    }
    while (!text.empty()) {
        std::string const word(take());
        auto const value = take();
        if (word == "cap" || word == "total")
            made[word] = length(value);
        else if (value == "unlimited")
            made[word] = std::string(value);
        else
            made[word] = Json::parse(value.begin(), value.end());
    }
    return made;
}

/// @tparam Json  nlohmann::json, as a name by which a unit that schedules no workflow does not pay for this code.
/// Errors: invalid_argument where a task has a deadline: an instant would have passed at the second occurrence.
template <class Json, class Workflow>
Json workflow_json(Workflow const& wanted) {
    auto const& nodes = wanted.nodes().all();
    Json all = Json::array();
    for (auto const& node : nodes) {
        if (node.deadline)
            throw error(errc::invalid_argument, "task \"" + node.name +
                                                    "\" of a scheduled workflow has a deadline, which is an instant: "
                                                    "give its handler a timeout instead");
        Json one{{"name", node.name}};
        if (node.until) {
            auto const& until = *node.until;
            Json what = Json::object();
            if (!until.key.empty()) what["key"] = until.key;
            if (!until.schedule.empty()) what["schedule"] = until.schedule;
            if (until.at) what["at"] = to_text(until.at->value());
            if (!until.task.empty()) what["task"] = until.task;
            one["wait_for"] = std::move(what);
        } else {
            one["type"] = node.type;
            if (!node.payload.empty()) one["payload"] = Json::parse(node.payload);
        }
        for (auto const parent : node.after) one["after"].push_back(nodes[parent].name);
        if (node.when != trigger_rule::all_success) one["when"] = std::string(to_string(node.when));
        if (node.priority) one["priority"] = to_string(*node.priority);
        if (!node.route_key.empty()) one["route_key"] = node.route_key;
        if (!node.retry.empty()) one["retry"] = retry_json<Json>(node.retry);
        if (node.within) one["within"] = text_of_length(*node.within);
        all.push_back(std::move(one));
    }
    return Json{{"name", wanted.name()}, {"tasks", std::move(all)}};
}

template <class Json, class Workflow>
std::string workflow_text(Workflow const& wanted) {
    return workflow_json<Json>(wanted).dump();
}

/// What workflow_text() wrote. Errors: corrupt where the text is none.
template <class Json>
auto parse_workflow(std::string_view text) {
    definition_page<Json> page;
    auto const document = Json::parse(text.begin(), text.end(), nullptr, false);
    typename definition_page<Json>::name_map none;
    if (auto made = workflow_reader<Json>(page).read(document, {}, none, 0)) return *std::move(made);
    auto const& fault = page.faults().front();
    throw error(errc::corrupt,
                "a stored workflow makes no sense: " + bounded_text(fault.path + ": " + fault.reason, 200));
}

/// What would never end: a workflow of which a task waits for that workflow.
template <class Node>
[[noreturn]] void refuse_own_wait(Node const& node) {
    auto const& until = *node.until;
    throw error(errc::invalid_argument, "task \"" + node.name + "\" of a workflow: it waits for " +
                                            (until.task.empty() ? "" : "task \"" + until.task + "\" of ") +
                                            (until.key.empty() ? "the occurrence of \"" + until.schedule
                                                               : "key \"" + until.key) +
                                            "\" that is this very workflow");
}

/// The same as far as it is known before there is an occurrence.
template <class Nodes>
void check_own_waits(Nodes const& nodes, std::string_view schedule) {
    for (auto const& node : nodes)
        if (node.until && node.until->key.empty() && !node.until->at && node.until->schedule == schedule)
            refuse_own_wait(node);
}

} // namespace ax::detail

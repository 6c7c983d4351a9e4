// SPDX-License-Identifier: MIT
// What a document defines, declared: its schedules are stored, what it says of task types is laid over what the code
// says, and its workflows are known by name.
#pragma once

#include "ax/scheduler/definitions.hpp"
#include "ax/scheduler/detail/engine.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/scheduler/detail/workflow_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The note in which a store keeps the names of the schedules that documents have declared.
inline constexpr std::string_view declared_note = "declared";

/// The text of a workflow that a schedule creates, where its tasks get the priority of their types if neither they nor
/// the schedule say one.
/// @param usual  usual(type): that priority.
template <class Workflow, class Options, class Usual>
std::string scheduled_text(Workflow const& wanted, Options const& chosen, Usual const& usual) {
    using json = dependent<nlohmann::json, Workflow>;
    auto document = workflow_json<json>(wanted);
    if (!chosen.priority) {
        auto const& nodes = wanted.nodes().all();
        for (std::size_t i = 0; i != nodes.size(); ++i) {
            auto const is = usual(nodes[i].type);
            if (!nodes[i].priority && !nodes[i].until && is != priority_class::normal)
                document["tasks"][i]["priority"] = to_string(is);
        }
    }
    return document.dump();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::workflow_named(std::string_view name) const -> later<ax::workflow> {
    std::lock_guard const guard{mutex_};
    auto const found = declared_.workflows.find(name);
    if (found == declared_.workflows.end())
        throw error(errc::invalid_argument,
                    "no workflow \"" + bounded_text(name, 80) + "\" has been declared by a document");
    return found->second;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Definitions>
auto engine<Storage, Clock, Attempt, Recurrence>::declare_all(Definitions wanted, bool prune) -> later<ax::declared> {
    std::lock_guard const in_order{pause_mutex_};
    auto records = checked_document(wanted);
    for (std::size_t i = 0; i != records.size(); ++i)
        records[i].type = number_of(wanted.schedules[i].workflow.empty() ? std::string_view{wanted.schedules[i].type}
                                                                         : workflow_type);
    later<declared_document<std::string>> document;
    later<ax::declared> answer;
    answer.task_types = wanted.task_types.size();
    answer.workflows = wanted.workflows.size();
    for (auto& each : wanted.workflows) document.workflows.emplace(each.name(), std::move(each));
    for (auto& each : wanted.task_types) document.types.emplace(each.name, std::move(each));

    std::map<std::string, std::uint64_t, std::less<>> versions; // of the schedules as they are
    for (auto const& each : store_.schedules()) versions.emplace(each.name, each.version);
    std::vector<std::string> names, gone;
    for (auto const& each : records) names.push_back(each.name);
    auto const kept_names = names;
    auto const before = declared_before();
    for (auto const& name : before) {
        if (std::find(kept_names.begin(), kept_names.end(), name) != kept_names.end()) continue;
        if (!versions.contains(name)) continue; // somebody else removed it
        (prune ? gone : names).push_back(name);
    }
    std::sort(names.begin(), names.end());

    std::vector<schedule_record> stored;
    alarms due;
    std::unique_lock schedules_in_order{schedules_mutex_};
    transact([&](writer& w) {
        stored.clear();
        auto const now = times_.reached();
        for (auto const& each : records) stored.push_back(w.declare(each, now));
        for (auto const& name : gone) w.forget(name);
        if (names != before) w.note(declared_note, later<nlohmann::json>(names).dump());
        due = change_handlers(w, document);
        for (auto const& each : stored) end_waits(w, each, due);
        for (auto const& name : gone) w.end_waits(name, true, now, due);
    });
    for (auto const& each : stored) {
        auto const known = versions.find(each.name);
        auto const outcome = known == versions.end()         ? declare_outcome::created
                             : known->second == each.version ? declare_outcome::unchanged
                                                             : declare_outcome::updated;
        answer.schedules.push_back({each.name, outcome});
    }
    for (auto const& name : gone) answer.schedules.push_back({name, declare_outcome::removed});
    {
        std::lock_guard const guard{mutex_};
        for (auto const& each : stored) place(each);
        for (auto const& name : gone) {
            timetable_.remove(name);
            backfills_.erase_of(name);
        }
        for (auto& [number, by] : handlers_) {
            auto how = by->said;
            document.apply(by->name, how);
            by->how = std::make_shared<later<handler_options> const>(std::move(how));
        }
        offered_types_.reset();
        any_priority_.store(document.any_priority(), std::memory_order_relaxed);
        declared_ = std::move(document);
        arm(due);
    }
    schedules_in_order.unlock();
    flush();
    return answer;
}

/// What the store is to know of a document's schedules, in their order, all but the numbers of their types.
/// @throws error invalid_argument with all that this scheduler cannot take, and where it stands. Nothing is stored.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
template <class Definitions>
auto engine<Storage, Clock, Attempt, Recurrence>::checked_document(Definitions const& wanted) const
    -> std::vector<schedule_record> {
    std::vector<schedule_record> records;
    definition_page<later<nlohmann::json>> page;
    auto const usual = [&](std::string_view type) {
        for (auto const& each : wanted.task_types)
            if (each.name == type && each.priority) return *each.priority;
        return priority_class::normal;
    };
    for (std::size_t i = 0; i != wanted.workflows.size(); ++i) {
        auto const& nodes = wanted.workflows[i].nodes().all();
        for (std::size_t k = 0; k != nodes.size(); ++k) {
            auto const path = "/workflows/" + std::to_string(i) + "/tasks/" + std::to_string(k) + "/payload";
            page.attempt(path, [&] { check_size(nodes[k].payload, "it", settings_.payload_limit); });
        }
    }
    for (std::size_t i = 0; i != wanted.schedules.size(); ++i) {
        auto const& each = wanted.schedules[i];
        page.attempt("/schedules/" + std::to_string(i), [&] {
            auto chosen = each.chosen;
            if (each.workflow.empty()) {
                if (!chosen.priority) chosen.priority = usual(each.type);
                records.push_back(checked_schedule(each.name, each.how, each.type, each.payload, std::move(chosen)));
                return;
            }
            auto const named = [&](auto const& one) { return one.name() == each.workflow; };
            auto const whole = std::find_if(wanted.workflows.begin(), wanted.workflows.end(), named);
            check_own_waits(whole->nodes().all(), each.name);
            auto text = scheduled_text(*whole, chosen, usual);
            records.push_back(checked_schedule(each.name, each.how, workflow_type, std::move(text), std::move(chosen)));
        });
    }
    std::vector<later<definition_error>> errors;
    for (auto const& fault : page.faults()) errors.push_back({fault.path, fault.reason});
    refuse_faults(errors);
    return records;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::declared_before() const -> std::vector<std::string> {
    using json = later<nlohmann::json>;
    auto const text = store_.note(declared_note);
    auto const names = json::parse(text.begin(), text.end(), nullptr, false);
    std::vector<std::string> all;
    if (!names.is_array()) return all;
    for (auto const& name : names)
        if (name.is_string()) all.push_back(name.template get<std::string>());
    return all;
}

/// Stores the limits of handlers that a document changes. What they say else is memory's.
template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::change_handlers(writer& w,
                                                                  later<declared_document<std::string>> const& by)
    -> alarms {
    struct change_of {
        type_number number;
        limit how;
        std::vector<resource_need> resources;
    };
    std::vector<change_of> changes;
    {
        std::lock_guard const guard{mutex_};
        for (auto const& [number, known] : handlers_) {
            auto how = known->said;
            by.apply(known->name, how);
            if (how.concurrency != known->how->concurrency)
                changes.push_back({number, limit{how.concurrency, how.rate}, how.resources});
        }
    }
    alarms all;
    for (auto const& each : changes) {
        auto const due = w.limit_type(each.number, each.how, each.resources, times_.reached());
        all.insert(all.end(), due.begin(), due.end());
    }
    return all;
}

} // namespace ax::detail

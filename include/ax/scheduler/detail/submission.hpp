// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/scheduler/detail/schedule_terms.hpp"
#include "ax/task/options.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// A task that has been checked and still names its type by text: numbers belong to one store.
struct submission {
    std::string type;
    new_task task;
    bool says_priority = false; ///< else it gets that of its type
};

inline void check_instant(time_point t, std::string_view what) {
    if (t < earliest_time || t > latest_time)
        throw error(errc::invalid_argument, std::string(what) + " " + std::to_string(t.time_since_epoch().count()) +
                                                " ms lies outside of the years 1970 to 9999");
}

inline void check_size(std::string_view text, std::string_view what, std::size_t limit) {
    if (text.size() > limit)
        throw error(errc::invalid_argument, std::string(what) + " has " + std::to_string(text.size()) +
                                                " bytes, at most " + std::to_string(limit) + " are allowed");
}

/// The types of tasks that no handler runs. Names of a caller's do not begin with "ax:".
inline constexpr std::string_view workflow_type = "ax:workflow";
inline constexpr std::string_view wait_type = "ax:wait";

inline void check_type_name(std::string_view name) {
    check_text(name, "task type", longest_name, false);
    if (name.substr(0, 3) == "ax:")
        throw error(errc::invalid_argument, "task type \"" + bounded_text(name, 80) +
                                                "\": names that begin with \"ax:\" are this library's own");
}

/// What a caller can get wrong about a key.
template <std::same_as<submit_options> How>
void check_key(How const& how) {
    auto const refuse = [&](std::string const& why) {
        throw error(errc::invalid_argument, "on_conflict::" + std::string(to_string(how.on_conflict.action())) + why);
    };
    check_text(how.key, "key", longest_key, true);
    auto const action = how.on_conflict.action();
    if (how.key.empty() && how.key_scope != key_scoping::kept)
        throw error(errc::invalid_argument, "key_scope without a key");
    if (how.key_scope > key_scoping::active)
        throw error(errc::invalid_argument,
                    "key_scope " + std::to_string(static_cast<int>(how.key_scope)) + " is no scope of a key");
    if (action > conflict_action::throttle)
        throw error(errc::invalid_argument,
                    "on_conflict " + std::to_string(static_cast<int>(action)) + " is no policy");
    if (how.key.empty() && action != conflict_action::keep) refuse(" without a key");
    if (action == conflict_action::throttle && how.on_conflict.period() <= duration{0})
        refuse(" with a period of " + std::to_string(how.on_conflict.period().count()) + " ms: at least 1 ms");
    if (action == conflict_action::debounce && !how.delay && !how.run_at) refuse(" without delay or run_at");
}

/// Puts tags in order, each once.
/// @tparam Tags  A vector of strings, as a name by which a unit that submits nothing does not pay for this code.
template <class Tags>
void check_tags(Tags& tags) {
    for (auto const& tag : tags) check_text(tag, "tag", longest_name, false);
    std::sort(tags.begin(), tags.end());
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    if (tags.size() > most_tags)
        throw error(errc::invalid_argument,
                    std::to_string(tags.size()) + " tags, at most " + std::to_string(most_tags) + " are allowed");
}

/// Everything a caller can get wrong about a task is found here, before anything is stored.
/// @tparam How  submit_options, as a name by which a unit that submits nothing does not pay for this code.
/// @throws error invalid_argument that names the member and the fault.
template <std::same_as<submit_options> How>
dependent<submission, How> make_submission(std::string_view type, std::string payload, How how, time_point now,
                                           std::size_t payload_limit) {
    check_type_name(type);
    check_key(how);
    check_text(how.route_key, "route key", longest_key, true);
    if (std::string_view{how.route_key}.substr(0, schedule_route.size()) == schedule_route)
        throw error(errc::invalid_argument, "route key \"" + bounded_text(how.route_key, 200) +
                                                "\": those that begin with \"schedule:\" are the schedules' own");
    check_size(payload, "payload of task type \"" + std::string(type) + "\"", payload_limit);
    if (how.run_at && how.delay) throw error(errc::invalid_argument, "delay together with run_at: give one of them");

    dependent<submission, How> made;
    made.type = type;
    auto& task = made.task;
    if (how.run_at) {
        check_instant(*how.run_at, "run_at");
        task.run_at = how.run_at->value();
    }
    if (how.delay) {
        if (how.delay->value() < duration{0})
            throw error(errc::invalid_argument,
                        "delay of " + std::to_string(how.delay->value().count()) + " ms is negative");
        check_instant(saturating_add(now, *how.delay), "delay leads to an instant that");
        task.delay = *how.delay;
    }
    if (how.deadline) {
        check_instant(*how.deadline, "deadline");
        if (how.deadline->value() <= (task.run_at ? *task.run_at : saturating_add(now, task.delay)))
            throw error(errc::invalid_argument, "deadline is not after the instant at which the task is due");
        task.deadline = how.deadline->value();
    }
    if (how.priority && *how.priority > priority_class::low)
        throw error(errc::invalid_argument,
                    "priority " + std::to_string(static_cast<int>(*how.priority)) + " is no priority class");
    task.payload = std::move(payload);
    task.key = std::move(how.key);
    task.key_scope = how.key_scope;
    task.on_conflict = how.on_conflict;
    task.priority = how.priority.value_or(priority_class::normal);
    made.says_priority = how.priority.has_value();
    task.route_key = std::move(how.route_key);
    task.route_order = how.route_order;
    if (how.retry) task.retry = retry::to_text(*how.retry);
    check_tags(how.tags);
    task.tags = std::move(how.tags);
    return made;
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/task/options.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ax::detail {

/// A task that has been checked and still names its type by text: numbers belong to one store.
struct submission {
    std::string type;
    new_task task;
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

/// Everything a caller can get wrong about a task is found here, before anything is stored.
/// @tparam How  submit_options, as a name by which a unit that submits nothing does not pay for this code.
/// @throws error invalid_argument that names the member and the fault.
template <std::same_as<submit_options> How>
dependent<submission, How> make_submission(std::string_view type, std::string payload, How how, time_point now,
                                           std::size_t payload_limit) {
    check_text(type, "task type", longest_name, false);
    check_text(how.key, "key", longest_key, true);
    check_text(how.route_key, "route key", longest_key, true);
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
    if (how.priority > priority_class::low)
        throw error(errc::invalid_argument,
                    "priority " + std::to_string(static_cast<int>(how.priority)) + " is no priority class");
    task.payload = std::move(payload);
    task.key = std::move(how.key);
    task.priority = how.priority;
    task.route_key = std::move(how.route_key);
    task.route_order = how.route_order;
    if (how.retry) task.retry = retry::to_text(*how.retry);
    return made;
}

} // namespace ax::detail

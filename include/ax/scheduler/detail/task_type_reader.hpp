// SPDX-License-Identifier: MIT
#pragma once

#include "ax/scheduler/detail/definition_page.hpp"
#include "ax/task/limit.hpp"
#include "ax/task/options.hpp"

#include <cstddef>
#include <string>

namespace ax::detail {

/// Reads one element of "task_types".
/// @tparam Made  task_type_definition.
template <class Made, class Json>
Made read_task_type(definition_page<Json>& page, Json const& one, std::string const& path,
                    typename definition_page<Json>::name_map& taken, std::size_t place) {
    Made made;
    if (!page.is_object(one, path)) return made;
    page.check_members(one, path,
                       {"name", "retry", "timeout", "expected", "concurrency", "on_interrupt", "priority", "owner"});
    made.name = page.name_of(one, path, taken, place);
    if (!made.name.empty()) page.attempt(path + "/name", [&] { check_type_name(made.name); });
    if (auto const* value = page.member(one, "retry")) made.retry = page.retry_of(*value, path + "/retry");
    made.timeout = page.length_of(one, path, "timeout");
    made.expected = page.length_of(one, path, "expected");
    if (auto const* value = page.member(one, "concurrency")) {
        if (auto const count = page.count_of(*value, path + "/concurrency"))
            page.attempt(path + "/concurrency", [&] {
                check_limit_number(*count, "concurrency", "a task type");
                made.concurrency = count;
            });
    }
    if (auto const word = page.word_of(one, path, "on_interrupt", {"rerun", "hold"}); !word.empty())
        made.on_interrupt = word == "hold" ? interrupt_policy::hold : interrupt_policy::rerun;
    made.priority = page.priority_of(one, path);
    if (auto const* value = page.member(one, "owner")) made.owner = page.text_of(*value, path + "/owner", longest_name);
    return made;
}

} // namespace ax::detail

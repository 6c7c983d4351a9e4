// SPDX-License-Identifier: MIT
#pragma once

#include "ax/task/record.hpp"

#include <string>
#include <string_view>

namespace ax::detail {

/// How obstacles() names a parent.
inline void name_parent(std::string& all, task_id id, std::string_view name) {
    if (!all.empty()) all += ", ";
    all += "task ";
    if (name.empty())
        all += std::to_string(to_number(id));
    else
        (all += '"').append(name) += '"';
}

/// And one that is not there yet.
inline void name_awaited(std::string& all, std::string_view key, std::string_view schedule, std::string_view member) {
    if (!all.empty()) all += ", ";
    if (!member.empty()) (all += "task \"").append(member) += "\" of ";
    (all += key.empty() ? "an occurrence of \"" : "key \"").append(key.empty() ? schedule : key) += '"';
}

} // namespace ax::detail

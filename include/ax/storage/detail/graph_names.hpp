// SPDX-License-Identifier: MIT
#pragma once

#include "ax/task/record.hpp"

#include <cstddef>
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

/// And one that was not yet added to a workflow that is there.
inline void name_awaited(std::string& all, std::string_view workflow, std::string_view member) {
    if (!all.empty()) all += ", ";
    ((all += "task \"").append(member) += "\" of workflow ").append(workflow);
}

/// Of a page of members, which has all generations of a name: all but the latest are of old.
template <class Members>
void mark_outdated(Members& members) {
    for (std::size_t i = 1; i < members.size(); ++i)
        if (members[i - 1].name == members[i].name) members[i - 1].outdated = true;
}

} // namespace ax::detail

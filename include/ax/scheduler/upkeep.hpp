// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/concept.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ax {

/// How many tasks of one type are in one state.
struct state_count {
    std::string type;
    task_state state = task_state::ready;
    std::size_t tasks = 0;
};

/// Whose a task type is, as the document says that was declared.
struct type_owner {
    std::string type;
    std::string owner;
};

/// What stats() tells.
struct task_stats {
    std::vector<state_count> counts; ///< by type in the order of their first use, then by state; none is zero
    std::vector<type_owner> owners;  ///< by type; those that have one

    std::size_t tasks(task_state state) const {
        std::size_t sum = 0;
        for (auto const& each : counts)
            if (each.state == state) sum += each.tasks;
        return sum;
    }
    /// Empty where nobody is named.
    std::string_view owner(std::string_view type) const {
        for (auto const& each : owners)
            if (each.type == type) return each.owner;
        return {};
    }
    std::size_t tasks(std::string_view type, task_state state) const {
        for (auto const& each : counts)
            if (each.state == state && each.type == type) return each.tasks;
        return 0;
    }
};

/// Said with verify().
struct verify_options {
    bool repair = false; ///< and not only say what is wrong
};

} // namespace ax

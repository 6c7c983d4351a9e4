// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/task/options.hpp"
#include "ax/task/record.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace ax {

struct task_type_definition;
template <class Text>
struct basic_declared;
using declared = basic_declared<std::string>;

namespace detail {

/// What the document says that was declared last, as far as no store keeps it.
/// @tparam Text  std::string, as a name by which a unit that declares nothing does not pay for this code.
template <class Text>
struct declared_document {
    using type_definition = dependent<task_type_definition, Text>;
    using workflow_type = dependent<ax::workflow, Text>;

    std::map<Text, type_definition, std::less<>> types;
    std::map<Text, workflow_type, std::less<>> workflows;

    /// Lays what is said of a task type over what its handler says.
    template <class Options>
    void apply(std::string_view type, Options& how) const {
        auto const found = types.find(type);
        if (found == types.end()) return;
        auto const& said = found->second;
        if (said.retry) how.retry = *said.retry;
        if (said.timeout) how.timeout = said.timeout;
        if (said.expected) how.expected = said.expected;
        if (said.concurrency) how.concurrency = said.concurrency;
        if (said.on_interrupt) how.on_interrupt = *said.on_interrupt;
    }

    priority_class priority_of(std::string_view type) const {
        auto const found = types.find(type);
        return found == types.end() ? priority_class::normal : found->second.priority.value_or(priority_class::normal);
    }

    bool any_priority() const {
        for (auto const& [name, type] : types)
            if (type.priority) return true;
        return false;
    }
};

} // namespace detail

} // namespace ax

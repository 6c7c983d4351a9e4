// SPDX-License-Identifier: MIT
// Any bytes as a document of definitions: checking it throws nothing, each fault has a reason, what has none is read,
// and what was read has a text for the store from which it comes back.
#include "ax/scheduler/definitions.hpp"

#include "ax/scheduler/detail/schedule_terms.hpp"
#include "ax/scheduler/detail/workflow_text.hpp"

#include "fuzz/fuzzing.hpp"
#include "support/instants.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using fuzzing::require;

namespace {

template <class Definitions>
void look_at(Definitions const& all) {
    for (auto const& type : all.task_types)
        if (type.retry) require(ax::retry::parse(to_text(*type.retry)) == *type.retry, "a retry policy comes back");
    for (auto const& one : all.schedules) {
        auto const spec = one.how.spec();
        require(decltype(one.how)::parse(spec).spec() == spec, "a recurrence comes back from its text");
        (void)one.how.in_words();
    }
    for (auto const& one : all.workflows) {
        std::string text;
        try {
            text = ax::detail::workflow_text<nlohmann::json>(one);
        } catch (ax::error const&) { // it has what a schedule's workflow may not have
            continue;
        }
        auto const again = ax::detail::parse_workflow<nlohmann::json>(text);
        require(ax::detail::workflow_text<nlohmann::json>(again) == text, "a workflow comes back from its text");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
    std::vector<char> const exact(bytes, bytes + size); // a buffer of its own: a read beyond its end is seen
    std::string_view const text(exact.data(), exact.size());
    auto const faults = ax::check_definitions(text, test::t0);
    require(faults.size() <= 101, "the faults that are told are bounded");
    for (auto const& each : faults) require(!each.reason.empty(), "a fault has a reason");
    try {
        look_at(ax::parse_definitions(text, test::t0));
        require(faults.empty(), "what has a fault is not read");
    } catch (ax::error const& e) {
        require(!faults.empty() && e.kind() == ax::errc::invalid_argument, "what has no fault is read");
    }
    // A store keeps workflows in the same form.
    try {
        auto const workflow = ax::detail::parse_workflow<nlohmann::json>(text);
        auto const written = ax::detail::workflow_text<nlohmann::json>(workflow);
        auto const again = ax::detail::parse_workflow<nlohmann::json>(written);
        require(ax::detail::workflow_text<nlohmann::json>(again) == written, "a stored workflow comes back");
    } catch (ax::error const&) {
    }
    return 0;
}

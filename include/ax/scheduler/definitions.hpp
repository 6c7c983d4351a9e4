// SPDX-License-Identifier: MIT
// Task types, workflows and schedules as a JSON document: what an operator may change without a compiler. The document
// is checked as a whole, and every fault is told with the path (a JSON pointer) of what is wrong.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/retry/retry_policy.hpp"
#include "ax/scheduler/detail/definition_page.hpp"
#include "ax/scheduler/detail/schedule_reader.hpp"
#include "ax/scheduler/detail/task_type_reader.hpp"
#include "ax/scheduler/detail/workflow_reader.hpp"
#include "ax/scheduler/policies.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/task/options.hpp"
#include "ax/time/time_point.hpp"

#include <nlohmann/json.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax {

/// A task type as a document defines it. What it does not say is as the handler in the code says.
struct task_type_definition {
    std::string name;
    std::optional<ax::retry::policy> retry = {};
    std::optional<time_span> timeout = {};
    std::optional<time_span> expected = {};
    std::optional<std::size_t> concurrency = {}; ///< how many of its tasks run at once
    std::optional<interrupt_policy> on_interrupt = {};
    std::optional<priority_class> priority = {}; ///< of tasks that say none
    std::string owner = {};                      ///< for people
};

/// A schedule as a document defines it.
/// @tparam Cron  cron, as a name by which a unit that declares nothing does not pay for it.
template <class Cron>
struct basic_schedule_definition {
    std::string name;
    detail::basic_recurrence<Cron> how;
    std::string type;         ///< the name of the task type; empty: it creates workflows
    std::string payload = {}; ///< JSON text, a payload_template; empty: none
    schedule_options chosen = {};
    std::string workflow = {}; ///< the name of one of the document
};
using schedule_definition = basic_schedule_definition<cron>;

/// What a document defines, in its order.
template <class Cron>
struct basic_definitions {
    std::vector<task_type_definition> task_types;
    std::vector<workflow> workflows;
    std::vector<basic_schedule_definition<Cron>> schedules;
};
using definitions = basic_definitions<cron>;

/// One fault of a document.
struct definition_error {
    std::string path; ///< a JSON pointer, "/schedules/2/cron"; empty: the document as a whole
    std::string reason;

    /// One line: `/schedules/2/cron: column 3, hour: "24" is out of range; allowed: 0-23`.
    std::string message() const { return (path.empty() ? "the document" : path) + ": " + reason; }
};

/// Said with scheduler::declare().
struct declare_options {
    bool prune = false; ///< removes schedules that an earlier document declared and this one does not
};

/// What became of a schedule of a document.
enum class declare_outcome : std::uint8_t {
    created,
    updated,
    unchanged,
    removed ///< an earlier document had it
};

struct declared_schedule {
    std::string name;
    declare_outcome outcome = declare_outcome::unchanged;
};

/// What scheduler::declare() did.
/// @tparam Text  std::string, as a name by which a unit that declares nothing does not pay for this code.
template <class Text>
struct basic_declared {
    /// In the order of the document, then those that were removed.
    std::vector<detail::dependent<declared_schedule, Text>> schedules;
    std::size_t task_types = 0; ///< of the document
    std::size_t workflows = 0;

    std::size_t count(declare_outcome what) const {
        std::size_t found = 0;
        for (auto const& each : schedules) found += each.outcome == what ? 1 : 0;
        return found;
    }
};
using declared = basic_declared<std::string>;

namespace detail {

/// Reads a whole document.
/// @tparam Json  nlohmann::json, as a name by which a unit that reads no definitions does not pay for this code.
template <class Json>
class definition_reader {
    using page_type = definition_page<Json>;
    using found_type = dependent<definitions, Json>;
    using name_map = typename page_type::name_map;

  public:
    explicit definition_reader(time_point now) : now_(now) {}

    /// Parses `text`; members that stand twice in their object are faults, since only one of them would count.
    void read_text(std::string_view text) {
        if (auto const document = page_.parse(text)) read(*document);
    }

    void read(Json const& document) {
        if (!page_.is_object(document, {})) return;
        page_.check_members(document, {}, {"task_types", "workflows", "schedules"});
        name_map types, schedules;
        page_.each(document, {}, "task_types", [&](Json const& one, std::string const& path, std::size_t place) {
            found_.task_types.push_back(
                read_task_type<dependent<task_type_definition, Json>>(page_, one, path, types, place));
        });
        workflow_reader<Json> whole{page_};
        page_.each(document, {}, "workflows", [&](Json const& one, std::string const& path, std::size_t place) {
            if (auto made = whole.read(one, path, workflows_, place)) found_.workflows.push_back(*std::move(made));
        });
        schedule_reader<dependent<schedule_definition, Json>, Json> recurring{page_, now_};
        page_.each(document, {}, "schedules", [&](Json const& one, std::string const& path, std::size_t place) {
            auto made = recurring.read(one, path, schedules, place);
            if (!made) return;
            if (!made->workflow.empty()) check_workflow_of(document, made->workflow, path + "/workflow");
            found_.schedules.push_back(*std::move(made));
        });
    }

    found_type take() { return std::move(found_); }

    std::vector<definition_error> errors() const {
        std::vector<definition_error> all;
        for (auto const& fault : page_.faults()) all.push_back({fault.path, fault.reason});
        return all;
    }

  private:
    /// The strings of a workflow that a schedule creates are templates, all of them.
    void check_workflow_of(Json const& document, std::string const& name, std::string const& path) {
        auto const known = workflows_.find(name);
        if (known == workflows_.end()) {
            page_.fail_word(path, page_.quoted(name) + " is no workflow of this document", name, names_of(workflows_));
            return;
        }
        if (!checked_.emplace(name, known->second).second) return;
        page_.check_payload((*page_.member(document, "workflows"))[known->second],
                            "/workflows/" + std::to_string(known->second), true);
    }

    static std::vector<std::string_view> names_of(name_map const& map) {
        std::vector<std::string_view> names;
        for (auto const& [name, place] : map) names.push_back(name);
        return names;
    }

    time_point now_;
    page_type page_;
    found_type found_;
    name_map workflows_; ///< by name: the how-manieth of the document
    name_map checked_;   ///< those whose templates have been
};

/// A document as text or as a value.
template <class Document>
concept definition_document =
    std::same_as<Document, nlohmann::json> || std::convertible_to<Document const&, std::string_view>;

template <class Document>
auto read_definitions(Document const& document, time_point now) {
    definition_reader<dependent<nlohmann::json, Document>> reader(now);
    if constexpr (std::same_as<Document, nlohmann::json>)
        reader.read(document);
    else
        reader.read_text(document);
    return reader;
}

/// @throws error invalid_argument where there is any fault.
template <class Errors>
void refuse_faults(Errors const& errors) {
    if (errors.empty()) return;
    auto text = "definitions: " + std::to_string(errors.size()) + (errors.size() == 1 ? " fault" : " faults");
    for (auto const& e : errors) text += (&e == &errors.front() ? ": " : "; ") + e.message();
    throw error(errc::invalid_argument, text);
}

} // namespace detail

/// All that is wrong with a document of definitions; empty where parse_definitions() takes it. Nothing is thrown.
///
/// @param document  JSON text, or nlohmann::json.
/// @param now       From when on the distances between occurrences are looked at, for `spread`.
/// At most 100 faults are told. Complexity: O(length of the document, log), and a look at 400 occurrences of each
/// schedule with a spread.
template <detail::definition_document Document>
std::vector<definition_error> check_definitions(Document const& document, time_point now = ax::now()) {
    return detail::read_definitions(document, now).errors();
}

/// What a document defines. Only read and checked: nothing is declared, see scheduler::declare().
/// Errors: error(invalid_argument) with all that check_definitions() tells, where that is anything.
template <detail::definition_document Document>
definitions parse_definitions(Document const& document, time_point now = ax::now()) {
    auto reader = detail::read_definitions(document, now);
    detail::refuse_faults(reader.errors());
    return reader.take();
}

} // namespace ax

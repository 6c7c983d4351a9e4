// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/dag/trigger_rule.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/storage/concept.hpp"
#include "ax/task/options.hpp"
#include "ax/task/task_type.hpp"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ax {

/// A task of a workflow that is being put together. It is to be used with the workflow (or the handler's call) that
/// gave it.
class workflow_task {
  public:
    workflow_task(std::uint32_t place, std::string_view name, std::uint64_t mark = 0)
        : place_(place), name_(name), mark_(mark) {}

    std::string const& name() const noexcept { return name_; }
    /// The how-manieth of its workflow, from 0.
    std::uint32_t place() const noexcept { return place_; }
    /// By which add() of the process it was given: what tells it from that of another workflow.
    std::uint64_t mark() const noexcept { return mark_; }

  private:
    std::uint32_t place_;
    std::string name_;
    std::uint64_t mark_;
};

/// Said with one task of a workflow.
struct workflow_task_options {
    std::string name = {};                 ///< unique in the workflow; empty: its type and a number, `send-sms#1`
    std::vector<workflow_task> after = {}; ///< its parents
    trigger_rule when = trigger_rule::all_success;
    std::optional<priority_class> priority = {}; ///< none: that of the workflow
    std::string route_key = {};
    std::optional<ax::retry::policy> retry = {}; ///< none: that of the workflow, else the handler's
    std::optional<instant> deadline = {};
};

/// Says for which task outside of its workflow another waits: `ax::task_with_key("import-7")`.
struct awaited {
    std::string key = {};
    std::string schedule = {};
    std::optional<instant> at = {}; ///< the nominal instant; none: the same as that of the waiting workflow
    std::string task = {};          ///< of that workflow; empty: the task or workflow as a whole
};

inline awaited task_with_key(std::string key) { return {std::move(key), {}, {}, {}}; }
/// The occurrence of a schedule: at the instant given, else at the one for which the waiting workflow was created.
inline awaited occurrence_of(std::string schedule, std::optional<instant> at = {}) {
    return {{}, std::move(schedule), at, {}};
}

/// Said with one wait.
struct workflow_wait_options {
    std::string name = {};
    std::vector<workflow_task> after = {};
    trigger_rule when = trigger_rule::all_success; ///< what the awaited task has to come to
    std::optional<time_span> within = {}; ///< from the workflow's start on; then the wait is dead. None: for ever
};

namespace detail {

/// The most tasks of one workflow.
inline constexpr std::size_t most_members = 1'000'000;

/// A task of a workflow as it is put together.
struct workflow_node {
    std::string type;
    std::string payload;
    std::string name;
    std::vector<std::uint32_t> after;
    trigger_rule when = trigger_rule::all_success;
    std::optional<priority_class> priority;
    std::string route_key;
    std::string retry;
    std::optional<time_point> deadline;
    std::optional<duration> within;
    std::optional<awaited> until;
    std::uint64_t mark = 0; ///< of the handle that was given for it; copies of the workflow have the same
};

inline std::uint64_t next_workflow_mark() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// The tasks of a workflow, or those that a handler adds to its own.
/// @tparam Text  std::string, as a name by which a unit that has no workflow does not pay for this code.
template <class Text>
class workflow_nodes {
    using node = dependent<workflow_node, Text>;

  public:
    /// @param prefix  Goes before the number in names that are made up.
    workflow_task add(node made, std::vector<workflow_task> const& after, std::string_view prefix = "#") {
        if (nodes_.size() >= most_members)
            throw error(errc::invalid_argument, "a workflow of more than " + std::to_string(most_members) + " tasks");
        auto const place = static_cast<std::uint32_t>(nodes_.size());
        if (made.name.empty()) {
            auto& number = numbers_[made.type];
            do {
                made.name = made.type + Text(prefix) + std::to_string(++number);
            } while (places_.contains(made.name));
        }
        check_text(made.name, "name of a workflow's task", longest_name, false);
        auto const label = "task \"" + made.name + "\" of a workflow: ";
        check_text(made.route_key, label + "route key", longest_key, true);
        if (std::string_view{made.route_key}.substr(0, schedule_route.size()) == schedule_route)
            throw error(errc::invalid_argument,
                        label + "route keys that begin with \"schedule:\" are the schedules' own");
        if (made.priority && *made.priority > priority_class::low)
            throw error(errc::invalid_argument, label + "priority " + std::to_string(static_cast<int>(*made.priority)) +
                                                    " is no priority class");
        if (made.deadline) check_instant(*made.deadline, label + "deadline");
        if (made.when > trigger_rule::always)
            throw error(errc::invalid_argument, "task \"" + made.name + "\": there is no trigger rule " +
                                                    std::to_string(static_cast<int>(made.when)));
        if (places_.contains(made.name))
            throw error(errc::invalid_argument, "the workflow has a task \"" + made.name + "\" already");
        for (auto const& parent : after) link(made, parent);
        places_.emplace(made.name, place);
        made.mark = next_workflow_mark();
        nodes_.push_back(std::move(made));
        return {place, nodes_.back().name, nodes_.back().mark};
    }

    void depend(workflow_task const& child, workflow_task const& parent) {
        check(child);
        link(nodes_[child.place()], parent);
    }

    std::optional<std::uint32_t> find(Text const& name) const {
        auto const found = places_.find(name);
        return found == places_.end() ? std::nullopt : std::optional{found->second};
    }

    std::vector<node> const& all() const noexcept { return nodes_; }

  private:
    void check(workflow_task const& one) const {
        if (one.place() >= nodes_.size() || nodes_[one.place()].mark != one.mark())
            throw error(errc::invalid_argument, "task \"" + one.name() + "\" is of another workflow");
    }

    void link(node& child, workflow_task const& parent) {
        check(parent);
        // In rising order, which is how most come: so a thousand parents are no slower than one.
        auto const at = std::lower_bound(child.after.begin(), child.after.end(), parent.place());
        if (at == child.after.end() || *at != parent.place()) child.after.insert(at, parent.place());
    }

    std::vector<node> nodes_;
    std::map<Text, std::uint32_t> places_; ///< by name
    std::map<Text, std::size_t> numbers_;  ///< of the names that were made up, by type
};

template <class Payload>
workflow_node make_node(task_type<Payload> const& type, Payload const& payload, workflow_task_options const& how) {
    check_type_name(type.name);
    workflow_node made;
    made.type = type.name;
    made.payload = encode_payload(payload, type.name);
    made.name = how.name;
    made.when = how.when;
    made.priority = how.priority;
    made.route_key = how.route_key;
    if (how.retry) made.retry = retry::to_text(*how.retry);
    if (how.deadline) made.deadline = how.deadline->value();
    return made;
}

} // namespace detail

/// Tasks that hang on each other, submitted as one. Each runs when its parents have ended as its trigger rule wants it;
/// the workflow has ended when all its tasks have.
///
///     ax::workflow w{"register"};
///     auto account = w.add(init_account, {7});
///     auto sms     = w.add(send_sms, {7}, {.after = {account}});
///     auto crm     = w.add(sync_crm, {7}, {.name = "crm", .after = {account}});
///     w.add(welcome, {7}, {.after = {sms, crm}, .when = ax::trigger_rule::all_done});
///     tasks.submit(w, {.key = "register-7"});
///
/// A value: it can be copied, and submitted more than once. A cycle is found when it is submitted.
/// Threads: as any value.
template <class Text = std::string>
class basic_workflow {
    using nodes_type = detail::workflow_nodes<Text>;

  public:
    /// Errors: invalid_argument where the name is empty, too long or no UTF-8.
    explicit basic_workflow(std::string_view name) : name_(name) {
        detail::check_text(name, "workflow name", longest_name, false);
    }

    /// Adds a task. O(log tasks + parents).
    /// Errors: invalid_argument for a name that is taken or none, a parent of another workflow, a payload that cannot
    ///         be written as JSON. Nothing is added then.
    template <class Payload>
    workflow_task add(task_type<Payload> const& type, std::type_identity_t<Payload> const& payload = {},
                      workflow_task_options const& how = {}) {
        return nodes_.add(detail::make_node(type, payload, how), how.after);
    }

    /// Adds what runs nothing, and ends when a task outside of this workflow has ended (and its parents here, if any):
    /// as succeeded where the rule holds, else as any task does. What it waits for may be stored later than this
    /// workflow; it costs nothing while it waits. An occurrence that does not come any more counts as a task that was
    /// skipped. A wait for this very workflow, or a task of it, and one that would close a circle of workflows that wait
    /// for each other, is refused where that is known: by submit(), by schedule(), or by the occurrence, which is left
    /// out.
    workflow_task wait_for(awaited const& what, workflow_wait_options const& how = {}) {
        if (what.key.empty() == what.schedule.empty())
            throw error(errc::invalid_argument, "a wait is for a key or for an occurrence of a schedule");
        if (what.key.empty())
            detail::check_text(what.schedule, "schedule name", longest_name, false);
        else
            detail::check_text(what.key, "key", longest_key, false);
        detail::check_text(what.task, "name of the awaited task", longest_name, true);
        if (how.within && how.within->value() <= duration{0})
            throw error(errc::invalid_argument,
                        "a wait of " + std::to_string(how.within->value().count()) + " ms: at least 1 ms");
        detail::workflow_node made;
        made.type = detail::wait_type;
        made.name = how.name;
        if (made.name.empty()) made.name = "wait for " + (what.key.empty() ? what.schedule : what.key);
        made.when = how.when;
        made.until = what;
        if (how.within) made.within = how.within->value();
        return nodes_.add(std::move(made), how.after);
    }

    /// Makes `child` wait for `parent`; the same edge twice is one.
    /// Errors: invalid_argument where one of them is of another workflow.
    void depend(workflow_task const& child, workflow_task const& parent) { nodes_.depend(child, parent); }

    Text const& name() const noexcept { return name_; }
    std::size_t size() const noexcept { return nodes_.all().size(); }

    /// For the scheduler.
    nodes_type& nodes() noexcept { return nodes_; }
    nodes_type const& nodes() const noexcept { return nodes_; }

  private:
    Text name_;
    nodes_type nodes_;
};

using workflow = basic_workflow<>; // a template, so that a unit without workflows does not pay for its code

/// The answer to a rerun.
struct rerun_answer {
    change_outcome outcome = change_outcome::unknown;
    task_id task{}; ///< the new generation of the task; where refused, the task that is in the way
};

} // namespace ax

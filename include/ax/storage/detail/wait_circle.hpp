// SPDX-License-Identifier: MIT
// Workflows that wait for each other in a circle: none of them would ever end. The circle closes when the last of them
// is stored, since whoever waits for that one is known by then. So where nobody does, nothing is looked at.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/text.hpp"
#include "ax/storage/concept.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// After so many tasks, those of a workflow that is looked at and the parents of one counted each, it is not looked
/// further.
inline constexpr std::size_t most_in_circle = 10'000;

/// @tparam Store  See graph_rules.
template <class Store>
class wait_circle {
    using task_id = dependent<ax::task_id, Store>;
    using text = dependent<std::string, Store>;
    using members = dependent<std::vector<new_member>, Store>;

  public:
    explicit wait_circle(Store& store) noexcept : store_(store) {}

    /// The path where a task of this workflow would wait for what waits for that workflow; else an empty text.
    text find(new_task const& head) {
        for (auto& [id, name] : store_.waiting_for(head)) waiting_.emplace(id, std::move(name));
        if (waiting_.empty()) return {};
        members const& own = head.workflow->members;
        for (std::size_t i = 0; i != own.size(); ++i) {
            if (!own[i].until || !waits_for_all(own[i].when, own[i].after.size() + 1)) continue;
            auto const first = target(*own[i].until);
            if (first == task_id{}) continue;
            steps_.clear();
            seen_.clear();
            push(first, 0);
            for (std::size_t at = 0; at != steps_.size() && looked_at_ < most_in_circle; ++at, ++looked_at_)
                if (auto closed = look(at, head, i); !closed.empty()) return closed;
        }
        return {};
    }

  private:
    struct step {
        task_id id{};
        std::size_t from = 0; ///< the step that led here
    };

    /// Others go on before all their parents have ended: they may get out of a circle.
    static bool waits_for_all(trigger_rule when, std::size_t parents) noexcept {
        switch (when) {
        case trigger_rule::always: return false;
        case trigger_rule::one_failed:
        case trigger_rule::one_success:
        case trigger_rule::one_done: return parents == 1;
        default: return true;
        }
    }

    /// What is there of it; 0: nothing yet.
    task_id target(awaited_task const& until) {
        auto const found = store_.find(until);
        if (!found) return {};
        if (!until.name.empty()) return store_.latest(found->first, until.name).value_or(task_id{});
        auto const place = store_.place(found->first);
        if (!place || place->second != member_kind::workflow) return found->first;
        auto const whole = store_.workflow(place->first);
        return whole ? whole->head : task_id{};
    }

    void push(task_id id, std::size_t from) {
        if (seen_.insert(id).second) steps_.push_back({id, from});
    }

    /// Adds what keeps a task from ending. The path, where that closes a circle.
    text look(std::size_t at, new_task const& head, std::size_t own) {
        auto const one = store_.node(steps_[at].id);
        if (!one || one->state != task_state::created) return {};
        if (one->kind == member_kind::workflow) {
            auto const whole = store_.workflow(one->workflow);
            if (!whole || whole->head != one->id || !may_look_at(whole->total())) return {};
            for (auto const& each : store_.unfinished(one->workflow))
                if (each.kind == member_kind::wait) push(each.id, at);
            return {};
        }
        if (!waits_for_all(one->when, one->parents.total)) return {};
        auto const closes = waiting_.find(one->id);
        if (closes != waiting_.end() && depends(head.workflow->members, closes->second, own))
            return path(at, head, own, closes->second);
        if (!may_look_at(one->parents.total)) return {};
        for (auto const parent : store_.parents(one->id)) push(parent, at);
        return {};
    }

    bool may_look_at(std::size_t more) {
        if (looked_at_ + more > most_in_circle) return false;
        looked_at_ += more;
        return true;
    }

    /// Whether the member of that name, or where it is empty the whole, does not end before its wait `own` has.
    static bool depends(members const& all, std::string_view name, std::size_t own) {
        if (name.empty()) return true;
        auto const named = [&](new_member const& each) { return each.name == name; };
        auto const first = std::find_if(all.begin(), all.end(), named);
        if (first == all.end()) return false;
        dependent<std::vector<bool>, Store> seen(all.size());
        dependent<std::vector<std::size_t>, Store> open{static_cast<std::size_t>(first - all.begin())};
        seen[open.front()] = true;
        while (!open.empty()) {
            auto const at = open.back();
            open.pop_back();
            if (at == own) return true;
            if (!waits_for_all(all[at].when, all[at].after.size() + (all[at].until ? 1U : 0U))) continue;
            for (auto const parent : all[at].after)
                if (!seen[parent]) {
                    seen[parent] = true;
                    open.push_back(parent);
                }
        }
        return false;
    }

    text path(std::size_t at, new_task const& head, std::size_t own, std::string_view name) {
        auto const quoted = [](std::string_view one) { return '"' + bounded_text(one, 64) + '"'; };
        auto const of = [&](std::string_view member, std::string_view workflow) {
            return quoted(member) + " of " + quoted(workflow);
        };
        dependent<std::vector<text>, Store> names;
        for (;; at = steps_[at].from) {
            if (auto member = store_.name(steps_[at].id); !member.empty())
                names.push_back(of(member, store_.workflow_name(steps_[at].id)));
            if (at == 0) break;
        }
        std::reverse(names.begin(), names.end());
        auto all = "workflow " + quoted(head.workflow->name) +
                   ": circle of waits: " + of(head.workflow->members[own].name, head.workflow->name);
        constexpr std::size_t shown = 8;
        for (std::size_t i = 0; i != names.size(); ++i) {
            if (i < shown || i + shown >= names.size())
                (all += " -> ") += names[i];
            else if (i == shown)
                all += " -> ...";
        }
        return all + " -> " + (name.empty() ? quoted(head.workflow->name) : of(name, head.workflow->name));
    }

    Store& store_;
    dependent<std::map<task_id, text>, Store> waiting_; ///< for it, and for which of its members
    dependent<std::set<task_id>, Store> seen_;
    dependent<std::vector<step>, Store> steps_;
    std::size_t looked_at_ = 0;
};

} // namespace ax::detail

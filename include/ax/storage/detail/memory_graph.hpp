// SPDX-License-Identifier: MIT
// The workflows of memory_storage: what is kept of them, and how it is lent to graph_rules.
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/detail/graph_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ax::detail {

struct memory_member {
    graph_row row;
    std::string name;
};

struct memory_workflow {
    workflow_row row;
    std::string name;
};

/// Members, edges and workflows. Each change says first how it is undone.
class memory_graphs {
  public:
    /// Key, schedule, instant; or the workflow to which it is to be added.
    using awaited_name = std::tuple<std::string, std::string, time_point, task_id>;

    memory_member const* member(task_id id) const {
        auto const found = members_.find(id);
        return found == members_.end() ? nullptr : &found->second;
    }
    memory_workflow const* workflow(task_id id) const {
        auto const found = workflows_.find(id);
        return found == workflows_.end() ? nullptr : &found->second;
    }
    std::set<task_id> const& children(task_id id) const { return of(children_, id); }
    std::set<task_id> const& parents(task_id id) const { return of(parents_, id); }
    std::map<task_id, memory_member> const& members() const noexcept { return members_; }
    std::map<task_id, memory_workflow> const& workflows() const noexcept { return workflows_; }
    std::set<task_id> const& added(task_id id) const { return of(added_, id); }
    /// By workflow, name and generation.
    std::map<std::tuple<task_id, std::string, std::uint32_t>, task_id> const& names() const noexcept { return names_; }
    bool is_watched(task_id id) const { return !watched_.empty() && watched_.contains(id); }

    std::optional<task_id> latest(task_id workflow, std::string_view name) const {
        auto at = names_.upper_bound({workflow, std::string(name), static_cast<std::uint32_t>(-1)});
        if (at == names_.begin()) return std::nullopt;
        --at;
        if (std::get<0>(at->first) != workflow || std::get<1>(at->first) != name) return std::nullopt;
        return at->second;
    }

    void put_member(task_id id, memory_member one) {
        log([this, id, name = key_of(one), by = one.row.added_by] {
            members_.erase(id);
            names_.erase(name);
            if (by != task_id{}) added_[by].erase(id);
        });
        names_.emplace(key_of(one), id);
        if (one.row.added_by != task_id{}) added_[one.row.added_by].insert(id);
        members_.emplace(id, std::move(one));
    }
    void put_parents(task_id id, parent_counts counts) {
        auto& present = members_.at(id).row.parents;
        log([this, id, before = present] { members_.at(id).row.parents = before; });
        present = counts;
    }
    void drop(task_id id) {
        if (std::exchange(members_.at(id).row.dropped, true)) return;
        log([this, id] { members_.at(id).row.dropped = false; });
    }
    void put_workflow(workflow_row const& row, std::string name = {}) {
        auto const found = workflows_.find(row.id);
        if (found == workflows_.end()) {
            log([this, id = row.id] { workflows_.erase(id); });
            workflows_.emplace(row.id, memory_workflow{row, std::move(name)});
        } else {
            log([this, before = found->second.row] { workflows_.at(before.id).row = before; });
            found->second.row = row;
        }
    }
    bool link(task_id parent, task_id child) {
        if (!children_[parent].insert(child).second) return false;
        log([this, parent, child] { cut(parent, child); });
        parents_[child].insert(parent);
        return true;
    }
    void unlink(task_id parent, task_id child) {
        if (!children(parent).contains(child)) return;
        log([this, parent, child] {
            children_[parent].insert(child);
            parents_[child].insert(parent);
        });
        cut(parent, child);
    }
    void watch(task_id id) {
        if (watched_.insert(id).second) log([this, id] { watched_.erase(id); });
    }
    void await(awaited_name target, task_id id, std::string name) {
        log([this, target, id] {
            awaits_[target].erase(id);
            awaited_by_.erase(id);
        });
        awaited_by_.insert_or_assign(id, target);
        awaits_[std::move(target)].insert_or_assign(id, std::move(name));
    }
    std::optional<std::pair<awaited_name, std::string>> awaited_by(task_id id) const {
        auto const by = awaited_by_.find(id);
        if (by == awaited_by_.end()) return std::nullopt;
        return std::pair{by->second, awaits_.at(by->second).at(id)};
    }
    /// Waits for nothing any more.
    std::optional<std::pair<awaited_name, std::string>> drop_await(task_id id) {
        auto const by = awaited_by_.find(id);
        if (by == awaited_by_.end()) return std::nullopt;
        auto const target = by->second;
        auto const found = awaits_.find(target);
        auto const name = found->second.at(id);
        log([this, target, id, name] {
            awaits_[target].emplace(id, name);
            awaited_by_.emplace(id, target);
        });
        awaited_by_.erase(by);
        found->second.erase(id);
        if (found->second.empty()) awaits_.erase(found);
        return std::pair{target, name};
    }
    /// Who waits for occurrences of a schedule that are not there, and for which, before `bound`; the earliest first.
    std::vector<std::pair<time_point, task_id>> awaiting(std::string_view schedule, time_point bound) const {
        std::vector<std::pair<time_point, task_id>> answer;
        for (auto at = awaits_.lower_bound({{}, std::string(schedule), (time_point::min)(), {}}); at != awaits_.end();
             ++at) {
            auto const& [key, name, instant, workflow] = at->first;
            if (!key.empty() || name != schedule || instant >= bound) break;
            for (auto const& [id, member] : at->second) answer.emplace_back(instant, id);
        }
        return answer;
    }
    std::map<task_id, std::string> awaiting(awaited_name const& target) const {
        auto const found = awaits_.find(target);
        return found == awaits_.end() ? std::map<task_id, std::string>{} : found->second;
    }
    std::map<task_id, std::string> take_awaits(awaited_name const& target) {
        auto const found = awaits_.find(target);
        if (found == awaits_.end()) return {};
        auto taken = std::move(found->second);
        awaits_.erase(found);
        for (auto const& [id, name] : taken) awaited_by_.erase(id);
        log([this, target, taken] {
            awaits_[target] = taken;
            for (auto const& [id, name] : taken) awaited_by_.emplace(id, target);
        });
        return taken;
    }
    /// Who waits for a member of this name that is now added.
    std::vector<task_id> take_awaits(task_id workflow, std::string_view name) {
        std::vector<task_id> taken;
        auto const found = awaits_.find({{}, {}, {}, workflow});
        if (found == awaits_.end()) return taken;
        for (auto const& [id, wanted] : found->second)
            if (wanted == name) taken.push_back(id);
        for (auto const id : taken) (void)drop_await(id);
        return taken;
    }
    /// The latest head of a workflow.
    bool is_head(task_id id) const {
        auto const* const one = member(id);
        if (one == nullptr || one->row.kind != member_kind::workflow) return false;
        auto const* const whole = workflow(one->row.workflow);
        return whole != nullptr && whole->row.head == id;
    }

    /// All that is kept of a task here, before it is removed.
    void remove(task_id id) {
        for (auto const parent : std::set<task_id>(parents(id))) unlink(parent, id);
        for (auto const child : std::set<task_id>(children(id))) unlink(id, child);
        (void)drop_await(id);
        if (watched_.erase(id) != 0) log([this, id] { watched_.insert(id); });
        auto const found = members_.find(id);
        if (found == members_.end()) return;
        log([this, id, one = found->second] {
            names_.emplace(key_of(one), id);
            members_.emplace(id, one);
            if (one.row.added_by != task_id{}) added_[one.row.added_by].insert(id);
        });
        if (found->second.row.added_by != task_id{}) added_[found->second.row.added_by].erase(id);
        names_.erase(key_of(found->second));
        members_.erase(found);
    }
    void remove_workflow(task_id id) {
        auto const found = workflows_.find(id);
        if (found == workflows_.end()) return;
        log([this, id, one = found->second] { workflows_.emplace(id, one); });
        workflows_.erase(found);
    }

    std::size_t mark() const noexcept { return log_.size(); }
    void commit() noexcept { log_.clear(); }
    void undo(std::size_t since) {
        while (log_.size() > since) {
            auto step = std::move(log_.back());
            log_.pop_back();
            step();
        }
    }

  private:
    using edges = std::map<task_id, std::set<task_id>>;

    static std::set<task_id> const& of(edges const& all, task_id id) {
        static auto const& none = *new std::set<task_id>; // never destroyed: a store may end after it
        auto const found = all.find(id);
        return found == all.end() ? none : found->second;
    }
    static std::tuple<task_id, std::string, std::uint32_t> key_of(memory_member const& one) {
        return {one.row.workflow, one.name, one.row.generation};
    }
    void cut(task_id parent, task_id child) {
        children_[parent].erase(child);
        parents_[child].erase(parent);
    }
    template <class Fn>
    void log(Fn&& fn) {
        log_.emplace_back(std::forward<Fn>(fn));
    }

    std::map<task_id, memory_member> members_;
    std::map<std::tuple<task_id, std::string, std::uint32_t>, task_id> names_;
    std::map<task_id, memory_workflow> workflows_;
    edges added_; ///< by who added them
    edges children_;
    edges parents_;
    std::set<task_id> watched_;
    std::map<awaited_name, std::map<task_id, std::string>> awaits_;
    std::map<task_id, awaited_name> awaited_by_;
    std::vector<unique_function<void()>> log_;
};

/// @tparam Writer  Lends what changes a task: see memory_storage::writer.
template <class Writer>
class memory_graph {
    using nodes = std::vector<graph_node>;

  public:
    explicit memory_graph(Writer& writer) noexcept : writer_(writer) {}

    std::optional<graph_node> node(task_id id) {
        auto const* const one = graphs().member(id);
        auto const* const row = writer_.tables_.find(id);
        if (one == nullptr || row == nullptr) return std::nullopt;
        graph_node answer;
        static_cast<graph_row&>(answer) = one->row;
        answer.id = id;
        answer.state = row->task.state;
        answer.has_run = row->task.first_started.has_value();
        answer.lane = row->lane();
        answer.run_at = row->task.run_at;
        answer.routed = !row->task.route_key.empty();
        return answer;
    }
    nodes children(task_id id) {
        nodes answer;
        for (auto const child : graphs().children(id))
            if (auto one = node(child)) answer.push_back(*one);
        return answer;
    }
    template <class Fn>
    void children(task_id id, Fn&& fn) {
        for (auto const child : graphs().children(id)) fn(child);
    }
    std::optional<std::pair<task_id, member_kind>> place(task_id id) {
        auto const* const one = graphs().member(id);
        return one == nullptr ? std::nullopt : std::optional{std::pair{one->row.workflow, one->row.kind}};
    }
    std::vector<task_id> parents(task_id id) {
        auto const& all = graphs().parents(id);
        return {all.begin(), all.end()};
    }
    nodes unfinished(task_id workflow) {
        return members(workflow, [](graph_node const& one) { return !is_terminal(one.state); });
    }
    nodes added(task_id id) {
        nodes answer;
        for (auto const each : graphs().added(id))
            if (auto one = node(each); one && !one->dropped) answer.push_back(*one);
        return answer;
    }
    void drop(task_id id) {
        graphs().drop(id);
        (void)graphs().drop_await(id);
    }
    nodes failed(task_id workflow) {
        return members(workflow, [&](graph_node const& one) {
            return (one.state == task_state::dead || one.state == task_state::cancelled) && is_latest(one);
        });
    }
    std::optional<std::string> failed_leaf(task_id workflow) {
        auto const leaves = members(workflow, [&](graph_node const& one) {
            if (one.state == task_state::succeeded || one.state == task_state::skipped || !is_latest(one)) return false;
            for (auto const child : graphs().children(one.id))
                if (graphs().member(child)->row.workflow == workflow) return false;
            return true;
        });
        return leaves.empty() ? std::nullopt : std::optional{name(leaves.front().id)};
    }
    std::optional<task_id> latest(task_id workflow, std::string_view wanted) {
        return graphs().latest(workflow, wanted);
    }
    std::string name(task_id id) {
        auto const* const one = graphs().member(id);
        return one == nullptr ? std::string{} : one->name;
    }
    std::optional<task_state> state(task_id id) {
        auto const* const row = writer_.tables_.find(id);
        return row == nullptr ? std::nullopt : std::optional{row->task.state};
    }
    void put_parents(graph_node const& one) { graphs().put_parents(one.id, one.parents); }
    std::optional<workflow_row> workflow(task_id id) {
        auto const* const found = graphs().workflow(id);
        return found == nullptr ? std::nullopt : std::optional{found->row};
    }
    void put(workflow_row const& whole) {
        if (graphs().workflow(whole.id) != nullptr) graphs().put_workflow(whole);
    }
    void add(workflow_row const& whole, std::string_view name) { graphs().put_workflow(whole, std::string(name)); }
    void set_up(task_id id, graph_row const& row, std::string_view name) {
        graphs().put_member(id, {row, std::string(name)});
    }
    bool link(task_id parent, task_id child) { return graphs().link(parent, child); }
    void unlink(task_id parent, task_id child) { graphs().unlink(parent, child); }
    void watch(task_id id) {
        if (graphs().member(id) == nullptr) graphs().watch(id);
    }
    insertion insert_head(new_task const& task, time_point now, alarms& due) {
        return writer_.insert_one(task, now, due, task_state::created, true);
    }
    task_id insert_member(new_task const& task, task_state state, bool paused, time_point now, alarms& due) {
        auto const id = writer_.insert_one(task, now, due, state, true).id;
        if (paused && state == task_state::ready) set_paused(id, true, due);
        return id;
    }
    task_id copy(task_id id, time_point now) { return writer_.copy(*writer_.tables_.find(id), now); }
    void enter(task_id id, task_state state, time_point now, std::string_view error, alarms& due) {
        writer_.enter_by_rule(*writer_.tables_.find(id), state, now, error, due);
    }
    void promote(graph_node const& one, bool paused, time_point now, alarms& due) {
        writer_.promote_member(*writer_.tables_.find(one.id), paused, now, due);
    }
    void set_paused(task_id id, bool yes, alarms& due) {
        auto& row = *writer_.tables_.find(id);
        if (!is_claimable(row.task.state)) return;
        writer_.change_waiting(row, [yes](task_record& task) { task.paused = yes; });
        if (!yes) writer_.announce(id, due);
    }
    void demote(task_id, task_state) {} // is_head() tells it from the workflow
    bool ask_to_stop(task_id id) { return writer_.ask_to_stop(id); }

    std::optional<std::pair<task_id, task_state>> find(awaited_task const& what) {
        auto const& tables = std::as_const(writer_.tables_);
        auto const* found =
            what.key.empty() ? tables.find_occurrence(what.schedule, what.scheduled_at) : tables.key_holder(what.key);
        if (found == nullptr && !what.key.empty()) found = tables.former_key_holder(what.key);
        return found == nullptr ? std::nullopt : std::optional{std::pair{found->task.id, found->task.state}};
    }
    void await(awaited_task const& what, task_id id, task_id workflow) {
        graphs().await({what.key, what.key.empty() ? what.schedule : std::string{},
                        what.key.empty() ? what.scheduled_at : time_point{}, workflow},
                       id, what.name);
    }
    void pass_await(task_id from, task_id to) {
        if (auto taken = graphs().drop_await(from))
            graphs().await(std::move(taken->first), to, std::move(taken->second));
    }
    void drop_await(task_id id) { (void)graphs().drop_await(id); }
    std::map<task_id, std::string> arrived(new_task const& task) {
        std::map<task_id, std::string> answer;
        if (!task.key.empty()) answer = graphs().take_awaits({task.key, {}, {}, {}});
        if (!task.schedule.empty() && task.scheduled_at)
            answer.merge(graphs().take_awaits({{}, task.schedule, *task.scheduled_at, {}}));
        return answer;
    }
    std::map<task_id, std::string> waiting_for(new_task const& task) {
        std::map<task_id, std::string> answer;
        if (!task.key.empty()) answer = graphs().awaiting({task.key, {}, {}, {}});
        if (!task.schedule.empty() && task.scheduled_at)
            answer.merge(graphs().awaiting({{}, task.schedule, *task.scheduled_at, {}}));
        return answer;
    }
    std::string workflow_name(task_id id) {
        auto const* const one = graphs().member(id);
        auto const* const whole = one == nullptr ? nullptr : graphs().workflow(one->row.workflow);
        return whole == nullptr ? std::string{} : whole->name;
    }
    std::vector<task_id> arrived_member(task_id workflow, std::string_view name) {
        return graphs().take_awaits(workflow, name);
    }

  private:
    auto& graphs() { return writer_.tables_.graphs(); }

    bool is_latest(graph_node const& one) {
        return !one.dropped && graphs().latest(one.workflow, name(one.id)) == one.id;
    }

    template <class Wanted>
    nodes members(task_id workflow, Wanted&& wanted) {
        nodes answer;
        auto const& names = graphs().names();
        for (auto at = names.lower_bound({workflow, {}, 0}); at != names.end() && std::get<0>(at->first) == workflow;
             ++at) {
            auto const one = node(at->second);
            if (one && one->kind != member_kind::workflow && wanted(*one)) answer.push_back(*one);
        }
        return answer;
    }

    Writer& writer_;
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// What follows for a workflow when one of its tasks is stored, ends, is cancelled, tried again or rerun. It is written
// once, for every storage: a storage tells of each change of state, and lends its rows.
//
// A change does not walk through the graph by itself. It is put in a queue, and settle() works that off wave by wave:
// first all counts of the wave, then each child that was touched is decided once. So nothing is recursive, a child with
// a thousand parents that end together is looked at once, and nothing is decided upon counts that are half written.
// What a rule had ended and does not any more is taken back first, all the way down, before anything is let go: else a
// child would run upon the outcome of a parent that is about to be open again.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/wait_circle.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// What a storage keeps of a member beside its task.
struct graph_row {
    task_id workflow{}; ///< the id of its workflow: that of the first head
    std::uint32_t generation = 1;
    member_kind kind = member_kind::task;
    trigger_rule when = trigger_rule::all_success;
    parent_counts parents;
    task_id added_by{};   ///< the member whose handler added it; 0: it came with the workflow
    bool dropped = false; ///< that one was rerun, and adds anew what it wants: this is history
};

/// A member with what is asked of its task.
struct graph_node : graph_row {
    task_id id{};
    task_state state{};
    bool has_run = false; ///< since it was last stored, retried or brought back
    lane_id lane{};
    time_point run_at{};
    bool routed = false; ///< it has a route key
};

/// How a workflow counts its members.
enum class member_group : std::uint8_t { waiting, ready, succeeded, dead, cancelled, skipped, upstream_failed };
inline constexpr std::size_t member_groups = 7;

constexpr member_group group_of(task_state state) noexcept {
    switch (state) {
    case task_state::created: return member_group::waiting;
    case task_state::succeeded: return member_group::succeeded;
    case task_state::dead: return member_group::dead;
    case task_state::cancelled: return member_group::cancelled;
    case task_state::skipped: return member_group::skipped;
    case task_state::upstream_failed: return member_group::upstream_failed;
    case task_state::ready:
    case task_state::dispatched:
    case task_state::running:
    case task_state::failed: break;
    }
    return member_group::ready;
}

/// What a storage keeps of a workflow as a whole.
struct workflow_row {
    task_id id{};
    task_id head{};
    std::array<std::int64_t, member_groups> counts{};
    std::optional<time_point> started;
    task_id last_ended{};
    bool paused = false;
    bool stopping = false;

    std::int64_t& count(member_group group) noexcept { return counts[static_cast<std::size_t>(group)]; }
    std::int64_t unfinished() const noexcept { return counts[0] + counts[1]; }
    std::size_t total() const noexcept {
        return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    }
    bool has_failures() const noexcept {
        return counts[static_cast<std::size_t>(member_group::dead)] != 0 ||
               counts[static_cast<std::size_t>(member_group::cancelled)] != 0 ||
               counts[static_cast<std::size_t>(member_group::upstream_failed)] != 0;
    }
};

/// Counts one parent more (or less) that stands in `state`.
constexpr void count_parent(parent_counts& counts, task_state state, std::int32_t by) noexcept {
    auto const add = [by](std::uint32_t& n) { n = static_cast<std::uint32_t>(static_cast<std::int64_t>(n) + by); };
    switch (group_of(state)) {
    case member_group::succeeded: return add(counts.succeeded);
    case member_group::dead:
    case member_group::cancelled: return add(counts.failed);
    case member_group::skipped: return add(counts.skipped);
    case member_group::upstream_failed: return add(counts.upstream_failed);
    case member_group::waiting:
    case member_group::ready: return;
    }
}

/// `Store` lends:
///   optional<graph_node> node(id)                     of a member of any kind
///   optional<pair<task_id, member_kind>> place(id)    its workflow
///   vector<graph_node> children(id), void children(id, fn(task_id)), vector<task_id> parents(id)
///   void put_parents(node)                            its counts
///   optional<workflow_row> workflow(id), void put(workflow_row), void add(workflow_row, name)
///   vector<graph_node> unfinished(workflow)           members that are not terminal
///   vector<graph_node> failed(workflow)               latest ones that are dead or cancelled
///   optional<string> failed_leaf(workflow)            the name of a latest member without children that is no success
///   vector<graph_node> added(id)                      what its handler added and was not dropped, of any generation
///   void drop(id)
///   optional<task_id> latest(workflow, name), string name(id), optional<task_state> state(id)
///   void set_up(id, graph_row, name), bool link(parent, child), void unlink(parent, child)
///   void watch(id)                                    its changes are told from now on
///   insertion insert_head(new_task, now, due), task_id insert_member(new_task, state, paused, now, due)
///   task_id copy(id, now)                             the task as it was submitted, created; no key
///   void enter(id, state, now, error, due)            any state but ready; tells of the change
///   void promote(node, paused, now, due)              created -> ready; tells of the change
///   void demote(id, state)                            a head that is not the latest any more, once it was copied
///   void set_paused(id, yes, due), bool ask_to_stop(id)
///   optional<pair<task_id, task_state>> find(awaited_task)
///   void await(awaited_task, id, workflow)            where that is said, the member of this name
///   vector<pair<task_id, string>> arrived(new_task), vector<task_id> arrived_member(workflow, name)
///   void pass_await(from, to)                         what one waits for, another does from now on
///   void drop_await(id)
///   vector<pair<task_id, string>> waiting_for(new_task), string workflow_name(id)
template <class Store>
class graph_rules {
    using node = dependent<graph_node, Store>;
    using task_id = dependent<ax::task_id, Store>;
    using time_point = dependent<ax::time_point, Store>;
    using alarms = dependent<ax::alarms, Store>;
    using change = dependent<ax::change, Store>;
    using text = dependent<std::string, Store>;

  public:
    explicit graph_rules(Store& store) noexcept : store_(store) {}

    /// A member, or a task that a member waits for, has changed its state. To be told of each change but the insertion.
    /// @param started   Of its first attempt, if any.
    /// @param workflow  Of which it is known to be a task; 0: that is looked up.
    void changed(task_id id, task_state from, task_state to, std::optional<ax::time_point> const& started = {},
                 ax::task_id workflow = {}) {
        queue_.push_back({id, from, to, started, workflow});
    }

    /// Does all that follows from what was told. To be called at the end of each verb.
    void settle(ax::time_point now, ax::alarms& due) {
        if (queue_.empty() && touched_.empty() && workflows_.empty() && arrivals_.empty()) return;
        do {
            count_wave();
            for (auto const& each : arrivals_) tie(each.waiting, each.found, each.name);
            arrivals_.clear();
            decide_touched(now, due);
            if (queue_.empty()) end_stopped(now, due);
            if (queue_.empty()) end_workflows(now, due);
        } while (!queue_.empty());
        workflows_.clear();
    }

    /// Nothing is left of what was told: the verb is undone.
    void forget() noexcept {
        queue_.clear();
        touched_.clear();
        workflows_.clear();
        arrivals_.clear();
        stopped_.clear();
    }

    /// To be called before a verb that stores such a task writes anything.
    /// @throws error  invalid_argument where it is a workflow that would wait for what waits for it.
    void refuse_circle(new_task const& head) {
        if (auto const path = circle(head); !path.empty()) throw error(errc::invalid_argument, path);
    }
    /// The same as a text; empty: there is none.
    text circle(new_task const& head) { return head.workflow ? wait_circle<Store>{store_}.find(head) : text{}; }

    /// @param head  Its `workflow` is there.
    insertion insert(new_task const& head, ax::time_point now, ax::alarms& due) {
        auto const answer = store_.insert_head(head, now, due);
        if (answer.outcome != submit_outcome::inserted) return answer;
        workflow_row made;
        made.id = made.head = answer.id;
        graph_row row;
        row.workflow = answer.id;
        row.kind = member_kind::workflow;
        store_.set_up(answer.id, row, {});
        store_.add(made, head.workflow->name);
        workflows_.push_back({made, true});
        insert_members(answer.id, head.workflow->members, now, due);
        return answer;
    }

    /// Tasks that `by` adds to its own workflow, before its success is told: those without a parent among them come
    /// behind it, and what waits for it waits for them, too.
    void add(task_id by, std::span<new_member const> members, ax::time_point now, ax::alarms& due) {
        auto const adder = store_.node(by);
        if (!adder || members.empty()) return;
        auto const waiting = store_.children(by);
        auto const ids = insert_members(adder->workflow, members, now, due, by);
        dependent<std::vector<bool>, Store> has_child(members.size());
        for (auto const& each : members)
            for (auto const parent : each.after) has_child[parent] = true;
        for (auto child : waiting) {
            if (!waits(child) || child.workflow != adder->workflow || is_history(child)) continue;
            for (std::size_t i = 0; i != ids.size(); ++i)
                if (!has_child[i]) {
                    store_.link(ids[i], child.id);
                    ++child.parents.total;
                }
            store_.put_parents(child);
        }
        if (loaded(adder->workflow).row.stopping)
            for (auto const id : ids) store_.enter(id, task_state::cancelled, now, "its workflow was cancelled", due);
    }

    /// A task was stored that others may wait for. They are tied to it by settle(): where it is a workflow, that has no
    /// tasks yet; and what has ended in the same verb is counted there first, so that it is not counted twice.
    void arrived(new_task const& task, task_id id) {
        for (auto& [waiting, name] : store_.arrived(task)) arrivals_.push_back({waiting, id, name});
    }

    /// What `waiting` waits for was left out and does not come any more: that is as a parent that was skipped.
    void left_out(task_id waiting) {
        store_.drop_await(waiting);
        auto one = store_.node(waiting);
        if (!one) return;
        count_parent(one->parents, task_state::skipped, 1);
        store_.put_parents(*one);
        touched_.push_back(*one);
    }

    /// Ends all that waits in a workflow, and asks what runs to stop.
    /// @param asked  Who was asked.
    void stop(task_id head, ax::time_point now, ax::alarms& due, std::vector<ax::task_id>& asked) {
        auto const top = store_.node(head);
        if (!top || top->kind != member_kind::workflow) return;
        to_change(top->workflow).stopping = true;
        for (auto const& each : store_.unfinished(top->workflow))
            if (!is_active(each.state))
                store_.enter(each.id, task_state::cancelled, now, {}, due);
            else if (store_.ask_to_stop(each.id))
                asked.push_back(each.id);
    }

    /// Dead and cancelled tasks of a workflow go back to where their parents leave them.
    /// @return  Whether there was one.
    bool retry_failed(task_id workflow, ax::time_point now, ax::alarms& due) {
        auto const failed = store_.failed(workflow);
        for (auto const& each : failed) retry(each, now, due);
        return !failed.empty();
    }

    /// One dead or cancelled member likewise. In one commit it takes several edges of the lifecycle: to ready, by hand,
    /// and where its parents do not let it run, on to skipped and created, as what they had ended does.
    void retry(graph_node const& member, ax::time_point now, ax::alarms& due) {
        to_change(member.workflow).stopping = false;
        store_.enter(member.id, task_state::created, now, {}, due);
        touched_.push_back(member);
        touched_.back().state = task_state::created;
        touched_.back().run_at = now;
    }

    /// Whether a later generation has taken the place of this row, or who had added it was rerun.
    bool is_superseded(graph_node const& member) {
        if (member.dropped) return true;
        return member.kind == member_kind::workflow
                   ? loaded(member.workflow).row.head != member.id
                   : store_.latest(member.workflow, store_.name(member.id)) != member.id;
    }

    /// Its counts, or those of its workflow, were put right: what they mean is to be decided anew.
    void revise(task_id id) {
        auto const one = store_.node(id);
        if (!one || !store_.workflow(one->workflow)) return;
        to_change(one->workflow);
        if (one->kind != member_kind::workflow && waits(*one)) touched_.push_back(*one);
    }

    /// @param in_flight  Who is claimed, and may not have started.
    void pause(task_id workflow, bool yes, ax::alarms& due, std::vector<ax::task_id>& in_flight) {
        to_change(workflow).paused = yes;
        for (auto const& each : store_.unfinished(workflow))
            if (is_claimable(each.state))
                store_.set_paused(each.id, yes, due);
            else if (is_active(each.state))
                in_flight.push_back(each.id);
    }

    /// A new generation of a task that has ended, and of those below it. What their handlers had added is left behind,
    /// for these add it anew.
    /// @param[out] fresh  Its new row; the one in the way where it is refused.
    change_outcome rerun(task_id id, rerun_scope scope, ax::time_point now, ax::alarms& due, ax::task_id& fresh) {
        auto const first = store_.node(id);
        fresh = id;
        if (!first) return change_outcome::unknown;
        if (first->kind == member_kind::workflow || !is_terminal(first->state) || is_superseded(*first))
            return change_outcome::wrong_state;
        dependent<std::vector<node>, Store> below{*first};
        dependent<std::vector<node>, Store> dropped;
        if (auto const busy = gather(below, dropped, scope); busy != task_id{}) {
            fresh = busy;
            return change_outcome::wrong_state;
        }
        auto const is_renewed = [&](task_id one) {
            auto const at = std::lower_bound(below.begin(), below.end(), one,
                                             [](node const& n, task_id wanted) { return n.id < wanted; });
            return at != below.end() && at->id == one;
        };
        std::sort(below.begin(), below.end(), [](node const& a, node const& b) { return a.id < b.id; });
        for (auto& each : below) { // what is left is what has no edge: pruned, or not there yet
            auto const parents = store_.parents(each.id);
            each.parents.total -= static_cast<std::uint32_t>(parents.size());
            for (auto const parent : parents)
                if (auto const state = store_.state(parent)) count_parent(each.parents, *state, -1);
        }
        dependent<std::vector<task_id>, Store> renewed;
        renewed.reserve(below.size());
        for (auto const& each : below) renewed.push_back(renew(each, now, due));
        for (auto const& each : dropped) drop(each, now, due);
        auto const renewed_id = [&](task_id one) {
            auto const at = std::lower_bound(below.begin(), below.end(), one,
                                             [](node const& n, task_id wanted) { return n.id < wanted; });
            return renewed[static_cast<std::size_t>(at - below.begin())];
        };
        for (std::size_t i = 0; i != below.size(); ++i) {
            auto made = *store_.node(renewed[i]);
            made.parents = below[i].parents;
            if (made.parents.unfinished() != 0) store_.pass_await(below[i].id, made.id);
            for (auto const parent : store_.parents(below[i].id)) {
                auto const seen = is_renewed(parent) ? renewed_id(parent) : current(parent, made.workflow);
                if (seen == task_id{} || !store_.link(seen, made.id)) continue;
                ++made.parents.total;
                if (auto const state = store_.state(seen)) count_parent(made.parents, *state, 1);
            }
            store_.put_parents(made);
            touched_.push_back(made);
            for (auto child : store_.children(below[i].id)) {
                if (is_renewed(child.id) || !waits(child) || is_history(child)) continue;
                store_.unlink(below[i].id, child.id);
                store_.link(made.id, child.id);
                count_parent(child.parents, below[i].state, -1);
                store_.put_parents(child);
                touched_.push_back(child);
            }
            if (below[i].id == id) fresh = made.id;
        }
        for (auto const& each : dropped) let_go_of(each);
        auto& whole = to_change(first->workflow);
        whole.stopping = false;
        if (auto const head = store_.node(whole.head); head && head->state == task_state::succeeded) {
            graph_row row = *head;
            ++row.generation;
            whole.head = store_.copy(head->id, now);
            store_.demote(head->id, head->state);
            store_.set_up(whole.head, row, {});
        }
        return change_outcome::done;
    }

  private:
    struct step {
        task_id id{};
        task_state from{};
        task_state to{};
        std::optional<time_point> started;
        task_id workflow{};
    };

    struct below_step {
        ax::task_id id{}; ///< of a child
        task_state from{};
        task_state to{};
    };

    struct arrival {
        ax::task_id waiting{};
        ax::task_id found{};
        dependent<std::string, Store> name;
    };

    /// A state that its trigger rule, and not its handler, has brought about.
    static bool is_decided(graph_node const& one) noexcept {
        return one.state == task_state::upstream_failed || (one.state == task_state::skipped && !one.has_run);
    }

    /// Its state is what its rule says of its parents.
    static bool waits(graph_node const& one) noexcept { return one.state == task_state::created || is_decided(one); }

    /// A later generation goes on in its place.
    bool is_history(graph_node const& one) { return is_terminal(one.state) && is_superseded(one); }

    struct loaded_workflow {
        workflow_row row;
        bool changed = false;
    };

    loaded_workflow& loaded(task_id id) {
        for (auto& each : workflows_)
            if (each.row.id == id) return each;
        auto row = store_.workflow(id);
        if (!row) {
            row.emplace();
            row->id = id; // its rows make no sense: nothing is ever written for it
        }
        workflows_.push_back({*row, false});
        return workflows_.back();
    }

    workflow_row& to_change(task_id id) {
        auto& one = loaded(id);
        one.changed = true;
        return one.row;
    }

    auto insert_members(task_id workflow, std::span<new_member const> members, ax::time_point now, ax::alarms& due,
                        task_id behind = {}) {
        dependent<std::vector<task_id>, Store> ids;
        ids.reserve(members.size());
        for (auto const& each : members) {
            graph_row row;
            row.workflow = workflow;
            row.kind = each.until ? member_kind::wait : member_kind::task;
            row.when = each.when;
            bool const below = behind != task_id{} && each.after.empty();
            row.parents.total =
                static_cast<std::uint32_t>(each.after.size() + (each.until ? 1U : 0U) + (below ? 1U : 0U));
            auto& whole = to_change(workflow);
            bool const goes = !each.until && decide(row.when, row.parents) == trigger_decision::run;
            auto const state = goes ? task_state::ready : task_state::created;
            ++whole.count(group_of(state));
            ids.push_back(store_.insert_member(each.task, state, whole.paused, now, due));
            row.added_by = behind;
            auto name = std::string_view{each.name};
            text another;
            if (auto const there = behind != task_id{} ? store_.latest(workflow, name) : std::nullopt) {
                if (auto const before = store_.node(*there); before && before->dropped) {
                    row.generation = before->generation + 1;
                } else { // another handler was faster
                    another = each.name + '~' + std::to_string(to_number(ids.back()));
                    name = another;
                }
            }
            store_.set_up(ids.back(), row, name);
            if (behind != task_id{})
                for (auto const waiting : store_.arrived_member(workflow, name))
                    arrivals_.push_back({waiting, ids.back(), {}});
            if (below) store_.link(behind, ids.back());
            for (auto const parent : each.after)
                if (parent < ids.size() - 1) store_.link(ids[parent], ids.back());
        }
        for (std::size_t i = 0; i != members.size(); ++i)
            for (auto const parent : members[i].after)
                if (parent >= i) store_.link(ids[parent], ids[i]); // it stands behind its child
        for (std::size_t i = 0; i != members.size(); ++i) {
            if (!members[i].until) continue;
            auto const& until = *members[i].until;
            if (auto const there = store_.find(until))
                arrivals_.push_back({ids[i], there->first, until.name});
            else
                store_.await(until, ids[i], {});
            if (auto const one = store_.node(ids[i]); one && decide(one->when, one->parents) != trigger_decision::wait)
                touched_.push_back(*one);
        }
        return ids;
    }

    void await_member(task_id workflow, std::string_view name, task_id waiting) {
        dependent<ax::awaited_task, Store> until;
        until.name = name;
        store_.await(until, waiting, workflow);
    }

    /// `waiting` has found the task that it waits for; where `name` is not empty, in that workflow.
    void tie(task_id waiting, task_id found, std::string_view name) {
        auto const place = store_.place(found);
        if (!name.empty()) {
            auto const there = store_.latest(found, name);
            auto const member = there ? store_.node(*there) : std::nullopt;
            if (!member || member->dropped) return await_member(found, name, waiting); // a handler may add it
            found = member->id;
        } else if (place && place->second == member_kind::workflow) {
            found = loaded(place->first).row.head; // of the latest generation
        }
        auto one = store_.node(waiting);
        auto const state = store_.state(found);
        if (!one || !state) return;
        store_.watch(found);
        if (store_.link(found, waiting))
            count_parent(one->parents, *state, 1);
        else
            --one->parents.total; // it is a parent of it already
        store_.put_parents(*one);
        touched_.push_back(*one);
    }

    void count_wave() {
        wave_.swap(queue_);
        for (auto const& each : wave_) {
            if (group_of(each.from) == group_of(each.to) && is_active(each.from) == is_active(each.to)) continue;
            auto workflow = each.workflow;
            if (workflow == task_id{})
                if (auto const place = store_.place(each.id); place && place->second != member_kind::workflow)
                    workflow = place->first;
            if (workflow != task_id{}) {
                auto& whole = to_change(workflow);
                --whole.count(group_of(each.from));
                ++whole.count(group_of(each.to));
                if (is_terminal(each.to)) whole.last_ended = each.id;
                if (each.started && (!whole.started || *each.started < *whole.started)) whole.started = each.started;
                if (whole.paused && is_active(each.from) && is_claimable(each.to)) paused_.push_back(each.id);
            }
            if (is_terminal(each.from) || is_terminal(each.to))
                store_.children(each.id, [&](task_id child) { below_.push_back({child, each.from, each.to}); });
        }
        wave_.clear();
        // A child of many that end together is read and written once.
        std::sort(below_.begin(), below_.end(), [](below_step const& a, below_step const& b) { return a.id < b.id; });
        for (std::size_t i = 0; i != below_.size();) {
            auto const id = below_[i].id;
            auto child = store_.node(id);
            for (; i != below_.size() && below_[i].id == id; ++i) {
                if (!child) continue;
                count_parent(child->parents, below_[i].from, -1);
                count_parent(child->parents, below_[i].to, 1);
            }
            if (!child) continue;
            store_.put_parents(*child);
            touched_.push_back(*child);
        }
        below_.clear();
    }

    void decide_touched(ax::time_point now, ax::alarms& due) {
        for (auto const id : paused_) store_.set_paused(id, true, due);
        paused_.clear();
        // Of a child that was touched twice the latest counts are what holds, and they are in the last copy.
        auto const before = [](node const& a, node const& b) { return a.id < b.id; };
        if (touched_.size() > 1 && !std::is_sorted(touched_.begin(), touched_.end(), before))
            std::stable_sort(touched_.begin(), touched_.end(), before);
        std::size_t kept = 0;
        for (std::size_t i = 0; i != touched_.size(); ++i)
            if (i + 1 == touched_.size() || touched_[i + 1].id != touched_[i].id) touched_[kept++] = touched_[i];
        touched_.resize(kept);
        for (auto& each : touched_) take_back(each, now, due);
        decided_.insert(decided_.end(), touched_.begin(), touched_.end());
        touched_.clear();
        if (!queue_.empty()) return; // until all is taken back
        std::stable_sort(decided_.begin(), decided_.end(), before);
        for (std::size_t i = 0; i != decided_.size(); ++i)
            if (i + 1 == decided_.size() || decided_[i + 1].id != decided_[i].id) advance(decided_[i], now, due);
        decided_.clear();
    }

    /// What a rule had ended, and does not any more, waits again.
    void take_back(graph_node& one, ax::time_point now, ax::alarms& due) {
        if (one.kind == member_kind::workflow || !is_decided(one) || state_by_rule(one) == one.state) return;
        if (is_history(one)) return;
        store_.enter(one.id, task_state::created, now, {}, due);
        one.state = task_state::created;
        one.run_at = now;
    }

    void advance(graph_node const& one, ax::time_point now, ax::alarms& due) {
        if (one.kind == member_kind::workflow || one.state != task_state::created) return;
        auto const& whole = loaded(one.workflow).row;
        auto const wanted = state_by_rule(one);
        if (whole.stopping && (wanted == task_state::created || wanted == task_state::ready))
            stopped_.push_back(one.id);
        else if (wanted == task_state::ready)
            store_.promote(one, whole.paused, now, due);
        else if (wanted != task_state::created)
            store_.enter(one.id, wanted, now, {}, due);
    }

    /// What has come back in a workflow that was cancelled is cancelled, too, where nothing has ended it meanwhile.
    void end_stopped(ax::time_point now, ax::alarms& due) {
        for (auto const id : stopped_)
            if (store_.state(id) == task_state::created) store_.enter(id, task_state::cancelled, now, {}, due);
        stopped_.clear();
    }

    static task_state state_by_rule(graph_node const& one) noexcept {
        switch (decide(one.when, one.parents)) {
        case trigger_decision::wait: break;
        case trigger_decision::run: return one.kind == member_kind::wait ? task_state::succeeded : task_state::ready;
        case trigger_decision::skip: return task_state::skipped;
        case trigger_decision::upstream_failed: return task_state::upstream_failed;
        }
        return task_state::created;
    }

    void end_workflows(ax::time_point now, ax::alarms& due) {
        for (auto& each : workflows_) {
            if (!each.changed) continue;
            each.changed = false;
            auto const& whole = each.row;
            store_.put(whole);
            auto const head = store_.node(whole.head);
            if (!head) continue;
            if (whole.unfinished() > 0) {
                bool const ended = is_terminal(head->state) && head->state != task_state::succeeded;
                if (ended && !whole.stopping) store_.enter(head->id, task_state::created, now, {}, due);
            } else if (head->state == task_state::created) {
                end(whole, now, due);
            }
        }
    }

    void end(workflow_row const& whole, ax::time_point now, ax::alarms& due) {
        if (whole.stopping) return store_.enter(whole.head, task_state::cancelled, now, {}, due);
        auto const failed = whole.has_failures() ? store_.failed_leaf(whole.id) : std::nullopt;
        if (!failed) return store_.enter(whole.head, task_state::succeeded, now, {}, due);
        store_.enter(whole.head, task_state::upstream_failed, now, "its task \"" + *failed + "\" did not succeed", due);
    }

    /// Adds what is to be renewed below the first of `all`, and to `dropped` what these have added: that is reached
    /// only through who added it, which is why it is known by then.
    /// @return  One of them that is in flight; 0: none is.
    task_id gather(auto& all, auto& dropped, rerun_scope scope) {
        dependent<std::vector<task_id>, Store> seen{all.front().id};
        if (auto const busy = gather_added(all.front().id, dropped, seen); busy != task_id{}) return busy;
        auto const workflow = all.front().workflow;
        dependent<std::vector<node>, Store> front{all.front()};
        dependent<std::vector<node>, Store> next;
        while (!front.empty()) {
            next.clear();
            for (auto const& parent : front)
                for (auto const& child : store_.children(parent.id)) {
                    if (child.workflow != workflow || child.kind == member_kind::workflow) continue;
                    if (is_terminal(child.state) && !is_decided(child) && scope == rerun_scope::unfinished) continue;
                    if (is_history(child)) continue;
                    next.push_back(child);
                }
            std::sort(next.begin(), next.end(), [](node const& a, node const& b) { return a.id < b.id; });
            front.clear();
            for (auto const& child : next) {
                auto const at = std::lower_bound(seen.begin(), seen.end(), child.id);
                if (at != seen.end() && *at == child.id) continue;
                seen.insert(at, child.id);
                if (is_active(child.state)) return child.id;
                front.push_back(child);
                if (waits(child)) continue;
                all.push_back(child);
                if (auto const busy = gather_added(child.id, dropped, seen); busy != task_id{}) return busy;
            }
        }
        return {};
    }

    /// What a task has added, what that has added, and so on.
    task_id gather_added(task_id by, auto& dropped, auto& seen) {
        auto next = dropped.size();
        for (auto adder = by;; adder = dropped[next++].id) {
            for (auto const& each : store_.added(adder)) {
                if (is_active(each.state)) return each.id;
                auto const at = std::lower_bound(seen.begin(), seen.end(), each.id);
                if (at != seen.end() && *at == each.id) continue;
                seen.insert(at, each.id);
                dropped.push_back(each);
            }
            if (next == dropped.size()) return {};
        }
    }

    /// What a new generation sees of a parent: the latest one. 0: there is none any more.
    task_id current(task_id parent, task_id workflow) {
        auto const one = store_.node(parent);
        if (!one || one->workflow != workflow || !is_superseded(*one)) return parent;
        auto const there = store_.latest(workflow, store_.name(parent));
        auto const latest = there ? store_.node(*there) : std::nullopt;
        return latest && !latest->dropped ? latest->id : task_id{};
    }

    /// It counts no more, and does not start.
    void drop(graph_node const& old, ax::time_point now, ax::alarms& due) {
        auto state = old.state;
        bool const counted = !is_superseded(old);
        if (!is_terminal(state)) {
            store_.enter(old.id, task_state::cancelled, now, "the task that had added it was rerun", due);
            state = task_state::cancelled; // its workflow is told of that
        }
        store_.drop(old.id);
        if (counted) --to_change(old.workflow).count(group_of(state));
    }

    /// Who waits for what was dropped does not any more; a task of another workflow waits until it is added anew.
    void let_go_of(graph_node const& old) {
        for (auto child : store_.children(old.id)) {
            if (child.dropped || !waits(child) || is_history(child)) continue;
            store_.unlink(old.id, child.id);
            count_parent(child.parents, old.state, -1);
            if (child.workflow == old.workflow)
                --child.parents.total;
            else
                await_member(old.workflow, store_.name(old.id), child.id);
            store_.put_parents(child);
            touched_.push_back(child);
        }
    }

    /// A row of the next generation, without parents yet. The old one is no part of its workflow's counts any more.
    task_id renew(graph_node const& old, ax::time_point now, ax::alarms& due) {
        graph_row row = old;
        row.parents = {};
        ++row.generation;
        auto state = old.state;
        if (!is_terminal(state)) {
            store_.enter(old.id, task_state::cancelled, now, "a later generation took its place", due);
            // Its workflow is told of that; its children are those of the new row.
            state = task_state::cancelled;
        }
        auto& whole = to_change(old.workflow);
        --whole.count(group_of(state));
        ++whole.count(member_group::waiting);
        auto const id = store_.copy(old.id, now);
        store_.set_up(id, row, store_.name(old.id));
        return id;
    }

    Store& store_;
    dependent<std::vector<step>, Store> queue_;
    dependent<std::vector<step>, Store> wave_;
    dependent<std::vector<below_step>, Store> below_;
    dependent<std::vector<node>, Store> touched_;
    dependent<std::vector<node>, Store> decided_;
    dependent<std::vector<task_id>, Store> paused_;
    dependent<std::vector<task_id>, Store> stopped_;
    dependent<std::vector<arrival>, Store> arrivals_;
    dependent<std::vector<loaded_workflow>, Store> workflows_; ///< as they will be written
};

} // namespace ax::detail

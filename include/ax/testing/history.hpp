// SPDX-License-Identifier: MIT
// The judge of a run: it is told what happened and looks at the store, and says which promise was broken. It knows the
// promises and nothing of how a scheduler keeps them.
#pragma once

#include "ax/observe/events.hpp"
#include "ax/storage/concept.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::testing {

/// Records what schedulers and their store do, and finds what must not happen:
///
///  1. A task whose submit was acknowledged is not lost.
///  2. No two attempts of one task live at once, and each has a larger fence than those before. Where a node was cut
///  off
///     and its tasks taken over, its attempts may still run; what they report is refused.
///  3. Versions and fences in the store never fall, and what has succeeded stays so.
///  4. No attempt starts before its task is due; none starts after the task has succeeded.
///  5. One nominal instant of a schedule gets at most one task.
///  6. No more tasks of a type or with a tag are in flight than their limit.
///  7. At most one task of a route key is in flight, and none overtakes one that could have gone and is before it.
///  8. Workflows end when their tasks have ended.
///  9. At the end: nothing is in flight, nothing that could run has stayed behind.
///
/// Threads: one at a time.
class history {
  public:
    void limit_type(std::string_view type, std::size_t concurrency) { type_limits_[std::string(type)] = concurrency; }
    void limit_tag(std::string_view tag, std::size_t concurrency) { tag_limits_[std::string(tag)] = concurrency; }

    /// The wall clock, which showed `from`, was set. What was due by then may start under an earlier one.
    void clock_was_set(time_point from) { peaks_.emplace_back(events_, from); }

    /// Something that belongs into the report: a step of the test, a fault.
    void note(time_point at, std::string text) {
        if (latest_.size() == kept_events) latest_.pop_front();
        latest_.push_back(std::to_string(at.time_since_epoch().count()) + "  " + std::move(text));
        ++events_;
    }

    /// What a caller was told of its submit.
    void acknowledged(std::span<insertion const> answers) {
        for (auto const& one : answers)
            if (!seen_.contains(one.id)) owed_.insert(one.id);
    }

    /// An event of a scheduler.
    /// @param node  Which one, where there are several.
    void record(event const& e, std::size_t node = 0) {
        auto const name = "task " + std::to_string(to_number(e.id));
        auto text = std::string(to_string(e.kind));
        if (e.id != task_id{}) text += ' ' + name + " fence " + std::to_string(to_number(e.attempt_id));
        if (e.outcome) text += std::string(" ") + to_string(*e.outcome);
        if (!e.error.empty()) text += ": " + std::string(e.error);
        note(e.at, std::move(text));
        if (e.kind == event_kind::picked_up) tasks_[e.id].picked_up = events_;
        if (e.kind == event_kind::dispatched) {
            if (taken_.contains({e.id, e.attempt_id})) return; // its node does not know yet
            auto& t = tasks_[e.id];
            if (t.live != fence_token{}) {
                if (t.node == node)
                    fault(name + " has two live attempts");
                else // whose outcome may be stored, its node not knowing: the store is asked
                    in_doubt_.emplace_back(e.id, t.live);
            }
            if (to_number(e.attempt_id) <= to_number(t.last_fence)) fault(name + " starts under an old fence");
            if (t.succeeded) fault(name + " starts after it has succeeded");
            if (e.lateness < duration{0} && !was_due(t.picked_up, e.at - e.lateness)) fault(name + " starts too early");
            t.live = t.last_fence = e.attempt_id;
            t.node = node;
            live_.insert(e.id);
        } else if (e.kind == event_kind::reported || e.kind == event_kind::refused) {
            bool const taken = taken_.erase({e.id, e.attempt_id}) != 0;
            auto& t = tasks_[e.id];
            if (t.live == e.attempt_id) {
                t.live = {};
                live_.erase(e.id);
            }
            if (e.kind == event_kind::refused) {
                if (!taken) fault(name + " was taken from its only owner");
                return;
            }
            if (taken) fault(name + " was reported by a node that had lost it");
            if (e.outcome == attempt_outcome::succeeded) t.succeeded = true;
        }
    }

    /// The process has ended: no attempt of that node lives any more.
    void process_ended(std::size_t node = 0) {
        std::erase_if(live_, [&](task_id id) {
            auto& t = tasks_[id];
            if (t.node != node) return false;
            t.live = {};
            return true;
        });
    }

    /// The node that had this attempt in flight was cut off for so long that its tasks go to others.
    void taken_over(task_id id, fence_token fence) {
        taken_.emplace(id, fence);
        auto& t = tasks_[id];
        if (t.live != fence) return;
        t.live = {};
        live_.erase(id);
    }

    /// Looks at the store, which may be looked at as often as one likes: after each step finds the most.
    template <storage Storage>
    void look(Storage const& store, time_point now) {
        judge_doubts(store);
        auto const rows = all_of(store, now, std::nullopt);
        std::map<std::string, std::vector<task_record const*>> routes;
        std::vector<task_record const*> active;
        for (auto const& row : rows) {
            look_at(row);
            if (!row.route_key.empty() && !is_terminal(row.state)) routes[row.route_key].push_back(&row);
            if (is_active(row.state)) active.push_back(&row);
        }
        judge_limits(active);
        for (auto const& [key, of_route] : routes) judge_route(key, of_route);
        for (auto const id : owed_)
            if (!seen_.contains(id)) fault("task " + std::to_string(to_number(id)) + " was acknowledged and is lost");
        owed_.clear();
        for (auto const& row : rows) before_[row.id] = brief(row);
    }

    /// Looks at what is in flight only: for stores in which there is much.
    template <storage Storage>
    void glance(Storage const& store, time_point now) {
        judge_doubts(store);
        std::vector<task_record> rows;
        for (auto const state : {task_state::dispatched, task_state::running})
            for (auto& row : all_of(store, now, state)) rows.push_back(std::move(row));
        std::vector<task_record const*> active;
        std::set<std::string> routes;
        for (auto const& row : rows) {
            look_at(row);
            active.push_back(&row);
            if (!row.route_key.empty() && !routes.insert(row.route_key).second)
                fault("two tasks of route \"" + row.route_key + "\" are in flight");
        }
        judge_limits(active);
    }

    /// Nothing more is to come: all that could end has ended.
    /// @param slack  What came due less than this ago may still wait.
    template <storage Storage>
    void finish(Storage const& store, time_point now, time_span slack) {
        look(store, now);
        std::set<std::string> paused;
        for (auto const& type : store.types())
            if (type.paused) paused.insert(type.name);
        for (auto const& row : all_of(store, now, std::nullopt)) {
            auto const name = "task " + std::to_string(to_number(row.id));
            if (is_active(row.state)) fault(name + " is still in flight");
            bool const kept_back = row.blocked || row.held || row.paused || row.set_aside || paused.contains(row.type);
            if (is_claimable(row.state) && !kept_back && row.run_at <= now - slack.value())
                fault(name + " is due and has not run");
            if (row.state == task_state::created && row.in_workflow) judge_workflow(store, row);
        }
    }

    /// Every task, too: for tests that wait for the last one.
    template <storage Storage>
    void finish_all(Storage const& store, time_point now) {
        finish(store, now, duration{0});
        for (auto const& row : all_of(store, now, std::nullopt))
            if (!is_terminal(row.state))
                fault("task " + std::to_string(to_number(row.id)) +
                      " has not ended: " + std::string(to_string(row.state)) + (row.blocked ? ", blocked" : "") +
                      (row.held ? ", held" : "") + (row.waits_for != limit_number{} ? ", waits for a limit" : ""));
    }

    /// A promise that the test itself finds broken.
    void fault(std::string what) {
        ++fault_count_;
        if (faults_.size() < 20) {
            note(time_point{}, "FAULT " + what);
            faults_.push_back(std::move(what));
        }
    }

    bool sound() const noexcept { return fault_count_ == 0; }
    std::vector<std::string> const& faults() const noexcept { return faults_; } ///< the first 20
    std::size_t events() const noexcept { return events_; }

    /// The faults, and the latest events before the end, one a line, by milliseconds since 1970.
    std::string report() const {
        std::string text;
        for (auto const& one : faults_) text += "fault: " + one + '\n';
        if (fault_count_ > faults_.size())
            text += "and " + std::to_string(fault_count_ - faults_.size()) + " faults more\n";
        for (auto const& one : latest_) text += one + '\n';
        return text;
    }

  private:
    static constexpr std::size_t kept_events = 100;

    struct known_task {
        fence_token live{};
        fence_token last_fence{};
        std::size_t node = 0;      ///< of the live one
        std::size_t picked_up = 0; ///< the number of that event
        bool succeeded = false;    ///< as reported
    };

    /// What of a row is compared with the next look.
    struct known_row {
        std::uint64_t version = 0;
        std::uint64_t fence = 0;
        task_state state{};
        bool could_go = false;
        time_point order_at{};
    };

    /// Whether the clock had come to that instant since an event.
    bool was_due(std::size_t since, time_point run_at) const {
        for (auto const& [when, showed] : peaks_)
            if (when >= since && showed >= run_at) return true;
        return false;
    }

    static known_row brief(task_record const& row) {
        return {row.version, to_number(row.fence), row.state,
                is_claimable(row.state) && !row.held && !row.set_aside && !row.paused, row.order_at};
    }

    template <storage Storage>
    static std::vector<task_record> all_of(Storage const& store, time_point now, std::optional<task_state> state) {
        task_filter all;
        all.state = state;
        all.limit = 1'000'000;
        return store.list(all, now);
    }

    void look_at(task_record const& row) {
        seen_.insert(row.id);
        auto const name = "task " + std::to_string(to_number(row.id));
        if (row.scheduled_at) {
            auto const [known, added] = occurrences_.try_emplace({row.schedule, *row.scheduled_at}, row.id);
            if (!added && known->second != row.id)
                fault("schedule \"" + row.schedule + "\" has two tasks for one instant: " +
                      std::to_string(to_number(known->second)) + " and " + std::to_string(to_number(row.id)));
        }
        auto const found = before_.find(row.id);
        if (found == before_.end()) return;
        auto const& old = found->second;
        if (row.version < old.version) fault(name + ": its version fell");
        if (to_number(row.fence) < old.fence) fault(name + ": its fence fell");
        if (row.version == old.version && (row.state != old.state || to_number(row.fence) != old.fence))
            fault(name + " has changed under one version");
        if (old.state == task_state::succeeded && row.state != task_state::succeeded)
            fault(name + " had succeeded and is " + std::string(to_string(row.state)));
    }

    /// Of attempts that lived when another node began the next one, as far as events told: their outcome was stored.
    template <storage Storage>
    void judge_doubts(Storage const& store) {
        for (auto const& [id, fence] : std::exchange(in_doubt_, {})) {
            bool ended = false;
            for (auto const& attempt : store.history(id))
                if (attempt.id == fence) ended = attempt.outcome && *attempt.outcome != attempt_outcome::crashed;
            if (!ended) fault("task " + std::to_string(to_number(id)) + " has two live attempts");
        }
    }

    void judge_limits(std::vector<task_record const*> const& active) {
        std::map<std::string, std::size_t> types;
        std::map<std::string, std::size_t> tags;
        for (auto const* row : active) {
            ++types[row->type];
            for (auto const& tag : row->tags) ++tags[tag];
        }
        auto const judge = [&](auto const& limits, auto const& counts, char const* what) {
            for (auto const& [name, most] : limits)
                if (auto const found = counts.find(name); found != counts.end() && found->second > most)
                    fault(std::to_string(found->second) + " tasks are in flight " + what + " \"" + name + "\", and " +
                          std::to_string(most) + " may be");
        };
        judge(type_limits_, types, "of type");
        judge(tag_limits_, tags, "with tag");
    }

    void judge_route(std::string const& key, std::vector<task_record const*> const& rows) {
        task_record const* flying = nullptr;
        for (auto const* row : rows) {
            if (!is_active(row->state)) continue;
            if (flying != nullptr) return fault("two tasks of route \"" + key + "\" are in flight");
            flying = row;
        }
        if (flying == nullptr) return;
        auto const known = before_.find(flying->id);
        if (known != before_.end() && known->second.fence == to_number(flying->fence)) return; // judged before
        for (auto const* row : rows) {
            auto const old = before_.find(row->id);
            if (row == flying || old == before_.end() || !old->second.could_go || !brief(*row).could_go ||
                old->second.version != row->version)
                continue;
            if (std::pair{row->order_at, row->id} < std::pair{flying->order_at, flying->id})
                fault("task " + std::to_string(to_number(flying->id)) + " has overtaken task " +
                      std::to_string(to_number(row->id)) + " of route \"" + key + '"');
        }
    }

    template <storage Storage>
    void judge_workflow(Storage const& store, task_record const& row) {
        auto const whole = store.workflow(row.id);
        if (!whole || whole->head != row.id || is_terminal(whole->state)) return;
        for (auto const& member : store.members(row.id, {}, 1'000'000)) {
            auto const task = store.find(member.id);
            if (task && !is_terminal(task->state)) return;
        }
        fault("workflow " + std::to_string(to_number(row.id)) + " has not ended, and all of its tasks have");
    }

    std::vector<std::pair<std::size_t, time_point>> peaks_; ///< behind which event, and from when, the clock was set
    std::map<std::string, std::size_t> type_limits_;
    std::map<std::string, std::size_t> tag_limits_;
    std::map<task_id, known_task> tasks_;
    std::set<task_id> live_;
    std::set<std::pair<task_id, fence_token>> taken_;       ///< from nodes that were cut off
    std::vector<std::pair<task_id, fence_token>> in_doubt_; ///< whether they live, until the next look
    std::set<task_id> seen_;
    std::set<task_id> owed_; ///< acknowledged since the latest look
    std::map<task_id, known_row> before_;
    std::map<std::pair<std::string, time_point>, task_id> occurrences_;
    std::deque<std::string> latest_;
    std::vector<std::string> faults_;
    std::size_t fault_count_ = 0;
    std::size_t events_ = 0;
};

} // namespace ax::testing

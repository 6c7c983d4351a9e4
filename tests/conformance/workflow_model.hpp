// SPDX-License-Identifier: MIT
// Workflows against a model that knows nothing of how they are kept: after each step it says anew of every waiting task
// what its rule says of its parents, from the definition and all the way up. Random graphs, outcomes, crashes, and all
// that people do to a workflow.
#pragma once

#include "conformance/workflows.hpp"

#include <deque>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace conformance {

template <class Fixture>
class workflow_life {
  public:
    explicit workflow_life(std::uint32_t seed) : random_(seed) {
        weave("first", 2 + below(11));
        weave("second", 2 + below(6));
        check();
    }

    void live(int steps) {
        for (int i = 0; i != steps; ++i) {
            now_ += ax::duration{static_cast<std::int64_t>(below(5))};
            step();
            evaluate();
            check();
        }
    }

    /// Nothing is done by hand any more but what a wait without an end needs: every workflow ends.
    void end() {
        for (auto const& each : workflows_) pause(each.first, false);
        for (int rounds = 0;; ++rounds) {
            REQUIRE(rounds < 500);
            for (auto const* key : {"x", "y"})
                if (!keys_.contains(key)) arrive(key);
            for (auto const* schedule : {"a", "b"}) leave_out(schedule);
            evaluate();
            check();
            std::vector<std::size_t> flying = in_flight();
            if (!flying.empty()) {
                finish(flying, false);
            } else if (auto const ready = takeable(); !ready.empty()) {
                for (auto const at : ready) take(at);
            } else {
                now_ += 1h;
                expire();
                if (claimable().empty() && !cancel_open_wait()) break;
            }
            evaluate();
            check();
        }
        for (auto const& [id, whole] : workflows_) {
            CAPTURE(id);
            CHECK(ax::is_terminal(rows_[whole.head].state));
        }
        prune();
    }

    /// All that has ended goes, a little at a time, and leaves nothing.
    void prune() {
        for (auto const type : {w.whole, w.probe}) {
            ax::prune_terms terms;
            terms.type = type;
            terms.keep = 0;
            for (bool more = true; more;) {
                auto const part = w.write([&](auto& verbs) { return verbs.prune(terms, 1 + below(7)); });
                terms.after = part.after;
                more = part.more;
                CHECK(w.store.verify().empty());
            }
        }
        CHECK(w.store.counts().empty());
    }

    std::size_t came_back = 0; ///< how often an ended state was taken back by a rule
    std::size_t renewed = 0;   ///< generations
    std::size_t dropped = 0;   ///< tasks that were added, and whose adder was rerun
    std::size_t refused = 0;
    std::size_t left_out = 0; ///< waits for what did not come

  private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    struct row {
        ax::task_id id{};
        ax::task_id workflow{}; ///< 0: of none
        std::string name;
        std::uint32_t generation = 1;
        ax::member_kind kind = ax::member_kind::task;
        ax::trigger_rule when = ax::trigger_rule::all_success;
        std::set<std::size_t> parents;
        std::optional<ax::awaited_task> until;                      ///< not there yet
        std::optional<std::pair<ax::task_id, std::string>> missing; ///< it was, but not this member of that workflow
        bool left_out = false;                                      ///< it does not come any more
        std::size_t added_by = none;
        bool dropped = false;
        bool waits = false; ///< its state is what its rule says
        task_state state = task_state::created;
        bool latest = true;
        bool stop_asked = false;
        std::optional<ax::time_point> deadline;
        ax::task_record claimed;
    };
    struct standing {
        std::string key;
        std::size_t head = none;
        bool paused = false;
        bool stopping = false;
    };

    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <class T>
    T const& any(std::vector<T> const& all) {
        return all[below(all.size())];
    }

    // ---- the model -------------------------------------------------------------------------------------------------

    bool is_member(row const& one) const {
        return one.workflow != ax::task_id{} && one.kind != ax::member_kind::workflow;
    }

    /// From the definition, all the way up.
    task_state state_of(std::size_t at, std::map<std::size_t, task_state>& known) const {
        auto const& one = rows_[at];
        if (!one.waits) return one.state;
        if (auto const found = known.find(at); found != known.end()) return found->second;
        ax::parent_counts counts;
        counts.total =
            static_cast<std::uint32_t>(one.parents.size() + (one.until || one.missing || one.left_out ? 1U : 0U));
        counts.skipped = one.left_out ? 1 : 0;
        for (auto const parent : one.parents) {
            switch (state_of(parent, known)) {
            case task_state::succeeded: ++counts.succeeded; break;
            case task_state::dead:
            case task_state::cancelled: ++counts.failed; break;
            case task_state::skipped: ++counts.skipped; break;
            case task_state::upstream_failed: ++counts.upstream_failed; break;
            default: break;
            }
        }
        auto answer = task_state::created;
        switch (ax::decide(one.when, counts)) {
        case ax::trigger_decision::wait: break;
        case ax::trigger_decision::run:
            answer = one.kind == ax::member_kind::wait ? task_state::succeeded : task_state::ready;
            break;
        case ax::trigger_decision::skip: answer = task_state::skipped; break;
        case ax::trigger_decision::upstream_failed: answer = task_state::upstream_failed; break;
        }
        if (!ax::is_terminal(answer) && workflows_.at(one.workflow).stopping)
            answer = task_state::created; // see evaluate()
        known[at] = answer;
        return answer;
    }

    void forget_passed_deadline(row& one) {
        if (one.deadline && *one.deadline <= now_) one.deadline.reset();
    }

    void evaluate() {
        for (bool again = true; again;) {
            again = false;
            std::map<std::size_t, task_state> known;
            for (std::size_t i = 0; i != rows_.size(); ++i) state_of(i, known);
            for (auto const& [at, state] : known) {
                auto& one = rows_[at];
                if (one.state == state) continue;
                if (ax::is_terminal(one.state)) {
                    forget_passed_deadline(one);
                    ++came_back;
                }
                one.state = state;
                one.waits = state == task_state::created || state == task_state::skipped ||
                            state == task_state::upstream_failed;
                again = true;
            }
            if (again) continue;
            for (auto& one : rows_) // nothing starts any more, and what has come back is cancelled like the rest
                if (one.waits && one.state == task_state::created && workflows_.at(one.workflow).stopping) {
                    one.state = task_state::cancelled;
                    one.waits = false;
                    again = true;
                }
            if (again) continue;
            for (auto& [id, whole] : workflows_) {
                auto& head = rows_[whole.head];
                std::size_t unfinished = 0;
                bool failed = false;
                for (std::size_t i = 0; i != rows_.size(); ++i) {
                    auto const& one = rows_[i];
                    if (one.workflow != id || !one.latest || !is_member(one)) continue;
                    if (!ax::is_terminal(one.state)) ++unfinished;
                    bool leaf = true;
                    for (auto const& other : rows_)
                        if (other.workflow == id && other.parents.contains(i)) leaf = false;
                    if (leaf && one.state != task_state::succeeded && one.state != task_state::skipped) failed = true;
                }
                auto const before = head.state;
                if (unfinished == 0 && head.state == task_state::created)
                    head.state = whole.stopping ? task_state::cancelled
                                 : failed       ? task_state::upstream_failed
                                                : task_state::succeeded;
                else if (unfinished != 0 && !whole.stopping && ax::is_terminal(head.state) &&
                         head.state != task_state::succeeded) {
                    head.state = task_state::created;
                    forget_passed_deadline(head);
                }
                again = again || before != head.state;
            }
        }
    }

    std::optional<std::size_t> latest(ax::task_id workflow, std::string const& name) const {
        for (std::size_t i = 0; i != rows_.size(); ++i)
            if (rows_[i].workflow == workflow && rows_[i].name == name && rows_[i].latest && is_member(rows_[i]))
                return i;
        return std::nullopt;
    }

    /// Ties what waits for this key to who has it.
    void tie(row& one) {
        if (!one.until || !keys_.contains(one.until->key)) return;
        auto const there = keys_.at(one.until->key);
        auto const name = one.until->name;
        one.until.reset();
        if (name.empty()) {
            one.parents.insert(there);
        } else if (auto const member = latest(rows_[there].id, name)) {
            one.parents.insert(*member);
        } else {
            one.missing.emplace(rows_[there].id, name);
        }
    }

    /// What waits for a task that its workflow did not have, or has not any more.
    void tie_missing() {
        for (auto& one : rows_) {
            auto const member = one.missing ? latest(one.missing->first, one.missing->second) : std::nullopt;
            if (!member) continue;
            one.missing.reset();
            one.parents.insert(*member);
        }
    }

    bool was_added_by(std::size_t at, std::set<std::size_t> const& which) const {
        for (auto by = rows_[at].added_by; by != none; by = rows_[by].added_by)
            if (which.contains(by)) return true;
        return false;
    }

    void stop(ax::task_id workflow) {
        workflows_.at(workflow).stopping = true;
        for (auto& one : rows_) {
            if (one.workflow != workflow || !is_member(one) || !one.latest || ax::is_terminal(one.state)) continue;
            if (ax::is_active(one.state)) {
                one.stop_asked = true;
            } else {
                one.state = task_state::cancelled;
                one.waits = false;
            }
        }
    }

    std::vector<std::size_t> where(auto&& wanted) const {
        std::vector<std::size_t> answer;
        for (std::size_t i = 0; i != rows_.size(); ++i)
            if (wanted(rows_[i])) answer.push_back(i);
        return answer;
    }
    bool is_paused(row const& one) const { return is_member(one) && workflows_.at(one.workflow).paused; }
    std::vector<std::size_t> claimable() const {
        return where([&](row const& one) {
            return (one.state == task_state::ready || one.state == task_state::failed) && !is_paused(one);
        });
    }
    /// Those of them that are not late.
    std::vector<std::size_t> takeable() const {
        auto answer = claimable();
        std::erase_if(answer, [&](std::size_t at) { return rows_[at].deadline && *rows_[at].deadline <= now_; });
        return answer;
    }
    std::vector<std::size_t> in_flight() const {
        return where([](row const& one) { return ax::is_active(one.state); });
    }

    // ---- what happens ----------------------------------------------------------------------------------------------

    /// @param elsewhere  It may wait for what becomes of the workflow "first": it is in another.
    ax::new_member some_member(std::string name, std::vector<std::uint32_t> after, bool elsewhere) {
        auto const rule = one_in(2) ? ax::trigger_rule::all_success : ax::all_trigger_rules[below(12)];
        auto made = w.node(std::move(name), std::move(after), rule);
        if (one_in(6)) {
            made.task.type = w.pause_type;
            ax::awaited_task until;
            until.key = elsewhere && one_in(2) ? "first" : one_in(2) ? "x" : "y";
            if (until.key == "first" && one_in(2)) {
                until.name = "t" + std::to_string(below(6));
                if (one_in(2)) until.name += ".0";
            } else if (one_in(3)) {
                until.key.clear();
                until.schedule = one_in(2) ? "a" : "b";
                until.scheduled_at = t0 + ax::duration{static_cast<std::int64_t>(below(3))};
            }
            made.until = until;
            if (one_in(2)) made.when = ax::trigger_rule::all_success;
        }
        if (one_in(10)) made.task.deadline = now_ + ax::duration{static_cast<std::int64_t>(below(400))};
        return made;
    }

    row row_of(ax::new_member const& made, ax::task_id workflow) const {
        row one;
        one.workflow = workflow;
        one.name = made.name;
        one.when = made.when;
        one.waits = true;
        one.deadline = made.task.deadline;
        if (made.until) {
            one.kind = ax::member_kind::wait;
            one.until = made.until;
        }
        return one;
    }

    void weave(std::string const& key, std::size_t size) {
        // In an order of their own, so that a parent may stand behind its child.
        std::vector<std::uint32_t> order(size);
        for (std::uint32_t i = 0; i != size; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random_);
        std::vector<ax::new_member> members(size);
        auto const density = 2 + below(4);
        for (std::size_t i = 0; i != size; ++i) {
            std::vector<std::uint32_t> after;
            for (std::size_t j = 0; j != i; ++j)
                if (one_in(density)) after.push_back(order[j]);
            members[order[i]] = some_member("t" + std::to_string(i), after, key != "first");
        }
        auto wanted = w.graph(members, key);
        if (one_in(4)) wanted.deadline = now_ + ax::duration{static_cast<std::int64_t>(below(2'000))};
        auto const id = w.put(wanted, now_).id;
        row head;
        head.id = id;
        head.workflow = id;
        head.kind = ax::member_kind::workflow;
        head.deadline = wanted.deadline;
        workflows_[id] = {key, rows_.size(), false, false};
        keys_[key] = rows_.size();
        rows_.push_back(head);
        auto const first = rows_.size();
        for (auto const& each : members) {
            rows_.push_back(row_of(each, id));
            for (auto const parent : each.after) rows_.back().parents.insert(first + parent);
        }
        for (auto& one : rows_) tie(one);
        evaluate();
    }

    void arrive(std::string const& key) {
        auto made = w.task();
        made.key = key;
        row one;
        one.id = w.add(made, now_);
        one.state = task_state::ready;
        trail_ += "arrives " + key + "; ";
        keys_[key] = rows_.size();
        rows_.push_back(one);
        for (auto& each : rows_) tie(each);
    }

    void take(std::size_t at) {
        auto& one = rows_[at];
        auto const answer = w.claim({{one.id, false}}, {node_a, now_, now_ + 24h, 10});
        REQUIRE(answer.claimed.size() == 1);
        one.claimed = answer.claimed.front();
        one.state = task_state::dispatched;
        if (one_in(2)) {
            w.start(one.claimed, now_);
            one.state = task_state::running;
        }
    }

    void finish(std::vector<std::size_t> const& which, bool randomly) {
        std::vector<ax::attempt_end> ends;
        for (auto const at : which) {
            auto& one = rows_[at];
            note("end", at);
            static constexpr attempt_outcome outcomes[] = {attempt_outcome::succeeded, attempt_outcome::succeeded,
                                                           attempt_outcome::succeeded, attempt_outcome::failed,
                                                           attempt_outcome::exhausted, attempt_outcome::exhausted,
                                                           attempt_outcome::skipped,   attempt_outcome::cancelled,
                                                           attempt_outcome::snoozed,   attempt_outcome::released};
            auto const outcome = randomly ? outcomes[below(10)] : attempt_outcome::succeeded;
            trail_ += std::string(to_string(outcome)) + "; ";
            ends.push_back(w.end_of(one.claimed, outcome, now_));
            if (outcome == attempt_outcome::succeeded && is_member(one) && randomly && one_in(4)) grow(at, ends.back());
            switch (outcome) {
            case attempt_outcome::succeeded: one.state = task_state::succeeded; break;
            case attempt_outcome::failed: one.state = task_state::failed; break;
            case attempt_outcome::exhausted: one.state = task_state::dead; break;
            case attempt_outcome::skipped: one.state = task_state::skipped; break;
            case attempt_outcome::cancelled: one.state = task_state::cancelled; break;
            default: one.state = task_state::ready; break;
            }
            come_back(one);
        }
        settled_ = w.settle(ends, now_);
        REQUIRE(settled_.accepted == std::vector<bool>(ends.size(), true));
    }

    void come_back(row& one) {
        if (one.stop_asked && !ax::is_terminal(one.state)) one.state = task_state::cancelled;
        one.stop_asked = false;
    }

    /// The ended attempt adds tasks.
    void grow(std::size_t by, ax::attempt_end& end) {
        auto const workflow = rows_[by].workflow;
        auto const size = 1 + below(3);
        std::vector<std::size_t> waiting = where([&](row const& one) {
            return one.workflow == workflow && one.waits && one.latest && one.parents.contains(by);
        });
        auto const first = rows_.size();
        std::set<std::size_t> leaves;
        note("grows", by);
        for (std::size_t i = 0; i != size; ++i) {
            std::vector<std::uint32_t> after;
            for (std::uint32_t j = 0; j != i; ++j)
                if (one_in(2)) after.push_back(j);
            end.members.push_back(
                some_member(rows_[by].name + "." + std::to_string(i), after, workflows_.at(workflow).key != "first"));
            auto one = row_of(end.members.back(), workflow);
            one.added_by = by;
            for (auto const& before : rows_) // what an earlier run has added
                if (before.workflow == workflow && before.name == one.name) ++one.generation;
            for (auto const parent : after) {
                one.parents.insert(first + parent);
                leaves.erase(first + parent);
            }
            if (after.empty()) one.parents.insert(by);
            leaves.insert(rows_.size());
            if (workflows_.at(workflow).stopping) {
                one.waits = false;
                one.state = task_state::cancelled;
            }
            rows_.push_back(one);
        }
        for (auto i = first; i != rows_.size(); ++i) tie(rows_[i]);
        tie_missing();
        for (auto const at : waiting) rows_[at].parents.insert(leaves.begin(), leaves.end());
    }

    void expire() {
        evaluate(); // what time has come to does not matter for what was decided before
        for (;;) {
            auto late = none;
            for (std::size_t i = 0; i != rows_.size(); ++i) {
                auto const& one = rows_[i];
                if (!one.deadline || *one.deadline > now_ || ax::is_terminal(one.state) || ax::is_active(one.state))
                    continue;
                if (late == none || std::pair(*one.deadline, one.id) < std::pair(*rows_[late].deadline, rows_[late].id))
                    late = i;
            }
            if (late == none) break;
            note("late", late);
            rows_[late].state = task_state::dead;
            rows_[late].waits = false;
            if (rows_[late].kind == ax::member_kind::workflow) stop(rows_[late].workflow);
            evaluate();
        }
        w.expire(now_);
    }

    void pause(ax::task_id workflow, bool yes) {
        auto const head = rows_[workflows_.at(workflow).head].id;
        CHECK(w.write([&](auto& verbs) { return verbs.pause_workflow(head, yes, now_); }).outcome ==
              change_outcome::done);
        workflows_.at(workflow).paused = yes;
    }

    /// A head of an earlier generation stands for the latest.
    std::size_t head_of(std::size_t at) const {
        auto const& one = rows_[at];
        return one.kind == ax::member_kind::workflow ? workflows_.at(one.workflow).head : at;
    }

    void cancel(std::size_t at) {
        note("cancel", at);
        auto const said = rows_[at].id;
        auto& one = rows_[head_of(at)];
        bool const waits = one.state == task_state::created || ax::is_claimable(one.state);
        agree(w.cancel(said, now_), waits);
        if (!waits) return;
        if (one.kind == ax::member_kind::workflow) return stop(one.workflow);
        one.state = task_state::cancelled;
        one.waits = false;
    }

    /// No occurrence of this schedule comes any more: there is none.
    void leave_out(std::string const& schedule) {
        trail_ += "leave out " + schedule + "; ";
        w.write([&](auto& verbs) {
            verbs.end_waits(schedule, true, now_, w.due);
            return true;
        });
        for (auto& one : rows_) {
            if (!one.until || one.until->schedule != schedule) continue;
            one.until.reset();
            one.left_out = true;
            ++left_out;
        }
    }

    bool cancel_open_wait() {
        auto const open =
            where([](row const& one) { return one.state == task_state::created && (one.until || one.missing); });
        if (open.empty()) return false;
        cancel(open.front());
        return true;
    }

    void retry_row(row& one) {
        forget_passed_deadline(one);
        one.state = is_member(one) ? task_state::created : task_state::ready;
        one.waits = is_member(one);
        if (is_member(one)) workflows_.at(one.workflow).stopping = false;
    }

    void retry(std::size_t at) {
        note("retry", at);
        auto const said = rows_[at].id;
        auto& one = rows_[head_of(at)];
        bool const failed = one.state == task_state::dead || one.state == task_state::cancelled;
        bool allowed = failed && one.latest;
        if (one.kind == ax::member_kind::workflow) {
            auto const members = where([&](row const& each) {
                return is_member(each) && each.workflow == one.workflow && each.latest &&
                       (each.state == task_state::dead || each.state == task_state::cancelled);
            });
            allowed =
                one.latest && ax::is_terminal(one.state) && one.state != task_state::succeeded && !members.empty();
            agree(w.retry(said, now_), allowed);
            if (allowed)
                for (auto const each : members) retry_row(rows_[each]);
            return;
        }
        agree(w.retry(one.id, now_), allowed);
        if (allowed) retry_row(one);
    }

    void mark(std::size_t at) {
        note("mark", at);
        auto& one = rows_[at];
        bool const allowed = one.state == task_state::dead && one.latest && one.kind != ax::member_kind::workflow;
        agree(w.write([&](auto& verbs) { return verbs.mark_succeeded(one.id, now_); }), allowed);
        if (allowed) one.state = task_state::succeeded;
    }

    /// The members whose state is their handler's, or a person's, that go into a new generation with `at`.
    std::set<std::size_t> with_below(std::size_t at, ax::rerun_scope scope, bool& busy) const {
        std::set<std::size_t> seen{at};
        std::set<std::size_t> answer{at};
        std::vector<std::size_t> open{at};
        while (!open.empty()) {
            auto const parent = open.back();
            open.pop_back();
            for (std::size_t i = 0; i != rows_.size(); ++i) {
                auto const& one = rows_[i];
                if (one.workflow != rows_[at].workflow || !is_member(one) || !one.latest ||
                    !one.parents.contains(parent) || seen.contains(i) || was_added_by(i, answer))
                    continue;
                bool const ended = ax::is_terminal(one.state) && !one.waits;
                if (ended && scope == ax::rerun_scope::unfinished) continue;
                seen.insert(i);
                open.push_back(i);
                if (ax::is_active(one.state)) busy = true;
                if (!one.waits) answer.insert(i);
            }
        }
        for (std::size_t i = 0; i != rows_.size(); ++i)
            if (!rows_[i].dropped && was_added_by(i, answer) && ax::is_active(rows_[i].state)) busy = true;
        return answer;
    }

    void rerun(std::size_t at, ax::rerun_scope scope) {
        note("rerun", at);
        bool allowed = is_member(rows_[at]) && ax::is_terminal(rows_[at].state) && rows_[at].latest;
        std::set<std::size_t> which;
        if (allowed) {
            bool busy = false;
            which = with_below(at, scope, busy);
            allowed = !busy;
        }
        auto const id = rows_[at].id;
        auto const answer = w.write([&](auto& verbs) { return verbs.rerun(id, scope, now_); });
        if (rows_[at].workflow == ax::task_id{})
            CHECK(answer.outcome == change_outcome::unknown);
        else
            agree(answer, allowed);
        if (!allowed) return;
        std::map<std::size_t, std::size_t> fresh;
        for (auto const old : which) {
            auto made = rows_[old];
            ++made.generation;
            made.id = {};
            made.state = task_state::created;
            made.waits = true;
            forget_passed_deadline(made);
            fresh[old] = rows_.size();
            rows_.push_back(made);
            auto& before = rows_[old];
            before.latest = before.waits = false;
            before.until.reset(); // the new one waits in its stead
            before.missing.reset();
            if (!ax::is_terminal(before.state)) before.state = task_state::cancelled;
            ++renewed;
        }
        for (std::size_t i = 0; i != rows_.size(); ++i) {
            auto& one = rows_[i];
            if (one.dropped || !was_added_by(i, which)) continue;
            one.dropped = true;
            one.latest = one.waits = false;
            one.until.reset();
            one.missing.reset();
            if (!ax::is_terminal(one.state)) one.state = task_state::cancelled;
            ++dropped;
        }
        for (auto& one : rows_) {
            if (!one.waits) continue;
            bool const is_fresh =
                std::any_of(fresh.begin(), fresh.end(), [&](auto const& each) { return &rows_[each.second] == &one; });
            std::set<std::size_t> parents;
            for (auto const parent : one.parents) {
                auto const& seen = rows_[parent];
                if (fresh.contains(parent)) {
                    parents.insert(fresh[parent]);
                } else if (one.workflow == seen.workflow &&
                           ((is_fresh && !seen.latest) || was_added_by(parent, which))) {
                    if (auto const now = latest(seen.workflow, seen.name)) parents.insert(*now);
                } else if (was_added_by(parent, which)) {
                    one.missing.emplace(seen.workflow, seen.name);
                } else {
                    parents.insert(parent);
                }
            }
            one.parents = parents;
        }
        auto& whole = workflows_.at(rows_[at].workflow);
        whole.stopping = false;
        if (rows_[whole.head].state == task_state::succeeded) {
            auto head = rows_[whole.head];
            rows_[whole.head].latest = false;
            ++head.generation;
            head.id = {};
            head.state = task_state::created;
            forget_passed_deadline(head);
            whole.head = rows_.size();
            rows_.push_back(head);
        }
    }

    /// What a failed check shows of how it came about.
    void note(std::string const& what, std::size_t at) {
        auto const& one = rows_[at];
        trail_ += what + " " + std::to_string(ax::to_number(one.workflow)) + "/" + one.name + "; ";
        if (trail_.size() > 400) trail_.erase(0, trail_.size() - 400);
    }

    void agree(ax::change const& answer, bool allowed) {
        CHECK(answer.outcome == (allowed ? change_outcome::done : change_outcome::wrong_state));
        refused += !allowed;
    }

    std::size_t any_row() { return below(rows_.size()); }
    /// Mostly one for which there is something to do.
    std::size_t any_row(auto&& wanted) {
        auto const found = where(wanted);
        return found.empty() || one_in(8) ? any_row() : any(found);
    }

    void step() {
        auto const failed = [](row const& one) {
            return one.latest && (one.state == task_state::dead || one.state == task_state::cancelled);
        };
        auto const what = below(100);
        if (what < 40) {
            auto const ready = takeable();
            if (!ready.empty()) take(any(ready));
        } else if (what < 65) {
            auto flying = in_flight();
            if (flying.empty()) return;
            std::shuffle(flying.begin(), flying.end(), random_);
            flying.resize(1 + below((std::min)(flying.size(), std::size_t{3})));
            finish(flying, true);
        } else if (what < 70) {
            w.reclaim(now_, node_b, 1'000'000);
            for (auto const at : in_flight()) {
                rows_[at].state = task_state::ready;
                come_back(rows_[at]);
            }
        } else if (what < 74) {
            cancel(any_row([&](row const& one) { return is_member(one) && !ax::is_terminal(one.state); }));
        } else if (what < 76) {
            cancel(any_row([](row const& one) { return one.kind == ax::member_kind::workflow; }));
        } else if (what < 81) {
            retry(any_row(failed));
        } else if (what < 84) {
            retry(any_row([](row const& one) { return one.kind == ax::member_kind::workflow && one.latest; }));
        } else if (what < 87) {
            mark(any_row([](row const& one) { return one.state == task_state::dead; }));
        } else if (what < 92) {
            auto const scope = one_in(2) ? ax::rerun_scope::all : ax::rerun_scope::unfinished;
            rerun(any_row([](row const& one) { return one.latest && ax::is_terminal(one.state); }), scope);
        } else if (what < 95) {
            auto const at = std::next(workflows_.begin(), static_cast<std::ptrdiff_t>(below(workflows_.size())));
            pause(at->first, one_in(2));
        } else if (what < 97) {
            now_ += ax::duration{static_cast<std::int64_t>(below(150))};
            expire();
        } else if (what < 99) {
            for (auto const* key : {"x", "y"})
                if (!keys_.contains(key) && one_in(2)) arrive(key);
            leave_out(one_in(2) ? "a" : "b");
        } else {
            restart();
        }
    }

    void restart() {
        if constexpr (Fixture::durable) w.store = w.fixture.reopen(std::move(w.store));
    }

    // ---- the comparison --------------------------------------------------------------------------------------------

    void check() {
        CAPTURE(trail_);
        std::vector<ax::task_id> expected_due;
        for (auto const& standing_of : workflows_) {
            auto const id = standing_of.first;
            auto const& whole = standing_of.second;
            CAPTURE(id);
            auto const record = w.store.workflow(id);
            REQUIRE(record);
            if (rows_[whole.head].id == ax::task_id{}) rows_[whole.head].id = record->head;
            REQUIRE(rows_[whole.head].id == record->head);
            CHECK(record->state == rows_[whole.head].state);
            CHECK(record->paused == whole.paused);
            CHECK(record->stopping == (whole.stopping && record->unfinished() > 0));
            auto const members = w.store.members(id, {}, 10'000);
            for (auto const& each : members) {
                auto const found = where([&](row const& one) {
                    return is_member(one) && one.workflow == id && one.name == each.name &&
                           one.generation == each.generation;
                });
                CAPTURE(each.name, each.generation);
                REQUIRE(found.size() == 1);
                auto& one = rows_[found.front()];
                if (one.id == ax::task_id{}) one.id = each.id;
                REQUIRE(one.id == each.id);
            }
            CHECK(static_cast<std::ptrdiff_t>(members.size()) ==
                  std::count_if(rows_.begin(), rows_.end(),
                                [&](row const& one) { return is_member(one) && one.workflow == id; }));
            for (auto const& each : members) {
                CAPTURE(each.name, each.generation);
                auto const& one =
                    *std::find_if(rows_.begin(), rows_.end(), [&](row const& any) { return any.id == each.id; });
                REQUIRE(each.state == one.state);
                CHECK(each.kind == one.kind);
                CHECK(each.outdated == !one.latest);
                CHECK(each.added_by == (one.added_by == none ? ax::task_id{} : rows_[one.added_by].id));
                std::set<ax::task_id> parents;
                for (auto const parent : one.parents) parents.insert(rows_[parent].id);
                CHECK(std::set<ax::task_id>(each.parents.begin(), each.parents.end()) == parents);
                if (ax::is_claimable(one.state)) CHECK(w.get(one.id).paused == whole.paused);
                CHECK(each.until.has_value() == (one.until || one.missing));
                if (each.until && one.until) CHECK(each.until->scheduled_at == one.until->scheduled_at);
            }
            CHECK(counts_are_true(w.store, id));
        }
        for (auto const& one : rows_)
            if (one.workflow == ax::task_id{}) CHECK(w.state(one.id) == one.state);
        for (auto const at : claimable()) expected_due.push_back(rows_[at].id);
        auto due = w.upcoming();
        std::sort(due.begin(), due.end());
        std::sort(expected_due.begin(), expected_due.end());
        CHECK(due == expected_due);
        CHECK(w.store.verify().empty());
    }

    loom<Fixture> w;
    std::mt19937 random_;
    ax::time_point now_ = t0;
    std::deque<row> rows_; // a reference stays good where one is added
    std::map<ax::task_id, standing> workflows_;
    std::map<std::string, std::size_t> keys_;
    std::string trail_;
    ax::settlement settled_;
};

template <class Fixture>
void workflow_lives(std::uint32_t seeds, int steps) {
    std::size_t came_back = 0;
    std::size_t renewed = 0;
    std::size_t dropped = 0;
    std::size_t refused = 0;
    std::size_t left_out = 0;
    for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
        CAPTURE(seed);
        workflow_life<Fixture> life(seed);
        life.live(steps);
        life.end();
        came_back += life.came_back;
        renewed += life.renewed;
        dropped += life.dropped;
        refused += life.refused;
        left_out += life.left_out;
    }
    CHECK(came_back > seeds); // else this would prove little
    CHECK(renewed > seeds);
    CHECK(dropped > seeds / 8);
    CHECK(refused > seeds);
    CHECK(left_out > seeds / 4);
}

} // namespace conformance

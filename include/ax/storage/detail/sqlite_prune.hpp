// SPDX-License-Identifier: MIT
// How ended tasks are removed. There is no index for it: ids rise with time, so the index of states has the tasks of
// each lane and state in the order of their creation, and a walk along it comes to the first one that is too young and
// ends. What lies on the way and stays (it ended long after it was made) is passed over once a walk, since the caller
// keeps the place. A workflow goes as a whole when its head does, its tasks first, which by themselves stay: they are
// of types of their own, and would lie about without the rest.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/graph_rules.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_counts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ax::detail {

/// One call of prune(). `Session` has connection(), counts() and flush().
template <class Session>
class sqlite_pruner {
    using time_point = dependent<ax::time_point, Session>;
    using task_id = dependent<ax::task_id, Session>;
    using lane_id = dependent<ax::lane_id, Session>;
    using task_state = dependent<ax::task_state, Session>;

  public:
    sqlite_pruner(Session& session, prune_terms const& terms, std::size_t limit)
        : session_(session), sql_(session.connection()), terms_(terms), limit_(limit) {}

    prune_answer operator()() {
        answer_.after = terms_.after;
        count_surplus();
        while (!over_ && look_at_page()) {
        }
        return answer_;
    }

  private:
    struct candidate {
        task_id id{};
        lane_id lane{};
        task_state state{};
        time_point created{};
        std::optional<time_point> finished;
        std::int64_t flags = 0;

        friend bool operator<(candidate const& a, candidate const& b) noexcept { return a.id < b.id; }
    };
    struct stream {
        sqlite_sql read;
        task_state state;
    };
    static constexpr stream streams[] = {{sqlite_sql::ended_succeeded, task_state::succeeded},
                                         {sqlite_sql::ended_dead, task_state::dead},
                                         {sqlite_sql::ended_cancelled, task_state::cancelled},
                                         {sqlite_sql::ended_skipped, task_state::skipped},
                                         {sqlite_sql::ended_upstream_failed, task_state::upstream_failed}};

    lane_id lane(std::size_t urgency) const { return make_lane(terms_.type, static_cast<priority_class>(urgency)); }

    static bool is_dead(task_state state) noexcept { return state == task_state::dead; }

    void count_surplus() {
        session_.flush();
        std::uint64_t members[2] = {0, 0};
        for (std::size_t i = 0; i != priority_classes; ++i) {
            sqlite_run row(sql_, sqlite_sql::counted_in_lane, {lane(i)});
            while (row.next()) {
                auto const state = task_state_of(row.number(0));
                auto const tasks = row.number(1);
                if (!state || !is_terminal(*state) || tasks <= 0) continue;
                if (row.number(2) < 0) { // tasks of workflows, of those that the lane itself counts
                    members[is_dead(*state)] += static_cast<std::uint64_t>(tasks);
                    continue;
                }
                surplus_[is_dead(*state)] += static_cast<std::uint64_t>(tasks);
                ++filled_;
            }
        }
        for (std::size_t i = 0; i != 2; ++i) {
            surplus_[i] -= (std::min)(surplus_[i], members[i]);
            surplus_[i] -= (std::min)(surplus_[i], std::uint64_t{terms_.keep});
        }
    }

    /// Every lane and state is a stream in the order of ids. A page of each is read and put together, as far as all of
    /// them are known.
    /// @return  False where that was the last.
    bool look_at_page() {
        auto const room = (std::min)(limit_ - answer_.pruned, terms_.look_at - answer_.looked_at);
        auto const size = static_cast<std::int64_t>((std::min)(room, std::size_t{1'000}) / (std::max)(filled_, 1U) + 8);
        constexpr auto all = task_id{static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max)())};
        auto known_to = all;
        page_.clear();
        for (std::size_t i = 0; i != priority_classes; ++i)
            for (auto const& from : streams) {
                std::int64_t left = size;
                sqlite_run row(sql_, from.read, {lane(i), answer_.after, size});
                for (; row.next(); --left)
                    page_.push_back(
                        {row.as<task_id>(0), lane(i), from.state, row.time(1), row.maybe_time(2), row.number(3)});
                if (left == 0) known_to = (std::min)(known_to, page_.back().id);
            }
        std::make_heap(page_.begin(), page_.end()); // as fast here as std::sort, and faster to compile
        std::sort_heap(page_.begin(), page_.end());
        for (auto const& each : page_) {
            if (each.id > known_to) break;
            look_at(each);
            if (over_) return false;
        }
        return known_to != all;
    }

    void look_at(candidate const& task) {
        auto const last = (std::max)(terms_.ended_by, terms_.dead_by);
        if (answer_.looked_at == terms_.look_at || answer_.pruned == limit_) {
            answer_.more = true;
            over_ = true;
            return;
        }
        if (task.created > last && task.created <= terms_.now && surplus_[0] == 0 && surplus_[1] == 0) {
            answer_.oldest_ended = (std::min)(answer_.oldest_ended, task.created);
            answer_.oldest_dead = (std::min)(answer_.oldest_dead, task.created);
            over_ = true;
            return;
        }
        ++answer_.looked_at;
        bool const is_head = (task.flags & flag_head) != 0;
        auto const before = std::exchange(answer_.after, task.id);
        if ((task.flags & flag_member) != 0 && !is_head) return; // goes with its workflow
        bool const dead = is_dead(task.state);
        bool const old = task.finished && *task.finished <= (dead ? terms_.dead_by : terms_.ended_by);
        if (!old && surplus_[dead] == 0) {
            auto& oldest = dead ? answer_.oldest_dead : answer_.oldest_ended;
            if (task.finished) oldest = (std::min)(oldest, *task.finished);
            return;
        }
        if (is_head) {
            if (!may_go(task.id)) return;
            if (!remove_members(task.id)) {
                answer_.after = before; // the next call goes on with it
                answer_.more = true;
                over_ = true;
                return;
            }
            sqlite_run(sql_, sqlite_sql::prune_row, {task.id}).finish();
            sqlite_run(sql_, sqlite_sql::drop_workflow, {whole_}).finish();
            forget_member(task.id);
        } else if (sqlite_run(sql_, sqlite_sql::prune_task, {task.id}).finish() == 0) {
            return; // the latest of a schedule
        }
        forget(task.id);
        if ((task.flags & flag_watched) != 0) sqlite_run(sql_, sqlite_sql::drop_edges_below, {task.id}).finish();
        session_.counts().add(task.lane, task.state, -1);
        ++answer_.pruned;
        if (surplus_[dead] != 0) --surplus_[dead];
    }

    /// Whatever else is kept of a task goes here.
    void forget(task_id id) {
        sqlite_run(sql_, sqlite_sql::prune_attempts, {id}).finish();
        sqlite_run(sql_, sqlite_sql::drop_steps, {id}).finish();
    }
    void forget_member(task_id id) {
        for (auto const what : {sqlite_sql::drop_member, sqlite_sql::drop_edges_below, sqlite_sql::drop_edges_above,
                                sqlite_sql::drop_awaits_of})
            sqlite_run(sql_, what, {id}).finish();
    }

    /// Whether all of its tasks have ended, and no schedule names it as its latest.
    bool may_go(task_id head) {
        {
            sqlite_run row(sql_, sqlite_sql::member, {head});
            whole_ = row.next() ? row.as<task_id>(6) : head;
        }
        {
            sqlite_run row(sql_, sqlite_sql::workflow, {whole_});
            if (row.next() && (row.number(4) != 0 || row.number(5) != 0)) return false;
        }
        sqlite_run row(sql_, sqlite_sql::scheduled_head, {whole_});
        return !row.next();
    }

    /// As many as there is room for. What stays is counted by its workflow, as before.
    /// @return  Whether none is left, and there is room for the head.
    bool remove_members(task_id head) {
        struct member {
            task_id id{};
            lane_id lane{};
            task_state state{};
            bool counts = false; ///< it is the latest of its name
        };
        auto const room = limit_ - answer_.pruned;
        std::vector<dependent<member, Session>> gone;
        {
            // One more than can go: the latest of a name is the last of it.
            sqlite_run row(sql_, sqlite_sql::members_to_prune,
                           {whole_, head, static_cast<std::int64_t>((std::min)(room, std::size_t{100'000}) + 1)});
            dependent<std::string, Session> name;
            while (row.next()) {
                if (!gone.empty() && row.text(1) == name) gone.back().counts = false;
                name = row.text(1);
                gone.push_back({row.as<task_id>(0), row.as<lane_id>(3),
                                task_state_of(row.number(4)).value_or(task_state::dead),
                                row.as<member_kind>(2) != member_kind::workflow && row.number(5) == 0});
            }
        }
        bool const all = gone.size() < room;
        if (gone.size() > room) gone.resize(room);
        if (gone.empty()) return all;
        std::int64_t counts[member_groups] = {};
        for (auto const& each : gone) {
            if (each.counts) ++counts[static_cast<std::size_t>(group_of(each.state))];
            sqlite_run(sql_, sqlite_sql::prune_row, {each.id}).finish();
            forget(each.id);
            forget_member(each.id);
            session_.counts().add(each.lane, each.state, -1);
            session_.counts().add(-static_cast<std::int64_t>(each.lane), counted_state(each.state), -1);
            ++answer_.pruned;
        }
        if (!all)
            sqlite_run(sql_, sqlite_sql::count_fewer, {whole_, counts[2], counts[3], counts[4], counts[5], counts[6]})
                .finish();
        return all;
    }

    Session& session_;
    typename Session::connection_type& sql_;
    prune_terms const& terms_;
    std::size_t const limit_;
    std::uint64_t surplus_[2] = {0, 0}; ///< of ended tasks, and of dead ones
    unsigned filled_ = 0;               ///< streams that have something
    task_id whole_{};                   ///< the workflow whose turn it is
    std::vector<candidate> page_;
    prune_answer answer_;
    bool over_ = false;
};

/// Gives a few unused pages back to the file system, where the file was made for that.
/// @return  Whether there is more to give. Some are kept: the next inserts would only have to ask for them again.
template <class Session>
bool sqlite_compact(Session& session) {
    auto& sql = session.connection();
    auto const number = [&](sqlite_sql what) {
        sqlite_run row(sql, what);
        return row.next() ? row.number(0) : 0;
    };
    auto const kept = (std::max)(number(sqlite_sql::all_pages) / 16, std::int64_t{64});
    auto const unused = number(sqlite_sql::free_pages);
    if (unused <= kept) return false;
    sqlite_run(sql, sqlite_sql::give_back_pages).finish();
    auto const left = number(sqlite_sql::free_pages);
    if (left == unused) return false; // the file was not made for it
    if (left <= kept) session.ask_for_checkpoint();
    return left > kept;
}

} // namespace ax::detail

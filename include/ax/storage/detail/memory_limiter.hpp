// SPDX-License-Identifier: MIT
// What limits do to the tasks of a memory_storage: sentences 24 to 27 of storage_writer, as plainly as they can be
// written down.
#pragma once

#include "ax/storage/detail/memory_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

class memory_limiter {
  public:
    explicit memory_limiter(memory_tables& tables) noexcept : tables_(tables), limits_(tables.limits()) {}

    /// Whether a task that is due may be claimed as far as limits go; then it holds what it needs of them. Where not,
    /// it waits for the first that is full.
    bool admit(memory_row& row, claim_terms const& terms) {
        auto const at = (std::max)(terms.now, row.task.run_at);
        auto const wanted = needs_of(row);
        for (auto const& need : wanted) {
            limits_.change(need.number, [&](limit_state& state) { state.follow_clock(terms.now, terms.until); });
            auto const& state = *limits_.find(need.number);
            bool const fits = state.fits(need.amount) != 0;
            bool const token = state.tokens(at) != 0;
            if (fits && token && !stands_behind(row, need.number)) continue;
            if (fits && !token) limits_.touch(need.number); // somebody has to come back when there is one
            wait_at(row, state, fits && token);
            return false;
        }
        std::vector<memory_hold> holds;
        for (auto const& need : wanted)
            limits_.change(need.number, [&](limit_state& state) {
                holds.push_back({need.number, need.amount, state.take(need.amount, at)});
            });
        if (!holds.empty()) limits_.set_holds(row.task.id, std::move(holds));
        leave(row);
        return true;
    }

    /// The attempt in flight has ended.
    /// @param not_begun  It gives its tokens back.
    void release(task_id id, bool not_begun) {
        auto const found = limits_.holds().find(id);
        if (found == limits_.holds().end()) return;
        auto const holds = found->second;
        for (auto const& hold : holds) {
            limits_.change(hold.number, [&](limit_state& state) {
                state.release(hold.amount);
                if (not_begun) state.give_back(hold.token);
            });
            limits_.touch(hold.number);
        }
        limits_.set_holds(id, {});
    }

    /// The task waits for no limit from now on.
    void leave(memory_row& row) {
        auto const line = row.line();
        if (line == line_number{}) return;
        tables_.change(row, [](task_record& task) { task.waits_for = {}; });
        tables_.left(line);
    }

    /// Where the task stands in line, it is named again.
    void name_again(memory_row const& row) { limits_.touch(tables_.waits_at(row)); }

    void touch(limit_number number) { limits_.touch(number); }

    /// Names those for whom something has changed since the last call.
    void announce(time_point now, alarms& due) { announce(now, now, due); }

    /// @param horizon  No token has been taken for a later instant.
    void announce(time_point now, time_point horizon, alarms& due) {
        while (auto const number = limits_.take_touched()) {
            auto const* const state = limits_.find(*number);
            if (state == nullptr) continue;
            std::vector<std::pair<line_number, limit_number>> moves;
            name_waiters(tables_, *state, now, horizon, due,
                         [&](line_number line, limit_number to) { moves.emplace_back(line, to); });
            for (auto const& [line, to] : moves) {
                tables_.lines().move(line, to);
                if (limits_.find(to)->rate_count != 0) limits_.touch(to); // somebody comes back when there is a token
            }
            if (!state->empty() || state->used != 0 || tables_.lines().heads().contains(*number)) continue;
            limits_.drop_need(*number);
            limits_.erase(*number);
        }
    }

    void limit_type(type_info const& type, limit const& how, std::vector<resource_need> const& resources) {
        std::vector<memory_need> needs;
        for (auto const& wanted : resources) {
            auto const* const state = limits_.find(limit_kind::resource, wanted.name);
            check_resource(type.name, wanted, state == nullptr ? 0 : state->capacity);
            needs.push_back({state->number, static_cast<std::int64_t>(wanted.amount)});
        }
        if (auto const number = define(limit_kind::type, type.name, how); number != limit_number{})
            needs.push_back({number, 1});
        std::sort(needs.begin(), needs.end(), [](auto const& a, auto const& b) { return a.number < b.number; });
        for (auto const& need : limits_.needs(type.number)) limits_.touch(need.number); // also one that is no more
        limits_.set_needs(type.number, std::move(needs));
    }

    /// @return  0 where there is nothing to keep.
    limit_number define(limit_kind kind, std::string_view name, limit const& how) {
        auto const* state = limits_.find(kind, name);
        if (state == nullptr) {
            if (!how.concurrency && !how.rate) return {};
            state = &limits_.add(kind, name);
        }
        auto const number = state->number;
        limits_.change(number, [&](limit_state& changed) { changed.define(how); });
        limits_.touch(number);
        return number;
    }

    /// @throws error invalid_argument where a type may not need that.
    /// @param capacity  0: it was never declared.
    static void check_resource(std::string const& type, resource_need const& wanted, std::int64_t capacity) {
        auto const whose = "resource \"" + wanted.name + "\" of task type \"" + type + '"';
        if (capacity == 0) throw error(errc::invalid_argument, whose + " was never declared with set_resource()");
        if (wanted.amount == 0) throw error(errc::invalid_argument, "amount of " + whose + " is 0");
        if (wanted.amount > static_cast<std::size_t>(capacity))
            throw error(errc::invalid_argument, "amount of " + whose + " is " + std::to_string(wanted.amount) +
                                                    ", above its capacity of " + std::to_string(capacity));
    }

    /// Names the first of those that wait at a limit, lane by lane.
    /// @param horizon  No token has been taken for a later instant.
    /// @param move     Called with each line that another limit keeps back, which is full or without a token, and with
    ///                 that limit. The lines must not be changed meanwhile.
    template <class Move>
    static void name_waiters(memory_tables const& tables, limit_state const& state, time_point now, time_point horizon,
                             alarms& due, Move&& move) {
        auto const found = tables.lines().heads().find(state.number);
        if (found == tables.lines().heads().end()) return;
        for (auto const& [lane, heads] : found->second) {
            auto room = (std::min)(state.fits(amount_of(tables, state.number, lane)), most_named);
            if (room == 0) continue;
            auto const tokens = state.tokens(now);
            if (tokens == 0) {
                auto const& [run_at, id] = heads.begin()->first;
                due.push_back({id, lane, (std::max)(run_at, state.next_token(horizon)), true});
                continue;
            }
            room = (std::min)(room, tokens);
            std::vector<memory_place> worth;
            std::int64_t lines = 0;
            for (auto const& [head, line] : heads) {
                if (lines == room) break;
                auto count = room;
                limit_number blocked{};
                for (auto const& need : needs_of(tables, *tables.lines().find(line))) {
                    if (need.number == state.number) continue;
                    auto const& other = *tables.limits().find(need.number);
                    auto const fits = (std::min)(other.fits(need.amount), other.tokens(now));
                    if (fits == 0 && blocked == limit_number{}) blocked = need.number;
                    count = (std::min)(count, fits);
                }
                if (blocked != limit_number{}) {
                    move(line, blocked);
                    continue;
                }
                ++lines;
                for (auto const& place : *tables.lines().places(line)) {
                    if (count-- == 0) break;
                    worth.push_back(place);
                }
            }
            std::sort(worth.begin(), worth.end());
            for (auto const& [run_at, id] : worth) {
                if (room-- == 0) break;
                due.push_back({id, lane, run_at, true});
            }
        }
    }

    /// Names those of all limits' lines for whom nobody else need be moved. For readers.
    static void name_waiters(memory_tables const& tables, limit_state const& state, time_point now, alarms& due) {
        name_waiters(tables, state, now, now, due, [&](line_number line, limit_number) {
            auto const& [run_at, id] = *tables.lines().places(line)->begin(); // its claim moves the line
            due.push_back({id, tables.lines().find(line)->lane, run_at, true});
        });
    }

  private:
    static std::int64_t amount_of(memory_tables const& tables, limit_number number, lane_id lane) {
        if (tables.limits().find(number)->kind == limit_kind::tag) return 1;
        for (auto const& need : tables.limits().needs(type_of(lane)))
            if (need.number == number) return need.amount;
        return 0; // the type needs it no more
    }

    /// What a type and tags have to get, in the order of the limits' numbers.
    static std::vector<memory_need> needs_of(memory_tables const& tables, type_number type,
                                             std::vector<std::string> const& tags) {
        auto const& limits = tables.limits();
        auto needs = limits.needs(type);
        for (auto const& tag : tags)
            if (auto const* const state = limits.find(limit_kind::tag, tag)) needs.push_back({state->number, 1});
        std::erase_if(needs, [&](memory_need const& need) { return limits.find(need.number)->empty(); });
        std::sort(needs.begin(), needs.end(), [](auto const& a, auto const& b) { return a.number < b.number; });
        return needs;
    }
    static std::vector<memory_need> needs_of(memory_tables const& tables, memory_line const& line) {
        return needs_of(tables, type_of(line.lane), line.tags);
    }

    /// The task was refused at that limit.
    /// @param room  It is not full: others come first.
    void wait_at(memory_row& row, limit_state const& state, bool room) {
        auto& lines = tables_.lines();
        auto const before = row.line();
        std::vector<std::string> tags;
        if (auto const* const line = lines.find(before)) tags = line->tags;
        if (state.kind == limit_kind::tag) {
            auto const at = std::lower_bound(tags.begin(), tags.end(), state.name);
            if (at == tags.end() || *at != state.name) tags.insert(at, state.name);
        }
        if (auto const* const line = lines.find(before); line != nullptr && line->tags == tags) {
            if (line->at == state.number) return;
            limits_.touch(line->at);
            if (room) limits_.touch(state.number);
            lines.move(before, state.number); // it keeps back all of the line
            return;
        }
        auto line = lines.find(row.lane(), tags);
        if (line == line_number{})
            line = lines.open({row.lane(), std::move(tags), state.number});
        else if (memory_place{row.task.run_at, row.task.id} < *lines.places(line)->begin())
            limits_.touch(lines.find(line)->at); // it may be there that others come first
        tables_.change(row, [&](task_record& task) { task.waits_for = static_cast<limit_number>(line); });
        tables_.left(before);
    }

    std::vector<memory_need> needs_of(memory_row const& row) const {
        return needs_of(tables_, row.type, row.task.tags);
    }

    /// Whether somebody of its lane who comes before it waits there.
    bool stands_behind(memory_row const& row, limit_number number) const {
        auto const* const heads = tables_.lines().heads(number, row.lane());
        return heads != nullptr && heads->begin()->first < memory_place{row.task.run_at, row.task.id};
    }

    memory_tables& tables_;
    memory_limits& limits_;
};

} // namespace ax::detail

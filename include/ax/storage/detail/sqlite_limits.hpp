// SPDX-License-Identifier: MIT
// What limits do to the tasks of a SQLite store: sentences 24 to 27 of storage_writer.
//
// A task that no limit concerns costs nothing here: which tags and types have limits is kept in memory, and everything
// else is asked only for those that have. What changes with every attempt (how much is used, the state of a rate) is
// read once and written once in each verb, in the order of the limits' numbers, however many tasks it is about.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/limit_state.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_lines.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The limits of a store, as its writing connection sees them.
template <class Connection>
class sqlite_limits {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using task_record = dependent<ax::task_record, Connection>;
    using limit_state = dependent<detail::limit_state, Connection>;
    using limit_number = dependent<ax::limit_number, Connection>;
    using alarms = dependent<ax::alarms, Connection>;
    using limit_terms = dependent<ax::limit, Connection>;
    using resource_need = dependent<ax::resource_need, Connection>;
    using string = dependent<std::string, Connection>;

  public:
    explicit sqlite_limits(Connection& connection) noexcept : sql_(connection) {}

    /// The transaction was undone: nothing that is remembered is sure.
    void forget() noexcept {
        loaded_ = false;
        open_.clear();
        touched_.clear();
    }

    /// Whether a task that is due may be claimed as far as limits go; then it holds what it needs of them. Where not,
    /// it waits for the first that is full.
    /// @param holds  Set where it holds something now.
    bool admit(task_record const& task, lane_id lane, claim_terms const& terms, bool& holds) {
        load();
        collect_needs(type_of(lane));
        for (auto const& tag : task.tags) collect_tag(tag);
        if (wanted_.empty()) return true;
        std::sort(wanted_.begin(), wanted_.end(), [](auto const& a, auto const& b) { return a.number < b.number; });

        auto const at = (std::max)(terms.now, task.run_at);
        for (auto const& need : wanted_) {
            auto& [state, changed] = *open(need.number);
            if (state.follow_clock(terms.now, terms.until)) changed = true;
            bool const fits = state.fits(need.amount) != 0;
            bool const token = state.tokens(at) != 0;
            if (fits && token && !stands_behind(task, need.number, lane)) continue;
            if (fits && !token) touch(need.number); // somebody has to come back when there is one
            wait_at(task, lane, need.number, fits && token);
            return false;
        }
        for (auto const& need : wanted_) {
            auto& [state, changed] = *open(need.number);
            auto const token = state.take(need.amount, at);
            changed = true;
            sqlite_run(sql_, sqlite_sql::put_hold, {task.id, need.number, need.amount, token}).finish();
        }
        holds = true;
        return true;
    }

    /// Whether a task of this type, with these tags, has to pass a limit.
    template <class Tags>
    bool concern(type_number type, Tags const& tags) {
        load();
        collect_needs(type);
        for (auto const& tag : tags) collect_tag(tag);
        return !wanted_.empty();
    }

    /// The attempt in flight, which holds something, has ended.
    /// @param not_begun  It gives its tokens back.
    void release(task_id id, bool not_begun) {
        {
            sqlite_run hold(sql_, sqlite_sql::holds_of, {id});
            while (hold.next()) {
                auto const number = hold.template as<limit_number>(0);
                auto* const found = open(number);
                if (found == nullptr) continue;
                found->state.release(hold.number(1));
                if (not_begun) found->state.give_back(hold.number(2));
                found->changed = true;
                touch(number);
            }
        }
        sqlite_run(sql_, sqlite_sql::drop_holds, {id}).finish();
    }

    /// To be called after a task has left that line, or may have.
    void left(line_number line) {
        if (line == line_number{}) return;
        limit_number at{};
        time_point run_at{};
        task_id first{};
        {
            sqlite_run row(sql_, sqlite_sql::line_row, {line});
            if (!row.next()) return;
            at = row.template as<limit_number>(2);
            run_at = row.time(3);
            first = row.template as<task_id>(4);
        }
        touch(at);
        sqlite_run next(sql_, sqlite_sql::first_waiters, {line, 1});
        if (!next.next())
            sqlite_run(sql_, sqlite_sql::close_line, {line}).finish();
        else if (next.template as<task_id>(0) != first || next.time(1) != run_at)
            sqlite_run(sql_, sqlite_sql::head_line, {line, next.time(1), next.template as<task_id>(0)}).finish();
    }

    /// Where a task stands in that line, it is named again.
    void name_again(line_number line) {
        sqlite_run row(sql_, sqlite_sql::line_row, {line});
        if (row.next()) touch(row.template as<limit_number>(2));
    }

    /// Something may have changed for those that wait for that limit.
    void touch(limit_number number) {
        if (number == limit_number{}) return;
        auto const at = std::lower_bound(touched_.begin(), touched_.end(), number);
        if (at == touched_.end() || *at != number) touched_.insert(at, number);
    }

    /// The end of every verb: names those for whom something has changed, and writes what has.
    void announce(time_point now, alarms& due) { announce(now, now, due); }

    /// @param horizon  No token has been taken for a later instant.
    void announce(time_point now, time_point horizon, alarms& due) {
        if (touched_.empty() && open_.empty()) return;
        write_changed(); // before anything is read of what has limits
        if (!touched_.empty()) load();
        while (!touched_.empty()) {
            auto const number = touched_.front();
            touched_.erase(touched_.begin());
            if (open(number) == nullptr) continue;
            bool const waiters = name(number, now, horizon, due);
            auto* const found = open(number);
            if (!found->state.empty() || found->state.used != 0 || waiters) continue;
            sqlite_run(sql_, sqlite_sql::drop_needs_of_limit, {number}).finish();
            sqlite_run(sql_, sqlite_sql::drop_limit, {number}).finish();
            bool const is_tag = found->state.kind == limit_kind::tag; // tags know it already
            open_.erase(open_.begin() + (found - open_.data()));
            if (!is_tag) {
                loaded_ = false;
                load();
            }
        }
        open_.clear();
    }

    void limit_type(type_number type, std::string_view name, limit_terms const& how,
                    std::vector<resource_need> const& resources) {
        wanted_.clear();
        for (auto const& each : resources) {
            auto const state = find(limit_kind::resource, each.name);
            check_resource(name, each, state ? state->capacity : 0);
            wanted_.push_back({state->number, static_cast<std::int64_t>(each.amount)});
        }
        if (auto const number = define(limit_kind::type, name, how); number != limit_number{})
            wanted_.push_back({number, 1});
        std::sort(wanted_.begin(), wanted_.end(), [](auto const& a, auto const& b) { return a.number < b.number; });
        bool same = true;
        std::size_t count = 0;
        {
            sqlite_run need(sql_, sqlite_sql::needs_of_type, {type});
            for (; need.next(); ++count) {
                touch(need.template as<limit_number>(0)); // also one that is needed no more
                same = same && count < wanted_.size() && wanted_[count].number == need.template as<limit_number>(0) &&
                       wanted_[count].amount == need.number(1);
            }
        }
        if (same && count == wanted_.size()) return;
        sqlite_run(sql_, sqlite_sql::drop_needs_of_type, {type}).finish();
        for (auto const& need : wanted_)
            sqlite_run(sql_, sqlite_sql::put_need, {type, need.number, need.amount}).finish();
        loaded_ = false;
    }

    /// @return  0 where there is nothing to keep.
    limit_number define(limit_kind kind, std::string_view name, limit_terms const& how) {
        auto present = find(kind, name);
        if (!present) {
            if (!how.concurrency && !how.rate) return {};
            present.emplace();
            {
                sqlite_run last(sql_, sqlite_sql::last_limit);
                present->number = limit_number{last.next() ? last.template as<std::uint32_t>(0) + 1 : 1};
            }
            sqlite_run(sql_, sqlite_sql::insert_limit, {present->number, kind, name}).finish();
        }
        auto& [state, changed] = *open(present->number);
        state.define(how);
        changed = changed || state.capacity != present->capacity || state.rate_count != present->rate_count ||
                  state.rate_period != present->rate_period || state.rate_burst != present->rate_burst ||
                  state.rate_at != present->rate_at;
        touch(state.number);
        if (kind == limit_kind::tag && loaded_) learn(state);
        return state.number;
    }

  private:
    struct need_of_type;

    void write_changed() {
        for (auto& [state, changed] : open_)
            if (std::exchange(changed, false))
                sqlite_run(sql_, sqlite_sql::update_limit,
                           {state.number, state.capacity, state.used, state.rate_count, state.rate_period,
                            state.rate_burst, state.rate_at, state.rate_last, state.rate_taken})
                    .finish();
    }

    /// @return  Whether anybody waits there still.
    bool name(limit_number number, time_point now, time_point horizon, alarms& due) {
        auto const state = open(number)->state; // what is opened moves
        std::vector<std::pair<line_number, limit_number>> moves;
        auto left_there = name_waiters(
            sql_, state, now, horizon, due,
            [&](lane_id lane, std::string_view tags, auto&& each) {
                collect_needs(type_of(lane));
                each_tag(tags, [&](std::string_view tag) { collect_tag(tag); });
                for (auto const& need : wanted_) each(open(need.number)->state, need.amount);
            },
            [&](lane_id, line_number line, limit_number to, time_point, task_id) { moves.emplace_back(line, to); });
        for (auto const& [line, to] : moves) {
            sqlite_run(sql_, sqlite_sql::move_line, {line, to}).finish();
            if (open(to)->state.rate_count != 0) touch(to); // somebody comes back when there is a token
        }
        return left_there != 0;
    }

    /// The task was refused at that limit.
    /// @param room  It is not full: others come first.
    void wait_at(task_record const& task, lane_id lane, limit_number number, bool room) {
        auto const before = line_of(task);
        limit_number stood_at{};
        string tags{no_tags};
        if (before != line_number{}) {
            sqlite_run row(sql_, sqlite_sql::line_row, {before});
            if (row.next()) {
                tags = row.text(1);
                stood_at = row.template as<limit_number>(2);
            }
        }
        bool const knows = !add_tag(tags, open(number)->state);
        if (knows && stood_at != limit_number{}) {
            if (stood_at == number) return;
            touch(stood_at);
            if (room) touch(number);
            sqlite_run(sql_, sqlite_sql::move_line, {before, number}).finish(); // it keeps back all of the line
            return;
        }
        line_number line{};
        {
            sqlite_run row(sql_, sqlite_sql::line_of, {lane, sqlite_blob{tags}});
            if (row.next()) {
                line = row.template as<line_number>(0);
                if (std::pair(task.run_at, task.id) < std::pair(row.time(2), row.template as<task_id>(3))) {
                    touch(row.template as<limit_number>(1)); // it may be there that others come first
                    sqlite_run(sql_, sqlite_sql::head_line, {line, task.run_at, task.id}).finish();
                }
            }
        }
        if (line == line_number{}) {
            sqlite_run(sql_, sqlite_sql::open_line, {lane, sqlite_blob{tags}, number, task.run_at, task.id}).finish();
            line = static_cast<line_number>(sqlite3_last_insert_rowid(sql_.handle()));
        }
        sqlite_run(sql_, sqlite_sql::park_task, {task.id, line}).finish();
        left(before);
    }

    struct need_entry {
        limit_number number{};
        std::int64_t amount = 1;
    };
    struct need_of_type {
        type_number type{};
        need_entry what;
    };
    struct tag_entry {
        string name;
        limit_number number{};
    };
    struct opened {
        limit_state state;
        bool changed = false;
    };

    /// @throws error invalid_argument where a type may not need that.
    /// @param capacity  0: it was never declared.
    static void check_resource(std::string_view type, resource_need const& each, std::int64_t capacity) {
        auto const whose = "resource \"" + string(each.name) + "\" of task type \"" + string(type) + '"';
        if (capacity == 0) throw error(errc::invalid_argument, whose + " was never declared with set_resource()");
        if (each.amount == 0) throw error(errc::invalid_argument, "amount of " + whose + " is 0");
        if (each.amount > static_cast<std::size_t>(capacity))
            throw error(errc::invalid_argument, "amount of " + whose + " is " + std::to_string(each.amount) +
                                                    ", above its capacity of " + std::to_string(capacity));
    }

    // ---- what has limits -------------------------------------------------------------------------------------------

    void load() {
        if (loaded_) return;
        needs_.clear();
        tags_.clear();
        {
            sqlite_run row(sql_, sqlite_sql::all_needs);
            while (row.next())
                needs_.push_back({row.template as<type_number>(0), {row.template as<limit_number>(1), row.number(2)}});
        }
        sqlite_run row(sql_, sqlite_sql::all_tag_limits); // by name
        while (row.next()) tags_.push_back({string(row.text(0)), row.template as<limit_number>(1)});
        loaded_ = true;
    }

    void learn(limit_state const& state) {
        auto const at = place_of(state.name);
        bool const known = at != tags_.end() && at->name == state.name;
        if (known && state.empty()) tags_.erase(at);
        if (!known && !state.empty()) tags_.insert(at, {state.name, state.number});
    }

    auto place_of(std::string_view name) {
        return std::lower_bound(tags_.begin(), tags_.end(), name,
                                [](tag_entry const& a, std::string_view b) { return a.name < b; });
    }

    limit_number tag_limit(std::string_view name) {
        auto const at = place_of(name);
        return at != tags_.end() && at->name == name ? at->number : limit_number{};
    }

    /// Begins `wanted_` anew.
    void collect_needs(type_number type) {
        wanted_.clear();
        if (needs_.empty()) return;
        auto at = std::lower_bound(needs_.begin(), needs_.end(), type,
                                   [](need_of_type const& a, type_number b) { return a.type < b; });
        for (; at != needs_.end() && at->type == type; ++at)
            // A visitor may have removed a limit that limits nothing any more, and its number may be a tag's by now.
            if (auto const* const found = open(at->what.number);
                found != nullptr && !found->state.empty() && found->state.kind != limit_kind::tag)
                wanted_.push_back(at->what);
    }

    void collect_tag(std::string_view tag) {
        if (tags_.empty()) return;
        auto const number = tag_limit(tag);
        // A visitor may have removed it, and others may have its number by now.
        if (number == limit_number{}) return;
        if (auto const* const found = open(number); found != nullptr && found->state.kind == limit_kind::tag)
            wanted_.push_back({number, 1});
    }

    // ---- one limit -------------------------------------------------------------------------------------------------

    /// A limit, for the rest of this verb. Good until the next call; null where there is none.
    opened* open(limit_number number) {
        auto const at = std::lower_bound(open_.begin(), open_.end(), number,
                                         [](opened const& a, limit_number b) { return a.state.number < b; });
        if (at != open_.end() && at->state.number == number) return &*at;
        sqlite_run row(sql_, sqlite_sql::limit_row, {number});
        if (!row.next()) return nullptr;
        return &*open_.insert(at, {read_limit(row), false});
    }

    std::optional<limit_state> find(limit_kind kind, std::string_view name) {
        sqlite_run row(sql_, sqlite_sql::limit_by_name, {kind, name});
        return row.next() ? std::optional<limit_state>{read_limit(row)} : std::nullopt;
    }

    /// Whether somebody of its lane who comes before it waits there.
    bool stands_behind(task_record const& task, limit_number number, lane_id lane) {
        sqlite_run first(sql_, sqlite_sql::lines_at, {number, lane});
        return first.next() &&
               std::pair(first.time(2), first.template as<task_id>(3)) < std::pair(task.run_at, task.id);
    }

    Connection& sql_;
    bool loaded_ = false;
    std::vector<need_of_type> needs_; ///< by type and limit
    std::vector<tag_entry> tags_;     ///< those that limit something, by name
    std::vector<opened> open_;        ///< in this verb, by number
    std::vector<limit_number> touched_;
    std::vector<need_entry> wanted_; ///< of the task at hand
};

} // namespace ax::detail

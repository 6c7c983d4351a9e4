// SPDX-License-Identifier: MIT
// Where tasks of a SQLite store wait for limits. A line is of one lane and of some tags, those at whose limits its
// tasks have been refused, and it stands at one limit. What keeps all of a line back is known of the line: what its
// type needs, and the limits of its tags. So where one of these is full, the line as a whole goes to stand there, in
// one write however long it is. A task changes its line only where it is refused at a limit of which its line knows
// nothing, which happens once for each of its tags.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/limit_state.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The limit in the present row of a query for all columns.
template <class Run>
dependent<limit_state, Run> read_limit(Run const& row) {
    dependent<limit_state, Run> state;
    state.number = row.template as<limit_number>(0);
    state.kind = row.template as<limit_kind>(1);
    state.name = row.text(2);
    state.capacity = row.number(3);
    state.used = row.number(4);
    state.rate_count = row.number(5);
    state.rate_period = row.number(6);
    state.rate_burst = row.number(7);
    state.rate_at = row.number(8);
    state.rate_last = row.number(9);
    state.rate_taken = row.number(10);
    return state;
}

/// Tags as they are stored: one behind the other, with a NUL byte (which no tag has) between them.
inline std::string join_tags(std::vector<std::string> const& tags) {
    std::string text;
    for (auto const& tag : tags) {
        if (!text.empty()) text += '\0';
        text += tag;
    }
    return text;
}

template <class Tags>
void split_tags(std::string_view text, Tags& tags) {
    while (!text.empty()) {
        auto const end = (std::min)(text.find('\0'), text.size());
        tags.emplace_back(text.substr(0, end));
        text.remove_prefix((std::min)(end + 1, text.size()));
    }
}

/// The tags of a line: sorted, each with a NUL byte before it, behind this, which is never empty.
inline constexpr std::string_view no_tags = "t";

template <class Each>
void each_tag(std::string_view of_line, Each&& each) {
    of_line.remove_prefix((std::min)(no_tags.size() + 1, of_line.size()));
    while (!of_line.empty()) {
        auto const end = (std::min)(of_line.find('\0'), of_line.size());
        each(of_line.substr(0, end));
        of_line.remove_prefix((std::min)(end + 1, of_line.size()));
    }
}

/// @return  Whether that is a limit of a tag which was not there yet.
template <class String, class State>
bool add_tag(String& of_line, State const& limit) {
    if (limit.kind != limit_kind::tag) return false;
    String made{no_tags};
    bool added = false;
    auto const add = [&](std::string_view tag) {
        made += '\0';
        made += tag;
    };
    auto const add_before = [&](std::string_view tag) {
        if (!added && limit.name < tag) {
            add(limit.name);
            added = true;
        }
    };
    bool known = false;
    each_tag(of_line, [&](std::string_view tag) {
        known = known || tag == limit.name;
        add_before(tag);
        add(tag);
    });
    if (known) return false;
    if (!added) add(limit.name);
    of_line = std::move(made);
    return true;
}

/// The line in which a task stands, as it was read.
template <class Task>
line_number line_of(Task const& task) noexcept {
    return static_cast<line_number>(task.waits_for);
}

/// Names the first of those that wait at a limit, lane by lane.
/// @param horizon  No token has been taken for a later instant.
/// @param needs    Called with a lane, the tags of a line and a function, which it calls with the state of each limit
///                 that keeps that line back and with what each of its tasks needs of it.
/// @param move     Called with each line that another limit keeps back, which is full or without a token, with that
///                 limit, and with the place of the line's first. The lines must not be changed meanwhile.
/// @return         How many lines were found there and not moved.
template <class Connection, class Needs, class Move>
std::size_t name_waiters(Connection& sql, dependent<limit_state, Connection> const& state, time_point now,
                         time_point horizon, dependent<alarms, Connection>& due, Needs&& needs, Move&& move) {
    std::size_t stay = 0;
    std::vector<std::pair<time_point, task_id>> worth;
    for (std::int64_t before = -1;;) {
        {
            sqlite_run next(sql, sqlite_sql::waiting_lane, {state.number, before});
            if (!next.next()) return stay;
            before = next.number(0);
        }
        auto const lane = static_cast<lane_id>(before);
        std::int64_t room = -1; // not known yet
        std::int64_t lines = 0;
        worth.clear();
        sqlite_run line(sql, sqlite_sql::lines_at, {state.number, lane});
        while (line.next()) {
            auto const number = line.template as<line_number>(0);
            std::int64_t amount = state.kind == limit_kind::tag ? 1 : 0; // 0: the type needs it no more
            std::int64_t count = most_named;
            limit_number blocked{};
            needs(lane, line.text(1), [&](auto const& other, std::int64_t wanted) {
                if (other.number == state.number) {
                    amount = wanted;
                    return;
                }
                auto const fits = (std::min)(other.fits(wanted), other.tokens(now));
                if (fits == 0 && (blocked == limit_number{} || other.number < blocked)) blocked = other.number;
                count = (std::min)(count, fits);
            });
            if (room < 0) { // all of a lane need as much
                room = (std::min)(state.fits(amount), most_named);
                auto const tokens = state.tokens(now);
                if (room != 0 && tokens == 0)
                    due.push_back({line.template as<task_id>(3), lane,
                                   (std::max)(line.time(2), state.next_token(horizon)), true});
                room = (std::min)(room, tokens);
            }
            if (lines == room) {
                ++stay;
                break;
            }
            if (blocked != limit_number{}) {
                move(lane, number, blocked, line.time(2), line.template as<task_id>(3));
                continue;
            }
            ++stay;
            ++lines;
            sqlite_run waiter(sql, sqlite_sql::first_waiters, {number, (std::min)(count, room)});
            while (waiter.next()) worth.emplace_back(waiter.time(1), waiter.template as<task_id>(0));
        }
        std::make_heap(worth.begin(), worth.end());
        std::sort_heap(worth.begin(), worth.end());
        for (auto const& [run_at, id] : worth) {
            if (room-- == 0) break;
            due.push_back({id, lane, run_at, true});
        }
    }
}

/// The same with what is stored, for a connection that only reads.
template <class Connection>
void name_waiters(Connection& sql, dependent<limit_state, Connection> const& state, time_point now,
                  dependent<alarms, Connection>& due) {
    name_waiters(
        sql, state, now, now, due,
        [&](lane_id lane, std::string_view tags, auto&& each) {
            sqlite_run need(sql, sqlite_sql::needs_of_type, {type_of(lane)});
            while (need.next()) {
                sqlite_run row(sql, sqlite_sql::limit_row, {need.number(0)});
                if (!row.next()) continue;
                auto const other = read_limit(row);
                if (!other.empty() && other.kind != limit_kind::tag) each(other, need.number(1));
            }
            each_tag(tags, [&](std::string_view tag) {
                sqlite_run row(sql, sqlite_sql::limit_by_name, {limit_kind::tag, tag});
                if (!row.next()) return;
                auto const other = read_limit(row);
                if (!other.empty()) each(other, 1);
            });
        },
        [&](lane_id lane, line_number, limit_number, time_point run_at, task_id first) {
            due.push_back({first, lane, run_at, true}); // its claim moves the line
        });
}

} // namespace ax::detail

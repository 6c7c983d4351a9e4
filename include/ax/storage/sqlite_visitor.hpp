// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_header.hpp"
#include "ax/storage/detail/sqlite_reader.hpp"
#include "ax/storage/detail/sqlite_store.hpp"
#include "ax/storage/detail/sqlite_writer.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax {

/// Looks at a store beside the program that owns it, and changes what waits there: for tools and operators.
///
///     ax::sqlite_visitor store{"shop.db"};
///     for (auto const& task : store.list({.state = ax::task_state::dead}, ax::now())) store.retry(task.id, ax::now());
///
/// It never claims, runs or recovers a task, creates no store and migrates none. Each change is one transaction that
/// looks at the row as it is then, just as the owner's are, so neither overwrites the other. The owner learns of what
/// has become due, of a pause and of a wish to stop by its next sweep, within about three seconds.
///
/// Threads: safe; one call at a time.
/// Errors:  at open: not_a_store (also where there is no file), newer_schema, corrupt, unavailable; invalid_argument
///          where the store is of an older schema, which its owner has to migrate. Later: unavailable, disk_full,
///          corrupt; nothing of that call was written.
///
/// @tparam Connection  How SQLite is reached: see sqlite_visitor.
template <class Connection>
class basic_sqlite_visitor {
    using writer = detail::sqlite_writer<Connection>;

  public:
    /// @param busy_limit  How long a change waits for the owner's commits.
    explicit basic_sqlite_visitor(std::string const& path, time_span busy_limit = std::chrono::seconds{5})
        : sql_(existing(path), false), session_(sql_),
          reader_(sql_.path(), "PRAGMA busy_timeout = " + std::to_string(busy_limit.value().count())) {
        sql_.execute(("PRAGMA busy_timeout = " + std::to_string(busy_limit.value().count())).c_str());
        auto const header = detail::read_header(sql_);
        if (header.version == 0) throw error(errc::not_a_store, sql_.path() + " holds no tasks of ax");
        if (header.version != detail::sqlite_schema_version)
            throw error(errc::invalid_argument, sql_.path() + " has schema " + std::to_string(header.version) +
                                                    ": the program that owns it has to migrate it to " +
                                                    std::to_string(detail::sqlite_schema_version) + " first");
        sql_.execute("PRAGMA synchronous = FULL");
        sql_.opened();
    }

    std::optional<task_record> find(task_id id) const {
        return read([&](auto& reader) { return reader.find(id); });
    }
    std::optional<task_record> find_by_key(std::string_view key) const {
        return read([&](auto& reader) { return reader.find_by_key(key); });
    }
    std::vector<task_record> list(task_filter const& filter, time_point now) const {
        return read([&](auto& reader) { return reader.list(filter, now); });
    }
    std::vector<attempt_view> history(task_id id) const {
        return read([&](auto& reader) { return reader.history(id); });
    }
    std::vector<obstacle> obstacles(task_id id) const {
        return read([&](auto& reader) { return reader.obstacles(id); });
    }
    std::vector<kept_step> steps(task_id id) const {
        return read([&](auto& reader) { return reader.steps(id); });
    }
    std::vector<type_info> types() const {
        return read([](auto& reader) { return reader.types(); });
    }
    std::vector<schedule_record> schedules() const {
        return read([](auto& reader) { return reader.schedules(); });
    }
    skip_log skips(std::string_view schedule) const {
        return read([&](auto& reader) { return reader.skips(schedule); });
    }

    std::vector<task_count> counts() const {
        return read([](auto& reader) { return reader.counts(); });
    }
    std::optional<workflow_record> workflow(task_id id) const {
        return read([&](auto& reader) { return reader.workflow(id); });
    }
    std::vector<member_record> members(task_id workflow, std::string_view after, std::size_t limit) const {
        return read([&](auto& reader) { return reader.members(workflow, after, limit); });
    }
    std::vector<parent_record> parents(task_id id) const {
        return read([&](auto& reader) { return reader.parents(id); });
    }
    std::vector<limit_info> limits() const {
        return read([](auto& reader) { return reader.limits(); });
    }

    /// Finds what cannot be, and with `repair` puts it right: see docs/verify.md. What only the owner knows, an attempt
    /// that it has lost, is not found here.
    std::vector<finding> verify(bool repair, time_point now) {
        std::vector<finding> all;
        for (bool again = true; again;) { // a repair may call for another
            auto found = read([](auto& reader) { return detail::search_all<Connection>(reader); });
            again = false;
            constexpr std::size_t step = 100;
            for (std::size_t at = 0; repair && at < found.size(); at += step)
                write([&](writer& w) {
                    alarms due;
                    w.repair(std::span(found).subspan(at, (std::min)(step, found.size() - at)), now, due);
                    return true;
                });
            for (auto const& one : found) again = again || one.repaired;
            for (auto& one : found)
                if (one.repaired || !again) all.push_back(std::move(one));
        }
        return all;
    }

    /// Ends a task that waits. One that is in flight is asked to stop, by a mark that its owner sees at its next sweep:
    /// the answer is then wrong_state with the state that it is in.
    change cancel(task_id id, time_point now) {
        return write([&](writer& w) {
            auto answer = w.cancel(id, now);
            if (answer.outcome == change_outcome::wrong_state && is_active(answer.state)) w.ask_to_stop(id);
            return answer;
        });
    }

    /// See storage_writer.
    change retry(task_id id, time_point now) {
        return write([&](writer& w) { return w.retry(id, now); });
    }

    /// Whether the type is known; a pause is kept with it.
    bool pause(std::string_view type, bool yes) {
        for (auto const& known : types())
            if (known.name == type) {
                write([&](writer& w) {
                    w.pause(known.number, yes);
                    return true;
                });
                return true;
            }
        return false;
    }

    std::string const& path() const noexcept { return sql_.path(); }

  private:
    static std::string existing(std::string const& path) {
        auto resolved = detail::resolved_path(path);
        detail::file_identity ignored;
        if (!detail::identify(resolved, ignored)) throw error(errc::not_a_store, path + " does not exist");
        return resolved;
    }

    template <class Read>
    auto read(Read&& reading) const {
        std::lock_guard const guard{mutex_};
        return reading(reader_);
    }

    template <class Verb>
    auto write(Verb&& verb) {
        std::lock_guard const guard{mutex_};
        detail::sqlite_run(sql_, detail::sqlite_sql::begin_write).finish();
        try {
            writer verbs(session_);
            auto answer = verb(verbs);
            session_.flush();
            detail::sqlite_run(sql_, detail::sqlite_sql::commit).finish();
            session_.committed();
            return answer;
        } catch (...) {
            if (sql_.in_transaction()) sqlite3_exec(sql_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
            session_.undone();
            sql_.forget_failures();
            throw;
        }
    }

    mutable std::mutex mutex_;
    Connection sql_;
    detail::sqlite_session<Connection> session_;
    mutable detail::sqlite_reader<Connection> reader_;
};

using sqlite_visitor = basic_sqlite_visitor<detail::sqlite_connection>;

} // namespace ax

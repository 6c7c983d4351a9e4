// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_store.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax {

/// Keeps tasks in a SQLite database: one file, which may be the host's own.
///
///     ax::sqlite_storage store{"shop.db"};
///
/// Models ax::storage. All of its tables begin with `ax_`; everything else in the file is left alone. Besides the file
/// there are `shop.db-wal` and `shop.db-shm` (SQLite's, while it is open) and `shop.db-ax` (the lock; kept). One object
/// in one process owns the store at a time; the host's other connections may read and write their own tables.
///
/// Whose commits meet shares them: a caller that is alone commits on its own thread, and those who come while it does
/// so are committed together by the next of them. So `fn` of transact() may be called on another caller's thread, and
/// again.
///
/// Ids rise from 1; after a crash up to 1,000 are left out.
///
/// Complexity: each verb O(log n) for each task named; upcoming() and list() O(log n + tasks given) for each lane.
/// Threads:    safe. A storage that was moved from may only be destroyed or assigned to. After fork() it belongs to the
///             parent: in the child every use is an error, and destroying it does nothing.
/// Errors:     at open: locked (owned by another, with its pid), not_a_store, newer_schema, corrupt, unavailable,
///             disk_full, invalid_argument. Later: unavailable, disk_full, corrupt; nothing of that transaction was
///             written. See docs/sqlite.md.
///
/// It is written for any connection, so that a unit that only names the type does not pay for its code.
/// @tparam Connection  How SQLite is reached: see sqlite_storage.
template <class Connection>
class basic_sqlite_storage {
    // As dependent names, so that a unit that only includes this does not pay for its code.
    using task_record = detail::dependent<ax::task_record, Connection>;
    using attempt_view = detail::dependent<ax::attempt_view, Connection>;
    using obstacle = detail::dependent<ax::obstacle, Connection>;
    using task_id = detail::dependent<ax::task_id, Connection>;
    using alarms = detail::dependent<ax::alarms, Connection>;
    using type_info = detail::dependent<ax::type_info, Connection>;
    using schedule_record = detail::dependent<ax::schedule_record, Connection>;
    using kept_step = detail::dependent<ax::kept_step, Connection>;
    using task_count = detail::dependent<ax::task_count, Connection>;
    using finding = detail::dependent<ax::finding, Connection>;
    using waiting_page = detail::dependent<ax::waiting_page, Connection>;
    using limit_info = detail::dependent<ax::limit_info, Connection>;
    using backfill_record = detail::dependent<ax::backfill_record, Connection>;
    using skip_log = detail::dependent<ax::skip_log, Connection>;

  public:
    static constexpr bool durable = true;

    using writer = detail::sqlite_writer<Connection>;
    using host_connection = sqlite3*;

    /// Opens the store, and creates it where there is none.
    explicit basic_sqlite_storage(std::string const& path, sqlite_settings const& settings = {})
        : store_(new detail::sqlite_store<Connection>(path, settings)) {}

    /// Calls `fn(writer&)` and commits what it did. When it throws, nothing of it is to be seen.
    template <class Fn>
    void transact(commit kind, Fn&& fn) {
        store_->transact(kind == commit::durable, fn);
    }

    std::optional<task_record> find(task_id id) const {
        return store_->read([&](auto& reader) { return reader.find(id); });
    }
    std::optional<task_record> find_by_key(std::string_view key) const {
        return store_->read([&](auto& reader) { return reader.find_by_key(key); });
    }
    std::vector<task_record> list(task_filter const& filter, time_point now) const {
        return store_->read([&](auto& reader) { return reader.list(filter, now); });
    }
    std::vector<attempt_view> history(task_id id) const {
        return store_->read([&](auto& reader) { return reader.history(id); });
    }
    std::vector<obstacle> obstacles(task_id id) const {
        return store_->read([&](auto& reader) { return reader.obstacles(id); });
    }
    std::vector<task_id> asked_to_stop() const {
        return store_->read([](auto& reader) { return reader.asked_to_stop(); });
    }
    alarms upcoming(alarm const& after, time_point until, std::size_t limit) const {
        return store_->read([&](auto& reader) { return reader.upcoming(after, until, limit); });
    }
    std::vector<type_info> types() const {
        return store_->read([](auto& reader) { return reader.types(); });
    }
    std::vector<schedule_record> schedules() const {
        return store_->read([](auto& reader) { return reader.schedules(); });
    }
    std::vector<task_count> counts() const {
        return store_->read([](auto& reader) { return reader.counts(); });
    }
    std::string note(std::string_view name) const {
        return store_->read([&](auto& reader) { return reader.note(name); });
    }
    std::vector<finding> verify() const {
        return store_->read([](auto& reader) { return detail::search_all<Connection>(reader); });
    }

    std::vector<kept_step> steps(task_id id) const {
        return store_->read([&](auto& reader) { return reader.steps(id); });
    }

    /// Inserts a task through a connection of the host's, in its open transaction: see transactional_storage.
    guest_insertion insert_in(sqlite3* host, std::string_view type, new_task& task, time_point now, alarms& due) {
        return store_->insert_in(host, type, task, now, due);
    }

    waiting_page waiting(limit_number after, std::size_t most, time_point now) const {
        return store_->read([&](auto& reader) { return reader.waiting(after, most, now); });
    }
    std::optional<workflow_record> workflow(task_id id) const {
        return store_->read([&](auto& reader) { return reader.workflow(id); });
    }
    std::vector<member_record> members(task_id workflow, std::string_view after, std::size_t limit) const {
        return store_->read([&](auto& reader) { return reader.members(workflow, after, limit); });
    }
    std::vector<parent_record> parents(task_id id) const {
        return store_->read([&](auto& reader) { return reader.parents(id); });
    }
    std::vector<limit_info> limits() const {
        return store_->read([](auto& reader) { return reader.limits(); });
    }
    std::optional<task_record> occurrence(std::string_view schedule, time_point nominal) const {
        return store_->read([&](auto& reader) { return reader.occurrence(schedule, nominal); });
    }
    std::vector<task_record> aside(std::string_view schedule, time_point from, time_point to, std::size_t limit) const {
        return store_->read([&](auto& reader) { return reader.aside(schedule, from, to, limit); });
    }
    std::vector<backfill_record> backfills() const {
        return store_->read([](auto& reader) { return reader.backfills(); });
    }
    skip_log skips(std::string_view schedule) const {
        return store_->read([&](auto& reader) { return reader.skips(schedule); });
    }

    /// The file, absolute and free of symbolic links.
    std::string const& path() const noexcept { return store_->path(); }

    /// The random name that the store was given when it was created, 32 hexadecimal digits.
    std::string const& store_id() const noexcept { return store_->store_id(); }

    /// Whether the owner before this one closed the store (or there was none): false after a crash or a power cut.
    bool was_clean() const noexcept { return store_->was_clean(); }

    /// Sizes, and whether the write-ahead log grows because somebody reads for too long.
    sqlite_health health() const { return store_->health(); }

    /// What it is, for people: library, path, schema.
    std::string description() const { return store_->description(); }

  private:
    struct closer {
        void operator()(detail::sqlite_store<Connection>* store) const noexcept {
            if (store->is_elsewhere()) return; // forked: the handles are the parent's, and closing them would harm it
            delete store;
        }
    };

    std::unique_ptr<detail::sqlite_store<Connection>, closer> store_;
};

/// The storage of a SQLite file.
using sqlite_storage = basic_sqlite_storage<detail::sqlite_connection>;

static_assert(transactional_storage<sqlite_storage>);

} // namespace ax

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_store.hpp"

#include <cstddef>
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
    using alarms = detail::dependent<ax::alarms, Connection>;
    using type_info = detail::dependent<ax::type_info, Connection>;
    using schedule_record = detail::dependent<ax::schedule_record, Connection>;

  public:
    static constexpr bool durable = true;

    using writer = detail::sqlite_writer<Connection>;

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
    alarms upcoming(alarm const& after, time_point until, std::size_t limit) const {
        return store_->read([&](auto& reader) { return reader.upcoming(after, until, limit); });
    }
    std::vector<type_info> types() const {
        return store_->read([](auto& reader) { return reader.types(); });
    }
    std::vector<schedule_record> schedules() const {
        return store_->read([](auto& reader) { return reader.schedules(); });
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

static_assert(storage<sqlite_storage>);

} // namespace ax

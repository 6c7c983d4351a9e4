// SPDX-License-Identifier: MIT
// A store as the guest of a connection that belongs to the host, in the middle of the host's transaction. It uses the
// verbs of the writer on a connection that it does not own, and leaves nothing behind on it. It must not wait for the
// store's own writer in any way: that one waits for the host's lock.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_lock.hpp"
#include "ax/storage/detail/sqlite_writer.hpp"

#include <sqlite3.h>

#include <span>
#include <string>
#include <string_view>

namespace ax::detail {

template <class Connection>
class sqlite_guest {
    using string = dependent<std::string, Connection>;
    using guest_insertion = dependent<ax::guest_insertion, Connection>;
    using alarms = dependent<ax::alarms, Connection>;
    using new_task = dependent<ax::new_task, Connection>;

  public:
    /// @param host   The host's connection.
    /// @param own    That of the store itself.
    /// @param path   Of the database, and what is to be found there.
    /// @throws       error invalid_argument where nothing can be submitted through that connection.
    sqlite_guest(sqlite3* host, sqlite3* own, string const& path, file_identity const& file)
        : sql_(checked(host, own, path, file), sqlite_borrowed{}, path), session_(sql_, 1) {}

    guest_insertion insert(string const& store, std::string_view type, new_task& task, time_point now, alarms& due) {
        bool const alone = !sql_.in_transaction();
        auto const row = sqlite3_last_insert_rowid(sql_.handle()); // the host's own
        sqlite_run(sql_, alone ? sqlite_sql::begin_write : sqlite_sql::begin_guest).finish();
        try {
            // Writes first: who has only read until then is refused the lock where another has written meanwhile.
            touch(store);
            sqlite_writer<Connection> verbs(session_);
            task.type = verbs.type(type);
            auto const answer = verbs.insert({&task, 1}, now, due).front();
            session_.flush();
            session_.return_ids();
            sqlite_run(sql_, alone ? sqlite_sql::commit : sqlite_sql::keep_guest).finish();
            sqlite3_set_last_insert_rowid(sql_.handle(), row);
            return {answer, alone};
        } catch (...) {
            due.clear();
            // Where SQLite has undone the host's transaction as a whole, there is nothing left to take back.
            if (sql_.in_transaction())
                sqlite3_exec(sql_.handle(), alone ? "ROLLBACK" : "ROLLBACK TO ax_guest; RELEASE ax_guest", nullptr,
                             nullptr, nullptr);
            throw;
        }
    }

  private:
    [[noreturn]] static void refuse(string const& why) { throw error(errc::invalid_argument, "submit_in: " + why); }

    /// What can be told without a look into the database.
    static sqlite3* checked(sqlite3* host, sqlite3* own, string const& path, file_identity const& file) {
        if (host == nullptr) refuse("the connection is null");
        if (host == own) refuse("that is the store's own connection; in commit_with use context::submit() before");
        auto const* const name = sqlite3_db_filename(host, "main");
        file_identity there;
        if (name == nullptr || *name == '\0' || !identify(name, there) || !(there == file))
            refuse("the connection is open on " +
                   (name == nullptr || *name == '\0' ? string("no file") : string(name)) + ", and the tasks are in " +
                   path);
        if (sqlite3_db_readonly(host, "main") == 1) refuse("the connection is read-only");
        if (asks(host, "PRAGMA query_only", [](sqlite3_stmt* row) { return sqlite3_column_int(row, 0) != 0; }))
            refuse("the connection is read-only (PRAGMA query_only)");
        if (asks(host, "PRAGMA database_list", [](sqlite3_stmt* row) {
                auto const* const text = reinterpret_cast<char const*>(sqlite3_column_text(row, 1));
                std::string_view const schema = text == nullptr ? "" : text;
                return schema != "main" && schema != "temp";
            }))
            refuse("the connection has attached databases, and several files do not commit together in WAL mode");
        return host;
    }

    /// Whether any row of `sql` is as `wanted` says.
    template <class Wanted>
    static bool asks(sqlite3* host, char const* sql, Wanted&& wanted) {
        sqlite3_stmt* made = nullptr;
        sqlite3_prepare_v2(host, sql, -1, &made, nullptr);
        typename Connection::statement const statement(made);
        bool found = false;
        while (made != nullptr && !found && sqlite3_step(made) == SQLITE_ROW) found = wanted(made);
        return found;
    }

    void touch(string const& store) {
        int touched = 0;
        string found;
        try {
            touched = sqlite_run(sql_, sqlite_sql::touch_ids).finish();
            sqlite_run row(sql_, sqlite_sql::store_id);
            if (row.next()) found = row.text(0);
        } catch (error const&) {
            if (sqlite3_errcode(sql_.handle()) != SQLITE_ERROR) throw; // else there is no such table
        }
        if (touched != 1 || found != store) refuse(sql_.path() + " as the connection sees it is not this store");
    }

    Connection sql_;
    sqlite_session<Connection> session_;
};

} // namespace ax::detail

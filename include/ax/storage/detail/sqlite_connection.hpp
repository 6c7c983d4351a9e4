// SPDX-License-Identifier: MIT
// A connection to SQLite, its prepared statements, and what its errors mean.
#pragma once

#include "ax/core/error.hpp"
#include "ax/storage/detail/sqlite_schema.hpp"
#include "ax/time/time_point.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#if SQLITE_VERSION_NUMBER < 3024000
#error "ax needs SQLite 3.24 or later"
#endif

namespace ax::detail {

/// What an extended result code means for the caller.
/// @param system  The errno beside it.
constexpr errc sqlite_meaning(int code, int system) noexcept {
    if (system == ENOSPC || system == EDQUOT) return errc::disk_full;
    switch (code) { // those whose primary code says too little
    case SQLITE_IOERR_SHMSIZE: return errc::disk_full;
    case SQLITE_IOERR_CORRUPTFS: return errc::corrupt;
    default: break;
    }
    switch (code & 0xFF) {
    case SQLITE_FULL: return errc::disk_full;
    case SQLITE_NOTADB: return errc::not_a_store;
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT: // no input can violate one: the indexes contradict each other
    case SQLITE_MISMATCH:
    case SQLITE_ERROR: // tables or columns that were there at open() are gone
        return errc::corrupt;
    case SQLITE_TOOBIG: return errc::invalid_argument;
    default: // BUSY, LOCKED, IOERR, READONLY, CANTOPEN, PERM, PROTOCOL, INTERRUPT ...
        return errc::unavailable;
    }
}

/// A text or blob that is stored as NULL where it is empty.
struct sqlite_text {
    std::string_view value;
};
struct sqlite_blob {
    std::string_view value;
};

/// What is bound to a parameter of a statement. Texts are only looked at: they must outlive the run.
class sqlite_value {
  public:
    template <class Number>
        requires std::is_integral_v<Number> || std::is_enum_v<Number> sqlite_value(Number number)
    noexcept : number_(static_cast<std::int64_t>(number)) {}
    sqlite_value(time_point time) noexcept : number_(time.time_since_epoch().count()) {}
    sqlite_value(std::optional<time_point> const& time) noexcept
        : kind_(time ? kind::number : kind::null), number_(time ? time->time_since_epoch().count() : 0) {}
    sqlite_value(std::string_view text) noexcept : kind_(kind::text), bytes_(text) {}
    sqlite_value(std::string const& text) noexcept : sqlite_value(std::string_view(text)) {}
    sqlite_value(sqlite_text text) noexcept : kind_(text.value.empty() ? kind::null : kind::text), bytes_(text.value) {}
    sqlite_value(sqlite_blob blob) noexcept : kind_(blob.value.empty() ? kind::null : kind::blob), bytes_(blob.value) {}

    int bind(sqlite3_stmt* statement, int at) const {
        switch (kind_) {
        case kind::null: return sqlite3_bind_null(statement, at);
        case kind::number: return sqlite3_bind_int64(statement, at, number_);
        // SQLITE_STATIC: no copy, since a statement is bound anew before each run.
        case kind::text: return sqlite3_bind_text64(statement, at, data(), bytes_.size(), SQLITE_STATIC, SQLITE_UTF8);
        case kind::blob: return sqlite3_bind_blob64(statement, at, data(), bytes_.size(), SQLITE_STATIC);
        }
        return SQLITE_MISUSE;
    }

  private:
    enum class kind : std::uint8_t { null, number, text, blob };

    char const* data() const noexcept { return bytes_.data() == nullptr ? "" : bytes_.data(); }

    kind kind_ = kind::number;
    std::int64_t number_ = 0;
    std::string_view bytes_;
};

/// Says that a connection belongs to somebody else.
struct sqlite_borrowed {};

/// One connection. Used by one thread at a time.
class sqlite_connection {
  public:
    /// Opens, and with `create` makes what is not there. Until opened() is called a busy file is an error `locked`,
    /// since at open it means that another program has it.
    /// @param vfs  The name of a SQLite VFS; empty: SQLite's default.
    explicit sqlite_connection(std::string path, bool create = true, std::string const& vfs = {})
        : path_(std::move(path)) {
        int const flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX;
        sqlite3* opened = nullptr;
        int const code = sqlite3_open_v2(path_.c_str(), &opened, flags, vfs.empty() ? nullptr : vfs.c_str());
        owned_.database = opened;
        if (opened == nullptr) throw std::bad_alloc();
        sqlite3_extended_result_codes(opened, 1);
        if (code != SQLITE_OK) fail(code);
    }

    /// Uses one that somebody else has opened, and will close; its statements go with this object.
    sqlite_connection(sqlite3* opened, sqlite_borrowed, std::string path) : path_(std::move(path)), opening_(false) {
        owned_.database = opened;
        owned_.closes = false;
    }

    void opened() noexcept { opening_ = false; }

    sqlite3* handle() const noexcept { return owned_.database; }
    std::string const& path() const noexcept { return path_; }

    void execute(char const* sql) {
        int const code = sqlite3_exec(owned_.database, sql, nullptr, nullptr, nullptr);
        if (code != SQLITE_OK) fail(code);
    }

    /// The prepared form of a statement; made at its first use.
    sqlite3_stmt* prepared(sqlite_sql name) {
        auto& slot = owned_.statements[static_cast<std::size_t>(name)];
        if (slot == nullptr) slot = prepare(sqlite_statements[static_cast<std::size_t>(name)].sql).release();
        return slot;
    }

    /// Owns a prepared statement. (No std::unique_ptr: it takes longer to compile than the rest of this class.)
    class statement {
      public:
        explicit statement(sqlite3_stmt* made) noexcept : made_(made) {}
        statement(statement&& other) noexcept : made_(other.release()) {}
        statement& operator=(statement&&) = delete;
        ~statement() { sqlite3_finalize(made_); }

        sqlite3_stmt* get() const noexcept { return made_; }
        sqlite3_stmt* release() noexcept { return std::exchange(made_, nullptr); }

      private:
        sqlite3_stmt* made_;
    };

    statement prepare(char const* sql) {
        sqlite3_stmt* made = nullptr;
        int const code = sqlite3_prepare_v3(owned_.database, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
        if (code != SQLITE_OK) fail(code);
        return statement(made);
    }

    void prepare_all() {
        for (auto const& text : sqlite_statements) prepared(text.name);
    }

    bool in_transaction() const noexcept { return sqlite3_get_autocommit(owned_.database) == 0; }

    /// Throws what the latest failure of this connection means. Its message names the path, and for a refused access
    /// what must be writable.
    [[noreturn]] void fail(int code) {
        if ((code & 0xFF) == SQLITE_NOMEM) throw std::bad_alloc();
        auto meaning = sqlite_meaning(code, sqlite3_system_errno(owned_.database));
        std::string text = path_ + ": " + sqlite3_errmsg(owned_.database) + " (SQLite " + std::to_string(code) + ")";
        switch (code & 0xFF) {
        case SQLITE_READONLY:
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
            text += "; SQLite needs write access to " + path_ + " and to its directory, for the files " + path_ +
                    "-wal and " + path_ + "-shm";
            break;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            text += "; another connection holds the lock";
            if (opening_) meaning = errc::locked;
            break;
        default: break;
        }
        failed_ = true;
        if (first_text_.empty()) {
            first_meaning_ = meaning;
            first_text_ = text;
        }
        throw error(meaning, text);
    }

    /// The first failure since forget_failures(): what follows it is often only its echo.
    bool has_failed() const noexcept { return failed_; }
    [[noreturn]] void throw_first_failure() const {
        if (!first_text_.empty()) throw error(first_meaning_, first_text_);
        throw error(errc::unavailable, path_ + ": the transaction has been rolled back");
    }
    void forget_failures() noexcept {
        failed_ = false;
        first_text_.clear();
    }

  private:
    struct handles {
        sqlite3* database = nullptr;
        bool closes = true;
        sqlite3_stmt* statements[sqlite_statements.size()] = {};

        handles() = default;
        handles(handles const&) = delete;
        handles& operator=(handles const&) = delete;
        ~handles() {
            for (auto* const statement : statements) sqlite3_finalize(statement);
            if (closes) sqlite3_close_v2(database);
        }
    };

    std::string path_;
    handles owned_;
    bool opening_ = true;
    bool failed_ = false;
    errc first_meaning_ = errc::unavailable; ///< of the first failure, and its text; empty: none
    std::string first_text_;
};

/// One execution of a prepared statement: binds, steps, and resets it at the end, so that none is left open.
class sqlite_run {
  public:
    sqlite_run(sqlite_connection& connection, sqlite_sql name, std::initializer_list<sqlite_value> values = {})
        : sqlite_run(connection, connection.prepared(name), values) {}

    sqlite_run(sqlite_connection& connection, sqlite3_stmt* statement, std::initializer_list<sqlite_value> values = {})
        : connection_(connection), statement_(statement) {
        int at = 0;
        for (auto const& value : values)
            if (int const code = value.bind(statement_, ++at); code != SQLITE_OK) {
                sqlite3_reset(statement_);
                connection_.fail(code);
            }
    }

    sqlite_run(sqlite_run const&) = delete;
    sqlite_run& operator=(sqlite_run const&) = delete;
    ~sqlite_run() { sqlite3_reset(statement_); }

    /// @return  True where there is a row.
    bool next() {
        int const code = sqlite3_step(statement_);
        if (code == SQLITE_ROW) return true;
        if (code != SQLITE_DONE) connection_.fail(code);
        return false;
    }

    /// Runs it to the end.
    /// @return  How many rows it changed.
    int finish() {
        while (next()) {
        }
        return sqlite3_changes(connection_.handle());
    }

    bool null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
    bool is_integer(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_INTEGER; }
    std::int64_t number(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
    template <class Number>
    Number as(int column) const noexcept {
        return static_cast<Number>(number(column));
    }
    time_point time(int column) const noexcept { return time_point{duration{number(column)}}; }
    std::optional<time_point> maybe_time(int column) const noexcept {
        return null(column) ? std::nullopt : std::optional{time(column)};
    }

    /// Valid until the next step. Empty for NULL. Bytes as they were given, NUL bytes included.
    std::string_view text(int column) const {
        // Texts are asked for as texts, since a host's database may hold them in UTF-16.
        void const* const bytes = sqlite3_column_type(statement_, column) == SQLITE_TEXT
                                      ? static_cast<void const*>(sqlite3_column_text(statement_, column))
                                      : sqlite3_column_blob(statement_, column);
        auto const size = sqlite3_column_bytes(statement_, column);
        return bytes == nullptr ? std::string_view{}
                                : std::string_view(static_cast<char const*>(bytes), static_cast<std::size_t>(size));
    }
    std::string copy(int column) const { return std::string(text(column)); }

  private:
    sqlite_connection& connection_;
    sqlite3_stmt* statement_;
};

} // namespace ax::detail

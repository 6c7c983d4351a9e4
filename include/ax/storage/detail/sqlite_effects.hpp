// SPDX-License-Identifier: MIT
// What handlers write themselves in the commit that records their success. Each attempt's writes lie in a savepoint of
// their own, so that one which fails takes nothing with it. The connection is the store's, and strangers hold it for a
// moment, so while they do
//  - an authorizer refuses what would end the transaction, reach beyond the file, or change what is ours;
//  - a commit hook turns every commit into a rollback. That is for statements which end the transaction unasked
//    (INSERT OR ROLLBACK, RAISE(ROLLBACK), a full disk): what is run after one of these would commit by itself.
// Both are set once, at open, and switched by a flag: setting an authorizer makes SQLite prepare every statement anew.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/storage/concept.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

namespace ax::detail {

/// A transaction was ended by the effects of an attempt, which know that by now (attempt_effects::fault): it can be
/// redone without them.
class sqlite_transaction_ended : public error {
  public:
    explicit sqlite_transaction_ended(std::string const& text) : error(errc::unavailable, text) {}
};

/// Watches over the writing connection while it is in the hands of a handler.
template <class Connection>
class sqlite_effects {
    using string = dependent<std::string, Connection>;

  public:
    sqlite_effects() = default;
    sqlite_effects(sqlite_effects const&) = delete;
    sqlite_effects& operator=(sqlite_effects const&) = delete;

    /// Before statements are prepared. This object must outlive every use of the connection.
    void watch(Connection& sql) {
        sqlite3_set_authorizer(sql.handle(), &sqlite_effects::authorize, this);
        sqlite3_commit_hook(sql.handle(), &sqlite_effects::committing, this);
    }

    /// Calls what an attempt has to write. All of it is in the transaction afterwards, or nothing.
    /// @return  What was wrong; empty: nothing.
    /// @throws  sqlite_transaction_ended
    string run(Connection& sql, attempt_effects& effects) {
        if (!effects.fault.empty()) return effects.fault;
        sqlite_run(sql, sqlite_sql::begin_effects).finish();
        auto problem = call(sql, effects);
        if (!sql.in_transaction()) end(effects, ended + problem);
        try {
            if (!problem.empty()) sqlite_run(sql, sqlite_sql::undo_effects).finish();
            sqlite_run(sql, sqlite_sql::keep_effects).finish();
        } catch (error const& e) { // the savepoint is gone: no telling what else is
            end(effects, ended + string(e.what()));
        }
        return problem;
    }

  private:
    static constexpr std::size_t error_limit = 4096;
    static constexpr char const* ended = "commit_with ended the transaction that it was called in: ";

    [[noreturn]] static void end(attempt_effects& effects, string const& text) {
        effects.fault = bounded_text(text, error_limit);
        throw sqlite_transaction_ended(effects.fault);
    }

    /// The flag that both hooks look at.
    struct loan {
        sqlite_effects& owner;
        explicit loan(sqlite_effects& of) : owner(of) { owner.lent_ = true; }
        ~loan() { owner.lent_ = false; }
        loan(loan const&) = delete;
        loan& operator=(loan const&) = delete;
    };

    string call(Connection& sql, attempt_effects& effects) {
        auto* const db = sql.handle();
        string problem;
        refused_.clear();
        altered_ = false;
        {
            loan const lent(*this);
            try {
                for (auto& write : effects.on_sqlite) {
                    write(db);
                    if (!refused_.empty() || !sql.in_transaction()) break;
                }
            } catch (std::exception const& e) {
                auto const* const text = e.what(); // a class of the host's: it may be null
                problem = text != nullptr && *text != '\0' ? text : "commit_with: an exception without a text";
            } catch (...) {
                problem = "commit_with threw something that is no std::exception";
            }
        }
        // A statement that was left in the middle keeps its snapshot, and may keep the transaction from its commit.
        for (auto* left = sqlite3_next_stmt(db, nullptr); left != nullptr; left = sqlite3_next_stmt(db, left))
            if (sqlite3_stmt_busy(left) != 0) sqlite3_reset(left);
        if (!refused_.empty()) problem = problem.empty() ? refused_ : refused_ + " (" + problem + ")";
        // With them the commit would fail, for all that share it.
        int open = 0;
        int ignored = 0;
        sqlite3_db_status(db, SQLITE_DBSTATUS_DEFERRED_FKS, &open, &ignored, 0);
        if (open != 0 && problem.empty()) problem = "commit_with left a foreign key without its row";
        if (problem.empty() && !sql.in_transaction()) problem = "a statement rolled it back";
        if (problem.empty() && altered_) problem = named_like_ours(sql);
        return bounded_text(problem, error_limit);
    }

    /// The authorizer is not told the new name of what is renamed.
    static string named_like_ours(Connection& sql) {
        auto const names = sql.prepare("SELECT name, temporary FROM (SELECT name, 0 AS temporary FROM sqlite_master "
                                       "UNION ALL SELECT name, 1 FROM sqlite_temp_master) "
                                       "WHERE lower(substr(name, 1, 3)) = 'ax_'");
        sqlite_run name(sql, names.get());
        while (name.next())
            if (name.number(1) != 0 || !is_of_the_schema(name.text(0)))
                return "commit_with may not name a table " + string(name.text(0));
        return {};
    }

    static bool is_of_the_schema(std::string_view name) {
        for (auto const& migration : sqlite_migrations) {
            std::string_view const text = migration.sql;
            for (std::string_view const what : {"TABLE ", "INDEX ", "TRIGGER "})
                if (text.find("CREATE " + string(what) + string(name) + ' ') != text.npos ||
                    text.find("CREATE UNIQUE " + string(what) + string(name) + ' ') != text.npos)
                    return true;
        }
        return false;
    }

    // ---- what SQLite calls ------------------------------------------------------------------------------------------

    static int committing(void* self) noexcept { return static_cast<sqlite_effects*>(self)->lent_ ? 1 : 0; }

    static int authorize(void* self, int action, char const* first, char const* second, char const*,
                         char const*) noexcept {
        auto& mine = *static_cast<sqlite_effects*>(self);
        if (!mine.lent_) return SQLITE_OK;
        try {
            auto const what = refusal(action, text(first), text(second));
            if (what.empty()) {
                mine.altered_ = mine.altered_ || action == SQLITE_ALTER_TABLE;
                return SQLITE_OK;
            }
            if (mine.refused_.empty()) mine.refused_ = "commit_with may not " + what;
        } catch (...) { // out of memory
            return SQLITE_DENY;
        }
        return SQLITE_DENY;
    }

    static std::string_view text(char const* given) noexcept { return given == nullptr ? "" : given; }

    static bool equal(std::string_view a, std::string_view b) noexcept { // as SQLite compares names
        if (a.size() != b.size()) return false;
        for (std::size_t i = 0; i != a.size(); ++i)
            if (lower(a[i]) != lower(b[i])) return false;
        return true;
    }
    static char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
    static bool is_ours(std::string_view name) noexcept { return equal(name.substr(0, 3), "ax_"); }

    /// The table of an index that SQLite has named itself, and else the index.
    static std::string_view without_prefix(std::string_view index) noexcept {
        constexpr std::string_view prefix = "sqlite_autoindex_";
        return index.substr(0, prefix.size()) == prefix ? index.substr(prefix.size()) : index;
    }

    /// What an action would be, in words; empty where it is allowed.
    static string refusal(int action, std::string_view first, std::string_view second) {
        auto const named = [](char const* what, std::string_view name) { return what + string(name); };
        switch (action) {
        case SQLITE_TRANSACTION: return named("begin or end a transaction: ", first);
        case SQLITE_SAVEPOINT:
            return equal(second, "ax_effects") ? named("use the savepoint of its caller: ", second) : string{};
        case SQLITE_ATTACH: return named("attach a database: ", first);
        case SQLITE_DETACH: return named("detach a database: ", first);
        case SQLITE_PRAGMA:
            if (second.empty() || only_reads(first)) return {};
            return named("set ", first) + " = " + string(second) + " (PRAGMA)";
        case SQLITE_INSERT:
        case SQLITE_UPDATE:
        case SQLITE_DELETE:
        case SQLITE_CREATE_TABLE:
        case SQLITE_CREATE_TEMP_TABLE:
        case SQLITE_CREATE_VIEW:
        case SQLITE_CREATE_TEMP_VIEW:
        case SQLITE_CREATE_VTABLE:
        case SQLITE_DROP_TABLE:
        case SQLITE_DROP_VIEW:
        case SQLITE_DROP_VTABLE: return is_ours(first) ? named("change ", first) : string{};
        case SQLITE_ANALYZE: return is_ours(first) ? named("analyze ", first) : string{};
        case SQLITE_REINDEX: return is_ours(without_prefix(first)) ? named("reindex ", first) : string{};
        case SQLITE_ALTER_TABLE: return is_ours(second) ? named("change ", second) : string{};
        case SQLITE_CREATE_INDEX:
        case SQLITE_CREATE_TEMP_INDEX:
        case SQLITE_DROP_INDEX:
        case SQLITE_CREATE_TRIGGER:
        case SQLITE_CREATE_TEMP_TRIGGER:
        case SQLITE_DROP_TRIGGER:
            if (is_ours(second)) return named("change ", second);
            return is_ours(first) ? named("change ", first) : string{};
        default: return {};
        }
    }

    /// Those that take an argument and change nothing by it.
    static bool only_reads(std::string_view pragma) noexcept {
        for (std::string_view const name :
             {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
              "foreign_key_check", "integrity_check", "quick_check"})
            if (equal(pragma, name)) return true;
        return false;
    }

    bool lent_ = false;
    bool altered_ = false; ///< during the present call
    string refused_;       ///< the first thing that was refused during the present call
};

} // namespace ax::detail

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_schema.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace ax::detail {

/// What a database says of the store in it.
struct sqlite_header {
    int version = 0; ///< of the schema; 0 where there is no store of ax
    std::string store_id;
};

/// Reads it without changing anything.
/// @throws error  not_a_store, newer_schema or corrupt, with what is wrong.
template <class Connection>
dependent<sqlite_header, Connection> read_header(Connection& sql) {
    dependent<sqlite_header, Connection> header;
    std::int64_t tables = 0;
    bool meta = false;
    {
        auto const statement = sql.prepare(sqlite_count_tables);
        sqlite_run count(sql, statement.get());
        count.next();
        tables = count.number(0);
        meta = count.number(1) != 0;
    }
    if (tables == 0) return header;
    auto const stranger = sql.path() + " has tables that are called like those of ax and are not";
    if (!meta) throw error(errc::not_a_store, stranger);
    sqlite3_stmt* probe = nullptr;
    int const code = sqlite3_prepare_v2(sql.handle(), sqlite_read_meta, -1, &probe, nullptr);
    typename Connection::statement const statement(probe);
    if (code == SQLITE_ERROR) throw error(errc::not_a_store, stranger);
    if (code != SQLITE_OK) sql.fail(code);

    std::int64_t version = 0;
    {
        sqlite_run row(sql, probe, {std::string_view{"schema_version"}});
        if (!row.next() || !row.is_integer(0) || row.number(0) < 1)
            throw error(errc::not_a_store, sql.path() + ": ax_meta names no version of the schema");
        version = row.number(0);
    }
    if (version > sqlite_schema_version)
        throw error(errc::newer_schema, sql.path() + " has schema " + std::to_string(version) +
                                            ", and this program knows none beyond " +
                                            std::to_string(sqlite_schema_version));
    {
        sqlite_run row(sql, probe, {std::string_view{"store_id"}});
        if (!row.next() || row.text(0).size() != 32)
            throw error(errc::corrupt, sql.path() + ": ax_meta names no store");
        header.store_id = row.text(0);
    }
    header.version = static_cast<int>(version);
    return header;
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// What SQLite's errors mean, and a file system on which it cannot do what is asked of it.
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"

#include <cerrno>
#include <sqlite3.h>

TEST_CASE("every error of SQLite has a meaning: what is full, what may pass, what is damaged",
          "[storage][sqlite]") { // F158
    using ax::errc;
    using ax::detail::sqlite_meaning;
    CHECK(sqlite_meaning(SQLITE_FULL, 0) == errc::disk_full);
    CHECK(sqlite_meaning(SQLITE_IOERR_SHMSIZE, 0) == errc::disk_full); // no room for the shared memory file
    for (int const code : {SQLITE_IOERR_WRITE, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_FSYNC, SQLITE_CANTOPEN}) {
        CAPTURE(code);
        CHECK(sqlite_meaning(code, ENOSPC) == errc::disk_full);
        CHECK(sqlite_meaning(code, EDQUOT) == errc::disk_full);
        CHECK(sqlite_meaning(code, 0) == errc::unavailable);
    }
    for (int const code : {SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_BUSY_RECOVERY, SQLITE_LOCKED, SQLITE_READONLY,
                           SQLITE_READONLY_DBMOVED, SQLITE_PROTOCOL, SQLITE_INTERRUPT, SQLITE_PERM})
        CHECK(sqlite_meaning(code, 0) == errc::unavailable);
    for (int const code : {SQLITE_CORRUPT, SQLITE_CORRUPT_VTAB, SQLITE_IOERR_CORRUPTFS, SQLITE_CONSTRAINT_UNIQUE})
        CHECK(sqlite_meaning(code, 0) == errc::corrupt);
    CHECK(sqlite_meaning(SQLITE_NOTADB, 0) == errc::not_a_store);
    CHECK(sqlite_meaning(SQLITE_TOOBIG, 0) == errc::invalid_argument);
}

TEST_CASE("a file system without shared memory is refused at open, since the log needs it",
          "[storage][sqlite]") { // F151
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    struct other_files { // SQLite's own way to files on such a system
        sqlite3_vfs* const usual = sqlite3_vfs_find(nullptr);
        other_files() { sqlite3_vfs_register(sqlite3_vfs_find("unix-none"), 1); }
        ~other_files() { sqlite3_vfs_register(usual, 1); }
    };
    {
        other_files const here;
        try {
            ax::sqlite_storage const store{path};
            FAIL("it was opened");
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::unavailable);
            CHECK_THAT(e.what(), Catch::Matchers::Contains("write-ahead log") && Catch::Matchers::Contains(path));
        }
    }
    CHECK_NOTHROW(ax::sqlite_storage{path}); // and nothing is left behind that keeps it from opening
}

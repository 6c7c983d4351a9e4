// SPDX-License-Identifier: MIT
// What the lock file says after a power cut. It is written past SQLite, so this program stands in the place of fsync().
#include "ax/storage/sqlite.hpp"

#include "disk/power_vfs.hpp"
#include "disk/support.hpp"
#include "support/catch.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#if defined(__linux__)

namespace {

/// The content of each file called -ax as of its latest fsync().
std::mutex flushes;
std::map<std::string, std::string> flushed;
std::atomic<int> refusal{0}; ///< the errno that fsync() has; 0: none

} // namespace

extern "C" int fsync(int file) { // replaces that of the C library in this program
    char path[4096];
    auto const link = "/proc/self/fd/" + std::to_string(file);
    auto const length = ::readlink(link.c_str(), path, sizeof path);
    std::string const name(path, length < 0 ? 0 : static_cast<std::size_t>(length));
    if (!name.ends_with("-ax")) return ::fdatasync(file);
    if (refusal != 0) {
        errno = refusal;
        return -1;
    }
    std::lock_guard const guard{flushes};
    flushed[name] = disk::content_of(name);
    return 0;
}

TEST_CASE("after a power cut a store does not say that it was closed well", "[disk][power]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const on_disk = [&] {
        std::lock_guard const guard{flushes};
        return flushed[path + "-ax"];
    };
    { ax::sqlite_storage const store{path}; }
    CHECK(on_disk() == disk::content_of(path + "-ax"));
    {
        ax::sqlite_storage const store{path};
        CHECK(store.was_clean());
        CHECK(on_disk().find(store.store_id() + " open ") != std::string::npos);
    }
    // The power is cut while it is open: what was not flushed is lost.
    auto const before = [&] {
        ax::sqlite_storage const store{path};
        return on_disk();
    }();
    disk::write_content(path + "-ax", before);
    CHECK_FALSE(ax::sqlite_storage{path}.was_clean());
}

TEST_CASE("a lock file that cannot be flushed is an error at open, but for file systems that never flush",
          "[disk][sick]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    struct reset {
        ~reset() { refusal = 0; }
    } const afterwards;
    refusal = EIO;
    try {
        ax::sqlite_storage const store{path};
        FAIL("opened");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::unavailable);
        CHECK_THAT(e.what(), Catch::Matchers::Contains(path + "-ax"));
    }
    refusal = EINVAL;
    CHECK_NOTHROW(ax::sqlite_storage{path});
    refusal = 0;
    CHECK(ax::sqlite_storage{path}.was_clean());
}

#endif

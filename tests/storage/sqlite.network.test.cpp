// SPDX-License-Identifier: MIT
// A store on a network file system, as far as a machine without one can show it: what the kernel calls the file system
// is replaced by what it would say.
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "support/catch.hpp"

#if defined(__linux__)

#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace {

/// What every file system is said to be; 0: what it is.
std::uint32_t pretended_file_system = 0;

struct on_file_system {
    explicit on_file_system(std::uint32_t type) { pretended_file_system = type; }
    ~on_file_system() { pretended_file_system = 0; }
};

} // namespace

/// In the place of the C library's, for this program.
extern "C" int statfs(char const* path, struct statfs* status) noexcept {
    auto const answer = static_cast<int>(::syscall(SYS_statfs, path, status));
    if (answer == 0 && pretended_file_system != 0)
        status->f_type = static_cast<decltype(status->f_type)>(pretended_file_system);
    return answer;
}

TEST_CASE("a network file system is refused at open, by what the kernel calls it", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const [type, name] =
        GENERATE(std::pair{0x6969U, "NFS"}, std::pair{0x517BU, "SMB"}, std::pair{0xFF534D42U, "SMB"},
                 std::pair{0xFE534D42U, "SMB"}, std::pair{0x5346414FU, "AFS"});
    CAPTURE(name);
    {
        on_file_system const network{type};
        try {
            ax::sqlite_storage const store{path};
            FAIL("it was opened");
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::unavailable);
            CHECK_THAT(e.what(), Catch::Matchers::Contains(path) && Catch::Matchers::Contains(name));
        }
        CHECK_FALSE(std::filesystem::exists(path));
        CHECK_NOTHROW(ax::sqlite_storage{path, {.allow_network_file_system = true}}); // who knows better
    }
    CHECK_NOTHROW(ax::sqlite_storage{path});
    on_file_system const other{0xEF53U}; // ext4
    CHECK_NOTHROW(ax::sqlite_storage{path});
}

#endif

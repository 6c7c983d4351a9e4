// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/sqlite.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

/// A directory of its own for one test, gone with it.
class temporary_directory {
  public:
    temporary_directory() {
        auto pattern = (std::filesystem::temp_directory_path() / "ax-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
        path_ = pattern;
    }
    temporary_directory(temporary_directory const&) = delete;
    temporary_directory& operator=(temporary_directory const&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::string file(std::string const& name) const { return (path_ / name).string(); }
    std::filesystem::path const& path() const noexcept { return path_; }

  private:
    std::filesystem::path path_;
};

/// How the conformance suite opens a sqlite_storage.
struct sqlite_fixture {
    using storage_type = ax::sqlite_storage;
    static constexpr bool durable = true;

    storage_type open() { return storage_type{directory.file("store.db")}; }

    storage_type reopen(storage_type store) {
        { auto const closed = std::move(store); }
        return open();
    }

    temporary_directory directory;
};

// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace bench {

/// Where stores lie, unless a benchmark is told: AX_BENCH_DIR, or where temporary files lie.
inline std::filesystem::path usual_place() {
    auto const* const chosen = std::getenv("AX_BENCH_DIR");
    return chosen == nullptr ? std::filesystem::temp_directory_path() : std::filesystem::path{chosen};
}

/// A directory of its own for one store, gone in the end. The disk below it is what is measured.
class workplace {
  public:
    explicit workplace(std::filesystem::path const& below = usual_place()) {
        auto pattern = (below / "ax-bench-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        path_ = pattern;
    }
    workplace(workplace const&) = delete;
    workplace& operator=(workplace const&) = delete;
    ~workplace() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::string file() const { return (path_ / "store.db").string(); }

    /// Of the database and its log.
    std::uintmax_t bytes() const {
        std::uintmax_t sum = 0;
        for (auto const& entry : std::filesystem::directory_iterator(path_)) {
            if (entry.path().extension() != ".db-shm") sum += entry.file_size();
        }
        return sum;
    }

  private:
    std::filesystem::path path_;
};

} // namespace bench

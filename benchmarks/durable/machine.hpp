// SPDX-License-Identifier: MIT
// What a benchmark asks of the machine: what the process uses, how often it flushed a file.
#pragma once

#include <malloc.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace bench {

using steady = std::chrono::steady_clock;

inline double seconds_since(steady::time_point start) {
    return std::chrono::duration<double>(steady::now() - start).count();
}

/// Microseconds of wall time since the epoch.
inline std::int64_t wall_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// How often this process has flushed a file: SQLite does so once for a commit that a power cut must not undo.
inline std::atomic<std::uint64_t> flushes{0};

/// What this process holds, in MB.
struct memory {
    double resident = 0;
    double sqlite = 0; ///< of that: what SQLite has asked for, nearly all of it the pages in its caches

    /// @param trim  First gives back what was freed, so that it does not hide what comes.
    static memory now(bool trim = false) {
        if (trim) ::malloc_trim(0);
        std::ifstream file("/proc/self/statm");
        double pages = 0;
        file >> pages >> pages;
        return {pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6,
                static_cast<double>(sqlite3_memory_used()) / 1e6};
    }
    memory since(memory const& before) const { return {resident - before.resident, sqlite - before.sqlite}; }
    double apart() const { return resident - sqlite; }
};

/// Processor time and wake-ups of this process so far.
struct usage {
    double cpu_seconds = 0;
    double wakeups = 0;

    static usage now() {
        rusage used{};
        ::getrusage(RUSAGE_SELF, &used);
        auto const seconds = [](timeval t) {
            return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
        };
        return {seconds(used.ru_utime) + seconds(used.ru_stime), static_cast<double>(used.ru_nvcsw)};
    }
};

/// The value that `share` of the samples do not exceed. They are sorted here; there is at least one.
inline double percentile(std::vector<double>& samples, double share) {
    std::ranges::sort(samples);
    auto const at = static_cast<std::size_t>(share * static_cast<double>(samples.size()));
    return samples[(std::min)(at, samples.size() - 1)];
}

inline double median(std::vector<double> samples) { return percentile(samples, 0.5); }

} // namespace bench

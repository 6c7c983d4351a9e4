// SPDX-License-Identifier: MIT
// A crontab that people have, and what it plans.
#pragma once

#include "../../examples/crontab_file.hpp"

#include "ax/cron/cron.hpp"
#include "ax/time/time_point.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace endurance {

using namespace std::chrono_literals;

// Sanitized code is many times slower: it sees the same steps, for a shorter time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

struct planned {
    std::string name; ///< of the schedule: zone and line
    ax::cron when;
};

/// The schedules of the file at `path` in one zone.
inline std::vector<planned> schedules_of(std::string const& path, std::string const& zone) {
    std::vector<planned> all;
    for (auto const& entry : crontab::read_file(path, crontab::table::personal, ax::time_zone{zone}).entries)
        if (entry.when) all.push_back({zone + " line " + std::to_string(entry.line), *entry.when});
    return all;
}

} // namespace endurance

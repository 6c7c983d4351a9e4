// SPDX-License-Identifier: MIT
// Short forms of instants for the tests of cron.
#pragma once

#include "ax/time/time_point.hpp"

#include <chrono>
#include <cstdint>

namespace cron_test {

inline ax::time_point utc(int y, int m, int d, std::chrono::seconds time = std::chrono::seconds{0}) {
    return std::chrono::sys_days{std::chrono::year{y} / m / d} + time;
}

inline std::int64_t seconds_of(ax::time_point t) {
    return std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count();
}

} // namespace cron_test

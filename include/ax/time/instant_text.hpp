// SPDX-License-Identifier: MIT
#pragma once

#include "ax/time/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace ax {

/// An instant as ISO 8601 writes it, in UTC: `2026-03-29T01:30:00Z`, or with milliseconds, `2026-03-29T01:30:00.250Z`,
/// where it has some. For years from 1970 to 9999.
inline std::string to_text(time_point t) {
    auto const padded = [](std::int64_t value, std::size_t width) {
        auto digits = std::to_string(value);
        return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
    };
    auto const day = std::chrono::floor<std::chrono::days>(t);
    std::chrono::year_month_day const date{day};
    auto const time = (t - day).count();
    auto text = padded(static_cast<int>(date.year()), 4) + "-" + padded(static_cast<unsigned>(date.month()), 2) + "-" +
                padded(static_cast<unsigned>(date.day()), 2) + "T" + padded(time / 3'600'000, 2) + ":" +
                padded(time / 60'000 % 60, 2) + ":" + padded(time / 1000 % 60, 2);
    if (time % 1000 != 0) text += "." + padded(time % 1000, 3);
    return text + "Z";
}

} // namespace ax

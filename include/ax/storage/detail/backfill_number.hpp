// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace ax::detail {

/// The note under which a storage keeps the number of the latest backfill.
inline constexpr std::string_view backfills_note = "backfills";

/// The number of the next backfill, given the note of the latest: no number is given twice.
inline std::uint64_t next_backfill(std::string_view latest) noexcept {
    std::uint64_t number = 0;
    std::from_chars(latest.data(), latest.data() + latest.size(), number);
    return number + 1;
}

} // namespace ax::detail

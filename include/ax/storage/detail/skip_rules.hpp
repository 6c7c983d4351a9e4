// SPDX-License-Identifier: MIT
// How what a schedule leaves out is kept, in every storage.
#pragma once

#include "ax/storage/concept.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// Whether what is left out now belongs to the latest range.
/// @param before  The nominal instant of the occurrence before `added`; none: there is none.
inline bool follows_on(skip_range const& latest, skip_range const& added, std::optional<time_point> before) {
    return latest.reason == added.reason && latest.last < added.first && !(before > latest.last);
}

inline std::vector<skip_range> in_order(std::vector<skip_range> ranges) {
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](skip_range const& a, skip_range const& b) { return a.first < b.first; });
    return ranges;
}

/// Counts under the reason, which has its place in the order of their bytes.
/// @return  The reason that had to make room.
inline std::optional<std::string> count_skips(std::vector<skip_count>& counts, std::string_view reason,
                                              std::uint64_t number) {
    auto at = std::lower_bound(counts.begin(), counts.end(), reason,
                               [](skip_count const& one, std::string_view wanted) { return one.reason < wanted; });
    if (at != counts.end() && at->reason == reason) {
        at->number += number;
        return std::nullopt;
    }
    counts.insert(at, {std::string(reason), number});
    if (counts.size() <= most_skips_kept) return std::nullopt;
    auto least = counts.end();
    for (auto one = counts.begin(); one != counts.end(); ++one)
        if (one->reason != reason && (least == counts.end() || one->number < least->number)) least = one;
    auto gone = std::move(least->reason);
    counts.erase(least);
    return gone;
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// The small texts that people write in definitions: lengths of time, instants, and words that are nearly right.
#pragma once

#include "ax/time/time_point.hpp"
#include "ax/time/time_zone.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ax::detail {

/// The longest length of time that a definition may say: a hundred years.
inline constexpr duration longest_defined = std::chrono::days{36'525};

/// "90s", "1h30m", "250ms": numbers with w, d, h, m, s or ms, the larger unit first, each once. A day has 24 hours.
/// Nothing for any other text, and for more than `longest_defined`.
constexpr std::optional<duration> duration_of(std::string_view text) noexcept {
    struct unit {
        std::string_view name;
        std::int64_t length;
    };
    constexpr unit units[] = {{"w", 604'800'000}, {"d", 86'400'000}, {"h", 3'600'000},
                              {"m", 60'000},      {"s", 1'000},      {"ms", 1}};
    if (text.empty()) return std::nullopt;
    std::int64_t sum = 0;
    std::int64_t last = longest_defined.count() + 1;
    while (!text.empty()) {
        std::int64_t count = 0;
        std::size_t at = 0;
        for (; at != text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
            if (count <= longest_defined.count()) count = count * 10 + (text[at] - '0');
        if (at == 0) return std::nullopt;
        text.remove_prefix(at);
        std::size_t letters = 0;
        while (letters != text.size() && text[letters] >= 'a' && text[letters] <= 'z') ++letters;
        std::int64_t length = 0;
        for (auto const& u : units)
            if (u.name == text.substr(0, letters)) length = u.length;
        if (length == 0 || length >= last || count > longest_defined.count() / length) return std::nullopt;
        sum += count * length;
        last = length;
        text.remove_prefix(letters);
    }
    if (sum > longest_defined.count()) return std::nullopt;
    return duration{sum};
}

/// What duration_of() takes for `length`, as short as it can be: "1h30m". Nothing and less is "0s", what is longer than
/// `longest_defined` is that: nobody sees the difference.
inline std::string text_of_length(duration length) {
    struct unit {
        char const* name;
        std::int64_t length;
    };
    constexpr unit units[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};
    auto left = (std::min)(length, longest_defined).count();
    if (left <= 0) return "0s";
    std::string text;
    for (auto const& u : units) {
        if (auto const count = left / u.length; count != 0) text += std::to_string(count) + u.name;
        left %= u.length;
    }
    return text;
}

/// An instant as ISO 8601 writes it: a date and a time of day, seconds and milliseconds if wanted, and `Z` or an offset
/// from UTC, which may be left out where a zone says it.
struct written_instant {
    local_time wall{};
    std::optional<std::chrono::minutes> east; ///< offset from UTC; none: not written
};

/// Nothing where `text` is none.
// 2026-03-29T03:00, 2026-03-29T03:00:00Z, 2026-03-29T03:00:00.250+02:00
constexpr std::optional<written_instant> written_instant_of(std::string_view text) noexcept {
    bool good = true;
    auto const number = [&](std::size_t digits) {
        int value = 0;
        for (std::size_t i = 0; i != digits; ++i) {
            good = good && i < text.size() && text[i] >= '0' && text[i] <= '9';
            if (good) value = value * 10 + (text[i] - '0');
        }
        text.remove_prefix((std::min)(digits, text.size()));
        return value;
    };
    auto const taken = [&](char c) {
        bool const there = !text.empty() && text.front() == c;
        if (there) text.remove_prefix(1);
        return there;
    };
    auto const expect = [&](char c) { good = taken(c) && good; };

    auto const year = number(4);
    expect('-');
    auto const month = static_cast<unsigned>(number(2));
    expect('-');
    auto const day = static_cast<unsigned>(number(2));
    expect('T');
    auto const hour = number(2);
    expect(':');
    auto const minute = number(2);
    int second = 0, fraction = 0;
    if (good && taken(':')) {
        second = number(2);
        if (taken('.')) fraction = number(3);
    }
    std::chrono::year_month_day const date{std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
    if (!good || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;

    written_instant result;
    result.wall = local_time{std::chrono::local_days{date}} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
                  std::chrono::seconds{second} + duration{fraction};
    if (taken('Z')) {
        result.east = std::chrono::minutes{0};
    } else if (!text.empty()) {
        int const sign = text.front() == '-' ? -1 : 1;
        good = taken('+') || taken('-');
        auto const hours = number(2);
        expect(':');
        auto const minutes = number(2);
        if (!good || hours > 23 || minutes > 59) return std::nullopt;
        result.east = sign * (std::chrono::hours{hours} + std::chrono::minutes{minutes});
    }
    if (!text.empty()) return std::nullopt;
    return result;
}

/// How many characters must be put in, left out or changed, or exchanged with their neighbour, to make `b` of `a`;
/// where that is more than 2, some number above 2. Both have at most 32 characters, else it is 3.
constexpr std::size_t edits_between(std::string_view a, std::string_view b) noexcept {
    constexpr std::size_t longest = 32;
    if (a.size() > longest || b.size() > longest) return 3;
    std::array<std::array<std::size_t, longest + 1>, longest + 1> edits{};
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                edits[i][j] = i + j;
                continue;
            }
            bool const same = a[i - 1] == b[j - 1];
            auto best = (std::min)({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = (std::min)(best, edits[i - 2][j - 2] + 1);
            edits[i][j] = best;
        }
    }
    return edits[a.size()][b.size()];
}

/// Of the words that are allowed, the one that was probably meant by `word`; empty where none is like it.
template <class Words>
constexpr std::string_view nearest_word(std::string_view word, Words const& allowed) noexcept {
    std::string_view best;
    std::size_t fewest = 3;
    for (std::string_view const candidate : allowed) {
        auto const edits = edits_between(word, candidate);
        if (edits < fewest && edits < candidate.size() && 2 * edits <= word.size()) {
            fewest = edits;
            best = candidate;
        }
    }
    return best;
}

} // namespace ax::detail

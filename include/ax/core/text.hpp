// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace ax {

/// The longest name (task type, schedule, node) and the longest key or route key, in bytes.
inline constexpr std::size_t longest_name = 255;
inline constexpr std::size_t longest_key = 1024;

/// The longest text form of a schedule's definition, in bytes; only a calendar of many dates comes near.
inline constexpr std::size_t longest_definition = std::size_t{1} << 20;

namespace detail {

/// The length of the UTF-8 character at the front of `text`, or 0 where none stands there (RFC 3629: no overlong forms,
/// no surrogates, nothing above U+10FFFF).
constexpr std::size_t utf8_length(std::string_view text) noexcept {
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    auto const follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
    if (text.empty()) return 0;
    auto const first = byte(0);
    if (first < 0x80U) return 1;
    if (first >= 0xC2U && first <= 0xDFU) return follows(1) ? 2 : 0;
    if (first >= 0xE0U && first <= 0xEFU) {
        if (!follows(1) || !follows(2)) return 0;
        if (first == 0xE0U && byte(1) < 0xA0U) return 0;
        if (first == 0xEDU && byte(1) > 0x9FU) return 0;
        return 3;
    }
    if (first >= 0xF0U && first <= 0xF4U) {
        if (!follows(1) || !follows(2) || !follows(3)) return 0;
        if (first == 0xF0U && byte(1) < 0x90U) return 0;
        if (first == 0xF4U && byte(1) > 0x8FU) return 0;
        return 4;
    }
    return 0;
}

/// The offset of the first byte that is no text (bad UTF-8 or NUL), or npos.
constexpr std::size_t first_bad_byte(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size();) {
        auto const length = text[at] == '\0' ? 0 : utf8_length(text.substr(at));
        if (length == 0) return at;
        at += length;
    }
    return std::string_view::npos;
}

/// `text` made safe to keep and to show: at most `limit` bytes, cut between characters; bytes that are no text become
/// U+FFFD. For diagnostics, which must never be a reason to fail.
inline std::string bounded_text(std::string_view text, std::size_t limit) {
    std::string clean;
    for (std::size_t at = 0; at < text.size();) {
        auto const length = text[at] == '\0' ? 0 : utf8_length(text.substr(at));
        auto const piece = length == 0 ? std::string_view{"\xEF\xBF\xBD"} : text.substr(at, length);
        if (clean.size() + piece.size() > limit) break;
        clean += piece;
        at += length == 0 ? 1 : length;
    }
    return clean;
}

/// Refuses a name or key that is not text of at most `limit` bytes.
/// @param what   What it is, for the message ("key", "task type").
/// @param empty  Whether it may be empty.
/// @throws       error invalid_argument that names `what` and the fault.
inline void check_text(std::string_view text, std::string_view what, std::size_t limit, bool empty) {
    auto const refuse = [&](std::string const& why) {
        throw error(errc::invalid_argument,
                    std::string(what) + " \"" + bounded_text(text, 80) + (text.size() > 80 ? "...\" " : "\" ") + why);
    };
    if (text.empty() && !empty) throw error(errc::invalid_argument, std::string(what) + " is empty");
    if (text.size() > limit)
        refuse("has " + std::to_string(text.size()) + " bytes, at most " + std::to_string(limit) + " are allowed");
    if (auto const at = first_bad_byte(text); at != std::string_view::npos)
        refuse((text[at] == '\0' ? "has a NUL byte at offset " : "is not valid UTF-8 at offset ") + std::to_string(at));
}

} // namespace detail

} // namespace ax

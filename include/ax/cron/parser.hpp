// SPDX-License-Identifier: MIT
#pragma once

#include "ax/cron/detail/reader.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ax {

/// Why a text is no cron expression: what stands where, and what could stand there.
struct cron_error {
    std::optional<cron_field> field; ///< empty: the text as a whole (a macro, the number of fields)
    std::size_t column = 1;          ///< where the trouble begins: bytes from 1 on
    std::string reason;              ///< "is out of range"
    std::string found;               ///< the text that is refused; empty: something is missing
    std::string allowed;             ///< "0-59"

    /// One line: `column 3, hour: "24" is out of range; allowed: 0-23`.
    std::string message() const {
        auto text = "column " + std::to_string(column);
        if (field) text.append(", ").append(name_of(*field));
        text += ": ";
        if (!found.empty()) text.append("\"").append(found).append("\" ");
        text += reason;
        if (!allowed.empty()) text.append("; allowed: ").append(allowed);
        return text;
    }
};

namespace detail {

/// `text` as it may stand in a message: cut to a length, bytes that move cursors or end lines made visible.
inline std::string printable(std::string_view text) {
    constexpr std::size_t longest = 40;
    bool const cut = text.size() > longest;
    if (cut) {
        text = text.substr(0, longest);
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) text.remove_suffix(1);
        if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xc0U) text.remove_suffix(1);
    }
    std::string result;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7f) {
            result += c;
        } else {
            result.append("\\x").append(1, "0123456789abcdef"[byte >> 4]).append(1, "0123456789abcdef"[byte & 15]);
        }
    }
    if (cut) result += "...";
    return result;
}

inline cron_error describe_fault(std::string_view text, cron_grammar const& grammar, cron_fault const& fault) {
    cron_error e;
    e.column = fault.position + 1;
    e.found = printable(text.substr(fault.position, fault.length));
    if (fault.in_field) e.field = fault.field;
    e.reason = reason_of(fault.trouble);
    e.allowed = allowed_by(grammar, fault);
    return e;
}

} // namespace detail

} // namespace ax

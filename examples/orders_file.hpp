// SPDX-License-Identifier: MIT
// Reads a file of orders, one a line, and names every line that is none, with line, column and reason:
//
//   order,placed,limit                     a header, which may be left out
//   100001,2026-03-02T09:12:45.123Z,900    an id, the instant of placing (UTC), the seconds it may stay unpaid
//
// Fields may be quoted and have blanks around them; empty lines do not count. An id is at most 40 letters, digits and
// the signs - _ . and occurs once.
#pragma once

#include <ax/time/time_point.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orders {

struct order {
    std::string id;
    ax::time_point placed;
    ax::duration limit{};

    ax::time_point due() const { return placed + limit; }
};

struct problem {
    std::size_t line = 0, column = 0; ///< from 1 on; columns count bytes
    std::string reason;
};

struct unreadable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct file {
    std::vector<order> entries;
    std::vector<problem> problems;
};

/// "2026-03-02T09:12:45Z", with up to three digits of a fraction. Nothing for any other text or a date that is none.
inline std::optional<ax::time_point> parse_instant(std::string_view text) {
    auto const number = [&](std::size_t at, std::size_t digits) -> int {
        int value = 0;
        if (text.size() < at + digits) return -1;
        for (auto const c : text.substr(at, digits)) {
            if (c < '0' || c > '9') return -1;
            value = value * 10 + (c - '0');
        }
        return value;
    };
    auto const sign = [&](std::size_t at, char c) { return at < text.size() && text[at] == c; };

    auto const y = number(0, 4), mo = number(5, 2), d = number(8, 2), h = number(11, 2), mi = number(14, 2),
               s = number(17, 2);
    if (!sign(4, '-') || !sign(7, '-') || !sign(10, 'T') || !sign(13, ':') || !sign(16, ':')) return std::nullopt;
    if (y < 1970 || mo < 1 || d < 1 || h < 0 || h > 23 || mi < 0 || mi > 59 || s < 0 || s > 59) return std::nullopt;
    int fraction = 0;
    std::size_t end = 19;
    if (sign(end, '.')) {
        int digits = 0;
        for (++end; digits < 3 && number(end, 1) >= 0; ++end, ++digits) fraction = fraction * 10 + number(end, 1);
        if (digits == 0) return std::nullopt;
        for (; digits < 3; ++digits) fraction *= 10;
    }
    if (!sign(end, 'Z') || end + 1 != text.size()) return std::nullopt;

    using namespace std::chrono;
    year_month_day const date{year{y}, month{static_cast<unsigned>(mo)}, day{static_cast<unsigned>(d)}};
    if (!date.ok()) return std::nullopt;
    return sys_days{date} + hours{h} + minutes{mi} + seconds{s} + milliseconds{fraction};
}

class reader {
  public:
    file read(std::string_view text) {
        if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3); // a byte-order mark
        for (line_ = 1; !text.empty(); ++line_) {
            auto const end = text.find('\n');
            auto line = text.substr(0, end);
            text.remove_prefix(end == text.npos ? text.size() : end + 1);
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (line.find_first_not_of(" \t") != line.npos) read_line(line);
        }
        return std::move(result_);
    }

  private:
    struct field {
        std::string_view text;
        std::size_t column = 0;
    };

    bool refuse(std::size_t column, std::string reason) {
        result_.problems.push_back({line_, column, std::move(reason)});
        return false;
    }

    /// The line's three fields; false where it has not exactly three, and the line has been refused.
    bool split(std::string_view line, field (&fields)[3]) {
        std::size_t at = 0;
        for (std::size_t n = 0; n != 3; ++n) {
            auto const start = (std::min)(line.find_first_not_of(" \t", at), line.size());
            std::size_t end = 0;
            if (start < line.size() && line[start] == '"') {
                auto const close = line.find('"', start + 1);
                if (close == line.npos) return refuse(start + 1, "a quote that is not closed");
                fields[n] = {line.substr(start + 1, close - start - 1), start + 2};
                end = (std::min)(line.find_first_not_of(" \t", close + 1), line.size());
                if (end != line.size() && line[end] != ',') return refuse(end + 1, "text after the closing quote");
            } else {
                end = (std::min)(line.find(',', start), line.size());
                auto const text = line.substr(start, end - start);
                fields[n] = {text.substr(0, text.find_last_not_of(" \t") + 1), start + 1};
            }
            if (n != 2 && end == line.size()) return refuse(end + 1, "three fields are needed: order,placed,limit");
            if (n == 2 && end != line.size()) return refuse(end + 1, "more than three fields");
            at = end + 1;
        }
        return true;
    }

    void read_line(std::string_view line) {
        field fields[3];
        if (!split(line, fields)) return;
        auto const& [id, placed, limit] = fields;
        if (line_ == 1 && placed.text.find_first_of("0123456789") == placed.text.npos) return; // a header

        for (std::size_t i = 0; i != id.text.size(); ++i) {
            auto const c = id.text[i];
            bool const plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                               c == '_' || c == '.';
            if (!plain) return void(refuse(id.column + i, "an order's id has only letters, digits and - _ ."));
        }
        if (id.text.empty()) return void(refuse(id.column, "the order's id is missing"));
        if (id.text.size() > 40) return void(refuse(id.column + 40, "an order's id has at most 40 characters"));
        auto const at = parse_instant(placed.text);
        if (!at) return void(refuse(placed.column, "an instant looks like 2026-03-02T09:12:45.123Z"));
        std::int64_t seconds = -1;
        auto const [end, failed] = std::from_chars(limit.text.data(), limit.text.data() + limit.text.size(), seconds);
        if (failed != std::errc{} || end != limit.text.data() + limit.text.size() || seconds < 0 ||
            seconds > 315'360'000)
            return void(refuse(limit.column, "the limit is a number of seconds, at most ten years of them"));
        auto const [first, added] = seen_.emplace(id.text, line_);
        if (!added)
            return void(
                refuse(id.column, "order " + first->first + " stands in line " + std::to_string(first->second)));
        result_.entries.push_back({std::string(id.text), *at, std::chrono::seconds{seconds}});
    }

    std::size_t line_ = 0;
    std::unordered_map<std::string, std::size_t> seen_;
    file result_;
};

inline file read(std::string_view text) { return reader{}.read(text); }

/// The orders of a file ("-": of the standard input), or nothing where a line is wrong; each of those has been named on
/// the standard error.
inline std::optional<std::vector<order>> load(std::string const& path) {
    std::string text;
    if (path == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
        std::ifstream in(path, std::ios::binary);
        if (!in) throw unreadable("cannot read " + path);
        text.assign(std::istreambuf_iterator<char>(in), {});
    }
    auto found = read(text);
    auto const name = path == "-" ? "standard input" : path.c_str();
    for (auto const& p : found.problems)
        std::fprintf(stderr, "%s:%zu:%zu: %s\n", name, p.line, p.column, p.reason.c_str());
    if (!found.problems.empty()) return std::nullopt;
    return std::move(found.entries);
}

} // namespace orders

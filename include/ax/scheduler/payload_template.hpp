// SPDX-License-Identifier: MIT
// Payloads of schedules that name their period: `{"day": "{{ds - 1d}}"}`.
//
// A template is JSON text with placeholders inside its strings, so it is valid JSON before and after. It is read once,
// when the schedule is declared, into pieces: what stands between placeholders is kept as it was written, byte for
// byte, and what a placeholder gives is escaped as JSON demands.
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/time/time_point.hpp"
#include "ax/time/time_zone.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax {

/// Why a text is no payload template: what stands where, and what could stand there.
struct template_error {
    std::size_t column = 1; ///< where the trouble begins: bytes of the text from 1 on
    std::string reason;     ///< "is no name"
    std::string found;      ///< the text that is refused; empty: something is missing
    std::string allowed;    ///< "ds, ts, scheduled_at, prev, next"

    /// One line: `column 12: "dss" is no name; allowed: ds, ts, scheduled_at, prev, next`.
    std::string message() const {
        auto text = "column " + std::to_string(column) + ": ";
        if (!found.empty()) text.append("\"").append(detail::bounded_text(found, 60)).append("\" ");
        text += reason;
        if (!allowed.empty()) text.append("; allowed: ").append(allowed);
        return text;
    }
};

/// A payload with placeholders for the instants of an occurrence:
///
///     {{ name }}   {{ name - 1d + 2h }}   {{ name | %Y/%m/%d %H }}   {{ name - 1d | %Y }}
///
///   | name             | stands for                                       | written, without a format             |
///   |------------------|--------------------------------------------------|---------------------------------------|
///   | ds               | the nominal instant of the occurrence            | its date: 2026-03-29                  |
///   | ts, scheduled_at | the same                                         | ISO 8601: 2026-03-29T03:00:00+02:00   |
///   | prev, next       | that of the occurrence before it, behind it      | likewise; nothing where there is none |
///
/// All are as the clocks of the schedule's zone show them. Offsets: `w` and `d` count days of the calendar there, `h`,
/// `m` and `s` exact time; several are taken from left to right. `{{{{` writes `{{`.
///
/// A value. Threads: one template may be used from any number of threads at once.
template <class Text = std::string> // so that a unit that only includes this does not pay for it
class basic_payload_template {
  public:
    /// The most that one offset may be: a hundred years.
    static constexpr duration longest_offset = std::chrono::days{36'525};

    /// @param payload  JSON text, as it is stored; empty where the task type has no payload.
    /// Errors: error(invalid_argument) with the message of check().
    static basic_payload_template parse(std::string_view payload) {
        basic_payload_template result;
        if (auto const fault = result.read(payload))
            throw error(errc::invalid_argument, "payload template: " + fault->message());
        return result;
    }

    /// What is wrong with `payload`; nothing where parse() takes it.
    static std::optional<template_error> check(std::string_view payload) {
        return basic_payload_template{}.read(payload);
    }

    /// The same for the value of one string, without quotes and escapes. Columns count in it.
    static std::optional<template_error> check_string(std::string_view value) {
        basic_payload_template unused;
        std::size_t kept = 0;
        return unused.read_string(value, value, kept, [](std::size_t at) { return at; });
    }

    /// Whether render() gives the same text for every occurrence.
    bool constant() const noexcept { return holes_.empty(); }

    /// Whether render() looks at its `prev` and `next`.
    bool asks_for_neighbours() const noexcept {
        for (auto const& h : holes_)
            if (h.which != source::nominal) return true;
        return false;
    }

    /// The payload of one occurrence. Without placeholders it is the text that was parsed.
    /// @param nominal  The planned instant of the occurrence.
    /// @param prev     That of the one before it; none: it is the first.
    /// @param next     That of the one behind it; none: it is the last, or not known (a fixed delay).
    /// @param zone     The schedule's.
    /// Complexity: O(length of the result).
    Text render(time_point nominal, std::optional<time_point> prev, std::optional<time_point> next,
                time_zone const& zone = {}) const {
        Text result = head_;
        for (auto const& h : holes_) {
            auto at = h.which == source::prev ? prev : h.which == source::next ? next : nominal;
            if (at) {
                for (auto const& by : h.shifts) at = moved(*at, by, zone);
                write(result, *at, h.format, zone);
            }
            result += h.tail;
        }
        return result;
    }

  private:
    enum class source : std::uint8_t { nominal, prev, next };

    struct shift {
        std::int64_t count; ///< days of the calendar, or milliseconds
        bool calendar;
    };

    struct hole {
        source which = source::nominal;
        std::vector<shift> shifts;
        Text format; ///< empty: ISO 8601
        Text tail;   ///< what follows it, as it was written
    };

    struct name_of_source {
        std::string_view name;
        source which;
        std::string_view format;
    };

    static constexpr name_of_source names[] = {{"ds", source::nominal, "%F"},
                                               {"ts", source::nominal, {}},
                                               {"scheduled_at", source::nominal, {}},
                                               {"prev", source::prev, {}},
                                               {"next", source::next, {}}};
    static constexpr std::string_view letters = "YymdjHMSLFTzZsGVu%";

    Text& last_text() { return holes_.empty() ? head_ : holes_.back().tail; }

    // ------------------------------------------------------------ reading

    std::optional<template_error> read(std::string_view payload) {
        if (payload.empty()) return std::nullopt;
        // nlohmann::json takes a NUL for the end, and what is behind it would be taken for checked.
        if (auto const nul = payload.find('\0'); nul != payload.npos)
            return template_error{nul + 1, "it is no JSON: a NUL byte", {}, {}};
        if (!nlohmann::json::accept(payload.begin(), payload.end())) return no_json(payload);
        std::size_t kept = 0; // all before it is in the pieces
        std::vector<std::size_t> places;
        Text value;
        for (std::size_t at = 0; at != payload.size();) {
            if (payload[at++] != '"') continue;
            auto end = at;
            while (payload[end] != '"') end += payload[end] == '\\' ? 2 : 1;
            auto const written = payload.substr(at, end - at);
            if (written.find('{') != written.npos || written.find("\\u007") != written.npos) {
                value.clear();
                places.clear();
                decode(written, at, value, places);
                auto const fault = read_string(payload, value, kept, [&](std::size_t i) { return places[i]; });
                if (fault) return fault;
            }
            at = end + 1;
        }
        last_text() += payload.substr(kept);
        return std::nullopt;
    }

    static template_error no_json(std::string_view payload) {
        template_error fault{1, "it is no JSON", {}, {}};
        try {
            [[maybe_unused]] auto const unused = nlohmann::json::parse(payload.begin(), payload.end());
        } catch (nlohmann::json::parse_error const& e) {
            fault.column = e.byte;
        } catch (nlohmann::json::exception const&) { // a number that is too large: without a place
            fault.reason = "it holds a number that is too large";
        }
        return fault;
    }

    /// What the inside of a JSON string, `written` at `offset`, stands for, and where each byte of it stands.
    static void decode(std::string_view written, std::size_t offset, Text& value, std::vector<std::size_t>& places) {
        auto const unit = [&](std::size_t at) {
            unsigned code = 0;
            for (std::size_t i = at; i != at + 4; ++i) {
                auto const c = static_cast<unsigned>(written[i]);
                code = code * 16 + (c <= '9' ? c - '0' : (c | 32U) - 'a' + 10);
            }
            return code;
        };
        for (std::size_t at = 0; at < written.size();) {
            auto const from = at;
            if (written[at] != '\\') {
                value += written[at++];
            } else if (written[at + 1] != 'u') {
                constexpr std::string_view escapes = "bfnrt";
                constexpr std::string_view meant = "\b\f\n\r\t";
                auto const known = escapes.find(written[at + 1]);
                value += known == escapes.npos ? written[at + 1] : meant[known];
                at += 2;
            } else {
                auto code = unit(at + 2);
                at += 6;
                if (code >= 0xD800 && code < 0xDC00) { // JSON has been checked: the other half follows
                    code = 0x10000 + ((code - 0xD800) << 10U) + (unit(at + 2) - 0xDC00);
                    at += 6;
                }
                append_utf8(value, code);
            }
            places.resize(value.size(), offset + from);
        }
        places.push_back(offset + written.size());
    }

    static void append_utf8(Text& text, unsigned code) {
        auto const tail = [&](unsigned bits) { text += static_cast<char>(0x80U | ((code >> bits) & 0x3FU)); };
        if (code < 0x80) {
            text += static_cast<char>(code);
        } else if (code < 0x800) {
            text += static_cast<char>(0xC0U | (code >> 6U));
            tail(0);
        } else if (code < 0x10000) {
            text += static_cast<char>(0xE0U | (code >> 12U));
            tail(6), tail(0);
        } else {
            text += static_cast<char>(0xF0U | (code >> 18U));
            tail(12), tail(6), tail(0);
        }
    }

    /// Takes the placeholders of one string.
    /// @param value  What the string stands for.
    /// @param place  Where a byte of it stands in `payload`, its end too.
    template <class Place>
    std::optional<template_error> read_string(std::string_view payload, std::string_view value, std::size_t& kept,
                                              Place place) {
        for (std::size_t at = 0; (at = value.find("{{", at)) != value.npos;) {
            last_text() += payload.substr(kept, place(at) - kept);
            if (value.substr(at, 4) == "{{{{") {
                last_text() += "{{";
                at += 4;
                kept = place(at);
                continue;
            }
            auto const end = value.find("}}", at + 2);
            if (end == value.npos)
                return template_error{place(at) + 1, "has no end", std::string(value.substr(at)),
                                      "}} to end it, {{{{ to write {{"};
            if (auto fault = read_hole(value, at + 2, end)) {
                fault->column = place(fault->column) + 1;
                return fault;
            }
            at = end + 2;
            kept = place(at);
        }
        return std::nullopt;
    }

    /// Reads the inside of a placeholder. The column of what it returns is an offset in `value`.
    std::optional<template_error> read_hole(std::string_view value, std::size_t at, std::size_t end) {
        auto const skip_blanks = [&] {
            while (at != end && (value[at] == ' ' || value[at] == '\t')) ++at;
        };
        auto const is_word = [&](std::size_t i) {
            auto const c = value[i];
            return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        };
        auto const word = [&] { // without moving on
            auto stop = at;
            while (stop != end && is_word(stop)) ++stop;
            return value.substr(at, stop - at);
        };
        auto const rest = [&] { return std::string(value.substr(at, end - at)); };

        skip_blanks();
        auto const name = word();
        name_of_source const* found = nullptr;
        for (auto const& known : names)
            if (name == known.name) found = &known;
        if (!found)
            return template_error{at, name.empty() ? "a name is missing" : "is no name",
                                  name.empty() ? rest() : std::string(name), all_names()};
        at += name.size();
        hole h;
        h.which = found->which;
        h.format = found->format;
        duration sum{0};
        for (skip_blanks(); at != end; skip_blanks()) {
            auto const sign = value[at];
            if (sign == '|') {
                ++at;
                skip_blanks();
                while (end != at && (value[end - 1] == ' ' || value[end - 1] == '\t')) --end;
                if (at == end) return template_error{at, "a format is missing after |", {}, all_letters()};
                for (auto i = at; i != end; ++i) {
                    if (value[i] != '%') continue;
                    if (i + 1 == end || letters.find(value[i + 1]) == letters.npos)
                        return template_error{i, "is no part of a format",
                                              std::string(value.substr(i, character(value, i + 1, end) + 1)),
                                              all_letters()};
                    ++i;
                }
                h.format = rest();
                break;
            }
            if (sign != '+' && sign != '-')
                return template_error{at, "follows the name", rest(), "+ or - and an offset, | and a format, }}"};
            ++at;
            skip_blanks();
            auto const offset = word();
            if (auto fault = read_offset(offset, at, sign == '-', h, sum)) return fault;
            at += offset.size();
        }
        holes_.push_back(std::move(h));
        return std::nullopt;
    }

    static std::optional<template_error> read_offset(std::string_view offset, std::size_t at, bool back, hole& h,
                                                     duration& sum) {
        constexpr auto allowed = "a number with w, d, h, m or s, as in 1d";
        struct unit {
            char letter;
            duration length;
        };
        constexpr unit units[] = {{'w', std::chrono::weeks{1}},
                                  {'d', std::chrono::days{1}},
                                  {'h', std::chrono::hours{1}},
                                  {'m', std::chrono::minutes{1}},
                                  {'s', std::chrono::seconds{1}}};
        if (offset.empty()) return template_error{at, "an offset is missing", {}, allowed};
        unit const* found = nullptr;
        for (auto const& u : units)
            if (offset.back() == u.letter) found = &u;
        std::int64_t count = 0;
        auto const digits = offset.substr(0, offset.size() - 1);
        bool number = found != nullptr && !digits.empty();
        for (char const c : digits) {
            number = number && c >= '0' && c <= '9';
            if (number && count <= longest_offset.count()) count = count * 10 + (c - '0');
        }
        if (!number) return template_error{at, "is no offset", std::string(offset), allowed};
        if (count <= longest_offset / found->length) sum += count * found->length;
        if (count > longest_offset / found->length || sum > longest_offset)
            return template_error{at, "is too far away", std::string(offset), "36525d in all"};
        if (back) count = -count;
        if (found->length % std::chrono::days{1} == duration{0})
            h.shifts.push_back({count * (found->length / std::chrono::days{1}), true});
        else
            h.shifts.push_back({count * found->length.count(), false});
        return std::nullopt;
    }

    static std::size_t character(std::string_view value, std::size_t at, std::size_t end) {
        return at == end ? 0 : (std::max)(detail::utf8_length(value.substr(at, end - at)), std::size_t{1});
    }

    static std::string all_names() {
        std::string text;
        for (auto const& known : names) text.append(text.empty() ? "" : ", ").append(known.name);
        return text;
    }

    static std::string all_letters() {
        std::string text;
        for (char const c : letters) text.append(text.empty() ? "%" : " %").append(1, c);
        return text;
    }

    // ------------------------------------------------------------ writing

    static time_point moved(time_point at, shift const& by, time_zone const& zone) {
        if (by.count == 0) return at;
        if (!by.calendar) return at + duration{by.count};
        return zone.to_instant(zone.to_local(at) + std::chrono::days{by.count});
    }

    /// The pieces of an instant on the wall.
    struct wall {
        std::chrono::local_days day;
        std::chrono::year_month_day date;
        std::int64_t time; ///< milliseconds since midnight
        std::int64_t east; ///< offset from UTC in seconds

        wall(time_point at, time_zone const& zone)
            : day(std::chrono::floor<std::chrono::days>(zone.to_local(at))), date(day),
              time((zone.to_local(at) - day).count()), east(zone.offset_at(at).count()) {}
    };

    static void write(Text& out, time_point at, Text const& format, time_zone const& zone) {
        wall const w(at, zone);
        if (format.empty()) {
            write_letter(out, 'F', at, w, zone);
            out += 'T';
            write_letter(out, 'T', at, w, zone);
            if (w.time % 1000 != 0) {
                out += '.';
                write_letter(out, 'L', at, w, zone);
            }
            write_offset(out, w.east, true);
            return;
        }
        for (std::size_t i = 0; i != format.size(); ++i) {
            auto const c = format[i];
            if (c == '%')
                write_letter(out, format[++i], at, w, zone);
            else
                write_escaped(out, c);
        }
    }

    static void write_letter(Text& out, char letter, time_point at, wall const& w, time_zone const& zone) {
        namespace c = std::chrono;
        auto const number = [&](std::int64_t value, std::size_t width) { pad(out, value, width); };
        auto const weekday = static_cast<std::int64_t>(c::weekday{w.day}.iso_encoding());
        auto const thursday = w.day + c::days{4 - weekday}; // its year is that of the ISO week
        auto const first_day = [](c::year y) { return c::local_days{y / 1 / 1}; };
        switch (letter) {
        case 'Y': return number(static_cast<int>(w.date.year()), 4);
        case 'y': return number(static_cast<int>(w.date.year()) % 100, 2);
        case 'm': return number(static_cast<unsigned>(w.date.month()), 2);
        case 'd': return number(static_cast<unsigned>(w.date.day()), 2);
        case 'j': return number((w.day - first_day(w.date.year())).count() + 1, 3);
        case 'H': return number(w.time / 3'600'000, 2);
        case 'M': return number(w.time / 60'000 % 60, 2);
        case 'S': return number(w.time / 1000 % 60, 2);
        case 'L': return number(w.time % 1000, 3);
        case 'F':
            for (char const part : {'Y', '-', 'm', '-', 'd'})
                part == '-' ? void(out += part) : write_letter(out, part, at, w, zone);
            return;
        case 'T':
            for (char const part : {'H', ':', 'M', ':', 'S'})
                part == ':' ? void(out += part) : write_letter(out, part, at, w, zone);
            return;
        case 'z': return write_offset(out, w.east, false);
        case 'Z':
            for (char const part : zone.name()) write_escaped(out, part);
            return;
        case 's': return number(c::floor<c::seconds>(at).time_since_epoch().count(), 1);
        case 'G': return number(static_cast<int>(c::year_month_day{thursday}.year()), 4);
        case 'V': return number((thursday - first_day(c::year_month_day{thursday}.year())).count() / 7 + 1, 2);
        case 'u': return number(weekday, 1);
        default: out += letter; // %%
        }
    }

    static void pad(Text& out, std::int64_t value, std::size_t width) {
        auto const digits = std::to_string(value < 0 ? -value : value);
        if (value < 0) out += '-';
        if (digits.size() < width) out.append(width - digits.size(), '0');
        out += digits;
    }

    static void write_offset(Text& out, std::int64_t east, bool colon) {
        auto const size = east < 0 ? -east : east;
        out += east < 0 ? '-' : '+';
        pad(out, size / 3600, 2);
        if (colon) out += ':';
        pad(out, size / 60 % 60, 2);
        if (size % 60 == 0) return;
        if (colon) out += ':';
        pad(out, size % 60, 2);
    }

    static void write_escaped(Text& out, char c) {
        auto const byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            (out += '\\') += c;
        } else if (byte < 0x20) {
            ((out += "\\u00") += "01"[byte >> 4U]) += "0123456789abcdef"[byte & 15U];
        } else {
            out += c;
        }
    }

    Text head_; ///< what stands before the first placeholder
    std::vector<hole> holes_;
};

using payload_template = basic_payload_template<>;

} // namespace ax

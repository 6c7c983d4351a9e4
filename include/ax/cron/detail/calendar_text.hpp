// SPDX-License-Identifier: MIT
// Calendars as text, for a store: each step of a tree is a word with what it works on, in parentheses.
//
//   (cron ax Europe/Berlin "0 9 * * MON-FRI")         a second text: the name that H draws from
//   (also A B ...)  (except A B)
//   (except A (dates Europe/Berlin 2026-12-24 2026-12-28/2026-12-31))
//   (not-before A 2026-01-01T00:00:00Z)  (not-after A 2026-12-31T23:59:59Z)  (at-most A 10)
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/cron/detail/calendar_tree.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// Writes trees, for a store and for people.
/// @tparam Cron  cron; see calendar_node.
template <class Cron>
class calendar_writer {
    using text = dependent<std::string, Cron>;

  public:
    using node = calendar_node<Cron>;

    static text write(node const& n) {
        switch (n.kind) {
        case calendar_kind::moments: {
            auto const& c = *n.moments;
            return text("(cron ") + name_of(c.expression().dialect()) + " " + text(c.zone().name()) + " " +
                   in_quotes(c.text()) + (c.name().empty() ? "" : " " + in_quotes(c.name())) + ")";
        }
        case calendar_kind::dates: {
            auto all = "(dates " + text(n.zone.name());
            for (auto const& span : n.days) all += " " + span_text(span, "/");
            return all + ")";
        }
        case calendar_kind::also: return "(also" + parts(n) + ")";
        case calendar_kind::except: return "(except" + parts(n) + ")";
        case calendar_kind::not_before: return "(not-before" + parts(n) + " " + instant_text(n.bound) + ")";
        case calendar_kind::not_after: return "(not-after" + parts(n) + " " + instant_text(n.bound) + ")";
        case calendar_kind::at_most: return "(at-most" + parts(n) + " " + digits_of(n.times, 1) + ")";
        }
        return {};
    }

    /// One sentence, without a full stop.
    static text tell(node const& n) {
        switch (n.kind) {
        case calendar_kind::moments: return n.moments->expression().describe() + by_clocks_of(n.moments->zone());
        case calendar_kind::dates: {
            text all;
            for (std::size_t i = 0; i < n.days.size(); ++i)
                all += (i == 0 ? "on " : i + 1 == n.days.size() ? " and " : ", ") + span_text(n.days[i], " to ");
            return (n.days.empty() ? "on no date" : all) + by_clocks_of(n.zone);
        }
        case calendar_kind::also: {
            text all;
            for (auto const& p : n.parts) all += (all.empty() ? "" : "; and ") + tell_part(*p);
            return all;
        }
        case calendar_kind::except: return tell_part(*n.parts[0]) + "; except " + tell_part(*n.parts[1]);
        case calendar_kind::not_before: return tell_part(*n.parts[0]) + "; not before " + instant_text(n.bound);
        case calendar_kind::not_after: return tell_part(*n.parts[0]) + "; not after " + instant_text(n.bound);
        case calendar_kind::at_most:
            return tell_part(*n.parts[0]) + "; at most " + (n.times == 1 ? "once" : digits_of(n.times, 1) + " times");
        }
        return {};
    }

  private:
    template <class Number>
    static text digits_of(Number value, std::size_t width) {
        auto digits = std::to_string(value);
        return digits.size() < width ? text(width - digits.size(), '0') + digits : digits;
    }

    /// "2026-12-24", of years from 1970 to 9999 and a little before.
    static text date_text(std::int64_t day) {
        using date_type = dependent<std::chrono::year_month_day, Cron>;
        date_type const date{std::chrono::sys_days{std::chrono::days{day}}};
        return digits_of(static_cast<int>(date.year()), 4) + "-" + digits_of(static_cast<unsigned>(date.month()), 2) +
               "-" + digits_of(static_cast<unsigned>(date.day()), 2);
    }

    static text instant_text(std::int64_t t) {
        auto const day = floor_days(t);
        auto const time = t - day * seconds_a_day;
        return date_text(day) + "T" + digits_of(time / 3600, 2) + ":" + digits_of(time / 60 % 60, 2) + ":" +
               digits_of(time % 60, 2) + "Z";
    }

    static text span_text(day_span const& span, char const* between) {
        return date_text(span.first) + (span.last == span.first ? text{} : between + date_text(span.last));
    }

    static text in_quotes(std::string_view plain) {
        text result(1, '"');
        for (char const c : plain) {
            if (c == '"' || c == '\\') result += '\\';
            result += c;
        }
        return result + "\"";
    }

    static text parts(node const& n) {
        text all;
        for (auto const& part : n.parts) all += " " + write(*part);
        return all;
    }

    static text tell_part(node const& n) {
        bool const several = n.kind == calendar_kind::also || n.kind == calendar_kind::except;
        return several ? "(" + tell(n) + ")" : tell(n);
    }

    static text by_clocks_of(time_zone const& zone) {
        return zone == time_zone{} ? text{} : " (" + text(zone.name()) + ")";
    }
};

template <class Cron>
class calendar_reader {
  public:
    explicit calendar_reader(std::string_view text) : all_(text), rest_(text) {}

    calendar_tree<Cron> read() {
        auto tree = read_step(0, false);
        if (!next_token().empty()) refuse("text behind the end");
        return tree;
    }

  private:
    [[noreturn]] void refuse(std::string const& reason) const {
        throw error(errc::invalid_argument, "calendar \"" + bounded_text(all_, 80) + "\": at byte " +
                                                std::to_string(all_.size() - rest_.size() + 1) + ": " + reason);
    }

    static bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

    void skip_space() {
        while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
    }

    /// A parenthesis or a word; empty at the end.
    std::string_view next_token() {
        skip_space();
        std::size_t size = 0;
        while (size < rest_.size() && !is_space(rest_[size]) && rest_[size] != '(' && rest_[size] != ')') ++size;
        if (size == 0 && !rest_.empty()) size = 1;
        auto const token = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return token;
    }

    bool next_is(char c) {
        skip_space();
        return !rest_.empty() && rest_.front() == c;
    }

    std::string read_quoted() {
        if (!next_is('"')) refuse("a text in quotes is missing");
        rest_.remove_prefix(1);
        std::string text;
        for (; !rest_.empty() && rest_.front() != '"'; rest_.remove_prefix(1)) {
            if (rest_.front() == '\\') rest_.remove_prefix(1);
            if (rest_.empty()) break;
            text += rest_.front();
        }
        if (rest_.empty()) refuse("a quote is not closed");
        rest_.remove_prefix(1);
        return text;
    }

    /// `width` digits, and the character behind them.
    static bool take_number(std::string_view& text, std::size_t width, int& value, char behind) {
        if (text.size() < width) return false;
        value = 0;
        for (char const c : text.substr(0, width)) {
            if (c < '0' || c > '9') return false;
            value = value * 10 + (c - '0');
        }
        text.remove_prefix(width);
        if (behind == '\0') return true;
        if (text.empty() || text.front() != behind) return false;
        text.remove_prefix(1);
        return true;
    }

    static std::optional<std::int64_t> take_date(std::string_view& text) {
        int year = 0, month = 0, day = 0;
        if (!take_number(text, 4, year, '-') || !take_number(text, 2, month, '-') || !take_number(text, 2, day, '\0'))
            return std::nullopt;
        auto const date = std::chrono::year{year} / month / day;
        if (!date.ok()) return std::nullopt;
        return std::chrono::sys_days{date}.time_since_epoch().count();
    }

    std::int64_t read_instant() {
        auto text = next_token();
        auto const day = take_date(text);
        int hour = 0, minute = 0, second = 0;
        if (!day || !text.starts_with('T')) refuse("an instant such as 2026-01-01T00:00:00Z is missing");
        text.remove_prefix(1);
        if (!take_number(text, 2, hour, ':') || !take_number(text, 2, minute, ':') ||
            !take_number(text, 2, second, 'Z') || !text.empty() || hour > 23 || minute > 59 || second > 59)
            refuse("an instant such as 2026-01-01T00:00:00Z is missing");
        return *day * seconds_a_day + hour * 3600 + minute * 60 + second;
    }

    day_span read_span() {
        auto text = next_token();
        auto const first = take_date(text);
        auto last = first;
        if (first && text.starts_with('/')) {
            text.remove_prefix(1);
            last = take_date(text);
        }
        if (!first || !last || !text.empty() || *last < *first) refuse("a date such as 2026-12-24 is missing");
        return {*first, *last};
    }

    std::size_t read_count() {
        auto const text = next_token();
        std::size_t value = 0;
        for (char const c : text) {
            if (c < '0' || c > '9' || value > most_calendar_times) refuse("a number is missing");
            value = value * 10 + static_cast<std::size_t>(c - '0');
        }
        if (text.empty()) refuse("a number is missing");
        return value;
    }

    time_zone read_zone() {
        auto const name = next_token();
        if (!time_zone::exists(name)) refuse("a time zone is missing, or this machine does not know it");
        return time_zone{name};
    }

    /// @param dates  Whether dates may stand here.
    calendar_tree<Cron> read_step(std::size_t depth, bool dates) {
        if (depth >= most_calendar_depth) refuse("too many steps in each other");
        if (next_token() != "(") refuse("an opening parenthesis is missing");
        auto tree = read_kind(next_token(), depth, dates);
        if (next_token() != ")") refuse("a closing parenthesis is missing");
        return tree;
    }

    calendar_tree<Cron> read_kind(std::string_view kind, std::size_t depth, bool dates) {
        auto const part = [&](bool dates_allowed = false) { return read_step(depth + 1, dates_allowed); };
        if (kind == "cron") {
            auto const which = dialect_named(next_token());
            if (!which) refuse("a dialect is missing");
            auto const zone = read_zone();
            auto text = read_quoted();
            auto const name = next_is('"') ? read_quoted() : std::string{};
            return tree_of(Cron(std::move(text), zone, *which, name));
        }
        if (kind == "dates" && dates) {
            auto const zone = read_zone();
            calendar_days<Cron> spans;
            while (!next_is(')')) spans.push_back(read_span());
            return tree_of_dates<Cron>(zone, std::move(spans));
        }
        if (kind == "also") {
            std::vector<calendar_tree<Cron>> parts;
            do parts.push_back(part());
            while (next_is('('));
            return tree_of_any(parts);
        }
        if (kind == "except") {
            auto from = part();
            return tree_without(std::move(from), part(true));
        }
        if (kind == "not-before" || kind == "not-after") {
            auto of = part();
            return tree_bounded(kind == "not-before" ? calendar_kind::not_before : calendar_kind::not_after,
                                std::move(of), read_instant());
        }
        if (kind == "at-most") {
            auto of = part();
            return tree_at_most(std::move(of), read_count());
        }
        refuse("\"" + bounded_text(kind, 20) + "\" is no step of a calendar");
    }

    std::string_view all_, rest_;
};

} // namespace ax::detail

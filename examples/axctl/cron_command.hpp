// SPDX-License-Identifier: MIT
// axctl cron: what an expression means, and when it happens.
#pragma once

#include "arguments.hpp"
#include "instant_text.hpp"

#include <ax/cron/cron.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace axctl {

inline constexpr char cron_usage[] =
    "  axctl cron next EXPR [--dialect D] [--zone Z] [--from T] [--count N] [--local]\n"
    "  axctl cron prev EXPR ...               the occurrences before T, latest first\n"
    "  axctl cron describe EXPR [--dialect D]\n"
    "  axctl cron check EXPR [--dialect D]\n"
    "  axctl cron check --jsonl               a line {\"expr\", \"dialect\", \"tz\", \"from\", \"count\", \"want\"} "
    "each\n"
    "    D: ax, crontab, quartz or spring; Z: a name such as Europe/Berlin; T: such as 2026-03-29T01:30:00Z\n";

inline constexpr std::size_t default_count = 5, highest_count = 1'000'000;

inline ax::cron_dialect dialect_of(std::string_view name) {
    auto const found = ax::dialect_named(name);
    if (!found)
        throw std::invalid_argument("dialect \"" + std::string(name) + "\" is none of ax, crontab, quartz, spring");
    return *found;
}

inline ax::time_point instant_of(std::string_view text) {
    auto const found = instant_reader::read(text);
    if (!found) throw std::invalid_argument("\"" + std::string(text) + "\" is no instant such as 2026-03-29T01:30:00Z");
    return *found;
}

/// At most `count` occurrences after `from`, or before it, latest first.
inline std::vector<ax::time_point> occurrences(ax::cron_expression const& e, ax::time_zone zone, ax::time_point from,
                                               std::size_t count, bool backward) {
    std::vector<ax::time_point> result;
    auto const step = [&](ax::time_point t) { return backward ? e.prev(t, zone) : e.next(t, zone); };
    if (count == 0) return result;
    for (auto t = step(from); t; t = step(*t)) {
        result.push_back(*t);
        if (result.size() == count) break;
    }
    return result;
}

/// One line of `check --jsonl`.
class line_check {
  public:
    static nlohmann::json answer(std::string const& text) {
        try {
            return line_check(nlohmann::json::parse(text)).check();
        } catch (std::exception const& e) {
            return {{"error", e.what()}};
        }
    }

  private:
    explicit line_check(nlohmann::json line) : line_(std::move(line)) {
        if (!line_.is_object()) throw std::invalid_argument("the line is no JSON object");
    }

    bool has(char const* member) const { return line_.contains(member) && !line_[member].is_null(); }

    std::string text(char const* member, std::string otherwise) const {
        if (!has(member)) return otherwise;
        if (!line_[member].is_string()) throw std::invalid_argument("\"" + std::string(member) + "\" is no text");
        return line_[member].get<std::string>();
    }

    std::size_t count() const {
        if (!has("count")) return default_count;
        if (!line_["count"].is_number_unsigned() || line_["count"].get<std::size_t>() > highest_count)
            throw std::invalid_argument("\"count\" is no whole number from 0 to " + std::to_string(highest_count));
        return line_["count"].get<std::size_t>();
    }

    nlohmann::json check() const {
        if (!has("expr")) throw std::invalid_argument("\"expr\" is missing");
        auto const e =
            ax::cron_expression::parse(text("expr", {}), dialect_of(text("dialect", "ax")), text("name", {}));
        ax::time_zone const zone{text("tz", "UTC")};
        if (!has("from")) return {{"valid", true}};
        // A line of the test data says by its answer which way it goes.
        auto const want = text("want", line_.contains("prev") && !line_.contains("next") ? "prev" : "next");
        if (want != "next" && want != "prev") throw std::invalid_argument("\"want\" is neither next nor prev");
        auto times = nlohmann::json::array();
        for (auto const t : occurrences(e, zone, instant_of(text("from", {})), count(), want == "prev"))
            times.push_back(text_of(t));
        return {{want, std::move(times)}};
    }

    nlohmann::json line_;
};

/// One answer a line, written before the next line is waited for. Ends with the input.
inline int check_lines(std::istream& in, std::ostream& out) {
    for (std::string line; std::getline(in, line);)
        out << line_check::answer(line).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n'
            << std::flush;
    return out ? 0 : 1;
}

inline void print_warnings(ax::cron_expression const& e) {
    for (auto const& w : e.lint())
        std::fprintf(stderr, "warning: %s%s%s\n", w.field ? name_of(*w.field) : "", w.field ? ": " : "",
                     w.text.c_str());
}

inline int print_occurrences(arguments& given, bool backward) {
    auto const which = dialect_of(given.option("--dialect").value_or("ax"));
    ax::time_zone const zone{given.option("--zone").value_or("UTC")};
    auto const from_text = given.option("--from");
    auto const from = from_text ? instant_of(*from_text) : ax::now();
    auto const count = given.number("--count", default_count);
    bool const local = given.flag("--local");
    auto const e = ax::cron_expression::parse(given.only_word("the expression"), which);
    print_warnings(e);
    auto const times = occurrences(e, zone, from, count, backward);
    for (auto const t : times) {
        std::fputs(text_of(t).c_str(), stdout);
        if (local) std::printf("  %s %s", local_text_of(t, zone).c_str(), std::string(zone.name()).c_str());
        std::fputs("\n", stdout);
    }
    if (times.size() < count) std::fputs(times.empty() ? "never\n" : "never again\n", stderr);
    return 0;
}

inline int cron_command(arguments& given) {
    auto const what = given.next_word();
    if (what == "next" || what == "prev") return print_occurrences(given, what == "prev");
    if (what == "check" && given.flag("--jsonl")) {
        given.nothing_left();
        return check_lines(std::cin, std::cout);
    }
    if (what != "check" && what != "describe") throw usage_error("cron: next, prev, describe or check?");
    auto const which = dialect_of(given.option("--dialect").value_or("ax"));
    auto const e = ax::cron_expression::parse(given.only_word("the expression"), which);
    std::puts(what == "check" ? e.to_string().c_str() : e.describe().c_str());
    print_warnings(e);
    return 0;
}

} // namespace axctl

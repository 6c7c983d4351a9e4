// SPDX-License-Identifier: MIT
// Any bytes as a cron expression of any dialect, as a calendar and as the name of a zone: nothing is read beyond its
// end, nothing but ax::error is thrown, and what is taken keeps its promises.
#include "ax/cron/calendar.hpp"
#include "ax/cron/cron.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool holds, char const* promise) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", promise);
    std::abort();
}

void look_at(ax::cron_expression const& e, ax::time_zone zone, ax::time_point from) {
    auto const next = e.next(from, zone), prev = e.prev(from, zone);
    if (next) {
        require(*next > from && e.matches(*next, zone), "next is an occurrence after");
        require(e.next(*next - ax::duration{1}, zone) == next, "next is the first one");
        auto const back = e.prev(*next, zone);
        require(!back || *back <= from, "nothing lies between");
        require(e.count(from, *next, zone) == 0 && e.count(from, *next + ax::duration{1}, zone) == 1, "count agrees");
    }
    if (prev) {
        require(*prev < from && e.matches(*prev, zone), "prev is an occurrence before");
        auto const on = e.next(*prev, zone);
        require(!on || *on >= from, "nothing lies between");
    }
    require(e.matches(from, zone) == (e.next(from - ax::duration{1}, zone) == from), "matches is an occurrence");
    if (e.never()) require(!next && !prev, "never is never");
}

void read_expression(std::string_view text, ax::cron_dialect which, ax::time_zone zone, ax::time_point from) {
    auto const problem = ax::cron_expression::check(text, which);
    if (problem) {
        require(problem->column >= 1 && problem->column <= text.size() + 1, "the column lies in the text");
        require(!problem->message().empty(), "an error says something");
        return;
    }
    auto const e = ax::cron_expression::parse(text, which, "name");
    look_at(e, zone, from);
    auto const written = e.to_string();
    require(!ax::cron_expression::check(written, which), "what is written is valid");
    require(ax::cron_expression::parse(written, which) == e, "what is written means the same");
    require(ax::cron_expression::parse(written, which).to_string() == written, "there is one way to write it");
    require(!e.describe().empty(), "every expression has a sentence");
    (void)e.lint();
}

void read_calendar(std::string_view text, ax::time_point from) {
    std::optional<ax::calendar> c;
    try {
        c.emplace(ax::calendar::parse(text));
    } catch (ax::error const&) {
        return;
    }
    auto const written = c->to_string();
    auto const again = ax::calendar::parse(written);
    require(again == *c && again.to_string() == written, "a calendar is written and read alike");
    if (auto const next = c->next(from)) require(*next > from && c->matches(*next), "next is an occurrence after");
    if (auto const prev = c->prev(from)) require(*prev < from && c->matches(*prev), "prev is an occurrence before");
    (void)c->describe();
}

} // namespace

/// The first byte chooses what the rest is read as, and in which zone; eight bytes behind it are an instant.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
    static ax::time_zone const zones[] = {"UTC",          "Europe/Berlin",   "Australia/Lord_Howe", "Africa/Casablanca",
                                          "Pacific/Apia", "Africa/Monrovia", "America/Nuuk",        "America/Havana"};
    if (size < 9) return 0;
    std::vector<char> const exact(bytes + 9, bytes + size); // a buffer of its own: a read beyond its end is seen
    std::string_view const text(exact.data(), exact.size());
    std::int64_t milliseconds = 0;
    std::memcpy(&milliseconds, bytes + 1, sizeof milliseconds);
    ax::time_point const from{ax::duration{milliseconds % 8'000'000'000'000}};
    auto const zone = zones[bytes[0] >> 3 & 7];
    switch (bytes[0] & 7) {
    case 0:
    case 1:
    case 2:
    case 3: read_expression(text, static_cast<ax::cron_dialect>(bytes[0] & 3), zone, from); break;
    case 4:
        if (ax::time_zone::exists(text)) require(ax::time_zone{text}.name() == text, "a zone keeps its name");
        break;
    default: read_calendar(text, from); break;
    }
    return 0;
}

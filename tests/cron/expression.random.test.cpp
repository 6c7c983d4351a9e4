// SPDX-License-Identifier: MIT
// Random expressions of all dialects against a search that looks at every second, or every date, and remembers what the
// clocks have shown.
#include "ax/cron/expression.hpp"

#include "random_expression.hpp"

#include "cron/support.hpp"
#include "support/catch.hpp"

#include <cctz/time_zone.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

using cron_test::seconds_of;
using cron_test::expression_maker;
using cron_test::random_expression;
using dialect = ax::cron_dialect;

namespace {

constexpr dialect dialects[] = {dialect::ax, dialect::crontab, dialect::quartz, dialect::spring};

ax::time_point at(std::int64_t t) { return ax::time_point{std::chrono::seconds{t}}; }

std::chrono::year_month_day date_of(std::int64_t wall) {
    return std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds{std::chrono::seconds{wall}});
}

/// What the clocks of a zone show in [from, until), second by second.
struct shown {
    std::int64_t from;
    std::vector<std::int64_t> wall; // of from - 1, from, ...
    std::int64_t latest;            // the latest wall time shown before `from`

    shown(cctz::time_zone const& zone, std::int64_t begin, std::int64_t until) : from(begin) {
        auto const instant = [](std::int64_t t) { return cctz::time_point<cctz::seconds>{cctz::seconds{t}}; };
        auto const wall_at = [&](std::int64_t t) { return t + zone.lookup(instant(t)).offset; };
        for (auto t = from - 1; t < until; ++t) wall.push_back(wall_at(t));
        latest = wall.front();
        cctz::time_zone::civil_transition change;
        for (auto t = from - 2 * 86'400; zone.next_transition(instant(t), &change);) {
            t = zone.lookup(change.to).trans.time_since_epoch().count();
            if (t >= from) break;
            latest = (std::max)(latest, wall_at(t - 1));
        }
    }
};

/// The rules of clock changes, told as the data's description tells them.
class second_by_second {
  public:
    explicit second_by_second(random_expression const& e) : e_(e) {
        for (unsigned v = 0; v < 60; ++v) seconds_[v] = e.seconds.contains(v), minutes_[v] = e.minutes.contains(v);
        for (unsigned v = 0; v < 24; ++v) hours_[v] = e.hours.contains(v);
    }

    std::vector<std::int64_t> occurrences(shown const& clocks) {
        std::vector<std::int64_t> result;
        auto latest = clocks.latest;
        for (std::size_t i = 1; i < clocks.wall.size(); ++i) {
            auto const before = clocks.wall[i - 1], now = clocks.wall[i];
            bool runs = false;
            if (e_.interval) {
                runs = matches(now);
            } else {
                for (auto skipped = (std::max)(before, latest) + 1; skipped < now && !runs; ++skipped) {
                    auto const date = day_of(skipped);
                    runs = (date == day_of(before) || date == day_of(now)) && matches(skipped);
                }
                runs = runs || (now > latest && matches(now));
            }
            latest = (std::max)(latest, now);
            if (runs) result.push_back(clocks.from + static_cast<std::int64_t>(i) - 1);
        }
        return result;
    }

  private:
    static std::int64_t day_of(std::int64_t wall) { return wall >= 0 ? wall / 86'400 : (wall + 1) / 86'400 - 1; }

    bool matches(std::int64_t wall) {
        auto const day = day_of(wall);
        auto const time = static_cast<unsigned>(wall - day * 86'400);
        if (!seconds_[time % 60] || !minutes_[time / 60 % 60] || !hours_[time / 3600]) return false;
        auto const [entry, fresh] = dates_.try_emplace(day);
        if (fresh) entry->second = e_.on_date(date_of(wall));
        return entry->second;
    }

    random_expression const& e_;
    std::map<std::int64_t, bool> dates_;
    bool seconds_[60], minutes_[60], hours_[24];
};

/// Every name of the zone database of this machine.
std::vector<std::string> all_zones() {
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    fs::path const root = "/usr/share/zoneinfo";
    if (!fs::exists(root)) return names;
    for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
        auto const name = entry->path().lexically_relative(root).generic_string();
        if (name == "posix" || name == "right") entry.disable_recursion_pending();
        char magic[4] = {};
        if (!entry->is_regular_file() || !std::ifstream(entry->path(), std::ios::binary).read(magic, 4)) continue;
        if (std::string(magic, 4) == "TZif" && ax::time_zone::exists(name)) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

void compare(random_expression const& expected_of, ax::time_zone zone, shown const& clocks, std::int64_t until) {
    auto const problem = ax::cron_expression::check(expected_of.text, expected_of.dialect);
    if (problem) FAIL("\"" << expected_of.text << "\" is refused: " << problem->message());
    auto const e = ax::cron_expression::parse(expected_of.text, expected_of.dialect);
    auto const expected = second_by_second(expected_of).occurrences(clocks);
    std::vector<std::int64_t> forward, backward;
    for (auto t = e.next(at(clocks.from - 1), zone); t && seconds_of(*t) < until; t = e.next(*t, zone))
        forward.push_back(seconds_of(*t));
    for (auto t = e.prev(at(until), zone); t && seconds_of(*t) >= clocks.from; t = e.prev(*t, zone))
        backward.push_back(seconds_of(*t));
    std::reverse(backward.begin(), backward.end());
    auto const difference = [&](std::vector<std::int64_t> const& found, char const* what) {
        if (found == expected) return;
        auto const [x, y] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
        FAIL(what << " of \"" << expected_of.text << "\" (" << name_of(expected_of.dialect) << ") in " << zone.name()
                  << ": found " << (x == found.end() ? 0 : *x) << ", expected " << (y == expected.end() ? 0 : *y)
                  << " of " << expected.size() << " from " << clocks.from << " to " << until);
    };
    difference(forward, "next");
    difference(backward, "prev");
    if (e.count(at(clocks.from - 1), at(until), zone) != expected.size()) FAIL("count of " << expected_of.text);
    auto next = expected.begin();
    for (auto t = clocks.from; t < until; t += next == expected.end() || *next - t > 97 ? 97 : 1) {
        while (next != expected.end() && *next < t) ++next;
        if (e.matches(at(t), zone) != (next != expected.end() && *next == t))
            FAIL("matches of \"" << expected_of.text << "\" in " << zone.name() << " at " << t);
    }
    auto const written = e.to_string();
    if (!(ax::cron_expression::parse(written, expected_of.dialect) == e))
        FAIL("\"" << expected_of.text << "\" was written as \"" << written << "\"");
}

} // namespace

TEST_CASE("expressions agree with a search second by second in every zone of the machine, where its clocks change",
          "[cron]") {
    auto const names = all_zones();
    CHECK(names.size() > 300);
    expression_maker make(1'709);
    std::size_t windows = 0, expressions = 0;
    for (auto const& name : names) {
        ax::time_zone const zone{name};
        cctz::time_zone reference;
        REQUIRE(cctz::load_time_zone(name, &reference));
        // Two changes of each zone, of any year from 1970 to 2060; where there is none, any hours.
        for (int i = 0; i < 2; ++i) {
            std::int64_t change = std::int64_t{make.below(90 * 366)} * 86'400;
            cctz::time_zone::civil_transition found;
            if (reference.next_transition(cctz::time_point<cctz::seconds>{cctz::seconds{change}}, &found))
                change = reference.lookup(found.to).trans.time_since_epoch().count();
            auto const from = change - 1'900 - std::int64_t{make.below(60)}, until = change + 5'500;
            shown const clocks(reference, from, until);
            ++windows;
            for (int k = 0; k < 3; ++k, ++expressions)
                compare(make.make(dialects[expressions % 4], true), zone, clocks, until);
        }
    }
    CHECK(windows == 2 * names.size());
    CHECK(expressions > 2'000);
}

TEST_CASE("expressions agree with a search second by second on days that are skipped, halved or begin at one",
          "[cron]") {
    struct change {
        char const* zone;
        std::int64_t at; // of the change
    };
    auto const c = GENERATE(values<change>({
        {"Pacific/Apia", 1'325'239'200},        // 2011-12-30 is left out
        {"Pacific/Kwajalein", 745'934'400},     // 1993-08-21 is left out
        {"Pacific/Kiritimati", 788'868'000},    // 1994-12-31 likewise
        {"Australia/Lord_Howe", 1'775'314'800}, // half an hour back
        {"Australia/Lord_Howe", 1'790'998'200}, // and forward
        {"Africa/Cairo", 1'714'082'400},        // midnight is skipped
        {"Africa/Cairo", 1'730'408'400},        // and shown twice
        {"America/Havana", 1'741'496'400},      // likewise
        {"America/Sao_Paulo", 1'541'300'400},   // likewise
        {"America/Nuuk", 1'743'296'400},        // the last hour of a date is skipped
        {"Africa/Casablanca", 1'740'276'000},   // saving that is less than nothing
        {"Europe/Dublin", 1'774'746'000},       // likewise
        {"Africa/Monrovia", 63'593'070},        // 44 minutes and 30 seconds
        {"Antarctica/Troll", 1'774'746'000},    // two hours
        {"Antarctica/Casey", 1'602'090'060},    // three hours, at one minute past
        {"America/Caracas", 1'462'086'000},     // half an hour for good
        {"Asia/Pyongyang", 1'439'564'400},      // likewise, back
        {"America/Godthab", 1'679'792'400},     // a zone that stops its saving
        {"Asia/Manila", 259'344'000},           // long ago
        {"America/New_York", 4'109'194'800},    // 2100
    }));
    cctz::time_zone reference;
    REQUIRE(cctz::load_time_zone(c.zone, &reference));
    auto const from = c.at - 30 * 3600, until = c.at + 30 * 3600;
    shown const clocks(reference, from, until);
    expression_maker make(static_cast<unsigned>(c.at));
    for (unsigned i = 0; i < 8; ++i) compare(make.make(dialects[i % 4], true), ax::time_zone{c.zone}, clocks, until);
}

TEST_CASE("expressions agree with a search date by date over years", "[cron]") {
    expression_maker make(20'260'601);
    std::size_t met = 0;
    for (unsigned i = 0; i < 2'000; ++i) {
        auto const expected_of = make.make(dialects[i % 4], false);
        auto const problem = ax::cron_expression::check(expected_of.text, expected_of.dialect);
        if (problem) FAIL("\"" << expected_of.text << "\" is refused: " << problem->message());
        auto const e = ax::cron_expression::parse(expected_of.text, expected_of.dialect);
        auto const first = 719'000 * std::int64_t{make.below(10)} / 100; // days
        std::vector<std::int64_t> expected;
        for (auto day = first; day < first + 800; ++day)
            if (expected_of.on_date(date_of(day * 86'400))) expected.push_back(day);
        // The last occurrence of a date leads to the next date, and the first one back.
        std::vector<std::int64_t> forward, backward;
        for (auto t = e.next(at(first * 86'400 - 1)); t; t = e.next(at(forward.back() * 86'400 + 86'399))) {
            auto const day = seconds_of(*t) / 86'400;
            if (day >= first + 800) break;
            forward.push_back(day);
        }
        for (auto t = e.prev(at((first + 800) * 86'400)); t; t = e.prev(at(backward.back() * 86'400))) {
            auto const day = seconds_of(*t) / 86'400;
            if (seconds_of(*t) < first * 86'400) break;
            backward.push_back(day);
        }
        std::reverse(backward.begin(), backward.end());
        if (forward != expected || backward != expected)
            FAIL("\"" << expected_of.text << "\" (" << name_of(expected_of.dialect) << ") from day " << first << ": "
                      << forward.size() << " dates forward, " << backward.size() << " backward, " << expected.size()
                      << " expected");
        met += expected.size();
        auto const written = e.to_string();
        if (!(ax::cron_expression::parse(written, expected_of.dialect) == e))
            FAIL("\"" << expected_of.text << "\" was written as \"" << written << "\"");
        auto const words = e.describe();
        CAPTURE(expected_of.text, words);
        REQUIRE(words.size() > 6);
        REQUIRE((words.starts_with("at ") || words.starts_with("every ")));
        REQUIRE(words.find("  ") == words.npos);
        REQUIRE((words.back() != ',' && words.back() != ' '));
    }
    CHECK(met > 100'000);
}

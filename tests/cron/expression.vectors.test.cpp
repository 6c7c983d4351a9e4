// SPDX-License-Identifier: MIT
// The lines of tests/data/cron: expressions with their occurrences, and texts to be refused.
#include "ax/cron/expression.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

ax::time_point instant(std::string const& text) {
    int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0;
    REQUIRE(std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%dZ", &y, &mo, &d, &h, &mi, &s) == 6);
    using namespace std::chrono;
    return sys_days{year{y} / mo / d} + hours{h} + minutes{mi} + seconds{s};
}

std::string text_of(ax::time_point t) {
    auto const day = std::chrono::floor<std::chrono::days>(t);
    std::chrono::year_month_day const date{day};
    std::chrono::hh_mm_ss const time{std::chrono::floor<std::chrono::seconds>(t - day)};
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()));
    return buffer;
}

ax::cron_dialect dialect_of(nlohmann::json const& line) {
    auto const name = line.value("dialect", "ax");
    if (name == "crontab") return ax::cron_dialect::crontab;
    if (name == "quartz") return ax::cron_dialect::quartz;
    if (name == "spring") return ax::cron_dialect::spring;
    REQUIRE(name == "ax");
    return ax::cron_dialect::ax;
}

std::vector<nlohmann::json> lines_of(std::string const& file) {
    std::ifstream in(test::data_file("cron/" + file));
    REQUIRE(in);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
}

std::vector<std::string> five_next(ax::cron_expression const& e, ax::time_zone zone, ax::time_point from) {
    std::vector<std::string> result;
    for (auto t = e.next(from, zone); t && result.size() < 5; t = e.next(*t, zone)) result.push_back(text_of(*t));
    return result;
}

std::vector<std::string> five_prev(ax::cron_expression const& e, ax::time_zone zone, ax::time_point from) {
    std::vector<std::string> result;
    for (auto t = e.prev(from, zone); t && result.size() < 5; t = e.prev(*t, zone)) result.push_back(text_of(*t));
    return result;
}

/// Whether a text means the same in classic cron: no more than one day field is restricted, and it can be read there.
bool reads_alike_in_crontab(std::string const& text) {
    if (ax::cron_expression::check(text, ax::cron_dialect::crontab)) return false;
    std::istringstream in(text);
    std::vector<std::string> const fields{std::istream_iterator<std::string>(in), {}};
    return fields.size() == 1 || fields.at(2) == "*" || fields.at(4) == "*";
}

bool warns_of(ax::cron_expression const& e, std::string_view words) {
    auto const warnings = e.lint();
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](auto const& w) { return w.text.find(words) != w.text.npos; });
}

struct counted {
    std::size_t lines = 0;   ///< that held occurrences
    std::size_t crontab = 0; ///< of them, those that were read as classic cron as well
};

counted check_file(std::string const& file) {
    counted count;
    for (auto const& line : lines_of(file)) {
        auto const text = line.at("expr").get<std::string>();
        auto const which = dialect_of(line);
        auto const why = line.at("why").get<std::string>();
        CAPTURE(text, why);
        if (line.value("error", false)) {
            CHECK(ax::cron_expression::check(text, which).has_value());
            CHECK_THROWS_AS(ax::cron_expression::parse(text, which), ax::error);
            continue;
        }
        ++count.lines;
        auto const problem = ax::cron_expression::check(text, which);
        CAPTURE(problem ? problem->message() : "");
        REQUIRE_FALSE(problem);
        auto const expression = ax::cron_expression::parse(text, which);
        ax::time_zone const zone{line.at("tz").get<std::string>()};
        CAPTURE(zone.name(), expression.to_string());
        auto const from = instant(line.at("from").get<std::string>());
        bool const backward = line.contains("prev");
        auto const expected = line.at(backward ? "prev" : "next").get<std::vector<std::string>>();
        CHECK((backward ? five_prev(expression, zone, from) : five_next(expression, zone, from)) == expected);
        if (which == ax::cron_dialect::ax && reads_alike_in_crontab(text)) {
            ++count.crontab;
            auto const classic = ax::cron_expression::parse(text, ax::cron_dialect::crontab);
            CHECK((backward ? five_prev(classic, zone, from) : five_next(classic, zone, from)) == expected);
        }
        for (auto const& at : expected) CHECK(expression.matches(instant(at), zone));
        for (std::size_t i = 1; i < expected.size(); ++i) {
            auto const a = instant(expected[i - 1]), b = instant(expected[i]);
            CHECK((backward ? expression.next(b, zone) : expression.prev(b, zone)) == a);
        }
        auto const words = expression.describe();
        CAPTURE(words);
        CHECK((words.starts_with("at ") || words.starts_with("every ")));
        CHECK((words.find("(never)") != words.npos) == expression.never());
        CHECK((warns_of(expression, "never happens") == expression.never()));
        auto const again = ax::cron_expression::parse(expression.to_string(), which);
        CHECK(again == expression);
        CHECK(again.to_string() == expression.to_string());
    }
    return count;
}

} // namespace

TEST_CASE("expressions of the default dialect have the occurrences of the data", "[cron]") {
    auto const lines_of_file = check_file("vectors.jsonl");
    CHECK(lines_of_file.lines == 762);
    CHECK(lines_of_file.crontab == 465);
}

TEST_CASE("expressions of the default dialect have the previous occurrences of the data", "[cron]") {
    auto const lines_of_file = check_file("prev.jsonl");
    CHECK(lines_of_file.lines == 133);
    CHECK(lines_of_file.crontab == 98);
}

TEST_CASE("expressions of the other dialects have the occurrences of the data", "[cron]") {
    CHECK(check_file("dialects.jsonl").lines == 42);
}

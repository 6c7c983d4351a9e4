// SPDX-License-Identifier: MIT
#include "ax/scheduler/payload_template.hpp"

#include "ax/core/random.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"
#include "support/paths.hpp"

#include <fstream>
#include <optional>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ax::payload_template;
using nlohmann::json;
using test::t0;

namespace {

ax::time_zone const berlin{"Europe/Berlin"};
constexpr ax::time_point summer{1'782'867'600'000ms}; // 2026-07-01 01:00 UTC, 03:00 in Berlin

/// What a string of `text` becomes for an occurrence at `nominal`; the day before and behind it are its neighbours.
std::string rendered(std::string const& text, ax::time_point nominal = summer, ax::time_zone const& zone = berlin) {
    auto const made = payload_template::parse(json(text).dump());
    return json::parse(made.render(nominal, nominal - 24h, nominal + 24h, zone)).get<std::string>();
}

/// Why `text` is refused as a whole payload.
std::string refusal(std::string const& text) {
    auto const fault = payload_template::check(text);
    return fault ? fault->message() : "taken";
}

} // namespace

TEST_CASE("each name of a template stands for its instant, as the zone's clocks show it", "[scheduler]") {
    CHECK(rendered("{{ds}}") == "2026-07-01");
    CHECK(rendered("{{ts}}") == "2026-07-01T03:00:00+02:00");
    CHECK(rendered("{{scheduled_at}}") == "2026-07-01T03:00:00+02:00");
    CHECK(rendered("{{prev}}") == "2026-06-30T03:00:00+02:00");
    CHECK(rendered("{{next}}") == "2026-07-02T03:00:00+02:00");
    CHECK(rendered("{{ds - 1d}}") == "2026-06-30");
    CHECK(rendered("{{ds - 1w}}") == "2026-06-24");
    CHECK(rendered("{{scheduled_at + 2h | %Y/%m/%d %H}}") == "2026/07/01 05");
    CHECK(rendered("{{scheduled_at - 1d + 30m | %d.%m. %H:%M}}") == "30.06. 03:30");
    CHECK(rendered("{{ds | %G-W%V-%u}}") == "2026-W27-3");
    CHECK(rendered("{{ts | %s}}") == "1782867600");
    CHECK(rendered("from {{prev | %F}} to {{ds}}") == "from 2026-06-30 to 2026-07-01");
    CHECK(rendered("{{{{ds}}") == "{{ds}}");
    CHECK(rendered("{{ts}}", t0, {}) == "2026-01-01T00:00:00+00:00");
    CHECK(rendered("{{ts}}", t0 + 1ms, {}) == "2026-01-01T00:00:00.001+00:00");
    CHECK(rendered("{{ts}}", t0, "America/St_Johns") == "2025-12-31T20:30:00-03:30");
}

TEST_CASE("the table of templates in the docs is true", "[scheduler]") {
    std::ifstream file(test::project_file("docs/definitions.md"));
    int rows = 0;
    for (std::string line; std::getline(file, line);) {
        for (std::size_t at; (at = line.find("\\|")) != line.npos;) line.replace(at, 2, "|"); // as a table demands
        auto const middle = line.find("` | `");
        if (!line.starts_with("| `") || middle == line.npos || line.find("{{") == line.npos) continue;
        CAPTURE(line);
        CHECK(rendered(line.substr(3, middle - 3)) == line.substr(middle + 5, line.rfind('`') - middle - 5));
        ++rows;
    }
    CHECK(rows == 13);
}

TEST_CASE("each letter of a format", "[scheduler]") {
    auto const at = t0 + 4 * 24h + 3h + 4min + 5s + 6ms; // 5 January 2026, a Monday
    CHECK(rendered("{{ds | %Y %y %m %d %j}}", at) == "2026 26 01 05 005");
    CHECK(rendered("{{ds | %H %M %S %L}}", at) == "04 04 05 006");
    CHECK(rendered("{{ds | %F %T %z %Z}}", at) == "2026-01-05 04:04:05 +0100 Europe/Berlin");
    CHECK(rendered("{{ds | %s %G %V %u %%}}", at) == "1767582245 2026 02 1 %");
    CHECK(rendered("{{ds | 100%% plain}}", at) == "100% plain");
    CHECK(rendered("{{ds | %z}}", at, "America/St_Johns") == "-0330");
}

TEST_CASE("the ISO week of days around New Year", "[scheduler]") {
    auto const week = [](std::chrono::year_month_day date) {
        return rendered("{{ds | %G-W%V-%u %j}}", std::chrono::sys_days{date}, {});
    };
    using namespace std::chrono;
    CHECK(week(2021y / 1 / 3) == "2020-W53-7 003"); // the examples of ISO 8601 and their like
    CHECK(week(2021y / 1 / 4) == "2021-W01-1 004");
    CHECK(week(2024y / 12 / 30) == "2025-W01-1 365");
    CHECK(week(2024y / 12 / 31) == "2025-W01-2 366");
    CHECK(week(2026y / 12 / 31) == "2026-W53-4 365");
}

TEST_CASE("days of an offset are those of the calendar, hours are exact", "[scheduler]") {
    // In Berlin 2026-03-29 has 23 hours, 2026-10-25 has 25.
    ax::time_point const after_spring = std::chrono::sys_days{std::chrono::year{2026} / 3 / 29} + 10h; // 12:00
    CHECK(rendered("{{ts - 1d}}", after_spring) == "2026-03-28T12:00:00+01:00");
    CHECK(rendered("{{ts - 24h}}", after_spring) == "2026-03-28T11:00:00+01:00");
    CHECK(rendered("{{ts - 1w}}", after_spring) == "2026-03-22T12:00:00+01:00");
    ax::time_point const after_autumn = std::chrono::sys_days{std::chrono::year{2026} / 10 / 25} + 11h; // 12:00
    CHECK(rendered("{{ts - 1d}}", after_autumn) == "2026-10-24T12:00:00+02:00");
    CHECK(rendered("{{ts - 24h}}", after_autumn) == "2026-10-24T13:00:00+02:00");
    // A day back, and the wall time does not exist: the first instant after the gap, as for occurrences.
    ax::time_point const half_past_two = std::chrono::sys_days{std::chrono::year{2026} / 3 / 30} + 30min;
    CHECK(rendered("{{ts}}", half_past_two) == "2026-03-30T02:30:00+02:00");
    CHECK(rendered("{{ts - 1d}}", half_past_two) == "2026-03-29T03:00:00+02:00");
    CHECK(rendered("{{ts - 1d - 1s}}", half_past_two) == "2026-03-29T01:59:59+01:00"); // from left to right
    CHECK(rendered("{{ts - 1s - 1d}}", half_past_two) == "2026-03-29T03:00:00+02:00");
    CHECK(rendered("{{ds - 0d}}", half_past_two) == "2026-03-30");
}

TEST_CASE("where there is no neighbour, nothing is written", "[scheduler]") {
    auto const made = payload_template::parse(R"({"from":"{{prev | %F}}","to":"{{ next - 1d }}","at":"{{ds}}"})");
    CHECK(made.asks_for_neighbours());
    CHECK(made.render(t0, std::nullopt, std::nullopt) == R"({"from":"","to":"","at":"2026-01-01"})");
    CHECK_FALSE(payload_template::parse(R"("{{ds}}{{ts}}{{scheduled_at}}")").asks_for_neighbours());
}

TEST_CASE("all around the placeholders stays as it was written", "[scheduler]") {
    auto const made =
        payload_template::parse(R"( { "b" : [ 1.00, "x\u0041 {{ds}}\n" , {"{{ds | %j}}":{}}], "b":2e1 } )");
    CHECK(made.render(t0, {}, {}) == R"( { "b" : [ 1.00, "x\u0041 2026-01-01\n" , {"001":{}}], "b":2e1 } )");
    CHECK_FALSE(made.constant());

    std::string const plain = R"({"a":{"b":{"c":[{}]}},"d":"{ } }} {x {","n":1.0,"e":"\"\\"})";
    CHECK(payload_template::parse(plain).constant());
    CHECK(payload_template::parse(plain).render(t0, {}, {}) == plain);
    CHECK(payload_template::parse("").render(t0, {}, {}).empty()); // a task type without payload
}

TEST_CASE("braces are written by four of them", "[scheduler]") {
    CHECK(rendered("{{{{") == "{{");
    CHECK(rendered("a{{{{b}}c") == "a{{b}}c");
    CHECK(rendered("{{{{{{ds}}") == "{{2026-07-01");
    CHECK(rendered("{{{{{") == "{{{");
    CHECK(rendered("{{ds}}}") == "2026-07-01}");
    CHECK(rendered("{ {ds}}") == "{ {ds}}");
    CHECK(payload_template::parse("\"{{{{\"").constant());
}

TEST_CASE("an escaped string is read as what it means and written as JSON", "[scheduler]") {
    auto const made = payload_template::parse(R"("\u007b{ds | \"%Y\"\\\u00e4\ud83d\ude00\n%m\u007d}")");
    auto const text = made.render(t0, {}, {});
    CHECK(json::parse(text).get<std::string>() == "\"2026\"\\\xC3\xA4\xF0\x9F\x98\x80\n01");
    CHECK(rendered("{{ds | \"%F\"\t\\\x01}}", t0, {}) == "\"2026-01-01\"\t\\\x01");
}

TEST_CASE("a template that cannot be read is refused, with the place and what may stand there", "[scheduler]") {
    CHECK(refusal(R"({"day":"{{dss}}"})") ==
          R"(column 11: "dss" is no name; allowed: ds, ts, scheduled_at, prev, next)");
    CHECK(refusal(R"("{{}}")") == "column 4: a name is missing; allowed: ds, ts, scheduled_at, prev, next");
    CHECK(refusal(R"("{{ DS }}")") == R"(column 5: "DS" is no name; allowed: ds, ts, scheduled_at, prev, next)");
    CHECK(refusal(R"("x {{ds")") == R"(column 4: "{{ds" has no end; allowed: }} to end it, {{{{ to write {{)");
    CHECK(refusal(R"({"a":"{{ds","b":"}}"})") == // a string ends it
          R"(column 7: "{{ds" has no end; allowed: }} to end it, {{{{ to write {{)");
    CHECK(refusal(R"("{{ds - }}")") ==
          "column 9: an offset is missing; allowed: a number with w, d, h, m or s, as in 1d");
    CHECK(refusal(R"("{{ds - 1y}}")") ==
          R"(column 9: "1y" is no offset; allowed: a number with w, d, h, m or s, as in 1d)");
    for (std::string const offset : {"d", "1", "1.5d", "0x1d", "1d12h", "--1d", "1ms"}) {
        CAPTURE(offset);
        CHECK(refusal("\"{{ds - " + offset + "}}\"").find("column") == 0);
    }
    CHECK(refusal(R"("{{ds - 36526d}}")") == R"(column 9: "36526d" is too far away; allowed: 36525d in all)");
    CHECK(refusal(R"("{{ds - 36525d + 1s}}")") == R"(column 18: "1s" is too far away; allowed: 36525d in all)");
    CHECK(refusal(R"("{{ds - 99999999999999999999999999s}}")").find("is too far away") != std::string::npos);
    CHECK(refusal(R"("{{ds 1d}}")") ==
          R"(column 7: "1d" follows the name; allowed: + or - and an offset, | and a format, }})");
    CHECK(refusal(R"("{{ds | }}")").find("column 9: a format is missing after |; allowed: %Y %y") == 0);
    CHECK(refusal(R"("{{ds | %Y %Q}}")").find(R"(column 12: "%Q" is no part of a format; allowed: %Y %y)") == 0);
    CHECK(refusal(R"("{{ds | %}}")").find(R"(column 9: "%" is no part of a format)") == 0);
    CHECK(refusal("\"{{ds | %\xC3\xA4}}\"").find("column 9: \"%\xC3\xA4\" is no part of a format") == 0);
    CHECK(refusal(R"("\u00e4\n{{\u0064x}}")") == // columns count in the text as it is written
          R"(column 12: "dx" is no name; allowed: ds, ts, scheduled_at, prev, next)");
    CHECK(refusal("{\"a\":}").find("column 6: it is no JSON") == 0);
    CHECK(refusal("[1e999]") == "column 1: it holds a number that is too large");
    CHECK(refusal("{{ds}}").find("it is no JSON") != std::string::npos);
    CHECK(refusal(std::string("5\0\"", 3)) == "column 2: it is no JSON: a NUL byte"); // whose last text has no end

    CHECK_THROWS_WITH(payload_template::parse(R"("{{x}}")"), Catch::Matchers::Contains("column 4: \"x\" is no name"));
    try {
        (void)payload_template::parse(R"("{{x}}")");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
    }
}

TEST_CASE("a string alone is checked without its quotes", "[scheduler]") {
    CHECK_FALSE(payload_template::check_string("no \"JSON\" {{ds}}"));
    auto const fault = payload_template::check_string("\xC3\xA4 {{ds - 1x}}");
    REQUIRE(fault);
    CHECK(fault->column == 11);
    CHECK(payload_template::check_string("{{"));
}

TEST_CASE("the widest offsets give a date all the same", "[scheduler]") {
    CHECK(rendered("{{ds - 36525d}}", ax::earliest_time, {}) == "1869-12-31");
    CHECK(rendered("{{ds + 36525d}}", ax::latest_time, {}) == "10099-12-31");
    CHECK(rendered("{{ts - 36525d}}", ax::earliest_time, "Europe/Berlin").size() >= 25); // local mean time there
}

TEST_CASE("no text makes the reader fail, and what has no braces stays as it is", "[scheduler]") {
    // Pieces that templates are made of, in random order, inside a string of a payload.
    std::vector<std::string> const pieces = {"{{",
                                             "}}",
                                             "{",
                                             "}",
                                             "ds",
                                             "ts",
                                             "prev",
                                             "next",
                                             "scheduled_at",
                                             " ",
                                             "-",
                                             "+",
                                             "|",
                                             "1d",
                                             "2h ",
                                             "%Y",
                                             "%",
                                             "%q",
                                             "\\n",
                                             "\\\"",
                                             "\\u007b",
                                             "\\u007d",
                                             "9w",
                                             "7",
                                             "d",
                                             "\\\\",
                                             "{{",
                                             "x",
                                             "\xC3\xA4",
                                             "\\ud83d\\ude00",
                                             "{{{{",
                                             "{{ds",
                                             "{{ds}}",
                                             "{{ ts - 1d | %F }}",
                                             "\",\"",
                                             "\":\"",
                                             "\t"};
    ax::splitmix64 random{7};
    int taken = 0, refused = 0, filled = 0;
    for (int round = 0; round != 60'000; ++round) {
        std::string inside;
        for (auto n = random() % 8; n != 0; --n) inside += pieces[random() % pieces.size()];
        auto const text = (random() % 2 == 0 ? "[\"" : "{\"k\":\"") + inside + (random() % 2 == 0 ? "\"]" : "\"}");
        CAPTURE(text);
        auto const fault = payload_template::check(text);
        if (fault) {
            ++refused;
            REQUIRE(fault->column >= 1);
            REQUIRE(fault->column <= text.size() + 1);
            continue;
        }
        ++taken;
        auto const made = payload_template::parse(text);
        auto const result = made.render(summer, summer - 1h, std::nullopt, berlin);
        REQUIRE(json::accept(result));
        if (!made.constant()) ++filled;
        if (text.find("{{") == text.npos && text.find("\\u007b") == text.npos) REQUIRE(result == text);
    }
    CHECK(taken > 5'000);
    CHECK(refused > 5'000);
    CHECK(filled > 1'000);

    for (int round = 0; round != 20'000; ++round) { // and bytes of any kind
        std::string text;
        for (auto n = random() % 12; n != 0; --n) text += static_cast<char>(random());
        (void)payload_template::check(text);
        (void)payload_template::check_string("{{" + text + "}}");
    }
}

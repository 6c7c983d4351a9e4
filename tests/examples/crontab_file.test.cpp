// SPDX-License-Identifier: MIT
#include "../../examples/crontab_file.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

using crontab::table;

namespace {

std::string const data = test::data_file("crontabs/");

/// "1-3, 7" as 1, 2, 3, 7.
std::set<std::size_t> lines_of(std::string const& text) {
    std::set<std::size_t> result;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        auto const dash = part.find('-');
        std::size_t const first = std::stoul(part);
        std::size_t const last = dash == part.npos ? first : std::stoul(part.substr(dash + 1));
        for (auto line = first; line <= last; ++line) result.insert(line);
    }
    return result;
}

template <class Items>
std::set<std::size_t> lines_except(Items const& items, std::set<std::size_t> const& left_out) {
    std::set<std::size_t> result;
    for (auto const& item : items)
        if (!left_out.contains(item.line)) CHECK(result.insert(item.line).second);
    return result;
}

crontab::entry const& entry_at(crontab::file const& file, std::size_t line) {
    auto const found =
        std::find_if(file.entries.begin(), file.entries.end(), [&](auto const& e) { return e.line == line; });
    REQUIRE(found != file.entries.end());
    return *found;
}

crontab::problem const& problem_at(crontab::file const& file, std::size_t line) {
    auto const found =
        std::find_if(file.problems.begin(), file.problems.end(), [&](auto const& p) { return p.line == line; });
    REQUIRE(found != file.problems.end());
    return *found;
}

struct known_file {
    char const* name;
    table kind;
    std::size_t lines, comments, blanks;
    char const *settings, *entries, *invalid;
    char const* depends; // engines disagree about them; not compared
};

} // namespace

TEST_CASE("each line of a crontab file is taken for what it is", "[examples]") {
    auto const known = GENERATE(values<known_file>({
        {"01-user-plain.crontab", table::personal, 36, 15, 3, "9-11", "14, 16, 18, 19, 22-26, 29, 32-36", "", ""},
        {"02-system-table.crontab", table::user_column, 19, 5, 5, "3, 4", "7-10, 13-15", "", ""},
        {"03-drop-in.crontab", table::user_column, 23, 4, 3, "3-7", "9-19", "", ""},
        {"04-macros.crontab", table::personal, 19, 1, 0, "1", "2-11", "16-19", "13-15"},
        {"05-aligned-columns.crontab", table::personal, 23, 4, 3, "2", "4-17, 23", "", ""},
        {"06-crlf.crontab", table::personal, 11, 2, 2, "2, 3", "5-8, 11", "", ""},
        {"07-lists-steps-zeros.crontab", table::personal, 49, 7, 0, "", "2-7, 9-18, 20-27, 29-33, 35-39, 45-49", "",
         "41-43"},
        {"08-names.crontab", table::personal, 34, 0, 0, "1", "2-23, 28", "29-34", "24-27"},
        {"09-day-fields.crontab", table::personal, 29, 5, 0, "", "2-5, 7-9, 11-17, 19-23, 25-29", "", ""},
        {"10-percent-and-quoting.crontab", table::personal, 22, 1, 0, "2", "3-22", "", ""},
        {"11-settings.crontab", table::personal, 31, 1, 2, "1-12, 14, 17, 19, 21, 24", "15, 16, 18, 20, 22, 25",
         "29-31", "27, 28"},
        {"12-mistakes.crontab", table::personal, 58, 2, 0, "", "5, 36, 47, 49, 53, 55-58",
         "3, 4, 6-23, 25-35, 37-46, 48, 50-52, 54", "24"},
    }));
    CAPTURE(known.name);
    auto const file = crontab::read_file(data + known.name, known.kind);
    auto const depends = lines_of(known.depends);
    CHECK(file.lines == known.lines);
    CHECK(file.comments == known.comments);
    CHECK(file.blanks == known.blanks);
    CHECK(lines_except(file.settings, depends) == lines_of(known.settings));
    CHECK(lines_except(file.entries, depends) == lines_of(known.entries));
    CHECK(lines_except(file.problems, depends) == lines_of(known.invalid));
    // A line is counted once, whatever engines think of it.
    CHECK(file.settings.size() + file.entries.size() + file.problems.size() + file.comments + file.blanks ==
          file.lines);
    for (auto const& problem : file.problems) {
        CHECK(problem.column >= 1);
        CHECK_FALSE(problem.reason.empty());
    }
}

TEST_CASE("a wrong line is named with its column and its reason", "[examples]") {
    auto const file = crontab::read_file(data + "12-mistakes.crontab");
    struct place {
        std::size_t line, column;
        char const* reason;
    };
    for (auto const& expected :
         {place{3, 1, "minute: \"these\""}, place{6, 1, "minute: \"*/\" has no step"},
          place{8, 15, "day of week: \"echo\""}, place{9, 8, "fields are missing"},
          place{10, 10, "the command is missing"}, place{12, 3, "hour: \"24\" is out of range"},
          place{16, 5, "day of month: \"32\" is out of range; allowed: 1-31"}, place{19, 9, "day of week: \"8\""},
          place{26, 3, "minute: a value is missing"}, place{31, 5, "hour: a value is missing"},
          place{37, 9, "month: \"?\""}, place{40, 9, "day of week: \"5#3\""}, place{54, 5, "minute: \"and\""}}) {
        auto const& found = problem_at(file, expected.line);
        CAPTURE(found.message("12-mistakes.crontab"));
        CHECK(found.column == expected.column);
        CHECK(found.reason.find(expected.reason) == 0);
    }
    CHECK(problem_at(file, 12).message("jobs").find("jobs:12:3: hour: \"24\" is out of range; allowed: 0-23") == 0);
    CHECK(entry_at(file, 53).command == "echo continued \\");
    CHECK(entry_at(file, 58).command == "echo last line, no line ending");
    CHECK(problem_at(crontab::read_file(data + "04-macros.crontab"), 19).reason == "the command is missing");
    CHECK(problem_at(crontab::read("0 5 * * * root\n", table::user_column), 1).column == 15);
    CHECK(problem_at(crontab::read("\t0 5 * * 8 x\n"), 1).column == 10);
}

TEST_CASE("a user column is read where the table has one", "[examples]") {
    auto const system = crontab::read_file(data + "02-system-table.crontab", table::user_column);
    CHECK(entry_at(system, 9).user == "root");
    CHECK(entry_at(system, 9).command == "true || ( echo weekly )");
    CHECK(entry_at(system, 9).schedule == "47 6\t* * 7");
    auto const drop_in = crontab::read_file(data + "03-drop-in.crontab", table::user_column);
    CHECK(entry_at(drop_in, 14).user == "nobody");
    CHECK(entry_at(drop_in, 19).user == "echo");
    CHECK(entry_at(crontab::read_file(data + "12-mistakes.crontab"), 56).command ==
          "root echo user column in a personal table");
}

TEST_CASE("percent signs part a command from its input", "[examples]") {
    auto const file = crontab::read_file(data + "10-percent-and-quoting.crontab");
    CHECK(entry_at(file, 3).command == "echo day-$(date +%Y-%m-%d)");
    CHECK_FALSE(entry_at(file, 3).input);
    CHECK(entry_at(file, 4).command == "echo \"$(date +%H:%M)\" >/dev/null");
    CHECK(entry_at(file, 5).command == "echo day-$(date +");
    CHECK(entry_at(file, 5).input == "Y-\nm-\nd)");
    CHECK(entry_at(file, 6).command == "cat");
    CHECK(entry_at(file, 6).input == "one line of input");
    CHECK(entry_at(file, 7).command == "cat >/dev/null");
    CHECK(entry_at(file, 7).input == "first\nsecond\nthird");
    CHECK(entry_at(file, 8).input == "\nafter an empty line");
    CHECK(entry_at(file, 9).input == "ends with percent\n");
    CHECK(entry_at(file, 10).command == "echo 100% done");
    CHECK(entry_at(file, 11).command == "echo \"a # inside quotes\"");
    CHECK(entry_at(file, 12).command == "echo done # not a comment for cron");
    CHECK(entry_at(file, 17).command == "NAME=value; export NAME; echo \"$NAME\"");
    CHECK(entry_at(file, 20).command == "echo tab before the command");
    CHECK(entry_at(file, 21).command == "echo back\\\\slash \\n \\t");
    CHECK(entry_at(file, 22).command == "echo na\xc3\xafve caf\xc3\xa9 \xe2\x80\x94 \xe2\x9c\x93");
}

TEST_CASE("settings hold for the jobs below them", "[examples]") {
    auto const file = crontab::read_file(data + "11-settings.crontab");
    auto const value_at = [&](std::size_t line) {
        for (auto const& s : file.settings)
            if (s.line == line) return s.name + "=" + s.value;
        return std::string("none");
    };
    CHECK(value_at(2) == "HOME=/");
    CHECK(value_at(3) == "LANG=C");
    CHECK(value_at(4) == "MAILTO=");
    CHECK(value_at(5) == "MAILTO=");
    CHECK(value_at(6) == "GREETING=hello world");
    CHECK(value_at(7) == "GREETING=hello world");
    CHECK(value_at(8) == "QUOTED_NAME=value");
    CHECK(value_at(9) == "OPTS=--a=1 --b=2");
    CHECK(value_at(10) == "EXPANDED=$HOME/x");
    CHECK(value_at(11) == "NOTE=value # kept");
    CHECK(value_at(12) == "SPACED=padded value");

    CHECK(entry_at(file, 15).environment.at("CRON_TZ") == "Europe/Berlin");
    CHECK(entry_at(file, 18).environment.at("CRON_TZ") == "Asia/Kolkata");
    CHECK(entry_at(file, 20).environment.at("CRON_TZ") == "UTC");
    CHECK(entry_at(file, 15).when->zone().name() == "Europe/Berlin");
    CHECK(entry_at(file, 18).when->zone().name() == "Asia/Kolkata");
    CHECK(entry_at(file, 22).when->zone().name() == "UTC"); // TZ is the job's, not the schedule's
    CHECK(entry_at(file, 22).environment.at("TZ") == "America/New_York");
    CHECK_FALSE(entry_at(file, 20).environment.contains("TZ"));
    using namespace std::chrono;
    CHECK(entry_at(file, 18).when->next(ax::time_point{}) == ax::time_point{hours{3} + minutes{30}});
}

TEST_CASE("no job runs by another clock than the one that its table asks for", "[examples]") {
    auto const file =
        crontab::read("0 1 * * * a\nCRON_TZ=Europe/Atlantis\n0 2 * * * b\n@reboot c\nCRON_TZ=\n0 3 * * * d\n",
                      table::personal, ax::time_zone{"Asia/Tokyo"});
    CHECK(entry_at(file, 1).when->zone().name() == "Asia/Tokyo");
    CHECK(problem_at(file, 2).column == 9);
    CHECK(problem_at(file, 3).reason.find("time zone") != std::string::npos);
    CHECK_FALSE(entry_at(file, 4).when);
    CHECK(entry_at(file, 6).when->zone().name() == "Asia/Tokyo");
}

TEST_CASE("line ends of another system, a byte-order mark and an empty file are read", "[examples]") {
    auto const crlf = crontab::read_file(data + "06-crlf.crontab");
    CHECK(entry_at(crlf, 5).command == "echo nightly");
    CHECK(crlf.settings.at(0).value == "/bin/sh");
    CHECK(crlf.settings.at(1).value.empty());
    CHECK(crontab::read("\xef\xbb\xbf# hello\r\n0 1 * * * x\r").entries.at(0).command == "x");
    CHECK(crontab::read("").lines == 0);
    CHECK(crontab::read("\n").blanks == 1);
    CHECK(crontab::read(std::string_view("0 1 * * * a\0b\n", 14)).problems.at(0).column == 12);
    CHECK(crontab::read("A='x\nB=\"y\" z\n=c\n'=1\n").problems.size() == 4);
    CHECK_THROWS_AS(crontab::read_file(data + "absent"), std::runtime_error);
}

TEST_CASE("macros have the schedules that they stand for", "[examples]") {
    auto const file = crontab::read_file(data + "04-macros.crontab");
    CHECK_FALSE(entry_at(file, 2).when);
    CHECK(entry_at(file, 3).command == "sleep 1 && echo up later");
    CHECK(entry_at(file, 4).when->expression().to_string() == "0 0 1 1 *");
    CHECK(entry_at(file, 7).when->expression().to_string() == "0 0 * * 0");
    CHECK(entry_at(file, 11).when->expression().to_string() == "0 * * * *");
}

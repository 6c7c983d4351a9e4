// SPDX-License-Identifier: MIT
#include "ax/cron/parser.hpp"

#include "ax/cron/expression.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

using dialect = ax::cron_dialect;
using field = ax::cron_field;

namespace {

struct refusal {
    char const* text;
    dialect which;
    std::optional<field> in;
    std::size_t column;
    char const* found;
    char const* allowed;
};

} // namespace

TEST_CASE("check says in which field, at which column, what was found and what is allowed", "[cron]") {
    auto const r = GENERATE(values<refusal>({
        {"", dialect::crontab, {}, 1, "", "5 fields or a macro"},
        {"  \t", dialect::crontab, {}, 4, "", "5 fields or a macro"},
        {"* * * *", dialect::crontab, {}, 8, "", "5 fields or a macro"},
        {"0 0 0 1 1 *", dialect::crontab, {}, 11, "*", "5 fields or a macro"},
        {"0 0 1 1 *  root  true ", dialect::crontab, {}, 12, "root  true", "5 fields or a macro"},
        {"* * * * * * * *", dialect::ax, {}, 15, "*", "5 to 7 fields or a macro"},
        {"0 12 * * ?", dialect::quartz, {}, 11, "", "6 to 7 fields"},
        {"0 12 * * *", dialect::spring, {}, 11, "", "6 fields or a macro"},
        {"60 * * * *", dialect::crontab, field::minute, 1, "60", "0-59"},
        {"0 24 * * *", dialect::crontab, field::hour, 3, "24", "0-23"},
        {" 0\t0 0 * *", dialect::crontab, field::day, 6, "0", "1-31"},
        {"0 0 32 * *", dialect::crontab, field::day, 5, "32", "1-31"},
        {"0 0 1 0 *", dialect::crontab, field::month, 7, "0", "1-12, JAN-DEC"},
        {"0 0 1 1,13 *", dialect::crontab, field::month, 9, "13", "1-12, JAN-DEC"},
        {"0 0 * * 8", dialect::crontab, field::weekday, 9, "8", "0-7, SUN-SAT"},
        {"0 0 * * 1-8", dialect::crontab, field::weekday, 11, "8", "0-7, SUN-SAT"},
        {"0 0 12 ? * 0", dialect::quartz, field::weekday, 12, "0", "1-7, SUN-SAT"},
        {"60 0 0 * * *", dialect::ax, field::second, 1, "60", "0-59"},
        {"0 0 0 1 1 * 2200", dialect::ax, field::year, 13, "2200", "1970-2199"},
        {"99999999999999999999 * * * *", dialect::crontab, field::minute, 1, "99999999999999999999", "0-59"},
        {"* * 4294967297 * *", dialect::crontab, field::day, 5, "4294967297", "1-31"},
        {"0 9 * * monday", dialect::crontab, field::weekday, 9, "monday", "0-7, SUN-SAT"},
        {"0 9 * * MON,tues", dialect::crontab, field::weekday, 13, "tues", "0-7, SUN-SAT"},
        {"0 9 * * mo", dialect::crontab, field::weekday, 9, "mo", "0-7, SUN-SAT"},
        {"0 9 * january *", dialect::crontab, field::month, 7, "january", "1-12, JAN-DEC"},
        {"0 9 jan * *", dialect::crontab, field::day, 5, "jan", "1-31"},
        {"mon 9 * * *", dialect::crontab, field::minute, 1, "mon", "0-59"},
        {"0 9 * mon *", dialect::crontab, field::month, 7, "mon", "1-12, JAN-DEC"},
        {"-5 * * * *", dialect::crontab, field::minute, 1, "-5", "0-59"},
        {"+5 * * * *", dialect::crontab, field::minute, 1, "+5", "0-59"},
        {"0 0 * * +5", dialect::crontab, field::weekday, 9, "+5", "0-7, SUN-SAT"},
        {"5- * * * *", dialect::crontab, field::minute, 1, "5-", "0-59"},
        {"1-2-3 * * * *", dialect::crontab, field::minute, 1, "1-2-3", "0-59"},
        {"1--5 * * * *", dialect::crontab, field::minute, 3, "-5", "0-59"},
        {"5-* * * * *", dialect::crontab, field::minute, 3, "*", "0-59"},
        {"10-5 * * * *", dialect::crontab, field::minute, 1, "10-5", "0-59"},
        {"0 0 * nov-feb *", dialect::crontab, field::month, 7, "nov-feb", "1-12, JAN-DEC"},
        {"0 0 * * fri-mon", dialect::crontab, field::weekday, 9, "fri-mon", "0-7, SUN-SAT"},
        {"0 0 * * 7-2", dialect::crontab, field::weekday, 9, "7-2", "0-7, SUN-SAT"},
        {"0 0 22-2 * * *", dialect::spring, field::hour, 5, "22-2", "0-23"},
        {"0 0 0 1 1 * 2030-2026", dialect::ax, field::year, 13, "2030-2026", "1970-2199"},
        {"*/ 7-21 * * *", dialect::crontab, field::minute, 1, "*/", "a step from 1 on"},
        {"*/0 * * * *", dialect::crontab, field::minute, 1, "*/0", "a step from 1 on"},
        {"0-10/00 * * * *", dialect::crontab, field::minute, 1, "0-10/00", "a step from 1 on"},
        {"*/-5 * * * *", dialect::crontab, field::minute, 1, "*/-5", "0-59"},
        {"*/1.5 * * * *", dialect::crontab, field::minute, 1, "*/1.5", "0-59"},
        {"*/5/2 * * * *", dialect::crontab, field::minute, 1, "*/5/2", "0-59"},
        {"5/15 * * * *", dialect::crontab, field::minute, 1, "5/15", "a step after * or a range, as in */5 or 0-30/5"},
        {"0 */60 * * * ?", dialect::quartz, field::minute, 5, "60", "1-59"},
        {"0 0 */24 * * ?", dialect::quartz, field::hour, 7, "24", "1-23"},
        {"1,,5 * * * *", dialect::crontab, field::minute, 3, "", "0-59"},
        {",5 * * * *", dialect::crontab, field::minute, 1, "", "0-59"},
        {"5, * * * *", dialect::crontab, field::minute, 3, "", "0-59"},
        {"0 1, 2 * *", dialect::crontab, field::hour, 5, "", "0-23"},
        {"1* * * * *", dialect::crontab, field::minute, 1, "1*", "0-59"},
        {"*5 * * * *", dialect::crontab, field::minute, 1, "*5", "0-59"},
        {"** * * * *", dialect::crontab, field::minute, 1, "**", "0-59"},
        {"1.5 * * * *", dialect::crontab, field::minute, 1, "1.5", "0-59"},
        {"1;2 * * * *", dialect::crontab, field::minute, 1, "1;2", "0-59"},
        {"0x10 * * * *", dialect::crontab, field::minute, 1, "0x10", "0-59"},
        {"\"0 9 * * 1-5\"", dialect::crontab, field::minute, 1, "\"0", "0-59"},
        {"0 9 * * 1\xe2\x80\x93"
         "5",
         dialect::crontab, field::weekday, 9,
         "1\xe2\x80\x93"
         "5",
         "0-7, SUN-SAT"},
        {"*\xc2\xa0* * * * *", dialect::crontab, field::minute, 1, "*\xc2\xa0*", "0-59"},
        {"0 0 ? * 1", dialect::crontab, field::day, 5, "?", "1-31"},
        {"? * * * *", dialect::ax, field::minute, 1, "?", "0-59"},
        {"0 0 ?,1 * *", dialect::ax, field::day, 5, "?", "1-31, L, L-n, LW, nW"},
        {"0 0 L * *", dialect::crontab, field::day, 5, "L", "1-31"},
        {"0 0 15W * *", dialect::crontab, field::day, 5, "15W", "1-31"},
        {"0 9 * * 5#3", dialect::crontab, field::weekday, 9, "5#3", "0-7, SUN-SAT"},
        {"0 9 * * 5L", dialect::crontab, field::weekday, 9, "5L", "0-7, SUN-SAT"},
        {"H * * * *", dialect::crontab, field::minute, 1, "H", "0-59"},
        {"0 0 * * L", dialect::ax, field::weekday, 9, "L", "6 for Saturday, 5L for the last Friday"},
        {"0 0 * * 1#6", dialect::ax, field::weekday, 9, "1#6", "#1 to #5, #L"},
        {"0 0 L-31 * *", dialect::ax, field::day, 7, "31", "1-31"},
        {"0 0 0 1,LW * *", dialect::spring, field::day, 9, "LW", "1-31, L, L-n, LW, nW"},
        {"0 0 12 1 * MON", dialect::quartz, field::weekday, 12, "MON", "1-7, SUN-SAT, nL, n#k"},
        {"@Daily", dialect::crontab, {}, 1, "@Daily", "@yearly @annually @monthly @weekly @daily @midnight @hourly"},
        {" @restart", dialect::ax, {}, 2, "@restart", "@yearly @annually @monthly @weekly @daily @midnight @hourly"},
        {"@reboot", dialect::crontab, {}, 1, "@reboot", "@yearly @annually @monthly @weekly @daily @midnight @hourly"},
        {"@every 5m", dialect::ax, {}, 1, "@every", "@yearly @annually @monthly @weekly @daily @midnight @hourly"},
        {"@", dialect::ax, {}, 1, "@", "@yearly @annually @monthly @weekly @daily @midnight @hourly"},
        {"@daily *", dialect::crontab, {}, 8, "*", "nothing"},
        {"@daily", dialect::quartz, {}, 1, "@daily", "6 to 7 fields"},
    }));
    CAPTURE(r.text, static_cast<int>(r.which));
    auto const problem = ax::cron_expression::check(r.text, r.which);
    REQUIRE(problem);
    CAPTURE(problem->message());
    CHECK(problem->field == r.in);
    CHECK(problem->column == r.column);
    CHECK(problem->found == r.found);
    CHECK(problem->allowed == r.allowed);
    CHECK_FALSE(problem->reason.empty());
}

TEST_CASE("cron_error reads as one line", "[cron]") {
    CHECK(ax::cron_expression::check("0 24 * * *", dialect::crontab)->message() ==
          "column 3, hour: \"24\" is out of range; allowed: 0-23");
    CHECK(ax::cron_expression::check("* * *", dialect::crontab)->message() ==
          "column 6: fields are missing; allowed: 5 fields or a macro");
    CHECK(ax::cron_expression::check("1,,2 * * * *", dialect::crontab)->message() ==
          "column 3, minute: a value is missing; allowed: 0-59");
}

TEST_CASE("parse throws what check says, with the text", "[cron]") {
    try {
        ax::cron_expression::parse("0 24 * * *", dialect::crontab);
        FAIL("was taken");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        CHECK(std::string(e.what()).find("cron expression \"0 24 * * *\": column 3, hour: \"24\" is out of range") ==
              0);
    }
}

TEST_CASE("messages stay short and on one line whatever the text holds", "[cron]") {
    auto const text =
        GENERATE(as<std::string>{}, std::string(1'000'000, '7'), std::string(1'000'000, ' ') + "x",
                 "\n\r\x1b[2J * * * *", std::string("1\0 * * * *", 10), std::string(100, '\xe2') + " * * * *",
                 "@" + std::string(10'000, 'x'), std::string(10'000, ',') + " * * * *");
    for (auto const which : {dialect::ax, dialect::crontab, dialect::quartz, dialect::spring}) {
        auto const problem = ax::cron_expression::check(text, which);
        REQUIRE(problem);
        auto const message = problem->message();
        CHECK(message.size() < 400);
        for (char const c : message) CHECK(static_cast<unsigned char>(c) >= 0x20);
    }
}

TEST_CASE("a part of a text never reads beyond its end, and what is taken is written and read alike", "[cron]") {
    using list = std::vector<char const*>;
    list const clock = {"*", "*/2", "*/7", "1", "12", "0", "07", "1-5", "5-1", "2-9/3", "3/4", "0-23", "50-10/9"};
    list const day = {"*", "?", "*/2", "1", "31", "1-7", "28-5/2", "3/4", "L", "L-3", "LW", "15W", "L-2W", "1-31"};
    list const month = {"*", "*/3", "1", "12", "JAN", "2-dec", "11-2", "4/4"};
    list const weekday = {"*",       "?",       "*/2", "0",   "7",     "1-5", "5-7",
                          "sat-sun", "FRI-mon", "5L",  "1#2", "MON#L", "+3",  "2/2"};
    list const last = {"*", "2026", "1970-2199/7", "2030/10", "?", "MON"};
    std::string const noise = "0123456789*,-/ \tLW#?+@\xc3";
    std::mt19937 random(20'260'517);
    std::size_t taken = 0;
    for (int i = 0; i < 60'000; ++i) {
        std::string text;
        std::vector<list const*> fields{&clock, &clock, &day, &month, &weekday};
        if (random() % 2 == 0) fields.insert(fields.begin(), &clock);
        if (random() % 4 == 0) fields.push_back(&last);
        for (auto const* field_elements : fields) {
            text += (*field_elements)[random() % field_elements->size()];
            if (random() % 4 == 0) text.append(",").append((*field_elements)[random() % field_elements->size()]);
            text += ' ';
        }
        if (random() % 4 == 0) text[random() % text.size()] = noise[random() % noise.size()];
        std::vector<char> const exact(text.begin(), text.end()); // so that the sanitizer sees a step too far
        std::string_view const view(exact.data(), exact.size());
        for (auto const which : {dialect::ax, dialect::crontab, dialect::quartz, dialect::spring}) {
            if (ax::cron_expression::check(view, which)) continue;
            ++taken;
            auto const e = ax::cron_expression::parse(view, which);
            auto const written = e.to_string();
            auto const again = ax::cron_expression::check(written, which);
            if (again) FAIL(text << " was written as " << written << ": " << again->message());
            if (!(ax::cron_expression::parse(written, which) == e)) FAIL(text << " was written as " << written);
        }
    }
    CHECK(taken > 5'000);
}

TEST_CASE("expressions that people keep are taken by their dialect", "[cron]") {
    // Wrong on purpose, no calendar expression, or a step without a range.
    std::set<std::string> const wrong_crontab = {
        "@reboot",        "* 0/15 * * *",  "*/ 7-21 * * *",           "0 24 * * *",
        "0 30 * * *",     "0-59/10 * * *", "00 24 * * 1,3,5",         "00 24 * * 6",
        "1/15 * * * 1-5", "2/17 * * * *",  "58 59 6,9,14,17,20 * * *"};
    std::set<std::string> const wrong_spring = {"0 0 1* * *"};
    std::ifstream in(test::data_file("cron/real-expressions.jsonl"));
    REQUIRE(in);
    std::size_t taken = 0, refused = 0;
    for (std::string line; std::getline(in, line);) {
        auto const entry = nlohmann::json::parse(line);
        auto const text = entry.at("expr").get<std::string>();
        auto const name = entry.at("dialect").get<std::string>();
        if (name == "systemd-calendar") continue;
        bool wrong = false;
        auto which = dialect::crontab;
        if (name == "crontab" || name == "github") {
            wrong = wrong_crontab.contains(text);
        } else if (name == "k8s") {
            wrong = text.find("TZ=") != text.npos || text.starts_with("@every");
        } else if (name == "spring") {
            which = dialect::spring;
            wrong = wrong_spring.contains(text);
        } else {
            REQUIRE(name == "quartz");
            which = dialect::quartz;
        }
        auto const problem = ax::cron_expression::check(text, which);
        CAPTURE(text, name, problem ? problem->message() : "");
        CHECK(problem.has_value() == wrong);
        problem ? ++refused : ++taken;
        if (!problem) {
            auto const e = ax::cron_expression::parse(text, which);
            CHECK(ax::cron_expression::parse(e.to_string(), which) == e);
            auto const words = e.describe();
            CHECK((words.starts_with("at ") || words.starts_with("every ")));
        }
        if (!problem && name == "crontab") CHECK_FALSE(ax::cron_expression::check(text, dialect::ax));
    }
    CAPTURE(taken, refused);
    CHECK(taken + refused == 544);
}

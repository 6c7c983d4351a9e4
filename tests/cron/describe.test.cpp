// SPDX-License-Identifier: MIT
#include "ax/cron/describe.hpp"

#include "ax/cron/expression.hpp"

#include "support/catch.hpp"

#include <string>
#include <vector>

using dialect = ax::cron_dialect;
using field = ax::cron_field;

TEST_CASE("describe says in words when an expression happens", "[cron]") {
    struct example {
        char const *text, *words;
    };
    auto const e = GENERATE(values<example>({
        {"* * * * *", "every minute"},
        {"*/5 * * * *", "every 5 minutes"},
        {"*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"},
        {"0 * * * *", "every hour"},
        {"5 * * * *", "at minute 5 of every hour"},
        {"0 */2 * * *", "every 2 hours"},
        {"15 */2 * * *", "at minute 15, every 2 hours"},
        {"30 2 * * *", "at 02:30 every day"},
        {"0 9,17 * * 1-5", "at 09:00 and 17:00, on Monday to Friday"},
        {"30 9-17 * * MON-FRI", "at minute 30, hours 9 to 17, on Monday to Friday"},
        {"*/15 8-17 * * *", "every 15 minutes, hours 8 to 17"},
        {"* 3 * * *", "every minute, hour 3"},
        {"0 0 * * 6,0", "at 00:00, on Saturday and Sunday"},
        {"0 0 1,15 * *", "at 00:00, on days 1 and 15 of the month"},
        {"0 0 13 * 5", "at 00:00, on day 13 of the month or on Friday"},
        {"0 0 13 * +5", "at 00:00, on day 13 of the month if it is also Friday"},
        {"0 0 L * *", "at 00:00, on the last day of the month"},
        {"0 0 L-3,LW,15W * *",
         "at 00:00, on day 3 before the last, the working day nearest to day 15 and the last working day of the month"},
        {"0 0 * * MON#1,5L", "at 00:00, on the first Monday of the month and the last Friday of the month"},
        {"0 0 29 2 *", "at 00:00, on day 29 of the month, in February"},
        {"0 0 1 jan,jun-aug *", "at 00:00, on day 1 of the month, in January and June to August"},
        {"0 0 30 2 *", "at 00:00, on day 30 of the month, in February (never)"},
        {"* * * * * *", "every second"},
        {"*/10 * * * * *", "every 10 seconds"},
        {"15 * * * * *", "at second 15, every minute"},
        {"*/10 */5 9 * * *", "every 10 seconds, every 5 minutes, hour 9"},
        {"30 0 2 * * *", "at 02:00:30 every day"},
        {"0 0 12 1 1 ? 2027-2029,2040", "at 12:00, on day 1 of the month, in January, in 2027 to 2029 and 2040"},
    }));
    CAPTURE(e.text);
    CHECK(ax::cron_expression::parse(e.text).describe() == e.words);
}

TEST_CASE("lint warns of what is valid and seldom meant", "[cron]") {
    struct example {
        char const* text;
        dialect which;
        std::optional<field> in;
        char const* words;
    };
    auto const e = GENERATE(values<example>({
        {"*/90 * * * *", dialect::crontab, field::minute, "longer than its range"},
        {"* */24 * * *", dialect::crontab, field::hour, "longer than its range"},
        {"0 8-20/24 * * *", dialect::crontab, field::hour, "longer than its range"},
        {"*/7 * * * *", dialect::ax, field::minute, "does not divide"},
        {"*/90 * * * *", dialect::ax, field::minute, "longer than its range"},
        {"* 3 * * *", dialect::ax, field::minute, "every minute"},
        {"0 0 13 * 5", dialect::ax, {}, "either"},
        {"0 0 30 2 *", dialect::crontab, {}, "never"},
        {"0 0 0 30 2 ?", dialect::quartz, {}, "never"},
        {"0 0 0 31 4 *", dialect::spring, {}, "never"},
        {"0 0/5 * * * *", dialect::ax, {}, ""},
        {"0 */7 * * *", dialect::ax, field::hour, "does not divide"},
        {"0 0 */2 * *", dialect::ax, field::day, "does not divide"},
        {"0 0 * * */2", dialect::ax, field::weekday, "does not divide"},
        {"0 0 1 */5 *", dialect::ax, field::month, "does not divide"},
        {"* 20 * * *", dialect::crontab, field::minute, "every minute"},
        {"* */12 * * *", dialect::crontab, field::minute, "every minute"},
        {"* * 2 * *", dialect::crontab, field::minute, "every minute"},
        {"* * * 2 *", dialect::crontab, field::minute, "every minute"},
        {"* * * * 1", dialect::crontab, field::minute, "every minute"},
        {"* 0 0 * * ?", dialect::ax, field::second, "every second"},
        {"0 0 1,15 * 5", dialect::crontab, {}, "either"},
        {"0 0 */2 * 1", dialect::crontab, {}, "both"},
        {"0 0 1-31 * 1", dialect::crontab, {}, "every day"},
        {"0 0 31 * *", dialect::ax, field::day, "does not happen in February, April, June, September and November"},
        {"0 0 29 2 *", dialect::ax, field::day, "leap years"},
        {"0 0 30 2 *", dialect::ax, {}, "never"},
        {"0 0 31 4,6 *", dialect::ax, {}, "never"},
    }));
    CAPTURE(e.text);
    auto const warnings = ax::cron_expression::parse(e.text, e.which).lint();
    if (*e.words == '\0') {
        CHECK(warnings.empty());
        return;
    }
    bool found = false;
    for (auto const& w : warnings) found = found || (w.field == e.in && w.text.find(e.words) != w.text.npos);
    CHECK(found);
}

TEST_CASE("lint has nothing to say about ordinary expressions", "[cron]") {
    for (auto const* text :
         {"* * * * *", "*/5 * * * *", "0 2 * * *", "30 9-17 * * MON-FRI", "0 0 1 * *", "0 0 L * *", "0 0 1 */3 *",
          "*/10 * * * * *", "0 0 13 * +FRI", "@hourly", "@weekly", "@yearly", "0 0 28 2 *", "5-50/15 * * * *"}) {
        CAPTURE(text);
        CHECK(ax::cron_expression::parse(text).lint().empty());
    }
}

TEST_CASE("H draws a value from the name, the same each time", "[cron]") {
    auto const minutes_of = [](std::string_view text, std::string_view name) {
        auto const written = ax::cron_expression::parse(text, dialect::ax, name).to_string();
        return written.substr(0, written.find(' '));
    };
    CHECK(ax::cron_expression::parse("H H * * *", dialect::ax, "nightly") ==
          ax::cron_expression::parse("h h * * *", dialect::ax, "nightly"));
    CHECK_FALSE(ax::cron_expression::parse("H H * * *", dialect::ax, "nightly").is_interval());
    CHECK(ax::cron_expression::parse("H/15 3 * * *", dialect::ax, "nightly").is_interval());
    std::vector<int> seen(60), in_range(60);
    for (int i = 0; i < 6'000; ++i) {
        auto const name = "job-" + std::to_string(i);
        ++seen[static_cast<std::size_t>(std::stoi(minutes_of("H 3 * * *", name)))];
        ++in_range[static_cast<std::size_t>(std::stoi(minutes_of("H(10-19) 3 * * *", name)))];
        auto const e = ax::cron_expression::parse("0 0 H H H", dialect::ax, name);
        CHECK_FALSE(e.never());
    }
    for (std::size_t m = 0; m < 60; ++m) {
        CHECK(seen[m] > 60); // 100 each, if they are spread evenly
        CHECK((in_range[m] > 0) == (m >= 10 && m <= 19));
    }
    // Every 15 minutes from somewhere in the first 15.
    auto const e = ax::cron_expression::parse("H/15 * * * *", dialect::ax, "job");
    auto const first = e.next(ax::time_point{} - std::chrono::seconds{1});
    REQUIRE(first);
    CHECK(*first < ax::time_point{std::chrono::minutes{15}});
    CHECK(e.next(*first) == *first + std::chrono::minutes{15});
    for (auto const* text : {"H(5-60) * * * *", "H(9-5) * * * *", "H(5) * * * *", "H( * * * *", "H/0 * * * *",
                             "H5 * * * *", "1-H * * * *", "H-5 * * * *", "0 0 0 1 1 * H"}) {
        CAPTURE(text);
        CHECK(ax::cron_expression::check(text));
    }
    CHECK(ax::cron_expression::check("H * * * *", dialect::crontab));
    CHECK(ax::cron_expression::check("H 0 0 * * ?", dialect::quartz));
}

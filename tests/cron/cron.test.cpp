// SPDX-License-Identifier: MIT
#include "ax/cron/cron.hpp"

#include "support/catch.hpp"

using namespace std::chrono_literals;

TEST_CASE("cron is an expression with its zone", "[cron]") {
    ax::cron const nightly{"0 0 3 * * *", "Asia/Shanghai"};
    CHECK(nightly.text() == "0 0 3 * * *");
    CHECK(nightly.zone().name() == "Asia/Shanghai");
    CHECK(nightly.expression().to_string() == "0 3 * * *");
    auto const noon = ax::time_point{std::chrono::sys_days{std::chrono::year{2026} / 5 / 17} + 12h};
    CHECK(nightly.next(noon) == noon + 7h);
    CHECK(nightly.prev(noon) == noon - 17h);
    CHECK(nightly.matches(noon + 7h));
    CHECK_FALSE(nightly.matches(noon));
}

TEST_CASE("cron follows UTC and speaks the default dialect where nothing else is said", "[cron]") {
    ax::cron const hourly{"@hourly"};
    CHECK(hourly.zone() == ax::time_zone{});
    CHECK(hourly.expression().dialect() == ax::cron_dialect::ax);
    CHECK(hourly.next(ax::time_point{}) == ax::time_point{1h});
}

TEST_CASE("cron takes a zone as a value, its name as a literal, string or view", "[cron]") {
    std::string const name = "Europe/Berlin";
    ax::time_zone const berlin{name};
    CHECK(ax::cron("0 3 * * *", berlin) == ax::cron("0 3 * * *", name));
    CHECK(ax::cron("0 3 * * *", std::string_view(name)) == ax::cron("00 03 * * *", "Europe/Berlin"));
    CHECK_FALSE(ax::cron("0 3 * * *", berlin) == ax::cron("0 3 * * *"));
    CHECK_FALSE(ax::cron("0 3 * * *", berlin) == ax::cron("0 4 * * *", berlin));
}

TEST_CASE("cron refuses a wrong text and an unknown zone", "[cron]") {
    CHECK_THROWS_AS(ax::cron("0 25 * * *"), ax::error);
    CHECK_THROWS_AS(ax::cron("0 3 * * *", "Europe/Atlantis"), ax::error);
    CHECK_THROWS_AS(ax::cron("5/15 * * * *", "UTC", ax::cron_dialect::crontab), ax::error);
}

TEST_CASE("cron draws the values of H from the name that it is given", "[cron]") {
    ax::cron const spread{"H H * * *"};
    CHECK(spread.named("a") == spread.named("a"));
    CHECK_FALSE(spread.named("a") == spread.named("b"));
    CHECK(spread.named("a") == ax::cron("H H * * *", "UTC", ax::cron_dialect::ax, "a"));
    CHECK(spread.named("a").text() == "H H * * *");
}

// SPDX-License-Identifier: MIT
#include "ax/time/time_zone.hpp"

#include "support/catch.hpp"

#include <cctz/time_zone.h>

#include <string>
#include <vector>

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::year;

namespace {

ax::time_point utc(int y, unsigned m, unsigned d, std::chrono::minutes time = 0min) {
    return sys_days{year{y} / static_cast<int>(m) / static_cast<int>(d)} + time;
}

ax::local_time wall(int y, unsigned m, unsigned d, std::chrono::minutes time = 0min) {
    return ax::local_time{utc(y, m, d, time).time_since_epoch()};
}

} // namespace

TEST_CASE("time_zone is UTC where no name is given", "[time]") {
    ax::time_zone const zone;
    CHECK(zone.name() == "UTC");
    CHECK(zone == ax::time_zone{"UTC"});
    CHECK(zone.is_fixed());
    CHECK(zone.offset_at(utc(2026, 7, 1)) == 0s);
    CHECK(zone.to_local(utc(2026, 7, 1)) == wall(2026, 7, 1));
    CHECK(zone.to_instant(wall(2026, 7, 1)) == utc(2026, 7, 1));
    CHECK_FALSE(zone.next_transition(utc(2026, 7, 1)));
    CHECK_FALSE(zone.prev_transition(utc(2026, 7, 1)));
    CHECK(zone.period_at(utc(2026, 7, 1)).begin == (std::chrono::sys_seconds::min)());
    CHECK(zone.period_at(utc(2026, 7, 1)).end == (std::chrono::sys_seconds::max)());
}

TEST_CASE("time_zone keeps the name it was made with, links included", "[time]") {
    ax::time_zone const link{"Asia/Calcutta"};
    CHECK(link.name() == "Asia/Calcutta");
    CHECK(link.offset_at(utc(2026, 1, 1)) == 5h + 30min);
    CHECK(link == ax::time_zone{std::string{"Asia/Calcutta"}});
    CHECK_FALSE(link == ax::time_zone{"Asia/Kolkata"});
    CHECK(ax::time_zone{"Etc/GMT+5"}.offset_at(utc(2026, 1, 1)) == -5h);
    CHECK(ax::time_zone{"EST5EDT"}.offset_at(utc(2026, 7, 1)) == -4h);
    CHECK(ax::time_zone{"America/Argentina/ComodRivadavia"}.offset_at(utc(2026, 7, 1)) == -3h);
}

TEST_CASE("time_zone refuses what is no name of the database, and says which", "[time]") {
    auto const name = GENERATE(
        as<std::string>{}, "", "Europe/Atlantis", "europe/berlin", "EUROPE/BERLIN", "Europe", "Europe/",
        "/Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin", "../zoneinfo/Europe/Berlin", "Europe/../Europe/Berlin",
        "./UTC", "Europe//Berlin", "localtime", "posixrules", "zone.tab", "posix/Europe/Berlin", "right/Europe/Berlin",
        "Fixed/UTC+02:00:00", "UTC+2", "+02:00", "2", "CET-1CEST", "CET-1CEST,M3.5.0,M10.5.0/3", ":Europe/Berlin",
        "libc:localtime", " Europe/Berlin", "Europe/Berlin ", "Europe Berlin", std::string("UTC\0x", 5),
        "Europe/Berl\xc3\xadn", "leapseconds", std::string(65, 'A'), std::string(100'000, 'x'));
    CAPTURE(name.substr(0, 80));
    CHECK_FALSE(ax::time_zone::exists(name));
    try {
        ax::time_zone const zone{name};
        FAIL("was taken as " << zone.name());
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        std::string const what = e.what();
        CHECK(what.size() < 200);
        CHECK(what.find("time zone \"") == 0);
        if (name.size() <= 64 && name.find('\0') == name.npos) CHECK(what.find("\"" + name + "\"") != what.npos);
    }
}

TEST_CASE("time_zone resolves a wall time that is shown once, never or twice", "[time]") {
    ax::time_zone const berlin{"Europe/Berlin"};
    auto const once = berlin.resolve(wall(2024, 3, 31, 1h + 59min));
    CHECK(once.kind == ax::local_kind::unique);
    CHECK(once.first == utc(2024, 3, 31, 59min));
    CHECK(once.second == once.first);

    for (std::chrono::minutes const skipped_at : {120min, 150min, 179min}) {
        auto const skipped = berlin.resolve(wall(2024, 3, 31, skipped_at));
        CHECK(skipped.kind == ax::local_kind::skipped);
        CHECK(skipped.first == utc(2024, 3, 31, 1h));
        CHECK(skipped.second == skipped.first);
    }
    CHECK(berlin.resolve(wall(2024, 3, 31, 3h)).kind == ax::local_kind::unique);
    CHECK(berlin.resolve(wall(2024, 3, 31, 3h)).first == utc(2024, 3, 31, 1h));

    auto const twice = berlin.resolve(wall(2024, 10, 27, 2h + 30min) + 250ms);
    CHECK(twice.kind == ax::local_kind::repeated);
    CHECK(twice.first == utc(2024, 10, 27, 30min) + 250ms);
    CHECK(twice.second == utc(2024, 10, 27, 1h + 30min) + 250ms);
    CHECK(berlin.resolve(wall(2024, 10, 27, 2h)).kind == ax::local_kind::repeated);
    CHECK(berlin.resolve(wall(2024, 10, 27, 3h)).kind == ax::local_kind::unique);
    CHECK(berlin.resolve(wall(2024, 10, 27, 3h) - 1ms).kind == ax::local_kind::repeated);
    CHECK(berlin.resolve(wall(2024, 10, 27, 2h) - 1ms).kind == ax::local_kind::unique);
}

TEST_CASE("time_zone skips the whole date that Apia never had", "[time]") {
    ax::time_zone const apia{"Pacific/Apia"};
    auto const lost = apia.resolve(wall(2011, 12, 30, 12h));
    CHECK(lost.kind == ax::local_kind::skipped);
    CHECK(lost.first == utc(2011, 12, 30, 10h));
    CHECK(apia.to_local(lost.first) == wall(2011, 12, 31));
    CHECK(apia.to_local(lost.first - 1ms) == wall(2011, 12, 30) - 1ms);
}

TEST_CASE("time_zone finds the changes of the offset in both directions", "[time]") {
    ax::time_zone const berlin{"Europe/Berlin"};
    auto const spring = utc(2026, 3, 29, 1h), autumn = utc(2026, 10, 25, 1h);
    auto const first = berlin.next_transition(utc(2026, 1, 1));
    REQUIRE(first);
    CHECK(first->at == spring);
    CHECK(first->offset_before == 1h);
    CHECK(first->offset_after == 2h);
    CHECK(berlin.next_transition(spring - 1ms)->at == spring);
    CHECK(berlin.next_transition(spring)->at == autumn);
    CHECK(berlin.prev_transition(autumn + 1ms)->at == autumn);
    CHECK(berlin.prev_transition(autumn)->at == spring);
    CHECK(berlin.period_at(spring).begin == spring);
    CHECK(berlin.period_at(spring).end == autumn);
    CHECK(berlin.period_at(spring - 1ms).end == spring);
    CHECK(berlin.period_at(spring).offset_before == 1h);
    CHECK_FALSE(berlin.is_fixed());
    CHECK_FALSE(ax::time_zone{"Asia/Kolkata"}.next_transition(utc(2026, 1, 1)));
    CHECK(ax::time_zone{"Asia/Kolkata"}.prev_transition(utc(2026, 1, 1))->at.time_since_epoch() < 0s);
}

TEST_CASE("time_zone answers for instants outside of its table", "[time]") {
    ax::time_zone const berlin{"Europe/Berlin"};
    CHECK(berlin.offset_at(utc(1850, 1, 1)) == 53min + 28s);
    CHECK(berlin.offset_at(utc(2500, 7, 1)) == 2h);
    CHECK(berlin.offset_at(utc(2500, 1, 1)) == 1h);
    CHECK(berlin.to_instant(berlin.to_local(utc(2500, 7, 1))) == utc(2500, 7, 1));
    CHECK(berlin.to_instant(berlin.to_local(utc(1915, 7, 1))) == utc(1915, 7, 1));
    CHECK(berlin.next_transition(utc(2300, 1, 1))->offset_after == 2h);
    CHECK(berlin.prev_transition(utc(1917, 1, 1))->offset_after == 1h);
    CHECK_FALSE(berlin.prev_transition(utc(1800, 1, 1)));
}

TEST_CASE("time_zone shows the wall time that the zone database shows", "[time]") {
    auto const name =
        GENERATE(as<std::string>{}, "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo",
                 "America/Havana", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca", "Europe/Dublin",
                 "Asia/Kathmandu", "Pacific/Chatham", "America/Nuuk", "Africa/Monrovia", "Antarctica/Troll",
                 "Asia/Gaza", "Pacific/Kwajalein", "America/St_Johns", "Asia/Tehran", "Etc/GMT-14");
    CAPTURE(name);
    ax::time_zone const zone{name};
    cctz::time_zone reference;
    REQUIRE(cctz::load_time_zone(name, &reference));
    auto const reference_instant = [](std::int64_t t) { return cctz::time_point<cctz::seconds>{cctz::seconds{t}}; };
    bool same = true;
    // A step of 2 h 59 min 57 s meets all times of day; the wall times around it meet gaps and folds from both sides.
    for (std::int64_t t = -40'000'000; t < 7'300'000'000 && same; t += t > 1'900'000'000 ? 1'000'003 : 10'797) {
        auto const expected = reference.lookup(reference_instant(t));
        auto const shown = zone.period(t);
        same = shown.offset == expected.offset && shown.begin <= t && t < shown.end;
        auto const local = cctz::civil_second(1970) + t;
        auto const lookup = reference.lookup(local);
        auto const found = zone.resolve(t);
        using kind = cctz::time_zone::civil_lookup;
        switch (lookup.kind) {
        case kind::UNIQUE: same = same && found.kind == ax::local_kind::unique; break;
        case kind::SKIPPED: same = same && found.kind == ax::local_kind::skipped; break;
        case kind::REPEATED: same = same && found.kind == ax::local_kind::repeated; break;
        }
        auto const first = lookup.kind == kind::SKIPPED ? lookup.trans : lookup.pre;
        same = same && reference_instant(found.first) == first;
        if (lookup.kind == kind::REPEATED) same = same && reference_instant(found.second) == lookup.post;
        if (!same) FAIL("differs at " << t);
    }
    CHECK(same);
}

// SPDX-License-Identifier: MIT
// Schedules that a calendar drives, and crons with H.
#include "scheduler/support.hpp"

#include "ax/cron/calendar.hpp"
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"

using namespace test;

namespace {

struct calendar_bench : bench {
    std::vector<ax::time_point> planned;

    calendar_bench() { again(); }
    void again() {
        restart([this](simulated& tasks) {
            tasks.on(probe, [this](ax::context& ctx) { planned.push_back(ctx.scheduled_at()); });
        });
    }
    ax::schedule_record record(std::string_view name = "s") {
        for (auto const& one : (*this)->schedules())
            if (one.name == name) return one;
        FAIL("no such schedule");
        return {};
    }
};

/// 09:00 but on the 3rd, and noon of the 2nd: 1st 9:00, 2nd 9:00 and 12:00, 4th 9:00 ...
ax::calendar opening() {
    using std::chrono::year;
    return ax::calendar{ax::cron{"0 9 * * *"}}.except_dates({year{2026} / 1 / 3}).also(ax::cron{"0 12 2 * *"});
}

using list = std::vector<ax::time_point>;

} // namespace

TEST_CASE("a calendar is a schedule: its instants and no others", "[scheduler][schedules][calendar]") {
    calendar_bench b;
    REQUIRE(b.now() == t0);
    CHECK(b->schedule("s", opening(), probe).next == t0 + 9h);
    b.run_for(4 * 24h);
    CHECK(b.planned == list{t0 + 9h, t0 + 33h, t0 + 36h, t0 + 81h});
    CHECK(b.record().spec == "calendar " + opening().to_string());
    CHECK(b.record().skipped == 0);
}

TEST_CASE("a calendar goes on after a restart, declared again or not", "[scheduler][schedules][calendar]") {
    calendar_bench b;
    b->schedule("s", opening(), probe);
    b.run_for(10h);
    auto const before = b.record();
    b.again();
    if (GENERATE(false, true)) {
        auto const now = b->schedule("s", opening(), probe);
        CHECK(now.version == before.version);
        CHECK(now.next == before.next);
    }
    b.run_for(30h);
    CHECK(b.planned == list{t0 + 9h, t0 + 33h, t0 + 36h});
    CHECK(b.record().fired == 3);
}

TEST_CASE("a calendar of one cron is that cron, and replaces nothing", "[scheduler][schedules][calendar]") {
    calendar_bench b;
    auto const before = b->schedule("s", ax::cron{"0 9 * * *"}, probe);
    CHECK(b->schedule("s", ax::calendar{ax::cron{"0 9 * * *"}}, probe).version == before.version);
    CHECK(b->schedule("s", opening(), probe).version != before.version);
}

TEST_CASE("at most n times counts from the calendar's beginning, through restarts and what was missed",
          "[scheduler][schedules][calendar]") {
    calendar_bench b;
    auto const five = opening().not_before(t0).at_most(5); // 9, 33, 36, 81, 105 hours
    b->schedule("s", five, probe);
    b.run_for(10h);
    b.clock.advance(80h); // 33 and 36 come and go
    b.again();
    CHECK(b->schedule("s", five, probe).fired == 1);
    b.run_for(24h);
    CHECK(b.planned == list{t0 + 9h, t0 + 81h, t0 + 105h});
    CHECK(b.record().skipped == 2);
    CHECK_FALSE(b.record().next.has_value());
    CHECK_FALSE(b->next_wakeup().has_value());
    b.again();
    CHECK_FALSE(b->schedule("s", five, probe).next.has_value()); // declared again, it does not begin again
    b.run_for(24h * 365);
    CHECK(b.planned.size() == 3);
}

TEST_CASE("a calendar whose time is over is kept and rests; one that never was is refused",
          "[scheduler][schedules][calendar]") {
    calendar_bench b;
    CHECK_FALSE(b->schedule("s", opening().not_after(t0), probe).next.has_value());
    b.run_for(24h * 31);
    CHECK(b.planned.empty());
    std::string message;
    auto const daily = ax::calendar{ax::cron{"0 9 * * *"}};
    CHECK(failure_of([&] { b->schedule("s", daily.except(ax::cron{"* 9 * * *"}), probe); }, &message) == invalid);
    CHECK(contains(message, "no occurrence"));
    CHECK(contains(message, "(except"));
    CHECK(failure_of([&] { b->schedule("s", daily.not_before(t0).not_after(t0 + 1h), probe); }) == invalid);
    CHECK(b.record().spec == "calendar " + opening().not_after(t0).to_string());
}

TEST_CASE("a calendar that a wrong clock has carried to its end comes back with the clock",
          "[scheduler][schedules][calendar][clock]") {
    calendar_bench b;
    auto const five = opening().not_before(t0).at_most(5);
    b->schedule("s", five, probe);
    b.run_for(10h);
    b.clock.set(t0 + 24h * 365);
    b.poll();
    REQUIRE(b.planned == list{t0 + 9h, t0 + 105h});
    REQUIRE_FALSE(b.record().next.has_value());
    b.clock.set(t0 + 11h);
    if (GENERATE(false, true)) b.again();
    b.run_for(24h * 7);
    CHECK(b.planned == list{t0 + 9h, t0 + 105h, t0 + 33h, t0 + 36h, t0 + 81h}); // none twice
    CHECK_FALSE(b.record().next.has_value());
}

TEST_CASE("schedules of one text with H spread out by their names, and keep their instants",
          "[scheduler][schedules][calendar]") {
    calendar_bench b;
    ax::cron const text{"0 H H * * *"};
    auto const a = b->schedule("a", text, probe);
    auto const other_one = b->schedule("b", text, probe);
    CHECK(a.next == text.named("a").next(t0));
    CHECK(other_one.next == text.named("b").next(t0));
    REQUIRE(a.next != other_one.next);
    CHECK(b->schedule("c", text.named("a"), probe).next == a.next); // it has a name of its own
    b.again();
    CHECK(b->schedule("a", text, probe).version == a.version);
    b->unschedule("b");
    b->unschedule("c");
    b.run_for(24h * 3);
    CHECK(b.planned == list{*a.next, *a.next + 24h, *a.next + 48h});
    b.planned.clear();
    b->unschedule("a");
    auto const both = b->schedule("d", ax::calendar{text}.except(ax::cron{"0 H H * * *"}.named("x")), probe);
    CHECK(both.next == text.named("d").next(b.now()));
}

TEST_CASE("a definition that is too long, or whose names are no text, is refused", "[scheduler][schedules][calendar]") {
    calendar_bench b;
    std::string message;
    ax::cron const named{"H 9 * * *", {}, ax::cron_dialect::ax, "\xFF"};
    CHECK(failure_of([&] { b->schedule("s", named, probe); }, &message) == invalid);
    CHECK(contains(message, "definition of schedule \"s\""));
    using std::chrono::days;
    std::vector<ax::date_range> dates;
    for (int i = 0; i != 10'000; ++i)
        dates.push_back(std::chrono::year_month_day{std::chrono::floor<days>(t0) + days{2 * i}});
    ax::calendar many = ax::cron{"0 9 * * *"};
    for (int i = 0; i != 20; ++i) many = many.except_dates(dates);
    CHECK(failure_of([&] { b->schedule("s", many, probe); }, &message) == invalid);
    CHECK(contains(message, "bytes, at most"));
    CHECK(b->schedules().empty());
}

TEST_CASE("a calendar comes back out of SQLite as the same schedule", "[scheduler][schedules][calendar][sqlite]") {
    temporary_directory const directory;
    ax::testing::manual_clock clock;
    list planned;
    auto const come_up = [&](auto&& then) {
        ax::scheduler tasks{ax::sqlite_storage{directory.file("store.db")}, {}, clock};
        tasks.on(probe, [&](ax::context& ctx) { planned.push_back(ctx.scheduled_at()); });
        then(tasks);
        for (int hour = 0; hour != 24; ++hour) {
            clock.advance(1h);
            tasks.poll(clock.now());
        }
    };
    auto const three = opening().not_before(t0).at_most(3);
    std::uint64_t version = 0;
    come_up([&](auto& tasks) {
        tasks.schedule("s", three, probe);
        tasks.schedule("h", ax::cron{"0 H H * * *"}, probe);
        tasks.unschedule("h");
    });
    come_up([&](auto& tasks) {
        auto const before = tasks.schedules();
        REQUIRE(before.size() == 1);
        CHECK(before.front().spec == "calendar " + three.to_string());
        version = before.front().version;
        CHECK(tasks.schedule("s", three, probe).version == version);
    });
    come_up([&](auto& tasks) { CHECK_FALSE(tasks.schedule("s", three, probe).next.has_value()); });
    CHECK(planned == list{t0 + 9h, t0 + 33h, t0 + 36h});
}

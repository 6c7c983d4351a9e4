// SPDX-License-Identifier: MIT
// Why an occurrence comes, as preview() says it.
#include "ax/scheduler/detail/next_firings.hpp"

#include "scheduler/support.hpp"

using namespace test;

namespace {

std::vector<std::string> whys(bench& b, std::string_view name = "s", std::size_t most = 2) {
    std::vector<std::string> all;
    for (auto& one : b->preview(name, most)) all.push_back(std::move(one.why));
    return all;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("preview says what plans an occurrence", "[scheduler][schedules][preview]") {
    bench b; // 2026-01-01 00:00 UTC
    b->on(probe, [] {});
    b->schedule("nightly", ax::cron{"0 0 3 * * *", "Asia/Shanghai"}, probe);
    b->schedule("rate", ax::every{90s}, probe);
    b->schedule("delay", ax::after_each{5min}, probe);
    b->schedule("once", ax::once{b.now() + 1h}, probe);
    auto const ends = ax::calendar{ax::cron{"0 3 * * *"}}.not_before(b.now()).at_most(1);
    b->schedule("ends", ends, probe);
    CHECK(whys(b, "nightly") == texts(2, "cron \"0 0 3 * * *\" in Asia/Shanghai"));
    CHECK(b->preview("nightly", 1).at(0).nominal == b.now() + 19h);
    CHECK(whys(b, "rate") == texts(2, "every 90 s"));
    CHECK(whys(b, "delay") == texts{"5 min after the end of each run"});
    CHECK(whys(b, "once") == texts{"once"});
    CHECK(whys(b, "ends") == texts{"calendar " + ends.to_string()});
}

TEST_CASE("preview says why there are no more", "[scheduler][schedules][preview]") {
    bench b;
    b->schedule("delay", ax::after_each{5min}, probe);
    b->schedule("once", ax::once{b.now() + 1h}, probe);
    b->schedule("ends", ax::calendar{ax::cron{"0 3 * * *"}}.not_before(b.now()).at_most(1), probe);
    CHECK(b->why_no_more("delay") == "the one behind it is counted from the end of its run");
    b.run_for(24h); // no handler: the run waits
    CHECK(b->why_no_more("delay") == "it waits for the end of its latest run, task 1");
    CHECK(b->why_no_more("once") == "it occurs once");
    CHECK(b->why_no_more("ends") == "its calendar ends");
    b->pause_schedule("once");
    CHECK(b->why_no_more("once") == "it is paused, and creates none until it is resumed");
    for (auto const* name : {"delay", "once", "ends"}) CHECK(b->preview(name).empty());
    CHECK(failure_of([&] { b->why_no_more("none"); }) == invalid);
}

TEST_CASE("preview says what is made up for, and what is left out for it", "[scheduler][schedules][preview]") {
    bench b;
    ax::schedule_options how;
    std::string first, second = "every 1 min";
    auto const what = GENERATE(0, 1, 2, 3, 4);
    CAPTURE(what);
    if (what == 0) {
        first =
            "every 1 min; missed, made up for by misfire run_once; 3 before it left out (missed: a later one stands "
            "for it)";
    } else if (what == 1) {
        how.misfire = ax::misfire::run_all(2);
        first =
            "every 1 min; missed, made up for by misfire run_all 2; 2 before it left out (missed: only the latest 2 "
            "are made up for)";
        second = "every 1 min; missed, made up for by misfire run_all 2";
    } else if (what == 2) {
        how.misfire = ax::misfire::within(90s);
        first = "every 1 min; missed, made up for by misfire within 90 s; 3 before it left out (missed: a later one "
                "stands for it)";
    } else {
        how.misfire = ax::misfire::skip;
        first = "every 1 min; 4 before it left out (missed: the policy is to skip)";
    }
    b->schedule("s", ax::every{1min}, probe, {}, how);
    b.run_for(1s);
    if (what == 4) { // seen by who watches: 1:00 is due, and not missed
        b.clock.advance(80s);
        CHECK(whys(b) == texts{"every 1 min; due now", "every 1 min"});
        return;
    }
    b.clock.advance(4min + 28s);
    b.restart();
    b->pause(probe);
    b.poll(); // it looks at what is there: 1 to 4 are dealt with
    auto const cursor = b.now() - 29s;
    b.clock.advance(1s);
    ax::schedule_record stored = b->schedules().at(0);
    stored.next = cursor - 3min; // as it stood before that poll
    auto const next = ax::detail::next_firings<ax::detail::recurrence>(stored, b.now(), b.now(), 2);
    REQUIRE(next.size() == 2);
    CHECK(next[0].why == first);
    CHECK(next[1].why == second);
}

TEST_CASE("preview says that spread moves it, that it waits for its past, and that it is there",
          "[scheduler][schedules][preview]") {
    bench b;
    ax::schedule_options how;
    how.spread = 30s;
    how.depends_on_past = true;
    b->schedule("s", ax::every{1min}, probe, {}, how);
    auto const offset = ax::detail::spread_offset("s", how.spread);
    REQUIRE(offset % 1s != 0s);
    auto const usual =
        "every 1 min; " + std::to_string(offset.count()) + " ms later by its spread; once the one before has succeeded";
    b->mark_catch_up("s", b.now() + 2min);
    CHECK(whys(b) == texts{usual, usual + "; there already: task 1, set aside"});
    CHECK(b->preview("s", 1).at(0).run_at == b.now() + 1min + offset);
    b->release("s", b.now() + 2min);
    CHECK(whys(b).at(1) == usual + "; there already: task 1, ready");
}

TEST_CASE("preview looks from where a cursor will be set back to", "[scheduler][schedules][preview]") {
    bench b;
    b->schedule("s", ax::every{1min}, probe);
    b.run_for(1s);
    auto const start = b.now() - 1s;
    b.clock.set(start + 24h);
    b.poll();
    b.clock.set(start + 90s);
    CHECK(b->preview("s", 1).at(0).nominal == start + 2min);
    b.poll();
    CHECK(b->preview("s", 1).at(0).nominal == start + 2min);
}

TEST_CASE("a length of time is said in the largest unit that it is a whole number of", "[scheduler]") {
    using ax::detail::length_text;
    CHECK(length_text(0ms) == "0 ms");
    CHECK(length_text(1'001ms) == "1001 ms");
    CHECK(length_text(1s) == "1 s");
    CHECK(length_text(61s) == "61 s");
    CHECK(length_text(60s) == "1 min");
    CHECK(length_text(90min) == "90 min");
    CHECK(length_text(48h) == "48 h");
}

// SPDX-License-Identifier: MIT
#include "ax/scheduler/detail/misfire_plan.hpp"

#include "ax/core/random.hpp"
#include "ax/scheduler/schedule.hpp"
#include "ax/time/instant_text.hpp"

#include "support/catch.hpp"
#include "support/instants.hpp"

#include <optional>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ax::detail::misfire_grace;
using ax::detail::misfire_terms;
using ax::detail::plan_misfires;
using ax::detail::recurrence;
using test::t0;
using times = std::vector<ax::time_point>;

namespace {

recurrence const minutely{ax::every{1min}};

/// The same by enumeration of every instant that is due.
struct naive_plan {
    times create, skip;
    std::optional<ax::time_point> next;
};

naive_plan plan_naively(recurrence const& how, ax::time_point cursor, ax::time_point now, misfire_terms const& terms) {
    times due;
    for (std::optional<ax::time_point> t = cursor; t && *t + terms.offset <= now; t = how.following(*t))
        due.push_back(*t);
    if (due.empty()) return {{}, {}, cursor};

    auto const late = [&](ax::time_point t) { return now - (t + terms.offset); };
    times missed, on_time;
    for (auto const t : due) {
        bool const latest = t == due.back();
        (late(t) <= 1s || (latest && late(t) <= terms.grace) ? on_time : missed).push_back(t);
    }
    std::size_t made_up = 0; // of the latest of the missed
    switch (terms.policy.what()) {
    case ax::misfire_policy::action::skip: break;
    case ax::misfire_policy::action::run_once: made_up = on_time.empty() ? 1 : 0; break;
    case ax::misfire_policy::action::run_all: made_up = terms.policy.most(); break;
    case ax::misfire_policy::action::within:
        made_up = on_time.empty() && late(missed.back()) <= terms.policy.late_by() ? 1 : 0;
        break;
    }
    naive_plan plan;
    for (std::size_t i = 0; i != missed.size(); ++i)
        (missed.size() - i <= made_up ? plan.create : plan.skip).push_back(missed[i]);
    plan.create.insert(plan.create.end(), on_time.begin(), on_time.end());
    plan.next = how.following(due.back());
    if (how.waits_for_end() && plan.create.empty()) plan.next = how.after_end(now);
    return plan;
}

} // namespace

TEST_CASE("what is not due yet stays with the cursor", "[scheduler][misfire]") {
    auto const plan = plan_misfires(minutely, t0, t0 - 1ms, {});
    CHECK(plan.create.empty());
    CHECK(plan.skipped == 0);
    CHECK(plan.reason.empty());
    CHECK(plan.next == t0);
}

TEST_CASE("what is due is created, whatever the policy", "[scheduler][misfire]") {
    for (auto const& policy :
         {ax::misfire::skip, ax::misfire::run_once, ax::misfire::run_all(3), ax::misfire::within(1ms)}) {
        CAPTURE(to_text(policy));
        auto const plan = plan_misfires(minutely, t0, t0 + 1s, {.policy = policy});
        CHECK(plan.create == times{t0});
        CHECK(plan.skipped == 0);
        CHECK(plan.reason.empty());
        CHECK(plan.next == t0 + 1min);
    }
}

TEST_CASE("misfire skip: nothing of what was missed", "[scheduler][misfire]") {
    auto const plan = plan_misfires(minutely, t0, t0 + 5min + 1'001ms, {.policy = ax::misfire::skip});
    CHECK(plan.create.empty());
    CHECK(plan.skipped == 6);
    CHECK(plan.first_skipped == t0);
    CHECK(plan.last_skipped == t0 + 5min);
    CHECK(plan.reason == "missed: the policy is to skip");
    CHECK(plan.next == t0 + 6min);

    auto const a_moment_before = plan_misfires(minutely, t0, t0 + 5min + 1s, {.policy = ax::misfire::skip});
    CHECK(a_moment_before.create == times{t0 + 5min}); // that one is on time
    CHECK(a_moment_before.skipped == 5);
}

TEST_CASE("misfire run_once: the latest stands for all that was missed", "[scheduler][misfire]") {
    auto const plan = plan_misfires(minutely, t0, t0 + 5min + 30s, {});
    CHECK(plan.create == times{t0 + 5min});
    CHECK(plan.skipped == 5);
    CHECK(plan.last_skipped == t0 + 4min);
    CHECK(plan.reason == "missed: a later one stands for it");
    CHECK(plan.next == t0 + 6min);
}

TEST_CASE("misfire run_all: the latest n, in order", "[scheduler][misfire]") {
    auto const now = t0 + 5min + 30s;
    auto const plan = plan_misfires(minutely, t0, now, {.policy = ax::misfire::run_all(2)});
    CHECK(plan.create == times{t0 + 4min, t0 + 5min});
    CHECK(plan.skipped == 4);
    CHECK(plan.reason == "missed: only the latest 2 are made up for");
    auto const all = plan_misfires(minutely, t0, now, {.policy = ax::misfire::run_all(6)});
    CHECK(all.create.size() == 6);
    CHECK(all.create.front() == t0);
    CHECK(all.skipped == 0);
    CHECK(all.reason.empty());
    // One that is on time uses up nothing of n.
    auto const with_one_on_time = plan_misfires(minutely, t0, t0 + 5min, {.policy = ax::misfire::run_all(2)});
    CHECK(with_one_on_time.create == times{t0 + 3min, t0 + 4min, t0 + 5min});
}

TEST_CASE("misfire within: as run_once until it is too late", "[scheduler][misfire]") {
    misfire_terms const terms{.policy = ax::misfire::within(10min)};
    recurrence const hourly{ax::cron{"0 * * * *"}};
    auto const in_time = plan_misfires(hourly, t0, t0 + 3h + 10min, terms);
    CHECK(in_time.create == times{t0 + 3h});
    CHECK(in_time.skipped == 3);
    CHECK(in_time.reason == "missed: a later one stands for it");
    auto const too_late = plan_misfires(hourly, t0, t0 + 3h + 10min + 1ms, terms);
    CHECK(too_late.create.empty());
    CHECK(too_late.skipped == 4);
    CHECK(too_late.reason == "missed: the latest is late by more than 600000 ms");
    CHECK(too_late.next == t0 + 4h);
}

TEST_CASE("a scheduler that was watching drops nothing because it was slow", "[scheduler][misfire]") {
    // The storage was locked for 6 seconds when a daily task came due (F003).
    recurrence const daily{ax::cron{"0 3 * * *"}};
    auto const due = t0 + 3h;
    misfire_terms terms{.policy = ax::misfire::skip, .grace = misfire_grace(due + 6s, due - 1h)};
    CHECK(plan_misfires(daily, due, due + 6s, terms).create == times{due});
    // It was started after the task came due: missed.
    terms.grace = misfire_grace(due + 6s, due + 4s);
    CHECK(plan_misfires(daily, due, due + 6s, terms).create.empty());
    // Of a task of each second only the latest has that grace, so that no queue builds up (F077).
    recurrence const each_second{ax::every{1s}};
    terms.grace = misfire_grace(due + 40s, due - 1h);
    CHECK(plan_misfires(each_second, due, due + 40s, terms).create == times{due + 39s, due + 40s});

    CHECK(misfire_grace(due, due - 1h) == 1min);
    CHECK(misfire_grace(due, due - 20s) == 20s);
    CHECK(misfire_grace(due, due) == 1s);
    CHECK(misfire_grace(due, due + 1h) == 1s); // the clock was set back since
}

TEST_CASE("lateness counts from when a spread task was to run", "[scheduler][misfire]") {
    misfire_terms const terms{.policy = ax::misfire::skip, .offset = 20s};
    CHECK(plan_misfires(minutely, t0, t0 + 20s - 1ms, terms).next == t0); // not due
    CHECK(plan_misfires(minutely, t0, t0 + 21s, terms).create == times{t0});
    CHECK(plan_misfires(minutely, t0, t0 + 21s + 1ms, terms).skipped == 1);
    auto const plan = plan_misfires(minutely, t0, t0 + 1min + 10s, {.offset = 20s}); // the second is not due yet
    CHECK(plan.create == times{t0});
    CHECK(plan.next == t0 + 1min);
}

TEST_CASE("a fixed delay that is skipped counts on from now", "[scheduler][misfire]") {
    recurrence const gap{ax::after_each{5min}};
    auto const now = t0 + 1h;
    auto const created = plan_misfires(gap, t0, now, {});
    CHECK(created.create == times{t0});
    CHECK_FALSE(created.next); // it waits for the end of that run
    auto const skipped = plan_misfires(gap, t0, now, {.policy = ax::misfire::skip});
    CHECK(skipped.create.empty());
    CHECK(skipped.skipped == 1);
    CHECK(skipped.next == now + 5min);
}

TEST_CASE("a single instant that was missed runs or is over", "[scheduler][misfire]") {
    recurrence const single{ax::once{t0}};
    CHECK(plan_misfires(single, t0, t0 + 1h, {}).create == times{t0});
    auto const skipped = plan_misfires(single, t0, t0 + 1h, {.policy = ax::misfire::skip});
    CHECK(skipped.create.empty());
    CHECK(skipped.skipped == 1);
    CHECK_FALSE(skipped.next);
}

TEST_CASE("years that were missed are counted without being enumerated", "[scheduler][misfire]") {
    auto const now = t0 + 100 * 365 * 24h + 500ms;
    recurrence const fast{ax::every{1ms}};
    auto const plan = plan_misfires(fast, t0, now, {.policy = ax::misfire::run_all(10'000)});
    CHECK(plan.create.size() == 11'001); // 10,000 that were missed, and those of the last second
    CHECK(plan.skipped == static_cast<std::uint64_t>((now - t0).count()) + 1 - 11'001);
    CHECK(plan.create.back() == now);
    CHECK(plan.next == now + 1ms);

    recurrence const each_second{ax::cron{"* * * * * *", "Europe/Berlin"}};
    auto const counted = plan_misfires(each_second, t0, now, {});
    CHECK(counted.create == times{now - 500ms});
    CHECK(counted.skipped == 100ULL * 365 * 86'400);
}

TEST_CASE("a cursor that is no occurrence of its calendar any more counts as one", "[scheduler][misfire]") {
    // The zone's rules have changed since it was stored.
    recurrence const hourly{ax::cron{"0 * * * *"}};
    auto const plan = plan_misfires(hourly, t0 + 10min, t0 + 2h + 30min, {.policy = ax::misfire::run_all(9)});
    CHECK(plan.create == times{t0 + 10min, t0 + 1h, t0 + 2h});
    auto const skipped = plan_misfires(hourly, t0 + 10min, t0 + 2h + 30min, {.policy = ax::misfire::skip});
    CHECK(skipped.skipped == 3);
    CHECK(skipped.first_skipped == t0 + 10min);
}

TEST_CASE("plans agree with an enumeration of every instant", "[scheduler][misfire]") {
    ax::splitmix64 random{20260101};
    auto const below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    char const* const zones[] = {"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                 "Africa/Casablanca"};
    char const* const texts[] = {"*/10 * * * * *",  "* * * * *",     "30 2 * * *",    "*/30 1-3 * * *",
                                 "0 0 * * MON-FRI", "59 59 * * * *", "0,1 0 2 L * *", "15 */5 * * *"};
    ax::duration const steps[] = {1ms, 7ms, 250ms, 1s, 1'001ms, 10s, 61s, 1h, 24h};
    std::size_t cut = 0, left_out = 0;

    for (int round = 0; round != 4'000; ++round) {
        auto const step = steps[below(std::size(steps))]; // each drawn by itself: the order is then that of the lines
        auto const text = texts[below(std::size(texts))];
        auto const zone = zones[below(std::size(zones))];
        auto const hour = std::chrono::hours{below(365 * 24)};
        auto const how = [&]() -> recurrence {
            switch (below(8)) {
            case 0: return ax::after_each{step};
            case 1: return ax::once{t0 + hour};
            case 2:
            case 3: return ax::every{step};
            case 4: return ax::calendar{ax::cron{text, zone}}.except(ax::cron{"* * * * * TUE"});
            default: return ax::cron{text, zone};
            }
        }();
        // Around the changes of the clocks, too.
        auto const begin = t0 + hour + ax::duration{below(60'000)};
        auto const cursor = how.first(begin);
        REQUIRE(cursor);
        misfire_terms terms;
        switch (below(4)) {
        case 0: terms.policy = ax::misfire::skip; break;
        case 1: terms.policy = ax::misfire::run_all(static_cast<std::size_t>(1 + below(12))); break;
        case 2: terms.policy = ax::misfire::within(ax::duration{1 + below(20'000)}); break;
        default: break;
        }
        if (below(2) == 0) terms.offset = ax::duration{below(30'000)};
        if (below(2) == 0) terms.grace = ax::duration{1'000 + below(59'001)};
        // Late by next to nothing, or by up to some thousand occurrences, and often by just one of the bounds.
        auto const second = how.following(*cursor);
        auto const typical = second ? *second - *cursor : 1h;
        auto const few = below(5);
        auto const edge = ax::duration{below(3) - 1};
        auto const some = ax::duration{below(20'000)};
        auto const planned = *cursor + terms.offset;
        auto now = planned + typical * below(40) + some;
        switch (below(6)) {
        case 0: now = planned + edge; break;
        case 1: now = planned + typical * few + 1s + edge; break;
        case 2: now = planned + typical * few + terms.grace + edge; break;
        case 3: now = planned + terms.policy.late_by() + edge; break;
        case 4: now = planned + some; break;
        default: break;
        }
        CAPTURE(round, how.spec(), ax::to_text(*cursor), ax::to_text(now), to_text(terms.policy), terms.offset.count(),
                terms.grace.count());

        auto const expected = plan_naively(how, *cursor, now, terms);
        auto const plan = plan_misfires(how, *cursor, now, terms);
        REQUIRE(plan.create == expected.create);
        REQUIRE(plan.skipped == expected.skip.size());
        REQUIRE(plan.reason.empty() == expected.skip.empty());
        REQUIRE(plan.first_skipped.has_value() == !expected.skip.empty());
        if (plan.first_skipped) {
            REQUIRE(plan.first_skipped == expected.skip.front());
            REQUIRE(plan.last_skipped == expected.skip.back());
        }
        REQUIRE(plan.next == expected.next);
        left_out += plan.skipped != 0;

        // Cut short, a series of plans does the same.
        terms.most = static_cast<std::size_t>(1 + below(3));
        times created;
        std::uint64_t skipped = 0;
        auto at = cursor;
        while (at && *at + terms.offset <= now) {
            auto const part = plan_misfires(how, *at, now, terms);
            REQUIRE(part.create.size() <= terms.most);
            REQUIRE(part.next != at);
            created.insert(created.end(), part.create.begin(), part.create.end());
            skipped += part.skipped;
            cut += part.next && *part.next + terms.offset <= now;
            at = part.next;
        }
        REQUIRE(created == expected.create);
        REQUIRE(skipped == expected.skip.size());
        REQUIRE(at == expected.next);
    }
    CHECK(cut > 1'000);
    CHECK(left_out > 1'000);
}

// SPDX-License-Identifier: MIT
// A crontab of fifteen lines runs for five years of virtual time in three zones whose clocks change.
#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/memory.hpp"
#include "ax/testing/manual_clock.hpp"

#include "endurance/support.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

using namespace endurance;

namespace {

inline constexpr ax::task_type<> job{"job"};

/// How often something occurred, and when, in one number: another order, a double or a gap gives another sum.
struct tally {
    std::uint64_t count = 0, sum = 0;
    ax::time_point last{};
    bool in_order = true;

    void add(ax::time_point at) {
        in_order = in_order && (count == 0 || at > last);
        last = at;
        ++count;
        sum = sum * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(at.time_since_epoch().count());
    }
};

} // namespace

TEST_CASE("five years of a crontab in three zones: each occurrence once, at its instant", "[endurance][schedules]") {
    constexpr ax::time_point start{1'767'225'600'000ms}; // 2026-01-01 00:00 UTC
    auto const end = start + (sanitized ? 24h * 100 : 24h * (5 * 365 + 1));
    ax::testing::manual_clock clock{start};
    ax::options chosen;
    chosen.seed = 7;
    chosen.retention.count = 1'000; // two million tasks need not stay
    ax::scheduler<ax::memory_storage, ax::testing::manual_clock> tasks{ax::memory_storage{}, chosen, clock};

    std::map<std::string, tally, std::less<>> runs;
    std::uint64_t late = 0;
    tasks.on(job, [&](ax::context& ctx) {
        runs[ctx.task().schedule].add(ctx.scheduled_at());
        if (ctx.scheduled_at() != clock.now()) ++late;
    });
    std::vector<planned> all;
    for (auto const* zone : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"})
        for (auto const& one : schedules_of(test::data_file("crontabs/01-user-plain.crontab"), zone)) {
            tasks.schedule(one.name, one.when, job);
            all.push_back(one);
        }
    REQUIRE(all.size() == 3 * 15);

    std::uint64_t polls = 0;
    for (;; ++polls) {
        tasks.poll(clock.now());
        auto const next = tasks.next_wakeup();
        if (!next || *next > end) break;
        if (*next > clock.now()) clock.advance(*next - clock.now());
    }

    std::uint64_t total = 0;
    for (auto const& one : all) {
        CAPTURE(one.name);
        tally expected;
        for (auto at = one.when.next(start); at && *at <= end; at = one.when.next(*at)) expected.add(*at);
        auto const& seen = runs[one.name];
        CHECK(seen.count == expected.count);
        CHECK(seen.sum == expected.sum);
        CHECK(seen.in_order);
        total += expected.count;
    }
    CHECK(late == 0);
    CHECK(total > (sanitized ? 80'000U : 2'000'000U));
    CHECK(polls < 2 * total);
    for (auto const& record : tasks.schedules()) {
        CAPTURE(record.name, record.last_skip);
        CHECK(record.fired == runs[record.name].count);
        CHECK(record.skipped == 0);
    }
}

// SPDX-License-Identifier: MIT
#include "ax/cron/calendar.hpp"

#include "support/catch.hpp"

#include <array>
#include <latch>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

TEST_CASE("one calendar and one expression answer many threads at once", "[cron][threads]") {
    ax::cron const each{"*/5 * * * * *", "Europe/Berlin"};
    auto const thinned = ax::calendar{each}.except(ax::cron{"* * * * * * 1970-2030"}).also(ax::cron{"0 3 * * *"});
    auto const from = ax::time_point{std::chrono::sys_days{std::chrono::year{2026} / 3 / 28}};
    std::array<std::vector<ax::time_point>, 4> answers;
    std::latch start(4);
    std::vector<std::thread> pool;
    for (auto& mine : answers)
        pool.emplace_back([&] {
            start.arrive_and_wait();
            auto const copy = thinned;
            for (auto const t : thinned.occurrences(from, from + 72h)) mine.push_back(t);
            mine.push_back(*copy.next(from + 24h * 365 * 5));
            mine.push_back(*each.next(from));
        });
    for (auto& thread : pool) thread.join();
    CHECK(answers[0].size() == 3 + 2);
    for (auto const& other : answers) CHECK(other == answers[0]);
}

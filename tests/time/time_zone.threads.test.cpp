// SPDX-License-Identifier: MIT
#include "ax/time/time_zone.hpp"

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <latch>
#include <string>
#include <thread>
#include <vector>

TEST_CASE("time zones can be looked up and used from many threads at once", "[time][threads]") {
    // More names than threads, each met for the first time by several threads together; wrong ones between them.
    std::array<char const*, 12> const names = {"Europe/Berlin",   "Africa/Cairo",     "America/Havana", "Asia/Tehran",
                                               "Mars/Base",       "Asia/Gaza",        "Pacific/Apia",   "UTC",
                                               "Europe/Atlantis", "America/St_Johns", "Europe/Dublin",  "Asia/Kolkata"};
    constexpr int threads = 8;
    struct answer {
        std::vector<std::string> shown;
        bool same = true;
    };
    std::array<answer, threads> answers;
    std::latch start(threads);
    std::vector<std::thread> pool;
    for (auto& mine : answers)
        pool.emplace_back([&] {
            start.arrive_and_wait();
            for (auto const* name : names) {
                if (!ax::time_zone::exists(name)) {
                    mine.shown.push_back("none");
                    continue;
                }
                ax::time_zone const zone{name};
                std::string text(zone.name());
                // In the table, and beyond it, where the zone database is asked.
                for (auto const t : std::initializer_list<std::int64_t>{-4'000'000'000, 0, 1'775'000'000, 7'000'000'000,
                                                                        16'000'000'000}) {
                    auto const instant = ax::time_point{std::chrono::seconds{t}};
                    text += " " + std::to_string(zone.offset_at(instant).count());
                    mine.same = mine.same && ax::time_zone{name} == zone &&
                                zone.resolve(zone.to_local(instant)).first <= instant;
                }
                mine.shown.push_back(text);
            }
        });
    for (auto& thread : pool) thread.join();
    for (auto const& other : answers) {
        CHECK(other.same);
        CHECK(other.shown == answers[0].shown);
    }
    CHECK(answers[0].shown.size() == names.size());
    CHECK(answers[0].shown[4] == "none");
    CHECK(answers[0].shown[7] == "UTC 0 0 0 0 0");
    CHECK(answers[0].shown[11] == "Asia/Kolkata 21208 19800 19800 19800 19800");
}

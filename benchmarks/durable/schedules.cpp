// SPDX-License-Identifier: MIT
#include "durable/rows.hpp"
#include "durable/scheduler.hpp"

#include <fmt/format.h>

#include <atomic>
#include <thread>

namespace bench {

using namespace std::chrono_literals;

// Raw is the whole life of as many plain tasks with 20,000 in flight. Short runs do not wait for a full minute.
row schedules(settings const& s) {
    auto const count = s.scaled(1e5);
    std::chrono::system_clock::duration const period = s.scale < 0.5 ? 10s : 60s;
    ax::cron const each_period{s.scale < 0.5 ? "*/10 * * * * *" : "0 * * * * *"};
    workplace const place(s.dir);
    std::atomic<std::size_t> ended{0};
    ax::sqlite_scheduler tasks{ax::sqlite_storage{place.file()}, with(s)};
    tasks.on(probing, [](probe const&) {});
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) ++ended;
    });
    auto const declaring = steady::now();
    for (std::size_t i = 0; i != count; ++i)
        tasks.schedule(fmt::format("every minute {}", i), each_period, probing, sample);
    auto const declared = seconds_since(declaring);
    tasks.start();

    // What was missed meanwhile is made up for first, so the next instant has one occurrence of each.
    std::chrono::system_clock::time_point due;
    std::size_t before = 0;
    do {
        before = ended;
        std::this_thread::sleep_for(1s);
        auto const now = std::chrono::system_clock::now();
        due = now - now.time_since_epoch() % period + period;
    } while (ended != before || due - std::chrono::system_clock::now() < 500ms);
    auto const goal = before + count;
    std::this_thread::sleep_until(due);
    auto const flushed = flushes.load();
    auto const start = steady::now();
    while (ended < goal) std::this_thread::sleep_for(500us);
    auto const took = seconds_since(start);
    auto const each = static_cast<double>(flushes.load() - flushed) / static_cast<double>(count);
    auto const raw = life(s, maker_of_raw(s), count, 20'000);
    return {"schedules/100k",
            "tasks/s",
            better::higher,
            static_cast<double>(count) / took,
            raw.value,
            {{"ax_flushes_per_task", each}, {"raw_flushes_per_task", raw.flushes}, {"declare_s", declared}}};
}

} // namespace bench

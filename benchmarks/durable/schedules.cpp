// SPDX-License-Identifier: MIT
#include "durable/rows.hpp"
#include "durable/scheduler.hpp"

#include <ax/testing/manual_clock.hpp>

#include <fmt/format.h>

namespace bench {

using namespace std::chrono_literals;

// Raw is the whole life of as many plain tasks with 20,000 in flight. A minute passes by a clock that is moved by hand.
row schedules(settings const& s) {
    auto const count = s.scaled(1e5);
    workplace const place(s.dir);
    ax::testing::manual_clock clock;
    std::size_t ran = 0;
    ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock> tasks{ax::sqlite_storage{place.file()}, with(s),
                                                                       clock};
    tasks.on(probing, [&](probe const&) { ++ran; });
    auto const declaring = steady::now();
    for (std::size_t i = 0; i != count; ++i)
        tasks.schedule(fmt::format("every minute {}", i), ax::every{1min}, probing, sample);
    auto const declared = seconds_since(declaring);
    clock.advance(1min);
    auto const flushed = flushes.load();
    auto const start = steady::now();
    while (ran < count) tasks.poll(clock.now());
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

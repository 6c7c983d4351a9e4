// SPDX-License-Identifier: MIT
#include "durable/rows.hpp"
#include "durable/scheduler.hpp"

#include <atomic>
#include <semaphore>
#include <thread>

namespace bench {

using namespace std::chrono_literals;

// Raw is the whole life of as many plain tasks with 20,000 in flight: it knows no edges.
row workflow(settings const& s) {
    auto const count = s.scaled(1e5);
    workplace const place(s.dir);
    std::binary_semaphore ended{0};
    std::atomic<std::size_t> ran{0};
    ax::sqlite_scheduler tasks{ax::sqlite_storage{place.file()}, with(s)};
    tasks.on(probing, [&](probe const&) {
        if (ran.fetch_add(1) + 1 == count) ended.release();
    });
    tasks.start();
    constexpr std::size_t width = 100;
    ax::workflow flow("bench");
    std::vector<ax::workflow_task> all;
    for (std::size_t i = 0; i != count; ++i) {
        ax::workflow_task_options how;
        for (std::size_t p = 0; i >= width && p != 3; ++p)
            how.after.push_back(all[i / width * width - width + (i + p) % width]);
        all.push_back(flow.add(probing, sample, how));
    }
    auto const flushed = flushes.load();
    auto const start = steady::now();
    auto const made = tasks.submit(flow);
    auto const submitted = seconds_since(start);
    ended.acquire();
    while (!ax::is_terminal(tasks.find(made.id)->state)) std::this_thread::sleep_for(1ms);
    auto const took = seconds_since(start);
    auto const each = static_cast<double>(flushes.load() - flushed) / static_cast<double>(count);
    auto const raw = life(s, maker_of_raw(s), count, 20'000);
    return {"workflow/100k",
            "tasks/s",
            better::higher,
            static_cast<double>(count) / took,
            raw.value,
            {{"ax_flushes_per_task", each}, {"raw_flushes_per_task", raw.flushes}, {"submit_s", submitted}}};
}

} // namespace bench

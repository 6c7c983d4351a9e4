// SPDX-License-Identifier: MIT
// What waiting tasks cost: to store them, to hold them, to start with them.
#include "durable/rows.hpp"

#include <atomic>
#include <cstdlib>
#include <semaphore>
#include <thread>
#include <utility>

namespace bench {

using namespace std::chrono_literals;

row preload(settings const& s) {
    struct cost {
        double seconds;
        memory above;
    };
    auto const store = [&](make_side const& make) {
        workplace const place(s.dir);
        auto const where = make(place.file(), no_work, no_counter);
        auto const before = memory::now(true);
        auto const start = steady::now();
        // None may become due while they are stored. Those of the next minutes are within the window, so in memory.
        fill(*where, s.scaled(1e6), wall_us() / 1000 + 60'000, 600'000);
        auto const took = seconds_since(start);
        return cost{took, memory::now().since(before)};
    };
    auto const ax = store(maker_of_ax(s));
    auto const raw = store(maker_of_raw(s));
    return {"preload/1M",
            "s",
            better::lower,
            ax.seconds,
            raw.seconds,
            {{"ax_mb", ax.above.apart()},
             {"ax_sqlite_mb", ax.above.sqlite},
             {"raw_mb", raw.above.apart()},
             {"raw_sqlite_mb", raw.above.sqlite}}};
}

row restart(settings const& s, std::string name, double size) {
    auto const count = s.scaled(size);
    auto const measure = [&](make_side const& make, auto const& reopen) {
        workplace const place(s.dir);
        std::chrono::system_clock::time_point due;
        {
            auto const where = make(place.file(), no_work, no_counter);
            fill(*where, count);
            due = std::chrono::system_clock::now() + 10s; // closed before that, so that it runs after the start
            where->submit(
                {{std::chrono::duration_cast<std::chrono::milliseconds>(due.time_since_epoch()).count(), {}}});
        }
        std::this_thread::sleep_until(due + 10ms);
        auto const start = steady::now();
        reopen(place.file());
        return seconds_since(start);
    };
    auto const ax = measure(maker_of_ax(s), [&](std::string const& file) {
        std::binary_semaphore ran{0};
        std::atomic<bool> told{false};
        auto const again = make_ax(
            s, file,
            [&](std::int64_t) {
                if (!told.exchange(true)) ran.release();
            },
            no_counter);
        ran.acquire();
    });
    auto const raw = measure(maker_of_raw(s), [&](std::string const& file) { take_first(s, file); });
    return {std::move(name), "s", better::lower, ax, raw};
}

row idle(settings const& s) {
    workplace const place(s.dir);
    auto const where = make_ax(s, place.file(), no_work, no_counter);
    fill(*where, s.scaled(1e6));
    std::this_thread::sleep_for(3s); // what storing them left to do
    auto const before = usage::now();
    auto const start = steady::now();
    std::this_thread::sleep_for(20s * (std::min)(s.scale, 1.0));
    auto const after = usage::now();
    auto const took = seconds_since(start);
    return {"idle/cpu",
            "% core",
            better::lower,
            (after.cpu_seconds - before.cpu_seconds) / took * 100,
            {},
            {{"wakeups_per_s", (after.wakeups - before.wakeups) / took}}};
}

} // namespace bench

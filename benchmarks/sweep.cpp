// SPDX-License-Identifier: MIT
// What justifies the defaults: how fast, or how late, ax is as one option varies and all others stay as they are.
//   sweep/claimed/N     claimed_ahead and claimed_peak: 100,000 tasks that wait in the store (5,000 N) are run
//   sweep/workers/N/... handlers that do nothing, that wait for 5 ms, that compute for 0.2 ms, tasks/s
//   sweep/read-ahead/N  read_ahead in ms: lateness of 2,000 tasks due over two seconds, ms
// `sweep --help` lists the options.
#include "durable/side.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <thread>

namespace {

using namespace bench;
using namespace std::chrono_literals;

/// Tasks stored before the start, so that all of them are claimed from the store: tasks a second.
figures drain(settings const& s, std::size_t claimed) {
    auto const count = s.scaled((std::min)(1e5, 5e3 * static_cast<double>(claimed)));
    options_of_ax how;
    how.claimed = claimed;
    how.stopped = true;
    std::mutex mutex;
    std::condition_variable comes;
    std::size_t done = 0;
    store_under_test store(s, maker_of_ax(s, how), no_work, [&](std::size_t n) {
        std::scoped_lock const lock(mutex);
        done += n;
        if (done == count) comes.notify_one();
    });
    fill(*store, count, wall_us() / 1000 - 10'000, 1'000);
    auto const start = steady::now();
    store->start();
    {
        std::unique_lock lock(mutex);
        comes.wait(lock, [&] { return done == count; });
    }
    return store.end(static_cast<double>(count) / seconds_since(start), count);
}

void compute(std::chrono::microseconds time) {
    auto const end = steady::now() + time;
    while (steady::now() < end) {
    }
}

figures with_workers(settings const& s, std::size_t workers, std::size_t count, handler work) {
    options_of_ax how;
    how.workers = workers;
    life_driver driver;
    store_under_test store(s, maker_of_ax(s, how), std::move(work), driver.ended());
    auto const speed = driver.run(*store, count, 2'000);
    return store.end(speed, count);
}

void run(settings const& s) {
    report out(s.json, s.durability());
    auto const add = [&](std::string const& name, auto const& measure) {
        if (!s.wants(name)) return;
        std::vector<double> values;
        std::vector<double> each;
        for (std::size_t i = 0; i != s.rounds; ++i) {
            figures const f = measure();
            values.push_back(f.value);
            each.push_back(f.flushes);
        }
        out.add({name, "tasks/s", better::higher, median(values), {}, {{"ax_flushes_per_task", median(each)}}});
    };

    for (auto const claimed : std::initializer_list<std::size_t>{1, 4, 16, 64, 256, 1'024, 5'000})
        add(fmt::format("sweep/claimed/{}", claimed), [&] { return drain(s, claimed); });

    for (auto const workers : std::initializer_list<std::size_t>{1, 2, 4, 8, 16, 32}) {
        auto const name = fmt::format("sweep/workers/{}", workers);
        add(name + "/nothing", [&] { return with_workers(s, workers, s.scaled(60'000), no_work); });
        add(name + "/wait-5ms", [&] {
            return with_workers(s, workers, workers * s.scaled(150),
                                [](std::int64_t) { std::this_thread::sleep_for(5ms); });
        });
        add(name + "/compute-0.2ms",
            [&] { return with_workers(s, workers, s.scaled(5'000), [](std::int64_t) { compute(200us); }); });
    }

    for (auto const early : std::initializer_list<int>{0, 5, 10, 20, 50, 100, 200}) {
        auto const name = fmt::format("sweep/read-ahead/{}", early);
        if (!s.wants(name)) continue;
        std::vector<double> p50;
        std::vector<double> p99;
        std::vector<double> worst;
        for (std::size_t i = 0; i != s.rounds; ++i) {
            workplace const place(s.dir);
            lateness_driver driver;
            options_of_ax how;
            how.read_ahead = std::chrono::milliseconds{early};
            auto const where = make_ax(s, place.file(), driver.record(), no_counter, how);
            auto late = driver.run(*where, s.scaled(2'000), 2s * (std::min)(s.scale, 1.0));
            p50.push_back(percentile(late, 0.5));
            p99.push_back(percentile(late, 0.99));
            worst.push_back(late.back());
        }
        out.add({name,
                 "ms",
                 better::lower,
                 median(p99),
                 {},
                 {{"ax_p50_ms", median(p50)}, {"ax_worst_ms", percentile(worst, 1)}}});
    }
}

} // namespace

int main(int count, char** values) {
    settings s;
    s.rounds = 1;
    if (auto const code = read_settings(s, "sweep", count, values)) return *code;
    run(s);
}

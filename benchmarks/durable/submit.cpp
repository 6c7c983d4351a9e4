// SPDX-License-Identifier: MIT
#include "durable/rows.hpp"

#include <fmt/format.h>

#include <random>
#include <thread>

namespace bench {

figures submit_one(settings const& s, make_side const& make) {
    auto const count = s.scaled(2'000);
    store_under_test store(s, make);
    std::vector<task> const one(1, {in_an_hour(), {}});
    std::vector<double> times;
    for (std::size_t i = 0; i != count; ++i) {
        auto const start = steady::now();
        store->submit(one);
        times.push_back(seconds_since(start) * 1e6);
    }
    return store.end(percentile(times, 0.5), count);
}

figures submit_bulk(settings const& s, make_side const& make, bool keys) {
    auto const calls = s.scaled(200);
    store_under_test store(s, make);
    std::mt19937_64 random(7);
    auto const due = in_an_hour();
    std::vector<std::vector<task>> batches(calls);
    for (auto& batch : batches) {
        for (std::size_t i = 0; i != 1'000; ++i)
            batch.push_back(
                {due + static_cast<std::int64_t>(random() % 600'000), keys ? fmt::format("{:016x}", random()) : ""});
    }
    auto const start = steady::now();
    for (auto const& batch : batches) store->submit(batch);
    auto const took = seconds_since(start);
    auto const count = calls * 1'000;
    return store.end(static_cast<double>(count) / took, count);
}

figures submit_threads(settings const& s, make_side const& make) {
    auto const each = s.scaled(2'000);
    store_under_test store(s, make);
    std::vector<task> const one(1, {in_an_hour(), {}});
    auto const start = steady::now();
    std::vector<std::thread> threads;
    for (int t = 0; t != 8; ++t)
        threads.emplace_back([&] {
            for (std::size_t i = 0; i != each; ++i) store->submit(one);
        });
    for (auto& t : threads) t.join();
    auto const took = seconds_since(start);
    return store.end(static_cast<double>(each * 8) / took, each * 8);
}

} // namespace bench

// SPDX-License-Identifier: MIT
#include "durable/rows.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace bench {

namespace {

std::vector<double> ax_lateness(settings const& s, std::size_t count, std::chrono::milliseconds over) {
    workplace const place(s.dir);
    lateness_driver driver;
    auto const where = make_ax(s, place.file(), driver.record(), no_counter);
    return driver.run(*where, count, over);
}

/// The bare limit: a thread that sleeps until each instant and hands over to a worker.
std::vector<double> raw_lateness(std::size_t count, std::chrono::milliseconds over) {
    std::mutex mutex;
    std::condition_variable comes;
    std::vector<std::int64_t> queue;
    bool ended = false;
    std::vector<double> late;
    std::thread worker([&] {
        std::unique_lock lock(mutex);
        std::vector<std::int64_t> mine;
        for (;;) {
            comes.wait(lock, [&] { return ended || !queue.empty(); });
            if (queue.empty()) return;
            mine.swap(queue);
            lock.unlock();
            for (auto const due : mine) late.push_back(static_cast<double>(wall_us() - due) / 1000);
            mine.clear();
            lock.lock();
        }
    });
    auto const first = wall_us() / 1000 * 1000 + 100'000;
    for (std::size_t i = 0; i != count; ++i) {
        auto const ms = over.count() * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(count);
        auto const due = first + ms * 1000;
        std::this_thread::sleep_until(std::chrono::system_clock::time_point{std::chrono::microseconds{due}});
        std::scoped_lock const lock(mutex);
        queue.push_back(due);
        comes.notify_one();
    }
    {
        std::scoped_lock const lock(mutex);
        ended = true;
    }
    comes.notify_one();
    worker.join();
    return late;
}

/// Threads that compute for as long as this lives, one a core.
class burners {
  public:
    explicit burners(bool wanted) {
        for (unsigned i = 0; wanted && i != (std::max)(std::thread::hardware_concurrency(), 1U); ++i)
            threads_.emplace_back([this] {
                for (std::uint64_t n = 0; !quit_.load(std::memory_order_relaxed);) ++n;
            });
    }
    burners(burners const&) = delete;
    burners& operator=(burners const&) = delete;
    ~burners() {
        quit_ = true;
        for (auto& one : threads_) one.join();
    }

  private:
    std::atomic<bool> quit_{false};
    std::vector<std::thread> threads_;
};

} // namespace

void lateness(settings const& s, report& out, bool busy) {
    auto const count = s.scaled(10'000);
    auto const over = std::chrono::milliseconds{static_cast<std::int64_t>(s.scaled(10'000))};
    struct shares {
        std::vector<double> p50, p99, worst, earliest;
        void add(std::vector<double> late) {
            p50.push_back(percentile(late, 0.5));
            p99.push_back(percentile(late, 0.99));
            worst.push_back(late.back());
            earliest.push_back(late.front());
        }
    } ax, raw;
    {
        burners const computing(busy);
        for (std::size_t i = 0; i != s.rounds; ++i) {
            ax.add(ax_lateness(s, count, over));
            raw.add(raw_lateness(count, over));
        }
    }
    if (!busy)
        out.add({"lateness/p50",
                 "ms",
                 better::lower,
                 median(ax.p50),
                 median(raw.p50),
                 {{"ax_earliest_ms", percentile(ax.earliest, 0)}}});
    out.add({busy ? "lateness-busy/p99" : "lateness/p99",
             "ms",
             better::lower,
             median(ax.p99),
             median(raw.p99),
             {{"ax_worst_ms", percentile(ax.worst, 1)},
              {"raw_worst_ms", percentile(raw.worst, 1)},
              {"ax_p50_ms", median(ax.p50)},
              {"raw_p50_ms", median(raw.p50)}}});
}

} // namespace bench

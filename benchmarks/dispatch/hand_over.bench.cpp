// SPDX-License-Identifier: MIT
// What does it cost to hand work to another thread? Baseline: the queue one writes first, a mutex, a condition variable
// and a deque of std::function, signalled under the lock for every piece.
#include "ax/dispatch/thread_pool.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

class plain_pool {
  public:
    plain_pool(std::size_t workers, std::size_t bound) : bound_(bound) {
        for (std::size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    }
    ~plain_pool() { stop(); }

    void execute(std::function<void()> f) {
        std::unique_lock lock{mutex_};
        room_.wait(lock, [&] { return queue_.size() < bound_; });
        queue_.push_back(std::move(f));
        wake_.notify_one();
    }

    void stop() {
        {
            std::lock_guard const lock{mutex_};
            stopping_ = true;
        }
        wake_.notify_all();
        for (auto& thread : threads_) thread.join();
        threads_.clear();
    }

  private:
    void work() {
        for (;;) {
            std::function<void()> f;
            {
                std::unique_lock lock{mutex_};
                wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
                if (queue_.empty()) return;
                f = std::move(queue_.front());
                queue_.pop_front();
                room_.notify_one();
            }
            f();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable room_;
    std::deque<std::function<void()>> queue_;
    std::size_t bound_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

/// One producer, `workers` workers, closures of 40 bytes as a scheduler hands them over.
template <class Pool>
void throughput(benchmark::State& state) {
    auto const workers = static_cast<std::size_t>(state.range(0));
    constexpr std::size_t count = 200'000;
    for (auto _ : state) {
        std::atomic<std::size_t> sum{0};
        Pool pool{workers, 1'024};
        for (std::size_t i = 0; i < count; ++i) {
            pool.execute(
                [&sum, i, b = i, c = i, d = i] { sum.fetch_add((i + b + c + d) / 4, std::memory_order_relaxed); });
        }
        pool.stop();
        if (sum != count * (count - 1) / 2) state.SkipWithError("work was lost");
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}
BENCHMARK(throughput<ax::thread_pool>)->Arg(1)->Arg(2)->Arg(4)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(throughput<plain_pool>)->Arg(1)->Arg(2)->Arg(4)->UseRealTime()->Unit(benchmark::kMillisecond);

/// From execute() to the first line of the work, while the worker sleeps.
template <class Pool>
void idle_latency(benchmark::State& state) {
    using clock = std::chrono::steady_clock;
    Pool pool{1, 1'024};
    std::vector<double> times;
    for (auto _ : state) {
        std::atomic<std::int64_t> arrived{0};
        std::this_thread::sleep_for(std::chrono::microseconds{200}); // until the worker sleeps
        auto const sent = clock::now();
        pool.execute([&arrived] { arrived.store(clock::now().time_since_epoch().count(), std::memory_order_release); });
        std::int64_t at = 0;
        while ((at = arrived.load(std::memory_order_acquire)) == 0) std::this_thread::yield();
        auto const taken = clock::duration{at} - sent.time_since_epoch();
        times.push_back(std::chrono::duration<double, std::micro>{taken}.count());
        state.SetIterationTime(std::chrono::duration<double>{taken}.count());
    }
    std::sort(times.begin(), times.end());
    state.counters["p50_us"] = times[times.size() / 2];
    state.counters["p99_us"] = times[times.size() * 99 / 100];
}
BENCHMARK(idle_latency<ax::thread_pool>)->UseManualTime()->Iterations(5'000);
BENCHMARK(idle_latency<plain_pool>)->UseManualTime()->Iterations(5'000);

} // namespace

// SPDX-License-Identifier: MIT
// Timers with an id of 64 bits and deadlines over ten minutes, beside a binary heap with lazy cancellation and a
// multimap behind the same interface, and, where they are installed, the timers of Asio and of libuv. Times are per
// timer; equal checksums mean that all fired the same timers in the same order (Asio does not keep that of one tick).
#include "ax/wheel/timing_wheel.hpp"

#ifdef AX_BENCH_ASIO
#include "wheel/asio_timers.hpp"
#endif
#ifdef AX_BENCH_UV
#include "wheel/uv_timers.hpp"
#endif

#include <benchmark/benchmark.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <queue>
#include <random>
#include <vector>

namespace {

using ax::time_point;
using std::chrono::milliseconds;

class wheel_timers {
  public:
    using handle = ax::timer_handle;
    explicit wheel_timers(time_point start) : wheel_(start) {}
    handle schedule(time_point due, std::uint64_t id) { return wheel_.schedule(due, id); }
    void cancel(handle h) { wheel_.cancel(h); }
    template <class Fire>
    void advance(time_point now, Fire&& fire) {
        wheel_.advance(now, fire);
    }
    void forget_cancelled() {} // the wheel does that by itself
    double bytes() const { return static_cast<double>(wheel_.memory()); }

  private:
    ax::timing_wheel<std::uint64_t> wheel_;
};

class heap_timers {
  public:
    using handle = std::uint32_t;
    explicit heap_timers(time_point) {}
    handle schedule(time_point due, std::uint64_t id) {
        handle h = 0;
        if (free_.empty()) {
            h = static_cast<handle>(ids_.size());
            ids_.push_back(id);
            dead_.push_back(0);
        } else {
            h = free_.back();
            free_.pop_back();
            ids_[h] = id;
            dead_[h] = 0;
        }
        heap_.push({due, sequence_++, h});
        return h;
    }
    void cancel(handle h) { dead_[h] = 1; }
    template <class Fire>
    void advance(time_point now, Fire&& fire) {
        while (!heap_.empty() && heap_.top().due <= now) {
            auto const h = heap_.top().at;
            heap_.pop();
            free_.push_back(h);
            if (dead_[h] == 0) fire(ids_[h]);
        }
    }

    void forget_cancelled() {
        while (!heap_.empty() && dead_[heap_.top().at] != 0) {
            free_.push_back(heap_.top().at);
            heap_.pop();
        }
    }

  private:
    struct entry {
        time_point due;
        std::uint32_t sequence;
        handle at;
        bool operator<(entry const& b) const {
            return due != b.due ? due > b.due : static_cast<std::int32_t>(sequence - b.sequence) > 0;
        }
    };
    std::priority_queue<entry> heap_;
    std::vector<std::uint64_t> ids_;
    std::vector<char> dead_;
    std::vector<handle> free_;
    std::uint32_t sequence_ = 0;
};

class multimap_timers {
  public:
    using handle = std::multimap<time_point, std::uint64_t>::iterator;
    explicit multimap_timers(time_point) {}
    handle schedule(time_point due, std::uint64_t id) { return timers_.emplace(due, id); }
    void cancel(handle h) { timers_.erase(h); }
    template <class Fire>
    void advance(time_point now, Fire&& fire) {
        while (!timers_.empty() && timers_.begin()->first <= now) {
            auto const id = timers_.begin()->second;
            timers_.erase(timers_.begin());
            fire(id);
        }
    }

    void forget_cancelled() {}

  private:
    std::multimap<time_point, std::uint64_t> timers_;
};

time_point const start{milliseconds{1'700'000'000'123}};
constexpr auto ten_minutes = milliseconds{600'000};
constexpr auto thirty_days = milliseconds{30LL * 86'400'000};

std::vector<milliseconds> delays(std::size_t n, milliseconds horizon = ten_minutes) {
    std::mt19937_64 random{42};
    std::vector<milliseconds> result(n);
    for (auto& d : result)
        d = milliseconds{1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(horizon.count()))};
    return result;
}

/// Sum that depends on the order.
struct checksum {
    std::uint64_t value = 0;
    void operator()(std::uint64_t id) { value = value * 0x9E3779B97F4A7C15U + id; }
};

/// Time that this thread has run: what other processes take does not count.
class stopwatch {
  public:
    double seconds() const { return now() - begin_; }

  private:
    static double now() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
        timespec t{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
#else
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
#endif
    }
    double begin_ = now();
};

/// Adds up the time of the iterations, each of which handles n timers.
class timing {
  public:
    explicit timing(benchmark::State& state) : state_(state) {}
    timing(timing const&) = delete;
    timing& operator=(timing const&) = delete;
    ~timing() {
        state_.counters["ns_per_timer"] = total_ * 1e9 / static_cast<double>(timers_);
        state_.counters["checksum"] = static_cast<double>(sum.value >> 40);
    }
    void add(double seconds, std::size_t timers) {
        state_.SetIterationTime(seconds);
        total_ += seconds;
        timers_ += timers;
    }
    checksum sum;

  private:
    benchmark::State& state_;
    double total_ = 0;
    std::size_t timers_ = 0;
};

/// What does it cost to schedule a timer while n are pending in the end?
template <class Timers>
void insert(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n);
    timing result(state);
    for (auto _ : state) {
        Timers timers(start);
        stopwatch watch;
        for (std::size_t i = 0; i != n; ++i) timers.schedule(start + after[i], i);
        result.add(watch.seconds(), n);
        if constexpr (requires { timers.bytes(); })
            state.counters["bytes_per_timer"] = timers.bytes() / static_cast<double>(n);
        result.sum = {};
        timers.advance(start + ten_minutes, result.sum);
    }
}

/// The same in a structure that has held as many before.
template <class Timers>
void insert_again(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n);
    timing result(state);
    auto now = start;
    Timers timers(now);
    for (auto _ : state) {
        stopwatch watch;
        for (std::size_t i = 0; i != n; ++i) timers.schedule(now + after[i], i);
        result.add(watch.seconds(), n);
        now += ten_minutes;
        result.sum = {};
        timers.advance(now, result.sum);
    }
}

/// What does it cost to cancel each of n timers, in the order of scheduling (0) or in a random one (1)?
template <class Timers>
void cancel(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (state.range(1) != 0) std::shuffle(order.begin(), order.end(), std::mt19937_64{7});
    timing result(state);
    Timers timers(start);
    std::vector<typename Timers::handle> handles(n);
    for (auto _ : state) {
        for (std::size_t i = 0; i != n; ++i) handles[i] = timers.schedule(start + after[i], i);
        std::vector<typename Timers::handle> ordered;
        ordered.reserve(n);
        for (auto const i : order) ordered.push_back(handles[i]);
        stopwatch watch;
        for (auto const h : ordered) timers.cancel(h);
        result.add(watch.seconds(), n);
        timers.forget_cancelled();
    }
}

/// Schedules n timers and moves the clock a millisecond at a time until all have fired.
template <class Timers>
void insert_and_expire(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n);
    timing result(state);
    for (auto _ : state) {
        Timers timers(start);
        result.sum = {};
        stopwatch watch;
        for (std::size_t i = 0; i != n; ++i) timers.schedule(start + after[i], i);
        for (auto now = start; now != start + ten_minutes;) timers.advance(now += milliseconds{1}, result.sum);
        result.add(watch.seconds(), n);
    }
}

/// Fires n timers in one jump of the clock.
template <class Timers>
void jump(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const horizon = milliseconds{state.range(1)};
    auto const after = delays(n, horizon);
    timing result(state);
    auto now = start;
    Timers timers(now);
    for (auto _ : state) {
        for (std::size_t i = 0; i != n; ++i) timers.schedule(now + after[i], i);
        now += horizon;
        result.sum = {};
        stopwatch watch;
        timers.advance(now, result.sum);
        result.add(watch.seconds(), n);
    }
}

/// Schedules n timers and fires them in one jump: the whole life of a timer, measurable for few as well.
template <class Timers>
void insert_and_jump(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n);
    auto const rounds = (std::max)(std::size_t{1}, 32'768 / n);
    timing result(state);
    auto now = start;
    Timers timers(now);
    for (auto _ : state) {
        result.sum = {};
        stopwatch watch;
        for (std::size_t round = 0; round != rounds; ++round) {
            for (std::size_t i = 0; i != n; ++i) timers.schedule(now + after[i], i);
            now += ten_minutes;
            timers.advance(now, result.sum);
        }
        result.add(watch.seconds(), n * rounds);
    }
}

/// n timers that renew themselves whenever they fire; 100,000 of them fire in an iteration.
template <class Timers>
void renew(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n);
    timing result(state);
    auto now = start;
    Timers timers(now);
    for (std::size_t i = 0; i != n; ++i) timers.schedule(now + after[i], i);
    std::size_t fired = 0;
    auto const step = milliseconds{(std::max)(std::int64_t{1}, ten_minutes.count() / static_cast<std::int64_t>(n))};
    auto const fire = [&](std::uint64_t id) { timers.schedule(now + after[(id + ++fired) % n], id); };
    for (auto _ : state) {
        auto const before = fired;
        stopwatch watch;
        while (fired - before < 100'000) timers.advance(now += step, fire);
        result.add(watch.seconds(), fired - before);
    }
}

/// Timeouts that hardly ever come: scheduled and cancelled while n others are pending.
template <class Timers>
void schedule_and_cancel(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n);
    timing result(state);
    Timers timers(start);
    for (std::size_t i = 0; i != n; ++i) timers.schedule(start + after[i], i);
    for (auto _ : state) {
        stopwatch watch;
        for (std::size_t i = 0; i != 32'768; ++i) timers.cancel(timers.schedule(start + after[i % n], i));
        result.add(watch.seconds(), 32'768);
        timers.forget_cancelled();
    }
}

/// Fires 1,000 timers over 30 days, sleeping to next_expiry() each time.
void wakeups(benchmark::State& state) {
    auto const n = static_cast<std::size_t>(state.range(0));
    auto const after = delays(n, thirty_days);
    timing result(state);
    auto now = start;
    std::size_t woken = 0;
    ax::timing_wheel<std::uint64_t> timers(now);
    for (auto _ : state) {
        for (std::size_t i = 0; i != n; ++i) timers.schedule(now + after[i], i);
        result.sum = {};
        woken = 0;
        stopwatch watch;
        while (auto const next = timers.next_expiry()) {
            ++woken;
            timers.advance(now = *next, result.sum);
        }
        result.add(watch.seconds(), n);
    }
    state.counters["wakeups"] = static_cast<double>(woken);
}

void sizes(benchmark::internal::Benchmark* b) {
    for (auto const n : {1'024, 10'000, 32'768, 1 << 20}) b->Arg(n);
    b->UseManualTime();
}
void all_sizes(benchmark::internal::Benchmark* b) {
    for (auto const n : {32, 1'024, 32'768, 1 << 20}) b->Arg(n);
    b->UseManualTime();
}
void orders(benchmark::internal::Benchmark* b) {
    for (auto const n : {1'024, 10'000, 32'768, 1 << 20}) b->Args({n, 0})->Args({n, 1});
    b->UseManualTime();
}
void horizons(benchmark::internal::Benchmark* b) {
    for (auto const n : {1'024, 10'000, 32'768, 1 << 20}) b->Args({n, ten_minutes.count()});
    b->Args({10'000, 6'000})->Args({1'000, thirty_days.count()})->UseManualTime();
}
void million(benchmark::internal::Benchmark* b) { b->Arg(1'000'000)->UseManualTime(); }

#define AX_BENCH_TIMERS(name, range)                                                                                   \
    BENCHMARK_TEMPLATE(name, wheel_timers)->Apply(range);                                                              \
    BENCHMARK_TEMPLATE(name, heap_timers)->Apply(range);                                                               \
    BENCHMARK_TEMPLATE(name, multimap_timers)->Apply(range)

AX_BENCH_TIMERS(insert, sizes);
AX_BENCH_TIMERS(insert_again, sizes);
AX_BENCH_TIMERS(cancel, orders);
AX_BENCH_TIMERS(insert_and_expire, million);
AX_BENCH_TIMERS(jump, horizons);
AX_BENCH_TIMERS(insert_and_jump, all_sizes);
AX_BENCH_TIMERS(renew, all_sizes);
AX_BENCH_TIMERS(schedule_and_cancel, all_sizes);
// The loops of others: each step of the clock is a turn of the loop.
#define AX_BENCH_LOOP(timers)                                                                                          \
    BENCHMARK_TEMPLATE(insert, timers)->Apply(sizes);                                                                  \
    BENCHMARK_TEMPLATE(cancel, timers)->Apply(orders);                                                                 \
    BENCHMARK_TEMPLATE(insert_and_expire, timers)->Apply(million);                                                     \
    BENCHMARK_TEMPLATE(jump, timers)->Apply(horizons);                                                                 \
    BENCHMARK_TEMPLATE(schedule_and_cancel, timers)->Apply(all_sizes)
#ifdef AX_BENCH_ASIO
using bench::asio_timers;
AX_BENCH_LOOP(asio_timers);
#endif
#ifdef AX_BENCH_UV
using bench::uv_timers;
AX_BENCH_LOOP(uv_timers);
#endif

BENCHMARK(wakeups)->Arg(1'000)->UseManualTime();

} // namespace

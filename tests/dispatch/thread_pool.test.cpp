// SPDX-License-Identifier: MIT
#include "ax/dispatch/thread_pool.hpp"

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#endif

static_assert(ax::executor<ax::thread_pool>); // here, since it instantiates most of the pool

namespace {

using namespace std::chrono_literals;

/// A count that threads raise and wait for. Waiting gives up after a minute, which no working pool needs.
class tally {
  public:
    void add() {
        std::lock_guard const lock{mutex_};
        ++count_;
        changed_.notify_all(); // under the lock: whoever waits may destroy the tally at once
    }
    bool reaches(std::size_t wanted) {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, 60s, [&] { return count_ >= wanted; });
    }
    std::size_t count() {
        std::lock_guard const lock{mutex_};
        return count_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t count_ = 0;
};

/// Waits until what another thread is about to do can be seen; false after a minute.
template <class Condition>
bool eventually(Condition&& condition) {
    auto const deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::yield();
    }
    return true;
}

template <class Call>
std::optional<ax::errc> error_of(Call&& call) {
    try {
        call();
    } catch (ax::error const& e) {
        return e.kind();
    }
    return std::nullopt;
}

/// Tells when it is destroyed by a call of `at_end`; a moved-from one stays silent.
struct finally {
    explicit finally(ax::unique_function<void()> f) : at_end(std::move(f)) {}
    finally(finally&&) noexcept = default;
    finally& operator=(finally&&) = delete;
    ~finally() {
        if (at_end) at_end();
    }
    ax::unique_function<void()> at_end;
};

} // namespace

TEST_CASE("thread_pool runs everything that several threads hand over, once", "[dispatch][threads]") {
    constexpr std::size_t each = 5'000;
    auto const bound = GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{1'024});
    CAPTURE(bound);
    std::vector<std::atomic<int>> runs(4 * each);
    {
        ax::thread_pool pool{3, bound};
        std::vector<std::thread> producers;
        for (std::size_t p = 0; p < 4; ++p) {
            producers.emplace_back([&, p] {
                for (std::size_t i = 0; i < each; ++i) pool.execute([&runs, n = p * each + i] { ++runs[n]; });
            });
        }
        for (auto& producer : producers) producer.join();
        pool.stop();
        CHECK(pool.queued() == 0);
    }
    std::size_t wrong = 0;
    for (auto const& r : runs) wrong += r != 1 ? 1 : 0;
    CHECK(wrong == 0);
}

TEST_CASE("thread_pool with one worker keeps the order, and shows the work what happened before", "[dispatch][threads]") {
    std::vector<int> order; // no lock: the pool orders the accesses
    int written_before = 0;
    {
        ax::thread_pool pool{1, 4};
        written_before = 1;
        for (int i = 0; i < 2'000; ++i)
            pool.execute([&order, &written_before, i] { order.push_back(i * written_before); });
    }
    REQUIRE(order.size() == 2'000);
    for (int i = 0; i < 2'000; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("thread_pool uses all its workers at once", "[dispatch][threads]") {
    tally arrived;
    std::atomic<int> met{0};
    {
        ax::thread_pool pool{4};
        CHECK(pool.workers() == 4);
        for (int i = 0; i < 4; ++i) {
            pool.execute([&] {
                arrived.add();
                met += arrived.reaches(4) ? 1 : 0; // each waits for the three others
            });
        }
    }
    CHECK(met == 4);
}

TEST_CASE("thread_pool lets no work wait behind a slow one while another worker is free", "[dispatch][threads]") {
    tally slow_started;
    tally release;
    tally quick;
    ax::thread_pool pool{2};
    pool.execute([&] {
        slow_started.add();
        release.reaches(1);
    });
    REQUIRE(slow_started.reaches(1));
    for (int i = 0; i < 500; ++i) pool.execute([&] { quick.add(); });
    CHECK(quick.reaches(500));
    release.add();
}

TEST_CASE("thread_pool makes callers wait while its queue is full", "[dispatch][threads]") {
    tally started;
    tally release;
    tally done;
    std::atomic<bool> returned{false};
    ax::thread_pool pool{1, 2};
    pool.execute([&] {
        started.add();
        release.reaches(1);
    });
    REQUIRE(started.reaches(1));
    pool.execute([&] { done.add(); });
    pool.execute([&] { done.add(); });
    CHECK(pool.queued() == 2);
    std::thread producer{[&] {
        pool.execute([&] { done.add(); });
        returned = true;
    }};
    CHECK(eventually([&] { return pool.blocked() == 1; }));
    CHECK_FALSE(returned);
    CHECK(pool.queued() == 2);
    release.add();
    producer.join();
    CHECK(returned);
    CHECK(done.reaches(3));
    CHECK(pool.blocked() == 0);
}

TEST_CASE("thread_pool refuses its own workers when its queue is full, instead of waiting for itself", "[dispatch][threads]") {
    tally done;
    std::vector<std::optional<ax::errc>> answers;
    auto const held = std::make_shared<int>(0);
    {
        ax::thread_pool pool{1, 2};
        tally tried;
        pool.execute([&] {
            for (int i = 0; i < 4; ++i)
                answers.push_back(error_of([&] { pool.execute([&done, held] { done.add(); }); }));
            tried.add();
        });
        CHECK(tried.reaches(1)); // or the end of the pool would be the reason
    }
    CHECK(answers ==
          std::vector<std::optional<ax::errc>>{std::nullopt, std::nullopt, ax::errc::queue_full, ax::errc::queue_full});
    CHECK(done.count() == 2);
    CHECK(held.use_count() == 1); // what was refused is destroyed
}

TEST_CASE("a worker of one thread_pool waits for room in another", "[dispatch][threads]") {
    tally started;
    tally release;
    tally done;
    ax::thread_pool full{1, 1};
    ax::thread_pool other{1, 1};
    full.execute([&] {
        started.add();
        release.reaches(1);
    });
    REQUIRE(started.reaches(1));
    full.execute([&] { done.add(); });
    other.execute([&] { full.execute([&] { done.add(); }); });
    CHECK(eventually([&] { return full.blocked() == 1; }));
    release.add();
    CHECK(done.reaches(2));
}

TEST_CASE("thread_pool runs what is queued when it stops, and takes nothing afterwards", "[dispatch][threads]") {
    tally started;
    tally release;
    tally done;
    ax::thread_pool pool{1, 8};
    std::optional<ax::errc> from_within;
    pool.execute([&] {
        started.add();
        release.reaches(1);
        from_within = error_of([&] { pool.execute([] {}); }); // the stop has begun by then
    });
    REQUIRE(started.reaches(1));
    for (int i = 0; i < 8; ++i) pool.execute([&] { done.add(); });

    std::optional<ax::errc> of_waiting;
    std::thread producer{[&] { of_waiting = error_of([&] { pool.execute([&] { done.add(); }); }); }};
    REQUIRE(eventually([&] { return pool.blocked() == 1; }));
    std::thread stopper{[&] { pool.stop(); }};
    producer.join(); // does not wait for the worker, which has not yet been released
    CHECK(of_waiting == ax::errc::stopped);
    CHECK(done.count() == 0);

    release.add();
    stopper.join();
    CHECK(done.count() == 8);
    CHECK(from_within == ax::errc::stopped);
    CHECK(error_of([&] { pool.execute([] {}); }) == ax::errc::stopped);
    pool.stop(); // once more does nothing
    CHECK(done.count() == 8);
}

TEST_CASE("thread_pool may be stopped by several threads at once, and each returns when all has ended", "[dispatch][threads]") {
    for (int round = 0; round < 50; ++round) {
        std::atomic<int> done{0};
        ax::thread_pool pool{2};
        for (int i = 0; i < 100; ++i) pool.execute([&] { ++done; });
        std::atomic<int> complete{0};
        std::vector<std::thread> stoppers;
        for (int i = 0; i < 3; ++i) {
            stoppers.emplace_back([&] {
                pool.stop();
                complete += done == 100 ? 1 : 0;
            });
        }
        for (auto& stopper : stoppers) stopper.join();
        REQUIRE(complete == 3);
    }
}

TEST_CASE("thread_pool refuses to be stopped by its own worker and goes on", "[dispatch][threads]") {
    std::optional<ax::errc> answer;
    bool ran_after = false;
    {
        ax::thread_pool pool{1};
        pool.execute([&] { answer = error_of([&] { pool.stop(); }); });
        pool.execute([&] { ran_after = true; });
    }
    CHECK(answer == ax::errc::invalid_argument);
    CHECK(ran_after);
}

TEST_CASE("thread_pool may be destroyed by its own work", "[dispatch][threads]") {
    for (int round = 0; round < 50; ++round) {
        auto const go = std::make_shared<tally>(); // outlives this round in the worker that nobody waits for
        auto const done = std::make_shared<tally>();
        {
            auto pool = std::make_shared<ax::thread_pool>(2U);
            auto* const raw = pool.get();
            raw->execute([go, pool = std::move(pool)] { go->reaches(1); }); // now its only owner
            for (int i = 0; i < 20; ++i) raw->execute([done] { done->add(); });
            go->add();
        }
        REQUIRE(done->reaches(20));
    }
}

TEST_CASE("thread_pool may be destroyed as soon as its work has run", "[dispatch][threads]") {
    for (int round = 0; round < 200; ++round) {
        tally ran;
        auto pool = std::make_unique<ax::thread_pool>(1U);
        std::thread producer{[&ran, raw = pool.get()] { raw->execute([&ran] { ran.add(); }); }};
        REQUIRE(ran.reaches(1)); // execute() may still be on its way out
        pool.reset();
        producer.join();
    }
}

TEST_CASE("an exception ends the work that threw it and nothing else", "[dispatch][threads]") {
    tally done;
    ax::thread_pool pool{2};
    for (int i = 0; i < 100; ++i) {
        pool.execute([] { throw std::runtime_error{"x"}; });
        pool.execute([] { throw 1; });
        pool.execute([&] { done.add(); });
    }
    pool.stop();
    CHECK(done.count() == 100);
    CHECK(pool.failures() == 200);
}

TEST_CASE("thread_pool neither calls nor destroys work under its lock", "[dispatch][threads]") {
    tally done;
    std::atomic<bool> destroyed_on_worker{false};
    ax::thread_pool pool{1, 1};
    auto const touch = [&] { // each of these takes the lock
        destroyed_on_worker = pool.on_worker_thread();
        (void)pool.queued();
        (void)pool.blocked();
        error_of([&] { pool.execute([&] { done.add(); }); });
        done.add();
    };
    pool.execute([&, last = finally{touch}] { touch(); });
    CHECK(done.reaches(3)); // two touches, one follow-up at least
    CHECK(destroyed_on_worker);
    pool.stop();

    std::size_t queued = 99; // refused work is destroyed outside of the lock as well
    CHECK(error_of([&] { pool.execute([last = finally{[&] { queued = pool.queued(); }}] {}); }) == ax::errc::stopped);
    CHECK(queued == 0);
}

TEST_CASE("thread_pool knows its own workers", "[dispatch][threads]") {
    ax::thread_pool a{1};
    ax::thread_pool b{1};
    CHECK_FALSE(a.on_worker_thread());
    bool own = false;
    bool foreign = true;
    std::string name;
    a.execute([&] {
        own = a.on_worker_thread();
        foreign = b.on_worker_thread();
#if defined(__linux__)
        char text[16] = {};
        if (::pthread_getname_np(::pthread_self(), text, sizeof text) == 0) name = text;
#endif
    });
    a.stop();
    CHECK(own);
    CHECK_FALSE(foreign);
#if defined(__linux__)
    CHECK(name == "ax-worker-0");
#endif
}

TEST_CASE("thread_pool refuses what makes no sense", "[dispatch][threads]") {
    using pool = ax::thread_pool;
    CHECK(error_of([] { pool{0}; }) == ax::errc::invalid_argument);
    CHECK(error_of([] { pool{static_cast<std::size_t>(-1)}; }) == ax::errc::invalid_argument);
    CHECK(error_of([] { pool{1, 0}; }) == ax::errc::invalid_argument);
    pool one{1};
    CHECK(error_of([&] { one.execute(ax::unique_function<void()>{}); }) == ax::errc::invalid_argument);
}

TEST_CASE("thread_pool starts and stops without work, many times", "[dispatch][threads]") {
    for (int i = 0; i < 200; ++i) {
        ax::thread_pool pool{2};
        if (i % 2 == 0) pool.stop();
    }
    SUCCEED();
}

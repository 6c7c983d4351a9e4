// SPDX-License-Identifier: MIT
// Graphs on executors of every kind. Threads are the point here: also run under the thread sanitizer.
#include "ax/dag/graph.hpp"

#include "ax/core/unique_function.hpp"
#include "ax/dispatch/executor.hpp"
#include "ax/dispatch/thread_pool.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using ax::dag::graph;
using ax::dag::node_id;
using namespace std::chrono_literals;

/// Keeps everything, and calls it when told: a loop of a host.
struct loop_executor {
    std::mutex mutex;
    std::deque<ax::unique_function<void()>> queue;

    void execute(ax::unique_function<void()> f) {
        std::lock_guard const lock{mutex};
        queue.push_back(std::move(f));
    }
    void pump() {
        for (;;) {
            ax::unique_function<void()> f;
            {
                std::lock_guard const lock{mutex};
                if (queue.empty()) return;
                f = std::move(queue.front());
                queue.pop_front();
            }
            f();
        }
    }
};

struct refusing_executor {
    std::size_t asked = 0;
    template <class F>
    void execute(F) {
        ++asked;
        throw ax::error(ax::errc::queue_full, "always");
    }
};

struct dropping_executor {
    std::size_t asked = 0;
    template <class F>
    void execute(F) {
        ++asked;
    }
};

/// One of the things that an executor may do, at random.
struct moody_executor {
    ax::thread_pool pool{2};
    std::mutex mutex;
    std::mt19937 random{1};

    void execute(ax::unique_function<void()> f) {
        unsigned mood = 0;
        {
            std::lock_guard const lock{mutex};
            mood = random() % 4;
        }
        if (mood == 0) throw std::runtime_error("moody");
        if (mood == 1) return;
        if (mood == 2) return f();
        pool.execute(std::move(f));
    }
};

graph random_graph(std::mt19937& random, std::uint32_t size, std::uint32_t edges) {
    graph g;
    for (std::uint32_t i = 0; i < size; ++i) g.add();
    bool const backwards = random() % 2 == 0;
    for (; edges > 0; --edges) {
        auto child = static_cast<std::uint32_t>(random() % size);
        auto parent = static_cast<std::uint32_t>(random() % size);
        if (child == parent) continue;
        if ((child < parent) != backwards) std::swap(child, parent);
        g.depend(node_id{child}, node_id{parent});
    }
    return g;
}

/// Runs the graph, in which `throwing` vertices throw, and checks what ran, when and what came out.
template <class Executor>
void run_and_check(graph const& g, Executor& where, std::vector<bool> const& throwing) {
    auto const size = g.size();
    std::vector<char> expected(size, 1);
    bool any_throws = false;
    for (auto const n : g.topological_order()) {
        for (auto const p : g.parents(n))
            if (expected[p.index()] == 0 || throwing[p.index()]) expected[n.index()] = 0;
        any_throws = any_throws || (expected[n.index()] == 1 && throwing[n.index()]);
    }
    std::vector<std::uint32_t> ended(size); // plain memory: what a parent wrote must be visible
    std::vector<std::atomic<int>> calls(size);
    std::atomic<int> too_early{0};
    bool threw = false;
    try {
        g.run(where, [&](node_id n) {
            ++calls[n.index()];
            for (auto const p : g.parents(n)) too_early += ended[p.index()] == p.index() + 1 ? 0 : 1;
            if (throwing[n.index()]) throw std::runtime_error(std::to_string(n.index()));
            ended[n.index()] = n.index() + 1;
        });
    } catch (std::runtime_error const& e) {
        threw = true;
        CHECK(throwing[std::stoul(e.what())]);
    }
    CHECK(threw == any_throws);
    CHECK(too_early == 0);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < size; ++i) wrong += calls[i] == expected[i] ? 0 : 1;
    CHECK(wrong == 0);
}

template <class Executor>
void run_random_graphs(Executor& where, int rounds) {
    std::mt19937 random{7};
    for (int round = 0; round < rounds; ++round) {
        CAPTURE(round);
        auto const size = 1 + static_cast<std::uint32_t>(random() % 300);
        auto const g = random_graph(random, size, static_cast<std::uint32_t>(random() % (3 * size)));
        std::vector<bool> throwing(size);
        if (round % 3 == 0) throwing[random() % size] = true;
        if (round % 9 == 0)
            for (int i = 0; i < 10; ++i) throwing[random() % size] = true;
        run_and_check(g, where, throwing);
    }
}

/// Waits until `guests` have come; false when they do not within a minute.
class meeting {
  public:
    explicit meeting(int guests) : missing_{guests} {}
    bool arrive() {
        std::unique_lock lock{mutex_};
        if (--missing_ <= 0) all_here_.notify_all();
        return all_here_.wait_for(lock, 60s, [&] { return missing_ <= 0; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable all_here_;
    int missing_;
};

} // namespace

TEST_CASE("random graphs run on a pool, each vertex once and after all its parents", "[dag][threads]") {
    std::size_t const workers = GENERATE(1U, 2U, 5U);
    ax::thread_pool pool{workers, 4};
    run_random_graphs(pool, 300);
    CHECK(pool.failures() == 0);
}

TEST_CASE("graphs run where work is called on the spot, refused, dropped, or all of these at random",
          "[dag][threads]") {
    SECTION("on the spot") {
        ax::inline_executor const where;
        run_random_graphs(where, 100);
    }
    SECTION("refused") {
        refusing_executor where;
        run_random_graphs(where, 100);
        CHECK(where.asked > 0);
    }
    SECTION("dropped") {
        dropping_executor where;
        run_random_graphs(where, 100);
        CHECK(where.asked > 0);
    }
    SECTION("at random") {
        moody_executor where;
        run_random_graphs(where, 300);
    }
}

TEST_CASE("work that an executor keeps beyond the run does nothing, called or not", "[dag]") {
    loop_executor loop;
    run_random_graphs(loop, 50); // the only thread is this one, and it does not pump
    CHECK(loop.queue.size() >= 25);
    auto const half = loop.queue.size() / 2;
    while (loop.queue.size() > half) {
        loop.queue.front()();
        loop.queue.pop_front();
    }
}

TEST_CASE("a loop that is pumped from within a vertex takes part in the run", "[dag]") {
    loop_executor loop;
    graph g;
    for (std::uint32_t i = 0; i < 50; ++i) g.add();
    for (std::uint32_t i = 1; i < 50; ++i) g.depend(node_id{i}, node_id{(i - 1) / 3});
    std::vector<int> calls(50);
    g.run(loop, [&](node_id n) {
        ++calls[n.index()];
        loop.pump();
    });
    CHECK(calls == std::vector<int>(50, 1));
}

TEST_CASE("an executor that calls on the spot does not make the stack grow with the graph", "[dag]") {
    ax::inline_executor const where;
    graph g; // each vertex frees two, so that each asks for help
    constexpr std::uint32_t size = 300'001;
    for (std::uint32_t i = 0; i < size; ++i) g.add();
    for (std::uint32_t i = 2; i < size; i += 2) {
        g.depend(node_id{i - 1}, node_id{i - 2});
        g.depend(node_id{i}, node_id{i - 2});
    }
    char const* lowest = nullptr;
    char const here = 0;
    std::uint32_t ran = 0;
    g.run(where, [&](node_id) {
        char const there = 0;
        if (lowest == nullptr || &there < lowest) lowest = &there;
        ++ran;
    });
    CHECK(ran == size);
    CHECK(&here - lowest < 100'000);
}

TEST_CASE("as many vertices run side by side as there are threads and work", "[dag][threads]") {
    ax::thread_pool pool{3};
    int const round = GENERATE(range(0, 20));
    CAPTURE(round);
    graph g;
    SECTION("all of them roots") {
        for (int i = 0; i < 4; ++i) g.add();
        meeting four{4};
        std::atomic<int> alone{0};
        g.run(pool, [&](node_id) { alone += four.arrive() ? 0 : 1; });
        CHECK(alone == 0);
    }
    SECTION("four long ones somewhere among many short ones of one parent") {
        // Whoever sets short ones aside while it is at a long one must not keep a long one from the others.
        std::uint32_t const size = 50 + 37 * static_cast<std::uint32_t>(round);
        auto const root = g.add();
        for (std::uint32_t i = 1; i <= size; ++i) g.depend(g.add(), root);
        meeting four{4};
        std::atomic<int> alone{0};
        std::mt19937 random{static_cast<unsigned>(round)};
        std::vector<bool> is_long(size + 1);
        for (int left = 4; left > 0;) {
            auto const i = 1 + random() % size;
            if (!is_long[i]) --left;
            is_long[i] = true;
        }
        g.run(pool, [&](node_id n) {
            if (is_long[n.index()]) alone += four.arrive() ? 0 : 1;
        });
        CHECK(alone == 0);
    }
    SECTION("freed one after another by a chain") {
        // Each vertex of the chain frees the next of it and a long one.
        std::vector<bool> is_long;
        auto last = g.add();
        is_long.push_back(false);
        for (int i = 0; i < 3; ++i) {
            auto const next = g.add();
            auto const waiting = g.add();
            g.depend(waiting, last);
            g.depend(next, last);
            is_long.push_back(i == 2);
            is_long.push_back(true);
            last = next;
        }
        meeting four{4};
        std::atomic<int> alone{0};
        g.run(pool, [&](node_id n) {
            if (is_long[n.index()]) alone += four.arrive() ? 0 : 1;
        });
        CHECK(alone == 0);
    }
}

TEST_CASE("no thread of the executor waits while a graph has nothing for it", "[dag][threads]") {
    ax::thread_pool pool{1};
    graph g; // two run side by side, then one, which needs the pool's only thread for something else
    auto const a = g.add();
    auto const b = g.add();
    auto const c = g.add();
    g.depend(c, a);
    g.depend(c, b);
    meeting two{2};
    std::atomic<bool> alone{false};
    std::atomic<bool> served{false};
    g.run(pool, [&](node_id n) {
        if (n != c) {
            if (!two.arrive()) alone = true;
            return;
        }
        if (pool.on_worker_thread()) { // then it is the caller who waits, as it may
            served = true;
            return;
        }
        meeting served_now{2};
        pool.execute([&] { served_now.arrive(); });
        served = served_now.arrive();
    });
    CHECK_FALSE(alone);
    CHECK(served);
}

TEST_CASE("run returns the first exception after all else has ended, and the graph can run again", "[dag][threads]") {
    ax::thread_pool pool{2};
    graph g;
    auto const bad = g.add();
    auto const below = g.add();
    auto const lowest = g.add();
    g.depend(below, bad);
    g.depend(lowest, below);
    for (int i = 0; i < 200; ++i) g.depend(g.add(), g.add());
    for (bool const fail : {true, false}) {
        std::atomic<int> ran{0};
        auto const run = [&] {
            g.run(pool, [&](node_id n) {
                if (fail && n == bad) throw std::runtime_error("bad");
                ++ran;
            });
        };
        if (fail) {
            CHECK_THROWS_WITH(run(), "bad");
        } else {
            run();
        }
        CHECK(ran == (fail ? 400 : 403));
    }
    CHECK_THROWS_AS(g.run(pool, [](node_id) { throw 7; }), int); // not only std::exception
}

TEST_CASE("a graph that cannot run asks the executor for nothing", "[dag]") {
    refusing_executor where;
    graph g;
    CHECK_THROWS_AS(g.run(where, [](node_id) {}), ax::error);
    auto const a = g.add();
    auto const b = g.add();
    g.depend(a, b);
    g.depend(b, a);
    bool ran = false;
    CHECK_THROWS_AS(g.run(where, [&](node_id) { ran = true; }), ax::error);
    CHECK(where.asked == 0);
    CHECK_FALSE(ran);
}

TEST_CASE("graphs run inside of vertices of graphs on the same pool", "[dag][threads]") {
    ax::thread_pool pool{2, 8};
    graph outer;
    for (std::uint32_t i = 0; i < 8; ++i) outer.add();
    for (std::uint32_t i = 3; i < 8; ++i) outer.depend(node_id{i}, node_id{i - 3});
    std::atomic<int> ran{0};
    outer.run(pool, [&](node_id) {
        std::mt19937 random{3};
        auto const inner = random_graph(random, 60, 90);
        inner.run(pool, [&](node_id) { ++ran; });
    });
    CHECK(ran == 8 * 60);
}

TEST_CASE("a validated graph is run by several threads at once", "[dag][threads]") {
    std::mt19937 random{5};
    auto const g = random_graph(random, 500, 900);
    g.validate();
    ax::thread_pool pool{2};
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 10; ++i) {
                g.run(pool, [&](node_id n) { ran += g.parents(n).size() <= 900 ? 1 : 0; });
                g.run([&](node_id) { ++ran; });
            }
        });
    for (auto& t : threads) t.join();
    CHECK(ran == 3 * 10 * 2 * 500);
}

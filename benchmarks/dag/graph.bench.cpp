// SPDX-License-Identifier: MIT
// What does it cost to build a graph and run it once, over a hand-written loop that knows its shape and, where it is
// installed, the flow graph of oneTBB? Times are for the whole graph; divide by its vertices (items_per_second does).
#include "ax/dag/graph.hpp"
#include "ax/dispatch/thread_pool.hpp"

#include <benchmark/benchmark.h>

#ifdef AX_BENCH_TBB
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

#include <deque>
#endif

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace {

using ax::dag::graph;
using ax::dag::node_id;

/// Calls edge(child, parent) for every edge of a graph of `size` vertices.
struct chain {
    template <class Edge>
    static void shape(std::uint32_t size, Edge edge) {
        for (std::uint32_t i = 1; i < size; ++i) edge(i, i - 1);
    }
};
struct fan_out {
    template <class Edge>
    static void shape(std::uint32_t size, Edge edge) {
        for (std::uint32_t i = 1; i < size; ++i) edge(i, 0);
    }
};
struct tree {
    template <class Edge>
    static void shape(std::uint32_t size, Edge edge) {
        for (std::uint32_t i = 1; i < size; ++i) edge(i, (i - 1) / 2);
    }
};
struct pairs { // two side by side, joined by the next: the least that is parallel
    template <class Edge>
    static void shape(std::uint32_t size, Edge edge) {
        for (std::uint32_t i = 1; i < size; ++i) {
            if (i % 3 != 0)
                edge(i, i - i % 3);
            else
                edge(i, i - 1), edge(i, i - 2);
        }
    }
};
struct random_parents { // two for each vertex, among all before it
    template <class Edge>
    static void shape(std::uint32_t size, Edge edge) {
        std::minstd_rand random{1};
        for (std::uint32_t i = 1; i < size; ++i) {
            edge(i, static_cast<std::uint32_t>(random() % i));
            edge(i, static_cast<std::uint32_t>(random() % i));
        }
    }
};
template <class Shape>
struct backwards { // children are added before their parents, so that the order has to be searched for
    template <class Edge>
    static void shape(std::uint32_t size, Edge edge) {
        Shape::shape(size,
                     [&](std::uint32_t child, std::uint32_t parent) { edge(size - 1 - child, size - 1 - parent); });
    }
};

template <class Shape>
graph graph_of(std::uint32_t size) {
    graph g;
    for (std::uint32_t i = 0; i < size; ++i) g.add();
    Shape::shape(size, [&](std::uint32_t child, std::uint32_t parent) { g.depend(node_id{child}, node_id{parent}); });
    return g;
}

void check(benchmark::State& state, std::uint64_t sum, std::uint64_t size) {
    if (sum != size * (size - 1) / 2 * static_cast<std::uint64_t>(state.iterations()))
        state.SkipWithError("not every vertex ran once");
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

/// What one writes: lists of children, counters of parents and a stack, on one thread and with nothing checked.
template <class Shape>
void by_hand(benchmark::State& state) {
    auto const size = static_cast<std::uint32_t>(state.range(0));
    std::uint64_t sum = 0;
    for (auto _ : state) {
        std::vector<std::vector<std::uint32_t>> children(size);
        std::vector<std::uint32_t> open(size);
        Shape::shape(size, [&](std::uint32_t child, std::uint32_t parent) {
            children[parent].push_back(child);
            ++open[child];
        });
        std::vector<std::uint32_t> ready;
        for (std::uint32_t i = 0; i < size; ++i)
            if (open[i] == 0) ready.push_back(i);
        while (!ready.empty()) {
            auto const at = ready.back();
            ready.pop_back();
            sum += at;
            for (auto const child : children[at])
                if (--open[child] == 0) ready.push_back(child);
        }
    }
    check(state, sum, size);
}

template <class Shape>
void on_this_thread(benchmark::State& state) {
    auto const size = static_cast<std::uint32_t>(state.range(0));
    std::uint64_t sum = 0;
    for (auto _ : state) graph_of<Shape>(size).run([&](node_id n) { sum += n.index(); });
    check(state, sum, size);
}

/// Each thread adds to a cell of its own: one sum would measure itself.
struct spread_sum {
    struct alignas(64) cell {
        std::atomic<std::uint64_t> sum{0};
    };
    std::vector<cell> cells{64};
    static inline std::atomic<std::uint32_t> threads{0};

    void add(std::uint64_t value) {
        thread_local std::uint32_t const mine = threads++ % 64;
        auto& sum = cells[mine].sum;
        sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
    }
    std::uint64_t total() const {
        std::uint64_t result = 0;
        for (auto const& c : cells) result += c.sum;
        return result;
    }
};

/// With one worker beside the caller.
template <class Shape>
void on_a_pool(benchmark::State& state) {
    auto const size = static_cast<std::uint32_t>(state.range(0));
    ax::thread_pool pool{1};
    spread_sum sum;
    for (auto _ : state) graph_of<Shape>(size).run(pool, [&](node_id n) { sum.add(n.index()); });
    check(state, sum.total(), size);
}

#ifdef AX_BENCH_TBB
/// The flow graph of oneTBB, with one worker beside the caller.
template <class Shape>
void tbb_flow_graph(benchmark::State& state) {
    namespace flow = tbb::flow;
    using node = flow::continue_node<flow::continue_msg>;
    tbb::global_control const two(tbb::global_control::max_allowed_parallelism, 2);
    auto const size = static_cast<std::uint32_t>(state.range(0));
    spread_sum sum;
    for (auto _ : state) {
        flow::graph g;
        std::deque<node> nodes;
        std::vector<bool> is_root(size, true);
        for (std::uint32_t i = 0; i < size; ++i)
            nodes.emplace_back(g, [&sum, i](flow::continue_msg const&) { sum.add(i); });
        Shape::shape(size, [&](std::uint32_t child, std::uint32_t parent) {
            flow::make_edge(nodes[parent], nodes[child]);
            is_root[child] = false;
        });
        for (std::uint32_t i = 0; i < size; ++i)
            if (is_root[i]) nodes[i].try_put(flow::continue_msg());
        g.wait_for_all();
    }
    check(state, sum.total(), size);
}
#define AX_BENCH_TBB_SHAPE(shape) BENCHMARK(tbb_flow_graph<shape>)->Arg(1'000)->Arg(100'000)->UseRealTime()
#else
#define AX_BENCH_TBB_SHAPE(shape) static_assert(true)
#endif

template <class Shape>
void build_alone(benchmark::State& state) {
    auto const size = static_cast<std::uint32_t>(state.range(0));
    for (auto _ : state) {
        auto const g = graph_of<Shape>(size);
        g.validate();
        benchmark::DoNotOptimize(g.size());
    }
    state.SetItemsProcessed(state.iterations() * size);
}

#define AX_BENCH_SHAPE(shape)                                                                                          \
    BENCHMARK(by_hand<shape>)->Arg(1'000)->Arg(100'000)->UseRealTime();                                                \
    BENCHMARK(on_this_thread<shape>)->Arg(1'000)->Arg(100'000)->UseRealTime();                                         \
    BENCHMARK(on_a_pool<shape>)->Arg(1'000)->Arg(100'000)->UseRealTime();                                              \
    AX_BENCH_TBB_SHAPE(shape);                                                                                         \
    BENCHMARK(build_alone<shape>)->Arg(1'000)->Arg(100'000)->UseRealTime()
AX_BENCH_SHAPE(chain);
AX_BENCH_SHAPE(fan_out);
AX_BENCH_SHAPE(tree);
AX_BENCH_SHAPE(pairs);
AX_BENCH_SHAPE(random_parents);
AX_BENCH_SHAPE(backwards<tree>);
AX_BENCH_SHAPE(backwards<random_parents>);

} // namespace

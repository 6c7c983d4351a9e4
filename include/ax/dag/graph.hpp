// SPDX-License-Identifier: MIT
// A directed acyclic graph of vertices without content: what depends on what, in which order, and a way to run it.
//
// Edges are kept as they came and sorted into compressed rows (all children of vertex 0, then those of vertex 1, ...)
// when somebody asks: two passes that count and place, instead of a list for each vertex. Nothing is allocated for a
// single vertex or edge, and nothing recurses, so a chain of a million vertices is as good as any other graph.
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/dag/detail/name_table.hpp"
#include "ax/dag/detail/parallel_run.hpp"

#include <atomic>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ax::dag {

/// A vertex of a graph: the how-manieth that was added, from 0. It means nothing to another graph.
class node_id {
  public:
    /// No vertex of any graph.
    constexpr node_id() noexcept = default;
    constexpr explicit node_id(std::uint32_t index) noexcept : index_{index} {}

    constexpr std::uint32_t index() const noexcept { return index_; }

    friend constexpr bool operator==(node_id, node_id) noexcept = default;
    friend constexpr auto operator<=>(node_id, node_id) noexcept = default;

  private:
    std::uint32_t index_ = 0xFFFF'FFFF;
};

/// The heaviest way through a graph, from a vertex without parents to one without children.
template <class Weight>
struct weighted_path {
    Weight length{};            ///< the sum of the weights
    std::vector<node_id> nodes; ///< parents first
};

/// What depends on what. Vertices have no content: keep it in a vector beside the graph, by node_id::index().
///
///     ax::dag::graph g;
///     auto const account = g.add("account"), sms = g.add("sms"), crm = g.add("crm"), welcome = g.add("welcome");
///     g.depend(sms, account);
///     g.depend(crm, account);
///     g.depend(welcome, sms);
///     g.depend(welcome, crm);
///     g.run(pool, [&](ax::dag::node_id n) { do_it(g.name(n)); });      // sms and crm side by side
///
/// Rows and orders are computed when they are first asked for and kept until the graph changes. Spans and names are
/// good until then.
///
/// Memory:  8 bytes an edge, 4 more for each row that was asked for and 4 a vertex in each; a name takes its text and
///          about 40 bytes.
/// Threads: one graph by one thread at a time, const members included. After validate(), until the graph changes, const
///          members may be called by several threads at once. A function that run() calls may ask for names, parents
///          and children in any case.
///
/// It is written for any vertex, so that a unit that only names the type does not pay for its code.
/// @tparam Vertex  node_id: see graph.
template <class Vertex>
class basic_graph {
  public:
    /// How many vertices or edges a graph can have.
    static constexpr std::size_t limit = 0xFFFF'FFF0;

    /// Adds a vertex without a name. O(1).
    Vertex add() {
        if (size_ >= limit) throw error(errc::invalid_argument, "a graph with too many vertices");
        forget();
        return Vertex{size_++};
    }

    /// Adds a vertex. An empty name is no name.
    ///
    /// @throws error  invalid_argument where the name is taken, is no UTF-8, or is longer than longest_name bytes.
    ///                Nothing has changed then.
    Vertex add(std::string_view name) {
        if (name.empty()) return add();
        ax::detail::check_text(name, "name", longest_name, false);
        if (names_.find(name) != names_.none)
            throw error(errc::invalid_argument, "name \"" + ax::detail::bounded_text(name, 80) + "\" is there twice");
        if (size_ >= limit) throw error(errc::invalid_argument, "a graph with too many vertices");
        names_.insert(name, size_);
        forget();
        return Vertex{size_++};
    }

    /// Makes `child` wait for `parent`. The same edge twice is one edge. O(1) amortised; longer cycles than this one
    /// show in validate().
    ///
    /// @throws error  invalid_argument where one of the two is no vertex of this graph, or both are the same, which
    ///                would be a cycle.
    void depend(Vertex child, Vertex parent) {
        check(child);
        check(parent);
        if (child == parent) throw error(errc::invalid_argument, "cycle: " + shown(child) + " -> " + shown(child));
        if (edges_.size() >= limit) throw error(errc::invalid_argument, "a graph with too many edges");
        edges_.push_back({child, parent});
        in_order_ = in_order_ && parent < child;
        forget();
    }

    /// The same by name.
    /// @throws error  also where there is no vertex of that name.
    void depend(std::string_view child, std::string_view parent) { depend(called(child), called(parent)); }

    /// Makes room for as many edges in all. Never needed.
    void reserve(std::size_t edges) { edges_.reserve(edges); }

    /// How many vertices there are. They are node_id{0} to node_id{size() - 1}.
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    /// How many different edges there are. O(1), after O(V + E) when the graph has changed.
    std::size_t edge_count() const { return children_rows().item.size(); }

    /// The name of a vertex; empty where it has none.
    std::string_view name(Vertex n) const noexcept { return names_.name_of(n.index()); }

    /// The vertex of that name, if any.
    std::optional<Vertex> find(std::string_view name) const noexcept {
        auto const index = names_.find(name);
        return index == names_.none ? std::nullopt : std::optional{Vertex{index}};
    }

    /// What `n` waits for, in the order of depend(). O(1), after O(V + E) when the graph has changed.
    /// @throws error  invalid_argument where `n` is no vertex of this graph.
    std::span<Vertex const> parents(Vertex n) const {
        check(n);
        return parents_rows().of(n);
    }

    /// What waits for `n`, in the order of depend(). As parents().
    std::span<Vertex const> children(Vertex n) const {
        check(n);
        return children_rows().of(n);
    }

    /// Makes sure that the graph can be run, and computes all that its const members would compute later.
    ///
    /// @throws error  invalid_argument where there is no vertex, or a cycle, whose path the text shows, each vertex
    ///                before what waits for it: "cycle: a -> b -> c -> a". The middle of a long one is left out.
    /// Complexity: O(V + E), without recursion.
    void validate() const {
        topological_order();
        parents_rows();
        children_rows();
    }

    /// All vertices, parents first: the order in which they were added, but that what a vertex waits for moves before
    /// it. So a graph whose vertices were added parents first keeps its order.
    ///
    /// @throws error  as validate().
    /// Complexity: O(V + E), without recursion; O(1) until the graph changes.
    std::span<Vertex const> topological_order() const {
        check_not_empty();
        if (!order_.empty()) return order_;
        std::vector<Vertex> order;
        if (in_order_) {
            order.resize(size_);
            for (std::uint32_t i = 0; i < size_; ++i) order[i] = Vertex{i};
        } else if (auto const cycle = search(order); !cycle.empty()) {
            throw error(errc::invalid_argument, text_of(cycle));
        }
        order_.swap(order);
        return order_;
    }

    /// The vertices of one cycle, each before what waits for it, beginning with the one that was added first; empty
    /// where there is none. Which one, where there are several, depends on nothing but the graph.
    ///
    /// Complexity: O(V + E), without recursion.
    std::vector<Vertex> find_cycle() const {
        std::vector<Vertex> order;
        return in_order_ ? order : search(order);
    }

    /// The heaviest way through the graph: with run times as weights, how long it takes however many workers there are.
    ///
    /// @param weights  A weight for each vertex: a function of node_id, or anything that is indexed by its number
    ///                 (vector, span). A weight has +, < and a zero made by {}: a number, or a std::chrono duration.
    /// @return         Where several ways are the heaviest: the last vertex is the first of theirs in topological
    /// order,
    ///                 and before each vertex comes the parent that depend() named first.
    /// @throws error   as validate(); invalid_argument also where a weight is below zero or not a number, or where a
    ///                 container has not one for each vertex.
    /// Complexity: O(V + E).
    template <class Weights>
    auto critical_path(Weights const& weights) const {
        if constexpr (std::invocable<Weights const&, Vertex>) {
            return heaviest<std::decay_t<decltype(weights(Vertex{}))>>([&](Vertex n) { return weights(n); });
        } else {
            if (weights.size() != size_)
                throw error(errc::invalid_argument,
                            std::to_string(weights.size()) + " weights for " + std::to_string(size_) + " vertices");
            return heaviest<std::decay_t<decltype(weights[0])>>([&](Vertex n) { return weights[n.index()]; });
        }
    }

    /// Calls `fn` for each vertex on this thread, in topological order.
    ///
    /// When `fn` throws, what waits for that vertex, directly or not, is left out; all else is called. Then the first
    /// exception goes on to the caller; others are lost. `fn` must not change the graph.
    ///
    /// @throws error  as validate(); then nothing was called.
    /// Complexity: O(V + E); a few nanoseconds a vertex where they were added parents first.
    template <std::invocable<Vertex> F>
    void run(F&& fn) const {
        check_not_empty();
        if (in_order_) {
            run_here([](std::size_t i) { return Vertex{static_cast<std::uint32_t>(i)}; }, fn);
        } else {
            run_here([order = topological_order()](std::size_t i) { return order[i]; }, fn);
        }
    }

    /// Calls `fn` for each vertex, each after all its parents, side by side on `where` and on this thread, and returns
    /// when all have ended.
    ///
    /// This thread takes part, so the run ends even where `where` refuses or drops work, calls it on the spot, or has
    /// no other thread than this one. No thread of `where` ever waits: who finds nothing to do leaves, and another is
    /// asked for when there is more. A vertex that is ready waits only while all threads that came are busy.
    ///
    /// What `fn` did for a parent is visible where it is called for a child, and all of it when run() has returned.
    /// When `fn` throws: as run(fn); the exception is the first in time. `fn` must not change the graph. It is called
    /// by several threads at once and is not copied.
    ///
    /// @param where  Anything with execute(f) for an `f()` that can be moved: see ax/dispatch/executor.hpp. It may keep
    ///               such an `f` longer than the run; calling or destroying it then does nothing.
    /// @throws error  as validate(); then nothing was called.
    /// Complexity: O(V + E), two allocations beside the rows.
    template <class Executor, std::invocable<Vertex> F>
    void run(Executor&& where, F&& fn) const {
        using executor = std::remove_reference_t<Executor>;
        using shared = ax::detail::parallel_run<executor, Vertex, std::remove_reference_t<F>>;
        check_not_empty();
        if (!in_order_) topological_order();
        auto const& parents = parents_rows(); // `fn` may ask for them
        auto const& children = children_rows();
        auto const cells = std::make_unique<std::atomic<std::uint32_t>[]>(2 * std::size_t{size_} + 1);
        auto* const open = cells.get();
        for (std::uint32_t i = 0; i < size_; ++i)
            open[i].store(parents.first[i + 1] - parents.first[i], std::memory_order_relaxed);
        shared::lead(std::make_shared<shared>(
            where, fn, size_, ax::detail::edge_rows_view<Vertex>{children.first.data(), children.item.data()},
            open + size_, open));
    }

  private:
    struct edge {
        Vertex child;
        Vertex parent;
    };

    struct edge_rows {
        std::vector<std::uint32_t> first; ///< one more than vertices; empty: not computed
        std::vector<Vertex> item;

        std::span<Vertex const> of(Vertex n) const noexcept {
            return {item.data() + first[n.index()], item.data() + first[n.index() + 1]};
        }
    };

    void forget() noexcept {
        children_.first.clear();
        parents_.first.clear();
        order_.clear();
    }

    void check(Vertex n) const {
        if (n.index() < size_) return;
        throw error(errc::invalid_argument,
                    n == Vertex{} ? std::string{"no vertex of a graph"}
                                  : "vertex #" + std::to_string(n.index()) + " of a graph of " + std::to_string(size_));
    }

    void check_not_empty() const {
        if (size_ == 0) throw error(errc::invalid_argument, "empty graph");
    }

    Vertex called(std::string_view name) const {
        auto const index = names_.find(name);
        if (index == names_.none)
            throw error(errc::invalid_argument, "unknown name \"" + ax::detail::bounded_text(name, 80) + '"');
        return Vertex{index};
    }

    std::string shown(Vertex n) const {
        auto const name = names_.name_of(n.index());
        if (name.empty()) return '#' + std::to_string(n.index());
        return ax::detail::bounded_text(name, 64) + (name.size() > 64 ? "..." : "");
    }

    std::string text_of(std::vector<Vertex> const& cycle) const {
        std::string text = "cycle: ";
        constexpr std::size_t head = 8;
        constexpr std::size_t tail = 4;
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            if (i == head && cycle.size() > head + tail + 1) {
                auto const left_out = cycle.size() - head - tail;
                text += "(" + std::to_string(left_out) + " more) -> ";
                i += left_out;
            }
            text += shown(cycle[i]) + " -> ";
        }
        return text + shown(cycle.front());
    }

    edge_rows const& children_rows() const {
        if (children_.first.empty()) build(children_, [](edge e) { return std::pair{e.parent, e.child}; });
        return children_;
    }

    edge_rows const& parents_rows() const {
        if (parents_.first.empty()) build(parents_, [](edge e) { return std::pair{e.child, e.parent}; });
        return parents_;
    }

    /// @param split  The vertex in whose row an edge goes, and what is written there.
    template <class Split>
    void build(edge_rows& rows, Split split) const {
        // Counted two places on: after the sums each row's end is one place on, and placing the items moves it to its
        // own, so that no second array of positions is needed.
        std::vector<std::uint32_t> first(std::size_t{size_} + 2);
        for (auto const e : edges_) ++first[std::size_t{split(e).first.index()} + 2];
        for (std::size_t i = 2; i < first.size(); ++i) first[i] += first[i - 1];
        rows.item.resize(edges_.size());
        for (auto const e : edges_) {
            auto const [row, item] = split(e);
            rows.item[first[std::size_t{row.index()} + 1]++] = item;
        }
        first.pop_back();
        drop_repeated(first, rows.item);
        rows.first.swap(first);
    }

    static void drop_repeated(std::vector<std::uint32_t>& first, std::vector<Vertex>& item) {
        std::vector<std::uint32_t> row_that_has; // by vertex; needed for long rows only
        std::uint32_t out = 0;
        for (std::uint32_t row = 0; row + 1 < first.size(); ++row) {
            auto const begin = std::exchange(first[row], out);
            auto const end = first[row + 1];
            bool const is_long = end - begin > 8;
            if (is_long && row_that_has.empty()) row_that_has.resize(first.size() - 1, 0xFFFF'FFFF);
            for (auto i = begin; i < end; ++i) {
                auto const v = item[i];
                bool repeated = false;
                if (is_long) {
                    repeated = std::exchange(row_that_has[v.index()], row) == row;
                } else {
                    for (auto k = first[row]; k < out && !repeated; ++k) repeated = item[k] == v;
                }
                if (!repeated) item[out++] = v;
            }
        }
        first.back() = out;
        item.resize(out);
    }

    /// Depth first from each vertex to its parents, which come out first. The stack is the path that was walked, so it
    /// shows the cycle when one closes.
    /// @return  The cycle; empty where there is none, and `order` is complete.
    std::vector<Vertex> search(std::vector<Vertex>& order) const {
        auto const& rows = parents_rows();
        constexpr std::uint32_t untouched = 0xFFFF'FFFF;
        std::vector<std::uint32_t> next(size_, untouched); // which parent to look at; the end of the row: done
        std::vector<Vertex> path;
        order.reserve(size_);
        for (std::uint32_t start = 0; start < size_; ++start) {
            if (next[start] != untouched) continue;
            path.push_back(Vertex{start});
            next[start] = rows.first[start];
            while (!path.empty()) {
                auto const at = path.back();
                if (next[at.index()] == rows.first[std::size_t{at.index()} + 1]) {
                    ++next[at.index()]; // one past the end: left for good
                    order.push_back(at);
                    path.pop_back();
                    continue;
                }
                auto const parent = rows.item[next[at.index()]++];
                if (next[parent.index()] == untouched) {
                    path.push_back(parent);
                    next[parent.index()] = rows.first[parent.index()];
                } else if (next[parent.index()] <= rows.first[std::size_t{parent.index()} + 1]) {
                    return cycle_at_end_of(path, parent);
                }
            }
        }
        return {};
    }

    static std::vector<Vertex> cycle_at_end_of(std::vector<Vertex> const& path, Vertex closing) {
        std::size_t begin = path.size();
        while (path[--begin] != closing) {
        }
        std::size_t least = begin;
        for (auto i = begin; i < path.size(); ++i)
            if (path[i] < path[least]) least = i;
        std::vector<Vertex> cycle; // the path goes up, the cycle down
        for (auto i = least + 1; i-- > begin;) cycle.push_back(path[i]);
        for (auto i = path.size(); i-- > least + 1;) cycle.push_back(path[i]);
        return cycle;
    }

    template <class Weight, class WeightOf>
    weighted_path<Weight> heaviest(WeightOf weight_of) const {
        auto const order = topological_order();
        auto const& rows = parents_rows();
        std::vector<Weight> longest(size_);
        std::vector<Vertex> before(size_);
        weighted_path<Weight> result;
        Vertex last;
        for (auto const n : order) {
            Weight const weight = weight_of(n);
            if (!(weight >= Weight{})) throw error(errc::invalid_argument, "weight of " + shown(n) + " is below zero");
            for (auto const parent : rows.of(n)) {
                auto& best = before[n.index()];
                if (best == Vertex{} || longest[best.index()] < longest[parent.index()]) best = parent;
            }
            auto const best = before[n.index()];
            longest[n.index()] = best == Vertex{} ? weight : longest[best.index()] + weight;
            if (!children_rows().of(n).empty()) continue; // whoever comes after it is no shorter
            if (last == Vertex{} || result.length < longest[n.index()]) {
                last = n;
                result.length = longest[n.index()];
            }
        }
        std::size_t count = 0;
        for (auto n = last; n != Vertex{}; n = before[n.index()]) ++count;
        result.nodes.resize(count);
        for (auto n = last; n != Vertex{}; n = before[n.index()]) result.nodes[--count] = n;
        return result;
    }

    template <class At, class F>
    void run_here(At at, F& fn) const {
        std::size_t const size = size_;
        std::size_t i = 0;
        std::exception_ptr failure;
        try {
            for (; i < size; ++i) fn(at(i));
            return;
        } catch (...) {
            failure = std::current_exception();
        }
        auto const& rows = parents_rows();
        std::vector<bool> left_out(size);
        left_out[at(i).index()] = true;
        while (++i < size) {
            auto const n = at(i);
            bool out = false;
            for (auto const parent : rows.of(n)) out = out || left_out[parent.index()];
            if (!out) {
                try {
                    fn(n);
                } catch (...) {
                    out = true;
                }
            }
            left_out[n.index()] = out;
        }
        std::rethrow_exception(failure);
    }

    std::uint32_t size_ = 0;
    bool in_order_ = true; ///< every parent was added before its child
    std::vector<edge> edges_;
    ax::detail::name_table names_;
    mutable edge_rows children_;
    mutable edge_rows parents_;
    mutable std::vector<Vertex> order_; ///< empty: not computed
};

/// The graph of node_id.
using graph = basic_graph<node_id>;

} // namespace ax::dag

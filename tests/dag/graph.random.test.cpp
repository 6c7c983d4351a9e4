// SPDX-License-Identifier: MIT
// Random graphs beside the obvious: matrices, recursion and search of everything.
#include "ax/dag/graph.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using ax::dag::graph;
using ax::dag::node_id;

struct naive_graph {
    std::size_t size = 0;
    std::vector<std::vector<std::size_t>> parents; ///< in the order of depend(), each once

    bool cyclic() const {
        std::vector<int> colour(size);
        std::function<bool(std::size_t)> const visit = [&](std::size_t n) {
            if (colour[n] == 1) return true;
            if (colour[n] == 2) return false;
            colour[n] = 1;
            for (auto const p : parents[n])
                if (visit(p)) return true;
            colour[n] = 2;
            return false;
        };
        for (std::size_t n = 0; n < size; ++n)
            if (visit(n)) return true;
        return false;
    }

    std::vector<std::size_t> order() const {
        std::vector<std::size_t> result;
        std::vector<bool> seen(size);
        std::function<void(std::size_t)> const visit = [&](std::size_t n) {
            if (seen[n]) return;
            seen[n] = true;
            for (auto const p : parents[n]) visit(p);
            result.push_back(n);
        };
        for (std::size_t n = 0; n < size; ++n) visit(n);
        return result;
    }

    /// Every way from the top to `n`, tried out.
    std::uint64_t heaviest_to(std::size_t n, std::vector<std::uint64_t> const& weights) const {
        std::uint64_t best = 0;
        for (auto const p : parents[n]) best = (std::max)(best, heaviest_to(p, weights));
        return best + weights[n];
    }

    /// What runs when `throwing` throw.
    std::vector<bool> runs(std::vector<bool> const& throwing) const {
        std::vector<bool> result(size);
        for (auto const n : order()) {
            result[n] = true;
            for (auto const p : parents[n])
                if (!result[p] || throwing[p]) result[n] = false;
        }
        return result;
    }
};

std::vector<std::size_t> numbers(std::span<node_id const> nodes) {
    std::vector<std::size_t> result;
    for (auto const n : nodes) result.push_back(n.index());
    return result;
}

} // namespace

TEST_CASE("a random graph has the order, the rows and the cycle that a naive search finds", "[dag]") {
    std::mt19937 random{GENERATE(1U, 2U, 3U)};
    std::size_t cyclic = 0;
    std::size_t acyclic = 0;
    for (int round = 0; round < 3'000; ++round) {
        CAPTURE(round);
        naive_graph naive;
        graph g;
        naive.size = 1 + random() % 14;
        naive.parents.resize(naive.size);
        for (std::size_t i = 0; i < naive.size; ++i) random() % 2 == 0 ? g.add() : g.add("n" + std::to_string(i));
        bool const any_direction = random() % 2 == 0;
        std::vector<std::uint32_t> rank(naive.size); // a hidden order, so that there are graphs without a cycle
        for (std::uint32_t i = 0; i < rank.size(); ++i) rank[i] = i;
        if (random() % 2 == 0) std::shuffle(rank.begin(), rank.end(), random);
        for (auto edges = random() % (2 * naive.size); edges > 0; --edges) {
            auto child = random() % naive.size;
            auto parent = random() % naive.size;
            if (child == parent) continue;
            if (!any_direction && rank[child] < rank[parent]) std::swap(child, parent);
            g.depend(node_id{static_cast<std::uint32_t>(child)}, node_id{static_cast<std::uint32_t>(parent)});
            auto& known = naive.parents[child];
            if (std::find(known.begin(), known.end(), parent) == known.end()) known.push_back(parent);
        }

        bool children_agree = true;
        std::size_t edges = 0;
        for (std::size_t n = 0; n < naive.size; ++n) {
            node_id const id{static_cast<std::uint32_t>(n)};
            REQUIRE(numbers(g.parents(id)) == naive.parents[n]);
            edges += naive.parents[n].size();
            auto const children = numbers(g.children(id));
            for (std::size_t c = 0; c < naive.size; ++c) {
                auto const& p = naive.parents[c];
                bool const expected = std::find(p.begin(), p.end(), n) != p.end();
                children_agree = children_agree && expected == (std::count(children.begin(), children.end(), c) == 1);
            }
        }
        REQUIRE(children_agree);
        REQUIRE(g.edge_count() == edges);

        auto const cycle = numbers(g.find_cycle());
        REQUIRE(cycle.empty() != naive.cyclic());
        if (naive.cyclic()) {
            ++cyclic;
            for (std::size_t i = 0; i < cycle.size(); ++i) { // each waits for the one before it, and none comes twice
                auto const& p = naive.parents[cycle[(i + 1) % cycle.size()]];
                REQUIRE(std::find(p.begin(), p.end(), cycle[i]) != p.end());
                REQUIRE(std::count(cycle.begin(), cycle.end(), cycle[i]) == 1);
                REQUIRE(cycle[i] >= cycle.front());
            }
            REQUIRE_THROWS_AS(g.validate(), ax::error);
            REQUIRE_THROWS_AS(g.run([](node_id) {}), ax::error);
            continue;
        }
        ++acyclic;
        g.validate();
        REQUIRE(numbers(g.topological_order()) == naive.order());

        std::vector<std::uint64_t> weights;
        for (std::size_t i = 0; i < naive.size; ++i) weights.push_back(random() % 5);
        std::uint64_t heaviest = 0;
        for (std::size_t n = 0; n < naive.size; ++n) heaviest = (std::max)(heaviest, naive.heaviest_to(n, weights));
        auto const path = g.critical_path(weights);
        REQUIRE(path.length == heaviest);
        auto const way = numbers(path.nodes);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < way.size(); ++i) {
            sum += weights[way[i]];
            auto const& p = naive.parents[way[i]];
            REQUIRE((i == 0 ? p.empty() : std::find(p.begin(), p.end(), way[i - 1]) != p.end()));
        }
        REQUIRE(sum == heaviest);
        REQUIRE(g.children(path.nodes.back()).empty());

        std::vector<bool> throwing(naive.size);
        for (std::size_t i = 0; i < naive.size; ++i) throwing[i] = random() % 6 == 0;
        auto const runs = naive.runs(throwing);
        std::vector<std::size_t> ran;
        std::vector<std::size_t> expected;
        std::size_t first_throwing = naive.size;
        for (auto const n : naive.order()) {
            if (runs[n]) expected.push_back(n);
            if (runs[n] && throwing[n] && first_throwing == naive.size) first_throwing = n;
        }
        std::size_t thrown = naive.size;
        try {
            g.run([&](node_id n) {
                ran.push_back(n.index());
                if (throwing[n.index()]) throw std::runtime_error(std::to_string(n.index()));
            });
        } catch (std::runtime_error const& e) {
            thrown = std::stoul(e.what());
        }
        REQUIRE(ran == expected);
        REQUIRE(thrown == first_throwing);
    }
    CHECK(cyclic > 300);
    CHECK(acyclic > 1'000);
}

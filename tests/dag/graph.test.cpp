// SPDX-License-Identifier: MIT
#include "ax/dag/graph.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using ax::dag::graph;
using ax::dag::node_id;
using namespace std::chrono_literals;

/// The text of the ax::error that `f` throws; empty where it throws none.
template <class F>
std::string refusal_of(F f) {
    try {
        f();
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        return std::string(e.what()).substr(0, std::string(e.what()).rfind(": invalid argument"));
    }
    return {};
}

std::vector<std::uint32_t> indices(std::span<node_id const> nodes) {
    std::vector<std::uint32_t> result;
    for (auto const n : nodes) result.push_back(n.index());
    return result;
}
using row = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("a graph gives parents, children and an order in which parents come first", "[dag]") {
    graph g;
    auto const a = g.add("a");
    auto const b = g.add("b");
    auto const c = g.add();
    auto const d = g.add("d");
    g.depend(b, a);
    g.depend(c, a);
    g.depend("d", "b");
    g.depend(d, c);

    CHECK(g.size() == 4);
    CHECK(g.edge_count() == 4);
    CHECK(indices(g.parents(d)) == row{1, 2});
    CHECK(indices(g.parents(a)).empty());
    CHECK(indices(g.children(a)) == row{1, 2});
    CHECK(indices(g.children(d)).empty());
    CHECK(indices(g.topological_order()) == row{0, 1, 2, 3});
    CHECK(g.name(b) == "b");
    CHECK(g.name(c).empty());
    CHECK(g.find("d") == d);
    CHECK_FALSE(g.find("c"));
    CHECK_FALSE(g.find(""));
    g.validate();
}

TEST_CASE("the order keeps the one of adding, but that what a vertex waits for moves before it", "[dag]") {
    graph g;
    for (int i = 0; i < 7; ++i) g.add();
    g.depend(node_id{0}, node_id{5});
    g.depend(node_id{5}, node_id{6});
    g.depend(node_id{5}, node_id{3});
    g.depend(node_id{4}, node_id{1});
    CHECK(indices(g.topological_order()) == row{6, 3, 5, 0, 1, 2, 4});
}

TEST_CASE("the same edge twice is one edge", "[dag]") {
    std::uint32_t const parents = GENERATE(1U, 3U, 8U, 9U, 40U); // short and long rows are cleaned in different ways
    graph g;
    for (std::uint32_t i = 0; i <= parents; ++i) g.add();
    row expected;
    for (int round = 0; round < 3; ++round)
        for (std::uint32_t i = 0; i < parents; ++i) g.depend(node_id{parents}, node_id{parents - 1 - i});
    for (std::uint32_t i = 0; i < parents; ++i) expected.push_back(parents - 1 - i);
    CHECK(g.edge_count() == parents);
    CHECK(indices(g.parents(node_id{parents})) == expected);
    CHECK(indices(g.children(node_id{0})) == row{parents});
    int ran = 0;
    g.run([&](node_id) { ++ran; });
    CHECK(ran == static_cast<int>(parents) + 1);
}

TEST_CASE("a graph that grows after it was asked answers anew", "[dag]") {
    graph g;
    auto const a = g.add();
    CHECK(indices(g.topological_order()) == row{0});
    CHECK(indices(g.children(a)).empty());
    auto const b = g.add();
    CHECK(indices(g.topological_order()) == row{0, 1});
    g.depend(a, b);
    CHECK(indices(g.topological_order()) == row{1, 0});
    CHECK(indices(g.children(b)) == row{0});
    CHECK(g.edge_count() == 1);

    auto copy = g;
    copy.depend(b, copy.add());
    CHECK(copy.size() == 3);
    CHECK(g.size() == 2);
    CHECK(indices(copy.topological_order()) == row{2, 1, 0});
    CHECK(indices(g.topological_order()) == row{1, 0});
}

TEST_CASE("an empty graph is refused when it is validated, ordered or run", "[dag]") {
    graph const g;
    CHECK(g.empty());
    CHECK(g.find_cycle().empty());
    CHECK(refusal_of([&] { g.validate(); }) == "empty graph");
    CHECK(refusal_of([&] { g.topological_order(); }) == "empty graph");
    CHECK(refusal_of([&] { g.run([](node_id) {}); }) == "empty graph");
    CHECK(refusal_of([&] { g.critical_path(std::vector<int>{}); }) == "empty graph");
}

TEST_CASE("names are unique, and unknown ones are refused", "[dag]") {
    graph g;
    g.add("a");
    g.add();
    g.add("");
    g.add("b");
    CHECK(refusal_of([&] { g.add("a"); }) == "name \"a\" is there twice");
    CHECK(g.size() == 4);
    CHECK(refusal_of([&] { g.depend("a", "c"); }) == "unknown name \"c\"");
    CHECK(refusal_of([&] { g.depend("", "a"); }) == "unknown name \"\"");
    CHECK(refusal_of([&] { g.add(std::string(256, 'x')); }).find("has 256 bytes, at most 255") != std::string::npos);
    CHECK(refusal_of([&] { g.add("\xFF"); }).find("not valid UTF-8") != std::string::npos);
    CHECK(refusal_of([&] { g.depend("a", std::string(1'000'000, 'x')); }).size() < 200);
    CHECK(g.edge_count() == 0);
    CHECK(g.add("c") == node_id{4});
    CHECK(g.find("c") == node_id{4});

    for (int i = 0; i < 5'000; ++i) g.add("n" + std::to_string(i)); // the table grows
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < 5'000; ++i) {
        auto const name = "n" + std::to_string(i);
        wrong += g.find(name) == node_id{5 + i} && g.name(node_id{5 + i}) == name ? 0 : 1;
    }
    CHECK(wrong == 0);
}

TEST_CASE("a vertex that is not of the graph is refused", "[dag]") {
    graph g;
    auto const a = g.add();
    CHECK(refusal_of([&] { g.depend(a, node_id{1}); }) == "vertex #1 of a graph of 1");
    CHECK(refusal_of([&] { g.depend(node_id{7}, a); }) == "vertex #7 of a graph of 1");
    CHECK(refusal_of([&] { g.depend(a, node_id{}); }) == "no vertex of a graph");
    CHECK(refusal_of([&] { (void)g.parents(node_id{1}); }) == "vertex #1 of a graph of 1");
    CHECK(refusal_of([&] { (void)g.children(node_id{}); }) == "no vertex of a graph");
    CHECK(g.name(node_id{9}).empty());
    CHECK(g.edge_count() == 0);
}

TEST_CASE("a cycle is refused with its path, each vertex before what waits for it", "[dag]") {
    graph g;
    auto const a = g.add("a");
    auto const b = g.add("b");
    auto const c = g.add("c");
    auto const d = g.add();
    SECTION("of one vertex, at once") {
        CHECK(refusal_of([&] { g.depend(a, a); }) == "cycle: a -> a");
        CHECK(refusal_of([&] { g.depend(d, d); }) == "cycle: #3 -> #3");
        CHECK(g.edge_count() == 0);
    }
    SECTION("of two") {
        g.depend(a, b);
        g.depend(b, a);
        CHECK(refusal_of([&] { g.validate(); }) == "cycle: a -> b -> a");
    }
    SECTION("of three, in which nothing runs") {
        g.depend(b, a);
        g.depend(c, b);
        g.depend(a, c);
        g.depend(d, c);
        CHECK(indices(g.find_cycle()) == row{0, 1, 2});
        CHECK(refusal_of([&] { g.validate(); }) == "cycle: a -> b -> c -> a");
        CHECK(refusal_of([&] { g.validate(); }) == "cycle: a -> b -> c -> a");
        bool ran = false;
        CHECK(refusal_of([&] { g.run([&](node_id) { ran = true; }); }) == "cycle: a -> b -> c -> a");
        CHECK_FALSE(ran);
    }
    SECTION("the other way round") {
        g.depend(a, b);
        g.depend(b, c);
        g.depend(c, a);
        CHECK(refusal_of([&] { g.validate(); }) == "cycle: a -> c -> b -> a");
    }
    SECTION("behind a tail, and without a name") {
        g.depend(a, d);
        g.depend(d, c);
        g.depend(c, d);
        CHECK(refusal_of([&] { g.validate(); }) == "cycle: c -> #3 -> c");
    }
    CHECK(g.size() == 4);
}

TEST_CASE("the text of a cycle is bounded, however long it and its names are", "[dag]") {
    graph g;
    std::uint32_t const size = GENERATE(12U, 13U, 14U, 100'000U);
    for (std::uint32_t i = 0; i < size; ++i) g.add();
    for (std::uint32_t i = 0; i < size; ++i) g.depend(node_id{(i + 1) % size}, node_id{i});
    std::string const beginning = "cycle: #0 -> #1 -> #2 -> #3 -> #4 -> #5 -> #6 -> #7 -> ";
    std::string expected = beginning;
    if (size <= 13) {
        for (std::uint32_t i = 8; i < size; ++i) expected += "#" + std::to_string(i) + " -> ";
    } else {
        expected += "(" + std::to_string(size - 12) + " more) -> ";
        for (std::uint32_t i = size - 4; i < size; ++i) expected += "#" + std::to_string(i) + " -> ";
    }
    CHECK(refusal_of([&] { g.validate(); }) == expected + "#0");

    graph named;
    for (char c = 'a'; c <= 'z'; ++c) named.add(std::string(200, c));
    for (std::uint32_t i = 0; i < 26; ++i) named.depend(node_id{(i + 1) % 26}, node_id{i});
    CHECK(refusal_of([&] { named.validate(); }).size() < 1'000);
}

TEST_CASE("a chain of a million vertices is ordered and run, in whichever order it was added", "[dag]") {
    constexpr std::uint32_t size = 1'000'000;
    bool const forwards = GENERATE(true, false);
    graph g;
    for (std::uint32_t i = 0; i < size; ++i) g.add();
    for (std::uint32_t i = 1; i < size; ++i)
        forwards ? g.depend(node_id{i}, node_id{i - 1}) : g.depend(node_id{i - 1}, node_id{i});
    g.validate();
    std::uint32_t expected = forwards ? 0 : size - 1;
    std::size_t wrong = 0;
    g.run([&](node_id n) { wrong += n.index() == (forwards ? expected++ : expected--) ? 0 : 1; });
    CHECK(wrong == 0);
    CHECK(g.critical_path([](node_id) { return 1; }).length == static_cast<int>(size));
}

TEST_CASE("a vertex with a hundred thousand parents and one with as many children take no longer than others",
          "[dag]") {
    constexpr std::uint32_t size = 100'000; // quadratic, this would be ten thousand million steps
    graph g;
    for (std::uint32_t i = 0; i < size + 2; ++i) g.add();
    for (std::uint32_t i = 0; i < size; ++i) {
        g.depend(node_id{i + 1}, node_id{0});
        g.depend(node_id{size + 1}, node_id{size - i});
    }
    g.validate();
    CHECK(g.edge_count() == 2 * size);
    CHECK(g.parents(node_id{size + 1}).size() == size);
    std::uint32_t ran = 0;
    g.run([&](node_id) { ++ran; });
    CHECK(ran == size + 2);
}

TEST_CASE("the critical path is the heaviest way through the graph", "[dag]") {
    graph g;
    auto const a = g.add();
    auto const b = g.add();
    auto const c = g.add();
    auto const d = g.add();
    auto const alone = g.add();
    g.depend(b, a);
    g.depend(c, a);
    g.depend(d, b);
    g.depend(d, c);

    auto const path = g.critical_path(std::vector<std::chrono::milliseconds>{5ms, 10ms, 11ms, 1ms, 16ms});
    CHECK(path.length == 17ms);
    CHECK(path.nodes == std::vector{a, c, d});
    auto const other = g.critical_path([](node_id n) { return n.index() == 4 ? 100.5 : 1.0; });
    CHECK(other.length == 100.5);
    CHECK(other.nodes == std::vector{alone});
    CHECK(g.critical_path(std::vector{1, 2, 2, 1, 4}).nodes == std::vector{a, b, d}); // the first of equals
    CHECK(g.critical_path(std::vector{0, 0, 0, 0, 0}).nodes ==
          std::vector{a, b, d}); // all the way, also without weight

    CHECK(refusal_of([&] { g.critical_path(std::vector{1, 2}); }) == "2 weights for 5 vertices");
    CHECK(refusal_of([&] { g.critical_path(std::vector{1, 2, -1, 0, 0}); }) == "weight of #2 is below zero");
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(refusal_of([&] { g.critical_path([&](node_id) { return nan; }); }) == "weight of #0 is below zero");
}

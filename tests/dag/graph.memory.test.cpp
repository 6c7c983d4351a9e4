// SPDX-License-Identifier: MIT
#include "ax/dag/graph.hpp"

#include "support/catch.hpp"
#include "support/counted_new.hpp"

#include <cstdint>
#include <new>
#include <string>

namespace {

using ax::dag::graph;
using ax::dag::node_id;

graph tree(std::uint32_t size) {
    graph g;
    for (std::uint32_t i = 0; i < size; ++i) g.add();
    for (std::uint32_t i = 1; i < size; ++i) g.depend(node_id{i}, node_id{(i - 1) / 2});
    return g;
}

struct losing_executor {
    template <class F>
    void execute(F) {}
};

} // namespace

TEST_CASE("a graph allocates nothing for a single vertex or edge", "[dag]") {
    constexpr std::uint32_t size = 100'000;
    auto const before = ax_test::allocations.load();
    auto const bytes_before = ax_test::bytes_held.load();
    auto const g = tree(size);
    CHECK(ax_test::allocations - before < 30); // one vector that doubles
    auto const built = ax_test::allocations.load();
    std::uint32_t ran = 0;
    g.run([&](node_id) { ++ran; });
    CHECK(ax_test::allocations == built); // parents were added first: there is nothing to find out
    losing_executor nobody;
    g.run(nobody, [&](node_id) { ++ran; });
    CHECK(ax_test::allocations - built <= 7);
    g.validate();
    CHECK(ax_test::allocations - built <= 9);
    CHECK(ran == 2 * size);
    CHECK(ax_test::bytes_held - bytes_before < 40 * size);
}

TEST_CASE("names cost a few blocks and not one each", "[dag]") {
    auto const before = ax_test::allocations.load();
    graph g;
    char name[40] = "a name that no small string holds: ";
    for (int i = 0; i < 10'000; ++i) {
        for (int digit = 0, rest = i; digit < 4; ++digit, rest /= 10)
            name[35 + digit] = static_cast<char>('0' + rest % 10);
        g.add(std::string_view{name, 39});
    }
    CHECK(ax_test::allocations - before < 100);
    CHECK(g.size() == 10'000);
}

TEST_CASE("a graph for which memory ends is as it was before", "[dag]") {
    graph g;
    for (int i = 0; i < 8; ++i) g.add("n" + std::to_string(i));
    g.depend("n1", "n0");
    bool done = false;
    for (std::int64_t allowed = 0; !done; ++allowed) {
        CAPTURE(allowed);
        std::string const name(100, 'x');
        auto const edges = g.edge_count();
        ax_test::allocations_left = allowed;
        bool named = false;
        try {
            for (int i = 0; i < 40; ++i) g.depend(node_id{7}, node_id{static_cast<std::uint32_t>(i % 7)});
            g.validate();
            g.add(name);
            named = true;
            done = true;
        } catch (std::bad_alloc const&) {
        }
        ax_test::allocations_left = ax_test::unlimited;
        CHECK(g.size() == (named ? 9 : 8));
        CHECK(g.find(name).has_value() == named);
        CHECK(g.edge_count() >= edges);
        CHECK(g.name(node_id{3}) == "n3");
        CHECK(g.topological_order().size() == g.size());
    }
    CHECK(g.edge_count() == 8);
}

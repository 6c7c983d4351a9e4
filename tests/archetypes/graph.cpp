// SPDX-License-Identifier: MIT
// A graph runs with the least that an executor and a function of vertices are. Compiled, never linked.
#include "ax/dag/graph.hpp"

#include "ax/core/unique_function.hpp"

namespace ax_test {

struct graph_executor {
    graph_executor() = delete;
    graph_executor(graph_executor const&) = delete;
    graph_executor& operator=(graph_executor const&) = delete;
    ~graph_executor() = delete;
    void execute(ax::unique_function<void()>);
};

// Neither copied nor moved, and its answer is not looked at.
struct vertex_function {
    vertex_function() = delete;
    vertex_function(vertex_function const&) = delete;
    vertex_function& operator=(vertex_function const&) = delete;
    ~vertex_function() = delete;
    bool operator()(ax::dag::node_id);
};

// Compared by < and >= alone.
struct weight {
    weight operator+(weight) const;
    bool operator<(weight) const;
    bool operator>=(weight) const;
};
struct weight_function {
    weight_function() = delete;
    weight_function(weight_function const&) = delete;
    weight operator()(ax::dag::node_id) const;
};

} // namespace ax_test

template void ax::dag::graph::run<ax_test::graph_executor&, ax_test::vertex_function&>(ax_test::graph_executor&,
                                                                                       ax_test::vertex_function&) const;
template void ax::dag::graph::run<ax_test::vertex_function&>(ax_test::vertex_function&) const;
template auto ax::dag::graph::critical_path<ax_test::weight_function>(ax_test::weight_function const&) const;

// SPDX-License-Identifier: MIT
// The graphs of tests/data/workflows: what people really run.
#include "ax/dag/graph.hpp"

#include "ax/dispatch/thread_pool.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using ax::dag::graph;
using ax::dag::node_id;

std::vector<std::filesystem::path> workflow_files() {
    std::vector<std::filesystem::path> files;
    for (auto const& entry : std::filesystem::directory_iterator(test::data_file("workflows")))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

TEST_CASE("twelve real workflows are graphs that run in the order of their edges", "[dag][threads]") {
    ax::thread_pool pool{2};
    std::size_t largest = 0;
    std::size_t most_edges = 0;
    auto const files = workflow_files();
    REQUIRE(files.size() == 12);
    for (auto const& file : files) {
        CAPTURE(file.filename().string());
        std::ifstream in(file);
        auto const json = nlohmann::json::parse(in);
        graph g;
        std::vector<double> run_times;
        std::size_t edges = 0;
        for (auto const& task : json.at("tasks")) {
            g.add(task.at("id").get<std::string>());
            run_times.push_back(task.at("runtime_s").get<double>());
        }
        for (auto const& task : json.at("tasks"))
            for (auto const& parent : task.at("parents")) {
                g.depend(task.at("id").get<std::string>(), parent.get<std::string>());
                ++edges;
            }
        g.validate();
        CHECK(g.edge_count() == edges);
        largest = (std::max)(largest, g.size());
        most_edges = (std::max)(most_edges, edges);

        std::map<std::string, std::size_t> place; // by name, as a user would
        for (auto const n : g.topological_order()) place.emplace(g.name(n), place.size());
        REQUIRE(place.size() == json.at("tasks").size());
        std::size_t wrong = 0;
        for (auto const& task : json.at("tasks"))
            for (auto const& parent : task.at("parents"))
                wrong += place.at(parent.get<std::string>()) < place.at(task.at("id").get<std::string>()) ? 0 : 1;
        CHECK(wrong == 0);

        std::vector<std::atomic<bool>> ended(g.size());
        std::atomic<std::size_t> ran{0};
        std::atomic<std::size_t> too_early{0};
        g.run(pool, [&](node_id n) {
            for (auto const p : g.parents(n)) too_early += ended[p.index()] ? 0 : 1;
            ended[n.index()] = true;
            ++ran;
        });
        CHECK(ran == g.size());
        CHECK(too_early == 0);

        auto const path = g.critical_path(run_times);
        double sum = 0;
        for (auto const n : path.nodes) sum += run_times[n.index()];
        CHECK(std::abs(sum - path.length) < 1e-6);
        CHECK(path.length >= *std::max_element(run_times.begin(), run_times.end()));
        CHECK(g.parents(path.nodes.front()).empty());
        CHECK(g.children(path.nodes.back()).empty());
    }
    CHECK(largest == 1'695);
    CHECK(most_edges == 4'000);
}

// SPDX-License-Identifier: MIT
// The example of docs/dag.md, which is compared with what stands here.
#include <ax/dag/graph.hpp>

#include "ax/dispatch/thread_pool.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

namespace {

std::string text_of(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST_CASE("the example of the page on graphs does what it says", "[dag][docs][threads]") {
    ax::thread_pool pool{2};
    std::mutex mutex;
    std::vector<std::string> done;
    auto const make = [&](std::string_view what) {
        std::lock_guard const lock{mutex};
        done.emplace_back(what);
    };

    // example
    ax::dag::graph g;
    for (auto name : {"compile", "test", "document", "release"}) g.add(name);
    g.depend("test", "compile");
    g.depend("document", "compile");
    g.depend("release", "test");
    g.depend("release", "document");

    g.run(pool, [&](ax::dag::node_id n) { make(g.name(n)); }); // test and document side by side
    // end

    REQUIRE(done.size() == 4);
    CHECK(done.front() == "compile");
    CHECK(done.back() == "release");

    g.depend("compile", "release");
    std::string refusal;
    try {
        g.validate();
    } catch (ax::error const& e) {
        refusal = e.what();
    }
    CHECK(refusal.starts_with("cycle: compile -> test -> release -> compile"));
}

TEST_CASE("the page on graphs shows the example as it is tested", "[dag][docs]") {
    auto const self = text_of(test::project_file("tests/dag/graph.example.test.cpp"));
    auto const begin = self.find("    // example\n") + std::string("    // example\n").size();
    std::string code = self.substr(begin, self.find("    // end\n") - begin);
    code.erase(0, 4);
    for (auto at = code.find("\n    "); at != code.npos; at = code.find("\n    ", at + 1)) code.erase(at + 1, 4);
    CHECK(code.size() > 300);
    CHECK(text_of(test::project_file("docs/dag.md")).find(code) != std::string::npos);
}

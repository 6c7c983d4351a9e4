// SPDX-License-Identifier: MIT
#include "include_order/include_order.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

using ax_test::header_tree;
using ax_test::wrong_includes;
using wrong = std::vector<std::string>;

header_tree read_headers(std::filesystem::path const& root) {
    header_tree tree;
    for (auto const& entry : std::filesystem::recursive_directory_iterator{root / "ax"}) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file{entry.path(), std::ios::binary};
        tree[entry.path().lexically_relative(root).generic_string()] = {std::istreambuf_iterator<char>{file}, {}};
    }
    return tree;
}

} // namespace

TEST_CASE("the headers include only what comes before them", "[include_order]") {
    auto const tree = read_headers(test::project_file("include"));
    REQUIRE(tree.contains("ax/core/error.hpp"));
    CHECK(wrong_includes(tree) == wrong{});
}

TEST_CASE("the order lets a header use earlier modules, its own, and other libraries", "[include_order]") {
    CHECK(wrong_includes({
              {"ax/version.hpp", "#pragma once\n"},
              {"ax/core/error.hpp", "#include \"ax/version.hpp\"\n#include <vector>\n#include <fmt/core.h>\n"},
              {"ax/core/detail/text.hpp", ""},
              {"ax/core/ids.hpp", "#include \"ax/core/detail/text.hpp\"\n#include \"ax/core/error.hpp\"\n"},
              {"ax/wheel/timing_wheel.hpp", "#include \"ax/core/ids.hpp\"\n// #include \"ax/dag/graph.hpp\"\n"},
              {"ax/storage/concept.hpp", "#include \"ax/task/record.hpp\"\n"},
              {"ax/storage/sqlite.hpp", "#include \"ax/storage/concept.hpp\"\n"
                                        "#include \"ax/storage/detail/sqlite_statements.hpp\"\n"},
              {"ax/scheduler/scheduler.hpp", "#include \"ax/storage/sqlite.hpp\"\n"},
              {"ax/testing/manual_clock.hpp", "#include \"ax/scheduler/scheduler.hpp\"\n"},
              {"ax/ax.hpp", "#include \"ax/scheduler/scheduler.hpp\"\n"},
          }) == wrong{});
}

TEST_CASE("an arrow that points back is found and named", "[include_order]") {
    CHECK(wrong_includes({{"ax/core/error.hpp", "#pragma once\n\n  #  include <ax/time/clock.hpp> // why\n"}}) ==
          wrong{"ax/core/error.hpp -> ax/time/clock.hpp: includes a later module"});
    CHECK(wrong_includes({{"ax/storage/concept.hpp", "#include \"ax/scheduler/explain.hpp\""}}) ==
          wrong{"ax/storage/concept.hpp -> ax/scheduler/explain.hpp: includes a later module"});
}

TEST_CASE("the five that do not know each other stay strangers", "[include_order]") {
    auto const strangers = {"wheel", "state", "retry", "cron", "dag"};
    for (std::string const from : strangers)
        for (std::string const to : strangers) {
            CAPTURE(from, to);
            auto const found = wrong_includes({{"ax/" + from + "/a.hpp", "#include \"ax/" + to + "/b.hpp\"\n"}});
            CHECK(found.size() == (from == to ? 0u : 1u));
        }
}

TEST_CASE("private parts, the test kit, backends and ax.hpp are out of bounds", "[include_order]") {
    auto const reason = [](std::string const& from, std::string const& to) {
        auto const found = wrong_includes({{from, "#include \"" + to + "\"\n"}});
        return found.empty() ? std::string{} : found.front().substr(found.front().find(": ") + 2);
    };
    CHECK(reason("ax/time/clock.hpp", "ax/core/detail/text.hpp") == "includes a private part of another module");
    CHECK(reason("ax/scheduler/scheduler.hpp", "ax/testing/manual_clock.hpp") == "includes a test kit");
    CHECK(reason("ax/ax.hpp", "ax/testing/manual_clock.hpp") == "includes a test kit");
    CHECK(reason("ax/testing/simulation.hpp", "ax/ax.hpp") == "includes everything");
    CHECK(reason("ax/storage/concept.hpp", "ax/storage/memory.hpp") == "includes a backend");
    CHECK(reason("ax/storage/sqlite.hpp", "ax/storage/memory.hpp") == "includes a backend");
    CHECK(reason("ax/storage/detail/sqlite_statements.hpp", "ax/storage/detail/postgresql_codec.hpp") ==
          "includes a backend");
    CHECK(reason("ax/fwd.hpp", "ax/core/ids.hpp") == "includes a later module");
    CHECK(reason("ax/core/error.hpp", "detail/text.hpp") == "does not write the path from ax/ on");
    CHECK(reason("ax/core/error.hpp", "ax/elsewhere/text.hpp") == "includes a module that is not in the order");
    CHECK(reason("ax/elsewhere/text.hpp", "ax/core/error.hpp") == "is in no module of the order");
}

TEST_CASE("a cycle inside a module is found with its path", "[include_order]") {
    CHECK(wrong_includes({{"ax/core/a.hpp", "#include \"ax/core/b.hpp\"\n"},
                          {"ax/core/b.hpp", "#include \"ax/core/c.hpp\"\n"},
                          {"ax/core/c.hpp", "#include \"ax/core/a.hpp\"\n"},
                          {"ax/core/d.hpp", "#include \"ax/core/a.hpp\"\n"}}) ==
          wrong{"cycle: ax/core/a.hpp -> ax/core/b.hpp -> ax/core/c.hpp -> ax/core/a.hpp",
                "cycle: ax/core/b.hpp -> ax/core/c.hpp -> ax/core/a.hpp -> ax/core/b.hpp",
                "cycle: ax/core/c.hpp -> ax/core/a.hpp -> ax/core/b.hpp -> ax/core/c.hpp"});
}

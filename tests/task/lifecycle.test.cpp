// SPDX-License-Identifier: MIT
#include "ax/task/lifecycle.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

using ax::lifecycle;
using ax::task_state;

namespace {

// The next states of every code, as the design lists them.
constexpr std::string_view next_codes[10] = {"16789", "267", "3167", "456781", "", "267", "14", "1", "0", "0"};

constexpr task_state state(int code) { return static_cast<task_state>(code); }

std::string read(std::string const& path) {
    std::ifstream file{path, std::ios::binary};
    REQUIRE(file);
    return {std::istreambuf_iterator<char>{file}, {}};
}

} // namespace

TEST_CASE("the codes of the task states are those that stores hold", "[task]") {
    STATIC_REQUIRE(std::is_same_v<std::underlying_type_t<task_state>, std::uint8_t>);
    constexpr std::array names{"created", "ready", "dispatched", "running", "succeeded",
                               "failed",  "dead",  "cancelled",  "skipped", "upstream_failed"};
    REQUIRE(lifecycle.states().size() == names.size());
    for (int code = 0; code < 10; ++code) {
        CAPTURE(code);
        CHECK(lifecycle.states()[static_cast<std::size_t>(code)] == state(code));
        CHECK(to_string(state(code)) == names[static_cast<std::size_t>(code)]);
        CHECK(lifecycle.name(state(code)) == names[static_cast<std::size_t>(code)]);
    }
}

TEST_CASE("the lifecycle has exactly the edges of the design", "[task]") {
    std::size_t edges = 0;
    for (int from = 0; from < 10; ++from) {
        for (int to = 0; to < 10; ++to) {
            CAPTURE(from, to);
            bool const expected = next_codes[from].find(static_cast<char>('0' + to)) != std::string_view::npos;
            CHECK(lifecycle.allowed(state(from), state(to)) == expected);
            if (expected) {
                ++edges;
                CHECK(lifecycle.go(state(from), state(to)) == state(to));
            } else {
                CHECK_THROWS_AS(lifecycle.go(state(from), state(to)), ax::error);
            }
        }
    }
    CHECK(lifecycle.edges().size() == edges);
    CHECK(edges == 26);
}

TEST_CASE("an illegal change of a task names both states and what is allowed", "[task]") {
    try {
        lifecycle.go(task_state::dead, task_state::running);
        FAIL("went on");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        CHECK(std::string{e.what()} ==
              "no edge leads from dead to running (allowed: ready, succeeded): invalid argument");
    }
}

TEST_CASE("a succeeded task never changes", "[task]") {
    CHECK(lifecycle.targets(task_state::succeeded).empty());
    CHECK(lifecycle.is_terminal(task_state::succeeded));
}

TEST_CASE("terminal, active and claimable are told apart", "[task]") {
    for (auto s : lifecycle.states()) {
        CAPTURE(to_string(s));
        auto const code = static_cast<int>(s);
        CHECK(is_terminal(s) == (code == 4 || code >= 6));
        CHECK(is_active(s) == (code == 2 || code == 3));
        CHECK(is_claimable(s) == (code == 1 || code == 5));
        CHECK(is_claimable(s) == lifecycle.allowed(s, task_state::dispatched)); // what a claim may take is what it can
    }
    CHECK_FALSE(is_terminal(state(10)));
}

TEST_CASE("every task that is not at an end can be cancelled", "[task]") {
    for (auto s : lifecycle.states()) CHECK(lifecycle.allowed(s, task_state::cancelled) == !is_terminal(s));
}

TEST_CASE("a state is parsed from its exact name and from nothing else", "[task]") {
    for (auto s : lifecycle.states()) CHECK(ax::parse_task_state(to_string(s)) == s);
    for (auto text : {"", "Ready", " ready", "ready ", "unknown", "rea", "1", "upstream failed"}) {
        CAPTURE(text);
        CHECK_FALSE(ax::parse_task_state(text).has_value());
    }
}

TEST_CASE("a number that is no state is refused", "[task]") {
    for (int code = 0; code < 10; ++code) CHECK(ax::task_state_of(code) == state(code));
    for (std::int64_t code : {std::int64_t{-1}, std::int64_t{10}, std::int64_t{255}, std::int64_t{256},
                              std::int64_t{257}, INT64_MAX, INT64_MIN}) {
        CAPTURE(code);
        CHECK_FALSE(ax::task_state_of(code).has_value());
    }
    CHECK(to_string(state(10)) == "unknown");
    CHECK_FALSE(lifecycle.allowed(state(10), task_state::ready));
}

TEST_CASE("the diagram and the table in the documents are drawn from the lifecycle", "[task]") {
    auto const page = read(test::project_file("docs/lifecycle.md"));
    CHECK(page.find("```mermaid\n" + lifecycle.to_mermaid() + "```\n") != std::string::npos);
    CHECK(page.find("```text\n" + lifecycle.to_text() + "```\n") != std::string::npos);
}

static_assert(lifecycle.allowed(task_state::failed, task_state::dispatched));
static_assert(lifecycle.go<task_state::running, task_state::skipped>() == task_state::skipped);
static_assert(ax::parse_task_state("dead") == task_state::dead);

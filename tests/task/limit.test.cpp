// SPDX-License-Identifier: MIT
#include "ax/task/limit.hpp"

#include "support/catch.hpp"

#include <string>
#include <string_view>

using namespace std::chrono_literals;

namespace {

/// What check_limit() says of it; empty where it is good.
std::string fault(ax::limit const& how) {
    try {
        ax::detail::check_limit(how, "tag \"x\"");
        return {};
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        CHECK(std::string_view{e.what()}.find("tag \"x\"") != std::string_view::npos);
        return e.what();
    }
}

} // namespace

TEST_CASE("a limit that says nothing limits nothing", "[task][limits]") {
    CHECK_FALSE(ax::limit{}.concurrency.has_value());
    CHECK_FALSE(ax::limit{}.rate.has_value());
    CHECK(fault({}).empty());
    CHECK(ax::resource_need{}.amount == 1);
    CHECK(ax::rate{3, 1s}.burst == 0);
}

TEST_CASE("a limit of zero, or one that cannot be, is refused", "[task][limits]") {
    constexpr auto day = std::chrono::hours{24};
    CHECK(fault({.concurrency = 1}).empty());
    CHECK(fault({.concurrency = ax::largest_limit}).empty());
    CHECK_FALSE(fault({.concurrency = 0}).empty());
    CHECK_FALSE(fault({.concurrency = ax::largest_limit + 1}).empty());
    CHECK_FALSE(fault({.concurrency = static_cast<std::size_t>(-1)}).empty());
    CHECK(fault({.rate = ax::rate{1, 1ms}}).empty());
    CHECK_FALSE(fault({.rate = ax::rate{0, 1s}}).empty());
    CHECK_FALSE(fault({.rate = ax::rate{1, 0ms}}).empty());
    CHECK_FALSE(fault({.rate = ax::rate{1, -1ms}}).empty());
    CHECK(fault({.rate = ax::rate{1, 366 * day}}).empty());
    CHECK_FALSE(fault({.rate = ax::rate{1, 366 * day + 1ms}}).empty());
    CHECK_FALSE(fault({.rate = ax::rate{1, 1s, ax::largest_limit + 1}}).empty());
}

TEST_CASE("a bucket takes at most a thousand years to fill", "[task][limits]") {
    constexpr auto day = std::chrono::hours{24};
    CHECK(fault({.rate = ax::rate{1, 366 * day, 999}}).empty());
    CHECK_FALSE(fault({.rate = ax::rate{1, 366 * day, 1'000}}).empty());
    CHECK(fault({.rate = ax::rate{1, 1ms, ax::largest_limit}}).empty());
    CHECK(fault({.rate = ax::rate{ax::largest_limit, 366 * day, ax::largest_limit}}).empty());
}

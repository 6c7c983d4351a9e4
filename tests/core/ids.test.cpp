// SPDX-License-Identifier: MIT
#include "ax/core/ids.hpp"

#include "support/catch.hpp"

#include <type_traits>

TEST_CASE("ids are numbers that cannot be taken for each other", "[core]") {
    CHECK(ax::to_number(ax::task_id{7}) == 7);
    CHECK(ax::to_number(ax::node_id{~std::uint64_t{0}}) == ~std::uint64_t{0});
    CHECK(ax::fence_token{2} > ax::fence_token{1});
    STATIC_REQUIRE_FALSE(std::is_convertible_v<ax::task_id, ax::node_id>);
    STATIC_REQUIRE_FALSE(std::is_convertible_v<std::uint64_t, ax::task_id>);
}

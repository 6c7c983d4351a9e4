// SPDX-License-Identifier: MIT
#include "ax/core/error.hpp"

#include "support/catch.hpp"

#include <string>

TEST_CASE("an error carries its code and names the thing that is wrong", "[core]") {
    ax::error const e{ax::errc::locked, "shop.db"};
    CHECK(e.code() == ax::errc::locked);
    CHECK(e.kind() == ax::errc::locked);
    CHECK(std::string{e.what()} == "shop.db: store locked");
}

TEST_CASE("only what may pass by itself is transient", "[core]") {
    CHECK(ax::error{ax::errc::unavailable, "x"}.transient());
    CHECK(ax::error{ax::errc::disk_full, "x"}.transient());
    CHECK(ax::error{ax::errc::queue_full, "x"}.transient());
    CHECK_FALSE(ax::error{ax::errc::invalid_argument, "x"}.transient());
    CHECK_FALSE(ax::error{ax::errc::outcome_unknown, "x"}.transient());
}

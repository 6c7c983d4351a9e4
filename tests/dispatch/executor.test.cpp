// SPDX-License-Identifier: MIT
#include "ax/dispatch/executor.hpp"

#include "support/catch.hpp"

#include <memory>
#include <utility>
#include <vector>

TEST_CASE("inline_executor calls work at once, once, and destroys it", "[dispatch]") {
    ax::inline_executor executor;
    auto const watched = std::make_shared<int>(0);
    auto owned = std::make_unique<int>(7);
    executor.execute([watched, owned = std::move(owned)] { *watched += *owned; });
    CHECK(*watched == 7);
    CHECK(watched.use_count() == 1);
}

TEST_CASE("inline_executor takes work from within work", "[dispatch]") {
    ax::inline_executor executor;
    std::vector<int> order;
    executor.execute([&] {
        order.push_back(1);
        executor.execute([&] { order.push_back(2); });
        order.push_back(3);
    });
    CHECK(order == std::vector{1, 2, 3});
}

TEST_CASE("inline_executor lets exceptions pass", "[dispatch]") {
    ax::inline_executor executor;
    CHECK_THROWS_AS(executor.execute([] { throw 1; }), int);
}

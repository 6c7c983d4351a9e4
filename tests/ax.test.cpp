// SPDX-License-Identifier: MIT
#include "ax/ax.hpp"

#include "support/catch.hpp"

#include "storage/sqlite_fixture.hpp"

#include <optional>
#include <string>
#include <type_traits>

using namespace std::chrono_literals;

namespace {

struct order {
    int number = 0;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(order, number)
};

inline constexpr ax::task_type<order> closing{"close-order"};
inline constexpr ax::task_type<> nightly{"nightly"};

static_assert(std::is_same_v<ax::sqlite_scheduler, ax::scheduler<ax::sqlite_storage>>);

} // namespace

TEST_CASE("one header is all of a durable scheduler: handlers, tasks, schedules, and what becomes of them", "[ax]") {
    temporary_directory const directory;
    auto const file = directory.file("shop.db");
    std::optional<int> closed;
    ax::task_id left{};
    {
        ax::sqlite_scheduler tasks{ax::sqlite_storage{file}, {.workers = 2}};
        tasks.on(closing, [&](order const& o) { closed = o.number; }, {.retry = ax::retry::fixed(1s), .timeout = 10s});
        auto const made = tasks.submit(closing, {42}, {.key = "close-42"});
        CHECK(made.outcome == ax::submit_outcome::inserted);
        tasks.poll(ax::now());
        CHECK(closed == 42);
        CHECK(tasks.find_by_key("close-42")->state == ax::task_state::succeeded);
        left = tasks.submit(closing, {43}, {.delay = 1h}).id;
        tasks.schedule("a", ax::cron{"0 0 3 * * *", "Asia/Shanghai"}, nightly);
        tasks.schedule("b", ax::every{30s}, nightly);
        tasks.schedule("c", ax::after_each{30s}, nightly);
        tasks.schedule("d", ax::once{ax::now() + 1h}, nightly);
        tasks.schedule("e", ax::calendar{ax::cron{"@daily"}}.except(ax::cron{"0 0 * * SUN"}), nightly);
    }
    ax::sqlite_scheduler again{ax::sqlite_storage{file}};
    REQUIRE(again.find(left).has_value());
    CHECK(again.find(left)->state == ax::task_state::ready);
    CHECK(again.schedules().size() == 5);
    CHECK(again.cancel(left) == ax::cancel_outcome::cancelled);
}

TEST_CASE("the one header brings the errors, the version and the present instant", "[ax]") {
    CHECK(std::string(AX_VERSION_STRING).size() >= 5);
    CHECK(ax::now() > ax::time_point{});
    temporary_directory const directory;
    CHECK_THROWS_AS((ax::sqlite_scheduler{ax::sqlite_storage{directory.file("a.db")}, {.workers = 0}}), ax::error);
}

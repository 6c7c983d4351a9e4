// SPDX-License-Identifier: MIT
// What an expression takes from the system: nothing, counted by replacing operator new for this whole program.
#include "ax/cron/expression.hpp"

#include "support/catch.hpp"
#include "support/counted_new.hpp"

#include <new>
#include <string_view>

using ax_test::allocations;

TEST_CASE("parsing, searching and copying an expression allocates nothing", "[cron]") {
    static_assert(sizeof(ax::cron_expression) <= 128);
    auto const berlin = ax::time_zone{"Europe/Berlin"};
    constexpr ax::time_point from{ax::duration{1'774'747'800'000}};
    static_cast<void>(ax::cron_expression::parse("0 0 * * *").next(from, berlin)); // the zone's table is there now
    for (std::string_view const text : {"* * * * *", "*/5 9-17 * * MON-FRI", "0 0 LW * *", "0 0 30 2 *", "0 0 29 2 *",
                                        "H H(0-5) * * 5#2", "0 0 12 ? 1-12/3 FRIL 2030", "@daily"}) {
        auto const before = allocations.load();
        auto const e = ax::cron_expression::parse(text, ax::cron_dialect::ax, "nightly");
        auto const copy = e;
        auto const next = copy.next(from, berlin);
        auto const prev = copy.prev(from, berlin);
        auto const during = allocations.load() - before;
        CAPTURE(text, next.has_value(), prev.has_value());
        CHECK(during == 0);
    }
    auto const before = allocations.load();
    auto* const some = ::operator new(1); // the counter counts
    CHECK(allocations.load() == before + 1);
    ::operator delete(some);
}

// SPDX-License-Identifier: MIT
// What a claim costs does not depend on how many wait behind it. Counted in steps of SQLite's virtual machine, which
// are the same in every run: a scan of those that wait would be seen, and so would a statement too many.
#include "ax/storage/sqlite.hpp"

#include "conformance/limits.hpp"
#include "storage/sqlite_fixture.hpp"

#include <sqlite3.h>

namespace {

using namespace conformance;
using cost_bench = limit_bench<sqlite_fixture>;

/// Steps that all statements of the writing connection have made since the last call.
std::int64_t steps_of(cost_bench& w) {
    std::int64_t sum = 0;
    w.write([&](auto& writer) {
        for (auto* each = sqlite3_next_stmt(writer.handle(), nullptr); each != nullptr;
             each = sqlite3_next_stmt(writer.handle(), each))
            sum += sqlite3_stmt_status(each, SQLITE_STMTSTATUS_VM_STEP, 1);
    });
    return sum;
}

/// The holder ends, and the next one is claimed: what the cycle costs, once it goes round and round.
std::int64_t cost_of_a_turn(cost_bench& w, ids const& all) {
    auto held = w.take(all[0]);
    std::size_t next = 1;
    std::int64_t cost = 0;
    for (int turn = 0; turn != 20; ++turn) {
        steps_of(w);
        auto const answer = w.finish(held, attempt_outcome::succeeded);
        REQUIRE(answer.due.size() == 1);
        CHECK(answer.due[0].id == all[next]);
        held = w.take(all[next++]);
        cost = steps_of(w);
    }
    return cost;
}

std::int64_t behind_one_limit(std::size_t count, limit const& how) {
    cost_bench w;
    w.limit_tag("x", how);
    auto const all = w.add_many(count, w.tagged({"x"}));
    auto const first = w.claim_all(all).claimed; // all others wait from now on
    REQUIRE(first.size() == 1);
    CHECK(w.upcoming().empty());
    w.finish(first.front(), attempt_outcome::released);
    return cost_of_a_turn(w, all);
}

std::int64_t behind_one_route_key(std::size_t count) {
    cost_bench w;
    return cost_of_a_turn(w, w.add_many(count, w.task_of("r")));
}

} // namespace

TEST_CASE("with 100,000 behind one limit a claim costs what it costs with 30", "[storage][sqlite][limits]") {
    auto const few = behind_one_limit(30, {1, {}});
    auto const many = behind_one_limit(100'000, {1, {}});
    CAPTURE(few, many);
    CHECK(few > 100);
    CHECK(many <= few + few / 20);
}

TEST_CASE("with 100,000 behind one route key a claim costs what it costs with 30", "[storage][sqlite][limits]") {
    auto const few = behind_one_route_key(30);
    auto const many = behind_one_route_key(100'000);
    CAPTURE(few, many);
    CHECK(few > 100);
    CHECK(many <= few + few / 20);
}

TEST_CASE("those that wait cost those that do not wait nothing", "[storage][sqlite][limits]") {
    auto const of_a_plain_task = [](std::size_t waiting, bool limits) {
        cost_bench w;
        if (limits) {
            w.limit_tag("x", {1, {}});
            w.limit_type(w.type("limited"), {1, rate{1, 1h}});
            w.claim_all(w.add_many(waiting, w.tagged({"x"})));
        }
        w.finish(w.take(w.add()), attempt_outcome::succeeded); // whatever is read once has been read
        steps_of(w);
        w.finish(w.take(w.add()), attempt_outcome::succeeded);
        return steps_of(w);
    };
    auto const without = of_a_plain_task(0, false);
    CHECK(of_a_plain_task(1'000, true) == without); // not one statement more
}

// SPDX-License-Identifier: MIT
// Limits under random lives, against counters that know nothing of how they are kept.
#include "ax/storage/memory.hpp"

#include "conformance/limits.hpp"
#include "conformance/walk.hpp"
#include "storage/memory_fixture.hpp"

#include <map>
#include <random>
#include <set>

namespace {

using namespace conformance;

/// The first of each line that would be worth a claim, now or later, and has not come too late.
std::vector<ax::alarm> first_ones(ax::memory_storage const& store, ax::time_point now) {
    std::vector<ax::alarm> answer;
    std::set<std::pair<limit_number, ax::lane_id>> seen;
    for (auto const& each : store.waiting({}, 1'000, now).due) {
        auto const task = *store.find(each.id);
        if (!seen.emplace(task.waits_for, each.lane).second) continue;
        if (!task.deadline || *task.deadline > now) answer.push_back(each);
    }
    return answer;
}

/// Tries it, and undoes it.
bool could_be_claimed(ax::memory_storage& store, ax::task_id id, ax::time_point now) {
    operation op;
    op.what = verb::claim;
    op.claims = {node_a, now, now + 750ms, 100}; // as far ahead as the walk claims
    op.requests = {{id, false}};
    return !perform_all(store, {op}, true).at(0).text.empty();
}

} // namespace

TEST_CASE("whoever is first in a line that has room has been named", "[storage][memory][limits]") {
    std::size_t firsts = 0;
    for (std::uint32_t seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        ax::memory_storage store;
        walk life(seed);
        std::map<ax::task_id, ax::time_point> outstanding; // as an alarm clock would have them
        auto last = life.now();
        for (int step = 1; step <= 600; ++step) {
            auto const ops = life.next(store);
            bool const undone = step > 1 && life.one_in(12);
            auto const answers = perform_all(store, ops, undone);
            CAPTURE(step, show(ops.front()), ops.size(), undone);
            bool anew = life.now() < last; // who sets clocks back reads everything again
            last = life.now();
            for (std::size_t i = 0; i < ops.size() && !undone; ++i) {
                anew = anew || ops[i].what == verb::reclaim; // so does who starts
                if (ops[i].what == verb::claim)
                    for (auto const& request : ops[i].requests) outstanding.erase(request.id);
                for (auto const& each : answers[i].due) {
                    if (!each.waits) continue;
                    auto const [at, added] = outstanding.emplace(each.id, each.run_at);
                    if (!added) at->second = (std::min)(at->second, each.run_at);
                }
            }
            if (anew)
                for (auto const& each : store.waiting({}, 1'000, life.now()).due) outstanding[each.id] = each.run_at;
            for (auto const& each : first_ones(store, life.now())) {
                CAPTURE(show(*store.find(each.id)), each);
                ++firsts;
                auto const named = outstanding.find(each.id);
                REQUIRE(named != outstanding.end());
                // Where the alarm is yet to ring, a claim now would take nothing.
                bool const due = store.find(each.id)->run_at <= life.now();
                if (due && named->second > life.now()) REQUIRE_FALSE(could_be_claimed(store, each.id, life.now()));
            }
        }
    }
    CHECK(firsts > 1'000);
}

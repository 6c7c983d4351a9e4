// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/differential.hpp"
#include "storage/memory_fixture.hpp"

#include <map>

namespace {

using namespace conformance;

/// A step of the life of a task, or several at once where a transaction makes several.
bool is_path(task_state from, task_state to, std::size_t edges) {
    if (from == to) return true;
    if (edges == 0) return false;
    for (auto const next : ax::lifecycle.states())
        if (ax::lifecycle.allowed(from, next) && is_path(next, to, edges - 1)) return true;
    return false;
}

std::map<ax::task_id, ax::task_record> all_of(ax::memory_storage const& store) {
    std::map<ax::task_id, ax::task_record> tasks;
    ax::task_filter everything;
    everything.limit = 1'000'000;
    for (auto& task : store.list(everything, t0)) tasks.emplace(task.id, std::move(task));
    return tasks;
}

bool is_due(ax::task_record const& task) {
    return ax::is_claimable(task.state) && !task.blocked && !task.held && task.waits_for == ax::limit_number{};
}

} // namespace

TEST_CASE("memory_storage keeps its invariants through a random life", "[storage][memory]") {
    std::map<std::string, std::size_t> seen; // what the walks have led to, lest they prove nothing
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
        CAPTURE(seed);
        ax::memory_storage store;
        walk life(seed, true);
        auto before = all_of(store);
        for (int step = 1; step <= 600; ++step) {
            auto const ops = life.next(store);
            bool const undone = step > 1 && life.one_in(12);
            auto const untouched = undone ? read_all(store, life.now()) : std::vector<std::string>{};
            auto const answers = perform_all(store, ops, undone);
            CAPTURE(step, show(ops.front()), ops.size(), undone);
            REQUIRE(store.check_invariants() == "");
            if (undone) {
                REQUIRE(read_all(store, life.now()) == untouched);
                continue;
            }

            auto after = all_of(store);
            alarm_set announced;
            bool reclaimed = false;
            for (std::size_t i = 0; i < ops.size(); ++i) {
                announced.merge(true_alarms(answers[i].due, store));
                reclaimed = reclaimed || ops[i].what == verb::reclaim;
                if (answers[i].text.find("outcome=2") != std::string::npos) ++seen["replaced"];
                if (answers[i].text.find("outcome=3") != std::string::npos) ++seen["rejected"];
            }
            for (auto const& [id, task] : after) {
                auto const old = before.find(id);
                CAPTURE(show(task));
                if (old != before.end()) {
                    auto const& was = old->second;
                    REQUIRE(is_path(was.state, task.state, 2 * ops.size()));
                    REQUIRE(task.version >= was.version);
                    REQUIRE(task.fence >= was.fence);
                    if (was.state == task_state::succeeded) {
                        auto same = was; // but for its key, which may pass to another
                        same.key_released = was.key_released || task.key_released;
                        REQUIRE(show(task) == show(same));
                    }
                    if (task.state != was.state) REQUIRE(task.version > was.version);
                    if (task.state != was.state) ++seen[std::string{to_string(task.state)}];
                }
                // Whatever can be claimed now and could not before, or at another time, has been announced: else the
                // alarm clock would never ring. Only reclaim() has no answer for it; a start reads everything anyway.
                // So has a suspect that a claim left: its answer names it apart.
                bool const left = old != before.end() && old->second.waits_for != ax::limit_number{} &&
                                  old->second.version == task.version && task.unclean_ends >= 2;
                bool const news =
                    !left && (old == before.end() || !is_due(old->second) || old->second.run_at != task.run_at);
                if (is_due(task) && news && !reclaimed)
                    REQUIRE(std::any_of(announced.begin(), announced.end(),
                                        [id = id](auto const& each) { return std::get<2>(each) == id; }));
                if (task.held) ++seen["held"];
                if (task.blocked) ++seen["blocked"];
                if (task.waits_for != ax::limit_number{}) ++seen["limited"];
                if (task.lonely) ++seen["lonely"];
                if (task.key_released) ++seen[ax::is_terminal(task.state) ? "key let go" : "key passed on"];
                if (task.key_scope == ax::key_scope::active && task.attempts > 0 && !task.key_released &&
                    task.state == task_state::ready)
                    ++seen["key held again"];
                if (task.last_error.starts_with("poison")) ++seen["poisoned"];
            }
            for (auto const& [id, task] : before)
                if (!after.contains(id)) {
                    CAPTURE(show(task));
                    REQUIRE(ax::is_terminal(task.state));
                    ++seen["pruned"];
                }
            before = std::move(after);
        }
    }
    for (auto const* what :
         {"ready", "dispatched", "running", "succeeded", "failed", "dead", "cancelled", "skipped", "held", "blocked",
          "lonely", "poisoned", "replaced", "rejected", "key let go", "key passed on", "key held again", "pruned"}) {
        CAPTURE(what);
        CHECK(seen[what] > 0);
    }
}

TEST_CASE("memory_storage agrees with another of its kind", "[storage][memory]") {
    // What this shows is that the comparison itself is sound: nothing in it depends on the run.
    storage_differential<memory_fixture>(1, 1'000);
}

TEST_CASE("memory_storage moves with all that it keeps", "[storage][memory]") {
    workbench<memory_fixture> w;
    auto const id = w.add();
    auto moved = std::move(w.store);
    CHECK(moved.find(id).has_value());
    ax::memory_storage assigned;
    assigned = std::move(moved);
    CHECK(assigned.find(id).has_value());
    CHECK(assigned.check_invariants() == "");
}

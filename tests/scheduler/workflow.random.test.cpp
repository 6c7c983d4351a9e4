// SPDX-License-Identifier: MIT
// Random workflows by the scheduler as a whole, against a model that knows the graph and how each task ends, and
// nothing of order, time, crashes, generations or the storage: whatever is done meanwhile, each task comes to its end.
#include "scheduler/support.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace {

using namespace test;

enum class ending { succeeds, recovers, dies, skips };

struct vertex {
    std::set<std::string> parents;
    ax::trigger_rule when = ax::trigger_rule::all_success;
    ending how = ending::succeeds;
    int adds = 0; ///< how many tasks its handler adds, each behind the one before
    bool routed = false;
};

class workflow_life : bench {
  public:
    explicit workflow_life(std::uint32_t seed) : random_(seed), changes_(seed % 2 == 0) {
        auto const size = 2 + below(9);
        for (std::size_t i = 0; i != size; ++i) {
            auto& one = graph_["t" + std::to_string(i)];
            for (std::size_t j = 0; j != i; ++j)
                if (below(3) == 0) one.parents.insert("t" + std::to_string(j));
            one.when = below(2) == 0 ? ax::trigger_rule::all_success : ax::all_trigger_rules[below(12)];
            one.how = some_ending();
            if (below(4) == 0) one.adds = 1 + static_cast<int>(below(3));
            one.routed = below(4) == 0;
        }
        for (auto const& [name, one] : std::map(graph_)) // what may be added stands in the model from the start
            for (int i = 0; i != one.adds; ++i) graph_[added(name, i)].how = some_ending();
        prepare();
        id_ = tasks().submit(woven()).id;
    }

    void live(int steps) {
        for (int i = 0; i != steps; ++i) {
            step();
            clock.advance(ax::duration{static_cast<std::int64_t>(below(1'500))});
        }
        store.hooks() = {};
        for (int rounds = 0; !has_ended(); ++rounds) {
            REQUIRE(rounds < 50);
            tasks().resume_workflow(id_);
            run_for(1min);
            if (auto const now = status(); now.unfinished() == 0 && now.cancelled != 0)
                CHECK(tasks().retry(id_) == change_outcome::done);
        }
        compare();
    }

    std::size_t crashes = 0;
    std::size_t reruns = 0;
    std::size_t cancels = 0;

  private:
    simulated& tasks() { return **static_cast<bench*>(this); }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
    ending some_ending() {
        constexpr ending all[] = {ending::succeeds, ending::succeeds, ending::recovers, ending::dies, ending::skips};
        return all[below(5)];
    }
    static std::string added(std::string const& by, int i) { return by + "." + std::to_string(i); }

    ax::workflow woven() {
        ax::workflow w{"w"};
        std::map<std::string, ax::workflow_task> made;
        for (std::size_t i = 0; graph_.contains("t" + std::to_string(i)); ++i) {
            auto const name = "t" + std::to_string(i);
            auto const& one = graph_[name];
            ax::workflow_task_options how{.name = name, .when = one.when};
            for (auto const& parent : one.parents) how.after.push_back(made.at(parent));
            if (one.routed) how.route_key = "r";
            made.emplace(name, w.add(shipping, {0, name}, how));
        }
        return w;
    }

    void prepare() {
        restart([this](simulated& tasks) {
            store.hooks() = {}; // the storage is there again
            tasks.on(shipping, [this](parcel const& p, ax::context& ctx) { handle(p.note, ctx); },
                     {.retry = ax::retry::fixed(1s).attempts(1'000), .concurrency = 2});
        });
    }

    void handle(std::string const& name, ax::context& ctx) {
        auto const& one = graph_.at(name);
        ax::parent_counts counts;
        for (auto const& parent : ctx.parents()) count(counts, parent.state);
        CAPTURE(name);
        CHECK(ax::decide(one.when, counts) == ax::trigger_decision::run); // nothing starts before its rule holds
        switch (one.how) {
        case ending::recovers:
            if (failed_once_.insert(name).second) throw std::runtime_error("not yet");
            break;
        case ending::dies: throw ax::give_up{"broken"};
        case ending::skips: throw ax::skip{"nothing to do"};
        case ending::succeeds: break;
        }
        std::vector<ax::workflow_task> last;
        for (int i = 0; i != one.adds; ++i)
            last = {ctx.add(shipping, {0, added(name, i)}, {.name = added(name, i), .after = last})};
    }

    static void count(ax::parent_counts& counts, task_state state) {
        ++counts.total;
        counts.succeeded += state == task_state::succeeded;
        counts.failed += state == task_state::dead || state == task_state::cancelled;
        counts.skipped += state == task_state::skipped;
        counts.upstream_failed += state == task_state::upstream_failed;
    }

    ax::workflow_record status() { return *tasks().find_workflow(id_); }
    bool has_ended() {
        auto const now = status();
        return now.unfinished() == 0 && ax::is_terminal(now.state) && now.state != task_state::cancelled &&
               now.cancelled == 0;
    }

    void step() {
        auto& tasks = this->tasks();
        auto const what = below(20);
        if (what < 11) {
            try {
                poll();
            } catch (ax::error const&) {
            }
        } else if (what < 14) {
            int left = static_cast<int>(below(4));
            store.hooks().before_transact = [left]() mutable {
                if (left-- <= 0) throw ax::error(ax::errc::unavailable, "the process ends here");
            };
            try {
                poll();
            } catch (ax::error const&) {
            }
            ++crashes;
            prepare(); // what it had claimed and not recorded is left behind
        } else if (what < 15) {
            cancels += tasks.cancel(id_) != cancel_outcome::too_late;
        } else if (what < 16) {
            (void)tasks.retry(id_);
        } else if (what < 17) {
            (void)tasks.pause_workflow(id_);
        } else if (what < 18) {
            (void)tasks.resume_workflow(id_);
        } else {
            rerun(tasks);
        }
    }

    void rerun(simulated& tasks) {
        std::vector<ax::member_record> ended;
        for (auto& each : tasks.workflow_tasks(id_))
            if (!each.outdated && ax::is_terminal(each.state)) ended.push_back(each);
        // Beside cancelled tasks others would run upon those, and the model knows of none.
        if (ended.empty() || status().stopping || status().cancelled != 0) return;
        auto const& one = ended[below(ended.size())];
        // Another end would be that of the model only where all that has run upon the former one runs again.
        auto const scope = changes_ || below(2) == 0 ? ax::below::all : ax::below::unfinished;
        if (tasks.rerun(one.id, scope).outcome != change_outcome::done) return;
        ++reruns;
        if (changes_) graph_[one.name].how = some_ending();
    }

    void compare() {
        auto const members = tasks().workflow_tasks(id_);
        std::map<std::string, task_state> expected;
        std::map<std::string, std::set<std::string>> parents;
        for (auto const& [name, one] : graph_) parents[name].insert(one.parents.begin(), one.parents.end());
        for (std::size_t i = 0; graph_.contains("t" + std::to_string(i)); ++i) {
            auto const name = "t" + std::to_string(i);
            auto const& one = graph_.at(name);
            expected[name] = end_of(one, parents[name], expected);
            if (expected[name] != task_state::succeeded || one.adds == 0) continue;
            std::string last = name;
            for (int k = 0; k != one.adds; last = added(name, k++))
                expected[added(name, k)] = end_of(graph_.at(added(name, k)), {last}, expected);
            for (auto& [child, its] : parents)
                if (its.contains(name)) its.insert(last);
        }
        std::set<task_id> with_children;
        for (auto const& each : members) with_children.insert(each.parents.begin(), each.parents.end());
        std::size_t found = 0;
        bool failed = false;
        for (auto const& each : members) {
            if (each.outdated) continue;
            CAPTURE(each.name, each.generation);
            ++found;
            REQUIRE(expected.contains(each.name));
            CHECK(each.state == expected.at(each.name));
            failed = failed || (!with_children.contains(each.id) && each.state != task_state::succeeded &&
                                each.state != task_state::skipped);
        }
        CHECK(found == expected.size()); // each once
        CHECK(status().total() == found);
        CHECK(status().state == (failed ? task_state::upstream_failed : task_state::succeeded));
        CHECK(store.verify().empty());
    }

    static task_state end_of(vertex const& one, std::set<std::string> const& parents,
                             std::map<std::string, task_state> const& ends) {
        ax::parent_counts counts;
        for (auto const& parent : parents) count(counts, ends.at(parent));
        switch (ax::decide(one.when, counts)) {
        case ax::trigger_decision::skip: return task_state::skipped;
        case ax::trigger_decision::upstream_failed: return task_state::upstream_failed;
        case ax::trigger_decision::wait: return task_state::created;
        case ax::trigger_decision::run: break;
        }
        return one.how == ending::dies    ? task_state::dead
               : one.how == ending::skips ? task_state::skipped
                                          : task_state::succeeded;
    }

    std::mt19937 random_;
    bool changes_;
    std::map<std::string, vertex> graph_;
    std::set<std::string> failed_once_;
    task_id id_{};
};

} // namespace

TEST_CASE("random workflows come to the end that their graph says, whatever is done to them meanwhile",
          "[scheduler][workflow][random]") {
    std::size_t crashes = 0;
    std::size_t reruns = 0;
    std::size_t cancels = 0;
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        workflow_life one(seed);
        one.live(40);
        crashes += one.crashes;
        reruns += one.reruns;
        cancels += one.cancels;
    }
    CHECK(crashes > 300); // else this would prove little
    CHECK(reruns > 300);
    CHECK(cancels > 100);
}

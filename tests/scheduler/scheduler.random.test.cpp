// SPDX-License-Identifier: MIT
// A random life of a scheduler against a model that knows no more than the rules: what was accepted ends once and in a
// right state, nothing is early, what was cancelled does not run, and route keys keep their order.
#include "scheduler/support.hpp"

#include <algorithm>
#include <map>
#include <set>

using namespace test;

namespace {

/// What a task is meant to do, and what is known of it.
struct expectation {
    int failures_left = 0; ///< fails so often before it succeeds
    bool gives_up = false;
    int snoozes_left = 0;
    ax::time_point not_before{};
    std::string route;
    bool cancelled = false;
    bool ended = false; ///< by a run
    int runs = 0;
    std::uint64_t placed = 0; ///< when it got its place among those of its route key
};

class life {
  public:
    explicit life(std::uint64_t seed, ax::options chosen) : bench_(std::move(chosen)), random_(seed) { come_up(); }

    void live(int steps) {
        for (int i = 0; i != steps; ++i) step();
    }

    /// Lets everything come to its end, and looks at it.
    void end() {
        if (paused_) bench_->resume(shipping);
        paused_ = false;
        for (int i = 0; i != 40; ++i) bench_.run_for(6h);
        std::size_t wrong = 0;
        for (auto const& [id, e] : model_) {
            auto const task = bench_.get(id);
            CAPTURE(id, task.state, e.runs, e.cancelled, e.ended, task.last_error);
            auto const expected = e.cancelled  ? task_state::cancelled
                                  : e.gives_up ? task_state::dead
                                               : task_state::succeeded;
            CHECK(task.state == expected);
            CHECK(e.ended != e.cancelled);
            CHECK(task.finished.has_value());
            wrong += task.state != expected;
            std::size_t ends = 0;
            for (auto const& attempt : bench_->history(id)) {
                REQUIRE(attempt.outcome.has_value());
                ends +=
                    *attempt.outcome == attempt_outcome::succeeded || *attempt.outcome == attempt_outcome::exhausted;
            }
            CHECK(ends == (e.cancelled ? 0 : 1));
        }
        CHECK(wrong == 0);
        for (auto const& fault : faults_) UNSCOPED_INFO(fault);
        CHECK(faults_.empty());
        auto const health = bench_->health();
        CHECK(health.unsettled == 0);
        CHECK(health.claimed == 0);
        CHECK(health.in_memory == 0);
        CHECK(bench_.store.memory().check_invariants().empty());
        CHECK_FALSE(bench_->next_wakeup().has_value());
    }

    std::size_t tasks() const { return model_.size(); }

  private:
    std::uint64_t draw(std::uint64_t below) { return random_() % below; }

    void come_up() {
        bench_.restart([this](simulated& tasks) {
            tasks.observe([this](ax::event const& e) {
                if (e.kind == ax::event_kind::picked_up) claimed_[e.id] = ++moment_;
            });
            tasks.on(shipping, [this](parcel const&, ax::context& ctx) { run(ctx); }, {.retry = ax::retry::fixed(20s)});
        });
    }

    void fault(std::string text) {
        if (faults_.size() < 10) faults_.push_back(std::move(text));
    }

    void run(ax::context& ctx) {
        auto const id = ctx.task().id;
        auto const found = model_.find(id);
        if (found == model_.end()) return fault("a task that nobody submitted");
        auto& e = found->second;
        auto const name = "task " + std::to_string(ax::to_number(id));
        auto const now = bench_.now();
        ++e.runs;
        if (e.cancelled) fault(name + " ran though it was cancelled");
        if (e.ended) fault(name + " ran again after its end");
        if (now < e.not_before) fault(name + " is early");
        if (ctx.scheduled_at() > now) fault(name + " is early by its own account");
        if (!e.route.empty()) {
            if (!routes_at_work_.insert(e.route).second) fault(name + " runs beside another of its route key");
            // It was its turn when it was claimed: none that was before it then has yet to end.
            for (auto const& [other_id, o] : model_)
                if (o.route == e.route && !o.ended && !o.cancelled && other_id != id && o.placed < claimed_[id] &&
                    std::pair(order_of(other_id), other_id) < std::pair(order_of(id), id))
                    fault(name + " overtook task " + std::to_string(ax::to_number(other_id)));
        }
        struct leave {
            std::set<std::string>& at_work;
            std::string const& route;
            ~leave() { at_work.erase(route); }
        } const leaving{routes_at_work_, e.route};
        if (draw(20) == 0) submit(); // from inside
        auto& again = model_.at(id);
        if (again.snoozes_left > 0) {
            --again.snoozes_left;
            auto const span = ax::duration{static_cast<std::int64_t>(draw(100'000))};
            again.not_before = now + span;
            throw ax::snooze{span};
        }
        if (again.failures_left > 0) {
            --again.failures_left;
            again.not_before = now + 20s;
            throw std::runtime_error("as asked");
        }
        again.ended = true;
        if (again.gives_up) throw ax::give_up{"as asked"};
    }

    ax::time_point order_of(task_id id) const { return bench_.store_find(id).order_at; }

    void submit() {
        expectation e;
        e.failures_left = draw(4) == 0 ? static_cast<int>(draw(3)) : 0;
        e.snoozes_left = draw(8) == 0 ? 1 : 0;
        e.gives_up = draw(10) == 0;
        ax::submit_options how;
        auto const kind = draw(6);
        auto const span = kind == 0   ? 0
                          : kind == 1 ? draw(100)
                          : kind == 2 ? draw(10'000)
                          : kind == 3 ? draw(400'000)
                          : kind == 4 ? draw(40'000'000)
                                      : 50;
        how.delay = ax::duration{static_cast<std::int64_t>(span)};
        how.priority = static_cast<ax::priority_class>(draw(4));
        if (draw(3) == 0) how.route_key = e.route = "r" + std::to_string(draw(4));
        how.retry = ax::retry::fixed(20s);
        e.not_before = bench_.now() + how.delay->value();
        e.placed = ++moment_;
        if (draw(5) == 0) how.key = "k" + std::to_string(draw(50));
        auto const answer = bench_->submit(shipping, {1, ""}, how);
        bool const known = model_.contains(answer.id) || retired_.contains(answer.id);
        if (known != (answer.outcome == submit_outcome::kept)) fault("a submit said what is not so");
        if (!known) model_.emplace(answer.id, std::move(e));
    }

    task_id any() {
        auto at = model_.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(draw(model_.size())));
        return at->first;
    }

    void step() {
        auto const what = draw(100);
        if (what < 35 || model_.empty()) {
            submit();
        } else if (what < 42) {
            auto const id = any();
            auto& e = model_.at(id);
            auto const answer = bench_->cancel(id);
            bool const over = e.ended || e.cancelled;
            if (answer != (over ? cancel_outcome::too_late : cancel_outcome::cancelled))
                fault("a cancel said what is not so");
            if (!over) e.cancelled = true;
        } else if (what < 48) {
            auto const id = any();
            auto& e = model_.at(id);
            auto const when = bench_.now() + ax::duration{static_cast<std::int64_t>(draw(1'000'000)) - 1'000};
            auto const answer = bench_->reschedule(id, when);
            bool const over = e.ended || e.cancelled;
            if (answer != (over ? change_outcome::wrong_state : change_outcome::done))
                fault("a reschedule said what is not so");
            if (!over) {
                e.not_before = when;
                e.placed = ++moment_;
            }
        } else if (what < 50) {
            auto const id = any();
            auto& e = model_.at(id);
            bool const possible = e.cancelled || (e.ended && e.gives_up);
            auto const answer = bench_->retry(id);
            if (answer != (possible ? change_outcome::done : change_outcome::wrong_state))
                fault("a retry said what is not so");
            if (possible && e.cancelled) {
                e.cancelled = false;
                e.not_before = bench_.now();
                e.placed = ++moment_;
            } else if (possible) { // dead: it is taken out of the model, for it would end twice
                if (bench_->cancel(id) != cancel_outcome::cancelled) fault("a cancel of a retried task failed");
                model_.erase(id);
                retired_.insert(id);
            }
        } else if (what < 52) {
            paused_ ? bench_->resume(shipping) : bench_->pause(shipping);
            paused_ = !paused_;
        } else if (what < 54) { // the clock is stepped; a step forward lets nothing be early
            auto const by = ax::duration{static_cast<std::int64_t>(draw(7'200'000)) - 3'600'000};
            bench_.clock.set(bench_.now() + by);
        } else if (what == 54) {
            come_up();
        } else if (what < 75) {
            auto const next = bench_->next_wakeup();
            if (next && *next > bench_.now() && *next - bench_.now() < 1h) bench_.clock.advance(*next - bench_.now());
            bench_.poll();
        } else {
            bench_.clock.advance(ax::duration{static_cast<std::int64_t>(draw(4) == 0 ? draw(300'000) : draw(60))});
            bench_.poll();
        }
    }

    struct own_bench : bench {
        using bench::bench;
        ax::task_record store_find(task_id id) const { return *store.find(id); }
    };

    own_bench bench_;
    ax::splitmix64 random_;
    std::map<task_id, expectation> model_;
    std::set<task_id> retired_;
    std::map<task_id, std::uint64_t> claimed_; ///< when each was claimed last
    std::uint64_t moment_ = 0;
    std::set<std::string> routes_at_work_;
    std::vector<std::string> faults_;
    bool paused_ = false;
};

} // namespace

TEST_CASE("a random life: everything ends once, in a right state, never early, in its order", "[scheduler][random]") {
    auto const seed = GENERATE(range(1, 25));
    CAPTURE(seed);
    ax::options chosen;
    chosen.workers = seed % 3 == 0 ? 1 : 4;
    if (seed % 4 == 0) chosen.window_tasks = 20;
    if (seed % 5 == 0) chosen.claimed_ahead = 2;
    if (seed % 2 == 0) chosen.window = 5s;
    life one{static_cast<std::uint64_t>(seed), chosen};
    one.live(400);
    CHECK(one.tasks() > 50);
    one.end();
}

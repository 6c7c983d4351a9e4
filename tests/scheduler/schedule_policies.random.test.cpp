// SPDX-License-Identifier: MIT
// The policies of schedules against a model that is as plain as the tables of docs/schedules.md: thousands of histories
// of downtime, pauses and slow runs.
#include "scheduler/support.hpp"

#include "ax/core/random.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

using namespace test;

namespace {

using minutes_list =
    std::vector<std::int64_t>; ///< occurrences by number: the n-th is planned n minutes after the start

class dice {
  public:
    explicit dice(std::uint64_t seed) : random_(seed) {}
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }

  private:
    ax::splitmix64 random_;
};

/// What a schedule of each minute does, told one by one. Times in ms since the start.
struct naive_schedule {
    ax::misfire_policy misfire;
    std::int64_t cursor = 1, watched_since = 0;
    bool paused = false;
    minutes_list created;
    std::uint64_t skipped = 0;

    /// A poll at `now`: what it creates.
    void poll(std::int64_t now) {
        if (paused) return;
        minutes_list due;
        for (; cursor * 60'000 <= now; ++cursor) due.push_back(cursor);
        if (due.empty()) return;
        auto const late = [&](std::int64_t n) { return now - n * 60'000; };
        auto const grace = std::clamp<std::int64_t>(now - watched_since, 1'000, 60'000);
        minutes_list missed, on_time;
        for (auto const n : due) {
            bool const seen = late(n) <= 1'000 || (n == due.back() && late(n) <= grace);
            (seen ? on_time : missed).push_back(n);
        }
        minutes_list made;
        using action = ax::misfire_policy::action;
        if (!missed.empty()) switch (misfire.what()) {
            case action::skip: break;
            case action::run_once:
                if (on_time.empty()) made = {missed.back()};
                break;
            case action::within:
                if (on_time.empty() && late(missed.back()) <= misfire.late_by().count()) made = {missed.back()};
                break;
            case action::run_all:
                for (auto const n : missed)
                    if (missed.back() - n < static_cast<std::int64_t>(misfire.most())) made.push_back(n);
                break;
            }
        skipped += missed.size() - made.size();
        made.insert(made.end(), on_time.begin(), on_time.end());
        created.insert(created.end(), made.begin(), made.end());
    }
};

} // namespace

TEST_CASE("misfire policies do what a plain model does, through downtime, late polls and pauses",
          "[scheduler][schedules][misfire]") {
    for (std::uint64_t seed = 1; seed != 1'001; ++seed) {
        CAPTURE(seed);
        dice random{seed};
        naive_schedule model;
        auto const kind = random.below(4);
        if (kind == 0) model.misfire = ax::misfire::skip;
        if (kind == 2) model.misfire = ax::misfire::run_all(1 + static_cast<std::size_t>(random.below(4)));
        if (kind == 3) model.misfire = ax::misfire::within(ax::duration{1 + random.below(90'000)});

        bench b;
        auto const start = b.now();
        minutes_list ran;
        auto const at = [&] { return (b.now() - start).count(); };
        auto const again = [&] {
            b.restart([&](simulated& tasks) {
                tasks.on(probe, [&](ax::context& ctx) { ran.push_back((ctx.scheduled_at() - start) / 1min); });
            });
            b.poll();
            model.watched_since = at();
            model.poll(at());
        };
        again();
        ax::schedule_options how;
        how.misfire = model.misfire;
        how.overlap = ax::overlap::allow;
        b->schedule("s", ax::every{1min}, probe, {}, how);
        for (int step = 0; step != 12; ++step) {
            switch (random.below(6)) {
            case 0: // the process is away
                b.clock.advance(ax::duration{random.below(400'000)});
                again();
                break;
            case 1: // the poll comes late
                b.clock.advance(ax::duration{random.below(150'000)});
                b.poll();
                model.poll(at());
                break;
            case 2:
                b->pause_schedule("s");
                model.paused = true;
                break;
            case 3: {
                bool const catch_up = random.below(2) == 0;
                b->resume_schedule("s", catch_up ? ax::resume::catch_up : ax::resume::from_now);
                if (!model.paused) break;
                model.paused = false;
                if (catch_up)
                    model.watched_since = at();
                else
                    for (; model.cursor * 60'000 <= at(); ++model.cursor) ++model.skipped;
                auto const real = model.watched_since;
                b.poll();
                model.poll(at());
                model.watched_since = real;
                break;
            }
            default: // a poll each five seconds
                for (auto n = random.below(30); n != 0; --n) {
                    b.clock.advance(5s);
                    b.poll();
                    model.poll(at());
                }
            }
        }
        b.run_for(0s); // what was created runs
        auto const record = b->schedules().at(0);
        REQUIRE(ran == model.created);
        REQUIRE(record.fired == model.created.size());
        REQUIRE(record.skipped == model.skipped);
        REQUIRE(record.next == start + model.cursor * 1min);
    }
}
namespace {

/// What overlapping occurrences do, told one by one.
struct naive_overlaps {
    enum class state { waits, runs, over, dropped };
    struct run {
        std::int64_t number;
        state is;
        bool asked = false;
    };
    ax::overlap_policy policy;
    std::vector<run> all;
    std::uint64_t skipped = 0;

    bool any(state s) const {
        return std::any_of(all.begin(), all.end(), [s](run const& r) { return r.is == s; });
    }
    void due(std::int64_t number) {
        using enum ax::overlap_policy;
        auto* const latest = all.empty() || all.back().is >= state::over ? nullptr : &all.back();
        if (policy == skip && latest != nullptr) {
            ++skipped;
            return;
        }
        bool const stops = policy == cancel_running || policy == replace_running;
        if (latest != nullptr && latest->is == state::waits && (stops || policy == queue_one)) {
            latest->is = state::dropped;
            ++skipped;
        } else if (latest != nullptr && stops) {
            latest->asked = true;
        }
        bool const lines_up = policy == queue_one || policy == queue_all || policy == cancel_running;
        all.push_back({number, lines_up && any(state::runs) ? state::waits : state::runs});
    }
    void end(std::int64_t number) {
        for (auto& r : all)
            if (r.number == number) r.is = state::over;
        if (any(state::runs)) return;
        auto const next = std::find_if(all.begin(), all.end(), [](run const& r) { return r.is == state::waits; });
        if (next != all.end()) next->is = state::runs;
    }
};

} // namespace

TEST_CASE("overlap policies do what a plain model does, through runs of any length",
          "[scheduler][schedules][overlap]") {
    using enum ax::overlap_policy;
    for (std::uint64_t seed = 1; seed != 1'001; ++seed) {
        CAPTURE(seed);
        dice random{seed};
        naive_overlaps model{};
        model.policy =
            std::array{allow, skip, queue_one, queue_all, cancel_running, replace_running}[static_cast<std::size_t>(
                random.below(6))];
        CAPTURE(to_text(model.policy));

        ax::options chosen;
        chosen.workers = 64;
        hosted_bench b{chosen};
        auto const start = b.clock.now();
        std::map<std::int64_t, bool> asked; // of those that have ended
        std::set<std::int64_t> begun;
        std::int64_t number = 0;
        int left = 15;
        auto const begin_all = [&] { // what may begin does, and so does what that lets go
            do {
                b.settle();
            } while (b.loop.size() != 0);
        };
        // A run lasts as long as its call: meanwhile time passes, and others begin within it and end before it does.
        std::function<void()> const go_on = [&] {
            while (left != 0) {
                --left;
                if (random.below(3) == 0) return;
                b.pass(10s);
                model.due(++number);
                begin_all();
            }
        };
        b.tasks.on(probe, [&](ax::context& ctx) {
            auto const mine = (ctx.scheduled_at() - start) / 10s;
            begun.insert(mine);
            auto const token = ctx.stop_token();
            go_on();
            asked[mine] = token.stop_requested();
            model.end(mine);
        });
        ax::schedule_options how;
        how.overlap = model.policy;
        b.tasks.schedule("s", ax::every{10s}, probe, {}, how);
        b.poll();
        while (left != 0) {
            go_on();
            begin_all();
        }
        auto const record = b.tasks.schedules().at(0);
        REQUIRE(record.skipped == model.skipped);
        REQUIRE(record.fired == model.all.size());
        for (auto const& run : model.all) {
            CAPTURE(run.number);
            REQUIRE(begun.contains(run.number) == (run.is == naive_overlaps::state::over));
            if (begun.contains(run.number)) REQUIRE(asked.at(run.number) == run.asked);
            auto const task = b.store.occurrence("s", start + run.number * 10s);
            REQUIRE(task.has_value());
            if (run.is == naive_overlaps::state::dropped) REQUIRE(task->state == task_state::cancelled);
        }
    }
}

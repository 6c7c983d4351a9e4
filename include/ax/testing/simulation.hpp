// SPDX-License-Identifier: MIT
// A process with a scheduler in it, its clocks, and the machine under it, all on one thread and out of one seed. The
// scheduler is the one of production, driven by poll(); what is simulated is what surrounds it.
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/random.hpp"
#include "ax/core/unique_function.hpp"
#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/memory.hpp"
#include "ax/testing/fault_plan.hpp"
#include "ax/testing/faulty_storage.hpp"
#include "ax/testing/history.hpp"
#include "ax/testing/manual_clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::testing {

/// Runs what a scheduler hands it when the simulation comes to it.
class simulated_loop {
  public:
    template <class F>
    void execute(F work) {
        waiting_.emplace_back(std::move(work));
    }

    bool empty() const noexcept { return waiting_.empty(); }
    std::size_t size() const noexcept { return waiting_.size(); }

    /// Runs one of those that wait. There is one.
    void run(std::size_t which) {
        auto work = std::move(waiting_[which]);
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
        work();
    }

    /// Destroys all that wait, uncalled.
    void drop() {
        while (!waiting_.empty()) waiting_.pop_back();
    }

  private:
    std::vector<unique_function<void()>> waiting_;
};

/// What a simulated world is like. By default it is a bad one.
struct world {
    std::uint64_t seed = 1;
    double crash = 0.002;        ///< share of steps at which the process ends, beside the crashes at commits
    double restart = 0.002;      ///< share of steps at which it stops in order and starts again
    double commit_fault = 0.005; ///< of each kind of fault, share of commits
    double read_fault = 0.002;   ///< share of reads (and commits) that find the storage busy
    double clock_jump = 0.001;   ///< share of steps at which a clock does something
    double late_poll = 0.01;     ///< share of sleeps that last up to an hour too long
    time_span longest_sleep = std::chrono::minutes{10}; ///< the host polls at least so often
    /// Of the scheduler; the seed is the simulation's. Nothing is pruned: the judge compares all that ever was, and a
    /// clock that stays wrong for an hour would age it.
    options settings = {.retention = {.age = forever, .dead_age = forever}};

    /// One in which nothing goes wrong.
    static world calm(std::uint64_t seed = 1) {
        world w;
        w.seed = seed;
        w.crash = w.restart = w.commit_fault = w.read_fault = w.clock_jump = w.late_poll = 0;
        return w;
    }
};

/// Simulated time, in which a scheduler lives, dies and comes back.
///
///     ax::testing::simulation sim{{.seed = 42}};
///     sim.at_start([&](auto& tasks) { tasks.on(bill, ...); tasks.schedule("monthly", ax::cron{"0 0 1 * *"}, bill); });
///     sim.each(1h, [&](auto& tasks) { tasks.submit(order, {next++}); });
///     sim.run_for(24h * 31);
///     sim.settle(24h);                  // the world turns good, and what is left is done
///     if (!sim.sound()) std::puts(sim.report().c_str());
///
/// The same seed and the same calls give the same course, step by step: a failing seed is replayed by running it again.
/// Handlers run on the calling thread, one after another, in any order that an executor might choose; sim.work() lets
/// time pass in them. Wall time jumps (an hour back, a year ahead, steps of milliseconds) and is put right again within
/// hours; a machine sleeps for a day.
///
/// @tparam Storage  Outlives the simulated processes. One process at a time uses it.
/// Threads: one at a time.
template <storage Storage = memory_storage>
class simulation {
  public:
    using storage_type = faulty_storage<Storage>;
    using scheduler_type = scheduler<storage_type, manual_clock, simulated_loop>;

    explicit simulation(world w = {}, Storage store = {})
        : world_(std::move(w)), random_(world_.seed), store_(std::move(store), plan_of(world_, random_())) {
        world_.settings.seed = random_() | 1U;
        store_.on_late([this] { clock_.advance(duration{1 + draw(5'000)}); });
        store_.on_fault([this](std::string_view call, fault what) {
            judge_.note(clock_.now(), std::string(to_string(what)) + " at " + std::string(call));
        });
        store_.on_acknowledged([this](std::span<insertion const> answers) { judge_.acknowledged(answers); });
    }
    ~simulation() {
        on_event_ = nullptr; // what it writes to may be gone already
        bury();
    }
    simulation(simulation const&) = delete;
    simulation& operator=(simulation const&) = delete;

    /// What the process does when it comes up, after each crash again: handlers, schedules, limits. It is not to call
    /// observe(): see on_event(). An ax::error that it lets through ends the process, which comes up again.
    void at_start(unique_function<void(scheduler_type&)> call) { at_start_ = std::move(call); }

    /// Called at random instants, at intervals from half of `mean` to one and a half. An ax::error that it lets through
    /// is what a caller meets in a bad world; other exceptions pass out of run_for().
    void each(time_span mean, unique_function<void(scheduler_type&)> call) {
        callers_.push_back({mean.value(), next_of(mean.value()), std::move(call)});
    }

    void on_event(unique_function<void(event const&)> call) { on_event_ = std::move(call); }

    /// In a handler: so much time passes. The process may end meanwhile; then this throws what the handler is to let
    /// through.
    void work(time_span span) {
        clock_.advance(span);
        if (!by_chance(world_.crash)) return;
        judge_.note(clock_.now(), "crash in a handler");
        store_.cut();
        throw process_end{};
    }

    /// Lets so much steady time pass.
    void run_for(time_span span) {
        auto const end = clock_.steady() + span.value();
        while (clock_.steady() < end && judge_.sound()) step(end);
    }

    /// The world turns good and the clock right; callers call no more; so much time passes. Then what is due must be
    /// done.
    void settle(time_span span) {
        auto const was = std::exchange(world_, world::calm(world_.seed));
        auto callers = std::exchange(callers_, {});
        world_.settings = was.settings;
        world_.longest_sleep = was.longest_sleep;
        store_.plan().on(false);
        right_the_clock();
        run_for(span);
        if (tasks_ && judge_.sound()) {
            drain();
            judge_.finish(store_.base(), clock_.now(), std::chrono::seconds{10});
        }
        callers_ = std::move(callers);
        store_.plan().on(true);
        auto settings = std::move(world_.settings);
        world_ = was;
        world_.settings = std::move(settings);
    }

    /// As settle(); then every task must have ended. Schedules are removed first. What is due later only, say since it
    /// failed while the clock was a year ahead, is waited for.
    void settle_all(time_span span) {
        store_.plan().on(false);
        for (auto const& one : store_.base().schedules()) live().unschedule(one.name);
        for (int rounds = 0; rounds != 20; ++rounds) {
            settle(span);
            auto const far = latest_due();
            if (far <= clock_.now() || !judge_.sound()) break;
            clock_.advance(far - clock_.now());
        }
        if (judge_.sound()) judge_.finish_all(store_.base(), clock_.now());
    }

    /// The process ends at once.
    void crash() {
        judge_.note(clock_.now(), "crash");
        store_.cut();
        bury();
    }

    /// The scheduler of the process that lives, which comes up for that if none does.
    scheduler_type& live() {
        while (!tasks_) come_up();
        return *tasks_;
    }

    fault_plan& plan() noexcept { return store_.plan(); }
    manual_clock& clock() noexcept { return clock_; }
    history& judge() noexcept { return judge_; }
    Storage& store() noexcept { return store_.base(); } ///< without faults

    /// A number below `below`, out of the seed: for what a test decides by chance.
    std::uint64_t draw(std::uint64_t below) { return random_() % below; }
    bool by_chance(double share) { return share > 0 && static_cast<double>(random_() >> 11U) * 0x1p-53 < share; }

    std::size_t starts() const noexcept { return starts_; } ///< of processes
    std::size_t steps() const noexcept { return steps_; }

    bool sound() const noexcept { return judge_.sound(); }

    /// The seed, what was wrong, and the latest events.
    std::string report() const {
        return "seed " + std::to_string(world_.seed) + ", step " + std::to_string(steps_) + ", process " +
               std::to_string(starts_) + '\n' + judge_.report();
    }

  private:
    struct process_end {}; // no std::exception: few handlers swallow it, and nothing comes of it where one does

    struct caller {
        duration mean{};
        duration at{}; ///< steady time
        unique_function<void(scheduler_type&)> call;
    };

    static fault_plan plan_of(world const& w, std::uint64_t seed) {
        fault_plan plan{seed};
        for (auto const what : {fault::full, fault::lost_request, fault::lost_reply, fault::redone, fault::late,
                                fault::crash_before, fault::crash_after})
            plan.rate(what, w.commit_fault);
        plan.rate(fault::busy, w.read_fault);
        plan.rate(fault::late, (std::min)(w.commit_fault, w.read_fault));
        return plan;
    }

    duration next_of(duration mean) {
        return clock_.steady() + mean / 2 + duration{static_cast<std::int64_t>(draw(to_count(mean)))};
    }
    static std::uint64_t to_count(duration d) {
        return static_cast<std::uint64_t>((std::max)(d.count(), duration::rep{1}));
    }

    void step(duration end) {
        ++steps_;
        if (!tasks_) {
            come_up();
        } else if (by_chance(world_.crash)) {
            crash();
            clock_.advance(duration{static_cast<std::int64_t>(draw(draw(8) == 0 ? 3'600'000 : 5'000))});
        } else if (by_chance(world_.restart)) {
            judge_.note(clock_.now(), "stop");
            tasks_->stop();
            bury();
        } else {
            if (by_chance(world_.clock_jump)) move_clock();
            if (right_at_ && clock_.steady() >= *right_at_) right_the_clock();
            go_on(end);
        }
        if (tasks_ && !store_.alive()) bury();
        look();
    }

    void go_on(duration end) {
        if (!loop_.empty() && draw(4) != 0) {
            loop_.run(draw(loop_.size()));
            return;
        }
        for (auto& one : callers_) {
            if (one.at > clock_.steady()) continue;
            one.at = next_of(one.mean);
            try {
                one.call(*tasks_);
            } catch (error const& e) {
                judge_.note(clock_.now(), std::string("a caller meets: ") + e.what());
                if (world_.commit_fault == 0 && world_.read_fault == 0) throw;
            }
            return;
        }
        bool const started = poll() != 0;
        if (started || !loop_.empty() || !store_.alive()) {
            idle_ = 0;
            return;
        }
        sleep(end);
    }

    std::size_t poll() {
        try {
            return tasks_->poll(clock_.now());
        } catch (error const& e) { // of the recovery
            judge_.note(clock_.now(), std::string("poll() meets: ") + e.what());
            return 0;
        }
    }

    /// Time passes until the scheduler, a caller or the end of the run comes next.
    void sleep(duration end) {
        auto const next = tasks_->next_wakeup();
        auto span = world_.longest_sleep.value();
        if (next) span = (std::min)(span, (std::max)(*next - clock_.now(), duration{0}));
        if (span == duration{0}) { // at once: which may come to nothing now and then
            if (++idle_ > 20) span = duration{1};
            if (idle_ > 2'000) judge_.fault("the scheduler asks to be polled again and again, and does nothing");
        } else {
            idle_ = 0;
            if (by_chance(world_.late_poll)) span += duration{static_cast<std::int64_t>(draw(3'600'000))};
        }
        auto until = (std::min)(clock_.steady() + span, end);
        for (auto const& one : callers_) until = (std::min)(until, (std::max)(one.at, clock_.steady()));
        if (right_at_) until = (std::min)(until, (std::max)(*right_at_, clock_.steady()));
        clock_.advance(until - clock_.steady());
    }

    void come_up() {
        store_ = store_.another_life();
        judge_.note(clock_.now(), "start");
        ++starts_;
        try {
            tasks_.emplace(store_, world_.settings, clock_, loop_);
            tasks_->observe([this](event const& e) {
                judge_.record(e);
                if (on_event_) on_event_(e);
            });
            if (at_start_) at_start_(*tasks_);
        } catch (error const& e) {
            judge_.note(clock_.now(), std::string("it cannot start: ") + e.what());
            if (world_.commit_fault == 0 && world_.read_fault == 0) throw;
            crash();
            clock_.advance(duration{static_cast<std::int64_t>(1 + draw(10'000))});
        }
    }

    /// The process is gone; so is what waited for its threads.
    void bury() {
        store_.cut();
        loop_.drop();
        tasks_.reset();
        judge_.process_ended();
    }

    void drain() {
        for (int i = 0; i != 10'000 && tasks_; ++i) {
            while (!loop_.empty()) loop_.run(0);
            if (poll() == 0 && loop_.empty()) return;
        }
    }

    void move_clock() {
        using namespace std::chrono_literals;
        auto const wall = clock_.now();
        judge_.clock_was_set(wall);
        std::string what;
        switch (draw(5)) {
        case 0:
            clock_.set(wall - 1h);
            what = "the clock goes back an hour";
            break;
        case 1:
            clock_.set(wall + 24h * 365);
            what = "the clock goes a year ahead";
            break;
        case 2:
            clock_.advance(24h);
            what = "the machine sleeps for a day";
            break;
        default: {
            auto const by = duration{static_cast<std::int64_t>(draw(400)) - 200};
            clock_.set(wall + by);
            what = "the clock moves by " + std::to_string(by.count()) + " ms";
        }
        }
        right_at_ = clock_.steady() + duration{static_cast<std::int64_t>(draw(7'200'000))};
        judge_.note(clock_.now(), std::move(what));
    }

    void right_the_clock() {
        right_at_.reset();
        auto const wall = start_ + clock_.steady();
        if (clock_.now() == wall) return;
        judge_.clock_was_set(clock_.now());
        clock_.set(wall);
        judge_.note(wall, "the clock is right again");
    }

    time_point latest_due() {
        auto latest = (time_point::min)();
        task_filter all;
        all.limit = 1'000'000;
        for (auto const& row : store_.base().list(all, clock_.now()))
            if (is_claimable(row.state)) latest = (std::max)(latest, row.run_at);
        return latest;
    }

    /// After each commit what is in flight; all else as often as it costs no more than that.
    void look() {
        auto const commits = store_.commits();
        if (commits == looked_at_) return;
        unseen_ += commits - looked_at_;
        looked_at_ = commits;
        if (unseen_ * 16 >= rows_) {
            unseen_ = 0;
            judge_.look(store_.base(), clock_.now());
            rows_ = 0;
            for (auto const& each : store_.base().counts()) rows_ += each.tasks;
        } else {
            judge_.glance(store_.base(), clock_.now());
        }
    }

    world world_;
    splitmix64 random_;
    manual_clock clock_;
    time_point start_ = clock_.now();
    storage_type store_;
    simulated_loop loop_;
    history judge_;
    unique_function<void(scheduler_type&)> at_start_;
    unique_function<void(event const&)> on_event_;
    std::vector<caller> callers_;
    std::optional<duration> right_at_; ///< steady time at which somebody puts the clock right
    std::size_t idle_ = 0;             ///< polls in a row that were asked for at once and did nothing
    std::size_t starts_ = 0;
    std::size_t steps_ = 0;
    std::size_t looked_at_ = 0;
    std::size_t unseen_ = 0;
    std::size_t rows_ = 0;
    std::optional<scheduler_type> tasks_;
};

} // namespace ax::testing

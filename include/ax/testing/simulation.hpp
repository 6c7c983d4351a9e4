// SPDX-License-Identifier: MIT
// Processes with a scheduler in each, their clock, and the machine under them, all on one thread and out of one seed.
// The scheduler is the one of production, driven by poll(); what is simulated is what surrounds it.
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
#include <deque>
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
    std::size_t nodes = 1;  ///< processes that share the storage, which has to heed reclaim_terms::beside
    double crash = 0.002;   ///< share of steps at which the process ends, beside the crashes at commits
    double restart = 0.002; ///< share of steps at which it stops in order and starts again
    double freeze = 0.002;  ///< of several nodes: share of steps and handlers at which one stands still for a while
    double commit_fault = 0.005;                        ///< of each kind of fault, share of commits
    double read_fault = 0.002;                          ///< share of reads (and commits) that find the storage busy
    double clock_jump = 0.001;                          ///< share of steps at which a clock does something
    double late_poll = 0.01;                            ///< share of sleeps that last up to an hour too long
    time_span longest_sleep = std::chrono::minutes{10}; ///< the host polls at least so often
    time_span lease = std::chrono::seconds{10};         ///< of several nodes: after it the others take over
    /// Of the scheduler; the seed is the simulation's. Nothing is pruned: the judge compares all that ever was, and a
    /// clock that stays wrong for an hour would age it.
    options settings = {.retention = {.age = forever, .dead_age = forever}};

    /// One in which nothing goes wrong.
    static world calm(std::uint64_t seed = 1) {
        world w;
        w.seed = seed;
        w.crash = w.restart = w.freeze = w.commit_fault = w.read_fault = w.clock_jump = w.late_poll = 0;
        return w;
    }
};

/// Simulated time, in which schedulers live, die and come back.
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
/// time pass in them, in which other nodes go on. Wall time jumps (an hour back, a year ahead, steps of milliseconds)
/// and is put right again within hours; a machine sleeps for a day.
///
/// Several nodes share the storage and the clock. One that crashes, stops or stands still for longer than a lease loses
/// what it holds to the others; one that starts takes over what its former self held at once.
///
/// @tparam Storage  Outlives the simulated processes.
/// Threads: one at a time.
template <storage Storage = memory_storage>
class simulation {
  public:
    using storage_type = faulty_storage<Storage>;
    using scheduler_type = scheduler<storage_type, manual_clock, simulated_loop>;

    /// @throws error invalid_argument for no node, or a lease that is not positive.
    explicit simulation(world w = {}, Storage store = {})
        : world_(std::move(w)), random_(world_.seed), store_(std::move(store), plan_of(world_, random_())) {
        if (world_.nodes == 0) throw error(errc::invalid_argument, "a world of 0 nodes");
        if (world_.lease.value() <= duration{0}) throw error(errc::invalid_argument, "a lease that is not positive");
        world_.settings.seed = random_() | 1U;
        store_.on_late([this] { clock_.advance(duration{1 + count_of(draw(5'000))}); });
        store_.on_fault([this](std::string_view call, fault what) {
            judge_.note(clock_.now(), std::string(to_string(what)) + " at " + std::string(call));
        });
        store_.on_acknowledged([this](std::span<insertion const> answers) { judge_.acknowledged(answers); });
        for (std::size_t i = 0; i != world_.nodes; ++i) processes_.emplace_back(i, store_.another_node());
    }
    ~simulation() {
        on_event_ = nullptr; // what it writes to may be gone already
        for (auto& one : processes_) bury(one);
    }
    simulation(simulation const&) = delete;
    simulation& operator=(simulation const&) = delete;

    /// What a process does when it comes up, after each crash again: handlers, schedules, limits. It is not to call
    /// observe(): see on_event(). An ax::error that it lets through ends the process, which comes up again.
    void at_start(unique_function<void(scheduler_type&)> call) { at_start_ = std::move(call); }

    /// Called at random instants, at intervals from half of `mean` to one and a half, with any node. An ax::error that
    /// it lets through is what a caller meets in a bad world; other exceptions pass out of run_for().
    void each(time_span mean, unique_function<void(scheduler_type&)> call) {
        callers_.push_back({mean.value(), next_of(mean.value()), std::move(call)});
    }

    void on_event(unique_function<void(event const&)> call) { on_event_ = std::move(call); }

    /// In a handler: so much time passes. The process may end meanwhile; then this throws what the handler is to let
    /// through. It may also stand still for longer than its lease: then it goes on, and nobody takes what it reports.
    void work(time_span span) {
        auto* const mine = acting_;
        if (mine == nullptr || processes_.size() == 1)
            clock_.advance(span);
        else
            let_others(*mine, span.value());
        if (!by_chance(world_.crash)) return;
        judge_.note(clock_.now(), "crash in a handler" + of_node(mine));
        (mine == nullptr ? processes_.front() : *mine).store.cut();
        throw process_end{};
    }

    /// Lets so much steady time pass.
    void run_for(time_span span) {
        auto const end = clock_.steady() + span.value();
        wake_all();
        while (clock_.steady() < end && judge_.sound()) step(end);
        rethrow_failure();
    }

    /// The world turns good and the clock right; callers call no more; so much time passes. Then what is due must be
    /// done.
    void settle(time_span span) {
        auto const was = std::exchange(world_, world::calm(world_.seed));
        auto callers = std::exchange(callers_, {});
        world_.settings = was.settings;
        world_.longest_sleep = was.longest_sleep;
        world_.nodes = was.nodes;
        world_.lease = was.lease;
        store_.plan().on(false);
        right_the_clock();
        for (auto& one : processes_) come_back(one);
        run_for(span);
        if (judge_.sound()) {
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
        for (std::size_t i = 0; i != processes_.size(); ++i) live(i); // who starts later would declare them again
        for (auto const& one : store_.base().schedules()) live().unschedule(one.name);
        for (int rounds = 0; rounds != 20; ++rounds) {
            settle(span);
            auto const far = latest_due();
            if (far <= clock_.now() || !judge_.sound()) break;
            clock_.advance(far - clock_.now());
        }
        if (judge_.sound()) judge_.finish_all(store_.base(), clock_.now());
    }

    /// The process of that node ends at once. Not from within it.
    /// @throws std::out_of_range  There is no such node; as freeze() and live() do.
    void crash(std::size_t node = 0) { crash(processes_.at(node)); }

    /// That node stands still for so long, as a machine that is suspended or a process that is stopped: its handlers,
    /// its claims and its lease, while the others go on. In one of its own handlers it comes behind that.
    void freeze(std::size_t node, time_span span) { freeze(processes_.at(node), span.value()); }

    /// The scheduler of the process that lives as that node, which comes up for that if none does.
    scheduler_type& live(std::size_t node = 0) {
        auto& one = processes_.at(node);
        come_back(one);
        while (!one.tasks) come_up(one);
        return *one.tasks;
    }

    fault_plan& plan() noexcept { return store_.plan(); }
    manual_clock& clock() noexcept { return clock_; }
    history& judge() noexcept { return judge_; }
    Storage& store() noexcept { return store_.base(); } ///< without faults

    /// A number below `below`, out of the seed: for what a test decides by chance.
    std::uint64_t draw(std::uint64_t below) { return random_() % below; }
    bool by_chance(double share) { return share > 0 && static_cast<double>(random_() >> 11U) * 0x1p-53 < share; }

    /// Which node acts: of the handler, the caller, the start or the event that asks; 0 where none does.
    std::size_t node() const noexcept { return acting_ == nullptr ? 0 : acting_->number; }

    std::size_t starts() const noexcept { return starts_; } ///< of processes
    std::size_t steps() const noexcept { return steps_; }
    /// How often a node lost what it held, since it was down or stood still for longer than a lease.
    std::size_t takeovers() const noexcept { return takeovers_; }

    bool sound() const noexcept { return judge_.sound(); }

    /// The seed, what was wrong, and the latest events.
    std::string report() const {
        auto const nodes = several() ? ", " + std::to_string(processes_.size()) + " nodes" : std::string{};
        return "seed " + std::to_string(world_.seed) + nodes + ", step " + std::to_string(steps_) + ", process " +
               std::to_string(starts_) + '\n' + judge_.report();
    }

  private:
    struct process_end {}; // no std::exception: few handlers swallow it, and nothing comes of it where one does

    struct caller {
        duration mean{};
        duration at{}; ///< steady time
        unique_function<void(scheduler_type&)> call;
    };

    /// One node, through all of its lives. Instants are steady time.
    struct process {
        process(std::size_t n, storage_type s) : number(n), store(std::move(s)) {}

        std::size_t number;
        storage_type store;
        simulated_loop loop;
        duration asleep_until{};              ///< it polls then, unless it is woken
        duration away_until{};                ///< down, or frozen
        std::optional<duration> silent_since; ///< its lease runs out
        bool frozen = false;
        bool at_work = false; ///< one of its handlers works, further up the stack
        std::size_t idle = 0; ///< polls in a row that were asked for at once and did nothing
        std::optional<scheduler_type> tasks;
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

    duration next_of(duration mean) { return clock_.steady() + mean / 2 + duration{count_of(draw(to_count(mean)))}; }
    static std::uint64_t to_count(duration d) {
        return static_cast<std::uint64_t>((std::max)(d.count(), duration::rep{1}));
    }
    static std::int64_t count_of(std::uint64_t drawn) { return static_cast<std::int64_t>(drawn); }

    bool several() const noexcept { return processes_.size() != 1; }
    std::string of_node(process const* one) const {
        return several() && one != nullptr ? " of node " + std::to_string(one->number) : std::string{};
    }

    /// Who can do something now: it is neither away, asleep nor at work.
    bool can_act(process const& one) const {
        auto const now = clock_.steady();
        return !one.at_work && one.away_until <= now && (!one.tasks || one.asleep_until <= now);
    }

    /// One of those for whom `fits` holds; null: there is none.
    template <class Fits>
    process* any(Fits fits) {
        std::size_t number = 0;
        for (auto const& one : processes_) number += fits(one) ? 1 : 0;
        if (number == 0) return nullptr;
        auto which = number == 1 ? 0 : draw(number);
        for (auto& one : processes_)
            if (fits(one) && which-- == 0) return &one;
        return nullptr;
    }

    /// What a step within a handler has met passes out of run_for(), and not into the handler.
    void rethrow_failure() {
        if (failure_ && !nested_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

    void step(duration end) {
        ++steps_;
        rethrow_failure();
        take_over();
        auto* one = any([this](auto const& each) { return can_act(each); });
        if (one == nullptr) one = to_be_called();
        if (one == nullptr) {
            pass_time(end);
        } else {
            auto* const outer = std::exchange(acting_, one);
            try {
                act(*one, end);
            } catch (...) {
                acting_ = outer;
                throw;
            }
            acting_ = outer;
        }
        look();
    }

    void act(process& one, duration end) {
        thaw(one);
        if (!one.tasks) {
            come_up(one);
        } else if (by_chance(world_.crash)) {
            crash(one);
            stay_away(one, draw(8) == 0 ? 3'600'000 : 5'000);
        } else if (by_chance(world_.restart)) {
            judge_.note(clock_.now(), "stop" + of_node(&one));
            one.tasks->stop();
            bury(one);
            if (several() && draw(4) == 0) stay_away(one, 3'600'000); // it leaves
        } else if (several() && by_chance(world_.freeze)) {
            freeze(one, some_leases());
        } else {
            if (by_chance(world_.clock_jump)) move_clock();
            if (right_at_ && clock_.steady() >= *right_at_) right_the_clock();
            go_on(one, end);
        }
        if (one.tasks && !one.store.alive()) {
            bury(one);
            if (several()) stay_away(one, draw(4) == 0 ? 60'000 : 5'000);
        }
    }

    void go_on(process& one, duration end) {
        one.asleep_until = duration{};
        if (!one.loop.empty() && draw(4) != 0) {
            one.loop.run(draw(one.loop.size()));
            return;
        }
        for (auto& each : callers_) {
            if (nested_ || each.at > clock_.steady()) continue;
            each.at = next_of(each.mean);
            try {
                each.call(*one.tasks);
            } catch (error const& e) {
                judge_.note(clock_.now(), std::string("a caller meets: ") + e.what());
                if (world_.commit_fault == 0 && world_.read_fault == 0) throw;
            }
            return;
        }
        bool const started = poll(one) != 0;
        if (started || !one.loop.empty() || !one.store.alive()) {
            one.idle = 0;
            return;
        }
        sleep(one, end);
    }

    std::size_t poll(process& one) {
        try {
            return one.tasks->poll(clock_.now());
        } catch (error const& e) { // of the recovery
            judge_.note(clock_.now(), std::string("poll() meets: ") + e.what());
            return 0;
        }
    }

    /// Until its scheduler wants to be polled, as far as that is to be known now.
    void sleep(process& one, duration end) {
        auto const next = one.tasks->next_wakeup();
        auto span = world_.longest_sleep.value();
        if (next) span = (std::min)(span, (std::max)(*next - clock_.now(), duration{0}));
        if (span == duration{0}) { // at once: which may come to nothing now and then
            if (++one.idle > 20) span = duration{1};
            if (one.idle > 2'000) judge_.fault("the scheduler asks to be polled again and again, and does nothing");
        } else {
            one.idle = 0;
            if (by_chance(world_.late_poll)) span += duration{count_of(draw(3'600'000))};
        }
        one.asleep_until = clock_.steady() + span;
        if (!several()) pass_time(end);
    }

    /// Nobody has anything to do: time passes until somebody has, or the end of the run comes.
    void pass_time(duration end) {
        auto const now = clock_.steady();
        auto until = end;
        bool served = false; // whether there is somebody whom a caller could call
        for (auto const& one : processes_) {
            if (one.at_work) continue;
            served = served || (one.tasks && one.away_until <= now);
            until = (std::min)(until, (std::max)(one.away_until, one.tasks ? one.asleep_until : duration{}));
        }
        if (served && !nested_)
            for (auto const& each : callers_) until = (std::min)(until, each.at);
        if (right_at_) until = (std::min)(until, *right_at_);
        if (several())
            for (auto const& one : processes_)
                if (one.silent_since) until = (std::min)(until, lease_end(one));
        if (until > now) clock_.advance(until - now);
        if (right_at_ && clock_.steady() >= *right_at_) right_the_clock();
    }

    /// Somebody sleeps whom a caller wakes.
    process* to_be_called() {
        if (nested_) return nullptr;
        auto const now = clock_.steady();
        auto const due = std::ranges::any_of(callers_, [&](auto const& each) { return each.at <= now; });
        if (!due) return nullptr;
        return any([&](auto const& one) { return !one.at_work && one.tasks && one.away_until <= now; });
    }

    /// A handler of `mine` works for so long, and the other nodes go on meanwhile.
    void let_others(process& mine, duration span) {
        if (by_chance(world_.freeze)) {
            judge_.note(clock_.now(), "node " + std::to_string(mine.number) + " stands still in a handler");
            mine.silent_since = clock_.steady();
            span += some_leases();
        }
        auto const until = clock_.steady() + span;
        bool const nested = std::exchange(nested_, true);
        mine.at_work = true;
        try {
            while (clock_.steady() < until && judge_.sound()) step(until);
        } catch (...) { // which is nothing of this handler's
            failure_ = std::current_exception();
        }
        nested_ = nested;
        mine.at_work = false;
        mine.silent_since.reset();
        if (clock_.steady() < until) clock_.advance(until - clock_.steady());
    }

    duration some_leases() {
        auto const lease = to_count(world_.lease.value());
        return duration{count_of(draw(draw(4) == 0 ? lease * 50 : lease * 3))};
    }

    duration lease_end(process const& one) const { return *one.silent_since + world_.lease.value(); }

    /// Whose lease has run out loses what it holds, where somebody is there to take it.
    void take_over() {
        if (!several()) return;
        for (auto& one : processes_) {
            if (!one.silent_since || clock_.steady() < lease_end(one)) continue;
            one.silent_since.reset();
            judge_.note(clock_.now(), "the lease of node " + std::to_string(one.number) + " has run out");
            for (auto const state : {task_state::dispatched, task_state::running}) {
                task_filter held;
                held.state = state;
                held.limit = 1'000'000;
                for (auto const& row : store_.base().list(held, clock_.now()))
                    if (one.store.is_mine(row.node)) judge_.taken_over(row.id, row.fence);
            }
            one.store.take_over(clock_.now(), world_.settings.poison_after);
            ++takeovers_;
        }
    }

    void come_up(process& one) {
        one.store = one.store.another_life();
        one.silent_since.reset();
        one.asleep_until = one.away_until = duration{};
        judge_.note(clock_.now(), "start" + of_node(&one));
        ++starts_;
        try {
            auto settings = world_.settings;
            settings.seed += 2 * one.number;
            one.tasks.emplace(one.store, std::move(settings), clock_, one.loop);
            one.tasks->observe([this, number = one.number](event const& e) {
                judge_.record(e, number);
                if (on_event_) on_event_(e);
            });
            if (at_start_) at_start_(*one.tasks);
        } catch (error const& e) {
            judge_.note(clock_.now(), std::string("it cannot start: ") + e.what());
            if (world_.commit_fault == 0 && world_.read_fault == 0) throw;
            crash(one);
            one.away_until = clock_.steady() + duration{1 + count_of(draw(10'000))};
        }
    }

    void crash(process& one) {
        judge_.note(clock_.now(), "crash" + of_node(&one));
        bury(one);
    }

    /// The process is gone; so is what waited for its threads.
    void bury(process& one) {
        one.store.cut();
        one.loop.drop();
        one.tasks.reset();
        one.frozen = false;
        if (!one.silent_since) one.silent_since = clock_.steady();
        judge_.process_ended(one.number);
    }

    void stay_away(process& one, std::uint64_t most) {
        one.away_until = clock_.steady() + duration{count_of(draw(most))};
    }

    void freeze(process& one, duration span) {
        if (!one.tasks) return;
        judge_.note(clock_.now(), "node " + std::to_string(one.number) + " stands still");
        one.silent_since = clock_.steady();
        one.away_until = clock_.steady() + span;
        one.frozen = true;
    }

    void thaw(process& one) {
        if (!std::exchange(one.frozen, false)) return;
        judge_.note(clock_.now(), "node " + std::to_string(one.number) + " goes on");
        one.silent_since.reset();
    }

    /// It is away no more.
    void come_back(process& one) {
        one.away_until = duration{};
        thaw(one);
    }

    void wake_all() {
        for (auto& one : processes_) one.asleep_until = duration{};
    }

    void drain() {
        for (int i = 0; i != 10'000; ++i) {
            bool moved = false;
            for (auto& one : processes_) {
                if (!one.tasks) continue;
                for (; !one.loop.empty(); moved = true) run_one(one);
                moved = poll(one) != 0 || !one.loop.empty() || moved;
            }
            if (!moved) return;
        }
    }

    void run_one(process& one) {
        auto* const outer = std::exchange(acting_, &one);
        one.loop.run(0);
        acting_ = outer;
    }

    void move_clock() {
        using namespace std::chrono_literals;
        auto const wall = clock_.now();
        judge_.clock_was_set(wall);
        wake_all();
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
            auto const by = duration{count_of(draw(400)) - 200};
            clock_.set(wall + by);
            what = "the clock moves by " + std::to_string(by.count()) + " ms";
        }
        }
        right_at_ = clock_.steady() + duration{count_of(draw(7'200'000))};
        judge_.note(clock_.now(), std::move(what));
    }

    void right_the_clock() {
        right_at_.reset();
        auto const wall = start_ + clock_.steady();
        if (clock_.now() == wall) return;
        judge_.clock_was_set(clock_.now());
        clock_.set(wall);
        wake_all();
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
    storage_type store_; ///< of no node: what they share
    history judge_;
    unique_function<void(scheduler_type&)> at_start_;
    unique_function<void(event const&)> on_event_;
    std::vector<caller> callers_;
    std::optional<duration> right_at_; ///< steady time at which somebody puts the clock right
    std::exception_ptr failure_;       ///< of a step within a handler
    bool nested_ = false;              ///< a handler works, and others take steps meanwhile
    std::size_t starts_ = 0;
    std::size_t steps_ = 0;
    std::size_t takeovers_ = 0;
    std::size_t looked_at_ = 0;
    std::size_t unseen_ = 0;
    std::size_t rows_ = 0;
    process* acting_ = nullptr; ///< whose step this is
    std::deque<process> processes_;
};

} // namespace ax::testing

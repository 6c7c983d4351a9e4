// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"
#include "ax/core/unique_function.hpp"
#include "ax/storage/concept.hpp"
#include "ax/testing/fault_plan.hpp"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::testing {

namespace detail {

template <class Storage>
struct host_connection_of {};
template <transactional_storage Storage>
struct host_connection_of<Storage> {
    using host_connection = typename Storage::host_connection;
};

} // namespace detail

/// Any storage, with the faults of a fault_plan. Models what the storage models.
///
///     ax::testing::faulty_storage store{ax::memory_storage{}, ax::testing::fault_plan{42}.rate(fault::busy, 0.1)};
///     ax::scheduler tasks{store};        // a copy: all copies are the same store
///
/// It also stands for what outlives a process. A crash, or cut(), ends the life of all copies made so far: each of
/// their calls fails from then on, with error unavailable, and nothing is written. another_life() gives a copy for the
/// process that comes next, another_node() one for a process beside this one.
///
/// Where there are several, who starts takes over what its own former self held and leaves what the others hold, dead
/// or alive, until take_over(): as if each had a lease, and the test said when it runs out. For that the storage has to
/// heed reclaim_terms::beside.
/// Threads: safe, as the storage is; set the plan and the hooks while nothing else uses it.
template <storage Storage>
class faulty_storage : public detail::host_connection_of<Storage> {
    /// Of one process.
    struct life {
        std::atomic<bool> alive{true};
        std::vector<node_id> nodes; ///< the schedulers that it has had; guarded by the mutex of the core
    };
    using life_type = std::shared_ptr<life>;

    struct core {
        explicit core(Storage s, fault_plan p) : store(std::move(s)), plan(std::move(p)) {}

        Storage store;
        std::mutex mutex;             ///< guards the plan, the hooks and the lives
        std::vector<life_type> lives; ///< the latest of each node
        fault_plan plan;
        unique_function<void()> on_late;
        unique_function<void(std::string_view, fault)> on_fault;
        unique_function<void(std::span<insertion const>)> on_acknowledged;
        std::atomic<std::size_t> commits{0};
    };

    struct rolled_back {};

  public:
    static constexpr bool durable = Storage::durable;

    class writer {
        using base = typename Storage::writer;

      public:
        writer(base& to, faulty_storage& owner, fault& meant, std::vector<insertion>& told)
            : to_(to), owner_(owner), meant_(meant), told_(told) {}

        type_number type(std::string_view name) { return pass("type").type(name); }
        std::vector<insertion> insert(std::span<new_task const> tasks, time_point now, alarms& due) {
            auto answer = pass("insert").insert(tasks, now, due);
            told_.insert(told_.end(), answer.begin(), answer.end());
            return answer;
        }
        claim_answer claim(std::span<claim_request const> requests, claim_terms const& terms) {
            auto& to = pass("claim");
            owner_.joined(terms.node);
            return to.claim(requests, terms);
        }
        void offer(claim_offer& leave) requires eager_writer<base> {
            owner_.joined(leave.node);
            to_.offer(leave);
        }
        void start(std::span<start_mark const> starts, time_point now) { pass("start").start(starts, now); }
        settlement settle(std::span<attempt_end const> ends, time_point now) {
            return pass("settle").settle(ends, now);
        }
        /// Takes nothing from the processes beside this one, of which nobody knows that they are gone.
        reclaim_answer reclaim(reclaim_terms const& terms) {
            auto& to = pass("reclaim");
            owner_.joined(terms.node);
            auto but = terms;
            owner_.add_beside(but.beside);
            return to.reclaim(but);
        }
        change cancel(task_id id, time_point now) { return pass("cancel").cancel(id, now); }
        change retry(task_id id, time_point now) { return pass("retry").retry(id, now); }
        change reschedule(task_id id, time_point at, time_point now) {
            return pass("reschedule").reschedule(id, at, now);
        }
        expiry expire(time_point now, std::size_t limit) { return pass("expire").expire(now, limit); }
        void pause(type_number number, bool yes) { pass("pause").pause(number, yes); }
        schedule_record declare(schedule_record const& wanted, time_point now) {
            return pass("declare").declare(wanted, now);
        }
        schedule_answer step(schedule_step const& next, time_point now) { return pass("step").step(next, now); }
        bool forget(std::string_view name) { return pass("forget").forget(name); }
        bool ask_to_stop(task_id id) { return pass("ask_to_stop").ask_to_stop(id); }
        bool keep_step(task_id id, fence_token fence, std::string_view name, std::string_view value) {
            return pass("keep_step").keep_step(id, fence, name, value);
        }
        prune_answer prune(prune_terms const& terms, std::size_t limit) { return pass("prune").prune(terms, limit); }
        bool compact() { return pass("compact").compact(); }
        void note(std::string_view name, std::string_view text) { pass("note").note(name, text); }
        void repair(std::span<finding> found, time_point now, alarms& due) { pass("repair").repair(found, now, due); }
        alarms limit_type(type_number type, limit const& how, std::vector<resource_need> const& needs, time_point now) {
            return pass("limit_type").limit_type(type, how, needs, now);
        }
        alarms limit_tag(std::string_view tag, limit const& how, time_point now) {
            return pass("limit_tag").limit_tag(tag, how, now);
        }
        alarms set_resource(std::string_view name, std::size_t capacity, time_point now) {
            return pass("set_resource").set_resource(name, capacity, now);
        }
        change mark_succeeded(task_id id, time_point now) { return pass("mark_succeeded").mark_succeeded(id, now); }
        change rerun(task_id id, rerun_scope scope, time_point now) { return pass("rerun").rerun(id, scope, now); }
        change pause_workflow(task_id id, bool yes, time_point now) {
            return pass("pause_workflow").pause_workflow(id, yes, now);
        }
        change set_aside(task_id id, time_point now) { return pass("set_aside").set_aside(id, now); }
        change release(task_id id, priority_class urgency, time_point now) {
            return pass("release").release(id, urgency, now);
        }
        backfill_record begin_backfill(backfill_record const& wanted, time_point now) {
            return pass("begin_backfill").begin_backfill(wanted, now);
        }
        backfill_answer fill(backfill_step const& step, time_point now) { return pass("fill").fill(step, now); }
        bool drop_backfill(std::uint64_t number) { return pass("drop_backfill").drop_backfill(number); }
        void end_waits(std::string_view schedule, bool over, time_point now, alarms& due) {
            pass("end_waits").end_waits(schedule, over, now, due);
        }

      private:
        /// Some faults come at once, and undo the transaction; the others come with its commit.
        base& pass(std::string_view verb) {
            auto const what = owner_.draw(verb, false);
            if (what == fault::busy || what == fault::full || what == fault::lost_request ||
                what == fault::crash_before || what == fault::late)
                owner_.befall(what, verb);
            else if (what != fault::none)
                meant_ = what;
            return to_;
        }

        base& to_;
        faulty_storage& owner_;
        fault& meant_;
        std::vector<insertion>& told_;
    };

    explicit faulty_storage(Storage store, fault_plan plan = {})
        : core_(std::make_shared<core>(std::move(store), std::move(plan))) {
        core_->lives.push_back(life_);
    }

    template <class Fn>
    void transact(commit durability, Fn&& fn) {
        check_life();
        auto what = draw("commit", false);
        if (what == fault::busy || what == fault::full || what == fault::crash_before || what == fault::late)
            befall(what, "commit");
        std::vector<insertion> told;
        for (bool undone = false;;) {
            try {
                core_->store.transact(durability, [&](typename Storage::writer& w) {
                    told.clear();
                    writer mine{w, *this, what, told};
                    fn(mine);
                    if (what == fault::lost_request || (what == fault::redone && !undone)) throw rolled_back{};
                });
                break;
            } catch (rolled_back const&) {
                undone = true;
                befall(what, "commit");
            }
        }
        ++core_->commits;
        if (what == fault::lost_reply || what == fault::crash_after) befall(what, "commit");
        if (!told.empty() && core_->on_acknowledged) core_->on_acknowledged(told);
    }

    std::optional<task_record> find(task_id id) const { return read("find").find(id); }
    std::optional<task_record> find_by_key(std::string_view key) const { return read("find_by_key").find_by_key(key); }
    std::vector<task_record> list(task_filter const& filter, time_point now) const {
        return read("list").list(filter, now);
    }
    std::vector<attempt_view> history(task_id id) const { return read("history").history(id); }
    std::vector<obstacle> obstacles(task_id id) const { return read("obstacles").obstacles(id); }
    std::vector<task_id> asked_to_stop() const { return read("asked_to_stop").asked_to_stop(); }
    alarms upcoming(alarm const& after, time_point until, std::size_t limit) const {
        return read("upcoming").upcoming(after, until, limit);
    }
    std::vector<type_info> types() const { return read("types").types(); }
    std::vector<schedule_record> schedules() const { return read("schedules").schedules(); }
    std::vector<kept_step> steps(task_id id) const { return read("steps").steps(id); }
    std::vector<task_count> counts() const { return read("counts").counts(); }
    std::string note(std::string_view name) const { return read("note").note(name); }
    std::vector<finding> verify() const { return read("verify").verify(); }
    waiting_page waiting(limit_number after, std::size_t most, time_point now) const {
        return read("waiting").waiting(after, most, now);
    }
    std::vector<limit_info> limits() const { return read("limits").limits(); }
    std::optional<workflow_record> workflow(task_id id) const { return read("workflow").workflow(id); }
    std::vector<member_record> members(task_id id, std::string_view after, std::size_t limit) const {
        return read("members").members(id, after, limit);
    }
    std::vector<parent_record> parents(task_id id) const { return read("parents").parents(id); }
    std::optional<task_record> occurrence(std::string_view schedule, time_point nominal) const {
        return read("occurrence").occurrence(schedule, nominal);
    }
    std::vector<task_record> aside(std::string_view schedule, time_point from, time_point to, std::size_t limit) const {
        return read("aside").aside(schedule, from, to, limit);
    }
    std::vector<backfill_record> backfills() const { return read("backfills").backfills(); }
    skip_log skips(std::string_view schedule) const { return read("skips").skips(schedule); }

    /// Fails only before it is made: the host's own commit decides about the rest.
    template <class S = Storage>
    guest_insertion insert_in(typename S::host_connection connection, std::string_view type, new_task& task,
                              time_point now, alarms& due) requires transactional_storage<S> {
        check_life();
        auto const what = draw("insert_in", false);
        if (what == fault::busy || what == fault::full || what == fault::crash_before) befall(what, "insert_in");
        return core_->store.insert_in(connection, type, task, now, due);
    }

    // ---------------------------------------------------------------- for the test

    fault_plan& plan() noexcept { return core_->plan; }

    /// The storage itself: to look at it without faults.
    Storage& base() noexcept { return core_->store; }
    Storage const& base() const noexcept { return core_->store; }

    /// The process ends here: no copy made so far can do anything any more.
    void cut() noexcept { life_->alive = false; }
    bool alive() const noexcept { return life_->alive; }

    /// For the process that comes next. Ends the life of the others, and what they held is its own to take.
    faulty_storage another_life() const {
        auto next = *this;
        next.life_ = std::make_shared<life>();
        life_->alive = false;
        std::lock_guard const guard{core_->mutex};
        std::erase(core_->lives, life_);
        core_->lives.push_back(next.life_);
        return next;
    }

    /// For a process beside this one, which goes on.
    faulty_storage another_node() const {
        auto next = *this;
        next.life_ = std::make_shared<life>();
        std::lock_guard const guard{core_->mutex};
        core_->lives.push_back(next.life_);
        return next;
    }

    /// The others have waited long enough for this process, which may be dead, or live and not know it: what it holds
    /// is taken from it, without faults. What it claims from now on is its own again.
    reclaim_answer take_over(time_point now, std::size_t poison_after = 3) {
        reclaim_terms terms{node_id{}, poison_after, now};
        add_beside(terms.beside);
        reclaim_answer answer;
        core_->store.transact(commit::durable, [&](typename Storage::writer& w) { answer = w.reclaim(terms); });
        ++core_->commits;
        return answer;
    }

    /// Whether that node is a scheduler of this process.
    bool is_mine(node_id node) const {
        std::lock_guard const guard{core_->mutex};
        return std::ranges::find(life_->nodes, node) != life_->nodes.end();
    }

    /// How many transactions were made.
    std::size_t commits() const noexcept { return core_->commits; }

    /// Called where a call is `late`, before it is made: lets time pass, say.
    void on_late(unique_function<void()> call) { core_->on_late = std::move(call); }
    /// Called with each fault and the call that it befalls.
    void on_fault(unique_function<void(std::string_view, fault)> call) { core_->on_fault = std::move(call); }
    /// Called with what insert() said in a transaction whose caller learned that it was made.
    void on_acknowledged(unique_function<void(std::span<insertion const>)> call) {
        core_->on_acknowledged = std::move(call);
    }

  private:
    void joined(node_id node) const {
        std::lock_guard const guard{core_->mutex};
        if (std::ranges::find(life_->nodes, node) == life_->nodes.end()) life_->nodes.push_back(node);
    }

    void add_beside(std::vector<node_id>& nodes) const {
        std::lock_guard const guard{core_->mutex};
        for (auto const& one : core_->lives)
            if (one != life_) nodes.insert(nodes.end(), one->nodes.begin(), one->nodes.end());
    }

    void check_life() const {
        if (!alive()) throw error(errc::unavailable, "the process has ended");
    }

    fault draw(std::string_view call, bool is_read) const {
        check_life();
        std::lock_guard const guard{core_->mutex};
        return core_->plan.next(call, is_read);
    }

    void say(std::string_view call, fault what) const {
        if (core_->on_fault) core_->on_fault(call, what);
    }

    void befall(fault what, std::string_view call) const {
        say(call, what);
        auto const text = std::string(call) + ": ";
        switch (what) {
        case fault::busy: throw error(errc::unavailable, text + "busy");
        case fault::full: throw error(errc::disk_full, text + "no room");
        case fault::lost_request:
        case fault::lost_reply: throw error(errc::outcome_unknown, text + "the connection is lost");
        case fault::late:
            if (core_->on_late) core_->on_late();
            return;
        case fault::crash_before:
        case fault::crash_after: life_->alive = false; throw error(errc::unavailable, text + "the process ends");
        case fault::none:
        case fault::redone: return;
        }
    }

    Storage const& read(std::string_view call) const {
        auto const what = draw(call, true);
        if (what != fault::none) befall(what, call);
        return core_->store;
    }

    std::shared_ptr<core> core_;
    life_type life_ = std::make_shared<life>();
};

} // namespace ax::testing

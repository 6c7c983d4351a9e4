// SPDX-License-Identifier: MIT
// A memory_storage that several schedulers can be given one after another, as if the process had been started anew, and
// that fails, waits or watches where a test says so.
#pragma once

#include "ax/storage/concept.hpp"
#include "ax/storage/memory.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace test {

/// Where a shared_storage calls its test. Each may throw. Set while nothing drives the storage.
struct storage_hooks {
    std::function<void()> before_transact;
    std::function<void()> after_transact; ///< committed; what it throws reaches the caller all the same
    std::function<void()> before_read;    ///< find, list, history, types, schedules, steps
    std::function<void()> before_upcoming;
    std::function<void(std::span<ax::new_task const>)> before_insert;
    std::function<void(std::span<ax::claim_request const>)> before_claim;
    std::function<void(std::span<ax::attempt_end const>)> before_settle;
    std::function<void()> before_step;
    std::function<void()> before_keep_step;
    std::function<void()> before_prune;
    std::function<void(ax::backfill_step const&)> before_fill;
    bool eager = true; ///< claims at once what it is offered
};

/// Copies share one store.
class shared_storage {
  public:
    static constexpr bool durable = false;

    class writer {
      public:
        writer(ax::memory_storage::writer& to, storage_hooks& hooks) : to_(to), hooks_(hooks) {}

        ax::type_number type(std::string_view name) { return to_.type(name); }
        std::vector<ax::insertion> insert(std::span<ax::new_task const> tasks, ax::time_point now, ax::alarms& due) {
            if (hooks_.before_insert) hooks_.before_insert(tasks);
            auto const before = due.size();
            auto answer = to_.insert(tasks, now, due);
            take_offered(due, before, now);
            return answer;
        }
        void offer(ax::claim_offer& leave) { offer_ = hooks_.eager ? &leave : nullptr; }
        ax::claim_answer claim(std::span<ax::claim_request const> requests, ax::claim_terms const& terms) {
            if (hooks_.before_claim) hooks_.before_claim(requests);
            return to_.claim(requests, terms);
        }
        void start(std::span<ax::start_mark const> starts, ax::time_point now) { to_.start(starts, now); }
        ax::settlement settle(std::span<ax::attempt_end const> ends, ax::time_point now) {
            if (hooks_.before_settle) hooks_.before_settle(ends);
            for (auto const& end : ends)
                if (hooks_.before_insert && end.outcome == ax::attempt_outcome::succeeded && !end.follow_ups.empty())
                    hooks_.before_insert(end.follow_ups);
            auto answer = to_.settle(ends, now);
            take_offered(answer.due, 0, now);
            return answer;
        }
        ax::reclaim_answer reclaim(ax::reclaim_terms const& terms) { return to_.reclaim(terms); }
        ax::change cancel(ax::task_id id, ax::time_point now) { return to_.cancel(id, now); }
        ax::change retry(ax::task_id id, ax::time_point now) { return to_.retry(id, now); }
        ax::change reschedule(ax::task_id id, ax::time_point at, ax::time_point now) {
            return to_.reschedule(id, at, now);
        }
        ax::expiry expire(ax::time_point now, std::size_t limit) { return to_.expire(now, limit); }
        void pause(ax::type_number number, bool yes) { to_.pause(number, yes); }
        ax::schedule_record declare(ax::schedule_record const& wanted, ax::time_point now) {
            return to_.declare(wanted, now);
        }
        ax::schedule_answer step(ax::schedule_step const& next, ax::time_point now) {
            if (hooks_.before_step) hooks_.before_step();
            return to_.step(next, now);
        }
        bool forget(std::string_view name) { return to_.forget(name); }
        bool ask_to_stop(ax::task_id id) { return to_.ask_to_stop(id); }
        bool keep_step(ax::task_id id, ax::fence_token fence, std::string_view name, std::string_view value) {
            if (hooks_.before_keep_step) hooks_.before_keep_step();
            return to_.keep_step(id, fence, name, value);
        }
        ax::prune_answer prune(ax::prune_terms const& terms, std::size_t limit) {
            if (hooks_.before_prune) hooks_.before_prune();
            return to_.prune(terms, limit);
        }
        bool compact() { return to_.compact(); }
        void note(std::string_view name, std::string_view text) { to_.note(name, text); }
        void repair(std::span<ax::finding> found, ax::time_point now, ax::alarms& due) { to_.repair(found, now, due); }
        ax::alarms limit_type(ax::type_number type, ax::limit const& how, std::vector<ax::resource_need> const& needs,
                              ax::time_point now) {
            return to_.limit_type(type, how, needs, now);
        }
        ax::alarms limit_tag(std::string_view tag, ax::limit const& how, ax::time_point now) {
            return to_.limit_tag(tag, how, now);
        }
        ax::alarms set_resource(std::string_view name, std::size_t capacity, ax::time_point now) {
            return to_.set_resource(name, capacity, now);
        }
        ax::change mark_succeeded(ax::task_id id, ax::time_point now) { return to_.mark_succeeded(id, now); }
        ax::change rerun(ax::task_id id, ax::rerun_scope scope, ax::time_point now) {
            return to_.rerun(id, scope, now);
        }
        ax::change pause_workflow(ax::task_id id, bool yes, ax::time_point now) {
            return to_.pause_workflow(id, yes, now);
        }
        ax::change set_aside(ax::task_id id, ax::time_point now) { return to_.set_aside(id, now); }
        ax::change release(ax::task_id id, ax::priority_class urgency, ax::time_point now) {
            return to_.release(id, urgency, now);
        }
        ax::backfill_record begin_backfill(ax::backfill_record const& wanted, ax::time_point now) {
            return to_.begin_backfill(wanted, now);
        }
        ax::backfill_answer fill(ax::backfill_step const& step, ax::time_point now) {
            if (hooks_.before_fill) hooks_.before_fill(step);
            return to_.fill(step, now);
        }
        bool drop_backfill(std::uint64_t number) { return to_.drop_backfill(number); }
        void end_waits(std::string_view schedule, bool over, ax::time_point now, ax::alarms& due) {
            to_.end_waits(schedule, over, now, due);
        }

      private:
        /// As eager_writer says: what was announced from `from` on is claimed where the offer takes it.
        void take_offered(ax::alarms& due, std::size_t from, ax::time_point now) {
            if (offer_ == nullptr) return;
            auto kept = from;
            for (auto at = from; at != due.size(); ++at) {
                auto const& a = due[at];
                auto const* const kind = a.waits ? nullptr : offer_->takes(a.lane, a.run_at);
                ax::claim_answer made;
                if (kind != nullptr) {
                    ax::claim_request const request{a.id, kind->hold_on_interrupt, kind->type};
                    made = to_.claim({&request, 1}, {offer_->node, now, offer_->until, 0});
                }
                if (made.claimed.empty()) {
                    due[kept++] = a;
                    continue;
                }
                --offer_->room[static_cast<std::size_t>(ax::class_of(a.lane))];
                offer_->claimed.push_back(std::move(made.claimed.front()));
            }
            due.resize(kept);
        }

        ax::memory_storage::writer& to_;
        storage_hooks& hooks_;
        ax::claim_offer* offer_ = nullptr;
    };

    template <class Fn>
    void transact(ax::commit durability, Fn&& fn) {
        ++core_->transacts;
        if (core_->hooks.before_transact) core_->hooks.before_transact();
        core_->store.transact(durability, [&](ax::memory_storage::writer& w) {
            writer mine{w, core_->hooks};
            fn(mine);
        });
        if (core_->hooks.after_transact) core_->hooks.after_transact();
    }

    std::optional<ax::task_record> find(ax::task_id id) const { return read().find(id); }
    std::optional<ax::task_record> find_by_key(std::string_view key) const { return read().find_by_key(key); }
    std::vector<ax::task_record> list(ax::task_filter const& filter, ax::time_point now) const {
        return read().list(filter, now);
    }
    std::vector<ax::attempt_view> history(ax::task_id id) const { return read().history(id); }
    std::vector<ax::obstacle> obstacles(ax::task_id id) const { return read().obstacles(id); }
    std::vector<ax::task_id> asked_to_stop() const { return read().asked_to_stop(); }
    ax::alarms upcoming(ax::alarm const& after, ax::time_point until, std::size_t limit) const {
        ++core_->reads;
        if (core_->hooks.before_upcoming) core_->hooks.before_upcoming();
        auto page = core_->store.upcoming(after, until, limit);
        core_->rows_read += page.size();
        return page;
    }
    std::vector<ax::type_info> types() const { return read().types(); }
    std::vector<ax::schedule_record> schedules() const { return read().schedules(); }
    std::vector<ax::kept_step> steps(ax::task_id id) const { return read().steps(id); }
    std::vector<ax::task_count> counts() const { return read().counts(); }
    std::string note(std::string_view name) const { return read().note(name); }
    std::vector<ax::finding> verify() const { return read().verify(); }
    ax::waiting_page waiting(ax::limit_number after, std::size_t most, ax::time_point now) const {
        return read().waiting(after, most, now);
    }
    std::vector<ax::limit_info> limits() const { return read().limits(); }
    std::optional<ax::workflow_record> workflow(ax::task_id id) const { return read().workflow(id); }
    std::vector<ax::member_record> members(ax::task_id id, std::string_view after, std::size_t limit) const {
        return read().members(id, after, limit);
    }
    std::vector<ax::parent_record> parents(ax::task_id id) const { return read().parents(id); }
    std::optional<ax::task_record> occurrence(std::string_view schedule, ax::time_point nominal) const {
        return read().occurrence(schedule, nominal);
    }
    std::vector<ax::task_record> aside(std::string_view schedule, ax::time_point from, ax::time_point to,
                                       std::size_t limit) const {
        return read().aside(schedule, from, to, limit);
    }
    std::vector<ax::backfill_record> backfills() const { return read().backfills(); }
    ax::skip_log skips(std::string_view schedule) const { return read().skips(schedule); }

    storage_hooks& hooks() { return core_->hooks; }
    ax::memory_storage& memory() { return core_->store; }
    std::size_t transacts() const { return core_->transacts; }
    std::size_t upcoming_calls() const { return core_->reads; }
    std::size_t rows_read() const { return core_->rows_read; }

  private:
    struct core {
        ax::memory_storage store;
        storage_hooks hooks;
        std::atomic<std::size_t> transacts{0};
        std::atomic<std::size_t> reads{0};     ///< calls of upcoming()
        std::atomic<std::size_t> rows_read{0}; ///< rows that upcoming() gave
    };

    ax::memory_storage const& read() const {
        if (core_->hooks.before_read) core_->hooks.before_read();
        return core_->store;
    }

    std::shared_ptr<core> core_ = std::make_shared<core>();
};

static_assert(ax::storage<shared_storage> && ax::eager_writer<shared_storage::writer>);

} // namespace test

// SPDX-License-Identifier: MIT
// What is to be removed next, and when. Once a minute a pass looks at the counts, and at those types that have ended
// tasks which are too many or may be old enough by now; a pass goes on in small batches with pauses between them, which
// are longer while there is other work.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/task/options.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ax::detail {

/// @tparam On  Only delays its compilation.
/// Threads: none of its own; the caller's mutex guards it.
template <class On>
class cleaning {
    using type_number = dependent<ax::type_number, On>;
    using prune_terms = dependent<ax::prune_terms, On>;
    using prune_answer = dependent<ax::prune_answer, On>;
    using time_point = dependent<ax::time_point, On>;

  public:
    static constexpr std::size_t batch_size = 200;  ///< tasks removed in one commit
    static constexpr std::size_t look_size = 1'000; ///< tasks looked at in one commit
    static constexpr duration between_passes{60'000};

    /// A type with ended tasks.
    struct stock {
        type_number type{};
        retention_policy rule;
        std::size_t ended = 0;
        std::size_t dead = 0;
    };

    // ---------------------------------------------------------------- when

    /// @param busy  There is other work to do.
    bool due(duration steady, bool busy) const { return !at_work_ && steady >= (busy ? due_if_busy_ : due_at_); }

    /// More is to be done in this pass, and in how long.
    bool in_pass() const { return in_pass_; }
    duration pause_left(duration steady) const { return (std::max)(due_at_ - steady, duration{0}); }

    /// One thread at a time is at it.
    void start_work(duration steady) {
        at_work_ = true;
        started_ = steady;
    }

    // ---------------------------------------------------------------- what

    /// Begins a pass over the types that may have something to remove.
    /// @param now  As far as it is trusted.
    void begin(std::vector<stock> const& stocks, time_point now) {
        in_pass_ = true;
        removed_in_pass_ = false;
        queue_.clear();
        for (auto const& each : stocks) {
            auto& w = walks_[each.type];
            if (!(w.rule == each.rule)) w = walk{each.rule};
            bool const many = each.ended > w.rule.count || each.dead > w.rule.count;
            w.by_age = started_ >= w.not_before && (now >= w.earliest || started_ >= w.at_the_latest);
            if (many || w.by_age) queue_.push_back(each.type);
        }
    }

    /// The next terms, of a few types at once where they have little to remove. None: see wants_to_compact().
    std::vector<prune_terms> next(time_point trusted, time_point wall) const {
        std::vector<prune_terms> jobs;
        for (auto at = queue_.rbegin(); at != queue_.rend() && jobs.size() != 16; ++at) {
            auto const& w = walks_.at(*at);
            prune_terms terms;
            terms.type = *at;
            if (w.by_age) {
                terms.ended_by = before(trusted, w.rule.age);
                terms.dead_by = before(trusted, w.rule.dead_age);
            }
            terms.keep = w.rule.count;
            terms.after = w.after;
            terms.look_at = look_size;
            terms.now = wall;
            jobs.push_back(terms);
        }
        return jobs;
    }

    bool wants_to_compact() const { return in_pass_ && queue_.empty() && removed_in_pass_; }

    // ---------------------------------------------------------------- what came of it

    void pruned(type_number type, prune_answer const& answer, time_point trusted) {
        auto& w = walks_.at(type);
        w.after = answer.after;
        w.looked_at += answer.looked_at;
        w.oldest_ended = (std::min)(w.oldest_ended, answer.oldest_ended);
        w.oldest_dead = (std::min)(w.oldest_dead, answer.oldest_dead);
        total_ += answer.pruned;
        if (answer.pruned != 0) removed_in_pass_ = true;
        if (answer.more) return;
        if (w.by_age) {
            // What ends from now on ends after now.
            w.earliest = (std::min)(saturating_add((std::min)(w.oldest_ended, trusted), w.rule.age),
                                    saturating_add((std::min)(w.oldest_dead, trusted), w.rule.dead_age));
            // A walk that passes over many that stay is not made again soon; and a clock that was set back meanwhile
            // makes new tasks old earlier than that.
            w.not_before = started_ + duration{static_cast<duration::rep>((std::min)(w.looked_at, most_wait))};
            w.at_the_latest = started_ + 6 * duration{static_cast<duration::rep>(most_wait)};
        }
        w.after = {};
        w.looked_at = 0;
        w.oldest_ended = w.oldest_dead = (time_point::max)();
        queue_.erase(std::find(queue_.begin(), queue_.end(), type));
    }

    void compacted(bool more) { removed_in_pass_ = more; }

    void end_work(duration steady) {
        at_work_ = false;
        failure_.clear();
        in_pass_ = !queue_.empty() || removed_in_pass_;
        auto const took = steady - started_;
        due_at_ = steady + (in_pass_ ? (std::max)(took, duration{2}) : between_passes);
        due_if_busy_ = in_pass_ ? steady + (std::max)(8 * took, duration{20}) : due_at_;
    }

    /// The pass ends, and the next one goes on behind what was removed.
    void failed(duration steady, std::string why) {
        at_work_ = in_pass_ = removed_in_pass_ = false;
        queue_.clear();
        failure_ = std::move(why);
        due_at_ = due_if_busy_ = steady + between_passes;
    }

    std::size_t total() const { return total_; }
    std::string const& failure() const { return failure_; }

  private:
    static constexpr std::size_t most_wait = 3'600'000; ///< ms

    struct walk {
        retention_policy rule;
        time_point earliest = (time_point::min)(); ///< nothing is old enough before, by wall time
        duration not_before{};                     ///< steady time
        duration at_the_latest{};                  ///< steady time
        bool by_age = true;                        ///< in this pass
        task_id after{};
        std::size_t looked_at = 0;
        time_point oldest_ended = (time_point::max)();
        time_point oldest_dead = (time_point::max)();
    };

    static time_point before(time_point now, duration age) { return saturating_add(now, -age); }

    std::map<type_number, walk> walks_;
    std::vector<type_number> queue_; ///< of this pass; the last one is next
    bool in_pass_ = false;
    bool at_work_ = false;
    bool removed_in_pass_ = false;
    duration started_{};
    duration due_at_ = (duration::min)();
    duration due_if_busy_ = (duration::min)();
    std::size_t total_ = 0;
    std::string failure_;
};

} // namespace ax::detail

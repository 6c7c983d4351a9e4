// SPDX-License-Identifier: MIT
// What memory_storage knows of the periods of schedules beside their tasks: which occurrence waits for which, the
// backfills under way, and what was left out. It can take back what a transaction did, as the tables do.
#pragma once

#include "ax/storage/concept.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

struct memory_backfill {
    backfill_record record;
    std::set<task_id> unfinished;
};

class memory_periods {
  public:
    struct mark_type {
        std::size_t pasts = 0;
        std::size_t backfills = 0;
        std::size_t skips = 0;
    };

    // ---- who waits for whom ----------------------------------------------------------------------------------------

    /// Nothing where it waits for no past. 0: the one before it is done, or there is none; it waits to be released.
    std::optional<task_id> past_of(task_id waiting) const {
        auto const found = pasts_.find(waiting);
        return found == pasts_.end() ? std::nullopt : std::optional{found->second};
    }

    bool is_awaited(task_id past) const { return !waiting_for(past).empty(); }

    std::vector<task_id> waiting_for(task_id past) const {
        std::vector<task_id> ids;
        for (auto at = waiting_.lower_bound({past, task_id{}}); at != waiting_.end() && at->first == past; ++at)
            ids.push_back(at->second);
        return ids;
    }

    void put_past(task_id waiting, std::optional<task_id> past) {
        past_log_.emplace_back(waiting, past_of(waiting));
        set_past(waiting, past);
    }

    // ---- backfills -------------------------------------------------------------------------------------------------

    std::map<std::uint64_t, memory_backfill> const& backfills() const noexcept { return backfills_; }

    memory_backfill const* find_backfill(std::uint64_t number) const {
        auto const found = backfills_.find(number);
        return found == backfills_.end() ? nullptr : &found->second;
    }

    /// Nothing: it is gone.
    void put_backfill(std::uint64_t number, std::optional<memory_backfill> wanted) {
        auto const* const before = find_backfill(number);
        backfill_log_.emplace_back(number, before == nullptr ? std::nullopt : std::optional{*before});
        set_backfill(number, std::move(wanted));
    }

    // ---- what was left out -----------------------------------------------------------------------------------------

    skip_log skips(std::string_view schedule) const {
        auto const found = skips_.find(schedule);
        return found == skips_.end() ? skip_log{} : found->second;
    }

    void put_skips(std::string const& schedule, skip_log wanted) {
        skip_log_.emplace_back(schedule, skips(schedule));
        set_skips(schedule, std::move(wanted));
    }

    // ---- transactions ----------------------------------------------------------------------------------------------

    mark_type mark() const noexcept { return {past_log_.size(), backfill_log_.size(), skip_log_.size()}; }

    void commit() noexcept {
        past_log_.clear();
        backfill_log_.clear();
        skip_log_.clear();
    }

    void undo(mark_type since) {
        for (; past_log_.size() > since.pasts; past_log_.pop_back())
            set_past(past_log_.back().first, past_log_.back().second);
        for (; backfill_log_.size() > since.backfills; backfill_log_.pop_back())
            set_backfill(backfill_log_.back().first, std::move(backfill_log_.back().second));
        for (; skip_log_.size() > since.skips; skip_log_.pop_back())
            set_skips(skip_log_.back().first, std::move(skip_log_.back().second));
    }

  private:
    void set_past(task_id waiting, std::optional<task_id> past) {
        if (auto const before = past_of(waiting)) waiting_.erase({*before, waiting});
        if (!past) {
            pasts_.erase(waiting);
            return;
        }
        pasts_.insert_or_assign(waiting, *past);
        if (*past != task_id{}) waiting_.emplace(*past, waiting);
    }

    void set_backfill(std::uint64_t number, std::optional<memory_backfill> wanted) {
        if (wanted)
            backfills_.insert_or_assign(number, std::move(*wanted));
        else
            backfills_.erase(number);
    }

    void set_skips(std::string const& schedule, skip_log wanted) {
        if (wanted.reasons.empty())
            skips_.erase(schedule);
        else
            skips_.insert_or_assign(schedule, std::move(wanted));
    }

    std::map<task_id, task_id> pasts_;              ///< who waits, and for whom
    std::set<std::pair<task_id, task_id>> waiting_; ///< who is waited for, and by whom
    std::map<std::uint64_t, memory_backfill> backfills_;
    std::map<std::string, skip_log, std::less<>> skips_; ///< of schedules that have left something out

    std::vector<std::pair<task_id, std::optional<task_id>>> past_log_;
    std::vector<std::pair<std::uint64_t, std::optional<memory_backfill>>> backfill_log_;
    std::vector<std::pair<std::string, skip_log>> skip_log_;
};

} // namespace ax::detail

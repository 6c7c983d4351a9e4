// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// The backfills that are under way, as memory knows them, and whether one may go on.
/// Threads: none of its own; the caller's mutex guards it.
template <class Storage>
class backfill_list {
    using record_type = dependent<backfill_record, Storage>;

  public:
    /// Enters one, or replaces what is known of it; it is looked at.
    void put(record_type const& record) {
        auto& known = entries_[record.number];
        if (record.version >= known.record.version) known.record = record;
        wake(record.number);
    }

    /// Nothing is to be done until something ends.
    void looked_at(std::uint64_t number) {
        if (auto const known = entries_.find(number); known != entries_.end()) known->second.looks = false;
    }

    void wake(std::uint64_t number) {
        auto const known = entries_.find(number);
        if (known == entries_.end()) return;
        known->second.looks = true;
        must_look_ = true;
    }

    void erase(std::uint64_t number) { entries_.erase(number); }

    void erase_of(std::string_view schedule) {
        for (auto at = entries_.begin(); at != entries_.end();)
            at = at->second.record.schedule == schedule ? entries_.erase(at) : std::next(at);
    }

    /// It cannot be stored whatever is tried: it rests until the next start, and harms no other.
    void set_aside(std::uint64_t number) {
        if (auto const known = entries_.find(number); known != entries_.end()) known->second.rests = true;
    }

    /// A task has ended that may make room.
    void wake() noexcept {
        for (auto& [number, each] : entries_) each.looks = must_look_ = true;
    }

    /// To be called now and then: what others have ended is noticed as well.
    void sweep(duration steady) noexcept {
        if (steady - looked_at_ >= std::chrono::seconds{30}) wake();
    }

    bool wants_look() const noexcept { return must_read_ || (must_look_ && !entries_.empty()); }

    /// What is stored may differ from what is known here.
    void read_anew() noexcept { must_read_ = true; }
    bool take_wish_to_read() noexcept { return std::exchange(must_read_, false); }

    std::vector<record_type> take(duration steady) {
        std::vector<record_type> all;
        if (!std::exchange(must_look_, false)) return all;
        looked_at_ = steady;
        for (auto& [number, each] : entries_)
            if (std::exchange(each.looks, false) && !each.rests) all.push_back(each.record);
        return all;
    }

  private:
    struct entry {
        record_type record;
        bool looks = false;
        bool rests = false;
    };

    std::map<dependent<std::uint64_t, Storage>, entry> entries_;
    bool must_look_ = false;
    bool must_read_ = false;
    duration looked_at_{0}; ///< steady time
};

} // namespace ax::detail

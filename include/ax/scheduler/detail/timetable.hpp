// SPDX-License-Identifier: MIT
#pragma once

#include "ax/scheduler/schedule.hpp"
#include "ax/storage/concept.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// A schedule in memory: what the store says of it, what that means, and its alarm.
struct planned {
    schedule_record record;
    std::optional<recurrence> how; ///< none where the stored text does not parse: it is kept, and never fires
    timer_handle timer{};
    bool due = false;
};

/// The schedules of a store, by a place number that stays as long as the process. Threads: the caller's mutex guards it.
class timetable {
  public:
    /// Enters or replaces a schedule. Returns its place.
    std::uint64_t put(schedule_record const& record) {
        auto const known = places_.find(record.name);
        auto const place = known != places_.end() ? known->second : ++last_place_;
        if (known == places_.end()) places_.emplace(record.name, place);
        auto& p = entries_[place];
        if (!p.how || p.record.spec != record.spec) {
            p.how.reset();
            try {
                p.how = recurrence::parse(record.spec);
            } catch (error const&) { // its text is kept in the store, for the version that can read it
            }
        }
        p.record = record;
        return place;
    }

    void remove(std::string_view name) {
        auto const known = places_.find(name);
        if (known == places_.end()) return;
        entries_.erase(known->second);
        places_.erase(known);
    }

    std::optional<std::uint64_t> find(std::string_view name) const {
        auto const known = places_.find(name);
        if (known == places_.end()) return std::nullopt;
        return known->second;
    }

    planned& at(std::uint64_t place) { return entries_.at(place); }

    /// Its alarm has rung: it is due until take_due() is called.
    void came_due(std::uint64_t place) {
        auto const found = entries_.find(place);
        if (found == entries_.end() || std::exchange(found->second.due, true)) return;
        due_.push_back(place);
    }

    bool any_due() const { return !due_.empty(); }

    std::vector<std::uint64_t> take_due() {
        std::vector<std::uint64_t> taken;
        for (auto const place : std::exchange(due_, {}))
            if (auto const found = entries_.find(place); found != entries_.end()) {
                found->second.due = false;
                taken.push_back(place);
            }
        return taken;
    }

    template <class Fn>
    void for_each(Fn&& fn) {
        for (auto& [place, p] : entries_) fn(place, p);
    }

  private:
    std::map<std::uint64_t, planned> entries_;
    std::map<std::string, std::uint64_t, std::less<>> places_;
    std::vector<std::uint64_t> due_;
    std::uint64_t last_place_ = 0;
};

} // namespace ax::detail

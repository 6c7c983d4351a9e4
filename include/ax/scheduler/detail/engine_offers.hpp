// SPDX-License-Identifier: MIT
// The engine's offers: what a submit or an outcome makes due is claimed in the very commit that makes it so, where
// there is room in flight. It is then written once where it would have been written twice, and starts one exchange with
// the storage earlier.
#pragma once

#include "ax/scheduler/detail/engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace ax::detail {

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::claims_at_once::open(
    std::array<std::size_t, priority_classes> const& wanted, bool pump) {
    if constexpr (supported) {
        auto& e = owner_;
        if (!e.threaded_ || e.stopping_ || !e.recovered_ || e.must_relearn_ || e.relearning_ || e.alone_ != 0 ||
            e.backing_off())
            return;
        bool any = false;
        for (std::size_t i = 0; i != priority_classes; ++i) {
            auto const c = static_cast<priority_class>(i);
            bool const others_first = e.window_.any_due(c) || (!pump && e.claiming_[i] != 0);
            room_[i] = others_first ? 0 : (std::min)(wanted[i], e.flight_.room(c));
            any = any || room_[i] != 0;
        }
        if (!any) return;
        types_ = e.offered_types();
        offer_.node = e.self_;
        offer_.until = saturating_add(e.times_.reached(), e.settings_.read_ahead);
        offer_.types = *types_;
        // What a lane has not read yet may be due as well, and earlier.
        for (auto const* lane : e.lanes_)
            if (lane->runnable && lane->loaded_until < offer_.until)
                room_[static_cast<std::size_t>(class_of(lane->lane))] = 0;
        for (std::size_t i = 0; i != priority_classes; ++i)
            e.flight_.hold_room(static_cast<priority_class>(i), room_[i]);
        open_ = true;
        ++e.offers_;
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::claims_at_once::take(std::vector<attempt_ptr>& entered) {
    if (!open_) return;
    auto& e = owner_;
    handler_type* by = nullptr;
    entered.reserve(entered.size() + offer_.claimed.size());
    for (auto& record : offer_.claimed) {
        if (by == nullptr || by->name != record.type)
            by = e.handlers_.find(e.numbers_.find(record.type)->second)->second.get();
        auto const mine = e.flight_.enter(std::move(record), *by);
        if (e.stopping_ && e.flight_.revoke(*mine))
            e.give_back(mine);
        else
            entered.push_back(mine);
    }
    offer_.claimed.clear();
    close();
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::claims_at_once::close() {
    if (!std::exchange(open_, false)) return;
    auto& e = owner_;
    for (std::size_t i = 0; i != priority_classes; ++i) e.flight_.free_room(static_cast<priority_class>(i), room_[i]);
    if (e.window_.any_due(e.flight_.open_classes())) e.nudge_pump_ = true; // it may have found the room held
    if (--e.offers_ != 0) return;
    // Whose claim was on the way is in flight by now, or was not claimed here.
    std::erase_if(e.held_back_, [&](task_id id) { return !e.flight_.contains(id); });
    if (e.must_relearn_) e.nudge_pump_ = true;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::offered_types() -> std::shared_ptr<std::vector<offered_type> const> {
    if (!offered_types_) {
        std::vector<offered_type> all;
        for (auto const& [number, by] : handlers_)
            if (!by->paused) all.push_back({number, by->how->on_interrupt == on_interrupt::hold});
        std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.type < b.type; });
        offered_types_ = std::make_shared<std::vector<offered_type> const>(std::move(all));
    }
    return offered_types_;
}

} // namespace ax::detail

// SPDX-License-Identifier: MIT
// Limits, as the engine knows them: it checks what callers ask for, and keeps the first of those that wait. What has
// room is decided by the storage, in a claim.
#pragma once

#include "ax/scheduler/detail/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace ax::detail {

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::check_limits(std::string_view name,
                                                               later<handler_options> const& how) {
    auto const type = "task type \"" + std::string(name) + '"';
    check_limit({how.concurrency, how.rate}, type);
    for (auto const& one : how.resources) {
        check_text(one.name, "resource", longest_name, false);
        auto const same = [&](resource_need const& other) { return other.name == one.name; };
        if (std::count_if(how.resources.begin(), how.resources.end(), same) != 1)
            throw error(errc::invalid_argument, "resource \"" + one.name + "\" of " + type + " is named twice");
    }
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
auto engine<Storage, Clock, Attempt, Recurrence>::store_limits(type_number number, later<handler_options> const& how)
    -> alarms {
    alarms due;
    store_.transact(commit::lazy, [&](writer& w) { // what a power cut takes is stored again by the next start
        due = w.limit_type(number, limit{how.concurrency, how.rate}, how.resources, times_.reached());
    });
    return due;
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::limit_tag(std::string_view tag, later<limit> const& how) {
    check_text(tag, "tag", longest_name, false);
    check_limit(how, "tag \"" + std::string(tag) + '"');
    alarms due;
    transact([&](writer& w) { due = w.limit_tag(tag, how, times_.reached()); });
    take_alarms(due);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
void engine<Storage, Clock, Attempt, Recurrence>::set_resource(std::string_view name, std::size_t capacity) {
    check_text(name, "resource", longest_name, false);
    auto const resource = "resource \"" + std::string(name) + '"';
    check_limit_number(capacity, "capacity", resource);
    std::lock_guard const in_order{pause_mutex_}; // no handler comes between the look at them and the store
    {
        std::lock_guard const guard{mutex_};
        for (auto const& [number, by] : handlers_)
            for (auto const& need : by->how->resources)
                if (need.name == name && need.amount > capacity)
                    throw error(errc::invalid_argument, "capacity of " + resource + " is " + std::to_string(capacity) +
                                                            ", below the " + std::to_string(need.amount) +
                                                            " that task type \"" + by->name + "\" asks for");
    }
    alarms due;
    transact([&](writer& w) { due = w.set_resource(name, capacity, times_.reached()); });
    take_alarms(due);
}

template <storage Storage, clock Clock, class Attempt, class Recurrence>
bool engine<Storage, Clock, Attempt, Recurrence>::read_waiters(bool sweep) {
    bool all = false;
    limit_number after{};
    {
        std::lock_guard const guard{mutex_};
        // What is taken over makes room and names nobody: the look that is due for that is not spent before.
        if (!recovered_) return false;
        all = std::exchange(must_look_, false);
        if (stopping_ || (!all && !sweep)) return false;
        if (all)
            waiters_.reset(times_.reached());
        else
            after = swept_limit_;
    }
    bool came = false;
    try {
        for (bool more = true; more;) {
            auto const page = store_.waiting(after, waiting_size, times_.reached());
            after = page.complete ? limit_number{} : page.last;
            more = all && !page.complete;
            came = came || !page.due.empty();
            std::lock_guard const guard{mutex_};
            arm(page.due);
            swept_limit_ = after;
        }
    } catch (...) {
        std::lock_guard const guard{mutex_};
        must_look_ = must_look_ || all;
        throw;
    }
    return came;
}

} // namespace ax::detail

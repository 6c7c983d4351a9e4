// SPDX-License-Identifier: MIT
// Which occurrences of a schedule are created, and which are left out, when some are due.
//
// The planned instants from the cursor on that have come fall into two groups. Those on time are created whatever the
// policy says; those that were missed are the policy's. An occurrence is on time
//   1. where it is late by no more than a second, the rhythm in which a scheduler looks at everything it has; or
//   2. where it is the latest that is due and late by no more than the grace, which is how long the scheduler has been
//      watching, a minute at the most. So a database that is locked for some seconds never drops a daily task, and one
//      that is away for an hour does not leave a queue of runs of a task of each second.
// Lateness counts from when the task was to run: the nominal instant and the offset that spread gives.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/scheduler/policies.hpp"
#include "ax/time/time_point.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ax::detail {

/// An occurrence that is late by no more than this was not missed.
inline constexpr duration punctual = std::chrono::seconds{1};

/// The longest grace: what a storage that is away for longer keeps from being created is missed.
inline constexpr duration longest_grace = std::chrono::minutes{1};

/// How late the latest occurrence may be without having been missed.
/// @param watching_since  When the scheduler began to watch without a break: its start, the end of a suspend, a step of
///                        the clock. What came due before was missed.
constexpr duration misfire_grace(time_point now, time_point watching_since) noexcept {
    if (now <= watching_since) return punctual;
    return (std::clamp)(now - watching_since, punctual, longest_grace);
}

struct misfire_terms {
    misfire_policy policy{};
    duration offset{0};       ///< of the spread: a task runs at its nominal instant and this much
    duration grace{punctual}; ///< misfire_grace()
    std::size_t most = (std::numeric_limits<std::size_t>::max)(); ///< occurrences in one plan; at least 1
};

/// What to do with a schedule.
template <class Recurrence>
struct misfire_plan {
    std::vector<dependent<time_point, Recurrence>> create; ///< nominal instants, in order
    std::uint64_t skipped = 0;                             ///< those left out, all before what is created
    std::optional<time_point> first_skipped, last_skipped;
    std::string reason;             ///< why they were left out; empty: none were
    std::optional<time_point> next; ///< the new cursor; none: it waits for the end of what was created, or is over
};

/// Plans what becomes of the occurrences that are due.
///
/// @param cursor  The next nominal instant of the schedule.
/// @return        Where nothing is due, the cursor as it was. Where `most` cut the plan short, its cursor is due as
///                well, and a second plan goes on from there.
/// Complexity: as count() of the recurrence, and a search for each occurrence that is created or looked at: at most
///             10,000 for run_all, and those of one second. What is skipped is counted, not enumerated.
template <class Recurrence>
misfire_plan<Recurrence> plan_misfires(Recurrence const& how, time_point cursor, time_point now,
                                       misfire_terms const& terms) {
    misfire_plan<Recurrence> plan;
    plan.next = cursor;
    auto const until = saturating_add(now, -terms.offset);
    if (cursor > until) return plan;

    auto const last = how.latest(cursor, until).nominal;
    auto const before = [&](time_point nominal) -> std::optional<time_point> {
        if (nominal == cursor) return std::nullopt;
        auto const found = how.preceding(nominal);
        return found && *found > cursor ? *found : cursor;
    };

    std::optional<time_point> first; // of those to be created; all behind it are
    auto const bound = saturating_add(until, -punctual);
    for (std::optional<time_point> t = last; t && *t >= bound; t = before(*t)) first = t;
    if (!first && until - last <= terms.grace) first = last;

    if (auto missed = first ? before(*first) : std::optional{last}) {
        switch (terms.policy.what()) {
        case misfire_policy::action::skip: plan.reason = "missed: the policy is to skip"; break;
        case misfire_policy::action::run_once:
            plan.reason = "missed: a later one stands for it";
            if (!first) first = missed;
            break;
        case misfire_policy::action::run_all:
            plan.reason = "missed: only the latest " + std::to_string(terms.policy.most()) + " are made up for";
            for (std::size_t n = terms.policy.most(); missed && n != 0; --n, missed = before(*missed)) first = missed;
            break;
        case misfire_policy::action::within:
            if (first || until - *missed <= terms.policy.late_by()) {
                plan.reason = "missed: a later one stands for it";
                if (!first) first = missed;
            } else {
                plan.reason =
                    "missed: the latest is late by more than " + std::to_string(terms.policy.late_by().count()) + " ms";
            }
            break;
        }
    }

    plan.last_skipped = first ? before(*first) : std::optional{last};
    if (plan.last_skipped) {
        plan.first_skipped = cursor;
        plan.skipped = 1 + how.count(cursor, *plan.last_skipped);
    } else {
        plan.reason.clear();
    }

    if (!first) { // a fixed delay has no run whose end it could wait for: it counts on from now
        plan.next = how.waits_for_end() ? std::optional{how.after_end(now)} : how.following(last);
        return plan;
    }
    plan.next = first;
    do {
        plan.create.push_back(*plan.next);
        plan.next = how.following(*plan.next);
    } while (plan.next && *plan.next <= last && plan.create.size() < terms.most);
    return plan;
}

} // namespace ax::detail

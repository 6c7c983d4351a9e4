// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ax {

/// When a task of a workflow runs, judged by how its parents ended. The names are Airflow's.
///
/// "Failed" means dead, cancelled or upstream_failed, except in one_done. The numbers are stored and never change their
/// meaning. What each rule does with any mixture of outcomes: docs/trigger_rules.md.
enum class trigger_rule : std::uint8_t {
    all_success = 0,                 ///< all parents have succeeded
    all_failed = 1,                  ///< all parents have failed
    all_done = 2,                    ///< all parents have ended, no matter how
    all_done_min_one_success = 3,    ///< all parents have ended, none was skipped, and one has succeeded
    all_skipped = 4,                 ///< all parents were skipped
    one_failed = 5,                  ///< one parent has failed; does not wait for the others
    one_success = 6,                 ///< one parent has succeeded; does not wait for the others
    one_done = 7,                    ///< one parent has succeeded, died or was cancelled; does not wait for the others
    none_failed = 8,                 ///< all parents have succeeded or were skipped
    none_failed_min_one_success = 9, ///< all parents have succeeded or were skipped, and one has succeeded
    none_skipped = 10,               ///< all parents have ended, and none was skipped
    always = 11,                     ///< waits for nothing
};

/// The name of a rule as it is written here; "unknown" for a number that is none.
constexpr std::string_view to_string(trigger_rule rule) noexcept {
    switch (rule) {
    case trigger_rule::all_success: return "all_success";
    case trigger_rule::all_failed: return "all_failed";
    case trigger_rule::all_done: return "all_done";
    case trigger_rule::all_done_min_one_success: return "all_done_min_one_success";
    case trigger_rule::all_skipped: return "all_skipped";
    case trigger_rule::one_failed: return "one_failed";
    case trigger_rule::one_success: return "one_success";
    case trigger_rule::one_done: return "one_done";
    case trigger_rule::none_failed: return "none_failed";
    case trigger_rule::none_failed_min_one_success: return "none_failed_min_one_success";
    case trigger_rule::none_skipped: return "none_skipped";
    case trigger_rule::always: return "always";
    }
    return "unknown";
}

/// Every rule, in the order of the numbers.
inline constexpr trigger_rule all_trigger_rules[] = {
    trigger_rule::all_success,  trigger_rule::all_failed,
    trigger_rule::all_done,     trigger_rule::all_done_min_one_success,
    trigger_rule::all_skipped,  trigger_rule::one_failed,
    trigger_rule::one_success,  trigger_rule::one_done,
    trigger_rule::none_failed,  trigger_rule::none_failed_min_one_success,
    trigger_rule::none_skipped, trigger_rule::always,
};

/// The rule of that name, exactly as to_string() writes it. Nothing for any other text.
constexpr std::optional<trigger_rule> trigger_rule_from(std::string_view name) noexcept {
    for (auto rule : all_trigger_rules)
        if (to_string(rule) == name) return rule;
    return std::nullopt;
}

/// The rule with that number, as a store keeps it. Nothing for a number that is none.
constexpr std::optional<trigger_rule> trigger_rule_of(std::int64_t code) noexcept {
    if (code < 0 || code >= static_cast<std::int64_t>(std::size(all_trigger_rules))) return std::nullopt;
    return all_trigger_rules[code];
}

/// How the parents of one task stand. A parent that has not reached a terminal state is in `total` alone.
struct parent_counts {
    std::uint32_t total = 0;
    std::uint32_t succeeded = 0;
    std::uint32_t failed = 0; ///< dead or cancelled
    std::uint32_t skipped = 0;
    std::uint32_t upstream_failed = 0;

    /// How many have ended, in whatever way.
    constexpr std::uint64_t ended() const noexcept {
        return std::uint64_t{succeeded} + failed + skipped + upstream_failed;
    }

    /// How many have not ended. Counts that add up to more than `total` leave none.
    constexpr std::uint64_t unfinished() const noexcept { return ended() < total ? total - ended() : 0; }

    friend constexpr bool operator==(parent_counts const&, parent_counts const&) = default;
};

/// What becomes of a task whose parents stand as they do.
enum class trigger_decision : std::uint8_t {
    wait,            ///< nothing yet: it depends on how the others end
    run,             ///< it becomes ready
    skip,            ///< it ends as skipped
    upstream_failed, ///< it ends as upstream_failed
};

/// The name of a decision as it is written here; "unknown" for a number that is none.
constexpr std::string_view to_string(trigger_decision decision) noexcept {
    switch (decision) {
    case trigger_decision::wait: return "wait";
    case trigger_decision::run: return "run";
    case trigger_decision::skip: return "skip";
    case trigger_decision::upstream_failed: return "upstream_failed";
    }
    return "unknown";
}

/// What `rule` says of parents that stand as `parents`.
///
///  1. Without parents a task runs, under every rule.
///  2. When all parents have ended, the answer is not `wait`. So every workflow ends.
///  3. An answer other than `wait` stays the same however the remaining parents end. So it may be acted upon at once,
///     and the order in which parents end does not matter.
///
/// Complexity: O(1). Threads: safe.
/// Source:     the list of trigger rules in Airflow's documentation, "Dags"; docs/trigger_rules.md says what differs.
constexpr trigger_decision decide(trigger_rule rule, parent_counts parents) noexcept {
    using enum trigger_decision;
    if (parents.total == 0) return run;
    bool const done = parents.unfinished() == 0;
    bool const success = parents.succeeded > 0;
    bool const skipped = parents.skipped > 0;
    bool const failure = parents.failed > 0 || parents.upstream_failed > 0;

    switch (rule) {
    case trigger_rule::all_success:
        if (failure) return upstream_failed;
        if (!done) return wait; // also where one was skipped: another may still fail, and that weighs more
        return skipped ? skip : run;
    case trigger_rule::all_failed:
        if (success || skipped) return skip;
        return done ? run : wait;
    case trigger_rule::all_done: return done ? run : wait;
    case trigger_rule::all_done_min_one_success:
        if (skipped) return skip;
        if (!done) return wait;
        return success ? run : upstream_failed;
    case trigger_rule::all_skipped:
        if (success || failure) return skip;
        return done ? run : wait;
    case trigger_rule::one_failed:
        if (failure) return run;
        return done ? skip : wait;
    case trigger_rule::one_success:
        if (success) return run;
        if (!done) return wait;
        return failure ? upstream_failed : skip;
    case trigger_rule::one_done:
        if (success || parents.failed > 0) return run; // what never ran is not done
        return done ? skip : wait;
    case trigger_rule::none_failed:
        if (failure) return upstream_failed;
        return done ? run : wait;
    case trigger_rule::none_failed_min_one_success:
        if (failure) return upstream_failed;
        if (!done) return wait;
        return success ? run : skip;
    case trigger_rule::none_skipped:
        if (skipped) return skip;
        return done ? run : wait;
    case trigger_rule::always: return run;
    }
    return done ? upstream_failed : wait; // a number that is no rule: it ends, and does not run
}

} // namespace ax

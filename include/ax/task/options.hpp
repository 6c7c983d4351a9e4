// SPDX-License-Identifier: MIT
// What a caller may say about a task, a handler and a scheduler. All are aggregates for designated initialisers, and
// every member has a default.
#pragma once

#include "ax/retry/retry_policy.hpp"
#include "ax/task/conflict_policy.hpp"
#include "ax/task/limit.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ax {

/// How long tasks are kept that have ended, with all that is kept of them: see docs/retention.md.
struct retention_policy {
    time_span age = std::chrono::hours{30 * 24};      ///< since it finished
    time_span dead_age = std::chrono::hours{90 * 24}; ///< since it died
    std::size_t count = 1'000'000; ///< ended tasks of one type, and as many dead ones: beyond it the oldest go

    friend bool operator==(retention_policy const&, retention_policy const&) = default;
};

/// An age that nothing reaches.
inline constexpr time_span forever{(duration::max)()};

/// Said with one submit.
struct submit_options {
    std::string key = {}; ///< idempotency key, unique for as long as `key_scope` says; empty: none
    key_scoping key_scope = key_scoping::kept;
    conflict_policy on_conflict = {};            ///< what to do where the key is taken
    std::optional<instant> run_at = {};          ///< not before this instant; none: at once
    std::optional<time_span> delay = {};         ///< or: not before this long from now
    std::optional<priority_class> priority = {}; ///< none: that of its type (see docs/definitions.md), else normal
    std::string route_key = {};                  ///< tasks with the same one run one at a time, in order; empty: none
    route_ordering route_order = route_ordering::strict;
    std::optional<instant> deadline = {};        ///< not started after it, and asked to stop at it
    std::optional<ax::retry::policy> retry = {}; ///< stored with the task; none: the handler's
    std::vector<std::string> tags = {};          ///< at most 16: what limit_tag() can limit together
};

/// What becomes of an attempt that a stop or a crash cut off.
enum class interrupt_policy : std::uint8_t {
    rerun, ///< it runs again
    hold   ///< it waits for a person (retry() lets it go): for handlers that must not run twice
};

/// The values of interrupt_policy, as a caller writes them: `.on_interrupt = ax::on_interrupt::hold`.
namespace on_interrupt {
using enum interrupt_policy;
}

/// Where a handler runs.
enum class isolation_level : std::uint8_t {
    none,   ///< in this process: what kills the handler kills all
    process ///< in a child process for each attempt, which may crash, and can be killed: see docs/isolation.md
};

/// The values of isolation_level, as a caller writes them: `.isolation = ax::isolation::process`.
namespace isolation {
using enum isolation_level;
}

/// Said with one handler.
struct handler_options {
    std::optional<ax::retry::any_policy> retry = {}; ///< none: exponential(1min).cap(30min).jitter(0.1).attempts(4)
    std::optional<time_span> timeout = {};           ///< then the stop token is set; who had taken it has failed
    std::optional<time_span> expected = {};          ///< then an event says that it takes long; nothing is stopped
    std::optional<std::size_t> concurrency = {};     ///< how many tasks of the type may be in flight at once
    std::optional<ax::rate> rate = {};               ///< how often one may begin
    interrupt_policy on_interrupt = interrupt_policy::rerun;
    std::vector<resource_need> resources = {};      ///< what each holds while it is in flight: `{{"gpu", 1}}`
    std::optional<retention_policy> retention = {}; ///< none: the scheduler's
    isolation_level isolation = isolation_level::none;
};

/// What the commits of submits and outcomes survive.
enum class durability_level : std::uint8_t {
    power_loss,   ///< a power cut
    process_crash ///< the end of the process; a power cut may take the latest few
};

/// The values of durability_level, as a caller writes them: `.durability = ax::durability::process_crash`.
namespace durability {
using enum durability_level;
}

/// Said with one scheduler.
struct options {
    std::size_t workers = 4;                              ///< handlers at work at once
    std::string node_name = {};                           ///< for people; empty: the host's name and the process id
    time_span window = std::chrono::minutes{5};           ///< how far ahead due tasks are held in memory, as ids
    time_span read_ahead = std::chrono::milliseconds{50}; ///< how long before its instant a task may be claimed
    durability_level durability = durability_level::power_loss;
    std::size_t poison_after = 3; ///< deaths of the process in a lonely run of a task that make it dead
    std::array<std::size_t, priority_classes> weights = {50, 25, 15, 10}; ///< shares of critical, high, normal, low
    std::size_t claimed_ahead = 64;        ///< tasks of one priority class that are claimed and not yet started
    std::size_t claimed_peak = 16'384;     ///< to which that grows while the workers take as many between two claims
    std::size_t window_tasks = 1'000'000;  ///< ids held in memory; the window shrinks to this
    std::size_t submit_queue = 100'000;    ///< tasks in submits under way; more wait (or throw, in a handler)
    std::size_t payload_limit = 1U << 20U; ///< bytes of one payload or result
    time_span stop_grace = std::chrono::seconds{10}; ///< how long handlers have after their stop tokens are set
    std::uint64_t seed = 0;                          ///< of jitter; 0: drawn from the system
    retention_policy retention = {};                 ///< of tasks whose handler does not say otherwise
};

} // namespace ax

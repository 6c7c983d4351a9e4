// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace ax {

/// Why a task is not running now.
enum class wait_cause : std::uint8_t {
    unknown_task,      ///< there is none with this id
    ended,             ///< it is over
    running,           ///< it does run, here
    running_elsewhere, ///< another node has claimed it
    storage_down,      ///< what the storage does not answer, nobody can claim
    stopped,           ///< this scheduler has been stopped, or was not started yet
    held,              ///< it waits for a person: retry() lets it go
    time,              ///< its instant has not come
    retry_wait,        ///< its last attempt failed, and the next has not come
    route,             ///< another task with its route key goes first
    past,              ///< the occurrence before it has not succeeded
    parents,           ///< tasks of its workflow that go first have not ended; of a workflow: its tasks have not
    limit,             ///< a limit of its type, a tag or a resource is used up
    suspect,           ///< it was in flight when the process died, twice in a row: suspects run one at a time
    paused,            ///< its type, or its workflow, is paused
    no_handler,        ///< nobody here has a handler for its type
    no_worker,         ///< it may start, and every worker is busy
    next               ///< nothing stands in its way: it is claimed at this moment
};

constexpr char const* to_string(wait_cause cause) noexcept {
    switch (cause) {
    case wait_cause::unknown_task: return "unknown task";
    case wait_cause::ended: return "ended";
    case wait_cause::running: return "running";
    case wait_cause::running_elsewhere: return "running elsewhere";
    case wait_cause::storage_down: return "storage down";
    case wait_cause::stopped: return "stopped";
    case wait_cause::held: return "held";
    case wait_cause::time: return "time not come";
    case wait_cause::retry_wait: return "retry wait";
    case wait_cause::route: return "route key";
    case wait_cause::past: return "past";
    case wait_cause::parents: return "parents";
    case wait_cause::limit: return "limit";
    case wait_cause::suspect: return "suspect";
    case wait_cause::paused: return "paused";
    case wait_cause::no_handler: return "no handler";
    case wait_cause::no_worker: return "no worker free";
    case wait_cause::next: return "next";
    }
    return "?";
}

/// One answer of explain().
struct wait_reason {
    wait_cause cause{};
    std::string text;   ///< a sentence, for people
    std::string holder; ///< who has what it waits for: the ids of tasks, a node; empty: nobody
};

} // namespace ax

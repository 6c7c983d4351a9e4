// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/unique_function.hpp"
#include "ax/scheduler/detail/attempt_store.hpp"
#include "ax/scheduler/detail/child_link.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/storage/concept.hpp"
#include "ax/task/options.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"
#include "ax/wheel/timing_wheel.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace ax {
class context;
}

namespace ax::detail {

/// What one lane has in memory. Everything due by `loaded_until` is in the alarm wheel, queued or claimed; what lies
/// beyond is on disk only.
struct lane_state {
    lane_id lane{};
    bool runnable = false;            ///< its type has a handler and is not paused
    bool complete = false;            ///< the last page reached the end of the window
    std::optional<time_point> beyond; ///< something is due then that lies behind `loaded_until`
    std::size_t in_memory = 0;        ///< in the wheel and in the queue of due ids
    std::size_t queued = 0;           ///< of those, in the queue
    time_point loaded_until = (time_point::min)();
    time_point loading_until = (time_point::min)(); ///< while a page is being read: as if it were loaded
    std::optional<time_point> truncated_at;         ///< memory was full: read again from here
    alarm cursor{};                                 ///< the last one read
    bool sweep_due = false;                         ///< to be looked through once its queue is empty
};

/// A task type that this process can run.
struct handler {
    using lane_type = lane_state;

    std::string name;
    type_number number{};
    unique_function<void(context&, std::string_view)> call;
    handler_options said;                       ///< in the code
    std::shared_ptr<handler_options const> how; ///< and with what a document says; replaced, never changed
    bool paused = false;
    std::array<lane_state, priority_classes> lanes{};
};

/// Why an attempt was asked to stop. The first reason stands.
enum class stop_reason : std::uint8_t { none, cancelled, timed_out, deadline, stopping, lease_lost };

enum class attempt_status : std::uint8_t {
    waiting, ///< claimed ahead, its instant has not come
    queued,  ///< may start
    posted,  ///< handed to the executor
    running, ///< its handler has been called
    ended    ///< over; its outcome is on the way to the storage
};

/// One claimed task in memory, from claim to settled outcome. The scheduler's mutex guards what is not marked
/// otherwise.
struct claimed_attempt {
    using handler_type = handler;

    task_record record;
    handler* handled_by = nullptr;
    std::shared_ptr<handler_options const> how; ///< as it was when it was claimed
    attempt_store* store = nullptr;             ///< set before the handler is called
    child_link* link = nullptr;                 ///< in a child process: to its parent
    attempt_status status = attempt_status::waiting;
    bool over_expected = false;
    time_point started{};
    duration started_steady{};
    timer_handle wall_alarm{};                   ///< its alarm by wall time: the start, or the deadline
    std::array<timer_handle, 3> steady_alarms{}; ///< its alarms by steady time

    std::stop_source stop;                              ///< safe
    std::atomic<stop_reason> reason{stop_reason::none}; ///< safe
    std::atomic<bool> token_taken{false};               ///< safe

    std::mutex text_mutex; ///< guards the rest: handlers may use their context from threads of their own
    std::string log;
    std::size_t log_dropped = 0;
    double progress = 0;
    std::string progress_note;
    std::string result;
    std::vector<submission> follow_ups;
    workflow_nodes<std::string> additions;    ///< to its workflow
    std::unique_ptr<attempt_effects> effects; ///< null: none
    std::vector<std::string> steps_taken;     ///< names of steps that are done in this attempt, or under way
    std::vector<kept_step> steps_before;      ///< of earlier attempts
    bool steps_read = false;

    std::atomic<bool> begun{false}; ///< safe: the executor has come to it, or it was taken back before that

    /// True for the first caller: either the executor, which may then run it, or who takes it back.
    bool begin() noexcept { return !begun.exchange(true); }

    bool request_stop(stop_reason why) {
        auto none = stop_reason::none;
        auto const first = reason.compare_exchange_strong(none, why);
        stop.request_stop();
        return first;
    }

    /// The storage has said that the task is another's by now.
    void lose() {
        reason.store(stop_reason::lease_lost);
        stop.request_stop();
    }
};

} // namespace ax::detail

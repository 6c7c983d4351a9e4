// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/ids.hpp"
#include "ax/task/record.hpp"
#include "ax/time/time_point.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ax {

/// The points in a task's life at which an event is sent.
enum class event_kind : std::uint8_t {
    picked_up,  ///< claimed by this node; the claim is committed
    dispatched, ///< its handler is about to be called
    overran,    ///< its handler has run for longer than expected
    reported,   ///< its outcome is committed
    refused,    ///< its outcome came too late: somebody else owns the task by now, and nothing was changed
    storage_down, ///< the storage failed; the scheduler goes on trying
    storage_up    ///< it answers again
};

constexpr char const* to_string(event_kind kind) noexcept {
    switch (kind) {
    case event_kind::picked_up: return "picked up";
    case event_kind::dispatched: return "dispatched";
    case event_kind::overran: return "overran";
    case event_kind::reported: return "reported";
    case event_kind::refused: return "refused";
    case event_kind::storage_down: return "storage down";
    case event_kind::storage_up: return "storage up";
    }
    return "?";
}

/// One structured log line. The texts live as long as the call that hands it over.
struct event {
    event_kind kind = event_kind::picked_up;
    time_point at{};
    task_id id{};
    std::string_view type;
    std::string_view key;
    std::size_t attempt = 0;
    fence_token attempt_id{};
    std::optional<attempt_outcome> outcome; ///< for reported and refused
    duration lateness{};                    ///< for dispatched: start minus run_at
    duration run_time{};                    ///< for reported, refused and overran
    std::string_view error;                 ///< for reported, and the storage's message
};

} // namespace ax

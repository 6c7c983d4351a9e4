// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ax {

/// Names a task for ever: given by its storage in rising order, never used again. 0 is no task.
enum class task_id : std::uint64_t {};

/// One start of one scheduler: drawn at random when it starts, so that a restart on the same host is another node.
/// 0 is no node.
enum class node_id : std::uint64_t {};

/// The number of an attempt's ownership: the version that its claim wrote. A write under an older fence changes
/// nothing.
enum class fence_token : std::uint64_t {};

constexpr std::uint64_t to_number(task_id id) noexcept { return static_cast<std::uint64_t>(id); }
constexpr std::uint64_t to_number(node_id id) noexcept { return static_cast<std::uint64_t>(id); }
constexpr std::uint64_t to_number(fence_token number) noexcept { return static_cast<std::uint64_t>(number); }

} // namespace ax

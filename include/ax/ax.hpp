// SPDX-License-Identifier: MIT
// All of ax with its default storage. Each part is also a header of its own.
#pragma once

#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/sqlite.hpp"
#include "ax/version.hpp"

namespace ax {

/// The scheduler with the default storage.
using sqlite_scheduler = scheduler<sqlite_storage>;

} // namespace ax

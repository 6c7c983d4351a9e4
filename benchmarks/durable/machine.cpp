// SPDX-License-Identifier: MIT
#include "durable/machine.hpp"

#include <sys/syscall.h>

// Counts flushes for the whole process: SQLite's calls come here as well.
extern "C" int fdatasync(int file) {
    bench::flushes.fetch_add(1, std::memory_order_relaxed);
    return static_cast<int>(::syscall(SYS_fdatasync, file));
}

// SPDX-License-Identifier: MIT
#include "wheel/uv_timers.hpp"

#include <dlfcn.h>
#include <time.h>

namespace bench {

namespace {
bool moved = false;
timespec shown{};
} // namespace

moved_monotonic_clock::moved_monotonic_clock(std::int64_t milliseconds) {
    shown = {static_cast<time_t>(milliseconds / 1'000), static_cast<long>(milliseconds % 1'000 * 1'000'000)};
    moved = true;
}

moved_monotonic_clock::~moved_monotonic_clock() { moved = false; }

} // namespace bench

// libuv's calls come here, since the program's own symbols go before those of the C library.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
    if (bench::moved && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)) {
        *time = bench::shown;
        return 0;
    }
    static auto const real = reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
    return real(clock, time);
}

// reject: non-.?constexpr.? function .*refuse
// SPDX-License-Identifier: MIT
#include "ax/retry/retry_policy.hpp"

using namespace std::chrono_literals;

int main() {
#ifdef AX_REJECT
    constexpr auto policy = ax::retry::exponential(1min).jitter(1.5);
#else
    constexpr auto policy = ax::retry::exponential(1min).jitter(0.5);
#endif
    return policy.base_delay(1) == 1min ? 0 : 1;
}

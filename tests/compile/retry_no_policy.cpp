// reject: (conversion from|no viable conversion from) .?twice
// SPDX-License-Identifier: MIT
#include "ax/retry/retry_policy.hpp"

using namespace std::chrono_literals;

struct twice {
#ifdef AX_REJECT // next_delay() is not const
    std::optional<ax::duration> next_delay(ax::retry::retry_state const& state, ax::retry::random_source&){
#else
    std::optional<ax::duration> next_delay(ax::retry::retry_state const& state, ax::retry::random_source&) const {
#endif
        return state.failures < 2 ? std::optional<ax::duration>{1s} : std::nullopt;
}
}
;

int main() {
    ax::retry::any_policy const policy = twice{};
    return policy.plain() == nullptr ? 0 : 1;
}

// reject: no edge from the first state to the second
// SPDX-License-Identifier: MIT
#include "ax/task/lifecycle.hpp"

int main() {
    using enum ax::task_state;
#ifdef AX_REJECT
    return static_cast<int>(ax::lifecycle.go<succeeded, ready>());
#else
    return ax::lifecycle.go<dead, ready>() == ready ? 0 : 1;
#endif
}

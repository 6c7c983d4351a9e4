// reject: ax needs exceptions
// SPDX-License-Identifier: MIT
#ifdef AX_REJECT
#undef __cpp_exceptions // as -fno-exceptions leaves it
#endif
#include "ax/core/error.hpp"

int main() { return ax::error(ax::errc::stopped, "no").transient() ? 1 : 0; }

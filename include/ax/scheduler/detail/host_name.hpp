// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/text.hpp"

#include <string>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace ax::detail {

/// What people know this process by: the host's name and the process id. Not an identity: in containers both repeat.
inline std::string machine_and_process() {
#if defined(__unix__) || defined(__APPLE__)
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    return bounded_text(host, 200) + ':' + std::to_string(::getpid());
#else
    return "node";
#endif
}

} // namespace ax::detail

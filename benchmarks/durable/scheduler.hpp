// SPDX-License-Identifier: MIT
// The scheduler that is measured, compiled once for all files that use it, and the task that it is measured with.
#pragma once

#include "durable/settings.hpp"

#include <ax/ax.hpp>

#include <string>

extern template class ax::detail::engine<ax::sqlite_storage, ax::system_clock>;
extern template class ax::scheduler<ax::sqlite_storage>;

namespace bench {

struct probe {
    std::string text;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(probe, text)
};
inline constexpr ax::task_type<probe> probing{"probe"};
inline probe const sample{std::string(89, 'x')}; // {"text":"..."}: 100 bytes

inline ax::options with(settings const& s) {
    ax::options o;
    o.workers = s.workers;
    o.durability = s.power_loss ? ax::durability::power_loss : ax::durability::process_crash;
    return o;
}

} // namespace bench

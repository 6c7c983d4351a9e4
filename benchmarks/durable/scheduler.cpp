// SPDX-License-Identifier: MIT
#include "durable/scheduler.hpp"

template class ax::detail::engine<ax::sqlite_storage, ax::system_clock>;
template class ax::scheduler<ax::sqlite_storage>;

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/storage/memory.hpp"

/// How the conformance suite opens a memory_storage.
struct memory_fixture {
    using storage_type = ax::memory_storage;
    static constexpr bool durable = false;

    storage_type open() const { return {}; }
};

// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/retention.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage removes the ended tasks that it is told to, and no others", "[storage][memory]") {
    conformance::pruning<memory_fixture>();
}

TEST_CASE("memory_storage knows how many tasks are in each state", "[storage][memory]") {
    conformance::counting<memory_fixture>();
}

TEST_CASE("memory_storage keeps notes", "[storage][memory]") { conformance::notes<memory_fixture>(); }

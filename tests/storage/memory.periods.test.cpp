// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/periods.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage lets an occurrence wait for the one before it, or sets it aside", "[storage][memory]") {
    conformance::periods<memory_fixture>();
}

TEST_CASE("memory_storage keeps backfills", "[storage][memory]") { conformance::backfills<memory_fixture>(); }

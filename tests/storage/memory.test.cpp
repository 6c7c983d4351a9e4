// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/insertion.hpp"
#include "conformance/transactions.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage stores what is inserted", "[storage][memory]") { conformance::insertion<memory_fixture>(); }

TEST_CASE("memory_storage commits all of a transaction or nothing", "[storage][memory]") {
    conformance::transactions<memory_fixture>();
}

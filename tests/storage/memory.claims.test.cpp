// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/claims.hpp"
#include "conformance/recovery.hpp"
#include "conformance/routes.hpp"
#include "conformance/steps.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage gives claimable tasks to one node at a time", "[storage][memory]") {
    conformance::claims<memory_fixture>();
}

TEST_CASE("memory_storage bounds the suspects in flight", "[storage][memory]") {
    conformance::suspects<memory_fixture>();
}

TEST_CASE("memory_storage recovers what dead owners held", "[storage][memory]") {
    conformance::recovery<memory_fixture>();
}

TEST_CASE("memory_storage runs a route one at a time, in order", "[storage][memory]") {
    conformance::routes<memory_fixture>();
}

TEST_CASE("memory_storage keeps the values of finished steps", "[storage][memory]") {
    conformance::steps<memory_fixture>();
}

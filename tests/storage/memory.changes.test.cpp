// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/changes.hpp"
#include "conformance/reads.hpp"
#include "conformance/schedules.hpp"
#include "conformance/settling.hpp"
#include "conformance/skips.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage settles under the current fence alone", "[storage][memory]") {
    conformance::settling<memory_fixture>();
}

TEST_CASE("memory_storage keeps every attempt", "[storage][memory]") { conformance::histories<memory_fixture>(); }

TEST_CASE("memory_storage changes what callers ask for where the state allows it", "[storage][memory]") {
    conformance::changes<memory_fixture>();
}

TEST_CASE("memory_storage steps schedules and creates each occurrence once", "[storage][memory]") {
    conformance::schedules<memory_fixture>();
}

TEST_CASE("memory_storage keeps what schedules leave out, and why", "[storage][memory]") {
    conformance::skips<memory_fixture>();
}

TEST_CASE("memory_storage reads in the promised order", "[storage][memory]") { conformance::reads<memory_fixture>(); }

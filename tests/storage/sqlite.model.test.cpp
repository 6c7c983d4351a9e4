// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/differential.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage agrees with memory_storage through a random life", "[storage][sqlite]") {
    auto const seed = GENERATE(range(1u, 7u));
    storage_differential<sqlite_fixture>(seed, 1'500);
}

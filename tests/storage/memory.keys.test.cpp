// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/keys.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage does with a key that is taken what the submit says", "[storage][memory]") {
    conformance::key_policies<memory_fixture>();
}

TEST_CASE("memory_storage replaces a holder or puts it off or passes its key on", "[storage][memory]") {
    conformance::key_conflicts<memory_fixture>();
}

TEST_CASE("memory_storage holds a key for as long as its scope says", "[storage][memory]") {
    conformance::key_scopes<memory_fixture>();
}

// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/limit_model.hpp"
#include "conformance/limits.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage keeps limits", "[storage][memory][limits]") {
    conformance::limit_definitions<memory_fixture>();
}

TEST_CASE("memory_storage gives no more than its limits allow", "[storage][memory][limits]") {
    conformance::limits<memory_fixture>();
}

TEST_CASE("memory_storage lets those that wait for a limit go in order", "[storage][memory][limits]") {
    conformance::waiting_for_limits<memory_fixture>();
}

TEST_CASE("memory_storage exceeds no limit through a random life, and leaves nobody behind",
          "[storage][memory][limits]") {
    conformance::limit_model<memory_fixture>(GENERATE(range(1U, 41U)));
}

// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/limit_model.hpp"
#include "conformance/limits.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage keeps limits", "[storage][sqlite][limits]") {
    conformance::limit_definitions<sqlite_fixture>();
}

TEST_CASE("sqlite_storage gives no more than its limits allow", "[storage][sqlite][limits]") {
    conformance::limits<sqlite_fixture>();
}

TEST_CASE("sqlite_storage lets those that wait for a limit go in order", "[storage][sqlite][limits]") {
    conformance::waiting_for_limits<sqlite_fixture>();
}

TEST_CASE("sqlite_storage exceeds no limit through a random life, and leaves nobody behind",
          "[storage][sqlite][limits]") {
    conformance::limit_model<sqlite_fixture>(GENERATE(range(1U, 9U)));
}

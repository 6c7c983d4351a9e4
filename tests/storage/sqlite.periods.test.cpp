// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/periods.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage lets an occurrence wait for the one before it, or sets it aside", "[storage][sqlite]") {
    conformance::periods<sqlite_fixture>();
}

TEST_CASE("sqlite_storage keeps backfills", "[storage][sqlite]") { conformance::backfills<sqlite_fixture>(); }

// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/insertion.hpp"
#include "conformance/transactions.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage stores what is inserted", "[storage][sqlite]") { conformance::insertion<sqlite_fixture>(); }

TEST_CASE("sqlite_storage commits all of a transaction or nothing", "[storage][sqlite]") {
    conformance::transactions<sqlite_fixture>();
}

TEST_CASE("sqlite_storage keeps everything over a restart", "[storage][sqlite]") {
    conformance::durability<sqlite_fixture>();
}

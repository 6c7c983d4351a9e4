// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/claims.hpp"
#include "conformance/recovery.hpp"
#include "conformance/routes.hpp"
#include "conformance/steps.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage gives claimable tasks to one node at a time", "[storage][sqlite]") {
    conformance::claims<sqlite_fixture>();
}

TEST_CASE("sqlite_storage bounds the suspects in flight", "[storage][sqlite]") {
    conformance::suspects<sqlite_fixture>();
}

TEST_CASE("sqlite_storage recovers what dead owners held", "[storage][sqlite]") {
    conformance::recovery<sqlite_fixture>();
}

TEST_CASE("sqlite_storage runs a route one at a time, in order", "[storage][sqlite]") {
    conformance::routes<sqlite_fixture>();
}

TEST_CASE("sqlite_storage keeps the values of finished steps", "[storage][sqlite]") {
    conformance::steps<sqlite_fixture>();
}

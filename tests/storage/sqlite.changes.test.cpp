// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/changes.hpp"
#include "conformance/reads.hpp"
#include "conformance/schedules.hpp"
#include "conformance/settling.hpp"
#include "conformance/skips.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage settles under the current fence alone", "[storage][sqlite]") {
    conformance::settling<sqlite_fixture>();
}

TEST_CASE("sqlite_storage keeps every attempt", "[storage][sqlite]") { conformance::histories<sqlite_fixture>(); }

TEST_CASE("sqlite_storage changes what callers ask for where the state allows it", "[storage][sqlite]") {
    conformance::changes<sqlite_fixture>();
}

TEST_CASE("sqlite_storage steps schedules and creates each occurrence once", "[storage][sqlite]") {
    conformance::schedules<sqlite_fixture>();
}

TEST_CASE("sqlite_storage keeps what schedules leave out, and why", "[storage][sqlite]") {
    conformance::skips<sqlite_fixture>();
}

TEST_CASE("sqlite_storage reads in the promised order", "[storage][sqlite]") { conformance::reads<sqlite_fixture>(); }

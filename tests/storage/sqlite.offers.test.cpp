// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/offers.hpp"
#include "storage/sqlite_fixture.hpp"

static_assert(ax::eager_writer<ax::sqlite_storage::writer>);

TEST_CASE("sqlite_storage claims at once what is offered", "[storage][sqlite]") {
    conformance::offers<sqlite_fixture>();
}

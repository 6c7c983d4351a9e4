// SPDX-License-Identifier: MIT
#include "ax/storage/sqlite.hpp"

#include "conformance/workflow_model.hpp"
#include "storage/sqlite_fixture.hpp"

TEST_CASE("sqlite_storage keeps workflows as the definition says, whatever happens", "[storage][sqlite][workflow]") {
    conformance::workflow_lives<sqlite_fixture>(40, 80);
}

// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/workflow_model.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage keeps workflows as the definition says, whatever happens", "[storage][workflow]") {
    conformance::workflow_lives<memory_fixture>(150, 120);
}

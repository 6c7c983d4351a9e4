// SPDX-License-Identifier: MIT
#include "ax/storage/memory.hpp"

#include "conformance/awaited.hpp"
#include "conformance/workflow_upkeep.hpp"
#include "storage/memory_fixture.hpp"

TEST_CASE("memory_storage lets the tasks of a workflow go as their parents end", "[storage][workflow]") {
    conformance::workflows<memory_fixture>();
}

TEST_CASE("memory_storage does to a workflow what is asked", "[storage][workflow]") {
    conformance::workflow_changes<memory_fixture>();
}

TEST_CASE("memory_storage lets workflows grow and wait for each other", "[storage][workflow]") {
    conformance::growing_workflows<memory_fixture>();
}

TEST_CASE("memory_storage removes workflows as a whole", "[storage][workflow]") {
    conformance::pruned_workflows<memory_fixture>();
}

TEST_CASE("memory_storage says what the tasks of a workflow wait for", "[storage][workflow]") {
    conformance::workflow_obstacles<memory_fixture>();
}

TEST_CASE("memory_storage ends the waits for occurrences that do not come", "[storage][workflow]") {
    conformance::occurrences_left_out<memory_fixture>();
}

TEST_CASE("memory_storage refuses workflows that wait for each other in a circle", "[storage][workflow]") {
    conformance::wait_circles<memory_fixture>();
}

TEST_CASE("memory_storage tells what a wait waits for that is not there", "[storage][workflow]") {
    conformance::told_waits<memory_fixture>();
}

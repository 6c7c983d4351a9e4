// SPDX-License-Identifier: MIT
#include "ax/storage/graph.hpp"

#include "support/catch.hpp"

TEST_CASE("a workflow_record counts those that have not ended, and all", "[storage][workflow]") {
    ax::workflow_record whole;
    CHECK(whole.unfinished() == 0);
    CHECK(whole.total() == 0);
    whole.waiting = 1;
    whole.ready = 2;
    whole.succeeded = 4;
    whole.dead = 8;
    whole.cancelled = 16;
    whole.skipped = 32;
    whole.upstream_failed = 64;
    CHECK(whole.unfinished() == 3);
    CHECK(whole.total() == 127);
}

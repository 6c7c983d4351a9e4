// SPDX-License-Identifier: MIT
// The suite that every storage passes. A backend's test file says how to open one (see support.hpp for what a fixture
// has) and calls either storage_conformance() or, to compile in parallel, its parts from several files.
#pragma once

#include "conformance/changes.hpp"
#include "conformance/claims.hpp"
#include "conformance/insertion.hpp"
#include "conformance/keys.hpp"
#include "conformance/limits.hpp"
#include "conformance/offers.hpp"
#include "conformance/periods.hpp"
#include "conformance/reads.hpp"
#include "conformance/recovery.hpp"
#include "conformance/retention.hpp"
#include "conformance/routes.hpp"
#include "conformance/schedules.hpp"
#include "conformance/settling.hpp"
#include "conformance/skips.hpp"
#include "conformance/steps.hpp"
#include "conformance/transactions.hpp"
#include "conformance/workflow_upkeep.hpp"

/// All parts, to be called from a TEST_CASE. Catch runs it once for each section.
template <class Fixture>
void storage_conformance() {
    static_assert(ax::storage<typename Fixture::storage_type>);
    SECTION("insertion") { conformance::insertion<Fixture>(); }
    SECTION("key policies") { conformance::key_policies<Fixture>(); }
    SECTION("key conflicts") { conformance::key_conflicts<Fixture>(); }
    SECTION("key scopes") { conformance::key_scopes<Fixture>(); }
    SECTION("claims") { conformance::claims<Fixture>(); }
    SECTION("suspects") { conformance::suspects<Fixture>(); }
    SECTION("settling") { conformance::settling<Fixture>(); }
    SECTION("histories") { conformance::histories<Fixture>(); }
    SECTION("routes") { conformance::routes<Fixture>(); }
    SECTION("limit definitions") { conformance::limit_definitions<Fixture>(); }
    SECTION("limits") { conformance::limits<Fixture>(); }
    SECTION("waiting for limits") { conformance::waiting_for_limits<Fixture>(); }
    SECTION("recovery") { conformance::recovery<Fixture>(); }
    SECTION("changes") { conformance::changes<Fixture>(); }
    SECTION("schedules") { conformance::schedules<Fixture>(); }
    SECTION("skips") { conformance::skips<Fixture>(); }
    SECTION("periods") { conformance::periods<Fixture>(); }
    SECTION("backfills") { conformance::backfills<Fixture>(); }
    SECTION("steps") { conformance::steps<Fixture>(); }
    SECTION("workflows") { conformance::workflows<Fixture>(); }
    SECTION("workflow changes") { conformance::workflow_changes<Fixture>(); }
    SECTION("growing workflows") { conformance::growing_workflows<Fixture>(); }
    SECTION("pruned workflows") { conformance::pruned_workflows<Fixture>(); }
    SECTION("workflow obstacles") { conformance::workflow_obstacles<Fixture>(); }
    SECTION("pruning") { conformance::pruning<Fixture>(); }
    SECTION("counting") { conformance::counting<Fixture>(); }
    SECTION("notes") { conformance::notes<Fixture>(); }
    SECTION("reads") { conformance::reads<Fixture>(); }
    SECTION("transactions") { conformance::transactions<Fixture>(); }
    if constexpr (ax::eager_writer<typename Fixture::storage_type::writer>) {
        SECTION("offers") { conformance::offers<Fixture>(); }
    }
    if constexpr (Fixture::durable) {
        SECTION("durability") { conformance::durability<Fixture>(); }
    }
}

// SPDX-License-Identifier: MIT
// The suite that every storage passes. A backend's test file says how to open one (see support.hpp for what a fixture
// has) and calls either storage_conformance() or, to compile in parallel, its parts from several files.
#pragma once

#include "conformance/changes.hpp"
#include "conformance/claims.hpp"
#include "conformance/insertion.hpp"
#include "conformance/reads.hpp"
#include "conformance/recovery.hpp"
#include "conformance/routes.hpp"
#include "conformance/schedules.hpp"
#include "conformance/settling.hpp"
#include "conformance/transactions.hpp"

/// All parts, to be called from a TEST_CASE. Catch runs it once for each section.
template <class Fixture>
void storage_conformance() {
    static_assert(ax::storage<typename Fixture::storage_type>);
    SECTION("insertion") { conformance::insertion<Fixture>(); }
    SECTION("claims") { conformance::claims<Fixture>(); }
    SECTION("suspects") { conformance::suspects<Fixture>(); }
    SECTION("settling") { conformance::settling<Fixture>(); }
    SECTION("histories") { conformance::histories<Fixture>(); }
    SECTION("routes") { conformance::routes<Fixture>(); }
    SECTION("recovery") { conformance::recovery<Fixture>(); }
    SECTION("changes") { conformance::changes<Fixture>(); }
    SECTION("schedules") { conformance::schedules<Fixture>(); }
    SECTION("reads") { conformance::reads<Fixture>(); }
    SECTION("transactions") { conformance::transactions<Fixture>(); }
    if constexpr (Fixture::durable) {
        SECTION("durability") { conformance::durability<Fixture>(); }
    }
}

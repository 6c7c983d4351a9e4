// SPDX-License-Identifier: MIT
#include "ax/observe/events.hpp"

#include "support/catch.hpp"

#include <set>
#include <string>

TEST_CASE("every kind of event has a name of its own", "[observe]") {
    std::set<std::string> names;
    for (auto const kind :
         {ax::event_kind::picked_up, ax::event_kind::dispatched, ax::event_kind::overran, ax::event_kind::reported,
          ax::event_kind::refused, ax::event_kind::storage_down, ax::event_kind::storage_up})
        names.insert(ax::to_string(kind));
    CHECK(names.size() == 7);
    CHECK_FALSE(names.contains("?"));
}

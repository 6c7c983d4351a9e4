// SPDX-License-Identifier: MIT
#include "ax/task/task_type.hpp"

#include "support/catch.hpp"

#include <string>
#include <vector>

namespace {
struct order {
    int id = 0;
    std::string note = "none";
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(order, id, note)
};
} // namespace

TEST_CASE("a payload goes through its text and back", "[task]") {
    auto const text = ax::detail::encode_payload(order{7, "caf\xC3\xA9"}, "close");
    auto const back = ax::detail::decode_payload<order>(text, "close");
    CHECK(back.id == 7);
    CHECK(back.note == "caf\xC3\xA9");
    CHECK(ax::detail::encode_payload(ax::no_payload{}, "probe").empty());
    CHECK(ax::detail::decode_payload<std::vector<int>>("[1,2]", "list") == std::vector{1, 2});
}

TEST_CASE("a payload of another version gets defaults for what it lacks, and extra members do no harm", "[task]") {
    auto const back = ax::detail::decode_payload<order>(R"({"id": 3, "colour": "red"})", "close");
    CHECK(back.id == 3);
    CHECK(back.note == "none");
}

TEST_CASE("what is no payload is named", "[task]") {
    CHECK_THROWS_WITH(ax::detail::decode_payload<order>("{", "close"),
                      Catch::Matchers::Contains("payload of task type \"close\""));
    CHECK_THROWS_AS(ax::detail::decode_payload<order>(R"({"id": "seven"})", "close"), ax::error);
    CHECK_THROWS_WITH(ax::detail::decode_payload<order>(std::string("{}\0{", 4), "close"),
                      Catch::Matchers::Contains("payload of task type \"close\": a NUL byte at offset 2"));
    try {
        ax::detail::encode_payload(std::string{"\xFF"}, "text");
        FAIL("bad UTF-8 was taken");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
    }
}

// SPDX-License-Identifier: MIT
#include "ax/version.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <fstream>
#include <iterator>
#include <string>

TEST_CASE("the version is three numbers, and its text is these", "[ax]") {
    STATIC_REQUIRE(AX_VERSION_MAJOR >= 0);
    STATIC_REQUIRE(AX_VERSION_MINOR >= 0);
    STATIC_REQUIRE(AX_VERSION_PATCH >= 0);
    CHECK(std::string(AX_VERSION_STRING) == std::to_string(AX_VERSION_MAJOR) + "." + std::to_string(AX_VERSION_MINOR) +
                                                "." + std::to_string(AX_VERSION_PATCH));
}

TEST_CASE("the numbers can be compared by the preprocessor", "[ax]") {
#if AX_VERSION_MAJOR * 1'000'000 + AX_VERSION_MINOR * 1'000 + AX_VERSION_PATCH > 0
    bool const known = true;
#else
    bool const known = false;
#endif
    CHECK(known);
}

TEST_CASE("the build takes its version from the header, and says none of its own", "[ax]") {
    std::ifstream in(test::project_file("CMakeLists.txt"));
    std::string const text{std::istreambuf_iterator<char>(in), {}};
    REQUIRE_FALSE(text.empty());
    CHECK(text.find("include/ax/version.hpp") != text.npos);
    CHECK(text.find(AX_VERSION_STRING) == text.npos);
}

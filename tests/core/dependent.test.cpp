// SPDX-License-Identifier: MIT
#include "ax/core/dependent.hpp"

#include "support/catch.hpp"

#include <type_traits>

namespace {

struct incomplete;

template <class On>
struct user {
    using later = ax::detail::dependent<incomplete, On>;
    static auto size() { return sizeof(later); } // of a plain incomplete type this would be an error here
};

struct incomplete {
    char bytes[3];
};

} // namespace

TEST_CASE("a dependent type is the type itself, looked at when the template is used", "[core]") {
    STATIC_REQUIRE(std::is_same_v<ax::detail::dependent<int, incomplete>, int>);
    CHECK(user<int>::size() == 3);
}

// SPDX-License-Identifier: MIT
#include "ax/core/text.hpp"

#include "support/catch.hpp"

#include <string>

using namespace std::string_literals;

TEST_CASE("first_bad_byte finds what is not UTF-8", "[core]") {
    using ax::detail::first_bad_byte;
    CHECK(first_bad_byte("") == std::string_view::npos);
    CHECK(first_bad_byte("caf\xC3\xA9 \xE2\x9C\x93 \xF0\x9F\x98\x80") == std::string_view::npos);
    CHECK(first_bad_byte("a\xC3") == 1);            // cut in the middle
    CHECK(first_bad_byte("ab\x80") == 2);           // starts with a continuation
    CHECK(first_bad_byte("\xC0\xAF") == 0);         // overlong
    CHECK(first_bad_byte("\xE0\x9F\xBF") == 0);     // overlong
    CHECK(first_bad_byte("\xED\xA0\x80") == 0);     // a surrogate
    CHECK(first_bad_byte("\xF4\x90\x80\x80") == 0); // above U+10FFFF
    CHECK(first_bad_byte("x\xFF") == 1);
    CHECK(first_bad_byte("x\0y"s) == 1);
}

TEST_CASE("bounded_text cuts between characters and never returns bad bytes", "[core]") {
    using ax::detail::bounded_text;
    CHECK(bounded_text("caf\xC3\xA9", 4) == "caf");
    CHECK(bounded_text("caf\xC3\xA9", 5) == "caf\xC3\xA9");
    CHECK(bounded_text("a\0b\xFF"s, 100) == "a\xEF\xBF\xBD"
                                            "b\xEF\xBF\xBD");
    CHECK(bounded_text("\xFF", 2).empty());
}

TEST_CASE("check_text names what is wrong", "[core]") {
    using ax::detail::check_text;
    CHECK_NOTHROW(check_text("", "key", 10, true));
    CHECK_NOTHROW(check_text("0123456789", "key", 10, true));
    CHECK_THROWS_WITH(check_text("", "task type", 10, false), "task type is empty: invalid argument");
    CHECK_THROWS_WITH(check_text("01234567890", "key", 10, true),
                      "key \"01234567890\" has 11 bytes, at most 10 are allowed: invalid argument");
    CHECK_THROWS_WITH(check_text("a\0"s, "key", 10, true),
                      "key \"a\xEF\xBF\xBD\" has a NUL byte at offset 1: invalid argument");
}

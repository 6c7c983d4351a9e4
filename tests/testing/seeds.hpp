// SPDX-License-Identifier: MIT
// Which random histories are run: AX_SEED is the first seed, AX_HISTORIES how many of them, in each test that has some.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace seeds {

inline std::uint64_t number_from(char const* name, std::uint64_t otherwise) {
    char const* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct range {
    std::uint64_t first;
    std::uint64_t count;
    std::uint64_t end() const noexcept { return first + count; }
};

inline range chosen(std::uint64_t usual_count) {
    return {number_from("AX_SEED", 1), number_from("AX_HISTORIES", usual_count)};
}

} // namespace seeds

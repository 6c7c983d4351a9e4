// SPDX-License-Identifier: MIT
#include "backwards.hpp"

std::error_category const* category_seen_backwards();
std::error_category const* category_seen_backwards() { return &ax::error_category(); }

// SPDX-License-Identifier: MIT
#pragma once

#include "ax/scheduler/definitions.hpp"

#include "support/instants.hpp"

#include <string>

namespace test {

/// All faults of a document, a line each.
template <class Document>
std::string faults(Document const& document) {
    std::string text;
    for (auto const& e : ax::check_definitions(document, t0)) text += e.message() + '\n';
    return text;
}

/// The text without each occurrence of a path.
inline std::string without(std::string text, std::string const& path) {
    while (text.find(path) != text.npos) text.replace(text.find(path), path.size(), "");
    return text;
}

} // namespace test

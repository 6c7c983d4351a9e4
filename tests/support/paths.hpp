// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace test {

/// Where a file of this project lies, which is named from the project's root.
std::string project_file(std::string const& name);

/// Where a file of tests/data lies, which is named from there.
std::string data_file(std::string const& name);

} // namespace test

// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace ax_test {

/// The path of the folder or file `name` of this source tree.
std::string source_folder(std::string_view name);

/// The path of `name` below tests/data.
std::string data_file(std::string_view name);

} // namespace ax_test

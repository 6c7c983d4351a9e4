// SPDX-License-Identifier: MIT
// The only file that knows where the sources lie: the others give the same object code in every folder, which lets a
// compiler cache serve a second clone.
#include "support/data.hpp"

std::string ax_test::source_folder(std::string_view name) { return std::string{AX_TEST_SOURCE "/"}.append(name); }

std::string ax_test::data_file(std::string_view name) { return source_folder("tests/data/").append(name); }

// SPDX-License-Identifier: MIT
// The only file that is told where the sources lie: the others give the same object code in every folder, so that a
// compiler cache serves a second clone.
#include "support/paths.hpp"

std::string test::project_file(std::string const& name) { return std::string(AX_SOURCE_DIR "/") + name; }
std::string test::data_file(std::string const& name) { return project_file("tests/data/" + name); }

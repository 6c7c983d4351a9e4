#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds the examples and runs one of them:
#   examples/run.sh [name [arguments]]      the example hello when none is named
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/setup.sh

ax_install "${ax_packages[@]}"
name=${1:-hello}
if [[ ! -f examples/$name.cpp ]]; then
    echo "There is no example '$name'; there are: $(cd examples && printf '%s ' *.cpp | sed 's/\.cpp//g')" >&2
    exit 2
fi
ax_build examples --target "example_$name"
exec "build/examples/examples/$name" "${@:2}"

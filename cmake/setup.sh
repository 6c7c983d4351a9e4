# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by tests/run.sh and examples/run.sh: what a machine needs before it can build ax, and how to build.
# Packages are installed on Debian and Ubuntu only, and only those that are missing.

# What every user of ax needs: a compiler, the build tools, the libraries and the time zones.
ax_packages=(g++ cmake ninja-build libsqlite3-dev libfmt-dev nlohmann-json3-dev libcctz-dev tzdata)
# What working on ax needs beside these. Newer systems keep old names of time zones (US/Pacific) in tzdata-legacy, older
# ones in tzdata.
ax_test_packages=(clang libclang-rt-dev ccache catch2 libbenchmark-dev tzdata-legacy)

# The command that a package is installed for; nothing for a library.
ax_tool() {
    case $1 in
        ninja-build) echo ninja ;;
        clang) echo clang++ ;;
        g++ | cmake | ccache) echo "$1" ;;
    esac
}

# The missing ones of the packages named. A tool counts as there when it can be called, wherever it came from.
ax_missing() {
    local package tool
    for package in "$@"; do
        tool=$(ax_tool "$package")
        if [[ $tool ]] && command -v "$tool" >/dev/null; then continue; fi
        if [[ $package == tzdata-legacy && -e /usr/share/zoneinfo/US/Pacific ]]; then continue; fi
        if dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then continue; fi
        echo "$package"
    done
}

# Installs what is missing of the packages named, or says what is missing and ends.
ax_install() {
    if ! command -v apt-get >/dev/null; then
        # What the libraries are called here nobody can tell: CMake looks for them and names one that is missing.
        local package tool
        for package in "$@"; do
            tool=$(ax_tool "$package")
            if [[ -z $tool || $tool == ccache ]] || command -v "$tool" >/dev/null; then continue; fi
            echo "There is no $tool, and this is neither Debian nor Ubuntu. Please install what these packages of theirs" \
                "contain: $*" >&2
            exit 1
        done
        return
    fi

    local missing
    mapfile -t missing < <(ax_missing "$@")
    if ((${#missing[@]} == 0)); then return; fi

    local root=()
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            echo "Please install these packages, as root: apt-get install ${missing[*]}" >&2
            exit 1
        fi
        root=(sudo)
    fi
    # A machine that has just started may still hold the lock for its own updates.
    local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    if ! "${apt[@]}" update; then echo "apt-get update failed; trying with the lists that are there" >&2; fi
    if ! apt-cache show tzdata-legacy >/dev/null 2>&1; then
        mapfile -t missing < <(printf '%s\n' "${missing[@]}" | grep -vx tzdata-legacy)
    fi
    echo "Installing ${missing[*]}"
    if ! "${apt[@]}" install --no-install-recommends "${missing[@]}"; then
        echo "Could not install: ${missing[*]}" >&2
        exit 1
    fi
}

# Configures and builds a preset, in the folder build/<preset> of this tree; further arguments go to the build.
ax_build() {
    local preset=$1 launcher=()
    if command -v ccache >/dev/null; then
        # Paths below this folder do not count, so a clone elsewhere is served from the same cache.
        export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
        launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    cmake --preset "$preset" "${launcher[@]}"
    cmake --build --preset "$preset" "${@:2}"
}

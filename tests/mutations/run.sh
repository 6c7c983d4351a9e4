#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Breaks one promise at a time and shows that a test fails:
#   tests/mutations/run.sh [<name of a patch> ...]    all of them where none is named
#   tests/mutations/run.sh --check                    only whether each patch applies and its test is there, in a second
# Each *.patch here says in its first lines what it breaks, which files of tests are to be compiled for it, and which
# test has to fail, by the name that ctest lists. The tests run once on the headers as they are, where they have to
# pass; then once for each patch on a copy of the headers with that patch alone. The tree itself stays as it is.
#
# Ends with 1 where a patch does not apply or compile, where a test fails without it, or where none fails with it.
# Needs what tests/run.sh needs, without CMake, and patch or git (else it ends with 77). CXX and CXXFLAGS are taken from the environment (ccache clang++ is the
# fastest), and MUTATION_SECONDS is how long a test may take before it counts as one that never ends (default 60).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
read -ra compiler <<<"${CXX:-c++}"
read -ra flags <<<"${CXXFLAGS:--O0}"
flags+=(-std=c++20 -w -DFMT_SHARED)
seconds=${MUTATION_SECONDS:-60}

check_only=0
if [[ ${1:-} == --check ]]; then check_only=1 && shift; fi
patches=()
if (($#)); then
    for name in "$@"; do patches+=("$here/$(basename "$name" .patch).patch"); done
else
    patches=("$here"/*.patch)
fi

tool=$(command -v patch >/dev/null && echo patch || { command -v git >/dev/null && echo git; } || true)
if [[ -z $tool ]]; then echo "neither patch nor git is installed" >&2 && exit 77; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# For the temporary files of the tests: one that is cut off leaves them behind.
mkdir -p "$work/tmp" && export TMPDIR=$work/tmp

header() { sed -n "/^--- /q; s/^$2: //p" "$1"; } # <patch> <word>
say() { printf '%-34s %-16s %s\n' "$1" "$2" "$3"; }

# A fresh copy of the headers, with one patch in it or none.
copy_headers() {
    rm -rf "$work/include" && cp -r "$root/include" "$work/include"
    if ((!$#)); then return; fi
    if [[ $tool == patch ]]; then
        patch -s -p1 -d "$work" --no-backup-if-mismatch -F0 <"$1"
    else
        (cd "$work" && GIT_CEILING_DIRECTORIES=/ GIT_DIR=/dev/null git apply "$1")
    fi
}

bad=0
for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch)
    wrong=
    test=$(header "$patch" Test) files=$(header "$patch" Files)
    [[ $(header "$patch" Breaks) && $test && $files ]] || wrong="Breaks, Files or Test is missing in its head"
    if [[ -z $wrong ]] && ! copy_headers "$patch" >"$work/said" 2>&1; then wrong="does not apply: $(head -1 "$work/said")"; fi
    if [[ -z $wrong ]]; then
        found=0
        for file in $files; do
            [[ -e $root/$file ]] || wrong="there is no $file"
            if [[ -e $root/$file ]] && grep -qF "TEST_CASE(\"${test#*: }\"" "$root/$file"; then
                found=1
                [[ $file == "tests/${test%%: *}/"* ]] || wrong="$file is no test of ${test%%: *}"
            fi
        done
        if [[ -z $wrong ]] && ((!found)); then wrong="no test \"$test\" in $files"; fi
    fi
    if [[ $wrong ]]; then say "$name" WRONG "$wrong" && bad=1; fi
done
if ((bad)); then exit 1; fi
if ((check_only)); then echo "${#patches[@]} patches apply" && exit 0; fi

# ---- compiling and running -------------------------------------------------------------------------------------------

printf '#include "support/catch.hpp"\n' >"$work/probe.cpp"
catch=()
for libraries in "-lCatch2Main -lCatch2" -lCatch2WithMain; do
    read -ra words <<<"$libraries"
    if "${compiler[@]}" "${flags[@]}" -I"$root/tests" "$work/probe.cpp" "${words[@]}" -o "$work/probe" 2>"$work/said"; then
        catch=("${words[@]}") && break
    fi
done
if ((!${#catch[@]})); then cat "$work/said" >&2 && echo "no program with Catch2 can be linked" >&2 && exit 1; fi
"${compiler[@]}" "${flags[@]}" -DAX_SOURCE_DIR="\"$root\"" -I"$root/tests" -c "$root/tests/support/paths.cpp" -o "$work/paths.o"

build() { # <program> <file ...>, on the headers of the copy
    local program=$1 objects=() file
    shift
    for file in "$@"; do
        objects+=("$work/$(tr / _ <<<"$file").o")
        "${compiler[@]}" "${flags[@]}" -I"$work/include" -I"$root/tests" -c "$root/$file" -o "${objects[-1]}" || return 1
    done
    "${compiler[@]}" "${flags[@]}" "${objects[@]}" "$work/paths.o" "${catch[@]}" -lfmt -lsqlite3 -lcctz -pthread -o "$program"
}

run() { # <program> <test>: what it came to, as one word
    local pattern status=0
    pattern=$(sed 's/[][\\,"]/\\&/g; s/^~/\\~/' <<<"${2#*: }")
    (ulimit -c 0 && timeout -k 5 "$seconds" "$1" --rng-seed 1 --warn NoTests "$pattern") >"$work/said" 2>&1 || status=$?
    case $status in
        0) if grep -q '^No test' "$work/said"; then echo missing; else echo passes; fi ;;
        124 | 137) echo "never ends" ;;
        *) if grep -q '^No test' "$work/said"; then echo missing; elif ((status > 128)); then echo crashes; else echo fails; fi ;;
    esac
}

# Without a patch all have to pass. Those of the same files are compiled once.
echo "without a patch"
copy_headers
declare -A seen=()
for patch in "${patches[@]}"; do
    files=$(header "$patch" Files)
    if [[ ${seen[$files]:-} ]]; then continue; fi
    seen[$files]=1
    build "$work/program" $files || { echo "$files: does not compile" >&2 && exit 1; }
    for other in "${patches[@]}"; do
        if [[ $(header "$other" Files) != "$files" ]]; then continue; fi
        test=$(header "$other" Test)
        came=$(run "$work/program" "$test")
        if [[ $came == passes ]]; then continue; fi
        cat "$work/said" >&2
        say "$(basename "$other" .patch)" "$came" "without the patch: $test"
        bad=1
    done
done
if ((bad)); then exit 1; fi
echo "all pass"

lines=()
for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch)
    copy_headers "$patch"
    if build "$work/program" $(header "$patch" Files) >"$work/said" 2>&1; then
        came=$(run "$work/program" "$(header "$patch" Test)")
    else
        came="not compiled"
        head -5 "$work/said" >&2
    fi
    case $came in
        fails | crashes | "never ends") ;;
        passes) came=SURVIVES && bad=1 ;;
        *) came=${came^^} && bad=1 ;;
    esac
    lines+=("$(say "$name" "$came" "$(header "$patch" Test)")")
    echo "${lines[-1]}"
done
printf '\n%-34s %-16s %s\n' "with this patch" "the test" "of this name"
printf '%s\n' "${lines[@]}" ""
if ((bad)); then echo "not every patch makes its test fail" && exit 1; fi
echo "each of the ${#patches[@]} patches makes a test fail"

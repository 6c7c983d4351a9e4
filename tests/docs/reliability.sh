#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares the tables of docs/reliability.md with the list of faults and with what ctest lists:
#   reliability.sh <page> <faults> <label> <command that lists the tests ...>
# Fails where a fault has no line or two, where a line is of no fault, has no test and no word that says why, or names a
# test that is not listed. Ends with 77 (not run) where nothing is wrong but that a program was not built.
set -euo pipefail
page=$1 faults=$2 label=$3
shift 3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$@" >"$scratch/ctest"
# "  Test  #12: label/module: what it says". A name may hold anything, so the label is compared as text.
LC_ALL=C awk -v label="$label/" '
    match($0, /^ *Test +#[0-9]+: /) {
        name = substr($0, RLENGTH + 1)
        if (index(name, label) == 1) print substr(name, length(label) + 1)
    }' "$scratch/ctest" | sed 's/ (Disabled)$//' >"$scratch/listed"
if [[ ! -s $scratch/listed ]]; then
    echo "no test is listed with the label '$label'" >&2
    exit 1
fi

# One line a fault, four cells: id, what went wrong, what is done here, the proof. In the last one stand tests, each in
# its own pair of backticks, or one of the words in italics that say why there is none.
LC_ALL=C awk -v faults="$faults" -v listed="$scratch/listed" '
    function wrong(text) { print text; bad = 1 }
    BEGIN {
        while ((getline line <listed) > 0) {
            is_test[line] = 1
            if (match(line, /: not built$/)) not_built[substr(line, 1, RSTART - 1)] = 1
        }
        while ((getline line <faults) > 0)
            if (line ~ /^F[0-9]+$/) {
                is_fault[line] = 1
                fault[++faults_listed] = line
            }
    }
    /^\| *F[0-9]+ *\|/ {
        cells = split($0, cell, / *\| */)
        id = cell[2]
        if (cells != 6 || cell[6] != "") { wrong(id ": the line does not have four cells"); next }
        if (!(id in is_fault)) wrong(id ": there is no such fault")
        if (++lines[id] == 2) wrong(id ": has two lines")
        if (cell[3] == "" || cell[4] == "") wrong(id ": an empty cell")
        proof = cell[5]
        found = proof ~ /\*(later|open|not here)\*/
        # What was taken off is remembered, so that a lone backtick is found.
        while (match(proof, /`[^`]*`/)) {
            test = substr(proof, RSTART + 1, RLENGTH - 2)
            proof = substr(proof, RSTART + RLENGTH)
            found = 1
            if (test in is_test) continue
            module = test
            sub(/: .*/, "", module)
            if (module in not_built) ++unknown
            else wrong(id ": ctest lists no test \"" test "\"")
        }
        if (index(proof, "`")) wrong(id ": a backtick without its other one")
        if (!found) wrong(id ": neither a test nor a word that says why there is none")
    }
    END {
        for (i = 1; i <= faults_listed; ++i) if (!(fault[i] in lines)) wrong(fault[i] ": has no line")
        if (!faults_listed) wrong("the list of faults is empty")
        if (bad) exit 1
        if (unknown) { print unknown " tests are of programs that were not built"; exit 77 }
    }
' "$page" >&2

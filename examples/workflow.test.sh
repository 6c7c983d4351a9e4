# SPDX-License-Identifier: MIT
# workflow.test.sh PROGRAM FOLDER: recorded workflows are run, killed (SIGKILL) at random instants, and started again.
workflow=$1
data=$(dirname "${BASH_SOURCE[0]}")/../tests/data/workflows

RANDOM=11
for file in "$data"/*.json; do
    store=$(basename "$file" .json).db
    for ((kills = 0; kills < 3; ++kills)); do
        "$workflow" "$file" "$store" --speed 20000 >/dev/null &
        program=$!
        sleep "0.$(printf '%03d' $((20 + RANDOM % 200)))"
        kill -KILL "$program" || true # it may have ended already
        wait "$program" || true
    done 2>/dev/null
    timeout 60 "$workflow" "$file" "$store" --speed 20000 >shown.txt
    tail -n 2 shown.txt | head -n 1
    "$workflow" --check "$file" "$store"
done

# One task fails, under every rule.
for rule in all_success all_failed all_done all_done_min_one_success all_skipped one_failed one_success one_done \
    none_failed none_failed_min_one_success none_skipped always; do
    file=$data/srasearch-chameleon-50a-005.json
    words=("$file" "$rule.db" --rule "$rule" --fail fasterq-dump_ID0000002 --speed 20000)
    "$workflow" "${words[@]}" >/dev/null &
    program=$!
    sleep "0.$(printf '%03d' $((20 + RANDOM % 100)))"
    kill -KILL "$program" || true
    wait "$program" || true
    timeout 60 "$workflow" "${words[@]}" >shown.txt
    grep -q ' 1 dead' shown.txt
    "$workflow" --check "$file" "$rule.db" --rule "$rule"
done 2>/dev/null

# It shows what it has done; another start does nothing again; and the check can fail.
small=$data/blast-chameleon-small-002.json
"$workflow" "$small" small.db --speed 20000 --svg small.svg >first.txt
grep -q 'split_fasta_ID000001 .*#' first.txt
grep -q '^critical path: split_fasta_ID000001 -> ' first.txt
[[ $(grep -c '<rect ' small.svg) == $(grep -o '"id"' "$small" | wc -l) ]]
"$workflow" "$small" small.db --speed 20000 >second.txt
cmp first.txt second.txt
"$workflow" "$small" failed.db --speed 20000 --fail split_fasta_ID000001 >failed.txt
grep -q 'upstream_failed; 0 succeeded, 1 dead' failed.txt
"$workflow" --check "$small" failed.db
sed 's/split_fasta_ID000001/another/g' "$small" >other.json
if "$workflow" --check other.json small.db; then exit 1; fi

# Mistakes are named.
if "$workflow" nowhere.json x.db 2>wrong.txt; then exit 1; fi
grep -q 'cannot read nowhere.json' wrong.txt
echo '{"name":"c","tasks":[{"id":"a","parents":["b"]},{"id":"b","parents":["a"]}]}' >cycle.json
if "$workflow" cycle.json x.db 2>wrong.txt; then exit 1; fi
grep -q 'cycle: a -> b -> a' wrong.txt
if "$workflow" "$small" x.db --rule most 2>wrong.txt; then exit 1; fi
grep -q 'no trigger rule most' wrong.txt

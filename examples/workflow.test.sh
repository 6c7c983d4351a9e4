# SPDX-License-Identifier: MIT
# workflow.test.sh PROGRAM FOLDER: recorded workflows are run, killed (SIGKILL) at random instants, and started again.
workflow=$1
data=$(dirname "${BASH_SOURCE[0]}")/../tests/data/workflows

RANDOM=11
landed=0

# The speed at which the tasks of a graph fill half a second, so that a kill meets work.
speed_of() {
    grep -o '"runtime_s":[0-9.]*' "$1" | cut -d: -f2 | awk '{ sum += $1 } END { print sum / 8 / 0.5 }'
}

# Starts a run and kills it within its work. A run that had ended is no kill.
run_and_kill() {
    "$workflow" "$@" >/dev/null &
    program=$!
    sleep "0.$(printf '%03d' $((100 + RANDOM % 350)))"
    kill -KILL "$program" || true
    local status=0
    wait "$program" || status=$?
    if ((status == 137)); then landed=$((landed + 1)); fi
}

for file in "$data"/*.json; do
    store=$(basename "$file" .json).db
    words=("$file" "$store" --workers 8 --speed "$(speed_of "$file")")
    for ((kills = 0; kills < 2; ++kills)); do run_and_kill "${words[@]}"; done 2>/dev/null
    timeout 60 "$workflow" "${words[@]}" >shown.txt
    tail -n 2 shown.txt | head -n 1
    "$workflow" --check "$file" "$store"
done

# One task fails, under every rule, each with another graph.
rules=(all_success all_failed all_done all_done_min_one_success all_skipped one_failed one_success one_done
    none_failed none_failed_min_one_success none_skipped always)
for file in "$data"/*.json; do
    rule=${rules[0]}
    rules=("${rules[@]:1}")
    first=$(grep -o '"id":"[^"]*","runtime_s":[0-9.]*,"parents":\[\]' "$file" | head -n 1 | cut -d'"' -f4)
    words=("$file" "$rule.db" --workers 8 --rule "$rule" --fail "$first" --speed "$(speed_of "$file")")
    run_and_kill "${words[@]}" 2>/dev/null
    timeout 60 "$workflow" "${words[@]}" >shown.txt
    grep -q ' 1 dead' shown.txt
    "$workflow" --check "$file" "$rule.db" --rule "$rule"
done
echo "$landed of 36 kills met a run"
((landed >= 18))

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

// SPDX-License-Identifier: MIT
// What durable tasks cost with ax, beside the fastest pipeline that a hand can write on the same SQLite
// (durable/raw_pipeline.hpp), in one run and by turns. Both sides survive a power cut with each commit, but with
// --process-crash, and keep what has finished. `durable --help` lists the options.
#include "durable/rows.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace {

using namespace bench;

void run(settings const& s) {
    report out(s.json, s.durability());
    auto const compare = [&](std::string const& name, std::string const& unit, better direction,
                             std::function<figures(make_side const&)> const& how) {
        if (s.wants(name)) out.add(by_turns(name, unit, direction, s, how));
    };
    auto const more = better::higher;
    compare("submit/one", "us", better::lower, [&](make_side const& m) { return submit_one(s, m); });
    compare("submit/bulk", "tasks/s", more, [&](make_side const& m) { return submit_bulk(s, m, false); });
    compare("submit/bulk-random-keys", "tasks/s", more, [&](make_side const& m) { return submit_bulk(s, m, true); });
    compare("submit/8-threads", "tasks/s", more, [&](make_side const& m) { return submit_threads(s, m); });
    for (auto const in_flight : std::initializer_list<std::size_t>{1, 100, 2'000, 20'000}) {
        auto const count = s.scaled(in_flight == 1 ? 3'000 : in_flight == 100 ? 60'000 : 200'000);
        compare(fmt::format("life/{}", in_flight), "tasks/s", more,
                [&](make_side const& m) { return life(s, m, count, in_flight); });
    }
    if (s.wants("preload/1M")) out.add(preload(s));
    if (s.wants("lateness/p50") || s.wants("lateness/p99")) lateness(s, out, false);
    if (s.wants("lateness-busy/p99")) lateness(s, out, true);
    if (s.wants("restart/1M")) out.add(restart(s, "restart/1M", 1e6));
    if (s.wants("restart/10M") && !s.brief) out.add(restart(s, "restart/10M", 1e7));
    if (s.wants("schedules/100k")) out.add(schedules(s));
    if (s.wants("workflow/100k")) out.add(workflow(s));
    if (s.wants("idle/cpu")) out.add(idle(s));
}

} // namespace

int main(int count, char** values) {
    settings s;
    if (auto const code = read_settings(s, "durable", count, values)) return *code;
    run(s);
}

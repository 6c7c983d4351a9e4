// SPDX-License-Identifier: MIT
// What axctl says of its commands: a line or two of each for `axctl --help`, all of one for `axctl COMMAND --help`.
#pragma once

namespace axctl {

inline constexpr char list_usage[] = "  axctl list FILE [--state S] [--type T] [--limit N] [--after ID]\n";
inline constexpr char list_help[] =
    "    the tasks in a store, one a line\n"
    "    --state S   only these: created, ready, dispatched, running, succeeded, failed, dead, cancelled,\n"
    "                skipped or upstream_failed; ready and failed ones by their time, others the latest first\n"
    "    --type T    only tasks of this type\n"
    "    --limit N   at most so many (50)\n"
    "    --after ID  continue behind this one, the last of the page before\n"
    "    --json      an array of tasks\n";

inline constexpr char stats_usage[] =
    "  axctl stats FILE [--latest N]          counts by type and state; how late, how long\n";
inline constexpr char stats_help[] =
    "    of each task type: how many are in each state, and the percentiles of lateness (start after run_at), run\n"
    "    time, and time from created to success of its latest successes\n"
    "    --latest N  of so many successes of each type (10000)\n"
    "    --json      an object with a member for each type; lengths in milliseconds\n";

inline constexpr char verify_usage[] = "  axctl verify FILE [--repair]           states that cannot be\n";
inline constexpr char verify_help[] =
    "    looks for what neither the program nor a crash can have left behind; docs/verify.md has the list\n"
    "    --repair    and puts it right\n"
    "    --json      an array of what was found\n"
    "    ends with 1 where something was found and not repaired\n";

inline constexpr char show_usage[] =
    "  axctl show FILE KEY|ID                 one task, with its history and what it waits for\n";
inline constexpr char show_help[] = "    --json      an object: the task, with its history, steps and obstacles\n";

inline constexpr char stuck_usage[] = "  axctl stuck FILE [--for 10m] [--type T] [--limit N]\n";
inline constexpr char stuck_help[] =
    "    what has been in flight, claimed or running, for longer than that\n"
    "    --for L     a length such as 90s, 10m, 2h or 1d; a number alone is seconds (10m)\n"
    "    --type T    only tasks of this type\n"
    "    --limit N   at most so many (50)\n"
    "    --json      an array of tasks\n";

inline constexpr char cancel_usage[] =
    "  axctl cancel FILE KEY|ID               it will not run; one that runs is asked to stop\n";
inline constexpr char cancel_help[] =
    "    --json      {id, outcome, state}; outcome: done, stop requested or wrong state\n"
    "    ends with 1 where it has ended before\n";

inline constexpr char retry_usage[] =
    "  axctl retry FILE KEY|ID                a dead, cancelled or held one runs again\n";
inline constexpr char retry_help[] =
    "    --json      {id, outcome, state}; outcome: done or wrong state\n"
    "    ends with 1 where it is neither dead, cancelled nor held, or another has its key\n";

inline constexpr char pause_usage[] = "  axctl pause FILE TYPE                  no task of this type starts any more\n";
inline constexpr char pause_help[] = "    what runs goes on; kept in the store until `axctl resume`\n"
                                     "    --json      {type, paused}\n";

inline constexpr char resume_usage[] = "  axctl resume FILE TYPE                 until then\n";
inline constexpr char resume_help[] = "    tasks of a paused type start again\n"
                                      "    --json      {type, paused}\n";

inline constexpr char of_all[] = "    each command on a FILE takes --json: docs/axctl.md says what its members mean\n"
                                 "    KEY|ID: a number is an id, key:42 is a key that is a number\n"
                                 "  axctl COMMAND --help                   all about one command\n";

} // namespace axctl

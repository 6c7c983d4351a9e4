// SPDX-License-Identifier: MIT
// Keeps a crontab: prints what is due, or runs it, or replays a day of it in a moment. See --help.
#include "crontab_command.hpp"
#include "crontab_file.hpp"

#include <ax/ax.hpp>
#include <ax/storage/memory.hpp>
#include <ax/testing/manual_clock.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <set>

using namespace std::chrono_literals;

namespace {

char const* const usage = R"(usage: crontab FILE|- [options]       keep a crontab and print what is due
       crontab --system [options]     the same for /etc/crontab and /etc/cron.d, whose lines name a user
       crontab --day DATE FILE|-      replay that day in a moment, and print every entry's runs

Wrong lines are named with line and column; all others are kept. The schedules live in a database: after a restart each
goes on where it was, and a run that was missed meanwhile is made up for once. A line that has gone from the file is
forgotten at the next start. A run that is due while the one before it has not ended is left out.

  --execute        run the commands, as cron does: by SHELL, with the settings above the line, in the home folder, with
                   the text behind the first % as input. An exit code other than 0 is a failed run; none is repeated,
                   unless this program itself was killed meanwhile. Lines @reboot run at every start.
  --db PATH        the database (crontab.db)
  --zone ZONE      the zone of lines without CRON_TZ (TZ, else the machine's)
  --runs N         end after N runs; else the program goes on until it is interrupted
  --list           with --day: one line for each run, "line <tab> instant" (UTC), and nothing else

Exit code: 0 all is well, 1 a line of the file is wrong, 2 the arguments are.
)";

struct wrong_usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct arguments {
    std::string file, db = "crontab.db", day, zone;
    std::size_t runs = 0;
    bool execute = false, system = false, list = false;
};

arguments read_arguments(int argc, char** argv) {
    arguments chosen;
    for (int i = 1; i < argc; ++i) {
        std::string_view const word = argv[i];
        auto const value = [&] {
            if (++i == argc) throw wrong_usage(std::string(word) + " needs a value");
            return std::string(argv[i]);
        };
        if (word == "--execute") {
            chosen.execute = true;
        } else if (word == "--system") {
            chosen.system = true;
        } else if (word == "--list") {
            chosen.list = true;
        } else if (word == "--db") {
            chosen.db = value();
        } else if (word == "--day") {
            chosen.day = value();
        } else if (word == "--zone") {
            chosen.zone = value();
        } else if (word == "--runs") {
            auto const text = value();
            auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), chosen.runs);
            if (failed != std::errc{} || *end != '\0' || chosen.runs == 0) throw wrong_usage("--runs needs a number");
        } else if (word.starts_with("--")) {
            throw wrong_usage("there is no option " + std::string(word));
        } else if (chosen.file.empty()) {
            chosen.file = word;
        } else {
            throw wrong_usage("one file is enough");
        }
    }
    if (chosen.system != chosen.file.empty()) throw wrong_usage("name a file, or --system");
    if (chosen.execute && !chosen.day.empty()) throw wrong_usage("--day never executes");
    return chosen;
}

/// The zone whose clocks the machine shows: by TZ, or by the file that /etc/localtime leads to. Else UTC.
ax::time_zone machine_zone() {
    if (auto const* tz = std::getenv("TZ"); tz != nullptr && *tz != '\0')
        return ax::time_zone{std::string_view(tz).substr(*tz == ':' ? 1 : 0)};
    char target[256] = {};
    std::string_view path{
        target, static_cast<std::size_t>((std::max)(ssize_t{0}, ::readlink("/etc/localtime", target, sizeof target)))};
    if (auto const at = path.find("zoneinfo/"); at != path.npos) {
        auto const name = path.substr(at + 9);
        if (ax::time_zone::exists(name)) return ax::time_zone{name};
    }
    return {};
}

/// A task's payload: a line of a crontab, as far as running it goes.
struct job {
    std::string file, schedule, zone;
    std::size_t line = 0;
    crontab::command what;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(job, file, schedule, zone, line, what)
};
inline constexpr ax::task_type<job> run_command{"crontab-command"};

/// A job and the name of its schedule, which depends on nothing but what the line says: a line that moves in its file
/// keeps its schedule, and equal lines are told apart by their order.
struct named_job {
    std::string name;
    std::optional<ax::cron> when; ///< none: @reboot
    job what;
};

constexpr std::string_view name_prefix = "crontab/";

class table_of_jobs {
  public:
    void add(std::string const& path, crontab::file const& found) {
        for (auto const& p : found.problems) std::fprintf(stderr, "%s\n", p.message(path).c_str());
        problems_ += found.problems.size();
        for (auto const& e : found.entries) {
            job one;
            one.file = path;
            one.schedule = e.schedule;
            one.zone = e.when ? std::string(e.when->zone().name()) : std::string{};
            one.line = e.line;
            one.what = {e.command, e.user, e.input.value_or(""), e.input.has_value(), e.environment};
            auto const text =
                e.schedule + '\n' + one.zone + '\n' + e.user + '\n' + e.command + '\n' + e.input.value_or("");
            auto const ordinal = ++seen_[text];
            jobs_.push_back({name_of(text, ordinal), e.when, std::move(one)});
        }
    }

    std::vector<named_job> const& jobs() const noexcept { return jobs_; }
    std::size_t problems() const noexcept { return problems_; }
    void refused(job const& one, char const* why) {
        std::fprintf(stderr, "%s:%zu:1: %s\n", one.file.c_str(), one.line, why);
        ++problems_;
    }

  private:
    static std::string name_of(std::string_view text, std::size_t ordinal) {
        std::uint64_t hash = 14'695'981'039'346'656'037U; // FNV-1a
        for (auto const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
        char name[64];
        std::snprintf(name, sizeof name, "%s%016llx#%zu", name_prefix.data(), static_cast<unsigned long long>(hash),
                      ordinal);
        return name;
    }

    std::vector<named_job> jobs_;
    std::map<std::string, std::size_t> seen_;
    std::size_t problems_ = 0;
};

table_of_jobs read_tables(arguments const& chosen, ax::time_zone zone) {
    table_of_jobs all;
    if (chosen.file == "-") {
        std::string const text(std::istreambuf_iterator<char>(std::cin), {});
        all.add("standard input", crontab::read(text, crontab::table::personal, zone));
    } else if (!chosen.system) {
        all.add(chosen.file, crontab::read_file(chosen.file, crontab::table::personal, zone));
    } else {
        for (auto const& path : crontab::system_files())
            all.add(path, crontab::read_file(path, crontab::table::user_column, zone));
    }
    return all;
}

/// "2026-03-29 02:30" as the clocks of the zone show it.
std::string wall_time(ax::time_point t, ax::time_zone zone, bool with_day = true) {
    using namespace std::chrono;
    auto const local = zone.to_local(t).time_since_epoch();
    auto const day = floor<days>(local);
    year_month_day const date{sys_days{day}};
    hh_mm_ss const time{floor<minutes>(local - day)};
    char text[64];
    if (with_day)
        std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d", int{date.year()}, unsigned{date.month()},
                      unsigned{date.day()}, int(time.hours().count()), int(time.minutes().count()));
    else
        std::snprintf(text, sizeof text, "%02d:%02d", int(time.hours().count()), int(time.minutes().count()));
    return text;
}

// ---------------------------------------------------------------- a day in a moment

ax::time_point read_day(std::string const& text, ax::time_zone zone, int days_later) {
    int y = 0;
    unsigned m = 0, d = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%4d-%2u-%2u%c", &y, &m, &d, &rest) != 3)
        throw wrong_usage("a day looks like 2026-03-29");
    using namespace std::chrono;
    year_month_day const date{year{y}, month{m}, day{d}};
    if (!date.ok() || y < 1970 || y > 2198) throw wrong_usage("there is no day " + text);
    return zone.to_instant(ax::local_time{(sys_days{date} + days{days_later}).time_since_epoch()});
}

int replay(arguments const& chosen, ax::time_zone zone, table_of_jobs all) {
    auto const begin = read_day(chosen.day, zone, 0);
    auto const end = read_day(chosen.day, zone, 1);
    ax::testing::manual_clock clock{begin - 1ms}; // what is due at midnight belongs to the day
    ax::scheduler tasks{ax::memory_storage{}, {}, clock};
    std::map<std::size_t, std::vector<ax::time_point>> runs;
    std::map<std::string, std::size_t> index;
    tasks.on(run_command, [&](ax::context& ctx) { runs[index.at(ctx.task().schedule)].push_back(ctx.scheduled_at()); });
    for (std::size_t i = 0; i != all.jobs().size(); ++i) {
        auto const& [name, when, what] = all.jobs()[i];
        if (!when || !when->next(begin - 1ms)) continue; // one that never comes, like 30 February, is refused
        index[name] = i;
        try {
            tasks.schedule(name, *when, run_command, what);
        } catch (ax::error const& e) {
            all.refused(what, e.what());
        }
    }
    // No time passes but by this loop: from one instant at which something happens to the next.
    while (true) {
        auto const next = tasks.next_wakeup();
        if (!next || *next >= end) break;
        if (*next > clock.now()) clock.advance(*next - clock.now());
        tasks.poll(clock.now());
    }

    std::size_t sum = 0;
    for (std::size_t i = 0; i != all.jobs().size(); ++i) {
        auto const& one = all.jobs()[i].what;
        auto const& at = runs[i];
        sum += at.size();
        if (chosen.list) {
            for (auto const t : at) std::printf("%zu\t%sZ\n", one.line, wall_time(t, {}).c_str());
            continue;
        }
        std::printf("%4zu  %-20s %4zu %s ", one.line, one.schedule.c_str(), at.size(),
                    at.size() == 1 ? "run " : "runs");
        auto const own_zone = all.jobs()[i].when ? all.jobs()[i].when->zone() : zone;
        for (std::size_t n = 0; n != at.size(); ++n) {
            if (at.size() > 8 && n == 4) {
                std::printf(" ...");
                n = at.size() - 2;
            }
            std::printf(" %s", wall_time(at[n], own_zone, false).c_str());
        }
        if (one.schedule == "@reboot") std::printf(" at every start");
        std::printf("  %s\n", one.what.line.c_str());
    }
    if (!chosen.list) {
        auto const hours = std::chrono::duration<double, std::ratio<3600>>(end - begin).count();
        std::printf("%s in %s, %g hours: %zu entries, %zu runs\n", chosen.day.c_str(), std::string(zone.name()).c_str(),
                    hours, all.jobs().size(), sum);
    }
    return all.problems() == 0 ? 0 : 1;
}

// ---------------------------------------------------------------- in real time

int keep(arguments const& chosen, ax::time_zone zone, table_of_jobs all) {
    sigset_t watched; // waited for instead of handled; blocked before there are other threads
    sigemptyset(&watched);
    for (auto const s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&watched, s);
    pthread_sigmask(SIG_BLOCK, &watched, nullptr);

    std::mutex output;
    std::atomic<std::size_t> ended{0};
    ax::sqlite_scheduler tasks{ax::sqlite_storage{chosen.db}, {.workers = 32}};
    tasks.on(run_command,
             [&](job const& one, ax::context& ctx) {
                 auto const say = [&](std::string const& text) {
                     std::lock_guard const guard{output};
                     std::printf(
                         "%s  %s:%zu  %s\n",
                         wall_time(ctx.scheduled_at(), one.zone.empty() ? zone : ax::time_zone{one.zone}).c_str(),
                         one.file.c_str(), one.line, text.c_str());
                     std::fflush(stdout);
                 };
                 if (!chosen.execute) return say("would run: " + one.what.line);
                 say("runs: " + one.what.line);
                 auto const end = crontab::execute(one.what, ctx.stop_token(), [&](std::string const& line) {
                     ctx.log(line);
                     say("| " + line);
                 });
                 if (end.empty()) return say("done");
                 say(end);
                 throw std::runtime_error(end);
             },
             {.retry = ax::retry::none()});
    tasks.observe([&](ax::event const& e) {
        if (e.kind != ax::event_kind::reported) return;
        if (++ended == chosen.runs) ::kill(::getpid(), SIGUSR1);
    });

    std::set<std::string, std::less<>> wanted;
    std::optional<ax::time_point> first;
    for (auto const& [name, when, what] : all.jobs()) {
        try {
            if (!when) continue;
            auto const kept = tasks.schedule(name, *when, run_command, what);
            wanted.insert(name);
            if (kept.next && (!first || *kept.next < *first)) first = kept.next;
        } catch (ax::error const& e) {
            all.refused(what, e.what());
        }
    }
    std::size_t gone = 0;
    for (auto const& s : tasks.schedules())
        if (s.name.starts_with(name_prefix) && !wanted.contains(s.name)) gone += tasks.unschedule(s.name) ? 1 : 0;
    {
        std::lock_guard const guard{output};
        std::printf("schedules in %s: %zu kept, %zu forgotten; the next is due at %s\n", chosen.db.c_str(),
                    wanted.size(), gone,
                    first ? (wall_time(*first, zone) + ' ' + std::string(zone.name())).c_str() : "no time");
        std::fflush(stdout);
    }
    tasks.start();
    for (auto const& [name, when, what] : all.jobs())
        if (!when) tasks.submit(run_command, what);

    int signal = 0;
    ::sigwait(&watched, &signal);
    auto const report = tasks.stop(30s);
    if (report.still_running != 0) std::printf("%zu commands do not end\n", report.still_running);
    return all.problems() == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 2 && std::string_view(argv[1]) == "--help") return std::fputs(usage, stdout), 0;
        auto const chosen = read_arguments(argc, argv);
        auto const zone = chosen.zone.empty() ? machine_zone() : ax::time_zone{chosen.zone};
        auto all = read_tables(chosen, zone);
        return chosen.day.empty() ? keep(chosen, zone, std::move(all)) : replay(chosen, zone, std::move(all));
    } catch (std::exception const& e) {
        std::fprintf(stderr, "crontab: %s\n", e.what());
        return 2;
    }
}

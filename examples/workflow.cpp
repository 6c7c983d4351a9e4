// SPDX-License-Identifier: MIT
// Runs a graph of tasks durably, each after its parents, and shows when each of them ran:
//
//   workflow FILE STORE.DB [--speed N] [--workers N] [--rule RULE] [--fail TASK] [--svg OUT.svg]
//   workflow --check FILE STORE.DB [--rule RULE]    afterwards: did each task's effect happen exactly once, after its
//   parents'?
//
// FILE is a recorded workflow: {"name": "...", "tasks": [{"id": "...", "runtime_s": 1.25, "parents": ["id", ...]}]}.
// Each task sleeps for its recorded run time divided by N (1,000 by default), and writes a line into the table
// `ledger` of the same database, in the commit that records its success. Kill the program whenever you like and start
// it again with the same words: the workflow has a key, so it goes on where it was.
#include <ax/ax.hpp>

#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct recorded_task {
    std::string id;
    double runtime_s = 0;
    std::vector<std::string> parents;
};
struct recorded_workflow {
    std::string name;
    std::vector<recorded_task> tasks;
};

struct step {
    std::string id;
    double seconds = 0;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(step, id, seconds)
};
inline constexpr ax::task_type<step> replay{"replay"};

struct ledger_line {
    std::string task;
    std::int64_t began = 0; ///< milliseconds
    std::int64_t ended = 0;
};

struct settings {
    std::string file;
    std::string store;
    std::string svg;
    std::string fails;
    double speed = 1'000;
    std::size_t workers = 8;
    ax::trigger_rule rule = ax::trigger_rule::all_success;
};

recorded_workflow load(std::string const& path) {
    std::ifstream in(path);
    if (!in) throw std::runtime_error("cannot read " + path);
    try {
        auto const document = nlohmann::json::parse(in);
        recorded_workflow recorded{document.at("name").get<std::string>(), {}};
        for (auto const& task : document.at("tasks"))
            recorded.tasks.push_back({task.at("id").get<std::string>(), task.value("runtime_s", 0.0),
                                      task.at("parents").get<std::vector<std::string>>()});
        return recorded;
    } catch (nlohmann::json::exception const& e) {
        throw std::runtime_error(path + ": " + e.what());
    }
}

ax::workflow workflow_of(recorded_workflow const& recorded, settings const& how) {
    ax::workflow made{recorded.name};
    std::map<std::string, ax::workflow_task> known;
    for (auto const& task : recorded.tasks)
        known.emplace(task.id,
                      made.add(replay, {task.id, task.runtime_s / how.speed}, {.name = task.id, .when = how.rule}));
    for (auto const& task : recorded.tasks) // a parent may stand behind its children
        for (auto const& parent : task.parents) {
            auto const found = known.find(parent);
            if (found == known.end())
                throw std::runtime_error("task " + task.id + " has an unknown parent \"" + parent + '"');
            made.depend(known.at(task.id), found->second);
        }
    return made;
}

void execute(sqlite3* db, char const* sql) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db));
}

void write_line(sqlite3* db, ledger_line const& line) {
    sqlite3_stmt* insert = nullptr;
    if (sqlite3_prepare_v2(db, "INSERT INTO ledger VALUES (?1, ?2, ?3)", -1, &insert, nullptr) != SQLITE_OK)
        throw std::runtime_error(sqlite3_errmsg(db));
    sqlite3_bind_text(insert, 1, line.task.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(insert, 2, line.began);
    sqlite3_bind_int64(insert, 3, line.ended);
    auto const code = sqlite3_step(insert);
    sqlite3_finalize(insert);
    if (code != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(db));
}

/// The host's own connection.
class database {
  public:
    explicit database(std::string const& path) {
        if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) throw std::runtime_error("cannot open " + path);
        sqlite3_busy_timeout(db_, 5'000);
        execute(db_, "PRAGMA wal_autocheckpoint = 0"); // the store sees to that
        execute(db_, "CREATE TABLE IF NOT EXISTS ledger (task TEXT, began INTEGER, ended INTEGER)");
    }
    database(database const&) = delete;
    database& operator=(database const&) = delete;
    ~database() { sqlite3_close(db_); }

    std::vector<ledger_line> lines() const {
        std::vector<ledger_line> all;
        sqlite3_stmt* query = nullptr;
        sqlite3_prepare_v2(db_, "SELECT task, began, ended FROM ledger ORDER BY began, rowid", -1, &query, nullptr);
        while (sqlite3_step(query) == SQLITE_ROW)
            all.push_back({reinterpret_cast<char const*>(sqlite3_column_text(query, 0)), sqlite3_column_int64(query, 1),
                           sqlite3_column_int64(query, 2)});
        sqlite3_finalize(query);
        return all;
    }

  private:
    sqlite3* db_ = nullptr;
};

// ---- what is shown -------------------------------------------------------------------------------------------------

/// A line for each task, its bar as long as it ran. Of a large workflow only the first ones.
void print_gantt(std::vector<ledger_line> const& lines) {
    if (lines.empty()) return;
    constexpr std::size_t most = 40;
    constexpr std::int64_t width = 60;
    auto const begin = lines.front().began;
    std::int64_t end = begin + 1;
    for (auto const& line : lines) end = (std::max)(end, line.ended);
    auto const column = [&](std::int64_t at) { return static_cast<int>((at - begin) * (width - 1) / (end - begin)); };
    for (std::size_t i = 0; i != lines.size() && i != most; ++i) {
        auto const from = column(lines[i].began);
        auto const to = column(lines[i].ended);
        std::printf("%-28.28s |%*s%s%*s| %5lld ms\n", lines[i].task.c_str(), from, "",
                    std::string(static_cast<std::size_t>(to - from + 1), '#').c_str(), static_cast<int>(width) - to - 1,
                    "", static_cast<long long>(lines[i].ended - lines[i].began));
    }
    if (lines.size() > most) std::printf("... and %zu more\n", lines.size() - most);
}

std::string escaped(std::string const& text) {
    std::string answer;
    for (char const c : text) {
        if (c == '&')
            answer += "&amp;";
        else if (c == '<')
            answer += "&lt;";
        else
            answer += c;
    }
    return answer;
}

void write_svg(std::string const& path, std::vector<ledger_line> const& lines) {
    std::ofstream out(path);
    if (!out) throw std::runtime_error("cannot write " + path);
    auto const begin = lines.empty() ? 0 : lines.front().began;
    std::int64_t end = begin + 1;
    for (auto const& line : lines) end = (std::max)(end, line.ended);
    auto const x = [&](std::int64_t at) {
        return 220.0 + 760.0 * static_cast<double>(at - begin) / static_cast<double>(end - begin);
    };
    out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"" << 14 * lines.size() + 10
        << "\" font-family=\"sans-serif\" font-size=\"10\">\n";
    for (std::size_t i = 0; i != lines.size(); ++i) {
        auto const y = 14 * i + 4;
        out << "<text x=\"4\" y=\"" << y + 9 << "\">" << escaped(lines[i].task) << "</text><rect x=\""
            << x(lines[i].began) << "\" y=\"" << y << "\" height=\"11\" fill=\"#36c\" width=\""
            << (std::max)(1.0, x(lines[i].ended) - x(lines[i].began)) << "\"/>\n";
    }
    out << "</svg>\n";
}

// ---- running and checking ------------------------------------------------------------------------------------------

int run(settings const& how) {
    auto const recorded = load(how.file);
    std::counting_semaphore<> ended{0};
    ax::sqlite_scheduler tasks{ax::sqlite_storage{how.store}, ax::options{.workers = how.workers}};
    database const db{how.store};

    tasks.on(replay, [&how](step const& work, ax::context& ctx) {
        auto const began = ax::now();
        std::this_thread::sleep_for(std::chrono::duration<double>(work.seconds));
        if (work.id == how.fails) throw ax::give_up{"it was told to"};
        ctx.commit_with(
            [line = ledger_line{work.id, began.time_since_epoch().count(), ax::now().time_since_epoch().count()}](
                sqlite3* shared) { write_line(shared, line); });
    });
    tasks.observe([&](ax::event const& e) {
        if (e.kind == ax::event_kind::reported) ended.release();
    });
    tasks.start();

    auto const id = tasks.submit(workflow_of(recorded, how), {.key = recorded.name}).id;
    while (!ax::is_terminal(tasks.find_workflow(id)->state)) (void)ended.try_acquire_for(50ms);
    tasks.stop(10s);

    auto const status = *tasks.find_workflow(id);
    auto const lines = db.lines();
    print_gantt(lines);
    std::printf("%s: %s; %zu succeeded, %zu dead, %zu skipped, %zu upstream_failed\n", status.name.c_str(),
                std::string(to_string(status.state)).c_str(), status.succeeded, status.dead, status.skipped,
                status.upstream_failed);
    std::string path;
    for (auto const& task : tasks.critical_path(id))
        path += (path.empty() ? "" : " -> ") + nlohmann::json::parse(task.payload).at("id").get<std::string>();
    std::printf("critical path: %s\n", path.c_str());
    if (!how.svg.empty()) write_svg(how.svg, lines);
    return 0;
}

/// Whether a task under this rule begins after all its parents.
bool waits_for_all(ax::trigger_rule rule) {
    return rule != ax::trigger_rule::one_failed && rule != ax::trigger_rule::one_success &&
           rule != ax::trigger_rule::one_done && rule != ax::trigger_rule::always;
}

int check(settings const& how) {
    auto const recorded = load(how.file);
    ax::sqlite_scheduler const tasks{ax::sqlite_storage{how.store}};
    auto const whole = tasks.find_by_key(recorded.name);
    if (!whole || !ax::is_terminal(whole->state)) return std::puts("check: FAILED, it has not ended"), 1;
    std::set<std::string> known;
    std::set<std::string> succeeded;
    for (auto const& task : tasks.workflow_tasks(whole->id)) {
        known.insert(task.name);
        if (task.state == ax::task_state::succeeded) succeeded.insert(task.name);
    }

    std::map<std::string, std::vector<ledger_line>> effects;
    for (auto const& line : database{how.store}.lines()) effects[line.task].push_back(line);
    std::size_t wrong = 0;
    for (auto const& task : recorded.tasks) {
        auto const& mine = effects[task.id];
        if (!known.contains(task.id)) {
            std::printf("there is no task %s\n", task.id.c_str());
            ++wrong;
        }
        if (mine.size() != (succeeded.contains(task.id) ? 1U : 0U)) {
            std::printf("task %s has %zu effects\n", task.id.c_str(), mine.size());
            ++wrong;
        }
        for (auto const& parent : task.parents)
            if (waits_for_all(how.rule) && !mine.empty() && !effects[parent].empty() &&
                effects[parent].front().ended > mine.front().began) {
                std::printf("task %s began before %s had ended\n", task.id.c_str(), parent.c_str());
                ++wrong;
            }
    }
    std::printf("%zu tasks, %zu succeeded, %zu faults\n", recorded.tasks.size(), succeeded.size(), wrong);
    std::puts(wrong == 0 ? "check: passed" : "check: FAILED");
    return wrong == 0 ? 0 : 1;
}

int usage() {
    std::fputs("usage: workflow FILE STORE.DB [--speed N] [--workers N] [--rule RULE] [--fail TASK] [--svg OUT.svg]\n"
               "       workflow --check FILE STORE.DB [--rule RULE]\n",
               stderr);
    return 2;
}

} // namespace

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    settings how;
    bool checks = false;
    std::vector<std::string> names;
    try {
        for (std::size_t i = 0; i != words.size(); ++i) {
            bool const last = i + 1 == words.size();
            if (words[i] == "--check")
                checks = true;
            else if (words[i].substr(0, 2) != "--")
                names.push_back(words[i]);
            else if (last)
                return usage();
            else if (words[i] == "--speed")
                how.speed = std::stod(words[++i]);
            else if (words[i] == "--workers")
                how.workers = std::stoul(words[++i]);
            else if (words[i] == "--svg")
                how.svg = words[++i];
            else if (words[i] == "--fail")
                how.fails = words[++i];
            else if (words[i] == "--rule") {
                auto const rule = ax::trigger_rule_from(words[++i]);
                if (!rule) return std::fprintf(stderr, "there is no trigger rule %s\n", words[i].c_str()), 2;
                how.rule = *rule;
            } else
                return usage();
        }
        if (names.size() != 2 || !(how.speed > 0)) return usage();
        how.file = names[0];
        how.store = names[1];
        return checks ? check(how) : run(how);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "workflow: %s\n", e.what());
        return 1;
    }
}

// SPDX-License-Identifier: MIT
// axctl list, stats, verify, show, stuck, cancel, retry, pause, resume: a look at a store file, beside the program that
// owns it.
#pragma once

#include "arguments.hpp"
#include "instant_text.hpp"

#include <ax/storage/sqlite_visitor.hpp>
#include <ax/time/instant_text.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace axctl {

/// What a command has to say: rows for people, or one JSON value.
inline int print(nlohmann::json const& value) {
    std::puts(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return 0;
}

/// Text of a task as one line of a terminal: no control characters, so that it cannot steer the terminal.
inline std::string one_line(std::string_view text, std::size_t most = 160) {
    std::string line;
    for (char const c : text.substr(0, most)) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    return text.size() > most ? line + "..." : line;
}

inline std::string text_or_dash(std::optional<ax::time_point> t) { return t ? ax::to_text(*t) : "-"; }

/// "250 ms", "1.5 s", "3 min".
inline std::string length_of(std::int64_t ms) {
    char buffer[32];
    if (ms < 1'000)
        std::snprintf(buffer, sizeof buffer, "%lld ms", static_cast<long long>(ms));
    else if (ms < 120'000)
        std::snprintf(buffer, sizeof buffer, "%.1f s", static_cast<double>(ms) / 1e3);
    else if (ms < 7'200'000)
        std::snprintf(buffer, sizeof buffer, "%.0f min", static_cast<double>(ms) / 6e4);
    else
        std::snprintf(buffer, sizeof buffer, "%.1f h", static_cast<double>(ms) / 3.6e6);
    return buffer;
}

/// "90s", "10m", "2h", "1d"; a number alone is seconds.
inline ax::duration length_from(std::string_view text) {
    std::int64_t value = 0;
    auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    std::string_view const unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    std::int64_t const ms = unit == "ms"                  ? 1
                            : unit == "s" || unit.empty() ? 1'000
                            : unit == "m"                 ? 60'000
                            : unit == "h"                 ? 3'600'000
                            : unit == "d"                 ? 86'400'000
                                                          : 0;
    if (failed != std::errc{} || value < 0 || ms == 0 || value > 1'000'000'000)
        throw usage_error("\"" + std::string(text) + "\" is no length such as 90s, 10m, 2h or 1d");
    return ax::duration{value * ms};
}

inline ax::task_state state_from(std::string_view name) {
    for (int number = 0; number <= 9; ++number)
        if (auto const state = static_cast<ax::task_state>(number); name == ax::to_string(state)) return state;
    throw usage_error("\"" + std::string(name) + "\" is no state of a task, such as ready, running or dead");
}

inline nlohmann::json json_of(std::optional<ax::time_point> t) {
    return t ? nlohmann::json(ax::to_text(*t)) : nlohmann::json();
}

/// As text, since it has more digits than a double keeps; null where there is none.
inline nlohmann::json json_of(ax::node_id node) {
    return node == ax::node_id{} ? nlohmann::json() : nlohmann::json(std::to_string(ax::to_number(node)));
}

/// A payload or result as JSON where it is some, else as text.
inline nlohmann::json json_text(std::string const& text) {
    if (text.empty()) return nullptr;
    auto value = nlohmann::json::parse(text, nullptr, false);
    return value.is_discarded() ? nlohmann::json(text) : value;
}

inline nlohmann::json json_of(ax::task_record const& task) {
    return {{"id", ax::to_number(task.id)},
            {"type", task.type},
            {"key", task.key},
            {"state", ax::to_string(task.state)},
            {"payload", json_text(task.payload)},
            {"run_at", ax::to_text(task.run_at)},
            {"attempts", task.attempts},
            {"failures", task.failures},
            {"interruptions", task.interruptions},
            {"snoozes", task.snoozes},
            {"last_error", task.last_error},
            {"priority", ax::to_string(task.priority)},
            {"route_key", task.route_key},
            {"blocked", task.blocked},
            {"held", task.held},
            {"waits_for_limit", task.waits_for != ax::limit_number{}},
            {"tags", task.tags},
            {"deadline", json_of(task.deadline)},
            {"schedule", task.schedule},
            {"scheduled_at", json_of(task.scheduled_at)},
            {"result", json_text(task.result)},
            {"created", ax::to_text(task.created)},
            {"started", json_of(task.started)},
            {"finished", json_of(task.finished)},
            {"changed", ax::to_text(task.changed)},
            {"node", json_of(task.node)}};
}

inline nlohmann::json json_of(ax::attempt_view const& attempt) {
    return {{"number", attempt.number},
            {"node", json_of(attempt.node)},
            {"start", json_of(attempt.start)},
            {"end", json_of(attempt.end)},
            {"outcome", attempt.outcome ? nlohmann::json(ax::to_string(*attempt.outcome)) : nlohmann::json()},
            {"error", attempt.error},
            {"log", attempt.log}};
}

inline nlohmann::json json_of(ax::obstacle const& one) {
    auto holders = nlohmann::json::array();
    for (auto const id : one.holders) holders.push_back(ax::to_number(id));
    return {{"kind", to_string(one.kind)},
            {"name", one.name},
            {"holders", std::move(holders)},
            {"free_at", json_of(one.free_at)},
            {"never", one.never}};
}

/// One command on one store.
class store_session {
  public:
    explicit store_session(arguments& given) : given_(given), json_(given.flag("--json")) {}

    int list() {
        ax::task_filter wanted;
        if (auto const name = given_.option("--state")) wanted.state = state_from(*name);
        wanted.type = given_.option("--type").value_or("");
        wanted.limit = given_.number("--limit", 50);
        wanted.after = ax::task_id{given_.number("--after", 0)};
        auto const store = open();
        given_.nothing_left();
        return print_tasks(store, store.list(wanted, ax::now()));
    }

    int stuck() {
        auto const length = length_from(given_.option("--for").value_or("10m"));
        auto const type = given_.option("--type").value_or("");
        auto const limit = given_.number("--limit", 50);
        auto const store = open();
        given_.nothing_left();
        std::vector<ax::task_record> found;
        for (auto const state : {ax::task_state::running, ax::task_state::dispatched}) {
            ax::task_filter wanted;
            wanted.state = state;
            wanted.type = type;
            wanted.stuck_for = length;
            wanted.limit = limit - found.size();
            for (auto& task : store.list(wanted, ax::now())) found.push_back(std::move(task));
        }
        return print_tasks(store, found);
    }

    int show() {
        auto const store = open();
        auto const task = named(store, given_.only_word("a key or an id"));
        auto const attempts = store.history(task.id);
        auto const obstacles = store.obstacles(task.id);
        auto const steps = store.steps(task.id);
        bool paused = false;
        for (auto const& type : store.types()) paused = paused || (type.paused && type.name == task.type);
        if (json_) {
            auto all = json_of(store, task);
            all["paused"] = paused;
            all["steps"] = nlohmann::json::object();
            for (auto const& one : steps) all["steps"][one.name] = json_text(one.value);
            all["history"] = nlohmann::json::array();
            for (auto const& one : attempts) all["history"].push_back(axctl::json_of(one));
            all["obstacles"] = nlohmann::json::array();
            for (auto const& one : obstacles) all["obstacles"].push_back(axctl::json_of(one));
            return print(all);
        }
        show_task(task);
        if (auto const whole = workflow_of(store, task))
            line("workflow", one_line(whole->name) + " (" + std::to_string(ax::to_number(whole->id)) + ")");
        if (!ax::is_terminal(task.state)) {
            if (paused) std::puts("waits for  its type to be resumed: it is paused");
            if (task.held) std::puts("waits for  a person: retry lets it go");
            if (ax::is_claimable(task.state) && task.run_at > ax::now())
                std::printf("waits for  its time, %s\n", ax::to_text(task.run_at).c_str());
        }
        for (auto const& one : obstacles) {
            std::printf("waits for  %s %s\n", to_string(one.kind), one.name.c_str());
            for (auto const id : one.holders)
                std::printf("           %s task %llu\n", one.kind == ax::obstacle::what::parents ? "namely" : "held by",
                            static_cast<unsigned long long>(ax::to_number(id)));
        }
        for (auto const& one : steps) line("step", one_line(one.name) + " = " + one_line(one.value, 300));
        for (auto const& attempt : attempts) show_attempt(attempt);
        return 0;
    }

    int verify() {
        bool const repair = given_.flag("--repair");
        auto store = open();
        given_.nothing_left();
        auto const found = store.verify(repair, ax::now());
        if (json_) {
            auto all = nlohmann::json::array();
            for (auto const& one : found)
                all.push_back(
                    {{"kind", one.kind},
                     {"task", one.task == ax::task_id{} ? nlohmann::json() : nlohmann::json(ax::to_number(one.task))},
                     {"text", one.text},
                     {"repaired", one.repaired}});
            print(all);
        }
        std::size_t open_ones = 0;
        for (auto const& one : found) {
            open_ones += one.repaired ? 0 : 1;
            if (json_) continue;
            std::printf("%s: ", one.kind.c_str());
            if (one.task != ax::task_id{})
                std::printf("task %llu: ", static_cast<unsigned long long>(ax::to_number(one.task)));
            std::printf("%s%s\n", one_line(one.text).c_str(), one.repaired ? " (repaired)" : "");
        }
        if (!json_ && found.empty()) std::puts("nothing impossible was found");
        return open_ones == 0 ? 0 : 1;
    }

    /// How many of each type are in each state, and the percentiles of the latest successes of each type.
    int stats() {
        auto const latest = given_.number("--latest", 10'000);
        auto const store = open();
        given_.nothing_left();
        std::map<std::string, type_numbers> types;
        for (auto const& type : store.types()) types[type.name].paused = type.paused;
        for (auto const& each : store.counts()) types[each.type].counts[each.state] += each.tasks;
        for (auto& [name, numbers] : types) {
            ax::task_filter wanted;
            wanted.state = ax::task_state::succeeded;
            wanted.type = name;
            wanted.limit = latest;
            for (auto const& task : store.list(wanted, ax::now())) numbers.add(task);
        }
        auto const json = [](std::vector<std::int64_t> values) {
            if (values.empty()) return nlohmann::json();
            return nlohmann::json{{"p50", percentile(values, 50)},
                                  {"p90", percentile(values, 90)},
                                  {"p99", percentile(values, 99)},
                                  {"max", percentile(values, 100)}};
        };
        if (json_) {
            auto all = nlohmann::json::object();
            for (auto& [name, numbers] : types) {
                auto counts = nlohmann::json::object();
                for (auto const& [state, tasks] : numbers.counts) counts[std::string(ax::to_string(state))] = tasks;
                all[name] = {{"paused", numbers.paused},
                             {"counts", std::move(counts)},
                             {"sampled", numbers.run_time.size()},
                             {"lateness_ms", json(numbers.lateness)},
                             {"run_time_ms", json(numbers.run_time)},
                             {"created_to_success_ms", json(numbers.whole)}};
            }
            return print(all);
        }
        for (auto& [name, numbers] : types) {
            std::printf("%s%s\n ", one_line(name).c_str(), numbers.paused ? " (paused)" : "");
            for (auto const& [state, tasks] : numbers.counts)
                std::printf(" %zu %s", tasks, std::string(ax::to_string(state)).c_str());
            std::puts("");
            show_percentiles("lateness", numbers.lateness);
            show_percentiles("run time", numbers.run_time);
            show_percentiles("created to success", numbers.whole);
        }
        return 0;
    }

    int change(bool cancels) {
        auto store = open();
        auto const task = named(store, given_.only_word("a key or an id"));
        auto const answer = cancels ? store.cancel(task.id, ax::now()) : store.retry(task.id, ax::now());
        bool const asked = cancels && answer.outcome == ax::change_outcome::wrong_state && ax::is_active(answer.state);
        bool const done = answer.outcome == ax::change_outcome::done;
        auto const* const outcome = done ? "done" : asked ? "stop requested" : "wrong state";
        if (json_)
            print({{"id", ax::to_number(task.id)}, {"outcome", outcome}, {"state", ax::to_string(answer.state)}});
        else
            std::printf("task %llu: %s, %s\n", static_cast<unsigned long long>(ax::to_number(task.id)), outcome,
                        std::string(ax::to_string(answer.state)).c_str());
        return done || asked ? 0 : 1;
    }

    int pause(bool yes) {
        auto store = open();
        auto const type = given_.only_word("a task type");
        if (!store.pause(type, yes)) throw std::invalid_argument("there is no task type \"" + type + "\"");
        if (json_) return print({{"type", type}, {"paused", yes}});
        std::printf("%s: %s\n", one_line(type).c_str(), yes ? "paused" : "resumed");
        return 0;
    }

  private:
    struct type_numbers {
        bool paused = false;
        std::map<ax::task_state, std::size_t> counts;
        std::vector<std::int64_t> lateness, run_time, whole; ///< milliseconds

        void add(ax::task_record const& task) {
            if (!task.started || !task.finished) return;
            lateness.push_back((*task.started - task.run_at).count());
            run_time.push_back((*task.finished - *task.started).count());
            whole.push_back((*task.finished - task.created).count());
        }
    };

    /// The value below or at which `percent` of all lie. `values` are not empty; they are put in order.
    static std::int64_t percentile(std::vector<std::int64_t>& values, std::size_t percent) {
        std::sort(values.begin(), values.end());
        auto const rank = (values.size() * percent + 99) / 100;
        return values[rank == 0 ? 0 : rank - 1];
    }

    static void show_percentiles(char const* what, std::vector<std::int64_t>& values) {
        if (values.empty()) return;
        std::printf("  %-19s p50 %s, p90 %s, p99 %s, max %s\n", what, length_of(percentile(values, 50)).c_str(),
                    length_of(percentile(values, 90)).c_str(), length_of(percentile(values, 99)).c_str(),
                    length_of(percentile(values, 100)).c_str());
    }

    ax::sqlite_visitor open() {
        auto const file = given_.next_word();
        if (file.empty()) throw usage_error("the store's file is missing");
        return ax::sqlite_visitor{file};
    }

    template <class Store>
    static ax::task_record named(Store const& store, std::string const& name) {
        std::uint64_t number = 0;
        auto const [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
        auto found = failed == std::errc{} && end == name.data() + name.size() ? store.find(ax::task_id{number})
                     : name.starts_with("key:")                                ? store.find_by_key(name.substr(4))
                                                                               : store.find_by_key(name);
        if (!found) throw std::invalid_argument("there is no task " + name);
        return *std::move(found);
    }

    static std::optional<ax::workflow_record> workflow_of(ax::sqlite_visitor const& store,
                                                          ax::task_record const& task) {
        return task.in_workflow ? store.workflow(task.id) : std::nullopt;
    }

    static nlohmann::json json_of(ax::sqlite_visitor const& store, ax::task_record const& task) {
        auto all = axctl::json_of(task);
        auto const whole = workflow_of(store, task);
        all["workflow"] =
            whole ? nlohmann::json{{"id", ax::to_number(whole->id)}, {"name", whole->name}} : nlohmann::json();
        return all;
    }

    int print_tasks(ax::sqlite_visitor const& store, std::vector<ax::task_record> const& tasks) const {
        if (json_) {
            auto all = nlohmann::json::array();
            for (auto const& task : tasks) all.push_back(json_of(store, task));
            return print(all);
        }
        std::printf("%-10s %-15s %-20s %-24s %3s  %s\n", "id", "state", "type", "run at", "att",
                    "key, workflow, last error");
        for (auto const& task : tasks) {
            auto tail = one_line(task.key, 40);
            if (auto const whole = workflow_of(store, task))
                tail += (tail.empty() ? "of " : ", of ") + one_line(whole->name, 40);
            if (!task.last_error.empty()) tail += (tail.empty() ? "" : ": ") + one_line(task.last_error, 80);
            std::printf("%-10llu %-15s %-20s %-24s %3zu  %s\n", static_cast<unsigned long long>(ax::to_number(task.id)),
                        state_text(task).c_str(), one_line(task.type, 20).c_str(), ax::to_text(task.run_at).c_str(),
                        task.attempts, tail.c_str());
        }
        return 0;
    }

    static std::string state_text(ax::task_record const& task) {
        return std::string(ax::to_string(task.state)) + (task.held                              ? " (held)"
                                                         : task.blocked                         ? " (blocked)"
                                                         : task.waits_for != ax::limit_number{} ? " (limit)"
                                                                                                : "");
    }

    static void line(char const* name, std::string const& value) {
        if (!value.empty() && value != "-") std::printf("%-10s %s\n", name, value.c_str());
    }

    static void show_task(ax::task_record const& task) {
        line("task", std::to_string(ax::to_number(task.id)));
        line("type", one_line(task.type));
        line("key", one_line(task.key, 300));
        line("state", state_text(task));
        line("run at", ax::to_text(task.run_at));
        line("priority", ax::to_string(task.priority));
        line("deadline", text_or_dash(task.deadline));
        line("route key", one_line(task.route_key, 300));
        std::string tags;
        for (auto const& tag : task.tags) tags += (tags.empty() ? "" : ", ") + one_line(tag);
        line("tags", tags);
        line("schedule", one_line(task.schedule));
        line("nominal", text_or_dash(task.scheduled_at));
        line("created", ax::to_text(task.created));
        line("started", text_or_dash(task.started));
        line("finished", text_or_dash(task.finished));
        line("attempts", std::to_string(task.attempts) + " (" + std::to_string(task.failures) + " failed, " +
                             std::to_string(task.interruptions) + " interrupted, " + std::to_string(task.snoozes) +
                             " snoozed)");
        line("error", one_line(task.last_error, 1'000));
        line("payload", one_line(task.payload, 1'000));
        line("result", one_line(task.result, 1'000));
    }

    static void show_attempt(ax::attempt_view const& attempt) {
        std::printf("attempt %zu  %s, %s to %s%s%s\n", attempt.number,
                    attempt.outcome ? ax::to_string(*attempt.outcome) : "in flight",
                    text_or_dash(attempt.start).c_str(), text_or_dash(attempt.end).c_str(),
                    attempt.error.empty() ? "" : ": ", one_line(attempt.error, 1'000).c_str());
        std::string_view rest = attempt.log;
        while (!rest.empty()) {
            auto const end = (std::min)(rest.find('\n'), rest.size());
            std::printf("           | %s\n", one_line(rest.substr(0, end), 1'000).c_str());
            rest.remove_prefix((std::min)(end + 1, rest.size()));
        }
    }

    arguments& given_;
    bool json_;
};

inline int list_command(arguments& given) { return store_session(given).list(); }
inline int stats_command(arguments& given) { return store_session(given).stats(); }
inline int verify_command(arguments& given) { return store_session(given).verify(); }
inline int show_command(arguments& given) { return store_session(given).show(); }
inline int stuck_command(arguments& given) { return store_session(given).stuck(); }
inline int cancel_command(arguments& given) { return store_session(given).change(true); }
inline int retry_command(arguments& given) { return store_session(given).change(false); }
inline int pause_command(arguments& given) { return store_session(given).pause(true); }
inline int resume_command(arguments& given) { return store_session(given).pause(false); }

} // namespace axctl

// SPDX-License-Identifier: MIT
// axctl workflow list, show: the workflows of a store, and one drawn as text.
#pragma once

#include "arguments.hpp"
#include "store_command.hpp"

#include <ax/scheduler/detail/submission.hpp>
#include <ax/scheduler/workflow_export.hpp>
#include <ax/storage/sqlite_visitor.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace axctl {

inline constexpr char workflow_usage[] =
    "  axctl workflow list FILE [--limit N]   the latest workflows, each with its counts\n"
    "  axctl workflow show FILE ID|KEY|NAME   one, drawn as text\n";
inline constexpr char workflow_help[] =
    "    list        the latest first\n"
    "    --limit N   at most so many (50)\n"
    "    --json      an array of workflows without their tasks\n"
    "    show        by its id or that of one of its tasks, its key, or its name: of those with that the latest\n"
    "    --dot       as a graph for Graphviz\n"
    "    --json      an object, with its tasks, edges and critical path\n";

/// One workflow as lines of text: each task below its last parent, a step further to the right than the deepest of its
/// parents.
class workflow_drawing {
  public:
    using names = std::unordered_map<std::uint64_t, std::string>;

    /// @param outside  What tasks of others are called, by id.
    workflow_drawing(ax::workflow_record const& whole, std::vector<ax::member_record> const& members,
                     ax::time_point now, names outside = {})
        : whole_(whole), members_(members), now_(now), outside_(std::move(outside)) {
        for (std::size_t i = 0; i != members.size(); ++i) places_.emplace(ax::to_number(members[i].id), i);
    }

    std::string text() {
        head();
        path();
        tasks();
        return std::move(text_);
    }

  private:
    void head() {
        text_ += "workflow " + std::to_string(ax::to_number(whole_.id)) + "  " + one_line(whole_.name);
        if (!whole_.key.empty()) text_ += "  key " + one_line(whole_.key);
        text_ += "\n" + state() + ", " + std::to_string(whole_.total() - whole_.unfinished()) + " of " +
                 std::to_string(whole_.total()) + " ended: " + counts(whole_) + "\n";
        text_ += "created " + ax::to_text(whole_.created) + ", started " + text_or_dash(whole_.started) +
                 ", finished " + text_or_dash(whole_.finished) + "\n";
    }

    std::string state() const {
        std::string text(ax::to_string(whole_.state));
        if (whole_.paused) text += " (paused)";
        if (whole_.stopping) text += " (stopping)";
        return text;
    }

    /// The chain that its end has waited for, with the time that each took.
    void path() {
        auto const ids = ax::critical_path_of(whole_, members_);
        if (ids.empty()) return;
        text_ += "critical path: ";
        std::size_t shown = 0;
        for (auto const id : ids) {
            if (shown != 0) text_ += " > ";
            if (++shown > most_of_path) {
                text_ += "and " + std::to_string(ids.size() - most_of_path) + " more";
                break;
            }
            auto const& one = members_[places_.at(ax::to_number(id))];
            text_ += title(one) + time(one, " (", ")");
        }
        text_ += "\n";
    }

    void tasks() {
        auto const size = members_.size();
        std::vector<std::vector<std::size_t>> children(size);
        std::vector<std::size_t> open(size), depth(size);
        for (std::size_t i = 0; i != size; ++i)
            for (auto const parent : members_[i].parents)
                if (auto const at = places_.find(ax::to_number(parent)); at != places_.end()) {
                    children[at->second].push_back(i);
                    ++open[i];
                }
        std::vector<std::size_t> next; // the last one is drawn first
        for (std::size_t i = size; i-- != 0;)
            if (open[i] == 0) next.push_back(i);
        std::size_t widest = 0;
        std::vector<std::size_t> order;
        while (!next.empty()) {
            auto const i = next.back();
            next.pop_back();
            order.push_back(i);
            widest = (std::max)(widest, indent(depth[i]) + title(members_[i]).size());
            auto const& below = children[i];
            for (std::size_t k = below.size(); k-- != 0;) {
                depth[below[k]] = (std::max)(depth[below[k]], depth[i] + 1);
                if (--open[below[k]] == 0) next.push_back(below[k]);
            }
        }
        widest = (std::min)(widest, widest_column);
        text_ += "\n";
        for (auto const i : order) line(members_[i], depth[i], widest);
    }

    static std::size_t indent(std::size_t depth) { return 2 * (std::min)(depth, deepest_indent); }

    void line(ax::member_record const& one, std::size_t depth, std::size_t column) {
        std::string left(indent(depth), ' ');
        left += title(one);
        if (left.size() < column) left.append(column - left.size(), ' ');
        char state[32];
        std::snprintf(state, sizeof state, "  %-15s", std::string(ax::to_string(one.state)).c_str());
        text_ += left + state;
        auto tail = time(one, "  ", "");
        if (tail.size() < 10) tail.append(10 - tail.size(), ' ');
        if (!one.parents.empty()) tail += "  after " + parents(one);
        if (one.when != ax::trigger_rule::all_success && !one.parents.empty())
            tail += " (" + std::string(ax::to_string(one.when)) + ")";
        if (one.kind == ax::member_kind::wait && one.state == ax::task_state::created) {
            if (one.until) tail += "  waits for " + one_line(ax::to_text(*one.until));
            if (one.deadline) tail += ", until " + ax::to_text(*one.deadline);
        }
        while (!tail.empty() && tail.back() == ' ') tail.pop_back();
        text_ += tail;
        while (text_.back() == ' ') text_.pop_back();
        text_ += "\n";
    }

    std::string parents(ax::member_record const& one) const {
        std::string text;
        std::size_t shown = 0;
        for (auto const id : one.parents) {
            if (++shown > most_parents) {
                text += " and " + std::to_string(one.parents.size() - most_parents) + " more";
                break;
            }
            auto const at = places_.find(ax::to_number(id));
            text += shown == 1 ? "" : ", ";
            if (at != places_.end())
                text += title(members_[at->second]);
            else if (auto const known = outside_.find(ax::to_number(id)); known != outside_.end())
                text += known->second;
            else
                text += "task " + std::to_string(ax::to_number(id));
        }
        return text;
    }

    static std::string title(ax::member_record const& one) {
        auto text = one_line(one.name, 60);
        if (one.generation > 1) text += " #" + std::to_string(one.generation);
        return text;
    }

    /// How long it took, or has been at work: from its first start.
    std::string time(ax::member_record const& one, char const* before, char const* behind) const {
        if (!one.started) return {};
        auto const end = one.finished.value_or(now_);
        return before + length_of((std::max)(end - *one.started, ax::duration{0}).count()) + behind;
    }

  public:
    static std::string counts(ax::workflow_record const& whole) {
        std::string text;
        auto const add = [&](std::size_t number, char const* what) {
            if (number == 0) return;
            if (!text.empty()) text += ", ";
            text.append(std::to_string(number)).append(" ").append(what);
        };
        add(whole.succeeded, "succeeded");
        add(whole.dead, "dead");
        add(whole.cancelled, "cancelled");
        add(whole.skipped, "skipped");
        add(whole.upstream_failed, "upstream failed");
        add(whole.running, "running");
        add(whole.ready, "ready");
        add(whole.waiting, "waiting");
        return text;
    }

  private:
    static constexpr std::size_t most_of_path = 20;
    static constexpr std::size_t most_parents = 4;
    static constexpr std::size_t deepest_indent = 30;
    static constexpr std::size_t widest_column = 60;

    ax::workflow_record const& whole_;
    std::vector<ax::member_record> const& members_;
    ax::time_point now_;
    std::unordered_map<std::uint64_t, std::size_t> places_; ///< by id
    names outside_;
    std::string text_;
};

/// The workflows of one store.
class workflow_session {
  public:
    explicit workflow_session(arguments& given)
        : json_(given.flag("--json")), dot_(given.flag("--dot")), limit_(given.number("--limit", 50)) {
        auto const file = given.next_word();
        if (file.empty()) throw usage_error("the store's file is missing");
        store_.emplace(file);
    }

    int list() {
        auto all = nlohmann::json::array();
        if (!json_) std::printf("%-10s %-16s %-24s %-24s %s\n", "id", "state", "name", "created", "tasks; key");
        each_workflow([&](ax::workflow_record const& one) {
            if (json_) {
                auto value = ax::workflow_to_json(one, {});
                for (auto const member : {"tasks", "edges", "critical_path"}) value.erase(member);
                all.push_back(std::move(value));
            } else {
                auto state = std::string(ax::to_string(one.state)) + (one.paused ? " (paused)" : "");
                std::printf("%-10llu %-16s %-24s %-24s %s%s\n", static_cast<unsigned long long>(ax::to_number(one.id)),
                            state.c_str(), one_line(one.name, 60).c_str(), ax::to_text(one.created).c_str(),
                            workflow_drawing::counts(one).c_str(),
                            one.key.empty() ? "" : ("; " + one_line(one.key)).c_str());
            }
            return --limit_ != 0;
        });
        return json_ ? print(all) : 0;
    }

    int show(std::string const& name) {
        auto const whole = named(name);
        if (!whole) throw std::invalid_argument("there is no workflow " + name);
        std::vector<ax::member_record> members;
        for (;;) {
            auto page = store_->members(whole->id, members.empty() ? std::string_view{} : members.back().name, 1'000);
            if (page.empty()) break;
            std::move(page.begin(), page.end(), std::back_inserter(members));
        }
        if (json_) return print(ax::workflow_to_json(*whole, members));
        auto const text = dot_ ? ax::workflow_to_dot(*whole, members)
                               : workflow_drawing{*whole, members, ax::now(), outside(members)}.text();
        std::fputs(text.c_str(), stdout);
        return 0;
    }

  private:
    /// Calls `use(record)` for each workflow, the latest ones first, until it says no.
    template <class Use>
    void each_workflow(Use use) {
        if (limit_ == 0) return;
        std::unordered_set<std::uint64_t> seen; // a workflow whose tasks were run again has several heads
        ax::task_filter wanted;
        wanted.type = ax::detail::workflow_type;
        wanted.limit = 100;
        for (auto page = store_->list(wanted, ax::now()); !page.empty(); page = store_->list(wanted, ax::now())) {
            wanted.after = page.back().id;
            for (auto const& head : page) {
                auto const whole = store_->workflow(head.id);
                if (!whole || !seen.insert(ax::to_number(whole->id)).second) continue;
                if (!use(*whole)) return;
            }
        }
    }

    /// What the tasks outside are called that waits wait for, or have waited for.
    workflow_drawing::names outside(std::vector<ax::member_record> const& members) {
        workflow_drawing::names all;
        for (auto const& one : members) {
            if (one.kind != ax::member_kind::wait || one.parents.empty()) continue;
            for (auto const& parent : store_->parents(one.id)) {
                auto const number = ax::to_number(parent.id);
                auto const whole = store_->workflow(parent.id);
                if (all.contains(number) || (whole && store_->workflow(one.id)->id == whole->id)) continue;
                auto text = whole ? "workflow " + one_line(whole->name, 60) + " (" +
                                        std::to_string(ax::to_number(whole->id)) + ")"
                                  : "task " + std::to_string(number);
                if (!parent.name.empty()) text = one_line(parent.name, 60) + " of " + text;
                if (auto const task = store_->find(parent.id)) {
                    if (!task->key.empty())
                        text += ", key " + one_line(task->key, 60);
                    else if (parent.name.empty() && !task->schedule.empty() && task->scheduled_at)
                        text += ", the occurrence of " + one_line(task->schedule, 60) + " at " +
                                ax::to_text(*task->scheduled_at);
                }
                all.emplace(number, text + " (" + std::string(ax::to_string(parent.state)) + ")");
            }
        }
        return all;
    }

    std::optional<ax::workflow_record> named(std::string const& name) {
        std::uint64_t number = 0;
        auto const [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
        if (failed == std::errc{} && end == name.data() + name.size()) return store_->workflow(ax::task_id{number});
        auto const key = name.starts_with("key:") ? name.substr(4) : name;
        if (auto const task = store_->find_by_key(key)) return store_->workflow(task->id);
        std::optional<ax::workflow_record> found;
        each_workflow([&](ax::workflow_record const& one) {
            if (one.name == name) found = one;
            return !found;
        });
        return found;
    }

    bool json_;
    bool dot_;
    std::size_t limit_;
    std::optional<ax::sqlite_visitor> store_;
};

inline int workflow_command(arguments& given) {
    auto const what = given.next_word();
    if (what != "list" && what != "show") throw usage_error("workflow: list or show?");
    workflow_session session{given};
    if (what == "show") return session.show(given.only_word("an id, a key or a name"));
    given.nothing_left();
    return session.list();
}

} // namespace axctl

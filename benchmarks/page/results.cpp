// SPDX-License-Identifier: MIT
#include "page/results.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace page {

namespace {

std::optional<double> number(nlohmann::json const& object, std::string_view member) {
    auto const at = object.find(std::string(member));
    if (at == object.end() || !at->is_number()) return {};
    return at->get<double>();
}

/// Takes `function<variant>/arguments` apart. How time was taken is not part of the name for us.
void read_name(part& one, std::string name) {
    for (std::string_view const how : {"/manual_time", "/real_time", "/process_time"})
        if (auto const at = name.find(how); at != std::string::npos) name.erase(at, how.size());
    if (auto const at = name.find("/iterations:"); at != std::string::npos) name.erase(at, name.find('/', at + 1) - at);
    auto const open = name.find('<');
    auto const close = name.rfind('>');
    auto const slash = name.find('/', close == std::string::npos ? 0 : close);
    if (slash != std::string::npos) one.arguments = name.substr(slash + 1);
    one.function = name.substr(0, (std::min)(open, slash));
    if (open != std::string::npos && close != std::string::npos) one.variant = name.substr(open + 1, close - open - 1);
}

std::string name_of(part const& one) {
    return one.function + (one.variant.empty() ? "" : "<" + one.variant + ">") +
           (one.arguments.empty() ? "" : "/" + one.arguments);
}

} // namespace

results::results(std::filesystem::path const& folder) : folder_(folder) {
    for (std::string const program : {"durable", "sweep", "growth"}) {
        std::istringstream lines(text(program + ".jsonl"));
        for (std::string line; std::getline(lines, line);) rows_.push_back(nlohmann::json::parse(line));
    }
    std::istringstream lines(text("machine.txt"));
    for (std::string line; std::getline(lines, line);) machine_.push_back(line);
    for (auto const& file : std::filesystem::directory_iterator(folder))
        if (file.path().extension() == ".json")
            read_parts(file.path().stem().string(), nlohmann::json::parse(text(file.path().filename().string())));
}

void results::read_parts(std::string const& module, nlohmann::json const& file) {
    not_built_[module] = file.at("context").value("not built", "");
    static std::map<std::string, double> const units{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    for (auto const& each : file.at("benchmarks")) {
        if (each.value("error_occurred", false)) continue;
        part one;
        read_name(one, each.at("name"));
        one.label = each.value("label", "");
        one.all = each;
        if (auto const per_timer = number(each, "ns_per_timer"))
            one.nanoseconds = *per_timer;
        else if (auto const speed = number(each, "items_per_second"))
            one.nanoseconds = 1e9 / *speed;
        else
            one.nanoseconds = each.at("real_time").get<double>() * units.at(each.value("time_unit", "ns"));
        parts_[module].push_back(std::move(one));
    }
}

std::vector<part> const& results::parts(std::string const& module) const {
    static std::vector<part> const none;
    auto const at = parts_.find(module);
    return at == parts_.end() ? none : at->second;
}

std::string results::not_built(std::string const& module) const {
    auto const at = not_built_.find(module);
    return at == not_built_.end() ? "" : at->second;
}

std::string results::text(std::string const& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<double> results::of_row(std::string_view name, std::string_view member) const {
    for (auto const& one : rows_)
        if (one.at("name").get<std::string>() == name) return number(one, member);
    return {};
}

std::optional<double> results::of_part(std::string const& module, std::string_view name,
                                       std::string_view member) const {
    for (auto const& one : parts(module)) {
        if (name_of(one) != name) continue;
        if (member == "ns") return one.nanoseconds;
        return number(one.all, member);
    }
    return {};
}

} // namespace page

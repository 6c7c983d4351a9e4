// SPDX-License-Identifier: MIT
#include "ax/scheduler/scheduler.hpp"
#include "ax/scheduler/workflow_export.hpp"
#include "ax/storage/memory.hpp"
#include "ax/testing/manual_clock.hpp"

#include "support/catch.hpp"
#include "support/paths.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct day {
    int number = 0;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(day, number)
};
inline constexpr ax::task_type<day> fetch{"fetch"};
inline constexpr ax::task_type<day> rates{"rates"};
inline constexpr ax::task_type<> sum{"sum"};
inline constexpr ax::task_type<> mail{"mail"};

/// The words of a text: how it is broken into lines does not matter.
std::string words_of(std::string const& text) {
    std::istringstream in(text);
    std::string all;
    for (std::string word; in >> word;) all += word + ' ';
    return all;
}

std::string file(std::string const& name) {
    std::ifstream in(test::project_file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST_CASE("the programs in the page on workflows do what it says", "[docs]") {
    ax::testing::manual_clock clock;
    ax::scheduler tasks{ax::memory_storage{}, ax::options{}, clock};
    std::vector<std::string> log;

    tasks.on(fetch, [](day const& d) { return d.number * 10; }); // what a handler returns is its task's result
    tasks.on(rates, [](day const&) { throw ax::give_up("no rates"); });
    tasks.on(sum, [](ax::context& ctx) { return ctx.parent("fetch").get<int>() + 1; });
    tasks.on(mail, [&](ax::context& ctx) {
        for (auto const& parent : ctx.parents())
            log.push_back(parent.name + ' ' + std::string(ax::to_string(parent.state)));
    });

    ax::workflow w{"report"};
    auto const data = w.add(fetch, {7}, {.name = "fetch"});
    auto const quotes = w.add(rates, {7}, {.name = "rates"});
    auto const total = w.add(sum, {}, {.name = "sum", .after = {data}});
    w.add(mail, {}, {.name = "mail", .after = {quotes, total}, .when = ax::trigger_rule::all_done});
    auto const answer = tasks.submit(w, {.key = "report-7"}); // mail says: rates dead, sum succeeded

    for (int i = 0; i != 5; ++i) tasks.poll(clock.now());
    CHECK(log == std::vector<std::string>{"rates dead", "sum succeeded"});
    CHECK(tasks.find(answer.id)->state == ax::task_state::succeeded);

    auto const whole = *tasks.find_workflow(answer.id);
    auto const members = tasks.workflow_tasks(answer.id);
    nlohmann::json const json = ax::workflow_to_json(whole, members);
    std::string const dot = ax::workflow_to_dot(whole, members);

    CHECK(json["tasks"].size() == 4);
    CHECK(json["edges"].size() == 3);
    CHECK(dot.find("digraph \"report\"") == 0);
}

TEST_CASE("the programs in the page on workflows are those of the test", "[docs]") {
    auto const page = file("docs/workflows.md");
    auto const here = words_of(file("tests/docs/workflows.test.cpp"));
    std::size_t blocks = 0;
    for (auto at = page.find("```cpp\n"); at != page.npos; at = page.find("```cpp\n", at + 1), ++blocks) {
        auto const begin = at + 7;
        auto const block = words_of(page.substr(begin, page.find("```", begin) - begin));
        CAPTURE(block);
        CHECK(here.find(block) != here.npos);
    }
    CHECK(blocks == 2);
}

// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/paths.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string text_of(std::string const& path) {
    std::ifstream in(test::project_file(path), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The text without what stands between fences, where brackets are no links.
std::string without_code(std::string const& text) {
    std::string prose;
    std::istringstream lines(text);
    bool code = false;
    for (std::string line; std::getline(lines, line);) {
        bool const fence = line.starts_with("```");
        if (fence) code = !code;
        if (!fence && !code) prose += line + '\n';
    }
    return prose;
}

} // namespace

TEST_CASE("The first program of the README is the example hello, word for word", "[docs]") {
    auto const readme = text_of("README.md");
    std::string const fence = "```cpp\n";
    auto const begin = readme.find(fence);
    REQUIRE(begin != readme.npos);
    auto const end = readme.find("```\n", begin + fence.size());
    REQUIRE(end != readme.npos);

    auto const hello = text_of("examples/hello.cpp");
    auto const start = hello.find("#include <ax/ax.hpp>"); // behind the licence and what the text around it says anyway
    REQUIRE(start != hello.npos);
    CHECK(readme.substr(begin + fence.size(), end - begin - fence.size()) == hello.substr(start));
}

TEST_CASE("Every file that the README and the pages of docs link to is there", "[docs]") {
    std::filesystem::path const root = test::project_file("");
    std::vector<std::filesystem::path> pages{root / "README.md"};
    for (auto const& entry : std::filesystem::directory_iterator(root / "docs"))
        if (entry.path().extension() == ".md") pages.push_back(entry.path());
    CHECK(pages.size() > 5);

    std::regex const link{R"(\]\(([^)#:]+)(#[^)]*)?\))"}; // an address of the web has a colon
    std::size_t links = 0;
    for (auto const& page : pages) {
        auto const text = without_code(text_of(std::filesystem::relative(page, root).string()));
        for (std::sregex_iterator one(text.begin(), text.end(), link), none; one != none; ++one, ++links) {
            CAPTURE(page.string(), (*one)[1].str());
            CHECK(std::filesystem::exists(page.parent_path() / (*one)[1].str()));
        }
    }
    CHECK(links > 10);
}

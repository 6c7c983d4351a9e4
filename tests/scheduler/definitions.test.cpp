// SPDX-License-Identifier: MIT
#include "ax/scheduler/definitions.hpp"

#include "ax/core/random.hpp"

#include "scheduler/definitions_support.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using ax::check_definitions;
using ax::parse_definitions;
using nlohmann::json;
using test::faults;
using test::t0;
using test::without;

namespace {

/// The faults of a document with this one schedule, without the path to it.
std::string faults_of_schedule(std::string const& members) {
    return without(faults(R"({"schedules":[{"name":"s","type":"t",)" + members + "}]}"), "/schedules/0");
}

std::string faults_of_type(std::string const& members) {
    return without(faults(R"({"task_types":[{"name":"t",)" + members + "}]}"), "/task_types/0");
}

ax::schedule_definition schedule(std::string const& members) {
    auto const made = parse_definitions(R"({"schedules":[{"name":"s","type":"t",)" + members + "}]}", t0);
    REQUIRE(made.schedules.size() == 1);
    return made.schedules.front();
}

} // namespace

TEST_CASE("the document in the docs defines what it says", "[scheduler][definitions]") {
    std::ifstream file(test::project_file("docs/definitions.md"));
    std::string const page{std::istreambuf_iterator<char>(file), {}};
    auto const begin = page.find("```json\n") + 8;
    auto const made = parse_definitions(page.substr(begin, page.find("```", begin) - begin), t0);

    REQUIRE(made.task_types.size() == 2);
    auto const& reconcile = made.task_types[0];
    CHECK(reconcile.name == "reconcile");
    CHECK(reconcile.owner == "billing");
    REQUIRE(reconcile.retry);
    CHECK(to_text(*reconcile.retry) == "exp 60000 cap 1800000 jitter 0.1 attempts 5");
    CHECK(reconcile.timeout == ax::time_span{10min});
    CHECK(reconcile.concurrency == 1);
    CHECK_FALSE(reconcile.on_interrupt);
    CHECK_FALSE(reconcile.priority);
    auto const& probe = made.task_types[1];
    CHECK(probe.priority == ax::priority::low);
    CHECK(to_text(*probe.retry) == "none");

    REQUIRE(made.workflows.size() == 1);
    CHECK(made.workflows[0].name() == "close-day");
    CHECK(made.workflows[0].size() == 3);
    REQUIRE(made.schedules.size() == 4);
    CHECK(made.schedules[3].workflow == "close-day");
    CHECK(made.schedules[3].type.empty());
    auto const& nightly = made.schedules[0];
    CHECK(nightly.name == "nightly");
    CHECK(nightly.type == "reconcile");
    CHECK(nightly.how.spec() == "cron ax Asia/Shanghai 0 3 * * *");
    CHECK(nightly.payload == R"({"day":"{{ds - 1d}}"})");
    CHECK(nightly.chosen.misfire == ax::misfire::within(6h));
    CHECK(nightly.chosen.overlap == ax::overlap::queue_one);
    CHECK(nightly.chosen.spread.value() == 15min);
    CHECK(nightly.chosen.priority == ax::priority::high);
    CHECK(nightly.chosen.tags == std::vector<std::string>{"billing"});
    CHECK(nightly.chosen.depends_on_past);
    CHECK(made.schedules[1].how.spec() == "every 30000");
    CHECK(made.schedules[1].chosen.misfire == ax::misfire::skip);
    CHECK(made.schedules[1].payload.empty());
    CHECK(made.schedules[2].how.first(t0) ==
          ax::time_point{std::chrono::sys_days{std::chrono::year{2027} / 1 / 31}} + 23h);
}

TEST_CASE("what a document leaves out has its default", "[scheduler][definitions]") {
    auto const one = schedule(R"("every":"1m")");
    CHECK(one.chosen.misfire == ax::misfire::run_once);
    CHECK(one.chosen.overlap == ax::overlap::skip);
    CHECK(one.chosen.spread.value() == 0ms);
    CHECK_FALSE(one.chosen.priority);
    CHECK_FALSE(one.chosen.retry);
    CHECK(one.chosen.tags.empty());
    CHECK_FALSE(one.chosen.depends_on_past);
    CHECK(parse_definitions("{}").schedules.empty());
    CHECK(parse_definitions(json::object()).task_types.empty());
}

TEST_CASE("each kind of recurrence", "[scheduler][definitions]") {
    CHECK(schedule(R"("cron":"0 3 * * *")").how.spec() == "cron ax UTC 0 3 * * *");
    CHECK(schedule(R"("cron":"0 0 3 ? * 2","dialect":"quartz","zone":"Europe/Berlin")").how.spec() ==
          "cron quartz Europe/Berlin 0 0 3 ? * 2");
    CHECK(schedule(R"("every":"1h30m")").how.spec() == "every 5400000");
    CHECK(schedule(R"("after_each":"250ms")").how.spec() == "after_each 250");
    CHECK(schedule(R"("once":"2026-03-29T03:00:00+02:00")").how.first(t0) == t0 + 87 * 24h + 1h);
    CHECK(schedule(R"("once":"2026-03-29T03:00","zone":"Europe/Berlin")").how.first(t0) == t0 + 87 * 24h + 1h);
    CHECK(schedule(R"("once":"2026-01-01T00:00:01.250Z")").how.first(t0) == t0 + 1'250ms);
    auto const opening = ax::calendar{ax::cron{"0 9 * * MON-FRI", "Europe/Berlin"}}.except(ax::cron{"0 9 24 12 *"});
    json document{{"schedules", {{{"name", "s"}, {"type", "t"}, {"calendar", opening.to_string()}}}}};
    CHECK(parse_definitions(document).schedules.front().how.spec() == "calendar " + opening.to_string());
}

TEST_CASE("each misfire policy and each overlap policy", "[scheduler][definitions]") {
    CHECK(schedule(R"("every":"1m","misfire":"skip")").chosen.misfire == ax::misfire::skip);
    CHECK(schedule(R"("every":"1m","misfire":"run_once")").chosen.misfire == ax::misfire::run_once);
    CHECK(schedule(R"("every":"1m","misfire":{"run_all":100})").chosen.misfire == ax::misfire::run_all(100));
    CHECK(schedule(R"("every":"1m","misfire":{"within":"10m"})").chosen.misfire == ax::misfire::within(10min));
    for (auto const name : ax::detail::overlap_names)
        CHECK(to_text(schedule(R"("every":"1m","overlap":")" + std::string(name) + '"').chosen.overlap) == name);
}

TEST_CASE("each retry policy", "[scheduler][definitions]") {
    auto const text = [](std::string const& policy) {
        return to_text(*schedule(R"("every":"1m","retry":)" + policy).chosen.retry);
    };
    CHECK(text(R"("none")") == "none");
    CHECK(text(R"({"fixed":"10s","attempts":3,"total":"1h"})") == to_text(ax::retry::fixed(10s).attempts(3).total(1h)));
    CHECK(text(R"({"exponential":"1s","factor":3,"cap":"1m","jitter":0.5})") ==
          to_text(ax::retry::exponential(1s).factor(3).cap(1min).jitter(0.5)));
    CHECK(text(R"({"list":["1s","1m"]})") == to_text(ax::retry::list({1s, 1min})));
}

TEST_CASE("the whole document is checked, and each fault names its path", "[scheduler][definitions]") {
    auto const document = R"({
        "task_types": [
            {"name": "a", "timeout": "10 min", "retrys": 3},
            {"name": "a", "concurrency": 0, "priority": "hihg"},
            {"nam": "b"}
        ],
        "schedules": [
            {"name": "x", "cron": "0 3 * * *", "type": "a", "overlap": "skipp"},
            {"name": "y", "cron": "0 3 * * *", "zone": "Europe/Belrin", "type": "a"},
            {"name": "z", "cron": "0 24 * * *", "type": "a", "payload": {"a/b": [{"to~": "{{dss}}"}]}}
        ],
        "workflow": []
    })";
    CHECK(faults(document) ==
          R"(/workflow: is unknown here; did you mean "workflows"? Allowed: task_types, workflows, schedules
/task_types/0/retrys: is unknown here; did you mean "retry"? Allowed: name, retry, timeout, expected, concurrency, on_interrupt, priority, owner
/task_types/0/timeout: "10 min" is no length of time; allowed: numbers with w, d, h, m, s or ms, the larger first, as 1h30m; at most 36525d
/task_types/1/name: "a" is the name of number 0 already
/task_types/1/concurrency: 0 is out of range: at least 1 is needed
/task_types/1/priority: "hihg" is unknown; did you mean "high"? Allowed: critical, high, normal, low
/task_types/2/nam: is unknown here; did you mean "name"? Allowed: name, retry, timeout, expected, concurrency, on_interrupt, priority, owner
/task_types/2/name: is missing
/schedules/0/overlap: "skipp" is unknown; did you mean "skip"? Allowed: allow, skip, queue_one, queue_all, cancel_running, replace_running
/schedules/1/zone: time zone "Europe/Belrin" is unknown
/schedules/2/payload/a~1b/0/to~0: column 3: "dss" is no name; allowed: ds, ts, scheduled_at, prev, next
/schedules/2/cron: column 3, hour: "24" is out of range; allowed: 0-23
)");
    try {
        (void)parse_definitions(document);
        FAIL("it was taken");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        CHECK_THAT(e.what(),
                   Catch::Matchers::Contains("12 faults") && Catch::Matchers::Contains("/schedules/2/cron: column 3"));
    }
}

TEST_CASE("a text that is no document", "[scheduler][definitions]") {
    CHECK_THAT(faults("{\"schedules\":\n [,]}"), Catch::Matchers::Contains("the document: is no JSON: ") &&
                                                     Catch::Matchers::Contains("line 2, column 3"));
    CHECK_THAT(faults(""), Catch::Matchers::Contains("is no JSON"));
    CHECK(faults(std::string("{}\0{\"schedules\":7}", 18)) ==
          "the document: is no JSON: there is a NUL byte at offset 2\n");
    CHECK(faults(std::string("{}\0", 3)) == "the document: is no JSON: there is a NUL byte at offset 2\n");
    CHECK(faults("[]") == "the document: is a list; allowed: an object\n");
    CHECK(faults("null") == "the document: is null; allowed: an object\n");
    CHECK(faults(R"({"schedules":{}})") == "/schedules: is an object; allowed: a list\n");
    CHECK(faults(R"({"schedules":[7]})") == "/schedules/0: is a number; allowed: an object\n");
    std::string const deep(100'000, '[');
    CHECK(faults(deep) == "the document: is nested more than 64 deep\n");
    CHECK(faults(R"({"schedules":[{"name":"s","type":"t","every":"1m","payload":)" + std::string(60, '[') +
                 std::string(60, ']') + "}]}")
              .empty());
}

TEST_CASE("a member that stands twice is a fault", "[scheduler][definitions]") {
    CHECK(faults(R"({"schedules":[{"name":"s","type":"t","every":"1m"},
                     {"name":"u","every":"1m","type":"t","every":"2m","payload":{"a":[1,{"b":1,"b":2}]}}]})") ==
          "/schedules/1/every: stands twice in its object\n"
          "/schedules/1/payload/a/1/b: stands twice in its object\n");
    CHECK(faults(R"({"task_types":[{"name":"a"},{"name":"b"}],"schedules":[]})").empty());
}

TEST_CASE("when a schedule recurs is said once and with what belongs to it", "[scheduler][definitions]") {
    CHECK(faults_of_schedule(R"("tags":[])") ==
          ": does not say when: one of cron, every, after_each, once, calendar is needed\n");
    CHECK(faults_of_schedule(R"("cron":"* * * * *","every":"1m")") ==
          ": says when in 2 ways (cron, every): one is needed\n");
    CHECK(faults_of_schedule(R"("cron":5)") == "/cron: is a number; allowed: a text\n");
    CHECK(faults_of_schedule(R"("cron":"0 0 30 2 *")") == "/cron: cron \"0 0 30 2 *\" has no occurrence, ever\n");
    CHECK(faults_of_schedule(R"("cron":"0 0 3 ? * 2#9","dialect":"quarz")") == // and nothing about the expression
          "/dialect: \"quarz\" is unknown; did you mean \"quartz\"? Allowed: ax, crontab, quartz, spring\n");
    CHECK(faults_of_schedule(R"("cron":"0 0 0 3 * 2","dialect":"crontab")").find("/cron: column") == 0);
    CHECK(faults_of_schedule(R"("every":"1m","zone":"UTC")") == "/zone: every has no zone\n");
    CHECK(faults_of_schedule(R"("every":"1m","dialect":"ax")") == "/dialect: every has no dialect\n");
    CHECK(faults_of_schedule(R"("every":"0s")") == "/every: is nothing: at least 1ms is needed\n");
    CHECK(faults_of_schedule(R"("every":60)").find("/every: is a number; allowed: a length of time") == 0);
    CHECK(faults_of_schedule(R"x("calendar":"(all)")x").find("/calendar: ") == 0);
    CHECK(faults_of_schedule(R"x("calendar":"(cron ax UTC \"0 3 * * *\")","zone":"UTC")x") ==
          "/zone: calendar names its zones itself\n");
    CHECK(faults_of_schedule(R"("once":"tomorrow")").find("/once: \"tomorrow\" is no instant") == 0);
    CHECK(faults_of_schedule(R"("once":"2026-02-29T00:00Z")").find("/once: ") == 0);
    CHECK(faults_of_schedule(R"("once":"2026-03-29T03:00")") ==
          "/once: \"2026-03-29T03:00\" says no offset from UTC: Z, +02:00 or a zone is needed\n");
    CHECK(faults_of_schedule(R"("once":"2026-03-29T03:00Z","zone":"UTC")") ==
          "/zone: the instant says its offset from UTC itself\n");
    CHECK(faults_of_schedule(R"("once":"1969-12-31T23:59Z")").find("/once: ") == 0);
}

TEST_CASE("options of schedules that make no sense", "[scheduler][definitions]") {
    CHECK(faults_of_schedule(R"("every":"1m","misfire":"run_all")") ==
          "/misfire: \"run_all\" is unknown; allowed: skip, run_once\n");
    CHECK(faults_of_schedule(R"("every":"1m","misfire":{"run_all":0})") ==
          "/misfire/run_all: 0 is out of range: at least 1 is needed\n");
    CHECK(faults_of_schedule(R"("every":"1m","misfire":{"run_all":-1})") ==
          "/misfire/run_all: -1 is out of range: at least 1 is needed\n");
    CHECK(faults_of_schedule(R"("every":"1m","misfire":{"run_all":1.5})") ==
          "/misfire/run_all: is a number; allowed: a whole number\n");
    CHECK(faults_of_schedule(R"("every":"1m","misfire":{"run_all":10001})") ==
          "/misfire/run_all: misfire run_all(10001): at most 10000\n");
    CHECK(faults_of_schedule(R"("every":"1m","misfire":{"within":"0s"})") ==
          "/misfire/within: is nothing: at least 1ms is needed\n");
    CHECK(faults_of_schedule(R"("every":"1m","misfire":{"within":"1s","run_all":1})") ==
          "/misfire: needs one of run_all, within\n");
    CHECK(
        faults_of_schedule(R"("every":"1m","spread":"1m")") ==
        "/spread: spread of schedule \"s\", 60000 ms, is not shorter than the distance between two occurrences, 60000 "
        "ms\n");
    CHECK(faults_of_schedule(R"("every":"1m","spread":"59s")").empty());
    CHECK(faults_of_schedule(R"("every":"1m","spread":"-1s")").find("/spread: \"-1s\" is no length of time") == 0);
    CHECK(faults_of_schedule(R"("every":"1m","tags":["a",""])") == "/tags/1: text is empty\n");
    CHECK(faults_of_schedule(R"("every":"1m","tags":"a")") == "/tags: is a text; allowed: a list of texts\n");
    CHECK(faults_of_schedule(R"("every":"1m","depends_on_past":1)") ==
          "/depends_on_past: is a number; allowed: true or false\n");
    CHECK(faults_of_schedule(R"("every":"1m","payload":"{{prev | %Q}}")").find("/payload: column 10: ") == 0);
    CHECK(faults_of_schedule(R"("every":"1m","payload":{"{{x}}":1})").find("/payload/{{x}}: column 3: ") == 0);
    CHECK(schedule(R"("every":"1m","tags":["b","a","b"])").chosen.tags == std::vector<std::string>{"a", "b"});
    CHECK(faults_of_type(R"("retry":{"fixed":"1s","exponential":"1s"})") ==
          "/retry: needs one of fixed, exponential, list\n");
    CHECK(faults_of_type(R"("retry":{"exponential":"1s","jitter":2})") ==
          "/retry/jitter: retry jitter of 2 is not within 0 and 1\n");
    CHECK(faults_of_type(R"("retry":{"list":["1s","x"]})").find("/retry/list/1: \"x\" is no length of time") == 0);
    CHECK(faults_of_type(R"("retry":{"list":[]})") == "/retry/list: has 0 delays: 1 to 16 are needed\n");
    CHECK(faults_of_type(R"("retry":"never")") == "/retry: \"never\" is unknown; allowed: none\n");
    CHECK(faults_of_type(R"("on_interrupt":"stop")") == "/on_interrupt: \"stop\" is unknown; allowed: rerun, hold\n");
    CHECK(faults_of_type("\"owner\":\"" + std::string(256, 'x') + '"').find("has 256 bytes, at most 255") !=
          std::string::npos);
}

TEST_CASE("a value that cannot be JSON text is a fault, too", "[scheduler][definitions]") {
    json document{{"schedules", {{{"name", "s"}, {"type", "t"}, {"every", "1m"}, {"payload", "\xFF"}}}}};
    CHECK(faults(document) == "/schedules/0/payload: is not valid UTF-8 at offset 0\n");
    document["schedules"][0]["payload"] = json::binary({1, 2});
    CHECK(faults(document) == "/schedules/0/payload: cannot be written as JSON\n");
    document["schedules"][0]["payload"] = 1;
    document["schedules"][0]["name"] = "\xFF";
    CHECK(faults(document).find("/schedules/0/name: ") == 0);
    json nest = 1;
    for (int i = 0; i != 1'000; ++i) nest = json::array({std::move(nest)});
    document["schedules"][0]["payload"] = std::move(nest);
    CHECK(faults(document).find("is nested more than 64 deep") != std::string::npos);
}

TEST_CASE("a document with very many faults tells a hundred", "[scheduler][definitions]") {
    json document{{"task_types", json::array()}};
    for (int i = 0; i != 1'000; ++i) document["task_types"].push_back(json::object());
    auto const found = check_definitions(document);
    CHECK(found.size() == 101);
    CHECK(found.back().message() == "the document: has more faults than the 100 told");
}

TEST_CASE("no document makes the reader fail", "[scheduler][definitions]") {
    // A good document with parts exchanged, put in, left out and bent.
    json const good =
        json::parse(R"({"task_types":[{"name":"a","retry":{"exponential":"1m","attempts":5},"timeout":"10m"}],
        "schedules":[{"name":"x","cron":"0 3 * * *","zone":"Europe/Berlin","type":"a","payload":{"day":"{{ds}}"},
        "misfire":{"within":"1h"},"overlap":"skip","spread":"5m","tags":["t"],"once":"2026-01-01T00:00Z"}]})");
    std::vector<json::json_pointer> const places = [&] {
        std::vector<json::json_pointer> all;
        auto const flat = good.flatten();
        for (auto const& item : flat.items()) {
            json::json_pointer at{item.key()};
            for (; !at.empty(); at.pop_back()) all.push_back(at);
        }
        return all;
    }();
    ax::splitmix64 random{11};
    int taken = 0;
    for (int round = 0; round != 3'000; ++round) {
        json document = good;
        document["schedules"][0].erase("once");
        for (auto n = random() % 4; n != 0; --n) {
            auto const& at = places[random() % places.size()];
            auto const& from = places[random() % places.size()];
            json const bent[] = {good[from], nullptr,       true,          0, -1, 1e300, "", "{{",
                                 "1h",       json::array(), json::object()};
            try {
                document[at] = bent[random() % std::size(bent)];
            } catch (json::exception const&) { // that place is gone
            }
        }
        CAPTURE(document.dump());
        auto const from_value = faults(document);
        REQUIRE(from_value == faults(document.dump()));
        if (from_value.empty()) {
            ++taken;
            REQUIRE_NOTHROW(parse_definitions(document, t0));
        }
    }
    CHECK(taken > 100);

    auto const text = good.dump();
    for (int round = 0; round != 3'000; ++round) {
        auto bent = text;
        for (auto n = 1 + random() % 3; n != 0; --n) bent[random() % bent.size()] = static_cast<char>(random());
        (void)check_definitions(bent, t0);
    }
}

TEST_CASE("lengths of time, as people write them", "[scheduler][definitions]") {
    using ax::detail::duration_of;
    CHECK(duration_of("90s") == 90s);
    CHECK(duration_of("1h30m") == 90min);
    CHECK(duration_of("1w2d3h4m5s6ms") == 9 * 24h + 3h + 4min + 5s + 6ms);
    CHECK(duration_of("0s") == 0ms);
    CHECK(duration_of("007m") == 7min);
    CHECK(duration_of("36525d") == ax::detail::longest_defined);
    for (std::string const text : {"", "5", "s", "1.5h", "1 h", " 1h", "1h ", "-1s", "+1s", "30m1h", "1h1h", "1ms1s",
                                   "1y", "1M", "36526d", "36525d1ms", "99999999999999999999s", "PT1H", "1mss"}) {
        CAPTURE(text);
        CHECK_FALSE(duration_of(text));
    }
}

TEST_CASE("the word that was probably meant", "[scheduler][definitions]") {
    constexpr std::string_view words[] = {"cron", "every", "once", "zone", "depends_on_past"};
    using ax::detail::nearest_word;
    CHECK(nearest_word("corn", words) == "cron");
    CHECK(nearest_word("evry", words) == "every");
    CHECK(nearest_word("depend_on_past", words) == "depends_on_past");
    CHECK(nearest_word("zones", words) == "zone");
    CHECK(nearest_word("x", words).empty());
    CHECK(nearest_word("workflows", words).empty());
    CHECK(nearest_word(std::string(1'000, 'c'), words).empty());
}

// SPDX-License-Identifier: MIT
// The files of a small store with some of their bytes changed, or with values in its tables that nobody has written:
// opening and using it ends with an ax::error, or works; verify() and repair() as well; nothing goes on for ever.
#include "ax/scheduler/scheduler.hpp"
#include "ax/storage/sqlite.hpp"
#include "ax/testing/manual_clock.hpp"

#include "fuzz/fuzzing.hpp"
#include "support/instants.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using fuzzing::require;
namespace fs = std::filesystem;

namespace {

using store_type = ax::sqlite_storage;
using scheduler_type = ax::scheduler<store_type, ax::testing::manual_clock>;
using writer = store_type::writer;

constexpr ax::task_type<> plain{"plain"};
constexpr ax::task_type<> limited{"limited"};
constexpr ax::task_type<nlohmann::json> noted{"noted"};

constexpr ax::node_id node{0xF0};

constexpr std::array<char const*, 3> files{"", "-wal", "-ax"};

/// A folder of this process, in memory where there is such a place.
class folder {
  public:
    folder() {
        auto const parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
        auto name = (parent / "ax-fuzz-XXXXXX").string();
        require(::mkdtemp(name.data()) != nullptr, "a folder can be made");
        path_ = name;
    }
    ~folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    std::string file(char const* name) const { return (path_ / name).string(); }

  private:
    fs::path path_;
};

std::string content_of(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_content(std::string const& path, std::string const& content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
}

using image = std::array<std::string, files.size()>;

image take(std::string const& path) {
    image taken;
    for (std::size_t i = 0; i != files.size(); ++i) taken[i] = content_of(path + files[i]);
    return taken;
}

void put(image const& files_of, std::string const& path) {
    fs::remove(path + "-shm");
    for (std::size_t i = 0; i != files.size(); ++i) write_content(path + files[i], files_of[i]);
}

void prepare(scheduler_type& tasks) {
    ax::handler_options how;
    how.retry = ax::retry::fixed(20s).attempts(3);
    tasks.on(
        plain,
        [](ax::context& ctx) {
            (void)ctx.step("first", [] { return 7; });
            if (ctx.attempt() % 3 == 1) throw std::runtime_error("it failed");
        },
        how);
    how.concurrency = 1;
    tasks.on(
        limited, [](ax::context&) {}, how);
    tasks.on(noted, [](nlohmann::json const& what, ax::context& ctx) { ctx.result(what); });
}

ax::options options() {
    ax::options chosen;
    chosen.seed = 7;
    chosen.node_name = "fuzz";
    return chosen;
}

ax::sqlite_settings settings() {
    ax::sqlite_settings chosen;
    chosen.cache_bytes = 1 << 20;
    chosen.readers = 1;
    return chosen;
}

/// A store with something of everything.
void fill(scheduler_type& tasks, ax::testing::manual_clock& clock) {
    tasks.limit_tag("tenant", {.concurrency = 1, .rate = ax::rate{2, 1min}});
    tasks.schedule("minutes", ax::every{1min}, plain);
    tasks.schedule("mornings", ax::cron{"0 9 * * *", ax::time_zone{"Europe/Berlin"}}, plain, {},
                   {.overlap = ax::overlap::queue_all, .depends_on_past = true});
    tasks.schedule("pauses", ax::after_each{2min}, limited);
    tasks.poll(clock.now());
    for (int i = 0; i != 3; ++i) {
        tasks.submit(limited, {}, {.tags = {"tenant"}});
        tasks.submit(plain, {}, {.route_key = "route"});
        tasks.submit(noted, nlohmann::json{{"number", i}}, {.key = "key-" + std::to_string(i), .delay = 1h * i});
    }
    ax::workflow whole{"whole"};
    auto const begin = whole.add(plain);
    auto const left = whole.add(noted, {}, {.after = {begin}});
    auto const right = whole.add(limited, {}, {.after = {begin}});
    whole.add(noted, {}, {.after = {left, right}, .when = ax::trigger_rule::all_done});
    tasks.submit(whole, {.key = "whole"});
    tasks.submit(whole, {.delay = 1h});
    for (int i = 0; i != 8; ++i) {
        tasks.poll(clock.now());
        clock.advance(11s);
    }
    tasks.backfill("minutes", test::t0 - 10min, test::t0 - 2min);
    tasks.poll(clock.now());
}

/// Where values can be put: a row is named by its primary key.
struct row {
    std::string table;
    std::string where;
};

struct table {
    std::string name;
    std::vector<std::string> columns;
};

struct base {
    image closed; ///< a store whose owner has gone in peace
    image killed; ///< one whose owner was killed: the log holds the latest
    std::vector<table> tables;
    std::vector<row> rows;
};

std::vector<std::vector<std::string>> query(sqlite3* db, std::string const& sql) {
    std::vector<std::vector<std::string>> all;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return all;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        auto& one = all.emplace_back();
        for (int i = 0; i != sqlite3_column_count(statement); ++i) {
            auto const* const text = reinterpret_cast<char const*>(sqlite3_column_text(statement, i));
            one.emplace_back(text == nullptr ? "" : text);
        }
    }
    sqlite3_finalize(statement);
    return all;
}

base made_in(folder const& where) {
    base made;
    auto const path = where.file("base.db");
    {
        ax::testing::manual_clock clock;
        scheduler_type tasks{store_type{path, settings()}, options(), clock};
        prepare(tasks);
        fill(tasks, clock);
        made.killed = take(path);
    }
    made.closed = take(path);
    sqlite3* db = nullptr;
    require(sqlite3_open(path.c_str(), &db) == SQLITE_OK, "the base opens");
    for (auto const& found : query(db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'ax_%'")) {
        table one{found[0], {}};
        std::string where_text;
        for (auto const& column : query(db, "PRAGMA table_info(" + one.name + ")")) {
            one.columns.push_back(column[1]);
            if (column[5] == "0") continue;
            where_text += where_text.empty() ? "'" : " || ' AND ";
            where_text += column[1] + " = ' || quote(" + column[1] + ")";
        }
        for (auto const& each : query(db, "SELECT " + where_text + " FROM " + one.name))
            made.rows.push_back({one.name, each[0]});
        made.tables.push_back(std::move(one));
    }
    sqlite3_close(db);
    require(made.tables.size() > 15 && made.rows.size() > 60, "the base has something of everything");
    return made;
}

/// Takes numbers and texts off the input.
class source {
  public:
    source(std::uint8_t const* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}
    bool empty() const { return at_ == end_; }
    std::uint64_t number(int bytes) {
        std::uint64_t value = 0;
        for (; bytes != 0 && at_ != end_; --bytes) value = value << 8 | *at_++;
        return value;
    }
    std::string text(std::size_t most) {
        auto const size = (std::min)(most, static_cast<std::size_t>(end_ - at_));
        std::string taken(at_, at_ + size);
        at_ += size;
        return taken;
    }

  private:
    std::uint8_t const* at_;
    std::uint8_t const* end_;
};

void bind_value(sqlite3_stmt* statement, source& from) {
    switch (from.number(1) % 8) {
    case 0: sqlite3_bind_null(statement, 1); break;
    case 1: sqlite3_bind_int64(statement, 1, static_cast<std::int8_t>(from.number(1))); break;
    case 2: sqlite3_bind_int64(statement, 1, static_cast<std::int64_t>(from.number(8))); break;
    case 3:
        sqlite3_bind_int64(statement, 1,
                           test::t0.time_since_epoch().count() + static_cast<std::int16_t>(from.number(2)));
        break;
    case 4: sqlite3_bind_double(statement, 1, static_cast<double>(from.number(4)) * 1e290); break;
    case 5:
    case 6: {
        auto const text = from.text(from.number(1) % 64);
        sqlite3_bind_text(statement, 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
        break;
    }
    default: {
        auto const bytes = from.text(from.number(1) % 64);
        sqlite3_bind_blob(statement, 1, bytes.data(), static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
    }
    }
}

/// One value of one row becomes another, or the row goes.
void change_row(sqlite3* db, base const& from, source& input) {
    auto const& one = from.rows[input.number(1) % from.rows.size()];
    auto const& columns = std::find_if(from.tables.begin(), from.tables.end(), [&](table const& t) {
                              return t.name == one.table;
                          })->columns;
    auto const column = input.number(1);
    auto const sql = column == 255 ? "DELETE FROM " + one.table + " WHERE " + one.where
                                   : "UPDATE OR IGNORE " + one.table + " SET " + columns[column % columns.size()] +
                                         " = ?1 WHERE " + one.where;
    sqlite3_stmt* statement = nullptr;
    require(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK, "a row can be changed");
    if (column != 255) bind_value(statement, input);
    sqlite3_step(statement);
    sqlite3_finalize(statement);
}

void change_bytes(image& files_of, source& input) {
    auto const how = input.number(1);
    auto& content = files_of[how % files.size()];
    if (content.empty()) return;
    auto const at = static_cast<std::size_t>(input.number(4)) % content.size();
    if (how >= 0xF0) return content.resize(at);
    auto const bytes = input.text(1 + how / 16);
    for (std::size_t i = 0; i != bytes.size() && at + i < content.size(); ++i) content[at + i] = bytes[i];
}

// ---- what is done with it -------------------------------------------------------------------------------------------

void read_all(store_type const& store, ax::time_point now) {
    std::vector<ax::task_id> ids;
    ax::task_filter page;
    page.limit = 16;
    for (auto found = store.list(page, now); !found.empty(); found = store.list(page, now)) {
        require(ids.size() < 10'000, "a list has an end");
        for (auto const& each : found) ids.push_back(each.id);
        page.after = found.back().id;
    }
    for (auto const id : ids) {
        auto const task = store.find(id);
        if (task && !task->key.empty()) (void)store.find_by_key(task->key);
        (void)store.history(id);
        (void)store.obstacles(id);
        (void)store.steps(id);
        (void)store.parents(id);
        if (store.workflow(id)) (void)store.members(id, {}, 100);
    }
    (void)store.upcoming({}, (ax::time_point::max)(), 100);
    (void)store.asked_to_stop();
    (void)store.waiting({}, 100, now);
    (void)store.limits();
    (void)store.types();
    (void)store.counts();
    (void)store.backfills();
    for (auto const& each : store.schedules()) {
        (void)store.skips(each.name);
        (void)store.aside(each.name, test::t0 - 24h, test::t0 + 24h, 10);
    }
    (void)store.note("clock");
}

void repair_all(store_type& store, ax::time_point now) {
    for (int round = 0; round != 3; ++round) {
        auto found = store.verify();
        require(found.size() <= 1'000, "the findings are bounded");
        if (found.empty()) return;
        for (auto const& each : found) require(!each.kind.empty() && !each.text.empty(), "a finding says something");
        store.transact(ax::commit::lazy, [&](writer& w) {
            ax::alarms due;
            w.repair(found, now, due);
        });
    }
}

void use(store_type& store, ax::time_point now) {
    store.transact(ax::commit::lazy, [&](writer& w) {
        (void)w.reclaim({.node = node, .now = now});
        (void)w.expire(now, 100);
    });
    ax::claim_answer answer;
    store.transact(ax::commit::lazy, [&](writer& w) {
        std::vector<ax::claim_request> wanted;
        for (std::uint64_t id = 1; id != 40; ++id) wanted.push_back({.id = static_cast<ax::task_id>(id)});
        answer = w.claim(wanted, {.node = node, .now = now, .until = now, .suspects = 1});
    });
    store.transact(ax::commit::lazy, [&](writer& w) {
        std::vector<ax::attempt_end> ends;
        for (auto const& each : answer.claimed) {
            ax::attempt_end end;
            end.id = each.id;
            end.fence = each.fence;
            end.outcome = to_number(each.id) % 2 == 0 ? ax::attempt_outcome::succeeded : ax::attempt_outcome::failed;
            end.ended = now;
            end.started = end.retry_at = now;
            ends.push_back(std::move(end));
        }
        (void)w.settle(ends, now);
    });
    for (std::uint64_t number = 1; number != 16; ++number) {
        auto const id = static_cast<ax::task_id>(number);
        store.transact(ax::commit::lazy, [&](writer& w) {
            if (number % 3 == 0) (void)w.cancel(id, now);
            if (number % 3 == 1) (void)w.retry(id, now);
            if (number % 3 == 2) (void)w.rerun(id, ax::rerun_scope::all, now);
        });
    }
    for (auto const& type : store.types()) {
        ax::prune_terms terms;
        terms.type = type.number;
        terms.ended_by = terms.dead_by = now;
        store.transact(ax::commit::lazy, [&](writer& w) { (void)w.prune(terms, 100); });
    }
}

/// Calls `step()`, which may end with an error of ours and with no other.
template <class Step>
void attempt(Step&& step) {
    try {
        step();
    } catch (ax::error const& e) {
        require(e.what()[0] != '\0', "an error says something");
    }
}

void live(std::string const& path) {
    ax::testing::manual_clock clock;
    clock.advance(2min);
    scheduler_type tasks{store_type{path, settings()}, options(), clock};
    prepare(tasks);
    for (int i = 0; i != 12; ++i) {
        tasks.poll(clock.now());
        auto const next = tasks.next_wakeup();
        auto const step = next ? std::clamp<ax::duration>(*next - clock.now(), 1ms, 1h) : ax::duration{1h};
        clock.advance(step);
    }
    (void)tasks.stats();
    (void)tasks.health();
    for (auto const& each : tasks.schedules()) (void)each;
    for (std::uint64_t id = 1; id != 12; ++id) (void)tasks.explain(static_cast<ax::task_id>(id));
    tasks.stop();
}

} // namespace

/// The bits of the first byte: 1 values of rows are changed before bytes of files are, 2 the owner was killed, 4 a
/// scheduler runs on it, 8 it is repaired before it is used. Then come the changes, eight of each kind at the most.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
    static folder const where;
    static base const from = made_in(where);
    if (size == 0) return 0;
    source input(bytes, size);
    auto const how = input.number(1);
    auto const path = where.file("store.db");
    auto files_of = (how & 2) != 0 ? from.killed : from.closed;
    if ((how & 1) != 0) {
        put(files_of, path);
        sqlite3* db = nullptr;
        require(sqlite3_open(path.c_str(), &db) == SQLITE_OK, "the store opens before its bytes are changed");
        sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON", nullptr, nullptr, nullptr);
        for (int n = 0; n != 8 && !input.empty(); ++n) change_row(db, from, input);
        sqlite3_close(db);
        files_of = take(path);
    }
    for (int n = 0; n != 8 && !input.empty(); ++n) change_bytes(files_of, input);
    put(files_of, path);

    auto const now = test::t0 + 3min;
    attempt([&] {
        if ((how & 4) != 0) return live(path);
        store_type store{path, settings()};
        attempt([&] { read_all(store, now); });
        if ((how & 8) != 0) attempt([&] { repair_all(store, now); });
        attempt([&] { use(store, now); });
        attempt([&] { repair_all(store, now); });
        attempt([&] { read_all(store, now); });
    });
    return 0;
}

// SPDX-License-Identifier: MIT
// What sqlite_storage accepts as a store, and what it refuses.
#include "ax/storage/sqlite.hpp"

#include "storage/sqlite_fixture.hpp"
#include "storage/sqlite_process.hpp"
#include "support/catch.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

std::string bytes_of(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(std::string const& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A connection of some other program.
class other_program {
  public:
    explicit other_program(std::string const& path) { REQUIRE(sqlite3_open(path.c_str(), &db_) == SQLITE_OK); }
    other_program(other_program const&) = delete;
    other_program& operator=(other_program const&) = delete;
    ~other_program() { sqlite3_close(db_); }

    void run(std::string const& sql) {
        CAPTURE(sql);
        char* message = nullptr;
        int const code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &message);
        std::string const text = message == nullptr ? "" : message;
        sqlite3_free(message);
        CAPTURE(text);
        REQUIRE(code == SQLITE_OK);
    }
    std::string ask(std::string const& sql) {
        std::string answer;
        auto const add = [](void* to, int count, char** values, char**) {
            for (int i = 0; i < count; ++i) {
                *static_cast<std::string*>(to) += values[i] == nullptr ? "NULL" : values[i];
                *static_cast<std::string*>(to) += ' ';
            }
            return 0;
        };
        REQUIRE(sqlite3_exec(db_, sql.c_str(), add, &answer, nullptr) == SQLITE_OK);
        return answer;
    }

  private:
    sqlite3* db_ = nullptr;
};

struct open_refusal {
    ax::errc kind{};
    std::string text;
};

/// How an attempt to open failed; nothing where it did not.
std::optional<open_refusal> refused(std::string const& path, ax::sqlite_settings const& settings = {}) {
    try {
        ax::sqlite_storage const store{path, settings};
        return std::nullopt;
    } catch (ax::error const& e) {
        return open_refusal{e.kind(), e.what()};
    }
}

ax::task_id add(ax::sqlite_storage& store, std::string payload = {}, std::string key = {}) {
    ax::task_id id{};
    store.transact(ax::commit::lazy, [&](ax::sqlite_storage::writer& w) {
        ax::new_task made;
        made.type = w.type("probe");
        made.payload = payload;
        made.key = key;
        ax::alarms due;
        id = w.insert({&made, 1}, ax::earliest_time, due).at(0).id;
    });
    return id;
}

ax::claim_answer claim(ax::sqlite_storage& store, std::vector<ax::claim_request> const& requests) {
    ax::claim_answer answer;
    store.transact(ax::commit::lazy, [&](ax::sqlite_storage::writer& w) {
        answer = w.claim(requests, {ax::node_id{7}, ax::earliest_time, ax::earliest_time, 0});
    });
    return answer;
}

} // namespace

// ---- one owner -----------------------------------------------------------------------------------------------------

TEST_CASE("a store is open once in a process, whatever its file is called", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const link = directory.file("link.db");
    auto const hard_link = directory.file("hard.db");
    {
        ax::sqlite_storage const store{path};
        fs::create_symlink(path, link);
        fs::create_hard_link(path, hard_link);
        auto const odd = directory.file("./../" + directory.path().filename().string() + "/store.db");
        for (auto const& name : {path, link, hard_link, odd}) {
            CAPTURE(name);
            auto const why = refused(name);
            REQUIRE(why);
            CHECK(why->kind == ax::errc::locked);
            CHECK_THAT(why->text, Contains("in this process already (pid " + std::to_string(::getpid()) + ")"));
        }
        CHECK_THAT(refused(link)->text, Contains(path)); // links are resolved
    }
    CHECK_FALSE(refused(path));
    CHECK_FALSE(fs::exists(hard_link + "-ax"));
}

TEST_CASE("a store is open in one process at a time, and a killed one leaves it free at once", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    child_process owner([&](auto const& report) {
        ax::sqlite_storage const store{path};
        report(1);
        for (;;) ::pause();
        return 0;
    });
    std::uint64_t number = 0;
    REQUIRE(owner.next(number));
    auto const why = refused(path);
    REQUIRE(why);
    CHECK(why->kind == ax::errc::locked);
    CHECK_THAT(why->text, Contains("pid " + std::to_string(owner.id())) && Contains(path));

    owner.kill();
    ax::sqlite_storage const store{path};
    CHECK_FALSE(store.was_clean());
}

TEST_CASE("the lock is not lost when another open of the same store is refused", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_storage const store{path};
    REQUIRE(refused(path));
    // Whether another process could take it is asked as such a process would: closing any descriptor of the file in
    // this one would have let it go.
    child_process asks([&](auto const&) {
        struct flock wanted {};
        wanted.l_type = F_WRLCK;
        wanted.l_whence = SEEK_SET;
        int const file = ::open((path + "-ax").c_str(), O_RDWR);
        return ::fcntl(file, F_SETLK, &wanted) == 0 ? 1 : 2;
    });
    CHECK(asks.wait() == 2);
}

TEST_CASE("a store says whether its owner before closed it", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    CHECK(ax::sqlite_storage{path}.was_clean()); // there was none
    CHECK(ax::sqlite_storage{path}.was_clean());
    child_process crashes([&](auto const&) {
        auto const* const never_closed = new ax::sqlite_storage{path};
        return never_closed->was_clean() ? 1 : 2;
    });
    CHECK(crashes.wait() == 1);
    CHECK_FALSE(ax::sqlite_storage{path}.was_clean());
    CHECK(ax::sqlite_storage{path}.was_clean());
    CHECK_FALSE(fs::exists(path + "-wal")); // a closed store is one file, and its lock
}

TEST_CASE("a moved storage goes on, and an assigned one closes what it had", "[storage][sqlite]") {
    temporary_directory const directory;
    ax::sqlite_storage a{directory.file("a.db")};
    auto const id = add(a, "x");
    ax::sqlite_storage b{std::move(a)};
    CHECK(b.find(id)->payload == "x");
    b = ax::sqlite_storage{directory.file("b.db")};
    CHECK_FALSE(b.find(id));
    CHECK_FALSE(refused(directory.file("a.db")));
}

// ---- what is there -------------------------------------------------------------------------------------------------

TEST_CASE("a file that is no database is refused and left as it is", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const garbage = std::string(5'000, 'x');
    write_bytes(path, garbage);
    auto const why = refused(path);
    REQUIRE(why);
    CHECK(why->kind == ax::errc::not_a_store);
    CHECK_THAT(why->text, Contains(path));
    CHECK(bytes_of(path) == garbage);
    CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1); // nothing is left beside it
}

TEST_CASE("a host's database takes the tables of ax in, and the host's are left alone", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("shop.db");
    auto const encoding = GENERATE("UTF-8", "UTF-16le");
    CAPTURE(encoding);
    other_program host{path};
    host.run("PRAGMA encoding = '" + std::string(encoding) + "'");
    host.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO orders VALUES (1, 'tea')");

    ax::sqlite_storage store{path};
    auto const id = add(store, std::string("\0\xFF\xC3", 3), "k\xC3\xA9y \xF0\x9F\x90\xA2");
    CHECK(store.find(id)->payload == std::string("\0\xFF\xC3", 3));
    CHECK(store.find_by_key("k\xC3\xA9y \xF0\x9F\x90\xA2")->id == id);
    CHECK(store.find(id)->type == "probe");

    host.run("INSERT INTO orders VALUES (2, 'milk')"); // both write to the same file
    add(store);
    CHECK(host.ask("SELECT group_concat(note) FROM orders") == "tea,milk ");
    CHECK(host.ask("SELECT count(*) FROM ax_task") == "2 ");
    CHECK(host.ask("SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'ax\\_%' ESCAPE '\\' "
                   "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'") == "1 ");
}

TEST_CASE("a store of a newer schema is refused and left as it is", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    { ax::sqlite_storage const store{path}; }
    { other_program{path}.run("UPDATE ax_meta SET value = value + 1 WHERE name = 'schema_version'"); }
    auto const before = bytes_of(path);
    auto const why = refused(path);
    REQUIRE(why);
    CHECK(why->kind == ax::errc::newer_schema);
    CHECK_THAT(why->text, Contains("schema " + std::to_string(ax::detail::sqlite_schema_version + 1)));
    CHECK(bytes_of(path) == before);
}

TEST_CASE("a damaged or foreign schema is refused, never taken for a new store", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    struct damage {
        bool of_a_store;
        char const* sql;
        ax::errc kind;
    };
    auto const each = GENERATE(
        damage{false, "CREATE TABLE ax_meta (a INT)", ax::errc::not_a_store},
        damage{false, "CREATE TABLE ax_meta (name TEXT, value)", ax::errc::not_a_store},
        damage{false, "CREATE TABLE ax_task (id INT)", ax::errc::not_a_store},
        damage{true, "DELETE FROM ax_meta WHERE name = 'schema_version'", ax::errc::not_a_store},
        damage{true, "UPDATE ax_meta SET value = 'one' WHERE name = 'schema_version'", ax::errc::not_a_store},
        damage{true, "UPDATE ax_meta SET value = 0 WHERE name = 'schema_version'", ax::errc::not_a_store},
        damage{true, "DROP TABLE ax_meta", ax::errc::not_a_store},
        damage{true, "DELETE FROM ax_meta WHERE name = 'store_id'", ax::errc::corrupt},
        damage{true, "DROP TABLE ax_task", ax::errc::corrupt}, damage{true, "DROP TABLE ax_attempt", ax::errc::corrupt},
        damage{true, "ALTER TABLE ax_task RENAME COLUMN fence TO face", ax::errc::corrupt});
    CAPTURE(each.sql);
    if (each.of_a_store) {
        ax::sqlite_storage const store{path};
    }
    { other_program{path}.run(each.sql); }
    auto const tables = other_program{path}.ask("SELECT sql FROM sqlite_master ORDER BY name");
    auto const why = refused(path);
    REQUIRE(why);
    CHECK(why->kind == each.kind);
    CHECK_THAT(why->text, Contains(path));
    CHECK(other_program{path}.ask("SELECT sql FROM sqlite_master ORDER BY name") == tables);
    REQUIRE(refused(path)); // and it stays so
}

TEST_CASE("a damaged database is reported as that", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    {
        ax::sqlite_storage store{path};
        for (int i = 0; i < 200; ++i) add(store, std::string(500, 'x'));
    }
    auto bytes = bytes_of(path);
    for (std::size_t at = 4096; at < bytes.size(); ++at) bytes[at] = static_cast<char>(0xA5);
    write_bytes(path, bytes);
    auto const why = refused(path);
    REQUIRE(why);
    CHECK(why->kind == ax::errc::corrupt);
}

TEST_CASE("a store whose database has gone is not started anew", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    std::string id;
    {
        ax::sqlite_storage const store{path};
        id = store.store_id();
    }
    SECTION("deleted") { fs::remove(path); }
    SECTION("empty") { fs::resize_file(path, 0); }
    SECTION("another store's") {
        { ax::sqlite_storage const other{directory.file("other.db")}; }
        fs::copy_file(directory.file("other.db"), path, fs::copy_options::overwrite_existing);
    }
    SECTION("a host's, without tasks") {
        fs::remove(path);
        other_program{path}.run("CREATE TABLE orders (id INT)");
    }
    auto const before = bytes_of(path);
    auto const why = refused(path);
    REQUIRE(why);
    CHECK((why->kind == ax::errc::corrupt || why->kind == ax::errc::not_a_store));
    CHECK_THAT(why->text, Contains(id) && Contains("delete " + path + "-ax"));
    CHECK(bytes_of(path) == before);

    fs::remove(path + "-ax"); // on purpose
    CHECK_FALSE(refused(path));
}

TEST_CASE("a write-ahead log without its database is not thrown away", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    write_bytes(path + "-wal", "what was committed last");
    auto const why = refused(path);
    REQUIRE(why);
    CHECK(why->kind == ax::errc::corrupt);
    CHECK(bytes_of(path + "-wal") == "what was committed last");
}

TEST_CASE("a first opening that was cut off at any step opens", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    SECTION("with an empty lock file and nothing else") { write_bytes(path + "-ax", ""); }
    SECTION("with a lock file of zeros, as a power cut may leave it") {
        write_bytes(path + "-ax", std::string_view("\0\0\0\0", 4));
    }
    SECTION("with an empty database") {
        write_bytes(path + "-ax", "");
        write_bytes(path, "");
    }
    SECTION("with a database in WAL mode and no table") {
        write_bytes(path + "-ax", "");
        other_program{path}.run("PRAGMA journal_mode = WAL");
    }
    SECTION("with a complete store that the lock file does not name yet") {
        { ax::sqlite_storage const store{path}; }
        write_bytes(path + "-ax", "");
    }
    ax::sqlite_storage store{path};
    CHECK(store.find(add(store, "x"))->payload == "x");
    CHECK(bytes_of(path + "-ax").find(store.store_id()) != std::string::npos);
}

TEST_CASE("a file in the place of the lock file is not written over", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const content = GENERATE(as<std::string>{}, "somebody's notes", "ax store and some more",
                                  "ax store 0123456789ABCDEF0123456789ABCDEF clean");
    write_bytes(path + "-ax", content);
    auto const why = refused(path);
    REQUIRE(why);
    CHECK(why->kind == ax::errc::not_a_store);
    CHECK_THAT(why->text, Contains(path + "-ax"));
    CHECK(bytes_of(path + "-ax") == content);
    CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a path that cannot be a database is refused with its reason", "[storage][sqlite]") {
    temporary_directory const directory;
    for (auto const& path : {std::string{}, std::string{":memory:"}, std::string{"file:x.db?mode=ro"},
                             std::string("a\0b", 3), directory.file("x/")}) {
        CAPTURE(path);
        REQUIRE(refused(path));
    }
    CHECK(refused("")->kind == ax::errc::invalid_argument);
    CHECK(refused(":memory:")->kind == ax::errc::invalid_argument);
    CHECK(refused("file:x.db?mode=ro")->kind == ax::errc::invalid_argument);

    auto const nowhere = refused(directory.file("missing/store.db"));
    REQUIRE(nowhere);
    CHECK(nowhere->kind == ax::errc::unavailable);
    CHECK_THAT(nowhere->text, Contains("missing") && Contains("No such file"));

    fs::create_symlink("nothing.db", directory.file("dangling.db"));
    CHECK_THAT(refused(directory.file("dangling.db"))->text, Contains("symbolic link to nothing"));

    fs::create_directory(directory.file("folder"));
    auto const folder = refused(directory.file("folder"));
    REQUIRE(folder);
    CHECK(folder->kind == ax::errc::unavailable);
    CHECK_THAT(folder->text, Contains("folder"));
    CHECK_FALSE(fs::exists(directory.file("folder-ax")));
}

TEST_CASE("missing write access is told at open, with the path that needs it", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    { ax::sqlite_storage const store{path}; }
    ::chmod(directory.path().c_str(), 0755);
    ::chmod(path.c_str(), 0644);
    std::string blamed;
    SECTION("to the directory") {
        fs::remove(path + "-ax");
        ::chmod(directory.path().c_str(), 0555);
        blamed = path + "-ax";
    }
    SECTION("to the lock file") {
        ::chmod((path + "-ax").c_str(), 0444);
        blamed = path + "-ax";
    }
    SECTION("to the database") {
        ::chmod((path + "-ax").c_str(), 0666);
        ::chmod(path.c_str(), 0444);
        blamed = path;
    }
    // In a process that has no power over permissions, which the test's own may have.
    child_process weak([&](auto const&) {
        if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 77;
        auto const why = refused(path);
        if (!why) return 1;
        if (why->kind != ax::errc::unavailable) return 2;
        if (why->text.find(blamed) == std::string::npos) return 3;
        return why->text.find("write access") == std::string::npos ? 4 : 0;
    });
    CHECK(weak.wait() == 0);
    ::chmod(directory.path().c_str(), 0755);
}

// ---- while it is open ----------------------------------------------------------------------------------------------

TEST_CASE("a store whose files are taken away says so instead of writing to ghosts", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_storage store{path};
    auto const nothing = [](ax::sqlite_storage::writer&) {};
    store.transact(ax::commit::durable, nothing);
    std::string const name = GENERATE("", "-wal", "-ax");
    auto const file = path + name;
    CAPTURE(file);
    fs::rename(file, file + ".away");
    try {
        store.transact(ax::commit::durable, nothing);
        FAIL("acknowledged");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::unavailable);
        CHECK_THAT(e.what(), Contains(file));
    }
    write_bytes(file, ""); // another file in its place is none either
    CHECK_THROWS_AS(store.transact(ax::commit::durable, nothing), ax::error);
    fs::rename(file + ".away", file);
    store.transact(ax::commit::durable, nothing);
}

TEST_CASE("reading a store whose database was taken away makes no new one", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_storage const store{path};
    fs::rename(path, path + ".away");
    CHECK_THROWS_AS(store.types(), ax::error);
    CHECK_FALSE(fs::exists(path));
    write_bytes(path, "");
    CHECK_THROWS_AS(store.types(), ax::error);
    fs::remove(path);
    fs::rename(path + ".away", path);
    CHECK(store.types().empty());
}

TEST_CASE("a forked child can neither use nor harm its parent's store", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    std::optional<ax::sqlite_storage> store{std::in_place, path};
    auto const id = add(*store, "x");
    child_process child([&](auto const&) {
        auto const is_refused = [](auto const& use) {
            try {
                use();
                return false;
            } catch (ax::error const& e) {
                return e.kind() == ax::errc::invalid_argument;
            }
        };
        if (!is_refused([&] { store->find(id); })) return 1;
        if (!is_refused([&] { store->transact(ax::commit::durable, [](auto&) {}); })) return 2;
        store.reset();
        auto const why = refused(path);
        return why && why->kind == ax::errc::locked ? 0 : 3;
    });
    CHECK(child.wait() == 0);
    auto const later = add(*store, "y");
    CHECK(store->find(later)->payload == "y");
    CHECK(refused(path)->kind == ax::errc::locked);
    store.reset();
    ax::sqlite_storage const again{path};
    CHECK(again.was_clean());
    CHECK(again.find(id)->payload == "x");
    CHECK(again.find(later)->payload == "y");
}

TEST_CASE("a host that holds the write lock for too long makes the store unavailable, and nothing is written",
          "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_settings impatient;
    impatient.busy_limit = std::chrono::milliseconds{1};
    ax::sqlite_storage store{path, impatient};
    auto const id = add(store);
    other_program host{path};
    host.run("CREATE TABLE orders (id INT); BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
    try {
        add(store);
        FAIL("written");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::unavailable);
        CHECK(e.transient());
        CHECK_THAT(e.what(), Contains("another connection holds the lock"));
    }
    CHECK(store.find(id)); // reading waits for nobody
    host.run("COMMIT");
    CHECK(add(store) == ax::task_id{2});
}

TEST_CASE("opening a database that another program has for itself is an error of its own", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    { ax::sqlite_storage const store{path}; }
    ax::sqlite_settings impatient;
    impatient.busy_limit = std::chrono::milliseconds{1};
    other_program host{path};
    host.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE orders (id INT); COMMIT");
    auto const why = refused(path, impatient);
    REQUIRE(why);
    CHECK(why->kind == ax::errc::locked);
}

TEST_CASE("a full disk is an error of its own, leaves what was there, and passes", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_settings tight;
    tight.largest_size = std::uint64_t{300} * 1024;
    std::vector<ax::task_id> kept;
    {
        ax::sqlite_storage store{path, tight};
        auto const fill = [&] {
            for (int i = 0; i < 1'000; ++i) kept.push_back(add(store, std::string(3'000, 'x')));
        };
        try {
            fill();
            FAIL("it was never full");
        } catch (ax::error const& e) {
            CHECK(e.kind() == ax::errc::disk_full);
            CHECK(e.transient());
            CHECK_THAT(e.what(), Contains(path));
        }
        CHECK(kept.size() > 20);

        // An error that is swallowed does not make half a transaction.
        auto const swallow = [&](ax::sqlite_storage::writer& w) {
            ax::new_task made;
            made.type = w.type("probe");
            made.key = "half";
            ax::alarms due;
            try {
                w.insert({&made, 1}, ax::earliest_time, due);
                made.key.clear();
                made.payload = std::string(200'000, 'x');
                w.insert({&made, 1}, ax::earliest_time, due);
            } catch (ax::error const&) {
            }
            CHECK_THROWS_AS(w.cancel(kept.at(0), ax::earliest_time), ax::error);
        };
        CHECK_THROWS_AS(store.transact(ax::commit::durable, swallow), ax::error);
        CHECK_FALSE(store.find_by_key("half"));
        CHECK(store.find(kept.at(0))->state == ax::task_state::ready);

        // What is there can still be read, claimed and finished.
        auto const claimed = claim(store, {{kept.at(0), false}}).claimed;
        REQUIRE(claimed.size() == 1);
        ax::attempt_end end;
        end.id = claimed[0].id;
        end.fence = claimed[0].fence;
        end.started = end.ended = ax::earliest_time;
        store.transact(ax::commit::durable, [&](auto& w) { w.settle({&end, 1}, ax::earliest_time); });
        CHECK(store.find(kept.at(0))->state == ax::task_state::succeeded);
    }
    ax::sqlite_storage store{path};
    for (auto const id : kept) CHECK(store.find(id));
    CHECK(add(store, std::string(3'000, 'x')) > kept.back());
}

TEST_CASE("a row that makes no sense is left alone, and its neighbours go on", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_storage store{path};
    std::vector<ax::claim_request> all;
    for (int i = 0; i < 4; ++i) all.push_back({add(store, "x", "key " + std::to_string(i)), false});
    auto const damage =
        GENERATE("UPDATE ax_task SET state = 77 WHERE id = 2", "UPDATE ax_task SET lane = 4000 WHERE id = 2",
                 "UPDATE ax_task SET state = 'odd' WHERE id = 2");
    CAPTURE(damage);
    { other_program{path}.run(damage); }

    auto const answer = claim(store, all).claimed;
    CHECK(answer.size() == 3);
    CHECK(store.list({}, ax::earliest_time).size() >= 3);
    CHECK_NOTHROW(store.transact(ax::commit::lazy, [&](auto& w) {
        w.cancel(ax::task_id{2}, ax::earliest_time);
        w.reclaim({ax::node_id{8}, 3, ax::earliest_time});
    }));
    CHECK(store.find(ax::task_id{1})->state == ax::task_state::ready);
    CHECK(store.find(ax::task_id{3})->unclean_ends == 1);
}

TEST_CASE("a type whose number is far beyond all others costs no memory", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_storage store{path};
    auto const id = add(store, "x", "key");
    auto const far = static_cast<ax::type_number>(1'000'000'000); // a name for each before it would be 32 GB
    auto const lane = static_cast<long long>(ax::make_lane(far, ax::priority_class::normal));
    other_program{path}.run("INSERT INTO ax_type (number, name, paused) VALUES (1000000000, 'far', 0)");
    other_program{path}.run("UPDATE ax_task SET lane = " + std::to_string(lane) + " WHERE id = 1");
    for (int i = 0; i != 2; ++i) {
        REQUIRE(store.find(id));
        CHECK(store.find(id)->type == "far");
    }
}

TEST_CASE("the write-ahead log is copied back as it grows, and a reader that is in the way for long is noticed",
          "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_settings settings;
    settings.checkpoint_pages = 10;
    ax::sqlite_storage store{path, settings};
    auto const fill = [&] {
        for (int i = 0; i < 100; ++i) add(store, std::string(3'000, 'x'));
    };
    fill();
    auto const bounded = store.health();
    CHECK(bounded.log_bytes < std::uint64_t{60} * 4'096);
    CHECK(bounded.database_bytes > 200'000);
    CHECK_FALSE(bounded.log_stuck);

    other_program host{path};
    host.run("BEGIN; SELECT count(*) FROM ax_task");
    fill();
    auto const grown = store.health();
    CHECK(grown.log_stuck);
    CHECK(grown.log_bytes > 300'000);
    host.run("COMMIT");
    fill();
    CHECK_FALSE(store.health().log_stuck);
    CHECK(store.health().log_bytes <= grown.log_bytes + std::uint64_t{30} * 4'096);
}

TEST_CASE("a durable commit that writes nothing still flushes the lazy ones before it", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_storage store{path};
    other_program host{path};
    auto const flushes = [&] { return host.ask("SELECT value FROM ax_meta WHERE name = 'empty_commits'"); };
    auto const nothing = [](ax::sqlite_storage::writer&) {};
    store.transact(ax::commit::durable, nothing);
    CHECK(flushes() == "0 ");
    add(store); // lazy
    store.transact(ax::commit::lazy, nothing);
    CHECK(flushes() == "0 ");
    store.transact(ax::commit::durable, nothing);
    CHECK(flushes() == "1 ");
    store.transact(ax::commit::durable, nothing); // once is enough
    CHECK(flushes() == "1 ");
}

TEST_CASE("a store describes itself", "[storage][sqlite]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    ax::sqlite_storage const store{path};
    CHECK_THAT(store.description(), Contains("SQLite 3") && Contains(path) && Contains("schema 3"));
    CHECK(store.path() == path);
    CHECK(store.store_id().size() == 32);
    ax::sqlite_storage const other{directory.file("other.db")};
    CHECK(other.store_id() != store.store_id());
}

// SPDX-License-Identifier: MIT
// Files that somebody or something has changed: truncated, overwritten, swapped, deleted.
#include "disk/power_vfs.hpp"
#include "disk/support.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace disk;
namespace fs = std::filesystem;
using Catch::Matchers::Contains;

namespace {

/// Three files as a killed process leaves them: a store with something in its log.
struct remains {
    std::string database, log, lock;
    std::string id;
    std::size_t tasks = 0;

    static remains of(std::string const& path, std::string const& name, std::size_t tasks = 40) {
        remains left;
        ax::sqlite_settings settings;
        settings.checkpoint_pages = 1'000'000;
        auto store = std::make_unique<ax::sqlite_storage>(path, settings);
        for (std::size_t i = 0; i != tasks / 2; ++i)
            add(*store, std::string(700, 'x'), name + std::to_string(i), ax::commit::lazy);
        store.reset(); // copied back
        store = std::make_unique<ax::sqlite_storage>(path, settings);
        for (std::size_t i = tasks / 2; i != tasks; ++i)
            add(*store, std::string(700, 'y'), name + std::to_string(i), ax::commit::lazy);
        left.id = store->store_id();
        left.tasks = tasks;
        left.database = content_of(path);
        left.log = content_of(path + "-wal");
        left.lock = content_of(path + "-ax");
        return left;
    }
    void put(std::string const& path) const {
        fs::remove(path + "-shm");
        write_content(path, database);
        write_content(path + "-wal", log);
        write_content(path + "-ax", lock);
    }
};

struct attempt {
    std::optional<ax::errc> kind; ///< how opening or reading failed; none: it did not
    std::string text;
    std::size_t tasks = 0;
    std::string wrong;
};

/// Opens and reads all.
attempt try_it(std::string const& path) {
    attempt made;
    try {
        ax::sqlite_storage store{path};
        made.tasks = store.list({.limit = 10'000}, t0).size();
        made.wrong = complaints(store);
    } catch (ax::error const& e) {
        made.kind = e.kind();
        made.text = e.what();
    }
    return made;
}

} // namespace

TEST_CASE("a truncated database is refused or says what it lacks, and is never taken for an empty one",
          "[disk][damage]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const whole = remains::of(path, "k");
    whole.put(path);
    REQUIRE(try_it(path).tasks == whole.tasks);
    for (std::size_t size = 0; size < whole.database.size(); size += whole.database.size() / 23 + 1) {
        for (bool const with_log : {false, true}) {
            CAPTURE(size, with_log, whole.database.size());
            auto cut = whole;
            cut.database.resize(size);
            if (!with_log) cut.log.clear();
            cut.put(path);
            auto const got = try_it(path);
            INFO(got.text);
            INFO(got.wrong);
            if (got.kind) {
                CHECK((*got.kind == ax::errc::corrupt || *got.kind == ax::errc::not_a_store));
                CHECK_THAT(got.text, Contains(path));
            } else if (with_log) {
                CHECK((got.tasks == whole.tasks || !got.wrong.empty()));
            } else {
                CHECK((got.tasks == whole.tasks / 2 || !got.wrong.empty()));
            }
        }
    }
}

TEST_CASE("a log that is truncated or damaged ends the store at an earlier commit", "[disk][damage]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const whole = remains::of(path, "k");
    std::mt19937_64 random{20261201};
    for (int round = 0; round != 20; ++round) {
        CAPTURE(round);
        auto hurt = whole;
        if (round % 2 == 0)
            hurt.log.resize(random() % hurt.log.size());
        else
            for (auto at = random() % hurt.log.size(), end = (std::min)(at + 700, hurt.log.size()); at != end; ++at)
                hurt.log[at] = static_cast<char>(random());
        hurt.put(path);
        auto const got = try_it(path);
        INFO(got.text);
        INFO(got.wrong);
        CHECK_FALSE(got.kind);
        CHECK(got.wrong.empty());
        CHECK(got.tasks >= whole.tasks / 2);
        CHECK(got.tasks < whole.tasks);
    }
}

TEST_CASE("overwritten pages are told, or touch nothing that is kept", "[disk][damage]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto whole = remains::of(path, "k");
    whole.log.clear();
    std::size_t told = 0;
    std::mt19937_64 random{20261201};
    auto const pages = whole.database.size() / 4'096;
    for (std::size_t page = 0; page != pages; ++page) {
        CAPTURE(page);
        auto hurt = whole;
        auto const byte = page % 3 == 0 ? '\0' : '\xA5';
        for (std::size_t at = page * 4'096; at != (page + 1) * 4'096; ++at)
            hurt.database[at] = page % 3 == 2 ? static_cast<char>(random()) : byte;
        hurt.put(path);
        auto const got = try_it(path);
        INFO(got.text);
        if (got.kind) {
            CHECK((*got.kind == ax::errc::corrupt || *got.kind == ax::errc::not_a_store));
            CHECK_THAT(got.text, Contains(path));
        }
        if (got.kind || !got.wrong.empty()) ++told;
        if (!got.kind && got.wrong.empty()) CHECK(got.tasks == whole.tasks / 2);
    }
    CHECK(told + 2 >= pages); // a page that is free may hold anything
}

TEST_CASE("the log of another store beside ours is not read as ours", "[disk][damage]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const other = remains::of(directory.file("other.db"), "other");
    auto const ours = remains::of(path, "ours");
    auto mixed = ours;
    mixed.log = other.log;
    mixed.put(path);
    auto const got = try_it(path);
    INFO(got.text);
    INFO(got.wrong);
    REQUIRE(got.kind);
    CHECK((*got.kind == ax::errc::not_a_store || *got.kind == ax::errc::corrupt));
    CHECK_THAT(got.text, Contains(path));

    // Nothing of it has been copied into ours, so putting ours back is enough.
    CHECK((content_of(path) == ours.database)); // in parentheses: not printed
    CHECK((content_of(path + "-wal") == other.log));
    ours.put(path);
    CHECK(try_it(path).tasks == ours.tasks);
}

TEST_CASE("the log of another store is known for one whenever it was taken", "[disk][damage]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const from = directory.file("other.db");
    auto const ours = remains::of(path, "ours");
    std::size_t renewed = 0, last = 0;
    ax::sqlite_settings settings;
    settings.checkpoint_pages = 6; // so that the log begins anew all the time
    ax::sqlite_storage store{from, settings};
    for (int i = 0; i != 40; ++i) {
        add(store, std::string(3'000, 'z'), "other" + std::to_string(i), ax::commit::lazy);
        auto mixed = ours;
        mixed.log = content_of(from + "-wal"); // its valid part is what the store would find after a kill
        auto const salt = mixed.log.size() < 24 ? 0 : std::hash<std::string>{}(mixed.log.substr(16, 8));
        renewed += std::exchange(last, salt) != salt;
        mixed.put(path);
        auto const got = try_it(path);
        CAPTURE(i);
        INFO(got.text);
        REQUIRE(got.kind);
        CHECK((*got.kind == ax::errc::not_a_store || *got.kind == ax::errc::corrupt));
    }
    CHECK(renewed > 3);
}

TEST_CASE("a log that was deleted while the store was closed costs what was in it, and no more", "[disk][damage]") {
    temporary_directory const directory;
    auto const path = directory.file("store.db");
    auto const whole = remains::of(path, "k");
    whole.put(path);
    fs::remove(path + "-wal");
    auto const got = try_it(path);
    CHECK_FALSE(got.kind);
    CHECK(got.tasks == whole.tasks / 2);
    CHECK(got.wrong.empty());
}

// SPDX-License-Identifier: MIT
// The power is cut at any write. What was acknowledged as durable is there, the rest up to some commit, and nothing
// half.
#include "disk/power_vfs.hpp"

#include "disk/support.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace disk;

namespace {

/// A store and one transaction after another on it, each of which writes its number.
class diary {
  public:
    diary(power_vfs& disk, std::uint64_t seed) : random(seed), disk_(disk) {
        settings_ = settings_on(disk);
        settings_.checkpoint_pages = 1 + random() % 40;
    }

    std::mt19937_64 random;

    /// Opens the store and compares it with what was promised. Nothing is said where the power goes meanwhile.
    /// @return  What is wrong; empty: nothing.
    std::string open() {
        std::string found;
        std::string number;
        try {
            store_ = std::make_unique<ax::sqlite_storage>(directory_.file("store.db"), settings_);
            number = store_->note("entry");
            auto const entry = number.empty() ? 0 : std::stoull(number);
            if (entry < promised_) return "entry " + number + " is the last one, and " + text(promised_) + " was safe";
            if (entry > begun_) return "entry " + number + " was never written";
            found = digest(*store_);
            if (auto const known = pages_.find(entry); known != pages_.end() && known->second != found)
                return "entry " + number + " reads\n" + found + "and was\n" + known->second;
            auto const wrong = complaints(*store_);
            if (!wrong.empty()) return wrong;
            pages_.clear();
            pages_[entry] = found;
            if (entry == begun_ && begun_ != written_) ++came_through_;
            if (entry < written_) ++forgot_;
            promised_ = begun_ = written_ = entry; // what is read after a cut is on the medium
            for (auto const& task : store_->list({.limit = 10'000}, t0)) remember(task);
            return {};
        } catch (ax::error const& e) {
            store_.reset();
            return disk_.is_off() ? std::string{} : e.what();
        }
    }

    /// Writes entries until the power goes or there are `most` of them.
    void write(std::size_t most) {
        while (store_ && most-- != 0) {
            auto const kind = random() % 2 == 0 ? ax::commit::durable : ax::commit::lazy;
            try {
                if (random() % 6 == 0) { // an empty one makes those before it safe
                    store_->transact(ax::commit::durable, [](writer&) {});
                    promised_ = written_;
                    continue;
                }
                entry(kind);
            } catch (ax::error const&) {
                if (!disk_.is_off()) throw;
                return;
            }
        }
    }

    /// Ends the store, well or in the dark.
    void close() {
        bool const lit = !disk_.is_off();
        bool const open = store_ != nullptr;
        store_.reset();
        ready_.clear();
        claimed_.clear();
        if (lit && open && !disk_.is_off()) promised_ = written_; // a clean close leaves nothing behind
    }

    std::size_t came_through() const noexcept { return came_through_; }
    std::size_t forgot() const noexcept { return forgot_; }
    std::uint64_t safe() const noexcept { return promised_; }

  private:
    static std::string text(std::uint64_t number) { return std::to_string(number); }

    void remember(ax::task_record const& task) {
        if (task.state == ax::task_state::ready || task.state == ax::task_state::failed) ready_.push_back(task.id);
        if (is_active(task.state)) claimed_.push_back({task.id, task.fence});
    }

    void entry(ax::commit kind) {
        ++begun_;
        auto const what = random() % 8;
        auto const pick = random();
        std::size_t const bytes = random() % 3 == 0 ? 4'000 : 60;
        std::vector<ax::task_id> added;
        std::optional<std::pair<ax::task_id, ax::fence_token>> taken;
        store_->transact(kind, [&](writer& w) {
            added.clear();
            taken.reset();
            w.note("entry", text(begun_));
            ax::alarms due;
            if (what < 3 || (what < 6 && ready_.empty())) {
                std::vector<ax::new_task> made(1 + pick % 3);
                for (auto& one : made) {
                    one.type = w.type("probe");
                    one.payload = std::string(bytes, static_cast<char>('a' + begun_ % 26));
                    one.key = "k" + text(begun_) + "/" + text(static_cast<std::uint64_t>(&one - made.data()));
                    if (pick % 5 == 0) one.route_key = "r" + text(pick % 2);
                }
                for (auto const& done : w.insert(made, t0, due)) added.push_back(done.id);
            } else if (what < 6) {
                ax::claim_request const request{ready_[pick % ready_.size()], false};
                auto answer = w.claim({&request, 1}, {node, t0, t0, 9}).claimed;
                if (!answer.empty()) taken.emplace(answer.front().id, answer.front().fence);
            } else if (what == 6 || claimed_.empty()) {
                ax::prune_terms terms;
                terms.type = w.type("probe");
                terms.keep = 5;
                w.prune(terms, 20);
                w.compact();
            } else {
                auto const& [id, fence] = claimed_[pick % claimed_.size()];
                ax::attempt_end end;
                end.id = id;
                end.fence = fence;
                end.started = end.ended = t0;
                end.outcome = pick % 3 == 0 ? ax::attempt_outcome::failed : ax::attempt_outcome::succeeded;
                if (pick % 3 == 0) end.retry_at = t0;
                end.result = std::string(bytes / 10, '1');
                w.settle({&end, 1}, t0);
            }
        });
        written_ = begun_;
        if (kind == ax::commit::durable) promised_ = written_;
        if (disk_.is_off()) return; // a checkpoint after the commit may have met it
        ready_.insert(ready_.end(), added.begin(), added.end());
        if (taken) claimed_.push_back(*taken);
        try {
            pages_[written_] = digest(*store_);
        } catch (ax::error const&) {
            if (!disk_.is_off()) throw;
        }
    }

    power_vfs& disk_;
    temporary_directory directory_;
    ax::sqlite_settings settings_;
    std::unique_ptr<ax::sqlite_storage> store_;  // GCC 12 warns of an optional
    std::map<std::uint64_t, std::string> pages_; ///< what stood there after each entry
    std::vector<ax::task_id> ready_;
    std::vector<std::pair<ax::task_id, ax::fence_token>> claimed_;
    std::uint64_t begun_ = 0;    ///< the latest entry
    std::uint64_t written_ = 0;  ///< of which transact() has returned
    std::uint64_t promised_ = 0; ///< and which was durable
    std::size_t came_through_ = 0;
    std::size_t forgot_ = 0;
};

} // namespace

TEST_CASE("a power cut at any write loses nothing durable, and of the rest only the latest commits", "[disk][power]") {
    std::size_t came_through = 0, forgot = 0, torn = 0, dropped = 0;
    for (std::uint64_t seed = 1; seed <= rounds(12); ++seed) {
        power_vfs disk{"ax-power"};
        diary book{disk, seed};
        for (int life = 0; life != 8; ++life) {
            CAPTURE(seed, life);
            auto const scale = life == 0 ? 60U : 1U + static_cast<unsigned>(book.random() % 120);
            disk.cut_after(book.random() % scale);
            auto wrong = book.open(); // it may go out while it opens
            if (wrong.empty()) book.write(book.random() % 8 == 0 ? 5 : 1'000);
            book.close();
            disk.cut();
            auto const done = disk.restore(book.random);
            torn += done.torn;
            dropped += done.dropped;
            if (wrong.empty()) wrong = book.open();
            INFO(wrong);
            REQUIRE(wrong.empty());
            if (book.random() % 3 == 0) book.close(); // and opens well
            if (book.random() % 3 == 0) {
                book.write(3);
                book.close();
            }
            book.close();
        }
        came_through += book.came_through();
        forgot += book.forgot();
    }
    // Else it proves little.
    CHECK(came_through > 0);
    CHECK(forgot > 5);
    CHECK(torn > 50);
    CHECK(dropped > 50);
}

TEST_CASE("a store may lie on a SQLite VFS that is named, and on none that nobody knows", "[disk][power]") {
    temporary_directory const directory;
    auto settings = ax::sqlite_settings{};
    settings.vfs = "ax-nobody";
    auto const path = directory.file("store.db");
    try {
        ax::sqlite_storage const store{path, settings};
        FAIL("opened");
    } catch (ax::error const& e) {
        CHECK(e.kind() == ax::errc::invalid_argument);
        CHECK_THAT(e.what(), Catch::Matchers::Contains(path) && Catch::Matchers::Contains("\"ax-nobody\""));
    }
    power_vfs disk{"ax-power"};
    ax::sqlite_storage store{path, settings_on(disk)};
    CHECK(store.find(add(store, "x"))->payload == "x");
    auto const before = disk.changes();
    CHECK(before > 0);
    add(store);
    CHECK(disk.changes() > before);
}

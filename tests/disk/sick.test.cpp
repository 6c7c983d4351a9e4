// SPDX-License-Identifier: MIT
// A disk that fails: at any call, once or for a while. The error says which file and why, nothing acknowledged is lost,
// and the same open store works again when the disk does.
#include "disk/support.hpp"
#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace disk;

namespace {

class sick_vfs : public watched_vfs {
  public:
    explicit sick_vfs(std::string name) : watched_vfs(std::move(name)) {
        before = [this](request const& asked) {
            // A full disk refuses only what needs room.
            if (full_ && asked.kind != call::write && asked.kind != call::sync) return SQLITE_OK;
            if (auto const at = calls_++; at < first_ || at > last_) return SQLITE_OK;
            if (failed_.empty()) failed_ = std::string(to_string(asked.kind)) + " of " + std::string(asked.path);
            return full_ ? SQLITE_FULL : failure_of(asked.kind);
        };
    }
    static constexpr std::uint64_t never = ~std::uint64_t{0};

    /// Fails calls number `first` to `last` from now, counted from 0. Where it is full, only those that need room
    /// count.
    void fail(std::uint64_t first, std::uint64_t last, bool full = false) {
        first_ = first, last_ = last, full_ = full, calls_ = 0;
        failed_.clear();
    }
    void heal() noexcept { first_ = last_ = never; }

    /// The first call that failed; empty: none has.
    std::string const& failed() const noexcept { return failed_; }

  private:
    std::uint64_t first_ = never, last_ = never;
    bool full_ = false;
    std::uint64_t calls_ = 0;
    std::string failed_;
};

/// One life of a store, each step repeated where the disk fails it, as a scheduler would.
struct life {
    explicit life(sick_vfs& on) : disk(on), settings(settings_on(on)) { settings.checkpoint_pages = 8; }

    /// Runs the step until it succeeds, at most `tries` times; then the disk is healed, and it has one more.
    void insist(char const* what, std::function<void()> const& step) {
        for (int tries = 0; wrong.empty(); ++tries) {
            try {
                step();
                return;
            } catch (ax::error const& e) {
                ++errors;
                std::string_view const text = e.what();
                if (!e.transient()) wrong = "for good: ";
                if (text.find(path) == text.npos) wrong = "names no file: ";
                if (text.find("not an error") != text.npos) wrong = "gives no reason: ";
                if (disk.failed().empty()) wrong = "the disk was well: ";
                if (tries == 3) disk.heal();
                if (tries == 4) wrong = "it works no more: ";
                if (!wrong.empty()) wrong += std::string(what) + ": " + e.what();
            }
        }
    }

    void write(char const* what, std::function<void(writer&)> const& verbs) {
        insist(what, [&] { store->transact(ax::commit::durable, verbs); });
    }

    void open() {
        insist("open", [&] { store = std::make_unique<ax::sqlite_storage>(path, settings); });
    }

    /// Submits three tasks; one runs, one is cancelled, both are pruned but for the latest, and one waits.
    void use(std::string const& name) {
        std::vector<ax::task_id> made;
        for (auto const* const end : {"/0", "/1", "/2"})
            insist("submit", [&] { made.push_back(add(*store, std::string(5'000, 'x'), name + end)); });
        if (made.size() != 3) return;
        ax::fence_token fence{};
        write("claim", [&](writer& w) {
            ax::claim_request const request{made[0], false};
            fence = w.claim({&request, 1}, {node, t0, t0, 9}).claimed.at(0).fence;
        });
        write("settle", [&](writer& w) {
            ax::attempt_end end;
            end.id = made[0];
            end.fence = fence;
            end.started = end.ended = t0;
            if (!w.settle({&end, 1}, t0).accepted.at(0)) wrong = "the outcome was refused";
        });
        insist("find", [&] {
            if (store->find_by_key(name + "/0")->state != ax::task_state::succeeded) wrong = "the outcome is not there";
        });
        write("cancel", [&](writer& w) { w.cancel(made[1], t0); });
        write("prune", [&](writer& w) {
            ax::prune_terms terms;
            terms.type = w.type("probe");
            terms.keep = 1;
            w.prune(terms, 20);
            w.compact();
        });
        insist("list", [&] {
            if (store->list({.state = ax::task_state::cancelled}, t0).size() != 1) wrong = "not one is left";
        });
        waiting.push_back(name + "/2");
    }

    /// What is found on a disk that works.
    void look() {
        if (!wrong.empty()) return;
        disk.heal();
        for (auto const& key : waiting) {
            auto const task = store->find_by_key(key);
            if (!task || task->state != ax::task_state::ready) wrong = key + " is lost";
        }
        if (store->list({.limit = 1'000}, t0).size() != waiting.size() + 1) wrong = "there are others";
        wrong += complaints(*store);
    }

    void look_again() {
        if (!wrong.empty()) return;
        disk.heal();
        store.reset();
        store = std::make_unique<ax::sqlite_storage>(path, settings);
        look();
    }

    sick_vfs& disk;
    ax::sqlite_settings settings;
    temporary_directory directory;
    std::string path = directory.file("store.db");
    std::unique_ptr<ax::sqlite_storage> store; // GCC 12 warns of an optional
    std::vector<std::string> waiting;
    std::string wrong;
    std::size_t errors = 0;
};

} // namespace

TEST_CASE("whichever call the disk fails, the error names the file, and the same store works afterwards",
          "[disk][sick]") {
    bool const full = GENERATE(false, true);
    std::uint64_t const length = GENERATE(1U, 6U, 1'000'000'000U);
    CAPTURE(full, length);
    sick_vfs disk{"ax-sick"};
    life one{disk};
    one.open();
    std::size_t uses = 0;
    for (std::uint64_t n = 0;; ++n) {
        CAPTURE(n);
        disk.fail(n, n + length - 1, full);
        one.use(std::to_string(n));
        INFO(disk.failed());
        INFO(one.wrong);
        REQUIRE(one.wrong.empty());
        if (disk.failed().empty()) break; // it was never reached
        ++uses;
    }
    one.look();
    one.look_again();
    INFO(one.wrong);
    CHECK(one.wrong.empty());
    CHECK(uses > 20);
    CHECK(one.errors > uses / 3); // some calls may fail unnoticed: those of a checkpoint
}

TEST_CASE("whichever call the disk fails while a store is opened or closed, it opens afterwards", "[disk][sick]") {
    bool const full = GENERATE(false, true);
    std::uint64_t const length = GENERATE(1U, 1'000'000'000U);
    bool const fresh = GENERATE(false, true);
    CAPTURE(full, length, fresh);
    sick_vfs disk{"ax-sick"};
    std::size_t lives = 0, errors = 0;
    life kept{disk};
    kept.open();
    kept.use("before");
    for (std::uint64_t n = 0;; n += rounds(1) == 1 ? 1 + n / 6 : 1) {
        CAPTURE(n);
        life made{disk};
        auto& one = fresh ? made : kept;
        one.store.reset();
        disk.fail(n, n + length - 1, full);
        one.open();
        one.store.reset();
        auto const failed = disk.failed();
        disk.heal();
        one.open();
        if (fresh) one.use("after");
        one.look();
        INFO(failed);
        INFO(one.wrong);
        REQUIRE(one.wrong.empty());
        errors += std::exchange(one.errors, 0);
        if (failed.empty()) break;
        ++lives;
    }
    if (full && !fresh) return; // that writes next to nothing
    CHECK(lives > 5);
    CHECK(errors > 3);
}

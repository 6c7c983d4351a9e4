// SPDX-License-Identifier: MIT
// A disk whose power can be cut. What was written and not synced is kept apart, and at the cut it is dropped, kept or
// torn, file by file and sector by sector, in any order: what a drive with a cache of its own may do.
//
// The files themselves have what a running system would read (its page cache). restore() writes into them what is found
// after the cut. So locks, shared memory and several connections work as always.
//
// Modelled: writes of at most 512 bytes are the unit; one that was under way may be half there, or garbage within the
// bytes that were written, and spoils nothing beside them (SQLite's "powersafe overwrite", which its default VFS
// assumes). A file's size is written like its content. A new file is lost unless it was synced since, and a removed one
// may come back unless its directory was synced (by the first sync of a new file, as SQLite's default VFS does it for
// journals).
#pragma once

#include "disk/watched_vfs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disk {

inline std::string content_of(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_content(std::string const& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class power_vfs : public watched_vfs {
  public:
    static constexpr std::uint64_t never = ~std::uint64_t{0};

    explicit power_vfs(std::string name) : watched_vfs(std::move(name)) {
        before = [this](request const& asked) { return arrive(asked); };
        after = [this](request const& done) { note(done); };
    }

    /// The power goes at the `n`-th change (write, truncation, sync, creation, removal) from now, 0 being the next one.
    void cut_after(std::uint64_t n) noexcept { left_ = n; }

    /// It goes now.
    void cut() noexcept { off_ = true; }

    bool is_off() const noexcept { return off_; }

    /// How many changes there have been.
    std::uint64_t changes() const noexcept { return changes_; }

    /// How many syncs of a file that had something to sync.
    std::uint64_t syncs() const noexcept { return syncs_; }

    /// What became of what was not synced, in the latest restore().
    struct damage {
        std::size_t kept = 0, dropped = 0, torn = 0;
    };

    /// The power is back: the files are as the cut has left them. Nobody may have one of them open.
    damage restore(std::mt19937_64& random) {
        damage done;
        for (auto& [path, f] : files_) {
            auto const fate = random() % 4; // of the file: all gone, all there, a beginning of it, or each by itself
            auto const beginning = f.pending.empty() ? 0 : random() % (f.pending.size() + 1);
            bool exists = f.exists;
            std::size_t at = 0;
            bool ended = false;
            for (auto const& one : f.pending) {
                bool const early = at++ < beginning;
                bool const entry = is_entry(one);
                if (ended) { // what follows went into a file that no directory names
                    ++done.dropped;
                    continue;
                }
                switch (fate) {
                case 0: ++done.dropped; break;
                case 1: take(f.durable, exists, one), ++done.kept; break;
                case 2:
                    if (early)
                        take(f.durable, exists, one), ++done.kept;
                    else if (at == beginning + 1 && !entry)
                        tear(f.durable, exists, one, random), ++done.torn;
                    else
                        ++done.dropped, ended = entry;
                    break;
                default:
                    if (auto const coin = random() % 8; coin < 3)
                        ++done.dropped, ended = entry;
                    else if (coin < 6 || entry)
                        take(f.durable, exists, one), ++done.kept;
                    else
                        tear(f.durable, exists, one, random), ++done.torn;
                }
            }
            f.pending.clear();
            f.exists = exists;
            if (exists)
                write_content(path, f.durable);
            else
                std::filesystem::remove(path);
            // Nobody ever syncs the index of the log.
            if (random() % 2 == 0)
                std::filesystem::remove(path + "-shm");
            else if (std::filesystem::exists(path + "-shm"))
                write_content(path + "-shm", std::string(32'768, static_cast<char>(random())));
        }
        std::erase_if(files_, [](auto const& one) { return !one.second.exists; });
        off_ = false;
        left_ = never;
        return done;
    }

  private:
    /// A change that is not on the medium yet.
    struct change {
        call kind{};
        std::size_t offset = 0; ///< truncate: the size
        std::string bytes;
    };
    static bool is_entry(change const& one) noexcept { return one.kind == call::open || one.kind == call::remove; }

    struct file_state {
        bool exists = false; ///< on the medium
        std::string durable;
        std::vector<change> pending;
    };

    static bool is_change(request const& asked) noexcept {
        switch (asked.kind) {
        case call::write:
        case call::truncate:
        case call::sync:
        case call::remove: return true;
        case call::open: return asked.count != 0 && (asked.flags & SQLITE_OPEN_CREATE) != 0;
        default: return false;
        }
    }

    int arrive(request const& asked) {
        if (off_) return asked.kind == call::lock ? SQLITE_OK : failure_of(asked.kind);
        if (asked.kind == call::open && !asked.path.empty() && asked.count == 0) know(asked.path);
        if (!is_change(asked)) return SQLITE_OK;
        ++changes_;
        if (left_ != 0) {
            if (left_ != never) --left_;
            return SQLITE_OK;
        }
        // What is under way as the power goes may still arrive; a sync that has not returned promises nothing.
        if (asked.kind == call::write || asked.kind == call::truncate) note(asked);
        off_ = true;
        return failure_of(asked.kind);
    }

    /// A file that was there before the first look at it.
    file_state& know(std::string_view path) {
        auto const [at, fresh] = files_.try_emplace(std::string(path));
        if (fresh) at->second = {true, content_of(at->first), {}};
        return at->second;
    }

    void note(request const& done) {
        if (!is_change(done) || done.path.empty()) return;
        if (done.kind == call::open) {
            auto const at = files_.try_emplace(std::string(done.path)).first;
            at->second.pending.push_back({call::open, 0, {}});
            return;
        }
        auto& f = know(done.path);
        auto const offset = static_cast<std::size_t>(done.offset);
        switch (done.kind) {
        case call::write:
            f.pending.push_back(
                {call::write, offset, {static_cast<char const*>(done.bytes), static_cast<std::size_t>(done.count)}});
            break;
        case call::truncate: f.pending.push_back({call::truncate, offset, {}}); break;
        case call::remove:
            f.pending.push_back({call::remove, 0, {}});
            if (done.flags != 0) settle(f);
            break;
        default:
            if (!f.pending.empty()) ++syncs_;
            // The first sync of a new journal is one of its directory, too, so removals are for good from then on.
            bool const fresh = std::any_of(f.pending.begin(), f.pending.end(), is_entry);
            settle(f);
            if (!fresh) return;
            for (auto& [path, other] : files_)
                if (std::any_of(other.pending.begin(), other.pending.end(), is_entry)) settle(other);
        }
    }

    static void settle(file_state& f) {
        for (auto const& one : f.pending) take(f.durable, f.exists, one);
        f.pending.clear();
    }

    static void take(std::string& bytes, bool& exists, change const& one) {
        switch (one.kind) {
        case call::open:
            exists = true;
            bytes.clear();
            break;
        case call::remove:
            exists = false;
            bytes.clear();
            break;
        case call::truncate: bytes.resize(one.offset); break;
        default:
            if (bytes.size() < one.offset + one.bytes.size()) bytes.resize(one.offset + one.bytes.size());
            std::copy(one.bytes.begin(), one.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(one.offset));
        }
    }

    static void tear(std::string& bytes, bool& exists, change const& one, std::mt19937_64& random) {
        constexpr std::size_t sector = 512;
        if (one.kind != call::write) return;
        if (!exists) return; // there is no file that it could be in
        for (std::size_t at = one.offset; at < one.offset + one.bytes.size();) {
            auto const next = (std::min)((at / sector + 1) * sector, one.offset + one.bytes.size());
            change part{call::write, at, one.bytes.substr(at - one.offset, next - at)};
            if (random() % 16 == 0)
                for (auto& byte : part.bytes) byte = static_cast<char>(random());
            if (random() % 2 == 0) take(bytes, exists, part);
            at = next;
        }
    }

    std::map<std::string, file_state> files_;
    std::uint64_t left_ = never;
    std::uint64_t changes_ = 0;
    std::uint64_t syncs_ = 0;
    bool off_ = false;
};

} // namespace disk

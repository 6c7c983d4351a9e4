// SPDX-License-Identifier: MIT
// A SQLite VFS for tests. It passes every call on to the default one, and asks a watcher before and after.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace disk {

enum class call : std::uint8_t { open, remove, read, write, truncate, sync, size, lock, map };

constexpr char const* to_string(call kind) noexcept {
    constexpr char const* names[] = {"open", "remove", "read", "write", "truncate", "sync", "size", "lock", "map"};
    return names[static_cast<std::size_t>(kind)];
}

/// One call that SQLite makes.
struct request {
    call kind{};
    std::string_view path;
    void const* bytes = nullptr; ///< write: what
    sqlite3_int64 offset = 0;    ///< write: where; truncate: the new size
    int count = 0;               ///< write: how many; lock: what kind; open: 1 where there was no such file
    int flags = 0;               ///< sync: as SQLite gives them; remove: 1 where the directory is synced
};

/// Whether it is the journal of a database.
inline bool is_log(std::string_view path) noexcept { return path.size() > 4 && path.substr(path.size() - 4) == "-wal"; }

/// Threads: safe; `before` and `after` are called by one thread at a time, except with `map` and `lock`, which are
/// serialised as well.
class watched_vfs {
  public:
    /// Called before each call: SQLITE_OK lets it through, SQLITE_DONE leaves it out and calls it done, anything else
    /// is the answer.
    std::function<int(request const&)> before;
    /// Called after each call that was let through and succeeded.
    std::function<void(request const&)> after;

    explicit watched_vfs(std::string name) : name_(std::move(name)), real_(sqlite3_vfs_find(nullptr)) {
        if (real_ == nullptr) throw std::runtime_error("SQLite has no VFS");
        vfs_ = *real_; // what is not named below goes to the default one, which is asked with itself: see each
        vfs_.iVersion = 1;
        vfs_.pNext = nullptr;
        vfs_.zName = name_.c_str();
        vfs_.pAppData = this;
        vfs_.szOsFile = static_cast<int>(sizeof(file)) + real_->szOsFile;
        vfs_.xOpen = [](sqlite3_vfs* vfs, char const* path, sqlite3_file* made, int flags, int* given) {
            return self(vfs).open(path, static_cast<file*>(made), flags, given);
        };
        vfs_.xDelete = [](sqlite3_vfs* vfs, char const* path, int synced) {
            auto& v = self(vfs);
            return v.pass({call::remove, path, nullptr, 0, 0, synced},
                          [&] { return v.real_->xDelete(v.real_, path, synced); });
        };
        vfs_.xAccess = [](sqlite3_vfs* vfs, char const* path, int flags, int* answer) {
            return self(vfs).real_->xAccess(self(vfs).real_, path, flags, answer);
        };
        vfs_.xFullPathname = [](sqlite3_vfs* vfs, char const* path, int size, char* out) {
            return self(vfs).real_->xFullPathname(self(vfs).real_, path, size, out);
        };
        if (sqlite3_vfs_register(&vfs_, 0) != SQLITE_OK) throw std::runtime_error("no VFS can be registered");
    }
    watched_vfs(watched_vfs const&) = delete;
    watched_vfs& operator=(watched_vfs const&) = delete;
    ~watched_vfs() { sqlite3_vfs_unregister(&vfs_); }

    std::string const& name() const noexcept { return name_; }

  private:
    struct file : sqlite3_file {
        watched_vfs* owner;
        sqlite3_file* real; ///< lies behind this object
        std::string* path;
    };

    static watched_vfs& self(sqlite3_vfs* vfs) noexcept { return *static_cast<watched_vfs*>(vfs->pAppData); }
    static file& as_file(sqlite3_file* f) noexcept { return *static_cast<file*>(f); }

    template <class Forward>
    int pass(request const& asked, Forward&& forward) {
        std::scoped_lock const lock(mutex_);
        if (before)
            if (int const code = before(asked); code != SQLITE_OK) return code == SQLITE_DONE ? SQLITE_OK : code;
        int const code = forward();
        if (code == SQLITE_OK && after) after(asked);
        return code;
    }

    int open(char const* path, file* made, int flags, int* given) {
        made->pMethods = nullptr;
        made->owner = this;
        made->real = reinterpret_cast<sqlite3_file*>(made + 1);
        made->path = nullptr;
        std::string_view const named = path == nullptr ? "" : path;
        int there = 0;
        if (path != nullptr) real_->xAccess(real_, path, SQLITE_ACCESS_EXISTS, &there);
        int const code = pass({call::open, named, nullptr, 0, there == 0 ? 1 : 0, flags},
                              [&] { return real_->xOpen(real_, path, made->real, flags, given); });
        if (code != SQLITE_OK) return code;
        made->path = new std::string(named);
        made->pMethods = &methods();
        return SQLITE_OK;
    }

    template <class Forward>
    static int pass_on(sqlite3_file* f, request asked, Forward&& forward) {
        auto& to = as_file(f);
        asked.path = *to.path;
        return to.owner->pass(asked, [&] { return forward(to.real); });
    }

    static sqlite3_io_methods const& methods() {
        static sqlite3_io_methods const table = [] {
            sqlite3_io_methods m{};
            m.iVersion = 2; // with shared memory, without memory mapping
            m.xClose = [](sqlite3_file* f) {
                auto& to = as_file(f);
                int const code = to.real->pMethods->xClose(to.real);
                delete to.path;
                to.pMethods = nullptr;
                return code;
            };
            m.xRead = [](sqlite3_file* f, void* to, int count, sqlite3_int64 at) {
                return pass_on(f, {call::read, {}, nullptr, at, count, 0},
                               [&](sqlite3_file* r) { return r->pMethods->xRead(r, to, count, at); });
            };
            m.xWrite = [](sqlite3_file* f, void const* from, int count, sqlite3_int64 at) {
                return pass_on(f, {call::write, {}, from, at, count, 0},
                               [&](sqlite3_file* r) { return r->pMethods->xWrite(r, from, count, at); });
            };
            m.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
                return pass_on(f, {call::truncate, {}, nullptr, size, 0, 0},
                               [&](sqlite3_file* r) { return r->pMethods->xTruncate(r, size); });
            };
            m.xSync = [](sqlite3_file* f, int flags) {
                return pass_on(f, {call::sync, {}, nullptr, 0, 0, flags},
                               [&](sqlite3_file*) { return SQLITE_OK; }); // no test waits for a disk
            };
            m.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
                return pass_on(f, {call::size, {}, nullptr, 0, 0, 0},
                               [&](sqlite3_file* r) { return r->pMethods->xFileSize(r, size); });
            };
            m.xLock = [](sqlite3_file* f, int kind) {
                return pass_on(f, {call::lock, {}, nullptr, 0, kind, 0},
                               [&](sqlite3_file* r) { return r->pMethods->xLock(r, kind); });
            };
            m.xUnlock = [](sqlite3_file* f, int kind) {
                return as_file(f).real->pMethods->xUnlock(as_file(f).real, kind);
            };
            m.xCheckReservedLock = [](sqlite3_file* f, int* answer) {
                return as_file(f).real->pMethods->xCheckReservedLock(as_file(f).real, answer);
            };
            m.xFileControl = [](sqlite3_file* f, int what, void* with) {
                return as_file(f).real->pMethods->xFileControl(as_file(f).real, what, with);
            };
            m.xSectorSize = [](sqlite3_file* f) { return as_file(f).real->pMethods->xSectorSize(as_file(f).real); };
            m.xDeviceCharacteristics = [](sqlite3_file* f) {
                return as_file(f).real->pMethods->xDeviceCharacteristics(as_file(f).real);
            };
            m.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** to) {
                return pass_on(f, {call::map, {}, nullptr, 0, 0, 0},
                               [&](sqlite3_file* r) { return r->pMethods->xShmMap(r, page, size, extend, to); });
            };
            m.xShmLock = [](sqlite3_file* f, int offset, int count, int flags) {
                return as_file(f).real->pMethods->xShmLock(as_file(f).real, offset, count, flags);
            };
            m.xShmBarrier = [](sqlite3_file* f) { as_file(f).real->pMethods->xShmBarrier(as_file(f).real); };
            m.xShmUnmap = [](sqlite3_file* f, int remove) {
                return as_file(f).real->pMethods->xShmUnmap(as_file(f).real, remove);
            };
            return m;
        }();
        return table;
    }

    std::string name_;
    sqlite3_vfs* real_;
    sqlite3_vfs vfs_{};
    std::mutex mutex_;
};

/// What a failed call of this kind answers.
constexpr int failure_of(call kind) noexcept {
    switch (kind) {
    case call::open: return SQLITE_CANTOPEN;
    case call::remove: return SQLITE_IOERR_DELETE;
    case call::read: return SQLITE_IOERR_READ;
    case call::write: return SQLITE_IOERR_WRITE;
    case call::truncate: return SQLITE_IOERR_TRUNCATE;
    case call::sync: return SQLITE_IOERR_FSYNC;
    case call::size: return SQLITE_IOERR_FSTAT;
    case call::lock: return SQLITE_IOERR_LOCK;
    case call::map: return SQLITE_IOERR_SHMMAP;
    }
    return SQLITE_IOERR;
}

} // namespace disk

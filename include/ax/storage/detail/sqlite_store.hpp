// SPDX-License-Identifier: MIT
// An open store: the lock, the writing connection behind its commit queue, the readers. How it is opened, in an order
// in which a crash at any point leaves something that opens again:
//   1. the lock file (made empty where there is none);
//   2. a look at the database, without changing it: absent or empty, foreign, newer, damaged?
//   3. WAL mode, then the schema, each step of it in one transaction with its version;
//   4. only then the lock file names the store.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/storage/detail/commit_queue.hpp"
#include "ax/storage/detail/sqlite_connection.hpp"
#include "ax/storage/detail/sqlite_guest.hpp"
#include "ax/storage/detail/sqlite_header.hpp"
#include "ax/storage/detail/sqlite_lock.hpp"
#include "ax/storage/detail/sqlite_reader.hpp"
#include "ax/storage/detail/sqlite_schema.hpp"
#include "ax/storage/detail/sqlite_writer.hpp"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/vfs.h>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ax {

/// How a SQLite store is opened. Every default is meant to be left alone.
struct sqlite_settings {
    std::size_t cache_bytes = std::size_t{64} << 20; ///< of the writing connection; each reader has an eighth of it
    std::size_t checkpoint_pages = 20'000;           ///< pages in the WAL at which it is copied back (80 MB of 4 KiB)
    time_span busy_limit = std::chrono::seconds{5};  ///< how long to wait for the host's own write transactions
    std::size_t largest_group = 256;                 ///< transact() calls that may share one commit
    std::size_t readers = 4;                         ///< connections that read at the same time
    std::uint64_t largest_size = 0;                  ///< bytes the database may grow to; 0: what the disk holds
    bool foreign_keys = false;                       ///< whether those of the host's tables hold in commit_with()
    bool allow_network_file_system = false;          ///< SQLite's locks are not safe on one: see docs/sqlite.md
    std::string vfs = {};                            ///< name of a registered SQLite VFS; empty: SQLite's default
};

/// How a store is doing, for those who look after it.
struct sqlite_health {
    std::uint64_t database_bytes = 0;
    std::uint64_t log_bytes = 0; ///< of the write-ahead log, which keeps the size it has once had
    bool log_stuck = false;      ///< the log grows and cannot be copied back: a host's connection reads for too long
};

namespace detail {

/// A path that names the same file for as long as the process lives: absolute, and free of symbolic links, so that two
/// links to one database have the same lock file.
inline std::string resolved_path(std::string const& path) {
    if (path.empty() || path.find('\0') != std::string::npos || path.compare(0, 5, "file:") == 0 || path == ":memory:")
        throw error(errc::invalid_argument, "\"" + bounded_text(path, 200) + "\" is no path of a database file");
    char whole[PATH_MAX];
    if (::realpath(path.c_str(), whole) != nullptr) return whole;
    struct stat status {};
    if (errno != ENOENT) throw error(errc::unavailable, path + ": " + std::strerror(errno));
    // Its lock file would not be that of the database which SQLite would create at the link's end.
    if (::lstat(path.c_str(), &status) == 0) throw error(errc::unavailable, path + " is a symbolic link to nothing");
    auto const slash = path.find_last_of('/');
    auto const directory = slash == std::string::npos ? std::string(".") : path.substr(0, slash + 1);
    auto const name = slash == std::string::npos ? path : path.substr(slash + 1);
    if (::realpath(directory.c_str(), whole) == nullptr)
        throw error(errc::unavailable, "the directory of " + path + ": " + std::strerror(errno));
    if (name.empty()) throw error(errc::invalid_argument, path + " is a directory");
    std::string resolved = whole;
    if (resolved.back() != '/') resolved += '/';
    return resolved + name;
}

/// The name of a file system on which SQLite's locks or its shared memory do not hold, or nothing. Linux only.
inline char const* network_file_system([[maybe_unused]] std::string const& path) noexcept {
#if defined(__linux__)
    struct statfs status {};
    if (::statfs(path.c_str(), &status) != 0) return nullptr;
    switch (static_cast<std::uint32_t>(status.f_type)) {
    case 0x6969: return "NFS";
    case 0x517B:
    case 0xFF534D42:
    case 0xFE534D42: return "SMB";
    case 0x5346414F: return "AFS";
    default: return nullptr;
    }
#else
    return nullptr;
#endif
}

/// 128 bits of the system's randomness, as 32 hexadecimal digits. Not a generator in the process, whose state a fork
/// would double.
inline std::string random_store_id() {
    unsigned char bytes[16];
    file_descriptor source;
    source.reset(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    if (::read(source.number(), bytes, sizeof bytes) != static_cast<ssize_t>(sizeof bytes))
        throw error(errc::unavailable, std::string("/dev/urandom: ") + std::strerror(errno));
    std::string id;
    for (auto const byte : bytes) {
        id += "0123456789abcdef"[byte >> 4U];
        id += "0123456789abcdef"[byte & 15U];
    }
    return id;
}

template <class Connection>
class sqlite_store {
    using guest_insertion = dependent<ax::guest_insertion, Connection>;
    using new_task = dependent<ax::new_task, Connection>;
    using alarms = dependent<ax::alarms, Connection>;

  public:
    sqlite_store(std::string const& path, sqlite_settings const& settings)
        : settings_(settings), path_(resolved_path(path)), lock_(path_), process_(::getpid()) {
        refuse_what_is_lost();
        refuse_network();
        refuse_unknown_vfs();
        sql_ = std::make_unique<Connection>(path_, true, settings_.vfs);
        copy_log_back_at_close(false); // what is refused is left as it is, also where its log is that of another store
        if (sqlite3_threadsafe() == 0) throw error(errc::unavailable, "SQLite was built without SQLITE_THREADSAFE");
        sql_->execute(("PRAGMA busy_timeout = " + std::to_string(busy_limit())).c_str());
        auto const version = examine();
        if (sqlite3_db_readonly(sql_->handle(), "main") == 1) sql_->fail(SQLITE_READONLY);
        if (version == 0 && !lock_.store().empty())
            throw error(errc::not_a_store, path_ + " holds no tasks, but " + lock_.path() +
                                               " says that it held store " + lock_.store() +
                                               ": restore it, or delete " + lock_.path() + " to start afresh");
        copy_log_back_at_close(true);
        use_wal();
        configure();
        migrate();
        session_.emplace(*sql_);
        session_->effects().watch(*sql_);
        sql_->prepare_all();
        lock_.enter_database();
        was_clean_ = lock_.was_clean() || lock_.store().empty();
        lock_.write(store_id_, false);
        readers_.emplace(path_, lock_.database_file(), reader_pragmas(), settings_.vfs, settings_.readers);
        queue_.emplace(*this, settings_.largest_group);
        sql_->opened();
    }

    sqlite_store(sqlite_store const&) = delete;
    sqlite_store& operator=(sqlite_store const&) = delete;

    ~sqlite_store() {
        if (queue_) close();
    }

    template <class Fn>
    void transact(bool durable, Fn& fn) {
        check_process();
        for (;;) {
            try {
                return queue_->run(durable, [&] {
                    sqlite_writer<Connection> verbs(*session_);
                    fn(verbs);
                });
            } catch (sqlite_transaction_ended const&) { // whose fault it was is not called again
            }
        }
    }

    guest_insertion insert_in(sqlite3* host, std::string_view type, new_task& task, time_point now, alarms& due) {
        check_process();
        sqlite_guest<Connection> guest(host, sql_->handle(), path_, lock_.database_file());
        auto const answer = guest.insert(store_id_, type, task, now, due);
        session_->overtaken();
        return answer;
    }

    template <class Read>
    auto read(Read&& reading) {
        check_process();
        return readers_->with(std::forward<Read>(reading));
    }

    /// A copy of this process that fork() made: there, nothing of SQLite may be touched, not even to close it.
    bool is_elsewhere() const noexcept { return ::getpid() != process_; }

    std::string const& path() const noexcept { return path_; }
    std::string const& store_id() const noexcept { return store_id_; }
    bool was_clean() const noexcept { return was_clean_; }

    std::string description() const {
        return std::string("SQLite ") + sqlite3_libversion() + ", " + path_ + ", schema " +
               std::to_string(sqlite_schema_version);
    }

    sqlite_health health() const {
        sqlite_health answer;
        file_identity ignored;
        off_t size = 0;
        if (identify(path_, ignored, &size)) answer.database_bytes = static_cast<std::uint64_t>(size);
        size = 0;
        if (identify(path_ + "-wal", ignored, &size)) answer.log_bytes = static_cast<std::uint64_t>(size);
        answer.log_stuck = log_stuck_.load();
        return answer;
    }

    // ---- what commit_queue calls -----------------------------------------------------------------------------------

    void begin(bool durable) {
        if (durable || ++unchecked_ >= 32) check_files();
        synchronise(durable);
        sqlite_run(*sql_, sqlite_sql::begin_write).finish();
        durable_ = durable;
        marks_ = false;
        changes_ = sqlite3_total_changes(sql_->handle());
    }

    void finish() {
        if (sql_->has_failed() || !sql_->in_transaction()) sql_->throw_first_failure();
        session_->flush();
        // SQLite flushes nothing for a transaction that wrote nothing, but a durable commit also promises that the lazy
        // ones before it are safe now.
        if (durable_ && unflushed_ && sqlite3_total_changes(sql_->handle()) == changes_)
            sqlite_run(*sql_, sqlite_sql::count_commit).finish();
        bool const wrote = sqlite3_total_changes(sql_->handle()) != changes_;
        if (mark_ && wrote) {
            sqlite_run(*sql_, sqlite_sql::mark_log).finish();
            mark_ = false;
            marks_ = true;
        }
        sqlite_run(*sql_, sqlite_sql::commit).finish();
        unflushed_ = !durable_ && (unflushed_ || wrote);
        session_->committed();
    }

    void undo() noexcept {
        // After a full disk or an I/O error SQLite has done it by itself, and ROLLBACK would fail.
        if (sql_->in_transaction()) sqlite3_exec(sql_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
        session_->undone();
        sql_->forget_failures();
        mark_ = mark_ || marks_;
    }

  private:
    std::int64_t busy_limit() const noexcept {
        constexpr std::int64_t most = 3'600'000;
        return (std::min)((std::max)(settings_.busy_limit.value().count(), std::int64_t{0}), most);
    }

    void check_process() const {
        if (is_elsewhere())
            throw error(errc::invalid_argument, path_ + " was opened by process " + std::to_string(process_) +
                                                    ", and a SQLite connection does not survive a fork: open it here");
    }

    // ---- opening ---------------------------------------------------------------------------------------------------

    void refuse_what_is_lost() const {
        file_identity ignored;
        off_t size = 0;
        bool const nothing = !identify(path_, ignored, &size) || size == 0;
        if (!nothing) return;
        if (!lock_.store().empty())
            throw error(errc::corrupt, path_ + " is missing or empty, but " + lock_.path() +
                                           " says that it held store " + lock_.store() + ": restore it, or delete " +
                                           lock_.path() + " to start afresh");
        size = 0;
        if (identify(path_ + "-wal", ignored, &size) && size > 0)
            throw error(errc::corrupt,
                        path_ + " is missing or empty, but its journal " + path_ +
                            "-wal is there: restore the database, or remove the journal to start afresh");
    }

    void refuse_network() const {
        if (settings_.allow_network_file_system) return;
        auto const directory = path_.substr(0, path_.find_last_of('/') + 1);
        if (auto const* const name = network_file_system(directory))
            throw error(errc::unavailable,
                        path_ + " lies on a network file system (" + name + "), where SQLite's locks do not hold");
    }

    void refuse_unknown_vfs() const {
        if (!settings_.vfs.empty() && sqlite3_vfs_find(settings_.vfs.c_str()) == nullptr)
            throw error(errc::invalid_argument,
                        path_ + ": no SQLite VFS called \"" + bounded_text(settings_.vfs, 200) + "\" is registered");
    }

    void copy_log_back_at_close(bool yes) noexcept {
        sqlite3_db_config(sql_->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, yes ? 0 : 1, nullptr);
    }

    /// @return  The version of the schema; 0 where there is none of ax.
    int examine() {
        auto const header = read_header(*sql_);
        if (header.version == 0) return 0;
        store_id_ = header.store_id;
        if (!lock_.store().empty() && lock_.store() != store_id_)
            throw error(errc::not_a_store, path_ + " holds store " + store_id_ + ", but " + lock_.path() +
                                               " says that it held " + lock_.store() + ": restore it, or delete " +
                                               lock_.path() + " to go on with what is there");
        return header.version;
    }

    void use_wal() {
        // Only before the first page is there: a file that somebody else has made stays as it is.
        if (is_empty()) sql_->execute("PRAGMA auto_vacuum = INCREMENTAL");
        auto const statement = sql_->prepare("PRAGMA journal_mode = WAL");
        sqlite_run mode(*sql_, statement.get());
        auto const answer = mode.next() ? mode.copy(0) : std::string("nothing");
        if (answer != "wal")
            throw error(errc::unavailable, path_ + " cannot use a write-ahead log here (its journal mode is " + answer +
                                               "): the file system lacks shared memory, or write access");
    }

    bool is_empty() {
        auto const statement = sql_->prepare("PRAGMA page_count");
        sqlite_run row(*sql_, statement.get());
        return row.next() && row.number(0) == 0;
    }

    void configure() {
        sql_->execute("PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY; PRAGMA fullfsync = ON; "
                      "PRAGMA checkpoint_fullfsync = ON");
        sql_->execute(cache_pragma(settings_.cache_bytes).c_str());
        if (settings_.foreign_keys) sql_->execute("PRAGMA foreign_keys = ON");
        sqlite3_wal_hook(sql_->handle(), &sqlite_store::committed, this);
        if (settings_.largest_size != 0) {
            std::int64_t page = 4096;
            {
                auto const statement = sql_->prepare("PRAGMA page_size");
                sqlite_run row(*sql_, statement.get());
                if (row.next()) page = row.number(0);
            }
            auto const pages = (std::max)(settings_.largest_size / static_cast<std::uint64_t>(page), std::uint64_t{1});
            sql_->execute(("PRAGMA max_page_count = " + std::to_string(pages)).c_str());
        }
        synchronise(true);
    }

    static std::string cache_pragma(std::size_t bytes) {
        return "PRAGMA cache_size = -" + std::to_string((std::max)(bytes / 1024, std::size_t{64}));
    }

    std::string reader_pragmas() const {
        return "PRAGMA busy_timeout = " + std::to_string(busy_limit()) + "; " + cache_pragma(settings_.cache_bytes / 8);
    }

    /// Each step is one transaction with its version, and looks at the version under the lock that it writes under: of
    /// two that start at once, the second finds the work done.
    void migrate() {
        for (;;) {
            sql_->execute("BEGIN IMMEDIATE");
            try {
                auto const version = examine();
                if (version < sqlite_schema_version) take_step(version);
                sql_->execute("COMMIT");
                if (version == sqlite_schema_version) return;
            } catch (...) {
                if (sql_->in_transaction()) sqlite3_exec(sql_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
                throw;
            }
        }
    }

    void take_step(int version) {
        auto const& step = sqlite_migrations[version]; // the steps are numbered from 1 without a gap
        sql_->execute(step.sql);
        auto const statement = sql_->prepare(sqlite_write_meta);
        sqlite_run(*sql_, statement.get(), {std::string_view{"schema_version"}, step.version}).finish();
        if (version != 0) return;
        auto const id = random_store_id();
        sqlite_run(*sql_, statement.get(), {std::string_view{"store_id"}, std::string_view{id}}).finish();
        sqlite_run(*sql_, statement.get(), {std::string_view{"next_id"}, 1}).finish();
        sqlite_run(*sql_, statement.get(), {std::string_view{"empty_commits"}, 0}).finish();
        sqlite_run(*sql_, statement.get(), {std::string_view{"count_repairs"}, 0}).finish();
    }

    // ---- running ---------------------------------------------------------------------------------------------------

    void synchronise(bool durable) {
        auto const* const wanted = durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
        if (wanted == synchronous_) return;
        sql_->execute(wanted);
        synchronous_ = wanted;
    }

    /// A file that was deleted or replaced can still be written to, and nobody would ever read it.
    void check_files() {
        unchecked_ = 0;
        int moved = 0;
        sqlite3_file_control(sql_->handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
        if (moved != 0) gone(path_);
        if (!lock_.is_in_place()) gone(lock_.path());
        auto const journal = path_ + "-wal";
        file_identity present;
        bool const exists = identify(journal, present);
        if (journal_ && (!exists || !(present == *journal_))) gone(journal);
        if (exists) journal_ = present;
    }

    /// SQLite calls this after each commit that wrote something, with the length of the log. It stands in the place of
    /// SQLite's own automatic checkpoint, which would try again at every commit for as long as a reader is in its way.
    static int committed(void* self, sqlite3* db, char const*, int pages) noexcept {
        auto& store = *static_cast<sqlite_store*>(self);
        auto const length = static_cast<std::size_t>(pages);
        auto const step = (std::max)(store.settings_.checkpoint_pages, std::size_t{1});
        if (length < store.log_length_) { // it began anew
            store.checkpoint_at_ = 0;
            if (!store.marks_) store.mark_ = true;
        }
        store.log_length_ = length;
        store.log_stuck_ = length / 4 > step;
        bool const wished = store.session_ && store.session_->take_wish_for_checkpoint();
        if (!wished && length < (std::max)(store.checkpoint_at_, step)) return SQLITE_OK;
        int whole = -1, copied = 0;
        sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, &whole, &copied);
        if (whole == copied) store.mark_ = true; // the next commit begins it anew, unless somebody reads from it
        // Even after a complete one the log begins anew only if nobody reads from it at the next commit.
        store.checkpoint_at_ = length + (step + 9) / 10;
        return SQLITE_OK; // the commit itself is done, whatever became of this
    }

    [[noreturn]] static void gone(std::string const& file) {
        throw error(errc::unavailable, file + " was moved, replaced or deleted while the store was open");
    }

    void close() noexcept {
        bool clean = false;
        readers_->close();
        try {
            begin(true);
            session_->return_ids();
            finish();
            clean = true;
        } catch (...) {
            undo();
        }
        // Best effort: a host's connection that reads keeps it from finishing, and the next open goes on from the log.
        if (clean) sqlite3_wal_checkpoint_v2(sql_->handle(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
        session_.reset();
        sql_.reset();
        if (!clean) return;
        try {
            lock_.write(store_id_, true);
        } catch (...) { // then the next one takes the end for unclean, which costs nothing but a line in its log
        }
    }

    sqlite_settings settings_;
    std::string path_;
    // Before the connections: released after they are closed.
    sqlite_lock_file<dependent<std::string, Connection>> lock_;
    pid_t process_;
    std::string store_id_;
    bool was_clean_ = false;
    std::unique_ptr<Connection> sql_;
    std::optional<sqlite_session<Connection>> session_;
    std::optional<sqlite_readers<Connection>> readers_;
    std::optional<commit_queue<sqlite_store>> queue_;
    std::string_view synchronous_;
    unsigned unchecked_ = 0;
    bool durable_ = false;   ///< the present transaction
    bool unflushed_ = false; ///< something lazy has been committed since the latest durable commit
    // A log says nothing of whose it is. So the first commit that writes to one changes the page with the store's id,
    // and where the log of another store is put beside ours, that id is read from it and refused.
    bool mark_ = true;   ///< the next commit that writes does so
    bool marks_ = false; ///< the present transaction does
    int changes_ = 0;    ///< rows changed on this connection before the present transaction
    std::optional<dependent<file_identity, Connection>> journal_;
    std::size_t log_length_ = 0;    ///< pages, at the latest commit
    std::size_t checkpoint_at_ = 0; ///< pages at which the next attempt is due, while the log does not begin anew
    std::atomic<bool> log_stuck_{false};
};

} // namespace detail

} // namespace ax

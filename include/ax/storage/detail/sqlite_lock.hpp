// SPDX-License-Identifier: MIT
// Who owns a store: one storage object of one process.
//
// The proof is a write lock (fcntl) on a file of its own beside the database, `<path>-ax`. Not on the database: SQLite
// has its own locks there, and a process loses all of its fcntl locks on a file when it closes any descriptor of it.
// For that same reason this file is opened once in a process: a register says what is open before anything is opened.
// And fcntl rather than flock or an open file description lock, because a forked child does not inherit it: a lock
// that it did inherit would outlive its owner, and no restart could take over.
//
// The file is kept. It says which store it guards and how its latest owner ended, in one line that is shorter than a
// disk sector. While it names a store, a database that is missing, empty or another is refused: after a lost mount or a
// wrong restore, starting from nothing would look like success.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

/// One file, whatever it is called.
struct file_identity {
    dev_t device{};
    ino_t inode{};

    friend bool operator==(file_identity const&, file_identity const&) = default;
};

/// @return  False where there is no such file.
/// @throws  error unavailable where that cannot be told.
inline bool identify(std::string const& path, file_identity& identity, off_t* size = nullptr) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return false;
        throw error(errc::unavailable, path + ": " + std::strerror(errno));
    }
    identity = {status.st_dev, status.st_ino};
    if (size != nullptr) *size = status.st_size;
    return true;
}

/// The files that stores of this process have open.
/// @tparam File  file_identity, as a name by which a unit that opens no store does not pay for this code.
template <class File>
class open_files_of {
  public:
    /// Guards the register, and everything between looking into it and entering what was opened.
    static std::mutex& mutex() { return instance().mutex_; }

    enum class holder { nobody, this_process, before_fork };

    static holder find(File const& file) {
        for (auto const& e : instance().entries_)
            if (e.file == file) return e.process == ::getpid() ? holder::this_process : holder::before_fork;
        return holder::nobody;
    }
    static void add(File const& file) { instance().entries_.push_back({file, ::getpid()}); }
    static void remove(File const& file) noexcept {
        auto& entries = instance().entries_;
        for (std::size_t i = entries.size(); i-- != 0;)
            if (entries[i].file == file) {
                entries[i] = entries.back();
                entries.pop_back();
            }
    }

  private:
    struct entry {
        File file;
        pid_t process;
    };

    static open_files_of& instance() {
        static auto* const only = new open_files_of; // never destroyed: stores may be closed during static destruction
        return *only;
    }

    std::mutex mutex_;
    std::vector<entry> entries_;
};

class file_descriptor {
  public:
    file_descriptor() = default;
    file_descriptor(file_descriptor const&) = delete;
    file_descriptor& operator=(file_descriptor const&) = delete;
    ~file_descriptor() { close(); }

    int number() const noexcept { return number_; }
    void reset(int number) noexcept {
        int const reason = errno;
        close();
        number_ = number;
        errno = reason;
    }
    void close() noexcept {
        if (number_ >= 0) ::close(number_);
        number_ = -1;
    }

  private:
    int number_ = -1;
};

/// The lock file of one store, from open to close.
/// @tparam Text  std::string, as a name by which a unit that opens no store does not pay for this code.
template <class Text>
class sqlite_lock_file {
    using open_files = open_files_of<dependent<file_identity, Text>>;

  public:
    /// Takes the lock, or says who has it.
    /// @param database  The path of the database, free of symbolic links.
    /// @throws          error locked, unavailable, not_a_store (a file of that name that is not a lock file).
    explicit sqlite_lock_file(Text const& database) : database_(database), path_(database + "-ax") {
        std::scoped_lock const guard(open_files::mutex());
        file_identity there;
        if (identify(database_, there)) refuse_if_open(there);
        do {
            if (identify(path_, there)) refuse_if_open(there);
            open_it();
            lock_it();
        } while (!is_in_place()); // somebody removed it in between: try again with what is there now
        read_it();
        open_files::add(file_);
    }

    sqlite_lock_file(sqlite_lock_file const&) = delete;
    sqlite_lock_file& operator=(sqlite_lock_file const&) = delete;

    /// Lets the lock go. A file that names no store and was made by this object is removed again.
    ~sqlite_lock_file() {
        std::scoped_lock const guard(open_files::mutex());
        if (created_ && store_.empty() && is_in_place()) ::unlink(path_.c_str());
        descriptor_.close();
        open_files::remove(file_);
        if (database_entered_) open_files::remove(database_file_);
    }

    Text const& path() const noexcept { return path_; }

    /// The id of the store it guards; empty: it has not been written yet.
    Text const& store() const noexcept { return store_; }

    /// Whether the owner before this one closed the store.
    bool was_clean() const noexcept { return was_clean_; }

    /// Enters the database itself into the register, once it exists.
    void enter_database() {
        std::scoped_lock const guard(open_files::mutex());
        if (database_entered_ || !identify(database_, database_file_)) return;
        refuse_if_open(database_file_); // the same file under another name
        open_files::add(database_file_);
        database_entered_ = true;
    }

    /// As enter_database() found it.
    file_identity const& database_file() const noexcept { return database_file_; }

    void write(std::string_view store, bool clean) {
        auto line = Text(head) + Text(store) + (clean ? " clean " : " open  ") + std::to_string(::getpid());
        line.resize(length - 1, ' ');
        line += '\n';
        // Flushed, as what stands there must not outlive a power cut by which it is not true any more. A file system
        // that cannot flush says EINVAL.
        if (::pwrite(descriptor_.number(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()) ||
            (::fsync(descriptor_.number()) != 0 && errno != EINVAL))
            throw error(errno == ENOSPC || errno == EDQUOT ? errc::disk_full : errc::unavailable,
                        path_ + ": " + std::strerror(errno));
        store_ = store;
    }

    /// Whether the path still leads to the file that is locked.
    bool is_in_place() const {
        file_identity there;
        return identify(path_, there) && there == file_;
    }

  private:
    static constexpr std::string_view head = "ax store ";
    static constexpr std::size_t id_length = 32;
    static constexpr std::size_t length = 80;

    void refuse_if_open(file_identity const& file) const {
        switch (open_files::find(file)) {
        case open_files::holder::nobody: return;
        case open_files::holder::this_process:
            throw error(errc::locked,
                        database_ + " is open in this process already (pid " + std::to_string(::getpid()) + ")");
        case open_files::holder::before_fork:
            throw error(errc::locked, database_ +
                                          " was open when this process was forked from its parent; SQLite cannot "
                                          "open it here again: open it after the fork, or exec first");
        }
    }

    void open_it() {
        created_ = false;
        descriptor_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
        if (descriptor_.number() < 0 && errno == ENOENT) {
            descriptor_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_CREAT, 0644));
            created_ = true;
        }
        if (descriptor_.number() < 0)
            throw error(errno == ENOSPC || errno == EDQUOT ? errc::disk_full : errc::unavailable,
                        "cannot open the lock file " + path_ + ": " + std::strerror(errno) +
                            "; it and its directory need write access");
    }

    void lock_it() {
        struct stat status {};
        if (::fstat(descriptor_.number(), &status) != 0 || !S_ISREG(status.st_mode))
            throw error(errc::not_a_store, path_ + " is no regular file");
        file_ = {status.st_dev, status.st_ino};
        struct flock wanted = whole_file();
        if (::fcntl(descriptor_.number(), F_SETLK, &wanted) == 0) return;
        if (errno != EACCES && errno != EAGAIN)
            throw error(errc::unavailable, "cannot lock " + path_ + ": " + std::strerror(errno));
        struct flock present = whole_file();
        bool const known = ::fcntl(descriptor_.number(), F_GETLK, &present) == 0 && present.l_type != F_UNLCK;
        throw error(errc::locked, database_ + " is open in another process" +
                                      (known ? " (pid " + std::to_string(present.l_pid) + ")" : std::string{}) +
                                      ", which holds " + path_);
    }

    static struct flock whole_file() noexcept {
        struct flock range {};
        range.l_type = F_WRLCK;
        range.l_whence = SEEK_SET;
        return range;
    }

    void read_it() {
        Text line(length, '\0');
        auto const count = ::pread(descriptor_.number(), line.data(), line.size(), 0);
        if (count < 0) throw error(errc::unavailable, path_ + ": " + std::strerror(errno));
        line.resize(static_cast<std::size_t>(count));
        // Nothing, or zeros: created and never written, also after a power cut.
        if (line.find_first_not_of('\0') == std::string::npos) return;
        auto const id = line.size() > head.size() ? std::string_view(line).substr(head.size(), id_length) : "";
        if (line.compare(0, head.size(), head) != 0 || id.size() != id_length ||
            id.find_first_not_of("0123456789abcdef") != std::string_view::npos)
            throw error(errc::not_a_store, path_ + " is in the way: it is no lock file of ax");
        store_ = id;
        was_clean_ = line.compare(head.size() + id_length, 7, " clean ") == 0;
    }

    Text database_;
    Text path_;
    file_descriptor descriptor_;
    bool created_ = false;
    bool was_clean_ = false;
    bool database_entered_ = false;
    Text store_;
    file_identity file_;
    file_identity database_file_;
};

} // namespace ax::detail

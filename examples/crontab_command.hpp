// SPDX-License-Identifier: MIT
// Runs a crontab's command as cron does: SHELL -c command, in the home folder of its user, with a small environment and
// the settings of the table, the text behind the first % as input. The run ends when the command has ended and nobody
// holds its output any more.
#pragma once

#include <nlohmann/json.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crontab {

struct command {
    std::string line, user, input;
    bool has_input = false;
    std::map<std::string, std::string> environment;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(command, line, user, input, has_input, environment)
};

namespace detail {

[[noreturn]] inline void fail(std::string const& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

/// Closes a file when it goes out of scope.
class descriptor {
  public:
    explicit descriptor(int number) noexcept : number_(number) {}
    descriptor(descriptor const&) = delete;
    descriptor& operator=(descriptor const&) = delete;
    ~descriptor() { close(); }
    int get() const noexcept { return number_; }
    void close() noexcept {
        if (number_ >= 0) ::close(std::exchange(number_, -1));
    }

  private:
    int number_;
};

struct account {
    std::string name, home;
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
};

/// The account of that name, or of this process where there is none.
inline account find_account(std::string const& name) {
    std::vector<char> room(16'384);
    passwd entry{};
    passwd* found = nullptr;
    if (name.empty())
        ::getpwuid_r(::getuid(), &entry, room.data(), room.size(), &found);
    else
        ::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
    if (found == nullptr && name.empty()) { // a container may run under a number that has no account
        auto const* const home = std::getenv("HOME");
        return {std::to_string(::getuid()), home != nullptr ? home : "/", ::getuid(), ::getgid(), {}};
    }
    if (found == nullptr) throw std::runtime_error("there is no user " + name);
    account who{found->pw_name, found->pw_dir, found->pw_uid, found->pw_gid, {}};
    int count = 64;
    who.groups.resize(static_cast<std::size_t>(count));
    ::getgrouplist(found->pw_name, found->pw_gid, who.groups.data(), &count);
    who.groups.resize(static_cast<std::size_t>((std::min)(count, 64)));
    return who;
}

/// A file without a name that holds `text`, to be read from its start. No pipe: nobody has to feed it.
inline int file_of(std::string_view text) {
    char path[] = "/tmp/crontab-input-XXXXXX";
    int const file = ::mkostemp(path, O_CLOEXEC);
    if (file < 0) fail("the command's input");
    ::unlink(path);
    while (!text.empty()) {
        auto const written = ::write(file, text.data(), text.size());
        if (written < 0) {
            ::close(file);
            fail("the command's input");
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    ::lseek(file, 0, SEEK_SET);
    return file;
}

inline std::map<std::string, std::string> environment_of(command const& what, account const& who) {
    std::map<std::string, std::string> all{{"SHELL", "/bin/sh"}, {"PATH", "/usr/bin:/bin"}, {"HOME", who.home}};
    for (auto const& [name, value] : what.environment) all[name] = value;
    all["LOGNAME"] = all["USER"] = who.name; // a table cannot choose who it is
    return all;
}

} // namespace detail

/// Runs it, and hands each line that it prints to `on_line`.
/// @param stop  When it is set, the command and what it has started are asked to end (SIGTERM).
/// @return      Empty where it ended with 0, else how it ended. Throws where it could not be started.
template <class OnLine>
std::string execute(command const& what, std::stop_token stop, OnLine&& on_line) {
    auto const who = detail::find_account(what.user);
    bool const other = who.uid != ::geteuid();
    if (other && ::geteuid() != 0) throw std::runtime_error("only root can run a command as " + who.name);

    // All that the child needs is made here: between fork and exec a process with threads may allocate nothing.
    auto const environment = detail::environment_of(what, who);
    std::vector<std::string> pairs;
    for (auto const& [name, value] : environment) pairs.push_back(name + '=' + value);
    std::vector<char*> envp;
    for (auto& one : pairs) envp.push_back(one.data());
    envp.push_back(nullptr);
    std::string shell = environment.at("SHELL"), flag = "-c", line = what.line;
    char* const argv[] = {shell.data(), flag.data(), line.data(), nullptr};
    auto const& home = environment.at("HOME");

    detail::descriptor const input{what.has_input ? detail::file_of(what.input)
                                                  : ::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) detail::fail("a pipe");
    detail::descriptor output{ends[0]};
    detail::descriptor its_output{ends[1]};

    auto const child = ::fork();
    if (child < 0) detail::fail("fork");
    if (child == 0) {
        ::setpgid(0, 0); // a group of its own, so that all of it can be stopped
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        bool ready =
            ::dup2(input.get(), 0) == 0 && ::dup2(its_output.get(), 1) == 1 && ::dup2(its_output.get(), 2) == 2;
        if (other)
            ready = ready && ::setgroups(who.groups.size(), who.groups.data()) == 0 && ::setgid(who.gid) == 0 &&
                    ::setuid(who.uid) == 0;
        if (ready && (::chdir(home.c_str()) == 0 || ::chdir("/") == 0)) ::execve(argv[0], argv, envp.data());
        ::_exit(127);
    }
    ::setpgid(child, child); // whichever of the two comes first
    its_output.close();

    {
        std::stop_callback const ask{stop, [child] { ::kill(-child, SIGTERM); }};
        std::string text;
        std::array<char, 4096> buffer;
        for (;;) {
            auto const got = ::read(output.get(), buffer.data(), buffer.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            text.append(buffer.data(), static_cast<std::size_t>(got));
            for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
                on_line(text.substr(0, end));
                text.erase(0, end + 1);
            }
            if (text.size() > 65'536) on_line(std::exchange(text, {}));
        }
        if (!text.empty()) on_line(text);
        siginfo_t ended{};
        while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
        }
    } // from here on nobody sends a signal to a process that may be another one by now
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? std::string{} : "exit code " + std::to_string(WEXITSTATUS(status));
}

/// /etc/crontab and the files of /etc/cron.d that cron reads: those whose names are letters, digits, - and _ only.
inline std::vector<std::string> system_files() {
    std::vector<std::string> found;
    if (::access("/etc/crontab", R_OK) == 0) found.push_back("/etc/crontab");
    std::vector<std::string> more;
    if (auto const folder = std::unique_ptr<DIR, int (*)(DIR*)>{::opendir("/etc/cron.d"), ::closedir})
        while (auto const* entry = ::readdir(folder.get())) {
            std::string_view const name = entry->d_name;
            bool const plain = std::all_of(name.begin(), name.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_';
            });
            if (plain) more.push_back("/etc/cron.d/" + std::string(name));
        }
    std::sort(more.begin(), more.end());
    found.insert(found.end(), more.begin(), more.end());
    return found;
}

} // namespace crontab

// SPDX-License-Identifier: MIT
// Tests that need a second process.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

/// A forked child that runs a function and ends with what it returns. It must not use the checks of the test, which
/// are the parent's. Killed, where it still runs, when this object goes.
class child_process {
  public:
    /// `work(report)` runs in the child; `report(number)` sends a number to the parent.
    template <class Work>
    explicit child_process(Work&& work) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
        id_ = ::fork();
        if (id_ < 0) throw std::runtime_error("no fork");
        if (id_ == 0) {
            ::close(ends[0]);
            int code = 99;
            try {
                code = work([&](std::uint64_t number) {
                    if (::write(ends[1], &number, sizeof number) != sizeof number) ::_exit(98);
                });
            } catch (...) { // told by the code
            }
            ::_exit(code);
        }
        ::close(ends[1]);
        reports_ = ends[0];
    }
    child_process(child_process const&) = delete;
    child_process& operator=(child_process const&) = delete;
    ~child_process() {
        kill();
        ::close(reports_);
    }

    pid_t id() const noexcept { return id_; }

    /// Waits for a report. False where the child has ended.
    bool next(std::uint64_t& number) {
        std::size_t got = 0;
        while (got < sizeof number) {
            auto const count = ::read(reports_, reinterpret_cast<char*>(&number) + got, sizeof number - got);
            if (count <= 0) return false;
            got += static_cast<std::size_t>(count);
        }
        return true;
    }

    /// Ends it at whatever it is doing.
    void kill() {
        if (ended_) return;
        ::kill(id_, SIGKILL);
        wait();
    }

    /// Waits for its end.
    /// @return  What `work` returned; -1 where it was killed.
    int wait() {
        if (!ended_) {
            int status = 0;
            ::waitpid(id_, &status, 0);
            ended_ = true;
            result_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        return result_;
    }

  private:
    pid_t id_ = 0;
    int reports_ = -1;
    bool ended_ = false;
    int result_ = -1;
};

// SPDX-License-Identifier: MIT
// What the system has for child processes: signals, sockets, the lock under which they are forked.
#pragma once

#include "ax/core/error.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define AX_HAS_FORK 1

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#endif

#include <atomic>
#include <string>
#include <vector>

namespace ax::detail {

#if defined(AX_HAS_FORK)

inline constexpr bool can_isolate = true;

/// Set in a child process that runs a handler: what it inherits of its parent's schedulers is not to be used.
inline std::atomic<bool> in_isolated_child{false};

/// @throws error invalid_argument in a child process that runs a handler.
inline void refuse_in_isolated_child(char const* what) {
    if (in_isolated_child.load(std::memory_order_relaxed))
        throw error(errc::invalid_argument, std::string(what) +
                                                ": this handler runs in a child process (isolation::process), where "
                                                "the scheduler is out of reach; use its context");
}

/// The exit code of a child that could not say how its handler ended.
inline constexpr int child_unheard = 125;

/// For a child's handler of SIGTERM.
struct child_signals {
    static inline pid_t parent = 0;
    static inline std::atomic<int> wake{-1}; ///< to the thread that sets the stop token; -1: nobody has taken it

    /// From others than the parent it means nothing: service managers send it to each process of a service, and it is
    /// the host that decides what is to end. Where the handler has no stop token to look at, it ends the process.
    static void terminate(int, siginfo_t* info, void*) {
        int const before = errno;
        if (info->si_pid == parent) {
            int const to = wake.load();
            unsigned char const why = info->si_code == SI_USER ? static_cast<unsigned char>(stop_reason::stopping)
                                                               : static_cast<unsigned char>(info->si_value.sival_int);
            if (to < 0 || ::write(to, &why, 1) != 1) {
                struct sigaction plain {};
                plain.sa_handler = SIG_DFL;
                ::sigaction(SIGTERM, &plain, nullptr);
                ::raise(SIGTERM); // blocked until this returns
            }
        }
        errno = before;
    }

    /// As after an exec: what the host had caught is the system's again, what it ignored stays ignored but for those
    /// that tell of faults; and none is blocked.
    static void reset() {
        for (int one = 1; one < NSIG; ++one) {
            struct sigaction now {};
            if (::sigaction(one, nullptr, &now) != 0) continue;
            bool const fault = one == SIGSEGV || one == SIGBUS || one == SIGFPE || one == SIGILL || one == SIGABRT ||
                               one == SIGTERM || one == SIGCHLD;
            if (now.sa_handler == SIG_DFL || (now.sa_handler == SIG_IGN && !fault)) continue;
            struct sigaction plain {};
            plain.sa_handler = SIG_DFL;
            ::sigaction(one, &plain, nullptr);
        }
        struct sigaction asks {};
        asks.sa_sigaction = &terminate;
        asks.sa_flags = SA_SIGINFO | SA_RESTART;
        ::sigaction(SIGTERM, &asks, nullptr);
        sigset_t nothing;
        ::sigemptyset(&nothing);
        ::pthread_sigmask(SIG_SETMASK, &nothing, nullptr);
    }
};

/// Two ends that no program inherits which the host executes meanwhile. False where the system has no more.
inline bool socket_pair(int (&ends)[2]) noexcept {
#if defined(SOCK_CLOEXEC)
    return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
#else
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
    for (int const end : ends) {
        ::fcntl(end, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
        int const yes = 1;
        ::setsockopt(end, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
    }
    return true;
#endif
}

#if defined(MSG_NOSIGNAL)
inline constexpr int send_quietly = MSG_NOSIGNAL;
#else
inline constexpr int send_quietly = 0;
#endif

/// One child is forked at a time, and none keeps open what belongs to another: the end of a child must close its
/// sockets.
template <class Unused = void>
struct forking {
    static inline std::mutex mutex;
    static inline std::vector<int> open; ///< what the parent holds of all children
};

/// A call of the system, again where a signal came in between.
template <class Call>
auto again_if_interrupted(Call&& call) noexcept {
    decltype(call()) result{};
    do {
        result = call();
    } while (result == -1 && errno == EINTR);
    return result;
}

inline std::string signal_name(int number) {
    switch (number) {
    case SIGABRT: return " (SIGABRT)";
    case SIGALRM: return " (SIGALRM)";
    case SIGBUS: return " (SIGBUS)";
    case SIGFPE: return " (SIGFPE)";
    case SIGHUP: return " (SIGHUP)";
    case SIGILL: return " (SIGILL)";
    case SIGINT: return " (SIGINT)";
    case SIGKILL: return " (SIGKILL)";
    case SIGPIPE: return " (SIGPIPE)";
    case SIGQUIT: return " (SIGQUIT)";
    case SIGSEGV: return " (SIGSEGV)";
    case SIGSYS: return " (SIGSYS)";
    case SIGTERM: return " (SIGTERM)";
    case SIGTRAP: return " (SIGTRAP)";
    case SIGUSR1: return " (SIGUSR1)";
    case SIGUSR2: return " (SIGUSR2)";
    case SIGXCPU: return " (SIGXCPU)";
    case SIGXFSZ: return " (SIGXFSZ)";
    default: return {};
    }
}

#else

inline constexpr bool can_isolate = false;

inline void refuse_in_isolated_child(char const*) {}

#endif

} // namespace ax::detail

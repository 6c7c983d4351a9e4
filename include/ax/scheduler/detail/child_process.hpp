// SPDX-License-Identifier: MIT
// A handler's call in a child process, so that what kills the process kills the attempt alone.
//
// The child is forked from the worker's thread for each attempt, and never executes another program: the handler is a
// closure in this process's memory. A small process that was forked early, while there was one thread, could fork
// without the danger of locks that other threads hold (a zygote); but it would know what handlers refer to as it was
// when it was made, and handlers may be registered at any time. So the child is a direct one, does nothing but the
// handler's call, and takes care of what is the scheduler's: it gets an attempt of its own, none of whose locks a
// thread of the parent can hold, and asks the parent for what the storage knows. Of the host's own locks we know
// nothing: a child that waits for one for ever ends with its timeout. See docs/isolation.md.
//
// The two talk through a pair of sockets. The worker's thread waits for a message, the child's end (a pidfd where the
// system has them, else a look every 20 ms), and a request to stop, all in one poll(). Only this thread sends signals
// to the child and takes its status, by its id alone: so a signal never meets another process of the same id.
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/core/text.hpp"
#include "ax/scheduler/context.hpp"
#include "ax/scheduler/detail/child_message.hpp"
#include "ax/scheduler/detail/child_side.hpp"
#include "ax/scheduler/detail/child_system.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/time/time_point.hpp"

#if defined(AX_HAS_FORK)
#include <poll.h>
#include <sys/wait.h>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#elif defined(__FreeBSD__)
#include <sys/procctl.h>
#endif

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace ax::detail {

/// The parent's end of one child.
template <class Attempt>
class child_process {
    using string = dependent<std::string, Attempt>;
    using writer = frame_writer<string>;
    using reader = frame_reader<string>;
    using steady = std::chrono::steady_clock;

  public:
    /// @param clock  The scheduler's steady time, by which the timeout is kept.
    /// @param grace  How long after a request to stop the child is killed, by the system's steady time.
    child_process(Attempt& attempt, std::size_t payload_limit, duration grace, std::function<duration()> clock)
        : attempt_(attempt), payload_limit_(payload_limit), grace_(grace), clock_(std::move(clock)) {}
    child_process(child_process const&) = delete;
    child_process& operator=(child_process const&) = delete;

    ~child_process() {
        if (id_ > 0) { // memory ran out
            kill_group();
            reap();
        }
        close_all();
    }

    /// Forks, has `call(attempt)` return how the handler's call ended in the child, and waits for the child's end.
    /// What the child says of the attempt is in it when this returns. Nothing is thrown but for want of memory.
    template <class Call>
    child_ending run(Call&& call) {
        if (!fork_off(call)) {
            ending_.none = true;
            return std::move(ending_);
        }
        std::stop_callback const on_stop{attempt_.stop.get_token(), [end = wake_[1]] {
                                             char const one = 0;
                                             ::send(end, &one, 1, send_quietly | MSG_DONTWAIT);
                                         }};
        while (!has_ended()) {
            steer();
            wait();
        }
        read(); // what it said last
        if (!ending_.told) kill_group();
        reap();
        if (!ending_.told) ending_.error = fault_.empty() ? how_it_ended() : fault_ + "; " + how_it_ended();
        return std::move(ending_);
    }

  private:
    // ---------------------------------------------------------------- making it

    template <class Call>
    bool fork_off(Call& call) {
        std::lock_guard const guard{forking<Attempt>::mutex};
        int ends[2];
        bool made = socket_pair(wake_) && socket_pair(ends);
        if (made) {
            socket_ = ends[0];
            auto const parent = ::getpid();
            sigset_t all, before;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_SETMASK, &all, &before); // no handler of the host's runs in the child
            id_ = ::fork();
            if (id_ == 0) be_the_child(call, ends[1], parent);
            int const problem = errno;
            ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
            ::close(ends[1]);
            errno = problem;
            made = id_ > 0;
        }
        if (!made) {
            ending_.error = string("no child process: ") + std::strerror(errno);
            return false;
        }
        ::setpgid(id_, id_); // it does so, too: whoever comes first
#if defined(__linux__) && defined(SYS_pidfd_open)
        pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, id_, 0));
#endif
        for (int const one : {socket_, wake_[0], wake_[1], pidfd_})
            if (one >= 0) forking<Attempt>::open.push_back(one);
        return true;
    }

    template <class Call>
    [[noreturn]] void be_the_child(Call& call, int socket, pid_t parent) {
        try {
            in_isolated_child.store(true);
            die_with(parent);
            ::setpgid(0, 0);
            child_signals::parent = parent;
            child_signals::reset();
            for (int const one : forking<Attempt>::open) ::close(one);
            for (int const one : {socket_, wake_[0], wake_[1]}) ::close(one);
            forking<Attempt>::mutex.unlock(); // the one who forked holds it, here as there
#if defined(__GLIBC__)
            ::on_exit([](int code, void*) { ::_exit(code); }, nullptr); // before what the parent would destroy
#else
            std::atexit([] { ::_exit(child_unheard); });
#endif
            Attempt mine; // of whose locks no thread of the parent can hold one
            mine.record = attempt_.record;
            mine.handled_by = attempt_.handled_by;
            mine.how = attempt_.how;
            mine.started = attempt_.started;
            child_side<Attempt> side{mine, socket};
            mine.store = &side;
            mine.link = &side;
            auto const end = call(mine);
            ::_exit(side.say_outcome(end) ? 0 : child_unheard);
        } catch (...) {
        }
        ::_exit(child_unheard);
    }

    static void die_with(pid_t parent) {
#if defined(__linux__)
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#elif defined(__FreeBSD__)
        int const signal = SIGKILL;
        ::procctl(P_PID, 0, PROC_PDEATHSIG_CTL, const_cast<int*>(&signal));
#endif
        if (::getppid() != parent) ::_exit(child_unheard); // it died before it could be asked for
    }

    // ---------------------------------------------------------------- waiting for it

    bool has_ended() const {
        siginfo_t info{};
        auto const answer = again_if_interrupted(
            [&] { return ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT); });
        return answer != 0 || info.si_pid == id_; // an error: the host has taken its status
    }

    void wait() {
        pollfd files[] = {{wake_[0], POLLIN, 0}, {pidfd_, POLLIN, 0}, {socket_, POLLIN, 0}};
        if (!answers_.empty()) files[2].events |= POLLOUT;
        if (::poll(files, 3, wait_time()) <= 0) return;
        if (files[0].revents != 0) {
            char some[64];
            while (::recv(wake_[0], some, sizeof some, MSG_DONTWAIT) > 0) {
            }
        }
        if ((files[2].revents & POLLOUT) != 0) write();
        if ((files[2].revents & ~POLLOUT) != 0) read();
    }

    /// In milliseconds, as poll() wants it.
    int wait_time() const {
        auto most = (duration::max)();
        if (pidfd_ < 0) most = duration{20};
        if (asked_at_ && !killed_)
            most = (std::min)(most, std::chrono::ceil<duration>(grace_left()));
        else if (attempt_.how->timeout && !asked_at_)
            most = std::clamp(timeout_left(), duration{1}, (std::min)(most, duration{1'000}));
        if (most == (duration::max)()) return -1;
        return static_cast<int>(std::clamp(most, duration{0}, duration{3'600'000}).count());
    }

    duration timeout_left() const {
        return saturating_add(time_point{attempt_.how->timeout->value()},
                              attempt_.started_steady - clock_() + duration{1})
            .time_since_epoch();
    }

    steady::duration grace_left() const {
        auto const bounded = (std::min)(grace_, duration{std::chrono::hours{24 * 365}});
        return *asked_at_ + bounded - steady::now();
    }

    /// Passes on a request to stop. A timeout is also noticed here, since nobody else may look: a host that polls waits
    /// for this very call.
    void steer() {
        if (attempt_.reason.load() == stop_reason::none && attempt_.how->timeout && timeout_left() <= duration{0})
            attempt_.request_stop(stop_reason::timed_out);
        auto const why = attempt_.reason.load();
        if (why == stop_reason::none) return;
        if (!asked_at_) asked_at_ = steady::now();
        // What a stop finds at work and cannot be told may finish, as in a thread.
        if (!told_to_stop_ && (why != stop_reason::stopping || attempt_.token_taken.load())) {
            told_to_stop_ = true;
            ask_to_stop(why);
        }
        if (!killed_ && grace_left() <= steady::duration{0}) {
            killed_ = true;
            kill_group();
        }
    }

    void ask_to_stop([[maybe_unused]] stop_reason why) const {
#if defined(__linux__)
        sigval value{};
        value.sival_int = static_cast<int>(why);
        if (::sigqueue(id_, SIGTERM, value) == 0) return;
#endif
        ::kill(id_, SIGTERM);
    }

    /// The child has not been waited for: the id is its own, unless the host takes the status of all processes.
    void kill_group() const {
#if defined(__linux__) && defined(SYS_pidfd_send_signal)
        if (pidfd_ >= 0 && ::syscall(SYS_pidfd_send_signal, pidfd_, SIGKILL, nullptr, 0) != 0 && errno == ESRCH) return;
#endif
        ::kill(-id_, SIGKILL);
        ::kill(id_, SIGKILL);
    }

    void reap() {
        auto const got = again_if_interrupted([&] { return ::waitpid(id_, &status_, 0); });
        if (got != id_) status_known_ = false;
        id_ = -1;
    }

    string how_it_ended() const {
        if (!status_known_)
            return "its child process has ended, and how is not known: the program takes the status of all its "
                   "children, or ignores SIGCHLD";
        if (WIFSIGNALED(status_))
            return "killed by signal " + std::to_string(WTERMSIG(status_)) + signal_name(WTERMSIG(status_));
        return "exited with code " + std::to_string(WEXITSTATUS(status_)) + " before the handler had returned";
    }

    // ---------------------------------------------------------------- talking to it

    void read() {
        while (socket_ >= 0) {
            char some[16 * 1024];
            auto const got = again_if_interrupted([&] { return ::recv(socket_, some, sizeof some, MSG_DONTWAIT); });
            if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (got <= 0) return close_socket(); // its end tells the rest
            received_.append(some, static_cast<std::size_t>(got));
            if (!take_frames()) return;
        }
    }

    /// False where the child says what makes no sense: it is ended, and no more is read.
    bool take_frames() {
        try {
            std::size_t at = 0;
            while (received_.size() - at >= child_head) {
                std::uint64_t size = 0;
                std::memcpy(&size, received_.data() + at, sizeof size);
                if (ending_.told || size > payload_limit_ + child_slack + 8 * attempt_.additions.all().size())
                    throw error(errc::corrupt, "a message of a child process is too long");
                if (received_.size() - at - child_head < size) break;
                auto const kind = static_cast<child_says>(received_[at + sizeof size]);
                take(kind, std::string_view{received_}.substr(at + child_head, static_cast<std::size_t>(size)));
                at += child_head + static_cast<std::size_t>(size);
            }
            received_.erase(0, at);
            return true;
        } catch (error const& e) {
            if (ending_.told) return close_socket(), false;
            fault_ = e.what();
            close_socket();
            kill_group();
            return false;
        }
    }

    void take(child_says kind, std::string_view body) {
        reader in{body};
        switch (kind) {
        case child_says::log: take_log(in.text()); break;
        case child_says::progress: {
            auto const fraction = std::bit_cast<double>(in.number());
            std::lock_guard const guard{attempt_.text_mutex};
            attempt_.progress = fraction;
            attempt_.progress_note = in.text();
            break;
        }
        case child_says::token_taken: attempt_.token_taken.store(true); break;
        case child_says::steps: answer([&] { return steps(); }); break;
        case child_says::parents: answer([&] { return parents(); }); break;
        case child_says::keep_step: {
            auto const name = in.text();
            auto const value = in.text();
            answer([&] { return keep_step(name, value); });
            break;
        }
        case child_says::follow_up: {
            auto one = read_follow_up<string>(in);
            std::lock_guard const guard{attempt_.text_mutex};
            attempt_.follow_ups.push_back(std::move(one));
            break;
        }
        case child_says::member: {
            auto one = read_member<string>(in, attempt_.additions.all().size());
            std::lock_guard const guard{attempt_.text_mutex};
            attempt_.additions.add(std::move(one), {});
            break;
        }
        case child_says::outcome: take_outcome(in); break;
        default: throw error(errc::corrupt, "a message of a child process is of no kind");
        }
        in.end();
    }

    void take_log(string const& line) {
        auto const clean = bounded_text(line, log_limit);
        std::lock_guard const guard{attempt_.text_mutex};
        if (attempt_.log.size() + clean.size() + 1 > log_limit) return; // the child has counted it
        attempt_.log += clean;
        attempt_.log += '\n';
    }

    void take_outcome(reader& in) {
        child_ending end;
        end.how = in.one_of(std::uint8_t{last_ending});
        if (in.flag()) end.asked = in.span();
        end.error = in.text();
        auto result = in.text();
        auto const dropped = in.number();
        std::lock_guard const guard{attempt_.text_mutex};
        attempt_.result = std::move(result);
        attempt_.log_dropped = static_cast<std::size_t>(dropped);
        end.told = true;
        ending_ = std::move(end);
    }

    string steps() const {
        auto const all = attempt_.store->steps(attempt_.record.id);
        writer out{parent_says::answer};
        out.number(all.size());
        for (auto const& one : all) out.text(one.name).text(one.value);
        return out.take();
    }

    string parents() const {
        auto const all = attempt_.store->parents(attempt_.record.id);
        writer out{parent_says::answer};
        out.number(all.size());
        for (auto const& one : all)
            out.number(to_number(one.id)).text(one.name).number(static_cast<std::uint64_t>(one.state)).text(one.result);
        return out.take();
    }

    string keep_step(string const& name, string const& value) {
        bool const kept = attempt_.store->keep_step(attempt_.record.id, attempt_.record.fence, name, value);
        if (!kept) attempt_.lose();
        return writer{parent_says::answer}.number(kept ? 1 : 0).take();
    }

    template <class Work>
    void answer(Work&& work) {
        try {
            answers_ += work();
        } catch (error const& e) {
            // The other side puts the meaning of the code behind the text again.
            string text = e.what();
            auto const meaning = ": " + e.code().message();
            if (text.ends_with(meaning)) text.resize(text.size() - meaning.size());
            answers_ += writer{parent_says::ax_error}.number(static_cast<std::uint64_t>(e.kind())).text(text).take();
        } catch (std::exception const& e) {
            answers_ += writer{parent_says::other_error}.text(e.what()).take();
        } catch (...) {
            answers_ += writer{parent_says::other_error}.text("the storage threw no std::exception").take();
        }
        write();
    }

    /// As much as the child takes now: nobody waits for one that does not read.
    void write() {
        while (!answers_.empty() && socket_ >= 0) {
            auto const sent = again_if_interrupted(
                [&] { return ::send(socket_, answers_.data(), answers_.size(), send_quietly | MSG_DONTWAIT); });
            if (sent < 0) {
                if (errno != EAGAIN && errno != EWOULDBLOCK) answers_.clear();
                return;
            }
            answers_.erase(0, static_cast<std::size_t>(sent));
        }
    }

    // ---------------------------------------------------------------- the end

    void close_one(int& file) noexcept {
        if (file < 0) return;
        std::lock_guard const guard{forking<Attempt>::mutex};
        auto& open = forking<Attempt>::open;
        open.erase(std::remove(open.begin(), open.end(), file), open.end());
        ::close(std::exchange(file, -1));
    }

    void close_socket() noexcept { close_one(socket_); }

    void close_all() noexcept {
        close_socket();
        close_one(pidfd_);
        for (int& end : wake_) close_one(end);
    }

    static constexpr std::uint8_t last_ending = 4; ///< of handler_call's endings that a child can tell

    Attempt& attempt_;
    std::size_t const payload_limit_;
    duration const grace_;
    std::function<duration()> clock_;

    pid_t id_ = -1;
    int socket_ = -1;
    int pidfd_ = -1;
    int wake_[2] = {-1, -1};
    std::optional<steady::time_point> asked_at_; ///< when it was seen that it is to stop
    bool told_to_stop_ = false;
    bool killed_ = false;
    int status_ = 0;
    bool status_known_ = true;
    string received_;
    string answers_;
    string fault_; ///< why its talk was ended
    child_ending ending_;
};

} // namespace ax::detail

#endif

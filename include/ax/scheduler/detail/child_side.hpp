// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/dependent.hpp"
#include "ax/core/error.hpp"
#include "ax/scheduler/detail/attempt_store.hpp"
#include "ax/scheduler/detail/child_link.hpp"
#include "ax/scheduler/detail/child_message.hpp"
#include "ax/scheduler/detail/child_system.hpp"
#include "ax/scheduler/detail/claimed_attempt.hpp"
#include "ax/storage/concept.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ax::detail {

/// What an isolated handler's call came to.
struct child_ending {
    bool told = false; ///< the child said how it ended; else `error` says how the process did
    bool none = false; ///< there was no child: the system could not make one, and `error` says why
    std::uint8_t how = 0;
    std::optional<duration> asked;
    std::string error;
};

#if defined(AX_HAS_FORK)

/// The child's end: what the handler's context asks for goes to the parent.
template <class Attempt>
class child_side final : public attempt_store, public child_link {
    using string = dependent<std::string, Attempt>;
    using writer = frame_writer<string>;
    using reader = frame_reader<string>;
    using kept_step = dependent<ax::kept_step, Attempt>;
    using parent_record = dependent<ax::parent_record, Attempt>;

  public:
    child_side(Attempt& attempt, int socket) : attempt_(attempt), socket_(socket) {}

    // Whoever asks refuses commit_with() in a child by itself, with a better reason.
    bool takes_sqlite() const noexcept override { return false; }

    std::vector<kept_step> steps(task_id) const override {
        auto const answer = ask(writer{child_says::steps}.take());
        reader in{answer};
        std::vector<kept_step> all(static_cast<std::size_t>(in.number()));
        for (auto& one : all) {
            one.name = in.text();
            one.value = in.text();
        }
        return all;
    }

    bool keep_step(task_id, fence_token, std::string_view name, std::string_view value) override {
        writer out{child_says::keep_step};
        auto const answer = ask(out.text(name).text(value).take());
        return reader{answer}.flag();
    }

    std::vector<parent_record> parents(task_id) const override {
        auto const answer = ask(writer{child_says::parents}.take());
        reader in{answer};
        std::vector<parent_record> all(static_cast<std::size_t>(in.number()));
        for (auto& one : all) {
            one.id = task_id{in.number()};
            one.name = in.text();
            one.state = static_cast<task_state>(in.number());
            one.result = in.text();
        }
        return all;
    }

    void say_log(std::string_view line) override {
        writer out{child_says::log};
        say(out.text(line).take());
    }

    void say_progress(double fraction, std::string_view note) override {
        writer out{child_says::progress};
        say(out.number(std::bit_cast<std::uint64_t>(fraction)).text(note).take());
    }

    void say_token_taken() override {
        int ends[2];
        if (!socket_pair(ends)) throw error(errc::unavailable, "stop_token: the child process has no file left");
        std::thread{[this, from = ends[0]] {
            for (;;) {
                unsigned char why = 0;
                if (again_if_interrupted([&] { return ::read(from, &why, 1); }) != 1) return;
                attempt_.request_stop(static_cast<stop_reason>(why));
            }
        }}.detach(); // the process ends without it
        child_signals::wake.store(ends[1]);
        say(writer{child_says::token_taken}.take());
    }

    /// What is to be recorded with a success, and how the call ended. False where the parent could not be told.
    bool say_outcome(child_ending const& end) {
        {
            std::lock_guard const guard{attempt_.text_mutex};
            for (auto const& one : attempt_.follow_ups) say(follow_up_frame<string>(one));
            for (auto const& one : attempt_.additions.all()) say(member_frame<string>(one));
        }
        writer out{child_says::outcome};
        out.number(end.how).maybe(end.asked, [&](duration d) { out.span(d); }).text(end.error);
        std::lock_guard const guard{attempt_.text_mutex};
        return say(out.text(attempt_.result).number(attempt_.log_dropped).take());
    }

  private:
    bool say(string const& frame) const {
        std::lock_guard const guard{mutex_};
        return put(frame);
    }

    bool put(string const& frame) const {
        for (std::size_t at = 0; at != frame.size();) {
            auto const sent = again_if_interrupted(
                [&] { return ::send(socket_, frame.data() + at, frame.size() - at, send_quietly); });
            if (sent <= 0) return false;
            at += static_cast<std::size_t>(sent);
        }
        return true;
    }

    bool get(char* to, std::size_t size) const {
        while (size != 0) {
            auto const got = again_if_interrupted([&] { return ::recv(socket_, to, size, 0); });
            if (got <= 0) return false;
            to += got;
            size -= static_cast<std::size_t>(got);
        }
        return true;
    }

    /// What the parent answers. @throws what it would have thrown there.
    string ask(string const& frame) const {
        std::lock_guard const guard{mutex_};
        char head[child_head];
        std::uint64_t size = 0;
        string body;
        bool heard = put(frame) && get(head, sizeof head);
        if (heard) {
            std::memcpy(&size, head, sizeof size);
            body.resize(static_cast<std::size_t>(size));
            heard = get(body.data(), body.size());
        }
        if (!heard) throw error(errc::unavailable, "the child process has lost its scheduler");
        auto const kind = static_cast<parent_says>(head[sizeof size]);
        if (kind == parent_says::answer) return body;
        reader in{body};
        if (kind == parent_says::other_error) throw std::runtime_error(in.text());
        auto const code = static_cast<errc>(in.number());
        throw error(code, in.text());
    }

    Attempt& attempt_;
    int const socket_;
    mutable std::mutex mutex_; ///< one question at a time
};

#endif

} // namespace ax::detail

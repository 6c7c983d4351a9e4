// SPDX-License-Identifier: MIT
// What a handler in a child process and its parent say to each other: frames of a length, a kind and a body. The parent
// trusts none of it: a child that is about to crash may have written anything.
#pragma once

#include "ax/core/error.hpp"
#include "ax/scheduler/detail/submission.hpp"
#include "ax/scheduler/workflow.hpp"
#include "ax/storage/concept.hpp"
#include "ax/time/time_point.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ax::detail {

enum class child_says : std::uint8_t {
    log = 1,     ///< a line
    progress,    ///< a fraction and a note
    token_taken, ///< a request to stop is of use from now on
    steps,       ///< asks for the steps of earlier attempts
    parents,     ///< asks for those of the task in its workflow
    keep_step,   ///< asks that a value be kept, and whether it was
    follow_up,   ///< a submission, for the case of success
    member,      ///< a task added to its workflow, likewise
    outcome      ///< how the handler's call ended; the last frame
};

enum class parent_says : std::uint8_t { answer = 1, ax_error, other_error };

/// A length and a kind.
inline constexpr std::size_t child_head = sizeof(std::uint64_t) + 1;

/// Beside a payload, no frame of a child has more than this: names, keys, tags, an error text.
inline constexpr std::size_t child_slack = 64U * 1024U;

/// Puts a frame together. The two sides are one program on one machine: numbers are as memory has them.
/// @tparam Text  std::string, as a name by which a unit that runs no child does not pay for this code.
template <class Text>
class frame_writer {
  public:
    template <class Kind>
    explicit frame_writer(Kind kind) : bytes_(sizeof(std::uint64_t), '\0') {
        bytes_ += static_cast<char>(kind);
    }

    frame_writer& number(std::uint64_t n) {
        char raw[sizeof n];
        std::memcpy(raw, &n, sizeof n);
        bytes_.append(raw, sizeof n);
        return *this;
    }
    frame_writer& text(std::string_view t) {
        number(t.size());
        bytes_ += t;
        return *this;
    }
    frame_writer& span(duration d) { return number(static_cast<std::uint64_t>(d.count())); }
    template <class Value, class Put>
    frame_writer& maybe(std::optional<Value> const& value, Put&& put) {
        number(value ? 1 : 0);
        if (value) put(*value);
        return *this;
    }
    frame_writer& maybe(std::optional<time_point> const& t) {
        return maybe(t, [this](time_point at) { span(at.time_since_epoch()); });
    }

    Text take() {
        std::uint64_t const size = bytes_.size() - child_head;
        std::memcpy(bytes_.data(), &size, sizeof size);
        return std::move(bytes_);
    }

  private:
    Text bytes_;
};

/// Takes the body of a frame apart.
/// Errors: corrupt where it says something else than is asked for.
template <class Text>
class frame_reader {
  public:
    explicit frame_reader(std::string_view body) : rest_(body) {}

    std::uint64_t number() {
        std::uint64_t n = 0;
        if (rest_.size() < sizeof n) refuse();
        std::memcpy(&n, rest_.data(), sizeof n);
        rest_.remove_prefix(sizeof n);
        return n;
    }
    /// One of the values 0 to `last`.
    template <class Enum>
    Enum one_of(Enum last) {
        auto const n = number();
        if (n > static_cast<std::uint64_t>(last)) refuse();
        return static_cast<Enum>(n);
    }
    bool flag() { return one_of(std::uint8_t{1}) != 0; }
    Text text() {
        auto const size = number();
        if (size > rest_.size()) refuse();
        Text t{rest_.substr(0, static_cast<std::size_t>(size))};
        rest_.remove_prefix(t.size());
        return t;
    }
    duration span() { return duration{static_cast<std::int64_t>(number())}; }
    std::optional<time_point> instant() { return flag() ? std::optional{time_point{span()}} : std::nullopt; }
    std::size_t count(std::size_t most) {
        auto const n = number();
        if (n > most) refuse();
        return static_cast<std::size_t>(n);
    }
    void end() const {
        if (!rest_.empty()) refuse();
    }

  private:
    [[noreturn]] static void refuse() { throw error(errc::corrupt, "a message of a child process makes no sense"); }

    std::string_view rest_;
};

/// What make_submission() made.
template <class Text>
Text follow_up_frame(dependent<submission, Text> const& one) {
    frame_writer<Text> out{child_says::follow_up};
    auto const& task = one.task;
    out.text(one.type).number(one.says_priority ? 1 : 0).text(task.payload).text(task.key);
    out.number(static_cast<std::uint64_t>(task.key_scope));
    out.number(static_cast<std::uint64_t>(task.on_conflict.action())).span(task.on_conflict.period());
    out.maybe(task.run_at).span(task.delay).number(static_cast<std::uint64_t>(task.priority));
    out.text(task.route_key).number(static_cast<std::uint64_t>(task.route_order)).maybe(task.deadline).text(task.retry);
    out.number(task.tags.size());
    for (auto const& tag : task.tags) out.text(tag);
    return out.take();
}

template <class Text>
dependent<submission, Text> read_follow_up(frame_reader<Text>& in) {
    dependent<submission, Text> one;
    one.type = in.text();
    one.says_priority = in.flag();
    auto& task = one.task;
    task.payload = in.text();
    task.key = in.text();
    task.key_scope = in.one_of(key_scoping::active);
    auto const action = in.one_of(conflict_action::throttle);
    task.on_conflict = conflict_policy{action, in.span()};
    task.run_at = in.instant();
    task.delay = in.span();
    task.priority = in.one_of(priority_class::low);
    task.route_key = in.text();
    task.route_order = in.one_of(route_ordering::relaxed);
    task.deadline = in.instant();
    task.retry = in.text();
    for (auto left = in.count(most_tags); left != 0; --left) task.tags.push_back(in.text());
    return one;
}

/// What context::add() made.
template <class Text>
Text member_frame(dependent<workflow_node, Text> const& one) {
    frame_writer<Text> out{child_says::member};
    out.text(one.type).text(one.payload).text(one.name).number(static_cast<std::uint64_t>(one.when));
    out.maybe(one.priority, [&](priority_class p) { out.number(static_cast<std::uint64_t>(p)); });
    out.text(one.route_key).text(one.retry).maybe(one.deadline);
    out.number(one.after.size());
    for (auto const place : one.after) out.number(place);
    return out.take();
}

/// @param before  How many tasks were added before it: its parents are among those.
template <class Text>
dependent<workflow_node, Text> read_member(frame_reader<Text>& in, std::size_t before) {
    dependent<workflow_node, Text> one;
    one.type = in.text();
    one.payload = in.text();
    one.name = in.text();
    one.when = in.one_of(trigger_rule::always);
    if (in.flag()) one.priority = in.one_of(priority_class::low);
    one.route_key = in.text();
    one.retry = in.text();
    one.deadline = in.instant();
    for (auto left = in.count(before); left != 0; --left)
        one.after.push_back(in.one_of(static_cast<std::uint32_t>(before - 1)));
    return one;
}

} // namespace ax::detail

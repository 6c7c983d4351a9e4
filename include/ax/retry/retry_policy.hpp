// SPDX-License-Identifier: MIT
// When a failed attempt is followed by another one.
//
// A policy is a small value that answers one question, next_delay(), from two numbers that every store keeps: how many
// attempts have failed and how long ago the first one started. So it has no state of its own, and the same policy
// serves any number of tasks, restarts and nodes.
#pragma once

#include "ax/core/error.hpp"
#include "ax/time/time_point.hpp"

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace ax::retry {

/// What is known when an attempt has failed.
struct retry_state {
    std::size_t failures = 1; ///< attempts that have failed, the one that just did included; 0 counts as 1
    duration elapsed{0}; ///< since the first attempt started; less than nothing (a stepped clock) counts as nothing
};

/// A source of random numbers: what the standard calls a uniform random bit generator. It is spelled out here because
/// <random> is a heavy header.
template <class G>
concept bit_generator = std::invocable<G&> && std::unsigned_integral<std::invoke_result_t<G&>> && requires {
    { (G::min)() } -> std::same_as<std::invoke_result_t<G&>>;
    { (G::max)() } -> std::same_as<std::invoke_result_t<G&>>;
    requires bool((G::min)() < (G::max)());
};

} // namespace ax::retry

namespace ax::detail {

/// 64 random bits from a generator of any range. A generator whose range is no power of two gives its lowest bits, and
/// what lies above the largest power of two is drawn anew, so that every bit is even.
template <retry::bit_generator G>
constexpr std::uint64_t random_bits(G& generator) {
    constexpr auto lowest = static_cast<std::uint64_t>((G::min)());
    constexpr std::uint64_t range = static_cast<std::uint64_t>((G::max)()) - lowest;
    if constexpr (range == (std::numeric_limits<std::uint64_t>::max)()) {
        return static_cast<std::uint64_t>(generator()) - lowest;
    } else {
        constexpr unsigned width = [] { // the most bits that the range holds whole
            unsigned w = 0;
            while (w < 63 && ((range + 1) >> (w + 1)) != 0) ++w;
            return w;
        }();
        std::uint64_t bits = 0;
        for (unsigned have = 0; have < 64; have += width) {
            std::uint64_t piece = 0;
            do piece = static_cast<std::uint64_t>(generator()) - lowest;
            while ((piece >> width) != 0);
            bits = (bits << (width % 64)) | piece;
        }
        return bits;
    }
}

} // namespace ax::detail

namespace ax::retry {

/// A reference to a generator of any type, as a generator of 64 bits. Custom policies take it, so that they need be no
/// templates. It must not outlive what it refers to.
class random_source {
  public:
    using result_type = std::uint64_t;
    static constexpr result_type(min)() noexcept { return 0; }
    static constexpr result_type(max)() noexcept { return (std::numeric_limits<std::uint64_t>::max)(); }

    template <bit_generator G>
        requires(!std::same_as<G, random_source>)
    constexpr explicit random_source(G& generator) noexcept
        : generator_(std::addressof(generator)),
          draw_([](void* g) { return detail::random_bits(*static_cast<G*>(g)); }) {}

    result_type operator()() { return draw_(generator_); }

  private:
    void* generator_;
    result_type (*draw_)(void*);
};

static_assert(bit_generator<random_source>);

/// Decides whether and when a failed task is tried again.
///  1. next_delay() gives the time until the next attempt, or nothing where there is to be none. What is less than a
///     millisecond counts as one.
///  2. It may be called from several threads at once, each with a source of its own.
///  3. It takes its randomness from the source alone, so that a simulation can be repeated.
///  4. Its answer depends on nothing that a restart of the process changes.
template <class P>
concept retry_policy = std::move_constructible<P> &&
    requires(P const& policy, retry_state const& state, random_source& random) {
    { policy.next_delay(state, random) } -> std::same_as<std::optional<duration>>;
};

/// As an argument of policy::attempts(): no limit.
inline constexpr std::size_t unlimited = (std::numeric_limits<std::size_t>::max)();

/// The most delays that list() takes.
inline constexpr std::size_t longest_list = 16;

class policy;
constexpr policy none();
constexpr policy fixed(time_span delay);
constexpr policy exponential(time_span first);
constexpr policy list(std::initializer_list<time_span> delays);
std::string to_text(policy const& p);
policy parse(std::string_view text);

/// A retry policy as a plain value, made by none(), fixed(), exponential() or list() and refined from left to right:
///
///     ax::retry::exponential(1min).cap(30min).jitter(0.1).attempts(5)
///
/// Each refinement gives a changed copy and leaves its object as it is. Without attempts() and total() an exponential
/// or fixed policy never ends. A default-constructed one is exponential(1min).cap(30min).jitter(0.1).attempts(4).
///
/// Everything is constexpr, so a bad argument of a constant policy does not compile.
/// Threads: safe as any value.
class policy {
  public:
    constexpr policy() noexcept
        : shape_(shape::exponential), jitter_(0.1), attempts_(4),
          cap_(std::chrono::minutes{30}), delays_{std::chrono::minutes{1}}, count_(1) {}

    /// No delay is longer than `longest`, jitter included. It may be shorter than the first delay.
    /// @throws ax::error invalid_argument where it is less than a millisecond.
    constexpr policy cap(time_span longest) const {
        auto p = refined();
        if (longest.value() < duration{1}) refuse("cap", longest, "less than a millisecond");
        p.cap_ = longest;
        return p;
    }

    /// Each delay is `growth` times the one before (default 2). For exponential() only.
    /// @throws ax::error invalid_argument where it is less than 1 or not finite.
    constexpr policy factor(double growth) const {
        auto p = refined();
        if (shape_ != shape::exponential) refuse("factor", growth, "for exponential() only");
        if (!(growth >= 1.0) || growth > (std::numeric_limits<double>::max)())
            refuse("factor", growth, "not a finite number of at least 1");
        p.factor_ = growth;
        return p;
    }

    /// Spreads each delay evenly over delay * (1 - fraction) to delay * (1 + fraction), so that what failed together
    /// does not come back together. Where the cap cuts that range the delay is even over what is left of it: a crowd at
    /// the cap stays spread.
    /// @throws ax::error invalid_argument where it is not within 0 and 1.
    constexpr policy jitter(double fraction) const {
        auto p = refined();
        if (!(fraction >= 0.0 && fraction <= 1.0)) refuse("jitter", fraction, "not within 0 and 1");
        p.jitter_ = fraction == 0.0 ? 0.0 : fraction; // -0 prints differently
        return p;
    }

    /// At most `n` attempts, the first one counted; 1 is no retry, `unlimited` no limit.
    /// @throws ax::error invalid_argument where it is 0.
    constexpr policy attempts(std::size_t n) const {
        auto p = refined();
        if (n == 0) refuse("attempts", duration{0}, "less than 1");
        p.attempts_ = n;
        return p;
    }

    /// No attempt starts later than `span` after the first one did: where the next delay, jitter included, would end
    /// later, there is none.
    /// @throws ax::error invalid_argument where it is less than a millisecond.
    constexpr policy total(time_span span) const {
        auto p = refined();
        if (span.value() < duration{1}) refuse("total", span, "less than a millisecond");
        p.total_ = span;
        return p;
    }

    /// The time until the next attempt, or nothing where there is to be none.
    ///
    /// At least a millisecond, at most the cap, whatever the numbers: nothing overflows and nothing is negative.
    /// Without jitter it never shrinks from one failure to the next (a list does as its numbers do).
    ///
    /// Complexity: O(log(cap / first) / log(factor)) multiplications, never more than 65,536; one draw of 64 bits where
    ///             there is jitter, none without.
    template <bit_generator Generator>
    constexpr std::optional<duration> next_delay(retry_state const& state, Generator& generator) const {
        std::size_t const failures = state.failures == 0 ? 1 : state.failures;
        if (shape_ == shape::none || failures >= attempts_) return std::nullopt;
        auto delay = base_delay(failures);
        if (jitter_ > 0.0) delay = spread(delay, generator);
        if (delay < duration{1}) delay = duration{1};
        if (total_ != duration{0}) {
            auto const elapsed = state.elapsed < duration{0} ? duration{0} : state.elapsed;
            if (elapsed > total_ || delay > total_ - elapsed) return std::nullopt;
        }
        return delay;
    }

    /// The delay after that many failures without jitter and limits, for tables and previews. Zero for none().
    constexpr duration base_delay(std::size_t failures) const noexcept {
        if (failures == 0) failures = 1;
        duration delay{0};
        switch (shape_) {
        case shape::none:
            return delay;
        case shape::fixed:
            delay = delays_[0];
            break;
        case shape::exponential:
            delay = grown(failures - 1);
            break;
        case shape::list:
            delay = delays_[failures < count_ ? failures - 1 : count_ - 1u];
            break;
        }
        if (delay > cap_) delay = cap_;
        return delay < duration{1} ? duration{1} : delay;
    }

    /// The limit that attempts() set; 1 for none(), `unlimited` where there is no limit.
    constexpr std::size_t max_attempts() const noexcept { return shape_ == shape::none ? 1 : attempts_; }

    friend constexpr bool operator==(policy const&, policy const&) noexcept = default;

  private:
    enum class shape : std::uint8_t { none, fixed, exponential, list };

    constexpr explicit policy(shape s) noexcept : shape_(s) {}

    friend constexpr policy none();
    friend constexpr policy fixed(time_span delay);
    friend constexpr policy exponential(time_span first);
    friend constexpr policy list(std::initializer_list<time_span> delays);
    friend std::string to_text(policy const& p);
    friend policy parse(std::string_view text);

    constexpr policy refined() const {
        if (shape_ == shape::none) throw error(errc::invalid_argument, "retry::none() cannot be refined");
        return *this;
    }

    constexpr void add(time_span delay) {
        if (count_ == longest_list) throw error(errc::invalid_argument, "a retry list of more than 16 delays");
        if (delay.value() < duration{0}) refuse("delay", delay, "negative");
        delays_[count_++] = delay;
    }

    /// first * factor^steps by plain repeated multiplication: each product is rounded the same way, so the row cannot
    /// shrink, which a power computed otherwise might. It ends at the cap; the bound on the steps is for a factor of
    /// nearly 1 and a failure count that is nonsense.
    constexpr duration grown(std::size_t steps) const noexcept {
        constexpr std::size_t most_steps = 65'536;
        if (steps > most_steps) steps = most_steps;
        auto const limit = static_cast<double>(cap_.count());
        auto x = static_cast<double>(delays_[0].count());
        if (factor_ == 1.0 || steps == 0 || x == 0.0) return delays_[0];
        for (; steps > 0 && x < limit; --steps) x *= factor_;
        return x >= limit ? cap_ : duration{static_cast<std::int64_t>(x + 0.5)};
    }

    template <class Generator>
    constexpr duration spread(duration delay, Generator& generator) const {
        auto const middle = static_cast<double>(delay.count());
        auto const highest = static_cast<double>(cap_.count());
        double const low = middle * (1.0 - jitter_);
        double high = middle * (1.0 + jitter_);
        if (high > highest) high = highest;
        double const unit = static_cast<double>(detail::random_bits(generator) >> 11) * 0x1.0p-53; // 0 <= unit < 1
        double const x = low + unit * (high - low);
        auto const d = x >= 9.2e18 ? (duration::max)() : duration{static_cast<std::int64_t>(x + 0.5)};
        return d > cap_ ? cap_ : d;
    }

    // Out of the constant expressions: reaching one of these ends the evaluation with the reader at the right line.
    [[noreturn]] static void refuse(char const* what, time_span value, char const* why) {
        throw error(errc::invalid_argument, std::string{"retry "} + what + " of " +
                                                std::to_string(value.value().count()) +
                                                (std::string_view{what} == "attempts" ? " is " : " ms is ") + why);
    }
    [[noreturn]] static void refuse(char const* what, double value, char const* why) {
        throw error(errc::invalid_argument, std::string{"retry "} + what + " of " + number(value) + " is " + why);
    }

    static std::string number(double value) {
        char text[32];
        auto const end = std::to_chars(text, text + sizeof text, value).ptr;
        return {text, end};
    }

    shape shape_;
    double factor_ = 2.0;
    double jitter_ = 0.0;
    std::size_t attempts_ = unlimited;
    duration cap_ = (duration::max)();
    duration total_{0}; // 0: no limit
    duration delays_[longest_list]{};
    std::uint8_t count_ = 0;
};

/// Never again: the first failure is the last. It cannot be refined.
constexpr policy none() { return policy{policy::shape::none}; }

/// The same delay each time, for ever unless attempts() or total() ends it.
/// @throws ax::error invalid_argument where it is negative. 0 counts as a millisecond.
constexpr policy fixed(time_span delay) {
    policy p{policy::shape::fixed};
    p.add(delay);
    return p;
}

/// `first`, then twice (or factor() times) as long each time, for ever unless attempts() or total() ends it.
/// @throws ax::error invalid_argument where it is negative. 0 counts as a millisecond and does not grow.
constexpr policy exponential(time_span first) {
    policy p{policy::shape::exponential};
    p.add(first);
    return p;
}

/// These delays in this order, then no more: as many attempts as delays and the first one. With attempts() of more the
/// last delay is repeated, with fewer the list ends early.
/// @param delays  1 to 16 delays.
/// @throws ax::error invalid_argument where there are none or too many, or one is negative. 0 counts as a millisecond.
constexpr policy list(std::initializer_list<time_span> delays) {
    policy p{policy::shape::list};
    for (auto d : delays) p.add(d);
    if (p.count_ == 0) throw error(errc::invalid_argument, "a retry list without delays");
    p.attempts_ = delays.size() + 1;
    return p;
}

static_assert(retry_policy<policy>);

/// The policy as text for a store: `exp 60000 cap 1800000 jitter 0.1 attempts 4`. Delays are milliseconds. What is as
/// its maker left it is not written, parse() gives back an equal policy, and the locale has no say.
inline std::string to_text(policy const& p) {
    using shape = policy::shape;
    auto const word = [](std::string_view name, std::string const& value) {
        return " " + std::string{name} + " " + value;
    };
    std::string text;
    switch (p.shape_) {
    case shape::none:
        return "none";
    case shape::fixed:
        text = "fixed";
        break;
    case shape::exponential:
        text = "exp";
        break;
    case shape::list:
        text = "list";
        break;
    }
    for (std::size_t i = 0; i < p.count_; ++i) text += " " + std::to_string(p.delays_[i].count());
    if (p.cap_ != (duration::max)()) text += word("cap", std::to_string(p.cap_.count()));
    if (p.factor_ != 2.0) text += word("factor", policy::number(p.factor_));
    if (p.jitter_ != 0.0) text += word("jitter", policy::number(p.jitter_));
    auto const as_made = p.shape_ == shape::list ? p.count_ + std::size_t{1} : unlimited;
    if (p.attempts_ != as_made)
        text += word("attempts", p.attempts_ == unlimited ? "unlimited" : std::to_string(p.attempts_));
    if (p.total_ != duration{0}) text += word("total", std::to_string(p.total_.count()));
    return text;
}

/// The policy that to_text() wrote.
///
/// A word that is not known is passed over with all that belongs to it, up to the next known one: a newer version may
/// have written it.
/// @throws ax::error corrupt, naming what is wrong, where the first word is unknown, or a known one lacks its value or
///         has one that the policy refuses.
inline policy parse(std::string_view text) {
    using shape = policy::shape;
    auto const fail = [text](std::string const& why) -> void {
        throw error(errc::corrupt, "retry policy \"" + std::string{text.substr(0, 200)} + "\": " + why);
    };
    auto rest = text;
    auto const peek = [&rest] {
        auto const begin = rest.find_first_not_of(' ');
        if (begin == rest.npos) return std::string_view{};
        auto const found = rest.substr(begin);
        return found.substr(0, found.find(' '));
    };
    auto const take = [&] {
        auto const word = peek();
        rest.remove_prefix(word.empty() ? rest.size()
                                        : static_cast<std::size_t>(word.data() + word.size() - rest.data()));
        return word;
    };
    auto const read = [&fail](std::string_view name, std::string_view word, auto& value) {
        auto const [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (word.empty()) fail("no value after \"" + std::string{name} + "\"");
        if (problem != std::errc{} || end != word.data() + word.size())
            fail("\"" + std::string{word.substr(0, 50)} + "\" is no value of \"" + std::string{name} + "\"");
    };
    auto const is_number = [](std::string_view word) {
        return !word.empty() && ((word[0] >= '0' && word[0] <= '9') || word[0] == '-');
    };

    auto const head = take();
    if (head == "none") return none();
    bool const listed = head == "list";
    if (!listed && head != "fixed" && head != "exp")
        fail("\"" + std::string{head.substr(0, 50)} + "\" is no kind of policy");

    policy p{listed ? shape::list : head == "exp" ? shape::exponential : shape::fixed};
    try {
        do {
            std::int64_t ms = 0;
            read(head, take(), ms);
            p.add(duration{ms});
        } while (listed && is_number(peek()));
        if (listed) p.attempts_ = p.count_ + std::size_t{1};

        for (auto word = take(); !word.empty(); word = take()) {
            std::int64_t ms = 0;
            double fraction = 0;
            std::size_t n = unlimited;
            if (word == "cap") {
                read(word, take(), ms);
                p = p.cap(duration{ms});
            } else if (word == "factor") {
                read(word, take(), fraction);
                p = p.factor(fraction);
            } else if (word == "jitter") {
                read(word, take(), fraction);
                p = p.jitter(fraction);
            } else if (word == "attempts") {
                if (auto const value = take(); value != "unlimited") read(word, value, n);
                p = p.attempts(n);
            } else if (word == "total") {
                read(word, take(), ms);
                p = p.total(duration{ms});
            } // else: of a newer version
        }
    } catch (error const& e) {
        if (e.kind() == errc::corrupt) throw;
        fail(e.what());
    }
    return p;
}

/// Holds any retry policy: one of ours as a value, a custom one shared between its copies. Options take it, so that
/// both can be written there.
/// Threads: as retry_policy says, next_delay() may be called from several threads at once.
class any_policy {
  public:
    /// The default policy.
    constexpr any_policy() noexcept = default;

    constexpr any_policy(policy p) noexcept : value_(p) {}

    template <class P>
        requires(!std::same_as<std::remove_cvref_t<P>, any_policy> && !std::same_as<std::remove_cvref_t<P>, policy> &&
                 retry_policy<std::remove_cvref_t<P>> && std::constructible_from<std::remove_cvref_t<P>, P>)
    any_policy(P&& custom) : custom_(std::make_shared<model<std::remove_cvref_t<P>>>(std::forward<P>(custom))) {}

    /// The time until the next attempt, at least a millisecond, or nothing where there is to be none.
    template <bit_generator Generator>
    std::optional<duration> next_delay(retry_state const& state, Generator& generator) const {
        if (!custom_) return value_.next_delay(state, generator);
        std::optional<duration> delay;
        if constexpr (std::same_as<Generator, random_source>) {
            delay = custom_->next_delay(state, generator);
        } else {
            random_source random{generator};
            delay = custom_->next_delay(state, random);
        }
        if (delay && *delay < duration{1}) delay = duration{1};
        return delay;
    }

    /// The policy where it is one of ours, which a store can keep as text; else nullptr. It lives as long as this
    /// object.
    policy const* plain() const noexcept { return custom_ ? nullptr : &value_; }

  private:
    struct base {
        virtual std::optional<duration> next_delay(retry_state const& state, random_source& random) const = 0;
        virtual ~base() = default;
    };

    template <class P>
    struct model final : base {
        template <class From>
        explicit model(From&& from) : custom(std::forward<From>(from)) {}
        std::optional<duration> next_delay(retry_state const& state, random_source& random) const override {
            return custom.next_delay(state, random);
        }
        P custom;
    };

    policy value_;
    std::shared_ptr<base const> custom_;
};

static_assert(retry_policy<any_policy>);

} // namespace ax::retry

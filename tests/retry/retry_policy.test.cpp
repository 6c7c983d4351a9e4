// SPDX-License-Identifier: MIT
#include "ax/retry/retry_policy.hpp"

#include "support/catch.hpp"

#include <array>
#include <chrono>
#include <clocale>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace std::chrono_literals;
namespace retry = ax::retry;
using ax::duration;

namespace {

/// A generator that always gives the same number: 0 is the lower end of the jitter, all ones the upper.
struct constant_source {
    using result_type = std::uint64_t;
    static constexpr result_type(min)() { return 0; }
    static constexpr result_type(max)() { return ~result_type{0}; }
    constexpr result_type operator()() {
        ++draws;
        return value;
    }
    result_type value = 0;
    int draws = 0;
};

constant_source lowest() { return {0}; }
constant_source highest() { return {~std::uint64_t{0}}; }

template <class Policy>
std::vector<duration> delays(Policy const& policy, std::size_t limit = 50) {
    constant_source unused;
    std::vector<duration> found;
    for (std::size_t n = 1; n <= limit; ++n) {
        auto const delay = policy.next_delay({n, 0ms}, unused);
        if (!delay) break;
        found.push_back(*delay);
    }
    return found;
}

template <class Call>
std::string refusal(Call call, ax::errc code = ax::errc::invalid_argument) {
    try {
        call();
    } catch (ax::error const& e) {
        CHECK(e.kind() == code);
        return e.what();
    }
    return "accepted";
}

using ms_list = std::vector<duration>;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

TEST_CASE("none never retries", "[retry]") {
    CHECK(delays(retry::none()).empty());
    CHECK(retry::none().max_attempts() == 1);
}

TEST_CASE("fixed retries after the same delay each time", "[retry]") {
    CHECK(delays(retry::fixed(5s).attempts(4)) == ms_list{5s, 5s, 5s});
    CHECK(delays(retry::fixed(5s), 1000).size() == 1000); // no limit unless one is given
}

TEST_CASE("exponential doubles up to its cap", "[retry]") {
    CHECK(delays(retry::exponential(1min).cap(10min).attempts(7)) == ms_list{1min, 2min, 4min, 8min, 10min, 10min});
    CHECK(delays(retry::exponential(1s).factor(1.5).attempts(5)) == ms_list{1000ms, 1500ms, 2250ms, 3375ms});
    CHECK(delays(retry::exponential(1s).factor(10).cap(1h).attempts(6)) == ms_list{1s, 10s, 100s, 1000s, 1h});
    CHECK(delays(retry::exponential(1s).factor(1).attempts(4)) == ms_list{1s, 1s, 1s});
    CHECK(delays(retry::exponential(1s).factor(1.1).attempts(3)) == ms_list{1000ms, 1100ms});
}

TEST_CASE("a cap below the first delay shortens it", "[retry]") {
    CHECK(delays(retry::exponential(1min).cap(1s).attempts(3)) == ms_list{1s, 1s});
    CHECK(delays(retry::fixed(1min).cap(1s).attempts(3)) == ms_list{1s, 1s});
    CHECK(delays(retry::list({1s, 1min}).cap(2s)) == ms_list{1s, 2s});
}

TEST_CASE("list gives its delays in order and then no more", "[retry]") {
    auto const list = retry::list({1s, 10s, 5s});
    CHECK(delays(list) == ms_list{1s, 10s, 5s});
    CHECK(list.max_attempts() == 4);
    CHECK(delays(list.attempts(3)) == ms_list{1s, 10s});
    CHECK(delays(list.attempts(6)) == ms_list{1s, 10s, 5s, 5s, 5s}); // attempts say that it goes on
    CHECK(delays(list.attempts(retry::unlimited), 99).size() == 99);
    CHECK(delays(retry::list({1s})) == ms_list{1s});
}

TEST_CASE("attempts count the first run", "[retry]") {
    CHECK(delays(retry::fixed(1s).attempts(1)).empty());
    CHECK(delays(retry::fixed(1s).attempts(2)) == ms_list{1s});
    CHECK(delays(retry::policy{}).size() == 3);
}

TEST_CASE("the default policy is exponential with cap, jitter and four attempts", "[retry]") {
    CHECK(retry::policy{} == retry::exponential(1min).cap(30min).jitter(0.1).attempts(4));
    CHECK(*retry::any_policy{}.plain() == retry::policy{});
}

TEST_CASE("total ends the retries before one would start too late", "[retry]") {
    auto const policy = retry::fixed(10s).total(1min);
    constant_source unused;
    CHECK(policy.next_delay({1, 0ms}, unused) == 10s);
    CHECK(policy.next_delay({5, 50s}, unused) == 10s); // starts exactly at the limit
    CHECK_FALSE(policy.next_delay({5, 50s + 1ms}, unused).has_value());
    CHECK_FALSE(policy.next_delay({5, 2min}, unused).has_value());
    CHECK_FALSE(policy.next_delay({5, (duration::max)()}, unused).has_value());
    CHECK(policy.next_delay({1, -1h}, unused) == 10s); // the clock was stepped back
    CHECK(policy.next_delay({1, (duration::min)()}, unused) == 10s);
    CHECK_FALSE(retry::fixed(2min).total(1min).next_delay({1, 0ms}, unused).has_value());
}

TEST_CASE("total holds for the delay with its jitter", "[retry]") {
    auto const policy = retry::fixed(10s).jitter(0.5).total(12s);
    auto late = highest();
    auto early = lowest();
    CHECK_FALSE(policy.next_delay({1, 0ms}, late).has_value());
    CHECK(policy.next_delay({1, 0ms}, early) == 5s);
}

TEST_CASE("no failure counts as one", "[retry]") {
    constant_source unused;
    CHECK(retry::exponential(1s).next_delay({0, 0ms}, unused) == 1s);
    CHECK_FALSE(retry::exponential(1s).attempts(1).next_delay({0, 0ms}, unused).has_value());
    CHECK(retry::list({3s, 4s}).base_delay(0) == 3s);
}

TEST_CASE("delays neither overflow nor shrink, however many attempts there are", "[retry]") {
    auto const policy = GENERATE(
        retry::exponential(1ms), retry::exponential(1min), retry::exponential(1min).cap(30min),
        retry::exponential(7ms).factor(1.0000001), retry::exponential(3ms).factor(1.001),
        retry::exponential(1h).factor(1e300), retry::exponential(ax::duration::max()),
        retry::exponential(ax::duration{(1LL << 53) + 1}).factor(1.0000000000000003),
        retry::exponential(ax::duration::max() - 1ms).cap(ax::duration::max()), retry::exponential(0ms),
        retry::exponential(13ms).factor(1.7).cap(ax::duration::max() - 1ms), retry::fixed(ax::duration::max()));
    CAPTURE(retry::to_text(policy));
    duration before{0};
    bool rising = true;
    constant_source unused;
    for (std::size_t n = 1; n <= 2'000; ++n) {
        auto const delay = policy.next_delay({n, 0ms}, unused);
        REQUIRE(delay.has_value());
        rising = rising && *delay >= before && *delay >= 1ms;
        before = *delay;
    }
    CHECK(rising);
    for (std::size_t n : {std::size_t{10'000}, std::size_t{65'536}, std::size_t{65'537}, retry::unlimited - 1}) {
        CAPTURE(n);
        auto const delay = policy.next_delay({n, 0ms}, unused);
        REQUIRE(delay.has_value());
        CHECK(*delay >= before);
        before = *delay;
    }
}

TEST_CASE("a factor of nearly one costs a bounded time, whatever the number of failures", "[retry]") {
    auto const policy = retry::exponential(1h).factor(1.000001);
    CHECK(policy.base_delay(60'000) < policy.base_delay(65'537));
    CHECK(policy.base_delay(65'537) == policy.base_delay(70'000));
    CHECK(retry::exponential(1h).factor(1.0000000000000003).base_delay(retry::unlimited) == 1h);
}

TEST_CASE("exponential equals repeated doubling of an integer", "[retry]") {
    std::mt19937_64 random{20240229};
    for (int round = 0; round < 200; ++round) {
        auto const first = static_cast<std::int64_t>(random() % 100'000 + 1);
        auto const cap = static_cast<std::int64_t>(random() % 100'000'000 + 1);
        CAPTURE(round, first, cap);
        auto const policy = retry::exponential(duration{first}).cap(duration{cap});
        std::int64_t expected = first;
        for (std::size_t n = 1; n < 40; ++n) {
            CHECK(policy.base_delay(n).count() == (std::min)(expected, cap));
            if (expected < cap) expected *= 2;
        }
    }
}

TEST_CASE("jitter spreads a delay to both sides by its fraction", "[retry]") {
    auto const policy = retry::fixed(100s).jitter(0.1);
    auto low = lowest();
    auto high = highest();
    CHECK(policy.next_delay({1, 0ms}, low) == 90s);
    CHECK(policy.next_delay({1, 0ms}, high) == 110s);

    std::mt19937_64 random{7};
    std::array<int, 20> buckets{};
    for (int i = 0; i < 20'000; ++i) {
        auto const delay = *policy.next_delay({1, 0ms}, random);
        REQUIRE(delay >= 90s);
        REQUIRE(delay <= 110s);
        ++buckets[static_cast<std::size_t>((std::min)((delay - 90s) / 1s, std::int64_t{19}))];
    }
    for (int count : buckets) { // 1,000 expected, standard deviation about 31
        CHECK(count > 850);
        CHECK(count < 1'150);
    }
}

TEST_CASE("a crowd at the cap stays spread and stays below it", "[retry]") {
    auto const policy = retry::exponential(1min).cap(30min).jitter(0.2);
    std::mt19937_64 random{11};
    std::set<duration> seen;
    int in_upper_half = 0;
    for (int i = 0; i < 1'000; ++i) {
        auto const delay = *policy.next_delay({20, 0ms}, random);
        REQUIRE(delay >= 24min);
        REQUIRE(delay <= 30min);
        in_upper_half += delay > 27min;
        seen.insert(delay);
    }
    CHECK(seen.size() > 990);
    CHECK(in_upper_half > 430);
    CHECK(in_upper_half < 570);
}

TEST_CASE("with any jitter a delay is within one millisecond and the cap", "[retry]") {
    std::mt19937_64 random{3};
    for (int round = 0; round < 5'000; ++round) {
        auto const first = static_cast<std::int64_t>(random() >> (random() % 63 + 1));
        auto const cap = static_cast<std::int64_t>(random() >> (random() % 63 + 1));
        auto const fraction = static_cast<double>(random() % 101) / 100.0;
        auto const policy = retry::exponential(duration{first}).cap(duration{cap > 0 ? cap : 1}).jitter(fraction);
        CAPTURE(round, retry::to_text(policy));
        auto const delay = policy.next_delay({static_cast<std::size_t>(random() % 100), 0ms}, random);
        REQUIRE(delay.has_value());
        CHECK(*delay >= 1ms);
        CHECK(delay->count() <= (cap > 0 ? cap : 1));
    }
}

TEST_CASE("no randomness is drawn where there is no jitter, and one number where there is", "[retry]") {
    constant_source source;
    (void)retry::fixed(1s).next_delay({1, 0ms}, source);
    (void)retry::fixed(1s).jitter(0).next_delay({1, 0ms}, source);
    CHECK(source.draws == 0);
    (void)retry::fixed(1s).jitter(0.5).next_delay({1, 0ms}, source);
    CHECK(source.draws == 1);
}

TEST_CASE("every generator of the standard can be used for jitter", "[retry]") {
    auto const policy = retry::fixed(100s).jitter(1);
    auto const mean = [&](auto generator) {
        double sum = 0;
        for (int i = 0; i < 4'000; ++i) sum += static_cast<double>(policy.next_delay({1, 0ms}, generator)->count());
        return sum / 4'000;
    };
    // even over 0 to 200 s: 57.7 s of deviation each, 0.9 s for the mean
    CHECK(std::abs(mean(std::mt19937{1}) - 100'000) < 4'000);
    CHECK(std::abs(mean(std::mt19937_64{1}) - 100'000) < 4'000);
    CHECK(std::abs(mean(std::minstd_rand{1}) - 100'000) < 4'000);
    CHECK(std::abs(mean(std::ranlux24{1}) - 100'000) < 4'000);
    CHECK(std::abs(mean(std::ranlux48{1}) - 100'000) < 4'000);
}

TEST_CASE("64 random bits are put together from a generator of any range", "[retry]") {
    struct bytes {
        using result_type = std::uint8_t;
        static constexpr result_type(min)() { return 10; }
        static constexpr result_type(max)() { return 10 + 129; } // 7 whole bits and two values too many
        result_type operator()() { return next++ % 130 + 10; }
        std::uint8_t next = 0;
    };
    bytes few{126};
    // 126 and 127 are taken, 128 and 129 are passed over, then 0 to 7: ten pieces of 7 bits, of which 64 are kept
    std::uint64_t expected = 0;
    for (unsigned piece : {126u, 127u, 0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) expected = (expected << 7) | piece;
    CHECK(ax::detail::random_bits(few) == expected);

    std::mt19937 a{5};
    std::mt19937 b{5};
    auto const high = static_cast<std::uint64_t>(b()) << 32;
    CHECK(ax::detail::random_bits(a) == (high | b()));
}

TEST_CASE("a bad argument is refused and named", "[retry]") {
    CHECK(refusal([] { (void)retry::fixed(-5ms); }) == "retry delay of -5 ms is negative: invalid argument");
    CHECK(refusal([] { (void)retry::exponential(-1s); }) == "retry delay of -1000 ms is negative: invalid argument");
    CHECK(refusal([] { (void)retry::list({1s, -1ms}); }) == "retry delay of -1 ms is negative: invalid argument");
    CHECK(refusal([] { (void)retry::list({}); }) == "a retry list without delays: invalid argument");
    CHECK(refusal([] {
              (void)retry::list({1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s});
          }) == "a retry list of more than 16 delays: invalid argument");
    auto const p = retry::exponential(1s);
    CHECK(refusal([&] { (void)p.jitter(1.5); }) == "retry jitter of 1.5 is not within 0 and 1: invalid argument");
    CHECK(refusal([&] { (void)p.jitter(-0.1); }) == "retry jitter of -0.1 is not within 0 and 1: invalid argument");
    CHECK(refusal([&] { (void)p.jitter(not_a_number); }) ==
          "retry jitter of nan is not within 0 and 1: invalid argument");
    CHECK(refusal([&] { (void)p.factor(0.5); }) ==
          "retry factor of 0.5 is not a finite number of at least 1: invalid argument");
    CHECK(refusal([&] { (void)p.factor(not_a_number); }) != "accepted");
    CHECK(refusal([&] { (void)p.factor(infinity); }) != "accepted");
    CHECK(refusal([&] { (void)p.attempts(0); }) == "retry attempts of 0 is less than 1: invalid argument");
    CHECK(refusal([&] { (void)p.cap(0ms); }) == "retry cap of 0 ms is less than a millisecond: invalid argument");
    CHECK(refusal([&] { (void)p.cap(-1s); }) != "accepted");
    CHECK(refusal([&] { (void)p.total(0s); }) == "retry total of 0 ms is less than a millisecond: invalid argument");
    CHECK(refusal([&] { (void)p.total(-1s); }) != "accepted");
    CHECK(refusal([] { (void)retry::fixed(1s).factor(2); }) ==
          "retry factor of 2 is for exponential() only: invalid argument");
    CHECK(refusal([] { (void)retry::none().attempts(3); }) == "retry::none() cannot be refined: invalid argument");
    CHECK(refusal([&] { (void)p.jitter(0).jitter(1); }) == "accepted");
}

TEST_CASE("a list of sixteen delays is not too long", "[retry]") {
    auto const list = retry::list({1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s, 13s, 14s, 15s, 16s});
    CHECK(delays(list).size() == 16);
    CHECK(delays(list).back() == 16s);
}

TEST_CASE("a policy is read from left to right and refining leaves it as it was", "[retry]") {
    auto const first = retry::fixed(1s);
    auto const second = first.attempts(3);
    CHECK(first.max_attempts() == retry::unlimited);
    CHECK(second.attempts(5).max_attempts() == 5);
    CHECK(second.max_attempts() == 3);
}

TEST_CASE("a policy is a constant where its arguments are", "[retry]") {
    static constexpr auto policy = retry::exponential(1min).cap(30min).factor(3).jitter(0.5).attempts(5).total(24h);
    static constexpr auto first = [] {
        constant_source source{};
        return policy.next_delay({1, 0ms}, source);
    }();
    STATIC_REQUIRE(first == duration{30'000});
    STATIC_REQUIRE(retry::list({1s, 2s}).base_delay(2) == duration{2'000});
    STATIC_REQUIRE(retry::none().max_attempts() == 1);
}

TEST_CASE("the text of a policy is short and exact", "[retry]") {
    CHECK(to_text(retry::policy{}) == "exp 60000 cap 1800000 jitter 0.1 attempts 4");
    CHECK(to_text(retry::none()) == "none");
    CHECK(to_text(retry::fixed(30s)) == "fixed 30000");
    CHECK(to_text(retry::list({1s, 1min})) == "list 1000 60000");
    CHECK(to_text(retry::list({1s, 1min}).attempts(3)) == "list 1000 60000"); // as it was made
    CHECK(to_text(retry::list({1s, 1min}).attempts(9)) == "list 1000 60000 attempts 9");
    CHECK(to_text(retry::list({1s}).attempts(retry::unlimited)) == "list 1000 attempts unlimited");
    CHECK(to_text(retry::exponential(1s).factor(1.5).jitter(0.25).total(1h)) ==
          "exp 1000 factor 1.5 jitter 0.25 total 3600000");
    CHECK(to_text(retry::fixed(1s).jitter(-0.0)) == "fixed 1000");
}

TEST_CASE("every policy comes back from its text", "[retry]") {
    std::mt19937_64 random{99};
    auto const delay = [&] { return duration{static_cast<std::int64_t>(random() >> (random() % 62 + 1))}; };
    auto const some = [&] { return random() % 2 == 0; };
    for (int round = 0; round < 2'000; ++round) {
        auto p = retry::none();
        switch (random() % 4) {
        case 0: break;
        case 1: p = retry::fixed(delay()); break;
        case 2:
            p = retry::exponential(delay());
            if (some()) p = p.factor(1.0 + static_cast<double>(random() >> 40) / 1'000.0);
            break;
        default: p = retry::list({delay(), delay(), delay()}); break;
        }
        if (!(p == retry::none())) {
            if (some()) p = p.cap(delay() + 1ms);
            if (some()) p = p.jitter(static_cast<double>(random() >> 11) * 0x1p-53);
            if (some()) p = p.attempts(static_cast<std::size_t>(random() % 100 + 1));
            if (some()) p = p.total(delay() + 1ms);
        }
        auto const text = to_text(p);
        CAPTURE(round, text);
        CHECK(retry::parse(text) == p);
        CHECK(to_text(retry::parse(text)) == text);
    }
}

TEST_CASE("a policy is parsed with its words in any order and with any spaces", "[retry]") {
    CHECK(retry::parse("  exp  60000   attempts 4 jitter 0.1 cap 1800000 ") == retry::policy{});
    CHECK(retry::parse("exp 60000 cap 1800000 factor 2 jitter 0.1 attempts 4") == retry::policy{});
    CHECK(retry::parse("fixed 1000 attempts unlimited") == retry::fixed(1s));
    CHECK(retry::parse("none") == retry::none());
}

TEST_CASE("words of a newer version are passed over", "[retry]") {
    CHECK(retry::parse("exp 60000 cap 1800000 window 9 to 17 jitter 0.1 colour blue attempts 4 new") ==
          retry::policy{});
    CHECK(retry::parse("list 1000 2000 spread 5 attempts 7") == retry::list({1s, 2s}).attempts(7));
    CHECK(retry::parse("none until 5") == retry::none());
}

TEST_CASE("a damaged text is refused and what is wrong is named", "[retry]") {
    auto const message = [](std::string const& text) {
        return refusal([&] { (void)retry::parse(text); }, ax::errc::corrupt);
    };
    CHECK(message("") == "retry policy \"\": \"\" is no kind of policy: stored data is corrupt");
    CHECK(message("bogus 1") == "retry policy \"bogus 1\": \"bogus\" is no kind of policy: stored data is corrupt");
    CHECK(message("exp") == "retry policy \"exp\": no value after \"exp\": stored data is corrupt");
    CHECK(message("exp 1000 cap") == "retry policy \"exp 1000 cap\": no value after \"cap\": stored data is corrupt");
    CHECK(message("exp 1000 cap 5x").find("\"5x\" is no value of \"cap\"") != std::string::npos);
    CHECK(message("exp 1000 jitter 2").find("retry jitter of 2 is not within 0 and 1") != std::string::npos);
    for (auto text : {"exp -1", "exp 99999999999999999999", "exp 1.5", "fixed x", "list", "list x", "list 1 -2",
                      "exp 1000 jitter nan", "exp 1000 jitter 0,5", "exp 1000 factor inf", "exp 1000 attempts 0",
                      "exp 1000 attempts -1", "exp 1000 attempts many", "exp 1000 total 0", "fixed 1000 factor 2",
                      "list 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "EXP 1000", "exp\t1000"}) {
        CAPTURE(text);
        CHECK(message(text) != "accepted");
    }
    CHECK(message(std::string(100'000, 'x')).size() < 500); // hostile text does not fill the log
}

TEST_CASE("the locale has no say in the text of a policy", "[retry]") {
    std::string const before = std::setlocale(LC_ALL, nullptr);
    for (auto name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) { // those that the machine has
        std::setlocale(LC_ALL, name);
        CHECK(to_text(retry::fixed(1s).jitter(0.5)) == "fixed 1000 jitter 0.5");
        CHECK(retry::parse("fixed 1000 jitter 0.5") == retry::fixed(1s).jitter(0.5));
    }
    std::setlocale(LC_ALL, before.c_str());
}

namespace {

struct fibonacci {
    std::optional<duration> next_delay(retry::retry_state const& state, retry::random_source& random) const {
        if (state.failures > 5) return std::nullopt;
        std::int64_t a = 0;
        std::int64_t b = 1;
        for (std::size_t i = 1; i < state.failures; ++i) {
            auto const next = a + b;
            a = b;
            b = next;
        }
        (void)random();
        return duration{b * scale};
    }
    std::int64_t scale = 1000;
};

struct options_like {
    retry::any_policy retry = {};
};

} // namespace

TEST_CASE("any_policy holds our policies and custom ones alike", "[retry]") {
    options_like const ours{.retry = retry::fixed(2s).attempts(3)};
    CHECK(delays(ours.retry) == ms_list{2s, 2s});
    REQUIRE(ours.retry.plain() != nullptr);
    CHECK(*ours.retry.plain() == retry::fixed(2s).attempts(3));

    options_like const custom{.retry = fibonacci{}};
    CHECK(delays(custom.retry) == ms_list{1s, 1s, 2s, 3s, 5s});
    CHECK(custom.retry.plain() == nullptr);

    auto copy = custom.retry;
    CHECK(delays(copy) == ms_list{1s, 1s, 2s, 3s, 5s});
    copy = retry::none();
    CHECK(delays(copy).empty());
    CHECK(delays(options_like{}.retry).size() == 3);
}

TEST_CASE("a custom policy draws from the generator that was passed in", "[retry]") {
    retry::any_policy const policy = fibonacci{};
    constant_source source;
    (void)policy.next_delay({1, 0ms}, source);
    CHECK(source.draws == 1);
    retry::random_source erased{source};
    (void)policy.next_delay({1, 0ms}, erased);
    CHECK(source.draws == 2);
}

TEST_CASE("a custom policy cannot make a retry that is not later", "[retry]") {
    retry::any_policy const zero = fibonacci{.scale = 0};
    retry::any_policy const negative = fibonacci{.scale = -1};
    constant_source source;
    CHECK(zero.next_delay({1, 0ms}, source) == 1ms);
    CHECK(negative.next_delay({1, 0ms}, source) == 1ms);
}

TEST_CASE("a custom policy need not be copyable", "[retry]") {
    struct unique {
        std::optional<duration> next_delay(retry::retry_state const&, retry::random_source&) const { return *delay; }
        std::unique_ptr<duration> delay;
    };
    retry::any_policy const policy = unique{std::make_unique<duration>(4s)};
    auto const copy = policy;
    constant_source source;
    CHECK(copy.next_delay({1, 0ms}, source) == 4s);
}

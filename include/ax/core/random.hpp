// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif
#endif

namespace ax {

/// A small, fast generator for jitter and spreading, not for secrets. Models std::uniform_random_bit_generator.
///
/// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (SplitMix64).
class splitmix64 {
  public:
    using result_type = std::uint64_t;

    explicit constexpr splitmix64(std::uint64_t seed) noexcept : state_(seed) {}

    static constexpr result_type(min)() noexcept { return 0; }
    static constexpr result_type(max)() noexcept { return ~result_type{0}; }

    constexpr result_type operator()() noexcept {
        state_ += 0x9E3779B97F4A7C15U;
        auto z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31U);
    }

  private:
    std::uint64_t state_;
};

/// A number that no other process and no earlier call has: drawn from the system's randomness, never 0.
/// Threads: safe. A forked child draws other numbers than its parent.
inline std::uint64_t system_random() {
    std::uint64_t value = 0;
#if defined(__unix__) || defined(__APPLE__)
    if (::getentropy(&value, sizeof value) == 0 && value != 0) return value;
    auto const salt = static_cast<std::uint64_t>(::getpid());
#else
    std::uint64_t const salt = 0;
#endif
    // No system randomness (a very old kernel): time, process and an address still differ between processes.
    auto const address = reinterpret_cast<std::uintptr_t>(&value);
    splitmix64 mix{static_cast<std::uint64_t>(std::time(nullptr)) ^ (salt << 32U) ^ address};
    do {
        value = mix();
    } while (value == 0);
    return value;
}

} // namespace ax

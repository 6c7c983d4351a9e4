// SPDX-License-Identifier: MIT
#pragma once

#include "ax/core/error.hpp"

#include <concepts>
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace ax {

template <class Signature>
class unique_function;

namespace detail {

template <class T>
inline constexpr bool is_unique_function = false;
template <class Signature>
inline constexpr bool is_unique_function<unique_function<Signature>> = true;

template <class F, class R, class... Args>
concept callable = requires(F& f, Args&&... args) {
    requires std::is_void_v<R> || std::is_convertible_v<decltype(f(static_cast<Args&&>(args)...)), R>;
    f(static_cast<Args&&>(args)...);
};

} // namespace detail

/// Owns one callable of any type, which need not be copyable.
///
/// What fits into 48 bytes and moves without throwing lives inside the object; anything else is allocated once, when it
/// is put in. std::function cannot hold what is not copyable, std::move_only_function is younger than the oldest
/// supported compiler, and <functional> costs more to include than this.
///
/// Complexity: moving and calling are O(1) and do not allocate.
/// Threads:    distinct objects may be used at once; one object by one thread at a time.
template <class R, class... Args>
class unique_function<R(Args...)> {
  public:
    static constexpr std::size_t inline_size = 48;

    unique_function() noexcept = default;
    unique_function(std::nullptr_t) noexcept {}

    /// Takes over `f`. A null pointer to a function makes an empty object.
    template <class F, class D = std::decay_t<F>>
        requires(!detail::is_unique_function<D> && detail::callable<D, R, Args...> && std::constructible_from<D, F>)
    unique_function(F&& f) {
        if constexpr (std::is_pointer_v<std::remove_cvref_t<F>>) { // a function itself is never null
            if (f == nullptr) return;
        }
        if constexpr (fits_inline<D>) {
            ::new (static_cast<void*>(buffer_)) D(std::forward<F>(f));
            invoke_ = [](void* at, Args&&... args) -> R { return call<D>(at, static_cast<Args&&>(args)...); };
            manage_ = &manage_inline<D>;
        } else {
            void* const owned = new D(std::forward<F>(f));
            std::memcpy(buffer_, &owned, sizeof owned);
            invoke_ = [](void* at, Args&&... args) -> R { return call<D>(pointee(at), static_cast<Args&&>(args)...); };
            manage_ = &manage_pointer<D>;
        }
    }

    unique_function(unique_function&& other) noexcept { take(other); }

    unique_function& operator=(unique_function&& other) noexcept {
        // The old callable goes last: its destructor may look at this object, which then already holds the new one.
        unique_function taken{std::move(other)};
        swap(taken);
        return *this;
    }

    unique_function(unique_function const&) = delete;
    unique_function& operator=(unique_function const&) = delete;

    ~unique_function() {
        if (manage_) manage_(buffer_, nullptr);
    }

    /// Calls what it holds; that throws what it throws.
    /// @throws error  invalid_argument where it holds nothing.
    R operator()(Args... args) { return invoke_(buffer_, static_cast<Args&&>(args)...); }

    explicit operator bool() const noexcept { return invoke_ != &call_nothing; }

    void swap(unique_function& other) noexcept {
        unique_function third;
        third.take(other);
        other.take(*this);
        take(third);
    }

    friend void swap(unique_function& a, unique_function& b) noexcept { a.swap(b); }
    friend bool operator==(unique_function const& f, std::nullptr_t) noexcept { return !f; }

  private:
    using invoker = R (*)(void* at, Args&&... args);
    using manager = void (*)(void* from, void* to) noexcept; ///< moves to `to`, or destroys where that is null

    template <class D>
    static constexpr bool
        fits_inline = sizeof(D) <= inline_size &&
                      alignof(D) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<D>;

    template <class D>
    static R call(void* at, Args&&... args) {
        if constexpr (std::is_void_v<R>) {
            (*static_cast<D*>(at))(static_cast<Args&&>(args)...);
        } else {
            return (*static_cast<D*>(at))(static_cast<Args&&>(args)...);
        }
    }

    static R call_nothing(void*, Args&&...) { throw error{errc::invalid_argument, "call of an empty unique_function"}; }

    static void* pointee(void* at) noexcept {
        void* owned = nullptr;
        std::memcpy(&owned, at, sizeof owned);
        return owned;
    }

    template <class D>
    static void manage_inline(void* from, void* to) noexcept {
        D& held = *static_cast<D*>(from);
        if (to) ::new (to) D(std::move(held));
        held.~D();
    }

    template <class D>
    static void manage_pointer(void* from, void* to) noexcept {
        if (to) {
            std::memcpy(to, from, sizeof(void*));
        } else {
            delete static_cast<D*>(pointee(from));
        }
    }

    /// Takes the callable of `other`, which becomes empty. *this must be empty.
    void take(unique_function& other) noexcept {
        // Copying all the bytes of what is trivial would save this call, but GCC then warns of uninitialised bytes
        // (-O3).
        if (other.manage_) other.manage_(other.buffer_, buffer_);
        invoke_ = std::exchange(other.invoke_, &call_nothing);
        manage_ = std::exchange(other.manage_, nullptr);
    }

    alignas(std::max_align_t) std::byte buffer_[inline_size];
    invoker invoke_ = &call_nothing;
    manager manage_ = nullptr;
};

} // namespace ax

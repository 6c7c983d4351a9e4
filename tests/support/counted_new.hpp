// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

// Replaces operator new for the whole program and counts what is taken. One file of a program may include it. Every
// form is replaced: memory that one form gave and another takes back stays within the pair.
namespace ax_test {

inline std::atomic<std::size_t> bytes_held{0};
inline std::atomic<std::size_t> allocations{0};
inline constexpr auto unlimited = (std::numeric_limits<std::int64_t>::max)();
inline std::atomic<std::int64_t> allocations_left{unlimited};

/// Before each block lie its size and the beginning of what malloc gave.
struct allocation_header {
    void* raw;
    std::size_t size;
};

inline void* counted_new(std::size_t size, std::size_t alignment) {
    if (allocations_left.load() != unlimited && allocations_left.fetch_sub(1) <= 0) throw std::bad_alloc();
    alignment = (std::max)(alignment, alignof(std::max_align_t));
    auto* const raw = static_cast<char*>(std::malloc(size + alignment + sizeof(allocation_header)));
    if (raw == nullptr) throw std::bad_alloc();
    auto const first = reinterpret_cast<std::uintptr_t>(raw) + sizeof(allocation_header);
    auto* const block = raw + sizeof(allocation_header) + (alignment - first % alignment) % alignment;
    ::new (block - sizeof(allocation_header)) allocation_header{raw, size};
    bytes_held += size;
    ++allocations;
    return block;
}

inline void counted_delete(void* block) noexcept {
    if (block == nullptr) return;
    auto const* const h = reinterpret_cast<allocation_header*>(static_cast<char*>(block) - sizeof(allocation_header));
    bytes_held -= h->size;
    std::free(h->raw);
}

} // namespace ax_test

void* operator new(std::size_t size) { return ax_test::counted_new(size, 0); }
void* operator new[](std::size_t size) { return ax_test::counted_new(size, 0); }
void* operator new(std::size_t size, std::align_val_t a) {
    return ax_test::counted_new(size, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t size, std::align_val_t a) {
    return ax_test::counted_new(size, static_cast<std::size_t>(a));
}
void* operator new(std::size_t size, std::nothrow_t const&) noexcept {
    try {
        return ax_test::counted_new(size, 0);
    } catch (std::bad_alloc const&) {
        return nullptr;
    }
}
void* operator new[](std::size_t size, std::nothrow_t const& tag) noexcept { return operator new(size, tag); }
void operator delete(void* p, std::nothrow_t const&) noexcept { ax_test::counted_delete(p); }
void operator delete[](void* p, std::nothrow_t const&) noexcept { ax_test::counted_delete(p); }
void operator delete(void* p) noexcept { ax_test::counted_delete(p); }
void operator delete[](void* p) noexcept { ax_test::counted_delete(p); }
void operator delete(void* p, std::size_t) noexcept { ax_test::counted_delete(p); }
void operator delete[](void* p, std::size_t) noexcept { ax_test::counted_delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { ax_test::counted_delete(p); }
void operator delete[](void* p, std::align_val_t) noexcept { ax_test::counted_delete(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { ax_test::counted_delete(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { ax_test::counted_delete(p); }

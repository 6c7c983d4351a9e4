// SPDX-License-Identifier: MIT
#include "ax/core/unique_function.hpp"

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace {

using action = ax::unique_function<void()>;

static_assert(std::is_nothrow_move_constructible_v<action>);
static_assert(std::is_nothrow_move_assignable_v<action>);
static_assert(!std::is_copy_constructible_v<action>);
static_assert(sizeof(action) == 64);
static_assert(!std::is_constructible_v<action, int>);
static_assert(!std::is_constructible_v<ax::unique_function<int()>, std::string (*)()>);
static_assert(std::is_constructible_v<ax::unique_function<void()>, int (*)()>); // the result is dropped
static_assert(!std::is_constructible_v<action, ax::unique_function<int()>>);    // an empty one would look full

/// Counts what lives and what moves, in an object of Size bytes.
template <std::size_t Size>
struct counted {
    static inline int alive = 0;
    static inline int moves = 0;
    counted() { ++alive; }
    counted(counted&& other) noexcept : padding(other.padding) { ++alive, ++moves; }
    counted& operator=(counted&&) = delete;
    ~counted() { --alive; }
    int operator()() { return ++padding[0]; }
    std::array<unsigned char, Size> padding{};
};

struct throwing_move {
    throwing_move() = default;
    throwing_move(throwing_move const&) = default; // not noexcept, on purpose
    throwing_move& operator=(throwing_move const&) = delete;
    int operator()() const { return 5; }
    std::string text = "x";
};

struct alignas(64) aligned {
    bool operator()() const { return reinterpret_cast<std::uintptr_t>(this) % 64 == 0; }
};

int twice(int x) { return 2 * x; }

template <std::size_t Size>
void check_life_of_counted(bool moves_with_its_holder) {
    using type = counted<Size>;
    type::moves = 0;
    {
        ax::unique_function<int()> f{type{}};
        CHECK(type::alive == 1);
        CHECK(f() == 1);
        auto const before = type::moves;
        ax::unique_function<int()> g{std::move(f)};
        CHECK(type::moves == before + (moves_with_its_holder ? 1 : 0));
        CHECK_FALSE(f);
        CHECK(g() == 2);
        ax::unique_function<int()> h{type{}};
        CHECK(type::alive == 2);
        h = std::move(g);
        CHECK(type::alive == 1);
        CHECK(h() == 3);
        swap(g, h);
        CHECK(g() == 4);
        CHECK(h == nullptr);
        g = nullptr;
        CHECK(type::alive == 0);
    }
    CHECK(type::alive == 0);
}

} // namespace

TEST_CASE("unique_function keeps one callable through moves and destroys it once", "[core]") {
    check_life_of_counted<1>(true);
    check_life_of_counted<47>(true);
    check_life_of_counted<48>(true);
    check_life_of_counted<49>(false); // lives on the heap, only its address moves
    check_life_of_counted<500>(false);
}

TEST_CASE("unique_function moves closures that are only bytes", "[core]") {
    int x = 1;
    std::array<int, 8> const many{1, 2, 3, 4, 5, 6, 7, 8};
    action f{[&x, many] { x += many[7]; }};
    action g{std::move(f)};
    action h;
    h = std::move(g);
    h();
    CHECK(x == 9);
    CHECK_FALSE(f);
    CHECK_FALSE(g);
}

TEST_CASE("unique_function holds what can only be moved and returns it", "[core]") {
    auto owned = std::make_unique<int>(3);
    ax::unique_function<std::unique_ptr<int>(int)> f{[owned = std::move(owned)](int add) mutable {
        *owned += add;
        return std::move(owned);
    }};
    CHECK(*f(4) == 7);
}

TEST_CASE("unique_function passes references, values and results through", "[core]") {
    ax::unique_function<int&(int&)> same{[](int& i) -> int& { return i; }};
    int x = 4;
    CHECK(&same(x) == &x);
    ax::unique_function<std::string(std::unique_ptr<std::string>, std::string const&)> join{
        [](std::unique_ptr<std::string> a, std::string const& b) { return *a + b; }};
    CHECK(join(std::make_unique<std::string>("a"), "b") == "ab");
    ax::unique_function<long(int)> widened{&twice};
    CHECK(widened(4) == 8);
    ax::unique_function<void(int)> dropped{twice};
    dropped(1);
}

TEST_CASE("unique_function puts what may throw while moving on the heap", "[core]") {
    ax::unique_function<int()> f{throwing_move{}};
    auto g = std::move(f);
    CHECK(g() == 5);
}

TEST_CASE("unique_function respects alignment", "[core]") {
    ax::unique_function<bool()> f{aligned{}};
    auto g = std::move(f);
    CHECK(g());
}

TEST_CASE("an empty unique_function is false and refuses to be called", "[core]") {
    action f;
    CHECK_FALSE(f);
    CHECK_THROWS_AS(f(), ax::error);
    action g{nullptr};
    CHECK_FALSE(g);
    int (*no_function)(int) = nullptr;
    ax::unique_function<int(int)> h{no_function};
    CHECK_FALSE(h);
    CHECK_THROWS_AS(h(1), ax::error);
    f = std::move(g);
    CHECK_FALSE(f);
}

TEST_CASE("unique_function lets exceptions of its callable pass and stays usable", "[core]") {
    int calls = 0;
    action f{[&] {
        if (++calls == 1) throw calls;
    }};
    CHECK_THROWS_AS(f(), int);
    CHECK_NOTHROW(f());
}

TEST_CASE("unique_function survives assignment to itself and from its own callable's destructor", "[core]") {
    int x = 0;
    action f{[&x, keep = std::make_unique<int>(1)] { x += *keep; }};
    action& alias = f;
    f = std::move(alias);
    REQUIRE(f);
    f();
    CHECK(x == 1);

    struct on_destruction {
        action* holder;
        std::unique_ptr<int> armed;
        bool* saw_new;
        on_destruction(action* h, bool* s) : holder(h), armed(std::make_unique<int>(0)), saw_new(s) {}
        on_destruction(on_destruction&&) noexcept = default;
        on_destruction& operator=(on_destruction&&) = delete;
        ~on_destruction() {
            if (armed) *saw_new = static_cast<bool>(*holder);
        }
        void operator()() {}
    };
    bool saw_new = false;
    action g;
    g = action{on_destruction{&g, &saw_new}};
    g = action{[] {}};
    CHECK(saw_new);
}

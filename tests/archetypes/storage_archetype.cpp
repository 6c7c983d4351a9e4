// SPDX-License-Identifier: MIT
// What lacks one thing that ax::storage or ax::clock asks for. Compiled and never linked.
#include "archetypes/storage_archetype.hpp"

#include <chrono>

namespace archetypes { // with linkage: nothing here is defined, and that must not be a warning

// A derived member hides the inherited one: each of these has all but one verb.
struct writer_without_type : writer_archetype {
    void type() = delete;
};
static_assert(!ax::storage_writer<writer_without_type>);

struct writer_without_insert : writer_archetype {
    void insert() = delete;
};
static_assert(!ax::storage_writer<writer_without_insert>);

struct writer_without_claim : writer_archetype {
    void claim() = delete;
};
static_assert(!ax::storage_writer<writer_without_claim>);

struct writer_without_start : writer_archetype {
    void start() = delete;
};
static_assert(!ax::storage_writer<writer_without_start>);

struct writer_without_settle : writer_archetype {
    void settle() = delete;
};
static_assert(!ax::storage_writer<writer_without_settle>);

struct writer_without_reclaim : writer_archetype {
    void reclaim() = delete;
};
static_assert(!ax::storage_writer<writer_without_reclaim>);

struct writer_without_cancel : writer_archetype {
    void cancel() = delete;
};
static_assert(!ax::storage_writer<writer_without_cancel>);

struct writer_without_retry : writer_archetype {
    void retry() = delete;
};
static_assert(!ax::storage_writer<writer_without_retry>);

struct writer_without_reschedule : writer_archetype {
    void reschedule() = delete;
};
static_assert(!ax::storage_writer<writer_without_reschedule>);

struct writer_without_expire : writer_archetype {
    void expire() = delete;
};
static_assert(!ax::storage_writer<writer_without_expire>);

struct writer_without_pause : writer_archetype {
    void pause() = delete;
};
static_assert(!ax::storage_writer<writer_without_pause>);

struct writer_without_declare : writer_archetype {
    void declare() = delete;
};
static_assert(!ax::storage_writer<writer_without_declare>);

struct writer_without_step : writer_archetype {
    void step() = delete;
};
static_assert(!ax::storage_writer<writer_without_step>);

struct writer_without_forget : writer_archetype {
    void forget() = delete;
};
static_assert(!ax::storage_writer<writer_without_forget>);

struct storage_without_settle : storage_archetype {
    using writer = writer_without_settle;
    template <class Fn>
    void transact(ax::commit, Fn&&);
};
static_assert(!ax::storage<storage_without_settle>);

struct storage_without_find : storage_archetype {
    void find() = delete;
};
static_assert(!ax::storage<storage_without_find>);

struct storage_without_find_by_key : storage_archetype {
    void find_by_key() = delete;
};
static_assert(!ax::storage<storage_without_find_by_key>);

struct storage_without_list : storage_archetype {
    void list() = delete;
};
static_assert(!ax::storage<storage_without_list>);

struct storage_without_history : storage_archetype {
    void history() = delete;
};
static_assert(!ax::storage<storage_without_history>);

struct storage_without_upcoming : storage_archetype {
    void upcoming() = delete;
};
static_assert(!ax::storage<storage_without_upcoming>);

struct storage_without_types : storage_archetype {
    void types() = delete;
};
static_assert(!ax::storage<storage_without_types>);

struct storage_without_schedules : storage_archetype {
    void schedules() = delete;
};
static_assert(!ax::storage<storage_without_schedules>);

struct storage_without_transact : storage_archetype {
    void transact() = delete;
};
static_assert(!ax::storage<storage_without_transact>);

// A transaction is a function object with captures, and is not copied.
struct storage_of_plain_functions : storage_archetype {
    void transact(ax::commit, void (*)(writer&));
};
static_assert(!ax::storage<storage_of_plain_functions>);

// It is written where it is used.
struct storage_of_named_functions : storage_archetype {
    template <class Fn>
    void transact(ax::commit, Fn&);
};
static_assert(!ax::storage<storage_of_named_functions>);

struct storage_that_does_not_say : storage_archetype {
    struct nothing {};
    static constexpr nothing durable{};
};
static_assert(!ax::storage<storage_that_does_not_say>);

// Reads do not change a store.
struct storage_that_finds_by_writing : storage_archetype {
    std::optional<ax::task_record> find(ax::task_id);
};
static_assert(!ax::storage<storage_that_finds_by_writing>);

// A lost task is an ordinary answer.
struct storage_that_always_finds : storage_archetype {
    ax::task_record find(ax::task_id) const;
};
static_assert(!ax::storage<storage_that_always_finds>);

struct storage_that_stays : storage_archetype {
    storage_that_stays(storage_that_stays&&) = delete;
    storage_that_stays& operator=(storage_that_stays&&) = delete;
};
static_assert(!ax::storage<storage_that_stays>);

static_assert(!ax::storage<writer_archetype>);
static_assert(!ax::storage_writer<storage_archetype>);
static_assert(!ax::storage<int>);

// Due times are wall time.
static_assert(!ax::clock<std::chrono::steady_clock>);
static_assert(!ax::clock<std::chrono::system_clock>);

struct clock_without_steady : clock_archetype {
    void steady() = delete;
};
static_assert(!ax::clock<clock_without_steady>);

struct clock_without_now : clock_archetype {
    void now() = delete;
};
static_assert(!ax::clock<clock_without_now>);

struct clock_that_moves_when_read : clock_archetype {
    ax::time_point now();
};
static_assert(!ax::clock<clock_that_moves_when_read>);

struct clock_of_nanoseconds : clock_archetype {
    std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds> now() const;
};
static_assert(ax::clock<clock_of_nanoseconds>);

struct clock_that_runs_from_boot : clock_archetype {
    std::chrono::steady_clock::time_point now() const; // due times are wall time
};
static_assert(!ax::clock<clock_that_runs_from_boot>);

} // namespace archetypes

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

struct writer_without_ask_to_stop : writer_archetype {
    void ask_to_stop() = delete;
};
static_assert(!ax::storage_writer<writer_without_ask_to_stop>);

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

struct writer_without_keep_step : writer_archetype {
    void keep_step() = delete;
};
static_assert(!ax::storage_writer<writer_without_keep_step>);
struct writer_without_prune : writer_archetype {
    void prune() = delete;
};
static_assert(!ax::storage_writer<writer_without_prune>);

struct writer_without_compact : writer_archetype {
    void compact() = delete;
};
static_assert(!ax::storage_writer<writer_without_compact>);

struct writer_without_note : writer_archetype {
    void note() = delete;
};
static_assert(!ax::storage_writer<writer_without_note>);

struct writer_without_repair : writer_archetype {
    void repair() = delete;
};
static_assert(!ax::storage_writer<writer_without_repair>);
struct writer_without_limit_type : writer_archetype {
    void limit_type() = delete;
};
static_assert(!ax::storage_writer<writer_without_limit_type>);

struct writer_without_limit_tag : writer_archetype {
    void limit_tag() = delete;
};
static_assert(!ax::storage_writer<writer_without_limit_tag>);

struct writer_without_set_resource : writer_archetype {
    void set_resource() = delete;
};
static_assert(!ax::storage_writer<writer_without_set_resource>);

struct writer_without_mark_succeeded : writer_archetype {
    void mark_succeeded() = delete;
};
static_assert(!ax::storage_writer<writer_without_mark_succeeded>);

struct writer_without_rerun : writer_archetype {
    void rerun() = delete;
};
static_assert(!ax::storage_writer<writer_without_rerun>);

struct writer_without_pause_workflow : writer_archetype {
    void pause_workflow() = delete;
};
static_assert(!ax::storage_writer<writer_without_pause_workflow>);

struct writer_without_set_aside : writer_archetype {
    void set_aside() = delete;
};
static_assert(!ax::storage_writer<writer_without_set_aside>);

struct writer_without_release : writer_archetype {
    void release() = delete;
};
static_assert(!ax::storage_writer<writer_without_release>);

struct writer_without_begin_backfill : writer_archetype {
    void begin_backfill() = delete;
};
static_assert(!ax::storage_writer<writer_without_begin_backfill>);

struct writer_without_fill : writer_archetype {
    void fill() = delete;
};
static_assert(!ax::storage_writer<writer_without_fill>);

struct writer_without_drop_backfill : writer_archetype {
    void drop_backfill() = delete;
};
static_assert(!ax::storage_writer<writer_without_drop_backfill>);

struct writer_without_end_waits : writer_archetype {
    void end_waits() = delete;
};
static_assert(!ax::storage_writer<writer_without_end_waits>);

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

struct storage_without_obstacles : storage_archetype {
    void obstacles() = delete;
};
static_assert(!ax::storage<storage_without_obstacles>);

struct storage_without_asked_to_stop : storage_archetype {
    void asked_to_stop() = delete;
};
static_assert(!ax::storage<storage_without_asked_to_stop>);

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

struct storage_without_steps : storage_archetype {
    void steps() = delete;
};
static_assert(!ax::storage<storage_without_steps>);

struct storage_that_inserts_alone : transactional_archetype {
    ax::guest_insertion insert_in(std::string_view, ax::new_task&, ax::time_point, ax::alarms&);
};
static_assert(!ax::transactional_storage<storage_that_inserts_alone>);
struct storage_without_counts : storage_archetype {
    void counts() = delete;
};
static_assert(!ax::storage<storage_without_counts>);

struct storage_without_note : storage_archetype {
    void note() = delete;
};
static_assert(!ax::storage<storage_without_note>);

struct storage_without_verify : storage_archetype {
    void verify() = delete;
};
static_assert(!ax::storage<storage_without_verify>);
struct storage_without_waiting : storage_archetype {
    void waiting() = delete;
};
static_assert(!ax::storage<storage_without_waiting>);

struct storage_without_limits : storage_archetype {
    void limits() = delete;
};
static_assert(!ax::storage<storage_without_limits>);

struct storage_without_workflow : storage_archetype {
    void workflow() = delete;
};
static_assert(!ax::storage<storage_without_workflow>);

struct storage_without_members : storage_archetype {
    void members() = delete;
};
static_assert(!ax::storage<storage_without_members>);

struct storage_without_parents : storage_archetype {
    void parents() = delete;
};
static_assert(!ax::storage<storage_without_parents>);

struct storage_without_occurrence : storage_archetype {
    void occurrence() = delete;
};
static_assert(!ax::storage<storage_without_occurrence>);

struct storage_without_aside : storage_archetype {
    void aside() = delete;
};
static_assert(!ax::storage<storage_without_aside>);

struct storage_without_backfills : storage_archetype {
    void backfills() = delete;
};
static_assert(!ax::storage<storage_without_backfills>);

struct storage_without_skips : storage_archetype {
    void skips() = delete;
};
static_assert(!ax::storage<storage_without_skips>);

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

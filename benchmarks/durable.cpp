// SPDX-License-Identifier: MIT
// What durable tasks cost with ax, beside the fastest pipeline that a hand can write on the same SQLite
// (durable/raw_pipeline.hpp), in one run and by turns:
//   durable [--json] [--dir DIR] [--rounds N] [--scale F] [--backlog N] [--workers N] [--process-crash] [NAME ...]
// A name is that of a row or its beginning (`life`, `submit/one`); without one all rows are measured.
// --scale multiplies how many tasks a row has. --backlog puts that many future tasks below what is measured.
// Both sides survive a power cut with each commit, but with --process-crash, and keep what has finished.
#include "durable/machine.hpp"
#include "durable/raw_pipeline.hpp"
#include "durable/report.hpp"
#include "workplace.hpp"

#include <ax/ax.hpp>
#include <ax/testing/manual_clock.hpp>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string_view>

// Counts flushes for the whole process: SQLite's calls come here as well.
extern "C" int fdatasync(int file) {
    bench::flushes.fetch_add(1, std::memory_order_relaxed);
    return static_cast<int>(::syscall(SYS_fdatasync, file));
}

namespace {

using namespace std::chrono_literals;
using bench::row;

struct settings {
    bool json = false;
    std::filesystem::path dir = std::filesystem::temp_directory_path();
    std::size_t rounds = 3;
    double scale = 1;
    std::size_t backlog = 0;
    std::size_t workers = 2;
    bool power_loss = true;
    std::vector<std::string> names;

    bool wants(std::string_view name) const {
        return names.empty() || std::ranges::any_of(names, [&](std::string const& n) { return name.starts_with(n); });
    }
    std::size_t scaled(double count) const {
        return (std::max<std::size_t>)(static_cast<std::size_t>(count * scale), 1);
    }
};

struct probe {
    std::string text; ///< 100 bytes as JSON
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(probe, text)
};
constexpr ax::task_type<probe> probing{"probe"};
probe const sample{std::string(89, 'x')}; // {"text":"..."}: 100 bytes
std::string const sample_bytes = std::string(100, 'x');

ax::options with(settings const& s) {
    ax::options o;
    o.workers = s.workers;
    o.durability = s.power_loss ? ax::durability::power_loss : ax::durability::process_crash;
    return o;
}

/// Both sides behind one face, so that one driver measures them.
class side {
  public:
    virtual ~side() = default;
    virtual void submit(std::vector<bench::raw_task> const& tasks) = 0;
};

class ax_side final : public side {
  public:
    ax_side(std::string const& file, settings const& s, std::function<void()> handler,
            std::function<void(std::size_t)> done)
        : tasks_(ax::sqlite_storage{file}, with(s)), handler_(std::move(handler)), done_(std::move(done)) {
        tasks_.on(probing, [this](probe const&) { handler_(); });
        tasks_.observe([this](ax::event const& e) {
            if (e.kind == ax::event_kind::reported) done_(1);
        });
        tasks_.start();
    }

    void submit(std::vector<bench::raw_task> const& tasks) override {
        auto const how = [](bench::raw_task const& one) {
            ax::submit_options o;
            if (one.run_at != 0) o.run_at = ax::time_point{ax::duration{one.run_at}};
            o.key = one.key;
            return o;
        };
        if (tasks.size() == 1) {
            tasks_.submit(probing, sample, how(tasks.front()));
            return;
        }
        std::vector<probe> const payloads(tasks.size(), sample);
        std::size_t next = 0;
        tasks_.submit_all(probing, payloads, [&](probe const&) { return how(tasks[next++]); });
    }

  private:
    ax::sqlite_scheduler tasks_;
    std::function<void()> handler_;
    std::function<void(std::size_t)> done_;
};

class raw_side final : public side {
  public:
    raw_side(std::string const& file, settings const& s, std::function<void()> handler,
             std::function<void(std::size_t)> done)
        : pipeline_(file, s.workers, s.power_loss, sample_bytes, std::move(handler), std::move(done)) {}
    void submit(std::vector<bench::raw_task> const& tasks) override { pipeline_.submit(tasks); }

  private:
    bench::raw_pipeline pipeline_;
};

using make_side =
    std::function<std::unique_ptr<side>(std::string const&, std::function<void()>, std::function<void(std::size_t)>)>;

template <class Side>
make_side maker(settings const& s) {
    return [&s](std::string const& file, std::function<void()> handler, std::function<void(std::size_t)> done) {
        return std::make_unique<Side>(file, s, std::move(handler), std::move(done));
    };
}

std::int64_t in_an_hour() { return bench::wall_us() / 1000 + 3'600'000; }

/// Tasks that are due in an hour or later, in no order.
void fill(side& where, std::size_t count) {
    std::mt19937_64 random(1);
    auto const start = in_an_hour();
    for (std::size_t done = 0; done < count; done += 10'000) {
        std::vector<bench::raw_task> tasks((std::min<std::size_t>)(10'000, count - done));
        for (auto& one : tasks) one.run_at = start + static_cast<std::int64_t>(random() % 36'000'000);
        where.submit(tasks);
    }
}

/// What one side came to in one round.
struct figures {
    double value = 0;
    double bytes = 0;   ///< a task, on disk
    double flushes = 0; ///< a task
};

/// Measures both by turns and gives the medians.
row by_turns(std::string name, std::string unit, settings const& s,
             std::function<figures(make_side const&)> const& measure) {
    std::vector<double> ax, raw, ax_bytes, raw_bytes, ax_flushes, raw_flushes;
    for (std::size_t i = 0; i != s.rounds; ++i) {
        auto const a = measure(maker<ax_side>(s));
        auto const r = measure(maker<raw_side>(s));
        ax.push_back(a.value);
        raw.push_back(r.value);
        ax_bytes.push_back(a.bytes);
        raw_bytes.push_back(r.bytes);
        ax_flushes.push_back(a.flushes);
        raw_flushes.push_back(r.flushes);
    }
    return {std::move(name),
            std::move(unit),
            bench::median(ax),
            bench::median(raw),
            {{"ax_bytes_per_task", bench::median(ax_bytes)},
             {"raw_bytes_per_task", bench::median(raw_bytes)},
             {"ax_flushes_per_task", bench::median(ax_flushes)},
             {"raw_flushes_per_task", bench::median(raw_flushes)}}};
}

// ------------------------------------------------------------ submit

/// One thread, one task a call: the median time of a call, in microseconds.
figures submit_one(settings const& s, make_side const& make) {
    bench::workplace const place(s.dir);
    auto const count = s.scaled(2'000);
    auto const where = make(
        place.file(), [] {}, [](std::size_t) {});
    fill(*where, s.backlog);
    std::vector<bench::raw_task> const one(1, {in_an_hour(), {}});
    std::vector<double> times;
    auto const flushes = bench::flushes.load();
    for (std::size_t i = 0; i != count; ++i) {
        auto const start = bench::steady::now();
        where->submit(one);
        times.push_back(bench::seconds_since(start) * 1e6);
    }
    auto const per_task = static_cast<double>(bench::flushes.load() - flushes) / static_cast<double>(count);
    return {bench::percentile(times, 0.5), static_cast<double>(place.bytes()) / static_cast<double>(count), per_task};
}

/// A thousand a call, due later: tasks a second.
figures submit_bulk(settings const& s, make_side const& make, bool keys) {
    bench::workplace const place(s.dir);
    auto const calls = s.scaled(200);
    auto const where = make(
        place.file(), [] {}, [](std::size_t) {});
    fill(*where, s.backlog);
    std::mt19937_64 random(7);
    auto const due = in_an_hour();
    std::vector<std::vector<bench::raw_task>> batches(calls);
    for (auto& batch : batches) {
        for (std::size_t i = 0; i != 1'000; ++i)
            batch.push_back(
                {due + static_cast<std::int64_t>(random() % 600'000), keys ? fmt::format("{:016x}", random()) : ""});
    }
    auto const before = place.bytes();
    auto const flushes = bench::flushes.load();
    auto const start = bench::steady::now();
    for (auto const& batch : batches) where->submit(batch);
    auto const count = static_cast<double>(calls) * 1'000;
    return {count / bench::seconds_since(start), static_cast<double>(place.bytes() - before) / count,
            static_cast<double>(bench::flushes.load() - flushes) / count};
}

/// Eight threads, one task a call: tasks a second.
figures submit_threads(settings const& s, make_side const& make) {
    bench::workplace const place(s.dir);
    auto const each = s.scaled(2'000);
    auto const where = make(
        place.file(), [] {}, [](std::size_t) {});
    fill(*where, s.backlog);
    std::vector<bench::raw_task> const one(1, {in_an_hour(), {}});
    auto const flushes = bench::flushes.load();
    auto const start = bench::steady::now();
    std::vector<std::thread> threads;
    for (int t = 0; t != 8; ++t)
        threads.emplace_back([&] {
            for (std::size_t i = 0; i != each; ++i) where->submit(one);
        });
    for (auto& t : threads) t.join();
    auto const count = static_cast<double>(each) * 8;
    return {count / bench::seconds_since(start), static_cast<double>(place.bytes()) / count,
            static_cast<double>(bench::flushes.load() - flushes) / count};
}

// ------------------------------------------------------------ whole life

/// Submitted, run and recorded, with `in_flight` on their way at most: tasks a second.
figures life(settings const& s, make_side const& make, std::size_t in_flight) {
    bench::workplace const place(s.dir);
    auto const count = s.scaled(in_flight == 1 ? 3'000 : in_flight <= 100 ? 60'000 : 200'000);
    std::mutex mutex;
    std::condition_variable ended;
    std::size_t done = 0;
    auto const where = make(
        place.file(), [] {},
        [&](std::size_t n) {
            std::scoped_lock const lock(mutex);
            done += n;
            ended.notify_one();
        });
    fill(*where, s.backlog);
    auto const before = place.bytes();
    auto const flushes = bench::flushes.load();
    auto const start = bench::steady::now();
    for (std::size_t submitted = 0; submitted < count;) {
        std::size_t room = 0;
        {
            std::unique_lock lock(mutex);
            ended.wait(lock, [&] { return submitted - done < in_flight; });
            room = in_flight - (submitted - done);
        }
        std::vector<bench::raw_task> const tasks((std::min)(room, count - submitted));
        submitted += tasks.size();
        where->submit(tasks);
    }
    {
        std::unique_lock lock(mutex);
        ended.wait(lock, [&] { return done == count; });
    }
    auto const took = bench::seconds_since(start);
    auto const n = static_cast<double>(count);
    return {n / took, static_cast<double>(place.bytes() - before) / n,
            static_cast<double>(bench::flushes.load() - flushes) / n};
}

// ------------------------------------------------------------ many that wait

/// Delayed tasks over ten minutes, stored in batches of 10,000: seconds, and memory above an empty scheduler.
row preload(settings const& s) {
    auto const count = s.scaled(1e6);
    auto const store = [&](make_side const& make) {
        bench::workplace const place(s.dir);
        auto const where = make(
            place.file(), [] {}, [](std::size_t) {});
        auto const before = bench::resident_mb();
        std::mt19937_64 random(3);
        auto const start = bench::steady::now();
        auto const due = in_an_hour(); // none may become due while they are stored
        for (std::size_t done = 0; done < count; done += 10'000) {
            std::vector<bench::raw_task> tasks((std::min<std::size_t>)(10'000, count - done));
            for (auto& one : tasks) one.run_at = due + static_cast<std::int64_t>(random() % 600'000);
            where->submit(tasks);
        }
        auto const took = bench::seconds_since(start);
        return std::pair{took, bench::resident_mb() - before};
    };
    auto const [ax, ax_mb] = store(maker<ax_side>(s));
    auto const [raw, raw_mb] = store(maker<raw_side>(s));
    return {"preload/1M", "s", ax, raw, {{"ax_mb", ax_mb}, {"raw_mb", raw_mb}}};
}

/// From opening a file with that many that wait to the first that runs: seconds.
row restart(settings const& s, std::string name, double size) {
    auto const count = s.scaled(size);
    auto const measure = [&](make_side const& make, auto const& reopen) {
        bench::workplace const place(s.dir);
        std::chrono::system_clock::time_point due;
        {
            auto const where = make(
                place.file(), [] {}, [](std::size_t) {});
            fill(*where, count);
            due = std::chrono::system_clock::now() + 10s; // closed before that, so that it runs after the start
            where->submit(
                {{std::chrono::duration_cast<std::chrono::milliseconds>(due.time_since_epoch()).count(), {}}});
        }
        std::this_thread::sleep_until(due + 10ms);
        auto const start = bench::steady::now();
        reopen(place.file());
        return bench::seconds_since(start);
    };
    auto const ax = measure(maker<ax_side>(s), [&](std::string const& file) {
        std::binary_semaphore ran{0};
        std::atomic<bool> told{false};
        ax_side again(
            file, s,
            [&] {
                if (!told.exchange(true)) ran.release();
            },
            [](std::size_t) {});
        ran.acquire();
    });
    auto const raw = measure(maker<raw_side>(s), [&](std::string const& file) {
        bool ran = false;
        bench::raw_pipeline again(file, s.workers, s.power_loss, sample_bytes, [&] { ran = true; }, {});
        if (!again.take_first(bench::wall_us() / 1000) || !ran) std::abort();
    });
    return {std::move(name), "s", ax, raw};
}

/// A million that wait for hours: the share of a core that waiting takes.
row idle(settings const& s) {
    bench::workplace const place(s.dir);
    ax_side where(
        place.file(), s, [] {}, [](std::size_t) {});
    fill(where, s.scaled(1e6));
    std::this_thread::sleep_for(3s); // what storing them left to do
    auto const before = bench::usage::now();
    auto const start = bench::steady::now();
    std::this_thread::sleep_for(20s);
    auto const after = bench::usage::now();
    auto const took = bench::seconds_since(start);
    return {"idle/cpu",
            "% core",
            (after.cpu_seconds - before.cpu_seconds) / took * 100,
            {},
            {{"wakeups_per_s", (after.wakeups - before.wakeups) / took}}};
}

// ------------------------------------------------------------ lateness

/// Tasks due one after another: how late each was, in milliseconds.
std::vector<double> ax_lateness(settings const& s, std::size_t count, std::chrono::milliseconds over) {
    bench::workplace const place(s.dir);
    std::mutex mutex;
    std::vector<double> late;
    std::condition_variable all;
    ax::sqlite_scheduler tasks{ax::sqlite_storage{place.file()}, with(s)};
    tasks.on(probing, [&](ax::context& ctx) {
        auto const now = bench::wall_us();
        auto const due =
            std::chrono::duration_cast<std::chrono::microseconds>(ctx.scheduled_at().time_since_epoch()).count();
        std::scoped_lock const lock(mutex);
        late.push_back(static_cast<double>(now - due) / 1000);
        if (late.size() == count) all.notify_one();
    });
    tasks.start();
    auto const first = ax::time_point{ax::duration{bench::wall_us() / 1000 + 2'000}};
    std::size_t next = 0;
    std::vector<probe> const payloads(count, sample);
    tasks.submit_all(probing, payloads, [&](probe const&) {
        return ax::submit_options{.run_at = first + over * static_cast<std::int64_t>(next++) /
                                                        static_cast<std::int64_t>(count)};
    });
    std::unique_lock lock(mutex);
    all.wait(lock, [&] { return late.size() == count; });
    return late;
}

/// The bare limit: a thread that sleeps until each instant and hands over to a worker.
std::vector<double> raw_lateness(std::size_t count, std::chrono::milliseconds over) {
    std::mutex mutex;
    std::condition_variable comes;
    std::vector<std::int64_t> queue;
    bool ended = false;
    std::vector<double> late;
    std::thread worker([&] {
        std::unique_lock lock(mutex);
        std::vector<std::int64_t> mine;
        for (;;) {
            comes.wait(lock, [&] { return ended || !queue.empty(); });
            if (queue.empty()) return;
            mine.swap(queue);
            lock.unlock();
            for (auto const due : mine) late.push_back(static_cast<double>(bench::wall_us() - due) / 1000);
            mine.clear();
            lock.lock();
        }
    });
    auto const first = bench::wall_us() / 1000 * 1000 + 100'000;
    for (std::size_t i = 0; i != count; ++i) {
        auto const ms = over.count() * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(count);
        auto const due = first + ms * 1000;
        std::this_thread::sleep_until(std::chrono::system_clock::time_point{std::chrono::microseconds{due}});
        std::scoped_lock const lock(mutex);
        queue.push_back(due);
        comes.notify_one();
    }
    {
        std::scoped_lock const lock(mutex);
        ended = true;
    }
    comes.notify_one();
    worker.join();
    return late;
}

void lateness(settings const& s, bench::report& out, bool busy) {
    std::atomic<bool> quit{false};
    std::vector<std::thread> burners;
    for (unsigned i = 0; busy && i != (std::max)(std::thread::hardware_concurrency(), 1U); ++i)
        burners.emplace_back([&] {
            for (std::uint64_t n = 0; !quit.load(std::memory_order_relaxed);) ++n;
        });
    auto const count = s.scaled(10'000);
    auto const over = std::chrono::milliseconds{static_cast<std::int64_t>(s.scaled(10'000))};
    auto ax = ax_lateness(s, count, over);
    auto raw = raw_lateness(count, over);
    quit = true;
    for (auto& one : burners) one.join();
    auto const earliest = bench::percentile(ax, 0);
    if (!busy)
        out.add({"lateness/p50",
                 "ms",
                 bench::percentile(ax, 0.5),
                 bench::percentile(raw, 0.5),
                 {{"earliest_ms", earliest}}});
    out.add({busy ? "lateness-busy/p99" : "lateness/p99",
             "ms",
             bench::percentile(ax, 0.99),
             bench::percentile(raw, 0.99),
             {{"ax_worst_ms", ax.back()}, {"raw_worst_ms", raw.back()}}});
}

// ------------------------------------------------------------ schedules and workflows

/// One-minute schedules that all fire in the same minute: occurrences created, run and recorded, a second. Raw is the
/// whole life of as many plain tasks with 20,000 in flight.
row schedules(settings const& s) {
    auto const count = s.scaled(1e5);
    bench::workplace const place(s.dir);
    ax::testing::manual_clock clock;
    std::size_t ran = 0;
    ax::scheduler<ax::sqlite_storage, ax::testing::manual_clock> tasks{ax::sqlite_storage{place.file()}, with(s),
                                                                       clock};
    tasks.on(probing, [&](probe const&) { ++ran; });
    auto const declaring = bench::steady::now();
    for (std::size_t i = 0; i != count; ++i)
        tasks.schedule(fmt::format("every minute {}", i), ax::every{1min}, probing, sample);
    auto const declared = bench::seconds_since(declaring);
    clock.advance(1min);
    auto const start = bench::steady::now();
    while (ran < count) tasks.poll(clock.now());
    auto const took = bench::seconds_since(start);
    auto const raw = life(s, maker<raw_side>(s), 20'000);
    return {"schedules/100k", "tasks/s", static_cast<double>(count) / took, raw.value, {{"declare_s", declared}}};
}

/// One workflow in layers of a hundred, each task behind three of the layer before: tasks a second from submit to end.
/// Raw is the whole life of as many plain tasks with 20,000 in flight: it knows no edges.
row workflow(settings const& s) {
    auto const count = s.scaled(1e5);
    bench::workplace const place(s.dir);
    std::binary_semaphore ended{0};
    ax::sqlite_scheduler tasks{ax::sqlite_storage{place.file()}, with(s)};
    std::atomic<std::size_t> ran{0};
    tasks.on(probing, [&](probe const&) {
        if (ran.fetch_add(1) + 1 == count) ended.release();
    });
    tasks.start();
    constexpr std::size_t width = 100;
    ax::workflow flow("bench");
    std::vector<ax::workflow_task> all;
    for (std::size_t i = 0; i != count; ++i) {
        ax::workflow_task_options how;
        for (std::size_t p = 0; i >= width && p != 3; ++p)
            how.after.push_back(all[i / width * width - width + (i + p) % width]);
        all.push_back(flow.add(probing, sample, how));
    }
    auto const start = bench::steady::now();
    auto const made = tasks.submit(flow);
    auto const submitted = bench::seconds_since(start);
    ended.acquire();
    while (!ax::is_terminal(tasks.find(made.id)->state)) std::this_thread::sleep_for(1ms);
    auto const took = bench::seconds_since(start);
    auto const raw = life(s, maker<raw_side>(s), 20'000);
    return {"workflow/100k", "tasks/s", static_cast<double>(count) / took, raw.value, {{"submit_s", submitted}}};
}

// ------------------------------------------------------------ all of it

int usage_error(std::string_view what) {
    fmt::print(stderr,
               "durable: {}\nusage: durable [--json] [--dir DIR] [--rounds N] [--scale F] [--backlog N] [--workers N] "
               "[--process-crash] [NAME ...]\n",
               what);
    return 2;
}

template <class Number>
bool read_number(std::string_view text, Number& to) {
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), to);
    return code == std::errc{} && end == text.data() + text.size() && to >= 0;
}

void run(settings const& s) {
    bench::report out(s.json);
    auto const compare = [&](std::string const& name, std::string const& unit,
                             std::function<figures(make_side const&)> const& how) {
        if (s.wants(name)) out.add(by_turns(name, unit, s, how));
    };
    compare("submit/one", "us", [&](make_side const& m) { return submit_one(s, m); });
    compare("submit/bulk", "tasks/s", [&](make_side const& m) { return submit_bulk(s, m, false); });
    compare("submit/bulk-random-keys", "tasks/s", [&](make_side const& m) { return submit_bulk(s, m, true); });
    compare("submit/8-threads", "tasks/s", [&](make_side const& m) { return submit_threads(s, m); });
    for (auto const in_flight : std::initializer_list<std::size_t>{1, 100, 2'000, 20'000})
        compare(fmt::format("life/{}", in_flight), "tasks/s",
                [&](make_side const& m) { return life(s, m, in_flight); });
    if (s.wants("preload/1M")) out.add(preload(s));
    if (s.wants("lateness/p50") || s.wants("lateness/p99")) lateness(s, out, false);
    if (s.wants("lateness-busy/p99")) lateness(s, out, true);
    if (s.wants("restart/1M")) out.add(restart(s, "restart/1M", 1e6));
    if (s.wants("restart/10M")) out.add(restart(s, "restart/10M", 1e7));
    if (s.wants("schedules/100k")) out.add(schedules(s));
    if (s.wants("workflow/100k")) out.add(workflow(s));
    if (s.wants("idle/cpu")) out.add(idle(s));
}

} // namespace

int main(int count, char** values) {
    settings s;
    for (int i = 1; i < count; ++i) {
        std::string_view const word = values[i];
        auto const number = [&](auto& to) { return ++i < count && read_number(values[i], to); };
        if (word == "--json")
            s.json = true;
        else if (word == "--process-crash")
            s.power_loss = false;
        else if (word == "--dir") {
            if (++i == count || !std::filesystem::is_directory(values[i]))
                return usage_error("--dir needs a directory");
            s.dir = values[i];
        } else if (word == "--rounds") {
            if (!number(s.rounds) || s.rounds == 0) return usage_error("--rounds needs a number from 1 on");
        } else if (word == "--scale") {
            if (!number(s.scale) || s.scale == 0) return usage_error("--scale needs a positive number");
        } else if (word == "--backlog") {
            if (!number(s.backlog)) return usage_error("--backlog needs a number");
        } else if (word == "--workers") {
            if (!number(s.workers) || s.workers == 0) return usage_error("--workers needs a number from 1 on");
        } else if (word.starts_with("--"))
            return usage_error(fmt::format("unknown option {}", word));
        else
            s.names.emplace_back(word);
    }
    run(s);
}

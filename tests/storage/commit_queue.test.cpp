// SPDX-License-Identifier: MIT
#include "ax/storage/detail/commit_queue.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

/// A target that keeps numbers: those of an open transaction apart, until they are committed. Not safe for threads by
/// itself, so the thread sanitizer sees where the queue lets two in.
struct ledger {
    void begin(bool flush) {
        ++begun;
        if (failing_begins > 0) {
            --failing_begins;
            throw ax::error(ax::errc::unavailable, "no begin");
        }
        overlapped = overlapped || open;
        open = true;
        open_is_durable = flush;
    }
    void finish() {
        if (failing_commits > 0) {
            --failing_commits;
            throw ax::error(ax::errc::disk_full, "no commit");
        }
        open = false;
        groups.push_back(pending);
        durable.push_back(open_is_durable);
        kept.insert(kept.end(), pending.begin(), pending.end());
        pending.clear();
    }
    void undo() noexcept {
        ++undone;
        open = false;
        pending.clear();
    }

    std::vector<int> pending;
    std::vector<int> kept;
    std::vector<std::vector<int>> groups;
    std::vector<bool> durable;
    bool open = false;
    bool overlapped = false;
    bool open_is_durable = false;
    int begun = 0;
    int undone = 0;
    int failing_begins = 0;
    int failing_commits = 0;
};

using queue_type = ax::detail::commit_queue<ledger>;

struct refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Callers that are known to wait while a first one is inside its transaction, in the order of add().
class crowd {
  public:
    crowd(ledger& book, queue_type& queue) : book_(book), queue_(queue) {
        first_ = std::thread([this] {
            queue_.run(false, [&] {
                inside_.set_value();
                released_.get_future().wait();
                book_.pending.push_back(0);
            });
        });
        inside_.get_future().wait();
    }
    ~crowd() { release(); }

    template <class Operation>
    void add(bool durable, Operation operation) {
        auto& failure = *failures_.emplace_back(std::make_unique<std::string>());
        auto const before = queue_.waiting();
        waiting_.emplace_back([this, durable, operation, &failure] {
            try {
                queue_.run(durable, operation);
            } catch (std::exception const& e) {
                failure = e.what();
            }
        });
        while (queue_.waiting() == before) std::this_thread::yield();
    }
    void add(int number, bool durable = false) {
        add(durable, [this, number] { book_.pending.push_back(number); });
    }

    void release() {
        if (!first_.joinable()) return;
        released_.set_value();
        first_.join();
        for (auto& thread : waiting_) thread.join();
    }

    std::string const& failure(std::size_t at) const { return *failures_.at(at); }

  private:
    ledger& book_;
    queue_type& queue_;
    std::promise<void> inside_;
    std::promise<void> released_;
    std::thread first_;
    std::vector<std::thread> waiting_;
    std::vector<std::unique_ptr<std::string>> failures_;
};

} // namespace

TEST_CASE("a lone caller commits on its own thread, one transaction for each call", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    std::thread::id ran;
    queue.run(true, [&] {
        ran = std::this_thread::get_id();
        book.pending.push_back(1);
    });
    queue.run(false, [&] { book.pending.push_back(2); });
    CHECK(ran == std::this_thread::get_id());
    CHECK(book.groups == std::vector<std::vector<int>>{{1}, {2}});
    CHECK(book.durable == std::vector<bool>{true, false});
    CHECK(book.undone == 0);
    CHECK(queue.waiting() == 0);
}

TEST_CASE("callers that wait share the next commit, in the order in which they came", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    crowd callers{book, queue};
    for (int i = 1; i <= 5; ++i) callers.add(i);
    CHECK(queue.waiting() == 5);
    callers.release();
    CHECK(book.groups == std::vector<std::vector<int>>{{0}, {1, 2, 3, 4, 5}});
    CHECK(queue.waiting() == 0);
}

TEST_CASE("a group is durable where one of its members asks for it", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    crowd callers{book, queue};
    callers.add(1, false);
    callers.add(2, true);
    callers.add(3, false);
    callers.release();
    CHECK(book.durable == std::vector<bool>{false, true});
}

TEST_CASE("a group has a largest size, and the rest goes with the next", "[storage][threads]") {
    ledger book;
    queue_type queue{book, 2};
    crowd callers{book, queue};
    for (int i = 1; i <= 5; ++i) callers.add(i, i == 5);
    callers.release();
    CHECK(book.groups == std::vector<std::vector<int>>{{0}, {1, 2}, {3, 4}, {5}});
    CHECK(book.durable == std::vector<bool>{false, false, false, true});
}

TEST_CASE("an operation that throws fails alone, and the others run again", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    crowd callers{book, queue};
    callers.add(1);
    callers.add(false, [&] {
        book.pending.push_back(2);
        throw refusal("mine");
    });
    callers.add(3, true);
    callers.release();
    CHECK(callers.failure(0).empty());
    CHECK(callers.failure(1) == "mine");
    CHECK(callers.failure(2).empty());
    CHECK(book.groups == std::vector<std::vector<int>>{{0}, {1}, {3}});
    CHECK(book.durable == std::vector<bool>{false, false, true});
    CHECK(book.undone == 2); // the group, and the one that threw
}

TEST_CASE("an operation that throws while it is alone runs once", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    int runs = 0;
    CHECK_THROWS_AS(queue.run(true,
                              [&] {
                                  ++runs;
                                  throw refusal("mine");
                              }),
                    refusal);
    CHECK(runs == 1);
    CHECK(book.undone == 1);
    queue.run(true, [&] { book.pending.push_back(1); });
    CHECK(book.kept == std::vector{1});
}

TEST_CASE("a commit that fails fails all of its group, each with an exception of its own", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    {
        crowd callers{book, queue};
        callers.add(1);
        callers.add(2);
        callers.add(false, [&] { book.failing_commits = 1; });
        callers.release();
        for (std::size_t i = 0; i < 3; ++i) CHECK(callers.failure(i) == "no commit: disk full");
    }
    CHECK(book.kept == std::vector{0});
    CHECK(book.undone == 1);
    queue.run(true, [&] { book.pending.push_back(4); });
    CHECK(book.kept == std::vector{0, 4});
}

TEST_CASE("a transaction that cannot begin fails its group at once", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    crowd callers{book, queue};
    SECTION("together") {
        callers.add(1);
        callers.add(2);
        book.failing_begins = 1; // the first one is inside: nobody begins now
        callers.release();
        CHECK(callers.failure(0) == "no begin: storage unavailable");
        CHECK(callers.failure(1) == "no begin: storage unavailable");
        CHECK(book.begun == 2);
    }
    SECTION("one by one, after one that threw") {
        callers.add(1);
        callers.add(false, [&] {
            book.failing_begins = 1;
            throw refusal("mine");
        });
        callers.add(3);
        callers.release();
        for (std::size_t i = 0; i < 3; ++i) CHECK(callers.failure(i) == "no begin: storage unavailable");
        CHECK(book.begun == 3);
    }
    CHECK(book.kept == std::vector{0});
}

TEST_CASE("a transaction inside of another one is refused instead of waiting for itself", "[storage][threads]") {
    ledger book;
    queue_type queue{book};
    ledger other_book;
    queue_type other{other_book};
    queue.run(true, [&] {
        CHECK_THROWS_AS(queue.run(true, [] {}), ax::error);
        other.run(true, [&] { other_book.pending.push_back(1); }); // on another store it is none of our business
        CHECK_THROWS_AS(queue.run(true, [] {}), ax::error);
        book.pending.push_back(2);
    });
    CHECK(book.kept == std::vector{2});
    CHECK(other_book.kept == std::vector{1});
}

TEST_CASE("of many threads each gets its own answer, and all that succeeded is kept once", "[storage][threads]") {
    ledger book;
    queue_type queue{book, 3};
    constexpr int threads = 8;
    constexpr int rounds = 200;
    std::barrier together{threads};
    std::atomic<int> wrong{0};
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            together.arrive_and_wait();
            for (int i = 0; i < rounds; ++i) {
                int const number = t * rounds + i;
                bool const refuse = number % 7 == 0;
                int seen = -1;
                try {
                    queue.run(i % 2 == 0, [&, number] {
                        book.pending.push_back(number);
                        if (refuse) throw refusal(std::to_string(number));
                        seen = number;
                    });
                    if (refuse || seen != number) ++wrong;
                } catch (refusal const& e) {
                    if (!refuse || e.what() != std::to_string(number)) ++wrong;
                }
            }
        });
    for (auto& thread : running) thread.join();
    CHECK(wrong == 0);
    CHECK_FALSE(book.overlapped);
    std::sort(book.kept.begin(), book.kept.end());
    std::vector<int> expected;
    for (int i = 0; i < threads * rounds; ++i)
        if (i % 7 != 0) expected.push_back(i);
    CHECK(book.kept == expected);
    for (auto const& group : book.groups) CHECK(group.size() <= 3);
}

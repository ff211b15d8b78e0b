#include "server/events/event_hub.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// Returns the entry; null at the end of the log.
template <typename Entry>
absl::StatusOr<Entry> EntryOf(absl::StatusOr<std::optional<Entry>> result) {
  if (!result.ok()) return result.status();
  return result->value_or(nullptr);
}

// Blocks for the next entry; null at the end of the log.
template <typename Item>
absl::StatusOr<std::shared_ptr<const Item>> Next(Subscription<Item>& subscription) {
  Awaited<typename Subscription<Item>::Result> result;
  subscription.Next(result.Done());
  return EntryOf(result.Get());
}

class EventHubTest : public testing::Test {
 protected:
  EventHubTest() {
    auto store = Store::Open(folder_.path() + "/tandem.db");
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    hub_ = std::make_unique<EventHub>(store_.get());
  }

  ~EventHubTest() override {
    hub_.reset();
    store_->Close();
  }

  void AddJob(const std::string& id) {
    Awaited<absl::Status> done;
    store_->Write(
        [id](Transaction& transaction) {
          StoredJob job;
          job.job.set_name(JobName(id));
          job.job.set_state(v1::JOB_STATE_RUNNING);
          return transaction.InsertJob(&job, "", {});
        },
        done.Done());
    EXPECT_TRUE(done.Get().ok());
  }

  // Adds a state change to the log.
  static absl::StatusOr<std::shared_ptr<const v1::JobEvent>> Append(Transaction* transaction, StoredJob* job,
                                                                    bool ends, size_t message_bytes = 0) {
    auto event = std::make_shared<v1::JobEvent>();
    event->set_job(job->job.name());
    event->set_sequence(job->job.last_sequence() + 1);
    event->set_terminal(ends);
    if (message_bytes > 0) event->mutable_notice()->set_message(std::string(message_bytes, 'm'));
    job->job.set_state(ends ? v1::JOB_STATE_FAILED : v1::JOB_STATE_RUNNING);
    TANDEM_RETURN_IF_ERROR(transaction->AppendEvent(*job, *event));
    job->job.set_last_sequence(event->sequence());
    return event;
  }

  // Commits an end and a resumption, without publishing them, and returns them.
  std::vector<std::shared_ptr<const v1::JobEvent>> CommitEndAndResumption(const std::string& id) {
    std::vector<std::shared_ptr<const v1::JobEvent>> events;
    Awaited<absl::Status> done;
    store_->Write(
        [&](Transaction& transaction) -> absl::Status {
          TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJobWithoutSpec(id));
          for (const bool ends : {true, false}) {
            TANDEM_ASSIGN_OR_RETURN(auto event, Append(&transaction, &job, ends));
            events.push_back(std::move(event));
          }
          return transaction.UpdateJob(&job);
        },
        done.Done());
    EXPECT_TRUE(done.Get().ok());
    return events;
  }

  // Commits and publishes `count` state changes, then calls `done`. If `ends`, the last change ends the job.
  void Log(const std::string& id, int count, bool ends, absl::AnyInvocable<void()> done) {
    struct Logged {
      std::vector<std::shared_ptr<const v1::JobEvent>> events;
      std::vector<std::shared_ptr<const JobChange>> changes;
    };
    auto logged = std::make_shared<Logged>();
    store_->Write(
        [=](Transaction& transaction) -> absl::Status {
          TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJobWithoutSpec(id));
          for (int i = 0; i < count; ++i) {
            TANDEM_ASSIGN_OR_RETURN(auto event,
                                    Append(&transaction, &job, ends && i + 1 == count, message_bytes_));
            auto change = std::make_shared<JobChange>();
            TANDEM_ASSIGN_OR_RETURN(change->cursor, transaction.AppendChange(job, event->sequence()));
            change->event = *event;
            logged->events.push_back(std::move(event));
            logged->changes.push_back(std::move(change));
          }
          return transaction.UpdateJob(&job);
        },
        [this, id, logged, done = std::move(done)](absl::Status status) mutable {
          EXPECT_TRUE(status.ok()) << status;
          for (const auto& event : logged->events) hub_->Publish(id, event);
          for (const auto& change : logged->changes) hub_->PublishChange(change);
          done();
        });
  }

  void LogAndWait(const std::string& id, int count, bool ends = false) {
    Awaited<bool> done;
    Log(id, count, ends, [call = done.Done()] { call(true); });
    done.Get();
  }

  void Delete(const std::string& id) {
    Awaited<absl::Status> done;
    store_->Write(
        [id](Transaction& transaction) -> absl::Status {
          TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJob(id));
          return transaction.DeleteJob(job);
        },
        [this, id, call = done.Done()](absl::Status status) {
          hub_->PublishDeleted(id);
          call(status);
        });
    EXPECT_TRUE(done.Get().ok());
  }

  // Takes `count` entries and returns their numbers.
  static std::vector<int64_t> Take(EventSubscription& subscription, int count) {
    std::vector<int64_t> sequences;
    for (int i = 0; i < count; ++i) {
      const auto event = Next(subscription);
      EXPECT_TRUE(event.ok()) << event.status();
      if (!event.ok() || *event == nullptr) break;
      sequences.push_back((*event)->sequence());
    }
    return sequences;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<EventHub> hub_;
  // The size of a notice in each event that Log adds; 0: none.
  size_t message_bytes_ = 0;
};

// For example, a job that failed and was resumed.
TEST_F(EventHubTest, AnEndThatOthersFollowIsNone) {
  AddJob("a");
  LogAndWait("a", 2, /*ends=*/true);
  const auto early = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*early, 2), ElementsAre(1, 2));
  auto end = Next(*early);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, nullptr);

  LogAndWait("a", 2);
  const auto watcher = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*watcher, 4), ElementsAre(1, 2, 3, 4));
  Awaited<EventSubscription::Result> next;
  watcher->Next(next.Done());
  EXPECT_FALSE(next.IsDone());
  LogAndWait("a", 1, /*ends=*/true);
  const auto event = EntryOf(next.Get());
  ASSERT_TRUE(event.ok() && *event != nullptr);
  EXPECT_EQ((*event)->sequence(), 5);
  end = Next(*watcher);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, nullptr);
}

// The end and the resumption may be in one commit, and are published after it.
TEST_F(EventHubTest, ALiveWatcherFollowsAJobThatIsResumedAtOnce) {
  AddJob("a");
  LogAndWait("a", 1);
  const auto watcher = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*watcher, 1), ElementsAre(1));
  Awaited<EventSubscription::Result> next;
  watcher->Next(next.Done());
  EXPECT_FALSE(next.IsDone());
  const auto events = CommitEndAndResumption("a");
  ASSERT_EQ(events.size(), 2);
  hub_->Publish("a", events[0]);
  const auto event = EntryOf(next.Get());
  ASSERT_TRUE(event.ok() && *event != nullptr);
  EXPECT_EQ((*event)->sequence(), 2);
  Awaited<EventSubscription::Result> after;
  watcher->Next(after.Done());
  hub_->Publish("a", events[1]);
  const auto later = EntryOf(after.Get());
  ASSERT_TRUE(later.ok() && *later != nullptr) << later.status();
  EXPECT_EQ((*later)->sequence(), 3);
}

TEST_F(EventHubTest, ReplaysThenFollowsThenEnds) {
  AddJob("a");
  LogAndWait("a", 3);
  const auto watcher = hub_->Subscribe("a", 1);
  EXPECT_THAT(Take(*watcher, 2), ElementsAre(2, 3));

  Awaited<EventSubscription::Result> next;
  watcher->Next(next.Done());
  EXPECT_FALSE(next.IsDone());
  LogAndWait("a", 1);
  const auto event = EntryOf(next.Get());
  ASSERT_TRUE(event.ok() && *event != nullptr);
  EXPECT_EQ((*event)->sequence(), 4);

  LogAndWait("a", 2, /*ends=*/true);
  EXPECT_THAT(Take(*watcher, 2), ElementsAre(5, 6));
  for (int i = 0; i < 2; ++i) {
    const auto end = Next(*watcher);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(*end, nullptr);
  }
}

TEST_F(EventHubTest, AWatcherThatHasSeenTheEndGetsTheEnd) {
  AddJob("a");
  LogAndWait("a", 2, /*ends=*/true);
  const auto end = Next(*hub_->Subscribe("a", 2));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, nullptr);
  EXPECT_THAT(Take(*hub_->Subscribe("a", 1), 1), ElementsAre(2));
}

TEST_F(EventHubTest, SaysWhatIsWrongWithAPosition) {
  AddJob("a");
  LogAndWait("a", 2);
  EXPECT_EQ(Next(*hub_->Subscribe("a", 3)).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Next(*hub_->Subscribe("b", 0)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Next(*hub_->SubscribeChanges(3)).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(EventHubTest, AWatcherThatIsSlowReadsTheLog) {
  EventHub::Options options;
  options.buffer_size = 2;
  options.read_size = 3;
  options.threads = 1;
  hub_ = std::make_unique<EventHub>(store_.get(), options);
  AddJob("a");
  LogAndWait("a", 1);
  const auto watcher = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*watcher, 1), ElementsAre(1));
  LogAndWait("a", 12);
  EXPECT_THAT(Take(*watcher, 5), ElementsAre(2, 3, 4, 5, 6));
  LogAndWait("a", 2);
  EXPECT_THAT(Take(*watcher, 9), ElementsAre(7, 8, 9, 10, 11, 12, 13, 14, 15));
  LogAndWait("a", 1, /*ends=*/true);
  EXPECT_THAT(Take(*watcher, 1), ElementsAre(16));
  EXPECT_EQ(*Next(*watcher), nullptr);
}

// The default buffer has 256 KiB, so 2 of these events.
constexpr size_t kLargeMessage = 100 << 10;

// The entries that a watcher gets after the log was deleted were in its buffer.
TEST_F(EventHubTest, ABufferOfLargeEntriesReadFromTheLogIsBounded) {
  AddJob("a");
  message_bytes_ = kLargeMessage;
  LogAndWait("a", 12);
  const auto events = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*events, 1), ElementsAre(1));
  Delete("a");
  EXPECT_THAT(Take(*events, 1), ElementsAre(2));
  EXPECT_EQ(Next(*events).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EventHubTest, ABufferOfLargePublishedEntriesIsBounded) {
  AddJob("a");
  LogAndWait("a", 1);
  const auto live = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*live, 1), ElementsAre(1));
  message_bytes_ = kLargeMessage;
  LogAndWait("a", 12);
  Delete("a");
  EXPECT_THAT(Take(*live, 2), ElementsAre(2, 3));
  EXPECT_EQ(Next(*live).status().code(), absl::StatusCode::kNotFound);
}

// Each entry that a watcher takes makes room for another.
TEST_F(EventHubTest, AWatcherThatKeepsUpStaysLive) {
  AddJob("a");
  LogAndWait("a", 1);
  const auto live = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*live, 1), ElementsAre(1));
  message_bytes_ = kLargeMessage;
  LogAndWait("a", 1);
  for (int64_t i = 2; i < 12; ++i) {
    LogAndWait("a", 1);
    EXPECT_THAT(Take(*live, 1), ElementsAre(i));
  }
  LogAndWait("a", 1);
  Delete("a");
  EXPECT_THAT(Take(*live, 2), ElementsAre(12, 13));
  EXPECT_EQ(Next(*live).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EventHubTest, SlowWatchersOfLargeEntriesGetEachOnce) {
  AddJob("a");
  message_bytes_ = kLargeMessage;
  LogAndWait("a", 7);
  const auto events = hub_->Subscribe("a", 0);
  const auto changes = hub_->SubscribeChanges(0);
  EXPECT_THAT(Take(*events, 7), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  LogAndWait("a", 5);
  EXPECT_THAT(Take(*events, 1), ElementsAre(8));
  // Larger than the whole buffer.
  message_bytes_ = 300 << 10;
  LogAndWait("a", 2);
  EXPECT_THAT(Take(*events, 6), ElementsAre(9, 10, 11, 12, 13, 14));
  LogAndWait("a", 3, /*ends=*/true);
  EXPECT_THAT(Take(*events, 3), ElementsAre(15, 16, 17));
  const auto end = Next(*events);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, nullptr);
  for (int64_t sequence = 1; sequence <= 17; ++sequence) {
    const auto change = Next(*changes);
    ASSERT_TRUE(change.ok() && *change != nullptr) << change.status();
    EXPECT_EQ((*change)->event.sequence(), sequence);
  }
}

TEST_F(EventHubTest, CancelAnswersAnOutstandingNext) {
  AddJob("a");
  const auto watcher = hub_->Subscribe("a", 0);
  Awaited<EventSubscription::Result> next;
  watcher->Next(next.Done());
  watcher->Cancel();
  EXPECT_EQ(next.Get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Next(*watcher).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(EventHubTest, DestroyingDropsTheCallback) {
  AddJob("a");
  auto held = std::make_shared<int>(0);
  auto watcher = hub_->Subscribe("a", 0);
  watcher->Next([held](EventSubscription::Result) { ADD_FAILURE(); });
  watcher.reset();
  LogAndWait("a", 1);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(EventHubTest, ACallbackMayAskForMoreAndDestroyItsSubscription) {
  AddJob("a");
  struct Watcher {
    std::unique_ptr<EventSubscription> subscription;
    std::vector<int64_t> seen;
    Awaited<std::vector<int64_t>> done;

    void Ask() {
      subscription->Next([this](EventSubscription::Result event) {
        ASSERT_TRUE(event.ok()) << event.status();
        if (!event->has_value()) {
          subscription.reset();
          done.Done()(seen);
          return;
        }
        seen.push_back((**event)->sequence());
        Ask();
      });
    }
  };
  Watcher watcher;
  watcher.subscription = hub_->Subscribe("a", 0);
  watcher.Ask();
  LogAndWait("a", 400);
  LogAndWait("a", 1, /*ends=*/true);
  std::vector<int64_t> all(401);
  std::generate(all.begin(), all.end(), [next = int64_t{0}]() mutable { return ++next; });
  EXPECT_EQ(watcher.done.Get(), all);
}

TEST_F(EventHubTest, ADeletedJobsWatchersGetWhatTheyHaveThenNotFound) {
  AddJob("a");
  LogAndWait("a", 1);
  const auto caught_up = hub_->Subscribe("a", 0);
  const auto behind = hub_->Subscribe("a", 0);
  EXPECT_THAT(Take(*caught_up, 1), ElementsAre(1));
  Awaited<EventSubscription::Result> next;
  caught_up->Next(next.Done());
  Delete("a");
  EXPECT_EQ(next.Get().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Next(*behind).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EventHubTest, CloseEndsEveryWatcherAtOnce) {
  AddJob("a");
  LogAndWait("a", 5);
  const auto waiting = hub_->Subscribe("a", 5);
  const auto reading = hub_->Subscribe("a", 0);
  const auto changes = hub_->SubscribeChanges(0);
  EXPECT_THAT(Take(*reading, 1), ElementsAre(1));
  Awaited<EventSubscription::Result> next;
  waiting->Next(next.Done());
  hub_->Close(absl::UnavailableError("bye"));
  EXPECT_EQ(next.Get().status().message(), "bye");
  EXPECT_EQ(Next(*reading).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Next(*changes).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Next(*hub_->Subscribe("a", 0)).status().message(), "bye");
  hub_.reset();
  EXPECT_EQ(Next(*reading).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(EventHubTest, ChangesOfAllJobsComeInOneOrder) {
  AddJob("a");
  AddJob("b");
  LogAndWait("a", 1);
  const auto all = hub_->SubscribeChanges(0);
  const auto only_new = hub_->SubscribeChanges(-1);
  LogAndWait("b", 2);
  LogAndWait("a", 1);
  std::vector<std::string> seen;
  int64_t cursor = 0;
  for (int i = 0; i < 4; ++i) {
    const auto change = Next(*all);
    ASSERT_TRUE(change.ok() && *change != nullptr);
    EXPECT_GT((*change)->cursor, cursor);
    cursor = (*change)->cursor;
    seen.push_back(absl::StrCat((*change)->event.job(), "#", (*change)->event.sequence()));
  }
  EXPECT_THAT(seen, ElementsAre("jobs/a#1", "jobs/b#1", "jobs/b#2", "jobs/a#2"));
  const auto first_new = Next(*only_new);
  ASSERT_TRUE(first_new.ok() && *first_new != nullptr);
  EXPECT_EQ((*first_new)->event.job(), "jobs/b");
  EXPECT_EQ((*first_new)->event.sequence(), 1);

  // A new hub on the same store knows the newest cursor. Cursors stay valid if a job is deleted.
  Delete("b");
  hub_ = std::make_unique<EventHub>(store_.get());
  const auto resumed = hub_->SubscribeChanges(cursor);
  const auto fresh = hub_->SubscribeChanges(-1);
  LogAndWait("a", 1);
  EXPECT_EQ((*Next(*resumed))->event.sequence(), 3);
  EXPECT_EQ((*Next(*fresh))->event.sequence(), 3);
}

// Fast and slow watchers follow a growing log, and some reconnect at their last number. Each must see every
// entry once and in order, and then the end.
TEST_F(EventHubTest, EveryWatcherSeesEveryEntryOnce) {
  constexpr int kEvents = 1500;
  constexpr int kWatchers = 6;
  EventHub::Options options;
  options.buffer_size = 8;
  options.read_size = 16;
  hub_ = std::make_unique<EventHub>(store_.get(), options);
  AddJob("a");
  std::atomic<int> failures = 0;
  std::vector<std::thread> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.emplace_back([&, i] {
      std::mt19937 random(i);
      int64_t seen = 0;
      auto subscription = hub_->Subscribe("a", seen);
      while (true) {
        // Slow watchers spin for a while.
        for (unsigned spin = random() % (1U << (2 * i + 1)); spin > 0; --spin) failures.load();
        if (random() % 100 == 0) {
          // Sometimes drop the subscription during a Next.
          if (random() % 2 == 0) subscription->Next([](EventSubscription::Result) {});
          subscription = hub_->Subscribe("a", seen);
        }
        const auto event = Next(*subscription);
        if (!event.ok()) {
          ++failures;
          return;
        }
        if (*event == nullptr) break;
        if ((*event)->sequence() != seen + 1) ++failures;
        seen = (*event)->sequence();
      }
      if (seen != kEvents) ++failures;
    });
  }
  std::mt19937 random(99);
  for (int logged = 0; logged < kEvents;) {
    const int count = std::min<int>(kEvents - logged, 1 + static_cast<int>(random() % 20));
    logged += count;
    // Await the last entry: its watchers learn of the end before the writer stops using the hub.
    if (logged == kEvents || random() % 4 == 0) {
      LogAndWait("a", count, logged == kEvents);
    } else {
      Log("a", count, /*ends=*/false, [] {});
    }
  }
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace tandem

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "gtest/gtest.h"
#include "server/store/append_next.h"
#include "server/store/awaited.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

std::unique_ptr<Store> OpenWithJobs(const std::string& path, int jobs) {
  auto store = Store::Open(path);
  if (!store.ok()) return nullptr;
  Awaited<absl::Status> done;
  (*store)->Write(
      [jobs](Transaction& transaction) -> absl::Status {
        for (int i = 0; i < jobs; ++i) {
          StoredJob job;
          job.job.set_name(JobName(absl::StrCat("j", i)));
          job.job.set_state(v1::JOB_STATE_RUNNING);
          TANDEM_RETURN_IF_ERROR(transaction.InsertJob(&job, "", {}));
        }
        return absl::OkStatus();
      },
      done.Done());
  return done.Get().ok() ? *std::move(store) : nullptr;
}

// Several threads write to their logs, and some bodies fail. Answers must come once, in order and on one
// thread. Acknowledged data must be readable at once, and a failed body must leave no gap.
TEST(StoreStressTest, ManyWritersOneOrder) {
  constexpr int kWriters = 4;
  constexpr int kWrites = 400;
  TemporaryFolder folder;
  const std::unique_ptr<Store> store = OpenWithJobs(folder.path() + "/tandem.db", kWriters);
  ASSERT_NE(store, nullptr);

  // The order of all bodies and answers, by a ticket drawn on the writer thread.
  int64_t bodies = 0;   // only the writer thread uses it
  int64_t answers = 0;  // only the writer thread uses it
  std::atomic<int> wrong_order = 0;
  std::atomic<int> wrong_sequence = 0;
  std::atomic<int> not_visible = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      const std::string id = absl::StrCat("j", writer);
      std::mt19937 random(writer);
      auto expected = std::make_shared<int64_t>(0);  // the writer thread's alone
      for (int i = 0; i < kWrites; ++i) {
        const bool fails = random() % 5 == 0;
        auto ticket = std::make_shared<int64_t>(0);
        auto sequence = std::make_shared<int64_t>(0);
        const bool look = random() % 16 == 0;
        store->Write(
            [&, id, fails, ticket, sequence](Transaction& transaction) -> absl::Status {
              *ticket = bodies++;
              TANDEM_RETURN_IF_ERROR(AppendNext(transaction, id, sequence.get()));
              return fails ? absl::AbortedError("on purpose") : absl::OkStatus();
            },
            [&, id, fails, look, ticket, sequence, expected](absl::Status status) {
              if (*ticket != answers++) ++wrong_order;
              if (status.ok() == fails) ++wrong_sequence;
              if (!status.ok()) return;
              if (*sequence != ++*expected) ++wrong_sequence;
              if (!look) return;
              const auto page = store->ReadEvents(id, *sequence - 1, 1);
              if (!page.ok() || page->events.empty() || page->events[0].sequence() != *sequence)
                ++not_visible;
            });
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  store->Close();
  EXPECT_EQ(answers, kWriters * kWrites);
  EXPECT_EQ(bodies, kWriters * kWrites);
  EXPECT_EQ(wrong_order, 0);
  EXPECT_EQ(wrong_sequence, 0);
  EXPECT_EQ(not_visible, 0);
  for (int writer = 0; writer < kWriters; ++writer) {
    const auto page = store->ReadEvents(absl::StrCat("j", writer), 0, 100000);
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(static_cast<int64_t>(page->events.size()), page->last_sequence);
  }
}

// A process writes and prints acknowledged events until it is killed. The reopened store must have all of
// them and no partial write.
TEST(StoreStressTest, WhatWasAnsweredOutlivesAKill) {
  constexpr int kRounds = 5;
  TemporaryFolder folder;
  const std::string path = folder.path() + "/tandem.db";
  { ASSERT_NE(OpenWithJobs(path, 1), nullptr); }
  std::string program = absl::StrCat(getenv("TEST_SRCDIR"), "/tandem/server/store/endless_writer");
  std::mt19937 random(1);
  int64_t before = 0;
  for (int round = 0; round < kRounds; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
    std::string file = path;
    char* const arguments[] = {program.data(), file.data(), nullptr};
    pid_t child;
    ASSERT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ), 0) << program;
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_ends[1]);
    const int64_t kill_at = before + 20 + static_cast<int64_t>(random() % 300);
    int64_t answered = 0;
    int64_t sequence;
    bool killed = false;
    while (read(pipe_ends[0], &sequence, sizeof(sequence)) == sizeof(sequence)) {
      EXPECT_EQ(sequence, (answered == 0 ? before : answered) + 1);
      answered = sequence;
      if (answered >= kill_at && !killed) {
        kill(child, SIGKILL);
        killed = true;
      }
    }
    close(pipe_ends[0]);
    int exit_status;
    ASSERT_EQ(waitpid(child, &exit_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(exit_status)) << exit_status;

    auto store = Store::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto page = (*store)->ReadEvents("j0", 0, 1000000);
    ASSERT_TRUE(page.ok());
    EXPECT_GE(page->last_sequence, answered);
    ASSERT_EQ(static_cast<int64_t>(page->events.size()), page->last_sequence);
    for (size_t i = 0; i < page->events.size(); ++i) {
      ASSERT_EQ(page->events[i].sequence(), static_cast<int64_t>(i) + 1);
    }
    before = page->last_sequence;
  }
}

}  // namespace
}  // namespace tandem

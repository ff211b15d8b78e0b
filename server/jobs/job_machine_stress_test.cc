#include <algorithm>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

// The worker's connection breaks and daemons end at random moments. The worker sends all unacknowledged
// events again, in batches of random sizes. The log must have each event once, in order.
TEST(JobMachineStressTest, AWorkersEventsAreAppliedOnceWhateverBreaks) {
  constexpr int kEvents = 600;
  for (int seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    JobMachineFixture jobs;
    const std::string id = jobs.NewJob();
    ASSERT_TRUE(jobs.Schedule(id).ok());
    std::vector<internal::v1::WorkerEvent> spool = {Started(1)};
    for (int i = 2; i < kEvents; ++i) spool.push_back(ProgressAt(i, i));
    spool.push_back(Finished(kEvents, v1::JOB_STATE_SUCCEEDED));

    size_t acknowledged = 0;
    while (acknowledged < spool.size()) {
      // Sent without waiting. Some batches overlap known events.
      std::vector<Awaited<absl::StatusOr<JobMachine::WorkerPosition>>> answers(1 + random() % 4);
      size_t sent = acknowledged;
      for (auto& answer : answers) {
        const size_t from = sent - std::min<size_t>(sent, random() % 4);
        const size_t to = std::min(spool.size(), sent + random() % 40);
        jobs.machine().ApplyWorkerEvents(id, 1, {spool.begin() + from, spool.begin() + to}, answer.Done());
        sent = to;
      }
      const bool daemon_ends = random() % 8 == 0;
      const bool answers_are_lost = random() % 3 == 0;
      if (daemon_ends) jobs.Reopen();
      for (auto& answer : answers) {
        const auto position = answer.Get();
        ASSERT_TRUE(position.ok()) << position.status();
        if (!answers_are_lost) acknowledged = position->worker_sequence;
      }
    }
    const std::vector<v1::JobEvent> log = jobs.Log(id);
    ASSERT_EQ(log.size(), static_cast<size_t>(kEvents) + 2);
    for (int i = 0; i < static_cast<int>(log.size()); ++i) {
      ASSERT_EQ(log[i].sequence(), i + 1);
      if (i > 2 && i + 1 < static_cast<int>(log.size())) {
        ASSERT_EQ(log[i].progress().step(), i - 1);
      }
    }
    EXPECT_TRUE(log.back().terminal());
  }
}

// Many threads change the same jobs. In any order, each job ends once and its log is valid.
TEST(JobMachineStressTest, RacesEndInOneOfTheAllowedWays) {
  constexpr int kJobs = 30;
  JobMachineFixture jobs;
  std::vector<std::string> ids;
  for (int i = 0; i < kJobs; ++i) ids.push_back(jobs.NewJob());
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (const std::string& id : ids) {
      if (!jobs.Schedule(id).ok()) continue;
      jobs.Apply(id, 1, {Started(1)}).IgnoreError();
      jobs.Apply(id, 1, {ProgressAt(2, 1), Finished(3, v1::JOB_STATE_SUCCEEDED)}).IgnoreError();
    }
  });
  threads.emplace_back([&] {
    std::mt19937 random(1);
    for (int i = 0; i < kJobs; ++i) jobs.Cancel(ids[random() % kJobs]).IgnoreError();
  });
  threads.emplace_back([&] {
    std::mt19937 random(2);
    for (int i = 0; i < kJobs; ++i) jobs.WorkerLost(ids[random() % kJobs], 1).IgnoreError();
  });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& id : ids) {
    jobs.WorkerLost(id, 1).IgnoreError();
    const std::vector<v1::JobEvent> log = jobs.Log(id);
    for (size_t i = 0; i < log.size(); ++i) {
      EXPECT_EQ(log[i].sequence(), static_cast<int64_t>(i) + 1);
      EXPECT_EQ(log[i].terminal(), i + 1 == log.size()) << id;
    }
  }
  // Each job ended once.
  EXPECT_TRUE(jobs.machine().NonTerminalJobs()->empty());
  size_t terminal = 0;
  for (const std::string& heard : jobs.observer().Take()) terminal += heard.rfind("terminal", 0) == 0;
  EXPECT_EQ(terminal, static_cast<size_t>(kJobs));
}

// The same request from several clients at once creates one job.
TEST(JobMachineStressTest, ARequestIdMakesOneJobAmongMany) {
  JobMachineFixture jobs;
  std::vector<std::string> names(4);
  std::vector<std::thread> clients;
  for (std::string& name : names) {
    clients.emplace_back([&jobs, &name] {
      const auto job = jobs.Create("same", "request");
      if (job.ok()) name = job->name();
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_FALSE(names[0].empty());
  EXPECT_EQ(names, std::vector<std::string>(4, names[0]));
}

}  // namespace
}  // namespace tandem

#include "server/sweeps/sweep_pruner.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/jobs/job_machine_fixture.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::Not;

class SweepPrunerTest : public testing::Test {
 protected:
  SweepPrunerTest() { Attach(); }
  ~SweepPrunerTest() override {
    for (const auto& pruner : pruners_) pruner->Stop();
  }

  void Attach() {
    pruners_.push_back(std::make_unique<SweepPruner>(&jobs_.machine()));
    jobs_.machine().AddObserver(pruners_.back().get());
  }
  // As after a restart of the daemon.
  void Restart() {
    pruners_.back()->Stop();
    jobs_.Reopen();
    Attach();
  }

  // Creates a sweep, and returns the ids of its jobs.
  std::vector<std::string> CreateSweep(int jobs, bool prunes) {
    JobMachine::NewSweep sweep;
    sweep.sweep.set_display_name("search");
    sweep.sweep.mutable_objective()->set_metric("loss");
    sweep.sweep.mutable_objective()->set_mode(v1::PLATEAU_MODE_MIN);
    if (prunes) sweep.sweep.mutable_pruning()->set_min_jobs(2);
    sweep.user = "ann";
    for (int i = 0; i < jobs; ++i) {
      v1::JobSpec spec;
      spec.set_name("small");
      sweep.jobs.emplace_back().spec = spec.SerializeAsString();
    }
    Awaited<absl::StatusOr<StoredSweep>> done;
    jobs_.machine().CreateSweep(std::move(sweep), done.Done());
    const absl::StatusOr<StoredSweep> made = done.Get();
    EXPECT_TRUE(made.ok()) << made.status();
    std::vector<std::string> ids;
    if (made.ok()) {
      for (const StoredJob& row : made->jobs) ids.push_back(JobId(row.job.name()));
    }
    return ids;
  }
  void Start(const std::string& id) {
    EXPECT_TRUE(jobs_.Schedule(id).ok());
    EXPECT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  }
  // The worker's events 2, 3 and so on are the epochs 1, 2 and so on.
  void Train(const std::string& id, int epoch, double best) {
    EXPECT_TRUE(jobs_.Apply(id, 1, {EpochAt(epoch + 1, epoch, best)}).ok());
  }
  static internal::v1::WorkerEvent EpochAt(int64_t sequence, int epoch, double best) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    v1::EpochSummary& report = *event.mutable_report()->mutable_epoch();
    report.set_epoch(epoch);
    report.set_epochs(10);
    report.mutable_best()->set_metric("loss");
    report.mutable_best()->set_value(best);
    return event;
  }
  void Succeed(const std::string& id, double loss) {
    Start(id);
    Train(id, 1, loss);
    EXPECT_TRUE(jobs_.Apply(id, 1, {Finished(3, v1::JOB_STATE_SUCCEEDED)}).ok());
  }
  // Overwrites the job's events.
  void DamageLog(const std::string& id) {
    SQLite::Database database(jobs_.DatabasePath(), SQLite::OPEN_READWRITE);
    EXPECT_GT(
        database.exec(absl::StrCat(
            "UPDATE events SET event = x'ff' WHERE job = (SELECT number FROM jobs WHERE id = '", id, "')")),
        0);
  }
  bool IsStopped(const std::string& id) {
    for (int i = 0; i < 500; ++i) {
      if (jobs_.Get(id).state() == v1::JOB_STATE_CANCELLING) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }
  // Waits until the pruner has judged all earlier events: it judges them in order.
  void ExpectTrainsOn(const std::string& id, const std::string& bad) {
    Start(bad);
    Train(bad, 1, 100);
    EXPECT_TRUE(IsStopped(bad));
    EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_RUNNING);
  }

  // Creates a sweep with a job that SUCCEEDED after many epochs, long_job_. Returns an epoch of its other
  // job.
  v1::JobEvent FirstEpochBesideALongLog() {
    const std::vector<std::string> ids = CreateSweep(2, /*prunes=*/true);
    long_job_ = ids[0];
    Start(ids[0]);
    std::vector<internal::v1::WorkerEvent> epochs;
    for (int i = 1; i <= kLongLog; ++i) epochs.push_back(EpochAt(i + 1, i, 1.0 / i));
    epochs.push_back(Finished(kLongLog + 2, v1::JOB_STATE_SUCCEEDED));
    EXPECT_TRUE(jobs_.Apply(ids[0], 1, std::move(epochs)).ok());
    v1::JobEvent event;
    event.set_job(JobName(ids[1]));
    *event.mutable_epoch() = EpochAt(2, 1, 0.9).report().epoch();
    return event;
  }

  static constexpr int kLongLog = 50'000;
  std::string long_job_;
  // Outlive the store's writer.
  std::vector<std::unique_ptr<SweepPruner>> pruners_;
  JobMachineFixture jobs_;
};

TEST_F(SweepPrunerTest, StopsAJobThatIsWorseThanMost) {
  const std::vector<std::string> ids = CreateSweep(5, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Succeed(ids[1], 0.7);
  Start(ids[2]);
  Train(ids[2], 1, 0.9);
  ASSERT_TRUE(IsStopped(ids[2]));
  v1::Job job = jobs_.Get(ids[2]);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_PRUNED);
  EXPECT_THAT(job.message(), HasSubstr("after epoch 1 was 0.9, worse than 0.6, the median of 2 jobs"));
  // The reason stays at the end.
  ASSERT_TRUE(jobs_.Apply(ids[2], 1, {Finished(3, v1::JOB_STATE_CANCELLED)}).ok());
  job = jobs_.Get(ids[2]);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_PRUNED);
  EXPECT_THAT(job.message(), HasSubstr("worse than 0.6"));
  // A pruned job does not count. A good job trains on.
  Start(ids[3]);
  Train(ids[3], 1, 0.55);
  ExpectTrainsOn(ids[3], ids[4]);
}

TEST_F(SweepPrunerTest, StopsNoJobOfAnotherSweepOrOfNone) {
  const std::vector<std::string> others = CreateSweep(3, /*prunes=*/false);
  Succeed(others[0], 0.1);
  Succeed(others[1], 0.1);
  const std::vector<std::string> ids = CreateSweep(3, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Succeed(ids[1], 0.5);
  Start(others[2]);
  Train(others[2], 1, 50);
  const std::string alone = jobs_.RunningJob();
  Train(alone, 1, 50);
  ExpectTrainsOn(others[2], ids[2]);
  EXPECT_EQ(jobs_.Get(alone).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(SweepPrunerTest, TheNextDaemonKnowsTheJobsThatSucceeded) {
  const std::vector<std::string> ids = CreateSweep(3, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Succeed(ids[1], 0.5);
  Start(ids[2]);
  Restart();
  Train(ids[2], 1, 0.6);
  EXPECT_TRUE(IsStopped(ids[2]));
}

TEST_F(SweepPrunerTest, AJobThatSucceedsLaterCounts) {
  const std::vector<std::string> ids = CreateSweep(4, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Start(ids[2]);
  // One job is too few. The pruner now knows the sweep.
  Train(ids[2], 1, 0.9);
  Succeed(ids[1], 0.5);
  Train(ids[2], 2, 0.9);
  EXPECT_TRUE(IsStopped(ids[2]));
}

TEST_F(SweepPrunerTest, AJobWithoutAJudgedEpochCounts) {
  const std::vector<std::string> ids = CreateSweep(3, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Start(ids[1]);
  Train(ids[1], 1, 0.5);
  Start(ids[2]);
  Restart();
  // The new pruner reads the sweep now. It never sees an epoch of the second job.
  Train(ids[2], 1, 0.9);
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_TRUE(jobs_.Apply(ids[1], 1, {Finished(3, v1::JOB_STATE_SUCCEEDED)}).ok());
  absl::SleepFor(absl::Milliseconds(100));
  Train(ids[2], 2, 0.9);
  EXPECT_TRUE(IsStopped(ids[2]));
}

TEST_F(SweepPrunerTest, ADeletedJobDoesNotCount) {
  const std::vector<std::string> ids = CreateSweep(5, /*prunes=*/true);
  const std::vector<std::string> others = CreateSweep(4, /*prunes=*/true);
  Succeed(others[0], 0.5);
  Succeed(others[1], 0.5);
  Succeed(ids[0], 0.5);
  Succeed(ids[1], 0.5);
  Start(ids[2]);
  Train(ids[2], 1, 0.9);
  EXPECT_TRUE(IsStopped(ids[2]));
  ASSERT_TRUE(jobs_.Delete(ids[1]).ok());
  Start(ids[3]);
  Train(ids[3], 1, 0.9);
  // After the second of these jobs has stopped, all earlier epochs are judged.
  ExpectTrainsOn(ids[3], others[2]);
  ExpectTrainsOn(ids[3], others[3]);
}

TEST_F(SweepPrunerTest, AJobThatWasPausedIsJudgedAgain) {
  const std::vector<std::string> ids = CreateSweep(4, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Succeed(ids[1], 0.5);
  Start(ids[2]);
  EXPECT_TRUE(jobs_.Pause(ids[2]).ok());
  Train(ids[2], 1, 0.9);
  // After this job has stopped, the epoch was judged, or is judged with the next.
  Start(ids[3]);
  Train(ids[3], 1, 0.9);
  EXPECT_TRUE(IsStopped(ids[3]));
  EXPECT_EQ(jobs_.Get(ids[2]).state(), v1::JOB_STATE_PAUSING);
  EXPECT_TRUE(jobs_.Apply(ids[2], 1, {Finished(3, v1::JOB_STATE_PAUSED)}).ok());
  EXPECT_TRUE(jobs_.Resume(ids[2]).ok());
  EXPECT_TRUE(jobs_.Schedule(ids[2]).ok());
  EXPECT_TRUE(jobs_.Apply(ids[2], 2, {Started(1), EpochAt(2, 2, 0.9)}).ok());
  EXPECT_TRUE(IsStopped(ids[2]));
}

TEST_F(SweepPrunerTest, AJobThatStopsIsNotJudgedAgain) {
  std::ostringstream text;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text);
  const auto logger = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  const std::vector<std::string> ids = CreateSweep(5, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Succeed(ids[1], 0.5);
  Start(ids[2]);
  Train(ids[2], 1, 0.9);
  EXPECT_TRUE(IsStopped(ids[2]));
  // Its worker finishes some epochs until it stops.
  Train(ids[2], 2, 0.9);
  Train(ids[2], 3, 0.9);
  for (const int next : {3, 4}) {
    Start(ids[next]);
    Train(ids[next], 1, 0.9);
    EXPECT_TRUE(IsStopped(ids[next]));
  }
  pruners_.back()->Stop();
  spdlog::set_default_logger(logger);
  const std::string log = text.str();
  EXPECT_THAT(log, HasSubstr("pruning job=" + ids[2] + " epoch=1"));
  EXPECT_THAT(log, Not(HasSubstr("pruning job=" + ids[2] + " epoch=2")));
  EXPECT_THAT(log, Not(HasSubstr("pruning job=" + ids[2] + " epoch=3")));
}

TEST_F(SweepPrunerTest, AJobThatSucceededCountsForALaterEpochOfTheSameLook) {
  std::vector<std::string> ids = CreateSweep(3, /*prunes=*/true);
  // The pruner takes the jobs of a look in the order of their ids.
  std::sort(ids.begin(), ids.end());
  const std::vector<std::string> others = CreateSweep(4, /*prunes=*/true);
  Succeed(others[0], 0.5);
  Succeed(others[1], 0.5);
  Succeed(ids[1], 0.5);
  Start(ids[0]);
  Train(ids[0], 1, 0.9);
  ExpectTrainsOn(ids[0], others[2]);
  ExpectTrainsOn(ids[0], others[3]);
  // The pruner knows this sweep with its first success. While it reads a long log, two jobs have news.
  pruners_.back()->OnEvent(FirstEpochBesideALongLog());
  Succeed(ids[2], 0.5);
  Train(ids[0], 2, 0.9);
  EXPECT_TRUE(IsStopped(ids[0]));
}

TEST_F(SweepPrunerTest, AStopDoesNotWaitForLongLogs) {
  const v1::JobEvent event = FirstEpochBesideALongLog();
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(
      jobs_.machine().VisitEvents(long_job_, 0, kLongLog * 2, [](const v1::JobEvent&) { return true; }).ok());
  const absl::Duration whole = absl::Now() - begin;
  absl::Duration shortest = absl::InfiniteDuration();
  // The machine may be busy.
  for (int i = 0; i < 20 && shortest > whole / 2; ++i) {
    SweepPruner pruner(&jobs_.machine());
    pruner.OnEvent(event);
    absl::SleepFor(whole / 10);
    const absl::Time stop = absl::Now();
    pruner.Stop();
    shortest = std::min(shortest, absl::Now() - stop);
  }
  EXPECT_LT(shortest, whole / 2);
}

TEST_F(SweepPrunerTest, AnUnreadableLogIsReadOnceAndItsJobDoesNotCount) {
  std::ostringstream text;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text);
  const auto logger = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  const std::vector<std::string> ids = CreateSweep(5, /*prunes=*/true);
  Succeed(ids[0], 0.5);
  Succeed(ids[1], 0.5);
  Succeed(ids[2], 0.5);
  DamageLog(ids[0]);
  // The next pruner has not read the log yet.
  Restart();
  for (const int next : {3, 4}) {
    Start(ids[next]);
    Train(ids[next], 1, 0.9);
    EXPECT_TRUE(IsStopped(ids[next]));
    EXPECT_THAT(jobs_.Get(ids[next]).message(), HasSubstr("the median of 2 jobs"));
  }
  pruners_.back()->Stop();
  spdlog::set_default_logger(logger);
  const std::string log = text.str();
  const std::string warning = "a job does not count for the pruning of its sweep job=" + ids[0];
  EXPECT_THAT(log, HasSubstr(warning));
  EXPECT_EQ(log.find(warning), log.rfind(warning));
}

TEST_F(SweepPrunerTest, OnlyARunningJobIsPruned) {
  const std::string id = jobs_.NewJob();
  Awaited<absl::StatusOr<v1::Job>> done;
  jobs_.machine().Prune(id, "It is bad.", done.Done());
  const absl::StatusOr<v1::Job> pruned = done.Get();
  EXPECT_TRUE(absl::IsFailedPrecondition(pruned.status()));
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_QUEUED);
  Awaited<absl::StatusOr<v1::Job>> unknown;
  jobs_.machine().Prune("none", "It is bad.", unknown.Done());
  EXPECT_TRUE(absl::IsNotFound(unknown.Get().status()));
}

}  // namespace
}  // namespace tandem

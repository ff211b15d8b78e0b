#include "server/sweeps/results.h"

#include <gtest/gtest.h>

#include <limits>

namespace tandem {
namespace {

StoredJob Job(int index, v1::JobState state, double best = std::numeric_limits<double>::quiet_NaN()) {
  StoredJob row;
  v1::Job& job = row.job;
  job.set_name(JobName("j" + std::to_string(index)));
  job.set_sweep_index(index);
  job.set_state(state);
  if (IsTerminal(state)) job.mutable_end_time()->set_seconds(100 + index);
  if (state == v1::JOB_STATE_SUCCEEDED) job.add_artifacts()->set_name("model.safetensors");
  if (best == best) {
    job.mutable_best()->set_metric("accuracy");
    job.mutable_best()->set_value(best);
    job.mutable_best()->set_validation(true);
    job.mutable_last_epoch()->set_epoch(2);
    job.mutable_last_epoch()->set_epochs(5);
    (*job.mutable_last_epoch()->mutable_validation()->mutable_metrics())["accuracy"] = best - 0.1;
  }
  return row;
}

StoredSweep Sweep(std::vector<StoredJob> jobs) {
  StoredSweep sweep;
  sweep.sweep.mutable_objective()->set_metric("accuracy");
  sweep.sweep.mutable_objective()->set_mode(v1::PLATEAU_MODE_MAX);
  sweep.jobs = std::move(jobs);
  return sweep;
}

v1::SweepState StateOf(const StoredSweep& sweep) { return DescribeSweep(sweep).state(); }

TEST(SweepResults, StateFollowsFromTheJobs) {
  const StoredJob queued = Job(0, v1::JOB_STATE_QUEUED);
  const StoredJob paused = Job(1, v1::JOB_STATE_PAUSED);
  const StoredJob succeeded = Job(2, v1::JOB_STATE_SUCCEEDED);
  const StoredJob failed = Job(3, v1::JOB_STATE_FAILED);
  const StoredJob cancelled = Job(4, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(StateOf(Sweep({queued, succeeded})), v1::SWEEP_STATE_ACTIVE);
  EXPECT_EQ(StateOf(Sweep({paused, succeeded})), v1::SWEEP_STATE_ACTIVE);
  EXPECT_EQ(StateOf(Sweep({failed, succeeded})), v1::SWEEP_STATE_SUCCEEDED);
  EXPECT_EQ(StateOf(Sweep({failed, cancelled})), v1::SWEEP_STATE_FAILED);
  EXPECT_EQ(StateOf(Sweep({})), v1::SWEEP_STATE_FAILED);
  StoredSweep stopped = Sweep({queued, succeeded});
  stopped.sweep.set_state(v1::SWEEP_STATE_CANCELLING);
  EXPECT_EQ(StateOf(stopped), v1::SWEEP_STATE_CANCELLING);
  stopped.jobs = {cancelled, succeeded};
  EXPECT_EQ(StateOf(stopped), v1::SWEEP_STATE_CANCELLED);
}

TEST(SweepResults, TheBestIsTheFirstOfTheBestThatDidNotFail) {
  const StoredSweep stored = Sweep({Job(0, v1::JOB_STATE_SUCCEEDED, 0.8), Job(1, v1::JOB_STATE_FAILED, 0.99),
                                    Job(2, v1::JOB_STATE_RUNNING, 0.9), Job(3, v1::JOB_STATE_SUCCEEDED, 0.9),
                                    Job(4, v1::JOB_STATE_QUEUED)});
  const v1::Sweep sweep = DescribeSweep(stored);
  EXPECT_EQ(sweep.best().job(), "jobs/j2");
  EXPECT_EQ(sweep.best().best().value(), 0.9);
  ASSERT_EQ(sweep.results_size(), 5);
  EXPECT_EQ(sweep.results(1).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(sweep.results(2).epochs(), 2);
  EXPECT_EQ(sweep.results(2).epochs_planned(), 5);
  EXPECT_EQ(sweep.results(2).last_value(), 0.9 - 0.1);
  EXPECT_FALSE(sweep.results(4).has_best());
  EXPECT_FALSE(sweep.results(4).has_last_value());
  EXPECT_FALSE(sweep.has_end_time());
  int jobs = 0;
  for (const v1::SweepCount& count : sweep.counts()) jobs += count.jobs();
  EXPECT_EQ(jobs, 5);

  StoredSweep downwards = stored;
  downwards.sweep.mutable_objective()->set_mode(v1::PLATEAU_MODE_MIN);
  EXPECT_EQ(DescribeSweep(downwards).best().job(), "jobs/j0");
}

// The first job's last weights have 0.7. The second job's last weights have 0.75, and its best was worse.
TEST(SweepResults, TheStarIsOfTheWeightsThatADownloadReturns) {
  StoredSweep stored = Sweep({Job(0, v1::JOB_STATE_SUCCEEDED, 0.9), Job(1, v1::JOB_STATE_SUCCEEDED, 0.85),
                              Job(2, v1::JOB_STATE_CANCELLED, 0.99)});
  const auto set_last = [&](int index, double value) {
    v1::EpochSummary* const epoch = stored.jobs[index].job.mutable_last_epoch();
    (*epoch->mutable_validation()->mutable_metrics())["accuracy"] = value;
  };
  set_last(0, 0.7);
  set_last(1, 0.75);
  v1::Sweep sweep = DescribeSweep(stored);
  EXPECT_EQ(sweep.best().job(), "jobs/j1");
  EXPECT_EQ(sweep.best().value(), 0.75);
  EXPECT_EQ(sweep.best().artifact(), "model.safetensors");
  EXPECT_FALSE(sweep.results(2).has_value()) << "it has no model";

  // The best weights are kept.
  for (StoredJob& row : stored.jobs) row.job.add_artifacts()->set_name("best.safetensors");
  stored.jobs[2].job.clear_artifacts();
  sweep = DescribeSweep(stored);
  EXPECT_EQ(sweep.best().job(), "jobs/j0");
  EXPECT_EQ(sweep.best().value(), 0.9);
  EXPECT_EQ(sweep.best().artifact(), "best.safetensors");
}

// The value is of the last validation. The weights are of the step of the cancellation.
TEST(SweepResults, ACancelledJobNamesTheStepsOfItsValueAndItsWeights) {
  StoredSweep stored = Sweep({Job(0, v1::JOB_STATE_CANCELLED, 0.9)});
  v1::Job& job = stored.jobs[0].job;
  job.add_artifacts()->set_name("model.safetensors");
  job.mutable_best()->set_step(5000);
  job.mutable_last_epoch()->set_step(10000);
  v1::TrainingSummary* const summary = job.mutable_summary();
  summary->set_steps(15934);
  summary->set_validation_step(15000);
  (*summary->mutable_validation()->mutable_metrics())["accuracy"] = 0.7;
  v1::SweepResult result = DescribeSweep(stored).results(0);
  EXPECT_EQ(result.value(), 0.7);
  EXPECT_EQ(result.value_step(), 15000);
  EXPECT_EQ(result.weights_step(), 15934);

  // Without validation, the value is over the last epoch.
  job.mutable_best()->set_validation(false);
  (*summary->mutable_training()->mutable_metrics())["accuracy"] = 0.6;
  result = DescribeSweep(stored).results(0);
  EXPECT_EQ(result.value(), 0.6);
  EXPECT_EQ(result.value_step(), 10000);
  EXPECT_EQ(result.weights_step(), 15934);

  job.add_artifacts()->set_name("best.safetensors");
  result = DescribeSweep(stored).results(0);
  EXPECT_EQ(result.value(), 0.9);
  EXPECT_EQ(result.value_step(), 5000);
  EXPECT_EQ(result.weights_step(), 5000);
}

// A job that keeps its best weights has them before its record names the file. Jobs are read without their
// specs.
TEST(SweepResults, ARunningJobCountsByTheWeightsThatItWillKeep) {
  StoredSweep stored = Sweep({Job(0, v1::JOB_STATE_RUNNING, 0.9), Job(1, v1::JOB_STATE_RUNNING, 0.95)});
  v1::Sweep sweep = DescribeSweep(stored);
  EXPECT_EQ(sweep.best().job(), "jobs/j1");
  EXPECT_EQ(sweep.best().artifact(), "model.safetensors");
  EXPECT_NEAR(sweep.results(1).value(), 0.85, 1e-12);
  for (StoredJob& row : stored.jobs) row.keeps_best = true;
  sweep = DescribeSweep(stored);
  EXPECT_EQ(sweep.best().job(), "jobs/j1");
  EXPECT_EQ(sweep.best().artifact(), "best.safetensors");
  EXPECT_EQ(sweep.results(0).value(), 0.9);
  EXPECT_EQ(sweep.results(1).value(), 0.95);

  // The grid varies keep_best.
  stored.jobs[1].keeps_best = false;
  sweep = DescribeSweep(stored);
  EXPECT_EQ(sweep.best().job(), "jobs/j0");
  EXPECT_EQ(sweep.results(1).artifact(), "model.safetensors");
  EXPECT_NEAR(sweep.results(1).value(), 0.85, 1e-12);
}

TEST(SweepResults, AnEndIsThatOfTheLastJob) {
  const v1::Sweep sweep =
      DescribeSweep(Sweep({Job(0, v1::JOB_STATE_SUCCEEDED), Job(5, v1::JOB_STATE_FAILED)}));
  EXPECT_EQ(sweep.end_time().seconds(), 105);
  EXPECT_FALSE(sweep.has_best());
}

}  // namespace
}  // namespace tandem

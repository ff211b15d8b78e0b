#include "server/worker/job_run.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/env.h"
#include "engine/base/mutex.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using internal::v1::WorkerEvent;

// Behaves as the test says instead of training.
class FakeTrainer : public Trainer {
 public:
  using Body = std::function<absl::Status(FakeTrainer&)>;
  FakeTrainer(Options options, Body body) : options_(std::move(options)), body_(std::move(body)) {}

  absl::Status Run() override { return body_(*this); }
  void Cancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  void Pause() override {
    MutexLock lock(&mutex_);
    paused_ = true;
  }
  TrainingOutcome outcome() const override { return outcome_; }
  v1::TrainingSummary Summary() const override { return summary_; }
  absl::Status SaveModel(const std::string& path) const override {
    if (model_.empty()) return absl::UnavailableError("no space left");
    std::ofstream(path) << model_;
    return absl::OkStatus();
  }

  TrainerObserver& observer() { return *options_.observer; }
  absl::Status WaitForCancel() {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&cancelled_));
    return absl::CancelledError("cancelled");
  }
  absl::Status WaitForPause() {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&paused_));
    outcome_ = {v1::STATE_REASON_PAUSE_REQUESTED, ""};
    return absl::OkStatus();
  }
  void set_model(std::string model) { model_ = std::move(model); }
  void set_outcome(TrainingOutcome outcome) { outcome_ = std::move(outcome); }
  v1::TrainingSummary& summary() { return summary_; }

 private:
  const Options options_;
  const Body body_;
  std::string model_ = "abc";
  TrainingOutcome outcome_ = {v1::STATE_REASON_COMPLETED, "All epochs were trained."};
  v1::TrainingSummary summary_;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
};

class JobRunTest : public testing::Test {
 protected:
  JobRunTest() {
    launch_.set_job_id("job");
    launch_.set_attempt(1);
    launch_.set_job_folder(folder_);
    launch_.mutable_spec()->set_name("a-name");
  }

  std::unique_ptr<JobRun> MakeRun(FakeTrainer::Body body) {
    return std::make_unique<JobRun>(
        launch_, DeviceFactory(),
        [this, body](Trainer::Options options) -> absl::StatusOr<std::unique_ptr<Trainer>> {
          watchdog_ = options.watchdog;
          return std::make_unique<FakeTrainer>(std::move(options), body);
        },
        [this](WorkerEvent event) { return Take(std::move(event)); });
  }

  absl::Status Take(WorkerEvent event) {
    if (!report_status_.ok()) return report_status_;
    events_.push_back(std::move(event));
    return absl::OkStatus();
  }

  // Runs a trainer that ends with this status.
  internal::v1::Finished Finish(const absl::Status& status) {
    events_.clear();
    EXPECT_TRUE(MakeRun([&](FakeTrainer&) { return status; })->Run().ok());
    EXPECT_EQ(events_.size(), 1);
    return events_.back().finished();
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  internal::v1::WorkerLaunch launch_;
  std::vector<WorkerEvent> events_;
  absl::Status report_status_;
  absl::Duration watchdog_;  // Of the newest run.
};

TEST_F(JobRunTest, ReportsTrainingAndItsArtifacts) {
  ASSERT_TRUE(MakeRun([](FakeTrainer& trainer) {
                trainer.observer().OnStarted(0);
                v1::Progress progress;
                progress.set_step(7);
                trainer.observer().OnProgress(progress);
                v1::EpochSummary epoch;
                epoch.set_epoch(1);
                trainer.observer().OnEpoch(epoch);
                trainer.observer().OnNotice("something");
                return absl::OkStatus();
              })
                  ->Run()
                  .ok());
  ASSERT_EQ(events_.size(), 7);
  EXPECT_TRUE(events_[0].has_started());
  EXPECT_EQ(events_[1].report().artifact().name(), "job.yaml");
  EXPECT_EQ(events_[2].report().progress().step(), 7);
  EXPECT_EQ(events_[3].report().epoch().epoch(), 1);
  EXPECT_EQ(events_[4].report().notice().message(), "something");
  EXPECT_EQ(events_[5].report().artifact().name(), "model.safetensors");
  EXPECT_EQ(events_[5].report().artifact().size_bytes(), 3);
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(events_[5].report().artifact().sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(events_[6].finished().state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(events_[6].finished().reason(), v1::STATE_REASON_COMPLETED);

  const std::string yaml = ContentOrEmpty(folder_ + "/job.yaml");
  EXPECT_NE(yaml.find("\nname: a-name\n"), std::string::npos) << yaml;
}

// The earlier attempt may have ended between the file and its report.
TEST_F(JobRunTest, TheCheckpointThatTrainingGoesOnFromIsReported) {
  v1::Checkpoint checkpoint;
  checkpoint.set_step(7);
  checkpoint.set_file("checkpoint-7.safetensors");
  ASSERT_TRUE(MakeRun([&](FakeTrainer& trainer) {
                trainer.observer().OnStarted(7);
                trainer.observer().OnResumed(checkpoint);
                return absl::CancelledError();
              })
                  ->Run()
                  .ok());
  ASSERT_EQ(events_.size(), 4);
  EXPECT_EQ(events_[0].started().step(), 7);
  EXPECT_EQ(events_[2].report().checkpoint().step(), 7);
  EXPECT_EQ(events_[2].report().checkpoint().file(), "checkpoint-7.safetensors");
}

// The earlier attempt may have ended between the file and its report, and no better result may follow.
TEST_F(JobRunTest, ABestModelThatIsThereIsReportedAtTheStart) {
  std::ofstream(folder_ + "/best.safetensors") << "abc";
  const auto start = [this] {
    events_.clear();
    ASSERT_TRUE(MakeRun([](FakeTrainer& trainer) {
                  trainer.observer().OnStarted(7);
                  return absl::CancelledError();
                })
                    ->Run()
                    .ok());
  };
  launch_.mutable_spec()->mutable_training()->mutable_best_model()->set_keep_weights(true);
  start();
  ASSERT_EQ(events_.size(), 4);
  EXPECT_TRUE(events_[0].has_started());
  EXPECT_EQ(events_[1].report().artifact().name(), "job.yaml");
  EXPECT_EQ(events_[2].report().artifact().name(), "best.safetensors");
  EXPECT_EQ(events_[2].report().artifact().size_bytes(), 3);
  EXPECT_EQ(events_[2].report().artifact().sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(events_[3].has_finished());
  // If the fork keeps no best weights, another job's file in its folder is not reported.
  launch_.mutable_spec()->mutable_training()->mutable_best_model()->set_keep_weights(false);
  start();
  EXPECT_EQ(events_.size(), 3);
  launch_.mutable_spec()->mutable_training()->mutable_best_model()->set_keep_weights(true);
  std::filesystem::remove(folder_ + "/best.safetensors");
  start();
  EXPECT_EQ(events_.size(), 3);
}

// The daemon cannot parse an event whose text is not UTF-8. Names of files are any bytes.
TEST_F(JobRunTest, MessagesAreUtf8) {
  ASSERT_TRUE(MakeRun([](FakeTrainer& trainer) {
                trainer.observer().OnNotice("skipped caf\xE9.txt");
                return absl::DataLossError("caf\xE9.jpg cannot be opened");
              })
                  ->Run()
                  .ok());
  ASSERT_EQ(events_.size(), 2);
  EXPECT_EQ(events_[0].report().notice().message(), "skipped caf\\xe9.txt");
  EXPECT_EQ(events_[1].finished().message(), "caf\\xe9.jpg cannot be opened");
}

TEST_F(JobRunTest, ReplicasWaitForEachOtherAsLongAsTheDaemonSays) {
  Finish(absl::InternalError(""));
  EXPECT_EQ(watchdog_, absl::Minutes(30));
  launch_.set_watchdog_seconds(90.5);
  Finish(absl::InternalError(""));
  EXPECT_EQ(watchdog_, absl::Milliseconds(90'500));
}

TEST_F(JobRunTest, ErrorsHaveTheirReasons) {
  EXPECT_EQ(Finish(absl::DataLossError("bad file")).reason(), v1::STATE_REASON_DATA_ERROR);
  EXPECT_EQ(Finish(absl::DataLossError("bad file")).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Finish(absl::DataLossError("bad file")).message(), "bad file");
  EXPECT_EQ(Finish(absl::OutOfRangeError("")).reason(), v1::STATE_REASON_NON_FINITE_LOSS);
  EXPECT_EQ(Finish(absl::InternalError("")).reason(), v1::STATE_REASON_TRAINING_ERROR);
  // Another worker of the job was lost.
  EXPECT_EQ(Finish(absl::UnavailableError("")).reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(Finish(absl::DeadlineExceededError("")).reason(), v1::STATE_REASON_WORKER_LOST);
  // Nobody cancelled it.
  EXPECT_EQ(Finish(absl::CancelledError("")).state(), v1::JOB_STATE_FAILED);
}

TEST_F(JobRunTest, FailuresOfCudaAreTheDevices) {
  const auto device_failed = [&](const absl::Status& status) {
    const auto run = MakeRun([&](FakeTrainer&) { return status; });
    EXPECT_TRUE(run->Run().ok());
    return run->device_failed();
  };
  EXPECT_TRUE(device_failed(absl::InternalError("cuda: an illegal memory access")));
  EXPECT_TRUE(device_failed(absl::InternalError("replica 1 on devices/gpu:1: cuda: launch failure")));
  EXPECT_EQ(events_.back().finished().state(), v1::JOB_STATE_FAILED);
  // So the job restarts by itself, perhaps on another device.
  EXPECT_EQ(events_.back().finished().reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_FALSE(device_failed(absl::ResourceExhaustedError("cuda: out of memory")));
  EXPECT_FALSE(device_failed(absl::InternalError("barracuda")));
  EXPECT_FALSE(
      device_failed(absl::InternalError("a call of CUDA failed: cudaMalloc: cudaErrorInvalidValue")));
  EXPECT_FALSE(device_failed(absl::OkStatus()));
}

TEST_F(JobRunTest, AJobWithoutMemoryFailsAndSaysSo) {
  ASSERT_TRUE(MakeRun([](FakeTrainer&) -> absl::Status { throw std::bad_alloc(); })->Run().ok());
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(events_.back().finished().state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(events_.back().finished().reason(), v1::STATE_REASON_TRAINING_ERROR);
  EXPECT_NE(events_.back().finished().message().find("out of memory"), std::string::npos);
}

TEST_F(JobRunTest, AModelThatCannotBeSavedFailsTheJob) {
  ASSERT_TRUE(MakeRun([](FakeTrainer& trainer) {
                trainer.set_model("");
                return absl::OkStatus();
              })
                  ->Run()
                  .ok());
  EXPECT_EQ(events_.back().finished().state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(events_.back().finished().reason(), v1::STATE_REASON_IO_ERROR);
}

TEST_F(JobRunTest, ACancelStopsTraining) {
  std::unique_ptr<JobRun> run;
  run = MakeRun([&](FakeTrainer& trainer) {
    run->Cancel();
    return trainer.WaitForCancel();
  });
  ASSERT_TRUE(run->Run().ok());
  EXPECT_EQ(events_.back().finished().state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(JobRunTest, WhatIsCancelledKeepsItsCheckpointAndItsModel) {
  const auto cancel = [&](const std::string& model, int64_t checkpoint_step) {
    events_.clear();
    std::unique_ptr<JobRun> run;
    run = MakeRun([&](FakeTrainer& trainer) {
      trainer.observer().OnStarted(0);
      trainer.set_model(model);
      trainer.summary().set_steps(7);
      trainer.summary().set_checkpoint_step(checkpoint_step);
      run->Cancel();
      return trainer.WaitForPause();
    });
    EXPECT_TRUE(run->Run().ok());
    return events_.back().finished();
  };
  internal::v1::Finished finished = cancel("abc", 7);
  EXPECT_EQ(finished.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(finished.reason(), v1::STATE_REASON_CANCEL_REQUESTED);
  EXPECT_EQ(finished.message(),
            "Stopped after step 7. Its newest checkpoint is of step 7; its model can be downloaded.");
  EXPECT_EQ(finished.summary().steps(), 7);
  ASSERT_EQ(events_.size(), 4);
  EXPECT_EQ(events_[2].report().artifact().name(), "model.safetensors");
  EXPECT_EQ(events_[2].report().artifact().description(),
            "The parameters after step 7, where training was stopped, in safetensors format.");
  EXPECT_EQ(events_[2].report().artifact().sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

  finished = cancel("", 0);
  EXPECT_EQ(finished.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(finished.message(),
            "Stopped after step 7. It has no checkpoint; its model could not be saved: no space left");
  EXPECT_EQ(events_.size(), 3);
}

TEST_F(JobRunTest, WhatIsPausedKeepsItsModel) {
  std::unique_ptr<JobRun> run;
  run = MakeRun([&](FakeTrainer& trainer) {
    trainer.observer().OnStarted(0);
    trainer.summary().set_steps(7);
    trainer.summary().set_checkpoint_step(5);
    run->Pause();
    return trainer.WaitForPause();
  });
  ASSERT_TRUE(run->Run().ok());
  ASSERT_EQ(events_.size(), 4);
  EXPECT_EQ(events_[2].report().artifact().name(), "model.safetensors");
  EXPECT_EQ(events_[3].finished().state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(events_[3].finished().message(),
            "Paused after step 7 without a new checkpoint: it will continue from step 5.");
}

TEST_F(JobRunTest, AnInterruptionIsTheReasonOfTheEndThatItCauses) {
  std::unique_ptr<JobRun> run;
  run = MakeRun([&](FakeTrainer& trainer) {
    trainer.observer().OnStarted(0);
    trainer.summary().set_steps(7);
    run->Interrupt(v1::STATE_REASON_CLUSTER_PREEMPTED, "Slurm ended the attempt.");
    return trainer.WaitForPause();
  });
  ASSERT_TRUE(run->Run().ok());
  EXPECT_EQ(events_.back().finished().state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(events_.back().finished().reason(), v1::STATE_REASON_CLUSTER_PREEMPTED);
}

// If a worker fails, Slurm sends the other workers the signal of a preemption.
TEST_F(JobRunTest, ALossOfAnotherWorkerIsNoInterruption) {
  std::unique_ptr<JobRun> run;
  run = MakeRun([&](FakeTrainer& trainer) {
    trainer.observer().OnStarted(0);
    run->Interrupt(v1::STATE_REASON_CLUSTER_PREEMPTED, "Slurm ended the attempt.");
    return absl::UnavailableError("rank 1 is gone");
  });
  ASSERT_TRUE(run->Run().ok());
  EXPECT_EQ(events_.back().finished().state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(events_.back().finished().reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(events_.back().finished().message(), "rank 1 is gone");
}

TEST_F(JobRunTest, ACancelBeforeTrainingStartsNone) {
  const std::unique_ptr<JobRun> run = MakeRun([](FakeTrainer&) {
    ADD_FAILURE() << "it must not train";
    return absl::OkStatus();
  });
  run->Cancel();
  ASSERT_TRUE(run->Run().ok());
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(events_.back().finished().state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(JobRunTest, TrainingStopsWhenNothingCanBeReported) {
  report_status_ = absl::ResourceExhaustedError("disk full");
  const std::unique_ptr<JobRun> run = MakeRun([](FakeTrainer& trainer) {
    trainer.observer().OnStarted(0);
    return trainer.WaitForCancel();
  });
  EXPECT_EQ(run->Run(), report_status_);
}

}  // namespace
}  // namespace tandem

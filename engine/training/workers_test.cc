// Several workers that train a job together, each with its own Trainer. Here they are threads.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/backend/forwarding_communicator.h"
#include "engine/backend/forwarding_device.h"
#include "engine/base/env.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/collectives/background_communicator.h"
#include "engine/collectives/gloo/folder_rendezvous.h"
#include "engine/collectives/gloo/gloo_ranks.h"
#include "engine/collectives/slow_link.h"
#include "engine/training/trainer.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Changes the options of a worker.
using Change = std::function<void(int worker, Trainer::Options& options)>;

// The workers of a run of a job.
class Workers {
 public:
  Workers(const v1::JobSpec& spec, int workers, const std::string& kind, const std::string& folder,
          const Change& change = nullptr)
      : statuses_(workers) {
    static std::atomic<int> runs{0};
    const std::string rendezvous = absl::StrCat(folder, "/rendezvous-", runs++);
    std::filesystem::create_directories(rendezvous);
    for (int worker = 0; worker < workers; ++worker) {
      Trainer::Options options = OptionsFor(spec, kind, worker == 0 ? &recorder_ : nullptr);
      options.spec.mutable_replicas()->set_workers(workers);
      options.checkpoint_folder = folder;
      options.best_path = folder + "/best.safetensors";
      options.group.worker = worker;
      options.group.workers = workers;
      if (workers > 1) {
        options.group.connect = [rendezvous, world = static_cast<int>(options.devices.size())](int first,
                                                                                               int count) {
          FolderRendezvous meeting(rendezvous);
          GlooOptions gloo;
          gloo.rank = first;
          gloo.world_size = world;
          return ConnectGlooRanks(gloo, count, meeting);
        };
      }
      if (change) change(worker, options);
      absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
      EXPECT_TRUE(trainer.ok()) << trainer.status();
      trainers_.push_back(*std::move(trainer));
    }
  }

  // Trains. Saves the model if all workers succeed.
  absl::Status Run(const std::string& model_path = "") {
    std::vector<std::thread> threads;
    for (size_t worker = 0; worker < trainers_.size(); ++worker) {
      threads.emplace_back([this, worker, &model_path] {
        statuses_[worker] = trainers_[worker]->Run();
        const bool saves = worker == 0 && statuses_[0].ok() && !model_path.empty();
        if (saves) statuses_[0] = trainers_[0]->SaveModel(model_path);
        trainers_[worker]->outcome();
        if (worker != 0) trainers_[worker].reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses_[0];
  }

  Trainer& first() { return *trainers_[0]; }
  TrainingRecorder& recorder() { return recorder_; }
  const std::vector<absl::Status>& statuses() const { return statuses_; }

 private:
  TrainingRecorder recorder_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<absl::Status> statuses_;
};

class WorkersTest : public testing::Test {
 protected:
  // Returns a new empty folder.
  std::string Folder(const std::string& name) {
    const std::string folder =
        absl::StrCat(testing::TempDir(), "/workers-",
                     testing::UnitTest::GetInstance()->current_test_info()->name(), "-", name);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    return folder;
  }

  // Returns the parameters of a model file, without its metadata, which differ.
  static std::string Tensors(const std::string& path) {
    const absl::StatusOr<std::string> file = Env::Real()->ReadFile(path);
    EXPECT_TRUE(file.ok()) << file.status();
    uint64_t header = 0;
    std::memcpy(&header, file->data(), sizeof(header));
    return file->substr(sizeof(header) + header);
  }

  // Checks that `workers` workers have the same result, bit for bit, as a single worker with as many
  // replicas.
  void ExpectLikeOne(const v1::JobSpec& spec, int workers, const std::string& kind) {
    const std::string alone = Folder("1"), together = Folder(absl::StrCat(workers));
    Workers one(spec, 1, kind, alone), several(spec, workers, kind, together);
    ASSERT_TRUE(one.Run(alone + "/model").ok()) << one.statuses()[0];
    ASSERT_TRUE(several.Run(together + "/model").ok()) << several.statuses()[0];
    for (const absl::Status& status : several.statuses()) EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(several.recorder().losses(), one.recorder().losses());
    ASSERT_EQ(several.recorder().epochs.size(), one.recorder().epochs.size());
    for (size_t i = 0; i < one.recorder().epochs.size(); ++i) {
      const v1::EpochSummary &a = several.recorder().epochs[i], &b = one.recorder().epochs[i];
      EXPECT_EQ(a.validation().loss(), b.validation().loss());
      EXPECT_EQ(a.validation().ShortDebugString(), b.validation().ShortDebugString());
      ASSERT_EQ(a.replicas_size(), b.replicas_size());
      for (int r = 0; r < a.replicas_size(); ++r) {
        EXPECT_EQ(a.replicas(r).samples(), b.replicas(r).samples());
        EXPECT_EQ(a.replicas(r).device(), b.replicas(r).device());
      }
    }
    EXPECT_EQ(Tensors(together + "/model"), Tensors(alone + "/model"));
    const std::string checkpoint = ListCheckpointFiles(Env::Real(), alone)->at(0);
    EXPECT_EQ(Tensors(absl::StrCat(together, "/", checkpoint)),
              Tensors(absl::StrCat(alone, "/", checkpoint)));
  }
};

v1::JobSpec WithBatchNorm(int replicas) {
  v1::JobSpec spec = SmallLenet(replicas);
  spec.mutable_model()->mutable_layers()->Add();
  for (int i = spec.model().layers_size() - 1; i > 1; --i) {
    spec.mutable_model()->mutable_layers()->SwapElements(i, i - 1);
  }
  spec.mutable_model()->mutable_layers(1)->mutable_batch_norm();
  return spec;
}

TEST_F(WorkersTest, TwoAreLikeOne) { ExpectLikeOne(WithBatchNorm(2), 2, "cpu"); }

TEST_F(WorkersTest, StatisticsOfAllSamples) {
  v1::JobSpec spec = WithBatchNorm(4);
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_POPULATION);
  ExpectLikeOne(spec, 2, "cpu");
  // The finished network is validated again after the validation that ended training.
  spec.mutable_training()->mutable_early_stopping()->set_target(1e9);
  spec.mutable_model()->mutable_layers(1)->mutable_batch_norm()->set_sync(true);
  ExpectLikeOne(spec, 4, "cpu");
}

TEST_F(WorkersTest, ThreeOfOneReplicaAreLikeOneOfThree) { ExpectLikeOne(SmallLenet(3), 3, "cpu"); }

TEST_F(WorkersTest, TwoOfTwoReplicasAreLikeOneOfFour) { ExpectLikeOne(WithBatchNorm(4), 2, "reference"); }

// Gives each layer its own bucket.
v1::JobSpec InManyBuckets(v1::JobSpec spec) {
  spec.mutable_replicas()->mutable_all_reduce()->set_bucket_bytes(1);
  spec.mutable_replicas()->mutable_all_reduce()->set_first_bucket_bytes(1);
  return spec;
}

// Reductions overlap the backward pass. The reductions of batch norm's statistics are between them.
TEST_F(WorkersTest, ManyBuckets) { ExpectLikeOne(InManyBuckets(SmallLenet(2)), 2, "cpu"); }

TEST_F(WorkersTest, ManyBucketsWithSynchronousBatchNorm) {
  v1::JobSpec spec = InManyBuckets(WithBatchNorm(4));
  spec.mutable_model()->mutable_layers(1)->mutable_batch_norm()->set_sync(true);
  ExpectLikeOne(spec, 2, "cpu");
}

TEST_F(WorkersTest, ManyBucketsInParts) {
  v1::JobSpec spec = InManyBuckets(SmallLenet(2));
  spec.mutable_training()->set_accumulation_steps(2);
  spec.mutable_training()->mutable_optimizer()->mutable_clip()->set_norm(0.5);
  ExpectLikeOne(spec, 2, "cpu");
}

// The link is so slow that all reductions of a step still run when the backward pass has ended. Losses and
// parameters equal those without overlap to the bit.
TEST_F(WorkersTest, OverlapChangesNothing) {
  const v1::JobSpec spec = InManyBuckets(WithBatchNorm(2));
  std::vector<std::string> models;
  std::vector<std::vector<double>> losses;
  for (const bool overlaps : {false, true}) {
    const std::string folder = Folder(overlaps ? "overlapping" : "one-by-one");
    const Change slowed = [overlaps](int, Trainer::Options& options) {
      options.group.connect = [connect = options.group.connect, overlaps](int first, int count) {
        auto ends = connect(first, count);
        if (!ends.ok()) return ends;
        for (std::unique_ptr<Communicator>& end : *ends) {
          end = std::make_unique<SlowLink>(std::move(end), 100e6);
          if (overlaps) end = std::make_unique<BackgroundCommunicator>(std::move(end));
        }
        return ends;
      };
    };
    Workers workers(spec, 2, "cpu", folder, slowed);
    ASSERT_TRUE(workers.Run(folder + "/model").ok()) << workers.statuses()[0];
    models.push_back(Tensors(folder + "/model"));
    losses.push_back(workers.recorder().losses());
  }
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_EQ(models[1], models[0]);
}

// Counts begun reductions.
class CountedBegins final : public ForwardingCommunicator {
 public:
  CountedBegins(std::unique_ptr<Communicator> inner, std::atomic<int>* begun)
      : ForwardingCommunicator(std::move(inner)), begun_(begun) {}
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    ++*begun_;
    return inner().BeginAllReduce(buffer, op);
  }
  absl::Status Await(int64_t begun) override { return inner().Await(begun); }

 private:
  std::atomic<int>* const begun_;
};

// Over this link, reductions would take minutes. A worker that aborts ends all of them at once.
TEST_F(WorkersTest, AnAbortEndsReductionsThatGoOn) {
  const v1::JobSpec spec = InManyBuckets(SmallLenet(2));
  std::atomic<int> begun{0};
  const Change crawling = [&begun](int, Trainer::Options& options) {
    options.group.connect = [connect = options.group.connect, &begun](int first, int count) {
      auto ends = connect(first, count);
      if (!ends.ok()) return ends;
      for (std::unique_ptr<Communicator>& end : *ends) {
        auto slow = std::make_unique<SlowLink>(std::move(end), /*bytes_per_second=*/100);
        end = std::make_unique<CountedBegins>(std::make_unique<BackgroundCommunicator>(std::move(slow)),
                                              &begun);
      }
      return ends;
    };
  };
  Workers workers(spec, 2, "cpu", Folder("2"), crawling);
  absl::Time cancelled;
  std::thread elsewhere([&] {
    while (begun < 2 * 3) absl::SleepFor(absl::Milliseconds(1));
    cancelled = absl::Now();
    workers.first().Cancel();
  });
  const absl::Status status = workers.Run();
  const absl::Time ended = absl::Now();
  elsewhere.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(workers.statuses()[1])) << workers.statuses()[1];
  EXPECT_LT(ended - cancelled, absl::Seconds(10));
}

TEST_F(WorkersTest, UnequalShares) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_replicas()->add_worker_load(3);
  spec.mutable_replicas()->add_worker_load(1);
  ExpectLikeOne(spec, 2, "cpu");
}

TEST_F(WorkersTest, AveragedParameters) {
  v1::JobSpec spec = WithBatchNorm(2);
  v1::ParameterAveraging* averaging = spec.mutable_replicas()->mutable_parameter_averaging();
  averaging->set_every_iterations(3);
  averaging->set_average_optimizer_state(false);
  // A checkpoint between two averagings.
  spec.mutable_checkpoints()->set_every_steps(4);
  ExpectLikeOne(spec, 2, "cpu");
}

TEST_F(WorkersTest, MetricsFromTheOutputs) {
  v1::JobSpec spec = SmallLenet(2);
  for (const v1::Metric metric :
       {v1::METRIC_ACCURACY, v1::METRIC_F1, v1::METRIC_CONFUSION_MATRIX, v1::METRIC_AUC}) {
    spec.mutable_training()->add_metrics(metric);
  }
  ExpectLikeOne(spec, 2, "cpu");
}

TEST_F(WorkersTest, EarlyStoppingIsDecidedAlike) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->set_epochs(50);
  spec.mutable_training()->mutable_early_stopping()->set_patience(1);
  spec.mutable_training()->mutable_early_stopping()->set_min_delta(1e9);
  ExpectLikeOne(spec, 2, "cpu");
}

TEST_F(WorkersTest, PauseAndGoOn) {
  v1::JobSpec spec = WithBatchNorm(2);
  const std::string alone = Folder("1"), together = Folder("2");
  Workers one(spec, 1, "cpu", alone);
  ASSERT_TRUE(one.Run(alone + "/model").ok());
  {
    Workers first(spec, 2, "cpu", together);
    first.recorder().on_progress = [&] {
      if (first.recorder().progress.size() == 5) first.first().Pause();
    };
    ASSERT_TRUE(first.Run().ok()) << first.statuses()[0];
    EXPECT_EQ(first.first().outcome().reason, v1::STATE_REASON_PAUSE_REQUESTED);
    EXPECT_LT(first.first().Summary().steps(), 24);
    EXPECT_EQ(first.first().Summary().checkpoint_step(), first.first().Summary().steps());
  }
  Workers second(spec, 2, "cpu", together);
  ASSERT_TRUE(second.Run(together + "/model").ok()) << second.statuses()[0];
  EXPECT_EQ(second.first().outcome().reason, v1::STATE_REASON_COMPLETED);
  EXPECT_EQ(Tensors(together + "/model"), Tensors(alone + "/model"));
  // An ended training ends again with the same model.
  Workers third(spec, 2, "cpu", together);
  ASSERT_TRUE(third.Run(together + "/again").ok()) << third.statuses()[0];
  EXPECT_EQ(Tensors(together + "/again"), Tensors(alone + "/model"));
}

// Slows down each run of a device.
class SlowedDevice final : public ForwardingDevice {
 public:
  explicit SlowedDevice(std::unique_ptr<Device> device) : ForwardingDevice(std::move(device)) {}
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override {
    absl::StatusOr<std::unique_ptr<Executable>> executable = ForwardingDevice::Compile(graph, variables);
    if (!executable.ok()) return executable;
    return std::make_unique<Slowed>(*std::move(executable));
  }

 private:
  class Slowed final : public ForwardingExecutable {
   public:
    explicit Slowed(std::unique_ptr<Executable> executable) : ForwardingExecutable(std::move(executable)) {}
    absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override {
      absl::SleepFor(absl::Milliseconds(20));
      return ForwardingExecutable::Run(inputs, communicator);
    }
  };
};

TEST_F(WorkersTest, LoadsAreMeasuredOverAll) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_replicas()->set_auto_worker_load(true);
  const std::string folder = Folder("2");
  const Change second_is_slow = [](int worker, Trainer::Options& options) {
    if (worker == 0) return;
    options.device_factory =
        [make = options.device_factory](const v1::Device& device) -> absl::StatusOr<std::unique_ptr<Device>> {
      absl::StatusOr<std::unique_ptr<Device>> made = make(device);
      if (!made.ok()) return made;
      return std::make_unique<SlowedDevice>(*std::move(made));
    };
  };
  Workers workers(spec, 2, "cpu", folder, second_is_slow);
  ASSERT_TRUE(workers.Run(folder + "/model").ok()) << workers.statuses()[0];
  EXPECT_TRUE(workers.statuses()[1].ok()) << workers.statuses()[1];
  ASSERT_EQ(workers.recorder().loads.size(), 1);
  const v1::WorkerLoads& loads = workers.recorder().loads[0];
  ASSERT_EQ(loads.replicas_size(), 2);
  EXPECT_EQ(loads.replicas(0).load(), 1);
  EXPECT_LT(loads.replicas(1).load(), 1);
  EXPECT_GT(loads.replicas(0).samples_per_second(), loads.replicas(1).samples_per_second());
  const v1::EpochSummary& last = workers.recorder().epochs.back();
  EXPECT_GT(last.replicas(0).samples(), last.replicas(1).samples());
  EXPECT_EQ(last.training().samples(), last.replicas(0).samples() + last.replicas(1).samples());
}

TEST_F(WorkersTest, CancelEndsAll) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->set_epochs(100000);
  Workers workers(spec, 2, "cpu", Folder("2"));
  workers.recorder().on_progress = [&] { workers.first().Cancel(); };
  EXPECT_TRUE(absl::IsCancelled(workers.Run())) << workers.statuses()[0];
  EXPECT_TRUE(absl::IsCancelled(workers.statuses()[1])) << workers.statuses()[1];
}

TEST_F(WorkersTest, AnErrorOfOneIsTheErrorOfAll) {
  Workers workers(SmallLenet(2), 2, "cpu", Folder("2"), [](int worker, Trainer::Options& options) {
    if (worker == 1) {
      options.device_factory = [](const v1::Device&) -> absl::StatusOr<std::unique_ptr<Device>> {
        return absl::InternalError("it is broken");
      };
    }
  });
  const absl::Status status = workers.Run();
  EXPECT_EQ(status, absl::InternalError("replica 1 on devices/cpu:1: it is broken"));
  EXPECT_EQ(workers.statuses()[1], status);
}

TEST_F(WorkersTest, WorkersThatSeeOtherCheckpoints) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->set_epochs(1);
  const std::string folder = Folder("2");
  ASSERT_TRUE(Workers(spec, 2, "cpu", folder).Run().ok());
  Workers workers(spec, 2, "cpu", folder, [&](int worker, Trainer::Options& options) {
    if (worker == 1) options.checkpoint_folder = folder + "/elsewhere";
  });
  const absl::Status status = workers.Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(status.message(), HasSubstr("need to see the same checkpoint"));
}

TEST_F(WorkersTest, WhatCannotBeShared) {
  const auto refused = [](const v1::JobSpec& spec, int worker, int workers) {
    Trainer::Options options = OptionsFor(spec, "cpu", nullptr);
    options.group.worker = worker;
    options.group.workers = workers;
    options.group.connect = [](int, int) {
      return absl::StatusOr<std::vector<std::unique_ptr<Communicator>>>(absl::InternalError("not called"));
    };
    return Trainer::Create(std::move(options)).status();
  };
  EXPECT_THAT(refused(SmallLenet(3), 0, 2).message(), HasSubstr("cannot share equally"));
  EXPECT_EQ(refused(SmallLenet(2), 2, 2).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem

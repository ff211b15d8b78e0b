// Trains a network with the Trainer, including data loading and reports. Prints a JSON line with the keys of
// PyTorch benchmarks of the same networks:
//   bazel run -c opt //tests/bench:train_bench -- --network=lenet --batch=128 --replicas=2 --steps=200
//   bazel run -c opt //tests/bench:train_bench -- --network=lenet --data=/usr/share/datasets/fashion-mnist
//   --epochs=3
//   bazel run -c opt //tests/bench:train_bench -- --job=$PWD/deploy/examples/lenet-fashion-mnist.yaml
// --batch is the global batch size, over all replicas.

#include <sys/resource.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/lib/job_file.h"
#include "engine/base/status_macros.h"
#include "engine/base/version.h"
#include "engine/data/dataset.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/plan.h"
#include "engine/training/trainer.h"
#include "nlohmann/json.hpp"
#include "server/worker/job_devices.h"
#include "tests/bench/networks.h"
#include "tests/bench/passive_waits.h"

namespace tandem {
namespace {

struct Settings {
  std::string network = "lenet";
  std::string job;
  std::string data;
  std::string device = "cpu";
  std::string dtype = "float32";
  std::string save;
  std::string samples = "gpu";
  int steps_per_launch = 0;
  int64_t batch = 128;
  int replicas = 1;
  int threads = 1;
  int steps = 60;
  int warmup = 10;
  int epochs = 0;
  int prefetch = 2;
  double lr = 0.05;
  double momentum = 0.9;
  bool tf32 = false;
  bool deterministic = false;
  uint64_t seed = 123;
};

v1::DatasetSpec IdxFolder(const std::string& folder) {
  v1::DatasetSpec dataset;
  v1::IdxSource* idx = dataset.mutable_idx();
  idx->set_train_images(absl::StrCat(folder, "/train-images-idx3-ubyte.gz"));
  idx->set_train_labels(absl::StrCat(folder, "/train-labels-idx1-ubyte.gz"));
  idx->set_validation_images(absl::StrCat(folder, "/t10k-images-idx3-ubyte.gz"));
  idx->set_validation_labels(absl::StrCat(folder, "/t10k-labels-idx1-ubyte.gz"));
  return dataset;
}

absl::StatusOr<v1::JobSpec> MakeJob(const Settings& settings) {
  v1::JobSpec spec;
  if (!settings.job.empty()) {
    TANDEM_ASSIGN_OR_RETURN(const client::JobFile file, client::ReadJobFile(settings.job));
    spec = file.spec;
    if (!settings.data.empty()) {
      *spec.mutable_dataset() = IdxFolder(settings.data);
    } else if (!spec.dataset().name().empty()) {
      *spec.mutable_dataset() = IdxFolder(absl::StrCat("/usr/share/datasets/", spec.dataset().name()));
    }
    return spec;
  }
  TANDEM_ASSIGN_OR_RETURN(spec, JobOf(settings.network, settings.lr, settings.momentum));
  // At most the 60,000 samples of a usual data set. Longer runs repeat them.
  const int64_t samples = std::clamp(settings.batch * (settings.warmup + settings.steps), settings.batch,
                                     std::max(settings.batch, int64_t{60000}));
  if (settings.data.empty()) {
    spec.mutable_dataset()->mutable_synthetic()->set_train_samples(samples);
    spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(samples);
  } else {
    *spec.mutable_dataset() = IdxFolder(settings.data);
  }
  v1::Training* training = spec.mutable_training();
  training->set_global_batch_size(settings.batch);
  training->set_epochs(std::max(settings.epochs, 1));
  training->set_seed(settings.seed);
  spec.mutable_replicas()->set_count(settings.replicas);
  spec.mutable_replicas()->set_prefetch(settings.prefetch);
  return spec;
}

// Makes the job as long as the timed steps, in epochs without a short batch and without validation. The job
// reports when timing begins and when it ends.
absl::Status LimitToSteps(const Settings& settings, v1::JobSpec* spec) {
  v1::DatasetSpec* dataset = spec->mutable_dataset();
  if (dataset->has_idx()) {
    dataset->mutable_idx()->clear_validation_images();
    dataset->mutable_idx()->clear_validation_labels();
  } else {
    dataset->mutable_synthetic()->clear_validation_samples();
  }
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo info, DescribeDataset(*dataset));
  const int64_t batch = spec->training().global_batch_size();
  const int64_t steps = settings.warmup + settings.steps;
  const int64_t steps_per_epoch = std::min(steps, info.train_samples / batch);
  if (steps_per_epoch < 1) return absl::InvalidArgumentError("the data set is smaller than a batch");
  dataset->set_train_limit(steps_per_epoch * batch);
  spec->mutable_training()->set_epochs((steps + steps_per_epoch - 1) / steps_per_epoch);
  spec->mutable_training()->mutable_report()->set_every_seconds(0);
  spec->mutable_training()->mutable_report()->set_every_steps(std::gcd(settings.warmup, settings.steps));
  return absl::OkStatus();
}

double MomentumOf(const v1::Optimizer& optimizer) {
  if (optimizer.has_momentum()) return optimizer.momentum().momentum();
  return optimizer.has_nesterov() ? optimizer.nesterov().momentum() : 0;
}

class Watch final : public TrainerObserver {
 public:
  // `batch` is the global batch size.
  Watch(const Settings& settings, int64_t batch, bool by_epoch)
      : settings_(settings), batch_(batch), by_epoch_(by_epoch) {}

  void OnStarted(int64_t) override { begin_ = std::chrono::steady_clock::now(); }

  void OnProgress(const v1::Progress& progress) override {
    if (by_epoch_ || done_) return;
    loss_ = progress.training().loss();
    const auto now = std::chrono::steady_clock::now();
    if (progress.step() < settings_.warmup + settings_.steps) {
      if (first_step_ > 0 || progress.step() < settings_.warmup) return;
      begin_ = now;
      first_step_ = progress.step();
      return;
    }
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    rate_ = static_cast<double>((progress.step() - first_step_) * batch_) / seconds;
    done_ = true;
  }

  void OnNotice(absl::string_view message) override { std::cerr << message << std::endl; }

  void OnEpoch(const v1::EpochSummary& epoch) override {
    if (!by_epoch_) return;
    epoch_seconds_.push_back(epoch.training_seconds());
    loss_ = epoch.training().loss();
    rate_ = std::max(rate_, epoch.images_per_second());
    if (epoch.has_validation()) accuracies_.push_back(epoch.validation().metrics().at("accuracy"));
    for (const v1::ReplicaShare& share : epoch.replicas()) {
      std::fprintf(stderr, "epoch %ld replica %d: %ld samples, waited %.3f s for data, %.3f s to reduce\n",
                   static_cast<long>(epoch.epoch()), share.rank(), static_cast<long>(share.samples()),
                   share.data_wait_seconds(), share.reduce_seconds());
    }
  }

  void AddTo(nlohmann::ordered_json* out) const {
    if (by_epoch_) {
      (*out)["epoch_seconds"] = epoch_seconds_;
      (*out)["test_accuracy"] = accuracies_;
    }
    (*out)["images_per_second"] = rate_;
    (*out)["loss"] = loss_;
  }

 private:
  const Settings settings_;
  const int64_t batch_;
  const bool by_epoch_;
  int64_t first_step_ = 0;  // Steps that were taken when timing began.
  std::chrono::steady_clock::time_point begin_;
  bool done_ = false;
  double loss_ = 0;
  double rate_ = 0;
  std::vector<double> epoch_seconds_;
  std::vector<double> accuracies_;
};

// The most memory that this process has had at a time.
double PeakMemoryMib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

absl::Status RunBench(const Settings& settings) {
  TANDEM_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJob(settings));
  if (settings.dtype == "bfloat16") {
    spec.mutable_training()->set_precision(v1::PRECISION_BFLOAT16);
  } else if (settings.dtype == "float16") {
    spec.mutable_training()->set_precision(v1::PRECISION_FLOAT16);
  } else if (settings.dtype != "float32") {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", settings.dtype, ": give float32, bfloat16 or float16"));
  }
  if (settings.tf32) spec.mutable_training()->set_allow_tf32(true);
  if (settings.deterministic) spec.mutable_training()->set_deterministic(true);
  if (absl::StartsWith(settings.device, "gpu")) {
    spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_GPU);
    spec.mutable_gpu()->set_steps_per_launch(settings.steps_per_launch);
    if (settings.samples == "host") {
      spec.mutable_gpu()->set_data(v1::GpuOptions::DATA_PLACEMENT_HOST_MEMORY);
    } else if (settings.samples != "gpu") {
      return absl::InvalidArgumentError(absl::StrCat("--samples=", settings.samples, ": give gpu or host"));
    }
  }
  const bool by_epoch = settings.epochs > 0 || (!settings.job.empty() && settings.steps == 0);
  if (!by_epoch) TANDEM_RETURN_IF_ERROR(LimitToSteps(settings, &spec));
  FillDefaults(&spec);

  Watch watch(settings, spec.training().global_batch_size(), by_epoch);
  Trainer::Options options;
  options.spec = spec;
  options.dataset = spec.dataset();
  // "gpu" gives each replica a device, "gpu:0" gives all replicas this device.
  const bool shared = absl::StrContains(settings.device, ':');
  for (int rank = 0; rank < spec.replicas().count(); ++rank) {
    options.devices.emplace_back().set_name(shared ? settings.device
                                                   : absl::StrCat(settings.device, ":", rank));
    options.devices.back().set_threads(settings.threads);
  }
  v1::JobSpec placed = spec;
  placed.mutable_replicas()->clear_devices();
  placed.mutable_replicas()->set_replicas_per_device(shared ? spec.replicas().count() : 1);
  options.device_factory = DevicesFor(placed);
  options.observer = &watch;
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Create(std::move(options)));
  TANDEM_RETURN_IF_ERROR(trainer->Run());
  if (!settings.save.empty()) TANDEM_RETURN_IF_ERROR(trainer->SaveModel(settings.save));

  const int64_t batch = spec.training().global_batch_size();
  nlohmann::ordered_json out = {
      {"peer", absl::StrCat("tandem ", kVersion)},
      {"net", settings.job.empty() ? settings.network : spec.name()},
      {"data", settings.data},
      {"batch", batch},
      {"batch_per_replica", (batch + spec.replicas().count() - 1) / spec.replicas().count()},
      {"device", settings.device},
      {"dtype", settings.dtype},
      {"tf32", spec.training().allow_tf32()},
      {"samples", spec.replicas().device_kind() == v1::DEVICE_KIND_GPU ? settings.samples : "host"},
      {"channels_last", false},
      {"compile", false},
      {"threads", settings.threads},
      {"steps", settings.steps},
      {"warmup", settings.warmup},
      {"epochs", by_epoch ? spec.training().epochs() : 0},
      {"lr", LearningRateOf(spec.training().optimizer())},
      {"momentum", MomentumOf(spec.training().optimizer())},
      {"ddp", spec.replicas().count()},
      {"seed", spec.training().seed()}};
  watch.AddTo(&out);
  out["peak_memory_mib"] = PeakMemoryMib();
  std::cout << out.dump() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::WaitPassively(argv);
  tandem::Settings settings;
  CLI::App app("Trains a network and prints one JSON line of figures");
  app.add_option("--network,--net", settings.network, "lenet, resnet18, matlab-cifar or mini-gpt");
  app.add_option("--job", settings.job, "a job file, instead of a network");
  app.add_option("--data", settings.data, "a folder of IDX .gz files; default: random images");
  app.add_option("--batch", settings.batch, "samples in a step, over all replicas");
  app.add_option("--device", settings.device,
                 "cpu, gpu or reference, a device for each replica; or one for all, as gpu:0");
  app.add_option("--dtype", settings.dtype, "float32, bfloat16 or float16");
  app.add_flag("--tf32", settings.tf32, "let a GPU compute float32 with TF32");
  app.add_flag("--deterministic", settings.deterministic, "let a GPU compute the same bits in each run");
  app.add_option("--samples", settings.samples,
                 "where a GPU has them: gpu, in its memory as far as that goes, or host");
  app.add_option("--steps-per-launch", settings.steps_per_launch,
                 "steps that a GPU is given at a time; 0: measured");
  app.add_option("--replicas,--ddp", settings.replicas, "replicas, each on a device of its own");
  app.add_option("--threads", settings.threads, "threads of a replica");
  app.add_option("--steps", settings.steps, "steps to time; 0 with --job: the whole job");
  app.add_option("--warmup", settings.warmup, "steps before the timing");
  app.add_option("--epochs", settings.epochs, "whole epochs with validation, instead of steps");
  app.add_option("--prefetch", settings.prefetch, "batches that each replica prepares ahead");
  app.add_option("--lr", settings.lr, "learning rate");
  app.add_option("--momentum", settings.momentum, "Nesterov momentum; 0: none");
  app.add_option("--seed", settings.seed, "seed of weights and shuffling");
  app.add_option("--save", settings.save, "where to write the trained model");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = tandem::RunBench(settings);
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}

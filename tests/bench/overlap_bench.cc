// Measures the gain of reducing gradients beside the backward pass. Trains a network on several workers,
// which are threads of one process. They talk by Gloo over the loopback interface, behind a link of a given
// speed. The first run computes and reduces in turns, the second at the same time. Prints a JSON line:
//   bazel run -c opt //tests/bench:overlap_bench -- --network=resnet18 --batch=32 --link=125
// The link is simulated by sleeping (engine/collectives/slow_link.h): --link=125 is a gigabit per second.

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "engine/backends/device_factory.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/background_communicator.h"
#include "engine/collectives/gloo/folder_rendezvous.h"
#include "engine/collectives/gloo/gloo_ranks.h"
#include "engine/collectives/slow_link.h"
#include "engine/training/plan.h"
#include "engine/training/trainer.h"
#include "nlohmann/json.hpp"
#include "tests/bench/networks.h"
#include "tests/bench/passive_waits.h"

namespace tandem {
namespace {

struct Settings {
  std::string network = "resnet18";
  int64_t batch = 32;
  int workers = 2;
  int threads = 1;
  double link = 125;
  int steps = 10;
  int warmup = 2;
  int64_t bucket_bytes = 0;
  int64_t first_bucket_bytes = 0;
  int rank = 0;
};

absl::StatusOr<v1::JobSpec> MakeJob(const Settings& settings) {
  TANDEM_ASSIGN_OR_RETURN(v1::JobSpec spec, JobOf(settings.network, 0.05, 0.9));
  v1::SyntheticSource* data = spec.mutable_dataset()->mutable_synthetic();
  *data->mutable_shape() = spec.model().input().shape();
  data->set_classes(10);
  data->set_train_samples(settings.batch * (settings.warmup + settings.steps));
  v1::Training* training = spec.mutable_training();
  training->set_global_batch_size(settings.batch);
  training->set_epochs(1);
  training->mutable_report()->set_every_seconds(0);
  training->mutable_report()->set_every_steps(1);
  spec.mutable_replicas()->set_count(settings.workers);
  spec.mutable_replicas()->set_workers(settings.workers);
  v1::AllReduce* buckets = spec.mutable_replicas()->mutable_all_reduce();
  if (settings.bucket_bytes > 0) buckets->set_bucket_bytes(settings.bucket_bytes);
  if (settings.first_bucket_bytes > 0) buckets->set_first_bucket_bytes(settings.first_bucket_bytes);
  if (settings.rank > 0) buckets->mutable_compression()->set_rank(settings.rank);
  FillDefaults(&spec);
  return spec;
}

// Times all steps after the first few.
class StepTimer final : public TrainerObserver {
 public:
  explicit StepTimer(const Settings& settings) : settings_(settings) {}

  void OnProgress(const v1::Progress& progress) override {
    const auto now = std::chrono::steady_clock::now();
    if (progress.step() == settings_.warmup) begin_ = now;
    if (progress.step() != settings_.warmup + settings_.steps) return;
    seconds_ = std::chrono::duration<double>(now - begin_).count() / settings_.steps;
    loss_ = progress.training().loss();
  }

  double seconds() const { return seconds_; }
  double loss() const { return loss_; }

 private:
  const Settings settings_;
  std::chrono::steady_clock::time_point begin_;
  double seconds_ = 0;
  double loss_ = 0;
};

// Seconds a step, and the last loss.
struct Measured {
  double seconds = 0;
  double loss = 0;
};

absl::StatusOr<Measured> Train(const Settings& settings, const v1::JobSpec& spec, bool overlaps,
                               const std::string& folder) {
  std::filesystem::create_directories(folder);
  StepTimer timer(settings);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int worker = 0; worker < settings.workers; ++worker) {
    Trainer::Options options;
    options.spec = spec;
    options.dataset = spec.dataset();
    for (int rank = 0; rank < settings.workers; ++rank) {
      options.devices.emplace_back().set_name(absl::StrCat("cpu:", rank));
      options.devices.back().set_threads(settings.threads);
    }
    options.device_factory = [](const v1::Device& device) {
      return OpenDevice(device.name(), {.threads = device.threads()});
    };
    if (worker == 0) options.observer = &timer;
    options.group.worker = worker;
    options.group.workers = settings.workers;
    options.group.connect = [&settings, folder, overlaps](int first, int count) {
      FolderRendezvous meeting(folder);
      GlooOptions gloo;
      gloo.rank = first;
      gloo.world_size = settings.workers;
      absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> ends =
          ConnectGlooRanks(gloo, count, meeting);
      if (!ends.ok()) return ends;
      for (std::unique_ptr<Communicator>& end : *ends) {
        end = std::make_unique<SlowLink>(std::move(end), settings.link * 1e6);
        if (overlaps) end = std::make_unique<BackgroundCommunicator>(std::move(end));
      }
      return ends;
    };
    TANDEM_ASSIGN_OR_RETURN(trainers.emplace_back(), Trainer::Create(std::move(options)));
  }
  std::vector<absl::Status> statuses(settings.workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < settings.workers; ++worker) {
    threads.emplace_back([&, worker] { statuses[worker] = trainers[worker]->Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) TANDEM_RETURN_IF_ERROR(status);
  return Measured{timer.seconds(), timer.loss()};
}

absl::Status RunBench(const Settings& settings) {
  TANDEM_ASSIGN_OR_RETURN(const v1::JobSpec spec, MakeJob(settings));
  const std::string folder =
      absl::StrCat(std::filesystem::temp_directory_path().string(), "/tandem-overlap-bench-", getpid());
  const absl::StatusOr<Measured> in_the_way = Train(settings, spec, false, folder + "/in-the-way");
  const absl::StatusOr<Measured> beside = Train(settings, spec, true, folder + "/beside");
  std::filesystem::remove_all(folder);
  TANDEM_RETURN_IF_ERROR(in_the_way.status());
  TANDEM_RETURN_IF_ERROR(beside.status());
  const nlohmann::ordered_json out = {
      {"bench", "overlap"},
      {"net", settings.network},
      {"batch", settings.batch},
      {"workers", settings.workers},
      {"threads", settings.threads},
      {"link_mb_per_second", settings.link},
      {"bucket_bytes", spec.replicas().all_reduce().bucket_bytes()},
      {"first_bucket_bytes", spec.replicas().all_reduce().first_bucket_bytes()},
      {"compression_rank", settings.rank},
      {"step_seconds_without_overlap", in_the_way->seconds},
      {"step_seconds_with_overlap", beside->seconds},
      {"same_loss", in_the_way->loss == beside->loss}};
  std::cout << out.dump() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::WaitPassively(argv);
  tandem::Settings settings;
  CLI::App app("Trains over a slow link with and without overlap, and prints one JSON line of figures");
  app.add_option("--network", settings.network, "lenet, resnet18 or matlab-cifar");
  app.add_option("--batch", settings.batch, "samples in a step, over all workers");
  app.add_option("--workers", settings.workers, "how many, of one replica each")->check(CLI::Range(2, 16));
  app.add_option("--threads", settings.threads, "threads of a replica");
  app.add_option("--link", settings.link, "what each worker sends, at most: 10^6 bytes a second")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", settings.steps, "steps to time")->check(CLI::PositiveNumber);
  app.add_option("--warmup", settings.warmup, "steps before the timing")->check(CLI::PositiveNumber);
  app.add_option("--bucket-bytes", settings.bucket_bytes, "of a bucket; 0: the default");
  app.add_option("--first-bucket-bytes", settings.first_bucket_bytes, "of the first; 0: the default");
  app.add_option("--rank", settings.rank, "of compressed gradients; 0: whole gradients");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = tandem::RunBench(settings);
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}

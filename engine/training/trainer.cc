#include "engine/training/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/field_violations.h"
#include "engine/base/memory_error.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/collectives/local/local_group.h"
#include "engine/data/dataset.h"
#include "engine/data/sampler.h"
#include "engine/optimizers/optimizer.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/plan.h"
#include "engine/training/replica.h"
#include "engine/training/report_schedule.h"
#include "engine/training/reporter.h"
#include "google/protobuf/util/json_util.h"

namespace tandem {
namespace {

constexpr char kFramework[] = "tandem";
constexpr char kFormatVersion[] = "1";

// Replicas as threads of one process. What they share is made by Run, before they start.
class LocalTrainer final : public Trainer {
 public:
  // `submitted` is the data set as the job names it, which may be without the source that options.spec has.
  LocalTrainer(Options options, v1::DatasetSpec submitted)
      : options_(std::move(options)),
        submitted_dataset_(std::move(submitted)),
        communicators_(CreateLocalGroup(static_cast<int>(options_.devices.size()))),
        replicas_(options_.devices.size()) {}

  absl::Status Run() override;
  void Cancel() override { Fail(absl::CancelledError("training was cancelled")); }
  absl::Status SaveModel(const std::string& path) const override;

 private:
  int count() const { return static_cast<int>(replicas_.size()); }

  absl::Status OpenData();
  // A replica's thread.
  void RunReplica(int rank);
  absl::Status OpenReplica(int rank);
  // Tells the observer where a replica takes more memory than was planned.
  void CompareMemory();
  absl::Status Train(int rank);
  // That what training ends with is finite: no later step's loss would say that the last update was too
  // large.
  absl::Status CheckModel() const;
  // Tells the observer of a learning rate that the number of replicas has changed.
  void ReportScaling() const;

  // The plain means over the replicas, float32.
  absl::StatusOr<std::vector<NamedTensor>> AveragedStatistics() const;

  // Ends the training with the first error that comes here.
  void Fail(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status failure() const {
    MutexLock lock(&mutex_);
    return failure_;
  }

  const Options options_;
  const v1::DatasetSpec submitted_dataset_;
  const std::vector<std::unique_ptr<Communicator>> communicators_;

  OpenedDataset data_;
  int64_t planned_bytes_ = 0;  // Of one replica.
  std::unique_ptr<Sampler> train_sampler_;
  std::unique_ptr<Sampler> validation_sampler_;
  std::unique_ptr<LearningRate> learning_rate_;
  std::unique_ptr<ReportSchedule> schedule_;
  std::unique_ptr<Reporter> reporter_;
  // Each made and used by its own thread while Run runs; the first is read by the others while they are
  // opened.
  std::vector<std::unique_ptr<Replica>> replicas_;

  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Replicas that are open, in the order of ranks; after a failure, that they need not wait.
  int opened_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the replica that takes most.
  int64_t replica_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool completed_ ABSL_GUARDED_BY(mutex_) = true;
};

void LocalTrainer::Fail(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = status;
  }
  failed_.store(true, std::memory_order_release);
  communicators_[0]->Abort(status);
}

absl::Status LocalTrainer::OpenData() {
  absl::StatusOr<OpenedDataset> opened = OpenDataset(options_.dataset);
  if (!opened.ok()) return absl::DataLossError(opened.status().message());
  data_ = *std::move(opened);
  // The job for itself was checked when the trainer was made.
  const absl::StatusOr<JobPlan> plan = PlanJob(options_.spec, data_.info);
  if (!plan.ok()) return absl::DataLossError(plan.status().message());
  planned_bytes_ = plan->replica_memory_bytes;
  const v1::Training& training = options_.spec.training();
  const std::vector<double> loads(count(), 1.0);
  train_sampler_ = std::make_unique<Sampler>(Sampler::Options{.samples = data_.info.train_samples,
                                                              .batch = training.global_batch_size(),
                                                              .loads = loads,
                                                              .shuffle = training.shuffle(),
                                                              .seed = training.seed()});
  if (data_.validation != nullptr) {
    validation_sampler_ =
        std::make_unique<Sampler>(Sampler::Options{.samples = data_.info.validation_samples,
                                                   .batch = training.validation_batch_size(),
                                                   .loads = loads,
                                                   .shuffle = false,
                                                   .seed = 0});
  }
  return absl::OkStatus();
}

absl::Status LocalTrainer::Run() {
  if (failed()) return failure();
  TANDEM_RETURN_IF_ERROR(CatchNoMemory([this] { return OpenData(); }));
  const int64_t steps_per_epoch = train_sampler_->steps_per_epoch();
  std::vector<std::string> devices;
  for (const v1::Device& device : options_.devices) devices.push_back(device.name());
  const v1::Training& training = options_.spec.training();
  learning_rate_ = std::make_unique<LearningRate>(
      LearningRate::Options{.schedule = training.schedule(),
                            .learning_rate = LearningRateOf(training.optimizer()),
                            .steps_per_epoch = steps_per_epoch,
                            .epochs = training.epochs(),
                            .replicas = count()});
  schedule_ = std::make_unique<ReportSchedule>(training.report(), steps_per_epoch, options_.clock);
  reporter_ = std::make_unique<Reporter>(options_.spec, steps_per_epoch, std::move(devices),
                                         validation_sampler_ != nullptr, learning_rate_.get(), options_.clock,
                                         options_.observer);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count(); ++rank) threads.emplace_back([this, rank] { RunReplica(rank); });
  for (std::thread& thread : threads) thread.join();
  {
    MutexLock lock(&mutex_);
    if (!completed_) return failure_;
  }
  return CatchNoMemory([this] { return CheckModel(); });
}

absl::Status LocalTrainer::CheckModel() const {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<NamedTensor> parameters, replicas_[0]->ReadParameters());
  for (const auto& [name, tensor] : parameters) {
    const absl::Span<const float> values = tensor.data<float>();
    if (std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) continue;
    return absl::OutOfRangeError(
        absl::StrCat("parameter \"", name, "\" is not finite after the last step, ",
                     options_.spec.training().epochs() * train_sampler_->steps_per_epoch(),
                     ", though the loss was until then; lower the learning rate or look at the data"));
  }
  return absl::OkStatus();
}

void LocalTrainer::RunReplica(int rank) {
  absl::Status status = CatchNoMemory([this, rank]() -> absl::Status {
    TANDEM_RETURN_IF_ERROR(OpenReplica(rank));
    return Train(rank);
  });
  if (status.ok()) return;
  if (count() > 1 && !failed()) {
    // Which of several devices gave trouble matters; the reports' own errors are of all of them.
    const bool shared = absl::IsOutOfRange(status);
    if (!shared) {
      status = absl::Status(
          status.code(),
          absl::StrCat("replica ", rank, " on ", options_.devices[rank].name(), ": ", status.message()));
    }
  }
  Fail(status);
  MutexLock lock(&mutex_);
  completed_ = false;
  opened_ = count();
}

// In the order of ranks: the first decides how variables are laid out.
absl::Status LocalTrainer::OpenReplica(int rank) {
  {
    MutexLock lock(&mutex_);
    const auto turn = [this, rank]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return opened_ >= rank; };
    mutex_.Await(absl::Condition(&turn));
    if (!failure_.ok()) return failure_;
  }
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, options_.device_factory(options_.devices[rank]));
  const ReplicaContext context{.spec = &options_.spec,
                               .data = &data_,
                               .train_sampler = train_sampler_.get(),
                               .validation_sampler = validation_sampler_.get(),
                               .learning_rate = learning_rate_.get()};
  replicas_[rank] = std::make_unique<Replica>(context, std::move(device), communicators_[rank].get());
  TANDEM_RETURN_IF_ERROR(replicas_[rank]->Open(rank == 0 ? nullptr : replicas_[0].get()));
  MutexLock lock(&mutex_);
  replica_bytes_ = std::max(replica_bytes_, replicas_[rank]->bytes());
  ++opened_;
  return absl::OkStatus();
}

void LocalTrainer::CompareMemory() {
  int64_t bytes = 0;
  {
    MutexLock lock(&mutex_);
    bytes = replica_bytes_;
  }
  if (bytes <= planned_bytes_ || options_.observer == nullptr) return;
  options_.observer->OnNotice(absl::StrCat("A replica takes ", bytes >> 20, " MiB of memory, more than the ",
                                           planned_bytes_ >> 20, " MiB that were planned."));
}

absl::Status LocalTrainer::Train(int rank) {
  Replica& replica = *replicas_[rank];
  TANDEM_RETURN_IF_ERROR(replica.InitializeParameters());
  TANDEM_RETURN_IF_ERROR(communicators_[rank]->Barrier());
  if (rank == 0) {
    reporter_->Start();
    CompareMemory();
    ReportScaling();
    schedule_->Restart();
  }
  const int64_t steps = options_.spec.training().epochs() * train_sampler_->steps_per_epoch();
  for (int64_t step = 0; step < steps; ++step) {
    if (failed()) return failure();
    if (rank == 0) schedule_->Decide(step);
    TANDEM_RETURN_IF_ERROR(replica.TrainStep(step));
    if (!schedule_->IsDue(step)) continue;
    TANDEM_ASSIGN_OR_RETURN(Measurement training, replica.TakeTraining());
    TANDEM_RETURN_IF_ERROR(reporter_->AddTraining(rank, step + 1, std::move(training)));
    if (!schedule_->IsLastOfEpoch(step)) continue;
    if (validation_sampler_ != nullptr) {
      TANDEM_ASSIGN_OR_RETURN(Measurement validation, replica.Validate([this] { return failed(); }));
      TANDEM_RETURN_IF_ERROR(reporter_->AddValidation(rank, std::move(validation)));
    }
    // What all replicas measured decides the rate of the next step.
    if (learning_rate_->watches()) TANDEM_RETURN_IF_ERROR(communicators_[rank]->Barrier());
    if (rank == 0 && validation_sampler_ != nullptr) schedule_->Restart();
  }
  return absl::OkStatus();
}

void LocalTrainer::ReportScaling() const {
  const v1::Training& training = options_.spec.training();
  if (options_.observer == nullptr || !training.schedule().linear_scaling() || count() == 1) return;
  options_.observer->OnNotice(absl::StrCat("the schedule's rates are multiplied by ", count(),
                                           ", the number of replicas; the first step's is ",
                                           learning_rate_->Rate(0)));
}

absl::StatusOr<std::vector<NamedTensor>> LocalTrainer::AveragedStatistics() const {
  std::vector<NamedTensor> means;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    TANDEM_ASSIGN_OR_RETURN(std::vector<NamedTensor> own, replica->ReadStatistics());
    if (means.empty()) {
      means = std::move(own);
      continue;
    }
    for (size_t i = 0; i < means.size(); ++i) {
      const absl::Span<double> sum = means[i].second.data<double>();
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += own[i].second.data<double>()[j];
    }
  }
  for (auto& [name, mean] : means) {
    for (double& number : mean.data<double>()) number /= count();
    mean = mean.CastTo(DType::kFloat32);
  }
  return means;
}

absl::Status LocalTrainer::SaveModel(const std::string& path) const {
  if (replicas_[0] == nullptr) return absl::FailedPreconditionError("there is no model before training");
  TANDEM_ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors, replicas_[0]->ReadParameters());
  TANDEM_ASSIGN_OR_RETURN(std::vector<NamedTensor> statistics, AveragedStatistics());
  std::move(statistics.begin(), statistics.end(), std::back_inserter(tensors));
  std::string job;
  google::protobuf::util::JsonPrintOptions json;
  json.preserve_proto_field_names = true;
  // A model travels: it does not say where the data lay on this machine.
  v1::JobSpec spec = options_.spec;
  *spec.mutable_dataset() = submitted_dataset_;
  if (!google::protobuf::util::MessageToJsonString(spec, &job, json).ok()) {
    return absl::InternalError("the job cannot be written as JSON");
  }
  const std::map<std::string, std::string> metadata = {
      {"framework", kFramework}, {"format_version", kFormatVersion}, {"job", job}};
  return WriteSafetensors(Env::Real(), path, tensors, metadata);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(Options options) {
  v1::DatasetSpec submitted = options.spec.dataset();
  *options.spec.mutable_dataset() = options.dataset;
  FillDefaults(&options.spec);
  TANDEM_RETURN_IF_ERROR(CheckJob(options.spec));
  if (options.spec.replicas().count() != static_cast<int>(options.devices.size())) {
    return FieldError("replicas.count", absl::StrCat("is ", options.spec.replicas().count(), ", but ",
                                                     options.devices.size(), " devices were given"));
  }
  if (options.device_factory == nullptr) return absl::InvalidArgumentError("a device factory is needed");
  return std::make_unique<LocalTrainer>(std::move(options), std::move(submitted));
}

}  // namespace tandem

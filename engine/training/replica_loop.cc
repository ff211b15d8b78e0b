#include "engine/training/replica_loop.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/training/gathering.h"
#include "engine/training/notices.h"
#include "engine/training/snapshot.h"
#include "engine/training/step_graph.h"

namespace tandem {
namespace {

// After this many steps, devices have settled how they run steps.
constexpr int64_t kFirstSteps = 3;

// Adds the plan to an error about memory.
absl::Status WithPlan(const absl::Status& status, const MemoryGroups& planned) {
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      status.message(), "; planned were ", MebibytesOf(planned.total()), " (", planned.ToString(), ")"));
}

std::optional<LoadMeter> MeterOf(const TrainingSetup& setup) {
  if (!setup.measures_loads()) return std::nullopt;
  return LoadMeter(setup.device_names(), setup.state().step);
}

}  // namespace

ReplicaLoop::ReplicaLoop(const TrainingSetup* setup, std::shared_ptr<const BeginningValues> beginning,
                         Communicator* communicator, Coordinator* coordinator, const ReplicaLoop* first)
    : setup_(*setup),
      beginning_(std::move(beginning)),
      communicator_(communicator),
      coordinator_(coordinator),
      first_(first),
      rank_(communicator->rank()),
      learning_rate_(setup->MakeLearningRate()),
      first_dealt_(setup->Deal(setup->loads())),
      dealt_(first_dealt_),
      load_meter_(MeterOf(*setup)),
      steps_(setup->state().step) {}

void ReplicaLoop::Wait() {
  if (replica_ != nullptr) replica_->Wait();
}

absl::Status ReplicaLoop::Run() {
  TANDEM_RETURN_IF_ERROR(communicator_->status());
  // The first rank decides the layouts of variables. Algorithms are timed while they compile.
  TANDEM_RETURN_IF_ERROR(InTurn([this] { return WithPlan(OpenReplica(), setup_.planned_memory()); }));
  TANDEM_RETURN_IF_ERROR(FillReplica());
  TANDEM_RETURN_IF_ERROR(Start());
  if (!setup_.had_ended()) {
    TANDEM_RETURN_IF_ERROR(TakeSteps());
  } else if (WantsPopulationStatistics(spec()) && !setup_.state().population_statistics) {
    // The job of the checkpoint did not want these statistics.
    TANDEM_RETURN_IF_ERROR(Finish(steps_));
    TANDEM_ASSIGN_OR_RETURN(const Verdict verdict,
                            Hear([](Coordinator& coordinator) { return coordinator.ConcludeFinished(); }));
    if (verdict.keeps()) TANDEM_RETURN_IF_ERROR(Keep(steps_, verdict));
  }
  return PassModel();
}

absl::Status ReplicaLoop::InTurn(absl::FunctionRef<absl::Status()> work) {
  for (int turn = 0; turn < communicator_->world_size(); ++turn) {
    if (turn == rank_) TANDEM_RETURN_IF_ERROR(work());
    TANDEM_RETURN_IF_ERROR(communicator_->Barrier());
  }
  return absl::OkStatus();
}

absl::Status ReplicaLoop::OpenReplica() {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                          setup_.options().device_factory(setup_.options().devices[rank_]));
  const ReplicaContext context{.spec = &spec(),
                               .data = &setup_.data(),
                               .unchanged_samples = setup_.unchanged_samples(),
                               .resident = setup_.plans_resident(),
                               .dealt = dealt_.get(),
                               .learning_rate = learning_rate_.get(),
                               .first_step = setup_.state().step,
                               .steps = setup_.length().steps};
  replica_ = std::make_unique<Replica>(context, std::move(device), communicator_);
  return replica_->Open(first_ == nullptr ? nullptr : first_->replica_.get());
}

absl::Status ReplicaLoop::FillReplica() {
  const bool is_resumed = beginning_->resumed.has_value();
  if (setup_.spread() || !is_resumed) {
    TANDEM_RETURN_IF_ERROR(replica_->InitializeParameters(beginning_->by_weights));
  }
  if (setup_.spread()) {
    TANDEM_ASSIGN_OR_RETURN(const double digest, replica_->ParametersDigest());
    TANDEM_RETURN_IF_ERROR(CheckBeginsAlike(steps_, digest, communicator_));
  }
  if (is_resumed) TANDEM_RETURN_IF_ERROR(RestoreReplica(*beginning_->resumed));
  // The last rank of the process frees the values.
  beginning_.reset();
  return absl::OkStatus();
}

absl::Status ReplicaLoop::RestoreReplica(const Resumption& resumed) {
  std::map<std::string, const Tensor*> values = TensorsOfReplica(resumed.tensors, rank_);
  const std::map<std::string, Tensor> means =
      MeansOf(replica_->kept().frozen, resumed.tensors, resumed.shares);
  for (const auto& [name, mean] : TensorsOfReplica(means, rank_)) values[name] = mean;
  return replica_->RestoreVariables(values);
}

absl::Status ReplicaLoop::Start() {
  TANDEM_ASSIGN_OR_RETURN(const std::string no_memory,
                          GatherText(replica_->why_not_resident(), communicator_));
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<std::vector<double>> all,
      GatherNumbers({static_cast<double>(replica_->bytes()), replica_->resident() ? 1.0 : 0.0},
                    communicator_));
  double bytes = 0;
  all_resident_ = true;
  for (const std::vector<double>& of_rank : all) {
    bytes = std::max(bytes, of_rank[0]);
    all_resident_ = all_resident_ && of_rank[1] != 0;
  }
  if (coordinator_ != nullptr && spec().training().report_parameters()) {
    TANDEM_ASSIGN_OR_RETURN(std::vector<NamedTensor> parameters, ReadParameters());
    tracker_.emplace(std::move(parameters));
  }
  if (coordinator_ != nullptr) {
    coordinator_->Start(static_cast<int64_t>(bytes), no_memory);
    coordinator_->Notify(CompressionNotice(spec().replicas(), replica_->parameters()));
  }
  // No rank begins before the observer knows of the start.
  return communicator_->Barrier();
}

bool ReplicaLoop::MeasuresAt(int64_t step) const {
  return load_meter_.has_value() && step < setup_.state().step + LoadMeter::kSteps;
}

int64_t ReplicaLoop::MostStepsFrom(int64_t step, int64_t size) const {
  // With several replicas or parts, the device gets a single step at a time anyway.
  const bool reduces = setup_.ranks() > 1 && !first_dealt_->averaging.steps_alone();
  const bool has_parts = spec().training().accumulation_steps() > 1;
  return reduces || has_parts || !all_resident_ || MeasuresAt(step) ? 1 : size;
}

absl::Status ReplicaLoop::TakeSteps() {
  const int64_t first_step = steps_;
  const int64_t end = setup_.length().steps;
  const AveragingPolicy& averaging = first_dealt_->averaging;
  const StepPlan plan(spec(),
                      {.length = setup_.length(), .validates = setup_.validates(), .averaging = &averaging});
  std::function<StepSignals()> look;
  if (coordinator_ != nullptr) look = [this] { return coordinator_->Look(); };
  SignalLine line({.communicator = communicator_,
                   .averaging = &averaging,
                   .clock = setup_.options().clock,
                   .look = std::move(look),
                   .first_step = first_step,
                   .launch_steps = std::max<int64_t>(1, spec().gpu().steps_per_launch())});
  int64_t reported_steps = first_step;
  bool has_reported = true;  // Whether a report preceded the steps.
  bool has_settled = false;  // Whether the first steps are taken.
  const auto steps_from = [&](int64_t step) {
    return plan.StepsFrom(step, reported_steps, MostStepsFrom(step, line.launch_steps()));
  };
  while (steps_ < end) {
    TANDEM_RETURN_IF_ERROR(communicator_->status());

    // Take the next steps, from batches to updates, and the averaging after them.
    const int64_t count = steps_from(steps_);
    line.Claim(steps_ + count - 1);
    replica_->SetMeasured(MeasuresAt(steps_));
    TANDEM_RETURN_IF_ERROR(replica_->TrainSteps(steps_, count));
    steps_ += count;
    const int64_t step = steps_ - 1;
    if (coordinator_ != nullptr) coordinator_->Took(count, std::exchange(has_reported, false));
    if (coordinator_ != nullptr && !has_settled && steps_ - first_step >= kFirstSteps) {
      has_settled = true;
      coordinator_->Notify(replica_->notice());
    }
    TANDEM_RETURN_IF_ERROR(MeasureLoads(step));

    // Go on at once, unless all ranks meet here.
    const bool acts = plan.ActsAfter(step, reported_steps);
    TANDEM_ASSIGN_OR_RETURN(const std::optional<StepSignals> signals,
                            line.After(step, acts, acts ? step : step + steps_from(steps_)));
    if (!signals.has_value()) continue;
    const AfterStep after = plan.After(step, reported_steps, *signals);
    if (coordinator_ != nullptr) coordinator_->Acted(*signals, after);
    if (!after.report) continue;

    // Report, validate, keep the state.
    reported_steps = steps_;
    has_reported = true;
    TANDEM_ASSIGN_OR_RETURN(const bool ends, Act(steps_, after));
    if (ends) break;
    if (coordinator_ != nullptr && after.validate) coordinator_->Restart();
  }
  return absl::OkStatus();
}

absl::Status ReplicaLoop::MeasureLoads(int64_t step) {
  if (!load_meter_.has_value()) return absl::OkStatus();
  const std::optional<double> speed = load_meter_->Measure(step, replica_->speed());
  if (!speed.has_value()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> measured,
                          GatherNumbers({*speed}, communicator_));
  std::vector<double> loads(measured.size());
  if (coordinator_ != nullptr) {
    std::vector<double> speeds;
    for (const std::vector<double>& of_rank : measured) speeds.push_back(of_rank[0]);
    loads = coordinator_->MeasureLoads(speeds, step + 1);
  }
  TANDEM_RETURN_IF_ERROR(
      communicator_->Broadcast({loads.data(), static_cast<int64_t>(loads.size()), DType::kFloat64}, 0));
  dealt_ = setup_.Deal(loads);
  if (coordinator_ != nullptr) coordinator_->Deal(dealt_);
  // Algorithms are timed while they compile.
  return InTurn([this, step] { return replica_->Redeal(dealt_.get(), step + 1); });
}

absl::StatusOr<bool> ReplicaLoop::Act(int64_t steps, const AfterStep& after) {
  TANDEM_RETURN_IF_ERROR(Report(steps, after));
  if (after.ends_epoch) TANDEM_RETURN_IF_ERROR(ReportParameters(steps));
  if (after.ends_training()) TANDEM_RETURN_IF_ERROR(TakeStatistics(steps));
  if (after.validate) TANDEM_RETURN_IF_ERROR(Validate(steps, after));
  if (!after.settles()) return false;
  const auto conclude = [&](Coordinator& coordinator) { return coordinator.Conclude(after); };
  TANDEM_ASSIGN_OR_RETURN(Verdict verdict, Hear(conclude));
  const bool is_finished = verdict.ends() && !verdict.pauses();
  // Early stopping ended the epoch, so its parameters are reported here.
  if (is_finished && !after.ends_epoch) TANDEM_RETURN_IF_ERROR(ReportParameters(steps));
  if (is_finished && !after.ends_training() && WantsPopulationStatistics(spec())) {
    // The model with the best result keeps the statistics of its validation.
    Verdict best = {.best = after.validate && verdict.best};
    if (best.keeps()) TANDEM_RETURN_IF_ERROR(Keep(steps, best));
    TANDEM_RETURN_IF_ERROR(Finish(steps));
    TANDEM_ASSIGN_OR_RETURN(verdict, Hear(conclude));
  }
  if (verdict.keeps()) TANDEM_RETURN_IF_ERROR(Keep(steps, verdict));
  return verdict.ends();
}

absl::Status ReplicaLoop::Report(int64_t steps, const AfterStep& after) {
  TANDEM_ASSIGN_OR_RETURN(Measurement own, replica_->TakeTraining());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Measurement> all,
                          GatherMeasurements(std::move(own), communicator_));
  return coordinator_ == nullptr ? absl::OkStatus() : coordinator_->AddTraining(steps, after, all);
}

absl::StatusOr<std::vector<NamedTensor>> ReplicaLoop::ReadParameters() const {
  std::vector<NamedTensor> parameters;
  for (const std::string& name : replica_->kept().parameters) {
    if (parameters.size() == ParameterTracker::kMostParameters) break;
    TANDEM_ASSIGN_OR_RETURN(Tensor tensor, replica_->Read(name));
    parameters.push_back({name, std::move(tensor)});
  }
  return parameters;
}

absl::Status ReplicaLoop::ReportParameters(int64_t steps) {
  if (!tracker_.has_value()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(std::vector<NamedTensor> parameters, ReadParameters());
  v1::ParameterReport report = tracker_->Compare(std::move(parameters));
  report.set_epoch(setup_.length().EpochOf(steps));
  report.set_step(steps);
  coordinator_->TellParameters(report);
  return absl::OkStatus();
}

absl::Status ReplicaLoop::Validate(int64_t steps, const AfterStep& after) {
  TANDEM_ASSIGN_OR_RETURN(Measurement own, replica_->Validate(steps, [this] { return has_ended(); }));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Measurement> all,
                          GatherMeasurements(std::move(own), communicator_));
  return coordinator_ == nullptr ? absl::OkStatus() : coordinator_->AddValidation(steps, after, all);
}

absl::Status ReplicaLoop::TakeStatistics(int64_t steps) {
  if (!WantsPopulationStatistics(spec())) return absl::OkStatus();
  if (coordinator_ != nullptr) coordinator_->Notify(StatisticsNotice(dealt_->train->epoch_samples()));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> own,
                          replica_->SumStatistics(steps, [this] { return has_ended(); }));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> all, GatherNumbers(own, communicator_));
  TANDEM_RETURN_IF_ERROR(replica_->WriteStatistics(all));
  if (coordinator_ != nullptr) coordinator_->TookStatistics();
  return absl::OkStatus();
}

absl::Status ReplicaLoop::Finish(int64_t steps) {
  TANDEM_RETURN_IF_ERROR(TakeStatistics(steps));
  if (!setup_.validates()) return absl::OkStatus();
  return Validate(steps, {.validate = true, .is_finished = true});
}

absl::StatusOr<Verdict> ReplicaLoop::Hear(absl::FunctionRef<Verdict(Coordinator&)> conclude) {
  Verdict verdict;
  if (coordinator_ != nullptr) verdict = conclude(*coordinator_);
  TANDEM_RETURN_IF_ERROR(ShareVerdict(communicator_, &verdict));
  if (verdict.plateau.has_value()) learning_rate_->Restore(*verdict.plateau);
  return verdict;
}

absl::Status ReplicaLoop::Keep(int64_t steps, const Verdict& verdict) {
  TANDEM_ASSIGN_OR_RETURN(Snapshot snapshot, GatherSnapshot(*replica_, dealt_->averaging.AlikeAfter(steps),
                                                            /*whole=*/true, communicator_));
  return coordinator_ == nullptr ? absl::OkStatus() : coordinator_->Keep(std::move(snapshot), verdict, steps);
}

absl::Status ReplicaLoop::PassModel() {
  TANDEM_ASSIGN_OR_RETURN(const Snapshot snapshot,
                          GatherSnapshot(*replica_, dealt_->averaging.AlikeAfter(steps_),
                                         /*whole=*/false, communicator_));
  return coordinator_ == nullptr ? absl::OkStatus() : coordinator_->SetModel(snapshot, steps_);
}

}  // namespace tandem

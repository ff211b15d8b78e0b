// Cases of whole trainings, by one replica and by several.

#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/local/local_group.h"
#include "engine/data/sampler.h"
#include "engine/training/averaging_policy.h"
#include "tests/golden/runner.h"
#include "tests/golden/training.h"

namespace tandem {
namespace {

// Some gradients are zero but for rounding.
constexpr double kLeastMagnitude = 0.05;

// The results of a replica's training.
struct ReplicaResult {
  absl::Status status;
  std::vector<double> losses;
  std::vector<Tensor> parameters;
  std::vector<Tensor> statistics;
};

ReplicaResult TrainReplica(GoldenTraining& training, Communicator& communicator) {
  ReplicaResult result;
  for (int64_t step = 0; step < training.steps(); ++step) {
    result.status = training.RunStep(step, &communicator);
    if (!result.status.ok()) return result;
    const absl::StatusOr<double> loss = training.Loss();
    if (!loss.ok()) {
      result.status = loss.status();
      return result;
    }
    result.losses.push_back(*loss);
  }
  for (size_t i = 0; i < training.names().size(); ++i) {
    absl::StatusOr<Tensor> parameter = training.Parameter(i);
    result.status.Update(parameter.status());
    if (parameter.ok()) result.parameters.push_back(*std::move(parameter));
  }
  for (size_t i = 0; i < training.statistic_names().size(); ++i) {
    absl::StatusOr<Tensor> statistic = training.Statistic(i);
    result.status.Update(statistic.status());
    if (statistic.ok()) result.statistics.push_back(statistic->CastTo(DType::kFloat64));
  }
  return result;
}

Tensor AsTensor(const std::vector<double>& numbers) {
  return Tensor::Of<double>({static_cast<int64_t>(numbers.size())}, numbers);
}

// Compares all of the case's tensors whose names begin with `prefix`.
absl::Status CompareAll(const GoldenCase& golden, const std::string& prefix,
                        const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
                        const std::string& label, GoldenReport& report) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = absl::StrCat(prefix, names[i]);
    TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get(name));
    report.Compare(absl::StrCat(label, name), tensors[i], expected, kLeastMagnitude);
  }
  // Tensors that no layer has would not be compared.
  if (golden.NamesAfter(prefix).size() != names.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the case has tensors ", prefix, "* of no layer's"));
  }
  return absl::OkStatus();
}

// Checks that no setting is unknown, apart from settings of layers, the loss and the optimizer.
absl::Status CheckSettings(const GoldenCase& golden, const std::set<std::string>& known) {
  for (const auto& [key, value] : golden.attrs.items()) {
    if (known.count(key) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("setting ", key, "=", value.dump(), " is not understood"));
    }
  }
  for (const nlohmann::json& layer : golden.attrs.value("layers", nlohmann::json::array())) {
    const bool sound = layer.is_object() && layer.contains("name") && layer.contains("inputs") &&
                       layer.contains("weights") && layer["name"].is_string() && layer["inputs"].is_array() &&
                       layer["weights"].is_array();
    if (!sound) return absl::InvalidArgumentError(absl::StrCat("layer ", layer.dump(), " is not understood"));
  }
  return absl::OkStatus();
}

// Makes a training for each replica.
absl::StatusOr<std::vector<std::unique_ptr<GoldenTraining>>> MakeReplicas(
    const GoldenCase& golden, const GoldenBackend& backend,
    const std::vector<GoldenTraining::Scale>& scales) {
  std::vector<std::unique_ptr<GoldenTraining>> trainings;
  for (size_t r = 0; r < scales.size(); ++r) {
    TANDEM_ASSIGN_OR_RETURN(Tensor x, golden.Get(absl::StrCat("replica", r, ".x")));
    TANDEM_ASSIGN_OR_RETURN(Tensor y, golden.Get(absl::StrCat("replica", r, ".y")));
    TANDEM_ASSIGN_OR_RETURN(
        trainings.emplace_back(),
        GoldenTraining::Create(golden, backend.make(static_cast<int>(r)),
                               r == 0 ? nullptr : trainings[0].get(), scales[r], std::move(x), std::move(y)));
  }
  return trainings;
}

// Calls `train` for each replica on a thread of its own; where one fails, the others are not left waiting.
// Returns the first failure.
absl::Status OnEachReplica(const std::vector<std::unique_ptr<GoldenTraining>>& trainings,
                           const std::function<absl::Status(size_t rank, Communicator&)>& train) {
  const size_t replicas = trainings.size();
  const auto communicators = CreateLocalGroup(static_cast<int>(replicas));
  std::vector<absl::Status> statuses(replicas);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < replicas; ++r) {
    threads.emplace_back([&, r] {
      const std::unique_ptr<Communicator> wrapped = trainings[r]->WrapCommunicator(communicators[r].get());
      statuses[r] = train(r, wrapped != nullptr ? *wrapped : *communicators[r]);
      if (!statuses[r].ok()) communicators[r]->Abort(statuses[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) TANDEM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status CompareLosses(const GoldenCase& golden, size_t rank, const std::vector<double>& losses,
                           GoldenReport& report) {
  const std::string name = absl::StrCat("replica", rank, ".loss");
  TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get(name));
  report.Compare(name, AsTensor(losses), expected, kLeastMagnitude);
  return absl::OkStatus();
}

// Reduces gradients at every step. `weighted`: by the weights of all replicas' samples, else by `shares`.
absl::Status RunGradients(const GoldenCase& golden, const GoldenBackend& backend, bool weighted,
                          GoldenReport& report) {
  std::set<std::string> known = {"type", "replicas", "batch_sizes", "steps", "loss", "optimizer", "layers"};
  if (!weighted) known.insert("shares");
  TANDEM_RETURN_IF_ERROR(CheckSettings(golden, known));
  Attributes attributes(golden.attrs);
  const std::vector<double> shares = attributes.Numbers(weighted ? "batch_sizes" : "shares");
  const int replicas = static_cast<int>(shares.size());
  if (replicas == 0 || attributes.Whole("replicas", replicas) != replicas) {
    return absl::InvalidArgumentError("the case has not as many shares as replicas");
  }
  std::vector<GoldenTraining::Scale> scales;
  for (const double share : shares) {
    scales.push_back(weighted ? GoldenTraining::Scale{.weighted_replicas = replicas}
                              : GoldenTraining::Scale{.share = share});
  }
  TANDEM_ASSIGN_OR_RETURN(const auto trainings, MakeReplicas(golden, backend, scales));
  std::vector<ReplicaResult> results(replicas);
  TANDEM_RETURN_IF_ERROR(OnEachReplica(trainings, [&](size_t r, Communicator& communicator) {
    results[r] = TrainReplica(*trainings[r], communicator);
    return results[r].status;
  }));
  std::vector<Tensor> means;  // The means of the replicas' statistics.
  for (int r = 0; r < replicas; ++r) {
    TANDEM_RETURN_IF_ERROR(CompareLosses(golden, r, results[r].losses, report));
    TANDEM_RETURN_IF_ERROR(CompareAll(golden, "final.", trainings[r]->names(), results[r].parameters,
                                      absl::StrCat("replica ", r, ": "), report));
    TANDEM_RETURN_IF_ERROR(CompareAll(golden, absl::StrCat("replica", r, ".final."),
                                      trainings[r]->statistic_names(), results[r].statistics, "", report));
    if (r == 0) {
      means = results[r].statistics;
      continue;
    }
    for (size_t i = 0; i < means.size(); ++i) {
      for (int64_t j = 0; j < means[i].elements(); ++j) {
        means[i].data<double>()[j] += results[r].statistics[i].data<double>()[j];
      }
    }
  }
  for (Tensor& mean : means) {
    for (double& number : mean.data<double>()) number /= replicas;
  }
  TANDEM_RETURN_IF_ERROR(CompareAll(golden, "average.", trainings[0]->statistic_names(), means, "", report));
  return absl::OkStatus();
}

// Compares a replica's tensors directly after an averaging, by the case's names.
absl::Status CompareAveraged(const GoldenCase& golden, int64_t step, const GoldenTraining& training,
                             const std::string& label, bool with_state, GoldenReport& report) {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < training.names().size(); ++i) {
    names.push_back(training.names()[i]);
    TANDEM_ASSIGN_OR_RETURN(tensors.emplace_back(), training.Parameter(i));
    if (!with_state) continue;
    names.push_back(absl::StrCat("momentum.", training.names()[i]));
    TANDEM_ASSIGN_OR_RETURN(tensors.emplace_back(), training.State("momentum", i));
  }
  for (size_t i = 0; i < training.statistic_names().size(); ++i) {
    names.push_back(training.statistic_names()[i]);
    TANDEM_ASSIGN_OR_RETURN(tensors.emplace_back(), training.Statistic(i));
  }
  return CompareAll(golden, absl::StrCat("after", step, "."), names, tensors, label, report);
}

absl::Status RunParameterAveraging(const GoldenCase& golden, const GoldenBackend& backend,
                                   GoldenReport& report) {
  TANDEM_RETURN_IF_ERROR(
      CheckSettings(golden, {"type", "replicas", "batch_sizes", "averaging_frequency", "averaging_points",
                             "average_optimizer_state", "steps", "loss", "optimizer", "layers"}));
  Attributes attributes(golden.attrs);
  const std::vector<double> batch_sizes = attributes.Numbers("batch_sizes");
  const size_t replicas = batch_sizes.size();
  if (replicas == 0 || attributes.Whole("replicas", 0) != static_cast<int64_t>(replicas)) {
    return absl::InvalidArgumentError("the case has not as many batch sizes as replicas");
  }
  TANDEM_ASSIGN_OR_RETURN(const auto trainings,
                          MakeReplicas(golden, backend, std::vector<GoldenTraining::Scale>(replicas)));
  const int64_t steps = trainings[0]->steps();
  v1::Replicas spec;
  v1::ParameterAveraging& averaging = *spec.mutable_parameter_averaging();
  averaging.set_every_iterations(attributes.Whole("averaging_frequency", 0));
  averaging.set_average_optimizer_state(attributes.Flag("average_optimizer_state", true));
  const int64_t batch = static_cast<int64_t>(std::accumulate(batch_sizes.begin(), batch_sizes.end(), 0.0));
  const Sampler sampler(Sampler::Options{.samples = steps * batch, .batch = batch, .loads = batch_sizes});
  const AveragingPolicy policy(spec, {.steps_per_epoch = steps, .steps = steps, .epochs = 1}, &sampler,
                               batch_sizes);
  std::vector<double> points;
  for (int64_t step = 0; step < steps; ++step) {
    if (policy.AveragesAfter(step)) points.push_back(static_cast<double>(step + 1));
  }
  if (points.empty() || points != attributes.Numbers("averaging_points")) {
    return absl::InvalidArgumentError("the case is averaged at other points than its frequency gives");
  }
  // Some cases have the buffers of momentum beside the weights.
  const bool with_state =
      !golden.NamesAfter(absl::StrCat("after", static_cast<int64_t>(points[0]), ".momentum.")).empty();
  std::vector<std::vector<double>> losses(replicas);
  Mutex mutex;  // Guards the report.
  TANDEM_RETURN_IF_ERROR(OnEachReplica(trainings, [&](size_t r, Communicator& communicator) -> absl::Status {
    for (int64_t step = 0; step < steps; ++step) {
      TANDEM_RETURN_IF_ERROR(trainings[r]->RunStep(step));
      TANDEM_ASSIGN_OR_RETURN(losses[r].emplace_back(), trainings[r]->Loss());
      if (!policy.AveragesAfter(step)) continue;
      TANDEM_RETURN_IF_ERROR(
          trainings[r]->Average(policy.SharesAfter(step), policy.averages_state(), &communicator));
      MutexLock lock(&mutex);
      TANDEM_RETURN_IF_ERROR(CompareAveraged(golden, step + 1, *trainings[r],
                                             absl::StrCat("replica ", r, ": "), with_state, report));
    }
    return absl::OkStatus();
  }));
  for (size_t r = 0; r < replicas; ++r) TANDEM_RETURN_IF_ERROR(CompareLosses(golden, r, losses[r], report));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunNetworkCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report) {
  TANDEM_RETURN_IF_ERROR(CheckSettings(golden, {"batch_size", "steps", "loss", "optimizer", "layers"}));
  TANDEM_ASSIGN_OR_RETURN(Tensor x, golden.Get("x"));
  TANDEM_ASSIGN_OR_RETURN(Tensor y, golden.Get("y"));
  TANDEM_ASSIGN_OR_RETURN(
      const std::unique_ptr<GoldenTraining> training,
      GoldenTraining::Create(golden, backend.make(0), nullptr, {}, std::move(x), std::move(y)));
  std::vector<double> losses;
  for (int64_t step = 0; step < training->steps(); ++step) {
    TANDEM_RETURN_IF_ERROR(training->RunStep(step));
    TANDEM_ASSIGN_OR_RETURN(losses.emplace_back(), training->Loss());
    if (step > 0) continue;
    TANDEM_ASSIGN_OR_RETURN(const Tensor logits, training->Logits());
    TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get("logits0"));
    report.Compare("logits0", logits, expected, kLeastMagnitude);
    if (backend.narrow) {
      TANDEM_ASSIGN_OR_RETURN(const Tensor expected_loss, golden.Get("loss"));
      report.Compare("loss[0]", AsTensor(losses), AsTensor({expected_loss.data<double>()[0]}),
                     kLeastMagnitude);
      return absl::OkStatus();
    }
    for (size_t i = 0; i < training->names().size(); ++i) {
      const std::string name = absl::StrCat("grad0.", training->names()[i]);
      TANDEM_ASSIGN_OR_RETURN(const Tensor grad, training->Gradient(i));
      TANDEM_ASSIGN_OR_RETURN(const Tensor expected_grad, golden.Get(name));
      report.Compare(name, grad, expected_grad, kLeastMagnitude);
    }
  }
  TANDEM_ASSIGN_OR_RETURN(const Tensor expected_losses, golden.Get("loss"));
  report.Compare("loss", AsTensor(losses), expected_losses, kLeastMagnitude);
  std::vector<Tensor> parameters;
  for (size_t i = 0; i < training->names().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(parameters.emplace_back(), training->Parameter(i));
  }
  std::vector<std::string> names = training->names();
  for (size_t i = 0; i < training->statistic_names().size(); ++i) {
    names.push_back(training->statistic_names()[i]);
    TANDEM_ASSIGN_OR_RETURN(parameters.emplace_back(), training->Statistic(i));
  }
  return CompareAll(golden, "final.", names, parameters, "", report);
}

absl::Status RunDataParallelCase(const GoldenCase& golden, const GoldenBackend& backend,
                                 GoldenReport& report) {
  const std::string type = golden.attrs.value("type", "");
  if (type == "gradient_averaging") return RunGradients(golden, backend, /*weighted=*/false, report);
  if (type == "weighted_gradients") return RunGradients(golden, backend, /*weighted=*/true, report);
  if (type == "parameter_averaging") return RunParameterAveraging(golden, backend, report);
  return absl::UnimplementedError(absl::StrCat(type, " is not offered yet"));
}

}  // namespace tandem

#include "engine/training/gathering.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/tensor/tensor.h"
#include "engine/training/step_graph.h"

namespace tandem {
namespace {

// Each rank fills its own row and leaves the others zero, so the sum has all rows exactly.
absl::StatusOr<std::vector<double>> GatherRows(const std::vector<double>& own, size_t width,
                                               Communicator* communicator) {
  std::vector<double> rows(width * communicator->world_size(), 0);
  std::copy(own.begin(), own.end(), rows.begin() + static_cast<std::ptrdiff_t>(width * communicator->rank()));
  TANDEM_RETURN_IF_ERROR(communicator->AllReduce(
      {rows.data(), static_cast<int64_t>(rows.size()), DType::kFloat64}, ReduceOp::kSum));
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<double>>> GatherNumbers(const std::vector<double>& own,
                                                               Communicator* communicator) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> lengths,
                          GatherRows({static_cast<double>(own.size())}, 1, communicator));
  const auto width = static_cast<size_t>(*std::max_element(lengths.begin(), lengths.end()));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> rows, GatherRows(own, width, communicator));
  std::vector<std::vector<double>> numbers;
  for (size_t rank = 0; rank < lengths.size(); ++rank) {
    const absl::Span<const double> row =
        absl::MakeConstSpan(rows).subspan(rank * width, static_cast<size_t>(lengths[rank]));
    numbers.emplace_back(row.begin(), row.end());
  }
  return numbers;
}

absl::StatusOr<std::string> GatherText(const std::string& own, Communicator* communicator) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> lengths,
                          GatherRows({static_cast<double>(own.size())}, 1, communicator));
  for (size_t rank = 0; rank < lengths.size(); ++rank) {
    if (lengths[rank] == 0) continue;
    std::string text = own;
    text.resize(static_cast<size_t>(lengths[rank]));
    TANDEM_RETURN_IF_ERROR(communicator->Broadcast(
        {text.data(), static_cast<int64_t>(text.size()), DType::kUInt8}, static_cast<int>(rank)));
    return text;
  }
  return "";
}

absl::StatusOr<std::vector<Measurement>> GatherMeasurements(Measurement own, Communicator* communicator) {
  std::vector<double> numbers = {static_cast<double>(own.samples),
                                 own.data_wait_seconds,
                                 own.reduce_seconds,
                                 own.loss_scale,
                                 static_cast<double>(own.skipped_steps),
                                 static_cast<double>(own.sums.size())};
  const size_t head = numbers.size();
  numbers.insert(numbers.end(), own.sums.begin(), own.sums.end());
  const bool is_first = communicator->rank() == 0;
  // Rank 0 sends its numbers to nobody.
  if (own.evaluator != nullptr && !is_first) {
    const std::vector<double> more = own.evaluator->ToNumbers();
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> lengths,
                          GatherRows({static_cast<double>(numbers.size())}, 1, communicator));
  std::vector<Measurement> measurements;
  if (is_first) measurements.push_back(std::move(own));
  for (int rank = 1; rank < communicator->world_size(); ++rank) {
    std::vector<double> given;
    if (rank == communicator->rank()) given = std::move(numbers);
    if (is_first) given.resize(static_cast<size_t>(lengths[rank]));
    // The other ranks receive nothing.
    TANDEM_RETURN_IF_ERROR(communicator->Broadcast(
        {given.empty() ? nullptr : given.data(), static_cast<int64_t>(lengths[rank]), DType::kFloat64},
        rank));
    if (!is_first) continue;
    Measurement& measurement = measurements.emplace_back();
    measurement.samples = static_cast<int64_t>(given[0]);
    measurement.data_wait_seconds = given[1];
    measurement.reduce_seconds = given[2];
    measurement.loss_scale = given[3];
    measurement.skipped_steps = static_cast<int64_t>(given[4]);
    const auto sums = static_cast<size_t>(given[5]);
    const absl::Span<const double> rest = absl::MakeConstSpan(given).subspan(head);
    measurement.sums.assign(rest.begin(), rest.begin() + sums);
    if (measurements[0].evaluator == nullptr) continue;
    measurement.evaluator = std::make_shared<Evaluator>(*measurements[0].evaluator);
    measurement.evaluator->FromNumbers(rest.subspan(sums));
  }
  return measurements;
}

absl::StatusOr<Snapshot> GatherSnapshot(const Replica& replica, const Alike& alike, bool whole,
                                        Communicator* communicator) {
  const bool is_first = communicator->rank() == 0;
  Snapshot snapshot(is_first ? communicator->world_size() : 0);
  const KeptVariables kept = replica.kept();
  const auto gather = [&](const std::string& name, bool part_is_alike,
                          std::vector<NamedTensor> ReplicaVariables::*part) -> absl::Status {
    const bool is_alike = part_is_alike || kept.frozen.count(name) > 0;
    if (is_alike && !is_first) return absl::OkStatus();
    // Replicas have variables with the same names, types and shapes in the same order.
    TANDEM_ASSIGN_OR_RETURN(Tensor own, replica.Read(name));
    for (int rank = 1; !is_alike && rank < communicator->world_size(); ++rank) {
      Tensor given;
      if (is_first) given = Tensor(own.dtype(), own.shape());
      // The ranks but the sender and rank 0 receive nothing.
      void* const data = is_first                       ? given.raw_data()
                         : rank == communicator->rank() ? own.raw_data()
                                                        : nullptr;
      TANDEM_RETURN_IF_ERROR(communicator->Broadcast({data, own.elements(), own.dtype()}, rank));
      if (is_first) (snapshot[rank].*part).emplace_back(name, std::move(given));
    }
    if (is_first) (snapshot[0].*part).emplace_back(name, std::move(own));
    return absl::OkStatus();
  };
  for (const std::string& name : kept.statistics) {
    TANDEM_RETURN_IF_ERROR(gather(name, alike.statistics, &ReplicaVariables::statistics));
  }
  for (const std::string& name : kept.parameters) {
    TANDEM_RETURN_IF_ERROR(gather(name, alike.parameters, &ReplicaVariables::parameters));
  }
  for (const std::string& name : kept.optimizer_state) {
    if (!whole && !absl::StartsWith(name, kAveragePrefix)) continue;
    TANDEM_RETURN_IF_ERROR(gather(name, alike.optimizer_state, &ReplicaVariables::optimizer_state));
  }
  for (const std::string& name : kept.residuals) {
    if (!whole) break;
    TANDEM_RETURN_IF_ERROR(gather(name, /*part_is_alike=*/false, &ReplicaVariables::residuals));
  }
  return snapshot;
}

absl::Status CheckBeginsAlike(int64_t step, double digest, Communicator* communicator) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> all,
                          GatherNumbers({static_cast<double>(step), digest}, communicator));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank][0] != all[0][0]) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot train: rank ", rank, " would continue from step ", all[rank][0], ", but rank 0 from step ",
          all[0][0], "; all workers need to see the same checkpoint"));
    }
    // Rank 0's parameters were copied byte by byte, so a difference comes from the layout.
    if (all[rank][1] != all[0][1]) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank,
                       " lays parameters out in memory differently from rank 0; all workers need the same "
                       "job and like processors"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem

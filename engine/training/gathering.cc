#include "engine/training/gathering.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/tensor/tensor.h"

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

absl::StatusOr<std::vector<Measurement>> GatherMeasurements(const Measurement& own,
                                                            Communicator* communicator) {
  std::vector<double> numbers = {static_cast<double>(own.samples),
                                 own.data_wait_seconds,
                                 own.reduce_seconds,
                                 own.loss_scale,
                                 static_cast<double>(own.skipped_steps),
                                 static_cast<double>(own.sums.size())};
  const size_t head = numbers.size();
  numbers.insert(numbers.end(), own.sums.begin(), own.sums.end());
  if (own.evaluator != nullptr) {
    const std::vector<double> more = own.evaluator->ToNumbers();
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> all, GatherNumbers(numbers, communicator));
  std::vector<Measurement> measurements;
  for (const std::vector<double>& given : all) {
    Measurement& measurement = measurements.emplace_back();
    measurement.samples = static_cast<int64_t>(given[0]);
    measurement.data_wait_seconds = given[1];
    measurement.reduce_seconds = given[2];
    measurement.loss_scale = given[3];
    measurement.skipped_steps = static_cast<int64_t>(given[4]);
    const auto sums = static_cast<size_t>(given[5]);
    const absl::Span<const double> rest = absl::MakeConstSpan(given).subspan(head);
    measurement.sums.assign(rest.begin(), rest.begin() + sums);
    if (own.evaluator == nullptr) continue;
    measurement.evaluator = std::make_shared<Evaluator>(*own.evaluator);
    measurement.evaluator->FromNumbers(rest.subspan(sums));
  }
  return measurements;
}

absl::StatusOr<Snapshot> GatherVariables(const ReplicaVariables& own, const Alike& alike, int first,
                                         Communicator* communicator) {
  const std::pair<std::vector<NamedTensor> ReplicaVariables::*, bool> kinds[] = {
      {&ReplicaVariables::parameters, alike.parameters},
      {&ReplicaVariables::optimizer_state, alike.optimizer_state},
      {&ReplicaVariables::statistics, alike.statistics}};
  Snapshot snapshot;
  for (int rank = first; rank < communicator->world_size(); ++rank) {
    ReplicaVariables variables;
    for (const auto& [kind, is_alike] : kinds) {
      if (is_alike) continue;
      // Replicas have variables with the same names in the same order.
      for (const auto& [name, value] : own.*kind) {
        Tensor given = rank == communicator->rank() ? value : Tensor(value.dtype(), value.shape());
        TANDEM_RETURN_IF_ERROR(
            communicator->Broadcast({given.raw_data(), given.elements(), given.dtype()}, rank));
        if (communicator->rank() == 0) (variables.*kind).emplace_back(name, std::move(given));
      }
    }
    if (communicator->rank() == 0) snapshot.push_back(std::move(variables));
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

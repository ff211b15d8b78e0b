#include "server/workers/dataset_workers.h"

#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/admission/data_facts.h"
#include "server/store/pending_result.h"

namespace tandem {
namespace {

ModelWorkers::Options ProcessesOf(DatasetWorkers::Options options) {
  ModelWorkers::Options processes;
  processes.worker_program = std::move(options.worker_program);
  processes.most_running = options.most_running;
  // Each waiting call is a thread of the caller's.
  processes.most_waiting = std::numeric_limits<int>::max();
  processes.most_waiting_each = std::numeric_limits<int>::max();
  processes.time_limit = options.time_limit;
  processes.sandbox = std::move(options.sandbox);
  return processes;
}

}  // namespace

DatasetWorkers::DatasetWorkers(Options options)
    : memory_bytes_(options.memory_bytes), processes_(ProcessesOf(std::move(options))) {}

absl::StatusOr<internal::v1::DataFacts> DatasetWorkers::Read(const internal::v1::DataTask& task) {
  internal::v1::ModelTask whole;
  *whole.mutable_data() = task;
  whole.set_memory_bytes(memory_bytes_);
  // FairPool already gives users their turns.
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<ModelCall> call,
                          processes_.Start(/*user=*/"", std::move(whole)));
  const PendingValue<ModelCall::Result> output;
  call->Next(output.Callback());
  const ModelCall::Result answer = output.Wait();
  // No more output is awaited. A process that does not end by itself would keep its place.
  call->Cancel();
  if (absl::IsCancelled(answer.status()))
    return absl::UnavailableError("the daemon is shutting down; try again when it runs");
  TANDEM_RETURN_IF_ERROR(answer.status());
  if (!answer->has_value() || !(*answer)->has_data()) {
    return absl::InternalError("cannot read the data set: the process that reads it sent no result");
  }
  const internal::v1::DataFacts& facts = (*answer)->data();
  if (facts.ByteSizeLong() > kMostDataFactsBytes) {
    return absl::InternalError(absl::StrCat("cannot read the data set: the process that reads it sent ",
                                            facts.ByteSizeLong(), " bytes, more than ", kMostDataFactsBytes));
  }
  TANDEM_RETURN_IF_ERROR(CheckFacts(facts));
  return facts;
}

}  // namespace tandem

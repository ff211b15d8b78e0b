#ifndef TANDEM_CLIENT_CLI_COMMANDS_SAMPLE_OPTIONS_H_
#define TANDEM_CLIENT_CLI_COMMANDS_SAMPLE_OPTIONS_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/cli/dataset_source.h"
#include "proto/job_file/enum_names.h"
#include "tandem/v1/model_service.pb.h"

namespace tandem::cli {

// Adds --dataset and --split, which choose samples for a model.
inline void AddSampleOptions(const Command& command, std::string& dataset, std::string& split) {
  command
      .AddOption(
          "--dataset", dataset,
          "The data set: its name, or a file in the form of a job's `dataset` (default: the job's own)")
      .ValueName("DATASET");
  command
      .AddOption("--split", split,
                 "training or validation (default: validation, or training without validation samples)")
      .ValueName("SPLIT")
      .OneOf({"training", "validation"});
}

// Fills a request's fields `dataset` and `split` by the options' values. Errors are those of FindDataset.
template <typename Request>
absl::Status ReadSamples(const std::string& dataset, const std::string& split, Request* request) {
  if (!dataset.empty()) {
    absl::StatusOr<v1::DatasetSpec> found = FindDataset(dataset);
    if (!found.ok()) return found.status();
    *request->mutable_dataset() = *std::move(found);
  }
  if (!split.empty()) {
    const auto* value = FindEnumValue(*v1::DatasetSplit_descriptor(), split);
    request->set_split(static_cast<v1::DatasetSplit>(value->number()));
  }
  return absl::OkStatus();
}

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_COMMANDS_SAMPLE_OPTIONS_H_

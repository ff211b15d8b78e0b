#include "engine/training/checkpoint_model.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"
#include "engine/training/model_file.h"
#include "engine/training/replica_average.h"
#include "engine/training/snapshot.h"
#include "engine/training/training_state.h"

namespace tandem {
namespace {

constexpr int64_t kModelBytes = SizeOf(DType::kFloat32);

using Extents = std::map<absl::string_view, const SafetensorsExtent*>;

// Returns the places of a variable in a checkpoint: one if the replicas share it, otherwise one for each
// replica. Empty if the checkpoint does not have it.
absl::StatusOr<std::vector<const SafetensorsExtent*>> FindVariable(const Extents& extents,
                                                                   const std::string& variable,
                                                                   size_t replicas) {
  std::vector<const SafetensorsExtent*> found;
  if (const auto shared = extents.find(absl::StrCat("shared/", variable)); shared != extents.end()) {
    found.push_back(shared->second);
  } else {
    for (size_t rank = 0; rank < replicas; ++rank) {
      const auto own = extents.find(absl::StrCat("replica/", rank, "/", variable));
      if (own == extents.end()) break;
      found.push_back(own->second);
    }
    if (!found.empty() && found.size() != replicas) {
      return absl::DataLossError(
          absl::StrCat("it has ", variable, " of replica 0, and not of replica ", found.size()));
    }
  }
  for (const SafetensorsExtent* extent : found) {
    const SafetensorsEntry& entry = extent->entry;
    const bool is_alike = entry.shape == found[0]->entry.shape && entry.dtype == found[0]->entry.dtype;
    if (is_alike && (entry.dtype == DType::kFloat32 || entry.dtype == DType::kFloat64)) continue;
    return absl::DataLossError(absl::StrCat("the type or shape of ", extent->name, " is wrong"));
  }
  return found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointModel>> CheckpointModel::Open(RandomAccessEnv* env,
                                                                       const std::string& path) {
  std::unique_ptr<CheckpointModel> model(new CheckpointModel());
  TANDEM_ASSIGN_OR_RETURN(model->file_, env->OpenRandomAccess(path, RandomAccessEnv::Open::kReadOnly));
  if (const absl::Status status = model->ReadHeader(); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("cannot use the checkpoint ", path, ": ", status.message()));
  }
  return model;
}

absl::Status CheckpointModel::ReadHeader() {
  TANDEM_ASSIGN_OR_RETURN(CheckpointHeader checkpoint, ReadCheckpointHeader(*file_));
  TANDEM_ASSIGN_OR_RETURN(const TrainingState state, TrainingStateFromJson(checkpoint.state()));
  TANDEM_ASSIGN_OR_RETURN(const v1::JobSpec job, JobIn(state.model));
  if (state.epoch_shares.empty()) return absl::DataLossError("it is of no replicas");
  shares_ = SharesOf(job.replicas(), state);

  std::vector<SafetensorsExtent>& tensors = checkpoint.layout.tensors;
  std::sort(tensors.begin(), tensors.end(),
            [](const SafetensorsExtent& a, const SafetensorsExtent& b) { return a.begin < b.begin; });
  Extents extents;
  for (const SafetensorsExtent& tensor : tensors) extents[tensor.name] = &tensor;
  std::vector<NamedEntry> entries;
  for (const SafetensorsExtent& tensor : tensors) {
    absl::string_view variable = tensor.name;
    if (!absl::ConsumePrefix(&variable, "shared/") && !absl::ConsumePrefix(&variable, "replica/0/")) continue;
    // Names of optimizer state and of moving averages contain a slash, other names do not.
    if (absl::StrContains(variable, '/')) continue;
    const std::string name(variable);
    std::vector<const SafetensorsExtent*> found;
    if (job.training().has_weight_average()) {
      TANDEM_ASSIGN_OR_RETURN(found, FindVariable(extents, AverageName(name), shares_.size()));
    }
    // State of a frozen layer has no average.
    if (found.empty()) {
      TANDEM_ASSIGN_OR_RETURN(found, FindVariable(extents, name, shares_.size()));
    }
    const SafetensorsEntry& entry = found[0]->entry;
    entries.emplace_back(name, SafetensorsEntry{.dtype = DType::kFloat32, .shape = entry.shape});
    Part& part = parts_.emplace_back();
    part.elements = entry.shape.elements();
    part.dtype = entry.dtype;
    for (const SafetensorsExtent* extent : found)
      part.sources.push_back(checkpoint.data_begin + extent->begin);
  }
  TANDEM_ASSIGN_OR_RETURN(header_, MakeSafetensorsHeader(entries, state.model));
  size_ = static_cast<int64_t>(header_.size());
  for (Part& part : parts_) {
    part.begin = size_;
    size_ += part.elements * kModelBytes;
  }
  return absl::OkStatus();
}

int64_t CheckpointModel::memory_bytes() const {
  size_t bytes = header_.capacity() + shares_.capacity() * sizeof(double) + parts_.capacity() * sizeof(Part);
  for (const Part& part : parts_) bytes += part.sources.capacity() * sizeof(int64_t);
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<std::string> CheckpointModel::ReadNumbers(const Part& part, int64_t first,
                                                         int64_t last) const {
  std::vector<Tensor> values;
  std::vector<const Tensor*> pointers;
  for (const int64_t source : part.sources) {
    Tensor& value = values.emplace_back(part.dtype, Shape({last - first}));
    const int64_t begin = source + first * SizeOf(part.dtype);
    TANDEM_ASSIGN_OR_RETURN(const int64_t read,
                            file_->ReadAt(begin, value.bytes(), static_cast<char*>(value.raw_data())));
    if (read < value.bytes()) {
      return absl::DataLossError(absl::StrCat("the checkpoint's file ends at byte ", begin + read));
    }
  }
  for (const Tensor& value : values) pointers.push_back(&value);
  const Tensor mean = (values.size() == 1 ? values[0] : MeanOf(pointers, shares_)).CastTo(DType::kFloat32);
  return std::string(static_cast<const char*>(mean.raw_data()), mean.bytes());
}

absl::StatusOr<std::string> CheckpointModel::Read(int64_t offset, int64_t length) const {
  const int64_t end = std::min(offset + length, size_);
  std::string bytes;
  if (const auto header = static_cast<int64_t>(header_.size()); offset < header) {
    bytes = header_.substr(offset, end - offset);
  }
  for (const Part& part : parts_) {
    const int64_t begin = std::max(offset, part.begin) - part.begin;
    const int64_t stop = std::min(end, part.begin + part.elements * kModelBytes) - part.begin;
    if (begin >= stop) continue;
    const int64_t first = begin / kModelBytes;
    TANDEM_ASSIGN_OR_RETURN(const std::string numbers,
                            ReadNumbers(part, first, (stop + kModelBytes - 1) / kModelBytes));
    bytes += numbers.substr(begin - first * kModelBytes, stop - begin);
  }
  return bytes;
}

}  // namespace tandem

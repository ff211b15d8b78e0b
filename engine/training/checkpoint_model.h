#ifndef TANDEM_ENGINE_TRAINING_CHECKPOINT_MODEL_H_
#define TANDEM_ENGINE_TRAINING_CHECKPOINT_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/random_access_env.h"
#include "engine/tensor/dtype.h"

namespace tandem {

// A checkpoint's model, as the bytes of a model file: the file that the job would have written as
// model.safetensors if training had paused at the checkpoint's step. Moving averages replace the weights if
// the job averages them. State that differs between replicas becomes the mean, as in ModelTensors. Reads only
// a few pieces of the checkpoint at a time. Keeps the file open, so the checkpoint may be removed during the
// reading. Thread-safe.
class CheckpointModel {
 public:
  // Compares no checksum, as VerifyCheckpoint does. NOT_FOUND if no such file exists. Other errors name the
  // path: DATA_LOSS if it is no sound checkpoint, FAILED_PRECONDITION if its version is not supported.
  static absl::StatusOr<std::unique_ptr<CheckpointModel>> Open(RandomAccessEnv* env, const std::string& path);

  int64_t size_bytes() const { return size_; }
  // Returns the memory of this object, in bytes. A hostile checkpoint may have a large header.
  int64_t memory_bytes() const;
  // Returns `length` bytes from `offset` on, fewer only at the end.
  absl::StatusOr<std::string> Read(int64_t offset, int64_t length) const;

 private:
  // A tensor of the model.
  struct Part {
    int64_t begin = 0;  // In the model's file.
    int64_t elements = 0;
    DType dtype = DType::kFloat32;  // In the checkpoint.
    // The offsets in the checkpoint: one, or one for each replica.
    std::vector<int64_t> sources;
  };

  CheckpointModel() = default;
  absl::Status ReadHeader();
  // Returns the float32 numbers of a part from element `first` to before `last`, as bytes.
  absl::StatusOr<std::string> ReadNumbers(const Part& part, int64_t first, int64_t last) const;

  std::unique_ptr<RandomAccessFile> file_;
  std::vector<double> shares_;  // Of the replicas in a mean.
  std::string header_;          // With its length before it.
  std::vector<Part> parts_;     // In the order of the model's file.
  int64_t size_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_CHECKPOINT_MODEL_H_

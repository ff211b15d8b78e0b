#include "engine/backends/cuda/narrowing.h"

#include <utility>

#include "engine/base/status_macros.h"

namespace tandem::cuda {

absl::Status Narrowing::Bind(const RunContext& run) {
  std::vector<NarrowedTensor> tensors;
  std::vector<ChangePiece> pieces;
  int64_t elements = 0;
  for (const Tensor& tensor : tensors_) elements += tensor.elements;
  table_.piece_size = ChangePieceSize(elements);
  for (const Tensor& tensor : tensors_) {
    const auto number = static_cast<int32_t>(tensors.size());
    tensors.push_back({run.At<const float>(tensor.source), run.At(tensor.target), tensor.elements});
    for (int32_t i = 0; i * table_.piece_size < tensor.elements; ++i) pieces.push_back({number, i});
  }
  table_.piece_count = static_cast<int>(pieces.size());
  tensor_table_ = std::make_unique<DeviceTable<NarrowedTensor>>(std::move(tensors));
  piece_table_ = std::make_unique<DeviceTable<ChangePiece>>(std::move(pieces));
  TANDEM_RETURN_IF_ERROR(tensor_table_->Upload(run.stream));
  TANDEM_RETURN_IF_ERROR(piece_table_->Upload(run.stream));
  table_.tensors = tensor_table_->data();
  table_.pieces = piece_table_->data();
  return absl::OkStatus();
}

}  // namespace tandem::cuda

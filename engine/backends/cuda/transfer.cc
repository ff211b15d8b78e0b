#include "engine/backends/cuda/transfer.h"

#include <cstring>

#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// Copies [outer][a][b] elements of `size` bytes to [outer][b][a].
void Transpose(int64_t outer, int64_t a, int64_t b, int64_t size, const std::byte* source,
               std::byte* target) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < a; ++i) {
      for (int64_t j = 0; j < b; ++j) {
        std::memcpy(target + ((o * b + j) * a + i) * size, source + ((o * a + i) * b + j) * size, size);
      }
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> ReadTensor(const Layout& layout, const void* data, const DeviceContext& device) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device.ordinal));
  Tensor found(layout.dtype(), layout.shape());
  TANDEM_RETURN_IF_ERROR(Copy(found.raw_data(), data, layout.bytes(), device.stream->get()));
  TANDEM_RETURN_IF_ERROR(device.stream->Synchronize());
  if (layout.plain()) return found;
  Tensor tensor(layout.dtype(), layout.shape());
  const ChannelSizes sizes = ChannelSizesOf(layout.shape());
  Transpose(sizes.outer, sizes.inner, sizes.channels, SizeOf(layout.dtype()),
            static_cast<const std::byte*>(found.raw_data()), static_cast<std::byte*>(tensor.raw_data()));
  return tensor;
}

absl::Status WriteTensor(const Tensor& tensor, const Layout& layout, void* data,
                         const DeviceContext& device) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device.ordinal));
  if (layout.plain()) {
    TANDEM_RETURN_IF_ERROR(Copy(data, tensor.raw_data(), layout.bytes(), device.stream->get()));
    return device.stream->Synchronize();
  }
  Tensor permuted(layout.dtype(), layout.shape());
  const ChannelSizes sizes = ChannelSizesOf(layout.shape());
  Transpose(sizes.outer, sizes.channels, sizes.inner, SizeOf(layout.dtype()),
            static_cast<const std::byte*>(tensor.raw_data()), static_cast<std::byte*>(permuted.raw_data()));
  TANDEM_RETURN_IF_ERROR(Copy(data, permuted.raw_data(), layout.bytes(), device.stream->get()));
  return device.stream->Synchronize();
}

}  // namespace tandem::cuda

#include "engine/backends/cpu/transfer.h"

#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/onednn.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {
namespace {

absl::Status Reorder(const dnnl::memory::desc& from_desc, const void* from, const dnnl::memory::desc& to_desc,
                     void* to) {
  return CallOneDnn([&] {
    dnnl::memory source(from_desc, OneDnnEngine(), const_cast<void*>(from));
    dnnl::memory target(to_desc, OneDnnEngine(), to);
    dnnl::stream stream(OneDnnEngine());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
    return absl::OkStatus();
  });
}

// Copies element by element. `blocked` is batch-blocked, with elements of any size.
template <typename Copy>
void ForBatchBlocked(const Layout& layout, const Copy& copy) {
  const int64_t rows = layout.shape().rank() == 0 ? 1 : layout.shape()[0];
  const int64_t columns = rows == 0 ? 0 : layout.shape().elements() / rows;
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t c = 0; c < columns; ++c) {
      copy(n * columns + c, (n / kBlock * columns + c) * kBlock + n % kBlock);
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> ToTensor(const Layout& layout, const void* data) {
  Tensor tensor(layout.dtype(), layout.shape());
  if (tensor.bytes() == 0) return tensor;
  switch (layout.kind()) {
    case Layout::Kind::kPlain:
      std::memcpy(tensor.raw_data(), data, tensor.bytes());
      break;
    case Layout::Kind::kBatchBlocked: {
      const int64_t size = SizeOf(layout.dtype());
      std::byte* to = static_cast<std::byte*>(tensor.raw_data());
      const std::byte* from = static_cast<const std::byte*>(data);
      ForBatchBlocked(layout, [&](int64_t plain, int64_t blocked) {
        std::memcpy(to + plain * size, from + blocked * size, size);
      });
      break;
    }
    case Layout::Kind::kTiled:
      return absl::InternalError("cpu: the host reads a value in tiles");
    case Layout::Kind::kOneDnn:
      TANDEM_RETURN_IF_ERROR(
          Reorder(layout.desc(), data, PlainDesc(layout.dtype(), layout.shape()), tensor.raw_data()));
      break;
  }
  return tensor;
}

absl::Status FromTensor(const Tensor& tensor, const Layout& layout, void* data) {
  if (tensor.bytes() == 0) return absl::OkStatus();
  switch (layout.kind()) {
    case Layout::Kind::kPlain:
      std::memcpy(data, tensor.raw_data(), tensor.bytes());
      return absl::OkStatus();
    case Layout::Kind::kBatchBlocked: {
      const int64_t size = SizeOf(layout.dtype());
      std::byte* to = static_cast<std::byte*>(data);
      const std::byte* from = static_cast<const std::byte*>(tensor.raw_data());
      std::memset(data, 0, layout.bytes());
      ForBatchBlocked(layout, [&](int64_t plain, int64_t blocked) {
        std::memcpy(to + blocked * size, from + plain * size, size);
      });
      return absl::OkStatus();
    }
    case Layout::Kind::kTiled:
      return absl::InternalError("cpu: the host writes a value in tiles");
    case Layout::Kind::kOneDnn:
      return Reorder(PlainDesc(layout.dtype(), layout.shape()), tensor.raw_data(), layout.desc(), data);
  }
  return absl::InternalError("an unknown layout");
}

}  // namespace tandem::cpu

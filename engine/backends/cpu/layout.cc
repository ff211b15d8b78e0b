#include "engine/backends/cpu/layout.h"

#include <utility>

#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/kernels/tiles.h"

namespace tandem::cpu {

dnnl::memory::dims Dims(const Shape& shape) {
  if (shape.rank() == 0) return {1};
  return dnnl::memory::dims(shape.extents().begin(), shape.extents().end());
}

dnnl::memory::data_type OneDnnType(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return dnnl::memory::data_type::u8;
    case DType::kBFloat16:
      return dnnl::memory::data_type::bf16;
    default:
      return dnnl::memory::data_type::f32;
  }
}

dnnl::memory::desc PlainDesc(DType dtype, const Shape& shape) {
  const dnnl::memory::dims dims = Dims(shape);
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return dnnl::memory::desc(dims, OneDnnType(dtype), strides);
}

Layout Layout::Plain(DType dtype, Shape shape) { return Layout(Kind::kPlain, dtype, std::move(shape)); }

Layout Layout::BatchBlocked(DType dtype, Shape shape) {
  return Layout(Kind::kBatchBlocked, dtype, std::move(shape));
}

Layout Layout::Tiled(Shape shape, DType dtype) { return Layout(Kind::kTiled, dtype, std::move(shape)); }

Layout Layout::OneDnn(const dnnl::memory::desc& desc, Shape shape) {
  DType dtype = DType::kFloat32;
  if (desc.data_type() == dnnl::memory::data_type::u8) dtype = DType::kUInt8;
  if (desc.data_type() == dnnl::memory::data_type::bf16) dtype = DType::kBFloat16;
  if (desc == PlainDesc(dtype, shape)) return Plain(dtype, std::move(shape));
  Layout layout(Kind::kOneDnn, dtype, std::move(shape));
  layout.desc_ = desc;
  return layout;
}

int64_t Layout::bytes() const {
  switch (kind_) {
    case Kind::kPlain:
      return shape_.elements() * SizeOf(dtype_);
    case Kind::kBatchBlocked: {
      if (shape_.elements() == 0) return 0;
      const int64_t rows = shape_[0];
      return (rows + kBlock - 1) / kBlock * kBlock * (shape_.elements() / rows) * SizeOf(dtype_);
    }
    case Kind::kTiled:
      return shape_[0] * TileBlocks(shape_[1]) * kTileChannels * shape_[2] * shape_[3] * SizeOf(dtype_);
    case Kind::kOneDnn:
      return static_cast<int64_t>(desc_.get_size());
  }
  return 0;
}

dnnl::memory::desc Layout::desc() const { return kind_ == Kind::kOneDnn ? desc_ : PlainDesc(dtype_, shape_); }

Layout Layout::WithType(DType dtype) const {
  if (tiled() && dtype != dtype_) return Plain(dtype, shape_);
  Layout layout = *this;
  layout.dtype_ = dtype;
  if (kind_ == Kind::kOneDnn) layout.desc_.data.data_type = dnnl::memory::convert_to_c(OneDnnType(dtype));
  return layout;
}

bool Layout::operator==(const Layout& other) const {
  return kind_ == other.kind_ && dtype_ == other.dtype_ && shape_ == other.shape_ &&
         (kind_ != Kind::kOneDnn || desc_ == other.desc_);
}

}  // namespace tandem::cpu

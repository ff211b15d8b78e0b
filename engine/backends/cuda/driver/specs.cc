#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"

namespace tandem::cuda {

GemmPlaces::GemmPlaces(const GemmSpec& spec)
    : row_a(spec.row_a != 0 ? spec.row_a : (spec.transpose_a ? spec.m : spec.k)),
      row_b(spec.row_b != 0 ? spec.row_b : (spec.transpose_b ? spec.k : spec.n)),
      row_c(spec.row_c != 0 ? spec.row_c : spec.n),
      stride_a(spec.stride_a != 0 ? spec.stride_a : row_a * (spec.transpose_a ? spec.k : spec.m)),
      stride_b(spec.stride_b != 0 ? spec.stride_b : row_b * (spec.transpose_b ? spec.n : spec.k)),
      stride_c(spec.stride_c != 0 ? spec.stride_c : row_c * spec.m) {}

std::string GemmSpec::ToString() const {
  const GemmPlaces places(*this);
  return absl::StrCat("gemm ", m, "x", n, "x", k, transpose_a ? " at" : " a", places.row_a,
                      transpose_b ? " bt" : " b", places.row_b, " c", places.row_c,
                      batch != 1 ? absl::StrCat(" batch ", batch, " apart ", places.stride_a, " ",
                                                places.stride_b, " ", places.stride_c)
                                 : "",
                      beta != 0 ? " accumulate" : "", bias ? " bias" : "", " ", tandem::ToString(type),
                      " to ", tandem::ToString(result_type));
}

std::string ConvolutionSpec::ToString() const {
  const char* const kinds[] = {"forward", "grad_input", "grad_weight"};
  return absl::StrCat(kinds[static_cast<int>(kind)], " ", n, "x", h, "x", w, "x", c, " kernel ", k, "x",
                      kernel_h, "x", kernel_w, " to ", out_h, "x", out_w, " stride ", stride_h, "x", stride_w,
                      " pad ", pad_h, "x", pad_w, " dilation ", dilation_h, "x", dilation_w, " groups ",
                      groups, bias ? " bias" : "", relu ? " relu" : "", " ", tandem::ToString(type));
}

std::string PlanKey(absl::string_view library, size_t version, absl::string_view gpu,
                    const LibraryOptions& options, absl::string_view spec, int64_t workspace_cap) {
  return absl::StrCat(library, " ", version, " ", gpu, options.allow_tf32 ? " tf32 " : " ", spec, " within ",
                      workspace_cap);
}

}  // namespace tandem::cuda

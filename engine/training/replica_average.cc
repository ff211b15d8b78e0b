#include "engine/training/replica_average.h"

#include <algorithm>
#include <cmath>

#include "engine/base/status_macros.h"

namespace tandem {
namespace {

bool AreEqual(absl::Span<const double> shares) {
  return std::all_of(shares.begin(), shares.end(), [&](double share) { return share == shares[0]; });
}

template <typename T>
void Scale(double factor, Tensor* tensor) {
  for (T& number : tensor->data<T>()) number = static_cast<T>(number * static_cast<T>(factor));
}

void ScaleAny(double factor, Tensor* tensor) {
  if (tensor->dtype() == DType::kFloat32) {
    Scale<float>(factor, tensor);
  } else {
    Scale<double>(factor, tensor);
  }
}

template <typename T>
void AddTo(const Tensor& more, Tensor* sum) {
  const absl::Span<T> numbers = sum->data<T>();
  const absl::Span<const T> others = more.data<T>();
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += others[i];
}

// A replica with share 0 may have any value, even NaN.
Tensor PartOf(const Tensor& value, double share) {
  if (share == 0) return Tensor(value.dtype(), value.shape());
  Tensor part = value;
  ScaleAny(share, &part);
  return part;
}

}  // namespace

absl::Status AverageVariable(const std::string& name, absl::Span<const double> shares, Variables* variables,
                             Communicator* communicator) {
  TANDEM_ASSIGN_OR_RETURN(const BufferView view, variables->View(name));
  if (AreEqual(shares)) return communicator->AllReduce(view, ReduceOp::kAverage);
  TANDEM_ASSIGN_OR_RETURN(const Tensor value, variables->Read(name));
  TANDEM_RETURN_IF_ERROR(variables->Write(name, PartOf(value, shares[communicator->rank()])));
  return communicator->AllReduce(view, ReduceOp::kSum);
}

Tensor MeanOf(absl::Span<const Tensor* const> values, absl::Span<const double> shares) {
  const bool equal = AreEqual(shares);
  Tensor mean = equal ? *values[0] : PartOf(*values[0], shares[0]);
  for (size_t rank = 1; rank < values.size(); ++rank) {
    const Tensor part = equal ? *values[rank] : PartOf(*values[rank], shares[rank]);
    if (mean.dtype() == DType::kFloat32) {
      AddTo<float>(part, &mean);
    } else {
      AddTo<double>(part, &mean);
    }
  }
  if (equal) ScaleAny(1.0 / static_cast<double>(values.size()), &mean);
  return mean;
}

}  // namespace tandem

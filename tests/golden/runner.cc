#include "tests/golden/runner.h"

#include "absl/strings/str_cat.h"
#include "engine/backend/op_cases.h"

namespace tandem {

void GoldenReport::Compare(const std::string& name, const Tensor& actual, const Tensor& expected,
                           double least_magnitude) {
  ++compared_;
  if (actual.shape() != expected.shape()) {
    failures_.push_back(absl::StrCat(name, " has the shape ", actual.shape().ToString(), ", not ",
                                     expected.shape().ToString()));
    return;
  }
  const double error = RelativeError(actual, expected, least_magnitude);
  if (!(error <= tolerance_)) {
    failures_.push_back(absl::StrCat(name, " is off by ", error, ", more than ", tolerance_));
  }
}

absl::Status RunGoldenCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report) {
  if (golden.kind == "op") return RunOperationCase(golden, backend, report);
  if (golden.kind == "loss") return RunLossCase(golden, backend, report);
  if (golden.kind == "optimizer") return RunOptimizerCase(golden, backend, report);
  if (golden.kind == "schedule") return RunScheduleCase(golden, report);
  if (golden.kind == "network") return RunNetworkCase(golden, backend, report);
  if (golden.kind == "data_parallel") return RunDataParallelCase(golden, backend, report);
  return absl::UnimplementedError(absl::StrCat("a case of the kind ", golden.kind, " is not offered yet"));
}

}  // namespace tandem

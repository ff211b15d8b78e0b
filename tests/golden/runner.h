#ifndef TANDEM_TESTS_GOLDEN_RUNNER_H_
#define TANDEM_TESTS_GOLDEN_RUNNER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/backend/device.h"
#include "engine/tensor/tensor.h"
#include "tests/golden/golden_case.h"

namespace tandem {

// A backend under test.
struct GoldenBackend {
  std::string name;
  // Makes the device of replica `index`.
  std::function<std::unique_ptr<Device>(int index)> make;
  // The largest allowed error of a tensor, as data/README.md defines it.
  double tolerance;
  // Whether the backend rounds strongly. For such a backend, only the first step's logits and loss of a
  // network are compared, and of the other kinds only operations and losses run.
  bool narrow = false;
};

// The results of comparing a case's tensors.
class GoldenReport {
 public:
  explicit GoldenReport(double tolerance) : tolerance_(tolerance) {}

  // Compares two tensors. The error is divided by at least `least_magnitude`.
  void Compare(const std::string& name, const Tensor& actual, const Tensor& expected,
               double least_magnitude = 1e-300);

  int compared() const { return compared_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  const double tolerance_;
  int compared_ = 0;
  std::vector<std::string> failures_;
};

// Runs a case and compares the results. UNIMPLEMENTED, with the name, for a kind, type or setting that the
// engine does not offer. Other errors mean that the case could not run.
absl::Status RunGoldenCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);

// The functions for each kind of case.
absl::Status RunOperationCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunLossCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunOptimizerCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunScheduleCase(const GoldenCase& golden, GoldenReport& report);
absl::Status RunNetworkCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunDataParallelCase(const GoldenCase& golden, const GoldenBackend& backend,
                                 GoldenReport& report);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_RUNNER_H_

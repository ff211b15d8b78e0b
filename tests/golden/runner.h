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
  // The device of replica `index`.
  std::function<std::unique_ptr<Device>(int index)> make;
  // The largest error of a tensor, as data/README.md defines it.
  double tolerance;
  // Whether it rounds so much that of a network only the first step's logits and loss are compared, and of
  // the other kinds only operations and losses are run.
  bool narrow = false;
};

// What came of comparing a case's tensors.
class GoldenReport {
 public:
  explicit GoldenReport(double tolerance) : tolerance_(tolerance) {}

  // Compares; the error is divided by at least `least_magnitude`.
  void Compare(const std::string& name, const Tensor& actual, const Tensor& expected,
               double least_magnitude = 1e-300);

  int compared() const { return compared_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  const double tolerance_;
  int compared_ = 0;
  std::vector<std::string> failures_;
};

// Computes what the case holds, and compares. Errors: UNIMPLEMENTED, with its name, for a kind, type or
// setting that the engine does not offer yet; anything else where the case could not be run.
absl::Status RunGoldenCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);

// One a kind of case.
absl::Status RunOperationCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunLossCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunOptimizerCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunScheduleCase(const GoldenCase& golden, GoldenReport& report);
absl::Status RunNetworkCase(const GoldenCase& golden, const GoldenBackend& backend, GoldenReport& report);
absl::Status RunDataParallelCase(const GoldenCase& golden, const GoldenBackend& backend,
                                 GoldenReport& report);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_RUNNER_H_

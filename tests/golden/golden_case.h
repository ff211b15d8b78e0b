#ifndef TANDEM_TESTS_GOLDEN_GOLDEN_CASE_H_
#define TANDEM_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/ops/window.h"
#include "engine/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace tandem {

// The settings of an operation, a loss or an optimizer, by PyTorch's names. A setting that is there but null
// is absent. Reading what is of another type, or leaving a setting unread, is an error that Finish returns: a
// case whose settings are not all understood has not been run.
class Attributes {
 public:
  explicit Attributes(const nlohmann::json& object) : object_(object) {}

  bool Has(const std::string& key) const;
  double Number(const std::string& key, double absent);
  int64_t Whole(const std::string& key, int64_t absent);
  bool Flag(const std::string& key, bool absent);
  std::string Text(const std::string& key, const std::string& absent);
  // One number for both, or two.
  Size2d Pair(const std::string& key, Size2d absent);
  std::vector<double> Numbers(const std::string& key);
  // Marks as read what the case's tensors say too.
  void Ignore(const std::string& key) { read_.insert(key); }

  absl::Status Finish() const;

 private:
  const nlohmann::json* Find(const std::string& key);
  void Fail(const std::string& key, const std::string& wanted);

  const nlohmann::json& object_;
  std::set<std::string> read_;
  absl::Status status_;
};

// One case: a file of data/, whose README.md says what the tensors mean.
struct GoldenCase {
  std::string path;
  std::string kind;
  std::string name;
  nlohmann::json attrs;
  std::map<std::string, Tensor> tensors;

  bool Has(const std::string& name) const { return tensors.count(name) != 0; }
  // NOT_FOUND where there is none of the name.
  absl::StatusOr<Tensor> Get(const std::string& name) const;
  // Names of the tensors that begin with `prefix`, without it, in alphabetical order.
  std::vector<std::string> NamesAfter(const std::string& prefix) const;
};

absl::StatusOr<GoldenCase> LoadGoldenCase(const std::string& path);

// Row `i` of a tensor: [a, b, c] -> [b, c].
Tensor Row(const Tensor& tensor, int64_t i);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_GOLDEN_CASE_H_

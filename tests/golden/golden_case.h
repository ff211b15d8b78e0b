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

// The settings of an operation, a loss or an optimizer, by PyTorch's names. A setting with the value null is
// absent. A setting of a wrong type and an unread setting are errors, which Finish returns: a case with
// unknown settings must not count as run.
class Attributes {
 public:
  explicit Attributes(const nlohmann::json& object) : object_(object) {}

  bool Has(const std::string& key) const;
  double Number(const std::string& key, double absent);
  int64_t Whole(const std::string& key, int64_t absent);
  bool Flag(const std::string& key, bool absent);
  std::string Text(const std::string& key, const std::string& absent);
  // Returns two numbers. A single number counts for both.
  Size2d Pair(const std::string& key, Size2d absent);
  std::vector<double> Numbers(const std::string& key);
  // Marks a setting as read that the case's tensors also have.
  void Ignore(const std::string& key) { read_.insert(key); }

  absl::Status Finish() const;

 private:
  const nlohmann::json* Find(const std::string& key);
  void Fail(const std::string& key, const std::string& wanted);

  const nlohmann::json& object_;
  std::set<std::string> read_;
  absl::Status status_;
};

// A case: a file of data/. data/README.md describes the tensors.
struct GoldenCase {
  std::string path;
  std::string kind;
  std::string name;
  nlohmann::json attrs;
  std::map<std::string, Tensor> tensors;

  bool Has(const std::string& name) const { return tensors.count(name) != 0; }
  // NOT_FOUND if no tensor has this name.
  absl::StatusOr<Tensor> Get(const std::string& name) const;
  // Returns the names of all tensors that begin with `prefix`, without the prefix, in alphabetical order.
  std::vector<std::string> NamesAfter(const std::string& prefix) const;
};

absl::StatusOr<GoldenCase> LoadGoldenCase(const std::string& path);

// Returns row `i` of a tensor: [a, b, c] -> [b, c].
Tensor Row(const Tensor& tensor, int64_t i);

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_GOLDEN_CASE_H_

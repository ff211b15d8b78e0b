#include "tests/golden/golden_case.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_reader.h"

namespace tandem {

using nlohmann::json;

bool Attributes::Has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

const json* Attributes::Find(const std::string& key) {
  read_.insert(key);
  return Has(key) ? &object_.at(key) : nullptr;
}

void Attributes::Fail(const std::string& key, const std::string& wanted) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("setting ", key, " is ", object_.at(key).dump(), ", not ", wanted));
}

double Attributes::Number(const std::string& key, double absent) {
  const json* value = Find(key);
  if (value == nullptr) return absent;
  if (value->is_number()) return value->get<double>();
  Fail(key, "a number");
  return absent;
}

int64_t Attributes::Whole(const std::string& key, int64_t absent) {
  const json* value = Find(key);
  if (value == nullptr) return absent;
  if (value->is_number_integer()) return value->get<int64_t>();
  Fail(key, "a whole number");
  return absent;
}

bool Attributes::Flag(const std::string& key, bool absent) {
  const json* value = Find(key);
  if (value == nullptr) return absent;
  if (value->is_boolean()) return value->get<bool>();
  Fail(key, "true or false");
  return absent;
}

std::string Attributes::Text(const std::string& key, const std::string& absent) {
  const json* value = Find(key);
  if (value == nullptr) return absent;
  if (value->is_string()) return value->get<std::string>();
  Fail(key, "a text");
  return absent;
}

Size2d Attributes::Pair(const std::string& key, Size2d absent) {
  const json* value = Find(key);
  if (value == nullptr) return absent;
  if (value->is_number_integer()) return {value->get<int64_t>(), value->get<int64_t>()};
  if (value->is_array() && value->size() == 2 && (*value)[0].is_number_integer() &&
      (*value)[1].is_number_integer()) {
    return {(*value)[0].get<int64_t>(), (*value)[1].get<int64_t>()};
  }
  Fail(key, "one or two whole numbers");
  return absent;
}

std::vector<double> Attributes::Numbers(const std::string& key) {
  const json* value = Find(key);
  std::vector<double> numbers;
  if (value == nullptr) return numbers;
  for (const json& number : *value) {
    if (!number.is_number()) {
      Fail(key, "a list of numbers");
      return {};
    }
    numbers.push_back(number.get<double>());
  }
  return numbers;
}

absl::Status Attributes::Finish() const {
  if (!status_.ok()) return status_;
  for (const auto& [key, value] : object_.items()) {
    if (read_.count(key) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("setting ", key, "=", value.dump(), " is not understood"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> GoldenCase::Get(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return absl::NotFoundError(absl::StrCat("the case has no tensor ", name));
  return found->second;
}

std::vector<std::string> GoldenCase::NamesAfter(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (absl::StartsWith(name, prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

absl::StatusOr<GoldenCase> LoadGoldenCase(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(SafetensorsContents contents, ReadSafetensors(path));
  GoldenCase golden;
  golden.path = path;
  golden.kind = contents.metadata["kind"];
  golden.name = contents.metadata["name"];
  golden.attrs = json::parse(contents.metadata["attrs"], /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (golden.kind.empty() || golden.name.empty() || !golden.attrs.is_object()) {
    return absl::DataLossError(absl::StrCat(path, ": kind, name or attrs is missing from the metadata"));
  }
  golden.tensors = std::move(contents.tensors);
  return golden;
}

Tensor Row(const Tensor& tensor, int64_t i) {
  const absl::Span<const int64_t> extents = tensor.shape().extents();
  Tensor row(tensor.dtype(), Shape(std::vector<int64_t>(extents.begin() + 1, extents.end())));
  std::memcpy(row.raw_data(), static_cast<const std::byte*>(tensor.raw_data()) + i * row.bytes(),
              row.bytes());
  return row;
}

}  // namespace tandem

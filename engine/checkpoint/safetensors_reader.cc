#include "engine/checkpoint/safetensors_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

using nlohmann::json;

constexpr uint64_t kLongestHeader = 100'000'000;
constexpr size_t kLengthBytes = 8;

// Where a tensor's bytes lie after the header.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
};

absl::Status Malformed(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("not a sound safetensors file: ", what));
}

std::optional<DType> FromName(absl::string_view name) {
  if (name == "F64") return DType::kFloat64;
  if (name == "F32") return DType::kFloat32;
  if (name == "F16") return DType::kFloat16;
  if (name == "BF16") return DType::kBFloat16;
  if (name == "I64") return DType::kInt64;
  if (name == "I32") return DType::kInt32;
  if (name == "U8") return DType::kUInt8;
  return std::nullopt;
}

// A whole number from 0 up.
std::optional<int64_t> AsCount(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const uint64_t number = value.get<uint64_t>();
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(number);
}

absl::StatusOr<std::vector<int64_t>> AsCounts(const std::string& name, const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) {
    return Malformed(absl::StrCat("tensor \"", name, "\" has no list \"", key, "\""));
  }
  std::vector<int64_t> counts;
  for (const json& value : *found) {
    const std::optional<int64_t> count = AsCount(value);
    if (!count) return Malformed(absl::StrCat("\"", key, "\" of \"", name, "\" holds no whole numbers"));
    counts.push_back(*count);
  }
  return counts;
}

absl::Status ParseTensor(const std::string& name, const json& entry, absl::string_view data,
                         SafetensorsContents* contents, std::vector<Extent>* extents) {
  if (!entry.is_object()) return Malformed(absl::StrCat("\"", name, "\" is no object"));
  const auto dtype_name = entry.find("dtype");
  if (dtype_name == entry.end() || !dtype_name->is_string()) {
    return Malformed(absl::StrCat("tensor \"", name, "\" has no dtype"));
  }
  const std::optional<DType> dtype = FromName(dtype_name->get_ref<const std::string&>());
  if (!dtype) {
    return Malformed(absl::StrCat("tensor \"", name, "\" is of the unknown type ",
                                  dtype_name->get_ref<const std::string&>()));
  }
  TANDEM_ASSIGN_OR_RETURN(std::vector<int64_t> shape_extents, AsCounts(name, entry, "shape"));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, AsCounts(name, entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<uint64_t>(offsets[1]) > data.size()) {
    return Malformed(absl::StrCat("the offsets of \"", name, "\" do not lie within the file's ", data.size(),
                                  " bytes of data"));
  }
  const int64_t bytes = offsets[1] - offsets[0];
  Shape shape(std::move(shape_extents));
  if (bytes % SizeOf(*dtype) != 0 || shape.elements() != bytes / SizeOf(*dtype)) {
    return Malformed(
        absl::StrCat("tensor \"", name, "\" of shape ", shape.ToString(), " has ", bytes, " bytes"));
  }
  Tensor tensor(*dtype, std::move(shape));
  if (bytes > 0) std::memcpy(tensor.raw_data(), data.data() + offsets[0], bytes);
  contents->tensors.emplace(name, std::move(tensor));
  extents->push_back({static_cast<uint64_t>(offsets[0]), static_cast<uint64_t>(offsets[1]), name});
  return absl::OkStatus();
}

// That tensors follow each other from the data's first byte to its last.
absl::Status CheckNoGaps(std::vector<Extent> extents, uint64_t data_size) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != end) {
      return Malformed(absl::StrCat("tensor \"", extent.name, "\" begins at byte ", extent.begin,
                                    ", the one before it ends at ", end));
    }
    end = extent.end;
  }
  if (end != data_size) {
    return Malformed(absl::StrCat("the tensors end at byte ", end, " of ", data_size));
  }
  return absl::OkStatus();
}

}  // namespace

const Tensor* SafetensorsContents::Find(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

absl::StatusOr<SafetensorsContents> ParseSafetensors(absl::string_view bytes) {
  if (bytes.size() < kLengthBytes) return Malformed(absl::StrCat("it has only ", bytes.size(), " bytes"));
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  bytes.remove_prefix(kLengthBytes);
  if (length > kLongestHeader || length > bytes.size()) {
    return Malformed(absl::StrCat("its header should have ", length, " bytes; ", bytes.size(), " are left"));
  }
  const absl::string_view text = bytes.substr(0, length);
  const absl::string_view data = bytes.substr(length);
  const json header = json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Malformed("its header is no JSON object");

  SafetensorsContents contents;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      TANDEM_RETURN_IF_ERROR(ParseTensor(name, entry, data, &contents, &extents));
      continue;
    }
    if (!entry.is_object()) return Malformed("its metadata is no object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) return Malformed(absl::StrCat("metadata \"", key, "\" is no string"));
      contents.metadata.emplace(key, value.get<std::string>());
    }
  }
  TANDEM_RETURN_IF_ERROR(CheckNoGaps(std::move(extents), data.size()));
  return contents;
}

absl::StatusOr<SafetensorsContents> ReadSafetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad() || content.bad()) return absl::DataLossError(absl::StrCat("cannot read ", path));
  absl::StatusOr<SafetensorsContents> contents = ParseSafetensors(content.str());
  if (!contents.ok()) {
    return absl::Status(contents.status().code(), absl::StrCat(path, ": ", contents.status().message()));
  }
  return contents;
}

}  // namespace tandem

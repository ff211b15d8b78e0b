#include "engine/checkpoint/safetensors_writer.h"

#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kAlignment = 8;

const char* FormatType(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "F64";
    case DType::kFloat32:
      return "F32";
    case DType::kFloat16:
      return "F16";
    case DType::kBFloat16:
      return "BF16";
    case DType::kInt64:
      return "I64";
    case DType::kInt32:
      return "I32";
    case DType::kUInt8:
      return "U8";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> MakeSafetensorsHeader(absl::Span<const NamedEntry> tensors,
                                                  const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header[kMetadata] = metadata;
  std::set<std::string> names = {"", kMetadata};
  int64_t offset = 0;
  for (const auto& [name, entry] : tensors) {
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" cannot name a tensor, or names two"));
    }
    const absl::Span<const int64_t> extents = entry.shape.extents();
    const int64_t bytes = entry.shape.elements() * SizeOf(entry.dtype);
    header[name] = {{"dtype", FormatType(entry.dtype)},
                    {"shape", std::vector<int64_t>(extents.begin(), extents.end())},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text;
}

absl::StatusOr<std::string> MakeSafetensorsHeader(absl::Span<const NamedTensor> tensors,
                                                  const std::map<std::string, std::string>& metadata) {
  std::vector<NamedEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    entries.emplace_back(name, SafetensorsEntry{.dtype = tensor.dtype(), .shape = tensor.shape()});
  }
  return MakeSafetensorsHeader(entries, metadata);
}

absl::Status WriteSafetensors(Env* env, const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  TANDEM_ASSIGN_OR_RETURN(const std::string header, MakeSafetensorsHeader(tensors, metadata));
  return WriteFileAtomically(env, path, [&](WritableFile& file) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(file.Append(header));
    for (const auto& [name, tensor] : tensors) {
      TANDEM_RETURN_IF_ERROR(
          file.Append({static_cast<const char*>(tensor.raw_data()), static_cast<size_t>(tensor.bytes())}));
    }
    return absl::OkStatus();
  });
}

}  // namespace tandem

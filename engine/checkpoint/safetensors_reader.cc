#include "engine/checkpoint/safetensors_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/foreign_format.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_layout.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

using nlohmann::json;

// A few times the header of the largest network. As JSON values, a header takes several times its length.
constexpr uint64_t kLongestHeader = uint64_t{32} << 20;
// The depth of lists within a tensor's entry within the header.
constexpr int kDeepest = 3;
constexpr size_t kLengthBytes = kSafetensorsLengthBytes;

// A tensor in the header, with the place of its bytes after the header.
struct Located {
  std::string name;
  SafetensorsEntry entry;
  std::string other_type = {};  // Not empty: the type cannot be read, and `entry` is not set.
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct Layout {
  std::vector<Located> tensors;
  std::map<std::string, std::string> metadata;
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

// Returns a whole number of at least 0, or nothing.
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

absl::StatusOr<Located> ParseTensor(const std::string& name, const json& entry, uint64_t data_size) {
  if (!entry.is_object()) return Malformed(absl::StrCat("\"", name, "\" is no object"));
  const auto dtype_name = entry.find("dtype");
  if (dtype_name == entry.end() || !dtype_name->is_string()) {
    return Malformed(absl::StrCat("tensor \"", name, "\" has no dtype"));
  }
  const std::optional<DType> dtype = FromName(dtype_name->get_ref<const std::string&>());
  TANDEM_ASSIGN_OR_RETURN(std::vector<int64_t> extents, AsCounts(name, entry, "shape"));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, AsCounts(name, entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<uint64_t>(offsets[1]) > data_size) {
    return Malformed(absl::StrCat("the offsets of \"", name, "\" do not lie within the file's ", data_size,
                                  " bytes of data; it may have been cut short"));
  }
  Located located{.name = name,
                  .entry = {},
                  .begin = static_cast<uint64_t>(offsets[0]),
                  .end = static_cast<uint64_t>(offsets[1])};
  if (!dtype) {
    located.other_type = dtype_name->get_ref<const std::string&>();
    if (located.other_type.empty())
      return Malformed(absl::StrCat("tensor \"", name, "\" has an empty dtype"));
    return located;
  }
  const int64_t bytes = offsets[1] - offsets[0];
  Shape shape(std::move(extents));
  if (bytes % SizeOf(*dtype) != 0 || shape.elements() != bytes / SizeOf(*dtype)) {
    return Malformed(
        absl::StrCat("tensor \"", name, "\" of shape ", shape.ToString(), " has ", bytes, " bytes"));
  }
  located.entry = {*dtype, std::move(shape)};
  return located;
}

// Checks that all tensors can be read.
absl::Status CheckTypes(const Layout& layout) {
  for (const Located& located : layout.tensors) {
    if (located.other_type.empty()) continue;
    return Malformed(
        absl::StrCat("tensor \"", located.name, "\" is of the unknown type ", located.other_type));
  }
  return absl::OkStatus();
}

// Checks that the tensors cover the data from its first byte to its last.
absl::Status CheckNoGaps(std::vector<Located> tensors, uint64_t data_size) {
  std::sort(tensors.begin(), tensors.end(), [](const Located& a, const Located& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const Located& tensor : tensors) {
    if (tensor.begin != end) {
      return Malformed(absl::StrCat("tensor \"", tensor.name, "\" begins at byte ", tensor.begin,
                                    ", the one before it ends at ", end));
    }
    end = tensor.end;
  }
  if (end != data_size) {
    return Malformed(absl::StrCat("the tensors end at byte ", end, " of ", data_size));
  }
  return absl::OkStatus();
}

// Returns the header's length, from the first bytes of a file of `size` bytes.
absl::StatusOr<uint64_t> ParseLength(absl::string_view bytes, uint64_t size) {
  if (bytes.size() < kLengthBytes) return Malformed(absl::StrCat("it has only ", bytes.size(), " bytes"));
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  if (length > kLongestHeader || length > size - kLengthBytes) {
    return Malformed(
        absl::StrCat("its header should have ", length, " bytes; ", size - kLengthBytes, " are left"));
  }
  return length;
}

// Returns whether values are nested no deeper than in a header.
bool IsShallow(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      if (c == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

// `data_size` is the number of bytes after the header.
absl::StatusOr<Layout> ParseHeader(absl::string_view text, uint64_t data_size) {
  // The check comes before any memory is taken for deeper values.
  if (!IsShallow(text)) return Malformed("values in its header lie too deep within each other");
  const json header = json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Malformed("its header is no JSON object");
  Layout layout;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      TANDEM_ASSIGN_OR_RETURN(layout.tensors.emplace_back(), ParseTensor(name, entry, data_size));
      continue;
    }
    if (!entry.is_object()) return Malformed("its metadata is no object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) return Malformed(absl::StrCat("metadata \"", key, "\" is no string"));
      layout.metadata.emplace(key, value.get<std::string>());
    }
  }
  TANDEM_RETURN_IF_ERROR(CheckNoGaps(layout.tensors, data_size));
  return layout;
}

absl::Status Explain(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

// A file whose header has been read.
struct OpenFile {
  std::ifstream stream;
  Layout layout;
  uint64_t data_begin = 0;
};

absl::StatusOr<OpenFile> OpenSafetensors(const std::string& path) {
  OpenFile file;
  file.stream.open(path, std::ios::binary | std::ios::ate);
  if (!file.stream) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const std::streamoff size = file.stream.tellg();
  if (size < 0) return absl::DataLossError(absl::StrCat("cannot read ", path));
  file.stream.seekg(0);
  std::string bytes(std::min<size_t>(size, kForeignFormatBytes), '\0');
  file.stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const absl::StatusOr<uint64_t> length = ParseLength(bytes, size);
  if (!length.ok()) {
    const std::string fault = ForeignWeightsFault(bytes);
    return fault.empty() ? Explain(path, length.status())
                         : absl::DataLossError(absl::StrCat(path, ": ", fault));
  }
  file.stream.clear();
  file.stream.seekg(kLengthBytes);
  std::string text(*length, '\0');
  file.stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.stream) return absl::DataLossError(absl::StrCat("cannot read ", path));
  file.data_begin = kLengthBytes + *length;
  absl::StatusOr<Layout> layout = ParseHeader(text, size - file.data_begin);
  if (!layout.ok()) return Explain(path, layout.status());
  file.layout = *std::move(layout);
  return file;
}

absl::StatusOr<Tensor> ReadTensor(const std::string& path, OpenFile& file, const Located& located) {
  Tensor tensor(located.entry.dtype, located.entry.shape);
  file.stream.seekg(static_cast<std::streamoff>(file.data_begin + located.begin));
  file.stream.read(static_cast<char*>(tensor.raw_data()), tensor.bytes());
  if (!file.stream) return absl::DataLossError(absl::StrCat("cannot read ", path));
  return tensor;
}

SafetensorsHeader HeaderOf(Layout layout) {
  SafetensorsHeader header;
  header.metadata = std::move(layout.metadata);
  for (Located& located : layout.tensors) {
    if (located.other_type.empty()) {
      header.tensors.emplace(std::move(located.name), std::move(located.entry));
    } else {
      header.other_tensors.emplace(std::move(located.name), std::move(located.other_type));
    }
  }
  return header;
}

}  // namespace

const Tensor* SafetensorsContents::Find(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

absl::StatusOr<SafetensorsContents> ParseSafetensors(absl::string_view bytes) {
  TANDEM_ASSIGN_OR_RETURN(const uint64_t length, ParseLength(bytes, bytes.size()));
  const absl::string_view data = bytes.substr(kLengthBytes + length);
  TANDEM_ASSIGN_OR_RETURN(Layout layout, ParseHeader(bytes.substr(kLengthBytes, length), data.size()));
  TANDEM_RETURN_IF_ERROR(CheckTypes(layout));
  SafetensorsContents contents;
  contents.metadata = std::move(layout.metadata);
  for (const Located& located : layout.tensors) {
    Tensor tensor(located.entry.dtype, located.entry.shape);
    if (tensor.bytes() > 0) std::memcpy(tensor.raw_data(), data.data() + located.begin, tensor.bytes());
    contents.tensors.emplace(located.name, std::move(tensor));
  }
  return contents;
}

absl::StatusOr<int64_t> ParseSafetensorsLength(absl::string_view bytes, int64_t size) {
  TANDEM_ASSIGN_OR_RETURN(const uint64_t length, ParseLength(bytes, size));
  return static_cast<int64_t>(length);
}

absl::StatusOr<SafetensorsLayout> ParseSafetensorsLayout(absl::string_view header, int64_t data_size) {
  TANDEM_ASSIGN_OR_RETURN(Layout parsed, ParseHeader(header, data_size));
  TANDEM_RETURN_IF_ERROR(CheckTypes(parsed));
  SafetensorsLayout layout;
  layout.metadata = std::move(parsed.metadata);
  for (Located& located : parsed.tensors) {
    layout.tensors.push_back({.name = std::move(located.name),
                              .entry = std::move(located.entry),
                              .begin = static_cast<int64_t>(located.begin),
                              .end = static_cast<int64_t>(located.end)});
  }
  return layout;
}

absl::StatusOr<SafetensorsContents> ReadSafetensors(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(OpenFile file, OpenSafetensors(path));
  if (const absl::Status known = CheckTypes(file.layout); !known.ok()) return Explain(path, known);
  SafetensorsContents contents;
  contents.metadata = std::move(file.layout.metadata);
  for (Located& located : file.layout.tensors) {
    TANDEM_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(path, file, located));
    contents.tensors.emplace(std::move(located.name), std::move(tensor));
  }
  return contents;
}

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(OpenFile file, OpenSafetensors(path));
  return HeaderOf(std::move(file.layout));
}

absl::StatusOr<SafetensorsHeader> ReadSafetensorsTensors(
    const std::string& path, const std::set<std::string>& names,
    absl::FunctionRef<void(const std::string& name, Tensor tensor)> use) {
  TANDEM_ASSIGN_OR_RETURN(OpenFile file, OpenSafetensors(path));
  for (const Located& located : file.layout.tensors) {
    if (!located.other_type.empty() || !names.contains(located.name)) continue;
    TANDEM_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(path, file, located));
    use(located.name, std::move(tensor));
  }
  return HeaderOf(std::move(file.layout));
}

}  // namespace tandem

#include "engine/checkpoint/checkpoint_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_reader.h"

namespace tandem {
namespace {

constexpr char kFormatKey[] = "format";
constexpr char kFormat[] = "tandem-checkpoint";
constexpr char kVersionKey[] = "version";
constexpr char kVersion[] = "1";
constexpr char kStateKey[] = "state";
constexpr char kDigestKey[] = "sha256";
// As the header writes it. Nowhere else in a header can these characters stand together: within a string each
// quotation mark has a backslash before it, and a tensor's entry is no string.
constexpr char kDigestMark[] = "\"sha256\":\"";
constexpr size_t kDigestLength = 64;

absl::string_view BytesOf(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw_data()), static_cast<size_t>(tensor.bytes())};
}

// That the digest in the file is that of the file, in which the digest's own characters count as '0'.
absl::Status CheckDigest(absl::string_view bytes) {
  const size_t mark = bytes.find(kDigestMark);
  if (mark == absl::string_view::npos || bytes.size() - mark < sizeof(kDigestMark) - 1 + kDigestLength) {
    return absl::DataLossError("it has no checksum");
  }
  const size_t begin = mark + sizeof(kDigestMark) - 1;
  Sha256 hash;
  hash.Add(bytes.substr(0, begin));
  hash.Add(std::string(kDigestLength, '0'));
  hash.Add(bytes.substr(begin + kDigestLength));
  TANDEM_ASSIGN_OR_RETURN(const std::string digest, hash.Finish());
  if (digest == bytes.substr(begin, kDigestLength)) return absl::OkStatus();
  return absl::DataLossError("its checksum is not that of its content: it is cut off, or was changed");
}

absl::StatusOr<CheckpointContents> Parse(absl::string_view bytes) {
  TANDEM_RETURN_IF_ERROR(CheckDigest(bytes));
  TANDEM_ASSIGN_OR_RETURN(SafetensorsContents file, ParseSafetensors(bytes));
  if (file.metadata[kFormatKey] != kFormat || file.metadata[kVersionKey] != kVersion) {
    return absl::DataLossError(absl::StrCat("it is \"", file.metadata[kFormatKey], "\" of version \"",
                                            file.metadata[kVersionKey], "\"; this program reads \"", kFormat,
                                            "\" of version ", kVersion));
  }
  return CheckpointContents{.state = std::move(file.metadata[kStateKey]), .tensors = std::move(file.tensors)};
}

}  // namespace

absl::StatusOr<int64_t> WriteCheckpoint(Env* env, const std::string& path, const std::string& state,
                                        absl::Span<const NamedTensor> tensors) {
  TANDEM_ASSIGN_OR_RETURN(std::string header,
                          MakeSafetensorsHeader(tensors, {{kFormatKey, kFormat},
                                                          {kDigestKey, std::string(kDigestLength, '0')},
                                                          {kStateKey, state},
                                                          {kVersionKey, kVersion}}));
  Sha256 hash;
  hash.Add(header);
  int64_t size = static_cast<int64_t>(header.size());
  for (const auto& [name, tensor] : tensors) {
    hash.Add(BytesOf(tensor));
    size += tensor.bytes();
  }
  TANDEM_ASSIGN_OR_RETURN(const std::string digest, hash.Finish());
  header.replace(header.find(kDigestMark) + sizeof(kDigestMark) - 1, kDigestLength, digest);
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(env, path, [&](WritableFile& file) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(file.Append(header));
    for (const auto& [name, tensor] : tensors) TANDEM_RETURN_IF_ERROR(file.Append(BytesOf(tensor)));
    return absl::OkStatus();
  }));
  return size;
}

absl::StatusOr<CheckpointContents> ReadCheckpoint(Env* env, const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string bytes, env->ReadFile(path));
  absl::StatusOr<CheckpointContents> contents = Parse(bytes);
  if (contents.ok()) return contents;
  return absl::Status(
      contents.status().code(),
      absl::StrCat("the checkpoint ", path, " cannot be used: ", contents.status().message()));
}

}  // namespace tandem

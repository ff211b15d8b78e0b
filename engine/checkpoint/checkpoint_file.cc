#include "engine/checkpoint/checkpoint_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

constexpr char kFormatKey[] = "format";
constexpr char kFormat[] = "tandem-checkpoint";
constexpr char kVersionKey[] = "version";
constexpr char kVersion[] = "2";
// Without checksums of tensors.
constexpr char kFirstVersion[] = "1";
constexpr char kStateKey[] = "state";
// JSON: the SHA-256 of each tensor's bytes, by its name.
constexpr char kTensorsKey[] = "tensors";
constexpr char kDigestKey[] = "sha256";
// As the header writes it. Nowhere else in a header can these characters stand together: within a string each
// quotation mark has a backslash before it, and a tensor's entry is no string.
constexpr char kDigestMark[] = "\"sha256\":\"";
constexpr size_t kDigestLength = 64;

absl::string_view BytesOf(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw_data()), static_cast<size_t>(tensor.bytes())};
}

absl::StatusOr<std::string> DigestOf(const Tensor& tensor) {
  Sha256 hash;
  hash.Add(BytesOf(tensor));
  return hash.Finish();
}

// Of a file that is not as it was written: what is known of where.
std::string Damage(absl::string_view bytes) {
  const absl::StatusOr<SafetensorsContents> file = ParseSafetensors(bytes);
  if (!file.ok()) return "it is cut off, or was changed";
  const auto listed = file->metadata.find(kTensorsKey);
  if (listed == file->metadata.end()) return "it was changed";
  const nlohmann::json digests = nlohmann::json::parse(listed->second, nullptr, /*allow_exceptions=*/false);
  for (const auto& [name, tensor] : file->tensors) {
    const auto digest = digests.is_object() ? digests.find(name) : digests.end();
    const absl::StatusOr<std::string> actual = DigestOf(tensor);
    if (digests.is_object() && digest != digests.end() && actual.ok() && *digest != *actual) {
      return absl::StrCat("the tensor \"", name, "\" was changed");
    }
  }
  return "what it says beside its tensors was changed";
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
  return absl::DataLossError(absl::StrCat("its checksum is not that of its content: ", Damage(bytes)));
}

absl::StatusOr<CheckpointContents> Parse(absl::string_view bytes) {
  TANDEM_RETURN_IF_ERROR(CheckDigest(bytes));
  TANDEM_ASSIGN_OR_RETURN(SafetensorsContents file, ParseSafetensors(bytes));
  const std::string& version = file.metadata[kVersionKey];
  if (file.metadata[kFormatKey] != kFormat || (version != kVersion && version != kFirstVersion)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it is \"", file.metadata[kFormatKey], "\" of version \"", version, "\"; this program reads \"",
        kFormat, "\" of versions ", kFirstVersion, " and ", kVersion));
  }
  return CheckpointContents{.state = std::move(file.metadata[kStateKey]), .tensors = std::move(file.tensors)};
}

absl::Status Unusable(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("the checkpoint ", path, " cannot be used: ", status.message()));
}

}  // namespace

absl::StatusOr<int64_t> WriteCheckpoint(Env* env, const std::string& path, const std::string& state,
                                        absl::Span<const NamedTensor> tensors) {
  nlohmann::json digests = nlohmann::json::object();
  for (const auto& [name, tensor] : tensors) {
    TANDEM_ASSIGN_OR_RETURN(digests[name], DigestOf(tensor));
  }
  TANDEM_ASSIGN_OR_RETURN(std::string header,
                          MakeSafetensorsHeader(tensors, {{kFormatKey, kFormat},
                                                          {kDigestKey, std::string(kDigestLength, '0')},
                                                          {kStateKey, state},
                                                          {kTensorsKey, digests.dump()},
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
  return Unusable(path, contents.status());
}

absl::Status VerifyCheckpoint(Env* env, const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string bytes, env->ReadFile(path));
  const absl::Status status = CheckDigest(bytes);
  return status.ok() ? status : Unusable(path, status);
}

}  // namespace tandem

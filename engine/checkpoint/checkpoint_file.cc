#include "engine/checkpoint/checkpoint_file.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/file_pieces.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/safetensors_layout.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

constexpr char kFormatKey[] = "format";
constexpr char kFormat[] = "tandem-checkpoint";
constexpr char kVersionKey[] = "version";
constexpr char kVersion[] = "3";
constexpr char kStateKey[] = "state";
// The metadata's key for the SHA-256 of each tensor's bytes, by name, as JSON.
constexpr char kTensorsKey[] = "tensors";
constexpr char kDigestKey[] = "sha256";
// The text before the digest in the header. It occurs nowhere else: within a string, a backslash precedes
// each quotation mark, and a tensor's entry is no string.
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

// A file's bytes, in memory or on disk.
struct Bytes {
  int64_t size = 0;
  // Passes the bytes from `begin` to before `end` to `take`, in order.
  std::function<absl::Status(int64_t begin, int64_t end, TakeBytes take)> read;
};

absl::StatusOr<std::string> DigestOf(const Bytes& bytes, int64_t begin, int64_t end) {
  Sha256 hash;
  TANDEM_RETURN_IF_ERROR(bytes.read(begin, end, [&](absl::string_view piece) {
    hash.Add(piece);
    return absl::OkStatus();
  }));
  return hash.Finish();
}

// Reads the header, with its length before it.
absl::StatusOr<std::string> ReadBeginning(const Bytes& bytes) {
  std::string beginning;
  const auto take = [&](absl::string_view piece) {
    beginning.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  TANDEM_RETURN_IF_ERROR(bytes.read(0, std::min(bytes.size, kSafetensorsLengthBytes), take));
  TANDEM_ASSIGN_OR_RETURN(const int64_t length, ParseSafetensorsLength(beginning, bytes.size));
  TANDEM_RETURN_IF_ERROR(bytes.read(kSafetensorsLengthBytes, kSafetensorsLengthBytes + length, take));
  return beginning;
}

// FAILED_PRECONDITION if the metadata are not of a checkpoint of this version.
absl::Status CheckVersion(const std::map<std::string, std::string>& metadata) {
  const auto value = [&metadata](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? "" : found->second;
  };
  if (IsCheckpoint(metadata) && value(kVersionKey) == kVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("it is \"", value(kFormatKey), "\" of version \"",
                                                    value(kVersionKey), "\"; this program reads \"", kFormat,
                                                    "\" of version ", kVersion));
}

// Describes where a changed file differs from the written file, as far as this is known.
std::string Damage(const Bytes& bytes, absl::string_view beginning) {
  const auto data = static_cast<int64_t>(beginning.size());
  const absl::StatusOr<SafetensorsLayout> layout =
      ParseSafetensorsLayout(beginning.substr(kSafetensorsLengthBytes), bytes.size - data);
  if (!layout.ok()) return "it is cut off, or was changed";
  const auto listed = layout->metadata.find(kTensorsKey);
  if (listed == layout->metadata.end()) return "it was changed";
  const nlohmann::json digests = nlohmann::json::parse(listed->second, nullptr, /*allow_exceptions=*/false);
  for (const auto& [name, entry, begin, end] : layout->tensors) {
    const auto digest = digests.is_object() ? digests.find(name) : digests.end();
    if (!digests.is_object() || digest == digests.end()) continue;
    const absl::StatusOr<std::string> actual = DigestOf(bytes, data + begin, data + end);
    if (actual.ok() && *digest != *actual) return absl::StrCat("the tensor \"", name, "\" was changed");
  }
  return "what it says beside its tensors was changed";
}

// Checks that the digest in the file is the file's digest. The characters of the digest itself count as '0'.
absl::Status CheckDigest(const Bytes& bytes) {
  TANDEM_ASSIGN_OR_RETURN(const std::string beginning, ReadBeginning(bytes));
  const size_t mark = beginning.find(kDigestMark);
  if (mark == std::string::npos || beginning.size() - mark < sizeof(kDigestMark) - 1 + kDigestLength) {
    return absl::DataLossError("it has no checksum");
  }
  const size_t begin = mark + sizeof(kDigestMark) - 1;
  std::string without = beginning;
  without.replace(begin, kDigestLength, kDigestLength, '0');
  Sha256 hash;
  hash.Add(without);
  TANDEM_RETURN_IF_ERROR(
      bytes.read(static_cast<int64_t>(beginning.size()), bytes.size, [&](absl::string_view piece) {
        hash.Add(piece);
        return absl::OkStatus();
      }));
  TANDEM_ASSIGN_OR_RETURN(const std::string digest, hash.Finish());
  if (beginning.compare(begin, kDigestLength, digest) == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("its checksum is not that of its content: ", Damage(bytes, beginning)));
}

absl::StatusOr<CheckpointContents> Parse(absl::string_view bytes) {
  TANDEM_RETURN_IF_ERROR(CheckDigest({.size = static_cast<int64_t>(bytes.size()),
                                      .read = [bytes](int64_t begin, int64_t end, TakeBytes take) {
                                        return take(bytes.substr(begin, end - begin));
                                      }}));
  TANDEM_ASSIGN_OR_RETURN(SafetensorsContents file, ParseSafetensors(bytes));
  TANDEM_RETURN_IF_ERROR(CheckVersion(file.metadata));
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

const std::string& CheckpointHeader::state() const { return layout.metadata.at(kStateKey); }

bool IsCheckpoint(const std::map<std::string, std::string>& metadata) {
  const auto format = metadata.find(kFormatKey);
  return format != metadata.end() && format->second == kFormat;
}

absl::StatusOr<CheckpointHeader> ReadCheckpointHeader(const RandomAccessFile& file) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  TANDEM_ASSIGN_OR_RETURN(
      const std::string beginning,
      ReadBeginning({.size = size, .read = [&file](int64_t begin, int64_t end, TakeBytes take) {
                       return ReadInPieces(file, begin, end, take);
                     }}));
  CheckpointHeader header;
  header.data_begin = static_cast<int64_t>(beginning.size());
  TANDEM_ASSIGN_OR_RETURN(header.layout,
                          ParseSafetensorsLayout(absl::string_view(beginning).substr(kSafetensorsLengthBytes),
                                                 size - header.data_begin));
  TANDEM_RETURN_IF_ERROR(CheckVersion(header.layout.metadata));
  if (!header.layout.metadata.contains(kStateKey)) return absl::DataLossError("it has no state");
  return header;
}

absl::StatusOr<CheckpointContents> ReadCheckpoint(Env* env, const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string bytes, env->ReadFile(path));
  absl::StatusOr<CheckpointContents> contents = Parse(bytes);
  if (!contents.ok()) return Unusable(path, contents.status());
  contents->size_bytes = static_cast<int64_t>(bytes.size());
  return contents;
}

absl::Status VerifyCheckpoint(RandomAccessEnv* env, const std::string& path,
                              const std::function<absl::Status()>& go_on) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                          env->OpenRandomAccess(path, RandomAccessEnv::Open::kReadOnly));
  TANDEM_ASSIGN_OR_RETURN(const int64_t size, file->Size());
  const absl::Status status =
      CheckDigest({.size = size, .read = [&file, &go_on](int64_t begin, int64_t end, TakeBytes take) {
                     return ReadInPieces(*file, begin, end, [&](absl::string_view piece) -> absl::Status {
                       TANDEM_RETURN_IF_ERROR(go_on());
                       return take(piece);
                     });
                   }});
  return status.ok() ? status : Unusable(path, status);
}

}  // namespace tandem

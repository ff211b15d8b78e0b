#include "server/workers/launch_file.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "server/workers/untrusted_file.h"

namespace tandem {
namespace {

// A spec has at most 1 MiB, and each of its bytes takes at most four in text.
constexpr size_t kMaxLaunchBytes = 16 << 20;

}  // namespace

absl::StatusOr<internal::v1::WorkerLaunch> ReadLaunchFile(const JobFolder& folder, int attempt) {
  const std::string path = folder.LaunchPath(attempt);
  const absl::StatusOr<std::string> text = ReadUntrustedFile(path, kMaxLaunchBytes);
  if (!text.ok()) return text.status();
  google::protobuf::TextFormat::Parser parser;
  // A later version may have written it before a downgrade.
  parser.AllowUnknownField(true);
  internal::v1::WorkerLaunch launch;
  if (!parser.ParseFromString(*text, &launch)) {
    return absl::DataLossError(absl::StrCat("cannot read ", path, ": it is damaged"));
  }
  return launch;
}

absl::StatusOr<std::string> WriteLaunchFile(const JobFolder& folder,
                                            const internal::v1::WorkerLaunch& launch) {
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(launch, &text)) {
    return absl::InternalError("cannot write the launch file as text");
  }
  const std::string path = folder.LaunchPath(launch.attempt(), launch.group().worker());
  TANDEM_RETURN_IF_ERROR(WriteFileAtomically(
      Env::Real(), path, [&](WritableFile& file) { return file.Append(text); }, {.is_private = true}));
  return path;
}

}  // namespace tandem

#include "server/workers/launch_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"
#include "google/protobuf/text_format.h"

namespace tandem {
namespace {

// A spec has at most 1 MiB, and each of its bytes takes at most four in text.
constexpr int64_t kMaxLaunchBytes = 16 << 20;

absl::StatusOr<std::string> ReadBounded(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat file;
  if (fstat(fd.get(), &file) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  if (!S_ISREG(file.st_mode))
    return absl::DataLossError(absl::StrCat("cannot read ", path, ": it is not a regular file"));
  if (file.st_size > kMaxLaunchBytes) {
    return absl::DataLossError(
        absl::StrCat("cannot read ", path, ": it has ", file.st_size, " bytes, more than a launch may have"));
  }
  std::string text(static_cast<size_t>(file.st_size), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = pread(fd.get(), text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

absl::StatusOr<internal::v1::WorkerLaunch> ReadLaunchFile(const JobFolder& folder, int attempt) {
  const std::string path = folder.LaunchPath(attempt);
  const absl::StatusOr<std::string> text = ReadBounded(path);
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

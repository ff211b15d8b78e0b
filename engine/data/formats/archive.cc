#include "engine/data/formats/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/match.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/compressed_file.h"
#include "engine/data/formats/zip.h"

namespace tandem {
namespace {

absl::Status ForEachZipMember(const std::string& path,
                              const std::function<absl::Status(const TarMember&, const TarRead&)>& visit) {
  TANDEM_ASSIGN_OR_RETURN(const ZipFile zip, ZipFile::Open(path));
  for (const ZipMember& member : zip.members()) {
    if (absl::EndsWith(member.name, "/")) continue;
    std::unique_ptr<ZipReader> reader;
    TANDEM_RETURN_IF_ERROR(visit({.name = member.name, .bytes = member.bytes},
                                 [&](void* data, int64_t size) -> absl::StatusOr<int64_t> {
                                   // A member that nobody reads may have an unknown compression.
                                   if (reader == nullptr) {
                                     TANDEM_ASSIGN_OR_RETURN(reader, zip.OpenMember(member));
                                   }
                                   return reader->Read(data, size);
                                 }));
  }
  return absl::OkStatus();
}

}  // namespace

bool BeginsAsZip(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat stat;
  char begin[4] = {};
  const bool read = ::fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && ::pread(fd, begin, 4, 0) == 4;
  ::close(fd);
  return read && IsZip(absl::string_view(begin, 4));
}

absl::Status ForEachArchiveMember(
    const std::string& path, const std::function<absl::Status(const TarMember&, const TarRead&)>& visit) {
  if (BeginsAsZip(path)) return ForEachZipMember(path, visit);
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<CompressedFile> file, CompressedFile::Open(path));
  return ForEachTarMember(*file, visit);
}

}  // namespace tandem

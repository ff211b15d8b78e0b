#ifndef TANDEM_ENGINE_DATA_FORMATS_ARCHIVE_H_
#define TANDEM_ENGINE_DATA_FORMATS_ARCHIVE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "engine/data/formats/tar.h"

namespace tandem {

// As ForEachTarMember, for a zip archive or a tar archive, plain or compressed. In a zip archive, members
// have no content_at, and a link counts as a file: its content is its target.
absl::Status ForEachArchiveMember(const std::string& path,
                                  const std::function<absl::Status(const TarMember&, const TarRead&)>& visit);

// Returns whether a file begins as a zip archive. False if the file cannot be read.
bool BeginsAsZip(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_ARCHIVE_H_

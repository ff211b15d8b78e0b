#ifndef TANDEM_ENGINE_DATA_FORMATS_TAR_H_
#define TANDEM_ENGINE_DATA_FORMATS_TAR_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/compressed_file.h"

namespace tandem {

// A regular file in a tar archive.
struct TarMember {
  std::string name;        // With its folders.
  int64_t bytes = 0;       // Of its content.
  int64_t content_at = 0;  // Offset of the content in the decompressed archive.
};

// Reads up to `size` bytes of a member's content, fewer only at its end. Returns their number.
using TarRead = std::function<absl::StatusOr<int64_t>(void* data, int64_t size)>;

// Returns whether a file that begins with these bytes, at least 512, is a tar archive (POSIX ustar or GNU).
bool IsTar(absl::string_view begin);

// Calls `visit` for each regular file of a tar archive, in order. Skips content that `visit` leaves unread,
// and folders and devices. Long names may be those of GNU or of POSIX (pax).
//
// INVALID_ARGUMENT with the file's name:
// - The archive is damaged, or truncated: the block of zeros that ends an archive is missing.
// - Other bytes than zeros follow this block, as in joined archives.
// - The archive has a link or a sparse file with a name that IsSkippedPath does not skip.
//
// Otherwise returns the error of `visit`.
absl::Status ForEachTarMember(CompressedFile& file,
                              const std::function<absl::Status(const TarMember&, const TarRead&)>& visit);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TAR_H_

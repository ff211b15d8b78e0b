#include "engine/base/file_pieces.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"

namespace tandem {

absl::Status ReadInPieces(const RandomAccessFile& file, int64_t begin, int64_t end, TakeBytes take) {
  std::string piece(std::min(kPieceBytes, std::max<int64_t>(end - begin, 0)), '\0');
  while (begin < end) {
    const int64_t wanted = std::min(kPieceBytes, end - begin);
    TANDEM_ASSIGN_OR_RETURN(const int64_t read, file.ReadAt(begin, wanted, piece.data()));
    if (read < wanted) {
      return absl::DataLossError(absl::StrCat("the file ends at byte ", begin + read, " of ", end));
    }
    TANDEM_RETURN_IF_ERROR(take(absl::string_view(piece).substr(0, read)));
    begin += read;
  }
  return absl::OkStatus();
}

absl::Status CopyFileAtomically(RandomAccessEnv* env, const std::string& from, const std::string& to) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                          env->OpenRandomAccess(from, RandomAccessEnv::Open::kReadOnly));
  TANDEM_ASSIGN_OR_RETURN(const int64_t size, file->Size());
  return WriteFileAtomically(env, to, [&](WritableFile& written) {
    return ReadInPieces(*file, 0, size, [&](absl::string_view piece) { return written.Append(piece); });
  });
}

}  // namespace tandem

#ifndef TANDEM_ENGINE_BASE_FILE_PIECES_H_
#define TANDEM_ENGINE_BASE_FILE_PIECES_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/random_access_env.h"

namespace tandem {

// Takes the next bytes. An error stops the reading.
using TakeBytes = absl::FunctionRef<absl::Status(absl::string_view piece)>;

// The size of a piece, and so the most memory that such a reading needs.
inline constexpr int64_t kPieceBytes = 1 << 20;

// Passes the bytes of `file` from `begin` to before `end` to `take`, piece by piece and in order. DATA_LOSS
// if the file ends before `end`. Returns the error of reading or of `take`.
absl::Status ReadInPieces(const RandomAccessFile& file, int64_t begin, int64_t end, TakeBytes take);

// Copies the file `from` to `to`, as WriteFileAtomically. NOT_FOUND if no file `from` exists.
absl::Status CopyFileAtomically(RandomAccessEnv* env, const std::string& from, const std::string& to);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FILE_PIECES_H_

#ifndef TANDEM_ENGINE_BASE_FILE_PIECES_H_
#define TANDEM_ENGINE_BASE_FILE_PIECES_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/random_access_env.h"

namespace tandem {

// Takes bytes; an error ends what gives them.
using TakeBytes = absl::FunctionRef<absl::Status(absl::string_view piece)>;

// The most that is in memory of a file that is read so.
inline constexpr int64_t kPieceBytes = 1 << 20;

// Gives the bytes of `file` from `begin` to before `end` to `take`, piece by piece and in order. DATA_LOSS
// where the file ends before.
absl::Status ReadInPieces(const RandomAccessFile& file, int64_t begin, int64_t end, TakeBytes take);

// Makes `to` hold what `from` does, as WriteFileAtomically. NOT_FOUND where there is no such file.
absl::Status CopyFileAtomically(RandomAccessEnv* env, const std::string& from, const std::string& to);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FILE_PIECES_H_

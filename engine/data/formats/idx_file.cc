#include "engine/data/formats/idx_file.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr int64_t kIdxChunk = int64_t{1} << 20;
// The most memory that is reserved before the file's real length is known.
constexpr int64_t kMostReserved = int64_t{1} << 26;

const char* TypeName(uint8_t type) {
  switch (type) {
    case kUnsignedByte:
      return "unsigned bytes";
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "32-bit floats";
    case 0x0E:
      return "64-bit floats";
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<IdxFile>> IdxFile::Open(const std::string& path, int min_rank, int max_rank,
                                                       int64_t max_bytes) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<CompressedFile> compressed, CompressedFile::Open(path));
  std::unique_ptr<IdxFile> file(new IdxFile(std::move(compressed)));
  TANDEM_RETURN_IF_ERROR(file->ReadHeader(min_rank, max_rank, max_bytes));
  return file;
}

absl::Status IdxFile::ReadHeader(int min_rank, int max_rank, int64_t max_bytes) {
  uint8_t magic[4] = {};
  TANDEM_ASSIGN_OR_RETURN(const int64_t magic_bytes, file_->Read(magic, 4));
  if (magic_bytes < 4 || magic[0] != 0 || magic[1] != 0 || TypeName(magic[2]) == nullptr) {
    return file_->Error(
        magic_bytes < 4
            ? absl::StrCat("is not an IDX file: it holds ", magic_bytes, " bytes")
            : absl::StrFormat("is not an IDX file: it begins with 0x%02x%02x%02x%02x, not with 0x000008 and "
                              "the number of dimensions",
                              magic[0], magic[1], magic[2], magic[3]));
  }
  if (magic[2] != kUnsignedByte) {
    return file_->Error(absl::StrFormat("holds %s (IDX type 0x%02x); only unsigned bytes (0x08) can be read",
                                        TypeName(magic[2]), magic[2]));
  }
  const int rank = magic[3];
  if (rank < min_rank || rank > max_rank) {
    return file_->Error(
        absl::StrCat("has ", rank, " dimensions; expected ", min_rank,
                     min_rank == max_rank ? "" : absl::StrCat(" or ", max_rank),
                     max_rank == 1 ? ", as a file of labels has" : ", as a file of images has"));
  }
  std::vector<int64_t> extents;
  for (int i = 0; i < rank; ++i) {
    uint8_t extent[4] = {};
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, file_->Read(extent, 4));
    if (count < 4) return file_->Error("is truncated: it ends within its header");
    extents.push_back(int64_t{extent[0]} << 24 | extent[1] << 16 | extent[2] << 8 | extent[3]);
  }
  header_bytes_ = 4 + 4 * rank;
  shape_ = Shape(std::move(extents));
  if (shape_.elements() == 0)
    return file_->Error(absl::StrCat("holds no samples: its shape is ", shape_.ToString()));
  if (shape_.elements() > max_bytes) {
    return file_->Error(absl::StrCat("announces ", shape_.ToString(), ", more than the ", max_bytes,
                                     " bytes that can be read"));
  }
  return absl::OkStatus();
}

absl::Status IdxFile::Truncated(int64_t found) const {
  return file_->Error(absl::StrCat("is truncated: its header announces ", shape_.ToString(), ", ",
                                   shape_.elements(), " bytes, and ", found, " follow"));
}

absl::Status IdxFile::CheckNothingFollows() {
  uint8_t more = 0;
  TANDEM_ASSIGN_OR_RETURN(const int64_t count, file_->Read(&more, 1));
  if (count == 0) return absl::OkStatus();
  return file_->Error(absl::StrCat("is longer than its header announces: ", shape_.ToString(), ", ",
                                   shape_.elements(), " bytes"));
}

absl::Status IdxFile::CheckLength() {
  const int64_t expected = header_bytes_ + shape_.elements();
  const int64_t stated = file_->StatedLength();
  // gzip states the length modulo 2^32.
  if (stated == expected || stated == (expected & 0xFFFFFFFF)) return absl::OkStatus();
  std::vector<uint8_t> chunk(kIdxChunk);
  for (int64_t left = shape_.elements(); left > 0;) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, file_->Read(chunk.data(), std::min(left, kIdxChunk)));
    if (count == 0) return Truncated(shape_.elements() - left);
    left -= count;
  }
  return CheckNothingFollows();
}

absl::Status IdxFile::ReadPieces(absl::FunctionRef<void(absl::Span<const uint8_t>)> use) {
  std::vector<uint8_t> chunk(kIdxChunk);
  const int64_t size = shape_.elements();
  for (int64_t done = 0; done < size;) {
    const int64_t wanted = std::min(size - done, kIdxChunk);
    TANDEM_ASSIGN_OR_RETURN(const int64_t count, file_->Read(chunk.data(), wanted));
    done += count;
    if (count < wanted) return Truncated(done);
    use(absl::MakeConstSpan(chunk).subspan(0, count));
  }
  return CheckNothingFollows();
}

absl::StatusOr<std::vector<uint8_t>> IdxFile::ReadAll() {
  const int64_t size = shape_.elements();
  std::vector<uint8_t> elements;
  try {
    elements.reserve(std::min(size, kMostReserved));
    TANDEM_RETURN_IF_ERROR(ReadPieces([&](absl::Span<const uint8_t> piece) {
      elements.insert(elements.end(), piece.begin(), piece.end());
    }));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(file_->path(), " needs ", size, " bytes of memory, which cannot be had"));
  }
  return elements;
}

}  // namespace tandem

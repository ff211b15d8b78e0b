#include "engine/data/formats/bzip2_file.h"

#include <bzlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "engine/data/formats/packed_input.h"

namespace tandem {
namespace {

// libbz2 counts bytes in unsigned int.
constexpr int64_t kMostAtOnce = int64_t{1} << 30;

class Bzip2File final : public CompressedFile {
 public:
  Bzip2File(std::string path, int fd) : CompressedFile(std::move(path)), input_(UniqueFd(fd)) {}
  ~Bzip2File() override {
    if (started_) ::BZ2_bzDecompressEnd(&stream_);
  }

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override {
    int64_t done = 0;
    while (done < size) {
      if (stream_.avail_in == 0) {
        const absl::StatusOr<int64_t> count = input_.Next();
        if (!count.ok()) return Error(std::string(count.status().message()));
        stream_.next_in = input_.data();
        stream_.avail_in = static_cast<unsigned>(*count);
        if (*count == 0 && !started_) break;
        if (*count == 0) return Error("is truncated: its compressed stream does not end");
      }
      if (!started_) {
        if (::BZ2_bzDecompressInit(&stream_, /*verbosity=*/0, /*small=*/0) != BZ_OK) return NoMemory();
        started_ = true;
      }
      const auto wanted = static_cast<unsigned>(std::min(size - done, kMostAtOnce));
      stream_.next_out = static_cast<char*>(data) + done;
      stream_.avail_out = wanted;
      const int code = ::BZ2_bzDecompress(&stream_);
      done += wanted - stream_.avail_out;
      if (code == BZ_STREAM_END) {
        // Another stream may follow.
        ::BZ2_bzDecompressEnd(&stream_);
        started_ = false;
      } else if (code == BZ_MEM_ERROR) {
        return NoMemory();
      } else if (code != BZ_OK) {
        return Error("is damaged: its bzip2 stream cannot be decompressed");
      }
    }
    return done;
  }

  int64_t StatedLength() override { return -1; }

 private:
  PackedInput input_;
  bz_stream stream_ = {};
  bool started_ = false;  // Whether a stream was begun and not ended.
};

}  // namespace

bool IsBzip2(absl::string_view begin) {
  return begin.size() >= 10 && absl::StartsWith(begin, "BZh") && absl::ascii_isdigit(begin[3]) &&
         (begin.substr(4, 6) == "1AY&SY" || begin.substr(4, 6) == "\x17\x72\x45\x38\x50\x90");
}

absl::StatusOr<std::unique_ptr<CompressedFile>> OpenBzip2(const std::string& path, int fd) {
  return std::make_unique<Bzip2File>(path, fd);
}

}  // namespace tandem

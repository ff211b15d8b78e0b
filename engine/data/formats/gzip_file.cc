#include "engine/data/formats/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/data/formats/packed_input.h"

namespace tandem {
namespace {

// zlib counts bytes in unsigned int.
constexpr int64_t kMostInflatedAtOnce = int64_t{1} << 30;
constexpr Bytef kFirstGzipByte = 0x1F;

class GzipFile final : public CompressedFile {
 public:
  GzipFile(std::string path, int fd, int64_t stated)
      : CompressedFile(std::move(path)), input_(UniqueFd(fd)), stated_(stated) {}
  ~GzipFile() override {
    if (has_stream_) ::inflateEnd(&stream_);
  }

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override {
    int64_t done = 0;
    while (done < size) {
      if (stream_.avail_in == 0) {
        const absl::StatusOr<int64_t> count = input_.Next();
        if (!count.ok()) return Error(std::string(count.status().message()));
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(*count);
        if (*count == 0 && !in_member_) break;
        if (*count == 0) return Error("is truncated: its compressed stream does not end");
      }
      if (!in_member_) {
        TANDEM_ASSIGN_OR_RETURN(in_member_, BeginMember());
        if (!in_member_) continue;
      }
      const auto wanted = static_cast<uInt>(std::min(size - done, kMostInflatedAtOnce));
      stream_.next_out = static_cast<Bytef*>(data) + done;
      stream_.avail_out = wanted;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      done += wanted - stream_.avail_out;
      if (code == Z_STREAM_END) {
        // Another member may follow.
        in_member_ = false;
      } else if (code == Z_MEM_ERROR) {
        return NoMemory();
      } else if (code != Z_OK) {
        return Error(absl::StrCat("is damaged: its gzip stream cannot be decompressed",
                                  stream_.msg == nullptr ? "" : ": ",
                                  stream_.msg == nullptr ? "" : stream_.msg));
      }
    }
    return done;
  }

  int64_t StatedLength() override { return stated_; }

 private:
  // Begins the next member at the next byte. Returns false if zeros fill the input's piece.
  absl::StatusOr<bool> BeginMember() {
    if (has_stream_) {
      Bytef* const end = stream_.next_in + stream_.avail_in;
      Bytef* const next = std::find_if(stream_.next_in, end, [](Bytef byte) { return byte != 0; });
      has_zeros_ = has_zeros_ || next != stream_.next_in;
      stream_.avail_in = static_cast<uInt>(end - next);
      stream_.next_in = next;
      if (next == end) return false;
      if (has_zeros_ || *next != kFirstGzipByte) {
        return Error(
            "is damaged: bytes that are no gzip stream follow its gzip stream, so that a part of its content "
            "may be missing; compress the content anew");
      }
    }
    const int code = has_stream_ ? ::inflateReset(&stream_) : ::inflateInit2(&stream_, MAX_WBITS + 16);
    if (code != Z_OK) return NoMemory();
    has_stream_ = true;
    return true;
  }

  PackedInput input_;
  const int64_t stated_;
  z_stream stream_ = {};
  bool has_stream_ = false;  // Whether a member was begun.
  bool in_member_ = false;   // Whether a member was begun and not ended.
  bool has_zeros_ = false;   // Whether zeros followed a member.
};

}  // namespace

bool IsGzip(absl::string_view begin) { return absl::StartsWith(begin, "\x1F\x8B"); }

absl::StatusOr<std::unique_ptr<CompressedFile>> OpenGzip(const std::string& path, int fd, int64_t stated) {
  return std::make_unique<GzipFile>(path, fd, stated);
}

}  // namespace tandem

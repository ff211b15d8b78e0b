#include "engine/data/formats/zstd_file.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/data/formats/packed_input.h"

namespace tandem {
namespace {

// The largest window, as a power of two in bytes. The decompressor keeps a window in memory.
constexpr int kWindowLog = 27;

class ZstdFile final : public CompressedFile {
 public:
  ZstdFile(std::string path, int fd)
      : CompressedFile(std::move(path)),
        input_(UniqueFd(fd)),
        stream_(ZSTD_createDStream(), ZSTD_freeDStream) {}

  absl::Status Start() {
    if (stream_ == nullptr ||
        ZSTD_isError(ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kWindowLog)) != 0) {
      return NoMemory();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Read(void* data, int64_t size) override {
    ZSTD_outBuffer out = {data, static_cast<size_t>(size), 0};
    while (out.pos < out.size) {
      if (packed_.pos == packed_.size && !full_) {
        const absl::StatusOr<int64_t> count = input_.Next();
        if (!count.ok()) return Error(std::string(count.status().message()));
        packed_ = {input_.data(), static_cast<size_t>(*count), 0};
        if (*count == 0) {
          if (between_frames_) break;
          return Error("is truncated: its compressed stream does not end");
        }
      }
      const size_t code = ZSTD_decompressStream(stream_.get(), &out, &packed_);
      if (ZSTD_isError(code) != 0) return Damaged(code);
      // 0 means that a frame is complete and flushed.
      between_frames_ = code == 0;
      // The stream may hold more bytes for a full output.
      full_ = out.pos == out.size && !between_frames_;
    }
    return static_cast<int64_t>(out.pos);
  }

  int64_t StatedLength() override { return -1; }

 private:
  absl::Status Damaged(size_t code) const {
    switch (ZSTD_getErrorCode(code)) {
      case ZSTD_error_memory_allocation:
        return NoMemory();
      case ZSTD_error_frameParameter_windowTooLarge:
        return Error(absl::StrCat("needs a window of more than the ", (1 << kWindowLog) >> 20,
                                  " MiB that reading a zstd file may take; compress it without --long"));
      case ZSTD_error_dictionary_wrong:
        return Error(
            "is compressed with a dictionary, which cannot be read; compress it without a dictionary");
      default:
        return Error(
            absl::StrCat("is damaged: its zstd stream cannot be decompressed: ", ZSTD_getErrorName(code)));
    }
  }

  PackedInput input_;
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer packed_ = {nullptr, 0, 0};
  bool between_frames_ = true;
  bool full_ = false;  // Whether the last output was full.
};

}  // namespace

bool IsZstd(absl::string_view begin) {
  return absl::StartsWith(begin, absl::string_view("\x28\xB5\x2F\xFD", 4));
}

absl::StatusOr<std::unique_ptr<CompressedFile>> OpenZstd(const std::string& path, int fd) {
  auto file = std::make_unique<ZstdFile>(path, fd);
  const absl::Status status = file->Start();
  if (!status.ok()) return status;
  return file;
}

}  // namespace tandem

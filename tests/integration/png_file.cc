#include "tests/integration/png_file.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"

namespace tandem::testing {
namespace {

std::string BigEndian(uint32_t number) {
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(number >> (24 - 8 * i));
  return bytes;
}

std::string Chunk(absl::string_view type, absl::string_view data) {
  const std::string body = absl::StrCat(type, data);
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return absl::StrCat(BigEndian(static_cast<uint32_t>(data.size())), body,
                      BigEndian(static_cast<uint32_t>(crc)));
}

}  // namespace

std::string PngFile(uint32_t height, uint32_t width, int channels, absl::string_view pixels) {
  const size_t row = static_cast<size_t>(width) * channels;
  std::string rows;
  for (uint32_t y = 0; y < height; ++y) {
    rows.push_back('\0');  // No filter.
    absl::StrAppend(&rows, pixels.substr(y * row, row));
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
           rows.size());
  packed.resize(size);
  const char kind[] = {8, static_cast<char>(channels == 3 ? 2 : 0), 0, 0, 0};
  return absl::StrCat(
      "\x89PNG\r\n\x1a\n",
      Chunk("IHDR", absl::StrCat(BigEndian(width), BigEndian(height), absl::string_view(kind, sizeof(kind)))),
      Chunk("IDAT", packed), Chunk("IEND", ""));
}

}  // namespace tandem::testing

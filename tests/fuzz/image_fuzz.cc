// PNG and JPEG files.

#include <zlib.h>

#include <cstdio>
#include <cstdlib>

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/picture_check.h"

// After <cstdio>, which it does not include.
#include <jpeglib.h>

namespace tandem {
namespace {

std::string Png(int color_type, int channels, int depth) {
  const std::string header = std::string("\0\0\0\x03\0\0\0\x02", 8) + static_cast<char>(depth) +
                             static_cast<char>(color_type) + std::string(3, '\0');
  const std::string row = std::string(1, '\0') + std::string((3 * channels * depth + 7) / 8, '\x11');
  std::string pixels = row + row;
  std::string packed(1000, '\0');
  uLongf packed_size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &packed_size,
             reinterpret_cast<const Bytef*>(pixels.data()), pixels.size());
  packed.resize(packed_size);
  const std::string palette = color_type == 3 ? PngChunk("PLTE", std::string(3 * 16, '\x22')) : "";
  return "\x89PNG\r\n\x1A\n" + PngChunk("IHDR", header) + palette + PngChunk("IDAT", packed) +
         PngChunk("IEND", "");
}

std::string Jpeg(int channels, bool progressive) {
  jpeg_compress_struct compress = {};
  jpeg_error_mgr errors = {};
  compress.err = ::jpeg_std_error(&errors);
  ::jpeg_create_compress(&compress);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type.
  ::jpeg_mem_dest(&compress, &bytes, &size);
  compress.image_width = 9;
  compress.image_height = 5;
  compress.input_components = channels;
  compress.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  ::jpeg_set_defaults(&compress);
  if (progressive) ::jpeg_simple_progression(&compress);
  ::jpeg_start_compress(&compress, TRUE);
  std::string row(9 * channels, '\x33');
  for (int y = 0; y < 5; ++y) {
    JSAMPROW rows[1] = {reinterpret_cast<JSAMPROW>(row.data())};
    ::jpeg_write_scanlines(&compress, rows, 1);
  }
  ::jpeg_finish_compress(&compress);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  ::jpeg_destroy_compress(&compress);
  std::free(bytes);
  return file;
}

}  // namespace

std::vector<std::string> Seeds() {
  return {Png(0, 1, 8), Png(0, 1, 1),   Png(2, 3, 8),   Png(2, 3, 16), Png(3, 1, 4),  Png(6, 4, 8),
          Png(4, 2, 8), Jpeg(1, false), Jpeg(3, false), Jpeg(3, true), Jpeg(4, false)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}

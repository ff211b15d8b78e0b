#ifndef TANDEM_TESTS_FUZZ_JPEG_SEED_H_
#define TANDEM_TESTS_FUZZ_JPEG_SEED_H_

#include <cstdio>
#include <cstdlib>
#include <string>

// After <cstdio>, which it does not include.
#include <jpeglib.h>

namespace tandem {

struct JpegSeed {
  int width = 9;
  int height = 5;
  int channels = 3;
  bool progressive = false;
  std::string exif = {};  // Empty: the file has no EXIF data.
};

// Returns a JPEG file of a single colour.
inline std::string Jpeg(const JpegSeed& seed) {
  jpeg_compress_struct compress = {};
  jpeg_error_mgr errors = {};
  compress.err = ::jpeg_std_error(&errors);
  ::jpeg_create_compress(&compress);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type.
  ::jpeg_mem_dest(&compress, &bytes, &size);
  compress.image_width = seed.width;
  compress.image_height = seed.height;
  compress.input_components = seed.channels;
  compress.in_color_space = seed.channels == 1 ? JCS_GRAYSCALE : seed.channels == 3 ? JCS_RGB : JCS_CMYK;
  ::jpeg_set_defaults(&compress);
  if (seed.progressive) ::jpeg_simple_progression(&compress);
  ::jpeg_start_compress(&compress, TRUE);
  if (!seed.exif.empty()) {
    const std::string segment = std::string("Exif\0\0", 6) + seed.exif;
    ::jpeg_write_marker(&compress, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(segment.data()),
                        static_cast<unsigned>(segment.size()));
  }
  std::string row(static_cast<size_t>(seed.width) * seed.channels, '\x33');
  for (int y = 0; y < seed.height; ++y) {
    JSAMPROW rows[1] = {reinterpret_cast<JSAMPROW>(row.data())};
    ::jpeg_write_scanlines(&compress, rows, 1);
  }
  ::jpeg_finish_compress(&compress);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  ::jpeg_destroy_compress(&compress);
  std::free(bytes);
  return file;
}

}  // namespace tandem

#endif  // TANDEM_TESTS_FUZZ_JPEG_SEED_H_

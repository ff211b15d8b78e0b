#ifndef TANDEM_ENGINE_DATA_FORMATS_TEST_JPEG_H_
#define TANDEM_ENGINE_DATA_FORMATS_TEST_JPEG_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

// After <cstdio>, which it does not include.
#include <jpeglib.h>

namespace tandem {

// A JPEG file for a test.
struct JpegForm {
  int width = 9;
  int height = 5;
  int channels = 3;  // 1, 3, or 4 for inks.
  int quality = 75;  // From 1 to 100.
  int across = 2;    // Columns and rows of pixels that share a colour, if there are 3 channels.
  int down = 2;
  int chroma_across = 1;  // If 2, the chroma has more columns, or as many, as the brightness.
  bool progressive = false;
  std::string exif = {};  // Empty: the file has no EXIF data.
};

// Returns EXIF data with an orientation, from 1 to 8. 6 turns a picture by a quarter.
inline std::string OrientationExif(int orientation) {
  return std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + static_cast<char>(orientation) +
         std::string(7, '\0');
}

// Sets the interleaved pixels of row `y`. Rows are drawn from the top.
using JpegRow = std::function<void(int y, std::vector<uint8_t>& pixels)>;

// Returns a JPEG file. Default: each pixel has the same grey.
inline std::string Jpeg(
    const JpegForm& form, const JpegRow& draw = [](int, std::vector<uint8_t>& pixels) {
      std::fill(pixels.begin(), pixels.end(), 0x33);
    }) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = ::jpeg_std_error(&errors);
  ::jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type.
  ::jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = form.width;
  info.image_height = form.height;
  info.input_components = form.channels;
  info.in_color_space = form.channels == 1 ? JCS_GRAYSCALE : form.channels == 3 ? JCS_RGB : JCS_CMYK;
  ::jpeg_set_defaults(&info);
  ::jpeg_set_quality(&info, form.quality, TRUE);
  if (form.channels == 3) {
    info.comp_info[0].h_samp_factor = form.across;
    info.comp_info[0].v_samp_factor = form.down;
    for (int c = 1; c < 3; ++c) info.comp_info[c].h_samp_factor = form.chroma_across;
  }
  if (form.progressive) ::jpeg_simple_progression(&info);
  ::jpeg_start_compress(&info, TRUE);
  if (!form.exif.empty()) {
    const std::string segment = std::string("Exif\0\0", 6) + form.exif;
    ::jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(segment.data()),
                        static_cast<unsigned>(segment.size()));
  }
  std::vector<uint8_t> pixels(static_cast<size_t>(form.width) * form.channels);
  for (int y = 0; y < form.height; ++y) {
    draw(y, pixels);
    JSAMPROW rows[1] = {pixels.data()};
    ::jpeg_write_scanlines(&info, rows, 1);
  }
  ::jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  ::jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TEST_JPEG_H_

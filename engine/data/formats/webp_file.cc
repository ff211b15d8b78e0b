#include "engine/data/formats/webp_file.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/data/formats/exif.h"

namespace tandem {
namespace {

absl::Status Fault(absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat("cannot be decoded as WebP: ", fault));
}

// Returns the orientation in the file's EXIF data.
int OrientationOf(const WebPDemuxer* demuxer) {
  WebPChunkIterator chunk = {};
  int orientation = 1;
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) != 0) {
    absl::string_view exif(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
    // Some programs keep the head of JPEG's segment.
    if (exif.substr(0, 4) == "Exif") exif.remove_prefix(std::min<size_t>(6, exif.size()));
    orientation = ExifOrientation(exif);
  }
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

absl::Status DecodeStill(absl::string_view file, Image& image) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  int width = 0, height = 0;
  if (WebPGetInfo(bytes, file.size(), &width, &height) == 0) return Fault("its header is damaged");
  if (width != image.width || height != image.height) return Fault("its headers give two sizes");
  image.pixels.resize(3 * image.height * image.width);
  if (WebPDecodeRGBInto(bytes, file.size(), image.pixels.data(), image.pixels.size(), 3 * width) == nullptr) {
    return Fault("the file is damaged or truncated");
  }
  return absl::OkStatus();
}

absl::Status DecodeFirstFrame(const WebPData& data, Image& image) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) return absl::InternalError("libwebp has another version");
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, &options), WebPAnimDecoderDelete);
  uint8_t* pixels = nullptr;
  int time = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &pixels, &time) == 0) {
    return Fault("its first frame is damaged or truncated");
  }
  const int64_t area = image.height * image.width;
  image.pixels.resize(3 * area);
  for (int64_t i = 0; i < area; ++i) std::copy_n(pixels + 4 * i, 3, image.pixels.data() + 3 * i);
  return absl::OkStatus();
}

absl::StatusOr<Image> ReadWebp(absl::string_view file, bool header_only) {
  const WebPData data = {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(WebPDemuxPartial(&data, &state),
                                                                     WebPDemuxDelete);
  if (demuxer == nullptr || state == WEBP_DEMUX_PARSE_ERROR || state == WEBP_DEMUX_PARSING_HEADER) {
    return Fault("its header is damaged or truncated");
  }
  Image image{.channels = 3,
              .height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT),
              .width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
              .pixels = {}};
  if (image.height * image.width > kMaxImagePixels) {
    return Fault(absl::StrCat("it has ", image.width, " x ", image.height, " pixels, more than can be read"));
  }
  const uint32_t flags = WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS);
  // EXIF data follow the picture.
  if (state != WEBP_DEMUX_DONE && (!header_only || (flags & EXIF_FLAG) != 0))
    return Fault("the file is truncated");
  const int orientation = OrientationOf(demuxer.get());
  if (!header_only) {
    const absl::Status decoded =
        (flags & ANIMATION_FLAG) != 0 ? DecodeFirstFrame(data, image) : DecodeStill(file, image);
    if (!decoded.ok()) return decoded;
  }
  return TurnImage(std::move(image), orientation);
}

}  // namespace

absl::StatusOr<Image> ReadWebpHeader(absl::string_view file) { return ReadWebp(file, true); }

absl::StatusOr<Image> DecodeWebp(absl::string_view file) { return ReadWebp(file, false); }

}  // namespace tandem

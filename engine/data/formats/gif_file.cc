#include "engine/data/formats/gif_file.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

struct Pass {
  int first;
  int step;
};
constexpr std::array<Pass, 4> kInterlaced = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
constexpr std::array<Pass, 1> kPlain = {{{0, 1}}};

absl::Status Fault(absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat("cannot be decoded as GIF: ", fault));
}

absl::Status FaultOf(int error) {
  const char* text = GifErrorString(error);
  return Fault(text != nullptr ? text : "the file is damaged or truncated");
}

int OnRead(GifFileType* gif, GifByteType* data, int size) {
  auto* left = static_cast<absl::string_view*>(gif->UserData);
  const size_t count = std::min(static_cast<size_t>(std::max(size, 0)), left->size());
  std::memcpy(data, left->data(), count);
  left->remove_prefix(count);
  return static_cast<int>(count);
}

void Close(GifFileType* gif) { DGifCloseFile(gif, nullptr); }

// Reads up to the pixels of the first frame. Returns the index of the transparent colour, or
// NO_TRANSPARENT_COLOR.
absl::StatusOr<int> FindFrame(GifFileType* gif) {
  int transparent = NO_TRANSPARENT_COLOR;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return FaultOf(gif->Error);
    if (type == TERMINATE_RECORD_TYPE) return Fault("it has no picture");
    if (type == IMAGE_DESC_RECORD_TYPE) {
      if (DGifGetImageDesc(gif) == GIF_ERROR) return FaultOf(gif->Error);
      return transparent;
    }
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return FaultOf(gif->Error);
    GraphicsControlBlock control = {};
    // A block begins with its length.
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      transparent = control.TransparentColor;
    }
    while (block != nullptr) {
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return FaultOf(gif->Error);
    }
  }
}

// The colours of a frame, and grey for a file without colours.
std::vector<GifColorType> ColoursOf(const GifFileType& gif) {
  const ColorMapObject* map = gif.Image.ColorMap != nullptr ? gif.Image.ColorMap : gif.SColorMap;
  std::vector<GifColorType> colours(256);
  for (size_t i = 0; i < colours.size(); ++i) {
    const auto grey = static_cast<GifByteType>(i);
    if (map == nullptr) {
      colours[i] = {grey, grey, grey};
    } else if (static_cast<int>(i) < map->ColorCount) {
      colours[i] = map->Colors[i];
    }
  }
  return colours;
}

template <size_t kPasses>
absl::Status ReadLines(GifFileType* gif, const std::array<Pass, kPasses>& passes, int64_t width,
                       std::vector<uint8_t>& canvas) {
  const GifImageDesc& frame = gif->Image;
  for (const Pass& pass : passes) {
    for (int y = pass.first; y < frame.Height; y += pass.step) {
      uint8_t* const line = canvas.data() + (int64_t{frame.Top} + y) * width + frame.Left;
      if (DGifGetLine(gif, line, frame.Width) == GIF_ERROR) return FaultOf(gif->Error);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Image> ReadGif(absl::string_view file, bool header_only) {
  int error = 0;
  const std::unique_ptr<GifFileType, void (*)(GifFileType*)> gif(DGifOpen(&file, OnRead, &error), Close);
  if (gif == nullptr) return FaultOf(error);
  const absl::StatusOr<int> transparent = FindFrame(gif.get());
  if (!transparent.ok()) return transparent.status();
  const GifImageDesc& frame = gif->Image;
  if (frame.Width < 1 || frame.Height < 1) return Fault("its picture has no pixels");
  Image image{.channels = 1,
              .height = std::max(int64_t{gif->SHeight}, int64_t{frame.Top} + frame.Height),
              .width = std::max(int64_t{gif->SWidth}, int64_t{frame.Left} + frame.Width),
              .pixels = {}};
  if (image.height * image.width > kMaxImagePixels) {
    return Fault(absl::StrCat("it has ", image.width, " x ", image.height, " pixels, more than can be read"));
  }
  const std::vector<GifColorType> colours = ColoursOf(*gif);
  const bool grey = std::all_of(colours.begin(), colours.end(), [](const GifColorType& colour) {
    return colour.Red == colour.Green && colour.Green == colour.Blue;
  });
  image.channels = grey ? 1 : 3;
  if (header_only) return image;
  // The frame may be smaller than the picture.
  const auto around = static_cast<uint8_t>(*transparent == NO_TRANSPARENT_COLOR ? 0 : *transparent);
  const int64_t area = image.height * image.width;
  std::vector<uint8_t> canvas(area, around);
  const absl::Status read = frame.Interlace ? ReadLines(gif.get(), kInterlaced, image.width, canvas)
                                            : ReadLines(gif.get(), kPlain, image.width, canvas);
  if (!read.ok()) return read;
  image.pixels.resize(image.channels * area);
  for (int64_t i = 0; i < area; ++i) {
    const GifColorType& colour = colours[canvas[i]];
    uint8_t* const to = image.pixels.data() + i * image.channels;
    to[0] = colour.Red;
    if (grey) continue;
    to[1] = colour.Green;
    to[2] = colour.Blue;
  }
  return image;
}

}  // namespace

absl::StatusOr<Image> ReadGifHeader(absl::string_view file) { return ReadGif(file, true); }

absl::StatusOr<Image> DecodeGif(absl::string_view file) { return ReadGif(file, false); }

}  // namespace tandem

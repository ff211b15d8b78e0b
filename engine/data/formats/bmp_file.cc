#include "engine/data/formats/bmp_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// The file's header comes before the picture's.
constexpr uint64_t kFileHeader = 14;
constexpr uint32_t kOs2Header = 12, kWindowsHeader = 40;
constexpr uint32_t kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kAlphaMasks = 6;

absl::Status Fault(absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat("cannot be decoded as BMP: ", fault));
}

// Reads a little-endian number. The caller checks the file's length.
uint32_t NumberAt(absl::string_view file, uint64_t place, int bytes) {
  uint32_t number = 0;
  for (int i = bytes - 1; i >= 0; --i) number = number << 8 | static_cast<uint8_t>(file[place + i]);
  return number;
}

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

// The bits of a colour in a pixel.
struct Mask {
  uint32_t mask = 0;
  int shift = 0;

  explicit Mask(uint32_t bits) : mask(bits) {
    while (mask != 0 && (mask >> shift & 1) == 0) ++shift;
  }
  uint8_t Of(uint32_t pixel) const {
    const uint64_t most = mask >> shift;
    return most == 0 ? 0 : static_cast<uint8_t>(((pixel & mask) >> shift) * uint64_t{255} / most);
  }
};

struct Header {
  int64_t width = 0;
  int64_t height = 0;
  bool from_top = false;
  int bits = 0;  // Of a pixel.
  uint32_t compression = kPlain;
  uint64_t pixels_at = 0;
  std::vector<Colour> palette;         // If a pixel has at most 8 bits: 256 colours.
  std::array<uint32_t, 3> masks = {};  // If a pixel has 16 or 32 bits: red, green, blue.
  bool grey = false;
};

bool HasPalette(const Header& header) { return header.bits <= 8; }

absl::Status ReadPalette(absl::string_view file, uint64_t at, int entry_bytes, uint32_t used,
                         Header& header) {
  const uint32_t most = 1U << header.bits;
  const uint32_t colours = used == 0 ? most : std::min(used, most);
  if (file.size() < at + uint64_t{colours} * entry_bytes) return Fault("the file is truncated");
  header.palette.resize(256);
  header.grey = true;
  for (uint32_t i = 0; i < colours; ++i) {
    const uint32_t entry = NumberAt(file, at + uint64_t{i} * entry_bytes, 3);
    header.palette[i] = {.red = static_cast<uint8_t>(entry >> 16),
                         .green = static_cast<uint8_t>(entry >> 8),
                         .blue = static_cast<uint8_t>(entry)};
    const Colour& colour = header.palette[i];
    header.grey = header.grey && colour.red == colour.green && colour.green == colour.blue;
  }
  return absl::OkStatus();
}

absl::StatusOr<Header> ReadHeader(absl::string_view file) {
  if (file.size() < kFileHeader + kOs2Header) return Fault("the file is truncated");
  Header header;
  header.pixels_at = NumberAt(file, 10, 4);
  const uint32_t size = NumberAt(file, kFileHeader, 4);
  uint32_t used = 0;
  if (size == kOs2Header) {
    header.width = NumberAt(file, 18, 2);
    header.height = NumberAt(file, 20, 2);
    header.bits = static_cast<int>(NumberAt(file, 24, 2));
  } else if (size >= kWindowsHeader && size <= 124) {
    if (file.size() < kFileHeader + size) return Fault("the file is truncated");
    header.width = static_cast<int32_t>(NumberAt(file, 18, 4));
    header.height = static_cast<int32_t>(NumberAt(file, 22, 4));
    header.from_top = header.height < 0;
    header.height = std::abs(header.height);
    header.bits = static_cast<int>(NumberAt(file, 28, 2));
    header.compression = NumberAt(file, 30, 4);
    used = NumberAt(file, 46, 4);
  } else {
    return Fault(absl::StrCat("a header of ", size, " bytes is not known"));
  }
  if (header.width < 1 || header.height < 1) return Fault("it has no pixels");
  if (header.height * header.width > kMaxImagePixels) {
    return Fault(
        absl::StrCat("it has ", header.width, " x ", header.height, " pixels, more than can be read"));
  }
  const int bits = header.bits;
  const bool is_known =
      bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
  const bool masks = header.compression == kMasks || header.compression == kAlphaMasks;
  if (!is_known || !(header.compression == kPlain || (header.compression == kRuns8 && bits == 8) ||
                     (header.compression == kRuns4 && bits == 4) || (masks && (bits == 16 || bits == 32)))) {
    return Fault(absl::StrCat("pixels of ", bits, " bits with the compression ", header.compression,
                              " are not known; save it as PNG"));
  }
  if (masks) {
    // The masks follow a header of 40 bytes, and are in a longer header at the same place.
    constexpr uint64_t kMasksAt = kFileHeader + kWindowsHeader;
    if (file.size() < kMasksAt + 12) return Fault("the file is truncated");
    for (int i = 0; i < 3; ++i) header.masks[i] = NumberAt(file, kMasksAt + 4 * i, 4);
  } else if (bits == 16) {
    header.masks = {0x7c00, 0x3e0, 0x1f};
  } else if (bits == 32) {
    header.masks = {0xff0000, 0xff00, 0xff};
  }
  if (HasPalette(header)) {
    const absl::Status palette =
        ReadPalette(file, kFileHeader + size, size == kOs2Header ? 3 : 4, used, header);
    if (!palette.ok()) return palette;
  }
  return header;
}

// Unpacks runs to one index a pixel, from the bottom row on. Pixels that the runs skip have the index 0.
absl::StatusOr<std::vector<uint8_t>> UnpackRuns(absl::string_view packed, const Header& header) {
  std::vector<uint8_t> indices(header.height * header.width);
  const bool halves = header.compression == kRuns4;
  int64_t x = 0, y = 0;
  size_t at = 0;
  const auto put = [&](uint8_t index) {
    if (x < header.width) indices[y * header.width + x++] = index;
  };
  // Returns index number `i` of bytes that hold one index, or two halves.
  const auto index_of = [&](size_t begin, int i) {
    const auto byte = static_cast<uint8_t>(packed[begin + (halves ? i / 2 : i)]);
    return static_cast<uint8_t>(!halves ? byte : i % 2 == 0 ? byte >> 4 : byte & 15);
  };
  while (y < header.height) {
    if (packed.size() - at < 2) return Fault("the file is truncated");
    const int count = static_cast<uint8_t>(packed[at]), second = static_cast<uint8_t>(packed[at + 1]);
    at += 2;
    if (count > 0) {
      for (int i = 0; i < count; ++i) put(halves ? (i % 2 == 0 ? second >> 4 : second & 15) : second);
    } else if (second == 0) {
      x = 0;
      ++y;
    } else if (second == 1) {
      break;
    } else if (second == 2) {
      if (packed.size() - at < 2) return Fault("the file is truncated");
      x = std::min(header.width, x + static_cast<uint8_t>(packed[at]));
      y += static_cast<uint8_t>(packed[at + 1]);
      at += 2;
    } else {
      const size_t bytes = halves ? (second + 1) / 2 : second;
      if (packed.size() - at < bytes) return Fault("the file is truncated");
      for (int i = 0; i < second; ++i) put(index_of(at, i));
      // Plain indices end at an even byte.
      at = std::min(packed.size(), at + bytes + bytes % 2);
    }
  }
  return indices;
}

// Returns the colour of pixel `x` of a plain row.
Colour ColourAt(const Header& header, absl::string_view row, int64_t x, const std::array<Mask, 3>& masks) {
  switch (header.bits) {
    case 24: {
      const uint32_t pixel = NumberAt(row, 3 * x, 3);
      return {.red = static_cast<uint8_t>(pixel >> 16),
              .green = static_cast<uint8_t>(pixel >> 8),
              .blue = static_cast<uint8_t>(pixel)};
    }
    case 16:
    case 32: {
      const int bytes = header.bits / 8;
      const uint32_t pixel = NumberAt(row, bytes * x, bytes);
      return {.red = masks[0].Of(pixel), .green = masks[1].Of(pixel), .blue = masks[2].Of(pixel)};
    }
    default: {
      const int64_t bit = x * header.bits;
      const auto byte = static_cast<uint8_t>(row[bit / 8]);
      const auto left = static_cast<int>(8 - header.bits - bit % 8);
      return header.palette[byte >> left & ((1 << header.bits) - 1)];
    }
  }
}

Image ImageOf(const Header& header) {
  return {.channels = header.grey ? 1 : 3, .height = header.height, .width = header.width, .pixels = {}};
}

}  // namespace

absl::StatusOr<Image> ReadBmpHeader(absl::string_view file) {
  const absl::StatusOr<Header> header = ReadHeader(file);
  if (!header.ok()) return header.status();
  return ImageOf(*header);
}

absl::StatusOr<Image> DecodeBmp(absl::string_view file) {
  const absl::StatusOr<Header> header = ReadHeader(file);
  if (!header.ok()) return header.status();
  if (header->pixels_at > file.size()) return Fault("the file is truncated");
  const absl::string_view content = file.substr(header->pixels_at);
  Image image = ImageOf(*header);
  const bool plain = header->compression != kRuns8 && header->compression != kRuns4;
  // Rows end at a multiple of four bytes.
  const int64_t stride = (image.width * header->bits + 31) / 32 * 4;
  if (plain && static_cast<int64_t>(content.size()) < stride * image.height)
    return Fault("the file is truncated");
  std::vector<uint8_t> indices;
  if (!plain) {
    absl::StatusOr<std::vector<uint8_t>> unpacked = UnpackRuns(content, *header);
    if (!unpacked.ok()) return unpacked.status();
    indices = *std::move(unpacked);
  }
  const std::array<Mask, 3> masks = {Mask(header->masks[0]), Mask(header->masks[1]), Mask(header->masks[2])};
  image.pixels.resize(image.height * image.width * image.channels);
  for (int64_t y = 0; y < image.height; ++y) {
    const int64_t row = header->from_top ? y : image.height - 1 - y;
    for (int64_t x = 0; x < image.width; ++x) {
      const Colour colour = plain ? ColourAt(*header, content.substr(row * stride, stride), x, masks)
                                  : header->palette[indices[row * image.width + x]];
      uint8_t* const to = image.pixels.data() + (y * image.width + x) * image.channels;
      to[0] = colour.red;
      if (image.channels == 1) continue;
      to[1] = colour.green;
      to[2] = colour.blue;
    }
  }
  return image;
}

}  // namespace tandem

#ifndef TANDEM_ENGINE_DATA_FORMATS_TEST_FILES_H_
#define TANDEM_ENGINE_DATA_FORMATS_TEST_FILES_H_

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/field_at_fault.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_bytes.h"

// Files of data for tests.

namespace tandem {

inline std::string FreshFolder() {
  std::string folder = ::testing::TempDir() + "/data_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

// Writes a file and returns its path.
inline std::string WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

inline std::string Gzipped(const std::string& content) {
  const std::string path = FreshFolder() + "/gz";
  gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  ::gzclose(file);
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

inline std::string Xzipped(const std::string& content) {
  std::string compressed(content.size() + 65536, '\0');
  size_t size = 0;
  EXPECT_EQ(::lzma_easy_buffer_encode(
                1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(content.data()),
                content.size(), reinterpret_cast<uint8_t*>(compressed.data()), &size, compressed.size()),
            LZMA_OK);
  compressed.resize(size);
  return compressed;
}

inline std::string Zstded(const std::string& content) {
  std::string compressed(ZSTD_compressBound(content.size()), '\0');
  const size_t size =
      ZSTD_compress(compressed.data(), compressed.size(), content.data(), content.size(), /*level=*/1);
  EXPECT_FALSE(ZSTD_isError(size));
  compressed.resize(size);
  return compressed;
}

inline std::string Bzipped(std::string content) {
  std::string compressed(content.size() + content.size() / 50 + 600, '\0');
  auto size = static_cast<unsigned>(compressed.size());
  EXPECT_EQ(::BZ2_bzBuffToBuffCompress(compressed.data(), &size, content.data(),
                                       static_cast<unsigned>(content.size()), /*blockSize100k=*/1,
                                       /*verbosity=*/0, /*workFactor=*/0),
            BZ_OK);
  compressed.resize(size);
  return compressed;
}

// Returns a tar archive of plain files.
inline std::string Tar(const std::vector<std::pair<std::string, std::string>>& members, char type = '0') {
  std::string tar;
  for (const auto& [name, content] : members) {
    std::string header(512, '\0');
    const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
    put(0, name);
    put(100, "0000644");
    char size[12];
    std::snprintf(size, sizeof size, "%011zo", content.size());
    put(124, size);
    header[156] = type;
    put(257, "ustar");
    put(148, "        ");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<uint8_t>(c);
    char checksum[8];
    std::snprintf(checksum, sizeof checksum, "%06o", sum);
    put(148, checksum);
    tar += header + content + std::string((512 - content.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

// Returns a BMP file of a pixel.
inline std::string PixelBmp() {
  return "BM" + Little(58, 4) + Little(0, 4) + Little(54, 4) + Little(40, 4) + Little(1, 4) + Little(1, 4) +
         Little(1, 2) + Little(24, 2) + std::string(24, '\0') + "rgb.";
}

// Returns an archive of deflated members. Uses 64-bit sizes if `large`.
inline std::string Zip(const std::vector<std::pair<std::string, std::string>>& members, bool large) {
  std::string zip, directory;
  for (const auto& [name, content] : members) {
    std::string packed(content.size() + 1000, '\0');
    z_stream stream = {};
    EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = content.size();
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = packed.size();
    EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    ::deflateEnd(&stream);
    const uint64_t crc = ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    const size_t at = zip.size();
    zip += "PK\x03\x04" + Little(20, 2) + Little(0, 2) + Little(8, 2) + Little(0, 4) + Little(crc, 4) +
           Little(packed.size(), 4) + Little(content.size(), 4) + Little(name.size(), 2) + Little(0, 2) +
           name + packed;
    const std::string extra =
        large ? Little(1, 2) + Little(16, 2) + Little(content.size(), 8) + Little(packed.size(), 8) : "";
    directory += "PK\x01\x02" + Little(20, 2) + Little(20, 2) + Little(0, 2) + Little(8, 2) + Little(0, 4) +
                 Little(crc, 4) + Little(large ? 0xFFFFFFFF : packed.size(), 4) +
                 Little(large ? 0xFFFFFFFF : content.size(), 4) + Little(name.size(), 2) +
                 Little(extra.size(), 2) + Little(0, 2) + Little(0, 8) + Little(at, 4) + name + extra;
  }
  const size_t at = zip.size();
  return zip + directory + "PK\x05\x06" + Little(0, 4) + Little(members.size(), 2) +
         Little(members.size(), 2) + Little(directory.size(), 4) + Little(at, 4) + Little(0, 2);
}

// Returns a chunk of a PNG file.
inline std::string PngChunk(const std::string& type, const std::string& data) {
  const auto big = [](uint32_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
    return bytes;
  };
  const std::string body = type + data;
  const uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big(static_cast<uint32_t>(data.size())) + body + big(static_cast<uint32_t>(crc));
}

// Expects that describing and opening both refuse the spec for a single field, with `part` in the message. If
// not `described`, expects this of opening alone.
inline void ExpectViolation(const v1::DatasetSpec& spec, const std::string& field, const std::string& part,
                            bool described = true) {
  std::vector<absl::Status> statuses = {OpenDataset(spec).status()};
  if (described) statuses.push_back(DescribeDataset(spec).status());
  for (const absl::Status& status : statuses) ExpectOneViolation(status, field, part);
}

// Returns all samples of a split. T is the type of the elements.
template <typename T>
std::vector<T> Samples(const Dataset& dataset) {
  std::vector<T> samples(dataset.size() * dataset.sample_bytes() / sizeof(T));
  std::vector<uint8_t> targets(dataset.size() * dataset.target_bytes());
  std::vector<uint32_t> indices;
  for (int64_t i = 0; i < dataset.size(); ++i) indices.push_back(static_cast<uint32_t>(i));
  EXPECT_TRUE(dataset.Gather(indices, samples.data(), targets.data()).ok());
  return samples;
}

template <typename T>
std::vector<T> Targets(const Dataset& dataset) {
  std::vector<uint8_t> samples(dataset.size() * dataset.sample_bytes());
  std::vector<T> targets(dataset.size() * dataset.target_bytes() / sizeof(T));
  std::vector<uint32_t> indices;
  for (int64_t i = 0; i < dataset.size(); ++i) indices.push_back(static_cast<uint32_t>(i));
  EXPECT_TRUE(dataset.Gather(indices, samples.data(), targets.data()).ok());
  return targets;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TEST_FILES_H_

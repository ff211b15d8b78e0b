#ifndef TANDEM_ENGINE_DATA_FORMATS_TEST_FILES_H_
#define TANDEM_ENGINE_DATA_FORMATS_TEST_FILES_H_

#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"

// Files of data for tests.

namespace tandem {

inline std::string FreshFolder() {
  std::string folder = ::testing::TempDir() + "/data_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

// Returns the path.
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

// That describing and opening both refuse the spec for one field, with `part` in the message; `described`
// false: that only opening does.
inline void ExpectViolation(const v1::DatasetSpec& spec, const std::string& field, const std::string& part,
                            bool described = true) {
  std::vector<absl::Status> statuses = {OpenDataset(spec).status()};
  if (described) statuses.push_back(DescribeDataset(spec).status());
  for (const absl::Status& status : statuses) {
    const std::vector<FieldViolation> violations = GetFieldViolations(status);
    ASSERT_EQ(violations.size(), 1) << status;
    EXPECT_EQ(violations[0].field, field);
    EXPECT_NE(violations[0].description.find(part), std::string::npos) << violations[0].description;
  }
}

// All samples of a split, T being the elements' type.
template <typename T>
std::vector<T> Samples(const Dataset& dataset) {
  std::vector<T> samples(dataset.size() * dataset.sample_bytes() / sizeof(T));
  std::vector<uint8_t> targets(dataset.size() * dataset.target_bytes());
  std::vector<uint32_t> indices;
  for (int64_t i = 0; i < dataset.size(); ++i) indices.push_back(static_cast<uint32_t>(i));
  dataset.Gather(indices, samples.data(), targets.data());
  return samples;
}

template <typename T>
std::vector<T> Targets(const Dataset& dataset) {
  std::vector<uint8_t> samples(dataset.size() * dataset.sample_bytes());
  std::vector<T> targets(dataset.size() * dataset.target_bytes() / sizeof(T));
  std::vector<uint32_t> indices;
  for (int64_t i = 0; i < dataset.size(); ++i) indices.push_back(static_cast<uint32_t>(i));
  dataset.Gather(indices, samples.data(), targets.data());
  return targets;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TEST_FILES_H_

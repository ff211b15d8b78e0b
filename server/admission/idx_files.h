#ifndef TANDEM_SERVER_ADMISSION_IDX_FILES_H_
#define TANDEM_SERVER_ADMISSION_IDX_FILES_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// Small data sets for tests.

namespace tandem {

inline std::string FreshFolder() {
  std::string folder = ::testing::TempDir() + "/admission_XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return std::filesystem::canonical(folder).string();
}

// Writes an IDX file of unsigned bytes. Without `content`, all bytes are 1, and the extents give their
// number.
inline void WriteIdx(const std::string& path, const std::vector<int>& extents, std::string content = "") {
  std::string bytes = {0, 0, 8, static_cast<char>(extents.size())};
  size_t size = 1;
  for (const int extent : extents) {
    size *= extent;
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(extent >> shift));
  }
  if (content.empty()) content.assign(size, '\x01');
  std::ofstream(path, std::ios::binary) << bytes << content;
}

// Writes the four files of a named set: images of 4 by 4 pixels, 3 classes.
inline void WriteNamedSet(const std::string& folder, int train = 12, int validation = 6) {
  std::filesystem::create_directories(folder);
  const auto labels = [](int count) {
    std::string content;
    for (int i = 0; i < count; ++i) content.push_back(static_cast<char>(i % 3));
    return content;
  };
  WriteIdx(folder + "/train-images-idx3-ubyte", {train, 4, 4});
  WriteIdx(folder + "/train-labels-idx1-ubyte", {train}, labels(train));
  WriteIdx(folder + "/t10k-images-idx3-ubyte", {validation, 4, 4});
  WriteIdx(folder + "/t10k-labels-idx1-ubyte", {validation}, labels(validation));
}

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_IDX_FILES_H_

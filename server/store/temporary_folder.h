#ifndef TANDEM_SERVER_STORE_TEMPORARY_FOLDER_H_
#define TANDEM_SERVER_STORE_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace tandem {

// For tests: an empty folder, removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(testing::TempDir() + "/tandem-") {}
  // The path is `prefix` and six random characters.
  explicit TemporaryFolder(const std::string& prefix) : path_(prefix + "XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_TEMPORARY_FOLDER_H_

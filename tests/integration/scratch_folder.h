#ifndef TANDEM_TESTS_INTEGRATION_SCRATCH_FOLDER_H_
#define TANDEM_TESTS_INTEGRATION_SCRATCH_FOLDER_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/integration/subprocess.h"

namespace tandem::testing {

// A new folder under /tmp. Its path is short because the daemon puts a Unix socket into its state folder. At
// the end of the object, or of the test's process in any way, every process that mentions the folder is
// killed and the folder is removed.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  // Returns a path in the folder.
  std::string File(absl::string_view name) const;
  // Writes a file in the folder and returns its path.
  std::string Write(absl::string_view name, absl::string_view content) const;

 private:
  std::string path_;
  // Only this process holds the pipe open. Its end tells the guard that the process has ended.
  int guard_pipe_ = -1;
  std::unique_ptr<Subprocess> guard_;
};

// Returns a file's content, or "" if the file does not exist.
std::string ReadFile(const std::string& path);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_SCRATCH_FOLDER_H_

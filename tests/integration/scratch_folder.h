#ifndef TANDEM_TESTS_INTEGRATION_SCRATCH_FOLDER_H_
#define TANDEM_TESTS_INTEGRATION_SCRATCH_FOLDER_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/integration/subprocess.h"

namespace tandem::testing {

// A new folder under /tmp (a short path: the daemon puts a Unix socket into its state folder). With the
// object, or with the test's process however it ends, every process that mentions the folder is killed and
// the folder removed.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  // A path in the folder.
  std::string File(absl::string_view name) const;
  // Writes a file in the folder and returns its path.
  std::string Write(absl::string_view name, absl::string_view content) const;

 private:
  std::string path_;
  // Held open by this process alone: its end tells the guard that the process is gone.
  int guard_pipe_ = -1;
  std::unique_ptr<Subprocess> guard_;
};

// A file's content; empty where there is none.
std::string ReadFile(const std::string& path);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_SCRATCH_FOLDER_H_

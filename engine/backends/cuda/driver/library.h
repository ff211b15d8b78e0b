#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LIBRARY_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::cuda {

// A shared library that is loaded when it is needed, so that a program starts where it is missing. It stays
// loaded. A value.
class Library {
 public:
  // Loads the first of `sonames` that is found: where the system looks (LD_LIBRARY_PATH among it), in
  // $CUDA_HOME, in the toolkit's usual places, and where NVIDIA's Python wheels put it beside what
  // LD_LIBRARY_PATH names. UNAVAILABLE, with what was looked for and where; `name` is what people call it.
  static absl::StatusOr<Library> Open(absl::string_view name, const std::vector<std::string>& sonames);

  // Sets `function`, a pointer, to the library's function of that name. UNAVAILABLE where it has none: it is
  // too old.
  template <typename Function>
  absl::Status Find(const char* symbol, Function** function) const {
    void* found = nullptr;
    absl::Status status = FindAddress(symbol, &found);
    *function = reinterpret_cast<Function*>(found);
    return status;
  }

  // The file that was loaded.
  const std::string& path() const { return path_; }

 private:
  Library(std::string name, std::string path, void* handle)
      : name_(std::move(name)), path_(std::move(path)), handle_(handle) {}
  absl::Status FindAddress(const char* symbol, void** address) const;

  std::string name_;
  std::string path_;
  void* handle_;
};

// Folders where Library::Open looks after the system's own search, in order: what follows from the values of
// LD_LIBRARY_PATH and CUDA_HOME.
std::vector<std::string> LibraryFolders(absl::string_view library_path, absl::string_view cuda_home);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LIBRARY_H_

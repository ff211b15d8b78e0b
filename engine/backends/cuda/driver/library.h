#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LIBRARY_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::cuda {

// A shared library that is loaded on demand, so that a program starts without it. It is never unloaded. A
// value type.
class Library {
 public:
  // Loads the first of `sonames` that is found. Searches the system's places (with LD_LIBRARY_PATH),
  // $CUDA_HOME, the toolkit's usual places, and the places of NVIDIA's Python wheels beside LD_LIBRARY_PATH.
  // UNAVAILABLE with the names and the searched places. `name` is the library's name for people.
  static absl::StatusOr<Library> Open(absl::string_view name, const std::vector<std::string>& sonames);

  // Sets `function`, a pointer, to the library's function of this name. UNAVAILABLE if the library is too old
  // to have it.
  template <typename Function>
  absl::Status Find(const char* symbol, Function** function) const {
    void* found = nullptr;
    absl::Status status = FindAddress(symbol, &found);
    *function = reinterpret_cast<Function*>(found);
    return status;
  }

  // Returns the path of the loaded file.
  const std::string& path() const { return path_; }

 private:
  Library(std::string name, std::string path, void* handle)
      : name_(std::move(name)), path_(std::move(path)), handle_(handle) {}
  absl::Status FindAddress(const char* symbol, void** address) const;

  std::string name_;
  std::string path_;
  void* handle_;
};

// Returns the folders that Library::Open searches after the system's places, in order, for these values of
// LD_LIBRARY_PATH and CUDA_HOME.
std::vector<std::string> LibraryFolders(absl::string_view library_path, absl::string_view cuda_home);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LIBRARY_H_

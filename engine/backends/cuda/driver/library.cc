#include "engine/backends/cuda/driver/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem::cuda {
namespace {

// Folders of NVIDIA's Python wheels: site-packages/nvidia/<folder>/lib.
constexpr absl::string_view kWheels[] = {"cu13", "cudnn", "cublas", "cuda_nvrtc", "nccl"};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string LastError() {
  const char* error = ::dlerror();
  return error == nullptr ? "unknown error" : error;
}

}  // namespace

std::vector<std::string> LibraryFolders(absl::string_view library_path, absl::string_view cuda_home) {
  std::vector<std::string> folders;
  const auto add = [&](std::string folder) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(std::move(folder));
  };
  for (absl::string_view folder : absl::StrSplit(library_path, ':', absl::SkipEmpty())) {
    while (absl::ConsumeSuffix(&folder, "/")) {
    }
    // .../nvidia/<wheel>/lib
    const std::vector<absl::string_view> parts = absl::StrSplit(folder, '/');
    if (parts.size() < 3 || parts.back() != "lib" || parts[parts.size() - 3] != "nvidia") continue;
    const std::string wheels = absl::StrJoin(parts.begin(), parts.end() - 2, "/");
    for (const absl::string_view wheel : kWheels) add(absl::StrCat(wheels, "/", wheel, "/lib"));
  }
  for (const absl::string_view home : {cuda_home, absl::string_view("/usr/local/cuda")}) {
    if (home.empty()) continue;
    add(absl::StrCat(home, "/lib64"));
    add(absl::StrCat(home, "/lib"));
  }
  add("/usr/lib/x86_64-linux-gnu");
  return folders;
}

absl::StatusOr<Library> Library::Open(absl::string_view name, const std::vector<std::string>& sonames) {
  const std::vector<std::string> folders = LibraryFolders(Variable("LD_LIBRARY_PATH"), Variable("CUDA_HOME"));
  std::string broken;  // A library that exists and could not be loaded.
  for (const std::string& soname : sonames) {
    if (void* handle = ::dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return Library(std::string(name), soname, handle);
    }
    const std::string error = LastError();
    if (!absl::StrContains(error, "No such file")) absl::StrAppend(&broken, "; ", error);
    for (const std::string& folder : folders) {
      const std::string path = absl::StrCat(folder, "/", soname);
      if (::access(path.c_str(), F_OK) != 0) continue;
      if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
        return Library(std::string(name), path, handle);
      }
      absl::StrAppend(&broken, "; ", LastError());
    }
  }
  return absl::UnavailableError(absl::StrCat(
      name, " cannot be loaded: looked for ", absl::StrJoin(sonames, ", "),
      " where the system looks (LD_LIBRARY_PATH is \"", Variable("LD_LIBRARY_PATH"), "\") and in ",
      absl::StrJoin(folders, ", "), broken, ". Install it, or put its folder into LD_LIBRARY_PATH"));
}

absl::Status Library::FindAddress(const char* symbol, void** address) const {
  *address = ::dlsym(handle_, symbol);
  if (*address != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(name_, " (", path_, ") has no ", symbol, ": it is too old, or not what its name says"));
}

}  // namespace tandem::cuda

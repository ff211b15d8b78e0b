#include "engine/backends/device_factory.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(absl::string_view name, int threads, DType compute) {
  const absl::string_view short_name = absl::StripPrefix(name, "devices/");
  const size_t colon = short_name.find(':');
  int index = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(short_name.substr(colon + 1), &index) ||
      index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no device's name; give one such as \"cpu:0\""));
  }
  const absl::string_view kind = short_name.substr(0, colon);
  if (kind == "cpu") {
    return std::make_unique<CpuDevice>(std::string(short_name), std::max(threads, 1), compute);
  }
  if (kind == "reference") return CreateReferenceDevice(std::string(short_name));
  if (kind == "gpu") {
#ifdef TANDEM_CUDA_FOUND
    constexpr absl::string_view kToolkit = "the build found a CUDA toolkit, but";
#else
    constexpr absl::string_view kToolkit = "the build found no CUDA toolkit, and";
#endif
    return absl::UnimplementedError(
        absl::StrCat("\"", name, "\": ", kToolkit, " this version has no backend for GPUs"));
  }
  return absl::UnimplementedError(
      absl::StrCat("\"", name, "\": this program was built without devices of the kind \"", kind, "\""));
}

}  // namespace tandem

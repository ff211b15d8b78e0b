// A library that records each kernel, copy and fill of a CUDA program, also those of graphs. The driver loads
// the library into a program if CUDA_INJECTION64_PATH names it:
//
//   CUDA_INJECTION64_PATH=kernel_trace.so TANDEM_KERNEL_TRACE=FILE PROGRAM
//
// A line of FILE has the start and the end in nanoseconds, the stream, and the kernel's name, apart by tabs.
// The lines are in the order of their ends. FILE is complete once the program has ended. Needs libcupti in
// LD_LIBRARY_PATH. Nsight Compute (ncu) cannot stand in: it ends a program at its first cooperative kernel.
#include <cupti.h>
#include <dlfcn.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t kBufferBytes = 8 << 20;

std::FILE* trace = nullptr;

// The functions of CUPTI.
struct Cupti {
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityFlushAll) flush_all;
};
Cupti cupti;

void Write(uint64_t start, uint64_t end, uint32_t stream, const char* name) {
  std::fprintf(trace, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\t%s\n", start, end, stream, name);
}

void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      Write(kernel.start, kernel.end, kernel.streamId, kernel.name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      Write(copy.start, copy.end, copy.streamId, "copy");
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      const auto& fill = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      Write(fill.start, fill.end, fill.streamId, "fill");
    }
  }
  std::free(buffer);
}

void Finish() {
  cupti.flush_all(1);
  std::fclose(trace);
}

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// Returns null, or the reason why nothing is recorded.
const char* Start() {
  const char* path = std::getenv("TANDEM_KERNEL_TRACE");
  if (path == nullptr) return "TANDEM_KERNEL_TRACE is not set";
  void* library = dlopen(TANDEM_CUPTI, RTLD_NOW);
  if (library == nullptr) return dlerror();
  if (!Find(library, "cuptiActivityEnable", &cupti.enable) ||
      !Find(library, "cuptiActivityRegisterCallbacks", &cupti.register_callbacks) ||
      !Find(library, "cuptiActivityGetNextRecord", &cupti.next_record) ||
      !Find(library, "cuptiActivityFlushAll", &cupti.flush_all)) {
    return dlerror();
  }
  trace = std::fopen(path, "w");
  if (trace == nullptr) return "the file cannot be written";
  std::atexit(Finish);
  const bool enabled = cupti.register_callbacks(GiveBuffer, TakeBuffer) == CUPTI_SUCCESS &&
                       cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS &&
                       cupti.enable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_SUCCESS &&
                       cupti.enable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS;
  return enabled ? nullptr : "CUPTI refuses to record";
}

}  // namespace

// The driver calls this function once, before the program's first call of CUDA returns.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* reason = Start();
  if (reason != nullptr) std::fprintf(stderr, "cannot trace kernels: %s; see kernel_trace.cc\n", reason);
  return reason == nullptr;
}

#include "engine/backends/cpu/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace tandem::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kCacheLine = 64;

}  // namespace

Memory Memory::Allocate(int64_t bytes) {
  const int64_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const int64_t size = ((bytes < 1 ? 1 : bytes) + alignment - 1) / alignment * alignment;
  Memory memory;
  memory.data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
  if (memory.data_ == nullptr) return memory;
  // A hint: without huge pages it works as well.
  if (alignment == kHugePage) madvise(memory.data_.get(), size, MADV_HUGEPAGE);
  std::memset(memory.data_.get(), 0, size);
  memory.bytes_ = bytes;
  return memory;
}

void Memory::Free::operator()(std::byte* data) const { std::free(data); }

}  // namespace tandem::cpu

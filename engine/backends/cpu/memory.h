#ifndef TANDEM_ENGINE_BACKENDS_CPU_MEMORY_H_
#define TANDEM_ENGINE_BACKENDS_CPU_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tandem::cpu {

// Zeroed memory, aligned to 64 bytes. Large pieces request huge pages.
class Memory {
 public:
  Memory() = default;
  // Returns an empty Memory if the system has not enough memory.
  static Memory Allocate(int64_t bytes);

  std::byte* data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  int64_t bytes_ = 0;
};

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_MEMORY_H_

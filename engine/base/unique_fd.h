#ifndef TANDEM_ENGINE_BASE_UNIQUE_FD_H_
#define TANDEM_ENGINE_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace tandem {

// Owns a file descriptor and closes it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_UNIQUE_FD_H_

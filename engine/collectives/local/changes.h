#ifndef TANDEM_ENGINE_COLLECTIVES_LOCAL_CHANGES_H_
#define TANDEM_ENGINE_COLLECTIVES_LOCAL_CHANGES_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tandem {

// Lets the threads of a group wait for each other's actions. Thread-safe.
class Changes {
 public:
  explicit Changes(int threads);
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  // Announces a change that others may wait for. The released threads see all earlier writes of the caller.
  void Announce();

  // Returns as soon as `holds()` is true. Checks it again and again, and at least after each announcement.
  // Spins briefly, then yields its core for up to a millisecond, then sleeps.
  template <typename Condition>
  void Await(const Condition& holds) const {
    for (int i = 0; i < spins_; ++i) {
      if (holds()) return;
      Pause();
    }
    if (spins_ > 0) {
      const auto end = std::chrono::steady_clock::now() + kYields;
      do {
        std::this_thread::yield();
        if (holds()) return;
      } while (std::chrono::steady_clock::now() < end);
    }
    while (true) {
      const uint32_t seen = count_.load(std::memory_order_acquire);
      if (holds()) return;
      count_.wait(seen, std::memory_order_acquire);
    }
  }

 private:
  // The threads of a step differ by up to a few hundred microseconds. A thread that sleeps for such a time
  // wakes up late. Its idle core also attracts the other threads, away from their caches.
  static constexpr std::chrono::microseconds kYields{1000};

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  const int spins_;
  // The number of announcements, on its own cache line.
  alignas(64) std::atomic<uint32_t> count_{0};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_LOCAL_CHANGES_H_

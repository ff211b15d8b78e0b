#ifndef TANDEM_ENGINE_COLLECTIVES_LOCAL_CHANGES_H_
#define TANDEM_ENGINE_COLLECTIVES_LOCAL_CHANGES_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tandem {

// By which the threads of a group wait for what others of them do. Thread-safe.
class Changes {
 public:
  explicit Changes(int threads);
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  // Says that something has changed for which others may wait. What the caller wrote before is seen by those
  // whom it releases.
  void Announce();

  // Returns as soon as `holds()`, which is asked again and again, and at the latest after each announcement.
  // Spins briefly, then offers its core to others for up to a millisecond, then sleeps.
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
  // A step's threads differ by up to a few hundred microseconds; who sleeps for those is late itself by the
  // time of its wake-up, and its idle core draws the others' threads to it, away from their caches.
  static constexpr std::chrono::microseconds kYields{1000};

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  const int spins_;
  // Of announcements; on its own cache line.
  alignas(64) std::atomic<uint32_t> count_{0};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_LOCAL_CHANGES_H_

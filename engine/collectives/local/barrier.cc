#include "engine/collectives/local/barrier.h"

#include <chrono>
#include <thread>

namespace tandem {
namespace {

constexpr uint32_t kBroken = 1;
constexpr uint32_t kMeeting = 2;
// About 20 microseconds, the order of a wake-up by the system. Pointless with more threads than cores.
constexpr int kSpins = 1000;
// Then a thread that waits offers its core to others until so much time has passed, and sleeps only after
// that. A step's threads differ by up to a few hundred microseconds; who sleeps for those is late itself by
// the time of its wake-up, and its idle core draws the others' threads to it, away from their caches.
constexpr std::chrono::microseconds kYields(1000);

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Barrier::Barrier(int threads)
    : threads_(threads),
      spins_(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency() ? kSpins : 0) {}

uint32_t Barrier::WaitForChange(uint32_t seen) {
  for (int i = 0; i < spins_; ++i) {
    const uint32_t word = word_.load(std::memory_order_acquire);
    if (word != seen) return word;
    Pause();
  }
  if (spins_ > 0) {
    const auto end = std::chrono::steady_clock::now() + kYields;
    do {
      std::this_thread::yield();
      const uint32_t word = word_.load(std::memory_order_acquire);
      if (word != seen) return word;
    } while (std::chrono::steady_clock::now() < end);
  }
  word_.wait(seen, std::memory_order_acquire);
  return word_.load(std::memory_order_acquire);
}

bool Barrier::Meet(bool heeds_break) {
  uint32_t seen = word_.load(std::memory_order_acquire);
  if (heeds_break && (seen & kBroken) != 0) return false;
  const uint32_t meeting = seen / kMeeting;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    // The meeting takes place or is broken: one exchange decides that for all.
    do {
      if (heeds_break && (seen & kBroken) != 0) return false;
    } while (!word_.compare_exchange_weak(seen, seen + kMeeting, std::memory_order_acq_rel));
    word_.notify_all();
    return true;
  }
  while (seen / kMeeting == meeting) {
    if (heeds_break && (seen & kBroken) != 0) return false;
    seen = WaitForChange(seen);
  }
  return true;
}

void Barrier::Break() {
  word_.fetch_or(kBroken, std::memory_order_acq_rel);
  word_.notify_all();
}

}  // namespace tandem

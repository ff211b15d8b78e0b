#ifndef TANDEM_ENGINE_COLLECTIVES_LOCAL_BARRIER_H_
#define TANDEM_ENGINE_COLLECTIVES_LOCAL_BARRIER_H_

#include <atomic>
#include <cstdint>

namespace tandem {

// Where the threads of a group meet, again and again. What a thread wrote before it arrived is seen by all
// after they left. Thread-safe. Every thread of the group calls Arrive or Complete in the same order; a group
// whose Arrive returned false meets no more.
class Barrier {
 public:
  explicit Barrier(int threads);
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Returns true when all threads have arrived, or false where the barrier was broken before that: then for
  // every thread of this meeting alike.
  bool Arrive() { return Meet(/*heeds_break=*/true); }
  // As Arrive, but a break is ignored: for meetings to which all threads are certain to come.
  void Complete() { Meet(/*heeds_break=*/false); }

  // Makes every Arrive that has not all of its threads return false, for ever.
  void Break();

 private:
  bool Meet(bool heeds_break);
  uint32_t WaitForChange(uint32_t seen);

  const uint32_t threads_;
  const int spins_;
  // Threads that wait in the meeting in progress; on its own cache line, as `word_` is polled.
  alignas(64) std::atomic<uint32_t> arrived_{0};
  // Twice the number of meetings, plus 1 once broken.
  alignas(64) std::atomic<uint32_t> word_{0};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_LOCAL_BARRIER_H_

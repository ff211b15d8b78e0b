#ifndef TANDEM_ENGINE_BACKENDS_CPU_TEAM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_TEAM_H_

#include <cstdint>

namespace tandem::cpu {

// The threads of a replica: the calling thread and its OpenMP team, which oneDNN also uses. A loop is cut
// into a contiguous range for each thread. The cuts are always the same, so results do not vary between runs.
class Team {
 public:
  explicit Team(int threads) : threads_(threads < 1 ? 1 : threads) {}

  int threads() const { return threads_; }

  // Calls function(begin, end) for ranges that cover [0, items), one for each thread. Returns when all are
  // done. `function` must not throw.
  template <typename Function>
  void For(int64_t items, const Function& function) const {
    if (threads_ == 1 || items <= 1) {
      if (items > 0) function(int64_t{0}, items);
      return;
    }
    Run(
        items,
        [](const void* f, int64_t begin, int64_t end) { (*static_cast<const Function*>(f))(begin, end); },
        &function);
  }

 private:
  using Body = void (*)(const void* function, int64_t begin, int64_t end);
  void Run(int64_t items, Body body, const void* function) const;

  int threads_;
};

// During its lifetime, the calling thread's OpenMP team has the size of `team`, and its threads flush
// denormal numbers to zero, in results and operands. Otherwise the momentum of a weight with zero gradients
// would decay into denormal numbers, whose arithmetic is many times slower.
class ScopedTeam {
 public:
  explicit ScopedTeam(const Team& team);
  ~ScopedTeam();
  ScopedTeam(const ScopedTeam&) = delete;
  ScopedTeam& operator=(const ScopedTeam&) = delete;

 private:
  int previous_threads_;
  unsigned previous_modes_;
};

// During its lifetime, the calling thread computes with denormal numbers, also within a ScopedTeam.
class ScopedDenormals {
 public:
  ScopedDenormals();
  ~ScopedDenormals();
  ScopedDenormals(const ScopedDenormals&) = delete;
  ScopedDenormals& operator=(const ScopedDenormals&) = delete;

 private:
  unsigned previous_modes_;
};

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_TEAM_H_

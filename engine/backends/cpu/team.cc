#include "engine/backends/cpu/team.h"

#include <xmmintrin.h>

#include "engine/base/mutex.h"

// GNU OpenMP's own entry points, which oneDNN's loops also call. With them a loop joins the same team,
// whatever compiler built it.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace tandem::cpu {
namespace {

// Bits of MXCSR: flush to zero, and denormals are zero.
constexpr unsigned kFlushDenormals = 0x8040;

struct Loop {
  void (*body)(const void* function, int64_t begin, int64_t end);
  const void* function;
  int64_t items;
};

// Reports the beginning and the end of a team's loop to the thread sanitizer, which cannot see inside the
// system's OpenMP.
void RunShare(void* data) {
  TANDEM_TSAN_ACQUIRED(data);
  const Loop& loop = *static_cast<const Loop*>(data);
  const int64_t thread = omp_get_thread_num();
  const int64_t threads = omp_get_num_threads();
  const int64_t begin = loop.items * thread / threads;
  const int64_t end = loop.items * (thread + 1) / threads;
  if (begin < end) loop.body(loop.function, begin, end);
  TANDEM_TSAN_RELEASING(data);
}

void FlushDenormals(void*) { _mm_setcsr(_mm_getcsr() | kFlushDenormals); }

}  // namespace

void Team::Run(int64_t items, Body body, const void* function) const {
  Loop loop = {body, function, items};
  TANDEM_TSAN_RELEASING(&loop);
  GOMP_parallel(RunShare, &loop, static_cast<unsigned>(threads_), 0);
  TANDEM_TSAN_ACQUIRED(&loop);
}

ScopedTeam::ScopedTeam(const Team& team)
    : previous_threads_(omp_get_max_threads()), previous_modes_(_mm_getcsr()) {
  omp_set_num_threads(team.threads());
  if (team.threads() == 1) {
    FlushDenormals(nullptr);
  } else {
    GOMP_parallel(FlushDenormals, nullptr, static_cast<unsigned>(team.threads()), 0);
  }
}

ScopedTeam::~ScopedTeam() {
  _mm_setcsr(previous_modes_);
  omp_set_num_threads(previous_threads_);
}

ScopedDenormals::ScopedDenormals() : previous_modes_(_mm_getcsr()) {
  _mm_setcsr(previous_modes_ & ~kFlushDenormals);
}

ScopedDenormals::~ScopedDenormals() { _mm_setcsr(previous_modes_); }

}  // namespace tandem::cpu

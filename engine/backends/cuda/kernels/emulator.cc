#include "engine/backends/cuda/kernels/emulator.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "engine/backends/cuda/kernels/launch_limits.h"

// Stores the running stack's registers on it and its pointer in *from, then resumes the stack `to`.
// swapcontext() makes two system calls for this, which took four fifths of a test's time.
extern "C" void TandemSwitchStack(void** from, void* to) __attribute__((visibility("hidden")));

asm(R"(
  .pushsection .text
  .hidden TandemSwitchStack
  .globl TandemSwitchStack
  .type TandemSwitchStack, @function
TandemSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size TandemSwitchStack, . - TandemSwitchStack
  .popsection
)");

namespace tandem::cuda::emulator {

thread_local Position position;

namespace {

constexpr size_t kStackBytes = 128 << 10;
// The number of registers that TandemSwitchStack stores.
constexpr int kStoredRegisters = 6;

// A stack that runs threads of a block, one after the other, until one of them must wait.
struct Fiber {
  enum class State : uint8_t { kIdle, kReady, kAtBlock, kAtWarp };
  std::unique_ptr<char[]> stack;
  void* stack_pointer = nullptr;  // While the fiber does not run.
  State state = State::kIdle;
  unsigned thread = 0;
};

// The block that runs on this host thread.
class Block {
 public:
  void Run(int threads, absl::FunctionRef<void()> body) {
    threads_ = static_cast<unsigned>(threads);
    body_ = &body;
    next_ = 0;
    ended_ = 0;
    const unsigned warps = (threads_ + kWarp - 1) / kWarp;
    exchanged_.assign(warps * size_t{2} * kWarp, 0);
    phases_.assign(threads_, 0);
    alive_.assign(warps, 0);
    for (unsigned thread = 0; thread < threads_; ++thread) ++alive_[thread / kWarp];
    while (ended_ < threads_) {
      while (next_ < threads_) Resume(IdleFiber());
      if (ended_ == threads_) break;
      Release();
    }
  }

  void Wait(Fiber::State why) {
    Fiber* fiber = running_;
    fiber->state = why;
    TandemSwitchStack(&fiber->stack_pointer, scheduler_);
  }

  uint64_t Exchange(uint64_t bits, int lane) {
    uint64_t* slots = Slots();
    slots[position.thread.x % kWarp] = bits;
    Wait(Fiber::State::kAtWarp);
    return slots[lane];
  }

  uint32_t Ballot(bool vote) {
    uint64_t* slots = Slots();
    slots[position.thread.x % kWarp] = vote ? 1 : 0;
    Wait(Fiber::State::kAtWarp);
    uint32_t votes = 0;
    for (int lane = 0; lane < kWarp; ++lane) votes |= static_cast<uint32_t>(slots[lane]) << lane;
    return votes;
  }

 private:
  // Two sets are used in turns: a lane may store its next value before another lane has read this one.
  uint64_t* Slots() {
    const unsigned thread = position.thread.x;
    const size_t phase = phases_[thread]++ % 2;
    return &exchanged_[(thread / kWarp * size_t{2} + phase) * kWarp];
  }

  Fiber* IdleFiber() {
    for (const auto& fiber : fibers_) {
      if (fiber->state == Fiber::State::kIdle) return fiber.get();
    }
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = std::make_unique<char[]>(kStackBytes);
    // The first switch to the fiber loads zeros into registers and returns to FiberMain. A function starts
    // with its return address on a stack that was aligned to 16 bytes before.
    auto* top =
        reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(fiber->stack.get() + kStackBytes) / 16 * 16);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&Block::FiberMain);
    for (int i = 0; i < kStoredRegisters; ++i) *--top = nullptr;
    fiber->stack_pointer = top;
    fibers_.push_back(std::move(fiber));
    return fibers_.back().get();
  }

  static void FiberMain();

  void RunThreads() {
    Fiber* self = running_;
    while (next_ < threads_) {
      self->state = Fiber::State::kReady;
      self->thread = next_++;
      position.thread = {self->thread, 0, 0};
      (*body_)();
      ++ended_;
      --alive_[self->thread / kWarp];
    }
    self->state = Fiber::State::kIdle;
    TandemSwitchStack(&self->stack_pointer, scheduler_);
  }

  void Resume(Fiber* fiber) {
    running_ = fiber;
    if (fiber->state != Fiber::State::kIdle) position.thread = {fiber->thread, 0, 0};
    fiber->state = Fiber::State::kReady;
    TandemSwitchStack(&scheduler_, fiber->stack_pointer);
  }

  // Resumes the threads whose partners have all arrived.
  void Release() {
    unsigned at_block = 0;
    std::vector<unsigned> at_warp(alive_.size(), 0);
    for (const auto& fiber : fibers_) {
      if (fiber->state == Fiber::State::kAtBlock) ++at_block;
      if (fiber->state == Fiber::State::kAtWarp) ++at_warp[fiber->thread / kWarp];
    }
    std::vector<Fiber*> free;
    for (const auto& fiber : fibers_) {
      const unsigned warp = fiber->thread / kWarp;
      if ((fiber->state == Fiber::State::kAtBlock && at_block == threads_ - ended_) ||
          (fiber->state == Fiber::State::kAtWarp && at_warp[warp] == alive_[warp])) {
        free.push_back(fiber.get());
      }
    }
    if (free.empty()) {
      std::fputs("cuda emulation: the threads of a block wait for each other at different barriers\n",
                 stderr);
      std::abort();
    }
    for (Fiber* fiber : free) Resume(fiber);
  }

  unsigned threads_ = 0;
  const absl::FunctionRef<void()>* body_ = nullptr;
  unsigned next_ = 0;          // The next thread to begin.
  unsigned ended_ = 0;         // The number of ended threads.
  void* scheduler_ = nullptr;  // The stack pointer of Run's caller.
  Fiber* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<uint64_t> exchanged_;
  std::vector<size_t> phases_;   // By thread.
  std::vector<unsigned> alive_;  // By warp: threads that have not ended.
};

thread_local std::unique_ptr<Block> block_of_thread;

void Block::FiberMain() {
  while (true) block_of_thread->RunThreads();
}

}  // namespace

void Run(Index grid, int threads, absl::FunctionRef<void()> body) {
  if (grid.x > kMostGridX || grid.y > kMostGridY || grid.z > kMostGridZ) {
    std::fprintf(stderr, "cuda emulation: CUDA refuses a grid of %u x %u x %u blocks\n", grid.x, grid.y,
                 grid.z);
    std::abort();
  }
  if (block_of_thread == nullptr) block_of_thread = std::make_unique<Block>();
  position.block_size = {static_cast<unsigned>(threads), 1, 1};
  position.grid_size = grid;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        position.block = {x, y, z};
        block_of_thread->Run(threads, body);
      }
    }
  }
}

void SyncBlock() { block_of_thread->Wait(Fiber::State::kAtBlock); }
uint64_t Exchange(uint64_t bits, int lane) { return block_of_thread->Exchange(bits, lane); }
uint32_t Ballot(bool vote) { return block_of_thread->Ballot(vote); }

}  // namespace tandem::cuda::emulator

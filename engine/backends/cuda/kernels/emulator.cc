#include "engine/backends/cuda/kernels/emulator.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/types/optional.h"

namespace tandem::cuda::emulator {

thread_local Position position;

namespace {

constexpr size_t kStackBytes = 128 << 10;

// A stack that runs threads of a block, one after the other until one of them has to wait.
struct Fiber {
  enum class State : uint8_t { kIdle, kReady, kAtBlock, kAtWarp };
  ucontext_t context;
  std::unique_ptr<char[]> stack;
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
    swapcontext(&fiber->context, &scheduler_);
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
  // Two sets take turns: a lane may bring the next value before another has read this one.
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
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = kStackBytes;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, &Block::FiberMain, 0);
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
    swapcontext(&self->context, &scheduler_);
  }

  void Resume(Fiber* fiber) {
    running_ = fiber;
    if (fiber->state != Fiber::State::kIdle) position.thread = {fiber->thread, 0, 0};
    fiber->state = Fiber::State::kReady;
    swapcontext(&scheduler_, &fiber->context);
  }

  // Lets those go on for whom all others have come.
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
  unsigned next_ = 0;   // The next thread that begins.
  unsigned ended_ = 0;  // How many have ended.
  ucontext_t scheduler_;
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

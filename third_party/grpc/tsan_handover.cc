// Tells the thread sanitizer how gRPC hands work from a thread to another. gRPC and its locks (Abseil's) were
// not compiled for the sanitizer, so the sanitizer would report a race for every two callbacks. This file
// defines the functions by which gRPC's libraries call each other a second time, in the program. The loader
// finds these definitions first. Each definition tells the sanitizer the order of events, and calls the
// library's function.
//
// The sanitizer learns only the promises of gRPC 1.51, so it still finds races within handlers and callbacks:
// - gRPC's locks and condition variables are locks and condition variables;
// - all work before the start of a batch of operations happens before the batch's completion;
// - all callbacks of a call happen before the call's OnDone;
// - all callbacks of a server's calls happen before its Shutdown returns.
// This is enough for generated services. Generic services use more functions inside the library.
//
// Compile this file without the sanitizer: the sanitizer must not judge it.

#include <absl/base/internal/raw_logging.h>
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpcpp/server.h>
#include <grpcpp/support/server_callback.h>
#include <link.h>
#include <sanitizer/tsan_interface.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

namespace {

// Returns the library's function of this name. The program's definition hides it.
template <typename Function>
Function* Library(const char* mangled_name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, mangled_name));
}

// Completion queues.

using Functor = grpc_completion_queue_functor;
using Run = decltype(Functor::functor_run);

// gRPC has a callback function for calls' statuses and another for all other batches.
constexpr size_t kMostFunctions = 4;
std::array<std::atomic<Run>, kMostFunctions> functions;

template <size_t index>
void AcquireAndRun(Functor* functor, int ok) {
  __tsan_acquire(functor);
  functions[index].load()(functor, ok);
}

template <size_t... indices>
constexpr std::array<Run, kMostFunctions> Wrappers(std::index_sequence<indices...>) {
  return {AcquireAndRun<indices>...};
}
constexpr std::array<Run, kMostFunctions> kWrappers = Wrappers(std::make_index_sequence<kMostFunctions>());

bool IsCode(void* address) {
  const auto contains = [](dl_phdr_info* object, size_t, void* address) -> int {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& segment = object->dlpi_phdr[i];
      const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - object->dlpi_addr - segment.p_vaddr;
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && offset < segment.p_memsz) return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(contains, address) != 0;
}

// The tag of a callback begins with the function to run. The tag of a polled queue begins with a virtual
// table.
void WrapCallback(void* tag) {
  auto* const functor = static_cast<Functor*>(tag);
  const Run run = functor->functor_run;
  for (const Run wrapper : kWrappers) {
    if (run == wrapper) return;
  }
  if (!IsCode(reinterpret_cast<void*>(run))) return;
  for (size_t i = 0; i < kMostFunctions; ++i) {
    Run known = nullptr;
    if (functions[i].compare_exchange_strong(known, run) || known == run) {
      functor->functor_run = kWrappers[i];
      return;
    }
  }
  ABSL_RAW_LOG(FATAL, "gRPC has more kinds of callbacks than %zu", kMostFunctions);
}

}  // namespace

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static auto* const library = Library<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  // A batch without operations may have a tag of the library, whose completion follows at once.
  if (count > 0 && tag != nullptr) {
    __tsan_release(tag);
    WrapCallback(tag);
  }
  return library(call, ops, count, tag, reserved);
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag, gpr_timespec deadline,
                                       void* reserved) {
  static auto* const library = Library<decltype(grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  const grpc_event event = library(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(tag);
  return event;
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline, void* reserved) {
  static auto* const library = Library<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = library(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

// Calls and servers. Their reference counts are released in two places: in the program, by code in gRPC's
// headers that the sanitizer sees, and in the library, where the sanitizer sees nothing.

namespace grpc {
namespace internal {

void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  static auto* const library =
      Library<void(ServerCallbackCall*, bool)>("_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  __tsan_acquire(&callbacks_outstanding_);
  library(this, inline_ondone);
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  static auto* const library = Library<void(ServerCallbackCall*, ServerReactor*)>(
      "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE");
  __tsan_acquire(&on_cancel_conditions_remaining_);
  library(this, reactor);
}

}  // namespace internal

void Server::UnrefWithPossibleNotify() {
  static auto* const library = Library<void(Server*)>("_ZN4grpc6Server23UnrefWithPossibleNotifyEv");
  __tsan_release(this);
  library(this);
}

void Server::UnrefAndWaitLocked() {
  static auto* const library = Library<void(Server*)>("_ZN4grpc6Server18UnrefAndWaitLockedEv");
  library(this);
  __tsan_acquire(this);
}

}  // namespace grpc

// Locks.

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const library = Library<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  library(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static auto* const library = Library<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  const bool locked = library(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Unlock() {
  static auto* const library = Library<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  library(this);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const library = Library<void(CondVar*, Mutex*)>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  library(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const library = Library<bool(CondVar*, Mutex*, Time)>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool passed = library(this, mutex, deadline);
  __tsan_acquire(mutex);
  return passed;
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const library = Library<bool(CondVar*, Mutex*, Duration)>(
      "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mutex);
  const bool passed = library(this, mutex, timeout);
  __tsan_acquire(mutex);
  return passed;
}

ABSL_NAMESPACE_END
}  // namespace absl

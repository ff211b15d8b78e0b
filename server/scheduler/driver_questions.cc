#include "server/scheduler/driver_questions.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"

namespace tandem {

struct DriverQuestions::State {
  // A question and its answer.
  struct Asked {
    DriverQuestions::Question question;
    bool is_answered = false;
    absl::Status answer;
  };

  Mutex mutex;
  std::deque<std::shared_ptr<Asked>> waiting ABSL_GUARDED_BY(mutex);
  // True while the thread waits for the driver.
  bool is_asking ABSL_GUARDED_BY(mutex) = false;
  bool stopping ABSL_GUARDED_BY(mutex) = false;

  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return stopping || !waiting.empty(); }

  static void Run(const std::shared_ptr<State>& state) {
    while (true) {
      std::shared_ptr<Asked> asked;
      {
        MutexLock lock(&state->mutex);
        state->is_asking = false;
        const auto work = [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mutex) { return state->HasWork(); };
        state->mutex.Await(absl::Condition(&work));
        if (state->stopping) return;
        asked = std::move(state->waiting.front());
        state->waiting.pop_front();
        state->is_asking = true;
      }
      const absl::Status answer = asked->question();
      MutexLock lock(&state->mutex);
      asked->answer = answer;
      asked->is_answered = true;
    }
  }
};

DriverQuestions::DriverQuestions() : state_(std::make_shared<State>()) {
  thread_ = std::thread([state = state_] { State::Run(state); });
}

DriverQuestions::~DriverQuestions() { Stop(); }

absl::Status DriverQuestions::Ask(Question question, absl::Duration limit) {
  auto asked = std::make_shared<State::Asked>();
  asked->question = std::move(question);
  State& state = *state_;
  MutexLock lock(&state.mutex);
  if (!state.stopping) state.waiting.push_back(asked);
  const auto done = [&state, &asked]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
    return state.stopping || asked->is_answered;
  };
  state.mutex.AwaitWithTimeout(absl::Condition(&done), limit);
  if (asked->is_answered) return asked->answer;
  // Nobody waits for the answer any more, so do not ask.
  state.waiting.erase(std::remove(state.waiting.begin(), state.waiting.end(), asked), state.waiting.end());
  if (state.stopping) return absl::CancelledError("cannot ask the driver: the daemon is shutting down");
  return absl::UnavailableError(
      absl::StrCat("the driver did not answer within ", absl::FormatDuration(limit)));
}

void DriverQuestions::Stop() {
  bool hangs = false;
  {
    MutexLock lock(&state_->mutex);
    state_->stopping = true;
    hangs = state_->is_asking;
  }
  if (!thread_.joinable()) return;
  // The driver may never return. The thread owns everything that it uses.
  if (hangs) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace tandem

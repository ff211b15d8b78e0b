#include "server/workers/model_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/clock.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "server/workers/worker_process.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using internal::v1::ModelTaskEnd;
using internal::v1::ModelTaskOutput;

// The part of a dead process's stderr for the daemon's log.
constexpr size_t kLastWords = 2000;

std::string LastWords(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  std::string text(std::min<size_t>(size < 0 ? 0 : size, kLastWords), '\0');
  const ssize_t count = pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(std::max<ssize_t>(count, 0));
  return text;
}

// Sends as many bytes as there is room for, and returns the rest. A dead receiver takes all of them.
absl::string_view Send(int socket, absl::string_view bytes) {
  const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR ? bytes : absl::string_view();
  return bytes.substr(sent);
}

absl::Status StatusOf(const ModelTaskEnd& end) {
  if (end.code() == 0) return absl::OkStatus();
  if (end.violations().empty()) return absl::Status(static_cast<absl::StatusCode>(end.code()), end.message());
  FieldViolations violations;
  for (const auto& violation : end.violations()) violations.Add(violation.field(), violation.description());
  return violations.ToStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelProcess>> ModelProcess::Start(const ProcessGroup::Command& command) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a socket");
  }
  UniqueFd tasks(sockets[0]);
  const UniqueFd worker_tasks(sockets[1]);
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  UniqueFd outputs(pipe_ends[0]);
  const UniqueFd worker_outputs(pipe_ends[1]);
  UniqueFd errors(memfd_create("model-task-errors", MFD_CLOEXEC));
  if (!errors.valid()) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<ProcessGroup> process,
      ProcessGroup::Start(command, {worker_tasks.get(), worker_outputs.get(), errors.get()}));
  return std::unique_ptr<ModelProcess>(
      new ModelProcess(std::move(process), std::move(tasks), std::move(outputs), std::move(errors)));
}

absl::Status ModelProcess::Perform(const internal::v1::ModelTask& task, int wake, absl::Duration start,
                                   absl::Duration time_limit, Deliver deliver) {
  ended_task_ = false;
  TANDEM_ASSIGN_OR_RETURN(const std::string frame, ToFrame(task));
  absl::string_view unsent = frame;
  const absl::Duration deadline = start + time_limit;
  for (;;) {
    // A negative file is ignored.
    pollfd events[] = {
        {outputs_.get(), POLLIN, 0}, {wake, POLLIN, 0}, {unsent.empty() ? -1 : tasks_.get(), POLLOUT, 0}};
    const absl::Duration left = std::max(deadline - Clock::Real()->Elapsed(), absl::ZeroDuration());
    const int ready = poll(events, 3, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return absl::ErrnoToStatus(errno, "cannot wait for a worker");
    if (ready == 0 || left == absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("cannot finish the call: it took longer than ",
                                                      absl::FormatDuration(time_limit),
                                                      " (--model-time-limit); send less at once"));
    }
    if (events[1].revents != 0) return absl::CancelledError("the client cancelled the call");
    if (events[2].revents != 0) unsent = Send(tasks_.get(), unsent);
    if (events[0].revents == 0) continue;
    TANDEM_ASSIGN_OR_RETURN(const bool more, frames_.ReadFrom(outputs_.get()));
    for (ModelTaskOutput output;;) {
      TANDEM_ASSIGN_OR_RETURN(const bool taken, frames_.Take(&output));
      if (!taken) break;
      if (output.has_end()) {
        ended_task_ = true;
        return StatusOf(output.end());
      }
      deliver(std::move(output), deadline);
    }
    if (!more) break;
  }
  has_died_ = true;
  const std::string how = DescribeEnd(process_->Kill(absl::InfiniteDuration()));
  spdlog::warn("a process for a prediction or evaluation {}; its last words: {}", how,
               absl::Utf8SafeCHexEscape(LastWords(errors_.get())));
  return absl::InternalError(absl::StrCat("cannot finish the call: its process ", how));
}

bool ModelProcess::IsReady() const {
  if (!ended_task_ || process_->HasEnded() || !frames_.IsEmpty()) return false;
  pollfd written = {outputs_.get(), POLLIN, 0};
  return poll(&written, 1, 0) == 0;
}

}  // namespace tandem

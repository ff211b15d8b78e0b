#include "engine/base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/process_group.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"

namespace tandem {
namespace {

// A pipe. The read end does not block.
struct Pipe {
  UniqueFd read_end, write_end;

  absl::Status Open() {
    std::array<int, 2> ends;
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
    read_end = UniqueFd(ends[0]);
    write_end = UniqueFd(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return absl::OkStatus();
  }
};

absl::StatusOr<std::string> FindProgram(const Command& command) {
  if (absl::StrContains(command.program, '/')) return command.program;
  for (const absl::string_view folder : absl::StrSplit(command.path, ':', absl::SkipEmpty())) {
    std::string file = absl::StrCat(folder, "/", command.program);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::NotFoundError(
      absl::StrCat("cannot run ", command.program, ": no such program in PATH=", command.path));
}

// Appends the bytes that can be read now. Closes the file at its end.
void Read(UniqueFd& file, std::string& text, size_t most) {
  std::array<char, 16384> buffer;
  while (file.valid() && text.size() <= most) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    file.Reset();
  }
}

// Returns a file in memory with this content, to be read from its beginning.
absl::StatusOr<UniqueFd> MemoryFile(const std::string& content) {
  UniqueFd file(memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return absl::ErrnoToStatus(errno, "cannot create a file in memory");
  for (size_t done = 0; done < content.size();) {
    const ssize_t count = write(file.get(), content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "cannot write to a file in memory");
    done += static_cast<size_t>(count);
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Reads the output until the program has ended.
absl::Status Collect(const Command& command, int pidfd, UniqueFd& out, UniqueFd& error_output,
                     CommandResult& result) {
  // A change of the wall clock changes no time limit.
  const auto start = std::chrono::steady_clock::now();
  for (bool has_ended = false; !has_ended;) {
    const absl::Duration left =
        command.time_limit - absl::FromChrono(std::chrono::steady_clock::now() - start);
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("cannot run ", command.program, ": no end after ",
                                                      absl::FormatDuration(command.time_limit)));
    }
    std::array<pollfd, 3> files = {
        {{pidfd, POLLIN, 0}, {out.get(), POLLIN, 0}, {error_output.get(), POLLIN, 0}}};
    const absl::Duration wait = std::min(absl::Ceil(left, absl::Milliseconds(1)), absl::Hours(1));
    if (poll(files.data(), files.size(), static_cast<int>(absl::ToInt64Milliseconds(wait))) < 0 &&
        errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("cannot watch ", command.program, ": poll failed"));
    }
    // The last output is read after the end is known. A child that keeps the pipe open delays nothing.
    has_ended = (files[0].revents & POLLIN) != 0;
    Read(out, result.standard_output, command.most_output);
    Read(error_output, result.standard_error, command.most_output);
    if (std::max(result.standard_output.size(), result.standard_error.size()) > command.most_output) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot read the output of ", command.program,
                                                       ": it is longer than ", command.most_output,
                                                       " bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandResult> RunCommand(const Command& command) {
  TANDEM_ASSIGN_OR_RETURN(const std::string program, FindProgram(command));
  Pipe out, error_output;
  TANDEM_RETURN_IF_ERROR(out.Open());
  TANDEM_RETURN_IF_ERROR(error_output.Open());
  const absl::StatusOr<UniqueFd> input = MemoryFile(command.input);
  if (!input.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot run ", program, ": ", input.status().message()));
  }
  absl::StatusOr<std::unique_ptr<ProcessGroup>> process = ProcessGroup::Start(
      {.program = program, .arguments = command.arguments, .environment = command.environment},
      {input->get(), out.write_end.get(), error_output.write_end.get()});
  if (absl::IsNotFound(process.status())) return process.status();
  if (!process.ok()) return absl::UnavailableError(process.status().message());
  out.write_end.Reset();
  error_output.write_end.Reset();
  CommandResult result;
  if (absl::Status status =
          Collect(command, (*process)->pidfd(), out.read_end, error_output.read_end, result);
      !status.ok()) {
    (*process)->Kill(absl::InfiniteDuration());
    return status;
  }
  const ProcessGroup::End end = (*process)->Reap();
  if (!end.known) return absl::UnavailableError(absl::StrCat("cannot tell how ", program, " ended"));
  result.exit_code = end.signal != 0 ? 128 + end.signal : end.exit_code;
  return result;
}

std::string ShellQuote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace tandem

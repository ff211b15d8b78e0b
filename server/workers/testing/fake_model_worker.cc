// A fake tandem-worker --model-task for tests. The label of the task's first input, or the name of the data
// set, decides its behaviour.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/workers/model_task_frames.h"
#include "tandem/internal/v1/model_task.pb.h"

namespace tandem {
namespace {

using internal::v1::ModelTaskOutput;

void Answer(const std::string& input) {
  ModelTaskOutput output;
  output.mutable_predict()->add_predictions()->set_input(input);
  if (!WriteFrame(output, STDOUT_FILENO).ok()) std::_Exit(9);
}

void End(int code, const std::string& message) {
  ModelTaskOutput output;
  output.mutable_end()->set_code(code);
  output.mutable_end()->set_message(message);
  if (!WriteFrame(output, STDOUT_FILENO).ok()) std::_Exit(9);
}

int Read(const internal::v1::ModelTask& task) {
  const std::string& name = task.data().dataset().name();
  ModelTaskOutput output;
  if (name == "hang") {
    for (;;) pause();
  } else if (name == "die") {
    std::abort();
  } else if (name == "wrong") {
    output.mutable_end()->set_code(3);
    auto* violation = output.mutable_end()->add_violations();
    violation->set_field("idx.classes");
    violation->set_description("is wrong");
  } else if (name == "much") {
    output.mutable_data()->set_one_class_mend(std::string(2 << 20, 'x'));
  } else if (name == "impossible") {
    output.mutable_data()->mutable_dataset()->add_shape(-1);
  } else if (name == "nothing") {
    output.mutable_end()->set_code(0);
  } else {
    output.mutable_data()->set_memory_bytes(task.memory_bytes());
  }
  if (!WriteFrame(output, STDOUT_FILENO).ok()) return 9;
  // Does not end by itself.
  if (name == "linger") pause();
  return 0;
}

// Returns an exit code, or nothing after a task that it ended. `is_first`: the process's first task.
std::optional<int> Perform(const internal::v1::ModelTask& task, bool is_first) {
  if (task.has_data()) return Read(task);
  if (task.has_export_model()) {
    ModelTaskOutput output;
    for (const char* part : {"on", "nx"}) {
      output.mutable_export_model()->set_data(part);
      if (!WriteFrame(output, STDOUT_FILENO).ok()) return 9;
    }
    End(0, "");
    return std::nullopt;
  }
  if (task.has_dataset()) {
    Answer(absl::StrCat(getpid()));
    End(0, "");
    return std::nullopt;
  }
  if (task.predict().inputs().empty()) return 2;
  const std::string& label = task.predict().inputs(0).label();
  if (label == "answer") {
    for (const auto& input : task.predict().inputs()) Answer(input.label());
    End(0, "");
    return std::nullopt;
  } else if (label == "pid" || (label == "pid, or death after another task" && is_first)) {
    Answer(absl::StrCat(getpid()));
    End(0, "");
    return std::nullopt;
  } else if (label == "late") {
    // One write, so that the daemon reads the end and the output after it together.
    ModelTaskOutput end, output;
    end.mutable_end();
    output.mutable_predict()->add_predictions()->set_input(label);
    const std::string bytes = *ToFrame(end) + *ToFrame(output);
    if (write(STDOUT_FILENO, bytes.data(), bytes.size()) < 0) return 9;
    return std::nullopt;
  } else if (label == "exit") {
    Answer(absl::StrCat(getpid()));
    End(0, "");
  } else if (label == "flood") {
    for (;;) Answer(label);
  } else if (label == "hang") {
    // Writes its pid, so that a test can see its end.
    std::ofstream(task.model_path()) << getpid() << std::flush;
    Answer(label);
    for (;;) pause();
  } else if (label == "fail") {
    End(9, "no such model");
    return std::nullopt;
  } else if (label == "violate") {
    ModelTaskOutput output;
    output.mutable_end()->set_code(3);
    auto* violation = output.mutable_end()->add_violations();
    violation->set_field("inputs[0]");
    violation->set_description("is no image");
    if (!WriteFrame(output, STDOUT_FILENO).ok()) return 9;
    return std::nullopt;
  } else if (label == "die") {
    std::cerr << "last words";
    std::abort();
  } else if (label == "garbage") {
    std::cout << std::string(100, '\xff') << std::flush;
  }
  return 0;
}

int Main() {
  FrameReader tasks;
  internal::v1::ModelTask task;
  for (bool is_first = true;; is_first = false) {
    const absl::StatusOr<bool> taken = tasks.Await(STDIN_FILENO, &task);
    if (!taken.ok()) return 2;
    if (!*taken) return 0;
    if (const std::optional<int> code = Perform(task, is_first); code.has_value()) return *code;
  }
}

}  // namespace
}  // namespace tandem

int main() { return tandem::Main(); }

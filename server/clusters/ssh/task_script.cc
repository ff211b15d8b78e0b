#include "server/clusters/ssh/task_script.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/command.h"
#include "engine/base/env.h"

namespace tandem {
namespace {

// Names between "@" stand for values.
constexpr char kScript[] = R"script(#!/bin/sh
# Tandem made this script. It runs one task of an attempt: task.sh RANK LOCAL_RANK HOST GPUS
attempt=@ATTEMPT@
workers=@WORKERS@
rank=$1
host=$3
gpus=$4

# Writes the task's end. The last task also writes the attempt's end.
end() {
  echo "$1" >"$attempt/new-ended-$rank" && mv "$attempt/new-ended-$rank" "$attempt/ended-$rank"
  first=0 count=0
  for file in "$attempt"/ended-*; do
    [ -e "$file" ] && read -r code <"$file" || continue
    count=$((count + 1))
    [ "$first" != 0 ] || first=$code
  done
  if [ "$count" = "$workers" ]; then
    echo "$first${terminated:+ SIGTERM}" >"$attempt/new-ended-$rank" && mv "$attempt/new-ended-$rank" "$attempt/ended"
  fi
  exit "$1"
}
fail() {
  message="cannot start on node $host: $1"
  echo "$message"
  { echo "$message" >>"$attempt/missing"; } 2>/dev/null
  end 76
}

# With -C, the shell creates the file exclusively. So the task runs once, even if it is started twice.
set -C
if ! { echo "$host" >"$attempt/started-$rank"; } 2>/dev/null; then
  echo "task $rank does nothing on node $host: it was started before, or $attempt cannot be written"
  exit 77
fi
{ echo "$host" >"$attempt/started"; } 2>/dev/null
set +C

for path in @PATHS@; do
  [ -e "$path" ] || fail "$path is missing; every node needs this path"
done
log=@OUTPUT@$rank.log
{ true >>"$log"; } 2>/dev/null || fail "$log cannot be written; every node must be able to write there"
exec >>"$log" 2>&1
@EXPORTS@
export RANK="$rank" WORLD_SIZE="$workers" LOCAL_RANK="$2"
[ "$gpus" = - ] || export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$gpus"

worker=
terminated=
terminate() {
  terminated=1
  [ -z "$worker" ] || kill -TERM "$worker" 2>/dev/null
}
trap terminate TERM
@COMMAND@ </dev/null &
worker=$!
[ -z "$terminated" ] || kill -TERM "$worker" 2>/dev/null
wait "$worker"
code=$?
# A signal interrupts `wait`, which then returns another code.
while kill -0 "$worker" 2>/dev/null; do
  wait "$worker"
  code=$?
done
end "$code"
)script";

std::string Quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) absl::StrAppend(&text, text.empty() ? "" : " ", ShellQuote(word));
  return text;
}

}  // namespace

std::string TaskScript(const TaskScriptOptions& options) {
  std::string exports;
  for (const auto& [name, value] : options.environment) {
    absl::StrAppend(&exports, "export ", name, "=", ShellQuote(value), "\n");
  }
  std::vector<std::string> paths = {options.attempt_folder};
  paths.insert(paths.end(), options.required_paths.begin(), options.required_paths.end());
  // StrReplaceAll replaces each name once: a value that has such a name stays as it is.
  return absl::StrReplaceAll(kScript, {{"@ATTEMPT@", ShellQuote(options.attempt_folder)},
                                       {"@WORKERS@", absl::StrCat(options.workers)},
                                       {"@PATHS@", Quoted(paths)},
                                       {"@OUTPUT@", ShellQuote(options.task_output)},
                                       {"@EXPORTS@", exports},
                                       {"@COMMAND@", Quoted(options.command)}});
}

TaskFiles ReadTaskFiles(const std::string& attempt_folder) {
  TaskFiles files;
  std::error_code error;
  std::filesystem::directory_iterator entry(attempt_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view rest = name;
    const bool is_start = absl::ConsumePrefix(&rest, "started-");
    int rank = 0;
    if ((!is_start && !absl::ConsumePrefix(&rest, "ended-")) || !absl::SimpleAtoi(rest, &rank)) continue;
    const absl::StatusOr<std::string> text = Env::Real()->ReadFile(entry->path().string());
    if (!text.ok()) continue;
    const absl::string_view line = absl::StripAsciiWhitespace(*text);
    int code = 0;
    if (is_start) {
      files.started[rank] = std::string(line);
    } else if (absl::SimpleAtoi(line, &code)) {
      files.ended[rank] = code;
    }
  }
  return files;
}

}  // namespace tandem

#include "server/clusters/ssh/task_script.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/command.h"

namespace tandem {
namespace {

// Names between "@" stand for values.
constexpr char kScript[] = R"script(attempt=@ATTEMPT@
workers=@WORKERS@
rank=$1
host=$3
gpus=$4

# With -C, the shell creates files exclusively. So it follows no link, and a task runs once, even if it is started twice.
set -C
# write NAME LINE: replaces a file of the attempt.
write() {
  rm -rf "$attempt/new-$rank"
  { echo "$2" >"$attempt/new-$rank"; } 2>/dev/null && mv -fT "$attempt/new-$rank" "$attempt/$1"
}
# Writes the task's end. The last task also writes the attempt's end.
end() {
  write "ended-$rank" "$1"
  first=0 count=0
  for file in "$attempt"/ended-*; do
    [ -f "$file" ] && [ ! -L "$file" ] && read -r code <"$file" || continue
    count=$((count + 1))
    [ "$first" != 0 ] || first=$code
  done
  if [ "$count" = "$workers" ]; then
    write ended "$first${terminated:+ SIGTERM}"
  fi
  exit "$1"
}
fail() {
  message="cannot start on node $host: $1"
  echo "$message"
  write missing "$message"
  end 76
}

if ! { echo "$host" >"$attempt/started-$rank"; } 2>/dev/null; then
  echo "task $rank does nothing on node $host: it was started before, or $attempt cannot be written"
  exit 77
fi
{ echo "$host" >"$attempt/started"; } 2>/dev/null

for path in @PATHS@; do
  [ -e "$path" ] || fail "$path is missing; every node needs this path"
done
log=@OUTPUT@$rank.log
{ [ ! -L "$log" ] && [ ! -p "$log" ] && true >>"$log"; } 2>/dev/null || fail "$log cannot be written; every node must be able to write there"
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

}  // namespace tandem

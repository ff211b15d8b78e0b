#ifndef TANDEM_SERVER_CLUSTERS_SSH_TASK_SCRIPT_H_
#define TANDEM_SERVER_CLUSTERS_SSH_TASK_SCRIPT_H_

#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct TaskScriptOptions {
  // The folder of this attempt, on a file system of all hosts. The script creates these files in it:
  //   started        the first task's host. Created before the first worker
  //   started-RANK   the task's host. Created exclusively before the worker: each task starts once
  //   missing        a line with a host and a path that the host lacks
  //   ended-RANK     the worker's exit code. Missing if the script was killed
  //   ended          the exit code of the first worker that failed, or 0, after the last task's end.
  //                  " SIGTERM" follows if a person or the daemon ended the attempt
  std::string attempt_folder;
  // The program of each task and its arguments.
  std::vector<std::string> command;
  // Variables of the tasks. Not for secrets.
  std::vector<std::pair<std::string, std::string>> environment;
  // Paths that each host must have before the worker starts.
  std::vector<std::string> required_paths;
  int workers = 1;
  // The beginning of the path of each task's log. The rank and ".log" follow.
  std::string task_output;
};

// Returns the text of a POSIX shell script that runs one worker, with the arguments RANK LOCAL_RANK HOST
// GPUS. GPUs are numbers with commas between them, or "-". The worker gets RANK, WORLD_SIZE, LOCAL_RANK and,
// with GPUs, CUDA_VISIBLE_DEVICES. The script sends SIGTERM on to the worker, and follows no link that a
// worker may have put into the folder. Exits with the worker's code, 76 if a path is missing, and 77 if the
// task was started before.
std::string TaskScript(const TaskScriptOptions& options);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SSH_TASK_SCRIPT_H_

#ifndef TANDEM_SERVER_CLUSTERS_SLURM_SLURM_TEXT_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_SLURM_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// Reads Slurm's form of a time limit: "M", "M:S", "H:M:S", "D-H", "D-H:M" or "D-H:M:S". InfiniteDuration for
// "UNLIMITED" and "infinite". nullopt for "N/A", "NOT_SET" and other texts.
std::optional<absl::Duration> ParseSlurmDuration(absl::string_view text);

// Returns "D-HH:MM:SS", or "UNLIMITED" for InfiniteDuration. Rounds up to seconds. `duration` is not
// negative.
std::string FormatSlurmDuration(absl::Duration duration);

// Reads a time in UTC such as "2026-11-28T05:00:00". nullopt for "N/A", "Unknown" and other texts.
std::optional<absl::Time> ParseSlurmTime(absl::string_view text);

// Returns the names of a host list, such as "n[01-03,7],m4". Empty for "", "(null)" and "None assigned".
// INVALID_ARGUMENT if the list is malformed or has more than 65,536 names.
absl::StatusOr<std::vector<std::string>> ParseSlurmHosts(absl::string_view list);

// Returns the GPUs of a node from its generic resources, such as "gpu:a100:4(S:0-1),nic:1". 0 for "(null)".
int CountSlurmGpus(absl::string_view gres);

// Returns the path with "%" doubled, because Slurm replaces patterns in paths of output files.
std::string EscapeSlurmPattern(absl::string_view path);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_SLURM_TEXT_H_

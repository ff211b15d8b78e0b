#ifndef TANDEM_CLIENT_CLI_FINDING_H_
#define TANDEM_CLIENT_CLI_FINDING_H_

#include <string>
#include <utility>
#include <vector>

namespace tandem::cli {

// A result of `tandem doctor`.
struct Finding {
  enum class Level {
    kFine,
    // An explanation that may be useful. Nothing is wrong.
    kNote,
    // A fault to fix.
    kProblem,
  };
  Level level = Level::kFine;
  // The checked thing, in a word or two: "token", "devices".
  std::string subject;
  // The result, as a sentence without a full stop.
  std::string message;
  // The fix. Empty if none is needed.
  std::string mend;
};

using Findings = std::vector<Finding>;

inline void AddFine(Findings* findings, std::string subject, std::string message) {
  findings->push_back({Finding::Level::kFine, std::move(subject), std::move(message), ""});
}
inline void AddNote(Findings* findings, std::string subject, std::string message, std::string mend = "") {
  findings->push_back({Finding::Level::kNote, std::move(subject), std::move(message), std::move(mend)});
}
inline void AddProblem(Findings* findings, std::string subject, std::string message, std::string mend) {
  findings->push_back({Finding::Level::kProblem, std::move(subject), std::move(message), std::move(mend)});
}

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FINDING_H_

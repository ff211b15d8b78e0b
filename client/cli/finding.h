#ifndef TANDEM_CLIENT_CLI_FINDING_H_
#define TANDEM_CLIENT_CLI_FINDING_H_

#include <string>
#include <utility>
#include <vector>

namespace tandem::cli {

// What `tandem doctor` says of one thing.
struct Finding {
  enum class Level {
    kFine,
    // Worth knowing, and as somebody may want it.
    kNote,
    // Something is to be mended.
    kProblem,
  };
  Level level = Level::kFine;
  // What was looked at, in a word or two: "token", "devices".
  std::string subject;
  // What was found, in a sentence without a full stop.
  std::string message;
  // What mends it; empty where nothing has to be.
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

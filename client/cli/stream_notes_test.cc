#include "client/cli/stream_notes.h"

#include <string>
#include <vector>

#include "client/cli/fake_terminal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StreamNotesTest, ARefusedStreamIsNoLostConnection) {
  FakeTerminal terminal;
  std::vector<std::string> notes;
  StreamNotes observer(terminal, [&](absl::string_view note) { notes.emplace_back(note); });
  const absl::Status refused = absl::ResourceExhaustedError("\"ann\" has 2 streams open: end some");
  const absl::Status lost = absl::UnavailableError("Socket closed");
  for (int i = 0; i < 3; ++i) observer.Lost(refused, absl::Seconds(1));
  EXPECT_THAT(notes, ElementsAre("the daemon refuses the stream for now; retrying: \"ann\" has 2 "
                                 "streams open: end some"));
  notes.clear();
  for (int i = 0; i < 3; ++i) observer.Lost(lost, absl::Seconds(1));
  observer.Lost(refused, absl::Seconds(1));
  EXPECT_THAT(notes, ElementsAre("connection lost; reconnecting"));
  notes.clear();
  observer.Restored();
  EXPECT_THAT(notes, IsEmpty());
  observer.Lost(refused, absl::Seconds(1));
  observer.Lost(lost, absl::Seconds(1));
  EXPECT_EQ(notes.size(), 2);
}

}  // namespace
}  // namespace tandem::cli

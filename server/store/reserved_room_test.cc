#include "server/store/reserved_room.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

class ReservedRoomTest : public testing::Test {
 protected:
  // Returns the file's bytes on the disk; below 0 if no file exists.
  int64_t Taken() const {
    struct stat info = {};
    return stat(path_.c_str(), &info) == 0 ? int64_t{info.st_blocks} * 512 : -1;
  }
  ReservedRoom Make() {
    return ReservedRoom(path_, [this](const std::string&) { return available_; });
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/tandem.db-reserve";
  int64_t available_ = int64_t{1} << 40;
};

TEST_F(ReservedRoomTest, TakesBlocksAndNotALengthAlone) {
  const ReservedRoom room = Make();
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize);
  EXPECT_GE(Taken(), ReservedRoom::kSize);
}

TEST_F(ReservedRoomTest, KeepsWhatItHasWhileThereIsRoom) {
  ReservedRoom room = Make();
  room.GiveUpIfFull(/*was_full=*/false);
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize);
  // An unknown number of free bytes does not mean full.
  available_ = -1;
  room.GiveUpIfFull(/*was_full=*/false);
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize);
}

TEST_F(ReservedRoomTest, GivesUpASliceAtATimeWhereTheDiskIsFull) {
  ReservedRoom room = Make();
  available_ = 0;
  int64_t left = ReservedRoom::kSize;
  while (left > 0) {
    room.GiveUpIfFull(/*was_full=*/false);
    left -= ReservedRoom::kSlice;
    EXPECT_EQ(room.bytes(), left);
    EXPECT_LT(Taken(), left + ReservedRoom::kSlice);
  }
  room.GiveUpIfFull(/*was_full=*/true);
  EXPECT_EQ(room.bytes(), 0);
}

// A quota, which the file system's numbers do not show.
TEST_F(ReservedRoomTest, TakesAWritesWordForItThatThereIsNoRoom) {
  ReservedRoom room = Make();
  room.GiveUpIfFull(/*was_full=*/true);
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize - ReservedRoom::kSlice);
}

TEST_F(ReservedRoomTest, TakesBackWhatItGaveUpWhenThereIsRoomForTwiceAsMuch) {
  ReservedRoom room = Make();
  available_ = 0;
  room.GiveUpIfFull(/*was_full=*/false);
  available_ = 2 * ReservedRoom::kSlice - 1;
  room.Refill(absl::Seconds(100));
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize - ReservedRoom::kSlice);
  available_ = 2 * ReservedRoom::kSlice;
  // Refill does not look all the time.
  room.Refill(absl::Seconds(100) + ReservedRoom::kPause / 2);
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize - ReservedRoom::kSlice);
  room.Refill(absl::Seconds(100) + ReservedRoom::kPause);
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize);
  EXPECT_GE(Taken(), ReservedRoom::kSize);
}

TEST_F(ReservedRoomTest, TheNextOneHasAllOfItAgain) {
  {
    ReservedRoom room = Make();
    room.GiveUpIfFull(/*was_full=*/true);
  }
  const ReservedRoom room = Make();
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize);
  EXPECT_GE(Taken(), ReservedRoom::kSize);
}

TEST_F(ReservedRoomTest, SomebodyMayRemoveIt) {
  ReservedRoom room = Make();
  ASSERT_EQ(unlink(path_.c_str()), 0);
  room.GiveUpIfFull(/*was_full=*/true);
  room.Refill(absl::Seconds(100));
  EXPECT_EQ(room.bytes(), ReservedRoom::kSize);
  EXPECT_GE(Taken(), ReservedRoom::kSize);
}

TEST_F(ReservedRoomTest, DoesWithoutWhereItCannotBeHad) {
  ReservedRoom room(folder_.path() + "/missing/tandem.db-reserve");
  EXPECT_EQ(room.bytes(), 0);
  room.GiveUpIfFull(/*was_full=*/true);
  room.Refill(absl::Seconds(100));
  EXPECT_EQ(room.bytes(), 0);
}

}  // namespace
}  // namespace tandem

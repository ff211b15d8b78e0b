#include "engine/backends/cuda/driver/library.h"

#include <cmath>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

TEST(LibraryTest, LoadsWhatIsThereAndFindsItsFunctions) {
  const absl::StatusOr<Library> library =
      Library::Open("the C library's mathematics", {"libno.so.1", "libm.so.6"});
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->path(), "libm.so.6");
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library->Find("cos", &cosine).ok());
  EXPECT_EQ(cosine(0), 1);
  const absl::Status missing = library->Find("cos_of_the_future", &cosine);
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(missing.message(), "cos_of_the_future")) << missing;
}

TEST(LibraryTest, SaysWhatItLookedForAndWhere) {
  const absl::Status status = Library::Open("cuNothing", {"libcunothing.so.9"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  for (const char* part : {"cuNothing", "libcunothing.so.9", "LD_LIBRARY_PATH", "/usr/local/cuda/lib64"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  }
}

TEST(LibraryTest, LooksBesideWheelsAndInTheToolkit) {
  EXPECT_EQ(LibraryFolders("/lib:/venv/nvidia/cudnn/lib/", "/opt/cuda"),
            (std::vector<std::string>{
                "/venv/nvidia/cu13/lib", "/venv/nvidia/cudnn/lib", "/venv/nvidia/cublas/lib",
                "/venv/nvidia/cuda_nvrtc/lib", "/venv/nvidia/nccl/lib", "/opt/cuda/lib64", "/opt/cuda/lib",
                "/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu"}));
}

}  // namespace
}  // namespace tandem::cuda

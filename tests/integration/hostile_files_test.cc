// Files that would cost a program that decodes them all its memory: the daemon has them read by other
// processes.
#include <grpcpp/grpcpp.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/data/formats/test_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tandem/v1/dataset_service.grpc.pb.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/idx_files.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMebibyte = int64_t{1} << 20;
// A margin for answers and for allocations that differ between runs.
constexpr int64_t kFlat = 48;

// Returns a part of a deflated stream that is valid at any place of the stream.
std::string Deflated(const std::string& bytes) {
  std::string packed(bytes.size() + 1000, '\0');
  z_stream stream = {};
  EXPECT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(::deflate(&stream, Z_FULL_FLUSH), Z_OK);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

// An NPZ archive of about a MiB for each GiB of zeros: samples of 1 MiB, [4, 512, 512].
std::string Bomb(int64_t samples) {
  const std::string header = Npy("|u1", absl::StrCat("(", samples, ", 4, 512, 512)"), "");
  const std::string zeros(kMebibyte, '\0');
  const auto crc_of = [](const std::string& bytes) {
    return ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  };
  std::string packed = Deflated(header);
  const std::string piece = Deflated(zeros);
  uLong crc = crc_of(header);
  const uLong of_zeros = crc_of(zeros);
  for (int64_t i = 0; i < samples; ++i) {
    packed += piece;
    crc = ::crc32_combine(crc, of_zeros, kMebibyte);
  }
  packed += std::string("\x03\x00", 2);  // The last block, empty.
  const auto bytes = static_cast<uint64_t>(samples * kMebibyte) + header.size();
  const std::string name = "x.npy";
  const std::string member = "PK\x03\x04" + Little(20, 2) + Little(0, 2) + Little(8, 2) +
                             std::string(16, '\0') + Little(name.size(), 2) + Little(0, 2) + name + packed;
  const std::string extra = Little(1, 2) + Little(16, 2) + Little(bytes, 8) + Little(packed.size(), 8);
  const std::string directory = "PK\x01\x02" + Little(20, 2) + Little(20, 2) + Little(0, 2) + Little(8, 2) +
                                Little(0, 4) + Little(crc, 4) + Little(0xFFFFFFFF, 4) +
                                Little(0xFFFFFFFF, 4) + Little(name.size(), 2) + Little(extra.size(), 2) +
                                std::string(14, '\0') + name + extra;
  return member + directory + "PK\x05\x06" + Little(0, 4) + Little(1, 2) + Little(1, 2) +
         Little(directory.size(), 4) + Little(member.size(), 4) + Little(0, 2);
}

class HostileFilesTest : public ::testing::Test {
 protected:
  HostileFilesTest() {
    std::filesystem::create_directory(scratch_.File("data"));
    const absl::Status started = daemon_.Start();
    EXPECT_TRUE(started.ok()) << started;
  }

  // In MiB: "VmRSS", or "VmHWM" for the most since ForgetPeak.
  int64_t Memory(const std::string& key) {
    std::ifstream status(absl::StrCat("/proc/", daemon_.pid(), "/status"));
    for (std::string word; status >> word;) {
      int64_t kibibytes = 0;
      if (word == key + ":" && status >> kibibytes) return kibibytes >> 10;
    }
    ADD_FAILURE() << "the daemon has ended: " << daemon_.Log();
    return 0;
  }
  void ForgetPeak() { std::ofstream(absl::StrCat("/proc/", daemon_.pid(), "/clear_refs")) << "5"; }

  static grpc::Status Create(const DaemonProcess& daemon, const std::string& id, const v1::DatasetSpec& spec,
                             v1::Dataset* created = nullptr) {
    const auto stub = v1::DatasetService::NewStub(daemon.NewChannel());
    grpc::ClientContext context;
    daemon.Prepare(context, absl::Minutes(2));
    v1::CreateDatasetRequest request;
    request.set_dataset_id(id);
    *request.mutable_dataset()->mutable_spec() = spec;
    v1::Dataset ignored;
    return stub->CreateDataset(&context, request, created == nullptr ? &ignored : created);
  }
  static grpc::Status Get(const DaemonProcess& daemon, const std::string& id, v1::Dataset* dataset) {
    const auto stub = v1::DaemonService::NewStub(daemon.NewChannel());
    grpc::ClientContext context;
    daemon.Prepare(context, absl::Minutes(3));
    v1::GetDatasetRequest request;
    request.set_name(id);
    return stub->GetDataset(&context, request, dataset);
  }
  // Returns arrays with a bomb as inputs. Labels are 0, with a 1 at the end.
  v1::DatasetSpec Arrays(int64_t samples) {
    std::string labels = Npy("|u1", absl::StrCat("(", samples, ",)"), std::string(samples, '\0'));
    labels.back() = 1;
    v1::DatasetSpec spec;
    spec.mutable_npy()->mutable_train_inputs()->set_path(scratch_.Write("data/x.npz", Bomb(samples)));
    spec.mutable_npy()->mutable_train_targets()->set_path(scratch_.Write("data/y.npy", labels));
    return spec;
  }

  const ScratchFolder scratch_;
  DaemonProcess daemon_{{.state_folder = scratch_.File("state"),
                         .cpu_devices = 1,
                         .extra_arguments = {"--data-folder", scratch_.File("data")}}};
};

TEST_F(HostileFilesTest, ANumberInADescriptionCostsNothing) {
  v1::DatasetSpec idx;
  idx.mutable_idx()->set_train_images(scratch_.Write("data/images", IdxFile({8, 4, 4}, 256)));
  idx.mutable_idx()->set_train_labels(scratch_.Write("data/labels", IdxFile({8}, 2)));
  v1::DatasetSpec csv;
  csv.mutable_csv()->set_train(scratch_.Write("data/table.csv", "a,kind\n1,0\n2,1\n"));
  csv.mutable_csv()->set_targets(v1::TARGET_KIND_CLASS);
  v1::DatasetSpec npy = Arrays(2);
  // Includes the memory of the first reading.
  ASSERT_TRUE(Create(daemon_, "small", idx).ok());
  const int64_t before = Memory("VmRSS");
  ForgetPeak();
  idx.mutable_idx()->set_classes(150000000);
  csv.mutable_csv()->set_classes(150000000);
  npy.mutable_npy()->set_classes(150000000);
  for (const auto& [field, spec] :
       {std::pair("idx.classes", idx), {"csv.classes", csv}, {"npy.classes", npy}}) {
    const grpc::Status status = Create(daemon_, "large", spec);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat(field, ": is 150000000")));
  }
  EXPECT_LT(Memory("VmHWM"), before + kFlat);
}

TEST_F(HostileFilesTest, WhatInflatesIsReadElsewhereAndOnce) {
  constexpr int64_t kSamples = 1024;
  ASSERT_TRUE(Create(daemon_, "small", Arrays(2)).ok());
  const int64_t before = Memory("VmRSS");
  ForgetPeak();
  v1::Dataset dataset;
  grpc::Status status = Create(daemon_, "bomb", Arrays(kSamples), &dataset);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(dataset.train_samples(), kSamples);
  status = Get(daemon_, "bomb", &dataset);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(dataset.problem(), "");
  ASSERT_EQ(dataset.mean_size(), 4);
  EXPECT_EQ(dataset.mean(0), 0);
  ASSERT_EQ(dataset.class_counts_size(), 2);
  EXPECT_EQ(dataset.class_counts(0), kSamples - 1);
  EXPECT_LT(Memory("VmHWM"), before + kFlat);

  // The next daemon knows it: no process is needed, and none could be started.
  EXPECT_EQ(daemon_.Terminate(), 0);
  DaemonProcess next(
      {.state_folder = scratch_.File("state"),
       .cpu_devices = 1,
       .extra_arguments = {"--data-folder", scratch_.File("data"), "--worker-program", "/bin/false"}});
  const absl::Status started = next.Start();
  ASSERT_TRUE(started.ok()) << started;
  v1::Dataset again;
  status = Get(next, "bomb", &again);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(again.SerializeAsString(), dataset.SerializeAsString());
  // Others are not known.
  v1::DatasetSpec other;
  other.mutable_csv()->set_train(scratch_.Write("data/other.csv", "a,kind\n1,0\n2,1\n"));
  EXPECT_FALSE(Create(next, "other", other).ok());
}

TEST_F(HostileFilesTest, AReadingHoldsUpNoStop) {
  // Some seconds of reading, at least.
  grpc::Status status;
  std::thread reading([&] { status = Create(daemon_, "bomb", Arrays(7168)); });
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Processes().size() > 1; })) << "no process reads";
  EXPECT_EQ(daemon_.Terminate(absl::Seconds(5)), 0);
  reading.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_TRUE(daemon_.Processes().empty());
}

}  // namespace
}  // namespace tandem::testing

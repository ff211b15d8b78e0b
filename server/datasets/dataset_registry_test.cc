#include "server/datasets/dataset_registry.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/admission/idx_files.h"
#include "server/admission/read_dataset.h"
#include "server/datasets/dataset_request.h"
#include "server/datasets/sample_upload.h"
#include "server/store/awaited.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void WriteFile(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

// Returns the peak of this process's memory.
int64_t PeakKibibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes;
  }
  ADD_FAILURE() << "no peak";
  return 0;
}

class DatasetRegistryTest : public ::testing::Test {
 protected:
  DatasetRegistryTest() { Open(); }

  // Opens everything like the daemon after a killed daemon.
  void Open() {
    registry_.reset();
    uploads_.reset();
    catalog_.reset();
    store_.reset();
    auto store = Store::Open(folder_.path() + "/tandem.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    absl::StatusOr<std::vector<StoredDataset>> stored = store_->Datasets();
    ASSERT_TRUE(stored.ok()) << stored.status();
    std::map<std::string, Uploads::Owned> owned;
    for (const StoredDataset& dataset : *stored) {
      if (dataset.upload.empty()) continue;
      owned[dataset.upload] = {dataset.dataset.size_bytes(), dataset.dataset.user()};
    }
    Uploads::Options options;
    options.folder = folder_.path() + "/uploads";
    options.least_free = 0;
    auto uploads = Uploads::Open(std::move(options), Env::Real(), &clock_, std::move(owned));
    ASSERT_TRUE(uploads.ok()) << uploads.status();
    uploads_ = *std::move(uploads);
    catalog_ = std::make_unique<DatasetCatalog>(std::vector<std::string>{data_, public_}, &reader_);
    registry_ =
        std::make_unique<DatasetRegistry>(store_.get(), uploads_.get(), catalog_.get(), &clock_, public_);
    registry_->Restore(*std::move(stored));
    catalog_->SetRegistered(registry_.get());
  }

  static v1::CreateDatasetRequest Request(const std::string& id, const std::string& csv) {
    v1::CreateDatasetRequest request;
    request.set_dataset_id(id);
    request.mutable_dataset()->set_description("Flowers.");
    request.mutable_dataset()->mutable_spec()->mutable_csv()->set_train(csv);
    return request;
  }
  absl::StatusOr<v1::Dataset> Create(const v1::CreateDatasetRequest& request) {
    return registry_->Create(request, request.dataset().spec(), "ann");
  }
  // Returns the name of a whole upload.
  std::string Upload(const SampleUpload& sample) {
    v1::Upload wanted = sample.Declaration();
    wanted.set_user("ann");
    absl::StatusOr<v1::Upload> upload = uploads_->Create(wanted);
    EXPECT_TRUE(upload.ok()) << upload.status();
    auto call = uploads_->Begin(upload->name().substr(8));
    for (const v1::UploadFilesRequest& piece : sample.Pieces(*upload)) EXPECT_TRUE((*call)->Take(piece).ok());
    EXPECT_TRUE((*call)->Finish().ok());
    return upload->name();
  }
  absl::StatusOr<v1::Dataset> CreateUploaded(const std::string& id) {
    v1::CreateDatasetRequest request = Request(id, "flowers.csv");
    request.set_upload(Upload(flowers_));
    return Create(request);
  }
  absl::Status Delete(const std::string& name, const std::string& etag = "", bool allow_missing = false) {
    v1::DeleteDatasetRequest request;
    request.set_name(name);
    request.set_etag(etag);
    request.set_allow_missing(allow_missing);
    return registry_->Delete(request);
  }
  void InsertJob(const std::string& id, const std::string& dataset, v1::JobState state) {
    Awaited<absl::Status> done;
    store_->Write(
        [&](Transaction& transaction) {
          StoredJob job;
          job.job.set_name(JobName(id));
          job.job.set_state(state);
          job.job.mutable_spec()->mutable_dataset()->set_name(dataset);
          return transaction.InsertJob(&job, "", {});
        },
        done.Done());
    ASSERT_TRUE(done.Get().ok());
  }
  static std::vector<std::string> Fields(const absl::Status& status) {
    std::vector<std::string> fields;
    for (const FieldViolation& violation : GetFieldViolations(status)) fields.push_back(violation.field);
    return fields;
  }

  const TemporaryFolder folder_;
  const std::string data_ = FreshFolder();
  const std::string public_ = FreshFolder();
  const SampleUpload flowers_ =
      SampleUpload::OneFile("flowers.csv", "x,y,kind\n1,2,rose\n3,4,tulip\n5,6,rose\n");
  FakeClock clock_{absl::Now()};
  std::unique_ptr<Store> store_;
  LocalDatasetReader reader_;
  std::unique_ptr<DatasetCatalog> catalog_;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<DatasetRegistry> registry_;
};

// A user with many sets does not block other users.
TEST_F(DatasetRegistryTest, EachUserHasPlacesOfTheirOwn) {
  std::vector<StoredDataset> sets;
  const auto add = [&sets](const std::string& user, int count) {
    for (int i = 0; i < count; ++i) {
      StoredDataset set;
      set.dataset.set_name(absl::StrCat("datasets/", user, "-", i));
      set.dataset.set_user(user);
      sets.push_back(std::move(set));
    }
    return sets;
  };
  const auto create = [this](const std::string& id, const std::string& user) {
    const v1::CreateDatasetRequest request = Request(id, "none.csv");
    return registry_->Create(request, request.dataset().spec(), user).status();
  };
  registry_->Restore(add("ann", 200));
  const absl::Status refused = create("one-more", "ann");
  EXPECT_EQ(GetReason(refused), "TOO_MANY_DATASETS");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cannot add a data set for \"ann\": there are 200"));
  // The file does not exist. Files are checked after the limit.
  EXPECT_EQ(create("first", "bob").code(), absl::StatusCode::kInvalidArgument);
  for (const char* user : {"b", "c", "d", "e"}) add(user, 200);
  registry_->Restore(sets);
  EXPECT_EQ(GetReason(create("first", "bob")), "TOO_MANY_DATASETS");
  EXPECT_EQ(create("first", "admin").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DatasetRegistryTest, KeepsUploadedSets) {
  const absl::StatusOr<v1::Dataset> made = CreateUploaded("flowers");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->name(), "datasets/flowers");
  EXPECT_EQ(made->train_samples(), 3);
  EXPECT_EQ(made->classes(), 2);
  EXPECT_EQ(made->origin(), v1::DATASET_ORIGIN_REGISTERED);
  EXPECT_EQ(made->size_bytes(), flowers_.Declaration().bytes());
  EXPECT_EQ(made->manifest_sha256(), flowers_.Declaration().manifest_sha256());
  EXPECT_EQ(made->spec().csv().train(), "flowers.csv");
  EXPECT_FALSE(made->etag().empty());
  for (int i = 0; i < 2; ++i) {
    v1::DatasetSpec spec;
    spec.set_name("flowers");
    const absl::StatusOr<v1::DatasetSpec> resolved = catalog_->Resolve(spec);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    EXPECT_TRUE(std::filesystem::exists(resolved->csv().train()));
    const absl::StatusOr<v1::Dataset> counted = catalog_->Get("flowers");
    ASSERT_TRUE(counted.ok()) << counted.status();
    EXPECT_THAT(std::vector<int64_t>(counted->class_counts().begin(), counted->class_counts().end()),
                ElementsAre(2, 1));
    Open();
  }
  EXPECT_EQ(catalog_->List(0, 1000, 1 << 20).size(), 2);  // And Fashion-MNIST.
  EXPECT_TRUE(uploads_->List().empty());
}

TEST_F(DatasetRegistryTest, RemovesTheFilesThatItOwnsAlone) {
  WriteFile(data_ + "/own.csv", "a,b\n1,2\n");
  const absl::StatusOr<v1::Dataset> own = Create(Request("own", "own.csv"));
  ASSERT_TRUE(own.ok()) << own.status();
  const absl::StatusOr<v1::Dataset> flowers = CreateUploaded("flowers");
  ASSERT_TRUE(flowers.ok()) << flowers.status();
  EXPECT_TRUE(std::filesystem::exists(flowers->location()));
  EXPECT_TRUE(Delete("datasets/own").ok());
  EXPECT_TRUE(std::filesystem::exists(data_ + "/own.csv"));
  EXPECT_TRUE(Delete("flowers").ok());
  EXPECT_FALSE(std::filesystem::exists(flowers->location()));
  EXPECT_EQ(Delete("flowers").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Delete("flowers", "", /*allow_missing=*/true).ok());
  Open();
  EXPECT_THAT(registry_->List(), IsEmpty());
  // The name is free again.
  EXPECT_TRUE(CreateUploaded("flowers").ok());
}

TEST_F(DatasetRegistryTest, RemovesFetchedSetsButNoOnesFolder) {
  WriteNamedSet(data_ + "/shapes");
  WriteNamedSet(public_ + "/mnist");
  const absl::Status refused = Delete("shapes");
  EXPECT_EQ(GetReason(refused), "DATASET_NOT_REGISTERED") << refused;
  EXPECT_EQ(GetReason(Delete("shapes", "none")), "DATASET_NOT_REGISTERED");
  // A fetched set has no etag, so the caller means another set of this name.
  const absl::Status other = Delete("mnist", "none");
  EXPECT_TRUE(absl::IsAborted(other)) << other;
  EXPECT_EQ(GetReason(other), "ETAG_MISMATCH");
  EXPECT_TRUE(std::filesystem::exists(public_ + "/mnist"));
  EXPECT_TRUE(Delete("mnist").ok());
  EXPECT_FALSE(std::filesystem::exists(public_ + "/mnist"));
  EXPECT_TRUE(std::filesystem::exists(data_ + "/shapes"));
}

TEST_F(DatasetRegistryTest, ASetInUseStays) {
  ASSERT_TRUE(CreateUploaded("flowers").ok());
  InsertJob("running-1", "flowers", v1::JOB_STATE_RUNNING);
  InsertJob("paused-2", "datasets/flowers", v1::JOB_STATE_PAUSED);
  InsertJob("done-3", "flowers", v1::JOB_STATE_SUCCEEDED);
  InsertJob("other-4", "flower", v1::JOB_STATE_RUNNING);
  const absl::Status refused = Delete("flowers");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetReason(refused), "DATASET_IN_USE");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("running-1, paused-2;"));
  EXPECT_TRUE(registry_->Find("flowers").has_value());
}

TEST_F(DatasetRegistryTest, ASetThatAJobIsAboutToNameStays) {
  ASSERT_TRUE(CreateUploaded("flowers").ok());
  {
    const DatasetRegistry::Hold hold = registry_->HoldFor("datasets/flowers");
    const DatasetRegistry::Hold other = registry_->HoldFor("other");
    const DatasetRegistry::Hold none = registry_->HoldFor("");
    EXPECT_EQ(Delete("flowers").code(), absl::StatusCode::kAborted);
  }
  EXPECT_TRUE(Delete("flowers").ok());
}

TEST_F(DatasetRegistryTest, AnEtagIsOfOneSet) {
  const absl::StatusOr<v1::Dataset> made = CreateUploaded("flowers");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(GetReason(Delete("flowers", "another")), "ETAG_MISMATCH");
  EXPECT_TRUE(Delete("flowers", made->etag()).ok());
  ASSERT_TRUE(CreateUploaded("flowers").ok());
  EXPECT_EQ(Delete("flowers", made->etag()).code(), absl::StatusCode::kAborted);
}

TEST_F(DatasetRegistryTest, NamesAreTakenOnce) {
  ASSERT_TRUE(CreateUploaded("flowers").ok());
  WriteNamedSet(data_ + "/shapes");
  EXPECT_EQ(GetReason(CreateUploaded("flowers").status()), "DATASET_EXISTS");
  const absl::Status folder = CreateUploaded("shapes").status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(folder.message()), HasSubstr(data_));
  // Its upload is not lost.
  EXPECT_EQ(uploads_->List().size(), 1);
}

// Reading one user's long queue must not need memory for all its specs.
TEST_F(DatasetRegistryTest, LooksForUsersOfASetWithoutAllSpecsInMemory) {
  constexpr int kJobs = 200;
  WriteFile(data_ + "/own.csv", "a,b\n1,2\n");
  ASSERT_TRUE(Create(Request("own", "own.csv")).ok());
  for (int i = 0; i < kJobs; ++i) {
    Awaited<absl::Status> done;
    store_->Write(
        [&](Transaction& transaction) {
          StoredJob job;
          job.job.set_name(JobName(absl::StrCat("job-", i)));
          job.job.set_state(v1::JOB_STATE_QUEUED);
          job.job.mutable_spec()->set_name(std::string(1 << 20, 'x'));
          return transaction.InsertJob(&job, "", {});
        },
        done.Done());
    ASSERT_TRUE(done.Get().ok());
  }
  // Resets the process's peak.
  WriteFile("/proc/self/clear_refs", "5");
  const int64_t before = PeakKibibytes();
  ASSERT_TRUE(Delete("own").ok());
  EXPECT_LT(PeakKibibytes() - before, 40 << 10);
}

TEST_F(DatasetRegistryTest, ARepeatedRequestGivesTheSameSet) {
  WriteFile(data_ + "/own.csv", "a,b\n1,2\n");
  v1::CreateDatasetRequest request = Request("own", "own.csv");
  request.set_request_id("r1");
  EXPECT_FALSE((*registry_->FindRepeated(request, "ann")).has_value());
  ASSERT_TRUE(Create(request).ok());
  for (int i = 0; i < 2; ++i) {
    const auto repeated = registry_->FindRepeated(request, "ann");
    ASSERT_TRUE(repeated.ok() && repeated->has_value());
    EXPECT_EQ((*repeated)->name(), "datasets/own");
    Open();
  }
  v1::CreateDatasetRequest other = request;
  other.mutable_dataset()->set_description("other");
  EXPECT_EQ(registry_->FindRepeated(other, "ann").status().code(), absl::StatusCode::kAlreadyExists);
  // An error does not reveal another user's set.
  for (const v1::CreateDatasetRequest& wanted : {request, other}) {
    const absl::Status refused = registry_->FindRepeated(wanted, "bob").status();
    EXPECT_EQ(GetReason(refused), "REQUEST_ID_USED");
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("own")));
  }
}

// The rest of a request is read and not kept.
TEST_F(DatasetRegistryTest, KeepsOfARequestNoMoreThanADigest) {
  WriteFile(data_ + "/own.csv", "a,b\n1,2\n");
  v1::CreateDatasetRequest request = Request("own", "own.csv");
  request.set_request_id("r1");
  request.mutable_dataset()->set_problem(std::string(1 << 20, 'x'));
  ASSERT_TRUE(Create(request).ok());
  EXPECT_LT(store_->Datasets()->at(0).request.size(), 100);
  request.mutable_dataset()->clear_problem();
  EXPECT_TRUE((*registry_->FindRepeated(request, "ann")).has_value());

  request.set_dataset_id("large");
  request.mutable_dataset()->set_problem(std::string(2 << 20, 'x'));
  EXPECT_EQ(GetReason(Create(request).status()), "SPEC_TOO_LARGE");
}

TEST_F(DatasetRegistryTest, SaysAllThatIsWrong) {
  v1::CreateDatasetRequest request;
  for (const char* id : {"", "Flowers", "9lives", "-a", "a/b", "..", "a b", "datasets/a", "a-", "\xc3\xbc"}) {
    request.set_dataset_id(id);
    EXPECT_THAT(Fields(Create(request).status()), ElementsAre("dataset_id", "dataset.spec")) << id;
  }
  request = Request("flowers", "a.csv");
  request.mutable_dataset()->set_description("two\nlines");
  request.mutable_dataset()->mutable_spec()->set_train_limit(5);
  request.mutable_dataset()->mutable_spec()->add_augmentation();
  request.mutable_dataset()->mutable_spec()->set_name("other");
  request.set_upload("no");
  EXPECT_THAT(Fields(Create(request).status()),
              ElementsAre("dataset.description", "upload", "dataset.spec.name", "dataset.spec.train_limit",
                          "dataset.spec.augmentation"));
  // The source is checked like a job's source.
  EXPECT_THAT(Fields(Create(Request("flowers", "none.csv")).status()), ElementsAre("dataset.spec.csv.train"));
  WriteFile(data_ + "/ragged.csv", "a,b\n1,2\n3\n");
  const absl::Status ragged = Create(Request("flowers", "ragged.csv")).status();
  EXPECT_EQ(GetReason(ragged), "INVALID_DATASET") << ragged;
  EXPECT_THAT(registry_->List(), IsEmpty());
}

TEST(DatasetRequestTest, RequestsAreBounded) {
  v1::CreateDatasetRequest request;
  request.set_dataset_id("houses");
  request.mutable_dataset()->mutable_spec()->mutable_csv()->set_train("houses.csv");
  EXPECT_TRUE(CheckDatasetRequest(request).ok());
  const auto fields_of = [](const v1::CreateDatasetRequest& wrong) {
    std::string fields;
    for (const FieldViolation& violation : GetFieldViolations(CheckDatasetRequest(wrong))) {
      absl::StrAppend(&fields, violation.field, " ");
    }
    return fields;
  };
  v1::CreateDatasetRequest wrong = request;
  wrong.mutable_dataset()->set_description(std::string(1001, 'x'));
  wrong.set_request_id(std::string(129, 'x'));
  EXPECT_EQ(fields_of(wrong), "dataset.description request_id ");
  wrong.mutable_dataset()->set_description("two\nlines");
  wrong.set_request_id("two\nlines");
  EXPECT_EQ(fields_of(wrong), "dataset.description request_id ");
  wrong.mutable_dataset()->set_description(std::string(1000, 'x'));
  wrong.set_request_id(std::string(128, 'x'));
  EXPECT_EQ(fields_of(wrong), "");
  wrong = request;
  wrong.mutable_dataset()->mutable_spec()->mutable_csv()->set_train(std::string((1 << 20) + 1, 'x'));
  absl::Status status = CheckDatasetRequest(wrong);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(GetReason(status), "SPEC_TOO_LARGE");
  wrong = request;
  wrong.set_upload(std::string((2 << 20) + 1, 'x'));
  status = CheckDatasetRequest(wrong);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(GetReason(status), "SPEC_TOO_LARGE");
}

TEST_F(DatasetRegistryTest, PathsStayInTheUpload) {
  const std::string upload = Upload(flowers_);
  const std::string other = Upload(SampleUpload::OneFile("secret.csv", "a,b\n1,2\n"));
  for (const std::string& path :
       {std::string("../") + other.substr(8) + "/files/secret.csv", std::string("none.csv"),
        uploads_->FilesFolder(other.substr(8)) + "/secret.csv", folder_.path() + "/tandem.db",
        std::string("/etc/passwd"), std::string(".")}) {
    v1::CreateDatasetRequest request = Request("flowers", path);
    request.set_upload(upload);
    EXPECT_THAT(Fields(Create(request).status()), ElementsAre("dataset.spec.csv.train")) << path;
  }
  // Each path of a pattern counts.
  const std::string id = other.substr(8);
  for (const std::string& pattern :
       {absl::StrCat("{x,..}/", id, "/files/secret.csv"), absl::StrCat("{x,../", id, "/files/secret}.csv"),
        absl::StrCat(folder_.path(), "/{uploads/", id, "/files/secret,data/x}.csv"),
        std::string("flowers{.csv"), std::string("{none,flowers}.csv"),
        absl::StrCat("/", std::string(5000, 'a'), "{0..99999}")}) {
    v1::CreateDatasetRequest request;
    request.set_dataset_id("flowers");
    request.mutable_dataset()->mutable_spec()->mutable_webdataset()->set_train(pattern);
    request.set_upload(upload);
    const absl::Status status = Create(request).status();
    EXPECT_THAT(Fields(status), ElementsAre("dataset.spec.webdataset.train")) << pattern;
    // Nobody makes paths of 500 MB.
    if (pattern.size() > 4096) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("has 5011 bytes"));
    }
  }
  // A set without an upload cannot use a path to uploaded files.
  EXPECT_THAT(
      Fields(Create(Request("flowers", uploads_->FilesFolder(other.substr(8)) + "/secret.csv")).status()),
      ElementsAre("dataset.spec.csv.train"));
  v1::CreateDatasetRequest request = Request("flowers", "./flowers.csv");
  request.set_upload("uploads/0123456789abcdef");
  EXPECT_EQ(Create(request).status().code(), absl::StatusCode::kNotFound);
  request.set_upload(upload);
  EXPECT_TRUE(Create(request).ok());
}

// At every moment the bytes count exactly once.
TEST_F(DatasetRegistryTest, BytesCountWhileAnUploadBecomesASet) {
  const int64_t bytes = UploadFolder::BytesOnDisk(flowers_.Declaration());
  for (int round = 0; round < 20; ++round) {
    v1::CreateDatasetRequest request = Request("flowers", "flowers.csv");
    request.set_upload(Upload(flowers_));
    std::atomic<bool> done = false;
    std::atomic<int> wrong = 0;
    // The set's row waits until the test has looked.
    absl::Notification looked;
    Awaited<absl::Status> written;
    store_->Write(
        [&](Transaction&) {
          looked.WaitForNotificationWithTimeout(absl::Minutes(1));
          return absl::OkStatus();
        },
        written.Done());
    std::thread watcher([&] {
      while (!done) {
        const bool is_on_its_way = uploads_->List().empty();
        wrong += uploads_->BytesOf("ann") == bytes ? 0 : 1;
        if (is_on_its_way && !looked.HasBeenNotified()) looked.Notify();
      }
    });
    const absl::StatusOr<v1::Dataset> made = Create(request);
    done = true;
    watcher.join();
    EXPECT_TRUE(written.Get().ok());
    EXPECT_TRUE(looked.HasBeenNotified());
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(uploads_->BytesOf("ann"), bytes);
    Open();
    EXPECT_EQ(uploads_->BytesOf("ann"), bytes);
    ASSERT_TRUE(Delete("flowers").ok());
    EXPECT_EQ(uploads_->BytesOf("ann"), 0);
  }
}

TEST_F(DatasetRegistryTest, OnlyChecksWhereAsked) {
  v1::CreateDatasetRequest request = Request("flowers", "flowers.csv");
  request.set_upload(Upload(flowers_));
  request.set_validate_only(true);
  const absl::StatusOr<v1::Dataset> checked = Create(request);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->train_samples(), 3);
  EXPECT_THAT(registry_->List(), IsEmpty());
  EXPECT_EQ(uploads_->List().size(), 1);
}

}  // namespace
}  // namespace tandem

#include "client/lib/tensorboard_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/wire_format_lite.h"

namespace tandem::client {
namespace {

using ::google::protobuf::internal::WireFormatLite;
using ::google::protobuf::io::CodedInputStream;
using ::google::protobuf::io::CodedOutputStream;
using ::google::protobuf::io::StringOutputStream;

// Field numbers of TensorBoard's messages. kSequence is Tandem's own; other readers skip the field.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSequence = 7448;  // of Event
constexpr int kValue = 1;                                                                  // of Summary
constexpr int kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;                      // of Summary.Value
constexpr int kPluginData = 1, kPluginName = 1, kContent = 2;  // of SummaryMetadata, and of its PluginData
constexpr int kSessionStart = 3;                               // of HParamsPluginData
constexpr int kHyperparameters = 1, kStartSeconds = 5;         // of SessionStartInfo
constexpr int kKey = 1, kMapValue = 2;                         // of an entry of a map
constexpr int kType = 1, kShape = 2, kStringValue = 8;         // of TensorProto
constexpr int kStringType = 7;                                 // DataType.DT_STRING
constexpr char kVersion[] = "brain.Event:2";

// A record: length (8 bytes), masked checksum of the length (4), data, masked checksum of the data (4).
constexpr size_t kHeadSize = 12, kTailSize = 4;
constexpr size_t kFlushSize = 1 << 20;

// Appends a number in bytes of 7 bits, the lowest bits first.
void AppendVarint(uint64_t value, std::string* out) {
  uint8_t bytes[10];
  out->append(reinterpret_cast<char*>(bytes), CodedOutputStream::WriteVarint64ToArray(value, bytes) - bytes);
}

void AppendBytes(int field, absl::string_view value, std::string* out) {
  AppendVarint(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), out);
  AppendVarint(value.size(), out);
  out->append(value.data(), value.size());
}

std::string Bytes(int field, absl::string_view value) {
  std::string out;
  AppendBytes(field, value, &out);
  return out;
}

// The fields that every Event has.
std::string EventHead(double wall_time, int64_t step, int64_t sequence) {
  std::string out;
  {
    StringOutputStream stream(&out);
    CodedOutputStream coded(&stream);
    WireFormatLite::WriteDouble(kWallTime, wall_time, &coded);
    WireFormatLite::WriteInt64(kStep, step, &coded);
    WireFormatLite::WriteInt64(kSequence, sequence, &coded);
  }
  return out;
}

double Seconds(const google::protobuf::Timestamp& time) { return time.seconds() + time.nanos() * 1e-9; }

// The values of one Summary.
class Scalars {
 public:
  void Add(absl::string_view tag, double value) {
    value_.clear();
    AppendBytes(kTag, tag, &value_);
    uint8_t bytes[8];
    value_.append(reinterpret_cast<char*>(bytes),
                  WireFormatLite::WriteFloatToArray(kSimpleValue, static_cast<float>(value), bytes) - bytes);
    AppendBytes(kValue, value_, &summary_);
  }
  void Add(absl::string_view prefix, const v1::Evaluation& evaluation) {
    Add(absl::StrCat(prefix, "/loss"), evaluation.loss());
    for (const auto& [name, value] :
         std::map<std::string, double>(evaluation.metrics().begin(), evaluation.metrics().end())) {
      Add(absl::StrCat(prefix, "/", name), value);
    }
  }
  const std::string& summary() const { return summary_; }

 private:
  std::string summary_;
  // The newest value. It is a member to reuse its memory.
  std::string value_;
};

uint32_t Mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

std::string Fixed32(uint32_t value) {
  std::string out(4, '\0');
  CodedOutputStream::WriteLittleEndian32ToArray(value, reinterpret_cast<uint8_t*>(out.data()));
  return out;
}

uint32_t Load32(const char* bytes) {
  uint32_t value;
  CodedInputStream::ReadLittleEndian32FromArray(reinterpret_cast<const uint8_t*>(bytes), &value);
  return value;
}

uint64_t Load64(const char* bytes) {
  uint64_t value;
  CodedInputStream::ReadLittleEndian64FromArray(reinterpret_cast<const uint8_t*>(bytes), &value);
  return value;
}

std::string Record(absl::string_view event) {
  std::string size(8, '\0');
  CodedOutputStream::WriteLittleEndian64ToArray(event.size(), reinterpret_cast<uint8_t*>(size.data()));
  return absl::StrCat(size, Fixed32(Mask(Crc32c(size))), event, Fixed32(Mask(Crc32c(event))));
}

// Returns a Summary.Value that TensorBoard shows as text.
std::string TextValue(absl::string_view tag, absl::string_view text) {
  std::string tensor;
  {
    StringOutputStream stream(&tensor);
    CodedOutputStream coded(&stream);
    WireFormatLite::WriteEnum(kType, kStringType, &coded);
  }
  absl::StrAppend(&tensor, Bytes(kShape, ""), Bytes(kStringValue, text));
  return absl::StrCat(Bytes(kTag, tag), Bytes(kTensor, tensor),
                      Bytes(kMetadata, Bytes(kPluginData, Bytes(kPluginName, "text"))));
}

// Adds each set scalar field to a SessionStartInfo, by its path, such as "training.epochs".
void AppendHyperparameters(const google::protobuf::Message& message, const std::string& prefix,
                           std::string* session) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      const auto get = [&](auto single, auto repeated) {
        return field->is_repeated() ? (reflection.*repeated)(message, field, i)
                                    : (reflection.*single)(message, field);
      };
      const std::string path =
          absl::StrCat(prefix, field->name(), field->is_repeated() ? absl::StrCat("[", i, "]") : "");
      using google::protobuf::FieldDescriptor;
      using google::protobuf::Reflection;
      google::protobuf::Value value;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_MESSAGE:
          AppendHyperparameters(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                     : reflection.GetMessage(message, field),
                                absl::StrCat(path, "."), session);
          continue;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          value.set_number_value(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
          break;
        case FieldDescriptor::CPPTYPE_FLOAT:
          value.set_number_value(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat));
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          value.set_number_value(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
          break;
        case FieldDescriptor::CPPTYPE_UINT32:
          value.set_number_value(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          value.set_number_value(
              static_cast<double>(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64)));
          break;
        case FieldDescriptor::CPPTYPE_UINT64:
          value.set_number_value(
              static_cast<double>(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64)));
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          value.set_bool_value(get(&Reflection::GetBool, &Reflection::GetRepeatedBool));
          break;
        case FieldDescriptor::CPPTYPE_ENUM:
          value.set_string_value(get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum)->name());
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          value.set_string_value(get(&Reflection::GetString, &Reflection::GetRepeatedString));
          break;
      }
      AppendBytes(kHyperparameters,
                  absl::StrCat(Bytes(kKey, path), Bytes(kMapValue, value.SerializeAsString())), session);
    }
  }
}

// Returns a Summary.Value for TensorBoard's HPARAMS page.
std::string HyperparametersValue(const v1::Job& job) {
  std::string session;
  AppendHyperparameters(job.spec(), "", &session);
  {
    StringOutputStream stream(&session);
    CodedOutputStream coded(&stream);
    WireFormatLite::WriteDouble(kStartSeconds, Seconds(job.create_time()), &coded);
  }
  return absl::StrCat(
      Bytes(kTag, "_hparams_/session_start_info"),
      Bytes(kMetadata, Bytes(kPluginData, absl::StrCat(Bytes(kPluginName, "hparams"),
                                                       Bytes(kContent, Bytes(kSessionStart, session))))));
}

// Returns the event's sequence number, or -1 if the data is not an Event of Tandem.
int64_t SequenceOf(absl::string_view event) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(event.data()), static_cast<int>(event.size()));
  while (const uint32_t tag = in.ReadTag()) {
    if (tag == WireFormatLite::MakeTag(kSequence, WireFormatLite::WIRETYPE_VARINT)) {
      uint64_t sequence;
      return in.ReadVarint64(&sequence) ? static_cast<int64_t>(sequence) : -1;
    }
    if (!WireFormatLite::SkipField(&in, tag)) return -1;
  }
  return -1;
}

}  // namespace

uint32_t Crc32c(absl::string_view data) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
      entries[i] = crc;
    }
    return entries;
  }();
  uint32_t crc = 0xffffffffu;
  for (const char c : data) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

absl::StatusOr<std::unique_ptr<TensorBoardFile>> TensorBoardFile::Open(const std::string& path,
                                                                       const v1::Job& job,
                                                                       const std::string& settings) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  std::unique_ptr<TensorBoardFile> file(new TensorBoardFile(path, descriptor));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return absl::AbortedError(absl::StrCat(
        "cannot write ", path, ": another process writes the file; stop it, or name another folder"));
  }
  const std::string head = EventHead(Seconds(job.create_time()), 0, 0);
  const std::string beginning = absl::StrCat(
      Record(absl::StrCat(head, Bytes(kFileVersion, kVersion))),
      Record(absl::StrCat(head, Bytes(kSummary, absl::StrCat(Bytes(kValue, TextValue("job", settings)),
                                                             Bytes(kValue, HyperparametersValue(job)))))));
  if (absl::Status status = file->Recover(beginning); !status.ok()) return status;
  if (file->empty_) file->buffer_ = beginning;
  if (absl::Status status = file->Flush(); !status.ok()) return status;
  return file;
}

TensorBoardFile::~TensorBoardFile() {
  (void)Flush();
  close(file_);
}

absl::Status TensorBoardFile::Error(absl::string_view what) const {
  return absl::FailedPreconditionError(absl::StrCat("cannot ", what, " ", path_, ": ", std::strerror(errno)));
}

absl::Status TensorBoardFile::Recover(absl::string_view beginning) {
  struct stat facts;
  if (fstat(file_, &facts) != 0) return Error("read");
  std::string content(facts.st_size, '\0');
  for (size_t read = 0; read < content.size();) {
    const ssize_t count =
        pread(file_, content.data() + read, content.size() - read, static_cast<off_t>(read));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error("read");
    if (count == 0) content.resize(read);
    read += count;
  }
  absl::string_view rest = content;
  size_t whole = 0;
  int records = 0;
  while (rest.size() >= kHeadSize + kTailSize) {
    const uint64_t size = Load64(rest.data());
    if (Load32(rest.data() + 8) != Mask(Crc32c(rest.substr(0, 8)))) break;
    if (size > rest.size() - kHeadSize - kTailSize) break;
    const absl::string_view event = rest.substr(kHeadSize, size);
    if (Load32(event.data() + size) != Mask(Crc32c(event))) break;
    const int64_t sequence = SequenceOf(event);
    if (sequence < last_sequence_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot continue ", path_, ": it is not an event file of this program; move the file away"));
    }
    last_sequence_ = sequence;
    rest.remove_prefix(kHeadSize + size + kTailSize);
    whole += kHeadSize + size + kTailSize;
    ++records;
  }
  // A file without both of its first records starts again, unless another program wrote the file.
  empty_ = records < 2;
  if (empty_) {
    if (!absl::StartsWith(beginning, content)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot continue ", path_, ": it is not an event file of this program; move the file away"));
    }
    whole = 0;
  }
  if (ftruncate(file_, static_cast<off_t>(whole)) != 0) return Error("shorten");
  if (lseek(file_, static_cast<off_t>(whole), SEEK_SET) < 0) return Error("write");
  return absl::OkStatus();
}

absl::Status TensorBoardFile::Add(const v1::JobEvent& event) {
  if (event.sequence() <= last_sequence_) return absl::OkStatus();
  Scalars scalars;
  int64_t step = 0;
  if (event.has_progress()) {
    const v1::Progress& progress = event.progress();
    step = progress.step();
    scalars.Add("training", progress.training());
    scalars.Add("learning_rate", progress.learning_rate());
    scalars.Add("images_per_second", progress.images_per_second());
  } else if (event.has_epoch()) {
    const v1::EpochSummary& epoch = event.epoch();
    step = epoch.step();
    scalars.Add("epoch", static_cast<double>(epoch.epoch()));
    scalars.Add("epoch_training", epoch.training());
    if (epoch.has_validation()) scalars.Add("validation", epoch.validation());
    scalars.Add("epoch_images_per_second", epoch.images_per_second());
  } else if (event.has_validation()) {
    step = event.validation().step();
    scalars.Add("validation", event.validation().validation());
  } else if (event.has_parameters()) {
    step = event.parameters().step();
    for (const v1::ParameterStatistics& one : event.parameters().parameters()) {
      scalars.Add(absl::StrCat("parameter_mean/", one.name()), one.mean());
      scalars.Add(absl::StrCat("parameter_deviation/", one.name()), one.standard_deviation());
      scalars.Add(absl::StrCat("parameter_change/", one.name()), one.relative_change());
    }
  } else {
    return absl::OkStatus();
  }
  buffer_ += Record(absl::StrCat(EventHead(Seconds(event.time()), step, event.sequence()),
                                 Bytes(kSummary, scalars.summary())));
  last_sequence_ = event.sequence();
  return buffer_.size() < kFlushSize ? absl::OkStatus() : Flush();
}

absl::Status TensorBoardFile::Flush() {
  absl::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t count = write(file_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error("write");
    rest.remove_prefix(count);
    // After an error, the file ends with the written part. The rest stays in the buffer.
    buffer_.erase(0, count);
    rest = buffer_;
  }
  return absl::OkStatus();
}

absl::Status TensorBoardFile::Sync() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  return fdatasync(file_) == 0 ? absl::OkStatus() : Error("sync");
}

}  // namespace tandem::client

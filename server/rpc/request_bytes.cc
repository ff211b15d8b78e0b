#include "server/rpc/request_bytes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"

namespace tandem {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

// The parser's limit on nesting.
constexpr int kMostLevels = 100;
// The wire types in the lowest bits of a field's tag.
enum WireType { kVarint = 0, kFixed64 = 1, kDelimited = 2, kGroupBegin = 3, kGroupEnd = 4, kFixed32 = 5 };

// Subtracts the fields of a message from `left`, as far as the bytes parse. Returns false if there are more
// than `left`.
bool CountFields(CodedInputStream& in, const Descriptor& message, int level, int64_t* left) {
  while (const uint32_t tag = in.ReadTag()) {
    if (--*left < 0) return false;
    uint64_t number;
    uint32_t size;
    switch (tag & 7) {
      case kVarint:
        if (!in.ReadVarint64(&number)) return true;
        break;
      case kFixed64:
        if (!in.Skip(8)) return true;
        break;
      case kFixed32:
        if (!in.Skip(4)) return true;
        break;
      case kDelimited: {
        if (!in.ReadVarint32(&size)) return true;
        const FieldDescriptor* const field = message.FindFieldByNumber(static_cast<int>(tag >> 3));
        if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
          if (!in.Skip(static_cast<int>(size))) return true;
          break;
        }
        // The parser reports the error.
        if (level == kMostLevels) return true;
        const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(size));
        if (!CountFields(in, *field->message_type(), level + 1, left)) return false;
        if (in.BytesUntilLimit() > 0 && !in.Skip(in.BytesUntilLimit())) return true;
        in.PopLimit(limit);
        break;
      }
      default:
        // Groups are unknown fields. Their content also counts.
        break;
    }
  }
  return true;
}

absl::Status TooLarge(absl::string_view what) {
  return WithReason(absl::ResourceExhaustedError(
                        absl::StrCat("cannot take the request: it has ", what, "; send less at once")),
                    "REQUEST_TOO_LARGE");
}

}  // namespace

absl::Status ParseRequest(grpc::ByteBuffer bytes, int64_t most_bytes, google::protobuf::Message* request,
                          int64_t most_fields) {
  const auto size = static_cast<int64_t>(bytes.Length());
  if (size > most_bytes) {
    return TooLarge(absl::StrCat(size, " bytes, more than ", most_bytes));
  }
  if (size > most_fields) {
    // Each field takes at least a byte.
    grpc::ByteBuffer counted = bytes;
    grpc::ProtoBufferReader reader(&counted);
    CodedInputStream in(&reader);
    int64_t left = most_fields;
    if (!CountFields(in, *request->GetDescriptor(), 0, &left)) {
      return TooLarge(absl::StrCat("more than ", most_fields, " fields"));
    }
  }
  grpc::ProtoBufferReader reader(&bytes);
  if (reader.status().ok() && request->ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "cannot read the message: it is not a request of this method, has a text that is not UTF-8, or is "
      "nested more than 100 levels deep; use the daemon's version of the API, texts in UTF-8 and less "
      "nesting");
}

}  // namespace tandem

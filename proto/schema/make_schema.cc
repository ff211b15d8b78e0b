// Writes the schema of a message's files to standard output.
//
//   make_schema DESCRIPTORS MESSAGE TITLE
//
// DESCRIPTORS is a FileDescriptorSet with its imports and with source information.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <iostream>

#include "proto/schema/file_schema.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: make_schema DESCRIPTORS MESSAGE TITLE\n";
    return 2;
  }
  std::ifstream input(argv[1], std::ios::binary);
  google::protobuf::FileDescriptorSet files;
  if (!files.ParseFromIstream(&input)) {
    std::cerr << "make_schema: cannot read descriptors from " << argv[1] << "\n";
    return 1;
  }
  google::protobuf::DescriptorPool pool;
  for (const google::protobuf::FileDescriptorProto& file : files.file()) {
    if (pool.BuildFile(file) == nullptr) return 1;
  }
  const google::protobuf::Descriptor* type = pool.FindMessageTypeByName(argv[2]);
  if (type == nullptr) {
    std::cerr << "make_schema: no message " << argv[2] << " in " << argv[1] << "\n";
    return 1;
  }
  std::cout << tandem::FileSchema(*type, argv[3]) << std::flush;
  return std::cout.good() ? 0 : 1;
}

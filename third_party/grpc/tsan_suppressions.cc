// What the thread sanitizer is to overlook. It stands in the program and not in a file, since a test's
// working folder is not the repository.

extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  // gRPC was not compiled for the sanitizer, which cannot see how it hands a call from one of its threads to
  // another. What is done in its callbacks is therefore not judged; all other threads are, among themselves.
  return "race:^grpc::internal::\n"
         "race:^grpc::Server\n"
         // Its timers, by Abseil's templates that a program and gRPC share.
         "race:^grpc_event_engine::\n"
         // Whoever lets go of credentials last, by a count in gRPC, destroys what they hold.
         "race:^grpc_ssl_server_credentials::\n"
         "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n";
}

// The thread sanitizer's options. They are in the program because a worker does not inherit them from the
// environment.

extern "C" const char* __tsan_default_options();

extern "C" const char* __tsan_default_options() {
  // The system's libraries were not compiled for the sanitizer, so it cannot judge their inner accesses.
  return "ignore_noninstrumented_modules=1:halt_on_error=1";
}

// How the thread sanitizer judges a program. It stands in the program and not in its environment, which a
// worker does not inherit.

extern "C" const char* __tsan_default_options();

extern "C" const char* __tsan_default_options() {
  // What the system's libraries do inside was not compiled for the sanitizer and cannot be judged by it.
  return "ignore_noninstrumented_modules=1:halt_on_error=1";
}

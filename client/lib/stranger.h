#ifndef TANDEM_CLIENT_LIB_STRANGER_H_
#define TANDEM_CLIENT_LIB_STRANGER_H_

#include <string>

namespace tandem::client {

// Another user of this machine who listens on loopback, for tests that keep something from such a one. Not
// thread-safe.
class Stranger {
 public:
  // Whether this process may make one: only root can.
  static bool CanBe();

  // Listens on 127.0.0.1, on a free port where `port` is 0. Ends the process where that fails.
  explicit Stranger(int port = 0);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  int port() const { return port_; }
  // All that those who connected so far have sent.
  std::string Received();

 private:
  int listener_ = -1;
  int port_ = 0;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_STRANGER_H_

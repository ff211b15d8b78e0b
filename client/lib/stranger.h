#ifndef TANDEM_CLIENT_LIB_STRANGER_H_
#define TANDEM_CLIENT_LIB_STRANGER_H_

#include <string>

namespace tandem::client {

// A listener on loopback that belongs to another user of this machine. For tests of code that must not send
// such a user a secret. Not thread-safe.
class Stranger {
 public:
  // Returns whether this process can create a Stranger. Only root can.
  static bool CanBe();

  // Listens on 127.0.0.1, at a free port if `port` is 0. Ends the process on failure.
  explicit Stranger(int port = 0);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  int port() const { return port_; }
  // Returns all bytes that clients have sent so far.
  std::string Received();

 private:
  int listener_ = -1;
  int port_ = 0;
};

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_STRANGER_H_

#include "server/fetch/curl_transport.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/version.h"
#include "server/fetch/fetch_policy.h"

namespace tandem {
namespace {

constexpr size_t kMaxErrorBody = 16384;
constexpr size_t kMaxHeaders = 200;
// A transfer with fewer bytes per second counts as stalled.
constexpr long kStandstill = 1024;
// S3's signature needs the SHA-256 of the empty content, and this libcurl does not add it.
constexpr char kNoContent[] =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

bool MayWorkLater(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_AGAIN:
      return true;
    default:
      return false;
  }
}

std::string TextOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes = address->sa_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  inet_ntop(address->sa_family, bytes, text, sizeof(text));
  return text;
}

}  // namespace

struct CurlTransport::Handle {
  explicit Handle(bool is_judged) : is_judged(is_judged) {}
  ~Handle() { curl_easy_cleanup(curl); }

  CURL* const curl = curl_easy_init();
  // True if the addresses of its connections are checked.
  const bool is_judged;
};

// A request and its response. libcurl calls it on one thread.
class CurlTransport::Exchange {
 public:
  Exchange(const CurlTransport& transport, const HttpRequest& request, HttpSink& sink, const Handle& handle)
      : transport_(transport),
        request_(request),
        sink_(sink),
        curl_(handle.curl),
        is_judged_(handle.is_judged) {}
  ~Exchange() { curl_slist_free_all(headers_); }

  absl::StatusOr<HttpResponse> Run() {
    Prepare();
    CURLcode code = curl_easy_perform(curl_);
    // The beginning of an error's text suffices.
    if (has_whole_error_) code = CURLE_OK;
    if (!sink_status_.ok()) return sink_status_;
    if (transport_.stopped_) return absl::CancelledError("the daemon is shutting down");
    // Another address of the same name may have been allowed, and may have answered.
    if (code != CURLE_OK && !refused_.empty()) {
      return WithReason(
          absl::PermissionDeniedError(absl::StrCat("resolves to ", refused_,
                                                   ", which is not an address of the public Internet; the "
                                                   "daemon's owner can allow the host with --fetch-from")),
          "FETCH_NOT_ALLOWED");
    }
    if (code != CURLE_OK) {
      const std::string what = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
      return MayWorkLater(code) ? absl::UnavailableError(what) : absl::InvalidArgumentError(what);
    }
    // A response without content did not call Begin.
    if (absl::Status status = Begin(); !status.ok()) return status;
    char* redirect = nullptr;
    if (curl_easy_getinfo(curl_, CURLINFO_REDIRECT_URL, &redirect) == CURLE_OK && redirect != nullptr) {
      response_.redirect = redirect;
    }
    return std::move(response_);
  }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(curl_, option, value);
  }

  void Prepare() {
    curl_easy_reset(curl_);
    Set(CURLOPT_URL, request_.url.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    // Keys of S3 may have parts such as "..", which must stay.
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_NOSIGNAL, 1L);
    // A proxy also decides if addresses are checked. So use neither the environment nor no_proxy, which could
    // lead names to private addresses without a check.
    if (!request_.any_address) {
      Set(CURLOPT_PROXY, transport_.options_.proxies.For(request_.url).c_str());
      Set(CURLOPT_NOPROXY, "");
    }
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_USERAGENT, absl::StrCat("tandemd/", kVersion).c_str());
    Set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(absl::ToInt64Milliseconds(transport_.options_.connect_timeout)));
    Set(CURLOPT_LOW_SPEED_LIMIT, kStandstill);
    Set(CURLOPT_LOW_SPEED_TIME,
        std::max(1L, static_cast<long>(absl::ToInt64Seconds(transport_.options_.stall_timeout))));
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_BUFFERSIZE, 256L * 1024);
    if (!transport_.options_.ca_file.empty()) Set(CURLOPT_CAINFO, transport_.options_.ca_file.c_str());
    for (const std::string& header : request_.headers) headers_ = curl_slist_append(headers_, header.c_str());
    if (request_.signature.has_value()) {
      const S3Signature& signature = *request_.signature;
      headers_ = curl_slist_append(headers_, kNoContent);
      if (!signature.session_token.empty()) {
        headers_ = curl_slist_append(headers_,
                                     absl::StrCat("x-amz-security-token: ", signature.session_token).c_str());
      }
      Set(CURLOPT_AWS_SIGV4, absl::StrCat("aws:amz:", signature.region, ":s3").c_str());
      Set(CURLOPT_USERNAME, signature.access_key.c_str());
      Set(CURLOPT_PASSWORD, signature.secret_key.c_str());
    }
    Set(CURLOPT_HTTPHEADER, headers_);
    Set(CURLOPT_HEADERDATA, this);
    Set(CURLOPT_HEADERFUNCTION, &OnHeader);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_WRITEFUNCTION, &OnData);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFODATA, this);
    Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    Set(CURLOPT_OPENSOCKETDATA, this);
    Set(CURLOPT_OPENSOCKETFUNCTION, &OnOpenSocket);
  }

  // Runs once, before the content.
  absl::Status Begin() {
    if (std::exchange(begun_, true)) return absl::OkStatus();
    long status = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
    response_.status = static_cast<int>(status);
    return IsSuccess() ? sink_.OnHeaders(response_) : absl::OkStatus();
  }
  bool IsSuccess() const { return response_.status >= 200 && response_.status < 300; }

  static size_t OnHeader(char* bytes, size_t, size_t size, void* data) {
    auto* self = static_cast<Exchange*>(data);
    const absl::string_view line = absl::StripAsciiWhitespace(absl::string_view(bytes, size));
    // Of several responses ("100 Continue"), the last one counts.
    if (absl::StartsWith(line, "HTTP/")) self->response_.headers.clear();
    const size_t colon = line.find(':');
    if (colon != absl::string_view::npos && self->response_.headers.size() < kMaxHeaders) {
      self->response_.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
          std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
    return size;
  }

  static size_t OnData(char* bytes, size_t, size_t size, void* data) {
    auto* self = static_cast<Exchange*>(data);
    const absl::string_view piece(bytes, size);
    absl::Status status = self->Begin();
    if (status.ok() && self->IsSuccess()) {
      status = self->sink_.OnData(piece);
    } else if (status.ok()) {
      std::string& body = self->response_.error_body;
      const size_t room = kMaxErrorBody - body.size();
      absl::StrAppend(&body, piece.substr(0, room));
      if (size > room) {
        self->has_whole_error_ = true;
        return 0;
      }
    }
    if (status.ok()) return size;
    self->sink_status_ = std::move(status);
    return 0;
  }

  static int OnProgress(void* data, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Exchange*>(data)->transport_.stopped_ ? 1 : 0;
  }

  // libcurl calls this for each resolved address, so a later change of the name cannot avoid the check.
  static curl_socket_t OnOpenSocket(void* data, curlsocktype, curl_sockaddr* address) {
    auto* self = static_cast<Exchange*>(data);
    if (self->is_judged_ && !IsPublicAddress(&address->addr)) {
      self->refused_ = TextOf(&address->addr);
      return CURL_SOCKET_BAD;
    }
    self->refused_.clear();
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  }

  const CurlTransport& transport_;
  const HttpRequest& request_;
  HttpSink& sink_;
  CURL* const curl_;
  const bool is_judged_;
  curl_slist* headers_ = nullptr;
  char error_[CURL_ERROR_SIZE] = "";
  std::string refused_;
  HttpResponse response_;
  absl::Status sink_status_;
  bool begun_ = false;
  // True if the transfer was ended because the text of an error is longer than what is kept of it.
  bool has_whole_error_ = false;
};

CurlTransport::CurlTransport(Options options) : options_(std::move(options)) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

CurlTransport::~CurlTransport() = default;

absl::StatusOr<HttpResponse> CurlTransport::Get(const HttpRequest& request, HttpSink& sink) {
  if (stopped_) return absl::CancelledError("the daemon is shutting down");
  const bool is_judged = !request.any_address && options_.proxies.For(request.url).empty();
  std::unique_ptr<Handle> handle = TakeHandle(is_judged);
  if (handle->curl == nullptr)
    return absl::ResourceExhaustedError("cannot fetch: libcurl has no memory for another transfer");
  absl::StatusOr<HttpResponse> response = Exchange(*this, request, sink, *handle).Run();
  GiveBack(std::move(handle));
  return response;
}

std::unique_ptr<CurlTransport::Handle> CurlTransport::TakeHandle(bool is_judged) {
  MutexLock lock(&mutex_);
  std::vector<std::unique_ptr<Handle>>& idle = is_judged ? idle_judged_ : idle_others_;
  if (idle.empty()) return std::make_unique<Handle>(is_judged);
  std::unique_ptr<Handle> handle = std::move(idle.back());
  idle.pop_back();
  return handle;
}

void CurlTransport::GiveBack(std::unique_ptr<Handle> handle) {
  MutexLock lock(&mutex_);
  (handle->is_judged ? idle_judged_ : idle_others_).push_back(std::move(handle));
}

}  // namespace tandem

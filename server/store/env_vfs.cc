#include "server/store/env_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/base/mutex.h"

namespace tandem {
namespace {

// The state that a database's connections share. Guarded by Shared::mutex.
struct Database {
  // File locks: the number of SHARED and stronger locks, and the owners of the stronger locks.
  int shared = 0;
  const void* reserved = nullptr;
  const void* exclusive = nullptr;  // Or pending.
  // The write-ahead log's index, while a connection maps it.
  int mapped = 0;
  std::vector<std::unique_ptr<char[]>> regions;
  std::array<int, SQLITE_SHM_NLOCK> shm_shared{};
  std::array<const void*, SQLITE_SHM_NLOCK> shm_exclusive{};
};

struct Shared {
  RandomAccessEnv* env;
  sqlite3_vfs* system;
  Mutex mutex;
  std::map<std::string, Database> databases ABSL_GUARDED_BY(mutex);
};

// The state of an open file.
struct Open {
  Shared* shared;
  std::string path;
  std::unique_ptr<RandomAccessFile> file;
  // SQLite's logs must keep their names, so the folder is synced with the file's first sync.
  bool folder_to_sync = false;
  bool delete_on_close = false;
  int level = SQLITE_LOCK_NONE;
  bool mapped = false;
  uint32_t shm_shared = 0;
  uint32_t shm_exclusive = 0;
};

// SQLite allocates it, so it must be a plain struct.
struct EnvFile {
  sqlite3_file base;
  Open* open;
};

Open& OpenOf(sqlite3_file* file) { return *reinterpret_cast<EnvFile*>(file)->open; }
Shared& SharedOf(sqlite3_vfs* vfs) { return *static_cast<Shared*>(vfs->pAppData); }

int CodeOf(const absl::Status& status, int otherwise) {
  if (status.ok()) return SQLITE_OK;
  return status.code() == absl::StatusCode::kResourceExhausted ? SQLITE_FULL : otherwise;
}

// The methods of a file.

int Unlock(sqlite3_file* file, int level) {
  Open& open = OpenOf(file);
  if (open.level <= level) return SQLITE_OK;
  MutexLock lock(&open.shared->mutex);
  Database& database = open.shared->databases[open.path];
  if (database.reserved == &open) database.reserved = nullptr;
  if (database.exclusive == &open) database.exclusive = nullptr;
  if (level == SQLITE_LOCK_NONE) --database.shared;
  open.level = level;
  return SQLITE_OK;
}

int Lock(sqlite3_file* file, int level) {
  Open& open = OpenOf(file);
  if (open.level >= level) return SQLITE_OK;
  MutexLock lock(&open.shared->mutex);
  Database& database = open.shared->databases[open.path];
  if (database.exclusive != nullptr && database.exclusive != &open) return SQLITE_BUSY;
  if (level == SQLITE_LOCK_SHARED) {
    ++database.shared;
  } else if (level == SQLITE_LOCK_RESERVED) {
    if (database.reserved != nullptr) return SQLITE_BUSY;
    database.reserved = &open;
  } else {
    if (database.reserved != nullptr && database.reserved != &open) return SQLITE_BUSY;
    // Pending: no new readers may come.
    database.exclusive = &open;
    open.level = SQLITE_LOCK_PENDING;
    if (database.shared > 1) return SQLITE_BUSY;
  }
  open.level = level;
  return SQLITE_OK;
}

int CheckReservedLock(sqlite3_file* file, int* reserved) {
  Open& open = OpenOf(file);
  MutexLock lock(&open.shared->mutex);
  const Database& database = open.shared->databases[open.path];
  *reserved = database.reserved != nullptr || database.exclusive != nullptr;
  return SQLITE_OK;
}

int ShmUnmap(sqlite3_file* file, int) {
  Open& open = OpenOf(file);
  MutexLock lock(&open.shared->mutex);
  Database& database = open.shared->databases[open.path];
  if (!std::exchange(open.mapped, false)) return SQLITE_OK;
  for (int i = 0; i < SQLITE_SHM_NLOCK; ++i) {
    if (open.shm_shared >> i & 1) --database.shm_shared[i];
    if (open.shm_exclusive >> i & 1) database.shm_exclusive[i] = nullptr;
  }
  open.shm_shared = open.shm_exclusive = 0;
  if (--database.mapped == 0) database.regions.clear();
  return SQLITE_OK;
}

int Close(sqlite3_file* file) {
  ShmUnmap(file, 0);
  Unlock(file, SQLITE_LOCK_NONE);
  Open* const open = reinterpret_cast<EnvFile*>(file)->open;
  if (open->delete_on_close) open->shared->env->RemoveFile(open->path).IgnoreError();
  delete open;
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  const absl::StatusOr<int64_t> count = OpenOf(file).file->ReadAt(offset, size, static_cast<char*>(to));
  if (!count.ok()) return SQLITE_IOERR_READ;
  if (*count == size) return SQLITE_OK;
  memset(static_cast<char*>(to) + *count, 0, size - *count);
  return SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  return CodeOf(
      OpenOf(file).file->WriteAt(offset, {static_cast<const char*>(data), static_cast<size_t>(size)}),
      SQLITE_IOERR_WRITE);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return CodeOf(OpenOf(file).file->Truncate(size), SQLITE_IOERR_TRUNCATE);
}

int Sync(sqlite3_file* file, int) {
  Open& open = OpenOf(file);
  if (const absl::Status status = open.file->Sync(); !status.ok()) return CodeOf(status, SQLITE_IOERR_FSYNC);
  if (!open.folder_to_sync) return SQLITE_OK;
  open.folder_to_sync = false;
  return CodeOf(open.shared->env->SyncDirectory(ParentFolder(open.path)), SQLITE_IOERR_DIR_FSYNC);
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  const absl::StatusOr<int64_t> found = OpenOf(file).file->Size();
  if (!found.ok()) return SQLITE_IOERR_FSTAT;
  *size = *found;
  return SQLITE_OK;
}

int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return 4096; }
int DeviceCharacteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int ShmMap(sqlite3_file* file, int index, int size, int extend, void volatile** region) {
  Open& open = OpenOf(file);
  MutexLock lock(&open.shared->mutex);
  Database& database = open.shared->databases[open.path];
  if (!std::exchange(open.mapped, true)) ++database.mapped;
  *region = nullptr;
  while (extend != 0 && static_cast<int>(database.regions.size()) <= index) {
    database.regions.push_back(std::make_unique<char[]>(size));
  }
  if (index < static_cast<int>(database.regions.size())) *region = database.regions[index].get();
  return SQLITE_OK;
}

int ShmLock(sqlite3_file* file, int first, int count, int flags) {
  Open& open = OpenOf(file);
  MutexLock lock(&open.shared->mutex);
  Database& database = open.shared->databases[open.path];
  const uint32_t mask = ((1u << count) - 1) << first;
  if ((flags & SQLITE_SHM_LOCK) != 0) {
    for (int i = first; i < first + count; ++i) {
      const void* const holder = database.shm_exclusive[i];
      if (holder != nullptr && holder != &open) return SQLITE_BUSY;
      const int mine = static_cast<int>(open.shm_shared >> i & 1);
      if ((flags & SQLITE_SHM_EXCLUSIVE) != 0 && database.shm_shared[i] > mine) return SQLITE_BUSY;
    }
  }
  for (int i = first; i < first + count; ++i) {
    const uint32_t bit = 1u << i;
    if ((flags & SQLITE_SHM_EXCLUSIVE) != 0) {
      const bool locks = (flags & SQLITE_SHM_LOCK) != 0;
      if (locks || (open.shm_exclusive & bit) != 0) database.shm_exclusive[i] = locks ? &open : nullptr;
    } else if ((flags & SQLITE_SHM_LOCK) != 0) {
      if ((open.shm_shared & bit) == 0) ++database.shm_shared[i];
    } else if ((open.shm_shared & bit) != 0) {
      --database.shm_shared[i];
    }
  }
  uint32_t& held = (flags & SQLITE_SHM_EXCLUSIVE) != 0 ? open.shm_exclusive : open.shm_shared;
  held = (flags & SQLITE_SHM_LOCK) != 0 ? held | mask : held & ~mask;
  return SQLITE_OK;
}

void ShmBarrier(sqlite3_file* file) { MutexLock lock(&OpenOf(file).shared->mutex); }

const sqlite3_io_methods kMethods = [] {
  sqlite3_io_methods methods = {};
  methods.iVersion = 2;
  methods.xClose = Close;
  methods.xRead = Read;
  methods.xWrite = Write;
  methods.xTruncate = Truncate;
  methods.xSync = Sync;
  methods.xFileSize = FileSize;
  methods.xLock = Lock;
  methods.xUnlock = Unlock;
  methods.xCheckReservedLock = CheckReservedLock;
  methods.xFileControl = FileControl;
  methods.xSectorSize = SectorSize;
  methods.xDeviceCharacteristics = DeviceCharacteristics;
  methods.xShmMap = ShmMap;
  methods.xShmLock = ShmLock;
  methods.xShmBarrier = ShmBarrier;
  methods.xShmUnmap = ShmUnmap;
  return methods;
}();

// The methods of the file system.

bool Exists(Shared& shared, const char* path) {
  return shared.env->OpenRandomAccess(path, RandomAccessEnv::Open::kExisting).ok();
}

// SQLite treats an empty file like a missing file.
bool HasContent(Shared& shared, const char* path) {
  const auto file = shared.env->OpenRandomAccess(path, RandomAccessEnv::Open::kExisting);
  if (!file.ok()) return false;
  const absl::StatusOr<int64_t> size = (*file)->Size();
  return size.ok() && *size > 0;
}

int OpenFile(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  Shared& shared = SharedOf(vfs);
  // Temporary files are not needed after a crash, so the system's file system has them.
  if (path == nullptr) return shared.system->xOpen(shared.system, path, file, flags, out_flags);
  file->pMethods = nullptr;
  const bool creates = (flags & SQLITE_OPEN_CREATE) != 0 && !Exists(shared, path);
  auto opened = shared.env->OpenRandomAccess(
      path, creates ? RandomAccessEnv::Open::kCreate : RandomAccessEnv::Open::kExisting);
  if (!opened.ok()) return CodeOf(opened.status(), SQLITE_CANTOPEN);
  auto open = std::make_unique<Open>();
  open->shared = &shared;
  open->path = path;
  open->file = *std::move(opened);
  constexpr int kLogs = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
  open->folder_to_sync = creates && (flags & kLogs) != 0;
  open->delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  reinterpret_cast<EnvFile*>(file)->open = open.release();
  file->pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* path, int sync_folder) {
  Shared& shared = SharedOf(vfs);
  const absl::Status removed = shared.env->RemoveFile(path);
  if (absl::IsNotFound(removed)) return SQLITE_IOERR_DELETE_NOENT;
  if (!removed.ok()) return CodeOf(removed, SQLITE_IOERR_DELETE);
  if (sync_folder == 0) return SQLITE_OK;
  return CodeOf(shared.env->SyncDirectory(ParentFolder(path)), SQLITE_IOERR_DIR_FSYNC);
}

int Access(sqlite3_vfs* vfs, const char* path, int, int* result) {
  *result = HasContent(SharedOf(vfs), path);
  return SQLITE_OK;
}

int FullPathname(sqlite3_vfs*, const char* path, int size, char* full) {
  if (static_cast<int>(strlen(path)) >= size) return SQLITE_CANTOPEN;
  strcpy(full, path);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs* vfs, int size, char* bytes) {
  sqlite3_vfs* const system = SharedOf(vfs).system;
  return system->xRandomness(system, size, bytes);
}
int Sleep(sqlite3_vfs* vfs, int microseconds) {
  sqlite3_vfs* const system = SharedOf(vfs).system;
  return system->xSleep(system, microseconds);
}
int CurrentTime(sqlite3_vfs* vfs, double* time) {
  sqlite3_vfs* const system = SharedOf(vfs).system;
  return system->xCurrentTime(system, time);
}
int GetLastError(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

struct EnvVfs::Registered {
  std::string name;
  Shared shared;
  sqlite3_vfs vfs = {};
};

EnvVfs::EnvVfs(std::string name, RandomAccessEnv* env) : registered_(std::make_unique<Registered>()) {
  sqlite3_vfs& vfs = registered_->vfs;
  registered_->name = std::move(name);
  registered_->shared.env = env;
  registered_->shared.system = sqlite3_vfs_find(nullptr);
  vfs.iVersion = 1;
  vfs.szOsFile = std::max(static_cast<int>(sizeof(EnvFile)), registered_->shared.system->szOsFile);
  vfs.mxPathname = 512;
  vfs.zName = registered_->name.c_str();
  vfs.pAppData = &registered_->shared;
  vfs.xOpen = OpenFile;
  vfs.xDelete = Delete;
  vfs.xAccess = Access;
  vfs.xFullPathname = FullPathname;
  vfs.xRandomness = Randomness;
  vfs.xSleep = Sleep;
  vfs.xCurrentTime = CurrentTime;
  vfs.xGetLastError = GetLastError;
  sqlite3_vfs_register(&vfs, /*makeDflt=*/0);
}

EnvVfs::~EnvVfs() { sqlite3_vfs_unregister(&registered_->vfs); }

const std::string& EnvVfs::name() const { return registered_->name; }

}  // namespace tandem

-- Jobs, and the log of each.

CREATE TABLE jobs (
  -- Grows with each job; never given twice.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  -- NULL where the client gave none.
  request_id TEXT UNIQUE,
  -- tandem.v1.JobSpec as the request had it; NULL where request_id is.
  submitted_spec BLOB,
  -- tandem.v1.JobSpec, defaults filled in.
  spec BLOB NOT NULL,
  -- tandem.v1.JobState.
  state INTEGER NOT NULL,
  -- The job's newest event.
  last_sequence INTEGER NOT NULL,
  -- The newest event of the present attempt's worker.
  last_worker_sequence INTEGER NOT NULL,
  create_time_us INTEGER NOT NULL,
  user TEXT NOT NULL,
  -- The sweep's id; NULL for a job by itself.
  sweep TEXT,
  -- NULL while it has not ended.
  end_time_us INTEGER,
  -- 1 if the spec asks for the weights of the best result, else 0.
  keeps_best INTEGER NOT NULL,
  -- The value that the downloadable weights have; NULL if there is no value, or it is NaN.
  best REAL,
  -- tandem.v1.Job without spec and waiting.
  record BLOB NOT NULL
) STRICT;

-- A list of the jobs in some states is read from an index that is in its order, however many jobs there are.
CREATE INDEX jobs_by_state ON jobs (state, create_time_us, number);
CREATE INDEX jobs_by_state_and_id ON jobs (state, id);
CREATE INDEX jobs_by_create_time ON jobs (create_time_us, number);
CREATE INDEX jobs_by_user ON jobs (user, state);
CREATE INDEX jobs_by_sweep ON jobs (sweep, number) WHERE sweep IS NOT NULL;
-- All that a list of sweeps says of their jobs, so that it reads none of them.
CREATE INDEX jobs_by_sweep_and_state ON jobs (sweep, state, best, end_time_us) WHERE sweep IS NOT NULL;

CREATE TABLE events (
  job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
  sequence INTEGER NOT NULL,
  -- tandem.v1.JobEvent.
  event BLOB NOT NULL,
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;

-- The log of state changes over all jobs.
CREATE TABLE changes (
  -- Never given twice, even after the newest was deleted.
  cursor INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  FOREIGN KEY (job, sequence) REFERENCES events (job, sequence) ON DELETE CASCADE
) STRICT;

CREATE UNIQUE INDEX changes_by_event ON changes (job, sequence);

-- The checkpoints that are kept of each job.
CREATE TABLE checkpoints (
  job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  -- Its name in the job's folder.
  file TEXT NOT NULL,
  -- Whether it is of the best result so far.
  best INTEGER NOT NULL,
  -- tandem.v1.Checkpoint.
  record BLOB NOT NULL,
  PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;

-- Jobs that were deleted: a folder that is left of one may be removed, one that nobody knows may not.
CREATE TABLE deleted_jobs (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE sweeps (
  -- Grows with each sweep; never given twice.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  -- NULL where the client gave none.
  request_id TEXT UNIQUE,
  -- tandem.v1.Sweep as the request had it; NULL where request_id is.
  submitted BLOB,
  -- tandem.v1.Sweep: what does not follow from its jobs. Its state is CANCELLING from when it was cancelled on.
  record BLOB NOT NULL
) STRICT;

-- Data sets that were registered under a name.
CREATE TABLE datasets (
  -- Never given twice.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  -- NULL where the client gave none.
  request_id TEXT UNIQUE,
  -- The digest of the request (server/datasets/request_digest.h); NULL where request_id is.
  request BLOB,
  -- The folder of its files among those of uploads; NULL where none were uploaded for it.
  upload TEXT UNIQUE,
  -- tandem.v1.Dataset: what does not follow from its files.
  record BLOB NOT NULL
) STRICT;

-- What workers read in data sets' files, so that a set is read once, whichever jobs name it.
CREATE TABLE data_facts (
  -- Grows with each.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  -- SHA-256 of what was asked and of the files' sizes and times, in lower-case hexadecimal digits.
  digest TEXT NOT NULL UNIQUE,
  -- tandem.internal.v1.DataFacts.
  facts BLOB NOT NULL
) STRICT;

-- What each user has used.
CREATE TABLE usage (
  user TEXT PRIMARY KEY,
  -- Device-microseconds held, older ones counting less, as of a time.
  device_us INTEGER NOT NULL,
  as_of_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
  user TEXT PRIMARY KEY,
  -- SHA-256 of the secret, in lower-case hexadecimal digits.
  hash TEXT NOT NULL UNIQUE,
  -- tandem.v1.Token.
  token BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Devices that are not simply in service.
CREATE TABLE devices (
  -- "devices/cpu:0".
  name TEXT PRIMARY KEY,
  -- tandem.v1.DeviceState.
  state INTEGER NOT NULL,
  message TEXT NOT NULL,
  -- Jobs whose worker crashed on it, and the last of them ("jobs/<id>").
  faults INTEGER NOT NULL,
  last_faulty_job TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Jobs, their logs, and the log of state changes over all jobs.

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
  -- tandem.v1.Job without spec and waiting.
  record BLOB NOT NULL
) STRICT;

CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_create_time ON jobs (create_time_us, number);

CREATE TABLE events (
  job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
  sequence INTEGER NOT NULL,
  -- tandem.v1.JobEvent.
  event BLOB NOT NULL,
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE changes (
  -- Never given twice, even after the newest was deleted.
  cursor INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  FOREIGN KEY (job, sequence) REFERENCES events (job, sequence) ON DELETE CASCADE
) STRICT;

CREATE UNIQUE INDEX changes_by_event ON changes (job, sequence);

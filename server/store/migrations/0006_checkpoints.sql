-- The checkpoints that are kept of each job.

CREATE TABLE checkpoints (
  job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  -- Its name in the job's folder; '' of versions that kept one alone.
  file TEXT NOT NULL,
  -- Whether it is of the best result so far.
  best INTEGER NOT NULL,
  -- tandem.v1.Checkpoint.
  record BLOB NOT NULL,
  PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;

-- Sweeps, and which jobs are theirs.

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

-- The sweep's id.
ALTER TABLE jobs ADD COLUMN sweep TEXT;
CREATE INDEX jobs_by_sweep ON jobs (sweep, number) WHERE sweep IS NOT NULL;

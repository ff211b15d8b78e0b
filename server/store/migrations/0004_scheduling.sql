-- Whose jobs are, what users have used, the tokens that let them in, and devices that are not simply in service.

ALTER TABLE jobs ADD COLUMN user TEXT NOT NULL DEFAULT 'admin';
CREATE INDEX jobs_by_user ON jobs (user, state);

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

-- Data sets that were registered under a name.

CREATE TABLE datasets (
  -- Never given twice.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  -- NULL where the client gave none.
  request_id TEXT UNIQUE,
  -- tandem.v1.CreateDatasetRequest as it was; NULL where request_id is.
  request BLOB,
  -- The folder of its files among those of uploads; NULL where none were uploaded for it.
  upload TEXT UNIQUE,
  -- tandem.v1.Dataset: what does not follow from its files.
  record BLOB NOT NULL
) STRICT;

-- Jobs that were deleted: a folder that is left of one may be removed, one that nobody knows may not.

CREATE TABLE deleted_jobs (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- A list of the jobs in some states is read from an index that is in its order, however many jobs there are.

DROP INDEX jobs_by_state;
CREATE INDEX jobs_by_state ON jobs (state, create_time_us, number);
CREATE INDEX jobs_by_state_and_id ON jobs (state, id);

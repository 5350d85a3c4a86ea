-- The open dead letters of one error class, which the console lists. `create index` without `concurrently` blocks the
-- sink for the seconds of the build.
create index dead_letter_open_error on dead_letter (left(error_class, 250), dead_letter_time) where state = 'open';

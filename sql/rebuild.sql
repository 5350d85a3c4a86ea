-- The tables of one partition rebuilt from the log, in one transaction. Staged tables are those of sink.sql.

-- name: stage
create temp table if not exists rebuilt (
    like wait including defaults, primary key (wait_expiration_uuid)
) on commit delete rows;

-- name: next_chunk
truncate staged_wait, staged_tombstone;

-- name: resolve
delete from rebuilt
using staged_tombstone as staged
where rebuilt.wait_expiration_uuid = staged.wait_expiration_uuid and rebuilt.wait_offset < staged.last_offset;

-- name: forget_renewed
delete from rebuilt
using staged_wait as staged
where rebuilt.wait_expiration_uuid = staged.wait_expiration_uuid;

-- name: keep
insert into rebuilt select * from staged_wait;

-- name: keep_ages
update rebuilt
set created_at = wait.created_at
from wait
where wait.wait_expiration_uuid = rebuilt.wait_expiration_uuid and wait.wait_topic = rebuilt.wait_topic
    and wait.wait_partition = rebuilt.wait_partition and wait.wait_offset = rebuilt.wait_offset;

-- name: analyze
analyze rebuilt;

-- name: compare
-- Rows: what the log holds; missing and different in the table; orphans, which the log doesn't hold.
select
    count(rebuilt.wait_expiration_uuid),
    count(*) filter (where wait.wait_expiration_uuid is null),
    count(*) filter (where row(rebuilt.*) is distinct from row(wait.*)
        and rebuilt.wait_expiration_uuid is not null and wait.wait_expiration_uuid is not null),
    count(*) filter (where rebuilt.wait_expiration_uuid is null)
from rebuilt
full join (select * from wait where wait_topic = %(topic)s and wait_partition = %(partition)s) as wait
    using (wait_expiration_uuid);

-- name: remove_rows
delete from wait where wait_topic = %(topic)s and wait_partition = %(partition)s;

-- name: remove_topic
delete from wait where wait_topic = %(topic)s;

-- name: remove_moved
-- The same ID from another topic or partition: the log that is read now counts.
delete from wait using rebuilt where wait.wait_expiration_uuid = rebuilt.wait_expiration_uuid;

-- name: insert_rows
insert into wait select * from rebuilt;

-- name: outbox_read
-- Whether Debezium's source reads this schema's outbox now: a row when it does. Every role may ask this.
select 1
from pg_replication_slots
where slot_name = 'waitreg_' || current_schema() || '_expired' and database = current_database() and active;

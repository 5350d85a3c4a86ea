-- Who may do what in Postgres, and nothing else. Four roles without login; make each login role a member:
--
--   waitreg_owner      runs `waitreg db migrate`, owns the tables
--   waitreg_sink       the sink, and `waitreg rebuild`
--   waitreg_sweeper    the sweeper
--   waitreg_reporter   reads everything, payloads too, and changes nothing: `waitreg query`, support staff
--
-- The processor has no role: it never talks to Postgres. Roles of Kafka Connect: connect-configs/README.md.
--
-- Run with psql by an administrator of the database, who may create roles: before the first `waitreg db migrate` for the
-- owner, and after every one for the others. It may be run as often as one likes; privileges of these roles that it
-- doesn't name are taken away.
--
--   psql -d registry -v schema=public -v own_database=true -f deploy/postgres/roles.sql
--
--   schema         setting postgres.schema; public when not given
--   own_database   true: the database is the registry's alone; no other role may connect to it or make temporary tables
--   prefix         how the roles' names begin; waitreg when not given
--
-- Then, by psql's \password or the like, so that no password is in a file or a shell's history:
--
--   create role registry_sink login in role waitreg_sink;
--   create role registry_migrations login in role waitreg_owner;
--   alter role registry_migrations set role = waitreg_owner;  -- what it makes is the owner's
\set ON_ERROR_STOP on
\set QUIET on
\if :{?schema} \else \set schema public \endif
\if :{?prefix} \else \set prefix waitreg \endif
\if :{?own_database} \else \set own_database false \endif
\set owner :prefix _owner
\set sink :prefix _sink
\set sweeper :prefix _sweeper
\set reporter :prefix _reporter
begin;

select format('create role %I nologin', name)
from unnest(array[:'owner', :'sink', :'sweeper', :'reporter']) as wanted (name)
where not exists (select from pg_roles where rolname = name)
\gexec

\if :own_database
revoke all on database :"DBNAME" from public;
\endif
grant connect on database :"DBNAME" to :"owner", :"sink", :"sweeper", :"reporter";
-- To make the schema.
grant create on database :"DBNAME" to :"owner";
-- Batches are staged in temporary tables.
grant temporary on database :"DBNAME" to :"sink";

select to_regnamespace(quote_ident(:'schema')) is not null as made,
    to_regclass(quote_ident(:'schema') || '.wait_registry_migration') is not null as installed
\gset
\if :made
revoke create on schema :"schema" from public;
grant usage, create on schema :"schema" to :"owner";
grant usage on schema :"schema" to :"sink", :"sweeper", :"reporter";
\endif

\if :installed
set local search_path to :"schema";
revoke all on all tables in schema :"schema" from :"sink", :"sweeper", :"reporter";

-- The sink keeps the tables.
grant select on wait_registry_migration to :"sink";
grant select, insert, update, delete on wait, sink_progress, operation, dead_letter_mark, operator_event to :"sink";
grant select, insert, update on dead_letter to :"sink";
grant select, insert on late_outcome, quarantine to :"sink";

-- The sweeper reads what is due and keeps its book; its deletes are the retention's. It looks at the outbox to stay away
-- from where a Kafka Connect source exports.
grant select on wait_registry_migration, wait, sink_progress, expired_outbox to :"sweeper";
grant select, delete on dead_letter, late_outcome, quarantine, operation, dead_letter_mark, operator_event to :"sweeper";
grant select, insert, delete on sweep to :"sweeper";

grant select on all tables in schema :"schema" to :"reporter";
\else
\echo 'the schema' :schema 'is not installed yet: run "waitreg db migrate" as a member of' :owner ', then this file again'
\endif
commit;

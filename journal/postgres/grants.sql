-- What the server's own role (the first argument) may do in the schema (the second), when another role owns the tables.
-- It runs at each start with DATABASE_MIGRATE_URL, so that a new server role needs no migration.
revoke all on journal, head, snapshot, vault, registration, registration_given, series from public;
revoke all on journal from %[1]s;
grant usage on schema %[2]s to %[1]s;
grant select, insert on journal to %[1]s;
grant select, insert, update on head to %[1]s;
grant select, insert, update, delete on snapshot to %[1]s;
grant select, insert, delete on vault to %[1]s;
grant select, insert, update, delete on registration to %[1]s;
grant select, insert, delete on registration_given to %[1]s;
grant select, insert, update, delete on series to %[1]s;
revoke all on note from public;
grant select, insert, update, delete on note to %[1]s;

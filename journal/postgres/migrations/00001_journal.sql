-- The storage of record (architecture.md, "The journal"). Who may do what here is in ../grants.sql.

-- +goose Up

-- One row an event. body is json and not jsonb: the bytes that were decided are the bytes that are stored and hashed.
create table journal (
    stream  text collate "C" not null,
    seq     bigint           not null,
    at      timestamptz      not null,
    kind    text             not null,
    version smallint         not null,
    actor   text             not null,
    cause   text             not null,
    body    json             not null,
    hash    bytea            not null,
    primary key (stream, seq)
);

-- Where each stream stands and who may append to it. It changes with every batch, so pages keep room for updates in place.
create table head (
    stream     text collate "C" primary key,
    seq        bigint      not null default 0,
    epoch      bigint      not null default 0,
    hash       bytea       not null default decode(repeat('00', 32), 'hex'),
    owner      text,
    expires_at timestamptz
) with (fillfactor = 50);

-- Snapshots are large and read back in a hurry: not worth compressing.
create table snapshot (
    stream text collate "C" primary key,
    seq    bigint  not null,
    hash   bytea   not null,
    format integer not null,
    state  bytea   not null
);
alter table snapshot alter column state set storage external;

-- Secrets that must be erasable.
create table vault (
    stream text collate "C" not null,
    name   text collate "C" not null,
    value  bytea            not null,
    primary key (stream, name)
);

-- What was written stays. The server's role has no right to change it when the tables have another owner; this protects
-- from bugs when they have not. Whoever owns the table can switch the trigger off, and the hash chain shows what was done.
-- +goose StatementBegin
create function journal_refuse() returns trigger language plpgsql as $$
begin
    raise exception 'the journal is append-only: % refused', tg_op using errcode = 'insufficient_privilege';
end
$$;
-- +goose StatementEnd
create trigger journal_append_only before update or delete or truncate on journal
    for each statement execute function journal_refuse();

-- What an audit reads: notes on operators' acts, which can be erased, and the ways to those acts among the events of visitors.

-- +goose Up

create table note (
    cause   text collate "C" primary key,
    stream  text        not null,
    at      timestamptz not null,
    name    text        not null,
    origin  text        not null,
    reason  text        not null
);
create index note_at on note (at);

create index journal_act on journal (at, stream, seq) where actor not in ('visitor', 'clock');
create index journal_shape on journal (stream, seq) where kind in ('create', 'configure', 'state', 'schedule', 'draw', 'close', 'delete');

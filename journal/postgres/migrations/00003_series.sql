-- The history of rooms, a row a minute or an hour in which something happened. It follows from the journal and may be lost.

-- +goose Up
create table series (
    stream     text collate "C" not null,
    span       smallint not null, -- minutes: 1 or 60
    minute     bigint   not null, -- Unix time in minutes
    seq        bigint   not null, -- where the room stood when the row was read
    joined     bigint   not null,
    passed     bigint   not null,
    entered    bigint   not null,
    lapsed     bigint   not null,
    gone       bigint   not null, -- given back
    removed    bigint   not null, -- ejected or purged
    wait_sum   bigint   not null, -- ms
    wait_most  bigint   not null, -- ms
    depth      bigint   not null,
    depth_most bigint   not null,
    pre_queue  bigint   not null,
    doors      bigint   not null,
    generation bigint   not null,
    primary key (stream, span, minute)
);
create index series_age on series (span, minute);

-- Who wants a mail when the turn comes (notify.Registrations): the addresses, which are personal, must be erasable and are
-- never in the journal.

-- +goose Up

-- One row a place: a ticket, or a handle before the draw; the other is 0. address is null once it is erased; the rest of the row
-- then only keeps the place from being used for more mails.
create table registration (
    room       text collate "C" not null,
    generation bigint           not null,
    handle     bigint           not null,
    ticket     bigint           not null,
    address    text,
    locale     text             not null,
    owner      bytea            not null,
    at         timestamptz      not null,
    near       boolean          not null,
    turn       boolean          not null,
    changes    integer          not null,
    primary key (room, generation, handle, ticket)
);
create index registration_live on registration (room, generation, handle, ticket) where address is not null;
create index registration_at on registration (at);

-- How often an address was given within the last hour, by its keyed digest.
create table registration_given (
    address bytea       not null,
    at      timestamptz not null
);
create index registration_given_address on registration_given (address, at);
create index registration_given_at on registration_given (at);

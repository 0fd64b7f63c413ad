package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"qm/notify"
)

// Registrations keeps the addresses of turn notifications beside the journal, and not in it: they must be erasable.
// It implements [notify.Registrations].
type Registrations struct{ j *Journal }

var _ notify.Registrations = (*Registrations)(nil)

// Registrations is the side table of this database.
func (j *Journal) Registrations() *Registrations { return &Registrations{j} }

const (
	registrationColumns = `room, generation, ticket, handle, coalesce(address, ''), locale, owner, at, near, turn`
	placeIs             = `room = $1 and generation = $2 and handle = $3 and ticket = $4`
)

func scanRegistration(row pgx.CollectableRow) (r notify.Registration, err error) {
	var owner []byte
	err = row.Scan(&r.Room, &r.Generation, &r.Ticket, &r.Handle, &r.Address, &r.Locale, &owner, &r.At, &r.Near, &r.Turn)
	copy(r.Owner[:], owner)
	return r, err
}

// Set implements [notify.Registrations]. Callers of one place take turns, and so do those of one address, or the counts would not hold.
func (s *Registrations) Set(ctx context.Context, r notify.Registration, address notify.Digest) error {
	err := pgx.BeginFunc(ctx, s.j.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended(format('qm place %s %s %s %s', $1::text, $2::bigint, $3::bigint, $4::bigint), 0))`,
			r.Room, r.Generation, r.Handle, r.Ticket); err != nil {
			return err
		}
		var was string
		var changes int
		var served bool
		err := tx.QueryRow(ctx, `select coalesce(address, ''), changes, turn from registration where `+placeIs, r.Room, r.Generation, r.Handle, r.Ticket).
			Scan(&was, &changes, &served)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return err
		case served:
			return notify.ErrServed
		case was == r.Address:
			_, err = tx.Exec(ctx, `update registration set locale = $5 where `+placeIs, r.Room, r.Generation, r.Handle, r.Ticket, r.Locale)
			return err
		case changes >= notify.ChangesPerPlace:
			return notify.ErrChanges
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('qm address ' || encode($1::bytea, 'hex'), 0))`, address[:]); err != nil {
			return err
		}
		var given int
		if err := tx.QueryRow(ctx, `select count(*) from registration_given where address = $1 and at > now() - interval '1 hour'`, address[:]).Scan(&given); err != nil {
			return err
		}
		if given >= notify.PlacesPerAddress {
			return notify.ErrAddress
		}
		if _, err := tx.Exec(ctx, `insert into registration_given (address, at) values ($1, now())`, address[:]); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into registration as old (room, generation, handle, ticket, address, locale, owner, at, near, turn, changes)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, false, 1)
			on conflict (room, generation, handle, ticket) do update set address = excluded.address, locale = excluded.locale,
			owner = excluded.owner, at = excluded.at, near = old.near or excluded.near, changes = old.changes + 1`,
			r.Room, r.Generation, r.Handle, r.Ticket, r.Address, r.Locale, r.Owner[:], r.At, r.Near)
		return err
	})
	for _, refusal := range []error{notify.ErrServed, notify.ErrChanges, notify.ErrAddress} {
		if errors.Is(err, refusal) {
			return refusal
		}
	}
	return wrap(err, "register for a mail in %s", r.Room)
}

// Find implements [notify.Registrations].
func (s *Registrations) Find(ctx context.Context, p notify.Place) (notify.Registration, bool, error) {
	return s.one(ctx, `select `+registrationColumns+` from registration where `+placeIs, p)
}

func (s *Registrations) one(ctx context.Context, sql string, p notify.Place) (r notify.Registration, ok bool, err error) {
	rows, err := s.j.pool.Query(ctx, sql, p.Room, p.Generation, p.Handle, p.Ticket)
	if err == nil {
		r, err = pgx.CollectExactlyOneRow(rows, scanRegistration)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return notify.Registration{}, false, nil
	}
	return r, err == nil, wrap(err, "look for a registration in %s", p.Room)
}

// Erase implements [notify.Registrations].
func (s *Registrations) Erase(ctx context.Context, p notify.Place) (erased bool, err error) {
	tag, err := s.j.pool.Exec(ctx, `update registration set address = null, locale = '', owner = '' where address is not null and `+placeIs,
		p.Room, p.Generation, p.Handle, p.Ticket)
	return tag.RowsAffected() > 0, wrap(err, "erase an address of %s", p.Room)
}

// Move implements [notify.Registrations].
func (s *Registrations) Move(ctx context.Context, from, to notify.Place, fresh bool) error {
	_, err := s.j.pool.Exec(ctx, `with gone as (delete from registration where `+placeIs+` returning *)
		insert into registration (room, generation, handle, ticket, address, locale, owner, at, near, turn, changes)
		select $5, $6, $7, $8, address, locale, owner, at, near and not $9, turn and not $9, changes from gone where address is not null
		on conflict do nothing`,
		from.Room, from.Generation, from.Handle, from.Ticket, to.Room, to.Generation, to.Handle, to.Ticket, fresh)
	return wrap(err, "carry a registration over in %s", from.Room)
}

// claims are the statements of Claim and Unclaim, by mail.
var claims = map[notify.Mail][2]string{
	notify.Near: {`near = true where not near and not turn and address is not null`, `near = false where true`},
	notify.Turn: {`turn = true where not turn and address is not null`, `turn = false where true`},
}

// Claim implements [notify.Registrations].
func (s *Registrations) Claim(ctx context.Context, p notify.Place, m notify.Mail) (notify.Registration, bool, error) {
	return s.one(ctx, `update registration set `+claims[m][0]+` and `+placeIs+` returning `+registrationColumns, p)
}

// Unclaim implements [notify.Registrations].
func (s *Registrations) Unclaim(ctx context.Context, p notify.Place, m notify.Mail) error {
	_, err := s.j.pool.Exec(ctx, `update registration set `+claims[m][1]+` and `+placeIs, p.Room, p.Generation, p.Handle, p.Ticket)
	return wrap(err, "give a mail of %s back", p.Room)
}

// Rooms implements [notify.Registrations]. It steps from room to room in the index: there are many rows and few rooms.
func (s *Registrations) Rooms(ctx context.Context) ([]string, error) {
	rows, err := s.j.pool.Query(ctx, `with recursive step(room) as (
			select min(room) from registration where address is not null
			union all select (select min(r.room) from registration r where r.address is not null and r.room > step.room) from step where step.room is not null
		) select room from step where room is not null`)
	if err != nil {
		return nil, wrap(err, "list the rooms with registrations")
	}
	rooms, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return rooms, wrap(err, "list the rooms with registrations")
}

// Live implements [notify.Registrations].
func (s *Registrations) Live(ctx context.Context, room string, after notify.Place, limit int) ([]notify.Registration, error) {
	rows, err := s.j.pool.Query(ctx, `select `+registrationColumns+` from registration
		where address is not null and room = $1 and (generation, handle, ticket) > ($2, $3, $4) order by generation, handle, ticket limit $5`,
		room, after.Generation, after.Handle, after.Ticket, limit)
	if err != nil {
		return nil, wrap(err, "list the registrations of %s", room)
	}
	live, err := pgx.CollectRows(rows, scanRegistration)
	return live, wrap(err, "list the registrations of %s", room)
}

// Sweep implements [notify.Registrations].
func (s *Registrations) Sweep(ctx context.Context, before time.Time) error {
	_, err := s.j.pool.Exec(ctx, `delete from registration where at < $1`, before)
	if err == nil {
		_, err = s.j.pool.Exec(ctx, `delete from registration_given where at <= now() - interval '1 hour'`)
	}
	return wrap(err, "sweep the registrations")
}

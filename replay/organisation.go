package replay

import (
	"errors"

	"qm/access/org"
	"qm/journal"
)

// act judges a record of the organisation's stream by what was true when it was written, and applies it. Its chain is checked like any other's.
func (v *verifier) act(r *journal.Record) {
	v.time(r)
	e, err := org.Decode(r)
	if err != nil {
		if unknown := (*org.UnknownEventError)(nil); errors.As(err, &unknown) {
			v.found(Kind, "kind %q version %d is unknown", r.Kind, r.Version)
		} else {
			v.found(Body, "the body of %q version %d cannot be read: %v", r.Kind, r.Version, err)
		}
		return
	}
	if v.o.onAct != nil {
		v.o.onAct(v, r, e)
	}
	switch err := v.organisation.Judge(e); {
	case errors.Is(err, org.ErrActor):
		v.found(OrgActor, "%s: its actor %s could not do that", e.Body.Say(), e.Actor)
	case err != nil:
		v.found(OrgReference, "%s: what it names is not there, or is there already", e.Body.Say())
	default:
		v.organisation.Apply(e) // what was wrong has no effect, so that one fault is one finding
	}
}

package httpapi

import (
	"net/http"
	"strings"

	"qm/access"
	"qm/access/org"
)

// listOperators is everybody with a key of their own (seed 004, GET /api/admin/operators). The key itself is not known here.
func (s *Server) listOperators(x *exchange) error {
	var list []org.Operator
	s.o.Book.Look(func(o *org.State) { list = o.Operators() })
	b := append(x.buf[:0], `{"operators":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(append(b, `{"id":`...), list[i].ID), s.operatorRest(&list[i])...)
	}
	x.buf = append(b, ']', '}')
	x.json(http.StatusOK)
	return nil
}

func (s *Server) operatorRest(o *org.Operator) []byte {
	b := appendText(nil, "name", s.o.Book.Name(o.ID))
	b = appendText(b, "role", string(o.Role))
	b = appendInt(b, "createdAt", o.AddedAt.UnixMilli())
	b = appendText(b, "createdBy", o.AddedBy)
	b = appendBool(b, "otp", o.Factor.Secret != "")
	return append(b, '}')
}

// addOperator is POST /api/admin/operators {name, role}. The key is in this answer and nowhere else, ever.
func (s *Server) addOperator(x *exchange) error {
	body, err := x.object(adminBody, false)
	if err != nil {
		return err
	}
	if err := body.only("name", "role"); err != nil {
		return err
	}
	name, _, err := body.text("name", "invalid_name")
	if err != nil {
		return err
	}
	if name = strings.TrimSpace(name); name == "" || !readable(name, 200, false) {
		return refuseField("invalid_name", "name", "")
	}
	text, _, err := body.text("role", "invalid_role")
	if err != nil {
		return err
	}
	roles := map[string]access.Role{"viewer": access.Viewer, "operator": access.Operator, "owner": access.Owner}
	role, ok := roles[text]
	if !ok {
		return refuseField("invalid_role", "role", "")
	}
	by := s.by(x)
	by.Name = name
	id, key, err := s.o.Gate.AddOperator(x.r.Context(), by, role)
	if err != nil {
		return err
	}
	b := appendString(append(x.buf[:0], `{"id":`...), id)
	b = appendText(b, "name", name)
	b = appendText(b, "role", text)
	b = appendText(b, "key", key)
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// revokeOperator is DELETE /api/admin/operators/:id: the key, its sessions, streams and share links end, in every process within 5 s.
func (s *Server) revokeOperator(x *exchange) error {
	if err := s.o.Gate.RevokeOperator(x.r.Context(), s.by(x), x.id); err != nil {
		return err
	}
	return s.ok(x)
}

// startFactor is POST /api/admin/otp: {} gives the secret of a second factor, which is shown once; {otp} puts it in force.
func (s *Server) startFactor(x *exchange) error {
	body, err := x.object(adminBody, true)
	if err != nil {
		return err
	}
	if err := body.only("otp"); err != nil {
		return err
	}
	if !x.actor.IsOperator() {
		return refuse("otp_not_available")
	}
	code, given, err := body.text("otp", "invalid_otp_field")
	if err != nil {
		return err
	}
	if given {
		if err := s.o.Gate.ConfirmFactor(x.r.Context(), s.by(x), x.actor, x.network, code, x.now); err != nil {
			return err
		}
		x.buf = append(x.buf[:0], `{"ok":true,"otp":true}`...)
		x.json(http.StatusOK)
		return nil
	}
	factor, err := s.o.Gate.StartFactor(x.r.Context(), s.by(x), "Queue Manager")
	if err != nil {
		return err
	}
	b := appendText(append(x.buf[:0], `{"ok":true,"otp":false`...), "secret", factor.Secret)
	b = appendText(b, "uri", factor.URI)
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// dropFactor is DELETE /api/admin/otp: one's own second factor goes.
func (s *Server) dropFactor(x *exchange) error {
	if !x.actor.IsOperator() {
		return refuse("otp_not_available")
	}
	if err := s.o.Gate.RemoveFactor(x.r.Context(), s.by(x), x.actor.ID); err != nil {
		return err
	}
	return s.ok(x)
}

// resetFactor is DELETE /api/admin/operators/:id/otp: an owner helps somebody who has lost their device.
func (s *Server) resetFactor(x *exchange) error {
	if err := s.o.Gate.RemoveFactor(x.r.Context(), s.by(x), x.id); err != nil {
		return err
	}
	return s.ok(x)
}

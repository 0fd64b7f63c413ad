package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// node is a JSON value whose members keep the order in which they are written: that order is part of what the document tells its readers.
type node struct {
	keys    []string         // of an object
	members map[string]*node // of an object
	items   []*node          // of an array
	text    string           // of a string
	raw     []byte           // the value as written
}

// parse reads one JSON value.
func parse(source []byte) *node {
	dec := json.NewDecoder(bytes.NewReader(source))
	dec.UseNumber()
	var value func(json.Token) *node
	next := func() json.Token {
		t, err := dec.Token()
		if err != nil {
			panic(fmt.Sprintf("docs: openapi.json: %v", err))
		}
		return t
	}
	value = func(t json.Token) *node {
		n := &node{}
		switch t := t.(type) {
		case json.Delim:
			begin := dec.InputOffset() - 1
			if t == '{' {
				n.members = make(map[string]*node)
			}
			for dec.More() {
				if t == '[' {
					n.items = append(n.items, value(next()))
					continue
				}
				key := next().(string)
				n.keys = append(n.keys, key)
				n.members[key] = value(next())
			}
			next()
			n.raw = source[begin:dec.InputOffset()]
		case string:
			n.text = t
			n.raw, _ = json.Marshal(t)
		default:
			n.raw = fmt.Append(nil, t)
			if t == nil {
				n.raw = []byte("null")
			}
		}
		return n
	}
	return value(next())
}

// at is the value that a path of members leads to; an empty one, which has nothing, where there is none.
func (n *node) at(path ...string) *node {
	for _, key := range path {
		if n = n.members[key]; n == nil {
			return &node{}
		}
	}
	return n
}

// there reports whether the document has the value.
func (n *node) there() bool { return n.raw != nil }

// words are the values of an array, or the value itself, as people write them.
func (n *node) words() (list []string) {
	if n.items == nil && n.raw != nil {
		return []string{n.word()}
	}
	for _, item := range n.items {
		list = append(list, item.word())
	}
	return list
}

func (n *node) word() string {
	if n.text != "" {
		return n.text
	}
	return string(n.raw)
}

// named is the last part of the reference that stands in place of the value, "" when it stands there itself.
func (n *node) named() string {
	ref := n.at("$ref").text
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// resolve follows the value's own reference into the document root. What stands beside it holds too (JSON Schema 2020-12, 8.2.3.1).
func (n *node) resolve(root *node) *node {
	ref := n.at("$ref").text
	if ref == "" {
		return n
	}
	target := root.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	if !target.there() {
		panic("docs: openapi.json: nothing is at " + ref)
	}
	return merge(target.resolve(root), n)
}

// merge is what both values ask for; where only one can be said, the second.
func merge(a, b *node) *node {
	if a.members == nil || b.members == nil {
		return b
	}
	out := &node{members: make(map[string]*node), raw: a.raw}
	for _, n := range []*node{a, b} {
		for _, key := range n.keys {
			have, known := out.members[key]
			switch {
			case key == "$ref":
				continue
			case !known:
				out.keys = append(out.keys, key)
				have = n.members[key]
			case key == "required" && have.items != nil:
				have = &node{items: slices.Concat(have.items, n.members[key].items), raw: have.raw}
			default:
				have = merge(have, n.members[key])
			}
			out.members[key] = have
		}
	}
	return out
}

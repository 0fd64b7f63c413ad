// Package archtest holds the rules of the architecture as tests: who may import whom, what the pure
// core may not touch, and a few habits. Each rule is a function over parsed files that returns
// findings, and is tried on sources that break it before it judges the tree.
package archtest

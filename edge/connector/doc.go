// Package connector puts a waiting room in front of a site. [New] is the connector for Go's net/http; [All] is every connector that
// this build carries, for the registry that hands them out. README.md says what a connector has to do, and [Vectors] says it in cases.
package connector

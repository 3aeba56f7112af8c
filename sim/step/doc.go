// Package step lets the steps of a long run be written as tests are: what a step cannot go
// on from ends it where it stands, and none of those who called passes it on. Only Attempt
// looks at it.
package step

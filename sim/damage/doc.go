// Package damage spoils files as disks, crashes and people do: bits flip, ends
// are missing or zero, a file or all of them are as they were some time ago. It
// knows no format, so that what it does is not what a reader was written for.
// It never touches a file itself.
package damage

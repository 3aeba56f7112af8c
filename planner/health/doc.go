// Package health says how a fabric is: a table of named checks goes over what is
// known, and each finding has its subject, its words, its cause, its remedy and its own
// time. Alarms, the word of ocsctl status, its checks, the page, metrics, why, /readyz
// and exit codes are this one list in different forms, so that none of them can be
// better than another.
//
// A cause is told once. What follows from it stands under it, and is counted nowhere.
//
// It keeps nothing, has no clock, and knows no planner: whoever asks brings the facts.
package health

// Package jobapi serves jobs over HTTP: what a scheduler, a launcher or ocsctl
// asks for, gets and watches. docs/jobs.md has it for its users, openapi.json for
// their tools, which a test holds to the code.
//
// Every act goes through the planner's own door for operators, with the client's name;
// what is read is read between two of its steps. So an answer is on disk before
// it leaves, and a watcher sees nothing that a planner which is killed and
// started again would not know of.
//
// It never decides: not whether there is room, nor which state a job is in.
package jobapi

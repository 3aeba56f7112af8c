// Package metric writes measurements in the text format that Prometheus reads.
//
// What is measured is a table: each Measure is a family of samples - name, kind,
// help, labels - and the function that gives its samples. Pages, the page of metrics
// and the tests of dashboard and alerts come from the same tables, so that none
// names what another does not have. One page is written family by family, so
// that a planner of ten thousand nodes is never kept longer than one of them
// takes.
//
// Values are integers with a fixed number of decimal places, as everywhere in
// this module: microseconds become seconds in the text alone. A Page is used
// again and again; once it has grown, a sample allocates nothing.
//
// It has no registry, no clock, no socket and no lock: who owns the state writes
// the page.
package metric

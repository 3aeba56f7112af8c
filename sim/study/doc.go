// Package study repeats the large-scale experiments of [IHBD], each as one
// function from a configuration to figures: how many healthy GPUs an
// architecture wastes under faults (sec 6.2, App. E), the largest job it
// carries (Fig. 11), how long a job waits for repairs (Fig. 12, 19), how much
// traffic leaves its ToR (Fig. 13a-c), what it costs (Tables 6 and 8,
// Fig. 13d), the bound of App. C (Table 7) and the training MFU of an
// analytic model (Tables 2, 4, 5); and, which the paper lacks, how many
// running groups a fault touches. Of [CROSS] it has sec 6.2: sequences of
// logical topologies, what is realised and what stays (Fig. 5-7), and of
// [LUMOS] sec 6: what circuits between pods save of the time of jobs.
// Of [VCLOS] it has sec 9: jobs on a leaf-spine core, isolated or sharing it,
// by strategy and queue (Tables 2, 5-7). The study of flows measures sim/flow itself,
// and the comparison has all of these systems on one workload and budget.
//
// A study returns data. How the data become text, CSV or an SVG chart is here
// too, as pure functions of them; files, flags and progress bars are the
// command's. Every result carries its assumptions as notes and a table of
// what we find beside what the paper prints and why they differ.
//
// Faults change the counts where they strike: an event costs time in the
// number of open faults, not in the size of the cluster, so that the 348 days
// of the public trace take seconds for all architectures and group sizes.
//
// It draws only from the seed it is given and its floats have the same bits
// on every machine. It places no ring in a running fabric: that is
// planner/ring, against which its own counting of K-hop groups is tested.
package study

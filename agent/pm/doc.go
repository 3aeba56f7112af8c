// Package pm keeps a device's performance records: of every series - one quantity at
// one place - minimum, average and maximum over each quarter of an hour (Quarters of
// them) and each day (Days), in the manner of ITU-T G.7710: bins are aligned to UTC by
// the clock of the device, the last one is under way, and one that the device did not
// watch for all of its time is marked suspect.
//
// A Book is a ring of rows, one a quarter, each with the series that had a sample. What
// the quarters of a day come to is written down once, when a day ends; of today it is
// made when somebody asks. So a row lost or damaged costs no other, and the row under
// way is all that can be lost.
//
// A row on disk has a place of its own, Slots of them: the file never grows.
//
// It has no clock and no file. Numbers are integers; the average is rounded to the nearest.
package pm

"""One model: a state of settings and sums, and functions that score and learn messages with it.

`State` holds the settings, the classes, the statistic of each view and the head. `drivers` score and learn
batches with the compiled twin or with the plain `step`; `scoring` and `explaining` compute evidence from the
state; `merging` adds, subtracts, unlearns and fades; `relabelling` renames and merges classes; `growing`
changes the views; `sampling` draws messages, `linear` returns the boundary, `informative` ranks tokens;
`state_arrays` and `plain` turn state and settings into arrays and tables, and back.

It knows features, statistics, event models and the posterior. It must not know records, offsets or files.
"""

"""Statistics: the per-class sums that a model learns, and how they merge, decay and serialize.

These modules know how sums grow by a message and shrink again when it is unlearned, how two models' sums are
merged and subtracted, how sums decay with time, and how they are digested and written into a snapshot's
arrays. Classes are indices here. They must not know a likelihood formula, a smoothing, a prior or a
posterior, nor the view or the message that the features came from.
"""

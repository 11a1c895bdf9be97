"""Statistics: the per-class sums that a model learns, and how they merge, decay and serialize.

- Counts of tokens: `counts` is the store that all views share, and `budget` estimates how much memory the
  store takes; `token_counts` is the statistic of one view in the store. `absent_words` and `field_totals`
  are kept beside it for Bernoulli and categorical event models.
- Numbers: `moments` holds the sums of one number, `number_block` those of several, `scatter` also their
  covariances; `bin_counts` counts ranges.
- Forgetting: `forgetting` gives each message its weight, `batch_decay` those of a batch, `decay` rescales
  sums.

These modules know how sums grow by a message and shrink again when it is unlearned, how two models' sums
are merged and subtracted, how sums decay with time, and how they are digested and written into a snapshot's
arrays. Classes are indices here. They must not know a likelihood formula, a smoothing, a prior or a
posterior, nor the view or the message that the features came from.
"""

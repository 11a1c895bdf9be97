"""Comparison of plain and compiled twins: all bits of their scores and of their states must be equal."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from streamnb.base.batch import Scores
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.statistics.field_totals import FieldTotals
from streamnb.naive_bayes.statistics.token_counts import NoTally


def said(scores: Scores) -> dict[str, object]:
    """Return all columns of some scores as bytes for comparison; all NaNs become the same NaN."""
    columns: dict[str, object] = {}
    for field in fields(scores):
        value = getattr(scores, field.name)
        if isinstance(value, np.ndarray):
            value = (value.dtype, value.shape, np.where(np.isnan(value), np.nan, value).tobytes())
        columns[field.name] = value
    return columns


def held(model: NaiveBayes) -> tuple[object, ...]:
    """Return a model's whole state for comparison, with rows sorted because twins order them differently."""
    frozen = model.freeze()
    rest = {
        name: (array.dtype, array.shape, array.tobytes())
        for name, array in frozen.sections.items()
        if not name.startswith(("token", "index")) and name != "counts"
    }
    rows = {view: sorted(model.state.counts[view].rows.items()) for view in model.state.counts}
    sizes: dict[str, object] = {view: len(model.state.counts[view].rows) for view in model.state.counts}
    for view, tally in ((name, each.tally) for name, each in model.state.token_statistics().items()):
        if isinstance(tally, NoTally):
            continue
        if isinstance(tally, FieldTotals):
            known = [(name, field.totals, field.states) for name, field in tally.fields.items()]
            sizes[f"fields of {view}"] = sorted(known)
        else:
            sizes[f"absent words of {view}"] = (tally.messages, tally.histograms)
    return frozen.values, rest, rows, sizes, model.digest(), frozen.digest()

"""The figures of the shipped configurations on a generated stream, which every machine draws alike.

`test_streams` holds the log loss on real streams, where they lie beside the project. Here accuracy, log loss,
ranking and calibration are held everywhere, and on both sides: figures that become better without a reason
are as suspicious as worse ones. A change that is meant to move them changes the table.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest

from streamnb.base.batch import Batch
from streamnb.cli.demo.mailbox import mailbox
from streamnb.config import build_model, load_settings
from streamnb.evaluation import Evaluation, evaluate

CONFIGS = Path(__file__).parents[2] / "configs"
SEED, MAILS, LABELLED = 7, 3_000, 2_935

# Accuracy, log loss, 1-ROCA %, expected calibration error, lam %.
TABLE = {
    "spam.toml": (0.986021, 0.062204, 0.921703, 0.007668, 0.775315),
    "spam-accurate.toml": (0.985339, 0.063817, 0.819549, 0.004416, 1.148411),
    "textbook.toml": (0.969997, 0.342155, 1.594222, 0.023268, 2.282618),
}


@cache
def _figures(config: str) -> Evaluation:
    mails = [mail for mail in mailbox(SEED, MAILS) if mail["label"] is not None]
    model = build_model(load_settings(CONFIGS / config))
    batches = [
        Batch({"text": [mail["text"] for mail in part]}, [mail["label"] for mail in part])
        for part in (mails[i : i + 500] for i in range(0, len(mails), 500))
    ]
    (*_, (judgement, _)) = evaluate(model, batches)
    return judgement.figures(model.classes_)


@pytest.mark.parametrize("config", TABLE)
def test_the_figures_are_the_tables(config: str) -> None:
    """To a thousandth of each: no libm rounds that differently."""
    found = _figures(config)
    assert (found.n, found.new_class, len(found.classes)) == (LABELLED, 2, 2)
    figures = (found.accuracy, found.log_loss, found.roca_loss_pct, found.ece, found.lam_pct)
    assert figures == pytest.approx(TABLE[config], rel=1e-3)


def test_the_configurations_stand_in_the_order_that_the_documents_give() -> None:
    """The accurate one ranks and is calibrated best, and both beat the textbook by far."""
    textbook, words, accurate = map(_figures, ("textbook.toml", "spam.toml", "spam-accurate.toml"))
    assert textbook.accuracy < min(words.accuracy, accurate.accuracy)
    assert textbook.log_loss > 3 * max(words.log_loss, accurate.log_loss)
    assert (textbook.roca_loss_pct or 0) > (words.roca_loss_pct or 0) > (accurate.roca_loss_pct or math.inf)
    assert textbook.ece > 3 * words.ece > 3 * accurate.ece

"""Evaluate scores against labels: accuracy, log loss, calibration, ranking, drift and model comparison.

This package knows scores and labels, and evaluates any model with the Protocol `OnlineModel`. It must not
know which model it evaluates, nor whether the messages come from a file or a topic.
"""

from streamnb.evaluation.comparison import Contender, beside_the_first, compare
from streamnb.evaluation.drift import DETECTORS, Change, DriftSettings, DriftWatch
from streamnb.evaluation.feedback import SHARE, TAUGHT, Feedback, Mode
from streamnb.evaluation.intervals import Difference, Interval, bootstrap, mcnemar, paired_difference
from streamnb.evaluation.live import LiveEvaluation
from streamnb.evaluation.outcomes import LOG_LOSS_FLOOR, Outcomes, outcomes_of, predictions
from streamnb.evaluation.prequential import WARM_UP, WINDOW, Evaluation, OnlineModel, Prequential, evaluate
from streamnb.evaluation.ranking import lam_pct, roc_curve, roca_loss_pct
from streamnb.evaluation.report import Course, check_plotly, render_report
from streamnb.evaluation.tally import BINS, Bin, Figures, Tally, Window

__all__ = [
    "BINS",
    "DETECTORS",
    "LOG_LOSS_FLOOR",
    "SHARE",
    "TAUGHT",
    "WARM_UP",
    "WINDOW",
    "Bin",
    "Change",
    "Contender",
    "Course",
    "Difference",
    "DriftSettings",
    "DriftWatch",
    "Evaluation",
    "Feedback",
    "Figures",
    "Interval",
    "LiveEvaluation",
    "Mode",
    "OnlineModel",
    "Outcomes",
    "Prequential",
    "Tally",
    "Window",
    "beside_the_first",
    "bootstrap",
    "check_plotly",
    "compare",
    "evaluate",
    "lam_pct",
    "mcnemar",
    "outcomes_of",
    "paired_difference",
    "predictions",
    "render_report",
    "roc_curve",
    "roca_loss_pct",
]

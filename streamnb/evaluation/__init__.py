"""What scores are worth against the labels that come with them; of models it sees scores alone."""

from streamnb.evaluation.comparison import Contender, beside_the_first, compare
from streamnb.evaluation.drift import DETECTORS, Change, DriftSettings, DriftWatch
from streamnb.evaluation.feedback import Feedback, Mode
from streamnb.evaluation.intervals import Difference, Interval, bootstrap, difference, mcnemar
from streamnb.evaluation.outcomes import LOG_LOSS_FLOOR, Outcomes, outcomes_of, predictions
from streamnb.evaluation.prequential import WARM_UP, WINDOW, Evaluation, Learner, Prequential, evaluate
from streamnb.evaluation.ranking import lam_pct, roc_curve, roca_loss_pct
from streamnb.evaluation.tally import BINS, Bin, Figures, Tally, Window

__all__ = [
    "BINS",
    "DETECTORS",
    "LOG_LOSS_FLOOR",
    "WARM_UP",
    "WINDOW",
    "Bin",
    "Change",
    "Contender",
    "Difference",
    "DriftSettings",
    "DriftWatch",
    "Evaluation",
    "Feedback",
    "Figures",
    "Interval",
    "Learner",
    "Mode",
    "Outcomes",
    "Prequential",
    "Tally",
    "Window",
    "beside_the_first",
    "bootstrap",
    "compare",
    "difference",
    "evaluate",
    "lam_pct",
    "mcnemar",
    "outcomes_of",
    "predictions",
    "roc_curve",
    "roca_loss_pct",
]

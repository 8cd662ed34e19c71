"""How good is a prediction, and does it mean what it says: proper scores, reliability, conformal sets, PIT."""

from likely.calibration.assessment import Assessment, assess
from likely.calibration.conformal import CrossConformal, Guarantee, SplitConformal
from likely.calibration.error import CalibrationError, calibration_error
from likely.calibration.pit import PIT, Coverage, Histogram
from likely.calibration.reliability import Reliability, reliability
from likely.calibration.scores import (
    Scores,
    brier_score,
    crps_draws,
    crps_gaussian,
    crps_mixture,
    crps_student,
    log_score,
)

__all__ = [
    "PIT",
    "Assessment",
    "CalibrationError",
    "Coverage",
    "CrossConformal",
    "Guarantee",
    "Histogram",
    "Reliability",
    "Scores",
    "SplitConformal",
    "assess",
    "brier_score",
    "calibration_error",
    "crps_draws",
    "crps_gaussian",
    "crps_mixture",
    "crps_student",
    "log_score",
    "reliability",
]

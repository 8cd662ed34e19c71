"""scikit-learn's base classes, of which `scikit_learn.pyi` has the types."""

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    DensityMixin,
    OneToOneFeatureMixin,
    OutlierMixin,
    TransformerMixin,
)

__all__ = [
    "BaseEstimator", "ClassifierMixin", "DensityMixin", "OneToOneFeatureMixin", "OutlierMixin", "TransformerMixin",
]  # fmt: skip

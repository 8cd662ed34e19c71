"""What models over a pairwise machine have in common: evidence, samples and conditionals from one set of answers."""

from __future__ import annotations

import numpy as np

from likely.columns import Cells, Columns
from likely.contract.fingerprint import Fingerprint
from likely.contract.settings import seed_of
from likely.models.energy.normaliser.annealed import Answered
from likely.schema import Schema


class PairwiseModel(Answered):
    """Base of models over binary units whose distribution is one machine's."""

    _binary_only = True

    def _adopt(self, n_visible: int) -> None:
        """What `fit` learns about columns, for a machine that was given and not learned: so many binary ones."""
        self._validate_params()
        self.schema_ = self.schema if self.schema is not None else Schema.binary(n_visible)
        if self.schema_.n_columns != n_visible:
            raise ValueError(f"the schema has {self.schema_.n_columns} columns, the machine {n_visible} visible units.")
        self._check_kinds(self.schema_)
        self.columns_, self.n_features_in_ = Columns.of(self.schema_), n_visible
        nothing = np.zeros((1, n_visible))
        self.cells_ = Cells.plain(self.columns_)
        self.seed_, self.fingerprint_ = seed_of(self.random_state), str(Fingerprint.of(nothing))
        self.history_ = {}

"""Hyper-parameters behind the benchmarks' figures, in one place, as plain arguments of the models.

`debd` grids: for each model the settings that are tried on every data set; the best by validation is reported.
"""

from __future__ import annotations

from typing import Any

# 500 hidden units on binarized-mnist within 15 minutes.
RBM_500: dict[str, Any] = {
    "n_components": 500,
    "n_epochs": 110,
    "batch_size": 100,
    "n_chains": 100,
    "n_gibbs_steps": 1,
    "learning_rate": 0.05,
    "schedule": "linear",
    "averaging": 0.999,
    "n_temperatures": 10_000,
    "n_ais_chains": 128,
}

# The same within 20 minutes: the rate falls more slowly to zero, and the average is over more steps.
RBM_500_LONGER: dict[str, Any] = RBM_500 | {"n_epochs": 180}

# The machine that races BernoulliRBM to its own best evidence: as above, but short.
RBM_RACE: dict[str, Any] = {
    "n_components": 500,
    "batch_size": 100,
    "n_chains": 100,
    "learning_rate": 0.1,
    "schedule": "linear",
    "n_temperatures": 2_000,
    "n_ais_chains": 128,
}
RACE_EPOCHS = (1, 2, 3, 5, 8, 12, 20)

# 16 hidden units: log Z is exact.
RBM_16: dict[str, Any] = {
    "n_components": 16,
    "n_epochs": 50,
    "batch_size": 100,
    "n_chains": 500,
    "learning_rate": 0.1,
    "schedule": "linear",
}

MIXTURE_500: dict[str, Any] = {
    "n_components": 500,
    "n_init": 1,
    "max_iter": 100,
    "tol": 1e-2,
    "pseudo_count": 1.0,
}

# 50 latents on binarized-mnist within 15 minutes.
VAE_50: dict[str, Any] = {
    "n_components": 50,
    "hidden": (500, 500),
    "activation": "gelu",
    "n_epochs": 110,
    "batch_size": 100,
    "learning_rate": 1e-3,
    "schedule": "cosine",
    "weight_decay": 0.01,
    "averaging": 0.999,
    "beta_warmup": 0,
    "validate_every": 10,
    "n_importance": 5_000,
}

# The same within 20 minutes, under a prior that is learned. Its pseudo-inputs go through the encoder at every step:
# larger batches make fewer of these.
VAE_50_LONGER: dict[str, Any] = VAE_50 | {
    "prior": "vamp",
    "n_prior_components": 300,
    "n_epochs": 90,
    "batch_size": 200,
    "learning_rate": 1.5e-3,
}

# pythae's own default: one hidden layer of 512 ReLU each way, 10 latents, Adam at 1e-4, batches of 64.
VAE_LIKE_PYTHAE: dict[str, Any] = {
    "n_components": 10,
    "hidden": (512,),
    "activation": "relu",
    "batch_size": 64,
    "learning_rate": 1e-4,
    "schedule": "constant",
}

# The same with pythae's other objectives, and with two convolutions in place of the hidden layer.
VAE_FAMILY_LIKE_PYTHAE: dict[str, dict[str, Any]] = {
    "beta": {"beta": 4.0},
    "iwae": {"n_importance_train": 10, "n_importance_drawn": 1},
    "convolutional": {"hidden": (), "channels": (32, 64)},
}

# The same seconds for each: one layer or two, by the evidence lower bound, or by importance samples: five for three
# fifths of the time, then 50, of which the gradient goes through one. From the start on 50 come too seldom in so short
# a time. They make a row's gradient less noisy and cost as much as many rows, so batches have fewer rows.
IWAE_MINUTES = 10
_IWAE = {name: value for name, value in VAE_50.items() if name not in ("n_components", "hidden", "n_epochs")}
_ONE_LAYER: dict[str, Any] = _IWAE | {"n_components": 50, "hidden": (200, 200)}
_TWO_LAYERS: dict[str, Any] = _IWAE | {"layers": (50, 25), "hidden": (200, 200)}
_BY_ELBO: list[tuple[float, dict[str, Any]]] = [(1.0, {})]
_BY_FIFTY: list[tuple[float, dict[str, Any]]] = [
    (0.6, {"n_importance_train": 5, "n_importance_drawn": 1}),
    (0.4, {"n_importance_train": 50, "n_importance_drawn": 1, "batch_size": 20, "learning_rate": 5e-4}),
]
# model, settings, and for each part of the training its share of the time and what changes
IWAE_LINE_UP: dict[str, tuple[str, dict[str, Any], list[tuple[float, dict[str, Any]]]]] = {
    "VAE": ("VAE", _ONE_LAYER, _BY_ELBO),
    "IWAE, k = 50": ("VAE", _ONE_LAYER, _BY_FIFTY),
    "two layers": ("DeepLatentGaussian", _TWO_LAYERS, _BY_ELBO),
    "two layers, k = 50": ("DeepLatentGaussian", _TWO_LAYERS, _BY_FIFTY),
}

# in the table -> in the catalogue
DEBD_SETS = {name: f"debd/{name}" for name in ("nltcs", "plants", "jester", "accidents", "dna", "mushrooms")}
DEBD_SETS |= {"silhouettes": "silhouettes"}

_RBM = {"n_epochs": 100, "learning_rate": 0.05, "batch_size": 50}
_VAE = {"learning_rate": 3e-3, "batch_size": 50, "validate_every": 5, "n_importance": 5_000}

DEBD_GRIDS: dict[str, list[dict[str, Any]]] = {
    "Independent": [{}],
    "TreeMixture": [{}],
    "Circuit": [{}],  # It chooses its states and pseudo-counts by the validation rows itself.
    "Autoregressive": [{}],
    "Mixture": [
        {"n_components": k, "pseudo_count": c, "n_init": 2}
        for k, c in ((50, 1.0), (100, 1.0), (200, 1.0), (200, 3.0), (400, 1.0))
    ],
    "RBM": [
        _RBM | {"n_components": 20},
        _RBM | {"n_components": 50},
        _RBM | {"n_components": 150},
        _RBM | {"n_components": 50, "learning_rate": 0.02, "weight_decay": 0.02},
    ],
    "VAE": [_VAE | {"n_components": 16, "hidden": (200, 200), "n_epochs": 40, "patience": 10, "beta_warmup": 10}],
    "DeepLatentGaussian": [
        _VAE | {"layers": (16, 8), "hidden": (200,), "n_epochs": 40, "patience": 10, "beta_warmup": 10},
    ],
}

# Sets of few rows can be gone through many times: the warm-up keeps latents in use, the decay keeps rows from being
# learned by heart, three layers follow the sharp dependences of mushrooms. There ten importance samples in training
# gain half a nat on validation rows; dna wants the stronger decay.
DEBD_FEW_ROWS = 3_000
_FEW_ROWS = _VAE | {"n_components": 16, "hidden": (200, 200, 200)}
DEBD_VAE_FEW_ROWS = [
    _FEW_ROWS | {"n_epochs": 250, "patience": 250, "beta_warmup": 100, "weight_decay": 0.1, "n_importance_train": 10},
    _FEW_ROWS | {"n_epochs": 600, "patience": 600, "beta_warmup": 200, "weight_decay": 0.3},
]


# Sets that exact circuits and trees are run on, and stacks of all that comes within so many nats of the best.
DEBD_STACKED = tuple(name for name in DEBD_SETS if name != "silhouettes")
DEBD_STACKED_WITHIN = 3.0


def debd_grid(model: str, name: str, n_rows: int) -> list[dict[str, Any]]:
    """Settings of a model that are tried on a set with so many training rows; none where it is not run."""
    if model in ("Circuit", "TreeMixture", "Autoregressive") and name not in DEBD_STACKED:
        return []
    few = model == "VAE" and n_rows < DEBD_FEW_ROWS
    return DEBD_VAE_FEW_ROWS if few else DEBD_GRIDS[model]


# 500 and 1000 hidden units on binarized-mnist within 25 minutes. The lowest layer is learned as an RBM and the machine
# goes on from there: its bound starts at that RBM's evidence.
DBM_500_1000: dict[str, Any] = {
    "layers": (500, 1000),
    "pretraining": "lowest",
    "n_pretraining_epochs": 80,
    "pretraining_rate": 0.05,
    "n_epochs": 100,
    "learning_rate": 0.05,
    "n_mean_field": 5,
    "batch_size": 100,
    "n_chains": 100,
    "schedule": "linear",
    "averaging": 0.999,
    "n_importance": 128,
    "n_temperatures": 10_000,
    "n_ais_chains": 128,
}

# The second layer starts with the weights of the first, transposed, and so with its evidence.
DBN_500_1000: dict[str, Any] = {
    "layers": (500, 1000),
    "n_epochs": 120,
    "learning_rate": 0.05,
    "n_tuning_epochs": 0,
    "batch_size": 100,
    "n_chains": 100,
    "schedule": "linear",
    "averaging": 0.999,
    "n_importance": 128,
    "n_temperatures": 10_000,
    "n_ais_chains": 128,
}

# Grey MNIST: layers that learn from all rows without labels, then the whole network with all labels.
PRETRAINING: dict[str, Any] = {
    "layers": (1000, 1000),
    "n_epochs": 20,
    "batch_size": 100,
    "learning_rate": 0.3,
    "sparsity_target": 0.1,
}
FINE_TUNING: dict[str, Any] = {
    "n_epochs": 40,
    "batch_size": 100,
    "learning_rate": 1e-3,
    "schedule": "cosine",
    "dropout": 0.3,
    "input_dropout": 0.1,
}

# The same network with 1,000 labels, pretrained or from a random start: each takes its best of the grid by validation.
FEW_LABELS: dict[str, Any] = {"n_epochs": 60, "batch_size": 50, "schedule": "cosine"}
FEW_LABELS_GRID: list[dict[str, Any]] = [
    {"learning_rate": rate, "dropout": dropout, "input_dropout": 0.4 * dropout}
    for rate, dropout in ((3e-3, 0.0), (1e-3, 0.5), (3e-3, 0.5), (1e-2, 0.5))
]

# MNIST with all labels, within 20 minutes of two cores each. The perceptron is the baseline of Rasmus et al. (2015).
PREDICT_MNIST: dict[str, dict[str, Any]] = {
    "permutation invariant": {
        "hidden": (1000, 500, 250, 250, 250),
        "noise": 0.3,
        "n_epochs": 40,
        "batch_size": 100,
        "learning_rate": 2e-3,
        "schedule": "linear",
    },
    "convolutional": {
        "channels": (16, 32),
        "size": 5,
        "hidden": 128,
        "dropout": 0.4,
        "shift": 2.0,
        "rotate": 10.0,
        "elastic": 0.5,
        "n_epochs": 16,
        "batch_size": 100,
        "learning_rate": 3e-3,
        "warmup_steps": 600,
        "schedule": "cosine",
    },
}

# Half of the cells hidden; settings as in Mattei and Frellsen's MIWAE, with fewer epochs.
_MIWAE: dict[str, Any] = {
    "hidden": (128, 128),
    "activation": "tanh",
    "learning_rate": 1e-3,
    "weight_decay": 0.05,
    "beta_warmup": 0,
    "n_importance_train": 20,
    "n_refine": 0,
}
IMPUTATION: dict[str, dict[str, Any]] = {
    "wine": _MIWAE | {"n_components": 8, "n_epochs": 200, "batch_size": 50, "n_importance": 5_000},
    "adult": _MIWAE | {"n_components": 8, "n_epochs": 60, "batch_size": 50, "n_importance": 1_000},
    "mnist": _MIWAE | {"n_components": 16, "n_epochs": 100, "batch_size": 50, "n_importance": 1_000},
}

# Two layers of 200 on WikiText-2 within about 20 minutes: noise contrast, since the softmax over 33,278 words is most
# of the work otherwise.
LSTM_WIKITEXT2: dict[str, Any] = {
    "layers": (200, 200),
    "tied": True,
    "dropout": 0.2,
    "output": "nce",
    "n_noise": 500,
    "length": 35,
    "n_streams": 40,
    "n_epochs": 7,
    "learning_rate": 5e-3,
    "validate_every": 7,
}

# 10,000 generated pairs, strings to reverse or dates to normalise, about a minute each.
SEQ2SEQ: dict[str, Any] = {"n_hidden": 64, "n_embedding": 32, "batch_size": 64, "learning_rate": 5e-3}
SEQ2SEQ_EPOCHS = {"reversal": 8, "dates": 6}

# Copying with a memory: 10,000 steps. A controller without a state of its own cannot count by anything but the memory's
# places, and goes on to lengths it was not taught; an LSTM had 15% of the bits wrong at length 40.
NTM_COPY: dict[str, Any] = {
    "controller": "feedforward",
    "n_slots": 64,
    "width": 20,
    "n_hidden": 100,
    "n_epochs": 10,
    "batch_size": 16,
    "learning_rate": 2e-3,
    "schedule": "linear",
    "gradient_clip": 1.0,
}

# word2vec's and gensim's defaults, on WikiText-2.
SKIPGRAM: dict[str, Any] = {
    "n_components": 100,
    "window": 5,
    "n_negatives": 5,
    "subsample": 1e-3,
    "n_epochs": 5,
    "learning_rate": 0.025,
    "min_count": 5,
}

"""pythae's VAE and its kin with default networks, trained by its own trainer; runs in the peers' environment.

Takes one argument, JSON: paths of training and test rows (.npy), epochs, seed and kind ("vae", "beta", "iwae" or
"convolutional"). Prints JSON: seconds of each epoch, mean bound of the test rows by pythae's own loss, versions.
"""

import json
import sys
import tempfile
import time
from importlib.metadata import version

import numpy as np
import torch
from pythae.data.datasets import BaseDataset
from pythae.models import IWAE, VAE, BetaVAE, BetaVAEConfig, IWAEConfig, VAEConfig
from pythae.models.base.base_utils import ModelOutput
from pythae.models.nn import BaseDecoder, BaseEncoder
from pythae.trainers import BaseTrainer, BaseTrainerConfig
from pythae.trainers.training_callbacks import TrainingCallback


class Clock(TrainingCallback):
    """Notes when each epoch starts and ends."""

    def __init__(self):
        self.seconds = []

    def on_epoch_begin(self, training_config, **kwargs):
        """Start the clock."""
        self.start = time.perf_counter()

    def on_epoch_end(self, training_config, **kwargs):
        """Stop it."""
        self.seconds.append(time.perf_counter() - self.start)


class ConvolutionalEncoder(BaseEncoder):
    """Two convolutions of stride 2, then mean and log variance."""

    def __init__(self, channels, latents):
        BaseEncoder.__init__(self)
        first, second = channels
        self.latent_dim = latents
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(1, first, 4, 2, 1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(first, second, 4, 2, 1),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
        )
        self.head = torch.nn.Linear(49 * second, 2 * latents)

    def forward(self, x):
        """Parameters of q."""
        mean, log_variance = self.head(self.body(x)).chunk(2, dim=1)
        return ModelOutput(embedding=mean, log_covariance=log_variance)


class ConvolutionalDecoder(BaseDecoder):
    """The mirror image of the encoder."""

    def __init__(self, channels, latents):
        BaseDecoder.__init__(self)
        first, second = channels
        self.body = torch.nn.Sequential(
            torch.nn.Linear(latents, 49 * second),
            torch.nn.Unflatten(1, (second, 7, 7)),
            torch.nn.ReLU(),
            torch.nn.ConvTranspose2d(second, first, 4, 2, 1),
            torch.nn.ReLU(),
            torch.nn.ConvTranspose2d(first, 1, 4, 2, 1),
            torch.nn.Sigmoid(),
        )

    def forward(self, z):
        """Probabilities of the pixels."""
        return ModelOutput(reconstruction=self.body(z))


def make(kind, shape, options):
    """The model of a kind; `options` are beta, number of samples, and channels."""
    common = {"input_dim": shape, "reconstruction_loss": "bce"}
    if kind == "beta":
        return BetaVAE(BetaVAEConfig(**common, beta=options["beta"]))
    if kind == "iwae":
        return IWAE(IWAEConfig(**common, number_samples=options["n_samples"]))
    config = VAEConfig(**common)
    if kind == "vae":
        return VAE(config)
    parts = (options["channels"], config.latent_dim)
    return VAE(config, ConvolutionalEncoder(*parts), ConvolutionalDecoder(*parts))


def main(train, test, n_epochs, seed, kind="vae", **options):
    torch.manual_seed(seed)
    train, test = np.load(train), np.load(test)
    if kind == "convolutional":
        train, test = (rows.reshape(-1, 1, 28, 28) for rows in (train, test))
    model = make(kind, train.shape[1:], options)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        rows = torch.from_numpy(train)
        config = BaseTrainerConfig(output_dir=folder, num_epochs=n_epochs, seed=seed, no_cuda=True)
        trainer = BaseTrainer(
            model=model,
            train_dataset=BaseDataset(rows, torch.ones(len(rows))),
            training_config=config,
            callbacks=[clock],
        )
        trainer.train()
    model.eval()
    with torch.no_grad():
        bound = -float(model({"data": torch.from_numpy(test)}).loss)
    versions = {name: version(name) for name in ("torch", "pythae")}
    print(
        json.dumps(
            {
                "seconds": clock.seconds,
                "elbo": bound,
                "batch_size": config.per_device_train_batch_size,
                "learning_rate": config.learning_rate,
                "latents": model.latent_dim,
                "versions": versions,
            }
        )
    )


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))

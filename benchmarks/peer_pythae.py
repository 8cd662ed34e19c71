"""pythae's VAE with its default networks, trained by its own trainer; runs in the peers' environment.

Takes one argument, JSON: paths of training and test rows (.npy), epochs and seed. Prints JSON: seconds of each epoch,
mean evidence lower bound of the test rows, versions.
"""

import json
import sys
import tempfile
import time
from importlib.metadata import version

import numpy as np
import torch
from pythae.data.datasets import BaseDataset
from pythae.models import VAE, VAEConfig
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


def main(train, test, n_epochs, seed):
    torch.manual_seed(seed)
    train, test = np.load(train), np.load(test)
    model = VAE(VAEConfig(input_dim=train.shape[1:], reconstruction_loss="bce"))
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

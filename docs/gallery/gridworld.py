"""Policy gradients on a small grid: score-function estimates of the library against value iteration."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from likely.gradients import Problem, ScoreFunction
from likely.gradients.distributions import Family
from likely.gradients.problems import gradient
from look import INK, MUTED, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "gridworld.png"
MAP = ("...G", ".#.P", "S...")  # start, wall, pit, goal
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
ARROWS = "↑→↓←"
SLIP, DISCOUNT, REWARDS = 0.1, 0.95, {"G": 1.0, "P": -1.0}
RATE = 1.0
BASELINES = {"none": "#d55e00", "running_mean": "#cc79a7", "leave_one_out": "#0072b2"}


def world() -> tuple[np.ndarray, np.ndarray, int]:
    """P(next | state, move) (s, 4, s), reward on arrival (s,), and the start; goal and pit lead to a last state."""
    cells = [(y, x) for y, row in enumerate(MAP) for x, mark in enumerate(row) if mark != "#"]
    number, n = {cell: i for i, cell in enumerate(cells)}, len(cells) + 1
    chances, rewards = np.zeros((n, 4, n)), np.zeros(n)
    for (y, x), i in number.items():
        rewards[i] = REWARDS.get(MAP[y][x], 0.0)
        for wanted in range(4):
            for taken in range(4):
                to = n - 1 if MAP[y][x] in REWARDS else number.get((y + MOVES[taken][0], x + MOVES[taken][1]), i)
                chances[i, wanted, to] += 1 - SLIP if taken == wanted else SLIP / 3
    chances[-1, :, -1] = 1
    return chances, rewards, number[next((y, x) for y, x in cells if MAP[y][x] == "S")]


def iterate(chances: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of the best policy and its moves, V = max_a Σ P (r + γ V)."""
    values = np.zeros(len(rewards))
    while True:
        each = chances @ (rewards + DISCOUNT * values)
        if np.abs(each.max(axis=1) - values).max() < 1e-12:
            return each.max(axis=1), each.argmax(axis=1)
        values = each.max(axis=1)


def value_of(policy: np.ndarray, chances: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Exact values of a policy (s, 4), by one linear system."""
    walk = np.einsum("sa,sat->st", policy, chances)
    return np.linalg.solve(np.eye(len(rewards)) - DISCOUNT * walk, walk @ rewards)


class Episodes(Family):
    """Walks of fixed length: z (n, steps, 3) states, moves and next states; θ (s, 4) logits of the moves."""

    log_chances: jax.Array
    start: int = eqx.field(static=True)
    length: int = eqx.field(static=True)

    def sample(self, key, theta, n):
        """N walks from the start."""

        def step(state, key):
            move_key, next_key = jax.random.split(key)
            move = jax.random.categorical(move_key, theta[state])
            after = jax.random.categorical(next_key, self.log_chances[state, move])
            return after, jnp.stack([state, move, after], axis=1)

        _, walks = jax.lax.scan(step, jnp.full(n, self.start), jax.random.split(key, self.length))
        return jnp.swapaxes(walks, 0, 1)

    def log_prob(self, theta, z):
        """Log probability of a walk's moves."""
        # The world's own chances do not depend on θ, so they may be left out of the score.
        return jax.nn.log_softmax(theta)[z[..., 0], z[..., 1]].sum(axis=1)

    def support(self, theta):
        """Not offered."""
        raise ValueError("walks are too many to enumerate.")


def learn(baseline: str, n_steps: int, n_walks: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact value of the start along a training, and the last policy."""
    chances, rewards, start = world()
    family = Episodes(jnp.log(jnp.asarray(chances) + 1e-30), start, 30)
    discounts = DISCOUNT ** jnp.arange(family.length)

    def loss(z):
        return -(jnp.asarray(rewards)[z[..., 2]] * discounts[None]).sum(axis=1)

    estimator = ScoreFunction(baseline)
    problem = Problem(family, loss, jnp.zeros((len(rewards), 4)))

    def update(carry, key):
        theta, state = carry
        slope, state = gradient(key, estimator, problem, theta, n_walks, state)
        theta = theta - RATE * slope
        return (theta, state), theta

    key = jax.random.key(seed)
    first = (problem.theta, estimator.start(key))
    thetas = np.asarray(
        jax.jit(lambda k: jax.lax.scan(update, first, k))(jax.random.split(key, n_steps))[1], np.float64
    )
    policies = np.exp(thetas - thetas.max(axis=2, keepdims=True))
    policies /= policies.sum(axis=2, keepdims=True)
    return np.array(
        [value_of(policy, chances, rewards)[start] for policy in policies[:: max(1, n_steps // 100)]]
    ), policies[-1]


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    n_steps, n_walks, n_runs = (3, 4, 1) if small else (600, 4, 9)
    chances, rewards, start = world()
    best, moves = iterate(chances, rewards)
    figure = Figure(figsize=(9.6, 4.0), dpi=60 if small else 110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    policy = None
    for name, colour in list(BASELINES.items())[-1:] if small else BASELINES.items():
        runs = [learn(name, n_steps, n_walks, seed) for seed in range(n_runs)]
        curves, policy = np.array([curve for curve, _ in runs]), runs[0][1]
        steps = np.arange(curves.shape[1]) * max(1, n_steps // 100) + 1
        left.plot(
            steps, np.median(curves, axis=0), color=colour, linewidth=1.8, label=f"baseline: {name.replace('_', ' ')}"
        )
        left.fill_between(steps, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    left.axhline(best[start], color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="value iteration")
    left.legend(frameon=False, fontsize=9, loc="lower right")
    dress(
        left,
        "Exact value of the start",
        f"step of {n_walks} walks (median and range of {n_runs} runs)",
        "discounted reward",
    )
    draw_map(right, best, moves, policy)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_map(panel, values: np.ndarray, moves: np.ndarray, policy: np.ndarray) -> None:
    """Values of the best policy, its arrows in ink and the learned ones in blue."""
    state = 0
    for y, row in enumerate(MAP):
        for x, mark in enumerate(row):
            if mark == "#":
                panel.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, color=MUTED))
                continue
            colour = mpl.colormaps["RdBu"](0.5 + 0.35 * REWARDS.get(mark, values[state]))
            panel.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white"))
            if mark in REWARDS:
                panel.text(x, y, f"{REWARDS[mark]:+g}".replace("-", "−"), ha="center", va="center", fontweight="bold")
            else:
                panel.text(x - 0.18, y - 0.1, ARROWS[moves[state]], ha="center", va="center", fontsize=16)
                panel.text(
                    x + 0.18,
                    y - 0.1,
                    ARROWS[policy[state].argmax()],
                    ha="center",
                    va="center",
                    fontsize=16,
                    color="#0072b2",
                )
                panel.text(x, y + 0.33, f"{values[state]:.2f}", ha="center", va="center", fontsize=8, color=INK)
            state += 1
    panel.set(xlim=(-0.5, len(MAP[0]) - 0.5), ylim=(len(MAP) - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
    panel.set_title("Best moves (ink) and learned ones (blue)", loc="left", fontweight="bold")
    for side in panel.spines.values():
        side.set_visible(False)


if __name__ == "__main__":
    main()

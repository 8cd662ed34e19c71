"""Many processes as one: the same script on every host, each with its share of the rows.

`start` joins this process to the others by `jax.distributed`. From then on JAX's devices are those of all processes:
training shares every batch out over them and averages gradients, EM shares rows out and adds up its sums, and what a
fit gives is the same on each process. Every process is given the same rows, as a memory map or a file that all of them
can see, and reads its own share of them. The first process writes files. A process that ends before the others ends
them too, in words.
"""

from likely.distributed.lifeline import HEARTBEAT_SECONDS as HEARTBEAT_SECONDS
from likely.distributed.parquet import rows_of_parquet as rows_of_parquet
from likely.distributed.run import ProcessLost as ProcessLost
from likely.distributed.run import company as company
from likely.distributed.run import failing as failing
from likely.distributed.run import is_first as is_first
from likely.distributed.run import n_processes as n_processes
from likely.distributed.run import rank as rank
from likely.distributed.run import start as start
from likely.distributed.run import stop as stop
from likely.distributed.run import words_of_loss as words_of_loss
from likely.distributed.sums import Disagreement as Disagreement
from likely.distributed.sums import check_agreed as check_agreed
from likely.distributed.sums import gathered as gathered
from likely.distributed.sums import gathered_numbers as gathered_numbers
from likely.distributed.sums import joined as joined
from likely.distributed.sums import joined_shares as joined_shares
from likely.distributed.sums import of_first as of_first
from likely.distributed.sums import process_share as process_share
from likely.distributed.sums import shares as shares
from likely.distributed.sums import summed as summed
from likely.distributed.sums import summed_shares as summed_shares

__all__ = ["Disagreement", "ProcessLost", "is_first", "n_processes", "rank", "rows_of_parquet", "start", "stop"]

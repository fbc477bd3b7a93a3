"""rewrites: what a graph is written as before its nodes are grouped, stage by stage.

Each takes roots, the nodes under them, inputs first, and a target, and gives other roots that mean
the same.
"""

from picograd.schedule.channels_last import lay_out
from picograd.schedule.joined_sums import join_sums
from picograd.schedule.joined_writes import join_writes, read_values
from picograd.schedule.kept_scores import fit_scores
from picograd.schedule.late_reshapes import reshape_late
from picograd.schedule.long_sums import split_sums
from picograd.schedule.looked_up import look_up
from picograd.schedule.moved_divisors import move_divisors
from picograd.schedule.moved_factors import fit_numbers, move_factors
from picograd.schedule.narrow_products import narrow_products
from picograd.schedule.narrowed import narrow
from picograd.schedule.padded_gradients import cut_gradients
from picograd.schedule.parted_joins import part_joins
from picograd.schedule.repack import repack, uncross
from picograd.schedule.summed_products import sum_products
from picograd.schedule.turned_products import edit_weights
from picograd.schedule.updates import take_updates
from picograd.schedule.weighted_sums import expanded

REWRITES = (
    join_writes,
    read_values,
    take_updates,
    sum_products,
    look_up,
    expanded,
    cut_gradients,
    narrow,
    part_joins,
    narrow_products,
    move_divisors,
    move_factors,
    edit_weights,
    join_sums,
    fit_scores,
    join_sums,
    fit_numbers,
    split_sums,
    repack,
    uncross,
    lay_out,
    reshape_late,
)

"""Dropout is drawn anew in each step and process, and again in a replay."""

import torch
import torch.nn.functional as F

from multitask.random_state import random_state, replayed, seed_step

CPU = torch.device("cpu")


def drawn():
    return F.dropout(torch.ones(50), 0.5)


def test_draws_depend_on_seed_step_and_process_only():
    found = []
    for numbers in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, 0)):
        seed_step(*numbers)
        found.append(drawn())
    assert torch.equal(found[0], found[-1])
    assert not any(torch.equal(found[0], other) for other in found[1:-1])


def test_a_replay_draws_the_same_and_leaves_the_generator_where_it_was():
    state = random_state(CPU)
    first = drawn()
    after = random_state(CPU)
    with replayed(state, CPU):
        assert torch.equal(drawn(), first)
    assert torch.equal(random_state(CPU), after)

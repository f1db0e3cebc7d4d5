"""What is read of a text with more tokens than the encoder's limit: its head and tail, or chunks.

The parts are those of a text's tokens without special tokens; `room` is how many of them fit
beside the special tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Chunks of a text that are read. With the 510 tokens that fit into most encoders beside the
# special tokens, the text of a book's chapter: 32,640 tokens.
MOST_CHUNKS = 64
Parts = list[np.ndarray]


def head_and_tail(tokens: np.ndarray, room: int) -> tuple[Parts, bool]:
    """Return the first quarter of `room` and the rest of it from the end, and whether cut.

    Sun et al. (2019), "How to Fine-Tune BERT for Text Classification?", section 5.3.1, keep the
    first 128 and the last 382 of 510 tokens.
    """
    if len(tokens) <= room:
        return [tokens], False
    head = (room + 2) // 4  # rounded: 128 of 510
    return [np.concatenate([tokens[:head], tokens[len(tokens) - (room - head) :]])], True


def split_in_chunks(tokens: np.ndarray, room: int) -> tuple[Parts, bool]:
    """Return the fewest chunks of at most `room` tokens, and whether the text was cut.

    Chunks do not overlap, and their sizes differ by at most one token. A text is cut to the room
    of MOST_CHUNKS.
    """
    kept = tokens[: MOST_CHUNKS * room]
    return np.array_split(kept, max(1, -(-len(kept) // room))), len(kept) < len(tokens)


# Characters per token that are tokenised of a text of any length, if so many tokens come of them.
AMPLE = 32


def beginning(text: str, characters: int) -> str:
    """Return about the first `characters` of a text of twice as many, up to a white space.

    Its tokens are the first ones of the text, because no token has a white space inside.
    """
    if len(text) <= 2 * characters:
        return text
    end = max(text.rfind(" ", 0, characters), text.rfind("\n", 0, characters))
    return text[:end].rstrip() or text


def ending(text: str, characters: int) -> str:
    """Return about the last `characters` of a text, from a white space; see `beginning`."""
    found = [text.find(space, len(text) - characters) for space in (" ", "\n")]
    begin = min((place for place in found if place >= 0), default=0)
    return text[begin:]


READERS: dict[str, Callable[[np.ndarray, int], tuple[Parts, bool]]] = {
    "head-tail": head_and_tail,
    "chunks": split_in_chunks,
}

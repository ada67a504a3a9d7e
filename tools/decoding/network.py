# SPDX-License-Identifier: MIT OR Apache-2.0
"""A transformer decoder that writes one character after the other, in NumPy: what replays of recordings/decode-g52 are compared with.

    state      x = table[token]
    each layer q, k, v = attention norm(x); k and v go to the cache, at the place of this position
               x += project (softmax(q k' / 4 + distance) v')       over the places of the cache that the mask names, four heads
               x += contract max(0, expand norm(x))
    scores     output norm(x); the next token is the largest

norm(x) is x divided by its root mean square. The cache is a ring of PLACES positions: position p takes place p mod PLACES, so the
network sees the last PLACES characters, and writes as many as anyone wants. `distance` is added to a score by how far back it looks.
"""

import numpy as np

ALPHABET = "\n .abcdefghijklmnopqrstuvwxyz"
WIDTH, HEADS, INNER, PLACES, LAYERS = 64, 4, 256, 128, 2
HEAD = WIDTH // HEADS
SHAPES = {"table": (len(ALPHABET), WIDTH)}
for _layer in ("1", "2"):
    SHAPES |= {
        f"attention{_layer}": (3 * WIDTH, WIDTH),
        f"distance{_layer}": (HEADS, PLACES),
        f"project{_layer}": (WIDTH, WIDTH),
        f"expand{_layer}": (INNER, WIDTH),
        f"contract{_layer}": (WIDTH, INNER),
    }
SHAPES["output"] = (len(ALPHABET), WIDTH)
CHAIN = [
    ("sun", "warmed"), ("sea", "fed"), ("cloud", "brought"), ("rain", "woke"), ("seed", "became"), ("tree", "held"),
    ("nest", "kept"), ("bird", "caught"), ("fly", "troubled"), ("cow", "gave"), ("milk", "pleased"), ("cat", "chased"),
    ("rat", "gnawed"), ("rope", "rang"), ("bell", "called"), ("cook", "made"), ("fire", "lit"), ("room", "kept"),
    ("child", "drew"),
]  # fmt: skip


def verses():
    """The text that the network learns, which it then goes on and on with: each verse begins where the one before looked ahead."""
    text = ""
    for at in range(len(CHAIN)):
        (one, does), (two, did), (three, _) = (CHAIN[(at + ahead) % len(CHAIN)] for ahead in range(3))
        text += f"this is the {one} that {does} the {two} that {did} the {three}.\n"
    return text


def tokens(text):
    return np.array([ALPHABET.index(letter) for letter in text], np.int32)


def norm(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + x.dtype.type(1e-5))


def place_and_mask(position):
    """The place of a position in the cache, and which places are taken then (uint8)."""
    return position % PLACES, (np.arange(PLACES) <= position).astype(np.uint8)


def inputs(count, forced=()):
    """What so many steps take, by name: a token to take in the place of the network's own or -1, the place, the mask."""
    given = np.full((count, 1), -1, np.int32)
    given[: len(forced), 0] = forced
    pairs = [place_and_mask(position) for position in range(count)]
    places = np.array([[place] for place, _ in pairs], np.int32)
    return {"forced": given, "place": places, "mask": np.array([mask for _, mask in pairs], np.uint8)}


def step(weights, cache, token, place, mask):
    """The scores, in the arithmetic of the weights; `cache` (layers x 2 x PLACES x WIDTH) gets the keys and values of this place."""
    dtype = weights["table"].dtype.type
    x = weights["table"][token].copy()
    back = (place - np.arange(PLACES)) % PLACES
    for layer in range(LAYERS):
        of = lambda name: weights[f"{name}{layer + 1}"]  # noqa: E731
        q, cache[layer, 0, place], cache[layer, 1, place] = (of("attention") @ norm(x)).reshape(3, WIDTH)
        keys, values = (part.reshape(PLACES, HEADS, HEAD) for part in cache[layer])
        scores = np.einsum("hc,phc->hp", q.reshape(HEADS, HEAD), keys) * dtype(0.25) + of("distance")[:, back]
        scores = np.where(mask != 0, scores, dtype(-np.inf))
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        powers /= powers.sum(axis=1, keepdims=True)
        x = x + of("project") @ np.einsum("hp,phc->hc", powers, values).reshape(WIDTH)
        x = x + of("contract") @ np.maximum(of("expand") @ norm(x), 0)
    return weights["output"] @ norm(x)


def generate(weights, count, forced=()):
    """So many tokens; those that are forced are taken in the place of the network's own, and the margins of all choices."""
    cache, token = np.zeros((LAYERS, 2, PLACES, WIDTH), weights["table"].dtype), 0
    given = inputs(count, forced)
    out, margins = [], []
    for at in range(count):
        token = int(given["forced"][at, 0]) if given["forced"][at, 0] >= 0 else token
        scores = step(weights, cache, token, given["place"][at, 0], given["mask"][at])
        token = int(scores.argmax())
        best, second = np.sort(scores)[::-1][:2]
        out.append(token)
        margins.append(best - second)
    return np.array(out, np.int32), np.array(margins)

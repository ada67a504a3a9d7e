# SPDX-License-Identifier: MIT OR Apache-2.0
"""A gated recurrent unit that writes one character after the other, in NumPy: what replays of recordings/generate-g52 are compared with.

    gates     z, r = sigmoid(table[token] + recurrent h + bias)       the first and the second third of the rows
    candidate c    = tanh(table[token] + r (recurrent h + bias))      the last third
    state     h    = z h + (1 - z) c
    scores    s    = output h + output_bias; the next token is the largest

`table` has a column for each token: the product with a vector that is 1 at one place.
"""

import numpy as np

ALPHABET = "\n ,.abcdefghijklmnopqrstuvwxyz"
HIDDEN = 192
SHAPES = {
    "table": (3 * HIDDEN, len(ALPHABET)),
    "recurrent": (3 * HIDDEN, HIDDEN),
    "bias": (3 * HIDDEN,),
    "output": (len(ALPHABET), HIDDEN),
    "output_bias": (len(ALPHABET),),
}
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
ANIMALS = [("frog", "log", "hopped"), ("duck", "pond", "swam"), ("bird", "roof", "flew"), ("bear", "hill", "walked")]


def verses():
    """The text that the network learns, which it then goes on and on with."""
    text = ""
    for animal, place, went in ANIMALS:
        for count in range(len(NUMBERS), 0, -1):
            plural = "" if count == 1 else "s"
            left = NUMBERS[count - 2] if count > 1 else "none"
            text += f"{NUMBERS[count - 1]} little {animal}{plural} on the {place}, one {went} off, {left} left.\n"
    return text


def tokens(text):
    return np.array([ALPHABET.index(letter) for letter in text], np.int32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(weights, hidden, token):
    """The next state and the scores, in the arithmetic of the weights."""
    column = weights["table"][:, token]
    product = weights["recurrent"] @ hidden + weights["bias"]
    z = sigmoid(column[:HIDDEN] + product[:HIDDEN])
    r = sigmoid(column[HIDDEN : 2 * HIDDEN] + product[HIDDEN : 2 * HIDDEN])
    c = np.tanh(column[2 * HIDDEN :] + r * product[2 * HIDDEN :])
    hidden = z * hidden + (1 - z) * c
    return hidden, weights["output"] @ hidden + weights["output_bias"]


def generate(weights, count, forced=()):
    """So many tokens; those that are forced are taken in the place of the network's own, and the margins of all choices."""
    hidden, token = np.zeros(HIDDEN, weights["bias"].dtype), 0
    out, margins = [], []
    for at in range(count):
        token = forced[at] if at < len(forced) and forced[at] >= 0 else token
        hidden, scores = step(weights, hidden, token)
        token = int(scores.argmax())
        best, second = np.sort(scores)[::-1][:2]
        out.append(token)
        margins.append(best - second)
    return np.array(out, np.int32), np.array(margins)

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the input of bits.cl: 64 words that are numbers at the edges of ranges, of both signs, and the same ones in between.

bits.py x.npy"""

import sys

import numpy

EDGES = [
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00000200, 0x007fffff, 0x807fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0xff7fffff,
    0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffc00001, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000, 0x3fc00000,
    0x40200000, 0xbf000000, 0xc0200000, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x477fe000, 0x477fefff,
    0x477ff000, 0x38800000, 0x387fc000, 0x33800000, 0x33000000, 0x33000001, 0x0000fc00, 0x00007c01, 0x000003ff, 0x00008001, 0x3fc90fdb,
    0x40490fdb, 0x42c80000, 0xc2fc0000, 0x43000000, 0xc3160000, 0x4b800001]
numbers = numpy.array(EDGES, numpy.uint32)
between = numpy.random.default_rng(41).normal(0, 8, 62 - len(EDGES)).astype(numpy.float32).view(numpy.uint32)
last = numpy.array([1, 0], numpy.float32).view(numpy.uint32)
numpy.save(sys.argv[1], numpy.concatenate([numbers, between, last]))

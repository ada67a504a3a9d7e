# SPDX-License-Identifier: MIT OR Apache-2.0
"""Libraries and programs that others wrote, as cases of cases.py; each is unchanged, with NumPy's answer to its input. They are Debian's, but for
modules of Python that CI puts into target/foreign/python."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys

import numpy

import leela

F, U8 = numpy.float32, numpy.uint8
HERE = pathlib.Path(__file__).parent
SIDE = 32
sys.path.append(str(HERE.parent.parent / "target/foreign/python"))


def module(name):
    """The name of a module that is not here."""
    return "" if importlib.util.find_spec(name) else name


def program(name):
    return "" if shutil.which(name) else name


def header(name):
    return "" if pathlib.Path("/usr/include", name).exists() else name


def compiled(name, source, *libraries):
    """A function that compiles a program of that name into the current directory."""
    def build():
        compiler = "c++" if source.suffix == ".cpp" else "cc"
        subprocess.run([compiler, "-O0", "-o", name, source, *libraries, "-lOpenCL"], check=True)
    build.name = name
    return build


def neighbours(x, mode):
    """Each element with its eight neighbours."""
    high, wide = x.shape
    edge = numpy.pad(x, 1, mode=mode)
    return numpy.stack([edge[i:i + high, j:j + wide] for i in range(3) for j in range(3)])


def grey(x):
    """The bytes of the numbers as a picture."""
    return x.view(U8).reshape(SIDE, 4 * SIDE)


def picture(x):
    return {None: grey(x)}


def mean(x, mode="reflect"):
    return numpy.rint(neighbours(grey(x).astype(int), mode).sum(0) / 9).astype(U8)


def correlated(x):
    whole = grey(x).astype(float)
    part = TEMPLATE.astype(float)
    high, wide = (1 + whole.shape[axis] - part.shape[axis] for axis in (0, 1))
    return numpy.array([[(whole[i:i + 8, j:j + 12] * part).sum() for j in range(wide)] for i in range(high)]).astype(F)


TEMPLATE = (numpy.arange(96) * 37 % 251).astype(U8).reshape(8, 12)
MATRIX = numpy.array([[(7 * i + 3 * j) % 16 / 8 for j in range(SIDE)] for i in range(SIDE)], F)


def blurred(x):
    """ffmpeg's: each direction by itself, rounded in between, without what lies outside."""
    def along(values, axis):
        ones, total = numpy.ones_like(values), 0
        count = 0
        for step in (-1, 0, 1):
            shift = [(0, 0), (0, 0)]
            shift[axis] = (max(step, 0), max(-step, 0))
            cut = [slice(None), slice(None)]
            cut[axis] = slice(max(-step, 0), values.shape[axis] + max(-step, 0))
            total = total + numpy.pad(values, shift)[tuple(cut)]
            count = count + numpy.pad(ones, shift)[tuple(cut)]
        return numpy.rint(total / count)
    return along(along(grey(x).astype(float), 1), 0).astype(U8)


def add(case):
    """Adds the cases."""

    @case("silx-median", "", lambda x: numpy.median(neighbours(x.reshape(SIDE, SIDE), "edge"), 0), missing=module("silx"))
    def silx_median(gpu, x):
        from silx.opencl.medfilt import MedianFilter2D
        return MedianFilter2D((SIDE, SIDE), kernel_size=(3, 3), ctx=gpu.context).medfilt2d(x.reshape(SIDE, SIDE))

    def opencv():
        import cv2
        if not cv2.ocl.useOpenCL():
            raise SystemExit("OpenCV finds no OpenCL")
        return cv2

    @case("opencv-blur", "", mean, given=picture, missing=module("cv2"))
    def opencv_blur(_, x):
        cv2 = opencv()
        return cv2.blur(cv2.UMat(grey(x)), (3, 3)).get()

    @case("opencv-match", "", correlated, given=picture, missing=module("cv2"), near=1e-6)
    def opencv_match(_, x):
        cv2 = opencv()
        return cv2.matchTemplate(cv2.UMat(grey(x)), cv2.UMat(TEMPLATE), cv2.TM_CCORR).get()

    @case("viennacl-product", None, lambda x: MATRIX @ x[:SIDE], given=lambda x: {None: x[:SIDE]}, options=("--fixed-weights",),
          missing=header("viennacl/vector.hpp") or program("c++"), near=1e-6, build=compiled("product", HERE / "product.cpp"))
    def viennacl_product(x, source):
        x[:SIDE].tofile(f"vector-{source}")
        return "./product", f"vector-{source}", "out.bin"

    @case("clblast-gemm", None, lambda x: x.reshape(SIDE, SIDE) @ MATRIX, missing=header("clblast_c.h"), near=1e-5,
          build=compiled("gemm", HERE.parent / "guest/foreign/gemm.c", "-lclblast"))
    def clblast_gemm(_, source):
        MATRIX.tofile("matrix.bin")
        return "./gemm", *[str(SIDE)] * 3, source, "matrix.bin", "out.bin"

    @case("ffmpeg-blur", None, blurred, given=picture, missing=program("ffmpeg"), near=0.01,
          options=("--reads", "src={s}.bin:u8[32,128]", "--writes", "dst=out.bin:u8[32,128]"))
    def ffmpeg_blur(_, source):
        return ("ffmpeg -loglevel error -y -nostdin -init_hw_device opencl=gpu:0.0 -filter_hw_device gpu "
                f"-f rawvideo -pix_fmt gray -s {4 * SIDE}x{SIDE} -i {source} "
                "-vf format=gray,hwupload,avgblur_opencl=sizeX=1,hwdownload,format=gray -f rawvideo out.bin").split()

    @case("leela-zero", None, leela.answer, given=lambda x: {None: leela.planes(x)}, outputs=("merge.out", "merge.out-2"),
          missing=program(leela.PROGRAM), near=1e-5)
    def leela_zero(_, source):
        return leela.prepared(source)

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cases of PyOpenCL, one for each way in which an app may use OpenCL, and of programs of others, with what NumPy makes of the same numbers.

cases.py list                      names of all cases; behind one that cannot be recorded, words of the refusal; what is missing, in brackets
cases.py make DIRECTORY            a.bin, b.bin, c.bin: three inputs
cases.py app CASE IN.bin OUT.bin   what runs the case, a word a line; programs are compiled into this directory
cases.py run CASE IN.bin OUT.bin   the case on the GPU, in this process
cases.py given CASE IN.bin         what the GPU is given, in files beside the input: a line for each option of record and of run
cases.py judge CASE IN.bin FILE…   whether files hold what NumPy computes; exit code 1 if not
"""

import pathlib
import sys

import numpy

import programs

COUNT = 1024
F, I, U8 = numpy.float32, numpy.int32, numpy.uint8
CASES = {}


def whole(x):
    """What most cases give to the GPU: the only input."""
    return {None: x}


# Cases of libraries and programs: what is missing here that they need, how far the answer may be from NumPy's, of the largest number, and the
# program to be compiled.
MISSING, NEAR, BUILD = {}, {}, {}


def case(name, source, expected, refused="", given=whole, outputs=(None,), options=(), missing="", near=None, build=None):
    """A case: its kernels (None if the function gives the words of a program that is to be run), NumPy's answer, words of the refusal if it cannot be recorded, the
    inputs by name, the names of outputs, options of record; {s} among them stands for the set of inputs."""
    def add(function):
        CASES[name] = (function, source, expected, refused, given, outputs, options)
        # All but programs run in this script.
        MISSING[name] = missing or source is not None and programs.module("pyopencl") or ""
        NEAR[name], BUILD[name] = near, build
        return function
    return add


class Gpu:
    def __init__(self, source, options=()):
        import pyopencl
        self.cl = pyopencl
        device = pyopencl.get_platforms()[0].get_devices(pyopencl.device_type.GPU)[0]
        self.context = pyopencl.Context([device])
        self.queue = pyopencl.CommandQueue(self.context)
        self.flags = pyopencl.mem_flags
        self.program = pyopencl.Program(self.context, source).build(list(options)) if source else None

    def empty(self, size):
        return self.cl.Buffer(self.context, self.flags.READ_WRITE, size)

    def given(self, values):
        buffer = self.empty(values.nbytes)
        self.cl.enqueue_copy(self.queue, buffer, values)
        return buffer

    def run(self, kernel, *arguments, size=(COUNT,), local=None, queue=None, **options):
        kernel = getattr(self.program, kernel)
        return kernel(queue or self.queue, size, local, *arguments, **options)

    def read(self, buffer, count=COUNT, kind=F, queue=None):
        values = numpy.empty(count, kind)
        self.cl.enqueue_copy(queue or self.queue, values, buffer)
        return values


SCALE = "kernel void scale(global const float *x, global float *y) { int i = get_global_id(0); y[i] = 2 * x[i] + 1; }\n"
ADD = "kernel void add(global const float *a, global const float *b, global float *c) { int i = get_global_id(0); c[i] = a[i] + b[i]; }\n"
FIXED = (numpy.arange(COUNT) % 32 / 8).astype(F)


def scaled(x):
    return 2 * x + 1


def one_kernel(gpu, x, *options):
    y = gpu.empty(x.nbytes)
    gpu.run("scale", gpu.given(x), y)
    return gpu.read(y)


# How memory is given, and read back.

case("write", SCALE, scaled)(one_kernel)


@case("copy-host-pointer", SCALE, scaled)
def copy_host_pointer(gpu, x):
    a = gpu.cl.Buffer(gpu.context, gpu.flags.READ_ONLY | gpu.flags.COPY_HOST_PTR, hostbuf=x)
    y = gpu.empty(x.nbytes)
    gpu.run("scale", a, y)
    return gpu.read(y)


@case("use-host-pointer", SCALE, scaled)
def use_host_pointer(gpu, x):
    a = gpu.cl.Buffer(gpu.context, gpu.flags.READ_ONLY | gpu.flags.USE_HOST_PTR, hostbuf=x)
    y = gpu.empty(x.nbytes)
    gpu.run("scale", a, y)
    return gpu.read(y)


@case("map-to-write", SCALE, scaled)
def map_to_write(gpu, x):
    a, y = gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    view, _ = gpu.cl.enqueue_map_buffer(gpu.queue, a, gpu.cl.map_flags.WRITE, 0, COUNT, F)
    view[:] = x
    view.base.release(gpu.queue)
    gpu.run("scale", a, y)
    return gpu.read(y)


@case("map-to-read", SCALE, scaled)
def map_to_read(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("scale", gpu.given(x), y)
    view, _ = gpu.cl.enqueue_map_buffer(gpu.queue, y, gpu.cl.map_flags.READ, 0, COUNT, F)
    values = view.copy()
    view.base.release(gpu.queue)
    return values


@case("four-pieces", SCALE, scaled,
      given=lambda x: {"scale.x" + end: part for end, part in zip(("", "-2", "-3", "-4"), x.reshape(4, -1))})
def four_pieces(gpu, x):
    a, y = gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    for part in range(4):
        piece = x[part * COUNT // 4:(part + 1) * COUNT // 4].copy()
        gpu.cl.enqueue_copy(gpu.queue, a, piece, dst_offset=part * x.nbytes // 4)
    gpu.run("scale", a, y)
    return gpu.read(y)


@case("read-a-part", SCALE, lambda x: scaled(x)[COUNT // 4:COUNT // 2])
def read_a_part(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("scale", gpu.given(x), y)
    values = numpy.empty(COUNT // 4, F)
    gpu.cl.enqueue_copy(gpu.queue, values, y, src_offset=x.nbytes // 4)
    return values


@case("sub-buffers", SCALE, scaled)
def sub_buffers(gpu, x):
    whole = gpu.empty(2 * x.nbytes)
    a, y = whole[:x.nbytes], whole[x.nbytes:]
    gpu.cl.enqueue_copy(gpu.queue, a, x)
    gpu.run("scale", a, y)
    return gpu.read(y)


@case("in-place", "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }", lambda x: 2 * x)
def in_place(gpu, x):
    a = gpu.given(x)
    gpu.run("twice", a)
    return gpu.read(a)


@case("written-twice", SCALE, scaled)
def written_twice(gpu, x):
    a, y = gpu.given(numpy.zeros_like(x)), gpu.empty(x.nbytes)
    gpu.cl.enqueue_copy(gpu.queue, a, x)
    gpu.run("scale", a, y)
    return gpu.read(y)


@case("filled", ADD, lambda x: x + F(2.5))
def filled(gpu, x):
    b, y = gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    gpu.cl.enqueue_fill_buffer(gpu.queue, b, F(2.5), 0, x.nbytes)
    gpu.run("add", gpu.given(x), b, y)
    return gpu.read(y)


@case("constants", "constant float TABLE[4] = {1, 2, 4, 8};\n"
      "kernel void table(global const float *x, global float *y) { int i = get_global_id(0); y[i] = x[i] * TABLE[i % 4]; }",
      lambda x: x * F([1, 2, 4, 8])[numpy.arange(COUNT) % 4])
def constants(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("table", gpu.given(x), y)
    return gpu.read(y)


@case("weight", ADD, lambda x: x + FIXED)
def weight(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("add", gpu.given(x), gpu.given(FIXED), y)
    return gpu.read(y)


@case("weight-in-constant-memory",
      "kernel void add(global const float *a, constant float *b, global float *c) { int i = get_global_id(0); c[i] = a[i] + b[i]; }",
      lambda x: x + FIXED)
def weight_in_constant_memory(gpu, x):
    return weight(gpu, x)


# Queues and events.

@case("two-kernels", SCALE, lambda x: scaled(scaled(x)))
def two_kernels(gpu, x):
    a, b, c = gpu.given(x), gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    gpu.run("scale", a, b)
    gpu.run("scale", b, c)
    return gpu.read(c)


@case("ping-pong", SCALE, lambda x: scaled(scaled(scaled(scaled(x)))))
def ping_pong(gpu, x):
    a, b = gpu.given(x), gpu.empty(x.nbytes)
    for _ in range(2):
        gpu.run("scale", a, b)
        gpu.run("scale", b, a)
    return gpu.read(a)


@case("two-queues", SCALE, lambda x: scaled(scaled(x)))
def two_queues(gpu, x):
    other = gpu.cl.CommandQueue(gpu.context)
    a, b, c = gpu.given(x), gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    done = gpu.run("scale", a, b)
    done.wait()
    gpu.run("scale", b, c, queue=other)
    return gpu.read(c, queue=other)


@case("out-of-order", SCALE, lambda x: scaled(scaled(x)))
def out_of_order(gpu, x):
    queue = gpu.cl.CommandQueue(gpu.context, properties=gpu.cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    a, b, c = gpu.given(x), gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    gpu.queue.finish()
    first = gpu.run("scale", a, b, queue=queue)
    second = gpu.run("scale", b, c, queue=queue, wait_for=[first])
    second.wait()
    return gpu.read(c)


@case("user-event", SCALE, scaled)
def user_event(gpu, x):
    a, y = gpu.given(x), gpu.empty(x.nbytes)
    event = gpu.cl.UserEvent(gpu.context)
    gpu.run("scale", a, y, wait_for=[event])
    event.set_status(gpu.cl.command_execution_status.COMPLETE)
    return gpu.read(y)


@case("two-outputs", SCALE, lambda x: numpy.concatenate([scaled(x), scaled(scaled(x))]),
      outputs=("scale.y", "scale.y-2"))
def two_outputs(gpu, x):
    a, b, c = gpu.given(x), gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    gpu.run("scale", a, b)
    gpu.run("scale", b, c)
    return numpy.concatenate([gpu.read(b), gpu.read(c)])


@case("three-turns", SCALE, lambda x: scaled(numpy.roll(x, 2)), given=lambda x: {None: numpy.roll(x, 2)})
def three_turns(gpu, x):
    for turn in range(3):
        values = one_kernel(gpu, numpy.roll(x, turn).copy())
    return values


@case("marker-and-barrier", SCALE, scaled)
def marker_and_barrier(gpu, x):
    a, y = gpu.given(x), gpu.empty(x.nbytes)
    gpu.cl.enqueue_marker(gpu.queue)
    gpu.run("scale", a, y)
    gpu.cl.enqueue_barrier(gpu.queue)
    return gpu.read(y)


# What kernels do.

@case("print", "kernel void say(global const float *x, global float *y) { int i = get_global_id(0); y[i] = x[i] + 1;\n"
      "if (i == 0) printf(\"hello\\n\"); }", lambda x: x + 1)
def say(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("say", gpu.given(x), y)
    return gpu.read(y)


@case("local-memory", "kernel void turn(global const float *x, global float *y, local float *l) {\n"
      "int i = get_local_id(0), n = get_local_size(0); l[i] = x[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);\n"
      "y[get_global_id(0)] = l[n - 1 - i]; }", lambda x: x.reshape(-1, 64)[:, ::-1].ravel())
def local_memory(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("turn", gpu.given(x), y, gpu.cl.LocalMemory(256), local=(64,))
    return gpu.read(y)


@case("async-copy", "kernel void turn(global const float *x, global float *y) { local float l[64]; int i = get_local_id(0);\n"
      "event_t e = async_work_group_copy(l, x + get_group_id(0) * 64, 64, 0); wait_group_events(1, &e);\n"
      "y[get_global_id(0)] = l[63 - i]; }", lambda x: x.reshape(-1, 64)[:, ::-1].ravel())
def async_copy(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("turn", gpu.given(x), y, local=(64,))
    return gpu.read(y)


@case("atomics", "kernel void count(global const float *x, global int *n) { atomic_inc(n + (int)(x[get_global_id(0)] + 4) % 8); }",
      lambda x: numpy.bincount((x + 4).astype(int) % 8, minlength=8).astype(I))
def atomics(gpu, x):
    n = gpu.given(numpy.zeros(8, I))
    gpu.run("count", gpu.given(x), n)
    return gpu.read(n, 8, I)


@case("reduction", "kernel void sum(global const float *x, global float *s) { local float l[64]; int i = get_local_id(0);\n"
      "l[i] = x[get_global_id(0)]; for (int n = 32; n; n /= 2) { barrier(CLK_LOCAL_MEM_FENCE); if (i < n) l[i] += l[i + n]; }\n"
      "if (i == 0) s[get_group_id(0)] = l[0]; }", lambda x: x.reshape(-1, 64).sum(1))
def reduction(gpu, x):
    s = gpu.empty(COUNT // 64 * 4)
    gpu.run("sum", gpu.given(x), s, local=(64,))
    return gpu.read(s, COUNT // 64)


def small(x):
    return {None: x.astype(numpy.float16)}


@case("half", "kernel void scale(global const half *x, global half *y) { int i = get_global_id(0); vstore_half(2 * vload_half(i, x), i, y); }",
      lambda x: x.astype(numpy.float16) * numpy.float16(2), given=small)
def half(gpu, x):
    y = gpu.empty(x.nbytes // 2)
    gpu.run("scale", gpu.given(x.astype(numpy.float16)), y)
    return gpu.read(y, kind=numpy.float16)


@case("typedef", "#ifdef SMALL\ntypedef half net_t;\n#else\ntypedef float net_t;\n#endif\n"
      "kernel void scale(global const net_t *x, global net_t *y) {\n"
      "int i = get_global_id(0); vstore_half(2 * vload_half(i, x), i, y); }",
      lambda x: x.astype(numpy.float16) * numpy.float16(2), given=small)
def typedef(gpu, x):
    gpu.program = gpu.cl.Program(gpu.context, CASES["typedef"][1]).build(["-DSMALL"])
    return half(gpu, x)


@case("vload-half", "kernel void widen(global const half *x, global float *y) { int i = get_global_id(0); y[i] = vload_half(i, x); }",
      lambda x: x, given=small)
def vload_half(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("widen", gpu.given(x.astype(numpy.float16)), y)
    return gpu.read(y)


def large(x):
    return {None: (x * 16).astype(numpy.int64) * 1000003}


@case("64-bit", "kernel void square(global const long *x, global long *y) { int i = get_global_id(0); y[i] = x[i] * x[i]; }",
      lambda x: large(x)[None] ** 2, given=large)
def wide(gpu, x):
    values = large(x)[None]
    y = gpu.empty(values.nbytes)
    gpu.run("square", gpu.given(values), y)
    return gpu.read(y, kind=numpy.int64)


@case("vectors", "kernel void grey(global const uchar4 *x, global uchar *y) { int i = get_global_id(0); uchar4 p = x[i];\n"
      "y[i] = (p.x + 2 * p.y + p.z) / 4; }",
      lambda x: (lambda p: ((p[:, 0] + 2 * p[:, 1] + p[:, 2]) // 4).astype(U8))(x.view(U8).reshape(-1, 4).astype(int)))
def vectors(gpu, x):
    y = gpu.empty(COUNT)
    gpu.run("grey", gpu.given(x.view(U8)), y)
    return gpu.read(y, kind=U8)


@case("struct-by-value", "struct s { float a; int b; };\nkernel void use(global const float *x, global float *y, struct s v) {\n"
      "int i = get_global_id(0); y[i] = x[i] * v.a + v.b; }", lambda x: x * 2 + 3)
def struct_by_value(gpu, x):
    y = gpu.empty(x.nbytes)
    value = numpy.array([(2, 3)], numpy.dtype([("a", F), ("b", I)]))[0]
    gpu.run("use", gpu.given(x), y, value)
    return gpu.read(y)


@case("scalars", "kernel void use(global const float *x, global float *y, float a, int b, ushort c) {\n"
      "int i = get_global_id(0); y[i] = x[i] * a + b + c; }", lambda x: x * 2 + 10)
def scalars(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("use", gpu.given(x), y, F(2), I(3), numpy.uint16(7))
    return gpu.read(y)


@case("two-dimensions", "kernel void turn(global const float *x, global float *y) {\n"
      "int i = get_global_id(0), j = get_global_id(1); y[i * 32 + j] = x[j * 32 + i]; }", lambda x: x.reshape(32, 32).T.ravel())
def two_dimensions(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("turn", gpu.given(x), y, size=(32, 32))
    return gpu.read(y)


@case("offset-of-threads", "kernel void part(global const float *x, global float *y) { int i = get_global_id(0); y[i] = x[i] + i; }",
      lambda x: numpy.where(numpy.arange(COUNT) < 512, 0, x + numpy.arange(COUNT)).astype(F))
def offset_of_threads(gpu, x):
    y = gpu.given(numpy.zeros_like(x))
    gpu.run("part", gpu.given(x), y, size=(512,), global_offset=(512,))
    return gpu.read(y)


@case("branches", "kernel void clip(global const float *x, global float *y) { int i = get_global_id(0); float v = x[i];\n"
      "int n = 0; while (v > 1) { v -= 1; n++; } y[i] = v + 10 * n; }",
      lambda x: numpy.where(x > 1, x - (numpy.ceil(x) - 1) + 10 * (numpy.ceil(x) - 1), x).astype(F))
def branches(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("clip", gpu.given(x), y)
    return gpu.read(y)


@case("gather", "kernel void gather(global const float *x, global const int *at, global float *y) {\n"
      "int i = get_global_id(0); y[i] = x[at[i]]; }", lambda x: x[numpy.arange(COUNT) * 7 % COUNT])
def gather(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("gather", gpu.given(x), gpu.given((numpy.arange(COUNT) * 7 % COUNT).astype(I)), y)
    return gpu.read(y)


@case("macros", "kernel void scale(global const float *x, global float *y) { int i = get_global_id(0); y[i] = FACTOR * x[i] + 1; }", scaled)
def macros(gpu, x):
    gpu.program = gpu.cl.Program(gpu.context, CASES["macros"][1]).build(["-DFACTOR=2", "-cl-mad-enable"])
    return one_kernel(gpu, x)


@case("binary", SCALE, scaled)
def binary(gpu, x):
    binaries = gpu.program.get_info(gpu.cl.program_info.BINARIES)
    gpu.program = gpu.cl.Program(gpu.context, gpu.context.devices, binaries).build()
    return one_kernel(gpu, x)


# Of PyOpenCL itself.

@case("array", "", lambda x: x * 2 + FIXED, options=("--fixed-weights",))
def array(gpu, x):
    import pyopencl.array
    to = pyopencl.array.to_device
    return (to(gpu.queue, x) * F(2) + to(gpu.queue, FIXED)).get()


@case("elementwise", "", lambda x: x * 2 + FIXED)
def elementwise(gpu, x):
    import pyopencl.array
    import pyopencl.elementwise
    to = pyopencl.array.to_device
    kernel = pyopencl.elementwise.ElementwiseKernel(gpu.context, "float *x, float *w, float *y", "y[i] = x[i] * 2 + w[i]", "mixed")
    a, w = to(gpu.queue, x), to(gpu.queue, FIXED)
    y = pyopencl.array.empty_like(a)
    kernel(a, w, y)
    return y.get()


@case("scan", "", lambda x: numpy.cumsum((x * 16).astype(I)).astype(I),
      given=lambda x: {None: (x * 16).astype(I)})
def scan(gpu, x):
    import pyopencl.array
    import pyopencl.scan
    kernel = pyopencl.scan.InclusiveScanKernel(gpu.context, I, "a+b", neutral="0")
    values = pyopencl.array.to_device(gpu.queue, (x * 16).astype(I))
    kernel(values)
    return values.get()


def spectrum(x):
    return numpy.fft.fft2(x.view(numpy.complex64).reshape(16, 32)).astype(numpy.complex64).ravel().view(F)


@case("clfft", "", spectrum, missing=programs.module("gpyfft"), near=1e-6)
def clfft(gpu, x):
    import pyopencl.array
    from gpyfft.fft import FFT
    values = pyopencl.array.to_device(gpu.queue, x.view(numpy.complex64).reshape(16, 32))
    result = pyopencl.array.empty_like(values)
    for event in FFT(gpu.context, gpu.queue, values, result, axes=(0, 1)).enqueue():
        event.wait()
    return result.get()


@case("vkfft", "", spectrum, missing=programs.module("pyvkfft"), near=1e-5)
def vkfft(gpu, x):
    import pyopencl.array
    from pyvkfft.opencl import VkFFTApp
    values = pyopencl.array.to_device(gpu.queue, x.view(numpy.complex64).reshape(16, 32))
    result = pyopencl.array.empty_like(values)
    VkFFTApp(values.shape, values.dtype, queue=gpu.queue, ndim=2, inplace=False).fft(values, result)
    return result.get()


# Images and copies.

SAMPLED = ("kernel void look(read_only image2d_t from, SAMPLER global float *y) { %s int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
           "y[at.y * 32 + at.x] = 2 * read_imagef(from, s, at).x; }")
LITERAL = "const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;"


def image_of(gpu, x=None):
    cl = gpu.cl
    kind = cl.ImageFormat(cl.channel_order.R, cl.channel_type.FLOAT)
    image = cl.Image(gpu.context, gpu.flags.READ_WRITE, kind, shape=(32, 32))
    if x is not None:
        cl.enqueue_copy(gpu.queue, image, x, origin=(0, 0), region=(32, 32))
    return image


@case("image", SAMPLED.replace("SAMPLER", "") % LITERAL, lambda x: 2 * x, options=("--input", "x={s}.bin:f32[32,32]"))
def image(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("look", image_of(gpu, x), y, size=(32, 32))
    return gpu.read(y)


@case("sampler", SAMPLED.replace("SAMPLER", "sampler_t s,") % "", lambda x: 2 * x,
      options=("--input", "x={s}.bin:f32[32,32]"))
def sampler(gpu, x):
    cl, y = gpu.cl, gpu.empty(x.nbytes)
    nearest = cl.Sampler(gpu.context, False, cl.addressing_mode.CLAMP_TO_EDGE, cl.filter_mode.NEAREST)
    gpu.run("look", image_of(gpu, x), nearest, y, size=(32, 32))
    return gpu.read(y)


@case("image-between", "kernel void put(global const float *x, write_only image2d_t to) {\n"
      "int2 at = (int2)(get_global_id(0), get_global_id(1)); write_imagef(to, at, x[at.y * 32 + at.x] + 1); }\n"
      + SAMPLED.replace("SAMPLER", "") % LITERAL, lambda x: 2 * (x + 1))
def image_between(gpu, x):
    between, y = image_of(gpu), gpu.empty(x.nbytes)
    gpu.run("put", gpu.given(x), between, size=(32, 32))
    gpu.run("look", between, y, size=(32, 32))
    return gpu.read(y)


@case("copied-input", SCALE, scaled)
def copied_input(gpu, x):
    a, y = gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    gpu.cl.enqueue_copy(gpu.queue, a, gpu.given(x))
    gpu.run("scale", a, y)
    return gpu.read(y)


@case("copied-result", SCALE, scaled)
def copied_result(gpu, x):
    y, z = gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    gpu.run("scale", gpu.given(x), y)
    gpu.cl.enqueue_copy(gpu.queue, z, y)
    return gpu.read(z)


@case("copied-between", SCALE, lambda x: scaled(scaled(x)), "the CPU did the copy")
def copied_between(gpu, x):
    a, b, c, d = gpu.given(x), gpu.empty(x.nbytes), gpu.empty(x.nbytes), gpu.empty(x.nbytes)
    gpu.run("scale", a, b)
    gpu.cl.enqueue_copy(gpu.queue, c, b)
    gpu.run("scale", c, d)
    return gpu.read(d)


# What depends on values cannot be recorded.

@case("scalar-from-input", "kernel void use(global const float *x, global float *y, float a) { int i = get_global_id(0); y[i] = x[i] + a; }",
      lambda x: x + x[0], "depends on the input")
def scalar_from_input(gpu, x):
    y = gpu.empty(x.nbytes)
    gpu.run("use", gpu.given(x), y, x[0])
    return gpu.read(y)


@case("size-from-input", SCALE, lambda x: scaled(x)[:int(abs(x[0]) * 16) % 512 + 64],
      "do not do the same work")
def size_from_input(gpu, x):
    size, y = int(abs(x[0]) * 16) % 512 + 64, gpu.empty(x.nbytes)
    gpu.run("scale", gpu.given(x), y, size=(size,))
    return gpu.read(y, size)


def make(directory):
    for number, name in enumerate("abc"):
        order = numpy.random.default_rng(number).permutation(COUNT)
        ((order - COUNT / 2) / 128).astype(F).tofile(pathlib.Path(directory) / f"{name}.bin")


def run(name, source, out):
    function, text = CASES[name][:2]
    # These build with options of their own.
    gpu = Gpu("" if name in ("macros", "typedef") else text)
    function(gpu, numpy.fromfile(source, F)).tofile(out)


def app(name, source, out):
    """What is to be run, a word a line: this script, or a program, which is compiled first."""
    function, text = CASES[name][:2]
    if BUILD[name] and not pathlib.Path(BUILD[name].name).exists():
        BUILD[name]()
    words = (sys.executable, __file__, "run", name, source, out)
    print(*(function(numpy.fromfile(source, F), source) if text is None else words), sep="\n")


def given(name, source):
    """Options, a line for each word: of record, an empty line, of run."""
    *_, inputs, outputs, options = CASES[name]
    for word in options:
        print(word)
    print()
    source = pathlib.Path(source)
    for number, (tensor, values) in enumerate(inputs(numpy.fromfile(source, F)).items()):
        file = source.with_suffix(f".given-{number}.bin")
        values.tofile(file)
        print("--input", f"{tensor}={file}" if tensor else file, sep="\n")
    for number, tensor in enumerate(outputs):
        file = source.with_suffix(f".answer-{number}.bin")
        print("--output", f"{tensor}={file}" if tensor else file, sep="\n")


def judge(name, source, *found):
    expected = CASES[name][2](numpy.fromfile(source, F))
    data = b"".join(pathlib.Path(file).read_bytes() for file in found)
    wanted = numpy.ascontiguousarray(expected).tobytes()
    near = NEAR[name]
    if near and len(data) == len(wanted):
        difference = numpy.abs(numpy.frombuffer(data, expected.dtype).astype(float) - expected.astype(float).ravel()).max()
        if difference <= near * numpy.abs(expected).max():
            return
    if data != wanted:
        kind = expected.dtype
        got = numpy.frombuffer(data[:len(data) // kind.itemsize * kind.itemsize], kind)
        sys.exit(f"{name}: {len(data)} bytes, {len(wanted)} wanted; expected {expected[:4]}, found {got[:4]}")


def main(word, *rest):
    if word == "list":
        for name, (_, _, _, refused, *_) in CASES.items():
            print(name, f"(no {MISSING[name]})" if MISSING[name] else refused)
    else:
        {"make": make, "app": app, "run": run, "given": given, "judge": judge}[word](*rest)


programs.add(case)
main(*sys.argv[1:])

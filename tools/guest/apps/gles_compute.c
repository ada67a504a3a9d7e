// SPDX-License-Identifier: MIT OR Apache-2.0
// OpenGL ES 3.1 compute shaders on the GPU, each compared with a reference computed on the CPU.
//
// gles_compute [NAME...]
// Prints one line per test and, last, "N passed, N failed". Exit code 0 if none failed, 1 otherwise, 2 without a GPU.
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl31.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *current;

/* Says what is wrong; the value is that of a failed test. */
#define FAIL(...) (printf("FAIL %s: ", current), printf(__VA_ARGS__), putchar('\n'), 0)

static void die(const char *what)
{
	fprintf(stderr, "gles_compute: %s: EGL error %#x\n", what, eglGetError());
	exit(2);
}

static void open_device(void)
{
	EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
	if (!eglInitialize(display, NULL, NULL))
		die("no surfaceless display");
	eglBindAPI(EGL_OPENGL_ES_API);
	const EGLint wanted[] = { EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE };
	EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, wanted);
	if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
		die("no OpenGL ES 3.1 context");
	const char *renderer = (const char *)glGetString(GL_RENDERER);
	if (!renderer || !strstr(renderer, "Mali")) {
		fprintf(stderr, "gles_compute: the renderer is %s\n", renderer ? renderer : "unknown");
		exit(2);
	}
	printf("# %s\n", renderer);
}

static int use(const char *body)
{
	const char *source[] = { "#version 310 es\nprecision highp float;\nprecision highp int;\n", body };
	GLuint shader = glCreateShader(GL_COMPUTE_SHADER), program = glCreateProgram();
	glShaderSource(shader, 2, source, NULL);
	glCompileShader(shader);
	glAttachShader(program, shader);
	glLinkProgram(program);
	GLint linked = 0;
	glGetProgramiv(program, GL_LINK_STATUS, &linked);
	if (!linked) {
		char log[2048] = "";
		glGetShaderInfoLog(shader, sizeof log, NULL, log);
		return FAIL("does not compile: %s", log);
	}
	glUseProgram(program);
	return 1;
}

static GLuint buffer(GLenum target, GLuint binding, const void *data, size_t bytes)
{
	GLuint name;
	glGenBuffers(1, &name);
	glBindBufferBase(target, binding, name);
	glBufferData(target, bytes, data, GL_DYNAMIC_COPY);
	return name;
}

static GLuint storage(GLuint binding, const void *data, size_t bytes)
{
	return buffer(GL_SHADER_STORAGE_BUFFER, binding, data, bytes);
}

/* Whether a buffer holds these words; floats may differ by `tolerance` of their size, 0 compares bits. */
static int holds(GLuint name, const void *expected, size_t count, double tolerance)
{
	glMemoryBarrier(GL_ALL_BARRIER_BITS);
	glBindBuffer(GL_SHADER_STORAGE_BUFFER, name);
	const uint32_t *have = glMapBufferRange(GL_SHADER_STORAGE_BUFFER, 0, count * 4, GL_MAP_READ_BIT);
	if (!have)
		return FAIL("the buffer cannot be mapped: %#x", glGetError());
	const uint32_t *want = expected;
	for (size_t i = 0; i < count; i++) {
		float a, b;
		memcpy(&a, have + i, 4);
		memcpy(&b, want + i, 4);
		if (tolerance ? !(fabs((double)a - b) <= tolerance * fmax(1, fabs(b))) : have[i] != want[i])
			return FAIL("word %zu: %08x (%g), expected %08x (%g)", i, have[i], a, want[i], b);
	}
	glUnmapBuffer(GL_SHADER_STORAGE_BUFFER);
	GLenum error = glGetError();
	return error ? FAIL("OpenGL error %#x", error) : 1;
}

/* A number sequence without short periods; the same on every run. */
static uint32_t scramble(uint32_t n)
{
	n = (n ^ 61) ^ (n >> 16);
	n *= 9;
	n ^= n >> 4;
	n *= 0x27d4eb2d;
	return n ^ (n >> 15);
}

static float real(uint32_t n)
{
	return (scramble(n) >> 8) / 16777216.0f * 8 - 4;
}

static int storage_buffers(void)
{
	enum { N = 1000 };
	float x[N], y[N], out[N];
	for (int i = 0; i < N; i++) {
		x[i] = real(i);
		y[i] = real(i + N);
		out[i] = fmaf(2.5f, x[i], y[i]);
	}
	if (!use("layout(local_size_x = 64) in;\n"
		 "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
		 "layout(std430, binding = 1) buffer Y { float y[]; };\n"
		 "uniform float a;\n"
		 "void main() { uint i = gl_GlobalInvocationID.x; if (i < uint(x.length())) y[i] = a * x[i] + y[i]; }"))
		return 0;
	storage(0, x, sizeof x);
	GLuint result = storage(1, y, sizeof y);
	GLint program;
	glGetIntegerv(GL_CURRENT_PROGRAM, &program);
	glUniform1f(glGetUniformLocation(program, "a"), 2.5f);
	glDispatchCompute((N + 63) / 64, 1, 1);
	return holds(result, out, N, 1e-6);
}

static int uniform_blocks(void)
{
	/* std140: rows of the matrix and elements of the array are 16 bytes apart. */
	struct { float matrix[4][4]; int32_t table[8][4]; } block;
	float in[64][4], out[64][4];
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			block.matrix[i][j] = real(i * 4 + j + 5000);
	for (int i = 0; i < 8; i++)
		block.table[i][0] = scramble(i) % 64;
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < 4; j++)
			in[i][j] = real(i * 4 + j);
	for (int i = 0; i < 64; i++) {
		int from = block.table[i % 8][0];
		for (int row = 0; row < 4; row++) {
			double sum = 0;
			for (int column = 0; column < 4; column++)
				sum += (double)block.matrix[column][row] * in[from][column];
			out[i][row] = (float)sum;
		}
	}
	if (!use("layout(local_size_x = 16) in;\n"
		 "layout(std140, binding = 0) uniform Block { mat4 m; int table[8]; };\n"
		 "layout(std430, binding = 0) buffer X { vec4 x[]; };\n"
		 "layout(std430, binding = 1) buffer Y { vec4 y[]; };\n"
		 "void main() { uint i = gl_GlobalInvocationID.x; y[i] = m * x[table[i % 8u]]; }"))
		return 0;
	buffer(GL_UNIFORM_BUFFER, 0, &block, sizeof block);
	storage(0, in, sizeof in);
	GLuint result = storage(1, NULL, sizeof out);
	glDispatchCompute(4, 1, 1);
	return holds(result, out, 256, 1e-5);
}

static int group_identities(void)
{
	enum { X = 5, Y = 3, Z = 2, LX = 4, LY = 2, LZ = 3, N = X * Y * Z * LX * LY * LZ };
	uint32_t out[N];
	for (uint32_t z = 0; z < Z * LZ; z++)
		for (uint32_t y = 0; y < Y * LY; y++)
			for (uint32_t x = 0; x < X * LX; x++) {
				uint32_t local = (z % LZ * LY + y % LY) * LX + x % LX;
				uint32_t group = (z / LZ * Y + y / LY) * X + x / LX;
				out[(z * Y * LY + y) * X * LX + x] = group << 8 | local;
			}
	if (!use("layout(local_size_x = 4, local_size_y = 2, local_size_z = 3) in;\n"
		 "layout(std430, binding = 0) buffer Y { uint y[]; };\n"
		 "void main() { uvec3 g = gl_GlobalInvocationID, n = gl_NumWorkGroups, w = gl_WorkGroupID;\n"
		 "  y[(g.z * n.y * 2u + g.y) * n.x * 4u + g.x] =\n"
		 "      ((w.z * n.y + w.y) * n.x + w.x) << 8 | gl_LocalInvocationIndex; }"))
		return 0;
	GLuint result = storage(0, NULL, sizeof out);
	glDispatchCompute(X, Y, Z);
	return holds(result, out, N, 0);
}

static int shared_memory(void)
{
	/* Each group adds up its elements in a tree, and writes them reversed. */
	enum { GROUPS = 9, SIZE = 128, N = GROUPS * SIZE };
	uint32_t in[N], reversed[N], sums[GROUPS] = { 0 };
	for (int i = 0; i < N; i++) {
		in[i] = scramble(i);
		sums[i / SIZE] += in[i];
		reversed[i / SIZE * SIZE + SIZE - 1 - i % SIZE] = in[i];
	}
	if (!use("layout(local_size_x = 128) in;\n"
		 "layout(std430, binding = 0) readonly buffer X { uint x[]; };\n"
		 "layout(std430, binding = 1) buffer Y { uint y[]; };\n"
		 "layout(std430, binding = 2) buffer S { uint sums[]; };\n"
		 "shared uint part[128];\n"
		 "void main() { uint i = gl_LocalInvocationIndex; part[i] = x[gl_GlobalInvocationID.x]; barrier();\n"
		 "  y[gl_GlobalInvocationID.x] = part[127u - i]; barrier();\n"
		 "  for (uint n = 64u; n > 0u; n /= 2u) { if (i < n) part[i] += part[i + n]; barrier(); }\n"
		 "  if (i == 0u) sums[gl_WorkGroupID.x] = part[0]; }"))
		return 0;
	storage(0, in, sizeof in);
	GLuint y = storage(1, NULL, sizeof reversed), s = storage(2, NULL, sizeof sums);
	glDispatchCompute(GROUPS, 1, 1);
	return holds(y, reversed, N, 0) && holds(s, sums, GROUPS, 0);
}

static int shared_atomics(void)
{
	/* A histogram: each group counts in shared memory and adds its counts to the total. */
	enum { N = 4096, BINS = 32 };
	static uint32_t in[N];
	uint32_t bins[BINS] = { 0 };
	for (int i = 0; i < N; i++) {
		in[i] = scramble(i) >> 27;
		bins[in[i]]++;
	}
	if (!use("layout(local_size_x = 128) in;\n"
		 "layout(std430, binding = 0) readonly buffer X { uint x[]; };\n"
		 "layout(std430, binding = 1) buffer Y { uint y[]; };\n"
		 "shared uint count[32];\n"
		 "void main() { uint i = gl_LocalInvocationIndex; if (i < 32u) count[i] = 0u; barrier();\n"
		 "  atomicAdd(count[x[gl_GlobalInvocationID.x]], 1u); barrier();\n"
		 "  if (i < 32u) atomicAdd(y[i], count[i]); }"))
		return 0;
	const uint32_t zero[BINS] = { 0 };
	storage(0, in, sizeof in);
	GLuint result = storage(1, zero, sizeof zero);
	glDispatchCompute(N / 128, 1, 1);
	return holds(result, bins, BINS, 0);
}

static int buffer_atomics(void)
{
	enum { N = 512 };
	uint32_t out[8] = { 0, 0, 0xffffffff, 0, 0xffffffff, 0, 0, N };
	int32_t low = 0, high = 0;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t value = scramble(i);
		out[0] += value;
		out[1] = value > out[1] ? value : out[1];
		out[2] = value < out[2] ? value : out[2];
		out[3] |= value & 0x0ff0;
		out[4] &= value | 0x7ffffff0;
		out[5] ^= value;
		low = (int32_t)value < low ? (int32_t)value : low;
		high = (int32_t)value > high ? (int32_t)value : high;
	}
	out[6] = (uint32_t)low ^ (uint32_t)high;
	if (!use("layout(local_size_x = 64) in;\n"
		 "layout(std430, binding = 0) readonly buffer X { uint x[]; };\n"
		 "layout(std430, binding = 1) buffer Y { uint add, top, bottom, any, all, flip, both, swaps; };\n"
		 "layout(std430, binding = 2) buffer Z { int low, high; };\n"
		 "layout(std430, binding = 3) buffer T { uint ticket, taken[]; };\n"
		 "void main() { uint v = x[gl_GlobalInvocationID.x];\n"
		 "  atomicAdd(add, v); atomicMax(top, v); atomicMin(bottom, v); atomicOr(any, v & 0x0ff0u);\n"
		 "  atomicAnd(all, v | 0x7ffffff0u); atomicXor(flip, v); atomicMin(low, int(v)); atomicMax(high, int(v));\n"
		 "  taken[atomicAdd(ticket, 1u)] = 1u;\n"
		 "  uint seen = swaps; for (;;) { uint was = atomicCompSwap(swaps, seen, seen + 1u);\n"
		 "    if (was == seen) break; seen = was; } }"))
		return 0;
	static uint32_t in[N], ones[N + 1];
	for (uint32_t i = 0; i < N; i++) {
		in[i] = scramble(i);
		ones[i + 1] = 1;
	}
	ones[0] = N;
	const uint32_t start[8] = { 0, 0, 0xffffffff, 0, 0xffffffff, 0, out[6], 0 };
	static const uint32_t empty[N + 1];
	const int32_t zero[2] = { 0, 0 }, ends[2] = { low, high };
	storage(0, in, sizeof in);
	GLuint y = storage(1, start, sizeof start), z = storage(2, zero, sizeof zero);
	GLuint tickets = storage(3, empty, sizeof empty);
	glDispatchCompute(N / 64, 1, 1);
	return holds(y, out, 8, 0) && holds(z, ends, 2, 0) && holds(tickets, ones, N + 1, 0);
}

static int atomic_counters(void)
{
	/* Which invocation gets which count is open; each count comes once. */
	enum { N = 256 };
	if (!use("layout(local_size_x = 32) in;\n"
		 "layout(binding = 0, offset = 4) uniform atomic_uint up;\n"
		 "layout(binding = 0, offset = 8) uniform atomic_uint down;\n"
		 "layout(std430, binding = 0) buffer Y { uint y[]; };\n"
		 "void main() { y[atomicCounterIncrement(up)] = 7u; y[256u + atomicCounterDecrement(down)] = 9u; }"))
		return 0;
	const uint32_t start[3] = { 5, 0, N }, after[3] = { 5, N, 0 };
	uint32_t out[2 * N];
	for (int i = 0; i < N; i++) {
		out[i] = 7;
		out[N + i] = 9;
	}
	GLuint counters = buffer(GL_ATOMIC_COUNTER_BUFFER, 0, start, sizeof start);
	GLuint result = storage(0, NULL, sizeof out);
	glDispatchCompute(N / 32, 1, 1);
	return holds(result, out, 2 * N, 0) && holds(counters, after, 3, 0);
}

static GLuint texture(GLenum target, GLenum format, int width, int height, int depth)
{
	GLuint name;
	glGenTextures(1, &name);
	glBindTexture(target, name);
	if (target == GL_TEXTURE_2D)
		glTexStorage2D(target, 1, format, width, height);
	else
		glTexStorage3D(target, 1, format, width, height, depth);
	glTexParameteri(target, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
	glTexParameteri(target, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
	return name;
}

static int float_images(void)
{
	/* Reads one image, writes its transpose times 2, and reads that back in a second dispatch. */
	enum { W = 13, H = 7 };
	static float in[H][W][4], out[W][H][4];
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			for (int c = 0; c < 4; c++)
				out[x][y][c] = 2 * (in[y][x][c] = real((y * W + x) * 4 + c));
	GLuint from = texture(GL_TEXTURE_2D, GL_RGBA32F, W, H, 1);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, W, H, GL_RGBA, GL_FLOAT, in);
	GLuint to = texture(GL_TEXTURE_2D, GL_RGBA32F, H, W, 1);
	glBindImageTexture(0, from, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
	glBindImageTexture(1, to, 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_RGBA32F);
	if (!use("layout(local_size_x = 1) in;\n"
		 "layout(rgba32f, binding = 0) uniform readonly highp image2D from;\n"
		 "layout(rgba32f, binding = 1) uniform writeonly highp image2D to;\n"
		 "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy);\n"
		 "  imageStore(to, p.yx, 2.0 * imageLoad(from, p)); }"))
		return 0;
	glDispatchCompute(W, H, 1);
	glMemoryBarrier(GL_SHADER_IMAGE_ACCESS_BARRIER_BIT);
	if (!use("layout(local_size_x = 1) in;\n"
		 "layout(rgba32f, binding = 1) uniform readonly highp image2D from;\n"
		 "layout(std430, binding = 0) buffer Y { vec4 y[]; };\n"
		 "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy);\n"
		 "  y[p.y * imageSize(from).x + p.x] = imageLoad(from, p); }"))
		return 0;
	glBindImageTexture(1, to, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
	GLuint result = storage(0, NULL, sizeof out);
	glDispatchCompute(H, W, 1);
	return holds(result, out, W * H * 4, 0);
}

static int integer_images(void)
{
	/* One word in a 32-bit image, read and written in place; bytes in an array of normalised images. */
	enum { W = 24, H = 10, LAYERS = 3 };
	static uint32_t words[H][W], bytes[LAYERS][H][W];
	static uint32_t out[H * W + LAYERS * H * W];
	for (int i = 0; i < W * H; i++) {
		words[i / W][i % W] = scramble(i);
		out[i] = scramble(i) ^ 0xa5a5a5a5;
	}
	for (int i = 0; i < LAYERS * H * W; i++) {
		uint32_t texel = scramble(i + 7777);
		bytes[i / W / H][i / W % H][i % W] = texel;
		/* The shader swaps red and blue. */
		out[W * H + i] = (texel & 0xff00ff00) | (texel & 0xff) << 16 | (texel >> 16 & 0xff);
	}
	GLuint a = texture(GL_TEXTURE_2D, GL_R32UI, W, H, 1);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, W, H, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
	GLuint b = texture(GL_TEXTURE_2D_ARRAY, GL_RGBA8, W, H, LAYERS);
	glTexSubImage3D(GL_TEXTURE_2D_ARRAY, 0, 0, 0, 0, W, H, LAYERS, GL_RGBA, GL_UNSIGNED_BYTE, bytes);
	GLuint c = texture(GL_TEXTURE_2D_ARRAY, GL_RGBA8, W, H, LAYERS);
	glBindImageTexture(0, a, 0, GL_FALSE, 0, GL_READ_WRITE, GL_R32UI);
	glBindImageTexture(1, b, 0, GL_TRUE, 0, GL_READ_ONLY, GL_RGBA8);
	glBindImageTexture(2, c, 0, GL_TRUE, 0, GL_WRITE_ONLY, GL_RGBA8);
	if (!use("layout(local_size_x = 8, local_size_y = 2) in;\n"
		 "layout(r32ui, binding = 0) uniform highp uimage2D words;\n"
		 "layout(rgba8, binding = 1) uniform readonly highp image2DArray from;\n"
		 "layout(rgba8, binding = 2) uniform writeonly highp image2DArray to;\n"
		 "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy);\n"
		 "  imageStore(words, p, imageLoad(words, p) ^ 0xa5a5a5a5u);\n"
		 "  for (int i = 0; i < imageSize(from).z; i++)\n"
		 "    imageStore(to, ivec3(p, i), imageLoad(from, ivec3(p, i)).bgra); }"))
		return 0;
	glDispatchCompute(W / 8, H / 2, 1);
	glMemoryBarrier(GL_SHADER_IMAGE_ACCESS_BARRIER_BIT);
	glBindImageTexture(0, a, 0, GL_FALSE, 0, GL_READ_ONLY, GL_R32UI);
	glBindImageTexture(2, c, 0, GL_TRUE, 0, GL_READ_ONLY, GL_RGBA8);
	if (!use("layout(local_size_x = 1) in;\n"
		 "layout(r32ui, binding = 0) uniform readonly highp uimage2D words;\n"
		 "layout(rgba8, binding = 2) uniform readonly highp image2DArray bytes;\n"
		 "layout(std430, binding = 0) buffer Y { uint y[]; };\n"
		 "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy), n = imageSize(words);\n"
		 "  y[p.y * n.x + p.x] = imageLoad(words, p).x;\n"
		 "  for (int i = 0; i < 3; i++)\n"
		 "    y[((i + 1) * n.y + p.y) * n.x + p.x] = packUnorm4x8(imageLoad(bytes, ivec3(p, i))); }"))
		return 0;
	GLuint result = storage(0, NULL, sizeof out);
	glDispatchCompute(W, H, 1);
	return holds(result, out, sizeof out / 4, 0);
}

static int volume_images(void)
{
	enum { W = 6, H = 5, D = 4 };
	float out[W * H * D];
	for (int i = 0; i < W * H * D; i++)
		out[i] = (float)(i * 3 + 1);
	GLuint volume = texture(GL_TEXTURE_3D, GL_R32F, W, H, D);
	glBindImageTexture(0, volume, 0, GL_TRUE, 0, GL_WRITE_ONLY, GL_R32F);
	if (!use("layout(local_size_x = 1) in;\n"
		 "layout(r32f, binding = 0) uniform writeonly highp image3D to;\n"
		 "void main() { ivec3 p = ivec3(gl_GlobalInvocationID), n = imageSize(to);\n"
		 "  imageStore(to, p, vec4(float(((p.z * n.y + p.y) * n.x + p.x) * 3 + 1))); }"))
		return 0;
	glDispatchCompute(W, H, D);
	glMemoryBarrier(GL_TEXTURE_FETCH_BARRIER_BIT);
	if (!use("layout(local_size_x = 1) in;\n"
		 "layout(binding = 0) uniform highp sampler3D from;\n"
		 "layout(std430, binding = 0) buffer Y { float y[]; };\n"
		 "void main() { ivec3 p = ivec3(gl_GlobalInvocationID), n = textureSize(from, 0);\n"
		 "  y[(p.z * n.y + p.y) * n.x + p.x] = texelFetch(from, p, 0).x; }"))
		return 0;
	GLuint result = storage(0, NULL, sizeof out);
	glDispatchCompute(W, H, D);
	return holds(result, out, W * H * D, 0);
}

/* The texel at an index that is clamped to the edge, or mirrored, and the mean of the neighbours of a place. */
static int mirror(int i, int size)
{
	i = ((i % (2 * size)) + 2 * size) % (2 * size);
	return i < size ? i : 2 * size - 1 - i;
}

static int linear_sampling(void)
{
	enum { W = 8, H = 4, N = 64 };
	float texels[H][W], at[N][2], out[N];
	for (int i = 0; i < W * H; i++)
		/* Exact in the 16 bits of the format, which is one that can be filtered. */
		texels[i / W][i % W] = (int)(scramble(i) % 1024 - 512) / 128.0f;
	for (int i = 0; i < N; i++) {
		/* Multiples of 1/64 texel, which fit the fraction of a sampler's coordinates. */
		at[i][0] = ((int)(scramble(i) % (3 * W * 64)) - W * 64) / 64.0f / W;
		at[i][1] = ((int)(scramble(i + N) % (3 * H * 64)) - H * 64) / 64.0f / H;
		double u = (double)at[i][0] * W - 0.5, v = (double)at[i][1] * H - 0.5;
		int x = (int)floor(u), y = (int)floor(v);
		double fx = u - x, fy = v - y, sum = 0;
		for (int j = 0; j < 4; j++) {
			int column = mirror(x + (j & 1), W), row = y + (j >> 1);
			row = row < 0 ? 0 : row >= H ? H - 1 : row;
			sum += (j & 1 ? fx : 1 - fx) * (j >> 1 ? fy : 1 - fy) * texels[row][column];
		}
		out[i] = (float)sum;
	}
	texture(GL_TEXTURE_2D, GL_R16F, W, H, 1);
	glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, W, H, GL_RED, GL_FLOAT, texels);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_MIRRORED_REPEAT);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
	if (!use("layout(local_size_x = 64) in;\n"
		 "layout(binding = 0) uniform highp sampler2D from;\n"
		 "layout(std430, binding = 0) readonly buffer X { vec2 x[]; };\n"
		 "layout(std430, binding = 1) buffer Y { float y[]; };\n"
		 "void main() { uint i = gl_GlobalInvocationID.x; y[i] = textureLod(from, x[i], 0.0).x; }"))
		return 0;
	storage(0, at, sizeof at);
	GLuint result = storage(1, NULL, sizeof out);
	glDispatchCompute(1, 1, 1);
	/* The sampler may answer in half precision. */
	return holds(result, out, N, 2e-3);
}

static int indirect_dispatch(void)
{
	/* The first dispatch writes the size of the second. */
	enum { X = 3, Y = 2, Z = 4, N = X * Y * Z };
	uint32_t out[N + 1];
	for (uint32_t i = 0; i < N; i++)
		out[i] = i * i + N;
	out[N] = 0xdeadbeef;
	uint32_t start[N + 1];
	memset(start, 0, sizeof start);
	start[N] = 0xdeadbeef;
	if (!use("layout(local_size_x = 1) in;\n"
		 "layout(std430, binding = 0) buffer C { uint c[]; };\n"
		 "void main() { c[1] = 3u; c[2] = 2u; c[3] = 4u; }"))
		return 0;
	GLuint command = storage(0, NULL, 16);
	glDispatchCompute(1, 1, 1);
	glMemoryBarrier(GL_COMMAND_BARRIER_BIT);
	if (!use("layout(local_size_x = 1) in;\n"
		 "layout(std430, binding = 1) buffer Y { uint y[]; };\n"
		 "void main() { uvec3 g = gl_WorkGroupID, n = gl_NumWorkGroups;\n"
		 "  uint i = (g.z * n.y + g.y) * n.x + g.x; y[i] = i * i + n.x * n.y * n.z; }"))
		return 0;
	GLuint result = storage(1, start, sizeof start);
	glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, command);
	glDispatchComputeIndirect(4);
	return holds(result, out, N + 1, 0);
}

static int functions(void)
{
	enum { N = 256 };
	float in[N], out[N][4];
	for (int i = 0; i < N; i++) {
		in[i] = real(i);
		float x = in[i];
		out[i][0] = (float)(sin(x) + exp2(x));
		out[i][1] = (float)(sqrt(fabs(x)) + log2(fabs(x) + 1));
		out[i][2] = (float)(1 / (fabs(x) + 1) + pow(fabs(x) + 0.5, 1.5));
		out[i][3] = (float)(floor(x) + 8 * (x - floor(x)) + (x > 0) - (x < 0));
	}
	if (!use("layout(local_size_x = 64) in;\n"
		 "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
		 "layout(std430, binding = 1) buffer Y { vec4 y[]; };\n"
		 "void main() { uint i = gl_GlobalInvocationID.x; float v = x[i], a = abs(v);\n"
		 "  y[i] = vec4(sin(v) + exp2(v), sqrt(a) + log2(a + 1.0), 1.0 / (a + 1.0) + pow(a + 0.5, 1.5),\n"
		 "              floor(v) + 8.0 * fract(v) + sign(v)); }"))
		return 0;
	storage(0, in, sizeof in);
	GLuint result = storage(1, NULL, sizeof out);
	glDispatchCompute(N / 64, 1, 1);
	return holds(result, out, N * 4, 1e-4);
}

static const struct {
	const char *name;
	int (*run)(void);
} tests[] = {
	{ "storage_buffers", storage_buffers }, { "uniform_blocks", uniform_blocks },
	{ "group_identities", group_identities }, { "shared_memory", shared_memory },
	{ "shared_atomics", shared_atomics }, { "buffer_atomics", buffer_atomics },
	{ "atomic_counters", atomic_counters }, { "float_images", float_images },
	{ "integer_images", integer_images }, { "volume_images", volume_images },
	{ "linear_sampling", linear_sampling }, { "indirect_dispatch", indirect_dispatch },
	{ "functions", functions },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device();
	unsigned passed = 0, failed = 0;
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		int wanted = argc == 1;
		for (int j = 1; j < argc; j++)
			wanted |= !strcmp(argv[j], tests[i].name);
		if (!wanted)
			continue;
		current = tests[i].name;
		if (tests[i].run()) {
			printf("ok   %s\n", current);
			passed++;
		} else {
			failed++;
		}
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// A picture through two compute shaders of OpenGL ES 3.1:
//   gles_filter PICTURE OUT.bin        PICTURE holds 32 x 32 bytes, OUT.bin 32 x 32 32-bit floating-point numbers
// The CPU makes numbers of the bytes; the shaders smooth the rows, and give each pixel its weight.
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl31.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, N = SIDE * SIDE };

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "gles_filter: %s: OpenGL error %#x\n", what, glGetError());
	exit(2);
}

static void open_device(void)
{
	EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
	must(eglInitialize(display, NULL, NULL), "no surfaceless display");
	eglBindAPI(EGL_OPENGL_ES_API);
	const EGLint wanted[] = { EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE };
	EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, wanted);
	must(context && eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context), "no context");
	const char *renderer = (const char *)glGetString(GL_RENDERER);
	must(renderer && strstr(renderer, "Mali"), "no Mali");
}

static void run(const char *body)
{
	const char *source[] = { "#version 310 es\nlayout(local_size_x = 32) in;\n", body };
	GLuint shader = glCreateShader(GL_COMPUTE_SHADER), program = glCreateProgram();
	GLint linked = 0;
	glShaderSource(shader, 2, source, NULL);
	glCompileShader(shader);
	glAttachShader(program, shader);
	glLinkProgram(program);
	glGetProgramiv(program, GL_LINK_STATUS, &linked);
	must(linked, "a shader does not compile");
	glUseProgram(program);
	glDispatchCompute(SIDE, 1, 1);
	glMemoryBarrier(GL_ALL_BARRIER_BITS);
}

static GLuint storage(GLuint binding, const void *data)
{
	GLuint name;
	glGenBuffers(1, &name);
	glBindBufferBase(GL_SHADER_STORAGE_BUFFER, binding, name);
	glBufferData(GL_SHADER_STORAGE_BUFFER, N * sizeof(float), data, GL_DYNAMIC_COPY);
	return name;
}

int main(int count, char **words)
{
	uint8_t pixels[N];
	float numbers[N], weights[N];
	FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
	if (!file || fread(pixels, 1, N, file) != N) {
		fprintf(stderr, "usage: gles_filter PICTURE OUT.bin\n");
		return 2;
	}
	fclose(file);
	for (int i = 0; i < N; i++) {
		numbers[i] = (pixels[i] - 128) / 64.0f;
		weights[i] = 0.5f + (i * 29 % 64) / 32.0f;
	}
	open_device();
	storage(0, numbers);
	storage(1, NULL);
	storage(2, weights);
	GLuint result = storage(3, NULL);
	run("layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
	    "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
	    "void main() {\n"
	    "	uint i = gl_GlobalInvocationID.x, row = i & ~31u;\n"
	    "	y[i] = (x[max(i, row + 1u) - 1u] + 2.0 * x[i] + x[min(i + 1u, row + 31u)]) * 0.25;\n"
	    "}");
	run("layout(std430, binding = 1) readonly buffer Y { float y[]; };\n"
	    "layout(std430, binding = 2) readonly buffer W { float w[]; };\n"
	    "layout(std430, binding = 3) writeonly buffer Z { float z[]; };\n"
	    "void main() { uint i = gl_GlobalInvocationID.x; z[i] = y[i] * w[i] - 0.125; }");
	glBindBuffer(GL_SHADER_STORAGE_BUFFER, result);
	const void *values = glMapBufferRange(GL_SHADER_STORAGE_BUFFER, 0, sizeof numbers, GL_MAP_READ_BIT);
	must(values && !glGetError(), "the result cannot be read");
	file = fopen(words[2], "wb");
	must(file && fwrite(values, sizeof(float), N, file) == N && !fclose(file), words[2]);
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// A program of the driver API that links to libcuda.so.1, gives it PTX as text, and lets it link two texts to one image.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        CUresult error = (call);                                                                                       \
        if (error) {                                                                                                   \
            printf("%s: %d\n", #call, error);                                                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char *ptx = ".version 7.0\n"
                         ".target sm_70\n"
                         ".address_size 64\n"
                         ".visible .global .align 4 .u32 hits;\n"
                         ".visible .entry scale(.param .u64 p, .param .f32 factor, .param .u32 n)\n"
                         "{\n"
                         "  .reg .pred %q; .reg .f32 %f<3>; .reg .b32 %r<6>; .reg .b64 %d<4>;\n"
                         "  ld.param.u64 %d1, [p]; ld.param.f32 %f1, [factor]; ld.param.u32 %r1, [n];\n"
                         "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
                         "  mad.lo.s32 %r2, %r2, %r3, %r4; setp.ge.u32 %q, %r2, %r1; @%q ret;\n"
                         "  cvta.to.global.u64 %d1, %d1; mul.wide.u32 %d2, %r2, 4; add.s64 %d1, %d1, %d2;\n"
                         "  ld.global.f32 %f2, [%d1]; mul.f32 %f2, %f2, %f1; st.global.f32 [%d1], %f2;\n"
                         "  mov.u64 %d3, hits; atom.global.add.u32 %r5, [%d3], 1; ret;\n"
                         "}\n";

static const char *caller = ".version 7.0\n"
                            ".target sm_70\n"
                            ".address_size 64\n"
                            ".extern .func (.param .f32 r) plus(.param .f32 a);\n"
                            ".visible .entry linked(.param .u64 p)\n"
                            "{\n"
                            "  .reg .f32 %f<3>; .reg .b32 %r<2>; .reg .b64 %d<3>;\n"
                            "  ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;\n"
                            "  add.s64 %d1, %d1, %d2; ld.global.f32 %f1, [%d1];\n"
                            "  { .param .f32 a; .param .f32 r; st.param.f32 [a], %f1;\n"
                            "    call.uni (r), plus, (a); ld.param.f32 %f2, [r]; }\n"
                            "  st.global.f32 [%d1], %f2; ret;\n"
                            "}\n";
static const char *callee = ".version 7.0\n"
                            ".target sm_70\n"
                            ".address_size 64\n"
                            ".visible .func (.param .f32 r) plus(.param .f32 a)\n"
                            "{\n"
                            "  .reg .f32 %f<2>; ld.param.f32 %f1, [a]; add.f32 %f1, %f1, 0f3F800000;\n"
                            "  st.param.f32 [r], %f1; ret;\n"
                            "}\n";

// One image out of two texts; the link is gone when the kernel runs.
static void run_linked(CUdeviceptr p) {
    CUlinkState link;
    CUmodule module;
    CUfunction linked;
    void *image;
    size_t size;
    const char *texts[] = {caller, callee};
    CHECK(cuLinkCreate(0, 0, 0, &link));
    for (int i = 0; i < 2; i++)
        CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)texts[i], strlen(texts[i]) + 1, "text", 0, 0, 0));
    CHECK(cuLinkComplete(link, &image, &size));
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuLinkDestroy(link));
    CHECK(cuModuleGetFunction(&linked, module, "linked"));
    void *parameters[] = {&p};
    CHECK(cuLaunchKernel(linked, 1, 1, 1, 32, 1, 1, 0, 0, parameters, 0));
}

int main(void) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction scale;
    CUdeviceptr p;
    unsigned n = 100000;
    float *h = malloc(4 * n);
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&scale, module, "scale"));
    CHECK(cuMemAlloc(&p, 4 * n));
    for (unsigned i = 0; i < n; i++) h[i] = i;
    CHECK(cuMemcpyHtoD(p, h, 4 * n));
    float factor = 1.5f;
    void *parameters[] = {&p, &factor, &n};
    CHECK(cuLaunchKernel(scale, (n + 127) / 128, 1, 1, 128, 1, 1, 0, 0, parameters, 0));
    struct {
        CUdeviceptr p;
        float factor;
        unsigned n;
    } packed = {p, 2.0f, n};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(scale, (n + 127) / 128, 1, 1, 128, 1, 1, 0, 0, 0, extra));
    run_linked(p);
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(h, p, 4 * n));
    printf("driver %g\n", h[10]);
    return h[10] != 31;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels that cannot be recorded: of a texture, a surface, managed memory, one that waits for the host; one that can; and two whose
// replays lack memory: of the heap of kernels, and behind an encoded pointer. Fails if an answer is wrong.
#include <cstdio>
#include <cstdlib>

#include "check.cuh"

struct Inside {
    int factor;
    cudaTextureObject_t texture;
};

extern "C" __global__ void from_texture(cudaTextureObject_t texture, float *out) {
    out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}

extern "C" __global__ void from_texture_inside(Inside inside, float *out) {
    out[threadIdx.x] = inside.factor * tex1Dfetch<float>(inside.texture, threadIdx.x);
}

extern "C" __global__ void from_handle(const cudaTextureObject_t *textures, float *out) {
    out[threadIdx.x] = 3 * tex1Dfetch<float>(textures[1], threadIdx.x);
}

extern "C" __global__ void fills_heap(float **heap) {
    *heap = (float *)malloc(1024);
    for (int i = 0; i < 256; i++) (*heap)[i] = 6 * i;
}

extern "C" __global__ void through_heap(float **heap, float *out) { out[threadIdx.x] = (*heap)[threadIdx.x]; }

extern "C" __global__ void through_code(unsigned long long encoded, float *out) {
    out[threadIdx.x] = 7 * ((const float *)~encoded)[threadIdx.x];
}

extern "C" __global__ void to_surface(cudaSurfaceObject_t surface) {
    surf1Dwrite(threadIdx.x * 3.0f, surface, threadIdx.x * 4);
}

extern "C" __global__ void on_managed(float *x) { x[threadIdx.x] += 4; }

extern "C" __global__ void waits_for_host(volatile int *flag, float *out) {
    while (flag[0] == 0) {
    }
    out[threadIdx.x] = 5;
}

extern "C" __global__ void ordinary(float *x) { x[threadIdx.x] = x[threadIdx.x] * 2 + 1; }

int main() {
    const int n = 256;
    float *in, *out, *managed, answers[n], host[n];
    int *flag;
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMalloc(&in, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMemcpy(in, host, n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMallocManaged(&managed, n * 4));
    for (int i = 0; i < n; i++) managed[i] = i;
    CHECK(cudaHostAlloc(&flag, 64, cudaHostAllocMapped));
    *flag = 0;
    int wrong = 0;
    auto look = [&](const char *what, float factor, float plus) {
        CHECK(cudaMemcpy(answers, out, n * 4, cudaMemcpyDeviceToHost));
        int bad = 0;
        for (int i = 0; i < n; i++) bad += answers[i] != i * factor + plus;
        if (bad) printf("%s: %d wrong\n", what, bad);
        wrong += bad;
    };

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = in;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = n * 4;
    cudaTextureDesc how = {};
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    from_texture<<<1, n>>>(texture, out);
    look("from_texture", 1, 0);
    from_texture_inside<<<1, n>>>(Inside{2, texture}, out);
    look("from_texture_inside", 2, 0);

    cudaTextureObject_t both[2] = {0, texture}, *handles;
    CHECK(cudaMalloc(&handles, sizeof both));
    CHECK(cudaMemcpy(handles, both, sizeof both, cudaMemcpyHostToDevice));
    from_handle<<<1, n>>>(handles, out);
    look("from_handle", 3, 0);

    float **heap;
    CHECK(cudaMalloc(&heap, sizeof *heap));
    fills_heap<<<1, 1>>>(heap);
    through_heap<<<1, n>>>(heap, out);
    look("through_heap", 6, 0);
    through_code<<<1, n>>>(~(unsigned long long)in, out);
    look("through_code", 7, 0);

    cudaArray_t array;
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &floats, n, 0, cudaArraySurfaceLoadStore));
    cudaResourceDesc target = {};
    target.resType = cudaResourceTypeArray;
    target.res.array.array = array;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &target));
    to_surface<<<1, n>>>(surface);
    CHECK(cudaMemcpy2DFromArray(out, n * 4, array, 0, 0, n * 4, 1, cudaMemcpyDeviceToDevice));
    look("to_surface", 3, 0);

    on_managed<<<1, n>>>(managed);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(out, managed, n * 4, cudaMemcpyDefault));
    look("on_managed", 1, 4);

    waits_for_host<<<1, n>>>(flag, out);
    *(volatile int *)flag = 1;
    CHECK(cudaDeviceSynchronize());
    look("waits_for_host", 0, 5);

    ordinary<<<1, n>>>(in);
    CHECK(cudaMemcpy(out, in, n * 4, cudaMemcpyDeviceToDevice));
    look("ordinary", 2, 1);
    printf("refused: %d wrong\n", wrong);
    return wrong != 0;
}
